// Loops that the CPU text writes in vectors: every function of lanes.text.h beside the interpreter, over floats of all
// kinds; loops of other lengths; and what stays with the host's compiler. Then 16-bit elements that are not kept wider.
#include <gtest/gtest.h>

#include <bit>

#include "codegen/cpu/gemm_text.h"
#include "codegen/cpu_kernel.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/canonicalize.h"
#include "passes/loops/read_again.h"

namespace tilewright {
namespace {

runtime::ProcessorFeatures with_lanes() {
  runtime::ProcessorFeatures f;
  f.avx2 = f.fma = f.f16c = f.avx512 = true;
  return f;
}
std::string lanes_text(const Program& program) {
  const std::string text = cpu_text_of(program, with_lanes());
  return text.substr(text.find("static void tw_"));
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// All upper halves of a float, each with lower halves next to where something rounds.
NDArray floats_of_all_kinds() {
  const std::vector<uint32_t> lows = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x0fff, 0x1000, 0x1001, 0x2000};
  const NDArray a = NDArray::zeros({static_cast<int64_t>(lows.size()) * 65536}, f32);
  auto* to = static_cast<float*>(a.data());
  for (uint32_t high = 0; high < 65536; ++high)
    for (uint32_t low : lows) *to++ = std::bit_cast<float>(high << 16 | low);
  return a;
}
// All 16-bit patterns, in an order that has neighbours of all kinds.
NDArray words(std::initializer_list<int64_t> shape, DType type) {
  const NDArray a = NDArray::zeros(shape, type);
  auto* to = static_cast<uint16_t*>(a.data());
  for (int64_t i = 0; i < a.size(); ++i) to[i] = static_cast<uint16_t>(i * 40503 + i / 65536);
  return a;
}

// Writes Y(i), given it and X(i).
using Body = std::function<void(const Tensor& X, const Tensor& Y, const Value& i)>;

Program mapped(int64_t n, DType to, const Body& body) {
  Tensor X("X", {n}, f32), Y("Y", {n}, to);
  return prim_func("mapped", {X, Y}, [&] {
    for (auto bx : Kernel(n / 1024, {.threads = 128}))
      for (auto i : Parallel(1024)) {
        Value at = bx * 1024 + i;
        body(X, Y, at);
      }
  });
}
void expect_lanes(DType to, const std::string& call, const Body& body) {
  static const NDArray x = floats_of_all_kinds();
  const Program program = mapped(x.size(), to, body);
  EXPECT_TRUE(has(lanes_text(program), call)) << lanes_text(program);
  expect_same(program, {x, NDArray::zeros({x.size()}, to)});
}

#define BODY(value) [&](const Tensor& X, const Tensor& Y, const Value& i) { Y(i) = value; }

TEST(CpuLanes, FormatsOfMemory) {
  expect_lanes(e4m3, "store_e4m3(tw_read<64>(", BODY(X(i)));
  expect_lanes(e5m2, "store_e5m2(tw_read<64>(", BODY(X(i)));
  expect_lanes(f16, "store_f16(tw_read<64>(", BODY(X(i)));
  expect_lanes(bf16, "store_bf16(tw_read<64>(", BODY(X(i)));
}
TEST(CpuLanes, Functions) {
  expect_lanes(f32, "exp2_f32(tw_read<64>(", BODY(exp2(X(i))));
  expect_lanes(f32, "exp_f32(tw_read<64>(", BODY(exp(X(i))));
  expect_lanes(bf16, "clamp_f32(tw_read<64>(", BODY(clamp(X(i), -1.5, 300.0)));
  expect_lanes(e5m2, "abs_f32(-tw_read<64>(", BODY(abs(-X(i)) / 3.0 - X(i) * 0.5));
  for (const double bound : {0.0, -0.0, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    const bool number = bound == bound;  // which does not signal
    expect_lanes(f16, number ? "min_f32<false, true>(tw_read<64>(" : "min_f32(tw_read<64>(", BODY(min(X(i), bound)));
    expect_lanes(f16, number ? "max_f32<true, false>(tw_all<64>(" : "max_f32(tw_all<64>(", BODY(max(bound, X(i))));
  }
  expect_lanes(f16, "tw_select(", [](const Tensor& X, const Tensor& Y, const Value& i) {
    Value x = X(i);
    Y(i) = if_then_else(x < 2.0, x * x, 1 / x);
  });
}
TEST(CpuLanes, WordsAreWidened) {
  for (const DType type : {f16, bf16}) {
    Tensor X("X", {64, 1024}, type), Y("Y", {64, 1024}, f32), Z("Z", {64, 1024}, e4m3);
    const Program program = prim_func("widened", {X, Y, Z}, [&] {
      for (auto bx : Kernel(64, {.threads = 128}))
        for (auto i : Parallel(1024)) {
          Y(bx, i) = exp2(cast(X(bx, i), f32) * 0.25);
          Z(bx, i) = X(bx, i);
        }
    });
    EXPECT_TRUE(has(lanes_text(program), "load_" + std::string(type == f16 ? "f16" : "bf16") + "<64>(&X["))
        << lanes_text(program);
    expect_same(program, {words({64, 1024}, type), NDArray::zeros({64, 1024}, f32), NDArray::zeros({64, 1024}, e4m3)});
  }
}

// What vectors leave of a range goes one by one; ranges that are known in the call, too.
TEST(CpuLanes, RangesThatVectorsDoNotDivide) {
  for (const int64_t n : {16, 48, 100, 130, 15}) {
    Tensor X("X", {8, n}, f32), Y("Y", {8, n}, f16);
    const Program program = prim_func("ragged", {X, Y}, [&] {
      for (auto bx : Kernel(8, {.threads = 128}))
        for (auto i : Parallel(n)) Y(bx, i) = exp2(X(bx, i));
    });
    EXPECT_EQ(has(lanes_text(program), "exp2_f32(tw_read<"), n >= 16) << n << lanes_text(program);
    expect_same(program, {ramp({8, n}, f32, 0.3), NDArray::zeros({8, n}, f16)});
  }
  const Value n = dynamic("n");
  Tensor X("X", {n}, f32), Y("Y", {n}, e4m3);
  const Program program = prim_func("dynamic", {X, Y}, [&] {
    for (auto bx : Kernel(ceildiv(n, 256), {.threads = 128})) {
      auto t = alloc_fragment({256}, f32);
      copy(X(bx * 256), t);
      for (auto i : Parallel(256)) t(i) = t(i) * 1.25;
      copy(t, Y(bx * 256));
    }
  });
  EXPECT_TRUE(has(lanes_text(program), "store_e4m3(")) << lanes_text(program);
  for (const int64_t m : {1, 255, 256, 1000})
    expect_same(program, {ramp({m}, f32, 0.7), NDArray::zeros({m}, e4m3)}, {m});
}

TEST(CpuLanes, WithoutTheInstructionsNothingChanges) {
  const Program program = mapped(4096, f32, BODY(exp2(X(i))));
  runtime::ProcessorFeatures f;
  EXPECT_FALSE(has(cpu_text_of(program, f), "tw_lanes"));
  f.avx2 = f.fma = f.f16c = true;
  EXPECT_FALSE(has(cpu_text_of(program, f), "tw_lanes"));
}
// Elements that are gathered, values that count with the lane, and what has no function to gain from.
TEST(CpuLanes, LoopsThatStayScalars) {
  Tensor X("X", {4096}, f32), Y("Y", {4096}, f32), I("I", {4096}, i32);
  auto text = [&](const std::function<void(const Value&)>& body) {
    return lanes_text(prim_func("scalars", {X, I, Y}, [&] {
      for (auto bx : Kernel(4, {.threads = 128}))
        for (auto i : Parallel(1024)) {
          Value at = bx * 1024 + i;
          body(at);
        }
    }));
  };
  EXPECT_FALSE(has(text([&](const Value& i) { Y(i) = X(i) * 2; }), "tw_read"));
  EXPECT_FALSE(has(text([&](const Value& i) { Y(i) = exp2(X(I(i))); }), "tw_read"));
  EXPECT_FALSE(has(text([&](const Value& i) { Y(i) = exp2(X(i) * cast(i, f32)); }), "tw_read"));
  EXPECT_FALSE(has(text([&](const Value& i) { Y(i) = if_then_else(I(i) < 3, exp2(X(i)), 0); }), "tw_read"));
  EXPECT_FALSE(has(text([&](const Value& i) { Y(4095 - i) = exp2(X(i)); }), "tw_read"));
}

TEST(CpuLanes, AreReported) {
  auto reports = [](const std::function<void(const Value&)>& body, const Tensor& X, const Tensor& Y) {
    const Program program = prim_func("reported", {X, Y}, [&] {
      for (auto bx : Kernel(4, {.threads = 128}))
        for (auto i : Parallel(1024)) {
          Value at = bx * 1024 + i;
          body(at);
        }
    });
    Dump dump("reported");
    return write_cpu(passes::canonicalize(program.box().program), with_lanes(), dump).lanes;
  };
  Tensor X("X", {4096}, f32), Y("Y", {4096}, f32);
  const auto taken = reports([&](const Value& i) { Y(i) = exp2(X(i)); }, X, Y);
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].lanes, 64);
  EXPECT_EQ(taken[0].function, "exp2_f32");
  const auto left = reports([&](const Value& i) { Y(i) = exp2(X(i)) * cast(i, f32); }, X, Y);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].lanes, 0);
  EXPECT_EQ(left[0].why, "the number of an iteration as a value");
}

