#include "codegen/cpu/lanes.h"

#include "analysis/slope.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "scalar/convert.h"
#include "scalar/functions.h"

namespace tilewright::codegen {

using namespace ir;

namespace {

// The functions of lanes.text.h. `wins`: in fewer instructions than compilers make of the scalar.
struct LaneFunction {
  std::string_view name;
  bool wins;
};
constexpr LaneFunction kFunctions[] = {
    {"abs_f32", false},   {"fma_f32", false},   {"min_f32", false},   {"max_f32", false}, {"clamp_f32", false},
    {"load_bf16", false}, {"exp_f32", true},    {"exp2_f32", true},   {"load_f16", true}, {"store_f16", true},
    {"store_bf16", true}, {"store_e4m3", true}, {"store_e5m2", true},
};

bool is_narrow_float(DType type) { return type.is_float() && type != f32 && type != f64 && type != tf32; }
bool is_lane_type(DType type) { return type == f32 || type == i32 || type == u32; }

constexpr int64_t kMostLanes = 64, kLeastLanes = 16;
// Nodes of an index that names are put into: names of names may double it at each step.
constexpr uint32_t kLargestIndex = 1024;

// A multiple of which the extent is, or as many as leave something.
int64_t lanes_of(const Expr& extent) {
  const auto n = constant_int(extent);
  if (!n) return kMostLanes;
  for (int64_t lanes = kMostLanes; lanes >= kLeastLanes; lanes /= 2)
    if (*n % lanes == 0) return lanes;
  for (int64_t lanes = kMostLanes; lanes >= kLeastLanes; lanes /= 2)
    if (*n >= lanes) return lanes;
  return 0;
}

}  // namespace

// The body of one loop. What is the same for all lanes stays a scalar.
class LaneLoops::Writer {
 public:
  Writer(LaneLoops& text, VarId var, int64_t lanes) : text_(text), var_(var), lanes_(lanes) {}

  // False: something in it is no matter of lanes; what has been written counts for nothing.
  bool body(const Body& b) {
    pairs_ = lanes_ >= 2 * kLeastLanes && goes_from_words_to_bytes(b);
    for (BufferId id : text_.locals_of(b)) {
      const Buffer& buffer = text_.program_.buffer(id);
      if (buffer.rank() != 0 || buffer.type.is_packed()) return stays("an array of its own");
      locals_.insert(id);
      text_.declared_.insert(id);
      declare(text_.names_.declare(id, buffer.name), buffer.type);
    }
    return std::all_of(b.begin(), b.end(), [&](const Stmt& s) { return statement(s); });
  }

  std::string function;  // the first that wins
  LocationId place;      // of it
  std::string why;       // body() was false

