#include "passes/threads/gemm_choice.h"

#include "analysis/divisibility.h"
#include "analysis/warp_grid.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "layout/algebra.h"
#include "passes/lower/lowering.h"
#include "passes/threads/shared_layout.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Registers for accumulators: those a thread gets where min_blocks blocks are resident, less some for everything else
// (ptxas C7602: 154 for 128 accumulators).
int64_t most_accumulators(const GemmPlace& place, const target::GpuTarget& target) {
  constexpr int64_t kMost = 255, kElse = 31;
  return std::min(kMost, target.registers_at_launch(place.threads.count(), place.min_blocks)) - kElse;
}

// What a gemm asks for, as the choosers see it.
struct Wanted {
  const ProgramTables& p;
  const Gemm& gemm;
  const GemmPlace& place;
  const target::GpuTarget& target;
  GemmExtents extents;
  DType a, b, c;
  int64_t threads() const { return place.threads.count(); }
};

// Why the instruction cannot have an operand in memory at all.
std::string misfit_mma(const ProgramTables& p, const Region& r) {
  const Buffer& b = p.buffer(r.buffer);
  if (b.space == Space::Global) return fmt::format("'{}' is in global memory", b.name);
  if (r.extent.size() < 2) return "an operand has one dimension";
  return "";
}

// Why an operand in shared memory does not suit ldmatrix: rows of 16 bytes, of which whole ones make up the tile, and
// neighbours of a word along k. Elements of 32 bits are words by themselves.
std::string misfit_ldmatrix(const ProgramTables& p, const Region& r, bool k_is_last, const target::MmaInstruction& i) {
  const Buffer& b = p.buffer(r.buffer);
  if (b.is_view() || !b.strides.empty()) return fmt::format("'{}' is a view", b.name);
  const int64_t chunk = 128 / i.a.bits;
  if (!k_is_last && i.a.bits != 16) return fmt::format("'{}' is not contiguous along k", b.name);
  if (constant_int(b.shape.back()).value_or(1) % chunk != 0)
    return fmt::format("rows of '{}' are no multiple of 16 bytes", b.name);
  if (analysis::power_of_two_divisor(r.min.back(), p) % chunk != 0)
    return fmt::format("the tile is not known to begin at a multiple of 16 bytes of a row of '{}'", b.name);
  return "";
}

bool divide(GemmChoice& c, const Wanted& w, int64_t warps, int64_t unit_m, int64_t unit_n, bool rows_first) {
  const auto grid =
      analysis::divide_warps(w.gemm.policy, w.extents.rows, w.extents.columns, warps, unit_m, unit_n, rows_first);
  if (grid) c.warps_m = grid->m, c.warps_n = grid->n;
  return grid.has_value();
}

// Tiles of which some reach beyond c, or lie there: what is read for them are rows or columns of c's own.
std::string cover(GemmChoice& c, const Wanted& w, int64_t warps, const target::MmaInstruction& i) {
  constexpr int64_t kMatrixRows = 8;  // that ldmatrix transposes at once
  const auto [rows, columns, k] = w.extents;
  const bool whole = (!w.gemm.transpose_a || rows % kMatrixRows == 0) &&
                     (w.gemm.transpose_b || columns % kMatrixRows == 0) && rows > 1 && columns > 1;
  if (!whole || w.gemm.is_sparse())
    return fmt::format("{} x {} does not divide into tiles of {} x {} for {} warps", rows, columns, target::kMmaRows,
                       i.n, warps);
  const WarpGrid grid = analysis::cover_with_warps(w.gemm.policy, rows, columns, warps, target::kMmaRows, i.n);
  c.warps_m = grid.m, c.warps_n = grid.n;
  return "";
}

std::string fragment_misfit(const Wanted& w) {
  if (!w.place.a_in_registers) return "";
  const Region& a = w.gemm.a;
  return w.gemm.transpose_a || !is_whole(a, w.p.buffer(a.buffer)) || a.extent.size() != 2 ? "a is part of a fragment"
                                                                                          : "";
}

std::string none_for(const Wanted& w) {
  return fmt::format("none multiplies {}{} by {} into {}", w.gemm.is_sparse() ? "a sparse " : "", w.a.name(),
                     w.b.name(), w.c.name());
}

