// Loop programs before and after fuse_loops(), stream_stores(), prefetch_rows() and transpose_tiles(): text in, text
// out.
#include "passes/loops/fuse_loops.h"

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/loops/prefetch_rows.h"
#include "passes/loops/stream_stores.h"
#include "passes/loops/transpose_tiles.h"

namespace tilewright::passes {
namespace {

std::string around(const std::string& buffers, const std::string& body) {
  return "loop program p {\n  param X: float32[64, 64]\n  param Y: float32[64, 64]\n" +
         std::string("  launch p(bx: 4) threads(tx: 32) {\n") + buffers + "    for block: int64 in 0..4 grid {\n" +
         body + "    }\n  }\n}\n";
}
std::string fused(const std::string& buffers, const std::string& body) {
  const ir::LoopProgram out = fuse_loops(ir::parse_loop_program(around(buffers, body), "p.tile"));
  ir::check_valid(out, "fuse_loops");
  return ir::print(out);
}
void expect_unchanged(const std::string& buffers, const std::string& body) {
  const ir::LoopProgram in = ir::parse_loop_program(around(buffers, body), "p.tile");
  EXPECT_EQ(fused(buffers, body), ir::print(in));
}

TEST(FuseLoops, CopyMapCopyIsOneLoopWithAScalar) {
  EXPECT_EQ(fused("    shared t: float32[16, 64]\n",
                  R"(      for i: int64 in 0..16 {
        for j: int64 in 0..64 vectorized {
          t[i, j] = X[block * 16 + i, j]
        }
      }
      for m in 0..16 {
        for n in 0..64 vectorized {
          t[int64(m), int64(n)] = t[int64(m), int64(n)] * 2.0
        }
      }
      for i_1: int64 in 0..16 {
        for j_1: int64 in 0..64 vectorized {
          Y[block * 16 + i_1, j_1] = t[i_1, j_1]
        }
      }
)"),
            around("    local t: float32\n",
                   R"(      for i: int64 in 0..16 {
        for j: int64 in 0..64 vectorized {
          t = X[block * 16 + i, j]
          t = t * 2.0
          Y[block * 16 + i, j] = t
        }
      }
)"));
}

TEST(FuseLoops, AVectorizedLoopIsCutToTheChunksOfAReduction) {
  const std::string out = fused("    shared t: float32[64]\n    local lanes: float32[16]\n",
                                R"(      for j: int64 in 0..64 vectorized {
        t[j] = X[block, j]
      }
      for lane: int64 in 0..16 vectorized {
        lanes[lane] = 0.0
      }
      for chunk: int64 in 0..4 {
        for lane_1: int64 in 0..16 vectorized {
          lanes[lane_1] = lanes[lane_1] + t[chunk * 16 + lane_1]
        }
      }
      Y[block, int64(0)] = lanes[int64(0)] + t[int64(5)]
)");
  EXPECT_NE(out.find("t[chunk * 16 + lane] = X[block, chunk * 16 + lane]\n          lanes[lane] = lanes[lane] + "),
            out.npos)
      << out;
  EXPECT_EQ(out.find("for j:"), out.npos) << out;
}

