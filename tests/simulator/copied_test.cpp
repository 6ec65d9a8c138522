// Copies by the threads of a role (cp.async), of which an mbarrier tells: right results, no finding, and what becomes
// of those that no instruction does.
#include "ir/print.h"
#include "ir/rewrite.h"
#include "passes/canonicalize.h"
#include "passes/lower_to_threads.h"
#include "passes/tile/fetch_ahead.h"
#include "simulator/lowered_programs.h"
#include "simulator/simulate.h"
#include "tilewright/compile.h"
#include "tilewright/diagnostic.h"

namespace tilewright::simulator {
namespace {

// A warpgroup brings rows of B into two slots, `width` elements a thread at a time; another multiplies.
std::string brought(int64_t columns, int64_t first, int64_t width, const std::string& beside = "",
                    const std::string& value = "") {
  const int64_t lanes = 64 / width, rows = 128 / lanes;
  const std::string at = fmt::format("(tx - 128) % {} * {} + i", lanes, width);
  const std::string element = fmt::format("B[row, {} + {}]", at, first);
  return fmt::format(
      "program brought {{\n  param A: float16[64, 64]\n  param B: float16[300, {0}]\n  param C: float32[64, 64]\n"
      "  launch brought(bx: 1) threads(tx: 256) {{\n    shared As: float16[64, 64]\n    shared Bs: float16[2, 64, 64]\n"
      "    shared turns: int32[128]\n    fragment acc: float32[64, 64]\n    barrier full: uint64[2] arrive=[128, 128]\n"
      "    barrier empty: uint64[2] arrive=[128, 128]\n    copy from=A[0 : 64, 0 : 64] to=As\n    if tx < 128 {{\n"
      "      fill to=acc value=0.0\n      for k in 0..5 {{\n        wait barrier=full[k % 2] parity=k // 2 % 2\n"
      "        gemm a=As b=Bs[k % 2, 0 : 64, 0 : 64] c=acc transpose_b=true\n        arrive barrier=empty[k % 2]\n"
      "      }}\n      copy from=acc to=C[0 : 64, 0 : 64]\n    }} else {{\n      for k in 0..5 {{\n"
      "        wait barrier=empty[k % 2] parity=k // 2 % 2 ^ 1\n        for r in 0..{1} {{\n"
      "          row: int32 = k * 64 + r * {2} + (tx - 128) // {3}\n          for i in 0..{4} vectorized {{\n"
      "            cp_async Bs[k % 2, r * {2} + (tx - 128) // {3}, {5}] = {6}\n          }}\n        }}\n{7}"
      "        arrive barrier=full[k % 2] queue=cp_async\n      }}\n    }}\n  }}\n}}\n",
      columns, 64 / rows, rows, lanes, width, at, value.empty() ? element : fmt::format(fmt::runtime(value), element),
      beside);
}

passes::ThreadLowering lowered(const std::string& text) {
  return passes::lower_to_threads(passes::canonicalize(ir::parse(text, "brought.tile")), target::GpuTarget::of(90));
}
template <class Is>
int count(const passes::ThreadLowering& low, Is&& is) {
  int n = 0;
  ir::walk(low.threads.launches[0].body, [&](const ir::Stmt& s) { n += is(s); });
  return n;
}
bool is_copied(const ir::Stmt& s) {
  const auto* n = s.as<ir::Copy>();
  return n && n->completion.queue == ir::Queue::CpAsync;
}
bool is_told(const ir::Stmt& s) {
  const auto* n = s.as<ir::Arrive>();
  return n && n->queue == ir::Queue::CpAsync;
}

void expect_same(const std::string& text) {
  SCOPED_TRACE(text);
  std::mt19937 random(1);
  const ir::TileProgram tiles = ir::parse(text, "brought.tile");
  const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
  const std::vector<NDArray> want = arrays_of(tiles, random), got = clones(want);
  compile(program, {.engine = Engine::Interpreter})(want[0], want[1], want[2]);
  compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(got[0], got[1], got[2]);
  EXPECT_EQ(std::memcmp(want[2].data(), got[2].data(), 64 * 64 * 4), 0);
}

// Rows beyond the tensor and elements that a condition leaves out are zeros, which the copy itself writes.
TEST(Copied, AnMbarrierTellsOfCopies) {
  for (const int64_t width : {2, 4, 8, 16})
    for (const char* value : {"", "select(row % 3 != 1, {}, float16(0.0))"}) {
      const std::string text = width == 16 ? brought(80, 16, width, "", value) : brought(72, 8, width, "", value);
      expect_same(text);
      const passes::ThreadLowering low = lowered(text);
      EXPECT_EQ(count(low, is_copied), width == 16 ? 2 : 1) << text;
      EXPECT_EQ(count(low, is_told), 1);
    }
}

// Who copies does not wait for it, nor for the other threads of its role.
TEST(Copied, NothingIsWaitedForByWhoCopies) {
  const passes::ThreadLowering low = lowered(brought(64, 0, 8));
  for (const ir::Stmt& s : low.threads.launches[0].body) {
    const auto* role = s.as<ir::Role>();
    if (!role || role->begin != 128) continue;
    ir::walk(role->body, [&](const ir::Stmt& x) {
      EXPECT_FALSE(x.as<ir::Sync>() || x.as<ir::Drain>() || x.as<ir::Fence>()) << ir::name_of(x);
    });
  }
}

// Rows of 65 elements are no multiple of 4 bytes, a single element is none either: plain stores, waited for in order.
TEST(Copied, WhatNoInstructionCopiesIsStored) {
  for (const std::string& text : {brought(65, 1, 8), brought(64, 0, 1)}) {
    expect_same(text);
    const passes::ThreadLowering low = lowered(text);
    EXPECT_EQ(count(low, is_copied) + count(low, is_told), 0);
    EXPECT_GT(count(low, [](const ir::Stmt& s) { return s.as<ir::Drain>() != nullptr; }), 0);
  }
}

// An arrival of copies speaks of nothing else.
TEST(Copied, OtherStoresAreFencedBeforeCopiesTell) {
  const std::string text = brought(64, 0, 8, "        turns[tx - 128] = k\n");
  expect_same(text);
  const auto is_fence = [](const ir::Stmt& s) {
    const auto* n = s.as<ir::Fence>();
    return n && n->proxy == ir::FenceProxy::Block;
  };
  EXPECT_EQ(count(lowered(text), is_fence), 1);
  EXPECT_EQ(count(lowered(brought(64, 0, 8)), is_fence), 0);
}

std::string gathered() {
  std::string text = brought(64, 0, 8, "", "select(valid[r * 16 + (tx - 128) // 8], {}, float16(0.0))");
  const auto put = [&](const std::string& from, const std::string& to) {
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
  };
  put("  param C", "  param rows: int32[320]\n  param C");
  put("    shared turns: int32[128]\n", "    shared valid: bool[64]\n    local row: int32\n    row = 0\n");
  put("row: int32 = k * 64 + r * 16 + (tx - 128) // 8",
      "row = rows[k * 64 + r * 16 + (tx - 128) // 8] % 300\n          valid[r * 16 + (tx - 128) // 8] = row % 3 != 1");
  return text;
}

// Rows that a tensor names, eight threads a row: a warp's threads tell each other of theirs and no others, and the
// numbers of a turn's rows are read before its slot is free.
TEST(Copied, RowsToGatherAreKnownBeforeTheirSlotIsFree) {
  const std::string text = gathered();
  std::mt19937 random(1);
  const ir::TileProgram tiles = ir::parse(text, "brought.tile");
  const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
  const std::vector<NDArray> want = arrays_of(tiles, random), got = clones(want);
  compile(program, {.engine = Engine::Interpreter})(want[0], want[1], want[2], want[3]);
  compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(got[0], got[1], got[2], got[3]);
  EXPECT_EQ(std::memcmp(want[3].data(), got[3].data(), 64 * 64 * 4), 0);
  const passes::ThreadLowering low = lowered(text);
  int of_warps = 0, of_more = 0, loads = 0, waits_before = 0;
  for (const ir::Stmt& s : low.threads.launches[0].body) {
    const auto* role = s.as<ir::Role>();
    if (!role || role->begin != 128) continue;
    bool waited = false;
    ir::walk(role->body, [&](const ir::Stmt& x) {
      if (const auto* sync = x.as<ir::Sync>()) ++(sync->scope == ir::SyncScope::Warp ? of_warps : of_more);
      waited = waited || x.as<ir::Wait>();
      ir::for_each_expr(x, [&](const ir::Expr& e) {
        ir::walk(e, [&](const ir::Expr& part) {
          const auto* load = part.as<ir::Load>();
          if (!load || low.threads.buffer(load->buffer).name != "rows") return;
          ++loads, waits_before += waited;
        });
      });
    });
  }
  EXPECT_EQ(of_warps, 2) << "before the store, and before what was stored is read";
  EXPECT_EQ(of_more, 0);
  EXPECT_EQ(loads, 4);
  EXPECT_EQ(waits_before, 0);
}

// Where a turn may be the last, the rows of later ones may not exist.
TEST(Copied, RowsToGatherAreReadInTheirTurnWhereALoopMayEnd) {
  std::string text = gathered();
  const std::string first = "row = rows[";
  text.insert(text.find(first),
              "if k * 64 + r * 16 + (tx - 128) // 8 >= 300 {\n            break\n          }\n          ");
  for (const bool ends : {false, true}) {
    const ir::TileProgram tiles = passes::canonicalize(ir::parse(ends ? text : gathered(), "brought.tile"));
    EXPECT_EQ(ir::print(passes::fetch_ahead(tiles)) == ir::print(tiles), ends);
  }
}

// The fence of those who learn of the copies is needed: wgmma reads by another proxy.
TEST(Copied, WhoLearnsOfCopiesFencesThemForWgmma) {
  passes::ThreadLowering low = lowered(brought(64, 0, 8));
  std::mt19937 random(1);
  const std::vector<NDArray> arrays = arrays_of(ir::parse(brought(64, 0, 8), "brought.tile"), random);
  const auto run_it = [&] {
    interpreter::Binding binding;
    for (size_t i = 0; i < 3; ++i) binding.buffers.push_back({low.threads.params[i].buffer, arrays[i].data()});
    simulate(low.threads, binding, {});
  };
  run_it();
  for (ir::Stmt& s : low.threads.launches[0].body) {
    const auto* role = s.as<ir::Role>();
    if (!role || role->begin != 0 || role->end != 128) continue;
    s = ir::make_stmt(ir::Role{0, 128,
                               ir::rewrite(role->body,
                                           [](const ir::Stmt& x) -> std::optional<ir::Body> {
                                             const auto* n = x.as<ir::Fence>();
                                             return n && n->proxy == ir::FenceProxy::Async ? std::optional(ir::Body{})
                                                                                           : std::nullopt;
                                           })},
                      s->location);
  }
  try {
    run_it();
    FAIL();
  } catch (const LaunchError& error) {
    EXPECT_NE(std::string(error.what()).find("fence"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tilewright::simulator