// ---- products of few rows

// Keys and values of one of four heads: rows of 128 bytes, 512 apart.
TEST(CpuFetches, TheNextTileComesWithAProductOfFewRows) {
  for (const DType type : {f32, bf16}) {
    const int64_t keys = 1024, dim = 64;
    Tensor Q("Q", {4, 4, dim}, type), K("K", {keys, 4, dim}, type), V("V", {keys, 4, dim}, type);
    Tensor O("O", {4, 4, dim}, f32);
    const Program program = prim_func("heads", {Q, K, V, O}, [&] {
      for (auto g : Kernel(4, {.threads = 128})) {
        auto q = alloc_shared({4, dim}, type);
        auto k_tile = alloc_shared({64, dim}, type);
        auto v_tile = alloc_shared({64, dim}, type);
        auto scores = alloc_fragment({4, 64}, f32);
        auto weights = alloc_fragment({4, 64}, type);
        auto sums = alloc_fragment({4, dim}, f32);
        copy(Q(g, all, all), q);
        clear(sums);
        for (auto t : Pipelined(keys / 64, {.num_stages = 2})) {
          copy(K(slice(t * 64, t * 64 + 64), g, all), k_tile);
          copy(V(slice(t * 64, t * 64 + 64), g, all), v_tile);
          gemm(q, k_tile, scores, {.transpose_B = true, .clear_accum = true});
          copy(scores, weights);
          gemm(weights, v_tile, sums);
        }
        copy(sums, O(g, all, all));
      }
    });
    runtime::ProcessorFeatures pairs = with_lanes();
    pairs.avx512_bf16 = true;
    const std::string text = cpu_text_of(program, pairs);
    const std::string lines = std::to_string(64 * dim * type.bits / 8 / 64);
    EXPECT_TRUE(has(text, "_fetches_" + lines + "(q, k_tile, scores, {(const char*)(uint64_t)&K[")) << text;
    EXPECT_TRUE(has(text, "_fetches_" + lines + "(weights, v_tile, sums, {(const char*)(uint64_t)&V[")) << text;
    EXPECT_FALSE(has(text, "tw_prefetch((const char*)((uint64_t)&V[")) << text;
    expect_same(program,
                {ramp({4, 4, dim}, type, 0.01), ramp({keys, 4, dim}, type, 0.02), ramp({keys, 4, dim}, type, 0.03),
                 NDArray::zeros({4, 4, dim}, f32)},
                {}, 0.01);
  }
}

