// Additions to neighbours that one instruction makes: atomicAdd() of float4 and of float2, which sm_90 has for global
// memory.
#pragma once
#include "ir/program.h"

namespace tilewright::analysis {

// Whether there are additions of neighbours at once: each of them is atomic, as one alone is.
bool adds_in_vectors(const ir::Atomic& n, const ir::ProgramTables& program);

struct WideAtomic {
  ir::Expr condition;  // under which all are made; null: none
  std::vector<ir::Atomic> lanes;
  size_t statements = 0;  // that it stands for
  int64_t bytes() const;
};
// 4 or 2 statements of thread code from b[at] on, or the turns of an unrolled loop, that add to neighbours of a vector
// which is aligned if the tensor is, under one condition, none of which reads the tensor. None: what stands there is
// something else.
std::optional<WideAtomic> wide_atomic(const ir::Body& b, size_t at, const ir::ProgramTables& program);

}  // namespace tilewright::analysis
