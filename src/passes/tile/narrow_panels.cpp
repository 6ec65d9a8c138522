#include "passes/tile/narrow_panels.h"

#include "analysis/panels.h"
#include "analysis/uniformity.h"
#include "ir/number_statements.h"
#include "ir/operators.h"
#include "ir/program.h"
#include "ir/rewrite.h"
#include "passes/threads/gemm_choice.h"
#include "passes/threads/shared_layout.h"

namespace tilewright::passes {

using namespace ir;
using analysis::kWidestPanel;
using analysis::panel_span;

namespace {

// Bytes of a row of b that each instruction of the gemm reads; 0: it is none of wgmma's, or b lies along k.
int64_t columns_of_b(const TileProgram& p, const Gemm& n, const analysis::ThreadSet& threads) {
  const size_t rank = n.c.extent.size();
  const auto rows = constant_int(n.c.extent[rank - 2]), columns = constant_int(n.c.extent[rank - 1]);
  const Buffer& b = p.buffer(n.b.buffer);
  if (n.transpose_b || !rows || !columns || b.space != Space::Shared || n.is_sparse()) return 0;
  const target::WgmmaInstruction* i =
      target::wgmma_for(operand_type(p, n, n.a), operand_type(p, n, n.b), p.buffer(n.c.buffer).type);
  if (!i || !i->transposes || threads.count() % target::kWarpgroupThreads != 0) return 0;
  const auto grid =
      divide_warps(n.policy, *rows, *columns, threads.count() / target::kWarpgroupThreads, target::kWgmmaRows, 8, true);
  return grid ? wgmma_columns(*i, *columns / grid->n) * b.type.bits / 8 : 0;
}

int64_t row_bytes(const Buffer& b) { return constant_int(b.shape.back()).value_or(0) * b.type.bits / 8; }

}  // namespace

void narrow_panels(TileProgram& program, const target::GpuTarget& target) {
  if (!target.has.wgmma) return;
  for (Launch& launch : program.launches) {
    number_statements(launch);
    const analysis::Uniformity uniformity(program, launch);
    walk(launch.body, [&](const Stmt& s) {
      const auto* n = s.as<Gemm>();
      if (!n) return;
      const int64_t bytes = columns_of_b(program, *n, uniformity.executing_set(s));
      Buffer& b = program.buffers[n->b.buffer.index];
      int64_t span = panel_span(program, n->b.buffer);
      if (bytes == 0 || span == 0) return;
      if (bytes == row_bytes(b) && bytes > kWidestPanel && b.panel == 0) {
        b.panel = kWidestPanel;
        return;
      }
      if (bytes % span == 0) return;
      while (span > 32 && bytes % span != 0) span /= 2;
      if (bytes % span == 0) b.panel = span;
    });
  }
}

}  // namespace tilewright::passes