// The last element that is stored, where only its own iteration reads it; the rest of the tile is still read from.
std::string last_stored(const std::string& behind) {
  return fused("    shared t: float32[64]\n    shared u: float32[64]\n    local lanes: float32[16]\n",
               R"(      for j: int64 in 0..64 vectorized {
        t[j] = X[block, j]
      }
      for lane: int64 in 0..16 vectorized {
        lanes[lane] = t[lane + 3]
      }
      for j_1: int64 in 0..64 vectorized {
        t[j_1] = t[j_1] * lanes[int64(0)]
      }
      for j_2: int64 in 0..64 vectorized {
        Y[block, j_2] = t[j_2]
      }
)" + behind);
}
TEST(FuseLoops, WhatIsStoredLastAndReadAtOnceIsAName) {
  const std::string out = last_stored("");
  EXPECT_NE(out.find("        t_1: float32 = t[j_1] * lanes[int64(0)]\n        Y[block, j_1] = t_1\n"), out.npos)
      << out;
}
// By chunks of lanes, in a loop that writes the tile anew each time.
TEST(FuseLoops, ALastStoreByChunksIsAName) {
  const std::string out =
      fused("    shared t: float32[64]\n    local lanes: float32[16]\n", R"(      for k: int64 in 0..8 {
        for j: int64 in 0..64 vectorized {
          t[j] = X[k, j]
        }
        for lane: int64 in 0..16 vectorized {
          lanes[lane] = t[lane + 3]
        }
        for chunk: int64 in 0..4 {
          for lane_1: int64 in 0..16 vectorized {
            t[chunk * 16 + lane_1] = t[chunk * 16 + lane_1] * 2.0
            lanes[lane_1] = lanes[lane_1] + t[chunk * 16 + lane_1]
          }
        }
        Y[k, int64(0)] = lanes[int64(5)]
      }
)");
  EXPECT_NE(out.find("t_1: float32 = t[chunk * 16 + lane_1] * 2.0\n"), out.npos) << out;
}
TEST(FuseLoops, WhatIsReadLaterIsStored) {
  const std::string again = last_stored("      Y[block, int64(0)] = t[int64(9)]\n");
  EXPECT_NE(again.find("t[j_1] = t[j_1] * lanes[int64(0)]"), again.npos) << again;
  // By the next iteration of a loop around it.
  const std::string around = fused("    shared t: float32[64]\n", R"(      for j: int64 in 0..64 vectorized {
        t[j] = 0.0
      }
      for k: int64 in 0..8 {
        for j_1: int64 in 0..64 vectorized {
          t[j_1] = t[j_1] + X[k, j_1]
          Y[k, j_1] = t[j_1]
        }
      }
)");
  EXPECT_NE(around.find("t[j_1] = t[j_1] + X[k, j_1]"), around.npos) << around;
}
TEST(FuseLoops, ATileThatIsReadAfterwardsKeepsItsRows) {
  const std::string out = fused("    shared t: float32[16]\n",
                                R"(      for i: int64 in 0..16 vectorized {
        t[i] = X[block, i]
      }
      for j: int64 in 0..16 vectorized {
        Y[block, j] = t[j]
      }
      for k: int64 in 0..16 vectorized {
        Y[block, k + 16] = t[15 - k]
      }
)");
  EXPECT_NE(out.find("shared t: float32[16]"), out.npos) << out;
  EXPECT_NE(out.find("t[i] = X[block, i]\n        Y[block, i] = t[i]\n"), out.npos) << out;
}

TEST(FuseLoops, ReadingAnotherIterationsElementKeepsLoopsApart) {
  for (const char* index : {"j + 1", "15 - j", "j // 2", "int64(0)"})
    expect_unchanged("    shared t: float32[17]\n", std::string(R"(      for i: int64 in 0..16 vectorized {
        t[i] = X[block, i]
      }
      for j: int64 in 0..16 vectorized {
        Y[block, j] = t[)") + index + "]\n      }\n");
}

TEST(FuseLoops, TransposingKeepsLoopsApart) {
  expect_unchanged("    shared t: float32[16, 16]\n", R"(      for i: int64 in 0..16 {
        for j: int64 in 0..16 vectorized {
          t[i, j] = X[i, j]
        }
      }
      for i_1: int64 in 0..16 {
        for j_1: int64 in 0..16 vectorized {
          Y[i_1, j_1] = t[j_1, i_1]
        }
      }
)");
}

TEST(FuseLoops, DifferentRangesStayApart) {
  expect_unchanged("    shared t: float32[16]\n", R"(      for i: int64 in 0..16 vectorized {
        t[i] = X[block, i]
      }
      for j: int64 in 0..15 vectorized {
        Y[block, j] = t[j]
      }
)");
}

