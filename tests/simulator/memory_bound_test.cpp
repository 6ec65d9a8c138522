// Programs that memory bounds, at shapes that take the short ways: whole rows in warps, scans of several elements a
// lane, quotients of many lanes at once. Threads compute what the interpreter says.
#include <gtest/gtest.h>

#include <cstring>

#include "driver/cuda_engine.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "passes/canonicalize.h"
#include "simulator/lowered_programs.h"
#include "tilewright/compile.h"

namespace tilewright::simulator {
namespace {

Program program_of(const std::string& text) {
  return Program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{ir::parse(text, "p.tile")}));
}
// The last array as the engine leaves it.
NDArray result(const std::string& text, const std::vector<NDArray>& arrays, Engine engine) {
  std::vector<NDArray> own;
  for (const NDArray& a : arrays) own.push_back(a.clone());
  const std::vector<Argument> arguments(own.begin(), own.end());
  compile(program_of(text), {.engine = engine, .arch = "sm_90a"}).call(arguments);
  return own.back();
}
void expect_same_bits(const std::string& text, const std::vector<NDArray>& arrays) {
  const NDArray want = result(text, arrays, Engine::Interpreter), got = result(text, arrays, Engine::Simulator);
  EXPECT_EQ(std::memcmp(want.data(), got.data(), static_cast<size_t>(want.size() * want.dtype().storage_bits() / 8)), 0)
      << text;
}
void expect_same_quotients(const std::string& text, const std::vector<NDArray>& arrays) {
  const NDArray want = result(text, arrays, Engine::Interpreter), got = result(text, arrays, Engine::Simulator);
  for (int64_t i = 0; i < want.shape()[0]; ++i)
    for (int64_t j = 0; j < want.shape()[1]; ++j) {
      const auto a = static_cast<float>(want.get_float({i, j})), b = static_cast<float>(got.get_float({i, j}));
      EXPECT_TRUE((std::isnan(a) && std::isnan(b)) || std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b))
          << i << ", " << j << ": " << b << ", not " << a;
    }
}
NDArray numbers(std::initializer_list<int64_t> shape, DType type) {
  const NDArray a = NDArray::zeros(shape, type);
  std::mt19937 random(7);
  std::vector<double> values(static_cast<size_t>(a.size()));
  for (double& v : values) v = static_cast<double>(random() % 2001) - 1000;
  a.assign_floats(values);
  return a;
}

std::string scan(const std::string& type, int64_t columns, const std::string& how) {
  const std::string n = std::to_string(columns);
  return "program p {\n  param X: " + type + "[5, " + n + "]\n  param Y: " + type + "[5, " + n +
         "]\n  launch p(bx: 1) threads(tx: 128) {\n    shared x: " + type + "[5, " + n + "]\n    shared y: " + type +
         "[5, " + n + "]\n    copy from=X to=x\n    scan " + how + " from=x to=y dim=1\n    copy from=y to=Y\n  }\n}\n";
}

TEST(MemoryBound, ScansOfSeveralElementsALaneAreRight) {
  for (const char* how : {"sum", "max"})
    for (const char* reverse : {"", " reverse=true"})
      for (int64_t columns : {128, 512, 1024, 96, 132, 64}) {
        std::string text = scan("int32", columns, how);
        text.insert(text.find(" dim=1") + 6, reverse);
        expect_same_bits(text, {numbers({5, columns}, i32), numbers({5, columns}, i32)});
      }
  expect_same_bits(scan("int8", 256, "max"), {numbers({5, 256}, i8), numbers({5, 256}, i8)});
  // Whole numbers: their sums are exact in any order.
  expect_same_bits(scan("float32", 512, "sum"), {numbers({5, 512}, f32), numbers({5, 512}, f32)});
}

