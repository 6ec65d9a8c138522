#include "analysis/element_offset.h"

#include "ir/operators.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

// Element by element through the modes of a layout; the index is within the shape.
Expr offset_in(const MemoryLayout& memory, const std::vector<Expr>& index) {
  Expr at = constant(i64, int64_t{0});
  for (int d = 0; d < memory.rank(); ++d) {
    Expr rest = cast(index[static_cast<size_t>(d)], i64);
    const std::vector<Mode>& modes = memory.dim(d);
    for (size_t m = modes.size(); m-- > 0;) {
      const Expr extent = constant(i64, modes[m].extent);
      const Expr digit = m == 0 ? rest : binary(BinaryOp::FloorMod, rest, extent);
      at = add(at, mul(digit, constant(i64, modes[m].stride)));
      if (m > 0) rest = binary(BinaryOp::FloorDiv, rest, extent);
    }
  }
  return at;
}

}  // namespace

Expr element_offset(const ProgramTables& program, BufferId id, const std::vector<Expr>& index) {
  const Buffer& b = program.buffer(id);
  if (b.memory) return offset_in(*b.memory, index);
  Expr at = b.offset ? cast(b.offset, i64) : constant(i64, int64_t{0});
  Expr stride = constant(i64, int64_t{1});
  for (size_t d = index.size(); d-- > 0;) {
    const Expr step = b.strides.empty() ? stride : cast(b.strides[d], i64);
    at = add(at, mul(cast(index[d], i64), step));
    stride = mul(stride, cast(b.shape[d], i64));
  }
  return at;
}

}  // namespace tilewright::analysis
