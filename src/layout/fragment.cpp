#include "layout/fragment.h"

#include <algorithm>
#include <numeric>

namespace tilewright {
namespace {

// Homes that share one number line: registers, threads (lanes, warps and warpgroups), CTAs.
enum class Line : uint8_t { Register, Thread, Cta };

Line line_of(Home home) {
  if (home == Home::Register) return Line::Register;
  return home == Home::Cta ? Line::Cta : Line::Thread;
}

int64_t line_stride(Home home, int64_t stride) {
  return line_of(home) == Line::Thread ? stride * threads_per(home) : stride;
}

// The largest home whose unit divides a stride in threads.
Factor thread_factor(int64_t extent, int64_t threads) {
  if (threads % kWarpgroupThreads == 0) return {extent, Home::Warpgroup, threads / kWarpgroupThreads};
  if (threads % kWarpThreads == 0) return {extent, Home::Warp, threads / kWarpThreads};
  return {extent, Home::Lane, threads};
}

// Appends the pieces of a thread factor, slowest first, cut at the borders of warps and warpgroups where these divide
// it.
void append_split(std::vector<Factor>& out, int64_t extent, int64_t threads) {
  for (int64_t border : {kWarpThreads, kWarpgroupThreads}) {
    const int64_t below = border / threads;
    if (threads >= border || threads * extent <= border || border % threads != 0 || extent % below != 0) continue;
    append_split(out, extent / below, border);
    out.push_back(thread_factor(below, threads));
    return;
  }
  out.push_back(thread_factor(extent, threads));
}

std::vector<Factor> canonical(const std::vector<Factor>& factors) {
  std::vector<Factor> merged;  // thread factors as lanes
  for (const Factor& f : factors) {
    if (f.extent == 1) continue;
    const bool thread = line_of(f.home) == Line::Thread;
    const Factor next{f.extent, thread ? Home::Lane : f.home, line_stride(f.home, f.stride)};
    if (!merged.empty() && merged.back().home == next.home && merged.back().stride == next.stride * next.extent)
      merged.back() = {merged.back().extent * next.extent, next.home, next.stride};
    else
      merged.push_back(next);
  }
  std::vector<Factor> out;
  for (const Factor& f : merged) {
    if (f.home == Home::Lane)
      append_split(out, f.extent, f.stride);
    else
      out.push_back(f);
  }
  return out;
}

// Copies have no order of their own: by kind, then widest stride first.
std::vector<Copies> canonical(const std::vector<Copies>& copies) {
  const auto rank = [](const Copies& c) {
    return std::tuple(c.partial ? 1 + static_cast<int>(*c.partial) : 0, line_of(c.factor.home) == Line::Cta ? 0 : 1,
                      -line_stride(c.factor.home, c.factor.stride));
  };
  std::vector<Copies> sorted = copies;
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Copies& a, const Copies& b) { return rank(a) < rank(b); });
  std::vector<Copies> out;
  for (size_t begin = 0, end; begin < sorted.size(); begin = end) {
    std::vector<Factor> group;
    for (end = begin; end < sorted.size() && sorted[end].partial == sorted[begin].partial; ++end)
      group.push_back(sorted[end].factor);
    for (const Factor& f : canonical(group)) out.push_back({f, sorted[begin].partial});
  }
  return out;
}

struct Spread {  // a digit on its number line
  Line line;
  int64_t stride, extent;
};

std::string fault_of_factor(const Factor& f) {
  if (f.extent < 1) return fmt::format("the extent {} of a factor is not positive", f.extent);
  if (f.stride < 1) return fmt::format("the stride {} of a factor is not positive", f.stride);
  if (f.extent > (int64_t{1} << 31) || f.stride > (int64_t{1} << 31)) return "a factor is larger than 2^31";
  return "";
}

