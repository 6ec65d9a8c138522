// What products wait for is loaded a turn before.
#include "passes/tile/load_ahead.h"

#include "ir/rewrite.h"
#include "passes/planned.h"
#include "passes/tile/clear_in_gemms.h"
#include "passes/tile/early_loads.h"

namespace tilewright {
namespace {

// A product whose turns have scales of their own: of rows in a fragment, of the turn as a value, of columns in the Map.
std::string scaled_text(const std::string& k, const std::string& after = "") {
  return "program scaled {\n" + std::string(k == "K" ? "  symbol K: int32\n" : "") + "  param A: float16[128, " + k +
         " * 32]\n  param B: float16[" + k + " * 32, 64]\n  param R: float32[" + k + ", 128]\n  param S: float32[" + k +
         "]\n  param T: float32[" + k +
         ", 64]\n  param C: float32[128, 64]\n  launch scaled(bx: 2) threads(tx: 128) {\n"
         "    shared As: float16[64, 32]\n    shared Bs: float16[32, 64]\n    fragment part: float32[64, 64]\n"
         "    fragment sum: float32[64, 64]\n    fragment rows: float32[64]\n    fill to=sum value=0.0\n"
         "    for k in 0..(" +
         k +
         ") pipelined(stages=2) {\n      copy from=A[bx * 64 : 64, k * 32 : 32] to=As\n"
         "      copy from=B[k * 32 : 32, 0 : 64] to=Bs\n      copy from=R[k, bx * 64 : 64] to=rows\n"
         "      turn: float32 = S[k]\n      gemm a=As b=Bs c=part clear=true\n      map i in 64, j in 64 {\n"
         "        sum[i, j] = sum[i, j] + part[i, j] * (rows[i] * turn + T[k, j])\n      }\n    }\n" +
         after + "    copy from=sum to=C[bx * 64 : 64, 0 : 64]\n  }\n}\n";
}

Planned moved(const std::string& text) {
  Planned p;
  p.plain = passes::canonicalize(ir::parse(text, "p.tile"));
  p.program = passes::load_ahead(passes::load_early(p.plain), false);
  ir::check_valid(p.program, "load_ahead");
  return p;
}

// The buffers that something was loaded into ahead.
std::set<std::string> ahead(const ir::TileProgram& p) {
  std::set<std::string> names;
  for (const ir::Buffer& b : p.buffers)
    if (b.name.ends_with("_next")) names.insert(b.name);
  return names;
}

std::vector<NDArray> arguments(int64_t k) {
  return {numbers({128, k * 32}, f16, 1), numbers({k * 32, 64}, f16, 2), numbers({k, 128}, f32, 3),
          numbers({k}, f32, 4), numbers({k, 64}, f32, 5)};
}

TEST(LoadAhead, ScalesOfTheNextTurnAreLoadedInThisOne) {
  const Planned p = moved(scaled_text("3"));
  EXPECT_EQ(ahead(p.program), (std::set<std::string>{"rows_next", "turn_next", "T_early_next"}));
  expect_same_meaning(p, arguments(3), {128, 64}, f32);
  // No load stands between a turn's wait and its product: what it reads of memory is for the next.
  ir::walk(p.program.launches[0].body, [&](const ir::Stmt& s) {
    const auto* loop = s.as<ir::For>();
    if (!loop) return;
    for (const ir::Stmt& x : loop->body) {
      if (const auto* let = x.as<ir::Let>()) {
        EXPECT_EQ(p.program.buffer(let->value.as<ir::Load>()->buffer).space, ir::Space::Local);
      }
      if (const auto* copy = x.as<ir::Copy>(); copy && p.program.buffer(copy->to.buffer).name == "rows") {
        EXPECT_EQ(p.program.buffer(copy->from.buffer).name, "rows_next");
      }
    }
  });
}

// What is loaded before the loop does not hide the fill that the gemm does in its place.
TEST(LoadAhead, GemmsStillClear) {
  std::string text = scaled_text("3");
  const auto swap = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  swap(" clear=true", "");
  swap("    fill to=sum", "    fill to=part value=0.0\n    fill to=sum");
  swap("    }\n    copy from=sum", "      fill to=part value=0.0\n    }\n    copy from=sum");
  Planned p = moved(text);
  ir::Body& body = p.program.launches[0].body;
  body = passes::clear_in_gemms(p.program, body);
  int fills = 0, clearing = 0;
  ir::walk(body, [&](const ir::Stmt& s) {
    fills += s.as<ir::Fill>() ? 1 : 0;
    clearing += s.as<ir::Gemm>() && ir::constant_int(s.as<ir::Gemm>()->clear) == 1;
  });
  EXPECT_EQ(fills, 1);  // of the sum
  EXPECT_EQ(clearing, 1);
  expect_same_meaning(p, arguments(3), {128, 64}, f32);
}

TEST(LoadAhead, NoTurnsLoadNothing) {
  const Planned p = moved(scaled_text("K"));
  EXPECT_EQ(ahead(p.program).size(), 3u);
  for (const int64_t k : {1, 2, 5}) expect_same_meaning(p, arguments(k), {128, 64}, f32, {{"K", k}});
}

TEST(LoadAhead, WhatIsReadElsewhereStays) {
  const Planned p =
      moved(scaled_text("3", "    map i in 64, j in 64 {\n      sum[i, j] = sum[i, j] + rows[i]\n    }\n"));
  EXPECT_EQ(ahead(p.program), (std::set<std::string>{"turn_next", "T_early_next"}));
  expect_same_meaning(p, arguments(3), {128, 64}, f32);
}

}  // namespace
}  // namespace tilewright