// Two products that meet through rows, of 64 queries and 256 keys, the last ones masked.
Program attending(DType type, int64_t m, int64_t dim) {
  Tensor Q("Q", {m, dim}, type), K("K", {256, dim}, type), V("V", {256, dim}, type), O("O", {m, dim}, type);
  return prim_func("attending", {Q, K, V, O}, [&] {
    for ([[maybe_unused]] auto g : Kernel(1, {.threads = 128})) {
      auto q = alloc_shared({m, dim}, type), k = alloc_shared({64, dim}, type), v = alloc_shared({64, dim}, type);
      auto s = alloc_fragment({m, 64}, f32), o = alloc_fragment({m, dim}, f32);
      auto p = alloc_fragment({m, 64}, type);
      auto most = alloc_fragment({m}, f32), before = alloc_fragment({m}, f32), part = alloc_fragment({m}, f32);
      auto sum = alloc_fragment({m}, f32);
      copy(Q, q);
      clear(o), clear(sum);
      fill(most, -1e30);
      for (auto t : Pipelined(4, {.num_stages = 1})) {
        copy(K(slice(t * 64, t * 64 + 64), all), k);
        gemm(q, k, s, {.transpose_B = true, .clear_accum = true});
        If(t == 3, [&] {
          for (auto [i, j] : Parallel(m, 64)) s(i, j) = if_then_else(j <= i, s(i, j), -1e30);
        });
        copy(most, before);
        reduce_max(s, most, {.dim = 1, .clear = false});
        for (auto [i, j] : Parallel(m, 64)) s(i, j) = exp2(s(i, j) - most(i));
        reduce_sum(s, part, {.dim = 1});
        for (auto i : Parallel(m)) sum(i) = sum(i) * exp2(before(i) - most(i)) + part(i);
        copy(s, p);
        for (auto [i, j] : Parallel(m, dim)) o(i, j) *= exp2(before(i) - most(i));
        copy(V(slice(t * 64, t * 64 + 64), all), v);
        gemm(p, v, o);
      }
      for (auto [i, j] : Parallel(m, dim)) o(i, j) /= sum(i);
      copy(o, O);
    }
  });
}

