// Names of places are what they stand for.
#include "passes/tile/inline_lets.h"

#include "analysis/divisibility.h"
#include "driver/cuda_engine.h"
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

// Its value may wrap around, so it stays a name; a power of two divides it all the same.
TEST(InlineLets, NamesThatStayShowTheirDivisors) {
  const auto text_of = [](const std::string& name, const std::string& body) {
    Dump dump("names");
    const std::string text =
        "program p {\n  symbol M: int32\n  param A: float16[M, 4096]\n  param B: float16[4096, 128]\n"
        "  param C: float16[M, 4096]\n  param at: int32[M]\n  param per: int32\n"
        "  launch p(by: M // 128) threads(tx: 128) {\n    shared a: float16[128, 64]\n    shared b: float16[64, 128]\n"
        "    fragment c: float32[128, 128]\n    fill to=c value=0.0\n"
        "    for k in 0..64 pipelined(stages=3) {\n      " +
        name + "\n" + body + "    }\n    copy from=c to=C[by * 128 : 128, 0 : 128]\n  }\n}\n";
    return write_cuda(passes::canonicalize(ir::parse(text, "p.tile")), "sm_90a", dump).kernel.text;
  };
  const auto is_wide = [&](const std::string& name) {
    const std::string map =
        text_of(name,
                "      map i in 128, j in 64 {\n        C[by * 128 + i, place + j] = A[by * 128 + i, "
                "place + j]\n      }\n");
    const std::string product = text_of(name,
                                        "      copy from=A[by * 128 : 128, place : 64] to=a\n"
                                        "      copy from=B[k * 64 : 64, 0 : 128] to=b\n      gemm a=a b=b c=c\n");
    const bool by_tma = product.find("A_map") != std::string::npos;
    EXPECT_EQ(map.find("(const uint4*)&A[") != std::string::npos, by_tma) << name;
    return by_tma;
  };
  for (const char* name : {"place: int32 = k * per * 64", "place: int32 = at[by] * 64 + k * 128",
                           "place: int32 = (per + k) // 64 * 64", "place: int32 = min(per, k) * 64"})
    EXPECT_TRUE(is_wide(name)) << name;
  for (const char* name : {"place: int32 = k * per * 4", "place: int32 = at[by]", "place: int32 = per * 64 + at[by]"})
    EXPECT_FALSE(is_wide(name)) << name;
}

}  // namespace
}  // namespace tilewright
