// Small programs whose CUDA text has, or has not, certain words; all of it compiles.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "driver/build_plan.h"
#include "driver/cuda_engine.h"
#include "ir/parse.h"
#include "passes/pipeline.h"
#include "runtime/cuda_kernel.h"
#include "runtime/nvrtc.h"
#include "support/diagnostic.h"
#include "tilewright/language.h"

namespace tilewright {
namespace {

runtime::cuda::CudaKernelText text_of(const Program& program) {
  Dump dump("words");
  return write_cuda(passes::run_passes(order_symbols(program.box().program), passes::all_passes(), [](auto&&...) {}),
                    "sm_90a", dump)
      .kernel;
}

void expect_compiles(const runtime::cuda::CudaKernelText& text) {
  try {
    runtime::Nvrtc::get();
  } catch (const CompileError& e) {
    GTEST_SKIP() << e.what();
  }
  EXPECT_NO_THROW(runtime::cuda::compile_cuda(text));
}

Program exchange(bool waits) {
  Tensor A("A", {4, 32}, i32), B("B", {4, 32}, i32);
  return prim_func("exchange", {A, B}, [&] {
    for (auto b : Kernel(4, {.threads = 32})) {
      auto t = get_thread_binding();
      A(b, t) = b * 32 + t;
      if (waits) sync_grid();
      B(b, t) = A(3 - b, t);
    }
  });
}

TEST(CudaWords, PlansForOlderGpusBecomeCodeOfTheOneThatIsHere) {
  EXPECT_EQ(code_architecture("sm_80", "sm_90a"), "sm_90a");
  EXPECT_EQ(code_architecture("sm_89", "sm_120a"), "sm_120a");
  EXPECT_EQ(code_architecture("sm_80", "sm_80"), "sm_80");
  EXPECT_EQ(code_architecture("sm_89", "sm_80"), "sm_89");      // whose load says so
  EXPECT_EQ(code_architecture("sm_90a", "sm_100a"), "sm_90a");  // wgmma is Hopper's alone
  EXPECT_EQ(code_architecture("sm_80", ""), "sm_80");
}

TEST(CudaWords, PromisesAreNoCode) {
  Tensor A("A", {64}, f32), I("I", {64}, i32), B("B", {64}, f32);
  const auto text = text_of(prim_func("promises", {A, I, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 64})) {
      (void)bx;
      for (auto t : Parallel(64)) {
        Value i = I(t);
        assume(i >= 0 && i < 64);
        B(t) = A(i);
      }
    }
  }));
  expect_compiles(text);
}

TEST(CudaWords, BlocksThatWaitForEachOtherRunAtOnce) {
  const auto text = text_of(exchange(true));
  ASSERT_EQ(text.plan.launches.size(), 1u);
  EXPECT_TRUE(text.plan.launches[0].cooperative);
  EXPECT_NE(text.text.find("cooperative_groups::this_grid().sync();"), std::string::npos);
  EXPECT_FALSE(text_of(exchange(false)).plan.launches[0].cooperative);
  expect_compiles(text);
}

// What is written and never read lives in the loop that writes it; pairs at a time stand in no loop.
TEST(CudaWords, CastsThatNobodyReads) {
  Tensor A("A", {32, 8}, f32), B("B", {32, 8}, f32);
  const auto text = text_of(prim_func("unread", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      (void)bx;
      auto a = alloc_fragment({32, 8}, f32);
      auto unread = alloc_fragment({32, 8}, e5m2);
      copy(A, a);
      for (auto [i, j] : Parallel(32, 8)) unread(i, j) = cast(a(i, j) * 2, e5m2);
      copy(a, B);
    }
  }));
  expect_compiles(text);
}

// CUDA's functions of one name take floats and doubles: of a float they would be float's, 1 ulp off.
TEST(CudaWords, LibraryFunctionsAreOfDoubles) {
  Tensor A("A", {128}, f32), B("B", {128}, f32);
  const auto text = text_of(prim_func("library", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 128})) {
      (void)bx;
      for (auto t : Parallel(128)) B(t) = asinh(A(t));
    }
  }));
  EXPECT_NE(text.text.find("(float)asinh(x)"), std::string::npos) << text.text;
  expect_compiles(text);
}

