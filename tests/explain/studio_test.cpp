// What the page about a program is made of: texts with a place for each line, what passes changed, layouts, the
// sentence that says what bounds it.
#include "driver/studio.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "driver/explain.h"
#include "driver/headline.h"
#include "driver/pass_road.h"
#include "ir/parse.h"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;

// Steps of 32 are made wider for sm_90a, in tiles that the program has not.
std::string product(int64_t rows, const char* type = "float16") {
  return fmt::format(
      "program product {{\n  param A: {0}[{1}, 256]\n  param B: {0}[256, 256]\n  param C: {0}[{1}, 256]\n"
      "  launch product(bx: 2, by: {2}) threads(tx: 128) {{\n    shared A_s: {0}[128, 32]\n    shared B_s: {0}[32, "
      "128]\n"
      "    fragment C_l: float32[128, 128]\n    fill to=C_l value=0.0\n    for k in 0..8 pipelined(stages=2) {{\n"
      "      copy from=A[by * 128 : 128, k * 32 : 32] to=A_s\n      copy from=B[k * 32 : 32, bx * 128 : 128] to=B_s\n"
      "      gemm a=A_s b=B_s c=C_l\n    }}\n    copy from=C_l to=C[by * 128 : 128, bx * 128 : 128]\n  }}\n}}\n",
      type, rows, rows / 128);
}

Json studio(const std::string& text, const std::string& arch, const NamedValues& values = {}) {
  return Json::parse(studio_json(ir::parse(text, "product.tile"), values, arch));
}

