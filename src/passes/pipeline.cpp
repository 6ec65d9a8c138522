#include "passes/pipeline.h"

#include <chrono>

#include "analysis/block_conflicts.h"
#include "analysis/collectives.h"
#include "analysis/first_reads.h"
#include "analysis/launch_order.h"
#include "analysis/map_conflicts.h"
#include "analysis/operand_agreement.h"
#include "analysis/tile_ranges.h"
#include "ir/verify.h"
#include "passes/canonicalize.h"
#include "passes/loops/choose_lanes.h"
#include "passes/loops/fold_lanes.h"
#include "passes/loops/fuse_loops.h"
#include "passes/loops/integer_magnitudes.h"
#include "passes/loops/prefetch_rows.h"
#include "passes/loops/quotients_ahead.h"
#include "passes/loops/read_again.h"
#include "passes/loops/scan_rows.h"
#include "passes/loops/side_by_side.h"
#include "passes/loops/spread_atomics.h"
#include "passes/loops/stream_stores.h"
#include "passes/loops/transpose_tiles.h"
#include "passes/loops/whole_blocks.h"
#include "support/warning.h"

namespace tilewright::passes {
namespace {

constexpr Pass kPasses[] = {
    {"canonicalize", "one spelling: fma, roles, merged maps, no condition that is known", canonicalize},
};

// A pass that asks nothing of the processor.
template <ir::LoopProgram (*pass)(ir::LoopProgram)>
ir::LoopProgram anywhere(ir::LoopProgram program, const target::CpuFeatures&) {
  return pass(std::move(program));
}

constexpr LoopPass kLoopPasses[] = {
    {"whole_blocks", "blocks whose tiles lie whole in their tensors have a way of their own", anywhere<whole_blocks>},
    {"fuse_loops", "one loop over the same range; tiles shrink to an iteration's part", anywhere<fuse_loops>},
    {"side_by_side", "blocks of the same rows go through them together", anywhere<side_by_side>},
    {"integer_magnitudes", "largest magnitudes of 16-bit floats as integers", anywhere<integer_magnitudes>},
    {"read_again", "what is near in fewer bytes is not kept in more", anywhere<read_again>},
    {"spread_atomics", "counters in copies that take turns", anywhere<spread_atomics>},
    {"transpose_tiles", "columns become rows by blocks in registers", anywhere<transpose_tiles>},
    {"stream_stores", "rows of large tensors go around the caches", anywhere<stream_stores>},
    {"prefetch_rows", "the next rows come near while these are computed", anywhere<prefetch_rows>},
    {"fold_lanes", "the lanes of a reduction are joined in registers", anywhere<fold_lanes>},
    {"scan_rows", "rows are scanned side by side", scan_rows},
    {"choose_lanes", "which loops are vectors of our own", choose_lanes},
    {"quotients_ahead", "what no iteration divides anew is divided before the loop", anywhere<quotients_ahead>},
};

}  // namespace

std::span<const Pass> all_passes() { return kPasses; }

const Pass* find_pass(std::string_view name) {
  for (const Pass& p : kPasses)
    if (p.name == name) return &p;
  return nullptr;
}

ir::TileProgram run_passes(ir::TileProgram program, std::span<const Pass> passes, Observer observer) {
  ir::check_valid(program);
  for (const Pass& pass : passes) {
    const auto start = std::chrono::steady_clock::now();
    program = pass.run(std::move(program));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    ir::check_valid(program, pass.name);
    observer(pass.name, program, took.count());
  }
  ir::throw_findings(analysis::check_collectives(program), nullptr);
  ir::throw_findings(analysis::check_launch_order(program), nullptr);
  ir::throw_findings(analysis::check_operand_agreement(program), nullptr);
  ir::throw_findings(analysis::check_tile_ranges(program), nullptr);
  ir::throw_findings(analysis::check_first_reads(program), nullptr);
  ir::throw_findings(analysis::check_map_conflicts(program), nullptr);
  for (Diagnostic& finding : analysis::check_block_conflicts(program)) warn(std::move(finding));
  return program;
}

std::span<const LoopPass> loop_passes() { return kLoopPasses; }

const LoopPass* find_loop_pass(std::string_view name) {
  for (const LoopPass& p : kLoopPasses)
    if (p.name == name) return &p;
  return nullptr;
}

ir::LoopProgram run_loop_passes(ir::LoopProgram program, std::span<const LoopPass> passes,
                                const target::CpuFeatures& features, LoopObserver observer) {
  for (const LoopPass& pass : passes) {
    program = pass.run(std::move(program), features);
    ir::check_valid(program, pass.name);
    observer(pass.name, program);
  }
  return program;
}

}  // namespace tilewright::passes