TEST(CudaWords, DivisionsAreApproximateWhereTheProgramAllowsIt) {
  const auto text = [](bool fast, DType type) {
    Tensor A("A", {128}, type), B("B", {128}, type), C("C", {128}, type);
    return text_of(prim_func("quotients", {A, B, C}, [&] {
      set_fast_math(fast);
      for (auto bx : Kernel(1, {.threads = 128})) {
        (void)bx;
        for (auto t : Parallel(128)) C(t) = A(t) / B(t);
      }
    }));
  };
  const std::string call = "__fdividef(";
  for (const DType type : {f32, f16}) {
    EXPECT_NE(text(true, type).text.find(call), std::string::npos);
    EXPECT_EQ(text(false, type).text.find(call), std::string::npos);
    expect_compiles(text(true, type));
  }
  EXPECT_EQ(text(true, f64).text.find(call), std::string::npos);
}

// Functions that deep learning calls stay in float: double costs three to five times what memory takes.
TEST(CudaWords, CommonFunctionsDoNotComputeInDouble) {
  Tensor A("A", {128}, f32), B("B", {128}, f32);
  for (Value (*f)(const Value&) :
       {+[](const Value& x) { return Value(log1p(x)); }, +[](const Value& x) { return Value(expm1(x)); },
        +[](const Value& x) { return Value(tanh(x)); }}) {
    const auto text = text_of(prim_func("functions", {A, B}, [&] {
      for (auto bx : Kernel(1, {.threads = 128})) {
        (void)bx;
        for (auto t : Parallel(128)) B(t) = f(A(t));
      }
    }));
    EXPECT_EQ(text.text.find("double"), std::string::npos) << text.text;
    expect_compiles(text);
  }
}

TEST(CudaWords, TruthsAreStoredAndReadByVectors) {
  Tensor A("A", {4096}, boolean), B("B", {4096}, bf16), C("C", {4096}, boolean);
  const auto text = text_of(prim_func("truths", {A, B, C}, [&] {
    for (auto bx : Kernel(4, {.threads = 128}))
      for (auto t : Parallel(1024)) C(bx * 1024 + t) = A(bx * 1024 + t) && B(bx * 1024 + t) > 0.0;
  }));
  EXPECT_NE(text.text.find("*(const uint2*)&A["), std::string::npos) << text.text;
  EXPECT_NE(text.text.find("tw_store((uint2*)&C["), std::string::npos) << text.text;
  expect_compiles(text);
}

// The number of a block among all is at hand where its place in a panel is wanted.
// Bits that a program makes a float of to store it, as what decodes 4-bit weights does.
TEST(CudaWords, BitsThatAreStoredAreNotConverted) {
  Tensor A("A", {1024}, u16), B("B", {1024}, bf16);
  const auto text = text_of(prim_func("bits", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 128})) {
      (void)bx;
      for (auto t : Parallel(1024)) B(t) = reinterpret(A(t), bf16);
    }
  }));
  EXPECT_EQ(text.text.find("store_bf16"), std::string::npos) << text.text;
  expect_compiles(text);
}

TEST(CudaWords, PanelsAreOfTheBlocksNumber) {
  Tensor A("A", {4096, 512}, bf16), B("B", {512, 3584}, bf16), C("C", {4096, 3584}, bf16);
  const auto text = text_of(prim_func("product", {A, B, C}, [&] {
    for (auto [bx, by] : Kernel({3584 / 224, 32}, {.threads = 256})) {
      auto a = alloc_shared({128, 64}, bf16), b = alloc_shared({64, 224}, bf16);
      auto c = alloc_fragment({128, 224}, f32);
      use_swizzle(10);
      clear(c);
      for (auto k : Pipelined(8, {.num_stages = 3})) {
        copy(A(by * 128, k * 64), a);
        copy(B(k * 64, bx * 224), b);
        gemm(a, b, c);
      }
      copy(c, C(by * 128, bx * 224));
    }
  }));
  EXPECT_NE(text.text.find("const int32_t panel = (int32_t)((uint32_t)tile / 160u);"), std::string::npos) << text.text;
}

