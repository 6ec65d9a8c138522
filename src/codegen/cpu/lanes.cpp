#include "codegen/cpu/lanes.h"

#include <cmath>

#include "ir/operators.h"
#include "ir/rewrite.h"
#include "scalar/convert.h"
#include "scalar/functions.h"
#include "support/diagnostic.h"

namespace tilewright::codegen {

using namespace ir;

namespace {

bool is_narrow_float(DType type) { return type.is_float() && type != f32 && type != f64 && type != tf32; }

constexpr int64_t kPairedLanes = 32;  // at least: two vectors of words

bool reads_elements(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) { found = found || x.as<Load>(); });
  return found;
}

}  // namespace

// The body of one loop. What is the same for all lanes stays a scalar.
class LaneLoops::Writer {
 public:
  Writer(LaneLoops& text, const For& loop) : text_(text), var_(loop.var), lanes_(loop.lanes) {}

  void body(const Body& b) {
    pairs_ = lanes_ >= kPairedLanes && goes_from_words_to_bytes(b);
    for (BufferId id : text_.locals_of(b)) {
      const Buffer& buffer = text_.program_.buffer(id);
      locals_.insert(id);
      text_.declared_.insert(id);
      text_.line(fmt::format("tw_lanes<{}, {}> {};", storage_type(buffer.type), lanes_,
                             text_.names_.declare(id, buffer.name)));
    }
    find_quiet(b);
    for (const Stmt& s : b) statement(s);
  }

 private:
  // Scalars of the body that never hold a NaN that signals: an instruction makes what they get.
  void find_quiet(const Body& b) {
    quiet_ = locals_;
    for (size_t known = quiet_.size() + 1; known > quiet_.size();) {
      known = quiet_.size();
      walk(b, [&](const Stmt& s) {
        if (const auto* n = s.as<Store>(); n && !is_quiet(n->value)) quiet_.erase(n->to.buffer);
      });
    }
  }
  bool is_quiet(const Expr& e) const {
    if (const auto* n = e.as<Load>()) return quiet_.contains(n->buffer);
    const auto* n = e.as<Binary>();
    const auto number = constant_float(e);
    return (number && !std::isnan(*number)) || (n && (n->op == BinaryOp::Min || n->op == BinaryOp::Max));
  }

