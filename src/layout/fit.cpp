#include "layout/fit.h"

#include <algorithm>
#include <bit>

namespace tilewright {
namespace {

// Steps through all indices, last dimension fastest; false after the last one.
bool advance(std::vector<int64_t>& index, const std::vector<int64_t>& shape) {
  for (size_t d = shape.size(); d-- > 0;) {
    if (++index[d] < shape[d]) return true;
    index[d] = 0;
  }
  return false;
}

// What one step of a digit does: to a register and a thread, or to an offset (and nothing).
struct Step {
  int64_t first = 0, second = 0;
  bool operator==(const Step&) const = default;
  Step operator-(const Step& o) const { return {first - o.first, second - o.second}; }
  Step operator*(int64_t n) const { return {first * n, second * n}; }
};

struct FittedDigit {
  int64_t extent;
  Step step;
};

// Digits of one dimension, slowest first, from its values along a line through index 0. Each digit is as long as its
// step repeats; a digit that ends where the line does not is the start of the next. What this guesses wrong, the check
// finds.
std::vector<FittedDigit> fit_line(int64_t extent, function_ref<Step(int64_t)> value) {
  std::vector<FittedDigit> digits;
  const Step origin = value(0);
  for (int64_t weight = 1; weight < extent;) {
    const Step step = value(weight) - origin;
    int64_t count = 2;
    while (count * weight < extent && value(count * weight) - origin == step * count) ++count;
    digits.insert(digits.begin(), {count, step});
    weight *= count;
  }
  return digits;
}

[[noreturn]] void refuse(const SourceLocation& location, std::span<const int64_t> index, const std::string& what) {
  fail(
      Code::LayoutNotFitted, location,
      fmt::format("the layout function at index ({}) {}", fmt::join(index, ", "), what),
      "a layout cuts each index into digits, and gives each digit one stride in registers or in threads; in memory the "
      "sum may be swizzled by one XOR of address bits");
}

Factor factor_of(const FittedDigit& digit, std::span<const int64_t> index, const SourceLocation& location) {
  const auto [reg, thread] = digit.step;
  if ((reg == 0) == (thread == 0) || reg < 0 || thread < 0)
    refuse(location, index, fmt::format("moves {} registers and {} threads in one step", reg, thread));
  return reg > 0 ? Factor{digit.extent, Home::Register, reg} : Factor{digit.extent, Home::Lane, thread};
}

// Offsets of all elements, the several numbers of the function made one.
std::vector<int64_t> evaluate(const std::vector<int64_t>& shape, MemoryFunction function,
                              const SourceLocation& location) {
  std::vector<int64_t> index(shape.size(), 0), values, extents;  // values: those of one index after those of another
  do {
    const std::vector<int64_t> v = function(index);
    if (extents.empty()) extents.assign(v.size(), 1);
    if (v.empty() || v.size() != extents.size()) refuse(location, index, fmt::format("gives {} numbers", v.size()));
    for (size_t i = 0; i < v.size(); ++i) {
      if (v[i] < 0 || v[i] >= (int64_t{1} << 31)) refuse(location, index, fmt::format("gives {}", v[i]));
      extents[i] = std::max(extents[i], v[i] + 1);
    }
    values.insert(values.end(), v.begin(), v.end());
  } while (advance(index, shape));
  std::vector<int64_t> offsets;
  offsets.reserve(values.size() / extents.size());
  for (size_t begin = 0; begin < values.size(); begin += extents.size()) {
    int64_t offset = 0;
    for (size_t i = 0; i < extents.size(); ++i) offset = offset * extents[i] + values[begin + i];
    offsets.push_back(offset);
  }
  return offsets;
}

// A layout with this swizzle (on offsets in elements) and the first index at which it is not the function; none: it is.
struct MemoryFit {
  MemoryLayout layout;
  std::optional<std::vector<int64_t>> deviates;
  int64_t wanted = 0, given = 0;  // there
};

std::optional<MemoryFit> fit_swizzled(const std::vector<int64_t>& shape, int element_bits,
                                      const std::vector<int64_t>& offsets, Swizzle swizzle) {
  // The XOR is tried on elements; the layout speaks of bytes.
  const int to_bytes = std::countr_zero(static_cast<uint64_t>(element_bits)) - 3;
  const Swizzle on_bytes{swizzle.bits, swizzle.base + to_bytes, swizzle.shift};
  if (swizzle.bits > 0 && on_bytes.base < 0) return std::nullopt;
  MemoryLayout::Dims dims(shape.size());
  int64_t stride = 1;  // into offsets
  for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
    const auto value = [&](int64_t i) { return Step{swizzle.apply(offsets[i * stride]), 0}; };
    for (const FittedDigit& digit : fit_line(shape[d], value)) {
      if (digit.step.first < 0 && swizzle.bits > 0) return std::nullopt;
      dims[d].push_back({digit.extent, std::max<int64_t>(0, digit.step.first)});
    }
  }
  if (!MemoryLayout::fault(shape, dims, element_bits, on_bytes).empty()) return std::nullopt;
  MemoryFit fit{MemoryLayout(shape, std::move(dims), element_bits, on_bytes), {}};
  std::vector<int64_t> index(shape.size(), 0);
  for (size_t i = 0; i < offsets.size(); ++i, advance(index, shape)) {
    fit.given = offsets[i], fit.wanted = fit.layout.bit_offset(index) / element_bits;
    if (fit.given == fit.wanted) continue;
    fit.deviates = index;
    break;
  }
  return fit;
}

}  // namespace