// The device compiler compares magnitudes of bytes that it has not extended.
TEST(CudaWords, MagnitudesOfBytesAreSumsOfDifferences) {
  Tensor A("A", {64, 32}, i8), B("B", {64}, i8);
  const auto text = text_of(prim_func("magnitudes", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 128})) {
      (void)bx;
      auto a = alloc_fragment({64, 32}, i8);
      auto most = alloc_fragment({64}, i8);
      copy(A, a);
      reduce_absmax(a, most, {.dim = 1});
      copy(most, B);
    }
  }));
  EXPECT_NE(text.text.find("__sad((int32_t)a, 0, 0u)"), std::string::npos) << text.text;
  expect_compiles(text);
}

// As a person writes it: what a turn of a loop is about has a name, places on the chip are of 32 bits, instructions are
// functions.
TEST(CudaWords, RingsAreReadAsByHand) {
  Tensor A("A", {4096, 512}, bf16), B("B", {512, 4096}, bf16), C("C", {4096, 4096}, bf16);
  const auto text = text_of(prim_func("product", {A, B, C}, [&] {
    for (auto [bx, by] : Kernel({32, 32}, {.threads = 256})) {
      auto a = alloc_shared({128, 64}, bf16, "a"), b = alloc_shared({64, 128}, bf16, "b");
      auto c = alloc_fragment({128, 128}, f32);
      clear(c);
      for (auto k : Pipelined(8, {.num_stages = 3})) {
        copy(A(by * 128, k * 64), a);
        copy(B(k * 64, bx * 128), b);
        gemm(a, b, c);
      }
      copy(c, C(by * 128, bx * 128));
    }
  }));
  const auto has = [&](const std::string& part) { EXPECT_NE(text.text.find(part), std::string::npos) << part; };
  has("const int32_t slot = (int32_t)((uint32_t)");
  has("const int32_t parity = (int32_t)((uint32_t)");
  has("tw_wait(&a_b_empty[slot], parity ^ 1);");
  has("tw_tma_load_2d(a + slot * 8192, &A_map, &a_b_full[slot], k * 64, by * 128);");
  has("tw_tma_load_2d(b + slot * 8192 + 4096, &B_map, &a_b_full[slot], bx * 128 + 64, k * 64);");
  has("tw_tma_store_2d(");
  has("tw_store_matrices_4(");
  has("tw_sync_threads<");
  const size_t body = text.text.find("extern \"C\"");
  for (const char* part : {"asm", "0ll", "ll *", "ll + "})
    EXPECT_EQ(text.text.find(part, body), std::string::npos) << part << "\n" << text.text.substr(body);
  expect_compiles(text);
}

// An offset that could be beyond 32 bits on its way is computed in 64, on the chip too.
TEST(CudaWords, OffsetsThatMayBeLargeAreWide) {
  Tensor A("A", {1024}, i32), B("B", {1024}, f32);
  const auto text = text_of(prim_func("wide", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 128})) {
      (void)bx;
      auto s = alloc_shared({1024}, f32, "s");
      for (auto i : Parallel(1024)) s(i) = 0.0;
      for (auto i : Parallel(1024)) B(i) = s(cast(A(i), i64) * 1048576 % 1024);
    }
  }));
  EXPECT_NE(text.text.find("* 1048576ll"), std::string::npos) << text.text;
  expect_compiles(text);
}