  // Then the order of lanes between is free: a vector of words is its even ones and its odd ones, an instruction each.
  bool goes_from_words_to_bytes(const Body& b) const {
    bool words = false, others = false;
    walk(b, [&](const Stmt& s) {
      const auto* n = s.as<Store>();
      if (!n) return;
      const Buffer& to = text_.program_.buffer(n->to.buffer);
      others = others || (to.rank() > 0 ? to.type != e4m3 && to.type != e5m2 : is_narrow_float(to.type));
    });
    std::set<VarId> inside = bound_vars(b);
    inside.insert(var_);
    walk_exprs(b, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      if (!n || text_.program_.buffer(n->buffer).rank() == 0) return;
      const std::set<VarId> used = used_vars(e);
      if (std::none_of(used.begin(), used.end(), [&](VarId v) { return inside.contains(v); })) return;
      (e->type == bf16 ? words : others) = true;
    });
    return words && !others;
  }

  // ---- what goes with the lane
  bool varies(const Expr& e) const {
    bool found = false;
    walk(e, [&](const Expr& x) {
      const auto* v = x.as<Var>();
      const auto* l = x.as<Load>();
      found = found || (v && (v->id == var_ || values_.contains(v->id) || indices_.contains(v->id))) ||
              (l && locals_.contains(l->buffer));
    });
    return found;
  }
  std::string first(BufferId id, const std::vector<Expr>& index) const { return "&" + text_.element(id, index); }

  // ---- statements
  void statement(const Stmt& s) {
    text_.note_source(s);
    if (const auto* n = s.as<Let>()) return let(*n, s);
    if (const auto* n = s.as<For>()) return n->kind == LoopKind::Unroll ? pairs(*n) : turns(*n);
    const auto* n = s.as<Store>();
    check_internal(n, "{} among lanes", name_of(s));
    store(*n);
  }
  // All lanes have the same turns.
  void turns(const For& n) {
    const VarInfo& v = text_.program_.var(n.var);
    const std::string begin = text_.text(n.begin), end = text_.text(text_.end_of(n));
    text_.names_.open();
    const std::string name = text_.names_.declare(n.var, v.name);
    text_.open(fmt::format("for ({0} {1} = {2}; {1} < {3}; ++{1}) {{", c_type(v.type), name, begin, end));
    for (const Stmt& s : n.body) statement(s);
    text_.close();
    text_.names_.close();
  }
  // Two elements of each lane, side by side.
  void pairs(const For& n) {
    const Store& s = *n.body.front().as<Store>();
    const DType type = text_.program_.var(n.var).type;
    const auto of = [&](int64_t part, const Expr& e) { return substitute(e, {{n.var, ir::constant(type, part)}}); };
    std::vector<Expr> index;
    for (const Expr& e : s.to.indices) index.push_back(of(0, e));
    const std::string even = value(of(0, s.value)).unrounded, odd = value(of(1, s.value)).unrounded;
    std::set<std::string> pieces;
    const std::string name = function_name(store_text(text_.program_.buffer(s.to.buffer).type, even, pieces));
    text_.line(fmt::format("tw_write((uint32_t*){}, {}_interleaved{}({}, {}));", first(s.to.buffer, index), name,
                           flushed(s.to.buffer), even, odd));
  }
  void let(const Let& n, const Stmt& s) {
    if (!varies(n.value)) return text_.body({s});
    if (n.value->type.is_int() && !reads_elements(n.value)) {  // an index: the first lane's has its name
      indices_.insert(n.var);
      return text_.body({s});
    }
    const std::string v = value(n.value).text;
    const std::string name = text_.names_.declare(n.var, text_.program_.var(n.var).name);
    values_.insert(n.var);
    text_.line(fmt::format("const auto {} = {};", name, v));
  }
  void store(const Store& n) {
    const std::string v = bits(n.value, text_.program_.buffer(n.to.buffer).type, flushed(n.to.buffer));
    if (locals_.contains(n.to.buffer))
      text_.line(fmt::format("{} = {};", text_.names_.of(n.to.buffer), v));
    else
      text_.line(fmt::format("tw_write({}, {});", first(n.to.buffer, n.to.indices), v));
  }

  // ---- values
  // What memory holds of a value, as lanes.
  std::string bits(const Expr& e, DType type, const char* how = "") {
    if (!varies(e)) return all(type, text_.bits(e));
    if (const auto* n = e.as<Load>()) return row(*n);
    const Text v = value(e);
    if (!is_narrow_float(type)) return v.text;
    std::set<std::string> pieces;
    return call(function_name(store_text(type, v.unrounded, pieces)) + how, {v.unrounded});
  }
  const char* flushed(BufferId to) const { return text_.flushed_.contains(to) ? "_flushed" : ""; }
  std::string all(DType type, const std::string& bits) const {
    return fmt::format("tw_all<{}>(({})({}))", lanes_, storage_type(type), bits);
  }
  std::string row(const Load& n) const {
    if (locals_.contains(n.buffer)) return text_.names_.of(n.buffer);
    return fmt::format("tw_read<{}>({})", lanes_, first(n.buffer, n.indices));
  }

  // Of the expression's C type; without a text but `unrounded`, if it is yet to be rounded.
  Text value(const Expr& e) {
    if (!varies(e)) return text_.value(e);
    const DType type = e->type;
    if (const auto* n = e.as<Var>()) return {text_.names_.of(n->id)};
    if (const auto* n = e.as<Load>()) return load(*n, type);
    if (const auto* n = e.as<Select>()) {
      const std::string c = value(n->condition).text, a = operand(n->a), b = operand(n->b);
      return {fmt::format("tw_select({}, {}, {})", c, a, b)};
    }
    if (const auto* n = e.as<Cast>()) return conversion(*n, type);
    if (const auto* n = e.as<Bitcast>()) return {fmt::format("tw_as<{}>({})", c_type(type), value(n->value).text)};
    if (const auto* n = e.as<Unary>()) return {"-" + in(value(n->a), Binds::Primary), Binds::Unary};
    if (const auto* n = e.as<Sum>()) return sum(*n, type);
    if (const auto* n = e.as<Binary>()) return binary(*n);
    if (const auto* n = e.as<Fma>()) return function_of({n->a, n->b, n->c}, c_name(Function::Fma, type));
    const auto* n = e.as<Intrinsic>();
    check_internal(n, "an address among lanes");
    return function_of(n->args, c_name(n->function, n->args[0]->type));
  }
  Text load(const Load& n, DType type) const {
    const std::string r = row(n);
    std::set<std::string> pieces;
    const std::string loaded = load_text(type, r, pieces);
    if (loaded == r) return {r};
    const std::string name = lane_function(function_name(loaded));
    if (locals_.contains(n.buffer)) return {fmt::format("{}({})", name, r)};
    return {fmt::format("{}<{}>({})", name, lanes_, first(n.buffer, n.indices))};
  }
  Text conversion(const Cast& n, DType type) {
    Text from = value(n.value);
    if (type == n.value->type) return from;
    if (type.is_int()) return {fmt::format("tw_as<{}>({})", c_type(type), from.text)};
    if (type == f32) return {from.text, from.binds};
    return {"", Binds::Primary, from.text};
  }
  Text sum(const Sum& n, DType type) {
    Text out = value(n.terms[0].value);
    for (size_t t = 1; t < n.terms.size(); ++t)
      out =
          text_.binary(n.terms[t].coefficient > 0 ? BinaryOp::Add : BinaryOp::Sub, type, out, value(n.terms[t].value));
    return out;
  }
  Text binary(const Binary& n) {
    if (n.op == BinaryOp::Min || n.op == BinaryOp::Max) {
      const std::string name(c_name(n.op == BinaryOp::Min ? Function::Min : Function::Max, f32));
      const bool a = is_quiet(n.a), b = is_quiet(n.b);
      return function_of({n.a, n.b}, a || b ? fmt::format("{}<{}, {}>", name, a, b) : name);
    }
    const Text a = value(n.a), b = value(n.b);
    if (n.op == BinaryOp::And) return text_.binary(BinaryOp::BitAnd, i32, a, b);
    if (n.op == BinaryOp::Or) return text_.binary(BinaryOp::BitOr, i32, a, b);
    return text_.binary(n.op, n.a->type, a, b);
  }
  // As lanes, also what is the same for all.
  std::string operand(const Expr& e) {
    const std::string v = value(e).text;
    return varies(e) ? v : all(e->type, v);
  }
  Text function_of(const std::vector<Expr>& args, const std::string& name) {
    std::vector<std::string> texts;
    for (const Expr& a : args) texts.push_back(operand(a));
    return {call(name, texts)};
  }
  std::string call(const std::string& scalar, const std::vector<std::string>& args) const {
    return fmt::format("{}({})", lane_function(scalar), fmt::join(args, ", "));
  }
  static std::string function_name(const std::string& text) { return text.substr(0, text.find('(')); }
  // What lanes.text.h calls the scalar's counterpart.
  std::string lane_function(const std::string& name) const {
    const bool in_pairs = pairs_ && (name.starts_with("load_") || name.starts_with("store_"));
    return in_pairs ? name + "_pairs" : name;
  }

  LaneLoops& text_;
  const VarId var_;
  const int64_t lanes_;
  bool pairs_ = false;
  std::set<VarId> values_;     // names of lanes
  std::set<VarId> indices_;    // names of integers that count with the lane
  std::set<BufferId> locals_;  // scalars of the body: lanes
  std::set<BufferId> quiet_;   // of these
};