// Why not; empty: it is chosen.
std::string choose_wgmma(GemmChoice& c, const Wanted& w) {
  if (!w.target.has.wgmma) return fmt::format("sm_{} has none", w.target.arch);
  if (!w.place.no_wgmma.empty()) return w.place.no_wgmma;
  const target::WgmmaInstruction* i = target::wgmma_for(w.a, w.b, w.c, w.gemm.is_sparse());
  if (!i) return none_for(w);
  const auto [rows, columns, k] = w.extents;
  if (k % i->k() != 0) return fmt::format("k is no multiple of {}", i->k());
  if (w.threads() % target::kWarpgroupThreads != 0 || w.place.threads.begin[0] % target::kWarpgroupThreads != 0)
    return "the threads are no whole warpgroups";
  // Rows first: every warpgroup reads all of b, so the fewer share a row of a the less is read.
  const int64_t groups = w.threads() / target::kWarpgroupThreads;
  if (!divide(c, w, groups, target::kWgmmaRows, 8, true))
    return fmt::format("{} x {} does not divide into 64 rows for each of {} warpgroups", rows, columns, groups);
  const int64_t own_rows = rows / c.warps_m, own_columns = columns / c.warps_n;
  const int64_t at_once = i->most_columns(own_columns);
  if (at_once == 0) return fmt::format("none has {} columns", own_columns);
  const bool asked_for = w.gemm.completion.queue == Queue::Wgmma;  // the device compiler spills
  if (!asked_for && own_rows * own_columns / target::kWarpgroupThreads > most_accumulators(w.place, w.target))
    return "the accumulators of a thread are more than its registers";
  if (std::string why = fragment_misfit(w); !why.empty()) return why;
  if (!w.place.a_in_registers)
    if (std::string why =
            analysis::misfit_of_panels(w.p, w.gemm.a, {!w.gemm.transpose_a, i->transposes, i->a_k(), own_rows});
        !why.empty())
      return why;
  if (std::string why = analysis::misfit_of_panels(w.p, w.gemm.b, {w.gemm.transpose_b, i->transposes, i->k(), at_once});
      !why.empty())
    return why;
  c.wgmma = i;
  return "";
}

std::string choose_mma(GemmChoice& c, const Wanted& w) {
  const target::MmaInstruction* i = target::mma_for(w.a, w.b, w.c, w.target.arch, w.gemm.is_sparse(), w.extents.k);
  if (!i) return none_for(w);
  if (w.extents.k % i->k != 0) return fmt::format("k is no multiple of {}", i->k);
  if (w.threads() % kWarpThreads != 0) return "the threads are no whole warps";
  const int64_t warps = w.threads() / kWarpThreads;
  if (!divide(c, w, warps, target::kMmaRows, i->n, false))
    if (std::string why = cover(c, w, warps, *i); !why.empty()) return why;
  // ptxas 13.0 makes a predicate of the product of what is cleared where a condition holds, and on an H200 the lower
  // eight rows then kept what was in the registers.
  if (i->a == f64 && w.gemm.clear && !constant_int(w.gemm.clear))
    return "accumulators of doubles are cleared under a condition";
  if (i->a == f64) {  // any element, by plain loads
    c.a_in_registers = false, c.mma = i;
    return "";
  }
  if (std::string why = fragment_misfit(w); !why.empty()) return why;
  std::string a_by_elements, b_by_elements;
  const auto reaches = [&](const Region& r, bool k_is_last, std::string& by_elements) {
    if (std::string why = misfit_mma(w.p, r); !why.empty()) return why;
    by_elements = misfit_ldmatrix(w.p, r, k_is_last, *i);
    return i->a.bits < 8 ? by_elements : "";  // no element of less than a byte has an address
  };
  if (!w.place.a_in_registers)
    if (std::string why = reaches(w.gemm.a, !w.gemm.transpose_a, a_by_elements); !why.empty()) return why;
  if (std::string why = reaches(w.gemm.b, w.gemm.transpose_b, b_by_elements); !why.empty()) return why;
  c.mma = i, c.a_by_elements = std::move(a_by_elements), c.b_by_elements = std::move(b_by_elements);
  return "";
}

// Neighbours in memory come in vectors of 16 bytes: of k, or of what is not k.
bool has_vectors(const ProgramTables& p, const Region& r, bool k_is_last, int64_t vector) {
  const Buffer& b = p.buffer(r.buffer);
  if (b.space == Space::Global || b.space == Space::Local) return false;
  if (b.is_view() || !b.strides.empty() || b.type.bits < 8 || r.extent.size() < 2) return false;
  const bool begins = analysis::power_of_two_divisor(r.min.back(), p) % vector == 0;
  const int64_t row = constant_int(b.shape.back()).value_or(1);
  return (k_is_last || vector > 1) && begins && row % vector == 0;
}

