// Products of every layout, type and tile, and attention, lowered for Hopper: what their threads do is what the
// interpreter says, and nothing is found wrong with their roles, rings and fences.
#include <gtest/gtest.h>

#include <random>

#include "ir/parse.h"
#include "ir/program.h"
#include "tilewright/compile.h"
#include "tilewright/diagnostic.h"

namespace tilewright::simulator {
namespace {

struct Product {
  int64_t m, n, k, block_m, block_n, block_k, threads, stages;
  bool transpose_a, transpose_b, relu, through_shared;
  const char *type, *result;

  std::string text() const {
    const auto shape = [](bool swap, int64_t i, int64_t j) {
      return swap ? fmt::format("{}, {}", j, i) : fmt::format("{}, {}", i, j);
    };
    const auto box = [](bool swap, const std::string& i, int64_t bi, const std::string& j, int64_t bj) {
      const std::string a = fmt::format("{} * {} : {}", i, bi, bi), b = fmt::format("{} * {} : {}", j, bj, bj);
      return swap ? b + ", " + a : a + ", " + b;
    };
    const bool whole = std::string_view(type) == "int8";
    const char* sum = whole ? "int32" : "float32";
    std::string s = fmt::format(
        "program product {{\n  param A: {}[{}]\n  param B: {}[{}]\n  param C: {}[{}, {}]\n"
        "  launch product(bx: {}, by: {}) threads(tx: {}) {{\n    shared As: {}[{}]\n    shared Bs: {}[{}]\n"
        "    fragment acc: {}[{}, {}]\n    fill to=acc value={}\n",
        type, shape(transpose_a, m, k), type, shape(!transpose_b, n, k), result, m, n, (n + block_n - 1) / block_n,
        (m + block_m - 1) / block_m, threads, type, shape(transpose_a, block_m, block_k), type,
        shape(!transpose_b, block_n, block_k), sum, block_m, block_n, whole ? "0" : "0.0");
    s += fmt::format(
        "    for k: int32 in 0..{} pipelined(stages={}) {{\n      copy from=A[{}] to=As\n      copy from=B[{}] to=Bs\n"
        "      gemm a=As b=Bs c=acc{}{}\n    }}\n",
        (k + block_k - 1) / block_k, stages, box(transpose_a, "by", block_m, "k", block_k),
        box(!transpose_b, "bx", block_n, "k", block_k), transpose_a ? " transpose_a=true" : "",
        transpose_b ? " transpose_b=true" : "");
    if (relu)
      s += fmt::format("    map i in {}, j in {} {{\n      acc[i, j] = max(acc[i, j], {})\n    }}\n", block_m, block_n,
                       whole ? "int32(0)" : "0.0");
    const std::string to = fmt::format("C[by * {} : {}, bx * {} : {}]", block_m, block_m, block_n, block_n);
    if (through_shared)
      s += fmt::format("    shared Cs: {}[{}, {}]\n    copy from=acc to=Cs\n    copy from=Cs to={}\n", result, block_m,
                       block_n, to);
    else
      s += fmt::format("    copy from=acc to={}\n", to);
    return s + "  }\n}\n";
  }
};

Product random_product(std::mt19937& random) {
  const auto pick = [&](std::initializer_list<int64_t> list) { return *(list.begin() + random() % list.size()); };
  Product p{};
  p.block_m = pick({64, 128, 192}), p.block_n = pick({16, 32, 64, 96, 128}), p.block_k = pick({32, 64, 128});
  p.threads = pick({128, 256}), p.stages = pick({1, 2, 3, 4});
  p.m = p.block_m * pick({1, 2}) - pick({0, 8, 24}), p.n = p.block_n * pick({1, 2}) - pick({0, 8});
  p.k = p.block_k * pick({1, 2, 3, 5, 8}) - pick({0, 16});
  p.transpose_a = pick({0, 1}) != 0, p.transpose_b = pick({0, 1}) != 0;
  p.relu = pick({0, 1}) != 0, p.through_shared = pick({0, 0, 1}) != 0;
  const std::pair<const char*, const char*> types[] = {{"bfloat16", "bfloat16"},
                                                       {"bfloat16", "float32"},
                                                       {"float16", "float16"},
                                                       {"float8_e4m3", "float32"},
                                                       {"int8", "int32"}};
  std::tie(p.type, p.result) = types[random() % std::size(types)];
  // What wgmma reads: other operands of 8 bits take a slow road, which other tests go.
  if (p.type[0] == 'i' || std::string_view(p.type) == "float8_e4m3") p.transpose_a = false, p.transpose_b = true;
  return p;
}

std::vector<NDArray> arrays_of(const ir::TileProgram& program, std::mt19937& random) {
  std::vector<NDArray> list;
  for (const ir::Param& param : program.params) {
    const ir::Buffer& b = program.buffer(param.buffer);
    std::vector<int64_t> shape;
    for (const ir::Expr& e : b.shape) shape.push_back(*ir::constant_int(e));
    NDArray x = NDArray::zeros(shape, b.type);
    for (int64_t i = 0; i < shape[0]; ++i)
      for (int64_t j = 0; j < shape[1]; ++j) {
        const auto value = static_cast<int64_t>(random() % 7) - 3;
        if (b.type.is_int())
          x.set_int({i, j}, value);
        else
          x.set_float({i, j}, static_cast<double>(value));
      }
    list.push_back(std::move(x));
  }
  return list;
}

TEST(Lowered, RandomProductsOnHopperAreRightAndWithoutRaces) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    const std::string text = random_product(random).text();
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const ir::TileProgram tiles = ir::parse(text, "product.tile");
    const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
    const std::vector<NDArray> want = arrays_of(tiles, random);
    std::vector<NDArray> got;
    for (const NDArray& x : want) got.push_back(x.clone());
    try {
      compile(program, {.engine = Engine::Interpreter})(want[0], want[1], want[2]);
      compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(got[0], got[1], got[2]);
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
      continue;
    }
    // Sums of small integers are exact, and both round once.
    const auto bytes = static_cast<size_t>(want[2].size() * want[2].dtype().storage_bits() / 8);
    EXPECT_EQ(std::memcmp(want[2].data(), got[2].data(), bytes), 0);
  }
}