void LaneLoops::lane_loop(const For& n) {
  uses_lanes_ = true;
  const auto declared = declared_;
  const auto extent = constant_int(n.extent);
  const bool divides = extent && *extent % n.lanes == 0;
  const VarInfo& v = program_.var(n.var);
  const std::string type(c_type(v.type)), begin = text(n.begin), end = text(end_of(n));

  names_.open();
  const std::string name = names_.declare(n.var, v.name);
  std::string last = end;
  if (!divides) {
    line("{");
    ++depth_;
    last = names_.fresh(v.name + "_end");
    line(fmt::format("const {} {} = {};", type, last, end));
    line(fmt::format("{} {} = {};", type, name, begin));
    open(fmt::format("for (; {0} + {1} <= {2}; {0} += {1}) {{", name, n.lanes, last));
  } else {
    open(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += {4}) {{", type, name, begin, last, n.lanes));
  }
  Writer(*this, n).body(n.body);
  declared_ = declared;
  close();
  if (!divides) {
    if (const std::string pragma = loop_pragma(n); !pragma.empty()) line(pragma);
    open(fmt::format("for (; {0} < {1}; ++{0}) {{", name, last));
    body(n.body);
    close();
    --depth_;
    line("}");
  }
  names_.close();
}

}  // namespace tilewright::codegen
