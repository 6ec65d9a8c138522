// Reduce and Scan as code of one thread: what a thread holds, then the lanes of a warp, then the warps through shared
// memory.
#include "ir/operators.h"
#include "layout/algebra.h"
#include "passes/threads/collectives.h"
#include "scalar/functions.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;

namespace {

Expr magnitude(ReduceOp op, const Expr& e) {
  if (op != ReduceOp::AbsSum && op != ReduceOp::AbsMax) return e;
  if (e->type.is_bool() || (e->type.is_int() && !e->type.is_signed())) return e;
  return intrinsic(*function_named("abs"), {e});
}

bool is_power_of_two(int64_t n) { return (n & (n - 1)) == 0; }

class ReduceLowering {
 public:
  ReduceLowering(const Reduce& r, const FragmentLayout* points, const Team& team, CollectiveLowering& c)
      : r_(r),
        team_(team),
        c_(c),
        l_(c.l),
        from_(points ? *points : *c.placement.layout_of(r.from.buffer)),
        whole_(reduced(from_, static_cast<int>(r.dim))),
        to_type_(c.l.type(r.to.buffer)),
        type_(accumulator(to_type_)) {
    for (int d = 0; d < from_.rank(); ++d)
      if (d != r.dim) kept_.push_back(d);
  }

  Body lower() {
    totals_ = l_.temporary(l_.buffer(r_.to.buffer).name + "_total", type_, {whole_.registers()}, Space::Local);
    each_total([&](const Expr&) { return identity(r_.op, type_); });
    append(deal(from_, team_, l_, false, [&](const Held& at) { return take(at); }));
    lanes();
    if (crossing_ > 1) warps();
    append(finish());
    return std::move(out_);
  }

 private:
  void append(Body code) { out_.insert(out_.end(), code.begin(), code.end()); }
  Expr total(const Expr& i) const { return load(totals_, {i}, type_); }
  // totals[i] = value(i), for every register.
  template <class F>
  void each_total(F&& value) {
    const Expr i = new_register();
    out_.push_back(loop(l_, i, constant(0), constant(whole_.registers()), {l_.make(Store{{totals_, {i}}, value(i)})},
                        LoopKind::Unroll));
  }
  Expr new_register() {
    const VarId v = l_.program.new_var("r", i32);
    l_.intervals.set(v, {0, std::max<int64_t>(whole_.registers() - 1, 0)});
    return var(v, i32);
  }
  Expr join(const Expr& a, const Expr& b) const { return combine(r_.op, a, b, r_.nan_propagate); }

  // One element into the total of its row.
  Body take(const Held& at) {
    Expr value;
    if (const auto found = c_.registers.find(r_.from.buffer); found != c_.registers.end()) {
      std::vector<int> dims(static_cast<size_t>(from_.rank()));
      for (size_t d = 0; d < dims.size(); ++d) dims[d] = static_cast<int>(d);
      value = load(found->second, {register_of(from_, at, dims)}, l_.type(r_.from.buffer));
    } else {
      std::vector<Expr> index;
      for (size_t d = 0; d < r_.from.min.size(); ++d) index.push_back(add(widen(r_.from.min[d]), widen(at.index[d])));
      value = guard_accesses(load(r_.from.buffer, index, l_.type(r_.from.buffer)), l_);
    }
    value = magnitude(r_.op, cast(cast(value, to_type_), type_));
    const Expr slot = register_of(whole_, at, kept_);
    return {l_.make(Store{{totals_, {slot}}, join(total(slot), value)})};
  }

  // The lanes of a warp that share a row exchange their totals.
  void lanes() {
    for (const Digit& d : from_.digits()) {
      if (d.dim != r_.dim || d.home == Home::Register) continue;
      // An xor of lanes reaches the partner only if the digit is a range of bits of the lane's number.
      const bool whole_warps = team_.count % kWarpThreads == 0 || is_power_of_two(team_.count);
      const bool shuffles = d.home == Home::Lane && is_power_of_two(d.extent) && is_power_of_two(d.stride) &&
                            whole_warps && from_.is_warp_aligned() && from_.uses_all_threads();
      if (!shuffles) {
        across_.push_back(d), crossing_ *= d.extent;
        continue;
      }
      for (int64_t step = d.extent / 2; step > 0; step /= 2) {
        const Expr i = new_register();
        Shuffle s;
        s.kind = ShuffleKind::Xor, s.result = l_.program.new_var("other", type_), s.value = total(i);
        s.lane = constant(step * d.stride), s.converged = true;
        const Expr other = var(s.result, type_);
        out_.push_back(loop(l_, i, constant(0), constant(whole_.registers()),
                            {l_.make(s), l_.make(Store{{totals_, {i}}, join(total(i), other)})}, LoopKind::Unroll));
      }
      shuffled_.push_back(d);
    }
  }

