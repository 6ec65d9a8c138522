// Which numbers of named barriers roles get: none that the program takes, whatever way it names them.
#include "passes/named_barriers.h"

#include <gtest/gtest.h>

#include "ir/parse.h"

namespace tilewright::passes {
namespace {

NamedBarriers numbers_in(const std::string& body, int64_t threads = 256) {
  const ir::TileProgram p = ir::parse(
      fmt::format("program p {{\n  param n: int32\n  launch l(bx: 1) threads(tx: {}) {{\n{}  }}\n}}\n", threads, body),
      "p.tile");
  return NamedBarriers(p.launches[0]);
}

std::string role(int64_t begin, int64_t end, const std::string& inside = "sync warp") {
  return fmt::format("    role {}..{} {{\n      {}\n    }}\n", begin, end, inside);
}

const std::string kTwo = role(0, 128) + role(128, 256);

TEST(NamedBarriers, EachRangeHasTwo) {
  const NamedBarriers all = numbers_in(kTwo + role(0, 128));
  EXPECT_EQ(all.between(0, 128), 1);
  EXPECT_EQ(all.between(128, 256), 2);
  EXPECT_EQ(all.within(0, 128), 15);
  EXPECT_EQ(all.within(128, 256), 14);
  EXPECT_EQ(all.between(0, 64), std::nullopt);
}

TEST(NamedBarriers, TheProgramsOwnAreTaken) {
  NamedBarriers named = numbers_in(role(0, 128, "sync named barrier=1 count=128") + role(128, 256));
  EXPECT_EQ(named.between(0, 128), 2);
  EXPECT_EQ(named.take(), 15);
  EXPECT_EQ(named.within(0, 128), 14);
  // Numbers that it computes, as far as they are known.
  EXPECT_EQ(numbers_in("    sync named barrier=tx // 128 + 1 count=128\n" + kTwo).between(0, 128), 3);
  EXPECT_EQ(
      numbers_in("    for k in 0..4 {\n      sync named barrier=k % 2 + 14 count=256\n    }\n" + kTwo).within(0, 128),
      13);
  NamedBarriers unknown = numbers_in("    sync named barrier=n count=256\n" + kTwo);
  EXPECT_EQ(unknown.between(0, 128), std::nullopt);
  EXPECT_EQ(unknown.take(), std::nullopt);
}

TEST(NamedBarriers, OneForBothWhereThereAreNotTwo) {
  std::string roles;
  for (int64_t i = 0; i < 15; ++i) roles += role(64 * i, 64 * i + 64);
  const NamedBarriers all = numbers_in(roles, 960);
  for (int64_t i = 0; i < 15; ++i) {
    EXPECT_EQ(all.between(64 * i, 64 * i + 64), i + 1);
    EXPECT_EQ(all.within(64 * i, 64 * i + 64), i + 1);
  }
}

TEST(NamedBarriers, WarpsTakeNoneWhereTheyAreFew) {
  std::string roles;
  for (int64_t i = 0; i < 16; ++i) roles += role(32 * i, 32 * i + 32);
  const NamedBarriers all = numbers_in(roles + role(512, 640), 640);
  EXPECT_EQ(all.between(0, 32), std::nullopt);
  EXPECT_EQ(all.between(512, 640), 1);
}

}  // namespace
}  // namespace tilewright::passes
