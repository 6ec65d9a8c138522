#include "layout/convert.h"

#include <algorithm>
#include <bit>

#include "layout/algebra.h"
#include "layout/refine.h"

namespace tilewright {
namespace {

// A digit that both layouts share, and where each keeps it.
struct SharedDigit {
  int dim;
  int64_t extent;
  Factor from, to;  // extents as above
};

bool in_threads(Home home) { return threads_per(home) > 0; }

// The same number on the same line: registers, threads or CTAs.
bool same_place(const Factor& a, const Factor& b) {
  if (in_threads(a.home) && in_threads(b.home)) return a.stride * threads_per(a.home) == b.stride * threads_per(b.home);
  return a.home == b.home && a.stride == b.stride;
}

// With `blur`, neighbouring register factors are one: which register it is does not matter.
std::vector<Factor> factors_of(const FragmentLayout& layout, int d, bool blur) {
  std::vector<Factor> out;
  for (const Factor& f : layout.dim(d)) {
    if (blur && f.home == Home::Register && !out.empty() && out.back().home == Home::Register)
      out.back().extent *= f.extent;
    else
      out.push_back(f);
  }
  return out;
}

// Fastest first within a dimension. Empty where the radices do not fit.
std::optional<std::vector<SharedDigit>> shared_digits(const FragmentLayout& from, const FragmentLayout& to, bool blur) {
  std::vector<SharedDigit> digits;
  for (int d = 0; d < from.rank(); ++d) {
    const std::vector<Factor> a = factors_of(from, d, blur), b = factors_of(to, d, blur);
    std::vector<int64_t> extents[2];
    for (const Factor& f : a) extents[0].push_back(f.extent);
    for (const Factor& f : b) extents[1].push_back(f.extent);
    const auto pieces = refine(extents[0], extents[1]);
    if (!pieces) return std::nullopt;
    for (const Piece& p : *pieces)
      digits.push_back({d,
                        p.extent,
                        {p.extent, a[p.a].home, a[p.a].stride * p.a_step},
                        {p.extent, b[p.b].home, b[p.b].stride * p.b_step}});
  }
  return digits;
}

std::vector<Copies> partials(const FragmentLayout& layout) {
  std::vector<Copies> out;
  for (const Copies& c : layout.copies())
    if (c.partial) out.push_back(c);
  return out;
}

// The places of `want` are all among the copies of `layout`.
bool covers(const FragmentLayout& layout, Factor want) {
  const int64_t unit = in_threads(want.home) ? threads_per(want.home) : 1;
  int64_t step = want.stride * unit;
  for (bool found = true; found && want.extent > 1;) {
    found = false;
    for (const Copies& c : layout.copies()) {
      if (c.partial || in_threads(c.factor.home) != in_threads(want.home)) continue;
      const int64_t has = c.factor.stride * (in_threads(c.factor.home) ? threads_per(c.factor.home) : 1);
      if (step % has != 0 || c.factor.extent <= step / has) continue;
      const int64_t steps = (c.factor.extent - 1) / (step / has) + 1;  // of the wanted digit, within these copies
      if (steps >= want.extent) return true;
      if (want.extent % steps != 0) continue;
      want.extent /= steps, step *= steps;
      found = true;
    }
  }
  return want.extent == 1;
}

// How far data must travel; nothing at all is empty.
std::optional<ExchangeScope> distance(Home a, Home b) {
  const Home far = std::max(a, b);
  switch (far) {
    case Home::Register: return std::nullopt;
    case Home::Lane: return ExchangeScope::Warp;
    case Home::Warp: return ExchangeScope::Warpgroup;
    case Home::Warpgroup: return ExchangeScope::Block;
    case Home::Cta: return ExchangeScope::Cluster;
  }
  return std::nullopt;
}

// Cycles, to rank conversions: a word's issue, the latency of a dependent shuffle and of a round trip through shared
// memory (about 24 and 60 on recent GPUs), a barrier over the scope. Estimates: only their order has been relied on.
constexpr int64_t kIssue = 2, kShuffleLatency = 24, kSharedLatency = 60;
constexpr int64_t kBarrier[] = {8, 24, 40, 400};

int64_t words(int64_t registers, int element_bits) {
  return std::max<int64_t>(1, (registers * element_bits + 31) / 32);
}

// Builds the layouts between two layouts, bit by bit. Every digit on lanes, on either side, is a bit here.
class Shuffler {
 public:
  Shuffler(const FragmentLayout& from, const FragmentLayout& to, int element_bits)
      : now_(from), to_(to), element_bits_(element_bits) {}

