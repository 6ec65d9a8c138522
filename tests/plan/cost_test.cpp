// What a program will cost on a machine: predictions as JSON, machines as data.
#include "tilewright/cost.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tilewright/diagnostic.h"
#include "tilewright/program.h"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;

// A product of square matrices of so many rows, "n" where the call says.
Program product(const std::string& rows) {
  const std::string symbol = rows == "n" ? "  symbol n: int32\n" : "";
  return parse_program(
      fmt::format("program product {{\n{1}  param A: bfloat16[{0}, 4096]\n  param B: bfloat16[4096, 4096]\n"
                  "  param C: bfloat16[{0}, 4096]\n"
                  "  launch product(bx: 16, by: ({0} + 127) // 128) threads(tx: 256) {{\n"
                  "    shared As: bfloat16[128, 64]\n    shared Bs: bfloat16[64, 256]\n"
                  "    fragment acc: float32[128, 256]\n    fill to=acc value=0.0\n"
                  "    for k in 0..64 pipelined(stages=3) {{\n"
                  "      copy from=A[by * 128 : 128, k * 64 : 64] to=As\n"
                  "      copy from=B[k * 64 : 64, bx * 256 : 256] to=Bs\n      gemm a=As b=Bs c=acc\n    }}\n"
                  "    copy from=acc to=C[by * 128 : 128, bx * 256 : 256]\n  }}\n}}\n",
                  rows, symbol),
      "product.tile");
}

Json on(const std::string& machine, const std::map<std::string, int64_t>& values = {},
        const std::string& rows = "4096") {
  return Json::parse(CostModel(product(rows), machine).prediction(values));
}

std::string refusal(const std::string& machine) {
  try {
    CostModel(product("4096"), machine);
  } catch (const CompileError& e) {
    return e.what();
  }
  return "";
}

TEST(Cost, SaysWhatItIsMadeOf) {
  const Json found = on("H200");
  EXPECT_EQ(found["machine"]["name"], "H200");
  ASSERT_EQ(found["launches"].size(), 1u);
  const Json& launch = found["launches"][0];
  EXPECT_EQ(launch["us"], found["us"]);
  EXPECT_EQ(launch["limit"], "matrix");
  EXPECT_EQ(launch["tiles"], 512);
  EXPECT_EQ(launch["waves"], 4);
  EXPECT_NEAR(launch["last_wave"], (512 - 3 * 132) / 132.0, 1e-9);
  for (const auto& [unit, share] : launch["utilization"].items()) {
    EXPECT_GE(share, 0) << unit;
    EXPECT_LE(share, 1) << unit;
  }
  // 4 waves of 65536 clocks would be all of it, but for tiles that the last wave lacks and what stands around them.
  EXPECT_NEAR(launch["utilization"]["matrix"], 512 * 65536 / (132 * 1600 * double{launch["us"]}), 1e-9);
  EXPECT_EQ(CostModel(product("4096"), "H200").microseconds({}), std::optional<double>(found["us"]));
}

TEST(Cost, OfSymbolsNeedsTheirValues) {
  const Json unknown = on("H200", {}, "n");
  EXPECT_TRUE(unknown["us"].is_null());
  EXPECT_EQ(unknown["unknown"], Json::array({"n"}));
  EXPECT_TRUE(unknown["launches"].empty());
  EXPECT_EQ(on("H200", {{"n", 4096}}, "n")["us"], on("H200")["us"]);
}

TEST(Cost, FollowsTheMachinesNumbers) {
  const double own = on("H200")["us"];
  EXPECT_EQ(on("sm_90a")["us"], own);
  EXPECT_EQ(on("h200")["us"], own);
  EXPECT_GT(double{on("H200 multiply_adds=1024")["us"]}, 1.8 * own);
  EXPECT_GT(double{on("H200 memory_bytes=100000")["us"]}, 4 * own);
  EXPECT_EQ(on("H200 memory_bytes=4.2e6")["us"], own);
  // Twice the multiprocessors take half the waves: the plan is made for them.
  EXPECT_EQ(on("H200 multiprocessors=264")["launches"][0]["waves"], 2);
  EXPECT_EQ(on("H200 multiprocessors=264")["launches"][0]["plan"][1], "work persistent blocks=264");
  for (const Json& machine : Json::parse(machines_json())) {
    if (machine["name"] == "L40S") continue;  // its blocks have less shared memory
    EXPECT_GT(double{on(machine["name"])["us"]}, 2 * 2048.0 * 4096 * 4096 * 4096 / 2048 / 2.6e9) << machine["name"];
  }
}

TEST(Cost, RefusesWhatIsNoMachine) {
  EXPECT_NE(refusal("H300").find("TW1080"), std::string::npos);
  EXPECT_NE(refusal("H300").find("it is one of H200, H100, A100, L40S, B200"), std::string::npos);
  EXPECT_NE(refusal("").find("there is no machine ''"), std::string::npos);
  EXPECT_NE(refusal("sm_70").find("TW8201"), std::string::npos);
  EXPECT_NE(refusal("H200 speed=3").find("a machine has no number 'speed'"), std::string::npos);
  EXPECT_NE(refusal("H200 clock").find("'clock' gives clock no positive number"), std::string::npos);
  EXPECT_NE(refusal("H200 clock=fast").find("clock=1600 is what H200 has"), std::string::npos);
}

}  // namespace
}  // namespace tilewright
