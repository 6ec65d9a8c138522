// The layouts that instructions and copies ask for. PTX sections are those of PTX ISA 8.7, chapter 9.7.14 (mma)
// and 9.7.15 (wgmma). Elements are numbered in registers, not packed words: a 32-bit register of 16-bit values is two
// of them.
#pragma once
#include "layout/fragment.h"
#include "layout/memory.h"

namespace tilewright {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }  // of positive numbers

// mma.sync atoms of one warp, from 8-bit to 32-bit operands (9.7.14.5.*). A is 16 x k with k = 16 or 32 bytes of a row;
// B is k x 8; C is 16 x 8 whatever its type.
FragmentLayout mma_atom_a(int element_bits, int64_t k);
FragmentLayout mma_atom_b(int element_bits, int64_t k);
FragmentLayout mma_atom_c();
// mma.sync.m8n8k4 of f64 (9.7.14.5.1): A 8 x 4, B 4 x 8, C 8 x 8.
FragmentLayout mma_f64_atom_a();
FragmentLayout mma_f64_atom_b();
FragmentLayout mma_f64_atom_c();

// The operands of an m x n x k gemm by mma.sync over warps_m x warps_n warps, the warps of a column first (warp = i + j
// * warps_m, i along m). Each warp owns consecutive rows and columns. Extents that the atoms do not cover are padded. A
// is copied to the warps along n, B to those along m.
struct WarpGrid {
  int64_t m = 1, n = 1;
};
FragmentLayout mma_a(int64_t m, int64_t k, int element_bits, WarpGrid warps);
FragmentLayout mma_b(int64_t k, int64_t n, int element_bits, WarpGrid warps);
FragmentLayout mma_c(int64_t m, int64_t n, WarpGrid warps);

// wgmma over groups.m x groups.n warpgroups, those of a column first: each owns consecutive rows (whole atoms of 64)
// and columns (whole atoms of 8). C: 9.7.15.5.1, "Register Fragments: D". A from registers: the same section, "A",
// copied along n.
FragmentLayout wgmma_c(int64_t m, int64_t n, WarpGrid groups = {});
FragmentLayout wgmma_a(int64_t m, int64_t k, int element_bits, WarpGrid groups = {});

// c of a gemm by fused multiply-adds: a warp is 4 x 8 lanes, each of which holds `rows` x `columns` neighbours of every
// tile of 4 * rows x 8 * columns.
constexpr int64_t kTileLanesOfColumn = 4, kTileLanesOfRow = 8;
FragmentLayout register_tiles(int64_t m, int64_t n, int64_t rows, int64_t columns, WarpGrid warps);

// One 8 x 8 matrix of ldmatrix and stmatrix (9.7.14.5.15), rows of 16 bytes, and its transpose (16-bit elements only).
FragmentLayout matrix_atom(int element_bits);
FragmentLayout transposed_matrix_atom();

// A tile dealt to threads for Maps and copies: vectors of `vector` elements along the last dimension, then lanes along
// it, then rows; registers take what is left, so that consecutive lanes touch consecutive memory. Where the extents
// have no such factors some places hold padding or some lanes idle; of all ways to cut, the one with the least memory
// traffic for elements of element_bits, then the fewest registers. Threads beyond whole warps are left out; so are
// warps for which there is nothing.
FragmentLayout row_major_fragment(const std::vector<int64_t>& shape, int64_t threads, int64_t vector,
                                  int element_bits = 32);
// The same of a matrix with whole rows in warps, so that what is reduced along a row need not leave its warp. None:
// warps, lanes and vectors do not divide the matrix.
std::optional<FragmentLayout> rows_in_warps(const std::vector<int64_t>& shape, int64_t threads, int64_t vector);
// The widest vector of at most max_bytes that divides the last extent and leaves as many threads at work as a vector of
// one.
int64_t best_vector(const std::vector<int64_t>& shape, int64_t threads, int element_bits, int64_t max_bytes = 16);

// Each thread holds all elements.
FragmentLayout replicated_fragment(const std::vector<int64_t>& shape, int64_t threads);

// TileLang's make_swizzled_layout: 128-, 64- or 32-byte panels, the widest that divides the last extent, where there
// are whole groups of 8 rows; otherwise rows, padded by 16 bytes if allow_pad and they are a multiple of 32 bytes. Its
// k_major says nothing here: the last dimension is contiguous either way. make_full, half and
// quarter_bank_swizzled_layout are MemoryLayout::panels of 128, 64 and 32 bytes.
MemoryLayout swizzled_memory(const std::vector<int64_t>& shape, int element_bits, bool allow_pad = true);

}  // namespace tilewright
