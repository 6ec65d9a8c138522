// What would surely be wrong when it runs is refused before; what might be right is not.
#include <gtest/gtest.h>

#include "ir/operators.h"
#include "ir/parse.h"
#include "passes/pipeline.h"
#include "support/warning.h"
#include "tilewright/diagnostic.h"

namespace tilewright {
namespace {

// A program over A: float32[64], I: int32[64] and B: float32[64]; `body` is the launch's. Behind it
// an element is written, so that a caller sees something. The first line of the error.
std::string error_of(const std::string& body, const std::string& end = "    I[0] = 1\n") {
  const std::string text =
      "program p {\n  symbol n: int32\n  param A: float32[64]\n  param I: int32[64]\n  param B: float32[64]\n"
      "  param D: float32[n]\n  launch main(bx: 4) threads(tx: 64) {\n" +
      body + end + "  }\n}\n";
  try {
    passes::run_passes(ir::parse(text, "p.tile"), passes::all_passes(), [](auto&&...) {});
  } catch (const CompileError& e) {
    const Diagnostic& d = e.diagnostic();
    return d.code_text() + " line " + std::to_string(d.location.line - 7) + ": " + d.message;
  }
  return "";
}

constexpr const char* kShared = "    shared s: float32[64]\n";

std::string with_shared(const std::string& body) { return error_of(kShared + body); }

// ---- reads before writes

TEST(FirstReads, OfTilesThatNobodyFilled) {
  EXPECT_EQ(with_shared("    copy from=s to=B\n"), "TW1090 line 2: 's' is read before anything is written to it");
  EXPECT_EQ(with_shared("    map i in 64 {\n      B[i] = s[i]\n    }\n    copy from=A to=s\n"),
            "TW1090 line 3: 's' is read before anything is written to it");
  EXPECT_EQ(with_shared(
                "    fragment r: float32[1]\n    fill to=s value=0.0\n    reduce sum from=s to=r dim=0 clear=false\n"),
            "TW1090 line 4: 'r' is read before anything is written to it");
  EXPECT_EQ(with_shared("    atomic add to=s[tx] value=1.0\n"),
            "TW1090 line 2: 's' is read before anything is written to it");
  EXPECT_EQ(error_of("    local x: int32\n    while x < 3 {\n      x = x + 1\n    }\n"),
            "TW1090 line 2: 'x' is read before anything is written to it");
}

TEST(FirstReads, PrintingATileIsNoUseOfIt) {
  EXPECT_EQ(with_shared("    print message=\"\" buffer=s\n"), "");
  EXPECT_EQ(with_shared("    print message=\"\" values=[s[tx]]\n"), "");
  EXPECT_EQ(with_shared("    print message=\"\" values=[s[tx]]\n    B[tx] = s[tx]\n"),
            "TW1090 line 3: 's' is read before anything is written to it");
}

const char* const kProduct =
    "    shared a: float16[16, 16]\n    fragment c: float32[16, 16]\n    fill to=a value=1.0\n";

TEST(FirstReads, OfAccumulatorsThatNobodyCleared) {
  const auto error = [](const std::string& body) { return error_of(kProduct + body); };
  const std::string refused = "TW1090 line 5: 'c' is read before anything is written to it";
  EXPECT_EQ(error("    for k in 0..4 {\n      gemm a=a b=a c=c\n    }\n"), refused);
  EXPECT_EQ(error("    for k in 0..n pipelined(stages=2) {\n      gemm a=a b=a c=c\n    }\n"), refused);
  EXPECT_EQ(error("    for k in 0..4 {\n      gemm a=a b=a c=c clear=k == 1\n    }\n"), refused);
  EXPECT_EQ(error("    for k in 0..4 {\n      gemm a=a b=a c=c clear=k == 0\n    }\n"), "");
  EXPECT_EQ(error("    for k in 0..4 {\n      if k == 0 {\n        fill to=c value=0.0\n      }\n      gemm a=a b=a "
                  "c=c\n    }\n"),
            "");
  EXPECT_EQ(error("    gemm a=a b=a c=c clear=n > 3\n"), "");
}

TEST(FirstReads, WhatMayHaveBeenWrittenIsNone) {
  // On one path, in part, in an earlier turn, through a view, or by a loop that might make no turn.
  EXPECT_EQ(with_shared("    if n > 3 {\n      copy from=A to=s\n    }\n    copy from=s to=B\n"), "");
  EXPECT_EQ(with_shared("    s[0] = 1.0\n    copy from=s to=B\n"), "");
  EXPECT_EQ(
      with_shared(
          "    for k in 0..4 {\n      if k > 0 {\n        copy from=s to=B\n      }\n      copy from=A to=s\n    }\n"),
      "");
  EXPECT_EQ(with_shared("    for k in 0..n {\n      copy from=A to=s\n    }\n    copy from=s to=B\n"), "");
  EXPECT_EQ(with_shared("    shared v: float32[32] view=s\n    fill to=v value=0.0\n    copy from=s to=B\n"), "");
}

TEST(FirstReads, WhatMightNotHappenIsNone) {
  EXPECT_EQ(with_shared("    if n > 3 {\n      copy from=s to=B\n    }\n"), "");
  EXPECT_EQ(with_shared("    for k in 0..0 {\n      copy from=s to=B\n    }\n"), "");
  EXPECT_EQ(with_shared("    map i in 64 {\n      B[i] = select(i < 64, A[i], s[i])\n    }\n"), "");
  EXPECT_EQ(
      with_shared("    for k in 0..4 {\n      if n > k {\n        break\n      }\n      copy from=s to=B\n    }\n"),
      "");
  EXPECT_EQ(with_shared("    if I[0] > 3 {\n      return\n    }\n    copy from=s to=B\n"), "");
}

TEST(FirstReads, WhatNobodySeesIsNone) {
  EXPECT_EQ(error_of("    shared s: float32[64]\n    shared t: float32[64]\n    copy from=s to=t\n", ""), "");
}

TEST(FirstReads, OtherThreadsMayHaveWrittenWhatStandsBehind) {
  EXPECT_EQ(
      with_shared(
          "    role 0..32 {\n      copy from=s to=B\n    }\n    role 32..64 {\n      fill to=s value=1.0\n    }\n"),
      "");
  EXPECT_EQ(with_shared("    role 0..32 {\n      copy from=s to=B\n      fill to=s value=1.0\n    }\n"),
            "TW1090 line 3: 's' is read before anything is written to it");
  EXPECT_EQ(with_shared(
                "    role 0..32 {\n      if tx < 5 {\n        B[tx] = s[tx]\n      } else {\n        s[tx - 5] = 1.0\n"
                "      }\n    }\n"),
            "");
}

// ---- ranges

TEST(TileRanges, IndicesThatLeaveATile) {
  EXPECT_EQ(with_shared("    map i in 128 {\n      s[i] = 1.0\n    }\n"),
            "TW1036 line 3: index 0 of 's' runs from 0 to 127, but 's' has 64 elements");
  EXPECT_EQ(error_of("    shared t: float32[8, 16]\n    map i in 8, j in 16 {\n      t[i, j * 2 + 1] = 1.0\n    }\n"),
            "TW1036 line 3: index 1 of 't' runs from 1 to 31, but dimension 1 has 16 elements");
  EXPECT_EQ(with_shared("    s[tx + bx * 16] = 1.0\n"),
            "TW1036 line 2: index 0 of 's' runs from 0 to 111, but 's' has 64 elements");
  EXPECT_EQ(with_shared("    fill to=s value=0.0\n    map i in 64 {\n      B[i] = s[i - 1]\n    }\n"),
            "TW1036 line 4: index 0 of 's' runs from -1 to 62, but 's' has 64 elements");
  EXPECT_EQ(with_shared("    for k in 0..5 {\n      copy from=A[k * 16 : 16] to=s[k * 16 : 16]\n    }\n"),
            "TW1036 line 3: index 0 of 's' runs from 0 to 79, but 's' has 64 elements");
}

TEST(TileRanges, GuardsAreSeen) {
  EXPECT_EQ(with_shared("    map i in 128 {\n      if i < 64 {\n        s[i] = 1.0\n      }\n    }\n"), "");
  EXPECT_EQ(with_shared("    map i in 128 {\n      if i < n {\n        s[i] = 1.0\n      }\n    }\n"), "");
  EXPECT_EQ(with_shared("    map i in 128 {\n      if i >= 1 {\n        s[i] = 1.0\n      }\n    }\n"),
            "TW1036 line 4: index 0 of 's' is 127, but 's' has 64 elements");
  EXPECT_EQ(
      with_shared("    fill to=s value=0.0\n    map i in 64 {\n      B[i] = select(i > 0, s[i - 1], 0.0)\n    }\n"),
      "");
  EXPECT_EQ(with_shared("    map i in 128 {\n      s[i % 64] = 1.0\n    }\n"), "");
  EXPECT_EQ(
      with_shared("    for k in 0..8 {\n      if n > 3 {\n        break\n      }\n      s[k * 16] = 1.0\n    }\n"), "");
  EXPECT_EQ(
      with_shared("    for k in 0..8 {\n      s[k * 16] = 1.0\n      if n > 3 {\n        break\n      }\n    }\n"), "");
  // Which thread comes to which point is not known.
  EXPECT_EQ(with_shared("    map i in 64 {\n      if tx == i {\n        s[i + tx] = 1.0\n      }\n    }\n"), "");
}

// The extent of 'f' after the passes, and the warnings.
std::pair<int64_t, std::vector<std::string>> grown(const std::string& body) {
  const std::string text =
      "program p {\n  param A: float32[64]\n  param B: float32[64]\n  launch main(bx: 1) threads(tx: 64) {\n"
      "    fragment f: float32[8]\n" +
      body + "  }\n}\n";
  std::vector<std::string> warnings;
  const WarningSink before =
      replace_warning_sink([&](const Diagnostic& d) { warnings.push_back(d.code_text() + ": " + d.message); });
  const std::shared_ptr<void> restore(nullptr, [&](void*) { replace_warning_sink(before); });
  const ir::TileProgram program = passes::run_passes(ir::parse(text, "p.tile"), passes::all_passes(), [](auto&&...) {});
  for (const ir::Buffer& b : program.buffers)
    if (b.name == "f") return {ir::constant_int(b.shape[0]).value_or(-1), warnings};
  return {-1, warnings};
}

TEST(TileRanges, FragmentsOfOnePointAnElementGrowToTheMaps) {
  const std::string write = "    map i in 64 {\n      f[i] = A[i]\n    }\n",
                    read = "    map i in 64 {\n      B[i] = f[i] + 1.0\n    }\n";
  const auto [extent, warnings] = grown(write + read);
  EXPECT_EQ(extent, 64);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0], "TW1036: 'f' has 8 elements, but maps go through 64 of it: it gets that many");
  const std::string some = "    map i in 64 {\n      if i < 8 {\n        f[i] = A[i]\n      }\n    }\n";
  EXPECT_EQ(grown(some), std::pair(int64_t{8}, std::vector<std::string>()));
  EXPECT_EQ(grown(some + read).first, 64);
}