TEST(FuseLoops, WhatStandsBetweenAndDependsOnBothKeepsThemApart) {
  expect_unchanged("    shared t: float32[16]\n", R"(      for i: int64 in 0..16 vectorized {
        t[i] = X[block, i]
      }
      t[int64(3)] = 1.0
      for j: int64 in 0..16 vectorized {
        Y[block, j] = t[j]
      }
)");
}

TEST(FuseLoops, GlobalMemoryOfAnotherIterationKeepsThemApart) {
  expect_unchanged("    shared t: float32[16]\n", R"(      for i: int64 in 0..16 vectorized {
        t[i] = X[block, i]
        Y[block, i] = X[block, i + 1]
      }
      for j: int64 in 0..16 vectorized {
        X[block, j] = t[j]
      }
)");
}

TEST(FuseLoops, APrintStaysWhereItIs) {
  expect_unchanged("    shared t: float32[16]\n", R"(      for i: int64 in 0..16 {
        t[i] = X[block, i]
        print message="x" values=[t[i]]
      }
      for j: int64 in 0..16 {
        Y[block, j] = t[j]
      }
)");
}

// The total of the iteration before is read in the next: the element may not become a scalar of one iteration.
TEST(FuseLoops, ValuesThatAnOuterLoopCarriesStayInTheTile) {
  const std::string out = fused("    shared t: float32[16]\n",
                                R"(      for i: int64 in 0..16 vectorized {
        t[i] = 0.0
      }
      for k: int64 in 0..4 {
        for j: int64 in 0..16 vectorized {
          t[j] = t[j] + X[k, j]
        }
        for m: int64 in 0..16 vectorized {
          Y[k, m] = t[m]
        }
      }
)");
  EXPECT_NE(out.find("shared t: float32[16]"), out.npos) << out;
  EXPECT_NE(out.find("t[j] = t[j] + X[k, j]\n          Y[k, j] = t[j]\n"), out.npos) << out;
}

std::string streamed(const std::string& columns, const std::string& extent) {
  const std::string text =
      "loop program p {\n  symbol n: int32\n  param X: float32[4096, " + columns + "]\n  param Y: float32[4096, " +
      columns +
      "]\n  launch p(bx: 4) threads(tx: 32) {\n    for block: int64 in 0..4 grid {\n      for j: int64 "
      "in 0.." +
      extent + " vectorized {\n        Y[block, j] = X[block, j] + 1.0\n      }\n    }\n  }\n}\n";
  const ir::LoopProgram out = stream_stores(ir::parse_loop_program(text, "p.tile"));
  ir::check_valid(out, "stream_stores");
  return ir::print(out);
}

TEST(StreamStores, RowsOfALargeTensorByChunksOfLines) {
  const std::string out = streamed("4096", "2500");
  EXPECT_NE(out.find("for chunk: int64 in 0..39 {\n        for lane: int64 in 0..64 vectorized"), out.npos) << out;
  EXPECT_NE(out.find("stream from=row to=Y[block, chunk * 64 : int64(64)] large=true done=chunk * 64"), out.npos)
      << out;
  EXPECT_NE(out.find("in 0..4 vectorized"), out.npos) << out;
  EXPECT_NE(out.find("stream from=row to=Y[block, int64(0) : int64(2500)] large=true done=int64(2496) rest=int64(4)"),
            out.npos)
      << out;
}
TEST(StreamStores, ASmallTensorIsStoredTo) { EXPECT_EQ(streamed("1024", "1024").find("stream"), std::string::npos); }
TEST(StreamStores, OfAnUnknownSizeTheCallDecides) {
  const std::string out = streamed("n", "512");
  EXPECT_NE(out.find("33554432"), out.npos) << out;
}

