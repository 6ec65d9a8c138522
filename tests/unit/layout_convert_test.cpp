// Conversions against brute force: who holds what, and whether every step of a shuffle finds what it needs.
#include <gtest/gtest.h>

#include "layout/algebra.h"
#include "layout/convert.h"
#include "layout/picture.h"
#include "layout/standard.h"
#include "unit/layout_samples.h"

namespace tilewright {
namespace {

using Thread = std::pair<int64_t, int64_t>;  // thread, CTA

// The indices that each thread holds.
std::map<Thread, std::set<Index>> holdings(const FragmentLayout& layout) {
  std::map<Thread, std::set<Index>> held;
  for_each_index(layout.shape(), [&](const Index& index) {
    for (int64_t copy = 0; copy < layout.copy_count(); ++copy) {
      const Place p = layout.place(index, copy);
      held[{p.thread, p.cta}].insert(index);
    }
  });
  return held;
}

bool contains_by_force(const FragmentLayout& have, const FragmentLayout& want) {
  auto held = holdings(have);
  for (const auto& [thread, wanted] : holdings(want))
    if (!std::includes(held[thread].begin(), held[thread].end(), wanted.begin(), wanted.end())) return false;
  return true;
}

// Power-of-two layouts over 16 elements of 4 lanes and 2 warps: radices always fit, so that answers must be exact.
FragmentLayout small_layout(LayoutSamples& samples) {
  std::vector<Factor> factors;
  std::vector<Copies> copies;
  int64_t registers = 1;
  std::vector<Factor> places = {{2, Home::Lane, 1}, {2, Home::Lane, 2}, {2, Home::Lane, 16}, {2, Home::Warp, 1}};
  while (factors.size() < 4) {
    const int64_t pick = samples.upto(6) - 1;
    if (pick >= static_cast<int64_t>(places.size())) {
      factors.push_back({2, Home::Register, registers});
      registers *= 2;
    } else {
      factors.push_back(places[pick]);
      places.erase(places.begin() + pick);
    }
  }
  for (const Factor& f : places)
    if (samples.upto(3) < 3) copies.push_back({f, {}});
  return FragmentLayout({16}, {factors}, copies);
}

TEST(Conversion, ContainmentIsExactForPowersOfTwo) {
  LayoutSamples samples(41);
  int yes = 0;
  for (int round = 0; round < 4000; ++round) {
    const FragmentLayout have = small_layout(samples), want = small_layout(samples);
    const bool expected = contains_by_force(have, want);
    ASSERT_EQ(contains(have, want), expected) << have.text() << " for " << want.text();
    yes += expected;
  }
  EXPECT_GT(yes, 50);
}

TEST(Conversion, ContainmentIsNeverClaimedFalsely) {
  LayoutSamples samples(42);
  int yes = 0;
  for (int round = 0; round < 3000; ++round) {
    const FragmentLayout have = samples.fragment(), want = samples.fragment();
    if (have.is_partial() || want.is_partial() || have.elements() != want.elements()) continue;
    const auto same_shape = reshape(want, have.shape());
    if (!same_shape || !contains(have, *same_shape)) continue;
    ++yes;
    EXPECT_TRUE(contains_by_force(have, *same_shape)) << have.text() << " for " << same_shape->text();
  }
  EXPECT_GT(yes, 20);
  const FragmentLayout c = wgmma_c(100, 64);
  EXPECT_TRUE(contains(replicated_fragment({100, 64}, 128), c));
  EXPECT_FALSE(contains(replicated_fragment({100, 64}, 96), c));
  EXPECT_TRUE(contains(remove_dim(c, 1), parse_fragment_layout("(100): [2:R(2) 4:W(1) 2:R(1) 8:L(4)]")));
}

void expect_step_possible(const FragmentLayout& before, const ShuffleStep& step) {
  auto held = holdings(before);
  for (const auto& [thread, wanted] : holdings(step.after)) {
    const int64_t lane = thread.first % 32, warp = thread.first - lane;
    std::set<Index> reachable = held[thread];
    if (step.kind == ShuffleStep::Kind::Exchange || step.kind == ShuffleStep::Kind::Gather)
      reachable.merge(std::set<Index>(held[{warp + (lane ^ 1 << step.lane_bit), thread.second}]));
    if (step.kind == ShuffleStep::Kind::Permute) reachable = held[{warp + step.source_lane[lane], thread.second}];
    EXPECT_TRUE(std::includes(reachable.begin(), reachable.end(), wanted.begin(), wanted.end()))
        << before.text() << " to " << step.after.text();
  }
}

TEST(Conversion, KindsAndStepsAreRight) {
  LayoutSamples samples(43);
  std::map<ConversionKind, int> kinds;
  std::map<ShuffleStep::Kind, int> steps;
  for (int round = 0; round < 4000; ++round) {
    const FragmentLayout from = small_layout(samples), to = small_layout(samples);
    const Conversion c = conversion(from, to, 32);
    SCOPED_TRACE(from.text() + " to " + to.text());
    ++kinds[c.kind];
    const bool held = contains_by_force(from, to);
    EXPECT_EQ(c.kind == ConversionKind::Same || c.kind == ConversionKind::Registers, held);
    if (c.kind == ConversionKind::Same)
      for_each_index({16}, [&](const Index& index) { EXPECT_EQ(from.place(index).reg, to.place(index).reg); });
    EXPECT_EQ(c.cost > 0, c.kind != ConversionKind::Same);
    FragmentLayout now = from;
    for (const ShuffleStep& step : c.steps) {
      ++steps[step.kind];
      expect_step_possible(now, step);
      now = step.after;
    }
    if (c.kind == ConversionKind::Shuffle) {
      EXPECT_TRUE(contains_by_force(now, to));
    }
  }
  for (ConversionKind kind : {ConversionKind::Registers, ConversionKind::Shuffle, ConversionKind::Shared})
    EXPECT_GT(kinds[kind], 50);
  for (auto kind :
       {ShuffleStep::Kind::Select, ShuffleStep::Kind::Exchange, ShuffleStep::Kind::Permute, ShuffleStep::Kind::Gather})
    EXPECT_GT(steps[kind], 10) << static_cast<int>(kind);
}

TEST(Conversion, KnownOnes) {
  const auto kind = [](const FragmentLayout& from, const FragmentLayout& to, int bits) {
    return conversion(from, to, bits).kind;
  };
  EXPECT_EQ(kind(wgmma_c(64, 64), wgmma_a(64, 64, 16), 16), ConversionKind::Same);
  // 8-bit operands: lanes of a quad exchange.
  EXPECT_EQ(kind(wgmma_c(64, 64), wgmma_a(64, 64, 8), 8), ConversionKind::Shuffle);
  // Scores split over warpgroups by columns, wanted whole by both: across the block.
  const Conversion mla = conversion(wgmma_c(64, 64, {1, 2}), wgmma_a(64, 64, 16, {1, 2}), 16);
  EXPECT_EQ(mla.kind, ConversionKind::Shared);
  EXPECT_EQ(mla.scope, ExchangeScope::Block);
  EXPECT_EQ(conversion(wgmma_c(64, 64), permute(wgmma_c(64, 64), {1, 0}), 16).scope, ExchangeScope::Warpgroup);
  EXPECT_EQ(kind(parse_fragment_layout("(4): [2:R(1) 2:R(2)]"), parse_fragment_layout("(4): [4:R(1)]"), 32),
            ConversionKind::Registers);
  EXPECT_EQ(conversion(parse_fragment_layout("(8): [8:C(1)]"), parse_fragment_layout("(8): [8:R(1)]"), 32).scope,
            ExchangeScope::Cluster);
  // Odd radices that do not fit: through shared memory, and right.
  EXPECT_EQ(kind(parse_fragment_layout("(12): [3:L(1) 4:R(1)]"), parse_fragment_layout("(12): [4:L(1) 3:R(1)]"), 32),
            ConversionKind::Shared);
}

TEST(Conversion, PartialResultsCombine) {
  const FragmentLayout sum = remove_dim(wgmma_c(64, 64), 1, Combine::Sum);
  const Conversion quad = conversion(sum, combined(sum), 32);
  EXPECT_EQ(quad.kind, ConversionKind::Shuffle);
  ASSERT_EQ(quad.steps.size(), 2u);
  EXPECT_EQ(quad.steps[0].lane_bit, 0);
  EXPECT_EQ(quad.steps[1].lane_bit, 1);
  EXPECT_EQ(quad.steps[0].shuffles, 2);  // two rows a thread
  EXPECT_EQ(quad.steps[0].combine, Combine::Sum);
  EXPECT_EQ(conversion(sum, sum, 32).kind, ConversionKind::Same);
  const FragmentLayout across = remove_dim(wgmma_c(64, 64, {1, 2}), 1, Combine::Max);
  const Conversion block = conversion(across, combined(across), 32);
  EXPECT_EQ(block.kind, ConversionKind::Shared);
  EXPECT_EQ(block.scope, ExchangeScope::Block);
  EXPECT_TRUE(block.combines);
  EXPECT_THROW(conversion(combined(sum), sum, 32), InternalError);
  EXPECT_FALSE(contains(sum, combined(sum)));
}

TEST(Picture, TablesShowPlaces) {
  EXPECT_EQ(fragment_table(parse_fragment_layout("(2, 4): [2:L(2)] x [2:L(1) 2:R(1)]")),
            "(2, 4): [2:L(2)] x [2:L(1) 2:R(1)]\n"
            "     0    1    2    3\n"
            "0  0:0  0:1  1:0  1:1\n"
            "1  2:0  2:1  3:0  3:1\n");
  EXPECT_EQ(memory_table(MemoryLayout({2, 2}, {64, 1}, 16)),
            "(2, 2): [2:64] x [2:1]; bits 16\n"
            "        0       1\n"
            "0    0/b0    2/b0\n"
            "1  128/b0  130/b0\n");
  EXPECT_NE(fragment_table(wgmma_c(128, 128, {2, 1})).find("(a part of the tile)"), std::string::npos);
  EXPECT_NE(fragment_table(parse_fragment_layout("(2): [2:C(1)]")).find("1/0:0"), std::string::npos);
  EXPECT_EQ(fragment_table(FragmentLayout()), "():\n     0\n0  0:0\n");
  const std::string svg = fragment_svg(remove_dim(wgmma_c(64, 8), 1));
  EXPECT_EQ(std::count(svg.begin(), svg.end(), '\n'), 2 + 64 + 1 + 64 + 1);
  EXPECT_NE(svg.find("<title>(8) thread:register 0:1, 1:1, 2:1, 3:1</title>"), std::string::npos);
  EXPECT_NE(memory_svg(MemoryLayout::panels({8, 64}, 16, 128)).find("(1, 0) byte 144, bank 4"), std::string::npos);
}

}  // namespace
}  // namespace tilewright