TEST(TileRanges, MapsThatOnlyStoreToAFragmentEndWhereItDoes) {
  // Surely come to or not: how often the loop turns is in memory.
  const std::string update = "      map i in 64 {\n        f[i] = f[i] * A[i]\n      }\n",
                    loop = "    for k in 0..i32(A[0]) {\n" + update + "    }\n",
                    begin = "    copy from=A[0 : 8] to=f\n", end = "    copy from=f to=B[0 : 8]\n";
  const std::vector<std::string> warned = {
      "TW1036: a map of 64 points goes beyond the 8 elements of 'f', and does nothing there"};
  EXPECT_EQ(grown(begin + update + end), std::pair(int64_t{8}, warned));
  EXPECT_EQ(grown(begin + loop + end), std::pair(int64_t{8}, warned));
  // What else the points do, or a condition on the variable, is not cut away.
  const std::vector<std::string> silent;
  EXPECT_EQ(grown(begin + "    map i in 64 {\n      if i < 8 {\n        f[i] = A[i]\n      }\n    }\n" + end),
            std::pair(int64_t{8}, silent));
  // Where a fragment may grow instead, it does, however often the loop turns.
  const std::string within =
      "    for k in 0..i32(A[0]) {\n      map i in 64 {\n        f[i] = A[i]\n      }\n      map i in 64 {\n"
      "        B[i] = f[i]\n      }\n    }\n";
  EXPECT_EQ(grown(within).first, 64);
}

