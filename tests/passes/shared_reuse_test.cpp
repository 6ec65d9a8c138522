// Which shared buffers may lie over each other where one role uses up what others bring.
#include "passes/threads/shared_reuse.h"

#include <gtest/gtest.h>

#include "ir/parse.h"

namespace tilewright::passes {
namespace {

std::optional<Seam> early_to_late(const ir::ThreadProgram& p, RolesOf owner) {
  const auto named = [&](const char* name) {
    uint32_t i = 0;
    while (p.buffers[i].name != name) ++i;
    return ir::BufferId{i};
  };
  const NamedBarriers barriers(p.launches[0]);
  return SharedLives(p, p.launches[0], barriers, owner).seam(named("early"), named("late"));
}

// Where `late` begins over `early`, which a role uses before it, and the other as `other` says.
std::optional<Seam> seam(const std::string& other, const std::string& use = " use=full") {
  const auto p = ir::with_level<ir::ThreadProgram>(ir::parse(
      "program p {\n  param A: float32[128]\n  param B: float32[256]\n  launch l(bx: 1) threads(tx: 256) {\n"
      "    shared early: float32[128]\n    shared late: float32[128]\n    barrier full: uint64[1] arrive=[1]" +
          use + "\n    role 0..128 {\n      wait barrier=full[0] parity=0\n      x: float32 = early[tx]\n" +
          "      late[tx] = x\n      B[tx] = late[127 - tx]\n    }\n    role 128..256 {\n      " + other +
          "\n    }\n  }\n}\n",
      "p.tile"));
  return early_to_late(p, RolesOf::Plan);
}

TEST(SharedReuse, WhatOthersOnlyFillIsUsedUp) {
  EXPECT_EQ(seam("copy from=A to=early completion=(barrier=full[0])"), (Seam{0, 2}));
}

TEST(SharedReuse, WhatOthersReadOrWriteUnheardStays) {
  EXPECT_EQ(seam("B[tx] = early[tx - 128]"), std::nullopt);
  EXPECT_EQ(seam("early[tx - 128] = 1.0"), std::nullopt);
  EXPECT_EQ(seam("copy from=A to=early completion=(barrier=full[0])", ""), std::nullopt);  // of no known use
}

TEST(SharedReuse, RolesSideBySideDoNotWaitForEachOther) {
  const auto p = ir::with_level<ir::ThreadProgram>(ir::parse(
      "program p {\n  param A: float32[128]\n  launch l(bx: 1) threads(tx: 256) {\n    shared early: float32[128]\n"
      "    shared late: float32[128]\n    role 0..128 {\n      early[tx] = A[tx]\n    }\n"
      "    role 128..256 {\n      late[tx - 128] = A[tx - 128]\n    }\n  }\n}\n",
      "p.tile"));
  EXPECT_EQ(early_to_late(p, RolesOf::Plan), std::nullopt);
}

// `early` and `late` in a loop of the one role that uses them, whose body is `turn`.
std::optional<Seam> seam_of_turns(const std::string& turn, RolesOf owner = RolesOf::TurnsOfTiles) {
  const auto p = ir::with_level<ir::ThreadProgram>(
      ir::parse("program p {\n  param A: float32[128]\n  param B: float32[128]\n  launch l(bx: 1) threads(tx: 256) {\n"
                "    shared early: float32[128]\n    shared late: float32[128]\n    role 0..128 {\n"
                "      for turn in 0..4 {\n        early[tx] = A[tx]\n" +
                    turn + "\n      }\n    }\n  }\n}\n",
                "p.tile"));
  return early_to_late(p, owner);
}

TEST(SharedReuse, TurnsOfTilesBeginWithNeither) {
  const std::string apart = "        x: float32 = early[tx]\n        late[tx] = x\n        B[tx] = late[tx]";
  EXPECT_EQ(seam_of_turns(apart), (Seam{.role = 0, .at = 0, .of_turn = 2}));
  EXPECT_EQ(seam_of_turns(apart, RolesOf::Plan), std::nullopt);  // a loop of the program may keep what it wrote
  EXPECT_EQ(seam_of_turns("        late[tx] = early[tx]\n        B[tx] = early[tx] + late[tx]"), std::nullopt);
}

}  // namespace
}  // namespace tilewright::passes