// The device compiler makes a predicate of products of doubles whose accumulators are cleared under a condition, and
// the device then clears half of them.
TEST(CudaWords, ProductsOfDoublesAreNotClearedUnderAConditionByMma) {
  const auto product = [](bool in_loop) {
    Tensor A("A", {64, 64}, f64), B("B", {64, 64}, f64), C("C", {64, 64}, f64);
    return text_of(prim_func("doubles", {A, B, C},
                             [&] {
                               for (auto bx : Kernel(1, {.threads = 128})) {
                                 (void)bx;
                                 auto a = alloc_shared({64, 16}, f64), b = alloc_shared({16, 64}, f64);
                                 auto c = alloc_fragment({64, 64}, f64);
                                 if (!in_loop) clear(c);
                                 for (auto k : Pipelined(4, {.num_stages = 2})) {
                                   copy(A(0, k * 16), a);
                                   copy(B(k * 16, 0), b);
                                   if (in_loop) {
                                     gemm(a, b, c, {.clear_accum = k == 0});
                                   } else {
                                     gemm(a, b, c);
                                   }
                                 }
                                 copy(c, C);
                               }
                             }))
        .text;
  };
  const std::string before = product(false), inside = product(true);
  EXPECT_NE(before.find("m16n8k16.row.col.f64"), std::string::npos);
  EXPECT_EQ(before.find("if (k == 0)"), std::string::npos) << before;
  EXPECT_EQ(inside.find("mma.sync"), std::string::npos) << inside;
}

// Bytes across k, rows that are no multiple of 16 bytes, and tiles of other names are for the matrix unit all the same.
TEST(CudaWords, OperandsThatLdmatrixDoesNotLoadComeByTheirElements) {
  struct Case {
    const char *tiles, *gemm, *instruction;
  };
  const Case cases[] = {
      {"shared a: int8[32, 64]\n shared b: int8[64, 32]\n fragment c: int32[32, 32]\n fill to=a value=1\n fill to=b "
       "value=2",
       "a=a b=b", "m16n8k32.row.col.s32.s8.s8.s32"},
      {"shared a: int8[64, 32]\n shared b: int8[32, 64]\n fragment c: int32[32, 32]\n fill to=a value=1\n fill to=b "
       "value=2",
       "a=a b=b transpose_a=true transpose_b=true", "m16n8k32.row.col.s32.s8.s8.s32"},
      {"shared a: float16[32, 33]\n shared b: float16[32, 33]\n fragment c: float32[32, 32]\n fill to=a value=1.0\n "
       "fill to=b value=2.0",
       "a=a[0 : 32, 0 : 32] b=b[0 : 32, 1 : 32]", "m16n8k16.row.col.f32.f16.f16.f32"},
      {"shared a: tfloat32[32, 18]\n shared b: tfloat32[32, 18]\n fragment c: float32[32, 32]\n fill to=a value=1.0\n "
       "fill to=b value=2.0",
       "a=a[0 : 32, 0 : 16] b=b[0 : 32, 2 : 16] transpose_b=true", "m16n8k8.row.col.f32.tf32.tf32.f32"},
      {"shared x: uint8[32, 64]\n shared a: float16[32, 32] view=x\n shared b: float16[32, 32]\n"
       " fragment c: float32[32, 32]\n fill to=x value=60\n fill to=b value=2.0",
       "a=a b=b", "m16n8k16.row.col.f32.f16.f16.f32"},
  };
  for (const Case& c : cases) {
    Dump dump("words");
    const std::string text = fmt::format(
        "program p {{\n param C: {0}[32, 32]\n launch p(bx: 1) threads(tx: 64) {{\n {1}\n"
        " gemm {2} c=c clear=true\n copy from=c to=C\n }}\n}}\n",
        std::string_view(c.tiles).find("int32") == std::string_view::npos ? "float32" : "int32", c.tiles, c.gemm);
    const auto kernel =
        write_cuda(passes::run_passes(ir::parse(text, "p.tile"), passes::all_passes(), [](auto&&...) {}), "sm_90a",
                   dump)
            .kernel;
    EXPECT_NE(kernel.text.find(c.instruction), std::string::npos) << kernel.text;
    EXPECT_EQ(kernel.text.find("fma"), std::string::npos) << kernel.text;
  }
}