std::string prefetched(const std::string& body) {
  const std::string text =
      "loop program p {\n  param X: float32[4096, 4096]\n  param Y: float32[4096, 4096]\n  launch p(bx: 4) "
      "threads(tx: 32) {\n    shared t: float32[16, 512]\n    for block: int64 in 0..4 grid {\n      by: int32 = "
      "int32(block // 2)\n" +
      body + "    }\n  }\n}\n";
  const ir::LoopProgram out = prefetch_rows(stream_stores(ir::parse_loop_program(text, "p.tile")));
  ir::check_valid(out, "prefetch_rows");
  return ir::print(out);
}
size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// By the loop that neither reads nor writes global memory; and a line of the page that will be stored to.
TEST(PrefetchRows, TheNextRowComesWhileThisOneIsComputed) {
  const std::string out = prefetched(R"(      for i: int64 in 0..16 {
        for j: int64 in 0..512 vectorized {
          t[i, j] = X[int64(by) * 16 + i, j]
        }
        for c: int64 in 0..8 {
          for l: int64 in 0..64 vectorized {
            t[i, c * 64 + l] = t[i, c * 64 + l] * 2.0
          }
        }
        for m: int64 in 0..512 vectorized {
          Y[int64(by) * 16 + i, m] = t[i, m]
        }
      }
)");
  EXPECT_NE(out.find("select(i + 1 < 16, address(X[int64(by) * 16 + i + 1, int64(0)]), "
                     "address(X[int64(int32((block + 1) // 2)) * 16, int64(0)]))"),
            out.npos)
      << out;
  EXPECT_NE(out.find(R"(        for c: int64 in 0..8 {
          prefetch address=next offset=c * 256 bytes=256 nearest=true)"),
            out.npos)
      << out;
  EXPECT_NE(out.find("prefetch address=next_1 offset=c * 256 bytes=64 nearest=true"), out.npos) << out;
  EXPECT_EQ(count_of(out, "prefetch address"), 2u) << out;
}
// Of rows too short to be told ahead, the next block's; behind the last loop over them.
TEST(PrefetchRows, OfShortRowsTheNextBlocks) {
  const std::string out = prefetched(R"(      for i: int64 in 0..16 {
        for j: int64 in 0..64 vectorized {
          row: int32 = by * 16 + int32(i)
          column: int32 = by * 64 + int32(j)
          t[i, j] = X[int64(row), int64(column)]
        }
      }
      for m: int64 in 0..16 {
        for n: int64 in 0..64 vectorized {
          t[m, n] = t[m, n] * 2.0
        }
      }
)");
  EXPECT_EQ(count_of(out, "prefetch address"), 1u) << out;
  const size_t at = out.find("prefetch address");
  EXPECT_GT(at, out.find("t[m, n] = t[m, n] * 2.0")) << out;
  EXPECT_NE(out.substr(at, 120).find("block + 1"), out.npos) << out;
  EXPECT_NE(out.find("bytes=256 nearest=true"), out.npos) << out;
}
// Of a tensor at an address that is looked up in an iteration, nobody knows the next iteration's place; of one at an
// address that stays, everybody does.
TEST(PrefetchRows, TensorsAtAddressesThatAreLookedUp) {
  const std::string look_up = "a: pointer = P[int64(by)]\n", tensor = "global A: float32[64, 4096] address=a\n";
  const auto text = [&](const std::string& outside, const std::string& inside) {
    return "loop program p {\n  param P: pointer[4]\n  param X: float32[4096, 4096]\n  launch p(bx: 4) threads(tx: 32) "
           "{\n"
           "    shared t: float32[8, 512]\n    for block: int64 in 0..4 grid {\n      by: int32 = int32(block // 2)\n" +
           outside +
           "      for i: int64 in 0..8 {\n        for m: int64 in 0..8 {\n          for n: int64 in 0..512 vectorized "
           "{\n            t[m, n] = t[m, n] * 2.0\n          }\n        }\n" +
           inside +
           "        for j: int64 in 0..512 vectorized {\n          t[int64(0), j] = A[i, j]\n        }\n      }\n    "
           "}\n  "
           "}\n}\n";
  };
  for (const bool stays : {false, true}) {
    const ir::LoopProgram out = prefetch_rows(
        ir::parse_loop_program(stays ? text(look_up + tensor, "") : text("", look_up + tensor), "p.tile"));
    ir::check_valid(out, "prefetch_rows");
    EXPECT_EQ(count_of(ir::print(out), "prefetch address"), stays ? 1u : 0u) << ir::print(out);
  }
}
// And those of the next block that are stored to as they are; what is stored in a run of memory is not.
TEST(PrefetchRows, OfRowsThatAreStoredToTheNextBlocks) {
  const std::string before = R"(      for i: int64 in 0..16 {
        for j: int64 in 0..64 vectorized {
          t[i, j] = X[int64(by) * 16 + i, int64(by) * 64 + j]
        }
      }
      for m: int64 in 0..16 {
        for n: int64 in 0..32 vectorized {
          Z[)";
  const auto with = [&](const std::string& place) {
    const std::string text =
        "loop program p {\n  param X: float32[4096, 4096]\n  param Z: float32[256, 512]\n  launch p(bx: 4) "
        "threads(tx: 32) {\n    shared t: float32[16, 512]\n    for block: int64 in 0..4 grid {\n      by: int32 = "
        "int32(block // 2)\n" +
        before + place + "] = t[m, n]\n        }\n      }\n    }\n  }\n}\n";
    const ir::LoopProgram out = prefetch_rows(ir::parse_loop_program(text, "p.tile"));
    ir::check_valid(out, "prefetch_rows");
    return ir::print(out);
  };
  const std::string rows = with("m, int64(by) * 32 + n");
  EXPECT_EQ(count_of(rows, "prefetch address"), 2u) << rows;
  EXPECT_NE(rows.find("address(Z[m, int64(int32((block + 1) // 2)) * 32])"), rows.npos) << rows;
  const std::string run = with("int64(by), m * 32 + n");
  EXPECT_EQ(count_of(run, "prefetch address"), 1u) << run;
}
// A row that goes by parts of chunks: while its last loop writes, for what that loop reads again is near.
TEST(PrefetchRows, OfARowByParts) {
  const std::string out = prefetched(R"(      for i: int64 in 0..16 {
        for part: int64 in 0..8 {
          for c: int64 in 0..2 {
            for l: int64 in 0..64 vectorized {
              t[i, part] = t[i, part] + X[int64(by) * 16 + i, part * 128 + c * 64 + l]
            }
          }
        }
        for other: int64 in 0..8 {
          for c2: int64 in 0..2 {
            for m: int64 in 0..64 vectorized {
              t[i, c2 * 64 + m] = X[int64(by) * 16 + i, other * 128 + c2 * 64 + m] * t[i, other]
            }
          }
        }
      }
)");
  const size_t at = out.find("prefetch address=next offset=other * 512 bytes=512 nearest=true");
  EXPECT_NE(at, out.npos) << out;
  EXPECT_EQ(count_of(out, "prefetch address"), 1u) << out;
}
// What a block reads a second time is near: the next block's rows come in its place, to the second cache.
TEST(PrefetchRows, OfRowsThatAreReadAgainTheNextBlocks) {
  auto pass = [](const std::string& names, const std::string& place) {
    const auto& [k, i, c, l] = std::array{names + "k", names + "i", names + "c", names + "l"};
    return "      for " + k + ": int64 in 0..4 {\n        for " + i + ": int64 in 0..16 {\n          for " + c +
           ": int64 in 0..4 {\n            for " + l + ": int64 in 0..64 vectorized {\n              t[" + i + ", " +
           c + " * 64 + " + l + "] = X[int64(by) * 16 + " + i + ", " + k + " * 256 + " + c + " * 64 + " + l + place +
           "]\n            }\n          }\n          t[" + i + ", int64(0)] = 0.0\n        }\n      }\n";
  };
  const std::string again = prefetched(pass("a", "") + pass("b", ""));
  EXPECT_NE(again.find("address(X[int64(by) * 16 + ai + 1, ak * 256])"), again.npos) << again;
  EXPECT_NE(again.find("address(X[int64(int32((block + 1) // 2)) * 16 + bi, bk * 256])"), again.npos) << again;
  EXPECT_NE(again.find("offset=bc * 256 bytes=256\n"), again.npos) << again;
  const std::string other = prefetched(pass("a", "") + pass("b", " + 1024"));
  EXPECT_EQ(count_of(other, "prefetch address"), count_of(other, "nearest=true")) << other;
}
// As many lines as the row can have.
TEST(PrefetchRows, OfRowsThatMayEndEarly) {
  const std::string out = prefetched(R"(      for i: int64 in 0..16 {
        for j: int64 in 0..min(int64(by) * 64, int64(512)) vectorized {
          t[i, j] = X[int64(by) * 16 + i, j]
        }
        for c: int64 in 0..8 {
          for l: int64 in 0..64 vectorized {
            t[i, c * 64 + l] = t[i, c * 64 + l] * 2.0
          }
        }
      }
)");
  EXPECT_NE(out.find("prefetch address=next offset=c * 256 bytes=256 nearest=true"), out.npos) << out;
}
// In a loop over tiles the next tile's; but not the parts of one run of memory.
TEST(PrefetchRows, OfATileTheNextTiles) {
  const std::string before = "      for k in 0..8 {\n        first: int32 = k * 16\n        for i: int64 in 0..16 {\n";
  const std::string after = R"(          }
        }
        t[int64(0), int64(0)] = 0.0
      }
)";
  const std::string rows = prefetched(before + R"(          for j: int64 in 0..64 vectorized {
            t[i, j] = X[int64(first) + i, j]
)" + after);
  EXPECT_NE(rows.find("address(X[int64(int32(int64(k) + 1) * 16) + i, int64(0)])"), rows.npos) << rows;
  EXPECT_NE(rows.find("bytes=256 nearest=true"), rows.npos) << rows;
  const std::string large = prefetched(before + R"(          for j: int64 in 0..256 vectorized {
            t[i, j] = X[int64(first) + i, j]
)" + after);
  EXPECT_NE(large.find("bytes=1024\n"), large.npos) << large;  // half of the nearest cache
  const std::string run = prefetched(before + R"(          for j: int64 in 0..64 vectorized {
            t[int64(0), i * 64 + j] = X[int64(first), i * 64 + j]
)" + after);
  EXPECT_EQ(count_of(run, "prefetch address"), 0u) << run;
}
// Lanes that take elements of two rows, as panels of pairs have them.
TEST(PrefetchRows, OfRowsThatMeetInPairsBoth) {
  const std::string out = prefetched(R"(      for k in 0..8 {
        first: int32 = k * 16
        for i: int64 in 0..8 {
          for c: int64 in 0..4 {
            for l: int64 in 0..32 vectorized {
              for part: int64 in 0..2 unroll {
                t[c, i * 64 + l * 2 + part] = X[int64(first) + i * 2 + part, c * 32 + l]
              }
            }
          }
        }
        t[int64(0), int64(0)] = 0.0
      }
)");
  EXPECT_EQ(count_of(out, "prefetch address"), 2u) << out;
  EXPECT_NE(out.find("address(X[int64(int32(int64(k) + 1) * 16) + i * 2, int64(0)])"), out.npos) << out;
  EXPECT_NE(out.find("address(X[int64(int32(int64(k) + 1) * 16) + i * 2 + 1, int64(0)])"), out.npos) << out;
  EXPECT_EQ(count_of(out, "bytes=512 nearest=true"), 2u) << out;
}
TEST(PrefetchRows, OfABoxThatIsTransposedTheNextBlocks) {
  const std::string body = R"(      by: int32 = int32(block // 2)
      for i: int64 in 0..16 {
        for j: int64 in 0..16 vectorized {
          Y[i, j] = X[j, int64(by) * 16 + i]
        }
      }
)";
  const ir::LoopProgram out = prefetch_rows(transpose_tiles(ir::parse_loop_program(around("", body), "p.tile")));
  ir::check_valid(out, "prefetch_rows");
  const std::string text = ir::print(out);
  EXPECT_NE(text.find(" next=X[int64(0), int64(int32((block + 1) // 2)) * 16]\n"), text.npos) << text;
}
TEST(PrefetchRows, WhatIsReadThroughAnIndexOrStaysInPlaceIsNot) {
  const std::string out = prefetched(R"(      for i: int64 in 0..16 {
        for j: int64 in 0..512 vectorized {
          t[i, j] = X[int64(by), j] + X[int64(X[i, int64(0)]), j]
        }
        for c: int64 in 0..8 {
          for l: int64 in 0..64 vectorized {
            t[i, c * 64 + l] = t[i, c * 64 + l] * 2.0
          }
        }
      }
)");
  EXPECT_EQ(count_of(out, "prefetch address"), 0u) << out;
}

