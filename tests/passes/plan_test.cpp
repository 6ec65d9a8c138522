// Rings, roles and loops over tiles: what is decided, and that the interpreter, which knows nothing of it, computes the
// same from the planned program as from the plain one.
#include "ir/extent.h"
#include "ir/rewrite.h"
#include "passes/lower_to_threads.h"
#include "passes/planned.h"
#include "passes/tile/early_loads.h"
#include "passes/tile/sum_copies.h"

namespace tilewright {
namespace {

std::string gemm_text(const std::string& m, const std::string& k, int stages) {
  return "program gemm {\n" + std::string(m == "M" ? "  symbol M: int32\n" : "") +
         (k == "K" ? "  symbol K: int32\n" : "") + "  param A: float16[" + m + ", " + k + "]\n  param B: float16[" + k +
         ", 128]\n  param C: float16[" + m + ", 128]\n  launch gemm(bx: 2, by: (" + m +
         " + 63) // 64) threads(tx: 128) {\n"
         "    shared As: float16[64, 32]\n    shared Bs: float16[32, 64]\n    fragment acc: float32[64, 64]\n"
         "    fill to=acc value=0.0\n    for k in 0..(" +
         k + " + 31) // 32 pipelined(stages=" + std::to_string(stages) +
         ") {\n      copy from=A[by * 64 : 64, k * 32 : 32] to=As\n"
         "      copy from=B[k * 32 : 32, bx * 64 : 64] to=Bs\n      gemm a=As b=Bs c=acc\n    }\n"
         "    copy from=acc to=C[by * 64 : 64, bx * 64 : 64]\n  }\n}\n";
}

TEST(Plans, AProductGetsALoaderALoopOverTilesAndStagedResults) {
  const Planned p = planned(gemm_text("200", "160", 4));
  ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
  ASSERT_EQ(p.plan.rings.size(), 1u);
  EXPECT_EQ(ring_tiles(p)[0], (std::vector<std::string>{"As", "Bs"}));
  EXPECT_EQ(p.plan.rings[0].slots, 8);  // of tiles this small more is loaded than the program asks for
  EXPECT_EQ(p.plan.rings[0].bytes, 2 * 64 * 32 * 2);
  EXPECT_TRUE(p.plan.is_persistent());
  ASSERT_EQ(p.plan.epilogue.staged.size(), 1u);
  EXPECT_EQ(p.program.buffer(p.plan.epilogue.staged[0]).name, "acc");
  EXPECT_TRUE(p.plan.takes(plan::Role::Takes::TilesInTurn));
  EXPECT_EQ(p.program.launches[0].threads[0], 384);
  expect_same_meaning(p, {numbers({200, 160}, f16, 1), numbers({160, 128}, f16, 2)}, {200, 128}, f16);
}

TEST(Plans, EveryLengthOfTheLoopMeansTheSame) {
  const Planned p = planned(gemm_text("M", "K", 4)), q = planned(gemm_text("M", "K", 2));
  EXPECT_EQ(p.plan.why_no_loader(), "'As' does not come by TMA: rows of 'A' are not known to be multiples of 16 bytes");
  EXPECT_EQ(q.plan.why_no_loader(), p.plan.why_no_loader());
  for (const int k : {32, 64, 96, 128, 160, 288}) {
    for (const int stages : {2, 3, 4}) {
      const Planned s = planned(gemm_text("M", std::to_string(k), stages),
                                {.slots = 8, .staging = k % 64 == 0 ? plan::Staging::Whole : plan::Staging::None});
      ASSERT_TRUE(s.plan.has_loader()) << s.plan.why_no_loader();
      for (const int m : {1, 64, 130})
        expect_same_meaning(s, {numbers({m, k}, f16, 3), numbers({k, 128}, f16, 4)}, {m, 128}, f16, {{"M", m}});
    }
  }
}

// A loop of one stage still has a loader that runs ahead.
TEST(Plans, OneStageIsTwoSlots) {
  const Planned p = planned(gemm_text("200", "160", 1), {.slots = 2});
  ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
  EXPECT_EQ(p.plan.rings[0].slots, 2);
  expect_same_meaning(p, {numbers({200, 160}, f16, 1), numbers({160, 128}, f16, 2)}, {200, 128}, f16);
}

// A tile that waits for what is loaded has all slots that there are, each given back at once; a larger one as many as
// the program asks for, of which one goes back when the next product is under way; blocks of one wave, as the last are
// here, all of them too.
TEST(Plans, SmallTilesHaveMoreUnderWay) {
  auto text = [](int rows, int columns) {
    return fmt::format(
        "program gemm {{\n  param A: float16[256, 256]\n  param B: float16[256, 256]\n  param C: float16[256, 256]\n"
        "  launch gemm(bx: 256 // {1}, by: 256 // {0}) threads(tx: 256) {{\n    shared As: float16[{0}, 64]\n"
        "    shared Bs: float16[64, {1}]\n    fragment acc: float32[{0}, {1}]\n    fill to=acc value=0.0\n"
        "    for k in 0..4 pipelined(stages=4) {{\n      copy from=A[by * {0} : {0}, k * 64 : 64] to=As\n"
        "      copy from=B[k * 64 : 64, bx * {1} : {1}] to=Bs\n      gemm a=As b=Bs c=acc\n    }}\n"
        "    copy from=acc to=C[by * {0} : {0}, bx * {1} : {1}]\n  }}\n}}\n",
        rows, columns);
  };
  const struct {
    int rows, columns;
    int64_t slots;
    bool overlaps;
  } table[] = {{128, 64, 8, false}, {128, 128, 4, true}, {128, 256, 8, true}};
  for (const auto& row : table) {
    const Planned p = planned(text(row.rows, row.columns));
    ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
    EXPECT_EQ(p.plan.rings[0].slots, row.slots);
    bool in_flight = false;
    ir::walk(p.program.launches[0].body, [&](const ir::Stmt& s) {
      const auto* g = s.as<ir::Gemm>();
      in_flight = in_flight || (g && !g->completion.immediate());
    });
    EXPECT_EQ(in_flight, row.overlaps);
    expect_same_meaning(p, {numbers({256, 256}, f16, 1), numbers({256, 256}, f16, 2)}, {256, 256}, f16);
  }
}

// Teams in turn take all slots that there are, however large their tiles.
TEST(Plans, TeamsInTurnHaveAllSlots) {
  const std::string text =
      "program gemm {\n  param A: float16[512, 128]\n  param B: float16[128, 256]\n  param C: float16[512, 256]\n"
      "  launch gemm(bx: 2, by: 4) threads(tx: 128) {\n    shared As: float16[128, 64]\n"
      "    shared Bs: float16[64, 128]\n    fragment acc: float32[128, 128]\n    fill to=acc value=0.0\n"
      "    for k in 0..2 pipelined(stages=2) {\n      copy from=A[by * 128 : 128, k * 64 : 64] to=As\n"
      "      copy from=B[k * 64 : 64, bx * 128 : 128] to=Bs\n      gemm a=As b=Bs c=acc\n    }\n"
      "    copy from=acc to=C[by * 128 : 128, bx * 128 : 128]\n  }\n}\n";
  for (const bool alternating : {false, true}) {
    const Planned p = planned(text, {.slots = 6, .alternating = alternating});
    ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
    EXPECT_EQ(p.plan.takes(plan::Role::Takes::TilesInTurn), alternating);
    EXPECT_EQ(p.plan.rings[0].slots, alternating ? 6 : 4);
    expect_same_meaning(p, {numbers({512, 128}, f16, 1), numbers({128, 256}, f16, 2)}, {512, 256}, f16);
  }
}

// Results that the program brings to a shared buffer of its own, from where it copies them.
TEST(Plans, AShapedDetourOfResultsIsTheStagersOwn) {
  std::string text = gemm_text("200", "160", 4);
  const std::string direct = "    copy from=acc to=C[by * 64 : 64, bx * 64 : 64]\n";
  const auto detour = [&](const std::string& between) {
    std::string t = text;
    t.replace(t.find(direct), direct.size(),
              "    copy from=acc to=Cs\n" + between + "    copy from=Cs to=C[by * 64 : 64, bx * 64 : 64]\n");
    t.insert(t.find("    fragment acc"), "    shared Cs: float16[64, 64]\n");
    return t;
  };
  using plan::Staging;
  auto uses = [](const Planned& p) {
    for (ir::BufferId id : ir::used_buffers(p.program.launches[0].body))
      if (p.program.buffer(id).name == "Cs") return true;
    return false;
  };
  const std::string fills = "    fill to=acc value=1.0\n", doubles =
                                                               "    map i in 64, j in 64 {\n"
                                                               "      Cs[i, j] = Cs[i, j] * float16(2.0)\n    }\n";
  for (const Staging how : {Staging::Whole, Staging::Chunks, Staging::None, Staging::Straight}) {
    const bool stages = how == Staging::Whole || how == Staging::Chunks;
    for (const std::string& between : {std::string(), fills, doubles}) {
      const Planned p = planned(detour(between), {.staging = how, .alternating = false});
      ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
      EXPECT_EQ(uses(p), how == Staging::None || !between.empty());
      EXPECT_EQ(p.plan.epilogue.staged.size(), stages && between.empty() ? 1u : 0u);
      expect_same_meaning(p, {numbers({200, 160}, f16, 1), numbers({160, 128}, f16, 2)}, {200, 128}, f16);
    }
  }
}

// Two products, the second of what the first gives; causal: the inner loop is as long as the tile says.
std::string attention_text(int keys, bool causal) {
  const std::string length = std::to_string(keys);
  const std::string last = causal ? "(bx * 64 + 95) // 32" : "(" + length + " + 31) // 32";
  const std::string seen = causal ? "k * 32 + j <= bx * 64 + i and k * 32 + j < " + length : "k * 32 + j < " + length;
  return "program attend {\n  param Q: float16[" + length + ", 32]\n  param K: float16[" + length +
         ", 32]\n  param V: float16[" + length + ", 32]\n  param O: float32[" + length +
         ", 32]\n  launch attend(bx: (" + length +
         " + 63) // 64) threads(tx: 128) {\n    shared Qs: float16[64, 32]\n    shared Ks: float16[32, 32]\n"
         "    shared Vs: float16[32, 32]\n    fragment S: float32[64, 32]\n    fragment P: float16[64, 32]\n"
         "    fragment acc: float32[64, 32]\n    fragment most: float32[64]\n    copy from=Q[bx * 64 : 64, 0 : 32] "
         "to=Qs\n"
         "    fill to=acc value=0.0\n    fill to=most value=-1000.0\n    for k in 0.." +
         last +
         " pipelined(stages=2) {\n      copy from=K[k * 32 : 32, 0 : 32] to=Ks\n      map i in 64, j in 32 {\n"
         "        S[i, j] = select(" +
         seen +
         ", 0.0, -500.0)\n      }\n      gemm a=Qs b=Ks c=S transpose_b=true\n      copy from=V[k * 32 : 32, 0 : 32] "
         "to=Vs\n"
         "      reduce max from=S to=most dim=1 clear=false\n      map i in 64, j in 32 {\n"
         "        S[i, j] = max(S[i, j] - most[i], -8.0)\n      }\n      copy from=S to=P\n      map i in 64, j in 32 "
         "{\n"
         "        acc[i, j] = acc[i, j] * 0.5\n      }\n      gemm a=P b=Vs c=acc\n    }\n"
         "    copy from=acc to=O[bx * 64 : 64, 0 : 32]\n  }\n}\n";
}

TEST(Plans, TheSecondProductRunsBesideTheNextScores) {
  for (const bool causal : {false, true}) {
    for (const int keys : {32, 64, 96, 224}) {
      const Planned p = planned(attention_text(keys, causal), {.side_by_side = false});
      ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
      ASSERT_EQ(p.plan.rings.size(), 3u);
      EXPECT_EQ(p.plan.is_persistent(), keys > 128);
      int in_flight = 0;
      ir::walk(p.program.launches[0].body, [&](const ir::Stmt& s) {
        const auto* g = s.as<ir::Gemm>();
        in_flight += g && g->completion.queue == ir::Queue::Wgmma;
      });
      EXPECT_EQ(in_flight, 2);
      expect_same_meaning(p, {numbers({keys, 32}, f16, 5), numbers({keys, 32}, f16, 6), numbers({keys, 32}, f16, 7)},
                          {keys, 32}, f32);
    }
  }
}

// Waits for a slot's mbarrier hold the wait for a product where it is needed, with three warpgroups.
TEST(Plans, ThreeWarpgroupsWaitForAProductAfterTheNextScores) {
  for (const int threads : {256, 384}) {
    std::string text = attention_text(224, false);
    const auto replace = [&](const std::string& what, const std::string& by) {
      for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
        text.replace(at, what.size(), by);
    };
    const std::string rows = std::to_string(threads / 2);
    replace("tx: 128", "tx: " + std::to_string(threads));
    replace("i in 64", "i in " + rows), replace("float16[64,", "float16[" + rows + ",");
    replace("float32[64", "float32[" + rows), replace("bx * 64 : 64", "bx * " + rows + " : " + rows);
    replace("+ 63) // 64", "+ " + std::to_string(threads / 2 - 1) + ") // " + rows);
    const Planned p = planned(text);
    ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
    int waits = 0;
    ir::walk(p.program.launches[0].body, [&](const ir::Stmt& s) {
      const auto* n = s.as<ir::Wait>();
      waits += n && p.program.buffer(n->barrier.buffer).name == "Vs_full";
    });
    EXPECT_EQ(waits, threads == 384 ? 3 : 2);
    expect_same_meaning(p, {numbers({224, 32}, f16, 5), numbers({224, 32}, f16, 6), numbers({224, 32}, f16, 7)},
                        {224, 32}, f32);
  }
}

// Four warpgroups share what is left of a multiprocessor's registers.
TEST(Plans, FourWarpgroupsComputeBesideALoader) {
  const Planned p = planned(
      "program gemm {\n  param A: float16[256, 192]\n  param B: float16[192, 32]\n  param C: float16[256, 32]\n"
      "  launch gemm(bx: 1) threads(tx: 512) {\n    shared As: float16[256, 64]\n"
      "    shared Bs: float16[64, 32]\n    fragment acc: float32[256, 32]\n    fill to=acc value=0.0\n"
      "    for k in 0..3 pipelined(stages=2) {\n      copy from=A[0 : 256, k * 64 : 64] to=As\n"
      "      copy from=B[k * 64 : 64, 0 : 32] to=Bs\n      gemm a=As b=Bs c=acc\n    }\n"
      "    copy from=acc to=C\n  }\n}\n");
  ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
  int64_t registers = 0, threads = 0;
  for (const plan::Role& r : p.plan.roles) registers += r.warps * 32 * r.registers, threads += r.warps * 32;
  EXPECT_EQ(threads, 640);
  EXPECT_LE(registers, small_gpu().registers_at_launch(threads, 1) * threads);
  expect_same_meaning(p, {numbers({256, 192}, f16, 5), numbers({192, 32}, f16, 6)}, {256, 32}, f16);
}

// A block of one tile brings its result away by 64 columns, each from a place of its own.
TEST(Plans, ResultsOfOneTileLeaveByColumns) {
  const std::string text =
      "program gemm {\n  param A: float16[128, 128]\n  param B: float16[128, 416]\n  param C: float16[128, 416]\n"
      "  launch gemm(bx: 2, by: 1) threads(tx: 256) {\n    shared As: float16[128, 64]\n"
      "    shared Bs: float16[64, 208]\n    fragment acc: float32[128, 208]\n    fill to=acc value=0.0\n"
      "    for k in 0..2 pipelined(stages=2) {\n      copy from=A[by * 128 : 128, k * 64 : 64] to=As\n"
      "      copy from=B[k * 64 : 64, bx * 208 : 208] to=Bs\n      gemm a=As b=Bs c=acc\n    }\n"
      "    copy from=acc to=C[by * 128 : 128, bx * 208 : 208]\n  }\n}\n";
  const Planned p = planned(text);
  ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
  EXPECT_FALSE(p.plan.is_persistent());
  std::vector<std::pair<int64_t, int64_t>> stores;  // slot, columns
  ir::walk(p.program.launches[0].body, [&](const ir::Stmt& s) {
    const auto* copy = s.as<ir::Copy>();
    if (copy && copy->completion.queue == ir::Queue::BulkStore)
      stores.emplace_back(*ir::constant_int(copy->from.min[0]), *ir::constant_int(copy->from.extent[2]));
  });
  EXPECT_EQ(stores, (std::vector<std::pair<int64_t, int64_t>>{{0, 64}, {1, 64}, {2, 64}, {0, 16}}));
  expect_same_meaning(p, {numbers({128, 128}, f16, 1), numbers({128, 416}, f16, 2)}, {128, 416}, f16);
}

// What a tile of the grid needs once has a slot for the next one, where blocks walk over tiles.
TEST(Plans, TheNextTilesOperandsComeEarly) {
  for (const bool early : {true, false}) {
    const Planned p = planned(attention_text(224, false), {.side_by_side = false, .next_tile = early});
    ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
    EXPECT_TRUE(p.plan.is_persistent());
    EXPECT_EQ(p.plan.next_tile_ahead(), early);
    EXPECT_EQ(ring_tiles(p)[0], std::vector<std::string>{"Qs"});
    EXPECT_EQ(p.plan.rings[0].slots, early ? 2 : 1);
    expect_same_meaning(p, {numbers({224, 32}, f16, 5), numbers({224, 32}, f16, 6), numbers({224, 32}, f16, 7)},
                        {224, 32}, f32);
  }
}

// One warpgroup that does more than multiply shares its multiprocessor with another block's.
TEST(Plans, BlocksThatDoMoreThanMultiplyStandSideBySide) {
  for (const int64_t slots : {8, 1}) {
    const Planned p = planned(attention_text(224, true), {.slots = slots});
    ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
    EXPECT_EQ(p.plan.work.blocks_per_multiprocessor, 2);
    EXPECT_FALSE(p.plan.is_persistent());
    EXPECT_EQ(p.program.launches[0].min_blocks, 2);
    EXPECT_EQ(p.plan.rings[1].slots, std::min<int64_t>(slots, 2));
    expect_same_meaning(p, {numbers({224, 32}, f16, 5), numbers({224, 32}, f16, 6), numbers({224, 32}, f16, 7)},
                        {224, 32}, f32);
  }
  EXPECT_EQ(planned(attention_text(96, false)).plan.work.blocks_per_multiprocessor, 1);   // a wave has room for all
  EXPECT_EQ(planned(gemm_text("200", "160", 4)).plan.work.blocks_per_multiprocessor, 1);  // teams take turns
}

// Scales of rows are loaded before the product that they scale, vectors come by TMA, and who clears an accumulator at
// the end of each turn lets the gemm do it.
TEST(Plans, WhatStandsBesideAProductDoesNotHoldItUp) {
  const std::string text =
      "program scaled {\n  param A: float16[200, 160]\n  param B: float16[160, 128]\n  param R: float32[200, 5]\n"
      "  param S: float32[5, 128]\n  param C: float32[200, 128]\n  launch scaled(bx: 2, by: 4) threads(tx: 128) {\n"
      "    shared As: float16[64, 32]\n    shared Bs: float16[32, 64]\n    shared Ss: float32[64]\n"
      "    fragment acc: float32[64, 64]\n    fragment total: float32[64, 64]\n    fill to=acc value=0.0\n"
      "    fill to=total value=0.0\n    for k in 0..5 pipelined(stages=2) {\n"
      "      copy from=A[by * 64 : 64, k * 32 : 32] to=As\n      copy from=B[k * 32 : 32, bx * 64 : 64] to=Bs\n"
      "      copy from=S[k, bx * 64 : 64] to=Ss\n      gemm a=As b=Bs c=acc\n      map i in 64, j in 64 {\n"
      "        total[i, j] = total[i, j] + acc[i, j] * (R[by * 64 + i, k] * Ss[j])\n      }\n"
      "      fill to=acc value=0.0\n    }\n    map i in 64, j in 64 {\n"
      "      atomic add to=C[by * 64 + i, bx * 64 + j] value=total[i, j]\n    }\n  }\n}\n";
  Planned p;
  p.plain = passes::canonicalize(ir::parse(text, "p.tile"));
  p.program = passes::load_early(passes::sums_as_copies(p.plain));
  decide_and_apply(p);
  ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
  std::set<std::string> brought;
  for (const auto& tiles : ring_tiles(p)) brought.insert(tiles.begin(), tiles.end());
  EXPECT_EQ(brought, (std::set<std::string>{"As", "Bs", "Ss"}));
  ASSERT_EQ(p.plan.epilogue.staged.size(), 1u);
  EXPECT_EQ(p.program.buffer(p.plan.epilogue.staged[0]).name, "total");
  std::string order;
  ir::walk(p.program.launches[0].body, [&](const ir::Stmt& s) {
    const auto* g = s.as<ir::Gemm>();
    if (g) order += ir::constant_int(g->clear) == 1 ? "G" : "g";
    const auto* map = s.as<ir::Map>();
    if (map) order += map->vars.size() == 1 ? "1" : "2";
    if (const auto* fill = s.as<ir::Fill>()) order += p.program.buffer(fill->to.buffer).name == "acc" ? "!" : "";
  });
  EXPECT_EQ(order, "1G2");
  expect_same_meaning(
      p,
      {numbers({200, 160}, f16, 1), numbers({160, 128}, f16, 2), numbers({200, 5}, f32, 3), numbers({5, 128}, f32, 4)},
      {200, 128}, f32);
}

// Two gemms of a turn on tiles that all come from memory: one wait and one release for all of them.
TEST(Plans, TilesOfOneLoopComeTogether) {
  const std::string text =
      "program waves {\n  param A: float16[200, 160]\n  param B: float16[160, 64]\n  param S: float32[5]\n"
      "  param C: float32[256, 64]\n  launch waves(by: 2) threads(tx: 128) {\n    shared As: float16[64, 32]\n"
      "    shared Bs: float16[32, 64]\n    shared Ds: float16[64, 32]\n    fragment part: float32[64, 64]\n"
      "    fragment top: float32[64, 64]\n    fragment low: float32[64, 64]\n    fill to=top value=0.0\n"
      "    fill to=low value=0.0\n    for k in 0..5 pipelined(stages=2) {\n"
      "      copy from=A[by * 128 : 64, k * 32 : 32] to=As\n      scale: float32 = S[k]\n"
      "      copy from=B[k * 32 : 32, 0 : 64] to=Bs\n      gemm a=As b=Bs c=part clear=true\n"
      "      map i in 64, j in 64 {\n        top[i, j] = top[i, j] + part[i, j] * scale\n      }\n"
      "      copy from=A[by * 128 + 64 : 64, k * 32 : 32] to=Ds\n      gemm a=Ds b=Bs c=part clear=true\n"
      "      map i in 64, j in 64 {\n        low[i, j] = low[i, j] + part[i, j] * scale\n      }\n    }\n"
      "    copy from=top to=C[by * 128 : 64, 0 : 64]\n    copy from=low to=C[by * 128 + 64 : 64, 0 : 64]\n  }\n}\n";
  const auto check = [](const std::string& t, const std::vector<std::vector<std::string>>& rings) {
    const Planned p = planned(t);
    ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
    EXPECT_EQ(ring_tiles(p), rings);
    expect_same_meaning(p, {numbers({200, 160}, f16, 1), numbers({160, 64}, f16, 2), numbers({5}, f32, 3)}, {256, 64},
                        f32);
  };
  check(text, {{"As", "Bs", "Ds"}});
  // The loader copies all where it copies the first, which must not be before what says from where.
  std::string named = text;
  const std::string from = "      copy from=A[by * 128 + 64 : 64, k * 32 : 32] to=Ds\n";
  named.replace(named.find(from), from.size(),
                "      row: int32 = by * 128 + 64\n      copy from=A[row : 64, k * 32 : 32] to=Ds\n");
  check(named, {{"As", "Bs"}, {"Ds"}});
}

// One wave of blocks hides no latency of one another's: small tiles have all slots, whatever stands beside the product.
TEST(Plans, OneWaveHasMoreUnderWay) {
  for (const int blocks : {2, 3}) {
    const std::string text =
        "program scaled {\n  param A: float16[192, 160]\n  param B: float16[160, 64]\n  param C: float32[192, 64]\n"
        "  launch scaled(bx: " +
        std::to_string(blocks) +
        ") threads(tx: 128) {\n    shared As: float16[64, 32]\n    shared Bs: float16[32, 64]\n"
        "    fragment part: float32[64, 64]\n    fragment sum: float32[64, 64]\n    fill to=sum value=0.0\n"
        "    for k in 0..5 pipelined(stages=4) {\n      copy from=A[bx * 64 : 64, k * 32 : 32] to=As\n"
        "      copy from=B[k * 32 : 32, 0 : 64] to=Bs\n      gemm a=As b=Bs c=part clear=true\n"
        "      map i in 64, j in 64 {\n        sum[i, j] = sum[i, j] + part[i, j] * 2.0\n      }\n    }\n"
        "    copy from=sum to=C[bx * 64 : 64, 0 : 64]\n  }\n}\n";
    const Planned p = planned(text);
    ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
    EXPECT_EQ(p.plan.rings[0].slots, blocks == 2 ? 8 : 4);
    expect_same_meaning(p, {numbers({192, 160}, f16, 1), numbers({160, 64}, f16, 2)}, {192, 64}, f32);
  }
}

// Three products: what the second makes is not needed before the third, whose slot the first reads too.
TEST(Plans, ProductsAreWaitedForWhereTheyAreNeeded) {
  std::string text = attention_text(96, false);
  const auto put = [&](const std::string& before, const std::string& what) { text.insert(text.find(before), what); };
  put("    fragment most", "    fragment other: float32[64, 32]\n");
  put("    fill to=most", "    fill to=other value=0.0\n");
  put("    }\n    copy from=acc", "      gemm a=P b=Ks c=other\n");
  put("    copy from=acc", "    map i in 64, j in 32 {\n      acc[i, j] = acc[i, j] + other[i, j]\n    }\n");
  const Planned p = planned(text, {.staging = plan::Staging::None});
  ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
  std::string order;
  ir::walk(p.program.launches[0].body, [&](const ir::Stmt& s) {
    const auto* g = s.as<ir::Gemm>();
    if (g) order += g->completion.queue == ir::Queue::Wgmma ? "g" : "G";
    if (const auto* n = s.as<ir::Drain>()) order += std::to_string(n->pending);
    if (s.as<ir::Arrive>()) order += "a";
  });
  // After the scores all wait; the slot of Vs goes back with the second product's wait, that of Ks with the third's.
  EXPECT_EQ(order,
            "g0gg0aa"
            "a");
  expect_same_meaning(p, {numbers({96, 32}, f16, 5), numbers({96, 32}, f16, 6), numbers({96, 32}, f16, 7)}, {96, 32},
                      f32);
}

// Tiles of the grid in steps of the program's own, the last of which hold nothing.
std::string walking_text(int wave) {
  const std::string blocks = std::to_string(wave);
  return "program walk {\n  param A: float16[200, 96]\n  param B: float16[96, 64]\n  param C: float16[200, 64]\n"
         "  launch walk(block: " +
         blocks +
         ") threads(tx: 128) {\n    shared As: float16[64, 32]\n    shared Bs: float16[32, 64]\n"
         "    fragment acc: float32[64, 64]\n    for turn in 0..3 {\n      tile: int32 = turn * " +
         blocks +
         " + block\n      if tile < 4 {\n        fill to=acc value=0.0\n"
         "        for k in 0..select(tile == 2, 1, 3) pipelined(stages=3) {\n"
         "          copy from=A[tile * 64 : 64, k * 32 : 32] to=As\n"
         "          copy from=B[k * 32 : 32, 0 : 64] to=Bs\n          gemm a=As b=Bs c=acc\n        }\n"
         "        copy from=acc to=C[tile * 64 : 64, 0 : 64]\n      }\n    }\n  }\n}\n";
}

TEST(Plans, ALoopUnderAConditionGetsALoader) {
  for (const int wave : {1, 2, 3}) {
    const Planned p = planned(walking_text(wave));
    ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
    ASSERT_EQ(p.plan.rings.size(), 1u);
    ASSERT_EQ(p.plan.epilogue.staged.size(), 1u);
    EXPECT_EQ(p.program.buffer(p.plan.epilogue.staged[0]).name, "acc");
    expect_same_meaning(p, {numbers({200, 96}, f16, 1), numbers({96, 64}, f16, 2)}, {200, 64}, f16);
  }
}

// A Map reads what a ring brings, in a loop whose turns are counted: it must not depend on a thread's own counter,
// which would keep its fragments in memory.
TEST(Plans, MapsThatReadASlotReadNoLocals) {
  std::string text = attention_text(224, true);
  const std::string plain = "S[i, j] = max(S[i, j] - most[i], -8.0)",
                    biased = "S[i, j] = max(S[i, j] - most[i], -8.0) + float32(Ks[j, 0])";
  text.replace(text.find(plain), plain.size(), biased);
  const Planned p = planned(text);
  ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
  int maps = 0;
  ir::walk(p.program.launches[0].body, [&](const ir::Stmt& s) {
    if (!s.as<ir::Map>()) return;
    ++maps;
    for (ir::BufferId id : ir::used_buffers({s})) EXPECT_NE(p.program.buffer(id).space, ir::Space::Local);
  });
  EXPECT_GT(maps, 2);
  expect_same_meaning(p, {numbers({224, 32}, f16, 5), numbers({224, 32}, f16, 6), numbers({224, 32}, f16, 7)},
                      {224, 32}, f32);
}

// Small products of one wave and a part of the next run as two blocks a multiprocessor, where their rings have the
// room.
TEST(Plans, ProductsOfOneWaveAndMoreShareMultiprocessors) {
  const auto work = [](int64_t blocks, int step) {
    return planned(
               fmt::format(
                   "program gemm {{\n  param A: float16[{0}, 512]\n  param B: float16[512, 64]\n"
                   "  param C: float16[{0}, 64]\n  launch gemm(bx: {1}) threads(tx: 128) {{\n"
                   "    shared As: float16[64, {2}]\n    shared Bs: float16[{2}, 64]\n    fragment acc: float32[64, "
                   "64]\n    fill to=acc value=0.0\n    for k in 0..512 // {2} pipelined(stages=3) {{\n"
                   "      copy from=A[bx * 64 : 64, k * {2} : {2}] to=As\n"
                   "      copy from=B[k * {2} : {2}, 0 : 64] to=Bs\n      gemm a=As b=Bs c=acc\n    }}\n"
                   "    copy from=acc to=C[bx * 64 : 64, 0 : 64]\n  }}\n}}\n",
                   blocks * 64, blocks, step))
        .plan.work;
  };
  const int64_t all = small_gpu().multiprocessors;
  EXPECT_EQ(work(all, 64).blocks_per_multiprocessor, 1);
  EXPECT_EQ(work(all + 1, 64).blocks_per_multiprocessor, 2);
  EXPECT_EQ(work(2 * all, 64).blocks_per_multiprocessor, 2);
  EXPECT_EQ(work(2 * all + 1, 64).kind, plan::Work::Kind::Persistent);
  EXPECT_EQ(work(2 * all, 256).blocks_per_multiprocessor, 1);  // two slots would not hide what memory takes
}

TEST(Plans, WhatIsRefusedSaysWhy) {
  std::string text = gemm_text("128", "64", 3);
  auto with = [&](const std::string& from, const std::string& to) {
    std::string t = text;
    t.replace(t.find(from), from.size(), to);
    return planned(t).plan.why_no_loader();
  };
  EXPECT_EQ(planned(text, {.slots = 1}).plan.why_no_loader(), "rings of two slots do not fit in shared memory");
  EXPECT_EQ(with("threads(tx: 128)", "threads(tx: 96)"), "the threads are not one to four warpgroups");
  EXPECT_EQ(with("threads(tx: 128)", "threads(tx: 640)"), "the threads are not one to four warpgroups");
  EXPECT_EQ(with("threads(tx: 128)", "threads(tx: 64, ty: 2)"), "the block is not along x alone");
  EXPECT_EQ(with("pipelined(stages=3)", ""),
            "no pipelined loop brings operands of a matrix instruction in copies that TMA does");
}

// Patches of an image that are a box of it, with what is out of bounds for padding.
TEST(Plans, PatchesOfAnImageComeByTma) {
  const auto text = [](int rows, int stride) {
    const int out = stride == 1 ? 8 : 4;
    return fmt::format(
        "program patches {{\n  param image: float16[3, 8, 8, 32]\n  param W: float16[288, 64]\n"
        "  param C: float16[{0}, 64]\n  launch patches(by: {1}) threads(tx: 128) {{\n    shared Ps: float16[{2}, 32]\n"
        "    shared Ws: float16[32, 64]\n    fragment acc: float32[{2}, 64]\n    fill to=acc value=0.0\n"
        "    for k in 0..9 pipelined(stages=3) {{\n"
        "      copy from=image to=Ps im2col=(row_block=by, column_block=k, kernel=3, stride={3}, pad=1)\n"
        "      copy from=W[k * 32 : 32, 0 : 64] to=Ws\n      gemm a=Ps b=Ws c=acc\n    }}\n"
        "    copy from=acc to=C[by * {2} : {2}, 0 : 64]\n  }}\n}}\n",
        3 * out * out, (3 * out * out + rows - 1) / rows, rows, stride);
  };
  const Planned p = planned(text(64, 1));
  ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
  EXPECT_EQ(ring_tiles(p)[0], (std::vector<std::string>{"Ps", "Ws"}));
  expect_same_meaning(p, {numbers({3, 8, 8, 32}, f16, 1), numbers({288, 64}, f16, 2)}, {192, 64}, f16);
  for (const std::string& other : {text(128, 1), text(64, 2)})
    EXPECT_EQ(planned(other).plan.why_no_loader(),
              "'Ps' does not come by TMA: it takes patches of an image that are no box of it");
}

// A box that begins between pieces of 16 bytes of a row is an illegal instruction on an H200.
TEST(Plans, BoxesBeginAtPiecesOfRows) {
  const auto plan_of = [](const char* assumption, const char* first) {
    return planned(fmt::format(
                       "program shifted {{\n  param A: float16[64, 512]\n  param W: float16[256, 64]\n"
                       "  param C: float16[64, 64]\n  param n: int32\n{}  launch shifted(bx: 1) threads(tx: 128) {{\n"
                       "    shared As: float16[64, 32]\n    shared Ws: float16[32, 64]\n"
                       "    fragment acc: float32[64, 64]\n    fill to=acc value=0.0\n"
                       "    for k in 0..8 pipelined(stages=3) {{\n      copy from=A[0 : 64, {} : 32] to=As\n"
                       "      copy from=W[k * 32 : 32, 0 : 64] to=Ws\n      gemm a=As b=Ws c=acc\n    }}\n"
                       "    copy from=acc to=C\n  }}\n}}\n",
                       assumption, first))
        .plan;
  };
  const char* why = "'As' does not come by TMA: it may begin between pieces of 16 bytes of rows of 'A'";
  EXPECT_EQ(plan_of("", "k * 32 + n").why_no_loader(), why);
  EXPECT_EQ(plan_of("", "k * 32 + 4").why_no_loader(), why);
  EXPECT_TRUE(plan_of("", "k * 32 + 8").has_loader());
  EXPECT_TRUE(plan_of("", "k * 32 + n * 8 % 32").has_loader());
  EXPECT_TRUE(plan_of("  assume n % 8 == 0\n", "k * 32 + n").has_loader());
}

// A store by TMA ends at a piece of 16 bytes: what lies between padded rows, or behind a tensor, is not the program's.
TEST(Plans, ResultsWhoseRowsEndInAPieceAreStoredByThreads) {
  const auto stores_by_tma = [](const char* tensor) {
    std::string text = gemm_text("200", "160", 4);
    text.replace(text.find("float16[200, 128]"), 17, tensor);
    return planned(text).plan.epilogue.staged.size() == 1;
  };
  EXPECT_TRUE(stores_by_tma("float16[200, 128]"));
  EXPECT_TRUE(stores_by_tma("float16[200, 120] strides=[136, 1]"));
  EXPECT_FALSE(stores_by_tma("float16[200, 122] strides=[136, 1]"));
  EXPECT_FALSE(stores_by_tma("float16[200, 124] strides=[128, 1]"));
  std::string text = gemm_text("200", "160", 4);
  text.replace(text.find("to=C[by * 64 : 64, bx * 64 : 64]"), 32, "to=C[by * 64 : 64, int64(bx) * int64(64) : 64]");
  EXPECT_EQ(planned(text).plan.epilogue.staged.size(), 1u);
}

// Blocks that have nothing to do return: a condition around the rest, whose loops are counted.
TEST(Plans, BlocksThatReturnEarlyHaveALoader) {
  for (const bool causal : {false, true}) {
    std::string text = attention_text(224, causal);
    const std::string first = "    copy from=Q";
    text.insert(text.find(first),
                "    last: int32 = bx * 64\n    if 64 <= last and last < 190 {\n      return\n    }\n");
    const Planned p = planned(text, {.side_by_side = false});
    ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
    EXPECT_TRUE(p.plan.is_persistent());
    EXPECT_EQ(p.plan.rings.size(), 2u);
    int asked = 0, returns = 0;
    ir::walk(p.program.launches[0].body, [&](const ir::Stmt& s) {
      const auto* g = s.as<ir::Gemm>();
      asked += g && g->clear;
      returns += s.as<ir::Return>() != nullptr;
    });
    EXPECT_EQ(returns, 0);
    EXPECT_EQ(asked, 2);  // masks are split in there, too
    expect_same_meaning(p, {numbers({224, 32}, f16, 5), numbers({224, 32}, f16, 6), numbers({224, 32}, f16, 7)},
                        {224, 32}, f32);
  }
  // Threads that return on their own stay as they are.
  std::string text = attention_text(224, false);
  text.insert(text.find("    copy from=Q"), "    if tx == 40 {\n      return\n    }\n");
  EXPECT_EQ(planned(text).plan.why_no_loader(), "threads return early");
}

TEST(Plans, MasksAreAskedForOnceATile) {
  for (const bool reversed : {false, true}) {
    std::string text = attention_text(224, true);
    if (reversed) {
      const std::string seen = "select(k * 32 + j <= bx * 64 + i and k * 32 + j < 224, 0.0, -500.0)";
      text.replace(text.find(seen), seen.size(), "select(k * 32 + j > bx * 64 + i or 224 <= k * 32 + j, -500.0, 0.0)");
    }
    const Planned p = planned(text);
    int asked = 0;
    ir::walk(p.program.launches[0].body, [&](const ir::Stmt& s) {
      const auto* g = s.as<ir::Gemm>();
      asked += g && g->clear;
    });
    EXPECT_EQ(asked, 2);  // of the first scores and of the others
    expect_same_meaning(p, {numbers({224, 32}, f16, 5), numbers({224, 32}, f16, 6), numbers({224, 32}, f16, 7)},
                        {224, 32}, f32);
  }
}

// A launch whose rings do not fit gets shorter ones; the others keep theirs.
TEST(Plans, EachLaunchHasItsOwn) {
  const auto launch = [](const char* name, int columns, int stages) {
    return fmt::format(
        "  launch {0}(bx: 8, by: 64) threads(tx: 256) {{\n    shared {0}_a: bfloat16[128, 64]\n"
        "    shared {0}_b: bfloat16[64, {1}]\n    fragment {0}_c: float32[128, {1}]\n    fill to={0}_c value=0.0\n"
        "    for k in 0..16 pipelined(stages={2}) {{\n      copy from=A[by * 128 : 128, k * 64 : 64] to={0}_a\n"
        "      copy from=B[k * 64 : 64, bx * {1} : {1}] to={0}_b\n      gemm a={0}_a b={0}_b c={0}_c\n    }}\n"
        "    copy from={0}_c to={0}[by * 128 : 128, bx * {1} : {1}]\n  }}\n",
        name, columns, stages);
  };
  const std::string text =
      "program two {\n  param A: bfloat16[8192, 1024]\n  param B: bfloat16[1024, 2048]\n  param small: bfloat16[8192, "
      "1024]\n"
      "  param large: bfloat16[8192, 2048]\n" +
      launch("small", 128, 4) + launch("large", 256, 4) + "}\n";
  const passes::ThreadLowering low =
      passes::lower_to_threads(passes::canonicalize(ir::parse(text, "two.tile")), target::GpuTarget::of(90));
  ASSERT_EQ(low.plans[1].rings.size(), 1u);
  EXPECT_EQ(low.plans[1].rings[0].slots, 3);
  EXPECT_EQ(low.plans[0].rings[0].slots, 4);
  EXPECT_EQ(low.plans[0].epilogue.how, plan::Staging::Whole);
  for (const passes::TriedPlan& t : low.tried) EXPECT_TRUE(t.why_not.empty() || t.launch == 1) << t.why_not;
}

}  // namespace
}  // namespace tilewright
