#include "ir/rewrite.h"

#include "ir/match.h"
#include "ir/operators.h"
#include "ir/widen.h"
#include "scalar/functions.h"

namespace tilewright::ir {
namespace {

// Calls `expr` on every expression and `body` on every body among the fields of a node, mutable or not.
template <class OnExpr, class OnBody>
struct FieldWalk {
  OnExpr& expr;
  OnBody& body;
  bool places = true;  // the indices of elements and regions too
  void operator()(const char*, auto& field) { visit(field); }

  void visit(auto& field) {
    using T = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<T, Expr>) {
      if (field) expr(field);
    } else if constexpr (std::is_same_v<T, Body>) {
      body(field);
    } else if constexpr (std::is_same_v<T, std::vector<Expr>> || std::is_same_v<T, std::vector<Region>>) {
      for (auto& item : field) visit(item);
    } else if constexpr (std::is_same_v<T, std::vector<Term>>) {
      for (auto& term : field) visit(term.value);
    } else if constexpr (std::is_same_v<T, Element> || std::is_same_v<T, Region>) {
      if (places) T::fields(field, *this);
    } else if constexpr (HasFields<T>) {
      T::fields(field, *this);
    }
  }
};
template <class OnExpr, class OnBody>
FieldWalk(OnExpr&, OnBody&, bool = true) -> FieldWalk<OnExpr, OnBody>;

struct Regions {
  function_ref<void(const Region&)> found;
  void operator()(const char*, const auto& field) const {
    using T = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<T, Region>) {
      if (field.valid()) found(field);
    } else if constexpr (std::is_same_v<T, std::vector<Region>>) {
      for (const Region& r : field) (*this)("", r);
    }
  }
};

Expr rebuild(const ExprOp& op, DType type) {
  return match(op, Overloaded{
                       [&](const Sum& n) { return sum(n.terms, n.constant, type); },
                       [&](const Unary& n) { return unary(n.op, n.a); },
                       [&](const Binary& n) { return binary(n.op, n.a, n.b); },
                       [&](const Fma& n) { return fma(n.a, n.b, n.c); },
                       [&](const Select& n) { return select(n.condition, n.a, n.b); },
                       [&](const Cast& n) { return cast(n.value, type, n.rounding, n.random); },
                       [&](const Bitcast& n) { return bitcast(n.value, type); },
                       [&](const Intrinsic& n) { return intrinsic(n.function, n.args); },
                       [&](const auto& n) { return make_expr(n, type); },
                   });
}

Stmt rewrite_fields(const Stmt& s, function_ref<Expr(const Expr&)> on_expr, function_ref<Body(const Body&)> on_body,
                    bool places = true) {
  StmtOp op = s->op;
  bool changed = false;
  auto expr = [&](Expr& e) {
    Expr r = on_expr(e);
    if (!r.same(e)) e = r, changed = true;
  };
  auto body = [&](Body& b) {
    Body r = on_body(b);
    bool same =
        std::equal(r.begin(), r.end(), b.begin(), b.end(), [](const Stmt& x, const Stmt& y) { return x.same(y); });
    if (!same) b = std::move(r), changed = true;
  };
  FieldWalk fields{expr, body, places};
  std::visit([&](auto& node) { std::decay_t<decltype(node)>::fields(node, fields); }, op);
  return changed ? Stmt(StmtNode{std::move(op), s->location, s->id}) : s;
}

}  // namespace

void for_each_operand(const Expr& e, function_ref<void(const Expr&)> f) {
  auto expr = [&](const Expr& x) { f(x); };
  auto body = [](const Body&) {};
  FieldWalk fields{expr, body};
  match(e->op, [&](const auto& node) { std::decay_t<decltype(node)>::fields(node, fields); });
}

void for_each_expr(const Stmt& s, function_ref<void(const Expr&)> f) {
  auto expr = [&](const Expr& x) { f(x); };
  auto body = [](const Body&) {};
  FieldWalk fields{expr, body};
  match(s->op, [&](const auto& node) { std::decay_t<decltype(node)>::fields(node, fields); });
}

