#include "passes/loops/choose_lanes.h"

#include "analysis/element_offset.h"
#include "analysis/locals.h"
#include "analysis/slope.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "scalar/convert.h"
#include "scalar/functions.h"

namespace tilewright::passes {

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

bool reads_elements(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) { found = found || x.as<Load>(); });
  return found;
}

// Of a conversion of memory's: its name, without operands.
std::string function_name(const std::string& text) { return text.substr(0, text.find('(')); }

// Whether all of a loop's body is a matter of lanes. What is the same for all lanes stays a scalar.
class Question {
 public:
  Question(const ProgramTables& program, VarId var) : program_(program), var_(var) {}

  bool body(const Body& b, const std::set<BufferId>& own) {
    for (BufferId id : own) {
      const Buffer& buffer = program_.buffer(id);
      if (buffer.rank() != 0 || buffer.type.is_packed()) return stays("an array of its own");
      locals_.insert(id);
    }
    return std::all_of(b.begin(), b.end(), [&](const Stmt& s) { return statement(s); });
  }

  std::string function;  // the first that wins
  LocationId place;      // of it
  std::string why;       // body() was false

 private:
  // A value of lanes. ToRound: of a narrower format, which it is yet to be rounded to.
  enum class Held : uint8_t { No, Value, ToRound };

  bool stays(const std::string& what) {
    if (why.empty()) why = what;
    return false;
  }
  Held refuse(const std::string& what) {
    stays(what);
    return Held::No;
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
    const Buffer& b = program_.buffer(id);
    if (b.memory || b.type.is_packed()) return false;
    const Expr at = substitute(analysis::element_offset(program_, id, index), indices_);
    bool plain = true;
    walk(at, [&](const Expr& x) {
      const auto* v = x.as<Var>();
      const auto* l = x.as<Load>();
      plain = plain && !(v && values_.contains(v->id)) && !(l && varies(x));
    });
    return plain && analysis::slope_through_casts(at, var_) == 1;
  }

  // ---- statements
  bool statement(const Stmt& s) {
    now_ = s->location;
    if (const auto* n = s.as<Let>()) return let(*n);
    if (const auto* n = s.as<Store>()) return store(*n);
    return stays("a statement other than elements and names");
  }
  bool let(const Let& n) {
    if (!varies(n.value)) return true;
    if (n.value->type.is_int() && !reads_elements(n.value)) {  // an index: the first lane's has its name
      const Expr whole = substitute(n.value, indices_);
      if (whole->size > kLargestIndex) return stays("an index of names of names of names");
      indices_[n.var] = whole;
      return true;
    }
    if (value(n.value) != Held::Value) return false;
    values_.insert(n.var);
    return true;
  }
  bool store(const Store& n) {
    const bool local = locals_.contains(n.to.buffer);
    if (!local && !is_row(n.to.buffer, n.to.indices)) return stays("elements that do not lie side by side");
    return bits(n.value, program_.buffer(n.to.buffer).type);
  }

  // ---- values
  // What memory holds of a value.
  bool bits(const Expr& e, DType type) {
    if (!varies(e)) return true;
    if (const auto* n = e.as<Load>()) return row(*n);
    const Held v = value(e);
    if (v != Held::No && type.is_bool()) return stays("a condition that is kept");
    if (v == Held::No || !is_narrow_float(type)) return v != Held::No;
    if (v != Held::ToRound) return stays("a rounding that is not to memory");
    std::set<std::string> pieces;
    return is_known(function_name(store_text(type, "x", pieces)));
  }
  bool row(const Load& n) {
    return locals_.contains(n.buffer) || is_row(n.buffer, n.indices) || stays("elements that do not lie side by side");
  }