TEST(MemoryBound, RowsThatAreReducedLieInOneWarp) {
  const std::string text =
      "program rows {\n  param A: float32[8, 256]\n  param B: float32[8]\n  launch rows(bx: 1) threads(tx: 128) {\n"
      "    fragment tile: float32[8, 256]\n    fragment most: float32[8]\n    copy from=A to=tile\n"
      "    reduce max from=tile to=most dim=1\n    copy from=most to=B\n  }\n}\n";
  const passes::ThreadLowering lowered =
      passes::lower_to_threads(passes::canonicalize(ir::parse(text, "p.tile")), gpu_target("sm_90a"));
  bool said = false;
  for (const auto& [id, why] : lowered.placements[0].decided_by)
    said = said || why.starts_with("a reduction along rows");
  EXPECT_TRUE(said);
  EXPECT_EQ(ir::print(lowered.threads).find("sync"), std::string::npos) << ir::print(lowered.threads);
  expect_same_bits(text, {numbers({8, 256}, f32), numbers({8}, f32)});
}

// Tiles of a row one after the other: what a turn wrote, the next does not touch, and so nobody waits. Where tiles
// overlap, threads meet each other's elements.
TEST(MemoryBound, TurnsThatWriteOtherTilesDoNotWaitForEachOther) {
  const auto text = [](const char* step) {
    std::string out =
        "program p {\n  symbol N: int32\n  param X: float32[4, N]\n  param Y: float32[4, N]\n"
        "  launch p(bx: 4) threads(tx: 64) {\n    fragment x: float32[256]\n"
        "    for k in 0..(N + 255) // 256 {\n      copy from=X[bx : 1, k * 256 : 256] to=x\n"
        "      copy from=x to=Y[bx : 1, k * ";
    out += step;
    out += " : 256]\n    }\n  }\n}\n";
    return out;
  };
  const auto syncs = [&](const char* step) {
    const ir::TileProgram tiles = passes::canonicalize(ir::parse(text(step), "p.tile"));
    const std::string threads = ir::print(passes::lower_to_threads(tiles, gpu_target("sm_90a")).threads);
    return threads.find("sync") != std::string::npos;
  };
  EXPECT_FALSE(syncs("256"));
  EXPECT_FALSE(syncs("300"));
  EXPECT_TRUE(syncs("255"));
  EXPECT_TRUE(syncs("64"));
  for (const int64_t n : {1024, 1001}) expect_same_bits(text("256"), {numbers({4, n}, f32), numbers({4, n}, f32)});
}

// Quotients whose divisors differ from lane to lane, of ordinary numbers and of all that division makes an exception
// of: in one vector each, so that a vector takes the exact way for one lane's sake.
TEST(MemoryBound, QuotientsOfManyLanesAreDivisions) {
  const std::string text =
      "program p {\n  param X: float32[64, 64]\n  param D: float32[64, 64]\n  param Y: float32[64, 64]\n"
      "  launch p(bx: 1) threads(tx: 128) {\n    fragment y: float32[64, 64]\n    map i in 64, j in 64 {\n"
      "      up: float32 = X[i, j] + 0.5\n      y[i, j] = up / (1.0 + D[i, j])\n    }\n    copy from=y to=Y\n  }\n}\n";
  const ir::TileProgram tiles = passes::canonicalize(ir::parse(text, "p.tile"));
  EXPECT_NE(ir::print(passes::lower_to_threads(tiles, gpu_target("sm_90a")).threads).find("rcp_approx("),
            std::string::npos);
  const NDArray x = NDArray::zeros({64, 64}, f32), d = NDArray::zeros({64, 64}, f32);
  const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-45f, 3e38f, -3e38f, 1e-38f, 1e20f, 1e-20f, -0.5f};
  std::mt19937 random(3);
  std::uniform_real_distribution<float> any(-4, 4);
  for (int64_t i = 0; i < 64; ++i)
    for (int64_t j = 0; j < 64; ++j) {
      x.set_float({i, j}, i < 12 && j % 4 == 0 ? special[i] - 0.5f : any(random));
      d.set_float({i, j}, i >= 12 && i < 24 && j % 8 == 1 ? special[i - 12] - 1.0f : std::exp(any(random) * 4));
    }
  expect_same_quotients(text, {x, d, NDArray::zeros({64, 64}, f32)});
}