void for_each_body(const Stmt& s, function_ref<void(const Body&)> f) {
  auto expr = [](const Expr&) {};
  auto body = [&](const Body& b) { f(b); };
  FieldWalk fields{expr, body};
  match(s->op, [&](const auto& node) { std::decay_t<decltype(node)>::fields(node, fields); });
}

void for_each_region(const Stmt& s, function_ref<void(const Region&)> f) {
  match(s->op, [&](const auto& node) { std::decay_t<decltype(node)>::fields(node, Regions{f}); });
}

Stmt with_exprs(const Stmt& s, function_ref<Expr(const Expr&)> other) {
  return rewrite_fields(s, other, [](const Body& b) { return b; });
}

Stmt with_values(const Stmt& s, function_ref<Expr(const Expr&)> other) {
  return rewrite_fields(
      s, other, [](const Body& b) { return b; }, false);
}

Stmt with_bodies(const Stmt& s, function_ref<Body(const Body&)> other) {
  return rewrite_fields(
      s, [](const Expr& e) { return e; }, other);
}

void walk(const Expr& e, function_ref<void(const Expr&)> before) {
  before(e);
  for_each_operand(e, [&](const Expr& x) { walk(x, before); });
}

void walk(const Body& body, function_ref<void(const Stmt&)> before) {
  for (const Stmt& s : body) {
    before(s);
    for_each_body(s, [&](const Body& b) { walk(b, before); });
  }
}

void walk_exprs(const Body& body, function_ref<void(const Expr&)> before) {
  walk(body, [&](const Stmt& s) { for_each_expr(s, [&](const Expr& e) { walk(e, before); }); });
}

namespace {

// Whether `now` is what folding left of the operands, all of which were rewritten: `x + 1 - 1` is x. A node above its
// operands is none of them.
bool is_from_operands(const Expr& now, const ExprOp& op) {
  std::vector<Expr> operands, own;
  auto expr = [&](const Expr& x) { operands.push_back(x); };
  auto body = [](const Body&) {};
  FieldWalk fields{expr, body};
  match(op, [&](const auto& node) { std::decay_t<decltype(node)>::fields(node, fields); });
  for_each_operand(now, [&](const Expr& x) { own.push_back(x); });
  if (now->op.index() == op.index() && std::ranges::equal(own, operands, [](auto& a, auto& b) { return a.same(b); }))
    return false;
  bool found = false;
  for (const Expr& x : operands) walk(x, [&](const Expr& part) { found = found || equal(part, now); });
  return found;
}

}  // namespace

Expr rewrite(const Expr& e, function_ref<std::optional<Expr>(const Expr&)> replace) {
  ExprOp op = e->op;
  bool changed = false;
  auto expr = [&](Expr& x) {
    Expr r = rewrite(x, replace);
    if (!r.same(x)) x = r, changed = true;
  };
  auto body = [](Body&) {};
  FieldWalk fields{expr, body};
  std::visit([&](auto& node) { std::decay_t<decltype(node)>::fields(node, fields); }, op);
  if (!changed) return replace(e).value_or(e);
  const Expr now = rebuild(op, e->type);
  return is_from_operands(now, op) ? now : replace(now).value_or(now);
}

// A loop of fewer turns than none, which an extent that has become a number shows, is one of none.
static Stmt of_no_turns_at_least(const Stmt& s) {
  const auto* loop = s.as<For>();
  if (!loop || constant_int(loop->extent).value_or(0) >= 0) return s;
  For none = *loop;
  none.extent = constant(loop->extent->type, int64_t{0});
  return make_stmt(std::move(none), s->location);
}

Body rewrite_exprs(const Body& body, function_ref<std::optional<Expr>(const Expr&)> replace) {
  Body out;
  out.reserve(body.size());
  for (const Stmt& s : body)
    out.push_back(of_no_turns_at_least(rewrite_fields(
        s, [&](const Expr& e) { return rewrite(e, replace); },
        [&](const Body& b) { return rewrite_exprs(b, replace); })));
  return out;
}

