// Products with a matrix of which half of the elements are kept: what the interpreter means by them, and what mma.sp
// and wgmma.sp make of them.
#include <gtest/gtest.h>

#include <random>

#include "interpreter/run.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/rewrite.h"
#include "passes/canonicalize.h"
#include "passes/lower_to_threads.h"
#include "scalar/sparse_group.h"
#include "tilewright/compile.h"
#include "tilewright/diagnostic.h"

namespace tilewright::simulator {
namespace {

struct SparseProduct {
  int64_t m, n, k, block_m, block_n, block_k, threads, stages;
  DType type, words;
  bool transpose_a = false, transpose_e = false, transpose_b = true, in_registers = false;

  SparseGroup group() const { return *sparse_group(type); }
  DType sum() const { return type.is_int() ? i32 : f32; }
  int64_t kept(int64_t of_k) const { return of_k / group().size * group().kept; }
  int64_t words_of(int64_t of_k) const { return of_k / group().size * kGroupBits / words.bits; }

  std::string text() const {
    const auto pair = [](bool swap, const std::string& i, const std::string& j) {
      return swap ? j + ", " + i : i + ", " + j;
    };
    const auto shape = [&](bool swap, int64_t i, int64_t j) {
      return pair(swap, fmt::format("{}", i), fmt::format("{}", j));
    };
    const auto box = [&](bool swap, const char* i, int64_t bi, const char* j, int64_t bj) {
      return pair(swap, fmt::format("{} * {} : {}", i, bi, bi), fmt::format("{} * {} : {}", j, bj, bj));
    };
    const std::string a = fmt::format("{}[{}]", type.name(), shape(transpose_a, block_m, kept(block_k)));
    std::string s = fmt::format(
        "program sparse {{\n  param A: {}[{}]\n  param E: {}[{}]\n  param B: {}[{}]\n  param C: {}[{}, {}]\n"
        "  launch sparse(bx: {}, by: {}) threads(tx: {}) {{\n    shared As: {}\n    shared Es: {}[{}]\n"
        "    shared Bs: {}[{}]\n    fragment acc: {}[{}, {}]\n",
        type.name(), shape(transpose_a, m, kept(k)), words.name(), shape(transpose_e, m, words_of(k)), type.name(),
        shape(!transpose_b, n, k), sum().name(), m, n, (n + block_n - 1) / block_n, (m + block_m - 1) / block_m,
        threads, a, words.name(), shape(transpose_e, block_m, words_of(block_k)), type.name(),
        shape(!transpose_b, block_n, block_k), sum().name(), block_m, block_n);
    if (in_registers) s += fmt::format("    fragment Ar: {}\n", a);
    s += fmt::format(
        "    fill to=acc value={}\n    for k: int32 in 0..{} pipelined(stages={}) {{\n      copy from=A[{}] to=As\n"
        "      copy from=E[{}] to=Es\n      copy from=B[{}] to=Bs\n",
        sum().is_int() ? "0" : "0.0", (k + block_k - 1) / block_k, stages,
        box(transpose_a, "by", block_m, "k", kept(block_k)), box(transpose_e, "by", block_m, "k", words_of(block_k)),
        box(!transpose_b, "bx", block_n, "k", block_k));
    if (in_registers) s += "      copy from=As to=Ar\n";
    s += fmt::format("      gemm a={} b=Bs c=acc metadata=Es{}{}{}\n    }}\n", in_registers ? "Ar" : "As",
                     transpose_a ? " transpose_a=true" : "", transpose_b ? " transpose_b=true" : "",
                     transpose_e ? " transpose_metadata=true" : "");
    return s + fmt::format("    copy from=acc to=C[by * {0} : {0}, bx * {1} : {1}]\n  }}\n}}\n", block_m, block_n);
  }
  std::string name() const {
    return fmt::format("{}x{}x{} by {}x{}x{}, {} threads, {} of {}{}{}{}{}", m, n, k, block_m, block_n, block_k,
                       threads, type.name(), words.name(), transpose_a ? ", a transposed" : "",
                       transpose_e ? ", e transposed" : "", transpose_b ? "" : ", b not transposed",
                       in_registers ? ", a in registers" : "");
  }
};

// Small integers, so that every order of sums gives the same; every pattern of a group comes up.
struct Data {
  std::vector<NDArray> arrays;
  std::vector<double> dense;  // a, m x k

