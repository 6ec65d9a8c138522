// How the shared buffers of a launch lie in memory: in the swizzled panels that TMA and wgmma read, padded for
// ldmatrix, or row after row; and where.
#pragma once
#include "ir/program.h"
#include "passes/named_barriers.h"
#include "passes/threads/placement.h"
#include "passes/threads/shared_reuse.h"

namespace tilewright::passes {

// Gives every shared buffer of the launch its layout. Before the lowering: accesses are made for what stands here.
// `tight`: none takes more than its elements do.
void lay_out_shared(ir::ThreadProgram& program, const ir::Launch& launch, const Placement& placement, bool tight);

// What a shared buffer or barriers take.
int64_t shared_bytes_of(const ir::Buffer& buffer);

// Puts the shared buffers and barriers of a lowered launch one after the other; with `reuse`, which says
// whose its roles are, those whose lives do not meet also over each other. If they do not fit: TW8203, with what each
// takes, and why fragments are among them.
std::optional<Diagnostic> place_shared(ir::ThreadProgram& program, int32_t launch, const target::GpuTarget& target,
                                       const Placement& placement, const NamedBarriers& barriers,
                                       std::optional<RolesOf> reuse);

}  // namespace tilewright::passes