TEST(TileRanges, OtherFragmentsAndTilesDoNotGrow) {
  const std::string write = "    map i in 64 {\n      f[i] = A[i]\n    }\n";
  const auto is_refused = [&](const std::string& body) {
    try {
      grown(body);
      ADD_FAILURE() << "accepted: " << body;
    } catch (const CompileError& e) {
      EXPECT_EQ(e.diagnostic().code_text(), "TW1036") << body;
    }
  };
  is_refused(write + "    map i in 32 {\n      B[i] = f[i]\n    }\n");
  is_refused(write + "    map i in 64 {\n      B[i] = f[63 - i]\n    }\n");
  is_refused(write + "    map i in 64 {\n      B[i] = f[i + 1]\n    }\n");
  is_refused(write + "    B[tx] = f[tx]\n");
  is_refused(write + "    copy from=f to=B[0 : 8]\n    map i in 64 {\n      f[i] = A[i]\n      B[i] = 0.0\n    }\n");
  is_refused(write + "    fragment v: float32[2, 4] view=f\n    map i in 64 {\n      B[i] = f[i]\n    }\n");
  const std::string shared = "    shared s: float32[8]\n    map i in 64 {\n      s[i] = A[i]\n    }\n";
  is_refused(shared + "    map i in 64 {\n      B[i] = s[i]\n    }\n");
}

