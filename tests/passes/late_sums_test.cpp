// Sums that a loop only adds up: the lanes meet once, behind it, and the sums are what the interpreter says.
#include <gtest/gtest.h>

#include "driver/cuda_engine.h"
#include "ir/parse.h"
#include "ir/rewrite.h"
#include "passes/canonicalize.h"
#include "tilewright/compile.h"

namespace tilewright {
namespace {

struct Text {
  std::string start = "0.0", update = "total[i] * 0.5 + part[i]", more = "",
              reduce = "reduce sum from=tile to=part dim=1", behind = "", read = "total[i]";

  std::string text() const {
    return "program sums {\n  param A: float32[64, 256]\n  param B: float32[64]\n  param C: float32[64]\n"
           "  launch sums(bx: 1) threads(tx: 128) {\n    fragment tile: float32[64, 64]\n"
           "    fragment part: float32[64]\n    fragment total: float32[64]\n    fragment out: float32[64]\n"
           "    fill to=total value=" +
           start + "\n    for k in 0..4 {\n      copy from=A[0 : 64, k * 64 : 64] to=tile\n      " + reduce +
           "\n      map i in 64 {\n        total[i] = " + update + "\n      }\n" + more + "    }\n" + behind +
           "    map i in 64 {\n      out[i] = " + read + "\n    }\n    copy from=out to=C\n  }\n}\n";
  }
};

// Shuffles in the code of a thread: in loops of the program, and outside of them.
struct Shuffles {
  int inside = 0, outside = 0;
};
Shuffles shuffles_of(const std::string& text) {
  const passes::ThreadLowering l =
      passes::lower_to_threads(passes::canonicalize(ir::parse(text, "p.tile")), gpu_target("sm_80"));
  Shuffles out;
  auto count = [](const ir::Body& body, int& to) {
    ir::walk(body, [&](const ir::Stmt& s) { to += s.as<ir::Shuffle>() != nullptr; });
  };
  for (const ir::Stmt& s : l.threads.launches[0].body) {
    const auto* loop = s.as<ir::For>();
    count({s}, loop && loop->kind == ir::LoopKind::Serial ? out.inside : out.outside);
  }
  return out;
}

std::vector<double> result(const std::string& text, Engine engine, const std::vector<int64_t>& shape = {64, 256}) {
  std::vector<NDArray> arrays = {NDArray::zeros(shape, f32), NDArray::zeros({64}, f32), NDArray::zeros({64}, f32)};
  std::vector<double> values(64 * 256);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 7919 % 33) - 16;  // sums are exact
  arrays[0].assign_floats(values);
  const std::vector<Argument> arguments(arrays.begin(), arrays.end());
  const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{ir::parse(text, "p.tile")}));
  compile(program, {.engine = engine, .arch = "sm_80"}).call(arguments);
  std::vector<double> out = arrays[1].to_floats();
  for (double v : arrays[2].to_floats()) out.push_back(v);
  return out;
}

void expect_same(const std::string& text) {
  EXPECT_EQ(result(text, Engine::Simulator), result(text, Engine::Interpreter)) << text;
}

TEST(LateSums, TheLanesMeetBehindTheLoop) {
  for (const char* update : {"total[i] * 0.5 + part[i]", "total[i] + part[i]", "fma(total[i], 0.5, part[i])",
                             "part[i] * 2.0 - total[i]", "total[i] + total[i] + part[i]"}) {
    const std::string text = Text{.update = update}.text();
    const Shuffles found = shuffles_of(text);
    EXPECT_EQ(found.inside, 0) << text;
    EXPECT_GT(found.outside, 0) << text;
    expect_same(text);
  }
}

TEST(LateSums, TheWholeMayBeReplacedByWhatIsComputedOfIt) {
  const std::string square =
      "    map i in 64 {\n      C[i] = total[i]\n    }\n    map i in 64 {\n"
      "      total[i] = total[i] * total[i] + 1.0\n    }\n";
  const std::string text = Text{.behind = square}.text();
  EXPECT_EQ(shuffles_of(text).inside, 0) << text;
  expect_same(text);
  const std::string again = "    reduce sum from=tile to=total dim=1 clear=false\n";  // parts on top of the whole
  EXPECT_GT(shuffles_of(Text{.behind = square + again}.text()).inside, 0);
  expect_same(Text{.behind = square + again}.text());
}