  // Threads that share a row and no warp exchange their totals through shared memory.
  void warps() {
    int64_t rows = 1;
    for (int64_t extent : whole_.shape()) rows *= extent;
    const BufferId scratch =
        l_.temporary(l_.buffer(r_.to.buffer).name + "_parts", type_, {crossing_, rows}, Space::Shared);
    Expr part = constant(0), writes;
    int64_t weight = 1;
    for (const Digit& d : across_) {
      part = add(part, sum({{weight, digit_value(from_, d, team_)}}, 0, i32));
      weight *= d.extent;
      inside(d, writes);
    }
    for (const Digit& d : shuffled_) first(d, writes);
    for (const Digit& d : from_.digits())
      if (d.dim < 0) first(d, writes);
    auto row = [&](const Held& at) {
      Expr flat = constant(0);
      for (size_t d = 0; d < at.index.size(); ++d) flat = add(sum({{whole_.shape()[d], flat}}, 0, i32), at.index[d]);
      return flat;
    };
    auto slot = [&](const Held& at) { return register_of(whole_, at, same_dims()); };
    if (c_.loops > 0) out_.push_back(c_.barrier(team_));  // for who still reads what the iteration before left
    Body write = deal(whole_, team_, l_, false, [&](const Held& at) {
      return Body{l_.make(Store{{scratch, {part, row(at)}}, total(slot(at))})};
    });
    // Each of the threads that share a row writes its part: the copies of `whole_` are told apart by `writes`.
    if (writes) write = {l_.make(If{writes, std::move(write), {}})};
    append(std::move(write));
    out_.push_back(c_.barrier(team_));
    append(deal(whole_, team_, l_, false, [&](const Held& at) {
      const Expr k = l_.index("part", wide(crossing_));
      const Element t{totals_, {slot(at)}};
      return Body{l_.make(Store{t, load(scratch, {constant(0), row(at)}, type_)}),
                  loop(l_, k, wide(1), wide(crossing_),
                       {l_.make(Store{t, join(total(slot(at)), load(scratch, {k, widen(row(at))}, type_))})},
                       LoopKind::Unroll)};
    }));
  }
  void inside(const Digit& d, Expr& condition) {
    const Expr c = binary(BinaryOp::Lt, digit_value(from_, d, team_), constant(d.extent));
    if (!l_.intervals.proves(c)) condition = condition ? logical_and(condition, c) : c;
  }
  void first(const Digit& d, Expr& condition) {
    const Expr c = binary(BinaryOp::Eq, digit_value(from_, d, team_), constant(0));
    condition = condition ? logical_and(condition, c) : c;
  }
  std::vector<int> same_dims() const {
    std::vector<int> dims(static_cast<size_t>(whole_.rank()));
    for (size_t d = 0; d < dims.size(); ++d) dims[d] = static_cast<int>(d);
    return dims;
  }

  // From the totals to where the reduction goes.
  Body finish() {
    const bool clears = r_.clear || r_.op == ReduceOp::AbsSum;
    const bool dropped = r_.to.min.size() + 1 == r_.from.min.size();
    // Dimension d of the result follows dimension kept[d] of `whole_`; -1: it has extent 1.
    std::vector<int> of_to;
    for (int d = 0, at = 0; d < from_.rank(); ++d) {
      if (d == r_.dim) {
        if (!dropped) of_to.push_back(-1);
        continue;
      }
      of_to.push_back(at++);
    }
    if (of_to.empty()) of_to.push_back(-1);
    const auto found = c_.registers.find(r_.to.buffer);
    return deal(whole_, team_, l_, false, [&](const Held& at) {
      Element to{r_.to.buffer, {}};
      if (found != c_.registers.end()) {
        to = {found->second, {register_of(*c_.placement.layout_of(r_.to.buffer), at, of_to)}};
      } else {
        for (size_t d = 0; d < of_to.size(); ++d)
          to.indices.push_back(of_to[d] < 0 ? widen(r_.to.min[d])
                                            : add(widen(r_.to.min[d]), widen(at.index[static_cast<size_t>(of_to[d])])));
      }
      Expr value = total(register_of(whole_, at, same_dims()));
      if (!clears) value = join(cast(load(to.buffer, to.indices, to_type_), type_), value);
      Body store{l_.make(Store{to, cast(value, to_type_)})};
      if (found != c_.registers.end()) return store;
      store = guard_accesses(store, l_);
      return at.first_copy ? Body{l_.make(If{at.first_copy, std::move(store), {}})} : store;
    });
  }

  const Reduce& r_;
  const Team& team_;
  CollectiveLowering& c_;
  Lowering& l_;
  const FragmentLayout from_, whole_;
  const DType to_type_, type_;
  std::vector<int> kept_;
  BufferId totals_;
  std::vector<Digit> shuffled_, across_;
  int64_t crossing_ = 1;
  Body out_;
};

}  // namespace

