// Reductions and scans of one of several tiles: a region may have extents of 1 in front.
#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/verify.h"
#include "tilewright/compile.h"

namespace tilewright {
namespace {

constexpr const char* kOfOneTile = R"(program p {
  param A: int32[3, 4, 8]
  param R: int32[4]
  param K: int32[1, 4]
  param C: int32[8]
  param S: int32[4, 8]
  launch l(bx: 1) threads(tx: 32) {
    shared a: int32[3, 4, 8]
    fragment r: int32[4]
    fragment k: int32[4, 1]
    shared c: int32[1, 8]
    shared s: int32[2, 4, 8]
    shared last: int32[4, 8]
    copy from=A to=a
    fill to=r value=100
    reduce sum from=a[1 : 1, 0 : 4, 0 : 8] to=r dim=2 clear=false
    reduce max from=a[2 : 1, 0 : 4, 0 : 8] to=k dim=2
    reduce min from=a[0 : 1, 0 : 4, 0 : 8] to=c dim=1
    scan sum from=a[2 : 1, 0 : 4, 0 : 8] to=s[1 : 1, 0 : 4, 0 : 8] dim=2
    scan max from=s[1 : 1, 0 : 4, 0 : 8] to=last dim=1 reverse=true
    copy from=r to=R
    copy from=k to=K[0, 0 : 4]
    copy from=c[0, 0 : 8] to=C
    copy from=last to=S
  }
}
)";

TEST(ReduceRegions, ExtentsOfOneInFrontCountForNothing) {
  const ir::TileProgram tiles = ir::parse(kOfOneTile, "regions.tile");
  ir::check_valid(tiles);
  const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
  const NDArray a = NDArray::zeros({3, 4, 8}, i32);
  const auto at = [](int64_t t, int64_t i, int64_t j) { return (t * 37 + i * 11 + j * 5) % 23 - 9; };
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < 8; ++j) a.set_int({t, i, j}, at(t, i, j));
  const struct {
    Engine engine;
    const char* arch;
  } engines[] = {
      {Engine::Interpreter, ""}, {Engine::Cpu, ""}, {Engine::Simulator, "sm_80"}, {Engine::Simulator, "sm_90a"}};
  for (const auto& [engine, arch] : engines) {
    const NDArray r = NDArray::zeros({4}, i32), k = NDArray::zeros({1, 4}, i32), c = NDArray::zeros({8}, i32),
                  s = NDArray::zeros({4, 8}, i32);
    compile(program, {.engine = engine, .arch = arch})(a, r, k, c, s);
    for (int64_t i = 0; i < 4; ++i) {
      int64_t total = 100, most = -100;
      for (int64_t j = 0; j < 8; ++j) total += at(1, i, j), most = std::max(most, at(2, i, j));
      EXPECT_EQ(r.to_ints()[static_cast<size_t>(i)], total);
      EXPECT_EQ(k.to_ints()[static_cast<size_t>(i)], most);
      for (int64_t j = 0; j < 8; ++j) {
        int64_t largest = INT64_MIN;
        for (int64_t row = i; row < 4; ++row) {
          int64_t prefix = 0;
          for (int64_t x = 0; x <= j; ++x) prefix += at(2, row, x);
          largest = std::max(largest, prefix);
        }
        EXPECT_EQ(s.to_ints()[static_cast<size_t>(i * 8 + j)], largest);
      }
    }
    for (int64_t j = 0; j < 8; ++j)
      EXPECT_EQ(c.to_ints()[static_cast<size_t>(j)], std::min({at(0, 0, j), at(0, 1, j), at(0, 2, j), at(0, 3, j)}));
  }
}

TEST(ReduceRegions, OthersAreRefused) {
  const auto refused = [](const std::string& from, const std::string& to) {
    std::string text = kOfOneTile;
    const size_t at = text.find(from);
    text.replace(at, from.size(), to);
    try {
      ir::check_valid(ir::parse(text, "regions.tile"));
    } catch (const Error& e) {
      return e.diagnostic().code_text();
    }
    return std::string("valid");
  };
  const std::string sum = "from=a[1 : 1, 0 : 4, 0 : 8] to=r dim=2", scan = "s[1 : 1, 0 : 4, 0 : 8] to=last dim=1";
  EXPECT_EQ(refused(sum, sum), "valid");
  EXPECT_EQ(refused(sum, "from=a[1 : 2, 0 : 4, 0 : 8] to=r dim=2").substr(0, 3), "TW3");
  EXPECT_EQ(refused(sum, "from=a[1 : 1, 0 : 4, 0 : 8] to=r dim=1").substr(0, 3), "TW3");
  EXPECT_EQ(refused(scan, "s[0 : 2, 0 : 4, 0 : 8] to=last dim=1").substr(0, 3), "TW3");
  EXPECT_EQ(refused(scan, "s[1 : 1, 0 : 4, 0 : 8] to=last dim=0").substr(0, 3), "TW3");
}

}  // namespace
}  // namespace tilewright
