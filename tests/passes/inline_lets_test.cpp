// Names of places are what they stand for.
#include "passes/tile/inline_lets.h"

#include "analysis/divisibility.h"
#include "ir/rewrite.h"
#include "passes/planned.h"

namespace tilewright {
namespace {

TEST(InlineLets, IndicesShowTheirDivisors) {
  const std::string text =
      "program shift {\n  param A: float16[96, 64]\n  param N: int32[4]\n  param C: float16[96, 64]\n"
      "  launch shift(bx: 4, by: 3) threads(tx: 128) {\n    shared S: float16[32, 16]\n    row: int32 = by * 32\n"
      "    column: int32 = bx * 16\n    place: int32 = row + column\n    read: int32 = N[bx]\n    odd: int32 = place % "
      "3\n"
      "    copy from=A[row : 32, column : 16] to=S\n    map i in 32, j in 16 {\n"
      "      C[row + i, column + j] = S[i, j] + float16(read + odd + place)\n    }\n  }\n}\n";
  Planned p;
  p.plain = passes::canonicalize(ir::parse(text, "p.tile"));
  p.program = passes::inline_lets(p.plain);
  ir::check_valid(p.program, "inline_lets");
  std::set<std::string> names;
  ir::walk(p.program.launches[0].body, [&](const ir::Stmt& s) {
    if (const auto* n = s.as<ir::Let>()) names.insert(p.program.var(n->var).name);
    const auto* copy = s.as<ir::Copy>();
    if (!copy) return;
    EXPECT_EQ(analysis::power_of_two_divisor(copy->from.min[1]) % 16, 0);
  });
  EXPECT_EQ(names, (std::set<std::string>{"odd", "read"}));  // what is read or divided keeps its name
  expect_same_meaning(p, {numbers({96, 64}, f16, 1), numbers({4}, i32, 2)}, {96, 64}, f16);
}

}  // namespace
}  // namespace tilewright