Body lower_reduce(const Reduce& reduce, const FragmentLayout* points, const Team& team, CollectiveLowering& c) {
  return ReduceLowering(reduce, points, team, c).lower();
}

// Lines are dealt to warps. A warp takes 32 elements of its line at a time: a prefix over the lanes by shuffles, on top
// of what came before.
Body lower_scan(const Scan& s, const Team& team, CollectiveLowering& c) {
  Lowering& l = c.l;
  const DType to_type = l.type(s.to.buffer), type = accumulator(to_type);
  const auto dim = static_cast<size_t>(s.dim);
  const Expr count = widen(s.from.extent[dim]);
  Expr lines = wide(1);
  for (size_t d = 0; d < s.from.extent.size(); ++d)
    if (d != dim) lines = mul(lines, widen(s.from.extent[d]));
  const int64_t warps = std::max<int64_t>(team.count / kWarpThreads, 1);
  const int64_t lanes = std::min<int64_t>(team.count, kWarpThreads);
  const Expr lane = binary(BinaryOp::FloorMod, team.thread, constant(kWarpThreads));
  const Expr warp = binary(BinaryOp::FloorDiv, team.thread, constant(kWarpThreads));
  const Expr rounds = binary(BinaryOp::FloorDiv, add(lines, wide(warps - 1)), wide(warps));
  const Expr round = l.index("round", rounds);
  const VarId line_id = l.program.new_var("line", i64);
  l.intervals.set(line_id, {0, l.intervals.of(lines).high});
  const Expr line = var(line_id, i64);
  const Expr chunks = binary(BinaryOp::FloorDiv, add(count, wide(lanes - 1)), wide(lanes));
  const Expr chunk = l.index("chunk", chunks);
  const Expr along = add(mul(chunk, wide(lanes)), cast(lane, i64));
  const Expr position = s.reverse ? sub(sub(count, wide(1)), along) : along;
  auto element = [&](const Region& r) {
    std::vector<Expr> index(r.min.size());
    Expr rest = line;
    for (size_t d = r.min.size(); d-- > 0;) {
      Expr at = position;
      if (d != dim) {
        at = binary(BinaryOp::FloorMod, rest, widen(r.extent[d]));
        rest = binary(BinaryOp::FloorDiv, rest, widen(r.extent[d]));
      }
      index[d] = add(widen(r.min[d]), at);
    }
    return index;
  };
  const BufferId carry = l.temporary("carry", type, {}, Space::Local),
                 sofar = l.temporary("prefix", type, {}, Space::Local);
  const Expr exists = binary(BinaryOp::Lt, along, count), prefix = load(sofar, {}, type);
  const Expr own = cast(cast(load(s.from.buffer, element(s.from), l.type(s.from.buffer)), to_type), type);
  Body body{l.make(Store{{sofar, {}}, identity(s.op, type)}),
            l.make(If{exists, guard_accesses({l.make(Store{{sofar, {}}, own})}, l), {}})};
  for (int64_t step = 1; step < lanes; step *= 2) {
    Shuffle up;
    up.kind = ShuffleKind::Up, up.value = prefix, up.lane = constant(step), up.converged = true;
    up.result = l.program.new_var("before", type);
    const Expr joined = combine(s.op, prefix, var(up.result, type), false);
    body.push_back(l.make(up));
    body.push_back(l.make(If{binary(BinaryOp::Le, constant(step), lane), {l.make(Store{{sofar, {}}, joined})}, {}}));
  }
  body.push_back(l.make(Store{{sofar, {}}, combine(s.op, load(carry, {}, type), prefix, false)}));
  const Body store = guard_accesses({l.make(Store{{s.to.buffer, element(s.to)}, cast(prefix, to_type)})}, l);
  body.push_back(l.make(If{exists, store, {}}));
  Shuffle last;
  last.kind = ShuffleKind::Index, last.value = prefix, last.lane = constant(lanes - 1), last.converged = true;
  last.result = l.program.new_var("last", type);
  body.push_back(l.make(last));
  body.push_back(l.make(Store{{carry, {}}, var(last.result, type)}));
  // A last warp that is not whole has no line.
  const Expr more = binary(BinaryOp::Lt, line, lines);
  Body by_line{
      l.make(Let{line_id, add(mul(round, wide(warps)), cast(warp, i64))}),
      l.make(If{team.count > warps * lanes ? logical_and(binary(BinaryOp::Lt, warp, constant(warps)), more) : more,
                {l.make(Store{{carry, {}}, identity(s.op, type)}), loop(l, chunk, wide(0), chunks, std::move(body))},
                {}})};
  return {loop(l, round, wide(0), rounds, std::move(by_line))};
}

}  // namespace tilewright::passes
