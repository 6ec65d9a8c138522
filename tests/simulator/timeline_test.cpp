// When things happen by the simulator's clocks: nothing is done twice at a time, who waits goes on when that is done,
// and nothing that is computed or counted depends on it.
#include "simulator/timeline.h"

#include "driver/simulator_engine.h"
#include "ir/parse.h"
#include "passes/canonicalize.h"
#include "passes/lower_to_threads.h"
#include "simulator/lowered_programs.h"
#include "simulator/simulate.h"
#include "target/unit_rates.h"

namespace tilewright::simulator {
namespace {

using Event = TimelineEvent;
using Track = Event::Track;

std::vector<Event> of(const Timeline& timeline, Track track, uint32_t number, uint32_t block = 0) {
  std::vector<Event> out;
  for (const Event& e : timeline.events)
    if (e.track == track && e.number == number && e.block == block) out.push_back(e);
  return out;
}

double end_of(const std::vector<Event>& events, const std::string& what) {
  double end = -1;
  for (const Event& e : events)
    if (e.what == what) end = std::max(end, e.end);
  return end;
}

Timeline timeline_of(int threads, const std::string& body, int blocks = 1) {
  Timeline timeline;
  SimulateOptions options;
  options.timeline = &timeline;
  const Arrays arrays;
  run(launch(threads, body, blocks), arrays.list(), options);
  return timeline;
}

// A warp, a unit and an mbarrier have one thing at a time.
void expect_in_turn(const Timeline& timeline) {
  std::map<std::tuple<uint32_t, uint32_t, int, uint32_t>, double> ends;
  for (const Event& e : timeline.events) {
    double& end = ends[{e.launch, e.block, static_cast<int>(e.track), e.number}];
    EXPECT_GE(e.begin, end - 1e-9) << e.what << " of " << e.number;
    EXPECT_GE(e.end, e.begin);
    end = e.end;
  }
}

TEST(Timeline, ABarrierEndsForAllWithTheLast) {
  // The second warp has a loop before it.
  const Timeline timeline =
      timeline_of(64,
                  "    shared s: float32[64] place=0\n    local r: float32[1]\n    r[0] = 0.0\n"
                  "    if tx >= 32 {\n      for i in 0..100 {\n        r[0] = r[0] + 1.0\n      }\n    }\n"
                  "    sync block\n    s[tx] = r[0]\n");
  expect_in_turn(timeline);
  const std::vector<Event> first = of(timeline, Track::Warp, 0), second = of(timeline, Track::Warp, 1);
  const double met = end_of(second, "computes");
  EXPECT_GT(met, 100);
  EXPECT_EQ(end_of(first, "waits for the block"), met);
  EXPECT_EQ(end_of(second, "waits for the block"), -1) << "who is last waits for nobody";
  EXPECT_EQ(first.back().what, "writes shared memory");
  EXPECT_EQ(first.back().begin, met);
}

TEST(Timeline, ConflictsTakeLonger) {
  const auto clocks = [](const std::string& index) {
    const Timeline timeline = timeline_of(32, "    shared s: float32[1056] place=0\n    s[" + index + "] = A[tx]\n");
    const std::vector<Event> events = of(timeline, Track::Warp, 0);
    return events.back().end - events.back().begin;
  };
  EXPECT_EQ(clocks("tx"), 1);
  EXPECT_EQ(clocks("tx * 32"), 32);
}

TEST(Timeline, NeighboursOfOneLineAreOneEventWithOneLatency) {
  const Timeline timeline =
      timeline_of(32, "    local r: float32[4]\n    for i in 0..4 {\n      r[i] = A[tx * 4 + i]\n    }\n");
  const std::vector<Event> events = of(timeline, Track::Warp, 0);
  EXPECT_EQ(std::count_if(events.begin(), events.end(), [](const Event& e) { return e.what == "reads global memory"; }),
            4)
      << "each is followed by what keeps its value";
  const Timeline stores = timeline_of(32, "    for i in 0..4 {\n      B[tx * 4 + i] = 1.0\n    }\n");
  ASSERT_EQ(stores.events.size(), 1u);
  EXPECT_EQ(stores.events[0].end, 4 * 16 / 2) << "16 sectors each, two a clock";
}

TEST(Timeline, LooksAtTheFirstBlocksAndNoMoreThanItMay) {
  Timeline timeline;
  timeline.blocks = 2;
  SimulateOptions options;
  options.timeline = &timeline;
  const Arrays arrays;
  const std::string text = launch(32, "    if tx == 0 {\n      atomic add to=N[0] value=1\n    }\n", 5);
  run(text, arrays.list(), options);
  std::set<uint32_t> blocks;
  for (const Event& e : timeline.events) blocks.insert(e.block);
  EXPECT_EQ(blocks, (std::set<uint32_t>{0, 1}));
  timeline = {}, timeline.most = 1;
  run(text, arrays.list(), options);
  EXPECT_EQ(timeline.events.size(), 1u);
  EXPECT_TRUE(timeline.is_full());
}

struct Ran {
  Timeline timeline;
  std::vector<LaunchReport> reports;
  NDArray c;
};

Ran run_product(bool looks) {
  const Product p{128, 128, 512, 128, 128, 64, 128, 3, false, false, false, false, "bfloat16", "float32"};
  const ir::TileProgram tiles = ir::parse(p.text(), "product.tile");
  std::mt19937 random(1);
  const std::vector<NDArray> arrays = arrays_of(tiles, random);
  Ran out;
  const auto keep = [&](std::vector<LaunchReport> reports, const Timeline* timeline) {
    out.reports = std::move(reports);
    EXPECT_EQ(timeline != nullptr, looks);
    if (timeline) out.timeline = *timeline;
  };
  SimulateOptions options;
  counting_executable(tiles, options, keep, looks)(arrays[0], arrays[1], arrays[2]);
  out.c = arrays[2];
  return out;
}

TEST(Timeline, OfAProductThatTmaFeeds) {
  const Ran looked = run_product(true), plain = run_product(false);
  EXPECT_EQ(std::memcmp(looked.c.data(), plain.c.data(), 128 * 128 * 4), 0);
  ASSERT_EQ(looked.reports.size(), plain.reports.size());
  EXPECT_EQ(looked.reports[0].total.barriers, plain.reports[0].total.barriers);
  EXPECT_EQ(looked.reports[0].total.shared_wavefronts, plain.reports[0].total.shared_wavefronts);
  const Timeline& t = looked.timeline;
  expect_in_turn(t);
  int64_t loaded = 0;
  double free = 0;
  for (const Event& e : of(t, Track::Tma, 0)) {
    loaded += e.what.starts_with("loads") ? e.bytes : 0;
    EXPECT_GE(e.begin, free);
    free = e.end;
  }
  EXPECT_EQ(loaded, 2 * 128 * 512 * 2) << "both matrices, once";
  // A quarter of the tensor cores multiplies a quarter of the rows at its rate, back to back or later.
  double busy = 0;
  for (const Event& e : of(t, Track::Matrix, 0)) busy += e.end - e.begin;
  EXPECT_NEAR(busy, 128.0 * 128 * 512 / target::kMultiplyAdds, 1);
  // The first product waits for the first tile: no warp multiplies before its barrier's first phase is over.
  std::map<std::string, double> phases;
  for (const Event& e : t.events)
    if (e.track == Track::Barrier && e.what == "phase 0") phases.emplace(t.launches[0].barriers.at(e.number), e.end);
  double first = 1e9;
  for (const auto& [name, end] : phases)
    if (name.find("full") != std::string::npos) first = std::min(first, end);
  ASSERT_LT(first, 1e9);
  EXPECT_GE(of(t, Track::Matrix, 0).front().begin, first);
  EXPECT_GT(end_of(of(t, Track::Warp, 0), "waits for its products"), first);
}

// Roles, rings, two products in a loop, copies by threads: on both kinds of GPU.
TEST(Timeline, OfOtherProgramsIsInTurnToo) {
  const std::string texts[] = {
      Attention{128, 256, 64, 64, 64, 128, 2}.text(),
      Product{192, 96, 160, 64, 96, 32, 128, 4, false, true, true, true, "float16", "float16"}.text(),
      Product{256, 128, 128, 128, 64, 64, 256, 2, true, false, false, false, "bfloat16", "bfloat16"}.text(),
      Product{64, 64, 64, 64, 64, 16, 128, 2, false, false, false, false, "float64", "float64"}.text()};
  for (const std::string& text : texts)
    for (const int arch : {80, 90}) {
      SCOPED_TRACE(fmt::format("sm_{}\n{}", arch, text));
      const ir::TileProgram tiles = ir::parse(text, "p.tile");
      std::mt19937 random(1);
      const std::vector<NDArray> arrays = arrays_of(tiles, random);
      const std::vector<Argument> arguments(arrays.begin(), arrays.end());
      size_t events = 0;
      const auto keep = [&](const std::vector<LaunchReport>&, const Timeline* timeline) {
        events = timeline->events.size();
        expect_in_turn(*timeline);
      };
      SimulateOptions options;
      options.target = target::GpuTarget::of(arch);
      counting_executable(tiles, options, keep, true).call(arguments);
      EXPECT_GT(events, 20u);
    }
}

}  // namespace
}  // namespace tilewright::simulator