  // Empty where lanes are not powers of two, or idle where the target needs them.
  std::optional<std::vector<ShuffleStep>> steps() {
    combine_lanes();
    if (!split_bits()) return std::nullopt;
    select();
    exchange();
    if (!gather_rest()) return std::nullopt;
    permute();
    if (!contains(now_, to_)) return std::nullopt;
    return std::move(steps_);
  }

 private:
  using Kind = ShuffleStep::Kind;

  void add(Kind kind, int lane_bit, int64_t registers, FragmentLayout after) {
    ShuffleStep step;
    step.kind = kind, step.lane_bit = lane_bit, step.shuffles = registers == 0 ? 0 : words(registers, element_bits_);
    step.after = after;
    steps_.push_back(std::move(step));
    now_ = std::move(after);
  }

  void combine_lanes() {
    for (;;) {
      std::vector<Copies> copies = now_.copies();
      const auto it = std::find_if(copies.begin(), copies.end(), [](const Copies& c) {
        return c.partial && c.factor.home == Home::Lane && c.factor.extent % 2 == 0;
      });
      if (it == copies.end()) return;
      const Combine op = *it->partial;
      const Factor bit{2, Home::Lane, it->factor.stride};
      it->factor.extent /= 2, it->factor.stride *= 2;
      copies.push_back({bit, {}});
      const FragmentLayout after(now_.shape(), now_.dims(), std::move(copies));
      add(Kind::Combine, std::countr_zero(static_cast<uint64_t>(bit.stride)), now_.registers(), after);
      steps_.back().combine = op;
    }
  }

  // Fills bits_ with the digits that both layouts share, those on lanes cut to bits.
  bool split_bits() {
    const auto digits = shared_digits(now_, to_, false);
    if (!digits || !now_.is_warp_aligned() || !to_.is_warp_aligned()) return false;
    for (SharedDigit d : *digits) {
      const bool lanes = d.from.home == Home::Lane || d.to.home == Home::Lane;
      if (lanes && !std::has_single_bit(static_cast<uint64_t>(d.extent))) return false;
      while (lanes && d.extent > 2) {
        bits_.push_back({d.dim, 2, {2, d.from.home, d.from.stride}, {2, d.to.home, d.to.stride}});
        d.extent /= 2, d.from.stride *= 2, d.to.stride *= 2;
      }
      d.from.extent = d.to.extent = d.extent;
      bits_.push_back(d);
    }
    // Strides of lanes must be bits too.
    return std::all_of(bits_.begin(), bits_.end(), [](const SharedDigit& d) {
      return (d.from.home != Home::Lane || std::has_single_bit(static_cast<uint64_t>(d.from.stride))) &&
             (d.to.home != Home::Lane || std::has_single_bit(static_cast<uint64_t>(d.to.stride)));
    });
  }

  // The layout that bits_ says, with these copies.
  FragmentLayout layout(std::vector<Copies> copies) const {
    FragmentLayout::Dims dims(now_.rank());
    for (const SharedDigit& d : bits_) dims[d.dim].insert(dims[d.dim].begin(), d.from);
    return FragmentLayout(now_.shape(), std::move(dims), std::move(copies));
  }

  // Copies without the lane bit of this stride.
  std::vector<Copies> without(int64_t stride) const {
    std::vector<Copies> out;
    for (const Copies& c : now_.copies()) {
      if (c.factor.home != Home::Lane || stride < c.factor.stride || stride >= c.factor.stride * c.factor.extent) {
        out.push_back(c);
        continue;
      }
      const int64_t below = stride / c.factor.stride;
      out.push_back({{below, Home::Lane, c.factor.stride}, c.partial});
      out.push_back({{c.factor.extent / below / 2, Home::Lane, stride * 2}, c.partial});
    }
    return out;
  }

  bool to_lane(const SharedDigit& d) const { return d.to.home == Home::Lane; }

