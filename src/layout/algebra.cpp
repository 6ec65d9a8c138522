#include "layout/algebra.h"

#include <algorithm>
#include <numeric>

#include "layout/refine.h"

namespace tilewright {
namespace {

// The first stride of a home that no digit reaches, and that the digits below divide. Lanes, warps and warpgroups are
// one line of threads.
int64_t next_free(const FragmentLayout& layout, Home home) {
  const bool threads = threads_per(home) > 0;
  int64_t widest = 1;
  for (const Digit& d : layout.digits())
    if (threads ? threads_per(d.home) > 0 : d.home == home) widest = std::max(widest, d.step);
  const auto round_up = [](int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; };
  if (!threads) return round_up(home == Home::Register ? layout.registers() : layout.ctas(), widest);
  const int64_t unit = threads_per(home);
  if (layout.is_warp_aligned() && widest < kWarpThreads && unit >= kWarpThreads) widest = 1;
  return round_up(layout.threads(), std::lcm(unit, widest)) / unit;
}

using Dims = FragmentLayout::Dims;

// Registers keep their order; the strides become what mixed radix needs.
void close_register_gaps(Dims& dims) {
  std::vector<Factor*> registers;
  for (std::vector<Factor>& dim : dims)
    for (Factor& f : dim)
      if (f.home == Home::Register) registers.push_back(&f);
  std::sort(registers.begin(), registers.end(), [](const Factor* a, const Factor* b) { return a->stride < b->stride; });
  int64_t next = 1;
  for (Factor* f : registers) {
    f->stride = next;
    next *= f->extent;
  }
}

// Cuts a list of factors, fastest part first taken: the factors of the fastest `extent` indices are moved from the end
// of `from` to a list of their own. Empty where no factor ends or can be cut there.
std::optional<std::vector<Factor>> take_fastest(std::vector<Factor>& from, int64_t extent) {
  std::vector<Factor> taken;
  while (extent > 1) {
    if (from.empty()) return std::nullopt;
    Factor& f = from.back();
    if (f.extent <= extent) {
      if (extent % f.extent != 0) return std::nullopt;
      extent /= f.extent;
      taken.insert(taken.begin(), f);
      from.pop_back();
    } else {
      if (f.extent % extent != 0) return std::nullopt;
      taken.insert(taken.begin(), {extent, f.home, f.stride});
      f.extent /= extent;
      f.stride *= extent;
      extent = 1;
    }
  }
  return taken;
}

int64_t product(const std::vector<int64_t>& values, size_t begin, size_t end) {
  int64_t out = 1;
  for (size_t i = begin; i < end; ++i) out *= values[i];
  return out;
}

}  // namespace

FragmentLayout repeat(const FragmentLayout& layout, int dim, int64_t count, Home home) {
  Dims dims = layout.dims();
  std::vector<int64_t> shape = layout.shape();
  check_internal(shape[dim] == layout.padded_extent(dim), "a padded dimension cannot be repeated");
  dims[dim].insert(dims[dim].begin(), {count, home, next_free(layout, home)});
  shape[dim] *= count;
  return FragmentLayout(std::move(shape), std::move(dims), layout.copies());
}

FragmentLayout replicate(const FragmentLayout& layout, int64_t count, Home home) {
  std::vector<Copies> copies = layout.copies();
  copies.push_back({{count, home, next_free(layout, home)}, {}});
  return FragmentLayout(layout.shape(), layout.dims(), std::move(copies));
}

FragmentLayout with_shape(const FragmentLayout& layout, std::vector<int64_t> shape) {
  return FragmentLayout(std::move(shape), layout.dims(), layout.copies());
}

FragmentLayout permute(const FragmentLayout& layout, const std::vector<int>& order) {
  std::vector<int64_t> shape;
  Dims dims;
  for (int d : order) shape.push_back(layout.shape()[d]), dims.push_back(layout.dim(d));
  return FragmentLayout(std::move(shape), std::move(dims), layout.copies());
}

std::optional<FragmentLayout> reshape(const FragmentLayout& layout, const std::vector<int64_t>& shape) {
  const std::vector<int64_t>& old = layout.shape();
  if (product(old, 0, old.size()) != product(shape, 0, shape.size())) return std::nullopt;
  Dims dims(shape.size());
  // Groups of dimensions of equal size on both sides, from the fastest.
  size_t a = old.size(), b = shape.size();
  while (a > 0 || b > 0) {
    size_t a0 = a, b0 = b;
    int64_t na = a > 0 ? old[--a0] : 1, nb = b > 0 ? shape[--b0] : 1;
    while (na != nb) {
      if (na < nb)
        na *= old[--a0];
      else
        nb *= shape[--b0];
    }
    std::vector<Factor> all;
    for (size_t d = a0; d < a; ++d) {
      if (d > a0 && layout.padded_extent(static_cast<int>(d)) != old[d]) return std::nullopt;
      all.insert(all.end(), layout.dim(static_cast<int>(d)).begin(), layout.dim(static_cast<int>(d)).end());
    }
    for (size_t d = b; d-- > b0;) {
      if (d == b0) {
        dims[d] = std::move(all);
        break;
      }
      std::optional<std::vector<Factor>> taken = take_fastest(all, shape[d]);
      if (!taken) return std::nullopt;
      dims[d] = std::move(*taken);
    }
    if (b == 0 && !all.empty()) return std::nullopt;  // padding of an extent 1 that has no dimension left
    a = a0, b = b0;
  }
  return FragmentLayout(shape, std::move(dims), layout.copies());
}

std::optional<FragmentSlice> slice(const FragmentLayout& layout, int dim, int64_t begin, int64_t extent) {
  if (begin < 0 || extent < 1 || begin + extent > layout.shape()[dim]) return std::nullopt;
  Dims dims = layout.dims();
  std::vector<Factor>& factors = dims[dim];
  std::vector<Factor> kept;
  // Whole factors from the fastest, then a range of one, then one value of each slower one.
  int64_t weight = 1;
  Place base;
  size_t i = factors.size();
  while (i > 0 && weight * factors[i - 1].extent <= extent && extent % (weight * factors[i - 1].extent) == 0 &&
         begin % (weight * factors[i - 1].extent) == 0) {
    weight *= factors[--i].extent;
    kept.insert(kept.begin(), factors[i]);
  }
  if (extent % weight != 0 || begin % weight != 0) return std::nullopt;
  int64_t rest = begin / weight, more = extent / weight;
  for (; i-- > 0; more = 1) {
    const Factor& f = factors[i];
    const int64_t value = rest % f.extent;
    if (value + more > f.extent) return std::nullopt;
    if (more > 1) kept.insert(kept.begin(), {more, f.home, f.stride});
    const int64_t step = value * f.stride;
    if (f.home == Home::Register) base.reg += step;
    if (f.home == Home::Cta) base.cta += step;
    base.thread += step * threads_per(f.home);
    rest /= f.extent;
  }
  factors = std::move(kept);
  std::vector<int64_t> shape = layout.shape();
  shape[dim] = extent;
  return FragmentSlice{FragmentLayout(std::move(shape), std::move(dims), layout.copies()), base};
}

FragmentLayout insert_dim(const FragmentLayout& layout, int d) {
  std::vector<int64_t> shape = layout.shape();
  Dims dims = layout.dims();
  shape.insert(shape.begin() + d, 1);
  dims.insert(dims.begin() + d, std::vector<Factor>{});
  return FragmentLayout(std::move(shape), std::move(dims), layout.copies());
}

FragmentLayout remove_dim(const FragmentLayout& layout, int d, std::optional<Combine> partial) {
  std::vector<int64_t> shape = layout.shape();
  Dims dims = layout.dims();
  std::vector<Copies> copies = layout.copies();
  for (const Factor& f : layout.dim(d))
    if (f.home != Home::Register) copies.push_back({f, partial});
  shape.erase(shape.begin() + d);
  dims.erase(dims.begin() + d);
  close_register_gaps(dims);
  return FragmentLayout(std::move(shape), std::move(dims), std::move(copies));
}

FragmentLayout combined(const FragmentLayout& layout) {
  std::vector<Copies> copies = layout.copies();
  for (Copies& c : copies) c.partial.reset();
  return FragmentLayout(layout.shape(), layout.dims(), std::move(copies));
}

FragmentLayout compact_registers(const FragmentLayout& layout) {
  Dims dims = layout.dims();
  close_register_gaps(dims);
  return FragmentLayout(layout.shape(), std::move(dims), layout.copies());
}

bool equal_up_to_registers(const FragmentLayout& a, const FragmentLayout& b) {
  if (a.shape() != b.shape() || a.copies() != b.copies()) return false;
  for (int d = 0; d < a.rank(); ++d) {
    std::vector<int64_t> extents[2];
    for (const Factor& f : a.dim(d)) extents[0].push_back(f.extent);
    for (const Factor& f : b.dim(d)) extents[1].push_back(f.extent);
    if (a.padded_extent(d) != b.padded_extent(d)) return false;
    const auto pieces = refine(extents[0], extents[1]);
    if (!pieces) return false;
    for (const Piece& p : *pieces) {
      const Factor &x = a.dim(d)[p.a], &y = b.dim(d)[p.b];
      if (x.home != y.home) return false;
      if (x.home != Home::Register && x.stride * p.a_step != y.stride * p.b_step) return false;
    }
  }
  return true;
}

}  // namespace tilewright
