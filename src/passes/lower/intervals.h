// Ranges of integer expressions, and conditions known to hold: what bounds checks are proven with.
#pragma once
#include <array>

#include "ir/program.h"
#include "ir/widen.h"
#include "support/function_ref.h"

namespace tilewright::passes {

// Values that an expression can have. All arithmetic wraps around its type: what may leave the type may be anything in
// it, and of 64 bits what may leave (-kUnbounded, kUnbounded).
struct Interval {
  int64_t low, high;  // both included; low = -kUnbounded and high = kUnbounded mean "no bound"
};
inline constexpr int64_t kUnbounded = int64_t{1} << 60;

Interval range_of_type(DType type);

class Intervals {
 public:
  void set(ir::VarId var, Interval interval) { vars_[var] = interval; }
  Interval of(const ir::Expr& e) const;
  // Whether no step of the sum leaves the type, in whatever order.
  bool stays_in(const ir::Sum& n, DType type) const;

  // A variable that counts from 0 to extent - 1.
  void count(ir::VarId var, DType type, const ir::Expr& extent);
  // Remembers a condition and what follows from it; forget(mark()) drops what came after. Where a side of a comparison
  // may have wrapped around, nothing follows.
  void assume(const ir::Expr& condition);
  // From here on, what is assumed of the variable is so of its value too.
  void define(ir::VarId var, const ir::Expr& value) { values_[var] = value; }
  // Conditions that read buffers of which this is true are not known any more.
  void drop_reads(function_ref<bool(ir::BufferId)> changed);
  bool knows_reads() const;
  size_t mark() const { return known_.size(); }
  void forget(size_t mark) { known_.resize(mark); }
  // What the condition says about the range of a single variable, until it is restored.
  using Ranges = std::vector<std::pair<ir::VarId, Interval>>;
  Ranges narrow(const ir::Expr& condition);
  void restore(const Ranges& before);
  // True only if the condition always holds.
  bool proves(const ir::Expr& condition) const;
  // What a comparison of integers always gives, by the ranges of its sides in arithmetic that wraps.
  std::optional<bool> decides(const ir::Expr& comparison) const;

 private:
  // Comparisons of signed integers in 64 bits, so that the user's and ours look the same, if no side can wrap around.
  ir::Expr normalized(const ir::Expr& condition) const;
  // What a normalized comparison says of the difference of its sides: `gap` is at least `least`.
  struct Order {
    ir::Expr gap;
    int64_t least;
  };
  std::optional<Order> order_of(const ir::Expr& normalized) const;
  // An order that says the same of a quotient's dividend; none: it holds no quotient, or may leave 64 bits.
  std::optional<Order> of_dividend(const Order& order) const;
  std::optional<Order> of_remainder(const Order& order) const;
  // Orders of which one, or each, says that of a sum with a minimum or maximum, with a side of that in its place; none:
  // it has neither, or a side may leave its type.
  struct Either {
    std::array<Order, 2> sides;
    bool one_suffices;
  };
  std::optional<Either> of_sides(const Order& order) const;
  bool proves(const Order& order) const;
  bool is_exact(const ir::Expr& wide) const;
  // A comparison of one variable with a constant: the variable, and the range in which it makes the comparison true.
  struct Bound {
    ir::Expr var;
    Interval range;
  };
  std::optional<Bound> bound_by(const ir::Expr& normalized) const;
  // What is known of a variable, comparisons included.
  Interval known_range(const ir::Expr& var) const;
  bool may_lie_in(const ir::Expr& e, Interval range) const;
  ir::Expr with_values(const ir::Expr& condition) const;
  std::unordered_map<ir::VarId, Interval> vars_;
  std::unordered_map<ir::VarId, ir::Expr> values_;
  std::vector<ir::Expr> known_;
};

// What the variables of a launch can be, beside what is known of others: blocks, threads, counters of loops, points of
// maps, names of integers. A variable has one statement that binds it, so it holds wherever the variable is seen.
Intervals ranges_in(const ir::Launch& launch, Intervals known = {});
// Dimensions and strides that calls decide: no dimension is negative, and each leaves room to be rounded up.
Intervals ranges_of_symbols(const ir::ProgramTables& program);

// The parts of a conjunction.
void for_each_conjunct(const ir::Expr& condition, function_ref<void(const ir::Expr&)> f);

}  // namespace tilewright::passes
