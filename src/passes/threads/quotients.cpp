#include "passes/threads/quotients.h"

#include <limits>

#include "ir/buffer_vars.h"
#include "ir/names.h"
#include "scalar/functions.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr uint32_t kMostRepeated = 64;  // nodes of a value that is written out where its name was
constexpr int64_t kSharingPoints = 16;  // the fewest points of a thread for which a second look at them pays
constexpr int64_t kMostQuotients = 64;  // that a thread has in registers beside what it divides
constexpr double kLeastSure = 0x1p-60;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Quotients {
 public:
  Quotients(const Expr& lane, int64_t count, Lowering& l) : lane_(lane), count_(count), l_(l) {}

  Expr of(const Expr& a, const Expr& b, Body& before) {
    for (const Quotient& q : known_)
      if (equal(q.a, a) && equal(q.b, b)) return load(q.values, {lane_}, f32);
    const bool shared = !used_vars(b).contains(lane_id());
    known_.push_back({a, b, shared ? quotients(a, b, before) : quotients_of_pairs(a, b, before)});
    return load(known_.back().values, {lane_}, f32);
  }

 private:
  VarId lane_id() const { return id_of(lane_); }
  // A loop over the lanes of a vector.
  Stmt lanes(function_ref<Body(const Expr&)> element) {
    const VarId lane = l_.program.new_var("r", i32);
    l_.intervals.set(lane, {0, count_ - 1});
    const Expr i = var(lane, i32);
    return loop(l_, i, constant(0), constant(count_), element(i), LoopKind::Unroll);
  }
  // q = a y with y = 1 / b rounded, then q + (a - b q) y: the quotient rounded once, as division rounds it, if neither
  // the remainder nor the quotient leaves the normal range (every pair of mantissas whose quotient comes within 3 / b
  // units of half way between two floats has been tried). Others, and what is not finite, which makes the remainder
  // NaN: division; zeros by themselves.
  BufferId quotients(const Expr& a, const Expr& b, Body& out) {
    const BufferId quotient = l_.temporary("quotient", f32, {count_}, Space::Local);
    const BufferId least = l_.temporary("least", f32, {}, Space::Local);
    const auto dividend_of = [&](const Expr& i) { return substitute(a, {{lane_id(), i}}); };
    const Expr divisor = named("divisor", b, out);
    const Expr inverse = named("inverse", binary(BinaryOp::Div, constant(f32, 1.0), divisor), out);
    out.push_back(l_.make(Store{{least, {}}, constant(f32, kInfinity)}));
    out.push_back(lanes([&](const Expr& i) {
      Body each;
      const Expr x = named("dividend", dividend_of(i), each), q = named("q", binary(BinaryOp::Mul, x, inverse), each);
      const Expr rest = fma(unary(UnaryOp::Neg, divisor), q, x);
      const Expr rounded = named("rounded", fma(rest, inverse, q), each);
      each.push_back(l_.make(Store{{quotient, {i}}, rounded}));
      each.push_back(note_least(least, rounded));
      return each;
    }));
    divide_what_is_not_normal(
        quotient, least, is_moderate(divisor), dividend_of, [&](const Expr&) { return divisor; }, out);
    // Rows that are masked are divided by 0, which a division of its own takes long for: by what has no mantissa, the
    // product with the reciprocal, infinite or 0 with its sign, is exact, and no number where the quotient is none.
    If slow = *out.back().as<If>();
    Body product{lanes([&](const Expr& i) {
      return Body{l_.make(Store{{quotient, {i}}, binary(BinaryOp::Mul, dividend_of(i), inverse)})};
    })};
    const Expr has_mantissa = logical_and(binary(BinaryOp::Lt, constant(f32, 0.0), size(divisor)),
                                          binary(BinaryOp::Lt, size(divisor), constant(f32, kInfinity)));
    slow.then_body = {l_.make(If{has_mantissa, std::move(slow.then_body), std::move(product)})};
    out.back() = l_.make(std::move(slow));
    return quotient;
  }
  // The same where every lane has a divisor of its own: one step from an approximate reciprocal to the rounded one, as
  // the device's own rounded reciprocal does where nothing leaves the normal range; that is the quotient of 1.
  BufferId quotients_of_pairs(const Expr& a, const Expr& b, Body& out) {
    const BufferId quotient = l_.temporary("quotient", f32, {count_}, Space::Local);
    const BufferId divisors = l_.temporary("divisor", f32, {count_}, Space::Local);
    const BufferId dividends = l_.temporary("dividend", f32, {count_}, Space::Local);
    const BufferId least = l_.temporary("least", f32, {}, Space::Local);
    const BufferId smallest = l_.temporary("smallest", f32, {}, Space::Local);
    const BufferId largest = l_.temporary("largest", f32, {}, Space::Local);
    for (const BufferId low : {least, smallest}) out.push_back(l_.make(Store{{low, {}}, constant(f32, kInfinity)}));
    out.push_back(l_.make(Store{{largest, {}}, constant(f32, 0.0)}));
    out.push_back(lanes([&](const Expr& i) {
      Body each;
      const Substitution here{{lane_id(), i}};
      const Expr x = named("x", substitute(a, here), each), y = named("y", substitute(b, here), each);
      each.push_back(l_.make(Store{{dividends, {i}}, x}));
      each.push_back(l_.make(Store{{divisors, {i}}, y}));
      const Expr minus = unary(UnaryOp::Neg, y), rough = named("rough", intrinsic(Function::RcpApprox, {y}), each);
      const Expr inverse = named("inverse", fma(rough, fma(minus, rough, constant(f32, 1.0)), rough), each);
      const auto rounded = [&] {
        if (ir::constant_float(a) == 1.0) return inverse;
        const Expr q = named("q", binary(BinaryOp::Mul, x, inverse), each);
        return named("rounded", fma(fma(minus, q, x), inverse, q), each);
      }();
      each.push_back(l_.make(Store{{quotient, {i}}, rounded}));
      each.push_back(note_least(least, rounded));
      each.push_back(note_least(smallest, y));
      each.push_back(l_.make(Store{{largest, {}}, binary(BinaryOp::MaxNan, load(largest, {}, f32), size(y))}));
      return each;
    }));
    const Expr moderate = logical_and(at_least(0x1p-40, load(smallest, {}, f32)),
                                      binary(BinaryOp::Le, load(largest, {}, f32), constant(f32, 0x1p40)));
    const auto in = [&](BufferId all) { return [=](const Expr& i) { return load(all, {i}, f32); }; };
    divide_what_is_not_normal(quotient, least, moderate, in(dividends), in(divisors), out);
    return quotient;
  }
  // Where the quotients are not sure: zeros divided by moderate divisors, which are common, are zeros with the sign of
  // the product; with anything else among the lanes all are divided.
  void divide_what_is_not_normal(BufferId quotient, BufferId least, const Expr& moderate,
                                 function_ref<Expr(const Expr&)> dividend, function_ref<Expr(const Expr&)> divisor,
                                 Body& out) {
    const auto is_normal = [&] { return logical_and(moderate, at_least(0x1p-60, load(least, {}, f32))); };
    Body rest{l_.make(Store{{least, {}}, constant(f32, kInfinity)})};
    rest.push_back(lanes([&](const Expr& i) {
      Body each;
      const Expr x = named("x", dividend(i), each), is_zero = binary(BinaryOp::Eq, x, constant(f32, 0.0));
      const Expr zero = binary(BinaryOp::Mul, x, divisor(i)), q = load(quotient, {i}, f32);
      each.push_back(note_least(least, select(is_zero, constant(f32, kInfinity), q)));
      each.push_back(l_.make(Store{{quotient, {i}}, select(is_zero, zero, q)}));
      return each;
    }));
    Body exact{lanes([&](const Expr& i) {
      return Body{l_.make(Store{{quotient, {i}}, binary(BinaryOp::Div, dividend(i), divisor(i))})};
    })};
    rest.push_back(l_.make(If{unary(UnaryOp::Not, is_normal()), std::move(exact), {}}));
    out.push_back(l_.make(If{unary(UnaryOp::Not, is_normal()), std::move(rest), {}}));
  }
  Expr named(const char* name, const Expr& value, Body& to) {
    const VarId v = l_.program.new_var(name, value->type);
    to.push_back(l_.make(Let{v, value}));
    return var(v, value->type);
  }
  static Expr size(const Expr& e) { return intrinsic(Function::Abs, {e}); }
  static Expr at_least(double low, const Expr& e) { return binary(BinaryOp::Le, constant(f32, low), e); }
  static Expr is_moderate(const Expr& divisor) {
    return logical_and(at_least(0x1p-40, size(divisor)), binary(BinaryOp::Le, size(divisor), constant(f32, 0x1p40)));
  }
  // The least magnitude so far; what is no number stays.
  Stmt note_least(BufferId least, const Expr& e) const {
    return l_.make(Store{{least, {}}, binary(BinaryOp::MinNan, load(least, {}, f32), size(e))});
  }

  const Expr lane_;
  const int64_t count_;
  Lowering& l_;
  struct Quotient {
    Expr a, b;
    BufferId values;
  };
  std::vector<Quotient> known_;  // what is divided more than once is divided once
};