void choose_tile(GemmChoice& c, const Wanted& w) {
  if (w.gemm.is_sparse() || accumulator(w.c) != w.c || w.threads() % kWarpThreads != 0) return;
  const int64_t vector = std::min<int64_t>(4, 128 / std::max(w.a.bits, w.b.bits)), warps = w.threads() / kWarpThreads;
  const FmaTile t{w.gemm.transpose_a ? vector : 1, w.gemm.transpose_b ? 1 : vector, vector};
  if (w.extents.k % vector != 0 || w.place.a_in_registers || !has_vectors(w.p, w.gemm.a, !w.gemm.transpose_a, vector) ||
      !has_vectors(w.p, w.gemm.b, w.gemm.transpose_b, vector))
    return;
  // The squarer a thread's part, the less it reads.
  double best = 0;
  for (int64_t wm = 1; wm <= warps; ++wm) {
    const int64_t wn = warps / wm;
    if (wm * wn != warps || w.extents.rows % (t.unit_rows() * wm) != 0 ||
        w.extents.columns % (t.unit_columns() * wn) != 0)
      continue;
    const double rows = static_cast<double>(w.extents.rows / wm / kTileLanesOfColumn),
                 columns = static_cast<double>(w.extents.columns / wn / kTileLanesOfRow);
    const double score = std::min(rows / columns, columns / rows);
    if (score > best) best = score, c.warps_m = wm, c.warps_n = wn, c.tile = t;
  }
}

}  // namespace

GemmExtents extents_of(const Gemm& n) {
  const size_t rank = n.c.extent.size(), rank_b = n.b.extent.size();
  const auto rows = constant_int(n.c.extent[rank - 2]), columns = constant_int(n.c.extent[rank - 1]);
  const auto k = constant_int(n.transpose_b ? n.b.extent[rank_b - 1] : n.b.extent[rank_b - 2]);
  check_internal(rows && columns && k && *k > 0, "a gemm of extents that are not constant");
  return {*rows, *columns, *k};
}

GemmChoice choose_gemm(const ProgramTables& p, const Gemm& gemm, const GemmPlace& place,
                       const target::GpuTarget& target) {
  const Wanted w{p,
                 gemm,
                 place,
                 target,
                 extents_of(gemm),
                 operand_type(p, gemm, gemm.a),
                 operand_type(p, gemm, gemm.b),
                 p.buffer(gemm.c.buffer).type};
  GemmChoice c;
  c.a_in_registers = place.a_in_registers;
  c.why_not_wgmma = choose_wgmma(c, w);
  if (!c.wgmma && place.may_transpose && !gemm.is_sparse() && !place.a_in_registers) {
    const Gemm other = transpose_of(gemm);
    c.transposed = choose_wgmma(c, {p, other, place, target, extents_of(other), w.b, w.a, w.c}).empty();
    if (c.transposed) c.why_not_wgmma.clear();
  }
  if (!c.wgmma) c.why_not_mma = choose_mma(c, w);
  if (!c.has_instruction()) choose_tile(c, w);
  if (place.c_in_registers) return c;
  if (c.has_instruction()) c.why_not_wgmma = c.why_not_mma = "c is not in registers";
  c.wgmma = nullptr, c.mma = nullptr, c.tile.reset();
  return c;
}

FragmentLayout accumulator_of(const GemmChoice& c, int64_t rows, int64_t columns) {
  const WarpGrid grid{c.warps_m, c.warps_n};
  if (c.tile) return register_tiles(rows, columns, c.tile->rows, c.tile->columns, grid);
  if (c.transposed) return permute(wgmma_c(columns, rows, grid), {1, 0});
  return c.wgmma ? wgmma_c(rows, columns, grid) : mma_c(rows, columns, grid);
}

FragmentLayout operand_of(const GemmChoice& c, int64_t rows, int64_t k) {
  const WarpGrid grid{c.warps_m, c.warps_n};
  return c.wgmma ? wgmma_a(rows, k, c.wgmma->a.bits, grid) : mma_a(rows, k, c.mma->a.bits, grid);
}

}  // namespace tilewright::passes