  Data(const SparseProduct& p, std::mt19937& random) {
    const auto array = [](bool swap, int64_t i, int64_t j, DType type) {
      return swap ? NDArray::zeros({j, i}, type) : NDArray::zeros({i, j}, type);
    };
    NDArray a = array(p.transpose_a, p.m, p.kept(p.k), p.type), e = array(p.transpose_e, p.m, p.words_of(p.k), p.words);
    NDArray b = array(!p.transpose_b, p.n, p.k, p.type), c = NDArray::zeros({p.m, p.n}, p.sum());
    const auto put = [](const NDArray& to, bool swap, int64_t i, int64_t j, int64_t value) {
      const std::array<int64_t, 2> at = swap ? std::array{j, i} : std::array{i, j};
      if (to.dtype().is_int())
        to.set_int(at, value);
      else
        to.set_float(at, static_cast<double>(value));
    };
    const int64_t least = p.type == u8 ? 0 : -3;
    const auto small = [&] { return least + static_cast<int64_t>(random() % 8); };
    for (int64_t i = 0; i < p.n; ++i)
      for (int64_t j = 0; j < p.k; ++j) put(b, !p.transpose_b, i, j, small());
    dense.resize(static_cast<size_t>(p.m * p.k));
    const SparseGroup g = p.group();
    const int64_t of_word = p.words.bits / kGroupBits;
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t w = 0; w < p.words_of(p.k); ++w) {
        uint64_t word = 0;
        for (int64_t x = 0; x < of_word; ++x) {
          const int64_t number = w * of_word + x;
          uint64_t bits = 0;
          do bits = random() % 16;
          while (!g.is_ordered(bits));
          word |= bits << (x * kGroupBits);
          for (int64_t j = 0; j < g.kept; ++j) {
            const int64_t value = small();
            put(a, p.transpose_a, i, number * g.kept + j, value);
            dense[static_cast<size_t>(i * p.k + number * g.size + g.position(bits, j))] = static_cast<double>(value);
          }
        }
        const int64_t sign = int64_t{1} << (p.words.bits - 1);
        const auto value = static_cast<int64_t>(word);
        put(e, p.transpose_e, i, w, p.words.is_signed() && value >= sign ? value - 2 * sign : value);
      }
    arrays = {a, e, b, c};
  }
};

void expect_dense_product(const SparseProduct& p, const Data& data, const NDArray& c) {
  const NDArray& b = data.arrays[2];
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < p.k; ++k) {
        const std::array<int64_t, 2> at = p.transpose_b ? std::array{j, k} : std::array{k, j};
        sum += data.dense[static_cast<size_t>(i * p.k + k)] *
               (b.dtype().is_int() ? static_cast<double>(b.get_int(at)) : b.get_float(at));
      }
      ASSERT_EQ(c.dtype().is_int() ? static_cast<double>(c.get_int({i, j})) : c.get_float({i, j}), sum)
          << "at " << i << ", " << j;
    }
}

Program program_of(const std::string& text) {
  return Program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{ir::parse(text, "sparse.tile")}));
}

void expect_right(const SparseProduct& p, const CompileOptions& options) {
  std::mt19937 random(7);
  const Data data(p, random);
  try {
    compile(program_of(p.text()), options)(data.arrays[0], data.arrays[1], data.arrays[2], data.arrays[3]);
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
    return;
  }
  expect_dense_product(p, data, data.arrays[3]);
}

// The instruction of the product on an architecture; "": there is none.
std::string instruction(const SparseProduct& p, int arch) {
  const passes::ThreadLowering low =
      passes::lower_to_threads(passes::canonicalize(ir::parse(p.text(), "sparse.tile")), target::GpuTarget::of(arch));
  const passes::GemmChoice& choice = low.placements[0].gemms.begin()->second;
  if (choice.wgmma) return choice.wgmma->sparse ? "wgmma.sp" : "wgmma";
  if (choice.mma) return choice.mma->sparse ? "mma.sp" : "mma";
  return "";
}

const DType kTypes[] = {f16, bf16, tf32, i8, u8, e4m3, e5m2};

int64_t step(DType type) { return type.bits == 32 ? 16 : type.bits == 16 ? 32 : 64; }

TEST(Sparse, EveryTypeAndWordMeansTheDenseProduct) {
  for (const DType type : {f16, bf16, tf32, f32, i8, u8, e4m3, e5m2})
    for (const DType words : {i8, u8, i16, u16, i32, u32})
      for (const bool transposed : {false, true}) {
        const SparseProduct p{20, 24, 64, 20, 24, 64, 32, 0, type, words, transposed, transposed, !transposed};
        SCOPED_TRACE(p.name());
        expect_right(p, {.engine = Engine::Interpreter});
      }
  for (const DType type : {f32, f16, i8}) {
    const SparseProduct p{40, 50, 160, 32, 32, 64, 64, 2, type, i16, type == f16, type == f32};
    SCOPED_TRACE(p.name());
    expect_right(p, {.engine = Engine::Interpreter});
    expect_right(p, {.engine = Engine::Cpu});
  }
}

