// Memory layouts, swizzles and the width of accesses against brute force.
#include <gtest/gtest.h>

#include "layout/access.h"
#include "layout/standard.h"
#include "unit/layout_samples.h"

namespace tilewright {
namespace {

TEST(MemoryLayout, OffsetsBytesAndSharing) {
  LayoutSamples samples(11);
  for (int round = 0; round < 200; ++round) {
    const std::vector<int64_t> shape = {samples.upto(9), samples.upto(40), samples.upto(5)};
    const MemoryLayout layout = samples.memory(shape, round % 2 == 1);
    SCOPED_TRACE(layout.text());
    EXPECT_TRUE(layout.is_injective());
    std::set<int64_t> seen;
    int64_t last = 0;
    for_each_index(shape, [&](const Index& index) {
      EXPECT_TRUE(seen.insert(layout.bit_offset(index)).second);
      last = std::max(last, layout.bit_offset(index) + layout.element_bits());
    });
    EXPECT_LE(last, layout.bytes() * 8);
    EXPECT_GT(last, (layout.bytes() - layout.swizzle().span()) * 8);
    EXPECT_EQ(parse_memory_layout(layout.text()), layout);
    EXPECT_EQ(parse_memory_layout(layout.text()).hash(), layout.hash());
    const MemoryLayout turned = layout.permuted({2, 0, 1});
    EXPECT_EQ(turned.bit_offset(Index{shape[2] - 1, 0, shape[1] - 1}),
              layout.bit_offset(Index{0, shape[1] - 1, shape[2] - 1}));
  }
  EXPECT_FALSE(MemoryLayout({4, 4}, {2, 1}, 16).is_injective());
  EXPECT_FALSE(MemoryLayout({4, 4}, {0, 1}, 16).is_injective());
  EXPECT_EQ(MemoryLayout({4, 4}, {0, 1}, 16).bytes(), 8);
  EXPECT_EQ(MemoryLayout::row_major({4, 3}, 4).bytes(), 6);
  EXPECT_EQ(MemoryLayout::padded({4, 64}, 16, 16).text(), "(4, 64): [4:72] x [64:1]; bits 16");
  EXPECT_EQ(MemoryLayout::row_major({4, 64}, 16).text(), "(4, 64): [4:64] x [64:1]; bits 16");
  EXPECT_EQ(MemoryLayout::row_major({}, 16).bytes(), 2);
}

TEST(MemoryLayout, PanelsAreTheAtomsOfTmaAndWgmma) {
  // PTX 5.5.6 and 9.7.15.5.1: 16-byte chunk c of row r in a panel of W bytes stands at c ^ (r * W / 128 % (W / 16)).
  for (int64_t span : {32, 64, 128})
    for (int bits : {8, 16, 32})
      for (int64_t rows : {8, 64, 20}) {
        const int64_t width = span * 8 / bits, columns = 3 * width;
        const MemoryLayout layout = MemoryLayout::panels({rows, columns}, bits, span);
        const int64_t panel_bytes = (rows + 7) / 8 * 8 * span;
        for_each_index({rows, columns}, [&](const Index& index) {
          const int64_t byte = index[1] % width * bits / 8;
          const int64_t chunk = byte / 16 ^ (index[0] * span / 128 % (span / 16));
          ASSERT_EQ(layout.byte_offset(index),
                    index[1] / width * panel_bytes + index[0] * span + chunk * 16 + byte % 16);
        });
        EXPECT_EQ(layout.alignment(), span * 8);
        EXPECT_TRUE(layout.is_injective());
      }
  EXPECT_EQ(MemoryLayout::panels({64, 128}, 16, 128).text(),
            "(64, 128): [64:64] x [2:4096 64:1]; bits 16; swizzle (3, 4, 3)");
  EXPECT_EQ(MemoryLayout::panels({3, 64, 128}, 16, 128).dim(0)[0].stride, 8192);
  EXPECT_EQ(MemoryLayout::panels({64, 128}, 16, 128).bytes(), 16384);
}

TEST(MemoryLayout, MakeSwizzledLayout) {
  const auto text = [](std::vector<int64_t> shape, int bits, bool pad = true) {
    return swizzled_memory(shape, bits, pad);
  };
  EXPECT_EQ(text({64, 64}, 16), MemoryLayout::panels({64, 64}, 16, 128));
  EXPECT_EQ(text({64, 96}, 16), MemoryLayout::panels({64, 96}, 16, 64));
  EXPECT_EQ(text({64, 16}, 16), MemoryLayout::panels({64, 16}, 16, 32));
  EXPECT_EQ(text({64, 128}, 8), MemoryLayout::panels({64, 128}, 8, 128));
  EXPECT_EQ(text({60, 64}, 16), MemoryLayout::padded({60, 64}, 16, 16));
  EXPECT_EQ(text({60, 64}, 16, false), MemoryLayout::row_major({60, 64}, 16));
  EXPECT_EQ(text({64, 24}, 16), MemoryLayout::row_major({64, 24}, 16));
  EXPECT_EQ(text({64}, 16), MemoryLayout::row_major({64}, 16));
}

TEST(MemoryLayout, RefusesWhatIsNone) {
  using Dims = MemoryLayout::Dims;
  EXPECT_EQ(MemoryLayout::fault({8}, Dims{{{8, 1}}}, 16, {}), "");
  EXPECT_NE(MemoryLayout::fault({9}, Dims{{{8, 1}}}, 16, {}), "");
  EXPECT_NE(MemoryLayout::fault({8}, Dims{{{8, -1}}}, 16, {}), "");
  EXPECT_NE(MemoryLayout::fault({8}, Dims{{{8, 1}}}, 12, {}), "");
  EXPECT_NE(MemoryLayout::fault({8}, Dims{{{8, 1}}}, 16, {3, 4, 2}), "");  // would read what it writes
  EXPECT_NE(MemoryLayout::fault({8}, Dims{{{8, 1}}}, 32, {3, 1, 3}), "");  // tears elements
  for (const char* bad : {"(8): [8:1]", "(8): [8:1]; bits 13", "(8): [8]; bits 8", "(8): [8:1]; bits 8; swizzle (3, 4)",
                          "(8): [8:1]; bits 8; swizzle (3, 4, 99)", "(8): [8:1]; bits 8 more", "(9): [8:1]; bits 8"})
    try {
      parse_memory_layout(bad);
      FAIL() << bad;
    } catch (const CompileError& error) {
      EXPECT_EQ(error.diagnostic().code_text(), "TW2031") << bad;
    }
}

// Whether registers in runs of `elements` are consecutive and aligned in memory, for every thread.
bool holds_for_every_thread(const FragmentLayout& fragment, const MemoryLayout& memory, const VectorAccess& access) {
  bool good = true;
  for_each_index(fragment.shape(), [&](const Index& index) {
    // index with the vector's digits at 0 begins a vector.
    Index begin = index;
    int64_t number = 0, scale = 1;
    for (const AccessDigit& d : access.registers) {
      const int64_t digit = index[d.dim] / d.weight % d.extent;
      begin[d.dim] -= digit * d.weight;
      number += digit * scale;
      scale *= d.extent;
    }
    const Place first = fragment.place(begin), here = fragment.place(index);
    good &= first.thread == here.thread && first.cta == here.cta;
    const int64_t bits = memory.element_bits(), at = memory.bit_offset(begin);
    good &= at % (access.elements * bits) == 0 && memory.bit_offset(index) == at + number * bits;
    Index end = begin;
    for (const AccessDigit& d : access.registers) end[d.dim] += (d.extent - 1) * d.weight;
    for (size_t d = 0; d < end.size(); ++d) good &= end[d] < fragment.shape()[d];
  });
  return good;
}

TEST(VectorAccess, IsRightEverywhere) {
  LayoutSamples samples(12);
  std::map<int64_t, int> widths;
  for (int round = 0; round < 1500; ++round) {
    const FragmentLayout fragment = samples.fragment(round % 2 == 0, false);
    const MemoryLayout memory = samples.memory(fragment.shape(), round % 3 == 0);
    const VectorAccess access = vector_access(fragment, memory);
    ++widths[access.elements];
    EXPECT_LE(access.bytes(memory.element_bits()), 16);
    EXPECT_TRUE(holds_for_every_thread(fragment, memory, access)) << fragment.text() << " at " << memory.text();
  }
  EXPECT_GT(widths[2], 20);
  EXPECT_GT(widths[4], 20);
}

TEST(VectorAccess, KnownWidths) {
  const FragmentLayout c = wgmma_c(64, 64);
  EXPECT_EQ(vector_access(c, MemoryLayout::row_major({64, 64}, 16)).elements, 2);
  EXPECT_EQ(vector_access(c, MemoryLayout::panels({64, 64}, 16, 128)).elements, 2);
  EXPECT_EQ(vector_access(c, MemoryLayout({64, 64}, {1, 64}, 16)).elements, 1);
  const FragmentLayout rows = row_major_fragment({64, 64}, 128, 8, 16);
  EXPECT_EQ(vector_access(rows, MemoryLayout::row_major({64, 64}, 16)).elements, 8);
  EXPECT_EQ(vector_access(rows, MemoryLayout::panels({64, 64}, 16, 128)).elements, 8);
  EXPECT_EQ(vector_access(rows, MemoryLayout({64, 64}, {100, 1}, 16)).elements, 4);  // rows of 200 bytes
  EXPECT_EQ(vector_access(rows, MemoryLayout({64, 64}, {101, 1}, 16)).elements, 1);
  EXPECT_EQ(vector_access(rows, MemoryLayout::row_major({64, 64}, 16), 4).elements, 2);  // base aligned to 4 bytes
  EXPECT_EQ(vector_access(rows, MemoryLayout::row_major({64, 64}, 32)).elements, 4);
  EXPECT_EQ(vector_access(replicated_fragment({6, 8}, 32), MemoryLayout::row_major({6, 8}, 8)).elements, 16);
  EXPECT_EQ(vector_access(replicated_fragment({3, 8}, 32), MemoryLayout::row_major({3, 8}, 8)).elements, 8);
}

}  // namespace
}  // namespace tilewright