Body rewrite(const Body& body, function_ref<std::optional<Body>(const Stmt&)> replace) {
  Body out;
  out.reserve(body.size());
  for (const Stmt& s : body) {
    const Stmt now = with_bodies(s, [&](const Body& b) { return rewrite(b, replace); });
    if (std::optional<Body> r = replace(now))
      out.insert(out.end(), r->begin(), r->end());
    else
      out.push_back(now);
  }
  return out;
}

namespace {
auto substituting(const Substitution& map) {
  return [&map](const Expr& e) -> std::optional<Expr> {
    const auto* v = e.as<Var>();
    if (!v) return std::nullopt;
    auto found = map.find(v->id);
    return found == map.end() ? std::nullopt : std::optional<Expr>(found->second);
  };
}
}  // namespace

namespace {

// Indices whose numbers might leave 32 bits, with the values in their places, are widened before: `i * 2^30` where i
// becomes `4 * q + r` is no multiple of 2^32 in int32. The variables of such an index have names of their own.
class WideIndices {
 public:
  explicit WideIndices(const Substitution& map) : map_(map), all_(map) {}

  const Substitution& all() const { return all_; }
  Body body(const Body& b) {
    Body out;
    out.reserve(b.size());
    for (const Stmt& s : b) {
      StmtOp op = s->op;
      changed_ = false;
      std::visit([&](auto& node) { std::decay_t<decltype(node)>::fields(node, *this); }, op);
      out.push_back(changed_ ? Stmt(StmtNode{std::move(op), s->location}) : s);
    }
    return out;
  }
  Expr expr(const Expr& e) {
    return rewrite(e, [&](const Expr& x) -> std::optional<Expr> {
      if (const auto* n = x.as<Load>()) return with(*n, x->type);
      if (const auto* n = x.as<Address>()) return with(*n, x->type);
      return std::nullopt;
    });
  }

  void operator()(const char*, auto& field) { visit(field); }

 private:
  void visit(auto& field) {
    using T = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<T, Expr>) {
      if (field) set(field, expr(field));
    } else if constexpr (std::is_same_v<T, Body>) {
      const bool before = std::exchange(changed_, false);
      Body now = body(field);
      const bool same = std::ranges::equal(now, field, [](const Stmt& x, const Stmt& y) { return x.same(y); });
      if (!same) field = std::move(now);
      changed_ = before || !same;
    } else if constexpr (std::is_same_v<T, Element>) {
      for (Expr& e : field.indices) set(e, index(expr(e)));
    } else if constexpr (std::is_same_v<T, Region>) {
      for (Expr& e : field.min) set(e, index(expr(e)));
      for (Expr& e : field.extent) set(e, index(expr(e)));
    } else if constexpr (std::is_same_v<T, std::vector<Expr>> || std::is_same_v<T, std::vector<Region>>) {
      for (auto& item : field) visit(item);
    } else if constexpr (HasFields<T>) {
      T::fields(field, *this);
    }
  }
  void set(Expr& e, Expr now) {
    if (!now.same(e)) e = std::move(now), changed_ = true;
  }
  template <class Node>
  std::optional<Expr> with(const Node& node, DType type) {
    Node now = node;
    bool wide = false;
    for (Expr& e : now.indices)
      if (Expr i = index(e); !i.same(e)) e = std::move(i), wide = true;
    return wide ? std::optional(make_expr(std::move(now), type)) : std::nullopt;
  }
  Expr index(const Expr& e) {
    if (!leaves_32_bits(e, &map_)) return e;
    return rewrite(widen(e), [&](const Expr& x) -> std::optional<Expr> {
      const auto* c = x.as<Cast>();
      const auto* v = c && x->type == i64 && c->value->type == i32 ? c->value.as<Var>() : nullptr;
      const auto found = v ? map_.find(v->id) : map_.end();
      if (found == map_.end()) return std::nullopt;
      const VarId own{v->id.index | kOwn};
      all_.insert_or_assign(own, widen(found->second));
      return var(own, i64);
    });
  }

  static constexpr uint32_t kOwn = 1u << 30;
  const Substitution& map_;
  Substitution all_;
  bool changed_ = false;
};

}  // namespace