// Whether the device compiler would not find two computations of it to be one: functions with branches.
bool is_long(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    const auto* n = x.as<Intrinsic>();
    found = found || (n && (n->function == Function::Fmod || n->function >= Function::Exp));
  });
  return found;
}

// Names that quotients are made of, by way of other names too.
std::set<VarId> names_in(const Body& body, function_ref<bool(const Expr&)> is_quotient) {
  std::set<VarId> out;
  walk_exprs(body, [&](const Expr& e) {
    if (is_quotient(e)) out.merge(used_vars(e));
  });
  for (size_t i = body.size(); i-- > 0;)
    if (const auto* n = body[i].as<Let>(); n && out.contains(n->var)) out.merge(used_vars(n->value));
  return out;
}

// The value of every lane, computed before; what stands for it at `lane`.
Expr kept(const Expr& value, const Expr& lane, int64_t count, Lowering& l, Body& before) {
  const BufferId all = l.temporary("kept", value->type, {count}, Space::Local);
  const VarId each = l.program.new_var("r", i32);
  l.intervals.set(each, {0, count - 1});
  const Expr i = var(each, i32);
  Body store{l.make(Store{{all, {i}}, substitute(value, {{id_of(lane), i}})})};
  before.push_back(loop(l, i, constant(0), constant(count), std::move(store), LoopKind::Unroll));
  return load(all, {lane}, value->type);
}

