#include "analysis/sure_walk.h"

#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

constexpr size_t kMostCorners = 12;   // variables whose combinations are looked at
constexpr size_t kMostFindings = 20;  // more says nothing new

// How a statement may be left before its end.
struct Jumps {
  bool breaks = false, continues = false, returns = false;
  bool any() const { return breaks || continues || returns; }
};

void add_jumps(const Body& body, bool in_loop, Jumps& out) {
  for (const Stmt& s : body) {
    out.returns = out.returns || s.as<Return>();
    out.breaks = out.breaks || (s.as<Break>() && !in_loop);
    out.continues = out.continues || (s.as<Continue>() && !in_loop);
    const bool loop = in_loop || s.as<For>() || s.as<While>();
    for_each_body(s, [&](const Body& inner) { add_jumps(inner, loop, out); });
  }
}
Jumps jumps_of(const Body& body) {
  Jumps out;
  add_jumps(body, false, out);
  return out;
}

}  // namespace

SureWalk::SureWalk(const ProgramTables& program, const Launch& launch) : program_(program), launch_(launch) {
  first_.names = &names_;
  for (size_t d = 0; d < launch.grid.size(); ++d) {
    const auto extent = constant_int(launch.grid[d]);
    set(launch.block[d], {0, extent ? *extent - 1 : 0, Kind::Block});
    if (extent && *extent < 1) uncertain_ = true;
  }
  for (size_t d = 0; d < launch.threads.size(); ++d) set(launch.thread[d], {0, launch.threads[d] - 1, Kind::Thread});
}

void SureWalk::run() { body(launch_.body); }

void SureWalk::set(VarId id, Span span) {
  spans_[id] = span;
  first_.values[id] = span.first;
}
void SureWalk::unset(VarId id) {
  spans_.erase(id);
  first_.values.erase(id);
}

// ---- statements

void SureWalk::body(const Body& list) {
  for (const Stmt& s : list) statement(s);
}

void SureWalk::statement(const Stmt& s) {
  seen_.clear();
  const bool before = uncertain_;
  if (const auto* n = s.as<For>()) {
    if (constant_int(n->extent).value_or(1) < 1) return;
    visit(s);
    loop(*n);
  } else if (const auto* n = s.as<Map>()) {
    for (const Expr& e : n->extents)
      if (constant_int(e).value_or(1) < 1) return;
    visit(s);
    map(*n);
  } else if (const auto* n = s.as<If>()) {
    visit(s);
    branch(*n);
  } else if (const auto* n = s.as<Role>()) {
    visit(s);
    role(*n);
  } else if (const auto* n = s.as<While>()) {
    visit(s);
    uncertain_ = true;
    body(n->body);
  } else {
    visit(s);
    if (const auto* let = s.as<Let>()) names_[let->var] = let->value;
  }
  const Jumps jumps = jumps_of({s});
  uncertain_ = before || jumps.any();
}

void SureWalk::loop(const For& loop) {
  const auto begin = constant_int(loop.begin), extent = constant_int(loop.extent);
  const Jumps jumps = jumps_of(loop.body);
  const bool every_turn = extent && !jumps.breaks && !jumps.returns;
  if (begin) set(loop.var, {*begin, every_turn ? *begin + *extent - 1 : *begin, Kind::Loop});
  // One over a number of the call alone is there to make turns; another may well make none.
  std::vector<VarId> vars;
  add_variables(loop.extent, vars);
  bool loads = false;
  walk(loop.extent, [&](const Expr& x) { loads = loads || x.as<Load>(); });
  if (!extent && (!vars.empty() || loads))
    guarded(binary(BinaryOp::Lt, constant(loop.extent->type, int64_t{0}), loop.extent), true, loop.body);
  else
    body(loop.body);
  unset(loop.var);
}

void SureWalk::map(const Map& map) {
  // Which thread comes to which point is nobody's business.
  std::vector<std::pair<VarId, Span>> threads;
  for (VarId id : launch_.thread)
    if (const auto found = spans_.find(id); found != spans_.end()) threads.emplace_back(id, found->second), unset(id);
  for (size_t d = 0; d < map.vars.size(); ++d)
    set(map.vars[d], {0, constant_int(map.extents[d]).value_or(1) - 1, Kind::Map});
  body(map.body);
  for (VarId id : map.vars) unset(id);
  for (const auto& [id, span] : threads) set(id, span);
}

void SureWalk::role(const Role& role) {
  const Body* before = apart_;
  apart_ = &role.body;
  const auto found = launch_.thread.empty() ? spans_.end() : spans_.find(launch_.thread[0]);
  if (found == spans_.end()) {
    body(role.body);
  } else {
    const auto [id, all] = *found;
    const Span mine{std::max(all.first, role.begin), std::min(all.last, role.end - 1), Kind::Thread};
    const bool uncertain = uncertain_;
    uncertain_ = uncertain_ || mine.first > mine.last;
    set(id, mine);
    body(role.body);
    set(id, all);
    uncertain_ = uncertain;
  }
  apart_ = before;
}

