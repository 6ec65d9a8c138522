// The standard layouts against the formulas of the PTX ISA, written down here a second time, and against what they
// promise.
#include <gtest/gtest.h>

#include "layout/algebra.h"
#include "layout/standard.h"
#include "unit/layout_samples.h"

namespace tilewright {
namespace {

// formula(thread, register) -> index; it must name what the layout holds there.
void expect_formula(const FragmentLayout& layout, int64_t threads,
                    const std::function<Index(int64_t, int64_t)>& formula) {
  SCOPED_TRACE(layout.text());
  EXPECT_EQ(layout.threads(), threads);
  EXPECT_EQ(layout.registers() * threads, layout.elements() * layout.copy_count());
  for (int64_t thread = 0; thread < threads; ++thread)
    for (int64_t reg = 0; reg < layout.registers(); ++reg) {
      const Held held = layout.held_at({reg, thread, 0});
      ASSERT_EQ(held.kind, Held::Kind::Element);
      ASSERT_EQ(held.index, formula(thread, reg)) << "thread " << thread << " register " << reg;
    }
}

// PTX 9.7.14.5: groupID = laneid >> 2, threadID_in_group = laneid % 4.
int64_t group(int64_t t) { return t % 32 >> 2; }
int64_t in_group(int64_t t) { return t % 4; }

TEST(StandardLayouts, MmaAtomsFollowPtx) {
  expect_formula(mma_atom_c(), 32, [](int64_t t, int64_t i) -> Index {  // c0..c3
    return {i < 2 ? group(t) : group(t) + 8, in_group(t) * 2 + (i & 1)};
  });
  // .f16/.bf16 m16n8k16: a0..a7, b0..b3.
  expect_formula(mma_atom_a(16, 16), 32, [](int64_t t, int64_t i) -> Index {
    const bool low = (i >= 0 && i < 2) || (i >= 4 && i < 6);
    return {low ? group(t) : group(t) + 8, in_group(t) * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
  });
  expect_formula(mma_atom_b(16, 16), 32, [](int64_t t, int64_t i) -> Index {
    return {in_group(t) * 2 + (i & 1) + (i >= 2 ? 8 : 0), group(t)};
  });
  // .f16 m16n8k8
  expect_formula(mma_atom_a(16, 8), 32, [](int64_t t, int64_t i) -> Index {
    return {i < 2 ? group(t) : group(t) + 8, in_group(t) * 2 + (i & 1)};
  });
  expect_formula(mma_atom_b(16, 8), 32, [](int64_t t, int64_t i) -> Index { return {in_group(t) * 2 + i, group(t)}; });
  // .tf32 m16n8k8 and m16n8k4
  expect_formula(mma_atom_a(32, 8), 32, [](int64_t t, int64_t i) -> Index {
    return {i == 0 || i == 2 ? group(t) : group(t) + 8, i < 2 ? in_group(t) : in_group(t) + 4};
  });
  expect_formula(mma_atom_b(32, 8), 32, [](int64_t t, int64_t i) -> Index { return {in_group(t) + 4 * i, group(t)}; });
  expect_formula(mma_atom_a(32, 4), 32, [](int64_t t, int64_t i) -> Index {
    return {i == 0 ? group(t) : group(t) + 8, in_group(t)};
  });
  // .s8/.u8/.e4m3/.e5m2 m16n8k32 and m16n8k16
  expect_formula(mma_atom_a(8, 32), 32, [](int64_t t, int64_t i) -> Index {
    const bool low = i < 4 || (i >= 8 && i < 12);
    return {low ? group(t) : group(t) + 8, in_group(t) * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
  });
  expect_formula(mma_atom_b(8, 32), 32, [](int64_t t, int64_t i) -> Index {
    return {in_group(t) * 4 + (i & 3) + (i >= 4 ? 16 : 0), group(t)};
  });
  expect_formula(mma_atom_a(8, 16), 32, [](int64_t t, int64_t i) -> Index {
    return {i < 4 ? group(t) : group(t) + 8, in_group(t) * 4 + (i & 3)};
  });
  // .f64 m8n8k4
  expect_formula(mma_f64_atom_a(), 32, [](int64_t t, int64_t) -> Index { return {group(t), in_group(t)}; });
  expect_formula(mma_f64_atom_b(), 32, [](int64_t t, int64_t) -> Index { return {in_group(t), group(t)}; });
  expect_formula(mma_f64_atom_c(), 32, [](int64_t t, int64_t i) -> Index { return {group(t), in_group(t) * 2 + i}; });
}

TEST(StandardLayouts, WgmmaFollowsPtx) {
  for (int64_t n = 8; n <= 256; n += 8)
    expect_formula(wgmma_c(64, n), 128, [](int64_t t, int64_t i) -> Index {
      return {16 * (t / 32) + t % 32 / 4 + 8 * (i >> 1 & 1), 8 * (i >> 2) + 2 * (t % 4) + (i & 1)};
    });
  expect_formula(wgmma_a(64, 16, 16), 128, [](int64_t t, int64_t i) -> Index {
    return {16 * (t / 32) + t % 32 / 4 + 8 * (i >> 1 & 1), 8 * (i >> 2) + 2 * (t % 4) + (i & 1)};
  });
  expect_formula(wgmma_a(64, 32, 8), 128, [](int64_t t, int64_t i) -> Index {
    return {16 * (t / 32) + t % 32 / 4 + 8 * (i >> 2 & 1), 16 * (i >> 3) + 4 * (t % 4) + (i & 3)};
  });
  expect_formula(wgmma_a(64, 8, 32), 128, [](int64_t t, int64_t i) -> Index {
    return {16 * (t / 32) + t % 32 / 4 + 8 * (i & 1), 4 * (i >> 1) + t % 4};
  });
  // Two warpgroups one above the other: each has 64 consecutive rows; side by side: half of the columns each.
  EXPECT_EQ(wgmma_c(128, 64, {2, 1}).place(Index{64, 0}).thread, 128);
  EXPECT_EQ(wgmma_c(64, 64, {1, 2}).place(Index{0, 32}).thread, 128);
  EXPECT_EQ(wgmma_c(256, 64, {2, 1}).place(Index{64, 0}).reg, 32);
  EXPECT_EQ(wgmma_a(64, 64, 16, {1, 2}).text(),
            "(64, 64): [4:W(1) 2:R(2) 8:L(4)] x [8:R(4) 4:L(1) 2:R(1)]; replica [2:G(1)]");
}

TEST(StandardLayouts, GemmOperandsMeetOverTheWarpGrid) {
  for (WarpGrid warps : {WarpGrid{1, 1}, {2, 2}, {4, 2}, {1, 8}, {3, 1}})
    for (int64_t m : {8, 16, 48, 128})
      for (int64_t n : {8, 24, 64}) {
        const FragmentLayout a = mma_a(m, 32, 16, warps), b = mma_b(32, n, 16, warps), c = mma_c(m, n, warps);
        EXPECT_EQ(c.shape(), (Index{m, n}));
        // The warp of C's element holds the row of A and the column of B that it needs.
        for_each_index({m, n}, [&](const Index& index) {
          const int64_t warp = c.place(index).thread / 32;
          bool row = false, column = false;
          for (int64_t copy = 0; copy < a.copy_count(); ++copy)
            row |= a.place(Index{index[0], 0}, copy).thread / 32 == warp;
          for (int64_t copy = 0; copy < b.copy_count(); ++copy)
            column |= b.place(Index{0, index[1]}, copy).thread / 32 == warp;
          EXPECT_TRUE(row && column) << m << " " << n << " at " << index[0] << ", " << index[1];
        });
      }
}

TEST(StandardLayouts, MatrixAtoms) {
  // ldmatrix (PTX 9.7.14.5.15): thread t receives of row t / 4 the 32-bit word t % 4.
  for (int bits : {8, 16, 32})
    expect_formula(matrix_atom(bits), 32, [&](int64_t t, int64_t i) -> Index {
      return {t / 4, t % 4 * (32 / bits) + i};
    });
  expect_formula(transposed_matrix_atom(), 32, [](int64_t t, int64_t i) -> Index { return {t % 4 * 2 + i, t / 4}; });
}

TEST(StandardLayouts, DealHandlesEveryShape) {
  for (int64_t threads : {1, 20, 32, 48, 96, 128, 256})
    for (int64_t rows = 1; rows <= 40; ++rows)
      for (int64_t columns = 1; columns <= 40; ++columns) {
        const int64_t vector = best_vector({rows, columns}, threads, 16);
        EXPECT_EQ(columns % vector, 0);
        const FragmentLayout layout = row_major_fragment({rows, columns}, threads, vector, 16);
        ASSERT_LE(layout.threads(), threads);
        ASSERT_EQ(layout.shape(), (Index{rows, columns}));
        // At least about half of the threads at work: twice the rounds of a perfect deal, and one more.
        const int64_t used = threads < 32 ? threads : threads / 32 * 32;
        const int64_t whole = (rows * columns + used * vector - 1) / (used * vector) * vector;
        ASSERT_LE(layout.registers(), 2 * whole + vector)
            << rows << " x " << columns << " over " << threads << ": " << layout.text();
        // The elements of a vector are consecutive registers and columns.
        for (int64_t v = 0; v < vector; ++v)
          ASSERT_EQ(layout.place(Index{rows - 1, columns - vector + v}).reg % vector, v);
      }
}

TEST(StandardLayouts, DealOfWellShapedTilesIsTheLinearOne) {
  // thread = flat / vector % threads, register = the rest: what a copy of a tile wants.
  struct Case {
    int64_t rows, columns, threads, vector;
  };
  for (const Case& c : {Case{128, 32, 128, 8},
                        {64, 64, 128, 8},
                        {256, 256, 256, 4},
                        {1, 4096, 256, 4},
                        {64, 16, 32, 2},
                        {512, 1, 64, 1}}) {
    const FragmentLayout layout = row_major_fragment({c.rows, c.columns}, c.threads, c.vector, 16);
    SCOPED_TRACE(layout.text());
    EXPECT_FALSE(layout.is_padded());
    EXPECT_EQ(layout.registers() * c.threads, c.rows * c.columns);
    for_each_index({c.rows, c.columns}, [&](const Index& index) {
      const int64_t flat = index[0] * c.columns + index[1];
      ASSERT_EQ(layout.place(index).thread, flat / c.vector % c.threads);
    });
  }
  EXPECT_EQ(row_major_fragment({4, 8, 64, 2}, 128, 2, 16).text(),
            "(4, 8, 64, 2): [4:R(8)] x [4:R(2) 2:W(2)] x [2:W(1) 32:L(1)] x [2:R(1)]");
  EXPECT_EQ(row_major_fragment({}, 128, 1), FragmentLayout());
}

// A row of 25 vectors is no whole number of sectors: runs of four would begin within one.
TEST(StandardLayouts, RunsThatBeginWithinASector) {
  EXPECT_EQ(row_major_fragment({64, 100}, 128, 4).text(), "(64, 100): [16:R(4) 4:W(1)] x [25:L(1) 4:R(1)]");
}

TEST(StandardLayouts, BestVector) {
  EXPECT_EQ(best_vector({128, 64}, 128, 16), 8);
  EXPECT_EQ(best_vector({128, 36}, 128, 16), 4);
  EXPECT_EQ(best_vector({128, 37}, 128, 16), 1);
  EXPECT_EQ(best_vector({256}, 128, 32), 2);  // wider would leave threads idle
  EXPECT_EQ(best_vector({128, 64}, 128, 4), 32);
  EXPECT_EQ(best_vector({64, 64}, 128, 64), 2);
  EXPECT_EQ(best_vector({}, 128, 32), 1);
}

TEST(StandardLayouts, Replicated) {
  const FragmentLayout layout = replicated_fragment({3, 5}, 96);
  EXPECT_TRUE(layout.is_replicated());
  EXPECT_EQ(layout.registers(), 15);
  EXPECT_EQ(layout.copy_count(), 96);
  EXPECT_FALSE(wgmma_c(64, 8).is_replicated());
}

}  // namespace
}  // namespace tilewright