TEST(TileRanges, SumsWrap) {
  EXPECT_EQ(with_shared("    s[tx + 2147483647 - 2147483647] = 1.0\n"), "");
  EXPECT_EQ(with_shared("    map i in 64 {\n      B[i + 1000] = A[i]\n    }\n"), "");  // global: nothing is there
}

// ---- tiles that threads move together

TEST(OperandAgreement, ThreadsThatWouldEachMoveAnotherTile) {
  const std::string of_warps = "threads do this copy together, but not of one part of ";
  EXPECT_EQ(with_shared("    w: int32 = tx // 32\n    copy from=A[w * 32 : 32] to=s[w * 32 : 32]\n"),
            "TW6012 line 3: " + of_warps + "'A': it begins or ends at 0 for thread 0 and at 32 for thread 32");
  EXPECT_EQ(with_shared("    copy from=A[0 : 8] to=s[tx % 8 : 8]\n"),
            "TW6012 line 2: " + of_warps + "'s': it begins or ends at 0 for thread 0 and at 1 for thread 1");
  EXPECT_EQ(
      with_shared("    role 32..64 {\n      fill to=s[tx // 48 : 8] value=0.0\n    }\n"),
      "TW6012 line 3: threads do this fill together, but not of one part of 's': it begins or ends at 0 for thread "
      "32 and at 1 for thread 48");
}

TEST(OperandAgreement, ThreadsThatWouldEachHearByAnotherBarrier) {
  EXPECT_EQ(with_shared("    barrier full: uint64[2] arrive=[1, 1]\n"
                        "    copy from=A[0 : 64] to=s completion=(barrier=full[tx // 32])\n"),
            "TW6012 line 3: threads do this copy together, but not of one part of 'full': it begins or ends at 0 for "
            "thread 0 and at 1 for thread 32");
}

TEST(OperandAgreement, ThreadsThatWouldEachFillWithAnotherValue) {
  EXPECT_EQ(with_shared("    fill to=s value=float32(tx // 64)\n"), "");
  EXPECT_NE(with_shared("    fill to=s value=float32(tx)\n").find("not with one value: it is 0 for thread 0 and 1"),
            std::string::npos);
  EXPECT_EQ(error_of("    shared k: int32[4]\n    fill to=k value=tx + 3\n    B[tx] = float32(k[0])\n"),
            "TW6012 line 2: threads do this fill together, but not with one value: it is 3 for thread 0 and 4 for "
            "thread 1");
}

TEST(OperandAgreement, OneTileForAllIsNoMistake) {
  EXPECT_EQ(with_shared("    copy from=A[tx // 64 : 8] to=s[0 : 8]\n"), "");
  EXPECT_EQ(with_shared("    role 32..64 {\n      copy from=A[tx // 32 : 8] to=s[tx // 32 * 8 : 8]\n    }\n"), "");
  EXPECT_EQ(error_of("    local own: float32[2]\n    copy from=A[tx // 2 * 2 : 2] to=own\n    B[tx] = own[0]\n"), "");
  EXPECT_EQ(with_shared("    if n > 3 {\n      copy from=A[tx : 1] to=s[tx : 1]\n    }\n"), "");  // not surely
  EXPECT_EQ(with_shared("    copy from=A[I[tx] : 1] to=s[I[0] : 1]\n"), "");                      // memory says
}

