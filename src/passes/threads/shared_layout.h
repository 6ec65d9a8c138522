// How the shared buffers of a launch lie in memory: in the swizzled panels that TMA and wgmma read, padded for
// ldmatrix, or row after row; and where.
#pragma once
#include "ir/program.h"
#include "passes/threads/placement.h"

namespace tilewright::passes {

// Bytes of the widest panel (128, 64, 32) that whole rows of the buffer are made of, or 16 if a row is that and lies in
// one that TMA fills but no matrix instruction reads; 0: none, or the buffer is seen through views, which know no
// panels.
constexpr int64_t kNarrowestPanel = 16;
int64_t panel_span(const ir::ProgramTables& program, ir::BufferId id);

// Elements of a box along a dimension, at most (CUDA driver API, cuTensorMapEncodeTiled).
constexpr int64_t kMaxBox = 256;

// Elements of a row that one TMA copy brings: those of a panel, or the whole row of a tile that has only one, which
// nothing swizzles: panels are eight rows high. A tile of one dimension is a row. 0: none.
int64_t box_columns(const ir::ProgramTables& program, ir::BufferId id);

// Gives every shared buffer of the launch its layout. Before the lowering: accesses are made for what stands here.
void lay_out_shared(ir::ThreadProgram& program, const ir::Launch& launch, const Placement& placement);

// What a shared buffer or barriers take.
int64_t shared_bytes_of(const ir::Buffer& buffer);

// Puts the shared buffers and barriers of a lowered launch one after the other; with `reuse` those whose lives do not
// meet also over each other. If they do not fit: TW8203. `own_roles` as in SharedLives.
std::optional<Diagnostic> place_shared(ir::ThreadProgram& program, int32_t launch, const target::GpuTarget& target,
                                       bool reuse, bool own_roles);

}  // namespace tilewright::passes