std::string fault_of_overlap(std::vector<Spread> spreads) {
  std::sort(spreads.begin(), spreads.end(), [](const Spread& a, const Spread& b) {
    return std::tuple(a.line, a.stride) < std::tuple(b.line, b.stride);
  });
  constexpr const char* kNames[] = {"registers", "threads", "CTAs"};
  int64_t reach = 0;
  for (size_t i = 0; i < spreads.size(); ++i) {
    if (i == 0 || spreads[i].line != spreads[i - 1].line) reach = 0;
    if (reach > 0 && spreads[i].stride % spreads[i - 1].stride != 0 &&
        !(spreads[i].line == Line::Thread && reach < kWarpThreads && spreads[i].stride % kWarpThreads == 0))
      return fmt::format("the strides {} and {} of factors in {} do not divide each other", spreads[i - 1].stride,
                         spreads[i].stride, kNames[static_cast<int>(spreads[i].line)]);
    if (spreads[i].stride <= reach)
      return fmt::format("two factors share {}: one of stride {} lies within the reach {} of others",
                         kNames[static_cast<int>(spreads[i].line)], spreads[i].stride, reach);
    reach += (spreads[i].extent - 1) * spreads[i].stride;
  }
  return "";
}

}  // namespace

int64_t threads_per(Home home) {
  switch (home) {
    case Home::Lane: return 1;
    case Home::Warp: return kWarpThreads;
    case Home::Warpgroup: return kWarpgroupThreads;
    default: return 0;
  }
}

std::span<const char* const> enum_names(Combine) {
  static constexpr const char* kNames[] = {"sum", "max", "min", "and", "or", "xor"};
  return kNames;
}

std::string FragmentLayout::fault(const std::vector<int64_t>& shape, const Dims& dims,
                                  const std::vector<Copies>& copies) {
  if (shape.size() != dims.size()) return fmt::format("{} extents for {} dimensions", shape.size(), dims.size());
  std::vector<Spread> spreads;
  const auto add = [&](const Factor& f) {
    if (f.extent > 1) spreads.push_back({line_of(f.home), line_stride(f.home, f.stride), f.extent});
  };
  for (size_t d = 0; d < dims.size(); ++d) {
    if (shape[d] < 1) return fmt::format("the extent {} of dimension {} is not positive", shape[d], d);
    int64_t covered = 1;
    for (const Factor& f : dims[d]) {
      if (std::string fault = fault_of_factor(f); !fault.empty()) return fault;
      if (covered > (int64_t{1} << 31) / f.extent) return fmt::format("dimension {} is larger than 2^31", d);
      covered *= f.extent;
      add(f);
    }
    if (covered < shape[d])
      return fmt::format("the factors of dimension {} cover {} of {} elements", d, covered, shape[d]);
  }
  for (const Copies& c : copies) {
    if (std::string fault = fault_of_factor(c.factor); !fault.empty()) return fault;
    if (c.factor.home == Home::Register) return "a copy lives in another thread, not in another register";
    add(c.factor);
  }
  if (spreads.size() > 60) return "more than 60 factors";
  return fault_of_overlap(std::move(spreads));
}

FragmentLayout::FragmentLayout(std::vector<int64_t> shape, Dims dims, std::vector<Copies> copies) {
  const std::string wrong = fault(shape, dims, copies);
  check_internal(wrong.empty(), "no fragment layout: {}", wrong);
  shape_ = std::move(shape);
  for (const std::vector<Factor>& dim : dims) dims_.push_back(canonical(dim));
  copies_ = canonical(copies);
  derive();
}

