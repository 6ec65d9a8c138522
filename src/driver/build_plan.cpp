#include "driver/build_plan.h"

#include "ir/buffer_vars.h"
#include "ir/effects.h"
#include "ir/match.h"
#include "ir/operators.h"
#include "ir/print.h"
#include "ir/rewrite.h"
#include "support/diagnostic.h"
#include "support/symbol_room.h"

namespace tilewright {
namespace {

using runtime::IntOp;
using runtime::IntProgram;

// Where symbols and integer scalars stand in the plan.
struct Places {
  std::map<ir::VarId, int> symbols, scalars;
};

Places places_of(const ir::ProgramTables& program) {
  Places places;
  for (ir::VarId id : program.symbols) places.symbols.emplace(id, static_cast<int>(places.symbols.size()));
  for (const ir::Param& p : program.params)
    if (!p.is_tensor()) places.scalars.emplace(p.var, static_cast<int>(places.scalars.size()));
  return places;
}

std::optional<IntOp::Kind> kind_of(ir::BinaryOp op) {
  switch (op) {
    case ir::BinaryOp::Mul: return IntOp::Kind::Mul;
    case ir::BinaryOp::FloorDiv: return IntOp::Kind::FloorDiv;
    case ir::BinaryOp::FloorMod: return IntOp::Kind::FloorMod;
    case ir::BinaryOp::Min: return IntOp::Kind::Min;
    case ir::BinaryOp::Max: return IntOp::Kind::Max;
    case ir::BinaryOp::Lt: return IntOp::Kind::Less;
    case ir::BinaryOp::Le: return IntOp::Kind::LessEqual;
    case ir::BinaryOp::Eq: return IntOp::Kind::Equal;
    case ir::BinaryOp::Ne: return IntOp::Kind::NotEqual;
    case ir::BinaryOp::And: return IntOp::Kind::And;
    case ir::BinaryOp::Or: return IntOp::Kind::Or;
    default: return std::nullopt;
  }
}

// Whether a host computes with the node itself.
bool is_host_node(const ir::Expr& e) {
  if (e.as<ir::Const>() || e.as<ir::Var>() || e.as<ir::Sum>()) return e->type.is_integral();
  if (const auto* c = e.as<ir::Cast>()) return e->type.is_integral() && c->value->type.is_integral();
  if (const auto* u = e.as<ir::Unary>()) return u->op == ir::UnaryOp::Not;
  const auto* b = e.as<ir::Binary>();
  return b && kind_of(b->op) && b->a->type.is_integral();
}
bool is_host_expression(const ir::Expr& e) {
  bool all = true;
  ir::walk(e, [&](const ir::Expr& x) { all = all && is_host_node(x); });
  return all;
}

// What an integer can be at a call that nothing refuses.
struct Range {
  __int128 low, high;

  static Range of_type(DType type) {
    if (type.is_bool()) return {0, 1};
    const __int128 values = __int128{1} << type.bits;
    return type.is_signed() ? Range{-values / 2, values / 2 - 1} : Range{0, values - 1};
  }
  bool in(Range r) const { return low >= r.low && high <= r.high; }
  Range operator+(Range r) const { return {low + r.low, high + r.high}; }
  Range operator*(Range r) const {
    const auto [least, most] = std::minmax({low * r.low, low * r.high, high * r.low, high * r.high});
    return {least, most};
  }
};

class Translation {
 public:
  Translation(const ir::ProgramTables& program, const Places& places) : program_(program), places_(places) {}

  // `at` is where the expression stands.
  IntProgram operator()(const ir::Expr& e, ir::LocationId at) {
    at_ = at;
    return of(e);
  }