// Two gemms in one loop, the second with a fragment from registers.
struct Attention {
  int64_t queries, keys, width, block_m, block_n, threads, stages;

  std::string text() const {
    std::string s = fmt::format(
        "program attention {{\n  param Q: bfloat16[{0}, {2}]\n  param K: bfloat16[{1}, {2}]\n"
        "  param V: bfloat16[{1}, {2}]\n  param O: float32[{0}, {2}]\n  launch attention(bx: {3}) threads(tx: {4}) {{\n"
        "    shared Qs: bfloat16[{5}, {2}]\n    shared Ks: bfloat16[{6}, {2}]\n    shared Vs: bfloat16[{6}, {2}]\n"
        "    fragment S: float32[{5}, {6}]\n    fragment P: bfloat16[{5}, {6}]\n    fragment acc: float32[{5}, {2}]\n",
        queries, keys, width, (queries + block_m - 1) / block_m, threads, block_m, block_n);
    for (const char* row : {"top", "before", "scale", "part", "sum"})
      s += fmt::format("    fragment {}: float32[{}]\n", row, block_m);
    s += fmt::format(
        "    copy from=Q[bx * {0} : {0}, 0 : {2}] to=Qs\n    fill to=acc value=0.0\n    fill to=sum value=0.0\n"
        "    fill to=top value=-inf\n    for k in 0..{3} pipelined(stages={4}) {{\n"
        "      copy from=K[k * {1} : {1}, 0 : {2}] to=Ks\n      map i in {0}, j in {1} {{\n        at: int32 = k * {1} "
        "+ j\n"
        "        S[i, j] = select(at < {5}, 0.0, -inf)\n      }}\n"
        "      gemm a=Qs b=Ks c=S transpose_b=true policy=full_row\n      copy from=V[k * {1} : {1}, 0 : {2}] to=Vs\n"
        "      copy from=top to=before\n      reduce max from=S to=top dim=1 clear=false\n"
        "      map i in {0} {{\n        scale[i] = exp2((before[i] - top[i]) * 0.25)\n      }}\n"
        "      map i in {0}, j in {1} {{\n        S[i, j] = exp2((S[i, j] - top[i]) * 0.25)\n      }}\n"
        "      reduce sum from=S to=part dim=1\n      map i in {0} {{\n        sum[i] = fma(sum[i], scale[i], "
        "part[i])\n"
        "      }}\n      copy from=S to=P\n      map i in {0}, j in {2} {{\n        acc[i, j] = acc[i, j] * scale[i]\n"
        "      }}\n      gemm a=P b=Vs c=acc policy=full_row\n    }}\n"
        "    map i in {0}, j in {2} {{\n      acc[i, j] = acc[i, j] / sum[i]\n    }}\n"
        "    copy from=acc to=O[bx * {0} : {0}, 0 : {2}]\n  }}\n}}\n",
        block_m, block_n, width, (keys + block_n - 1) / block_n, stages, keys);
    return s;
  }
};

TEST(Lowered, AttentionOnHopperIsRightAndWithoutRaces) {
  for (const Attention& a : {Attention{100, 150, 64, 64, 64, 128, 2}, Attention{200, 130, 64, 128, 64, 256, 2},
                             Attention{64, 300, 128, 64, 128, 128, 1}, Attention{120, 96, 32, 64, 32, 128, 3}}) {
    SCOPED_TRACE(a.text());
    std::mt19937 random(1);
    const ir::TileProgram tiles = ir::parse(a.text(), "attention.tile");
    const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
    const std::vector<NDArray> want = arrays_of(tiles, random);
    const NDArray got = want[3].clone();
    compile(program, {.engine = Engine::Interpreter})(want[0], want[1], want[2], want[3]);
    compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(want[0], want[1], want[2], got);
    for (int64_t i = 0; i < a.queries; ++i)
      for (int64_t j = 0; j < a.width; ++j) ASSERT_NEAR(got.get_float({i, j}), want[3].get_float({i, j}), 0.02);
  }
}

}  // namespace
}  // namespace tilewright::simulator
