// Reduce and Scan as code of one thread: what a thread holds, then the lanes of a warp, then the warps through shared
// memory.
#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "ir/extent.h"
#include "ir/operators.h"
#include "layout/algebra.h"
#include "passes/threads/collectives.h"
#include "passes/threads/fragment_box.h"
#include "passes/threads/point_count.h"
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

// Bytes of shared memory through which warps exchange the totals of rows; more rows take turns. No reduction of the
// examples needs as much.
constexpr int64_t kMostScratch = 65536;

bool is_power_of_two(int64_t n) { return (n & (n - 1)) == 0; }

// Totals of rows, `registers` of a thread, of which threads of several warps hold parts: they meet in shared memory, of
// many rows some at a time. Where a thread has neighbours a row lies there by the register that holds it and then by
// the lane: lanes meet in no bank.
class WarpJoin {
 public:
  using Join = std::function<Expr(const Expr&, const Expr&)>;

  WarpJoin(const FragmentLayout& whole, BufferId totals, std::string name, const Team& team, CollectiveLowering& c,
           Join join)
      : whole_(whole),
        totals_(totals),
        name_(std::move(name)),
        type_(c.l.type(totals)),
        team_(team),
        c_(c),
        l_(c.l),
        join_(std::move(join)) {}

  // Threads that differ in this digit hold other parts of the same rows.
  void part(const FragmentLayout& of, const Digit& d) {
    part_ = add(part_, sum({{crossing_, digit_value(of, d, team_)}}, 0, i32));
    crossing_ *= d.extent;
    const Expr c = binary(BinaryOp::Lt, digit_value(of, d, team_), constant(d.extent));
    if (!l_.intervals.proves(c)) also(c);
  }
  // Threads that differ in this digit hold copies: the first one writes.
  void first(const FragmentLayout& of, const Digit& d) {
    also(binary(BinaryOp::Eq, digit_value(of, d, team_), constant(0)));
  }

  Body lower() {
    std::vector<Digit> lanes;
    int64_t rows = 1;
    for (int64_t extent : whole_.shape()) rows *= extent;
    const bool by_register = has_neighbours();
    if (by_register) {
      rows = whole_.registers();
      for (const Digit& d : whole_.digits())
        if (d.dim >= 0 && d.home != Home::Register) lanes.push_back(d), rows *= d.extent;
      std::ranges::sort(lanes, {}, [](const Digit& d) { return std::pair(d.home != Home::Lane, d.stride); });
    }
    const int64_t most = std::max<int64_t>(1, kMostScratch / (crossing_ * std::max<int64_t>(1, type_.bits / 8)));
    const int64_t rounds = (rows + most - 1) / most, each = (rows + rounds - 1) / rounds;
    scratch_ = l_.temporary(name_ + "_parts", type_, {crossing_, each}, Space::Shared);
    Expr lane = constant(0);
    int64_t count = 1;
    for (const Digit& d : lanes)
      lane = add(lane, sum({{count, digit_value(whole_, d, team_)}}, 0, i32)), count *= d.extent;
    auto row = [&](const Held& at) {
      if (by_register) return add(sum({{count, slot(at)}}, 0, i32), lane);
      Expr flat = constant(0);
      for (size_t d = 0; d < at.index.size(); ++d) flat = add(sum({{whole_.shape()[d], flat}}, 0, i32), at.index[d]);
      return flat;
    };
    const Expr round = rounds > 1 ? l_.index("round", wide(rounds)) : Expr{};
    // `code` of the row that lies at `at` in the scratch, if it does in this round.
    auto in_round = [&](const Held& at, auto&& code) {
      if (!round) return code(row(at));
      const Expr there = sub(widen(row(at)), mul(round, wide(each)));
      const Expr inside = logical_and(binary(BinaryOp::Le, wide(0), there), binary(BinaryOp::Lt, there, wide(each)));
      return Body{l_.make(If{inside, code(there), {}})};
    };
    Body body;
    // For who still reads what the iteration before left.
    if (!c_.has_met_since() || round) body.push_back(c_.barrier(team_));
    Body write = deal(whole_, team_, l_, {}, [&](const Held& at) {
      return in_round(at, [&](const Expr& there) {
        return Body{l_.make(Store{{scratch_, {part_, there}}, load(totals_, {slot(at)}, type_)})};
      });
    });
    // Each of the threads that share a row writes its part: the copies of `whole_` are told apart by `writes_`.
    if (writes_) write = {l_.make(If{writes_, std::move(write), {}})};
    append(body, std::move(write));
    body.push_back(c_.barrier(team_));
    const bool dealt = pays_to_deal(each);
    if (dealt) append(body, join_dealt(each));
    append(body, deal(whole_, team_, l_, {}, [&](const Held& at) {
             return in_round(at, [&](const Expr& there) {
               return joined({totals_, {slot(at)}}, there, dealt ? 1 : crossing_);
             });
           }));
    return round ? Body{loop(l_, round, wide(0), wide(rounds), std::move(body), LoopKind::Serial)} : body;
  }