 private:
  // The host computes in 64 bits and the program in a node's type: what may differ is refused at the call.
  IntProgram of(const ir::Expr& e) const {
    const IntProgram exact = in_64_bits(e);
    return fits(e) ? exact : runtime::fitting(exact, e->type);
  }
  static bool computes(const ir::Expr& e) { return e.as<ir::Sum>() || e.as<ir::Binary>() || e.as<ir::Cast>(); }
  bool fits(const ir::Expr& e) const {
    return !e->type.is_int() || e->type.bits == 64 || !computes(e) || exact_range(e).in(Range::of_type(e->type));
  }
  Range range(const ir::Expr& e) const {
    const Range type = Range::of_type(e->type);
    if (!computes(e)) return exact_range(e);
    const Range r = exact_range(e);
    return {std::clamp(r.low, type.low, type.high), std::clamp(r.high, type.low, type.high)};
  }
  Range exact_range(const ir::Expr& e) const {
    const Range type = Range::of_type(e->type);
    if (const auto c = ir::constant_int(e)) return {*c, *c};
    if (const auto* v = e.as<ir::Var>())
      return places_.symbols.contains(v->id) && type.high > kSymbolRoom ? Range{type.low, type.high - kSymbolRoom}
                                                                        : type;
    if (const auto* c = e.as<ir::Cast>()) return range(c->value);
    if (const auto* c = e.as<ir::Select>()) {
      const Range x = range(c->a), y = range(c->b);
      return {std::min(x.low, y.low), std::max(x.high, y.high)};
    }
    if (const auto* s = e.as<ir::Sum>()) {
      Range total{s->constant, s->constant};
      for (const ir::Term& t : s->terms) total = total + Range{t.coefficient, t.coefficient} * range(t.value);
      return total;
    }
    const auto* b = e.as<ir::Binary>();
    if (!b || !e->type.is_int()) return type;
    const Range x = range(b->a), y = range(b->b);
    const auto divisor = ir::constant_int(b->b).value_or(0);
    switch (b->op) {
      case ir::BinaryOp::Mul: return x * y;
      case ir::BinaryOp::Min: return {std::min(x.low, y.low), std::min(x.high, y.high)};
      case ir::BinaryOp::Max: return {std::max(x.low, y.low), std::max(x.high, y.high)};
      case ir::BinaryOp::FloorMod: return divisor > 0 ? Range{0, divisor - 1} : type;
      case ir::BinaryOp::FloorDiv:
        if (divisor > 0) return x;  // nearer to 0
        return {std::min(x.low, -x.high), std::max(x.high, -x.low)};
      default: return type;
    }
  }
  IntProgram in_64_bits(const ir::Expr& e) const {
    return ir::match(e->op, ir::Overloaded{
                                [&](const ir::Const& n) { return runtime::constant(static_cast<int64_t>(n.bits)); },
                                [&](const ir::Var& n) { return of_var(n.id); },
                                [&](const ir::Sum& n) { return of_sum(n); },
                                [&](const ir::Binary& n) { return of_binary(n); },
                                [&](const ir::Unary& n) {
                                  if (n.op != ir::UnaryOp::Not) refuse("an operator");
                                  return runtime::negate(of(n.a));
                                },
                                [&](const ir::Select& n) { return of_select(n); },
                                [&](const ir::Cast& n) {
                                  if (!e->type.is_integral() || !n.value->type.is_integral())
                                    refuse("a conversion of floats");
                                  return of(n.value);
                                },
                                [&](const auto&) -> IntProgram { refuse("more than integer arithmetic"); },
                            });
  }

