#include "analysis/async_copies.h"

#include <algorithm>

#include "analysis/divisibility.h"
#include "analysis/panels.h"
#include "ir/extent.h"
#include "ir/operators.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

constexpr int64_t kCopyBits = 128;  // of one cp.async: with fewer the hardware is no faster than loads and stores

// Of a fragment they see the registers.
bool has_views_in_memory(const ProgramTables& p, BufferId id) {
  return p.buffer(id).space == Space::Shared &&
         std::any_of(p.buffers.begin(), p.buffers.end(), [&](const Buffer& b) { return b.root == id; });
}

bool is_wide(const Copy& c, const Buffer& from, const Buffer& to, const ProgramTables& p) {
  const int64_t elements = kCopyBits / to.type.bits;
  if (begins_anywhere(p.buffer(p.root(c.from.buffer))) || to.rank() == 0 ||
      constant_int(to.shape.back()).value_or(1) % elements != 0)
    return false;
  if (constant_int(c.from.extent.back()) == 1) return false;
  if (!from.strides.empty() && constant_int(from.strides.back()) != 1) return false;
  auto divides = [&](const Expr& e) { return power_of_two_divisor(e, p) % elements == 0; };
  if (!divides(c.from.min.back()) || !divides(from.shape.back())) return false;
  for (size_t d = 0; d + 1 < from.strides.size(); ++d)
    if (!divides(from.strides[d])) return false;
  return !from.offset || divides(from.offset);
}

}  // namespace

bool comes_by_async_copies(const Copy& c, const Buffer& to, const ProgramTables& p) {
  const Buffer& from = p.buffer(c.from.buffer);
  if (!c.completion.immediate() || c.combine != Combine::None || c.im2col.present()) return false;
  if (p.buffer(p.root(c.from.buffer)).space != Space::Global || to.space != Space::Shared) return false;
  if (from.type != to.type || to.type.bits < 8 || from.fill || to.is_view() || has_views_in_memory(p, c.to.buffer))
    return false;
  return is_whole(c.to, to) && is_wide(c, from, to, p);
}

}  // namespace tilewright::analysis