 private:
  static void append(Body& to, Body code) { to.insert(to.end(), code.begin(), code.end()); }
  void also(const Expr& c) { writes_ = writes_ ? logical_and(writes_, c) : c; }
  Expr slot(const Held& at) const {
    std::vector<int> dims(static_cast<size_t>(whole_.rank()));
    std::iota(dims.begin(), dims.end(), 0);
    return register_of(whole_, at, dims);
  }
  // The first `parts` parts of the row at `there` in the scratch.
  Body joined(const Element& to, const Expr& there, int64_t parts) const {
    Body out{l_.make(Store{to, load(scratch_, {constant(0), there}, type_)})};
    if (parts == 1) return out;
    const Expr k = l_.index("part", wide(parts));
    const Expr sum = load(to.buffer, to.indices, type_), more = load(scratch_, {k, widen(there)}, type_);
    out.push_back(loop(l_, k, wide(1), wide(parts), {l_.make(Store{to, join_(sum, more)})}, LoopKind::Unroll));
    return out;
  }
  // Where threads have many rows, each of them with copies, they would read every part of each: it is less to join
  // each row once, by one thread, and to read what came of it behind one more barrier.
  bool pays_to_deal(int64_t rows) const {
    constexpr int64_t kBarrier = 16;  // in loads
    const int64_t own = whole_.registers(), turns = (rows + team_.count - 1) / team_.count;
    return !whole_.is_padded() && whole_.uses_all_threads() && own * crossing_ > turns * crossing_ + own + kBarrier;
  }
  Body join_dealt(int64_t rows) {
    const BufferId whole = l_.temporary(name_ + "_row", type_, {}, Space::Local);
    Body out;
    for (int64_t done = 0; done < rows; done += team_.count) {
      const Expr there = add(team_.thread, constant(done));
      Body code = joined({whole, {}}, there, crossing_);
      code.push_back(l_.make(Store{{scratch_, {constant(0), there}}, load(whole, {}, type_)}));
      if (done + team_.count > rows)
        code = {l_.make(If{binary(BinaryOp::Lt, there, constant(rows)), std::move(code), {}})};
      append(out, std::move(code));
    }
    out.push_back(c_.barrier(team_));
    return out;
  }
  // Whether rows that a thread holds lie between those of two lanes.
  bool has_neighbours() const {
    const auto apart = [&](const Digit& d) {
      int64_t out = d.weight;
      for (int k = d.dim + 1; k < whole_.rank(); ++k) out *= whole_.shape()[static_cast<size_t>(k)];
      return out;
    };
    const auto& digits = whole_.digits();
    return std::ranges::any_of(digits, [&](const Digit& r) {
      return r.dim >= 0 && r.home == Home::Register && r.extent > 1 && std::ranges::any_of(digits, [&](const Digit& l) {
               return l.dim >= 0 && l.home == Home::Lane && l.extent > 1 && apart(r) < apart(l);
             });
    });
  }

