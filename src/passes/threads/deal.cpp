#include "passes/threads/deal.h"

#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Points of one thread, so many that their registers can only have been spilled: unrolled code would serve nothing.
constexpr int64_t kMaxUnrolled = 512;
// Neighbours that are still one vector, and the vector of more: whole accesses of 16 bytes for all types from 4 bits
// on.
constexpr int64_t kMostInVector = 64, kVectorOfMany = 32;

Expr scaled(const Expr& e, int64_t factor) { return sum({{factor, e}}, 0, i32); }
Expr both(const Expr& a, const Expr& b) { return a ? logical_and(a, b) : b; }

// Of so many neighbours of a thread: all, but a power of two of those that no registers hold.
int64_t vector_of(int64_t neighbours) {
  if (neighbours <= kMostInVector) return neighbours;
  int64_t vector = kVectorOfMany;
  while (neighbours % vector != 0) vector /= 2;
  return vector;
}

// Of a thread's neighbours in registers, those that are a vector: none of them is beyond the shape where the first is
// not (accumulators of 17 columns have 24, by two).
int64_t vector_of(const FragmentLayout& layout, const Digit& d) {
  const int64_t extent = layout.shape()[static_cast<size_t>(d.dim)];
  int64_t vector = vector_of(d.extent);
  while (layout.padded_extent(d.dim) != extent && extent % vector != 0) vector /= 2;
  return vector;
}
}  // namespace

Expr digit_value(const FragmentLayout& layout, const Digit& digit, const Team& team) {
  // The widest lane of a layout with digits in warps repeats in every warp.
  const bool over_warps = digit.home == Home::Lane && layout.is_warp_aligned() && layout.threads() > kWarpThreads;
  const int64_t modulus = digit.modulus;
  Expr value = team.thread;
  // The lane in the warp; of that a modulus that divides a warp tells as much as of the thread.
  if (over_warps && (modulus == 0 || kWarpThreads % modulus != 0))
    value = binary(BinaryOp::FloorMod, value, constant(kWarpThreads));
  if (modulus > 0 && modulus < team.count) value = binary(BinaryOp::FloorMod, value, constant(modulus));
  return digit.step > 1 ? binary(BinaryOp::FloorDiv, value, constant(digit.step)) : value;
}

int64_t neighbours_along(const FragmentLayout& layout, int dim) {
  for (const Digit& d : layout.digits())
    if (d.home == Home::Register && d.dim == dim && d.weight == 1)
      return layout.shape()[static_cast<size_t>(dim)] % d.extent == 0 ? d.extent : 1;
  return 1;
}

std::vector<int64_t> dealt_loops(const FragmentLayout& layout, std::optional<int> vector_dim) {
  std::vector<int64_t> out;
  for (const Digit& d : layout.digits()) {
    if (d.home != Home::Register) continue;
    const int64_t vector = vector_dim && d.dim == *vector_dim && d.weight == 1 ? vector_of(layout, d) : 1;
    if (vector < d.extent) out.push_back(d.extent / vector);
  }
  return out;
}

