#include "passes/threads/registers.h"

namespace tilewright::passes {

using namespace ir;

bool is_in_registers(const ProgramTables& program, const Load& element, const Intervals& ranges) {
  const Buffer& b = program.buffer(element.buffer);
  if (b.space != Space::Local || b.is_view()) return false;
  for (size_t d = 0; d < element.indices.size(); ++d) {
    const Interval index = ranges.of(element.indices[d]);
    if (index.low < 0 || index.high >= constant_int(b.shape[d]).value_or(0)) return false;
  }
  return true;
}

}  // namespace tilewright::passes