 private:
  bool stays(const std::string& what) {
    if (why.empty()) why = what;
    return false;
  }
  std::nullopt_t refuse(const std::string& what) {
    stays(what);
    return std::nullopt;
  }
  void declare(const std::string& name, DType type) {
    text_.line(fmt::format("tw_lanes<{}, {}> {};", storage_type(type), lanes_, name));
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
  // Do lanes that follow one another have elements that do?
  bool is_row(BufferId id, const std::vector<Expr>& index) const {
    const Buffer& b = text_.program_.buffer(id);
    if (b.memory || b.type.is_packed()) return false;
    const Expr at = substitute(text_.offset(id, index), indices_);
    bool plain = true;
    walk(at, [&](const Expr& x) {
      const auto* v = x.as<Var>();
      const auto* l = x.as<Load>();
      plain = plain && !(v && values_.contains(v->id)) && !(l && varies(x));
    });
    return plain && analysis::slope_through_casts(at, var_) == 1;
  }
  std::string first(BufferId id, const std::vector<Expr>& index) const { return "&" + text_.element(id, index); }

  // ---- statements
  bool statement(const Stmt& s) {
    text_.note_source(s);
    now_ = s->location;
    if (const auto* n = s.as<Let>()) return let(*n, s);
    if (const auto* n = s.as<Store>()) return store(*n);
    return stays("a statement other than elements and names");
  }
  bool let(const Let& n, const Stmt& s) {
    if (!varies(n.value)) return text_.body({s}), true;
    if (n.value->type.is_int() && !reads_elements(n.value)) {  // an index: the first lane's has its name
      const Expr whole = substitute(n.value, indices_);
      if (whole->size > kLargestIndex) return stays("an index of names of names of names");
      indices_[n.var] = whole;
      return text_.body({s}), true;
    }
    const auto v = value(n.value);
    if (!v || v->text.empty()) return false;
    const std::string name = text_.names_.declare(n.var, text_.program_.var(n.var).name);
    values_.insert(n.var);
    text_.line(fmt::format("const auto {} = {};", name, v->text));
    return true;
  }
  bool store(const Store& n) {
    const DType type = text_.program_.buffer(n.to.buffer).type;
    const bool local = locals_.contains(n.to.buffer);
    if (!local && !is_row(n.to.buffer, n.to.indices)) return stays("elements that do not lie side by side");
    const auto v = bits(n.value, type);
    if (!v) return false;
    if (local)
      text_.line(fmt::format("{} = {};", text_.names_.of(n.to.buffer), *v));
    else
      text_.line(fmt::format("tw_write({}, {});", first(n.to.buffer, n.to.indices), *v));
    return true;
  }
  bool reads_elements(const Expr& e) const {
    bool found = false;
    walk(e, [&](const Expr& x) { found = found || x.as<Load>(); });
    return found;
  }

  // ---- values
  // What memory holds of a value, as lanes.
  std::optional<std::string> bits(const Expr& e, DType type) {
    if (!varies(e)) return all(type, text_.bits(e));
    if (const auto* n = e.as<Load>()) return row(*n);
    const auto v = value(e);
    if (!v) return std::nullopt;
    if (!is_narrow_float(type)) return v->text;
    if (v->unrounded.empty()) return refuse("a rounding that is not to memory");
    std::set<std::string> pieces;
    const std::string stored = store_text(type, v->unrounded, pieces);
    return call(stored.substr(0, stored.find('(')), {v->unrounded});
  }
  std::string all(DType type, const std::string& bits) const {
    return fmt::format("tw_all<{}>(({})({}))", lanes_, storage_type(type), bits);
  }
  std::optional<std::string> row(const Load& n) {
    if (locals_.contains(n.buffer)) return text_.names_.of(n.buffer);
    if (!is_row(n.buffer, n.indices)) return refuse("elements that do not lie side by side");
    return fmt::format("tw_read<{}>({})", lanes_, first(n.buffer, n.indices));
  }

  // Of the expression's C type; without a text but `unrounded`, if it is yet to be rounded.
  std::optional<Text> value(const Expr& e) {
    if (!varies(e)) return text_.value(e);
    const DType type = e->type;
    if (const auto* n = e.as<Var>()) {
      if (!values_.contains(n->id)) return refuse("the number of an iteration as a value");
      return Text{text_.names_.of(n->id)};
    }
    if (const auto* n = e.as<Load>()) return load(*n, type);
    if (const auto* n = e.as<Select>()) return select(*n, type);
    if (const auto* n = e.as<Cast>()) return conversion(*n, type);
    if (const auto* n = e.as<Bitcast>()) {
      const auto v = value(n->value);
      if (!v || !is_lane_type(type) || !is_lane_type(n->value->type)) return refuse("bits of other types");
      return Text{fmt::format("tw_as<{}>({})", c_type(type), v->text)};
    }
    if (type != f32 && !(type.is_int() && is_lane_type(type)) && !type.is_bool())
      return refuse(fmt::format("arithmetic of {}", type.name()));
    if (const auto* n = e.as<Unary>()) {
      const auto v = value(n->a);
      if (!v || n->op != UnaryOp::Neg || type != f32) return refuse("an operator on bits");
      return Text{"-" + in(*v, Binds::Primary), Binds::Unary};
    }
    if (const auto* n = e.as<Sum>()) return sum(*n, type);
    if (const auto* n = e.as<Binary>()) return binary(*n);
    if (const auto* n = e.as<Fma>()) return function_of({n->a, n->b, n->c}, c_name(Function::Fma, type));
    if (const auto* n = e.as<Intrinsic>()) return function_of(n->args, c_name(n->function, n->args[0]->type));
    return refuse("an address");
  }
  std::optional<Text> load(const Load& n, DType type) {
    const auto r = row(n);
    if (!r) return std::nullopt;
    std::set<std::string> pieces;
    const std::string loaded = load_text(type, *r, pieces);
    if (loaded == *r) return is_lane_type(type) || type == tf32 ? std::optional(Text{*r}) : refuse("other integers");
    const auto name = lane_function(loaded.substr(0, loaded.find('(')));
    if (!name) return std::nullopt;
    if (locals_.contains(n.buffer)) return Text{fmt::format("{}({})", *name, *r)};
    return Text{fmt::format("{}<{}>({})", *name, lanes_, first(n.buffer, n.indices))};
  }
  std::optional<Text> select(const Select& n, DType type) {
    // Both sides are computed: elements of theirs must be those that the condition reads anyway.
    for (const Expr* side : {&n.a, &n.b}) {
      bool known = true;
      walk(*side, [&](const Expr& x) {
        if (!x.as<Load>() || !varies(x)) return;
        bool found = false;
        walk(n.condition, [&](const Expr& y) { found = found || equal(x, y); });
        known = known && found;
      });
      if (!known) return refuse("elements that are read under a condition");
    }
    if (!varies(n.condition) || !is_lane_type(type)) return refuse("a condition that is the same for all");
    const auto c = value(n.condition);
    const auto a = operand(n.a), b = operand(n.b);
    if (!c || !a || !b) return std::nullopt;
    return Text{fmt::format("tw_select({}, {}, {})", c->text, *a, *b)};
  }
  std::optional<Text> conversion(const Cast& n, DType type) {
    const auto from = value(n.value);
    if (!from || from->text.empty()) return std::nullopt;
    const DType old = n.value->type;
    if (type == old) return from;
    if (type.is_int() && old.is_int() && is_lane_type(type) && is_lane_type(old))
      return Text{fmt::format("tw_as<{}>({})", c_type(type), from->text)};
    if (!old.is_float() || old == f64 || n.rounding != Rounding::Nearest)
      return refuse(fmt::format("a conversion from {} to {}", old.name(), type.name()));
    if (type == f32) return Text{from->text, from->binds};
    if (!is_narrow_float(type)) return refuse(fmt::format("a conversion to {}", type.name()));
    return Text{"", Binds::Primary, from->text};
  }
  std::optional<Text> sum(const Sum& n, DType type) {
    if (n.constant != 0) return refuse("a sum with a constant");
    std::optional<Text> out;
    for (const Term& t : n.terms) {
      if (t.coefficient != 1 && t.coefficient != -1) return refuse("a sum of multiples");
      const auto v = value(t.value);
      if (!v || v->text.empty() || (!out && t.coefficient < 0)) return refuse("a sum that begins below zero");
      out = out ? text_.binary(t.coefficient > 0 ? BinaryOp::Add : BinaryOp::Sub, type, *out, *v) : v;
    }
    return out;
  }
  std::optional<Text> binary(const Binary& n) {
    const DType type = n.a->type;
    const auto a = value(n.a), b = value(n.b);
    if (!a || !b || a->text.empty() || b->text.empty()) return std::nullopt;
    const bool numbers = type == f32, whole = type == i32 || type == u32;
    switch (n.op) {
      case BinaryOp::Mul:
      case BinaryOp::Div:
        if (numbers) return text_.binary(n.op, type, *a, *b);
        break;
      case BinaryOp::Add:
      case BinaryOp::Sub:
      case BinaryOp::Lt:
      case BinaryOp::Le:
      case BinaryOp::Eq:
      case BinaryOp::Ne:
        if (numbers || whole) return text_.binary(n.op, type, *a, *b);
        break;
      case BinaryOp::BitAnd:
      case BinaryOp::BitOr:
      case BinaryOp::BitXor:
        if (whole) return text_.binary(n.op, type, *a, *b);
        break;
      case BinaryOp::And:
      case BinaryOp::Or:
        if (varies(n.a) && varies(n.b))
          return text_.binary(n.op == BinaryOp::And ? BinaryOp::BitAnd : BinaryOp::BitOr, i32, *a, *b);
        break;
      case BinaryOp::Min:
      case BinaryOp::Max:
        if (numbers) return function_of({n.a, n.b}, c_name(n.op == BinaryOp::Min ? Function::Min : Function::Max, f32));
        break;
      default: break;
    }
    return refuse(fmt::format("an operator on {}", type.name()));
  }
  // As lanes, also what is the same for all.
  std::optional<std::string> operand(const Expr& e) {
    const auto v = value(e);
    if (!v || v->text.empty()) return std::nullopt;
    return varies(e) ? v->text : all(e->type, v->text);
  }
  std::optional<Text> function_of(const std::vector<Expr>& args, const std::string& name) {
    std::vector<std::string> texts;
    for (const Expr& a : args) {
      if (a->type != f32) return refuse(fmt::format("{} of {}", name, a->type.name()));
      const auto t = operand(a);
      if (!t) return std::nullopt;
      texts.push_back(*t);
    }
    const auto called = call(name, texts);
    return called ? std::optional(Text{*called}) : std::nullopt;
  }
  std::optional<std::string> call(const std::string& scalar, const std::vector<std::string>& args) {
    const auto name = lane_function(scalar);
    return name ? std::optional(fmt::format("{}({})", *name, fmt::join(args, ", "))) : std::nullopt;
  }
  // What lanes.text.h calls the scalar's counterpart.
  std::optional<std::string> lane_function(const std::string& name) {
    const auto* known = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                     [&](const LaneFunction& f) { return f.name == name; });
    if (known == std::end(kFunctions)) return refuse(name);
    if (known->wins && function.empty()) function = name, place = now_;
    const bool in_pairs = pairs_ && (name.starts_with("load_") || name.starts_with("store_"));
    return in_pairs ? name + "_pairs" : name;
  }