Body deal(const FragmentLayout& layout, const Team& team, Lowering& l, std::optional<int> vector_dim,
          function_ref<Body(const Held&)> element, const std::vector<Given>& given, Places places) {
  const std::vector<Digit>& digits = layout.digits();
  Held at;
  at.layout = &layout;
  at.index.assign(static_cast<size_t>(layout.rank()), constant(0));
  at.digits.resize(digits.size());
  struct Loop {
    Expr var;
    int64_t extent;
  };
  std::vector<Loop> loops;
  size_t outer = 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    const Digit& d = digits[i];
    Expr value;
    if (d.home == Home::Register) {
      const bool neighbours = vector_dim && d.dim == *vector_dim && d.weight == 1;
      const int64_t vector = neighbours ? vector_of(layout, d) : 1;
      const bool is_given = vector < d.extent && outer < given.size();
      const int64_t inner = is_given ? given[outer].inner : 1;
      const VarId v = is_given ? id_of(given[outer++].var) : l.program.new_var("r", i32);
      l.intervals.set(v, {0, d.extent / inner - 1});
      value = var(v, i32);
      if (vector < d.extent && !is_given) loops.push_back({value, d.extent / vector});
      if (inner > 1) {
        const VarId within = l.program.new_var("r", i32);
        l.intervals.set(within, {0, inner - 1}), l.intervals.set(v, {0, d.extent / vector / inner - 1});
        loops.push_back({var(within, i32), inner});
        value = add(scaled(value, inner), loops.back().var);
      }
      if (neighbours && vector > 1) {
        at.vector = vector;
        at.lane = vector == d.extent ? value : var(l.program.new_var("r", i32), i32);
        l.intervals.set(id_of(at.lane), {0, vector - 1});
        if (vector < d.extent) {
          l.intervals.set(v, {0, d.extent / vector / inner - 1});
          value = add(scaled(value, vector), at.lane);
        }
      }
    } else {
      check_internal(d.home != Home::Cta, "a layout over the blocks of a cluster where one block runs");
      value = digit_value(layout, d, team);
      const Expr inside = binary(BinaryOp::Lt, value, constant(d.extent));
      if (!l.intervals.proves(inside)) at.valid = both(at.valid, inside);
      if (d.dim < 0) at.first_copy = both(at.first_copy, binary(BinaryOp::Eq, value, constant(0)));
    }
    at.digits[i] = value;
    if (d.dim >= 0)
      at.index[static_cast<size_t>(d.dim)] = add(at.index[static_cast<size_t>(d.dim)], scaled(value, d.weight));
  }
  for (int d = 0; d < layout.rank(); ++d) {
    const size_t i = static_cast<size_t>(d);
    if (layout.padded_extent(d) == layout.shape()[i]) continue;
    // A vector does not straddle the end of the shape: its first element stands for all.
    const Expr index = at.lane ? substitute(at.index[i], {{id_of(at.lane), constant(0)}}) : at.index[i];
    const Expr inside = binary(BinaryOp::Lt, index, constant(layout.shape()[i]));
    if (!l.intervals.proves(inside)) at.valid = both(at.valid, inside);
  }
  // Threads below the narrowest digit, or all but the first where no digit is a thread's, hold nothing.
  int64_t narrowest = 0;
  for (const Digit& d : digits)
    if (d.home != Home::Register) narrowest = narrowest == 0 ? d.step : std::min(narrowest, d.step);
  if (narrowest != 1 && team.count > 1) {
    const Expr below = narrowest == 0 ? team.thread : binary(BinaryOp::FloorMod, team.thread, constant(narrowest));
    at.valid = both(at.valid, binary(BinaryOp::Eq, below, constant(0)));
  }
  const bool only_elements = at.valid && places == Places::OfElements;
  const size_t mark = l.intervals.mark();
  if (only_elements) l.intervals.assume(at.valid);
  Body body = element(at);
  l.intervals.forget(mark);
  if (only_elements) body = {l.make(If{at.valid, std::move(body), {}})};
  int64_t points = at.lane ? at.vector : 1;
  for (size_t i = loops.size(); i-- > 0;) {
    points *= loops[i].extent;
    body = {loop(l, loops[i].var, constant(0), constant(loops[i].extent), std::move(body),
                 points <= kMaxUnrolled ? LoopKind::Unroll : LoopKind::Serial)};
  }
  return body;
}

Expr register_of(const FragmentLayout& layout, const Held& at, const std::vector<int>& dims) {
  const std::vector<Digit>& have = at.layout->digits();
  Expr out = constant(0);
  for (const Digit& want : layout.digits()) {
    if (want.home != Home::Register || want.dim < 0) continue;
    const int dim = dims[static_cast<size_t>(want.dim)];
    if (dim < 0) continue;
    // The digits of the element's index that reach into [weight, weight * extent).
    const int64_t low = want.weight, high = want.weight * want.extent;
    for (size_t i = 0; i < have.size(); ++i) {
      const Digit& d = have[i];
      const int64_t begin = d.weight, end = d.weight * d.extent;
      if (d.dim != dim || end <= low || begin >= high) continue;
      Expr value = at.digits[i];
      if (end > high) value = binary(BinaryOp::FloorMod, value, constant(high / begin));
      if (begin < low) value = binary(BinaryOp::FloorDiv, value, constant(low / begin));
      const int64_t weight = begin < low ? 1 : begin / low;
      out = add(out, scaled(value, weight * want.stride));
    }
  }
  return out;
}

}  // namespace tilewright::passes