  const FragmentLayout& whole_;
  const BufferId totals_;
  const std::string name_;
  const DType type_;
  const Team& team_;
  CollectiveLowering& c_;
  Lowering& l_;
  const Join join_;
  BufferId scratch_;
  Expr part_ = constant(0), writes_;
  int64_t crossing_ = 1;
};

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
    append(deal(from_, team_, l_, {}, [&](const Held& at) { return take(at); }));
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

  // The lanes of a warp that share a row exchange their totals, unless a later one is what is wanted.
  void lanes() {
    if (c_.placement.partial.contains(r_.to.buffer)) return;
    for (const Digit& d : from_.digits()) {
      if (d.dim != r_.dim || d.home == Home::Register) continue;
      // An xor of lanes reaches the partner only if the digit is a range of bits of the lane's number.
      const bool whole_warps = team_.count % kWarpThreads == 0 || is_power_of_two(team_.count);
      const bool is_range = d.home == Home::Lane && is_power_of_two(d.stride) && whole_warps && from_.is_warp_aligned();
      const bool shuffles =
          is_range && ((is_power_of_two(d.extent) && from_.uses_all_threads()) || has_idle_lanes_behind(d));
      if (!shuffles) {
        across_.push_back(d), crossing_ *= d.extent;
        continue;
      }
      const auto partners = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(d.extent)));
      for (int64_t step = partners / 2; step > 0; step /= 2) {
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

  // Whether the lanes behind those of the digit, up to a power of two, hold nothing: what they exchange then changes no
  // total.
  bool has_idle_lanes_behind(const Digit& d) const {
    const auto partners = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(d.extent)));
    return d.stride * partners <= kWarpThreads && std::ranges::none_of(from_.digits(), [&](const Digit& other) {
             return other.home == Home::Lane && other.extent > 1 && other.stride > d.stride;
           });
  }

  // Threads that share a row and no warp exchange their totals through shared memory.
  void warps() {
    WarpJoin join(whole_, totals_, l_.buffer(r_.to.buffer).name, team_, c_,
                  [this](const Expr& a, const Expr& b) { return this->join(a, b); });
    for (const Digit& d : across_) join.part(from_, d);
    for (const Digit& d : shuffled_) join.first(from_, d);
    for (const Digit& d : from_.digits())
      if (d.dim < 0) join.first(from_, d);
    append(join.lower());
  }
  std::vector<int> same_dims() const {
    std::vector<int> dims(static_cast<size_t>(whole_.rank()));
    for (size_t d = 0; d < dims.size(); ++d) dims[d] = static_cast<int>(d);
    return dims;
  }

  // From the totals to where the reduction goes.
  Body finish() {
    // The dimension of `whole_`, which lacks that of the reduction, that each of the result is; -1: it has extent 1.
    std::vector<int> of_to = kept_dims(r_);
    for (int& d : of_to) d -= d > r_.dim ? 1 : 0;
    if (of_to.empty()) of_to.push_back(-1);
    const auto found = c_.registers.find(r_.to.buffer);
    const auto store_total = [&](const Held& at) {
      Element to{r_.to.buffer, {}};
      if (found != c_.registers.end()) {
        to = {found->second, {register_of(*c_.placement.layout_of(r_.to.buffer), at, of_to)}};
      } else {
        for (size_t d = 0; d < of_to.size(); ++d)
          to.indices.push_back(of_to[d] < 0 ? widen(r_.to.min[d])
                                            : add(widen(r_.to.min[d]), widen(at.index[static_cast<size_t>(of_to[d])])));
      }
      Expr value = total(register_of(whole_, at, same_dims()));
      if (!r_.clear) value = join(cast(load(to.buffer, to.indices, to_type_), type_), value);
      Body store{l_.make(Store{to, as_result(r_.op, value, to_type_)})};
      if (found != c_.registers.end()) return store;
      store = guard_accesses(store, l_);
      return at.first_copy ? Body{l_.make(If{at.first_copy, std::move(store), {}})} : store;
    };
    // Registers of threads that hold nothing get something all the same: a condition around them would keep what all
    // points have in common inside of it.
    const bool anywhere = found != c_.registers.end() && r_.clear;
    return deal(whole_, team_, l_, {}, store_total, {}, anywhere ? Places::All : Places::OfElements);
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

template <>
Body lower_for_thread(const Reduce& reduce, const Stmt& s, const Team& team, CollectiveLowering& c) {
  return ReduceLowering(reduce, c.placement.points_of(s), team, c).lower();
}

// The threads that hold parts of the elements of a fragment join them.
template <>
Body lower_for_thread(const FinalizeReducer& n, const Stmt&, const Team& team, CollectiveLowering& c) {
  const BufferId fragment = n.buffer;
  const auto how = c.placement.partial.find(fragment);
  if (how == c.placement.partial.end()) return {};
  const Join& by = how->second;
  const auto joined = [&](const Expr& a, const Expr& b) { return combine(by.op, a, b, by.nan_propagate); };
  Lowering& l = c.l;
  const FragmentLayout& layout = *c.placement.layout_of(fragment);
  const BufferId own = c.registers.at(fragment);
  const DType type = l.type(fragment);
  std::vector<int> dims(static_cast<size_t>(layout.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  Body out;
  const auto each_register = [&](const auto& code) {
    const Expr i = unrolled_index(l, "r", layout.registers());
    out.push_back(loop(l, i, constant(0), constant(layout.registers()), code(i), LoopKind::Unroll));
  };
  const auto each_element = [&](BufferId from, BufferId to) {
    const Body code = deal(layout, team, l, {}, [&](const Held& at) {
      const Expr slot = register_of(layout, at, dims);
      return Body{l.make(Store{{to, {slot}}, load(from, {slot}, type)})};
    });
    out.insert(out.end(), code.begin(), code.end());
  };
  // Lanes that hold no element have written none, and take part all the same: with what changes nothing.
  BufferId total = own;
  bool all_hold = true;
  deal(layout, team, l, {}, [&](const Held& at) {
    all_hold = all_hold && !at.valid;
    return Body{};
  });
  if (!all_hold) {
    total = l.temporary(l.buffer(own).name + "_total", type, {layout.registers()}, Space::Local);
    each_register([&](const Expr& i) { return Body{l.make(Store{{total, {i}}, identity(by.op, type)})}; });
    each_element(own, total);
  }
  WarpJoin warps(layout, total, l.buffer(fragment).name, team, c, joined);
  bool crosses = false;
  for (const Digit& d : layout.digits()) {
    if (d.dim >= 0) continue;
    if (d.home != Home::Lane) {
      warps.part(layout, d), crosses = true;
      continue;
    }
    warps.first(layout, d);
    for (int64_t step = d.extent / 2; step > 0; step /= 2)
      each_register([&](const Expr& i) {
        Shuffle s;
        s.kind = ShuffleKind::Xor, s.result = l.program.new_var("other", type), s.value = load(total, {i}, type);
        s.lane = constant(step * d.stride), s.converged = true;
        return Body{l.make(s), l.make(Store{{total, {i}}, joined(load(total, {i}, type), var(s.result, type))})};
      });
  }
  if (crosses) {
    const Body joined = warps.lower();
    out.insert(out.end(), joined.begin(), joined.end());
  }
  if (total != own) each_element(total, own);
  return out;
}

namespace {

constexpr int64_t kScanned = 4;         // neighbours that a lane takes at a time
constexpr int64_t kUnrolledChunks = 4;  // whose shuffles do not wait for each other

// Lines are dealt to warps. A warp takes a chunk of its line at a time, each lane some neighbours in it: their own
// prefix, a prefix of the lanes' sums by shuffles, on top of what came before.
class ScanLowering {
 public:
  ScanLowering(const Scan& s, const Team& team, CollectiveLowering& c)
      : s_(s),
        team_(team),
        c_(c),
        l_(c.l),
        to_type_(l_.type(s.to.buffer)),
        type_(accumulator(to_type_)),
        dim_(static_cast<size_t>(s.dim)),
        count_(widen(s.from.extent[dim_])),
        lanes_(std::min<int64_t>(team.count, kWarpThreads)),
        each_(neighbours()),
        lane_(binary(BinaryOp::FloorMod, team.thread, constant(kWarpThreads))) {}

  Body lower() {
    std::vector<Expr> others = s_.from.extent;
    others.erase(others.begin() + static_cast<ptrdiff_t>(dim_));
    const Expr lines = point_count(others, l_);
    const int64_t warps = std::max<int64_t>(team_.count / kWarpThreads, 1);
    const Expr warp = binary(BinaryOp::FloorDiv, team_.thread, constant(kWarpThreads));
    const Expr rounds = binary(BinaryOp::FloorDiv, add(lines, wide(warps - 1)), wide(warps));
    const Expr round = l_.index("round", rounds);
    const VarId line_id = l_.program.new_var("line", i64);
    l_.intervals.set(line_id, {0, l_.intervals.of(lines).high});
    line_ = var(line_id, i64);
    const Expr size = wide(lanes_ * each_);
    const Expr chunks = binary(BinaryOp::FloorDiv, add(count_, sub(size, wide(1))), size);
    const Expr chunk = l_.index("chunk", chunks);
    carry_ = l_.temporary("carry", type_, {}, Space::Local);
    own_ = l_.temporary("prefix", type_, {each_}, Space::Local);
    Body body = chunk_of(add(mul(chunk, size), mul(cast(lane_, i64), wide(each_))));
    const bool few = constant_int(chunks).value_or(kUnrolledChunks + 1) <= kUnrolledChunks;
    // A last warp that is not whole has no line.
    const Expr more = binary(BinaryOp::Lt, line_, lines);
    Body by_line{
        l_.make(Let{line_id, add(mul(round, wide(warps)), cast(warp, i64))}),
        l_.make(If{team_.count > warps * lanes_ ? logical_and(binary(BinaryOp::Lt, warp, constant(warps)), more) : more,
                   {l_.make(Store{{carry_, {}}, scan_start(s_.op, type_)}),
                    loop(l_, chunk, wide(0), chunks, std::move(body), few ? LoopKind::Unroll : LoopKind::Serial)},
                   {}})};
    return {loop(l_, round, wide(0), rounds, std::move(by_line))};
  }

 private:
  // Several where they are one access of shared memory on both sides, and chunks are whole.
  int64_t neighbours() const {
    auto wide_rows = [&](const Region& r) {
      const Buffer& b = l_.buffer(r.buffer);
      if (b.space != Space::Shared && !(b.space == Space::Fragment && !c_.registers.contains(r.buffer))) return false;
      if (b.is_view() || b.memory || !b.strides.empty() || b.type.storage_bits() < 8) return false;
      if (b.type.storage_bits() * kScanned > 128) return false;
      const size_t dim = dim_of(r);
      return dim + 1 == b.rank() && constant_int(r.min[dim]) == 0 &&
             constant_int(r.extent[dim]) == constant_int(b.shape[dim]);
    };
    const int64_t count = constant_int(count_).value_or(0);
    const bool whole = lanes_ == kWarpThreads && count > 0 && count % (lanes_ * kScanned) == 0;
    return whole && wide_rows(s_.from) && wide_rows(s_.to) ? kScanned : 1;
  }
  // The dimension along which the region is scanned: either side may have more in front.
  size_t dim_of(const Region& r) const { return dim_ + r.min.size() - s_.from.min.size(); }
  // Of the element at `position` of the line.
  std::vector<Expr> element(const Region& r, const Expr& position) const {
    std::vector<Expr> index(r.min.size());
    Expr rest = line_;
    for (size_t d = r.min.size(); d-- > 0;) {
      Expr at = position;
      if (d != dim_of(r)) {
        at = binary(BinaryOp::FloorMod, rest, widen(r.extent[d]));
        rest = binary(BinaryOp::FloorDiv, rest, widen(r.extent[d]));
      }
      index[d] = add(widen(r.min[d]), at);
    }
    return index;
  }
  Expr prefix(int64_t i) const { return load(own_, {constant(i)}, type_); }
  Stmt set_prefix(int64_t i, const Expr& value) const { return l_.make(Store{{own_, {constant(i)}}, value}); }
  Expr join(const Expr& a, const Expr& b) const { return combine(s_.op, a, b, false); }
  // The place in memory of the i-th of a lane's neighbours, from the lowest.
  int64_t place(int64_t i) const { return s_.reverse ? each_ - 1 - i : i; }

  // `along`: how far along the line the lane's neighbours begin.
  Body chunk_of(const Expr& along) {
    const Expr lowest = s_.reverse ? sub(sub(count_, wide(each_)), along) : along;
    Body body = each_ > 1 ? load_neighbours(lowest) : load_one(along, lowest);
    for (int64_t i = 1; i < each_; ++i) body.push_back(set_prefix(i, join(prefix(i - 1), prefix(i))));
    // Of the lanes' sums.
    const BufferId sums = each_ > 1 ? l_.temporary("sum", type_, {}, Space::Local) : BufferId{};
    const Element sum_at = each_ > 1 ? Element{sums, {}} : Element{own_, {constant(0)}};
    const Expr sum = load(sum_at.buffer, sum_at.indices, type_);
    if (each_ > 1) body.push_back(l_.make(Store{sum_at, prefix(each_ - 1)}));
    for (int64_t step = 1; step < lanes_; step *= 2) {
      const Expr before = shuffled(ShuffleKind::Up, sum, step, "before", body);
      const Expr has = binary(BinaryOp::Le, constant(step), lane_);
      body.push_back(l_.make(If{has, {l_.make(Store{sum_at, join(sum, before)})}, {}}));
    }
    if (each_ == 1) {
      body.push_back(set_prefix(0, join(load(carry_, {}, type_), prefix(0))));
    } else {
      const Expr before = shuffled(ShuffleKind::Up, sum, 1, "lanes_before", body);
      const BufferId base = l_.temporary("base", type_, {}, Space::Local);
      const Expr carry = load(carry_, {}, type_);
      body.push_back(l_.make(Store{{base, {}}, carry}));
      body.push_back(
          l_.make(If{binary(BinaryOp::Le, constant(1), lane_), {l_.make(Store{{base, {}}, join(carry, before)})}, {}}));
      for (int64_t i = 0; i < each_; ++i) body.push_back(set_prefix(i, join(load(base, {}, type_), prefix(i))));
    }
    for (Stmt& s : each_ > 1 ? store_neighbours(lowest) : store_one(along, lowest)) body.push_back(std::move(s));
    const Expr last = shuffled(ShuffleKind::Index, prefix(each_ - 1), lanes_ - 1, "last", body);
    body.push_back(l_.make(Store{{carry_, {}}, last}));
    return body;
  }
  Expr shuffled(ShuffleKind kind, const Expr& value, int64_t lane, const char* name, Body& out) const {
    Shuffle s;
    s.kind = kind, s.value = value, s.lane = constant(lane), s.converged = true;
    s.result = l_.program.new_var(name, type_);
    const Expr result = var(s.result, type_);
    out.push_back(l_.make(std::move(s)));
    return result;
  }
  Body load_one(const Expr& along, const Expr& position) const {
    const Expr own = load(s_.from.buffer, element(s_.from, position), l_.type(s_.from.buffer));
    Body store{set_prefix(0, cast(cast(own, to_type_), type_))};
    return {set_prefix(0, scan_start(s_.op, type_)),
            l_.make(If{binary(BinaryOp::Lt, along, count_), guard_accesses(std::move(store), l_), {}})};
  }
  Body store_one(const Expr& along, const Expr& position) const {
    Body store{l_.make(Store{{s_.to.buffer, element(s_.to, position)}, as_result(s_.op, prefix(0), to_type_)})};
    return {l_.make(If{binary(BinaryOp::Lt, along, count_), guard_accesses(std::move(store), l_), {}})};
  }
  Region row(const Region& r, const Expr& lowest) const {
    Region out{r.buffer, element(r, lowest), {}};
    for (size_t d = 0; d < out.min.size(); ++d) out.extent.push_back(constant(d == dim_of(r) ? each_ : 1));
    return out;
  }
  Region registers(const Region& of, BufferId& id) const {
    id = l_.temporary(l_.buffer(of.buffer).name + "_vector", l_.type(of.buffer), {each_}, Space::Local);
    return {id, {constant(0)}, {constant(each_)}};
  }
  Body load_neighbours(const Expr& lowest) const {
    BufferId id;
    Copy copy;
    copy.from = row(s_.from, lowest), copy.to = registers(s_.from, id);
    Body out{l_.make(std::move(copy))};
    for (int64_t i = 0; i < each_; ++i) {
      const Expr own = load(id, {constant(place(i))}, l_.type(id));
      out.push_back(set_prefix(i, cast(cast(own, to_type_), type_)));
    }
    return out;
  }
  Body store_neighbours(const Expr& lowest) const {
    BufferId id;
    Copy copy;
    copy.to = row(s_.to, lowest), copy.from = registers(s_.to, id);
    Body out;
    for (int64_t i = 0; i < each_; ++i)
      out.push_back(l_.make(Store{{id, {constant(place(i))}}, as_result(s_.op, prefix(i), to_type_)}));
    out.push_back(l_.make(std::move(copy)));
    return out;
  }

  const Scan& s_;
  const Team& team_;
  CollectiveLowering& c_;
  Lowering& l_;
  const DType to_type_, type_;
  const size_t dim_;
  const Expr count_;
  const int64_t lanes_, each_;
  const Expr lane_;
  Expr line_;
  BufferId carry_, own_;
};

}  // namespace

template <>
Body lower_for_thread(const Scan& scan, const Stmt&, const Team& team, CollectiveLowering& c) {
  return ScanLowering(scan, team, c).lower();
}

}  // namespace tilewright::passes
