// Products of weights that each turn unpacks: brought as bytes, unpacked beside the product of the turn before, with
// scales that are there by then; what threads do is what the interpreter says, and nothing is found wrong.
#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/rewrite.h"
#include "passes/canonicalize.h"
#include "passes/lower_to_threads.h"
#include "passes/tile/pack_nibbles.h"
#include "simulator/lowered_programs.h"
#include "tilewright/compile.h"
#include "tilewright/diagnostic.h"

namespace tilewright::simulator {
namespace {

// `last`: what follows the product in each turn.
std::string unpacked(const char* type, int64_t k, const std::string& last = "") {
  return fmt::format(
      "program unpacked {{\n  param A: float16[144, {0}]\n  param W: {1}[72, {0}]\n  param S: float16[72, {2}]\n"
      "  param C: float32[144, 72]\n  launch unpacked(bx: 2, by: 2) threads(tx: 128) {{\n"
      "    shared As: float16[128, 64]\n    shared Wq: {1}[64, 64]\n    shared Ws: float16[64, 64]\n"
      "    fragment acc: float32[128, 64]\n    fill to=acc value=0.0\n    for k in 0..{3} pipelined(stages=3) {{\n"
      "      copy from=A[by * 128 : 128, k * 64 : 64] to=As\n      copy from=W[bx * 64 : 64, k * 64 : 64] to=Wq\n"
      "      map i in 64, j in 64 {{\n        Ws[i, j] = float16(Wq[i, j]) * S[bx * 64 + i, (k * 64 + j) // 128]\n"
      "      }}\n      gemm a=As b=Ws c=acc transpose_b=true\n{4}    }}\n"
      "    copy from=acc to=C[by * 128 : 128, bx * 64 : 64]\n  }}\n}}\n",
      k, type, (k + 127) / 128, (k + 63) / 64, last);
}

ir::TileProgram tiles_of(const std::string& text) { return passes::canonicalize(ir::parse(text, "unpacked.tile")); }
passes::ThreadLowering lowered(const std::string& text) {
  return passes::lower_to_threads(tiles_of(text), target::GpuTarget::of(90));
}

void expect_same(const std::string& text) {
  SCOPED_TRACE(text);
  std::mt19937 random(3);
  const ir::TileProgram tiles = ir::parse(text, "unpacked.tile");
  const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
  const std::vector<NDArray> want = arrays_of(tiles, random), got = clones(want);
  compile(program, {.engine = Engine::Interpreter})(want[0], want[1], want[2], want[3]);
  compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(got[0], got[1], got[2], got[3]);
  EXPECT_EQ(std::memcmp(want[3].data(), got[3].data(), 144 * 72 * 4), 0);
}

// The groups of wgmma that stay open where the text waits, of the first loop that multiplies.
std::optional<int64_t> open_at_waits(const passes::ThreadLowering& low) {
  std::optional<int64_t> out;
  ir::walk(low.threads.launches[0].body, [&](const ir::Stmt& s) {
    const auto* loop = s.as<ir::For>();
    bool multiplies = false;
    for (const ir::Stmt& x : loop ? loop->body : ir::Body{}) {
      if (x.as<ir::Commit>()) multiplies = true;
      if (const auto* drain = x.as<ir::Drain>(); drain && multiplies && !out) out = drain->pending;
    }
  });
  return out;
}

TEST(Unpacked, TheNextTurnsWeightsAreMadeBesideTheProduct) {
  for (const char* type : {"int4", "uint4", "int8", "uint8"})
    for (const int64_t k : {64, 128, 448}) {
      expect_same(unpacked(type, k));
      const passes::ThreadLowering low = lowered(unpacked(type, k));
      EXPECT_TRUE(low.plans[0].has_loader()) << low.plans[0].why_no_loader();
      EXPECT_EQ(open_at_waits(low), 1);
    }
}

// Half of the tile is what the turn before made: it has one place.
TEST(Unpacked, WhatATurnDoesNotMakeAnewHasOnePlace) {
  std::string text = unpacked("int8", 448);
  const std::string from = "map i in 64, j in 64 {\n        Ws[i, j]", to = "map i in 64, j in 32 {\n        Ws[i, j]";
  text.replace(text.find(from), from.size(), to);
  const std::string fill = "    fill to=acc", first = "    fill to=Ws value=1.0\n    fill to=acc";
  text.replace(text.find(fill), fill.size(), first);
  expect_same(text);
  EXPECT_NE(open_at_waits(lowered(text)), 1);
}

TEST(Unpacked, ScalesAreLoadedATurnBefore) {
  const passes::ThreadLowering low = lowered(unpacked("int4", 448));
  bool found = false;
  for (const ir::Buffer& b : low.threads.buffers) found = found || b.name == "S_early_next";
  EXPECT_TRUE(found);
}

// Of a tensor of 4-bit integers nothing but whole bytes may be moved.
TEST(Unpacked, NibblesThatAreMovedAloneStay) {
  const auto type_of = [](const std::string& text) {
    const ir::TileProgram p = passes::pack_nibbles(tiles_of(text));
    for (const ir::Buffer& b : p.buffers)
      if (b.name == "W") return b.type.name() + (ir::constant_int(b.shape.back()) == 224 ? " halved" : "");
    return std::string();
  };
  EXPECT_EQ(type_of(unpacked("int4", 448)), "uint8 halved");
  EXPECT_EQ(type_of(unpacked("int8", 448)), "int8");
  EXPECT_EQ(type_of(unpacked("int4", 447)), "int4");
  EXPECT_EQ(type_of(unpacked("int4", 448, "      map i in 64 {\n        Wq[i, 0] = int4(1)\n      }\n")), "int4");
  std::string odd = unpacked("int4", 448);
  const std::string from = "W[bx * 64 : 64, k * 64 : 64]", to = "W[bx * 64 : 64, k * 63 : 64]";
  odd.replace(odd.find(from), from.size(), to);
  EXPECT_EQ(type_of(odd), "int4");
  expect_same(odd);
}

}  // namespace
}  // namespace tilewright::simulator