TEST(CpuPanels, WhatIsMadeOfAProductFollowsItPanelByPanel) {
  for (const DType type : {f32, bf16, f16}) {
    const Program program = attending(type, 64, 32);
    const std::string text = cpu_text_of(program, with_lanes());
    EXPECT_TRUE(has(text, "gemm_32x64x32_")) << text;  // scores of a panel
    EXPECT_TRUE(has(text, "gemm_32x32x64_")) << text;  // its output
    EXPECT_FALSE(has(text, "gemm_64x")) << text;
    EXPECT_TRUE(has(text, "float s[2048]")) << text;            // one panel of the scores
    EXPECT_TRUE(has(text, "tw_lanes<float, 32> row")) << text;  // the running maximum
    const auto in = [&](double step, int64_t rows) { return ramp({rows, 32}, type, step); };
    expect_same(program, {in(0.01, 64), in(0.013, 256), in(0.017, 256), NDArray::zeros({64, 32}, type)}, {}, 0.02);
  }
}
TEST(CpuPanels, RowsThatEndWithinAPanelGoTogether) {
  const Program program = attending(bf16, 40, 32);
  EXPECT_TRUE(has(cpu_text_of(program, with_lanes()), "gemm_40x64x32_"));
  const auto in = [&](double step, int64_t rows) { return ramp({rows, 32}, bf16, step); };
  expect_same(program, {in(0.01, 40), in(0.013, 256), in(0.017, 256), NDArray::zeros({40, 32}, bf16)}, {}, 0.02);
}
TEST(CpuPanels, TilesOfAmxAreShapedOnceABlockAndPairsAreVectors) {
  runtime::ProcessorFeatures amx = with_lanes();
  amx.avx512_bf16 = amx.amx = true;
  const std::string text = cpu_text_of(attending(bf16, 64, 32), amx);
  EXPECT_TRUE(has(text, "const tw_use_tiles tiles;")) << text;
  EXPECT_TRUE(has(text, "store_bf16_interleaved_flushed(")) << text;  // only the product reads it
  EXPECT_TRUE(has(text, "tw_transpose((uint16_t*)&v[")) << text;
  EXPECT_TRUE(has(text, "store_bf16(tw_read<32>(&o[")) << text;  // the output, before it is transposed
}

// One product a sum: of pairs there is no whole one, and nothing to fetch beside.
TEST(CpuFetches, InAProductWithoutAWholeStep) {
  GemmSpec spec;
  spec.m = 4, spec.n = 32, spec.k = 1, spec.a = spec.b = bf16;
  spec.a_layout = OperandLayout::strided(bf16, 1), spec.b_layout = OperandLayout::strided(bf16, 32);
  spec.c_layout = OperandLayout::strided(f32, 32);
  spec.features = {.avx2 = true, .fma = true, .f16c = true, .avx512 = true, .avx512_bf16 = true};
  spec.fetch_lines = 8;
  const GemmText text = gemm_text(spec);
  EXPECT_TRUE(has(text.definition, "tw_rows next) {")) << text.definition;
  EXPECT_TRUE(has(text.kernel, "avx512_bf16")) << text.kernel;
}

// ---- a scale for the largest magnitude of 128 elements, and the elements in 8 bits