void FragmentLayout::derive() {
  const auto append = [&](const Factor& f, int dim, std::optional<Combine> partial) {
    const int64_t step = line_stride(f.home, f.stride);
    digits_.push_back({dim, f.extent, f.home, f.stride, 1, partial, step, 0});
    const int64_t reach = (f.extent - 1) * step;
    (f.home == Home::Register ? registers_ : f.home == Home::Cta ? ctas_ : threads_) += reach;
    if (f.home == Home::Lane && (f.extent - 1) * f.stride >= kWarpThreads) warp_aligned_ = false;
  };
  for (int d = 0; d < rank(); ++d)
    for (const Factor& f : dims_[d]) append(f, d, {});
  for (const Copies& c : copies_) {
    append(c.factor, -1, c.partial);
    copy_count_ *= c.factor.extent;
  }
  for (size_t i = digits_.size(); i-- > 1;)
    if (digits_[i - 1].dim == digits_[i].dim) digits_[i - 1].weight = digits_[i].weight * digits_[i].extent;
  by_stride_.resize(digits_.size());
  std::iota(by_stride_.begin(), by_stride_.end(), uint8_t{0});
  std::sort(by_stride_.begin(), by_stride_.end(), [&](uint8_t a, uint8_t b) {
    const Digit &x = digits_[a], &y = digits_[b];
    return std::tuple(line_of(x.home), -x.step) < std::tuple(line_of(y.home), -y.step);
  });
  for (size_t i = 1; i < by_stride_.size(); ++i) {
    const Digit& wider = digits_[by_stride_[i - 1]];
    Digit& digit = digits_[by_stride_[i]];
    if (line_of(wider.home) != line_of(digit.home)) continue;
    if (digit.home == Home::Lane && wider.home != Home::Lane && warp_aligned_) continue;
    digit.modulus = wider.step;
  }
}

int64_t FragmentLayout::elements() const {
  int64_t count = 1;
  for (int64_t extent : shape_) count *= extent;
  return count;
}

int64_t FragmentLayout::padded_extent(int d) const {
  int64_t extent = 1;
  for (const Factor& f : dims_[d]) extent *= f.extent;
  return extent;
}

bool FragmentLayout::is_padded() const {
  for (int d = 0; d < rank(); ++d)
    if (padded_extent(d) != shape_[d]) return true;
  return false;
}

bool FragmentLayout::is_partial() const {
  return std::any_of(copies_.begin(), copies_.end(), [](const Copies& c) { return c.partial.has_value(); });
}

bool FragmentLayout::is_replicated() const {
  return !is_partial() && std::none_of(digits_.begin(), digits_.end(), [](const Digit& digit) {
    return digit.dim >= 0 && digit.home != Home::Register;
  });
}

bool FragmentLayout::uses_all_threads() const {
  int64_t used = 1;
  for (const Digit& digit : digits_)
    if (line_of(digit.home) == Line::Thread) used *= digit.extent;
  return used == threads_;
}

Place FragmentLayout::place(std::span<const int64_t> index, int64_t copy) const {
  Place place;
  for (const Digit& digit : digits_) {
    const int64_t number = digit.dim < 0 ? copy : index[digit.dim];
    const int64_t steps = number / digit.weight % digit.extent * digit.step;
    (digit.home == Home::Register ? place.reg : digit.home == Home::Cta ? place.cta : place.thread) += steps;
  }
  return place;
}

Held FragmentLayout::held_at(const Place& place) const {
  Held held;
  held.index.assign(shape_.size(), 0);
  int64_t rest[] = {place.reg, place.thread, place.cta};
  for (uint8_t i : by_stride_) {
    const Digit& digit = digits_[i];
    int64_t& left = rest[static_cast<int>(line_of(digit.home))];
    const int64_t value = left / digit.step;
    if (value >= digit.extent) return {};
    left -= value * digit.step;
    (digit.dim < 0 ? held.copy : held.index[digit.dim]) += value * digit.weight;
  }
  if (rest[0] != 0 || rest[1] != 0 || rest[2] != 0) return {};
  held.kind = Held::Kind::Element;
  for (size_t d = 0; d < shape_.size(); ++d)
    if (held.index[d] >= shape_[d]) held.kind = Held::Kind::Padding;
  return held;
}

size_t FragmentLayout::hash() const {
  size_t hash = 0xcbf29ce484222325;  // FNV-1a, a word at a time
  const auto mix = [&](int64_t value) { hash = (hash ^ static_cast<size_t>(value)) * 0x100000001b3; };
  for (int64_t extent : shape_) mix(extent);
  for (const Digit& digit : digits_) {
    mix(digit.dim), mix(digit.extent), mix(static_cast<int64_t>(digit.home)), mix(digit.stride);
    mix(digit.partial ? 1 + static_cast<int64_t>(*digit.partial) : 0);
  }
  return hash;
}

}  // namespace tilewright