// The order of one row of blocks is the hardware's own.
TEST(CudaWords, OneRowOfBlocksHasOneOrder) {
  const auto copied = [](int64_t columns, int64_t rows) {
    Tensor A("A", {rows, columns, 32}, f32), B("B", {rows, columns, 32}, f32);
    return text_of(prim_func("copied", {A, B},
                             [&] {
                               for (auto [bx, by] : Kernel({columns, rows}, {.threads = 32})) {
                                 use_swizzle(10);
                                 auto t = get_thread_binding();
                                 B(by, bx, t) = A(by, bx, t);
                               }
                             }))
        .text;
  };
  EXPECT_EQ(copied(56, 1).find("panel"), std::string::npos);
  EXPECT_EQ(copied(1, 56).find("panel"), std::string::npos);
  EXPECT_NE(copied(56, 2).find("panel"), std::string::npos);
}

// Who reads a variable that nobody writes gets what is there; that the loop converts two elements at a time changes
// nothing.
TEST(CudaWords, VariablesThatOnlyALoopReadsAreDeclared) {
  Tensor A("A", {64}, f32), C("C", {64}, f16);
  const Value n = Scalar("n", i32);
  const auto text = text_of(prim_func("unset", {A, n, C}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      (void)bx;
      auto v = alloc_local({1}, f32);
      If(n > 5, [&] {
        for (auto i : Parallel(64)) C(i) = cast(A(i) + v(0), f16);
      });
    }
  }));
  expect_compiles(text);
}

// Every vote, fence, atomic and report is the device's own function, where it has one.
TEST(CudaWords, FunctionsOfTheDevice) {
  const auto text =
      text_of(Program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{ir::parse(R"(program p {
  param A: int32[8, 64]
  param U: uint32[4, 64]
  param F: float32[64]
  param H: float16[64]
  param x: float64
  launch l(bx: 1) threads(tx: 64) {
    shared s: float32[64]
    shared wide: float64[4]
    a: bool = vote any value=A[0, tx] > 0
    b: bool = vote all value=A[1, tx] > 0
    c: uint32 = vote ballot value=A[2, tx] > 0
    d: uint32 = vote active_mask
    e: bool = vote block_any value=A[3, tx] > 0
    f: bool = vote block_all value=A[4, tx] > 0
    g: int32 = vote block_count value=A[5, tx] > 0
    h: uint32 = vote match_any value=A[6, tx]
    i: uint32 = vote match_all value=A[7, tx]
    U[0, tx] = c + d + h + i
    A[0, tx] = select(a and b and e and f, g, 0)
    s[tx] = 1.0
    fence block
    fence device
    fence async_all
    k: int32 = atomic min to=A[1, 0] value=tx
    l: int32 = atomic and to=A[2, 0] value=tx
    m: int32 = atomic xor to=A[3, 0] value=tx
    n: float32 = atomic exchange to=F[0] value=float32(tx)
    o: int32 = atomic max to=A[5, 0] value=tx
    p: int32 = atomic or to=A[6, 0] value=tx
    atomic max to=H[0] value=float16(k + l + m + o + p)
    wide[tx % 4] = float64(n) * x
    assert tx < 64 message="a thread too many"
    print message="here"
    print message="and" values=[tx, wide[0]]
    F[tx] = s[63 - tx] + float32(wide[1])
  }
}
)",
                                                                                              "words.tile")})));
  for (const char* word : {"__any_sync(",
                           "__all_sync(",
                           "__ballot_sync(",
                           "__activemask()",
                           "__syncthreads_or(",
                           "__syncthreads_and(",
                           "__syncthreads_count(",
                           "__match_any_sync(",
                           "__match_all_sync(",
                           "__threadfence_block();",
                           "__threadfence();",
                           "tw_fence_async",
                           "atomicMin(",
                           "atomicMax(",
                           "atomicAnd(",
                           "atomicOr(",
                           "atomicXor(",
                           "atomicExch(",
                           "tw_update(",
                           "tw_report_failure(",
                           "tw_report("})
    EXPECT_NE(text.text.find(word), std::string::npos) << word << " is not in\n" << text.text;
  expect_compiles(text);
}