  LaneLoops& text_;
  const VarId var_;
  const int64_t lanes_;
  bool pairs_ = false;
  LocationId now_;
  std::set<VarId> values_;                   // names of lanes
  std::unordered_map<VarId, Expr> indices_;  // names of integers that count with the lane
  std::set<BufferId> locals_;                // scalars of the body: lanes
};

bool LaneLoops::lane_loop(const For& n) {
  const int64_t lanes = lanes_of(n.extent);
  if (n.kind != LoopKind::Vectorized || lanes == 0) return false;
  const size_t written = out_.size();
  const std::string source = last_source_;
  const auto declared = declared_;
  const auto pieces = pieces_;
  const auto extent = constant_int(n.extent);
  const bool divides = extent && *extent % lanes == 0;
  const VarInfo& v = program_.var(n.var);
  const std::string type(c_type(v.type)), begin = text(n.begin), end = text(ir::add(n.begin, n.extent));

  const size_t depth = depth_;
  names_.open();
  const std::string name = names_.declare(n.var, v.name);
  std::string last = end;
  if (!divides) {
    line("{");
    ++depth_;
    last = names_.fresh(v.name + "_end");
    line(fmt::format("const {} {} = {};", type, last, end));
    line(fmt::format("{} {} = {};", type, name, begin));
    open(fmt::format("for (; {0} + {1} <= {2}; {0} += {1}) {{", name, lanes, last));
  } else
    open(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += {4}) {{", type, name, begin, last, lanes));
  Writer writer(*this, n.var, lanes);
  const bool done = writer.body(n.body) && !writer.function.empty();
  declared_ = declared;
  close();
  if (done && !divides) {
    if (const std::string pragma = loop_pragma(n); !pragma.empty()) line(pragma);
    open(fmt::format("for (; {0} < {1}; ++{0}) {{", name, last));
    body(n.body);
    close();
    --depth_;
    line("}");
  }
  names_.close();
  depth_ = depth;
  if (done || !writer.function.empty())
    lane_reports_.push_back(
        {program_.location(writer.place), writer.function, done ? lanes : 0, done ? "" : writer.why});
  if (done) return uses_lanes_ = true;
  out_.resize(written), last_source_ = source, pieces_ = pieces;
  return false;
}

}  // namespace tilewright::codegen