// x / y by the reciprocal of y, which points that have it share: `value`, if `surety` is at least kLeastSure, which it
// is of no divisor below 0, and of nothing that is no number. Then the quotient is rounded once, as division rounds it.
struct QuotientOfPoint {
  Body names;
  Expr value, surety;
};
QuotientOfPoint quotient_of_point(const Expr& x, const Expr& y, Lowering& l) {
  QuotientOfPoint out;
  const auto named = [&](const char* name, const Expr& value) {
    const VarId v = l.program.new_var(name, value->type);
    out.names.push_back(l.make(Let{v, value}));
    return var(v, value->type);
  };
  const auto at_most = [](const Expr& a, const Expr& b) { return binary(BinaryOp::Le, a, b); };
  const Expr dividend = named("dividend", x), divisor = named("divisor", y);
  const Expr one = constant(f32, 1.0);
  const Expr moderate = logical_and(at_most(constant(f32, 0x1p-40), divisor), at_most(divisor, constant(f32, 0x1p40)));
  const double none = std::numeric_limits<double>::quiet_NaN();
  const Expr inverse = named("inverse", select(moderate, binary(BinaryOp::Div, one, divisor), constant(f32, none)));
  const Expr q = named("q", binary(BinaryOp::Mul, dividend, inverse));
  // What is too much, not too little: zeros keep their sign.
  const Expr over = named("over", fma(divisor, q, unary(UnaryOp::Neg, dividend)));
  out.value = named("rounded", fma(over, unary(UnaryOp::Neg, inverse), q));
  const Expr is_zero = binary(BinaryOp::Eq, dividend, constant(f32, 0.0));
  out.surety = intrinsic(Function::Abs, {select(is_zero, inverse, out.value)});
  return out;
}

}  // namespace