Expr substitute(const Expr& e, const Substitution& map) {
  if (map.empty()) return e;
  WideIndices wide(map);
  const Expr from = wide.expr(e);
  return rewrite(from, substituting(wide.all()));
}
Body substitute(const Body& body, const Substitution& map) {
  if (map.empty()) return body;
  WideIndices wide(map);
  const Body from = wide.body(body);
  return rewrite_exprs(from, substituting(wide.all()));
}

std::set<VarId> used_vars(const Expr& e) {
  std::set<VarId> out;
  walk(e, [&](const Expr& x) {
    if (const auto* v = x.as<Var>()) out.insert(v->id);
  });
  return out;
}

std::set<VarId> used_vars(const Body& body) {
  std::set<VarId> out;
  walk_exprs(body, [&](const Expr& x) {
    if (const auto* v = x.as<Var>()) out.insert(v->id);
  });
  return out;
}

namespace {
struct BufferFields {
  std::set<BufferId>& out;
  void operator()(const char*, const auto& field) { visit(field); }
  void visit(const auto& field) {
    using T = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<T, BufferId>) {
      if (field.valid()) out.insert(field);
    } else if constexpr (std::is_same_v<T, std::vector<Region>>) {
      for (const Region& r : field) visit(r);
    } else if constexpr (HasFields<T>) {
      T::fields(field, *this);
    }
  }
};
}  // namespace

std::set<BufferId> used_buffers(const Body& body) {
  std::set<BufferId> out;
  BufferFields fields{out};
  walk(body, [&](const Stmt& s) {
    match(s->op, [&](const auto& node) { std::decay_t<decltype(node)>::fields(node, fields); });
  });
  walk_exprs(body, [&](const Expr& e) {
    if (const auto* load = e.as<Load>()) out.insert(load->buffer);
    if (const auto* address = e.as<Address>()) out.insert(address->buffer);
  });
  return out;
}

namespace {
struct BufferRenaming {
  const std::map<BufferId, BufferId>& others;
  void operator()(const char*, auto& field) { visit(field); }
  void visit(auto& field) {
    using T = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<T, BufferId>) {
      if (auto found = others.find(field); found != others.end()) field = found->second;
    } else if constexpr (std::is_same_v<T, std::vector<Region>>) {
      for (Region& r : field) visit(r);
    } else if constexpr (HasFields<T>) {
      T::fields(field, *this);
    }
  }
};
}  // namespace

Body with_buffers(const Body& body, const std::map<BufferId, BufferId>& others) {
  BufferRenaming rename{others};
  const Body loads = rewrite_exprs(body, [&](const Expr& e) -> std::optional<Expr> {
    const auto* load = e.as<Load>();
    const auto* address = e.as<Address>();
    if (!others.contains(load ? load->buffer : address ? address->buffer : BufferId{})) return std::nullopt;
    ExprOp op = e->op;
    std::visit([&](auto& node) { std::decay_t<decltype(node)>::fields(node, rename); }, op);
    return make_expr(std::move(op), e->type);
  });
  return rewrite(loads, [&](const Stmt& s) -> std::optional<Body> {
    auto op = s->op;
    std::visit([&](auto& node) { std::decay_t<decltype(node)>::fields(node, rename); }, op);
    return Body{Stmt(StmtNode{std::move(op), s->location})};
  });
}

std::set<VarId> bound_vars(const Body& body) {
  std::set<VarId> out;
  auto bind = [&](VarId id) {
    if (id.valid()) out.insert(id);
  };
  walk(body, [&](const Stmt& s) {
    if (const auto* let = s.as<Let>()) bind(let->var);
    if (const auto* loop = s.as<For>()) bind(loop->var);
    if (const auto* map = s.as<Map>()) std::for_each(map->vars.begin(), map->vars.end(), bind);
    if (const auto* atomic = s.as<Atomic>()) bind(atomic->result);
    if (const auto* shuffle = s.as<Shuffle>()) bind(shuffle->result);
    if (const auto* vote = s.as<Vote>()) bind(vote->result);
    if (const auto* call = s.as<Call>()) bind(call->result);
  });
  return out;
}

}  // namespace tilewright::ir