  // A register bit that the target has on lanes which hold copies here: each lane keeps its half.
  void select() {
    for (SharedDigit& d : bits_) {
      if (d.from.home != Home::Register || !to_lane(d)) continue;
      if (!covers(now_, {2, Home::Lane, d.to.stride})) continue;
      const std::vector<Copies> copies = without(d.to.stride);
      d.from = {2, Home::Lane, d.to.stride};
      add(Kind::Select, lane_bit(d.from), 0, compact(copies));
    }
  }

  // Register bits for lanes against lane bits for registers, pair by pair.
  void exchange() {
    for (SharedDigit& in : bits_) {
      if (in.from.home != Home::Register || !to_lane(in)) continue;
      // The lane bit that leaves: best the one at the place that this bit wants.
      SharedDigit* out = nullptr;
      for (SharedDigit& d : bits_)
        if (d.from.home == Home::Lane && d.to.home != Home::Lane && (!out || d.from.stride == in.to.stride)) out = &d;
      if (!out) return;
      std::swap(in.from, out->from);
      add(Kind::Exchange, lane_bit(in.from), (now_.registers() + 1) / 2, layout(now_.copies()));
    }
  }

  // Lane bits that the target has in registers or not at all become registers of every lane.
  bool gather_rest() {
    for (SharedDigit& d : bits_) {
      if (d.from.home == Home::Register && to_lane(d)) return false;  // found no lane bit to go to
      if (d.from.home != Home::Lane || to_lane(d)) continue;
      std::vector<Copies> copies = now_.copies();
      copies.push_back({d.from, {}});
      const int64_t registers = now_.registers();
      const int bit = lane_bit(d.from);
      d.from = {2, Home::Register, registers};
      add(Kind::Gather, bit, registers, compact(copies));
    }
    return true;
  }

  // The lanes in another order: one shuffle of each register.
  void permute() {
    std::array<int, 5> goes;  // lane bit -> lane bit
    goes.fill(-1);
    std::array<bool, 5> taken{};
    for (const SharedDigit& d : bits_)
      if (d.from.home == Home::Lane) goes[lane_bit(d.from)] = lane_bit(d.to), taken[lane_bit(d.to)] = true;
    for (int bit = 0; bit < 5; ++bit)  // copies stay where they can
      if (goes[bit] < 0 && !taken[bit]) goes[bit] = bit, taken[bit] = true;
    for (int bit = 0; bit < 5; ++bit)
      if (goes[bit] < 0)
        goes[bit] = static_cast<int>(std::find(taken.begin(), taken.end(), false) - taken.begin()),
        taken[goes[bit]] = true;
    bool moves = false;
    for (int bit = 0; bit < 5; ++bit) moves = moves || goes[bit] != bit;
    if (!moves) return;
    std::vector<Copies> copies;
    for (const Copies& c : now_.copies()) {
      if (c.factor.home != Home::Lane) copies.push_back(c);
      for (int64_t part = 1; c.factor.home == Home::Lane && part < c.factor.extent; part *= 2)
        copies.push_back(
            {{2, Home::Lane, int64_t{1} << goes[std::countr_zero(static_cast<uint64_t>(c.factor.stride * part))]},
             c.partial});
    }
    for (SharedDigit& d : bits_)
      if (d.from.home == Home::Lane) d.from.stride = d.to.stride;
    add(Kind::Permute, 0, now_.registers(), layout(copies));
    for (int lane = 0; lane < 32; ++lane)
      for (int bit = 0; bit < 5; ++bit)
        if (lane >> goes[bit] & 1) steps_.back().source_lane[lane] |= static_cast<uint8_t>(1 << bit);
  }

  // layout() with the registers numbered without gaps, and bits_ following.
  FragmentLayout compact(const std::vector<Copies>& copies) {
    std::vector<SharedDigit*> registers;
    for (SharedDigit& d : bits_)
      if (d.from.home == Home::Register) registers.push_back(&d);
    std::sort(registers.begin(), registers.end(), [](auto* a, auto* b) { return a->from.stride < b->from.stride; });
    int64_t next = 1;
    for (SharedDigit* d : registers) d->from.stride = next, next *= d->extent;
    return layout(copies);
  }

  static int lane_bit(const Factor& f) { return std::countr_zero(static_cast<uint64_t>(f.stride)); }

