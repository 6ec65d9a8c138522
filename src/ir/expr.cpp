#include "ir/expr.h"

#include "ir/match.h"
#include "scalar/functions.h"

namespace tilewright::ir {
namespace {

uint64_t mix(uint64_t h, uint64_t v) {  // the finalizer of splitmix64
  h += v + 0x9e3779b97f4a7c15ull;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
  return h ^ (h >> 31);
}

struct HashField {
  uint64_t value;
  void add(uint64_t v) { value = mix(value, v); }
  void operator()(const char*, const Expr& e) { add(hash(e)); }
  void operator()(const char*, const std::vector<Expr>& list) {
    for (const Expr& e : list) add(hash(e));
  }
  void operator()(const char*, const std::vector<Term>& terms) {  // order must not matter
    uint64_t total = 0;
    for (const Term& t : terms) total += mix(hash(t.value), static_cast<uint64_t>(t.coefficient));
    add(total);
  }
  void operator()(const char*, VarId id) { add(id.index); }
  void operator()(const char*, BufferId id) { add(id.index); }
  template <class T>
  requires(std::is_enum_v<T> || std::is_integral_v<T>) void operator()(const char*, T v) {
    add(static_cast<uint64_t>(v));
  }
};

// Of the operands of a node.
struct Measure {
  uint32_t depth = 0, size = 0;
  void add(const Expr& e) {
    if (!e) return;
    depth = std::max(depth, e->depth);
    size += std::min(e->size, UINT32_MAX - size);
  }
  void operator()(const char*, const Expr& e) { add(e); }
  void operator()(const char*, const std::vector<Expr>& list) {
    for (const Expr& e : list) add(e);
  }
  void operator()(const char*, const std::vector<Term>& terms) {
    for (const Term& t : terms) add(t.value);
  }
  void operator()(const char*, const auto&) {}
};

bool equal_terms(const std::vector<Term>& a, const std::vector<Term>& b) {
  if (a.size() != b.size()) return false;
  for (const Term& t : a) {
    bool found = std::any_of(b.begin(), b.end(),
                             [&](const Term& u) { return u.coefficient == t.coefficient && equal(u.value, t.value); });
    if (!found) return false;
  }
  return true;
}

bool equal_op(const Const& a, const Const& b) { return a.bits == b.bits; }
bool equal_op(const Var& a, const Var& b) { return a.id == b.id; }
bool equal_op(const Sum& a, const Sum& b) { return a.constant == b.constant && equal_terms(a.terms, b.terms); }
bool equal_op(const Unary& a, const Unary& b) { return a.op == b.op && equal(a.a, b.a); }
bool equal_op(const Binary& a, const Binary& b) { return a.op == b.op && equal(a.a, b.a) && equal(a.b, b.b); }
bool equal_op(const Fma& a, const Fma& b) { return equal(a.a, b.a) && equal(a.b, b.b) && equal(a.c, b.c); }
bool equal_op(const Select& a, const Select& b) {
  return equal(a.condition, b.condition) && equal(a.a, b.a) && equal(a.b, b.b);
}
bool equal_op(const Cast& a, const Cast& b) {
  return a.rounding == b.rounding && equal(a.value, b.value) && equal(a.random, b.random);
}
bool equal_op(const Bitcast& a, const Bitcast& b) { return equal(a.value, b.value); }
bool equal_op(const Load& a, const Load& b) { return a.buffer == b.buffer && equal(a.indices, b.indices); }
bool equal_op(const Address& a, const Address& b) { return a.buffer == b.buffer && equal(a.indices, b.indices); }
bool equal_op(const Intrinsic& a, const Intrinsic& b) { return a.function == b.function && equal(a.args, b.args); }

}  // namespace

Expr make_expr(ExprOp op, DType type) {
  HashField h{mix(op.index(), std::hash<DType>{}(type))};
  Measure m;
  match(op, [&](const auto& node) {
    std::decay_t<decltype(node)>::fields(node, h);
    std::decay_t<decltype(node)>::fields(node, m);
  });
  return Expr(ExprNode{std::move(op), type, h.value, m.depth + 1, m.size + (m.size < UINT32_MAX)});
}

bool equal(const Expr& a, const Expr& b) {
  if (a.same(b)) return true;
  if (!a || !b || a->hash != b->hash || a->type != b->type || a->op.index() != b->op.index()) return false;
  return match(a->op, [&](const auto& node) { return equal_op(node, std::get<std::decay_t<decltype(node)>>(b->op)); });
}

bool equal(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Expr& x, const Expr& y) { return equal(x, y); });
}

bool is_comparison(BinaryOp op) { return op >= BinaryOp::Eq; }

const char* name_of(BinaryOp op) {
  static constexpr const char* kNames[] = {"+",   "-",   "*",       "/",       "//", "%", "truncdiv", "truncmod",
                                           "min", "max", "min_nan", "max_nan", "&",  "|", "^",        "<<",
                                           ">>",  "and", "or",      "==",      "!=", "<", "<="};
  return kNames[static_cast<size_t>(op)];
}

const char* name_of(UnaryOp op) {
  static constexpr const char* kNames[] = {"-", "not", "~"};
  return kNames[static_cast<size_t>(op)];
}

bool is_constant(const Expr& e) { return e && e.as<Const>(); }

std::optional<int64_t> constant_int(const Expr& e) {
  if (!e || !e->type.is_integral()) return std::nullopt;
  const auto* c = e.as<Const>();
  return c ? std::optional<int64_t>(static_cast<int64_t>(c->bits)) : std::nullopt;
}

std::optional<double> constant_float(const Expr& e) {
  if (!e || !e->type.is_float()) return std::nullopt;
  const auto* c = e.as<Const>();
  return c ? std::optional<double>(std::bit_cast<double>(c->bits)) : std::nullopt;
}

}  // namespace tilewright::ir