// ---- points of a map

TEST(MapConflicts, TwoPointsWriteOneElement) {
  EXPECT_EQ(with_shared("    map i in 64 {\n      s[i // 2] = A[i]\n    }\n"),
            "TW1091 line 3: points 0 and 1 of the map write different values to s[0]");
  EXPECT_EQ(error_of("    map i in 64 {\n      B[i % 8] = float32(i)\n    }\n"),
            "TW1091 line 2: points 0 and 8 of the map write different values to B[0]");
  EXPECT_EQ(with_shared("    copy from=A to=s\n    map i in 8, j in 8 {\n      B[i + j] = s[i * 8 + j]\n    }\n"),
            "TW1091 line 4: points (0, 1) and (1, 0) of the map write different values to B[1]");
}

TEST(MapConflicts, APointReadsWhatAnotherWrites) {
  EXPECT_EQ(with_shared("    copy from=A to=s\n    map i in 63 {\n      s[i + 1] = s[i] + A[i]\n    }\n"),
            "TW1091 line 4: point 1 of the map reads s[1], which point 0 writes");
  EXPECT_EQ(error_of("    map i in 64 {\n      B[i] = B[63 - i]\n    }\n"),
            "TW1091 line 2: point 0 of the map reads B[63], which point 63 writes");
}

TEST(MapConflicts, ACopyWithinATileIsAMap) {
  const std::string fill = "    copy from=A to=s\n";
  EXPECT_EQ(with_shared(fill + "    copy from=s[0 : 63] to=s[1 : 63]\n"),
            "TW1091 line 3: the copy reads s[1] and writes it as well");
  EXPECT_EQ(with_shared(fill + "    for k in 3 : 2 {\n      copy from=s[k : 8] to=s[0 : 8]\n    }\n"),
            "TW1091 line 4: the copy reads s[3] and writes it as well");
  EXPECT_EQ(with_shared(fill + "    copy from=s[0 : 32] to=s[32 : 32]\n"), "");
  EXPECT_EQ(with_shared(fill + "    copy from=s to=s\n"), "");
  const std::string own = "    local x: float32[8]\n    fill to=x value=1.0\n";
  EXPECT_EQ(error_of(own + "    copy from=x[1 : 7] to=x[0 : 7]\n"), "");
  EXPECT_NE(error_of(own + "    copy from=x[0 : 7] to=x[1 : 7]\n"), "");
}

TEST(MapConflicts, AnOpWritesNothingThatItReads) {
  const std::string fill = "    copy from=A to=s\n";
  EXPECT_EQ(with_shared(fill + "    scan sum from=s[0 : 32] to=s[16 : 32]\n"),
            "TW1091 line 3: the scan reads s[16] and writes it as well");
  EXPECT_EQ(with_shared(fill + "    reduce sum from=s to=s[5 : 1]\n"),
            "TW1091 line 3: the reduce reads s[5] and writes it as well");
  EXPECT_EQ(with_shared(fill + "    scan sum from=s to=s\n"), "");
  EXPECT_EQ(with_shared(fill + "    scan sum from=s[0 : 32] to=s[32 : 32]\n"), "");
  EXPECT_EQ(with_shared(fill + "    reduce sum from=s[0 : 32] to=s[40 : 1]\n"), "");
  const std::string square = "    shared q: float16[16, 16]\n    fill to=q value=0.0\n";
  EXPECT_EQ(error_of(square + "    gemm a=q b=q c=q\n"), "TW1091 line 3: the gemm reads q[0, 0] and writes it as well");
}