std::string transposed(const std::string& store, const std::string& after = "") {
  const std::string body = R"(      for i: int64 in 0..32 {
        for j: int64 in 0..16 vectorized {
          t[i, j] = X[block * 4 + i, j + 16]
        }
      }
      for i_1: int64 in 0..16 {
        for j_1: int64 in 0..32 vectorized {
          )" + store + "\n        }\n      }\n" +
                           after;
  const ir::LoopProgram out =
      transpose_tiles(ir::parse_loop_program(around("    shared t: float32[32, 16]\n", body), "p.tile"));
  ir::check_valid(out, "transpose_tiles");
  return ir::print(out);
}

TEST(TransposeTiles, GlobalMemoryToGlobalMemoryPassesOverTheTile) {
  const std::string out = transposed("Y[i_1, j_1 + block] = t[j_1, i_1]");
  EXPECT_EQ(out.find("for i"), out.npos) << out;
  EXPECT_NE(out.find("transpose from=(first=X[block * 4, int64(16)], along=1) to=(first=Y[int64(0), block], along=1) "
                     "rows=16 columns=32 large=false\n"),
            out.npos)
      << out;
}
TEST(TransposeTiles, ATileThatIsReadAgainIsKept) {
  const std::string out =
      transposed("Y[i_1, j_1] = t[j_1, i_1]", "      Y[int64(0), int64(63)] = t[int64(0), int64(0)]\n");
  EXPECT_NE(out.find("for i"), out.npos) << out;
  EXPECT_NE(out.find("transpose from=(first=t[int64(0), int64(0)]"), out.npos) << out;
}
TEST(TransposeTiles, WhatIsComputedOfColumnsIsTransposedBehind) {
  const std::string text = transposed("Y[i_1, j_1] = t[j_1, i_1] + 1.0");
  EXPECT_NE(text.find("] = t[j_1, i_1] + 1.0"), std::string::npos) << text;
  EXPECT_NE(text.find("transpose from=(first=columns["), std::string::npos) << text;
}
TEST(TransposeTiles, WhatDoesNotTransposeStays) {
  for (const char* store : {"Y[i_1, j_1] = t[i_1, j_1] + 1.0", "Y[j_1, i_1] = t[j_1, i_1]",
                            "Y[i_1, j_1] = t[j_1, int64(0)]", "Y[i_1, j_1] = t[i_1 + j_1, i_1]"})
    EXPECT_EQ(transposed(store).find("transpose"), std::string::npos) << store;
}

}  // namespace
}  // namespace tilewright::passes
