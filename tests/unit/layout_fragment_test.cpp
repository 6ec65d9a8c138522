// Fragment layouts against brute force over every index and place.
#include <gtest/gtest.h>

#include "layout/algebra.h"
#include "layout/standard.h"
#include "unit/layout_samples.h"

namespace tilewright {
namespace {

using Key = std::tuple<int64_t, int64_t, int64_t>;
Key key(const Place& p) { return {p.reg, p.thread, p.cta}; }

// The meaning of a mode list, digit by digit from its definition.
Place place_by_definition(const FragmentLayout::Dims& dims, const std::vector<Copies>& copies, Index index,
                          int64_t copy) {
  Place place;
  const auto add = [&](const Factor& f, int64_t& number) {
    const int64_t digit = number % f.extent;
    number /= f.extent;
    switch (f.home) {
      case Home::Register: place.reg += digit * f.stride; break;
      case Home::Lane: place.thread += digit * f.stride; break;
      case Home::Warp: place.thread += 32 * digit * f.stride; break;
      case Home::Warpgroup: place.thread += 128 * digit * f.stride; break;
      case Home::Cta: place.cta += digit * f.stride; break;
    }
  };
  for (size_t d = 0; d < dims.size(); ++d)
    for (size_t i = dims[d].size(); i-- > 0;) add(dims[d][i], index[d]);
  for (size_t i = copies.size(); i-- > 0;) add(copies[i].factor, copy);
  return place;
}

TEST(FragmentLayout, ForwardAndInverseAgreeAtEveryPlace) {
  LayoutSamples samples(1);
  for (int round = 0; round < 300; ++round) {
    const FragmentLayout layout = samples.fragment();
    SCOPED_TRACE(layout.text());
    std::map<Key, std::pair<Index, int64_t>> held;
    for_each_index(layout.shape(), [&](const Index& index) {
      for (int64_t copy = 0; copy < layout.copy_count(); ++copy) {
        const Place place = layout.place(index, copy);
        EXPECT_EQ(key(place), key(place_by_definition(layout.dims(), layout.copies(), index, copy)));
        EXPECT_TRUE(held.emplace(key(place), std::pair(index, copy)).second);
        EXPECT_LT(place.reg, layout.registers());
        EXPECT_LT(place.thread, layout.threads());
        EXPECT_LT(place.cta, layout.ctas());
      }
    });
    if (layout.registers() * layout.threads() * layout.ctas() > 20000) continue;
    for (int64_t cta = 0; cta < layout.ctas(); ++cta)
      for (int64_t thread = 0; thread < layout.threads() + 3; ++thread)
        for (int64_t reg = 0; reg < layout.registers() + 1; ++reg) {
          const Held got = layout.held_at({reg, thread, cta});
          const auto want = held.find({reg, thread, cta});
          ASSERT_EQ(got.kind == Held::Kind::Element, want != held.end());
          if (got.kind == Held::Kind::Element) {
            ASSERT_EQ(std::pair(got.index, got.copy), want->second);
          }
        }
  }
}

TEST(FragmentLayout, DigitsGiveTheIndex) {
  LayoutSamples samples(2);
  for (int round = 0; round < 200; ++round) {
    const FragmentLayout layout = samples.fragment();
    SCOPED_TRACE(layout.text());
    for_each_index(layout.shape(), [&](const Index& index) {
      const Place place = layout.place(index, layout.copy_count() - 1);
      Index got(index.size(), 0);
      for (const Digit& d : layout.digits()) {
        int64_t position = d.home == Home::Register ? place.reg : d.home == Home::Cta ? place.cta : place.thread;
        if (d.home == Home::Lane && layout.is_warp_aligned()) position = place.lane();
        const int64_t value = (d.modulus > 0 ? position % d.modulus : position) / d.step;
        EXPECT_LT(value, d.extent);
        if (d.dim >= 0) got[d.dim] += value * d.weight;
      }
      EXPECT_EQ(got, index);
    });
  }
}

TEST(FragmentLayout, TextReadsBack) {
  LayoutSamples samples(3);
  for (int round = 0; round < 300; ++round) {
    const FragmentLayout layout = samples.fragment();
    const FragmentLayout back = parse_fragment_layout(layout.text());
    EXPECT_EQ(back, layout) << layout.text();
    EXPECT_EQ(back.hash(), layout.hash());
  }
  EXPECT_EQ(wgmma_c(128, 128, {2, 1}).text(), "(128, 128): [2:G(1) 4:W(1) 2:R(2) 8:L(4)] x [16:R(4) 4:L(1) 2:R(1)]");
  EXPECT_EQ(FragmentLayout().text(), "():");
  EXPECT_EQ(parse_fragment_layout("():"), FragmentLayout());
}

TEST(FragmentLayout, EqualDistributionsAreEqual) {
  const auto parse = [](const char* text) { return parse_fragment_layout(text); };
  EXPECT_EQ(parse("(256): [8:W(1) 32:L(1)]"), parse("(256): [256:L(1)]"));
  EXPECT_EQ(parse("(256): [256:L(1)]").text(), "(256): [2:G(1) 4:W(1) 32:L(1)]");
  EXPECT_EQ(parse("(8): [2:R(4) 4:R(1)]"), parse("(8): [8:R(1)]"));
  EXPECT_EQ(parse("(1): [1:R(7)]"), parse("(1): []"));
  EXPECT_EQ(parse("(2): [2:R(1)]; replica [4:W(1) 32:L(1)]"), parse("(2): [2:R(1)]; replica [32:L(1) 4:W(1)]"));
  EXPECT_NE(parse("(8): [8:R(1)]"), parse("(8): [8:L(1)]"));
  EXPECT_NE(parse("(8): [8:R(1)]"), parse("(7): [8:R(1)]"));
  EXPECT_NE(parse("(2): [2:R(1)]; replica [4:L(1)]"), parse("(2): [2:R(1)]; partial sum [4:L(1)]"));
  EXPECT_EQ(parse("(6): [6:W(1)]").text(), "(6): [6:W(1)]");  // 6 warps are no whole warpgroups
  EXPECT_FALSE(parse("(48): [48:L(1)]").is_warp_aligned());   // 48 threads are no whole warps
  EXPECT_EQ(parse("(48): [48:L(1)]").place(Index{47}).thread, 47);
  EXPECT_TRUE(parse("(64): [64:L(1)]").is_warp_aligned());
}

TEST(FragmentLayout, RefusesWhatIsNone) {
  using Dims = FragmentLayout::Dims;
  const auto fault = [](Dims dims, std::vector<int64_t> shape, std::vector<Copies> copies = {}) {
    return FragmentLayout::fault(shape, dims, copies);
  };
  EXPECT_EQ(fault(Dims{{{8, Home::Lane, 1}}}, {8}), "");
  EXPECT_NE(fault(Dims{{{8, Home::Lane, 1}}}, {9}), "");                           // not covered
  EXPECT_NE(fault(Dims{{{8, Home::Lane, 1}}, {{8, Home::Lane, 4}}}, {8, 8}), "");  // shared lanes
  EXPECT_NE(fault(Dims{{{8, Home::Lane, 8}}, {{2, Home::Warp, 1}}}, {8, 2}), "");  // lanes over a warp
  EXPECT_NE(fault(Dims{{{2, Home::Lane, 7}}, {{5, Home::Lane, 2}}, {{2, Home::Lane, 1}}}, {2, 2, 2}), "");
  EXPECT_EQ(fault(Dims{{{10, Home::Lane, 3}}, {{3, Home::Lane, 1}}, {{2, Home::Warp, 1}}}, {10, 3, 2}), "");
  EXPECT_NE(fault(Dims{{{8, Home::Lane, 1}}}, {8}, {{{2, Home::Lane, 4}, {}}}), "");      // copies too
  EXPECT_NE(fault(Dims{{{8, Home::Lane, 1}}}, {8}, {{{2, Home::Register, 1}, {}}}), "");  // copies in registers
  EXPECT_NE(fault(Dims{{{0, Home::Lane, 1}}}, {1}), "");
  EXPECT_NE(fault(Dims{{{2, Home::Lane, 0}}}, {2}), "");
  EXPECT_NE(fault(Dims{}, {2}), "");
  EXPECT_THROW(FragmentLayout({9}, Dims{{{8, Home::Lane, 1}}}), InternalError);
  for (const char* text : {"", "(8)", "(8): [8:L(1)", "(8): [8:Q(1)]", "(8): [8:L]", "(8): [8:L(1)] x [2:R(1)]",
                           "(9): [8:L(1)]", "(8): [8:L(1)]; partial mean [2:W(1)]", "(8): [8:L(1)]; replica [2:L(1)]",
                           "(x): []", "(8): [99999999999999999999:L(1)]"})
    try {
      parse_fragment_layout(text, {"a.tile", 3, 1});
      FAIL() << text;
    } catch (const CompileError& error) {
      EXPECT_EQ(error.diagnostic().code_text(), "TW2031") << text;
      EXPECT_EQ(error.diagnostic().location.line, 3);
    }
}

TEST(LayoutAlgebra, PermuteAndReshapeMoveNothing) {
  LayoutSamples samples(4);
  int reshaped = 0;
  for (int round = 0; round < 300; ++round) {
    const FragmentLayout layout = samples.fragment();
    SCOPED_TRACE(layout.text());
    std::vector<int> order(layout.rank());
    for (int d = 0; d < layout.rank(); ++d) order[d] = layout.rank() - 1 - d;
    const FragmentLayout turned = permute(layout, order);
    const std::vector<int64_t> flat_shape = {layout.elements()};
    const auto flat = reshape(layout, flat_shape);
    int64_t number = 0;
    for_each_index(layout.shape(), [&](const Index& index) {
      EXPECT_EQ(turned.place(Index(index.rbegin(), index.rend())), layout.place(index));
      if (flat) {
        EXPECT_EQ(flat->place(Index{number}), layout.place(index));
      }
      ++number;
    });
    if (!flat) continue;
    ++reshaped;
    const auto back = reshape(*flat, layout.shape());
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(*back, layout);
  }
  EXPECT_GT(reshaped, 100);
  const FragmentLayout c = wgmma_c(128, 64);
  const auto split = reshape(c, {2, 64, 4, 16});
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(split->place(Index{1, 5, 3, 9}), c.place(Index{69, 57}));
  EXPECT_FALSE(reshape(c, {128, 63}).has_value());
  EXPECT_FALSE(reshape(parse_fragment_layout("(12): [3:L(1) 4:R(1)]"), {4, 3}).has_value());
  EXPECT_TRUE(reshape(parse_fragment_layout("(12, 1): [3:L(1) 4:R(1)] x []"), {1, 3, 1, 4}).has_value());
}

TEST(LayoutAlgebra, SlicesKeepTheirPlaces) {
  LayoutSamples samples(5);
  int cut = 0;
  for (int round = 0; round < 400; ++round) {
    const FragmentLayout layout = samples.fragment();
    const int dim = static_cast<int>(samples.upto(layout.rank())) - 1;
    const int64_t extent = samples.upto(layout.shape()[dim]);
    const int64_t begin = samples.upto(layout.shape()[dim] - extent + 1) - 1;
    const auto part = slice(layout, dim, begin, extent);
    if (!part) continue;
    cut += extent < layout.shape()[dim];
    for_each_index(part->layout.shape(), [&](const Index& index) {
      Index whole = index;
      whole[dim] += begin;
      const Place want = layout.place(whole), got = part->layout.place(index);
      EXPECT_EQ(key(want), key({got.reg + part->base.reg, got.thread + part->base.thread, got.cta + part->base.cta}));
    });
  }
  EXPECT_GT(cut, 40);
  const auto chunk = slice(wgmma_c(64, 128), 1, 32, 32);
  ASSERT_TRUE(chunk.has_value());
  EXPECT_EQ(chunk->layout, wgmma_c(64, 32));
  EXPECT_EQ(chunk->base.reg, 16);
  EXPECT_FALSE(slice(wgmma_c(64, 128), 1, 4, 8).has_value());
}

TEST(LayoutAlgebra, ReduceTurnsDigitsIntoCopies) {
  const FragmentLayout c = wgmma_c(128, 128, {2, 1});
  const FragmentLayout row_max = remove_dim(c, 1);
  EXPECT_EQ(row_max.text(), "(128): [2:G(1) 4:W(1) 2:R(1) 8:L(4)]; replica [4:L(1)]");
  const FragmentLayout row_sum = remove_dim(c, 1, Combine::Sum);
  EXPECT_EQ(row_sum.text(), "(128): [2:G(1) 4:W(1) 2:R(1) 8:L(4)]; partial sum [4:L(1)]");
  EXPECT_TRUE(row_sum.is_partial());
  EXPECT_EQ(combined(row_sum), row_max);
  EXPECT_EQ(remove_dim(c, 0).text(), "(128): [16:R(2) 4:L(1) 2:R(1)]; replica [2:G(1) 4:W(1) 8:L(4)]");
  // Every thread that held an element of a row holds the row's result.
  LayoutSamples samples(6);
  for (int round = 0; round < 100; ++round) {
    const FragmentLayout layout = samples.fragment();
    const FragmentLayout rest = remove_dim(layout, 0);
    std::map<Index, std::set<std::pair<int64_t, int64_t>>> want, got;
    for_each_index(layout.shape(), [&](const Index& index) {
      for (int64_t copy = 0; copy < layout.copy_count(); ++copy) {
        const Place p = layout.place(index, copy);
        want[Index(index.begin() + 1, index.end())].insert({p.thread, p.cta});
      }
    });
    for_each_index(rest.shape(), [&](const Index& index) {
      for (int64_t copy = 0; copy < rest.copy_count(); ++copy) {
        const Place p = rest.place(index, copy);
        got[index].insert({p.thread, p.cta});
      }
    });
    for (const auto& [index, places] : want)
      EXPECT_TRUE(std::includes(got[index].begin(), got[index].end(), places.begin(), places.end())) << layout.text();
    if (!layout.is_padded()) {
      EXPECT_EQ(want, got) << layout.text();
    }
  }
}

TEST(LayoutAlgebra, RepeatAndReplicateTakeTheNextPlaces) {
  const FragmentLayout atom = mma_atom_c();
  EXPECT_EQ(repeat(atom, 1, 4, Home::Register).text(), "(16, 32): [2:R(2) 8:L(4)] x [4:R(4) 4:L(1) 2:R(1)]");
  EXPECT_EQ(repeat(repeat(atom, 0, 2, Home::Warp), 1, 4, Home::Warp).text(),
            "(32, 32): [2:W(1) 2:R(2) 8:L(4)] x [2:G(1) 2:W(2) 4:L(1) 2:R(1)]");
  EXPECT_EQ(replicate(atom, 2, Home::Warpgroup).text(), "(16, 8): [2:R(2) 8:L(4)] x [4:L(1) 2:R(1)]; replica [2:G(1)]");
  EXPECT_EQ(compact_registers(parse_fragment_layout("(2, 3): [2:R(8)] x [3:R(2)]")).text(),
            "(2, 3): [2:R(3)] x [3:R(1)]");
  LayoutSamples samples(7);
  for (int round = 0; round < 200; ++round) {
    const FragmentLayout layout = samples.fragment();
    const Home home = static_cast<Home>(samples.upto(5) - 1);
    if (layout.is_padded()) continue;
    const FragmentLayout more = repeat(layout, 0, 2, home);  // would be an internal error if places met
    EXPECT_EQ(more.elements(), 2 * layout.elements());
    for_each_index(layout.shape(), [&](const Index& index) { EXPECT_EQ(more.place(index), layout.place(index)); });
  }
  EXPECT_EQ(insert_dim(atom, 1).shape(), (Index{16, 1, 8}));
}

TEST(LayoutAlgebra, EqualUpToRegisters) {
  const FragmentLayout a = parse_fragment_layout("(8, 4): [8:L(4)] x [2:R(1) 2:R(2)]");
  const FragmentLayout b = parse_fragment_layout("(8, 4): [8:L(4)] x [4:R(1)]");
  EXPECT_TRUE(equal_up_to_registers(a, b));
  EXPECT_FALSE(equal_up_to_registers(a, parse_fragment_layout("(8, 4): [8:L(1)] x [4:R(1)]")));
  EXPECT_FALSE(equal_up_to_registers(a, parse_fragment_layout("(8, 4): [8:R(4)] x [4:R(1)]")));
  // Scores to operand of the next wgmma (16 bits): nothing moves.
  EXPECT_EQ(wgmma_a(64, 64, 16), wgmma_c(64, 64));
  EXPECT_FALSE(equal_up_to_registers(wgmma_a(64, 64, 8), wgmma_c(64, 64)));
}

}  // namespace
}  // namespace tilewright