TEST(MapConflicts, TheSameValueAndOwnElementsAreNone) {
  EXPECT_EQ(with_shared("    map i in 64 {\n      s[i // 2] = A[i // 2]\n    }\n"), "");
  EXPECT_EQ(with_shared("    map i in 64 {\n      s[i // 2] = 1.0\n    }\n"), "");
  // What a kernel computes may be alike.
  EXPECT_EQ(with_shared("    fill to=s value=2.0\n    map i in 64 {\n      B[i // 2] = s[i]\n    }\n"), "");
  EXPECT_EQ(with_shared("    copy from=A to=s\n    map i in 64 {\n      s[i] = s[i] * 2.0\n    }\n"), "");
  EXPECT_EQ(with_shared("    copy from=A to=s\n    map i in 32 {\n      s[i] = s[i] + s[i + 32]\n    }\n"), "");
  EXPECT_EQ(with_shared("    map i in 64 {\n      if i % 2 == 0 {\n        s[i // 2] = A[i]\n      }\n    }\n"), "");
  EXPECT_EQ(with_shared("    map i in 64 {\n      if I[i] > 0 {\n        s[i // 2] = A[i]\n      }\n    }\n"), "");
  EXPECT_EQ(with_shared("    map i in 64 {\n      s[I[i]] = A[i]\n    }\n"), "");
  EXPECT_EQ(error_of("    local x: float32[1]\n    map i in 64 {\n      x[0] = A[i]\n      B[i] = x[0]\n    }\n"), "");
}

// ---- blocks that add to one element

std::vector<std::string> warnings_of(const std::string& body) {
  std::vector<std::string> out;
  const WarningSink before = replace_warning_sink(
      [&](const Diagnostic& d) { out.push_back(d.code_text() + ": " + d.message.substr(0, d.message.find(" by "))); });
  const std::shared_ptr<void> restore(nullptr, [&](void*) { replace_warning_sink(before); });
  EXPECT_EQ(error_of(body, ""), "");
  return out;
}

TEST(BlockConflicts, OfSumsInGlobalMemory) {
  const std::vector<std::string> one = {"TW9001: p: blocks 0 and 1 add to B[0]"};
  EXPECT_EQ(warnings_of("    B[0] = B[0] + A[bx]\n"), one);
  EXPECT_EQ(warnings_of("    B[0] = A[bx] + B[0] - 1.0\n"), one);
  EXPECT_EQ(warnings_of("    B[0] = B[0] - A[bx]\n"), one);
  EXPECT_EQ(warnings_of("    I[tx] = I[tx] + 1\n"),
            (std::vector<std::string>{"TW9001: p: blocks 0 and 1 add to I[0]"}));
  EXPECT_EQ(warnings_of("    x: float32 = B[0]\n    B[0] = x + A[bx]\n"), one);
  EXPECT_EQ(warnings_of("    map i in 16 {\n      B[i] = B[i] + A[bx * 16 + i]\n    }\n"), one);
  EXPECT_EQ(warnings_of("    for k in 0..4 {\n      B[k] = B[k] + A[bx]\n    }\n"), one);
  EXPECT_EQ(warnings_of("    if tx == 0 {\n      B[0] = B[0] + A[bx]\n    }\n"), one);
}

TEST(BlockConflicts, OwnElementsAndOrdersAreNone) {
  const std::vector<std::string> none;
  EXPECT_EQ(warnings_of("    B[bx] = B[bx] + A[bx]\n"), none);
  EXPECT_EQ(warnings_of("    map i in 16 {\n      B[bx * 16 + i] = B[bx * 16 + i] + A[i]\n    }\n"), none);
  EXPECT_EQ(warnings_of("    if bx == 0 {\n      B[0] = B[0] + A[bx]\n    }\n"), none);
  EXPECT_EQ(warnings_of("    if I[bx] > 0 {\n      B[0] = B[0] + A[bx]\n    }\n"), none);
  EXPECT_EQ(warnings_of("    for k in bx : 1 {\n      B[k] = B[k] + A[k]\n    }\n"), none);
  EXPECT_EQ(warnings_of("    atomic add to=B[0] value=A[bx]\n"), none);
  EXPECT_EQ(warnings_of(
                "    shared s: float32[64]\n    fill to=s value=0.0\n    s[0] = s[0] + A[bx]\n    copy from=s to=B\n"),
            none);
  // What every block does alike, and what a lock may guard.
  EXPECT_EQ(warnings_of("    B[0] = max(B[0], 0.0)\n"), none);
  EXPECT_EQ(warnings_of("    B[0] = A[bx]\n"), none);
  EXPECT_EQ(warnings_of("    while I[0] != bx {\n    }\n    B[0] = B[0] + A[bx]\n    I[0] = bx + 1\n"), none);
}

}  // namespace
}  // namespace tilewright
