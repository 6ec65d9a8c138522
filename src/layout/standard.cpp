#include "layout/standard.h"

#include "layout/algebra.h"

namespace tilewright {
namespace {

constexpr Factor reg(int64_t extent, int64_t stride) { return {extent, Home::Register, stride}; }
constexpr Factor lane(int64_t extent, int64_t stride) { return {extent, Home::Lane, stride}; }
constexpr Factor warp(int64_t extent, int64_t stride = 1) { return {extent, Home::Warp, stride}; }

constexpr int64_t kWarps = kWarpgroupThreads / kWarpThreads;

// Elements of one 32-bit register, which the lane holds side by side along k.
int64_t per_register(int element_bits) {
  check_internal(element_bits == 8 || element_bits == 16 || element_bits == 32, "mma of {}-bit elements", element_bits);
  return 32 / element_bits;
}

// How many 16-byte pieces of k an atom has: one or two, each spread over four lanes.
int64_t halves(int element_bits, int64_t k) {
  const int64_t width = 4 * per_register(element_bits);
  check_internal(k == width || k == 2 * width, "mma with k = {} of {}-bit elements", k, element_bits);
  return k / width;
}

// The k of A's and B's atoms in a gemm: two halves unless one covers it.
int64_t atom_k(int element_bits, int64_t k) {
  const int64_t width = 4 * per_register(element_bits);
  return k <= width ? width : 2 * width;
}

// The atom `count` times along each dimension in registers, dimension 1 innermost.
FragmentLayout repeat_in_registers(const FragmentLayout& atom, int64_t rows, int64_t columns) {
  return repeat(repeat(atom, 1, columns, Home::Register), 0, rows, Home::Register);
}

}  // namespace

FragmentLayout mma_atom_a(int element_bits, int64_t k) {
  const int64_t e = per_register(element_bits), h = halves(element_bits, k);
  return FragmentLayout({16, k}, {{reg(2, e), lane(8, 4)}, {reg(h, 2 * e), lane(4, 1), reg(e, 1)}});
}

FragmentLayout mma_atom_b(int element_bits, int64_t k) {
  const int64_t e = per_register(element_bits), h = halves(element_bits, k);
  return FragmentLayout({k, 8}, {{reg(h, e), lane(4, 1), reg(e, 1)}, {lane(8, 4)}});
}

FragmentLayout mma_atom_c() { return FragmentLayout({16, 8}, {{reg(2, 2), lane(8, 4)}, {lane(4, 1), reg(2, 1)}}); }

FragmentLayout mma_f64_atom_a() { return FragmentLayout({8, 4}, {{lane(8, 4)}, {lane(4, 1)}}); }
FragmentLayout mma_f64_atom_b() { return FragmentLayout({4, 8}, {{lane(4, 1)}, {lane(8, 4)}}); }
FragmentLayout mma_f64_atom_c() { return FragmentLayout({8, 8}, {{lane(8, 4)}, {lane(4, 1), reg(2, 1)}}); }

FragmentLayout mma_a(int64_t m, int64_t k, int element_bits, WarpGrid warps) {
  const int64_t atom = atom_k(element_bits, k);
  FragmentLayout tile =
      repeat_in_registers(mma_atom_a(element_bits, atom), ceil_div(m, 16 * warps.m), ceil_div(k, atom));
  tile = replicate(repeat(tile, 0, warps.m, Home::Warp), warps.n, Home::Warp);
  return with_shape(tile, {m, k});
}

FragmentLayout mma_b(int64_t k, int64_t n, int element_bits, WarpGrid warps) {
  const int64_t atom = atom_k(element_bits, k);
  FragmentLayout tile =
      repeat_in_registers(mma_atom_b(element_bits, atom), ceil_div(k, atom), ceil_div(n, 8 * warps.n));
  tile = repeat(replicate(tile, warps.m, Home::Warp), 1, warps.n, Home::Warp);
  return with_shape(tile, {k, n});
}

FragmentLayout mma_c(int64_t m, int64_t n, WarpGrid warps) {
  FragmentLayout tile = repeat_in_registers(mma_atom_c(), ceil_div(m, 16 * warps.m), ceil_div(n, 8 * warps.n));
  tile = repeat(repeat(tile, 0, warps.m, Home::Warp), 1, warps.n, Home::Warp);
  return with_shape(tile, {m, n});
}

FragmentLayout register_tiles(int64_t m, int64_t n, int64_t rows, int64_t columns, WarpGrid warps) {
  const int64_t down = kTileLanesOfColumn * rows, across = kTileLanesOfRow * columns;
  FragmentLayout tile({down, across}, {{lane(kTileLanesOfColumn, kTileLanesOfRow), reg(rows, columns)},
                                       {lane(kTileLanesOfRow, 1), reg(columns, 1)}});
  tile = repeat_in_registers(tile, ceil_div(m, down * warps.m), ceil_div(n, across * warps.n));
  tile = repeat(repeat(tile, 0, warps.m, Home::Warp), 1, warps.n, Home::Warp);
  return with_shape(tile, {m, n});
}

FragmentLayout wgmma_c(int64_t m, int64_t n, WarpGrid groups) {
  FragmentLayout tile({64, 8}, {{warp(kWarps), reg(2, 2), lane(8, 4)}, {lane(4, 1), reg(2, 1)}});
  tile = repeat_in_registers(tile, ceil_div(m, 64 * groups.m), ceil_div(n, 8 * groups.n));
  tile = repeat(repeat(tile, 0, groups.m, Home::Warpgroup), 1, groups.n, Home::Warpgroup);
  return with_shape(tile, {m, n});
}

FragmentLayout wgmma_a(int64_t m, int64_t k, int element_bits, WarpGrid groups) {
  const int64_t e = per_register(element_bits);
  FragmentLayout tile({64, 8 * e}, {{warp(kWarps), reg(2, e), lane(8, 4)}, {reg(2, 2 * e), lane(4, 1), reg(e, 1)}});
  tile = repeat_in_registers(tile, ceil_div(m, 64 * groups.m), ceil_div(k, 8 * e));
  tile = replicate(repeat(tile, 0, groups.m, Home::Warpgroup), groups.n, Home::Warpgroup);
  return with_shape(tile, {m, k});
}

FragmentLayout matrix_atom(int element_bits) {
  const int64_t e = per_register(element_bits);
  return FragmentLayout({8, 4 * e}, {{lane(8, 4)}, {lane(4, 1), reg(e, 1)}});
}

FragmentLayout transposed_matrix_atom() { return permute(matrix_atom(16), {1, 0}); }

FragmentLayout replicated_fragment(const std::vector<int64_t>& shape, int64_t threads) {
  FragmentLayout::Dims dims(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) dims[d] = {reg(shape[d], stride)};
  return FragmentLayout(shape, std::move(dims), {{lane(threads, 1), {}}});
}

MemoryLayout swizzled_memory(const std::vector<int64_t>& shape, int element_bits, bool allow_pad) {
  const size_t rank = shape.size();
  if (rank < 2) return MemoryLayout::row_major(shape, element_bits);
  const int64_t row_bits = shape.back() * element_bits;
  if (shape[rank - 2] % 8 == 0)
    for (int64_t span : {128, 64, 32})
      if (row_bits % (span * 8) == 0) return MemoryLayout::panels(shape, element_bits, span);
  if (allow_pad && row_bits % 256 == 0) return MemoryLayout::padded(shape, element_bits, 16);
  return MemoryLayout::row_major(shape, element_bits);
}

}  // namespace tilewright
