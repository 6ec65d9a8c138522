// Tiles that nothing writes, under the option zero_unwritten.
#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/print.h"
#include "passes/canonicalize.h"
#include "support/diagnostic.h"
#include "tilewright/compile.h"

namespace tilewright {
namespace {

constexpr const char* kHead = "program p {\n  param A: float32[16]\n  param B: float32[3, 16]\n";
constexpr const char* kLaunches = R"(  launch first(bx: 1) threads(tx: 32) {
    shared s: float32[16]
    fragment f: float32[16]
    fragment sums: float32[16]
    copy from=s to=B[0, 0 : 16]
    fill to=sums value=0.0
    map i in 16 {
      sums[i] = f[i] + A[i]
    }
    copy from=sums to=B[1, 0 : 16]
  }
  launch second(bx: 1) threads(tx: 32) {
    shared t: int8[16]
    map i in 16 {
      B[2, i] = float32(t[i])
    }
  }
}
)";

std::string text(const std::string& options) { return kHead + options + kLaunches; }

size_t fills_of(const std::string& program) {
  const std::string left = ir::print(passes::canonicalize(ir::parse(program, "p.tile")));
  size_t found = 0;
  for (size_t at = left.find("fill to="); at != std::string::npos; at = left.find("fill to=", at + 1)) ++found;
  return found;
}

TEST(FillUnwritten, HoldsZerosOnEveryEngine) {
  EXPECT_EQ(fills_of(text("  option zero_unwritten=true\n")), 4u);  // s, f, t, and the program's own
  for (const CompileOptions& options :
       {CompileOptions{Engine::Interpreter}, CompileOptions{Engine::Cpu}, CompileOptions{Engine::Simulator, "sm_80"}}) {
    const NDArray a = NDArray::zeros({16}, f32), b = NDArray::zeros({3, 16}, f32);
    for (int64_t i = 0; i < 16; ++i) {
      a.set_float({i}, static_cast<double>(i));
      for (int64_t row = 0; row < 3; ++row) b.set_float({row, i}, 7);
    }
    compile(parse_program(text("  option zero_unwritten=true\n")), options)(a, b);
    for (int64_t i = 0; i < 16; ++i) {
      EXPECT_EQ(b.get_float({0, i}), 0);
      EXPECT_EQ(b.get_float({1, i}), static_cast<double>(i));
      EXPECT_EQ(b.get_float({2, i}), 0);
    }
  }
}

TEST(FillUnwritten, IsAMistakeElsewhere) {
  for (const char* options : {"", "  option zero_unwritten=true\n  option strict=true\n"}) {
    EXPECT_EQ(fills_of(text(options)), 1u);
    try {
      compile(parse_program(text(options)), {Engine::Cpu});
      ADD_FAILURE() << options;
    } catch (const CompileError& e) {
      EXPECT_EQ(e.diagnostic().code, static_cast<int>(Code::ReadBeforeWrite));
    }
  }
}

// What is written too late, or by what adds to it, was meant to hold something.
TEST(FillUnwritten, LeavesWhatIsWrittenTooLate) {
  const std::string late = std::string(kHead) + R"(  option zero_unwritten=true
  launch p(bx: 1) threads(tx: 32) {
    shared s: float32[16]
    fragment c: float32[16]
    copy from=s to=B[0, 0 : 16]
    copy from=A to=s
    reduce sum from=B[0 : 3, 0 : 16] to=c dim=0 clear=false
    copy from=c to=B[1, 0 : 16]
  }
}
)";
  EXPECT_EQ(fills_of(late), 0u);
  EXPECT_THROW(compile(parse_program(late), {Engine::Cpu}), CompileError);
}

}  // namespace
}  // namespace tilewright