// Rows that are masked have the divisor 0: they are multiplied by its reciprocal, as by that of what is infinite or no
// number. Denormal divisors are none of these, though their reciprocals are infinite.
TEST(MemoryBound, RowsDividedByZeroAreProducts) {
  const std::string text =
      "program p {\n  param X: float32[64, 64]\n  param D: float32[64]\n  param Y: float32[64, 64]\n"
      "  launch p(bx: 1) threads(tx: 128) {\n    fragment x: float32[64, 64]\n    fragment d: float32[64]\n"
      "    fragment y: float32[64, 64]\n    copy from=X to=x\n    copy from=D to=d\n"
      "    map i in 64, j in 64 {\n      y[i, j] = x[i, j] / d[i]\n    }\n    copy from=y to=Y\n  }\n}\n";
  const ir::TileProgram tiles = passes::canonicalize(ir::parse(text, "p.tile"));
  const std::string threads = ir::print(passes::lower_to_threads(tiles, gpu_target("sm_90a")).threads);
  EXPECT_NE(threads.find("] * inverse\n"), std::string::npos) << threads;
  const NDArray x = NDArray::zeros({64, 64}, f32), d = NDArray::zeros({64}, f32);
  const float special[] = {0.0f,  -0.0f, INFINITY, -INFINITY, NAN,    1e-45f, -1e-45f, 1e-39f,
                           3e38f, 1e-8f, -3e38f,   1e20f,     1e-20f, -0.5f,  1e-38f,  448.0f};
  for (int64_t i = 0; i < 64; ++i) {
    d.set_float({i}, special[i % 16]);
    for (int64_t j = 0; j < 64; ++j)
      x.set_float({i, j}, j % 4 == 0 ? special[(i / 16 + j / 4) % 16] : 0.3f * float(j - 31));
  }
  expect_same_quotients(text, {x, d, NDArray::zeros({64, 64}, f32)});
}

// In an accumulator a thread has two neighbours, and many points of one row: they share the reciprocal of its divisor.
// Threads of odd rows from 12 on have ordinary numbers and zeros of both signs, those of others all exceptions.
TEST(MemoryBound, QuotientsOfRowsOfAProductAreDivisions) {
  const auto text = [](const char* divisor, const std::string& option = "") {
    return std::string(
               "program p {\n  param A: float16[64, 16]\n  param X: float32[64, 64]\n  param D: float32[64]\n"
               "  param Y: float32[64, 64]") +
           option +
           "\n  launch p(bx: 1) threads(tx: 128) {\n    shared a: float16[64, 16]\n"
           "    fragment y: float32[64, 64]\n    fragment d: float32[64]\n    copy from=A to=a\n"
           "    copy from=D to=d\n    fill to=y value=0.0\n    gemm a=a b=a c=y transpose_b=true\n"
           "    map i in 64, j in 64 {\n      y[i, j] = select(y[i, j] == 0.0, X[i, j], 1.0)\n    }\n"
           "    map i in 64, j in 64 {\n      y[i, j] = y[i, j] / " +
           divisor + "\n    }\n    copy from=y to=Y\n  }\n}\n";
  };
  const auto shares = [&](const char* divisor, const std::string& option = "") {
    const ir::TileProgram tiles = passes::canonicalize(ir::parse(text(divisor, option), "p.tile"));
    return ir::print(passes::lower_to_threads(tiles, gpu_target("sm_90a")).threads).find("inverse") !=
           std::string::npos;
  };
  EXPECT_TRUE(shares("d[i]"));
  EXPECT_FALSE(shares("(d[i] + float32(j))"));
  EXPECT_FALSE(shares("d[i]", "\n  option fast_math=true"));
  const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-45f, 3e38f, -3e38f, 1e-38f, 1e20f, 1e-20f, -0.5f};
  std::mt19937 random(5);
  std::uniform_real_distribution<float> any(-4, 4);
  const NDArray x = NDArray::zeros({64, 64}, f32), d = NDArray::zeros({64}, f32);
  for (int64_t i = 0; i < 64; ++i) {
    d.set_float({i}, i < 12 ? special[i] : std::exp(any(random) * 4));
    for (int64_t j = 0; j < 64; ++j)
      x.set_float({i, j}, i % 2 == 0 && j < 12 ? special[j] : j % 9 == 0 ? special[j % 2] : any(random));
  }
  expect_same_quotients(text("d[i]"), {NDArray::zeros({64, 16}, f16), x, d, NDArray::zeros({64, 64}, f32)});
}

}  // namespace
}  // namespace tilewright::simulator