  FragmentLayout now_;
  const FragmentLayout& to_;
  int element_bits_;
  std::vector<SharedDigit> bits_;
  std::vector<ShuffleStep> steps_;
};

// Whether what contains() found needs no instruction at all.
bool same_registers(const FragmentLayout& from, const FragmentLayout& to) {
  const auto digits = shared_digits(from, to, false);
  return digits &&
         std::all_of(digits->begin(), digits->end(), [](const SharedDigit& d) { return same_place(d.from, d.to); });
}

// The farthest that anything travels. Digits that do not fit each other may come from anywhere.
ExchangeScope scope_of(const FragmentLayout& from, const FragmentLayout& to) {
  ExchangeScope scope = ExchangeScope::Warp;
  const auto widen = [&](Home a, Home b) { scope = std::max(scope, distance(a, b).value_or(ExchangeScope::Warp)); };
  const auto digits = shared_digits(from, to, true);
  for (const Copies& c : from.copies())
    if (c.partial) widen(c.factor.home, c.factor.home);
  for (const Copies& c : to.copies())
    if (!covers(from, c.factor)) widen(c.factor.home, c.factor.home);
  if (digits) {
    for (const SharedDigit& d : *digits)
      if (!same_place(d.from, d.to) && !(d.from.home == Home::Register && covers(from, d.to)))
        widen(d.from.home, d.to.home);
  } else {
    for (const FragmentLayout* layout : {&from, &to})
      for (const Digit& d : layout->digits()) widen(d.home, d.home);
  }
  if (!from.is_warp_aligned() || !to.is_warp_aligned()) scope = std::max(scope, ExchangeScope::Block);
  return scope;
}

}  // namespace

std::span<const char* const> enum_names(ConversionKind) {
  static constexpr const char* kNames[] = {"same", "registers", "shuffle", "shared"};
  return kNames;
}

std::span<const char* const> enum_names(ExchangeScope) {
  static constexpr const char* kNames[] = {"warp", "warpgroup", "block", "cluster"};
  return kNames;
}

bool contains(const FragmentLayout& have, const FragmentLayout& want) {
  if (have.shape() != want.shape() || partials(have) != partials(want)) return false;
  if (have == want) return true;
  const auto digits = shared_digits(have, want, true);
  if (!digits) return false;
  for (const SharedDigit& d : *digits) {
    if (d.to.home == Home::Register) {
      if (d.from.home != Home::Register) return false;
    } else if (d.from.home == Home::Register) {
      if (!covers(have, d.to)) return false;
    } else if (!same_place(d.from, d.to)) {
      return false;
    }
  }
  return std::all_of(want.copies().begin(), want.copies().end(),
                     [&](const Copies& c) { return c.partial || covers(have, c.factor); });
}

Conversion conversion(const FragmentLayout& from, const FragmentLayout& to, int element_bits) {
  check_internal(from.shape() == to.shape(), "a conversion from {} to {}", from.text(), to.text());
  check_internal(!to.is_partial() || partials(from) == partials(to), "a conversion from {} to the partial {}",
                 from.text(), to.text());
  Conversion out;
  if (contains(from, to)) {
    const bool same = same_registers(from, to);
    out.kind = same ? ConversionKind::Same : ConversionKind::Registers;
    out.cost = same ? 0 : words(to.registers(), element_bits);
    return out;
  }
  out.kind = ConversionKind::Shared;
  out.scope = scope_of(from, to);
  out.combines = from.is_partial() && !to.is_partial();
  out.cost = kIssue * (words(from.registers(), element_bits) + words(to.registers(), element_bits)) + kSharedLatency +
             kBarrier[static_cast<int>(out.scope)];
  if (out.scope != ExchangeScope::Warp) return out;
  auto steps = Shuffler(from, to, element_bits).steps();
  if (!steps) return out;
  int64_t cost = 0;
  for (const ShuffleStep& step : *steps)
    cost += kIssue * step.shuffles + (step.shuffles > 0 ? kShuffleLatency : kIssue);
  if (!out.combines && cost > out.cost) return out;
  out.kind = ConversionKind::Shuffle;
  out.steps = std::move(*steps);
  out.cost = cost;
  return out;
}

}  // namespace tilewright