FragmentLayout fit_fragment(const std::vector<int64_t>& shape, int64_t threads, int64_t copies,
                            FragmentFunction function, const SourceLocation& location) {
  std::vector<int64_t> index(shape.size(), 0);
  const auto step_at = [&](std::span<const int64_t> at, int64_t copy) {
    const UserPlace place = function(at, copy);
    return Step{place.reg, place.thread};
  };
  const Step origin = step_at(index, 0);
  if (origin != Step{}) refuse(location, index, "does not begin at register 0 of thread 0");
  FragmentLayout::Dims dims(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<int64_t> along(shape.size(), 0);
    const auto value = [&](int64_t i) { return along[d] = i, step_at(along, 0); };
    int64_t weight = 1;
    std::vector<FittedDigit> digits = fit_line(shape[d], value);
    for (size_t i = digits.size(); i-- > 0; weight *= digits[i].extent) {
      along[d] = weight;
      dims[d].insert(dims[d].begin(), factor_of(digits[i], along, location));
    }
  }
  std::vector<Copies> list;
  for (const FittedDigit& digit : fit_line(copies, [&](int64_t copy) { return step_at(index, copy); }))
    list.push_back({factor_of(digit, index, location), {}});
  if (std::string fault = FragmentLayout::fault(shape, dims, list); !fault.empty())
    refuse(location, index, "begins no layout: " + fault);
  FragmentLayout layout(shape, std::move(dims), std::move(list));
  do {
    for (int64_t copy = 0; copy < copies; ++copy) {
      const UserPlace want = function(index, copy);
      if (want.thread < 0 || want.thread >= threads)
        refuse(location, index, fmt::format("names thread {} of {}", want.thread, threads));
      // Copies have no order of their own: this one may have another number in the canonical layout.
      const Held held = layout.held_at({want.reg, want.thread, 0});
      if (held.kind != Held::Kind::Element || held.index != index)
        refuse(
            location, index,
            fmt::format("gives thread {}, register {}: not what the indices before it lead to", want.thread, want.reg));
    }
  } while (advance(index, shape));
  return layout;
}

MemoryLayout fit_memory(const std::vector<int64_t>& shape, int element_bits, MemoryFunction function,
                        const SourceLocation& location) {
  const std::vector<int64_t> offsets = evaluate(shape, function, location);
  std::vector<int64_t> index(shape.size(), 0);
  if (offsets[0] != 0) refuse(location, index, "does not begin at 0");
  std::optional<MemoryFit> fit = fit_swizzled(shape, element_bits, offsets, {0, 0, 0});
  check_internal(fit.has_value(), "strides of a layout function make no layout");
  // A few hundred swizzles, most of them wrong at one of the first indices. Fewest bits first.
  for (int bits = 1; bits <= 5 && fit->deviates; ++bits)
    for (int shift = bits; shift <= 12 && fit->deviates; ++shift)
      for (int base = 0; base <= 7 && fit->deviates; ++base) {
        std::optional<MemoryFit> other = fit_swizzled(shape, element_bits, offsets, {bits, base, shift});
        if (other && (!other->deviates || *other->deviates > *fit->deviates)) fit = std::move(other);
      }
  if (fit->deviates)
    refuse(location, *fit->deviates,
           fmt::format("gives {}: the indices before it lead to {}", fit->given, fit->wanted));
  if (!fit->layout.is_injective()) refuse(location, index, "begins a layout that puts two elements in one place");
  return fit->layout;
}

}  // namespace tilewright