  [[noreturn]] void refuse(const char* what) const {
    fail(Code::HostExpression, program_.location(at_),
         fmt::format("'{}': a shape, stride, grid or host-side assumption uses {}", program_.name, what),
         "the host computes integers only: + - * // % min max, comparisons and choices of symbols and integer "
         "parameters");
  }
  IntProgram of_var(ir::VarId id) const {
    if (auto found = places_.symbols.find(id); found != places_.symbols.end()) return runtime::symbol(found->second);
    if (auto found = places_.scalars.find(id); found != places_.scalars.end()) return runtime::scalar(found->second);
    refuse("a value that is only known inside a kernel");
  }
  IntProgram of_sum(const ir::Sum& n) const {
    std::optional<IntProgram> total;
    for (const ir::Term& t : n.terms) {
      IntProgram term = of(t.value);
      if (t.coefficient != 1) term = runtime::combine(IntOp::Kind::Mul, runtime::constant(t.coefficient), term);
      total = total ? runtime::combine(IntOp::Kind::Add, *total, term) : term;
    }
    return n.constant == 0 ? *total : runtime::combine(IntOp::Kind::Add, *total, runtime::constant(n.constant));
  }
  // Both sides are computed: one that has no value refuses the call, whether it is chosen or not.
  IntProgram of_select(const ir::Select& n) const {
    if (!n.a->type.is_integral()) refuse("a choice of floats");
    const IntProgram other = runtime::negate(of(n.condition)), chosen = runtime::negate(other);
    return runtime::combine(IntOp::Kind::Add, runtime::combine(IntOp::Kind::Mul, chosen, of(n.a)),
                            runtime::combine(IntOp::Kind::Mul, other, of(n.b)));
  }
  IntProgram of_binary(const ir::Binary& n) const {
    const auto kind = kind_of(n.op);
    if (!kind || !n.a->type.is_integral()) refuse("an operator");
    return runtime::combine(*kind, of(n.a), of(n.b));
  }