// Of one warp and one step of k: the layouts of all operands and of the metadata.
TEST(Sparse, OneInstructionOfEveryTypeIsRight) {
  for (const DType type : kTypes)
    for (const DType words : {i8, i16, i32}) {
      if (words.bits > step(type) / sparse_group(type)->size * kGroupBits) continue;
      const SparseProduct p{16, 8, step(type), 16, 8, step(type), 32, 0, type, words};
      SCOPED_TRACE(p.name());
      ASSERT_EQ(instruction(p, 89), "mma.sp");
      expect_right(p, {.engine = Engine::Simulator, .arch = "sm_89"});
    }
  EXPECT_EQ(instruction({16, 8, 64, 16, 8, 64, 32, 0, e4m3, i16}, 80), "");
}

TEST(Sparse, WarpsShareAProduct) {
  for (const DType type : {f16, tf32, i8}) {
    const int64_t k = 2 * step(type);
    for (const SparseProduct& p :
         {SparseProduct{100, 72, 3 * k, 64, 32, k, 128, 2, type, i16},
          SparseProduct{64, 40, 2 * k, 64, 40, k, 64, 3, type, i32, false, true},
          SparseProduct{64, 64, 2 * k, 64, 64, k, 128, 2, type, i8, false, false, true, true}}) {
      SCOPED_TRACE(p.name());
      EXPECT_EQ(instruction(p, 80), "mma.sp");
      expect_right(p, {.engine = Engine::Simulator, .arch = "sm_80"});
    }
  }
  // Transposed operands too: ldmatrix loads those of 16 bits, others come by their elements.
  const SparseProduct transposed{64, 64, 64, 64, 64, 64, 128, 0, f16, i16, true, true, false};
  EXPECT_EQ(instruction(transposed, 80), "mma.sp");
  expect_right(transposed, {.engine = Engine::Simulator, .arch = "sm_80"});
  const SparseProduct words{64, 64, 32, 64, 64, 32, 128, 0, tf32, i16, true, false, false};
  EXPECT_EQ(instruction(words, 80), "mma.sp");
  expect_right(words, {.engine = Engine::Simulator, .arch = "sm_80"});
  const SparseProduct bytes{64, 64, 128, 64, 64, 128, 128, 0, i8, i32, true, true, true};
  EXPECT_EQ(instruction(bytes, 80), "mma.sp");
  expect_right(bytes, {.engine = Engine::Simulator, .arch = "sm_80"});
}

TEST(Sparse, WarpgroupsShareAProduct) {
  for (const DType type : kTypes) {
    const int64_t k = 2 * step(type);  // 128 bytes of b
    for (const SparseProduct& p :
         {SparseProduct{64, 16, k, 64, 16, k, 128, 0, type, i16},
          SparseProduct{150, 64, 3 * k, 128, 32, k, 256, 2, type, i16},
          SparseProduct{128, 48, 5 * k, 128, 48, 2 * k, 128, 3, type, type.bits == 8 ? i32 : i8},
          SparseProduct{64, 16, 2 * k, 64, 16, k, 128, 0, type, i16, false, true}}) {
      SCOPED_TRACE(p.name());
      EXPECT_EQ(instruction(p, 90), "wgmma.sp");
      expect_right(p, {.engine = Engine::Simulator, .arch = "sm_90a"});
    }
  }
  const SparseProduct transposed{128, 64, 256, 64, 64, 64, 128, 2, bf16, i16, true, true, false};
  EXPECT_EQ(instruction(transposed, 90), "wgmma.sp");
  expect_right(transposed, {.engine = Engine::Simulator, .arch = "sm_90a"});
}

// What a product made is the sparse operand of the next one, from registers.
TEST(Sparse, OperandsInRegistersAreRight) {
  const std::string text =
      "program chained {\n  param X: float16[64, 32]\n  param Y: float16[32, 64]\n  param E: int16[64, 8]\n"
      "  param B: float16[64, 128]\n  param C: float32[64, 64]\n  launch chained(bx: 1) threads(tx: 128) {\n"
      "    shared Xs: float16[64, 32]\n    shared Ys: float16[32, 64]\n    shared Es: int16[64, 8]\n"
      "    shared Bs: float16[64, 128]\n    fragment S: float32[64, 64]\n    fragment P: float16[64, 64]\n"
      "    fragment acc: float32[64, 64]\n    copy from=X to=Xs\n    copy from=Y to=Ys\n    copy from=E to=Es\n"
      "    copy from=B to=Bs\n    gemm a=Xs b=Ys c=S clear=true policy=full_row\n    copy from=S to=P\n"
      "    gemm a=P b=Bs c=acc metadata=Es transpose_b=true clear=true policy=full_row\n    copy from=acc to=C\n  "
      "}\n}\n";
  std::mt19937 random(3);
  const Data data({64, 64, 128, 64, 64, 128, 128, 0, f16, i16}, random);
  const NDArray x = NDArray::zeros({64, 32}, f16), y = NDArray::zeros({32, 64}, f16);
  for (const NDArray& a : {x, y})
    for (int64_t i = 0; i < a.size(); ++i)
      a.set_float({i / a.shape(1), i % a.shape(1)}, static_cast<double>(random() % 5) - 2);
  const NDArray want = data.arrays[3].clone();
  compile(program_of(text), {.engine = Engine::Interpreter})(x, y, data.arrays[1], data.arrays[2], want);
  for (const auto& [arch, name] : {std::pair{80, "sm_80"}, std::pair{90, "sm_90a"}}) {
    const passes::ThreadLowering low =
        passes::lower_to_threads(passes::canonicalize(ir::parse(text, "chained.tile")), target::GpuTarget::of(arch));
    ir::walk(low.tiles.launches[0].body, [&](const ir::Stmt& s) {
      if (const auto* g = s.as<ir::Gemm>(); g && g->is_sparse()) {
        EXPECT_TRUE(low.placements[0].choice_of(s).a_in_registers) << name;
      }
    });
    const NDArray got = NDArray::zeros({64, 64}, f32);
    compile(program_of(text), {.engine = Engine::Simulator, .arch = name})(x, y, data.arrays[1], data.arrays[2], got);
    EXPECT_EQ(std::memcmp(want.data(), got.data(), 64 * 64 * 4), 0) << name;
  }
}

