// How many blocks of a launch run in turn, before threads are asked for.
#include <gtest/gtest.h>

#include "codegen/cpu_kernel.h"

namespace tilewright {
namespace {

int64_t brief_blocks_of(const std::string& body) {
  const std::string text = cpu_text_of(parse_program(R"(program p {
  param m: int32
  symbol n: int32
  param A: float32[n]
  param B: float32[n]
  launch p(bx: (n + 127) // 128) threads(tx: 128) {
)" + body + "  }\n}\n",
                                                     "p.tile"));
  const std::string before = "call->max_threads == 1 || blocks <= ";
  const size_t at = text.find(before);
  return at == std::string::npos ? -1 : std::stoll(text.substr(at + before.size()));
}

TEST(BriefBlocks, AreAsManyAsTheirOperationsAllow) {
  const int64_t of_sums = brief_blocks_of("    map i in 128 {\n      B[bx * 128 + i] = A[bx * 128 + i] + 1.0\n    }\n");
  const int64_t of_exponentials =
      brief_blocks_of("    map i in 128 {\n      B[bx * 128 + i] = exp(exp(exp(A[bx * 128 + i])))\n    }\n");
  EXPECT_GT(of_sums, 4);
  EXPECT_GT(of_sums, of_exponentials);
  EXPECT_GE(of_exponentials, 1);
}

TEST(BriefBlocks, AreSingleWhereNobodyKnowsHowLongTheyTake) {
  EXPECT_EQ(brief_blocks_of("    for k in 0..m {\n      map i in 128 {\n        B[bx * 128 + i] = A[bx * 128 + i] + "
                            "1.0\n      }\n    }\n"),
            1);
  EXPECT_EQ(brief_blocks_of("    map i in 128 {\n      atomic add to=B[bx * 128 + i] value=A[bx * 128 + i]\n    }\n"),
            1);
}

}  // namespace
}  // namespace tilewright