size_t count_lines(const std::string& text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

const Json& text_of(const Json& page, const std::string& name) {
  for (const Json& text : page["texts"])
    if (text["name"] == name) return text;
  ADD_FAILURE() << "no " << name;
  return page;
}

// Of what follows, each statement is of a line of the program, and lines of the program that do something are met
// again.
TEST(Studio, EveryTextHasAPlaceForEachLine) {
  for (const char* arch : {"", "sm_80", "sm_90a"}) {
    SCOPED_TRACE(arch);
    const Json page = studio(product(256), arch);
    EXPECT_EQ(page["files"], Json({"product.tile"}));
    const std::string device = *arch ? "CUDA C++" : "C++";
    for (const std::string& name :
         {std::string("tile program"), std::string(*arch ? "planned program" : "loops"), device}) {
      const Json& text = text_of(page, name);
      ASSERT_EQ(text["places"].size(), count_lines(text["text"])) << name;
      std::set<int> lines;
      for (const Json& place : text["places"])
        if (place.is_array()) lines.insert(place[1].get<int>());
      for (const int line : {11, 12, 13, 15})
        EXPECT_TRUE(lines.contains(line)) << name << " has nothing of line " << line;
    }
  }
}

// The text behind a pass, as `opt` has it.
std::string text_until(const std::string& pass) {
  PassRoad road(ir::parse(product(256), "product.tile"), "sm_90a");
  road.run(PassRoad::until(pass));
  const std::string text = road.text();
  return text.substr(0, text.rfind("}\n") + 2);
}

TEST(Studio, PassesSayWhatTheyChanged) {
  const Json page = studio(product(256), "sm_90a");
  std::map<std::string, const Json*> passes;
  for (const Json& pass : page["passes"]) {
    EXPECT_FALSE(pass["what"].get<std::string>().empty());
    EXPECT_EQ(pass["changed"].get<bool>(), pass.contains("diff"));
    passes[pass["name"]] = &pass;
  }
  const std::string before = text_until("decide_plan"), after = text_of(page, "planned program")["text"];
  const Json& applied = *passes.at("apply_plan");
  ASSERT_TRUE(applied["changed"].get<bool>());
  size_t changes = 0;
  for (const Json& line : applied["diff"]) {
    if (line[0] == "...") continue;
    const std::string text = line[2].get<std::string>() + "\n";
    EXPECT_TRUE(line[0] == "+" || before.find(text) != std::string::npos) << line;
    EXPECT_TRUE(line[0] == "-" || after.find(text) != std::string::npos) << line;
    changes += line[0] != "=";
  }
  EXPECT_GT(changes, 20u);
  EXPECT_FALSE(passes.at("decide_plan")->at("changed").get<bool>());
  const std::string decided = passes.at("decide_plan")->at("decided").dump();
  EXPECT_NE(decided.find("role load"), std::string::npos) << decided;
}

TEST(Studio, LayoutsAreNumbers) {
  const Json page = studio(product(256), "sm_90a");
  std::map<std::string, const Json*> layouts;
  for (const Json& l : page["layouts"]) layouts[l["name"]] = &l;
  const Json& c = *layouts.at("C_l");
  EXPECT_EQ(c["rows"], 128);
  EXPECT_EQ(c["columns"], 128);
  ASSERT_EQ(c["thread"].size(), 128u * 128);
  // The accumulator of wgmma (PTX 9.7.15.5.1.1): row 77 of 64-row pieces has its own lanes, two columns a lane.
  std::set<std::pair<int, int>> places;
  for (size_t i = 0; i < c["thread"].size(); ++i) places.emplace(c["thread"][i], c["register"][i]);
  EXPECT_EQ(places.size(), 128u * 128) << "no two elements have one register";
  EXPECT_EQ(c["thread"][1], c["thread"][0]);
  EXPECT_EQ(c["thread"][2], 1);
  const Json& a = *layouts.at("A_s");
  EXPECT_EQ(a["space"], "shared");
  for (size_t i = 0; i < a["byte"].size(); ++i) EXPECT_EQ(a["bank"][i].get<int>(), a["byte"][i].get<int>() / 4 % 32);
}

TEST(Studio, SharedMemoryIsUsedFromOneStatementToAnother) {
  const Json page = studio(product(256), "sm_90a");
  const Json& shared = page["explanation"]["launches"][0]["shared"];
  ASSERT_FALSE(shared.empty());
  size_t of_roles = 0;
  for (const Json& range : shared)
    for (const Json& life : range["lives"]) {
      EXPECT_LT(life["begin"].get<int>(), life["end"].get<int>());
      EXPECT_LE(life["end"].get<int>(), life["of"].get<int>());
      of_roles += life["threads"][0] != 0;
    }
  EXPECT_GT(of_roles, 0u) << "the loader fills what the others use";
  // Without roles: a tile that is used in the loop and one behind it.
  const Json plain = studio(
      "program p {\n  param A: float32[64]\n  param B: float32[64]\n  launch p(bx: 1) threads(tx: 64) {\n    shared s: "
      "float32[64]\n"
      "    shared t: float32[64]\n    copy from=A to=s\n    copy from=s to=B\n    copy from=A to=t\n    copy from=t "
      "to=B\n  }\n}\n",
      "sm_80");
  std::map<std::string, Json> lives;
  for (const Json& range : plain["explanation"]["launches"][0]["shared"]) lives[range["name"]] = range["lives"][0];
  EXPECT_LE(lives.at("s")["end"].get<int>(), lives.at("t")["begin"].get<int>());
}

TEST(Studio, WhatAnEngineRefusesIsSaid) {
  const Json page = studio(
      "program p {\n  param A: float32[1048576]\n  launch p(bx: 1) threads(tx: 64) {\n    shared s: float32[524288]\n"
      "    copy from=A[0 : 524288] to=s\n    copy from=s to=A[0 : 524288]\n  }\n}\n",
      "sm_90a");
  EXPECT_EQ(page["explanation"]["refused"]["code"], "TW8203");
  EXPECT_TRUE(page["explanation"]["headline"].get<std::string>().starts_with("refused: "));
  EXPECT_EQ(page["texts"].size(), 1u);
}

// ---- the sentence

std::string headline_of(const std::string& text, const std::string& arch, const NamedValues& values = {}) {
  const ir::TileProgram program = ir::parse(text, "product.tile");
  return headline(arch.empty() ? explain(program, values, {}) : explain_gpu(program, values, arch, false));
}

TEST(Headline, SaysWhatBoundsIt) {
  const std::string gpu = headline_of(product(256), "sm_90a");
  EXPECT_TRUE(gpu.starts_with("bound by memory, ")) << gpu;
  EXPECT_TRUE(gpu.ends_with("; all 3 copies are TMA")) << gpu;
  EXPECT_NE(gpu.find("% of the floor's speed"), std::string::npos) << gpu;
  EXPECT_EQ(headline_of(product(256), "sm_80").find("TMA"), std::string::npos) << "which it has not";
  const std::string cpu = headline_of(product(256), "");
  EXPECT_TRUE(cpu.starts_with("33554432 flops, ")) << cpu;
}

TEST(Headline, NamesTheCopyThatIsNotTma) {
  std::string text = product(256);
  const std::string from = "copy from=B[k * 32 : 32, bx * 128 : 128] to=B_s";
  text.replace(text.find(from), from.size(),
               "map i in 32, j in 128 {\n        B_s[i, j] = B[k * 32 + i, bx * 128 + j]\n      }\n      copy from=B[k "
               "* 32 : 32, 3 : "
               "128] to=B_s");
  const std::string found = headline_of(text, "sm_90a");
  EXPECT_NE(found.find(" of 3 copies"), std::string::npos) << found;
  EXPECT_NE(found.find("not TMA: line "), std::string::npos) << found;
}

TEST(Headline, OfSizesThatTheCallDecides) {
  const std::string text =
      "program p {\n  symbol N: int32\n  param A: float32[N]\n  launch p(bx: (N + 63) // 64) threads(tx: 64) {\n    "
      "map i in 64 {\n"
      "      A[bx * 64 + i] = A[bx * 64 + i] * 2.0\n    }\n  }\n}\n";
  EXPECT_TRUE(headline_of(text, "sm_90a").starts_with("how much work it is depends on the call"));
  EXPECT_TRUE(headline_of(text, "sm_90a", {{"N", 1 << 20}}).starts_with("bound by memory, "));
}

}  // namespace
}  // namespace tilewright