void SureWalk::branch(const If& branch) {
  const bool before = uncertain_;
  guarded(branch.condition, true, branch.then_body);
  uncertain_ = before;
  guarded(branch.condition, false, branch.else_body);
}

void SureWalk::guarded(const Expr& condition, bool truth, const Body& inside) {
  const Body* before = apart_;
  if (!is_of_loops(condition)) apart_ = &inside;
  guards_.push_back({condition, truth});
  body(inside);
  guards_.pop_back();
  apart_ = before;
}

// ---- expressions

void SureWalk::for_each_load(const Stmt& s, function_ref<void(const Load&)> f) {
  seen_.clear();
  for_each_expr(s, [&](const Expr& e) { loads_of(e, f); });
}

void SureWalk::loads_of(const Expr& e, function_ref<void(const Load&)> f) {
  if (!seen_.insert(&*e).second) return;
  const auto under = [&](const Expr& condition, bool truth, const Expr& part) {
    guards_.push_back({condition, truth});
    loads_of(part, f);
    guards_.pop_back();
  };
  const auto* b = e.as<Binary>();
  if (const auto* s = e.as<Select>()) {
    loads_of(s->condition, f);
    under(s->condition, true, s->a);
    under(s->condition, false, s->b);
  } else if (b && (b->op == BinaryOp::And || b->op == BinaryOp::Or)) {
    loads_of(b->a, f);
    under(b->a, b->op == BinaryOp::And, b->b);
  } else {
    for_each_operand(e, [&](const Expr& x) { loads_of(x, f); });
    if (const auto* load = e.as<Load>()) f(*load);
  }
}

bool SureWalk::holds(const Point& point) const {
  return std::all_of(guards_.begin(), guards_.end(), [&](const Guard& g) {
    const auto value = value_at(g.condition, point);
    return value && (*value != 0) == g.truth;
  });
}

namespace {

// Every variable that an expression depends on, by the names that are known; each node once.
class Dependence {
 public:
  Dependence(const std::unordered_map<VarId, Expr>& names, function_ref<void(VarId)> f) : names_(names), f_(f) {}
  bool loads = false;

  void of(const Expr& e) {
    if (!seen_.insert(&*e).second) return;
    loads = loads || e.as<Load>();
    for_each_operand(e, [&](const Expr& x) { of(x); });
    const auto* v = e.as<Var>();
    if (!v) return;
    const auto name = names_.find(v->id);
    if (name == names_.end())
      f_(v->id);
    else
      of(name->second);
  }

 private:
  const std::unordered_map<VarId, Expr>& names_;
  function_ref<void(VarId)> f_;
  std::unordered_set<const ExprNode*> seen_;
};

}  // namespace

void SureWalk::add_variables(const Expr& e, std::vector<VarId>& to) const {
  const auto add = [&](VarId id) {
    if (spans_.contains(id) && std::find(to.begin(), to.end(), id) == to.end()) to.push_back(id);
  };
  Dependence(names_, add).of(e);
}

bool SureWalk::is_of_loops(const Expr& e) const {
  bool others = false;
  const auto look = [&](VarId id) {
    const auto span = spans_.find(id);
    const bool thread = std::find(launch_.thread.begin(), launch_.thread.end(), id) != launch_.thread.end();
    others = others || thread || (span != spans_.end() && span->second.kind != Kind::Loop);
  };
  Dependence dependence(names_, look);
  dependence.of(e);
  return !others && !dependence.loads;
}

bool SureWalk::for_each_corner(const std::vector<VarId>& vars, function_ref<bool(const Point&)> f) const {
  if (vars.size() > kMostCorners) return false;
  Point point = first_;
  for (uint32_t bits = 0; bits < uint32_t{1} << vars.size(); ++bits) {
    bool same = false;
    for (size_t i = 0; i < vars.size(); ++i) {
      const Span span = spans_.at(vars[i]);
      const bool last = bits >> i & 1;
      same = same || (last && span.first == span.last);
      point.values[vars[i]] = last ? span.last : span.first;
    }
    if (!same && !f(point)) return true;
  }
  return true;
}

void SureWalk::report(Code code, const Stmt& at, BufferId about, std::string message, std::string help) {
  if (findings.size() >= kMostFindings) return;
  std::vector<Note> notes;
  const Buffer& buffer = program_.buffer(about);
  const SourceLocation& declared = program_.location(buffer.location);
  if (declared.known()) notes.push_back({fmt::format("'{}' is declared here", buffer.name), declared});
  findings.push_back(
      make_diagnostic(code, program_.location(at->location), std::move(message), std::move(help), std::move(notes)));
}

}  // namespace tilewright::analysis