Body with_quotients_of_all(Body body, const Expr& lane, int64_t count, Lowering& l,
                           function_ref<bool(BufferId)> is_memory, Body& before) {
  if (count < kSharingLanes) return body;
  const auto in_hand = [&](const Expr& e) {  // nothing but registers
    bool all = true;
    walk(e, [&](const Expr& x) {
      if (const auto* n = x.as<Load>()) all = all && !is_memory(n->buffer);
    });
    return all;
  };
  if (body.empty() || !body.back().as<Store>()) return body;
  for (BufferId id : used_buffers({body.back()}))
    if (stands_by(l.program, id, bound_vars(body))) return body;
  for (size_t i = 0; i + 1 < body.size(); ++i)
    if (const auto* n = body[i].as<Let>(); !n || !in_hand(n->value)) return body;
  const auto is_quotient = [&](const Expr& e) {
    const auto* n = e.as<Binary>();
    return n && e->type == f32 && n->op == BinaryOp::Div && !n->b.as<Const>();
  };
  const std::set<VarId> ahead = names_in(body, is_quotient);
  Quotients quotients(lane, count, l);
  const auto of_all = [&](const Expr& e) -> std::optional<Expr> {
    if (!is_quotient(e) || !in_hand(e)) return std::nullopt;
    return quotients.of(e.as<Binary>()->a, e.as<Binary>()->b, before);
  };
  // Names of values in registers give way to the values, where that makes nothing longer. A quotient is computed before
  // the loop, where there are no names of its body: what it needs may be written out more than once, which the device
  // compiler computes once all the same, up to some length.
  Substitution names;
  Body out;
  for (size_t i = 0; i + 1 < body.size(); ++i) {
    const Let& n = *body[i].as<Let>();
    const Expr value = substitute(n.value, names);
    const bool once = is_simple(value) || uses_of(n.var, body, i + 1) <= 1, is_ahead = ahead.contains(n.var);
    if (!once && is_ahead && (is_long(value) || value->size > kMostRepeated))
      names[n.var] = kept(rewrite(value, of_all), lane, count, l, before);
    else if (once || is_ahead)
      names[n.var] = value;
    else
      out.push_back(make_stmt(Let{n.var, value}, body[i]->location));
  }
  out.push_back(substitute(Body{body.back()}, names).front());
  return rewrite_exprs(out, of_all);
}

std::optional<Body> shared_quotients(const Map& map, const FragmentLayout& points, const Team& team, Lowering& l,
                                     function_ref<Body(const Held&)> body_of_point) {
  const auto* to = map.body.size() == 1 ? map.body[0].as<Store>() : nullptr;
  const auto* div = to ? to->value.as<Binary>() : nullptr;
  if (!div || div->op != BinaryOp::Div || to->value->type != f32 || l.program.options.fast_math) return std::nullopt;
  bool meets = false;
  walk(div->b, [&](const Expr& e) {
    const auto* n = e.as<Load>();
    meets = meets || (n && l.program.root(n->buffer) == l.program.root(to->to.buffer));
  });
  int64_t shared = 1;
  const std::set<VarId> used = used_vars(div->b);
  for (const Digit& d : points.digits())
    if (d.home == Home::Register && d.dim >= 0 && !used.contains(map.vars[static_cast<size_t>(d.dim)]))
      shared *= d.extent;
  if (meets || shared < kSharingPoints || points.registers() > kMostQuotients) return std::nullopt;
  const BufferId least = l.temporary("least", f32, {}, Space::Local);
  const auto here = [&](const Held& at) {
    const Body body = body_of_point(at);
    const auto& n = *body[0].as<Store>();
    const auto& both = *n.value.as<Binary>();
    return std::pair{n.to, quotient_of_point(both.a, both.b, l)};
  };
  Body out{l.make(Store{{least, {}}, constant(f32, kInfinity)})};
  const Body look = deal(points, team, l, {}, [&](const Held& at) {
    QuotientOfPoint q = here(at).second;
    const Expr so_far = load(least, {}, f32);
    q.names.push_back(l.make(Store{{least, {}}, binary(BinaryOp::MinNan, so_far, q.surety)}));
    return q.names;
  });
  out.insert(out.end(), look.begin(), look.end());
  Body sure = deal(points, team, l, {}, [&](const Held& at) {
    auto [element, q] = here(at);
    q.names.push_back(l.make(Store{element, q.value}));
    return q.names;
  });
  Body exact = deal(points, team, l, {}, body_of_point);
  const Expr all = binary(BinaryOp::Le, constant(f32, kLeastSure), load(least, {}, f32));
  out.push_back(l.make(If{all, std::move(sure), std::move(exact)}));
  return out;
}

}  // namespace tilewright::passes
