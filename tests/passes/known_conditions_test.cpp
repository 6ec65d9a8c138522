// Conditions that the ranges of blocks, threads and loops decide.
#include "passes/known_conditions.h"

#include "ir/print.h"
#include "passes/lower_to_threads.h"
#include "passes/planned.h"

namespace tilewright {
namespace {

// The program with one statement of a map in a loop: 32 turns of 128 rows, blocks of a dynamic extent.
std::string turns(const std::string& statement) {
  return "program turns {\n  symbol N: int32\n  param A: float32[N, 4096]\n  param C: float32[N, 4096]\n"
         "  launch turns(bx: N) threads(tx: 128) {\n    for k in 0..32 {\n      map i in 128 {\n"
         "        row: int32 = k * 128 + i\n        " +
         statement + "\n      }\n    }\n  }\n}\n";
}

ir::TileProgram canonical(const std::string& text) { return passes::canonicalize(ir::parse(text, "p.tile")); }

struct Decision {
  const char *condition, *becomes;  // becomes: "" where it stays
};

TEST(KnownConditions, AreConstants) {
  const Decision all[] = {{"row < 4096", "true"},
                          {"4095 >= row", "true"},
                          {"row < 4095", ""},
                          {"row >= 4096", "false"},
                          {"row == 4096", "false"},
                          {"row != -1", "true"},
                          {"row == 7", ""},
                          {"bx >= 0 and row // 128 < 32", "true"},
                          {"bx < N", ""},
                          {"row % 64 < 64", "true"},
                          // These wrap: 4095 * 1048576 is -1048576.
                          {"row * 1048576 >= 0", ""},
                          {"int64(row) * 1048576 >= 0", "true"},
                          {"int64(N) * 1048576 + 1 > int64(N) * 1048576", ""},
                          {"row >= 0 or A[bx, row] > 0.0", "true"},
                          {"row >= 4096 or A[bx, row] > 0.0", "A[bx, row] > 0.0"}};
  for (const Decision& d : all) {
    const std::string text = turns("C[bx, row] = select(" + std::string(d.condition) + ", A[bx, row], 1.0)");
    const std::string becomes = d.becomes;
    const std::string expected = becomes == "true"    ? "C[bx, row] = A[bx, row]"
                                 : becomes == "false" ? "C[bx, row] = 1.0"
                                 : becomes.empty()    ? ""
                                                      : "C[bx, row] = select(A[bx, row] > 0.0, A[bx, row], 1.0)";
    const std::string printed = ir::print(canonical(text));
    if (expected.empty())
      EXPECT_NE(printed.find("select("), std::string::npos) << d.condition << "\n" << printed;
    else
      EXPECT_NE(printed.find(expected), std::string::npos) << d.condition << "\n" << printed;
  }
}

TEST(KnownConditions, BranchesThatAreNeverTakenGo) {
  const std::string printed =
      ir::print(canonical(turns("inside: bool = row < 4096\n        if inside {\n          C[bx, row] = 1.0\n        } "
                                "else {\n          C[bx, row] = 2.0\n        }")));
  EXPECT_EQ(printed.find("if "), std::string::npos) << printed;
  EXPECT_EQ(printed.find("2.0"), std::string::npos) << printed;
}

// A mask that masks nothing is a product that clears.
TEST(KnownConditions, MaskOfWholeTilesIsAClearingProduct) {
  for (const int keys : {256, 255}) {
    const std::string n = std::to_string(keys);
    const std::string text =
        "program scores {\n  param A: float16[64, 64]\n  param B: float16[" + n + ", 64]\n  param C: float32[64, " + n +
        "]\n  launch scores(bx: 1) threads(tx: 128) {\n    shared As: float16[64, 64]\n    shared Bs: float16[64, 64]\n"
        "    fragment S: float32[64, 64]\n    copy from=A[0 : 64, 0 : 64] to=As\n    for k in 0..4 pipelined(stages=2) "
        "{\n      copy from=B[k * 64 : 64, 0 : 64] to=Bs\n      map i in 64, j in 64 {\n"
        "        S[i, j] = select(k * 64 + j < " +
        n +
        ", 0.0, -inf)\n      }\n      gemm a=As b=Bs c=S transpose_b=true\n"
        "      copy from=S to=C[0 : 64, k * 64 : 64]\n    }\n  }\n}\n";
    const auto low = passes::lower_to_threads(canonical(text), target::GpuTarget::of(90));
    EXPECT_EQ(ir::print(low.threads).find("unmasked") == std::string::npos, keys == 256);
    Planned p;
    p.plain = ir::parse(text, "p.tile");
    p.program = canonical(text);
    expect_same_meaning(p, {numbers({64, 64}, f16, 1), numbers({keys, 64}, f16, 2)}, {64, keys}, f32);
  }
}

}  // namespace
}  // namespace tilewright