Program scaled(DType type, DType to, int64_t rows) {
  Tensor X("X", {rows, 512}, type), Q("Q", {rows, 512}, to), S("S", {rows, 4}, f32);
  return prim_func("scaled", {X, Q, S}, [&] {
    for (auto [bx, by] : Kernel({4, rows / 4}, {.threads = 128})) {
      auto x = alloc_fragment({4, 128}, f32);
      auto largest = alloc_fragment({4}, f32);
      copy(X(by * 4, bx * 128), x);
      reduce_absmax(x, largest, {.dim = 1});
      for (auto i : Parallel(4)) S(by * 4 + i, bx) = largest(i);
      for (auto [i, j] : Parallel(4, 128)) x(i, j) = x(i, j) / max(largest(i), 0.001);
      copy(x, Q(by * 4, bx * 128));
    }
  });
}

TEST(IntegerMagnitudes, AreThoseOfFloatsAndNoNaN) {
  for (const DType type : {f16, bf16}) {
    const Program program = scaled(type, e4m3, 1024);
    EXPECT_TRUE(has(lanes_text(program), "((int16_t*)X)[")) << lanes_text(program);
    EXPECT_TRUE(has(lanes_text(program), "int16_t lanes[64]")) << lanes_text(program);
    expect_same(program, {words({1024, 512}, type), NDArray::zeros({1024, 512}, e4m3), NDArray::zeros({1024, 4}, f32)});
    const NDArray nan = words({1024, 512}, type);  // nothing but NaN in most rows
    auto* bits = static_cast<uint16_t*>(nan.data());
    for (int64_t i = 0; i < nan.size(); ++i)
      if (i / 128 % 3 != 0) bits[i] = static_cast<uint16_t>(i % 2 == 0 ? 0xffff : 0x7f81 + i % 64);
    expect_same(program, {nan, NDArray::zeros({1024, 512}, e4m3), NDArray::zeros({1024, 4}, f32)});
  }
  EXPECT_FALSE(has(lanes_text(scaled(f32, e4m3, 1024)), "int16_t"));
}
TEST(ReadAgain, ElementsAreConvertedWhereTheyAreUsed) {
  const std::string text = lanes_text(scaled(bf16, e4m3, 1024));
  EXPECT_TRUE(has(text, "load_bf16_pairs<64>(&X[")) << text;
  EXPECT_FALSE(has(text, "float x[")) << text;
}
// A loop program in which `used` reads the tile while or after it is filled.
std::string read_again(const std::string& filled, const std::string& used) {
  const ir::LoopProgram program = ir::parse_loop_program(
      "loop program p {\n  param X: bfloat16[64, 32]\n  param Y: float32[64, 32]\n  launch p(bx: 4) threads(tx: 32) {\n"
      "    shared t: float32[32]\n    shared u: float32[32]\n    for block: int64 in 0..4 grid {\n"
      "      for i: int64 in 0..16 {\n        for j: int64 in 0..32 {\n          t[j] = float32(X[block * 16 + i, "
      "j])\n" +
          filled + "        }\n        for n: int64 in 0..32 vectorized {\n          Y[block * 16 + i, n] = " + used +
          "\n        }\n      }\n    }\n  }\n}\n",
      "p.tile");
  const ir::LoopProgram out = passes::read_again(program);
  ir::check_valid(out, "read_again");
  return ir::print(out);
}
TEST(ReadAgain, WhileATileIsFilledItsOwnElementAlone) {
  const std::string own = read_again("          u[j] = t[j] * 2.0\n", "t[31 - n] + u[n]");
  EXPECT_TRUE(has(own, "t_1: float32 = float32(X[block * 16 + i, j])\n          u[j] = t_1 * 2.0")) << own;
  EXPECT_TRUE(has(own, "float32(X[block * 16 + i, -n + 31]) + u[n]")) << own;
  const std::string next = read_again("          u[j] = t[(j + 1) % 32]\n", "t[n] + u[n]");  // of the iteration before
  EXPECT_TRUE(has(next, "= t[n] + u[n]")) << next;
}
TEST(ReadAgain, TilesThatStay) {
  EXPECT_TRUE(has(lanes_text(scaled(f32, e4m3, 1024)), "float x["));   // as many bytes
  EXPECT_TRUE(has(lanes_text(scaled(bf16, bf16, 1024)), "float x["));  // a call may give both one memory
}

}  // namespace
}  // namespace tilewright