  Held value(const Expr& e) {
    if (!varies(e)) return Held::Value;
    const DType type = e->type;
    if (const auto* n = e.as<Var>())
      return values_.contains(n->id) ? Held::Value : refuse("the number of an iteration as a value");
    if (const auto* n = e.as<Load>()) return load(*n, type);
    if (const auto* n = e.as<Select>()) return select(*n, type);
    if (const auto* n = e.as<Cast>()) return conversion(*n, type);
    if (const auto* n = e.as<Bitcast>()) {
      const Held v = value(n->value);
      const bool known = v != Held::No && is_lane_type(type) && is_lane_type(n->value->type);
      return known ? Held::Value : refuse("bits of other types");
    }
    if (type != f32 && !(type.is_int() && is_lane_type(type)) && !type.is_bool())
      return refuse(fmt::format("arithmetic of {}", type.name()));
    if (const auto* n = e.as<Unary>()) {
      const Held v = value(n->a);
      const bool known = v != Held::No && n->op == UnaryOp::Neg && type == f32;
      return known ? Held::Value : refuse("an operator on bits");
    }
    if (const auto* n = e.as<Sum>()) return sum(*n);
    if (const auto* n = e.as<Binary>()) return binary(*n);
    if (const auto* n = e.as<Fma>()) return function_of({n->a, n->b, n->c}, c_name(Function::Fma, type));
    if (const auto* n = e.as<Intrinsic>()) return function_of(n->args, c_name(n->function, n->args[0]->type));
    return refuse("an address");
  }
  Held load(const Load& n, DType type) {
    if (!row(n)) return Held::No;
    std::set<std::string> pieces;
    const std::string loaded = load_text(type, "x", pieces);
    if (loaded == "x") return is_lane_type(type) || type == tf32 ? Held::Value : refuse("other integers");
    return is_known(function_name(loaded)) ? Held::Value : Held::No;
  }
  Held select(const Select& n, DType type) {
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
    const Held c = value(n.condition);
    const bool a = operand(n.a), b = operand(n.b);
    return c != Held::No && a && b ? Held::Value : Held::No;
  }
  Held conversion(const Cast& n, DType type) {
    const Held from = value(n.value);
    if (from != Held::Value) return Held::No;
    const DType old = n.value->type;
    if (type == old) return from;
    if (type.is_int() && old.is_int() && is_lane_type(type) && is_lane_type(old)) return Held::Value;
    if (!old.is_float() || old == f64 || n.rounding != Rounding::Nearest)
      return refuse(fmt::format("a conversion from {} to {}", old.name(), type.name()));
    if (type == f32) return Held::Value;
    return is_narrow_float(type) ? Held::ToRound : refuse(fmt::format("a conversion to {}", type.name()));
  }
  Held sum(const Sum& n) {
    if (n.constant != 0) return refuse("a sum with a constant");
    for (const Term& t : n.terms) {
      if (t.coefficient != 1 && t.coefficient != -1) return refuse("a sum of multiples");
      const bool first = &t == n.terms.data();
      if (value(t.value) != Held::Value || (first && t.coefficient < 0)) return refuse("a sum that begins below zero");
    }
    return Held::Value;
  }
  Held binary(const Binary& n) {
    const DType type = n.a->type;
    const Held a = value(n.a), b = value(n.b);
    if (a != Held::Value || b != Held::Value) return Held::No;
    const bool numbers = type == f32, whole = type == i32 || type == u32;
    bool known = false;
    switch (n.op) {
      case BinaryOp::Mul:
      case BinaryOp::Div: known = numbers; break;
      case BinaryOp::Add:
      case BinaryOp::Sub:
      case BinaryOp::Lt:
      case BinaryOp::Le:
      case BinaryOp::Eq:
      case BinaryOp::Ne: known = numbers || whole; break;
      case BinaryOp::BitAnd:
      case BinaryOp::BitOr:
      case BinaryOp::BitXor: known = whole; break;
      case BinaryOp::And:
      case BinaryOp::Or: known = varies(n.a) && varies(n.b); break;
      case BinaryOp::Min:
      case BinaryOp::Max:
        if (numbers) return function_of({n.a, n.b}, c_name(n.op == BinaryOp::Min ? Function::Min : Function::Max, f32));
        break;
      default: break;
    }
    return known ? Held::Value : refuse(fmt::format("an operator on {}", type.name()));
  }
  bool operand(const Expr& e) { return value(e) == Held::Value; }
  Held function_of(const std::vector<Expr>& args, const std::string& name) {
    for (const Expr& a : args) {
      if (a->type != f32) return refuse(fmt::format("{} of {}", name, a->type.name()));
      if (!operand(a)) return Held::No;
    }
    return is_known(name) ? Held::Value : Held::No;
  }
  bool is_known(const std::string& name) {
    const auto* known = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                     [&](const LaneFunction& f) { return f.name == name; });
    if (known == std::end(kFunctions)) return stays(name);
    if (known->wins && function.empty()) function = name, place = now_;
    return true;
  }

  const ProgramTables& program_;
  const VarId var_;
  LocationId now_;
  std::set<VarId> values_;                   // names of lanes
  std::unordered_map<VarId, Expr> indices_;  // names of integers that count with the lane
  std::set<BufferId> locals_;                // scalars of the body: lanes
};

class Chooser {
 public:
  explicit Chooser(const ProgramTables& program) : program_(program) {}

  Body body(const Body& in) {
    const std::set<BufferId> own = analysis::locals_of(in, program_, declared_);
    declared_.insert(own.begin(), own.end());
    Body out;
    for (const Stmt& s : in) out.push_back(inside(s));
    for (BufferId id : own) declared_.erase(id);
    return out;
  }

  std::vector<LaneChoice> choices;

 private:
  Stmt inside(const Stmt& s) {
    if (const auto* n = s.as<For>()) {
      For f = *n;
      f.lanes = lanes(*n);
      if (f.lanes == 0) f.body = body(n->body);
      return make_stmt(std::move(f), s->location);
    }
    if (const auto* n = s.as<If>()) {
      Body first = body(n->then_body);
      return make_stmt(If{n->condition, std::move(first), body(n->else_body)}, s->location);
    }
    if (const auto* n = s.as<While>()) return make_stmt(While{n->condition, body(n->body)}, s->location);
    if (const auto* n = s.as<Role>()) return make_stmt(Role{n->begin, n->end, body(n->body)}, s->location);
    return s;
  }
  int64_t lanes(const For& n) {
    const int64_t lanes = lanes_of(n.extent);
    if (n.kind != LoopKind::Vectorized || lanes == 0) return 0;
    Question question(program_, n.var);
    const bool can = question.body(n.body, analysis::locals_of(n.body, program_, declared_));
    if (question.function.empty()) return 0;
    choices.push_back({program_.location(question.place), question.function, can ? lanes : 0, can ? "" : question.why});
    return can ? lanes : 0;
  }

  const ProgramTables& program_;
  std::set<BufferId> declared_;  // locals around
};

}  // namespace

LoopProgram choose_lanes(LoopProgram program, const target::CpuFeatures& features) {
  if (!features.avx512) return program;
  for (Launch& launch : program.launches) launch.body = Chooser(program).body(launch.body);
  return program;
}

std::vector<LaneChoice> lane_choices(const LoopProgram& program, const target::CpuFeatures& features) {
  if (!features.avx512) return {};
  Chooser chooser(program);
  for (const Launch& launch : program.launches) chooser.body(launch.body);
  return std::move(chooser.choices);
}

}  // namespace tilewright::passes
