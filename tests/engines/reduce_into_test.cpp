// What a reduction finds in its result, where it is told not to clear it.
#include <gtest/gtest.h>

#include "ir/program.h"
#include "tilewright/compile.h"

namespace tilewright {
namespace {

// Of -4, 1 and 2 in each of 16 columns, into a tile of -3.
int64_t reduced(const std::string& op, const std::string& dtype, Engine engine) {
  const std::string text =
      "program p {\n  param O: " + dtype + "[16]\n  launch l(bx: 1) threads(tx: 32) {\n    shared s: " + dtype +
      "[3, 16]\n    fragment r: " + dtype + "[16]\n    fill to=r value=" + dtype + "(-3)\n" +
      "    map i in 3, j in 16 {\n      s[i, j] = select(i == 0, " + dtype + "(-4), " + dtype +
      "(i))\n    }\n    reduce " + op + " from=s to=r dim=0 clear=false\n    copy from=r to=O\n  }\n}\n";
  const Program program = parse_program(text);
  const NDArray o = NDArray::zeros({16}, program.box().program.buffers[0].type);
  compile(program, {.engine = engine}).call(std::vector<Argument>{o});
  return static_cast<int64_t>(o.to_floats()[5]);
}

TEST(ReduceInto, JoinsWhatIsThere) {
  for (const char* dtype : {"int32", "int8", "float32", "float16"})
    for (const Engine engine : {Engine::Interpreter, Engine::Cpu, Engine::Simulator}) {
      SCOPED_TRACE(dtype);
      EXPECT_EQ(reduced("abssum", dtype, engine), -3 + 7);
      EXPECT_EQ(reduced("absmax", dtype, engine), 4);
      EXPECT_EQ(reduced("sum", dtype, engine), -3 - 1);
      EXPECT_EQ(reduced("max", dtype, engine), 2);
      EXPECT_EQ(reduced("min", dtype, engine), -4);
    }
}

}  // namespace
}  // namespace tilewright
