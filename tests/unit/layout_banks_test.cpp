// Bank conflicts and matrix instructions against a simulation of every lane's address.
#include <gtest/gtest.h>

#include "layout/algebra.h"
#include "layout/banks.h"
#include "layout/standard.h"
#include "unit/layout_samples.h"

namespace tilewright {
namespace {

// The worst wavefronts of any warp and any vector, from the addresses alone.
int64_t wavefronts_by_force(const FragmentLayout& fragment, const MemoryLayout& memory, const VectorAccess& vector) {
  const int64_t bytes = std::max<int64_t>(1, vector.bytes(memory.element_bits()));
  // (warp, cta, first register of a vector) -> lane -> address.
  std::map<std::tuple<int64_t, int64_t, int64_t>, std::map<int64_t, int64_t>> accesses;
  for_each_index(fragment.shape(), [&](const Index& index) {
    for (const AccessDigit& d : vector.registers)
      if (index[d.dim] / d.weight % d.extent != 0) return;
    for (int64_t copy = 0; copy < fragment.copy_count(); ++copy) {
      const Place p = fragment.place(index, copy);
      accesses[{p.thread / 32, p.cta, p.reg}][p.lane()] = memory.byte_offset(index);
    }
  });
  int64_t worst = 0;
  for (const auto& [access, lanes] : accesses) {
    int64_t wavefronts = 0;
    const int64_t together = bytes <= 4 ? 32 : 128 / bytes;
    for (int64_t first = 0; first < 32; first += together) {
      std::map<int64_t, std::set<int64_t>> banks;
      for (const auto& [lane, address] : lanes)
        if (lane >= first && lane < first + together)
          for (int64_t word = address / 4; word <= (address + bytes - 1) / 4; ++word) banks[word % 32].insert(word);
      size_t ways = 0;
      for (const auto& [bank, words] : banks) ways = std::max(ways, words.size());
      wavefronts += static_cast<int64_t>(ways);
    }
    worst = std::max(worst, wavefronts);
  }
  return worst;
}

TEST(BankConflicts, AgreeWithEveryAddress) {
  LayoutSamples samples(21);
  int several = 0;
  for (int round = 0; round < 1200; ++round) {
    const FragmentLayout fragment = samples.fragment(round % 2 == 0);
    if (fragment.is_padded()) continue;
    const MemoryLayout memory = samples.memory(fragment.shape(), round % 3 == 0);
    const VectorAccess vector = vector_access(fragment, memory);
    const auto got = bank_conflicts(fragment, memory, vector);
    if (!got) continue;
    EXPECT_EQ(got->wavefronts, wavefronts_by_force(fragment, memory, vector))
        << fragment.text() << " at " << memory.text();
    EXPECT_GE(got->wavefronts, got->ideal > 0 ? 1 : 0);
    several += got->ways > 1;
  }
  EXPECT_GT(several, 20);
}

TEST(BankConflicts, KnownPatterns) {
  const auto ways = [](const FragmentLayout& fragment, const MemoryLayout& memory) {
    return bank_conflicts(fragment, memory, vector_access(fragment, memory))->ways;
  };
  const FragmentLayout column = parse_fragment_layout("(32, 4): [32:L(1)] x [4:R(1)]");  // a thread a row
  EXPECT_EQ(ways(column, MemoryLayout({32, 4}, {32, 1}, 32)), 8);  // 16-byte vectors, rows of 128 bytes
  EXPECT_EQ(ways(column, MemoryLayout({32, 4}, {36, 1}, 32)), 1);  // padded by 16 bytes
  EXPECT_EQ(ways(parse_fragment_layout("(32): [32:L(1)]"), MemoryLayout(Index{32}, Index{32}, 32)), 32);
  EXPECT_EQ(ways(parse_fragment_layout("(32): [32:L(1)]"), MemoryLayout(Index{32}, Index{33}, 32)), 1);
  EXPECT_EQ(ways(parse_fragment_layout("(32): [32:L(1)]"), MemoryLayout(Index{32}, Index{1}, 8)),
            1);  // words are shared
  const FragmentLayout c = wgmma_c(64, 64);
  EXPECT_EQ(ways(c, MemoryLayout::row_major({64, 64}, 16)), 8);
  EXPECT_EQ(ways(c, MemoryLayout::panels({64, 64}, 16, 128)), 1);
}

TEST(MatrixAccess, WhatStmatrixAndLdmatrixCan) {
  const FragmentLayout c = wgmma_c(64, 64);
  const MatrixAccess straight = matrix_access(c, MemoryLayout::panels({64, 64}, 16, 128));
  EXPECT_EQ(straight.matrices, 4) << straight.why_not;
  EXPECT_FALSE(straight.transposed);
  EXPECT_EQ(straight.ways, 1);
  EXPECT_EQ(matrix_access(c, MemoryLayout::row_major({64, 64}, 16)).ways, 8);
  EXPECT_EQ(matrix_access(c, MemoryLayout::padded({64, 64}, 16, 16)).ways, 1);
  EXPECT_EQ(matrix_access(wgmma_c(64, 8), MemoryLayout::panels({64, 8}, 16, 16)).matrices, 2);
  EXPECT_EQ(matrix_access(mma_atom_b(16, 8), MemoryLayout({8, 8}, {1, 8}, 16)).matrices, 1);
  // Column-major memory: transposed.
  const MatrixAccess turned = matrix_access(c, MemoryLayout::panels({64, 64}, 16, 128).permuted({1, 0}));
  EXPECT_EQ(turned.matrices, 4) << turned.why_not;
  EXPECT_TRUE(turned.transposed);
  EXPECT_EQ(turned.ways, 1);
  EXPECT_EQ(matrix_access(mma_a(64, 32, 8, {4, 1}), MemoryLayout::row_major({64, 32}, 8)).matrices, 4);
  EXPECT_EQ(matrix_access(mma_a(64, 8, 32, {4, 1}), MemoryLayout::row_major({64, 8}, 32)).matrices, 4);
  const auto why_not = [](const FragmentLayout& f, const MemoryLayout& m, int64_t alignment = 16) {
    const MatrixAccess access = matrix_access(f, m, alignment);
    EXPECT_EQ(access.matrices, 0);
    return access.why_not;
  };
  EXPECT_NE(why_not(c, MemoryLayout({64, 64}, {1, 64}, 32)), "");    // 32-bit elements do not transpose
  EXPECT_NE(why_not(c, MemoryLayout::padded({64, 64}, 16, 8)), "");  // rows at 8 bytes
  EXPECT_NE(why_not(c, MemoryLayout::row_major({64, 64}, 16), 8), "");
  EXPECT_NE(why_not(row_major_fragment({64, 64}, 128, 8, 16), MemoryLayout::row_major({64, 64}, 16)), "");
  EXPECT_NE(why_not(mma_c(60, 64, {4, 1}), MemoryLayout::row_major({60, 64}, 16)), "");
  EXPECT_NE(why_not(remove_dim(c, 1), MemoryLayout::row_major({64}, 16)), "");
  EXPECT_NE(why_not(c, MemoryLayout::row_major({64, 64}, 64)), "");
}

// ldmatrix by its definition: which element lands in each register, given the rows' addresses that matrix_access
// promises.
TEST(MatrixAccess, EachLaneGetsItsElements) {
  struct Case {
    FragmentLayout fragment;
    MemoryLayout memory;
  };
  const Case cases[] = {{wgmma_c(64, 64), MemoryLayout::panels({64, 64}, 16, 128)},
                        {wgmma_c(64, 32), MemoryLayout::panels({32, 64}, 16, 64).permuted({1, 0})},
                        {mma_a(32, 64, 8, {2, 1}), MemoryLayout::panels({32, 64}, 8, 64)},
                        {mma_b(32, 64, 16, {1, 2}), MemoryLayout::panels({32, 64}, 16, 128)}};
  for (const Case& c : cases) {
    const MatrixAccess access = matrix_access(c.fragment, c.memory);
    ASSERT_GT(access.matrices, 0) << access.why_not;
    const int bits = c.memory.element_bits(), packed = 32 / bits;
    std::map<int64_t, Index> at;  // byte -> element
    for_each_index(c.fragment.shape(), [&](const Index& index) { at[c.memory.byte_offset(index)] = index; });
    for (int64_t warp = 0; warp < c.fragment.threads() / 32; ++warp)
      for (int64_t word = 0; word < c.fragment.registers() / packed; ++word)
        for (int64_t lane = 0; lane < 32; ++lane)
          for (int64_t part = 0; part < packed; ++part) {
            const auto element = [&](int64_t l, int64_t p) {
              return c.fragment.held_at({word * packed + p, warp * 32 + l, 0}).index;
            };
            // Row i of the matrix starts at lane i's element of column 0; straight: at lane 4 * i. Transposed: i = 2 *
            // lane + part.
            const int64_t row = access.transposed ? lane % 4 * 2 + part : lane / 4;
            const int64_t column_bytes = access.transposed ? lane / 4 * 2 : (lane % 4 * packed + part) * bits / 8;
            const Index first = access.transposed ? element(row / 2, row % 2) : element(row * 4, 0);
            const int64_t address = c.memory.byte_offset(first);
            EXPECT_EQ(address % 16, 0);
            ASSERT_EQ(at[address + column_bytes], element(lane, part));
          }
  }
}

TEST(ChooseSharedLayout, FewestWavefrontsThenSimplest) {
  const FragmentLayout rows = row_major_fragment({64, 64}, 128, 8, 16);
  const std::vector<SharedUse> only_rows = {{rows}};
  EXPECT_EQ(choose_shared_layout({64, 64}, 16, only_rows), MemoryLayout::row_major({64, 64}, 16));
  const std::vector<SharedUse> matrices = {{wgmma_c(64, 64), true}, {rows}};
  EXPECT_EQ(choose_shared_layout({64, 64}, 16, matrices), MemoryLayout::panels({64, 64}, 16, 128));
  // Eight lanes read a row of 128 bytes: in narrower panels they would meet in the same banks.
  EXPECT_EQ(choose_shared_layout({64, 64}, 16, only_rows, true), MemoryLayout::panels({64, 64}, 16, 128));
  // A transpose of f32: written by rows, read by columns.
  const FragmentLayout columns = parse_fragment_layout("(32, 32): [32:L(1)] x [8:R(1) 4:W(1)]");
  const std::vector<SharedUse> transpose = {{row_major_fragment({32, 32}, 128, 1, 32)}, {columns}};
  const MemoryLayout chosen = choose_shared_layout({32, 32}, 32, transpose);
  EXPECT_EQ(shared_wavefronts(chosen, transpose), 16) << chosen.text();
  EXPECT_EQ(shared_wavefronts(MemoryLayout::row_major({32, 32}, 32), transpose), 8 + 8 * 32);
  // Odd tiles find something too.
  const std::vector<SharedUse> odd = {{row_major_fragment({24, 37}, 96, 1, 32)}};
  EXPECT_EQ(choose_shared_layout({24, 37}, 32, odd).shape(), (Index{24, 37}));
}

}  // namespace
}  // namespace tilewright
