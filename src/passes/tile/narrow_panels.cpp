#include "passes/tile/narrow_panels.h"

#include "analysis/panels.h"
#include "analysis/tma.h"
#include "analysis/uniformity.h"
#include "analysis/warp_grid.h"
#include "ir/extent.h"
#include "ir/number_statements.h"
#include "ir/operators.h"
#include "ir/program.h"
#include "ir/rewrite.h"
#include "passes/threads/gemm_choice.h"
#include "passes/threads/shared_layout.h"
#include "plan/price.h"

namespace tilewright::passes {

using namespace ir;
using analysis::kWidestPanel;
using analysis::panel_span;

namespace {

// The warpgroups of a gemm, of wgmma's tiles; none: they do not divide it.
std::optional<WarpGrid> warpgroups_of(const Gemm& n, const analysis::ThreadSet& threads) {
  const size_t rank = n.c.extent.size();
  const auto rows = constant_int(n.c.extent[rank - 2]), columns = constant_int(n.c.extent[rank - 1]);
  if (!rows || !columns || n.is_sparse() || threads.count() % target::kWarpgroupThreads != 0) return std::nullopt;
  return analysis::divide_warps(n.policy, *rows, *columns, threads.count() / target::kWarpgroupThreads,
                                target::kWgmmaRows, 8, true);
}

// Bytes of a row of b that each instruction of the gemm reads; 0: it is none of wgmma's, or b lies along k.
int64_t columns_of_b(const TileProgram& p, const Gemm& n, const analysis::ThreadSet& threads) {
  const Buffer& b = p.buffer(n.b.buffer);
  if (n.transpose_b || b.space != Space::Shared) return 0;
  const auto grid = warpgroups_of(n, threads);
  const target::WgmmaInstruction* i =
      target::wgmma_for(operand_type(p, n, n.a), operand_type(p, n, n.b), p.buffer(n.c.buffer).type);
  if (!grid || !i || !i->transposes) return 0;
  return i->most_columns(*constant_int(n.c.extent.back()) / grid->n) * b.type.bits / 8;
}

// As wgmma does them: where others of their loop are wgmma's, those with too few rows the other way round
// (placement.cpp); `turned`: and where none is.
std::map<StmtId, Gemm> gemms_of(const Launch& launch, const analysis::Uniformity& uniformity, bool turned) {
  std::map<StmtId, Gemm> out;
  walk(launch.body, [&](const Stmt& s) {
    if (const auto* n = s.as<Gemm>()) out.emplace(s->id, *n);
  });
  walk(launch.body, [&](const Stmt& s) {
    const auto* loop = s.as<For>();
    if (!loop) return;
    const auto divides = [&](const Stmt& x) {
      return x.as<Gemm>() && warpgroups_of(*x.as<Gemm>(), uniformity.executing_set(x));
    };
    if (!turned && std::ranges::none_of(loop->body, divides)) return;
    for (const Stmt& x : loop->body)
      if (x.as<Gemm>() && !x.as<Gemm>()->is_sparse() && !divides(x)) out.at(x->id) = transpose_of(*x.as<Gemm>());
  });
  return out;
}

// Tiles of whose rows the program's own copies bring one, or some that a panel does not begin with.
void leave_rows(TileProgram& program) {
  for (Launch& launch : program.launches)
    walk(launch.body, [&](const Stmt& s) {
      const auto* copy = s.as<Copy>();
      if (!copy || !analysis::is_by_tma(*copy) || !analysis::wants_rows(*copy, program)) return;
      const bool loads = program.buffer(copy->from.buffer).space == Space::Global;
      program.buffers[(loads ? copy->to : copy->from).buffer.index].panel = analysis::kNarrowestPanel;
    });
}

int64_t row_bytes(const Buffer& b) { return constant_int(b.shape.back()).value_or(0) * b.type.bits / 8; }

void narrow(TileProgram& program, size_t number, bool turned) {
  Launch& launch = program.launches[number];
  number_statements(launch);
  const analysis::Uniformity uniformity(program, launch);
  const std::map<StmtId, Gemm> gemms = gemms_of(launch, uniformity, turned);
  std::set<BufferId> brought;  // from global memory; what threads write is made of no boxes
  walk(launch.body, [&](const Stmt& s) {
    const auto* copy = s.as<Copy>();
    if (copy && program.buffer(copy->from.buffer).space == Space::Global) brought.insert(copy->to.buffer);
  });
  walk(launch.body, [&](const Stmt& s) {
    const auto found = gemms.find(s->id);
    if (found == gemms.end()) return;
    const Gemm* n = &found->second;
    const int64_t bytes = columns_of_b(program, *n, uniformity.executing_set(s));
    Buffer& b = program.buffers[n->b.buffer.index];
    int64_t span = panel_span(program, n->b.buffer);
    if (bytes == 0 || span == 0) return;
    if (bytes == row_bytes(b) && bytes > kWidestPanel && b.panel == 0 && brought.contains(n->b.buffer)) {
      b.panel = kWidestPanel;
      return;
    }
    if (bytes % span == 0) return;
    while (span > 32 && bytes % span != 0) span /= 2;
    if (bytes % span == 0) b.panel = span;
  });
}

}  // namespace

void narrow_panels(TileProgram& program, const target::GpuTarget& target) {
  if (!target.has.wgmma) return;
  leave_rows(program);
  for (size_t i = 0; i < program.launches.size(); ++i) {
    // Where loops multiply the other way round, panels are those of that.
    TileProgram turned = program;
    narrow(turned, i, true);
    const bool any =
        !plan::turned_products(turned, turned.launches[i], turned.launches[i].thread_count(), target).empty();
    if (any)
      program = std::move(turned);
    else
      narrow(program, i, false);
  }
}

}  // namespace tilewright::passes
