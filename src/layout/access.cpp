#include "layout/access.h"

#include <algorithm>

#include "layout/refine.h"

namespace tilewright {
namespace {

// Takes one bit of a register digit out of `rest`, the one at this offset in memory, if there is one that never
// straddles the end of the shape.
std::optional<AccessDigit> take_bit(std::vector<AccessDigit>& rest, int64_t offset, const FragmentLayout& fragment) {
  for (AccessDigit& d : rest) {
    if (d.home != Home::Register || d.offset != offset || d.extent % 2 != 0) continue;
    if (fragment.shape()[d.dim] % (d.weight * 2) != 0) continue;
    AccessDigit bit = d;
    bit.extent = 2;
    d.extent /= 2, d.weight *= 2, d.stride *= 2, d.offset *= 2;
    return bit;
  }
  return std::nullopt;
}

void append(std::vector<AccessDigit>& digits, const AccessDigit& bit) {
  if (!digits.empty() && digits.back().dim == bit.dim && digits.back().weight * digits.back().extent == bit.weight &&
      digits.back().stride * digits.back().extent == bit.stride)
    digits.back().extent *= 2;
  else
    digits.push_back(bit);
}

}  // namespace

std::optional<std::vector<AccessDigit>> access_digits(const FragmentLayout& fragment, const MemoryLayout& memory) {
  check_internal(fragment.shape() == memory.shape(), "an access of {} to {}", fragment.text(), memory.text());
  std::vector<AccessDigit> out;
  std::vector<int64_t> factors, modes;
  for (int d = 0; d < fragment.rank(); ++d) {
    factors.clear(), modes.clear();
    for (const Factor& f : fragment.dim(d)) factors.push_back(f.extent);
    for (const Mode& m : memory.dim(d)) modes.push_back(m.extent);
    const auto pieces = refine(factors, modes);
    if (!pieces) return std::nullopt;
    for (const Piece& p : *pieces) {
      const Factor& f = fragment.dim(d)[p.a];
      out.push_back({d, p.extent, p.weight, f.home, f.stride * p.a_step, memory.dim(d)[p.b].stride * p.b_step});
    }
  }
  return out;
}

VectorAccess vector_access(const FragmentLayout& fragment, const MemoryLayout& memory, int64_t base_alignment,
                           int64_t max_bytes) {
  VectorAccess best, grown;
  auto rest = access_digits(fragment, memory);
  if (!rest) return best;
  int64_t limit = std::min(max_bytes, base_alignment) * 8;
  if (memory.swizzle().bits > 0) limit = std::min(limit, int64_t{8} << memory.swizzle().base);
  while (grown.elements * 2 * memory.element_bits() <= limit) {
    const std::optional<AccessDigit> bit = take_bit(*rest, grown.elements, fragment);
    if (!bit) break;
    append(grown.registers, *bit);
    grown.elements *= 2;
    const bool aligned = std::all_of(rest->begin(), rest->end(), [&](const AccessDigit& d) {
      return d.extent == 1 || d.offset % grown.elements == 0;
    });
    if (aligned) best = grown;
  }
  return best;
}

}  // namespace tilewright