  const ir::ProgramTables& program_;
  const Places& places_;
  ir::LocationId at_;
};

// e = coefficient * symbol + rest, where rest does not mention the symbol.
struct Linear {
  int64_t coefficient;
  ir::Expr rest;  // none: 0
};
std::optional<Linear> linear_in(const ir::Expr& e, ir::VarId symbol) {
  if (const auto* v = e.as<ir::Var>()) return v->id == symbol ? std::optional(Linear{1, {}}) : std::nullopt;
  const auto* s = e.as<ir::Sum>();
  if (!s) return std::nullopt;
  std::vector<ir::Term> others;
  std::optional<int64_t> coefficient;
  for (const ir::Term& t : s->terms) {
    const auto* v = t.value.as<ir::Var>();
    if (v && v->id == symbol) {
      coefficient = t.coefficient;
    } else if (ir::used_vars(t.value).count(symbol)) {
      return std::nullopt;
    } else {
      others.push_back(t);
    }
  }
  if (!coefficient) return std::nullopt;
  if (others.empty() && s->constant == 0) return Linear{*coefficient, {}};
  return Linear{*coefficient, ir::sum(others, s->constant, e->type)};
}

// The tensors that launches use, views counted for what they look into.
std::set<ir::BufferId> used_tensors(const ir::TileProgram& program) {
  std::set<ir::BufferId> used;
  for (const ir::Launch& launch : program.launches)
    for (ir::BufferId id : ir::buffers_needed(launch.body, program)) used.insert(program.root(id));
  return used;
}

std::set<ir::BufferId> written_tensors(const ir::TileProgram& program) {
  std::set<ir::BufferId> written;
  for (const ir::Launch& launch : program.launches)
    ir::walk(launch.body, [&](const ir::Stmt& s) {
      for (const ir::Effect& e : ir::effects_of(s).list)
        if (e.region.valid() && e.access != ir::Access::Read && e.access != ir::Access::Order)
          written.insert(program.root(e.region.buffer));
    });
  return written;
}

// The symbols that a call computes with: not those that only the shapes and strides of unused tensors, and of views
// into them, mention.
std::set<ir::VarId> needed_symbols(const ir::TileProgram& program, const std::set<ir::BufferId>& used) {
  std::set<ir::VarId> needed;
  const auto add = [&](const ir::Expr& e) {
    if (e) needed.merge(ir::used_vars(e));
  };
  for (const ir::Launch& launch : program.launches) {
    for (const ir::Expr& e : launch.grid) add(e);
    needed.merge(ir::used_vars(launch.body));
  }
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const ir::BufferId id{static_cast<uint32_t>(i)};
    const ir::Buffer& b = program.buffers[i];
    const bool parameter = std::any_of(program.params.begin(), program.params.end(),
                                       [&](const ir::Param& p) { return p.is_tensor() && p.buffer == id; });
    if ((parameter || b.is_view()) && !used.count(program.root(id))) continue;
    for (const auto* list : {&b.shape, &b.strides})
      for (const ir::Expr& e : *list) add(e);
    add(b.offset), add(b.address);
  }
  for (const ir::Assumption& a : program.assumptions) add(a.condition);
  return needed;
}

struct Solution {
  ir::VarId symbol;
  int parameter;
  runtime::Equation::Source source;
  int dim;
  Linear equation;
};

// The first equation that gives one of the wanted symbols where the open ones are unknown: shapes before strides.
std::optional<Solution> next_solution(const ir::TileProgram& program, const std::set<ir::VarId>& open,
                                      const std::set<ir::VarId>& wanted, const std::set<ir::BufferId>& used,
                                      bool of_used) {
  for (auto source : {runtime::Equation::Source::Shape, runtime::Equation::Source::Stride}) {
    for (size_t p = 0; p < program.params.size(); ++p) {
      if (!program.params[p].is_tensor() || (used.count(program.params[p].buffer) > 0) != of_used) continue;
      const ir::Buffer& b = program.buffer(program.params[p].buffer);
      const std::vector<ir::Expr>& list = source == runtime::Equation::Source::Shape ? b.shape : b.strides;
      for (size_t d = 0; d < list.size(); ++d) {
        std::vector<ir::VarId> unknown;
        for (ir::VarId id : ir::used_vars(list[d]))
          if (open.count(id)) unknown.push_back(id);
        if (unknown.size() != 1 || !wanted.count(unknown[0])) continue;
        if (auto equation = linear_in(list[d], unknown[0]))
          return Solution{unknown[0], static_cast<int>(p), source, static_cast<int>(d), *equation};
      }
    }
  }
  return std::nullopt;
}

// All equations of the symbol but `first`, shapes before strides.
std::vector<Solution> other_solutions(const ir::TileProgram& program, const Solution& first) {
  std::vector<Solution> out;
  for (auto source : {runtime::Equation::Source::Shape, runtime::Equation::Source::Stride})
    for (size_t p = 0; p < program.params.size(); ++p) {
      if (!program.params[p].is_tensor()) continue;
      const ir::Buffer& b = program.buffer(program.params[p].buffer);
      const std::vector<ir::Expr>& list = source == runtime::Equation::Source::Shape ? b.shape : b.strides;
      for (size_t d = 0; d < list.size(); ++d) {
        if (static_cast<int>(p) == first.parameter && source == first.source && static_cast<int>(d) == first.dim)
          continue;
        if (auto equation = linear_in(list[d], first.symbol))
          out.push_back({first.symbol, static_cast<int>(p), source, static_cast<int>(d), *equation});
      }
    }
  return out;
}

// Tensors that may be null are asked last.
std::optional<Solution> next_solution(const ir::TileProgram& program, const std::set<ir::VarId>& open,
                                      const std::set<ir::VarId>& wanted, const std::set<ir::BufferId>& used) {
  auto found = next_solution(program, open, wanted, used, true);
  return found ? found : next_solution(program, open, wanted, used, false);
}

// In the order of the program's symbols, which is how kernels count them: passes may have left fewer tensors in use
// since order_symbols(), and another order would be the first to be found.
std::vector<Solution> solve(const ir::TileProgram& program) {
  std::set<ir::VarId> open(program.symbols.begin(), program.symbols.end());
  const std::set<ir::BufferId> used = used_tensors(program);
  std::vector<Solution> out;
  for (ir::VarId id : program.symbols) {
    const auto solution = next_solution(program, open, {id}, used);
    check_internal(solution, "'{}': no equation gives '{}'", program.name, program.var(id).name);
    open.erase(id);
    out.push_back(*solution);
  }
  return out;
}

// The parameter that mentions the symbol first, or else the first launch.
ir::LocationId first_use(const ir::TileProgram& program, ir::VarId symbol) {
  for (const ir::Param& p : program.params) {
    if (!p.is_tensor()) continue;
    const ir::Buffer& b = program.buffer(p.buffer);
    for (const auto* list : {&b.shape, &b.strides})
      for (const ir::Expr& e : *list)
        if (ir::used_vars(e).count(symbol)) return b.location;
  }
  return program.launches.empty() ? ir::LocationId{} : program.launches[0].location;
}

}  // namespace

