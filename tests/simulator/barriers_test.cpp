// Barriers that the code of threads needs between what one statement writes and another reads, where the indices look
// as if they met no others.
#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/verify.h"
#include "simulator/against_interpreter.h"

namespace tilewright::simulator {
namespace {

void expect_ordered(const std::string& body) {
  const std::string text =
      "program p {\n  param A: int32[64]\n  param O: int32[64]\n  launch l(bx: 1) threads(tx: 64) {\n" + body +
      "  }\n}\n";
  SCOPED_TRACE(text);
  const ir::TileProgram tiles = ir::parse(text, "barriers.tile");
  ir::check_valid(tiles);
  expect_interpreted(tiles);
}

TEST(Barriers, PointsOfTwoMapsThatWrapAroundDifferentlyMeet) {
  expect_ordered(R"(    shared s: int32[64]
    map i in 64 {
      s[(i + 1) % 64] = A[i]
    }
    map i in 64 {
      O[i] = s[i % 64]
    }
)");
}

TEST(Barriers, SlotsWhoseNumberIsInMemoryMayBeTheSame) {
  expect_ordered(R"(    shared s: int32[2, 64]
    local slot: int32[1]
    fill to=s value=7
    slot[0] = 0
    s[slot[0] % 2, tx] = A[tx]
    slot[0] = 1
    O[tx] = s[(slot[0] + 1) % 2, 63 - tx]
)");
}

TEST(Barriers, AnIndexThatIsReadAgainMayBeAnother) {
  expect_ordered(R"(    shared s: int32[64]
    shared where: int32[64]
    map i in 64 {
      where[i] = 63 - i
    }
    map i in 64 {
      s[where[i]] = A[i]
    }
    map i in 64 {
      where[i] = i
    }
    map i in 64 {
      O[i] = s[where[i]]
    }
)");
}

TEST(Barriers, PointsThatShareAnElementMeet) {
  for (const char* index : {"0", "i // 16", "i % 4"}) {
    std::string body = R"(    shared s: int32[64]
    map i in 64 {
      s[@] = A[@]
    }
    map i in 64 {
      O[i] = s[@]
    }
    map i in 64 {
      s[@] = A[@] + 1
    }
    map i in 64 {
      O[i] = O[i] + s[@]
    }
)";
    for (size_t at; (at = body.find('@')) != std::string::npos;) body.replace(at, 1, index);
    expect_ordered(body);
  }
}

TEST(Barriers, WhatOnePointAddsUpIsReadByThatPoint) {
  expect_ordered(R"(    shared s: int32[1]
    shared least: int32[1]
    fill to=least value=1000
    map i in 1 {
      atomic min to=least[0] value=A[5]
    }
    map i in 1 {
      s[0] = least[0]
    }
    map i in 64 {
      O[i] = s[0]
    }
)");
}

TEST(Barriers, WhatIsReadWhereSomeThreadsHaveReturnedIsOrderedBeforeTheyDo) {
  expect_ordered(R"(    shared s: int32[64]
    copy from=A to=s
    if tx >= 32 {
      return
    }
    O[tx] = s[63 - tx]
)");
  expect_ordered(R"(    shared s: int32[64]
    if A[0] < 1000000 {
      copy from=A to=s
      if tx >= 32 {
        return
      }
    }
    O[tx] = s[63 - tx]
)");
}

TEST(Barriers, WhatIsReadInALoopThatSomeThreadsLeaveIsOrderedBeforeIt) {
  expect_ordered(R"(    shared s: int32[64]
    copy from=A to=s
    for k in 0..4 {
      if k + tx >= 64 {
        break
      }
      O[tx] = s[63 - tx - k]
    }
)");
  expect_ordered(R"(    shared s: int32[64]
    for k in 0..4 {
      map i in 64 {
        s[i] = A[i] + k
      }
      if k + tx >= 64 {
        continue
      }
      O[tx] = s[63 - tx - k]
    }
)");
}

}  // namespace
}  // namespace tilewright::simulator
