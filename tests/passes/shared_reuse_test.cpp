// Which shared buffers may lie over each other where one role uses up what others bring.
#include "passes/threads/shared_reuse.h"

#include <gtest/gtest.h>

#include "ir/parse.h"

namespace tilewright::passes {
namespace {

// Where `late` begins over `early`, which a role uses before it, and the other as `other` says.
std::optional<Seam> seam(const std::string& other, const std::string& use = " use=full") {
  const auto p = ir::with_level<ir::ThreadProgram>(ir::parse(
      "program p {\n  param A: float32[128]\n  param B: float32[256]\n  launch l(bx: 1) threads(tx: 256) {\n"
      "    shared early: float32[128]\n    shared late: float32[128]\n    barrier full: uint64[1] arrive=[1]" +
          use + "\n    role 0..128 {\n      wait barrier=full[0] parity=0\n      x: float32 = early[tx]\n" +
          "      late[tx] = x\n      B[tx] = late[127 - tx]\n    }\n    role 128..256 {\n      " + other +
          "\n    }\n  }\n}\n",
      "p.tile"));
  const auto named = [&](const char* name) {
    uint32_t i = 0;
    while (p.buffers[i].name != name) ++i;
    return ir::BufferId{i};
  };
  const NamedBarriers barriers(p.launches[0]);
  return SharedLives(p, p.launches[0], barriers, true).seam(named("early"), named("late"));
}

TEST(SharedReuse, WhatOthersOnlyFillIsUsedUp) {
  EXPECT_EQ(seam("copy from=A to=early completion=(barrier=full[0])"), (Seam{0, 2}));
}

TEST(SharedReuse, WhatOthersReadOrWriteUnheardStays) {
  EXPECT_EQ(seam("B[tx] = early[tx - 128]"), std::nullopt);
  EXPECT_EQ(seam("early[tx - 128] = 1.0"), std::nullopt);
  EXPECT_EQ(seam("copy from=A to=early completion=(barrier=full[0])", ""), std::nullopt);  // of no known use
}

}  // namespace
}  // namespace tilewright::passes