// Bytes as halves, less a constant, are whole numbers that halves hold: only what is multiplied by a scale is rounded.
TEST(CudaWords, WholeNumbersThatHalvesHoldAreNotRounded) {
  const auto scaled = [](int64_t zero) {
    Tensor W("W", {1024}, u8), S("S", {1024}, f16), B("B", {1024}, f16);
    return text_of(prim_func("scaled", {W, S, B},
                             [&] {
                               for (auto bx : Kernel(1, {.threads = 128})) {
                                 (void)bx;
                                 for (auto t : Parallel(1024)) B(t) = (cast(W(t), f16) - cast(Value(zero), f16)) * S(t);
                               }
                             }))
        .text;
  };
  const std::string exact = scaled(128), rounded = scaled(1794);
  EXPECT_NE(exact.find("__float22half2_rn(B_vector, ((float)W_vector[0] - 128.0f) *"), std::string::npos) << exact;
  EXPECT_NE(rounded.find("__float22half2_rn(B_vector, round_f16((float)W_vector[0] - 1794.0f) *"), std::string::npos)
      << rounded;
}

// What lies beyond a tensor is bits of 0, as narrow floats have them: nothing is converted.
TEST(CudaWords, NarrowFloatsBeyondATensorAreBits) {
  const std::string tile =
      "program odd {\n  param A: bfloat16[99, 257]\n  param B: bfloat16[128, 256]\n  launch odd(bx: 1) threads(tx: "
      "128) {\n"
      "    shared s: bfloat16[128, 256]\n    copy from=A[0 : 128, 0 : 256] to=s\n    copy from=s to=B\n  }\n}\n";
  const std::string text =
      text_of(Program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{ir::parse(tile, "odd.tile")})))
          .text;
  EXPECT_NE(text.find("= tw_load_or_zero<"), std::string::npos) << text;
  EXPECT_EQ(text.find("tw_select<float>("), std::string::npos) << text;
}

// ptxas 13.0 leaves out sums of mul.hi: text of ours has none.
TEST(CudaWords, HighHalvesOfProductsAreOfWholeProducts) {
  for (const char* type : {"int32", "uint32"}) {
    const std::string tile = fmt::format(
        "program high {{\n  param A: {0}[128]\n  param B: {0}[128]\n  launch high(bx: 1) threads(tx: 128) {{\n"
        "    map i in 128 {{\n      B[i] = B[i] + mulhi(A[i], B[i])\n    }}\n  }}\n}}\n",
        type);
    const auto text =
        text_of(Program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{ir::parse(tile, "high.tile")})));
    EXPECT_NE(text.text.find(*type == 'i' ? "mul.wide.s32" : "mul.wide.u32"), std::string::npos) << text.text;
    for (const char* word : {"__mulhi", "__umulhi", "mul.hi."})
      EXPECT_EQ(text.text.find(word), std::string::npos) << word << " is in\n" << text.text;
    expect_compiles(text);
  }
}

TEST(CudaWords, OffsetsThat32BitsHoldAreOf32Bits) {
  const auto copied = [](int64_t rows) {
    Tensor A("A", {rows, 65536}, f32), B("B", {rows, 65536}, f32);
    return text_of(prim_func("copied", {A, B},
                             [&] {
                               for (auto [bx, by] : Kernel({512, rows}, {.threads = 128}))
                                 for (auto t : Parallel(128)) B(by, bx * 128 + t) = A(by, bx * 128 + t);
                             }))
        .text;
  };
  const std::string narrow = copied(32767), wide = copied(32769);
  EXPECT_NE(narrow.find(" * 65536]"), std::string::npos) << narrow;
  EXPECT_NE(wide.find(" * 65536ll"), std::string::npos) << wide;
}

}  // namespace
}  // namespace tilewright
