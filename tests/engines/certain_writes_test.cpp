// A write that some path leaves out is none: loops that are left early, or make no turn, keep what was there before.
#include <gtest/gtest.h>

#include "tilewright/compile.h"

namespace tilewright {
namespace {

// B from A, a tile `t` of 64 between both, where `body` may change the tile; n is 0.
std::vector<int64_t> run(const std::string& body, Engine engine) {
  const std::string text =
      "program p {\n  param A: int32[64]\n  param B: int32[64]\n  param n: int32\n"
      "  launch l(bx: 1) threads(tx: 64) {\n    shared t: int32[64]\n    copy from=A to=t\n" +
      body + "    copy from=t to=B\n  }\n}\n";
  const NDArray a = NDArray::zeros({64}, i32), b = NDArray::zeros({64}, i32);
  for (int64_t i = 0; i < 64; ++i) a.set_int({i}, 1000 + i);
  const std::vector<Argument> arguments{a, b, 0};
  compile(parse_program(text), {.engine = engine}).call(arguments);
  return b.to_ints();
}

std::vector<int64_t> untouched() {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < 64; ++i) out.push_back(1000 + i);
  return out;
}

TEST(CertainWrites, OfALoopThatIsLeftBeforeThem) {
  for (const char* jump : {"break", "continue"}) {
    const std::string leave = "      if n == 0 {\n        " + std::string(jump) + "\n      }\n";
    for (const std::string write :
         {"      map i in 64 {\n        t[i] = i + k\n      }\n", "      fill to=t value=7\n"})
      for (const Engine engine : {Engine::Interpreter, Engine::Cpu, Engine::Simulator})
        EXPECT_EQ(run("    for k in 0..4 {\n" + leave + write + "    }\n", engine), untouched()) << leave << write;
  }
}

TEST(CertainWrites, OfALoopThatIsLeftWithinThem) {
  std::vector<int64_t> expected = untouched();
  for (size_t i = 0; i < 8; ++i) expected[i] = 5;
  for (const Engine engine : {Engine::Interpreter, Engine::Cpu})
    EXPECT_EQ(
        run("    for i in 0..64 {\n      if i == n + 8 {\n        break\n      }\n      t[i] = 5\n    }\n", engine),
        expected);
}

TEST(CertainWrites, OfAnInnerLoopThatMakesNoTurn) {
  for (const std::string write :
       {"        fill to=t value=5\n", "        map i in 64 {\n          t[i] = k\n        }\n"})
    for (const Engine engine : {Engine::Interpreter, Engine::Cpu, Engine::Simulator})
      EXPECT_EQ(run("    for q in 0..2 {\n      for k in 0..n {\n" + write + "      }\n    }\n", engine), untouched());
}

TEST(CertainWrites, OfALoopAroundAnElementThatMakesNoTurn) {
  for (const Engine engine : {Engine::Interpreter, Engine::Cpu})
    EXPECT_EQ(
        run("    for q in 0..2 {\n      for i in 0..64 {\n        for k in 0..n {\n          t[i] = k\n        }\n"
            "      }\n    }\n",
            engine),
        untouched());
}

TEST(CertainWrites, OfABranchThatIsNotTaken) {
  for (const Engine engine : {Engine::Interpreter, Engine::Cpu, Engine::Simulator})
    EXPECT_EQ(run("    for q in 0..2 {\n      if n > q {\n        fill to=t value=5\n      }\n    }\n", engine),
              untouched());
}

}  // namespace
}  // namespace tilewright
