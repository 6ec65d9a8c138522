#include "ir/extent.h"

#include "ir/operators.h"

namespace tilewright::ir {

int64_t elements_on_chip(const Buffer& b) {
  int64_t count = 1;
  for (size_t d = 0; d < b.rank(); ++d) {
    const int64_t extent = constant_int(b.shape[d]).value_or(0);
    if (b.strides.empty())
      count *= extent;
    else
      count += std::max<int64_t>(extent - 1, 0) * constant_int(b.strides[d]).value_or(0);
  }
  return count;
}

int64_t bytes_on_chip(const Buffer& b) { return bytes_of(b.type, elements_on_chip(b)); }

Region whole(BufferId id, const ProgramTables& program) {
  const Buffer& b = program.buffer(id);
  return {id, std::vector<Expr>(b.rank(), constant(i32, int64_t{0})), b.shape};
}

bool is_whole(const Region& region, const Buffer& b) {
  for (size_t d = 0; d < b.rank(); ++d)
    if (constant_int(region.min[d]) != 0 || !equal(cast(region.extent[d], i64), cast(b.shape[d], i64))) return false;
  return true;
}

}  // namespace tilewright::ir