TEST(LateSums, LanesWithoutRowsTakePart) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    std::vector<NDArray> want = {NDArray::zeros({2, 2}, f32)}, got = {NDArray::zeros({2, 2}, f32)};
    const ir::TileProgram tiles = ir::parse(R"(program p {
  param B: float32[2, 2]
  launch l(bx: 1) threads(tx: 160) {
    fragment a: float32[2, 2]
    fragment s: float32[2]
    fragment l: float32[2]
    fill to=l value=0.0
    for k in 0..3 {
      map i in 2, j in 2 {
        a[i, j] = float32(i + 2 * j + k)
      }
      reduce sum from=a to=s dim=1
      map i in 2 {
        l[i] = l[i] + s[i]
      }
    }
    map i in 2, j in 2 {
      a[i, j] = l[i]
    }
    copy from=a to=B
  }
}
)",
                                            "p.tile");
    const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
    compile(program, {.engine = Engine::Interpreter})(want[0]);
    compile(program, {.engine = Engine::Simulator, .arch = arch})(got[0]);
    EXPECT_EQ(got[0].to_floats(), want[0].to_floats()) << arch;
  }
}

// Of columns, whose parts all warps have: they meet in shared memory, behind the loop, each column by one thread.
TEST(LateSums, TheWarpsMeetBehindTheLoop) {
  const std::string text = R"(program columns {
  param A: float32[256, 64]
  param B: float32[64]
  param C: float32[64]
  launch columns(bx: 1) threads(tx: 256) {
    fragment tile: float32[64, 64]
    fragment total: float32[64]
    fill to=total value=0.0
    for k in 0..4 {
      copy from=A[k * 64 : 64, 0 : 64] to=tile
      reduce sum from=tile to=total dim=0 clear=false
    }
    map i in 64 {
      total[i] = total[i] * 0.5
    }
    copy from=total to=B
    copy from=total to=C
  }
}
)";
  const passes::ThreadLowering l =
      passes::lower_to_threads(passes::canonicalize(ir::parse(text, "p.tile")), gpu_target("sm_90a"));
  int inside = 0, outside = 0;
  for (const ir::Stmt& s : l.threads.launches[0].body) {
    const auto* loop = s.as<ir::For>();
    int& to = loop && loop->kind == ir::LoopKind::Serial ? inside : outside;
    ir::walk({s}, [&](const ir::Stmt& x) { to += x.as<ir::Sync>() != nullptr; });
  }
  EXPECT_EQ(inside, 0);
  EXPECT_EQ(outside, 2);  // parts are written, and the sums
  EXPECT_EQ(result(text, Engine::Simulator, {256, 64}), result(text, Engine::Interpreter, {256, 64}));
}

TEST(LateSums, WhatIsNoSumOfPartsIsSummedAtOnce) {
  const std::string shown = "      copy from=part to=B\n",
                    read = "      map i in 64 {\n        out[i] = total[i]\n      }\n";
  const std::string limited = "      map i in 64 {\n        total[i] = min(total[i], 5.0)\n      }\n";
  for (const Text& t :
       {Text{.start = "1.0"}, Text{.update = "max(total[i], part[i])"}, Text{.update = "total[i] * part[i]"},
        Text{.update = "total[i] + part[i] + 1.0"}, Text{.update = "total[i] + part[63 - i]"}, Text{.more = shown},
        Text{.more = read}, Text{.more = limited}, Text{.reduce = "reduce max from=tile to=part dim=1"},
        Text{.read = "total[i] + part[i]"}}) {
    EXPECT_GT(shuffles_of(t.text()).inside, 0) << t.text();
    expect_same(t.text());
  }
}

}  // namespace
}  // namespace tilewright