ir::TileProgram order_symbols(ir::TileProgram program) {
  std::vector<ir::VarId> order;
  std::set<ir::VarId> open(program.symbols.begin(), program.symbols.end());
  const std::set<ir::BufferId> used = used_tensors(program);
  while (const auto solution = next_solution(program, open, open, used)) {
    open.erase(solution->symbol);
    order.push_back(solution->symbol);
  }
  for (ir::VarId id : program.symbols)
    if (std::find(order.begin(), order.end(), id) == order.end())
      fail(Code::UnsolvedSymbol, program.location(first_use(program, id)),
           fmt::format("'{}': no argument gives the value of the dimension '{}'", program.name, program.var(id).name),
           "let it stand alone, or times a constant plus known values, in a shape or stride of a tensor parameter");
  program.symbols = std::move(order);
  return program;
}

runtime::IntProgram host_expression(const ir::Expr& e, ir::LocationId at, const ir::ProgramTables& program) {
  const Places places = places_of(program);
  return Translation(program, places)(e, at);
}

runtime::LaunchPlan build_plan(const ir::TileProgram& program) {
  const Places places = places_of(program);
  Translation translate(program, places);
  runtime::LaunchPlan plan;
  plan.name = program.name;
  const std::set<ir::BufferId> used = used_tensors(program), written = written_tensors(program);
  const std::set<ir::VarId> needed = needed_symbols(program, used);
  for (const ir::Param& p : program.params) {
    runtime::Parameter out;
    if (!p.is_tensor()) {
      out.kind = runtime::Parameter::Kind::Scalar;
      out.name = program.var(p.var).name, out.dtype = program.var(p.var).type;
    } else {
      const ir::Buffer& b = program.buffer(p.buffer);
      out.name = b.name, out.dtype = b.type, out.nullable = !used.count(p.buffer),
      out.written = written.count(p.buffer);
      for (const ir::Expr& e : b.shape) out.shape.push_back(translate(e, b.location));
      for (const ir::Expr& e : b.strides) out.strides.push_back(translate(e, b.location));
    }
    plan.parameters.push_back(std::move(out));
  }
  const auto write = [&](runtime::Equation& out, const Solution& s) {
    out.parameter = s.parameter, out.source = s.source, out.dim = s.dim, out.coefficient = s.equation.coefficient;
    const ir::BufferId of = program.params[static_cast<size_t>(s.parameter)].buffer;
    if (s.equation.rest) out.rest = translate(s.equation.rest, program.buffer(of).location);
  };
  for (const Solution& s : solve(program)) {
    runtime::Symbol symbol;
    symbol.name = program.var(s.symbol).name, symbol.dtype = program.var(s.symbol).type;
    symbol.needed = needed.count(s.symbol) > 0;
    write(symbol, s);
    for (const Solution& other : other_solutions(program, s)) write(symbol.others.emplace_back(), other);
    plan.symbols.push_back(std::move(symbol));
  }
  for (const ir::Assumption& a : program.assumptions)
    plan.assumes.push_back(
        {translate(a.condition, a.location), ir::print(a.condition, program), program.location(a.location)});
  for (const ir::Buffer& b : program.buffers) {
    if (!b.workspace || b.is_view()) continue;
    ir::Expr size = ir::constant(i64, int64_t{1});
    for (const ir::Expr& e : b.shape) size = ir::mul(size, ir::cast(e, i64));
    plan.workspaces.push_back({b.name, b.type, translate(size, b.location), b.zeroed});
  }
  for (const ir::Launch& launch : program.launches)
    for (const ir::Expr& e : launch.grid) {
      if (!is_host_expression(e)) continue;
      const IntProgram extent = translate(e, launch.location);
      if (runtime::fitted_type(extent)) plan.grids.push_back(extent);
    }
  runtime::verify(plan);
  return plan;
}

}  // namespace tilewright