// A step of k is 64 bytes of b, and 32 of a: panels may be as narrow.
TEST(Sparse, NarrowPanelsHaveWgmma) {
  for (const int64_t k : {32, 96}) {
    const SparseProduct p{64, 64, 96, 64, 64, k, 128, 2, f16, i16};
    EXPECT_EQ(instruction(p, 90), "wgmma.sp");
    expect_right(p, {.engine = Engine::Simulator, .arch = "sm_90a"});
  }
}

TEST(Sparse, MetadataOutOfOrderIsFound) {
  const SparseProduct p{16, 8, 32, 16, 8, 32, 32, 0, f16, i16};
  for (const auto& [engine, arch] : {std::pair{Engine::Interpreter, ""}, std::pair{Engine::Simulator, "sm_80"}}) {
    std::mt19937 random(7);
    const Data data(p, random);
    data.arrays[0].set_float({3, 4}, 1.0);
    data.arrays[1].set_int({3, 0}, 0x4194);  // group 2: positions 1 and 0
    const CompileOptions options{.engine = engine, .arch = arch};
    try {
      compile(program_of(p.text()), options)(data.arrays[0], data.arrays[1], data.arrays[2], data.arrays[3]);
      ADD_FAILURE() << "no error";
    } catch (const LaunchError& error) {
      EXPECT_EQ(error.diagnostic().code_text(), "TW6015");
      EXPECT_NE(error.diagnostic().message.find("roup 2 of row 3"), std::string::npos) << error.what();
      EXPECT_NE(error.diagnostic().message.find("0x1"), std::string::npos) << error.what();
    }
    // Zeros may have any: they are what lies outside of a tensor.
    data.arrays[0].set_float({3, 4}, 0.0), data.arrays[0].set_float({3, 5}, 0.0);
    EXPECT_NO_THROW(
        compile(program_of(p.text()), options)(data.arrays[0], data.arrays[1], data.arrays[2], data.arrays[3]));
  }
}

// What meets no kept element is not looked at, by no instruction either.
TEST(Sparse, DroppedElementsOfBMayBeAnything) {
  const SparseProduct p{16, 8, 32, 16, 8, 32, 32, 0, f16, i16};
  for (const auto& [engine, arch] : {std::pair{Engine::Interpreter, ""}, std::pair{Engine::Simulator, "sm_80"}}) {
    std::mt19937 random(7);
    const Data data(p, random);
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t w = 0; w < 2; ++w) data.arrays[1].set_int({i, w}, 0x4444);  // positions 0 and 1
    for (int64_t j = 0; j < p.n; ++j)
      data.arrays[2].set_float({j, 3}, INFINITY), data.arrays[2].set_float({j, 30}, NAN);
    compile(program_of(p.text()), {.engine = engine, .arch = arch})(data.arrays[0], data.arrays[1], data.arrays[2],
                                                                    data.arrays[3]);
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) EXPECT_TRUE(std::isfinite(data.arrays[3].get_float({i, j})));
  }
}

TEST(Sparse, TextComesBack) {
  const std::string text = SparseProduct{64, 64, 64, 64, 64, 64, 128, 2, f16, i16, false, true}.text();
  const ir::TileProgram tiles = ir::parse(text, "sparse.tile");
  EXPECT_EQ(ir::print(ir::parse(ir::print(tiles), "again.tile")), ir::print(tiles));
  EXPECT_NE(ir::print(tiles).find("metadata=Es transpose_b=true transpose_metadata=true"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::simulator
