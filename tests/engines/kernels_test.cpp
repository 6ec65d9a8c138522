// The kernel library from C++: programs of families beside loops, choices, options by name.
#include "tilewright/kernels.h"

#include <gtest/gtest.h>

#include "driver/explain.h"
#include "ir/program.h"
#include "passes/planned.h"
#include "tilewright/compile.h"
#include "tilewright/cost.h"

namespace tilewright {
namespace {

using kernels::MatmulOptions;

TEST(Kernels, ProductsOfShapesThatSuitNoTile) {
  MatmulOptions o{.a = f32, .b = f32, .result = f32, .transpose_b = true, .bias = true};
  o.activation = kernels::Activation::Relu;
  o.tile = {32, 32, 16, 2, 128};
  const int64_t M = 37, N = 45, K = 70;
  const NDArray a = numbers({M, K}, f32, 1), b = numbers({N, K}, f32, 2), bias = numbers({N}, f32, 3);
  const std::vector<double> x = a.to_floats(), w = b.to_floats(), v = bias.to_floats();
  for (const Engine engine : {Engine::Cpu, Engine::Interpreter, Engine::Simulator}) {
    const NDArray c = NDArray::zeros({M, N}, f32);
    compile(kernels::matmul(o), {.engine = engine})(a, b, bias, c);
    const std::vector<double> got = c.to_floats();
    for (int64_t i = 0; i < M; ++i)
      for (int64_t j = 0; j < N; ++j) {
        double sum = v[j];
        for (int64_t k = 0; k < K; ++k) sum += x[i * K + k] * w[j * K + k];
        ASSERT_EQ(got[i * N + j], std::max(sum, 0.0)) << i << ", " << j;
      }
  }
}

// Blocks by themselves, pairs that share either operand, clusters that share a sum: extents are a call's.
TEST(Kernels, EachScheduleOfAProductMeansTheSame) {
  struct Way {
    int64_t split, pairs;
  };
  for (const auto& [split, pairs] : {Way{1, 0}, Way{1, 1}, Way{1, 2}, Way{2, 0}, Way{3, 0}}) {
    MatmulOptions o{.a = f16, .b = f16, .result = f32, .transpose_b = true};
    o.tile = {.m = 64, .n = 64, .k = 64, .stages = 3, .threads = 128, .split = split, .pairs = pairs};
    const Executable kernel = compile(kernels::matmul(o), {.engine = Engine::Simulator, .arch = "sm_90a"});
    for (const auto& [M, N, K] : {std::array<int64_t, 3>{128, 192, 192}, {200, 128, 256}}) {
      const NDArray a = numbers({M, K}, f16, 1), b = numbers({N, K}, f16, 2), c = NDArray::zeros({M, N}, f32);
      const std::vector<double> x = a.to_floats(), w = b.to_floats();
      kernel(a, b, c);
      const std::vector<double> got = c.to_floats();
      int64_t wrong = 0;
      for (int64_t i = 0; i < M; ++i)
        for (int64_t j = 0; j < N; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < K; ++k) sum += x[i * K + k] * w[j * K + k];
          wrong += got[i * N + j] != sum;
        }
      EXPECT_EQ(wrong, 0) << M << " x " << N << " x " << K << ", split " << split << ", pairs " << pairs;
    }
  }
}

TEST(Kernels, EachTileOfAGpuIsPlannedWithTheUnitsItWasMadeFor) {
  const NamedValues large = {{"M", 4096}, {"N", 4096}, {"K", 4096}};
  for (const DType type : {bf16, f16, e4m3, i8}) {
    MatmulOptions o{.a = type, .b = type, .result = type.is_int() ? i32 : bf16, .transpose_b = true};
    for (const kernels::MatmulTile& tile : kernels::matmul_tiles(o, 4096, 4096)) {
      o.tile = tile;
      const Program program = kernels::matmul(o);
      const std::string text = to_text(explain_gpu(program.box().program, large, "sm_90a", false, 0));
      EXPECT_NE(text.find("wgmma.mma_async"), std::string::npos) << tile.m << " x " << tile.n << "\n" << text;
      EXPECT_NE(text.find("TMA load into a ring"), std::string::npos) << tile.m << " x " << tile.n << "\n" << text;
    }
  }
}

TEST(Kernels, EachTileOfAttentionIsPlannedWithTheUnitsItWasMadeFor) {
  const NamedValues all = {{"batch", 4},   {"kv_heads", 8}, {"queries", 4096},       {"keys", 4096},
                           {"left", 1000}, {"right", 0},    {"longest_query", 4096}, {"longest_key", 4096}};
  for (const auto& [dim, value_dim] :
       {std::pair<int64_t, int64_t>{64, 64}, {96, 96}, {128, 128}, {192, 128}, {256, 256}})
    for (const bool packed : {false, true}) {
      kernels::AttentionOptions o{.dtype = f16, .dim = dim, .value_dim = value_dim, .packed = packed, .causal = true};
      const auto expect_units = [&](const Program& program, const kernels::AttentionTile& t) {
        const ir::TileProgram& tiles = program.box().program;
        NamedValues large;
        for (const auto& [name, value] : all)
          if (std::ranges::any_of(tiles.vars, [&](const ir::VarInfo& v) { return v.name == name; }))
            large[name] = value;
        const std::string text = to_text(explain_gpu(tiles, large, "sm_90a", false, 0));
        EXPECT_NE(text.find("wgmma.mma_async"), std::string::npos) << t.m << " x " << t.n << "\n" << text;
        EXPECT_EQ(text.find("not wgmma"), std::string::npos) << t.m << " x " << t.n << "\n" << text;
      };
      EXPECT_FALSE(kernels::attention_tiles(o).empty() || kernels::attention_backward_tiles(o).empty());
      for (const kernels::AttentionTile& t : kernels::attention_tiles(o))
        o.tile = t, expect_units(kernels::attention(o), t);
      for (const kernels::AttentionTile& t : kernels::attention_backward_tiles(o))
        o.tile = t, expect_units(kernels::attention_backward(o), t);
    }
}

TEST(Kernels, ATileIsChosenByItsPredictedTime) {
  const kernels::Options options = {{"a", "bfloat16"}, {"b", "bfloat16"}, {"result", "bfloat16"}};
  const std::map<std::string, int64_t> shape = {{"M", 8192}, {"N", 8192}, {"K", 8192}};
  const kernels::Choice choice = kernels::choose("matmul", options, "sm_90a", shape);
  kernels::Options all = options;
  all.insert(choice.options.begin(), choice.options.end());
  const CostModel model(kernels::library_program("matmul", all), "sm_90a");
  EXPECT_EQ(model.microseconds(shape), choice.microseconds);
  EXPECT_FALSE(model.microseconds({{"M", 8192}}));
  ASSERT_GT(choice.considered.size(), 10U);
  for (const auto& [tile, us] : choice.considered) {
    all["tile"] = tile;
    EXPECT_EQ(CostModel(kernels::library_program("matmul", all), "sm_90a").microseconds(shape), us) << tile;
    EXPECT_GE(us, choice.microseconds) << tile;
  }
}

TEST(Kernels, FewTilesShareTheirSums) {
  const kernels::Options options = {{"a", "bfloat16"}, {"b", "bfloat16"}, {"result", "bfloat16"}};
  const kernels::Choice choice = kernels::choose("matmul", options, "sm_90a", {{"M", 128}, {"N", 4096}, {"K", 16384}});
  EXPECT_FALSE(choice.options.at("tile").ends_with("x1x0")) << choice.options.at("tile");
  // Calls whose rows are no whole pieces of 16 bytes take another version: there each of them must be possible too.
  for (const auto& [tile, us] : choice.considered) {
    kernels::Options all = options;
    all["tile"] = tile;
    const CostModel model(kernels::library_program("matmul", all), "sm_90a");
    EXPECT_TRUE(model.microseconds({{"M", 128}, {"N", 4096}, {"K", 16383}})) << tile;
  }
}

void expect_refused(const std::string& family, const kernels::Options& options, const std::string& message) {
  try {
    kernels::library_program(family, options);
    FAIL() << message;
  } catch (const CompileError& error) {
    EXPECT_EQ(error.diagnostic().code_text(), "TW1080");
    EXPECT_EQ(error.diagnostic().message, message);
  }
}

TEST(Kernels, OptionsThatMeanNothingAreRefused) {
  expect_refused("matmull", {}, "there is no kernel 'matmull'");
  expect_refused("matmul", {{"tils", "1"}}, "'matmul' has no option 'tils'");
  expect_refused("matmul", {{"tile", "64x64"}}, "option 'tile' of 'matmul' is '64x64'");
  expect_refused("matmul", {{"tile", "64x64x64x2x128x1x0x9"}}, "option 'tile' of 'matmul' is '64x64x64x2x128x1x0x9'");
  expect_refused("matmul", {{"a", "float33"}}, "option 'a' of 'matmul' is 'float33'");
  expect_refused("rows", {{"columns", "-1"}}, "option 'columns' of 'rows' is '-1'");
  EXPECT_THROW(kernels::choose("rows", {}, "", {{"M", 3}}), CompileError);
}

}  // namespace
}  // namespace tilewright
