#include "passes/loops/choose_lanes.h"

#include <limits>

#include "analysis/element_offset.h"
#include "analysis/locals.h"
#include "analysis/slope.h"
#include "ir/joins.h"
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
    if (const auto* n = s.as<For>(); n && n->kind == LoopKind::Serial && !varies(n->begin) && !varies(n->extent))
      return std::all_of(n->body.begin(), n->body.end(), [&](const Stmt& x) { return statement(x); });
    if (const auto* n = s.as<For>(); n && n->kind == LoopKind::Unroll) return pairs(*n);
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

  // Two elements a lane that lie side by side, the lanes' behind one another: for part in 0..2: row[lane, part] =
  // value.
  bool pairs(const For& parts) {
    const auto* store = parts.body.size() == 1 ? parts.body[0].as<Store>() : nullptr;
    if (!store || constant_int(parts.begin) != 0 || constant_int(parts.extent) != 2 || varies(parts.extent))
      return stays("a statement other than elements and names");
    const Buffer& b = program_.buffer(store->to.buffer);
    const Expr at = substitute(analysis::element_offset(program_, store->to.buffer, store->to.indices), indices_);
    const bool beside = b.type == bf16 && !b.memory && analysis::slope_through_casts(at, var_) == 2 &&
                        analysis::slope_through_casts(at, parts.var) == 1 && !reads_elements(at);
    if (!beside) return stays("elements that do not lie side by side");
    for (int64_t part = 0; part < 2; ++part) {
      const Expr value = substitute(store->value, {{parts.var, constant(program_.var(parts.var).type, part)}});
      if (!varies(value)) return stays("a pair that is the same for all");
      if (value.as<Load>()) return stays("a pair that is copied");
      if (!bits(value, b.type)) return false;
    }
    return true;
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

constexpr const char* kRunningRow = "a row that all turns join";
// Lanes of maxima that are under way at a time: two vectors a cycle, which take four.
constexpr int64_t kLanesUnderWay = 128;

class Chooser {
 public:
  Chooser(ProgramTables& program, size_t launch) : program_(program), launch_(static_cast<int32_t>(launch)) {}

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
      if (const std::optional<Stmt> row = running_row(*n, s->location)) return *row;
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
    const auto turns = std::ranges::find_if(n.body, [](const Stmt& s) { return s.as<For>() != nullptr; });
    if (turns != n.body.end())
      choices.push_back({program_.location((*turns)->location), kRunningRow, can ? lanes : 0, can ? "" : question.why});
    if (!question.function.empty())
      choices.push_back(
          {program_.location(question.place), question.function, can ? lanes : 0, can ? "" : question.why});
    return can && (turns != n.body.end() || !question.function.empty()) ? lanes : 0;
  }

  // ---- rows that stay in registers
  // for k: for lane: row[lane] = f(row[lane], ...) keeps the row in memory, which each turn waits for. The other way
  // round, each lane has all turns, and its element of the row is a scalar of its own.
  std::optional<Stmt> running_row(const For& turns, LocationId at) {
    const auto* g = turns.kind == LoopKind::Serial && turns.body.size() == 1 ? turns.body[0].as<For>() : nullptr;
    if (!g || g->kind != LoopKind::Vectorized || constant_int(g->begin) != 0) return std::nullopt;
    const int64_t lanes = constant_int(g->extent).value_or(0);
    if (lanes == 0 || lanes > kMostLanes || lanes != lanes_of(g->extent)) return std::nullopt;
    if (reads_elements(turns.begin) || reads_elements(turns.extent)) return std::nullopt;
    const std::map<BufferId, std::vector<Expr>> rows = rows_of(*g, turns.var);
    if (rows.empty()) return std::nullopt;

    const size_t buffers = program_.buffers.size();
    std::map<BufferId, BufferId> scalars;
    For each = *g, inner = turns;
    each.body.clear();
    for (const auto& [id, index] : rows) {
      Buffer b;
      b.name = program_.buffer(id).name, b.type = program_.buffer(id).type;
      b.space = Space::Local, b.launch = launch_;
      scalars[id] = program_.new_buffer(std::move(b));
      each.body.push_back(make_stmt(Store{{scalars[id], {}}, load(id, index, program_.buffer(id).type)}, at));
    }
    inner.body = rewrite_exprs(g->body, [&](const Expr& e) -> std::optional<Expr> {
      const auto* n = e.as<Load>();
      const auto s = n ? scalars.find(n->buffer) : scalars.end();
      return s != scalars.end() ? std::optional(load(s->second, {}, e->type)) : std::nullopt;
    });
    inner.body = rewrite(inner.body, [&](const Stmt& x) -> std::optional<Body> {
      const auto* n = x.as<Store>();
      const auto s = n ? scalars.find(n->to.buffer) : scalars.end();
      if (s == scalars.end()) return std::nullopt;
      return Body{make_stmt(Store{{s->second, {}}, n->value}, x->location)};
    });
    for (Stmt& s : in_chains(std::move(inner), lanes, at)) each.body.push_back(std::move(s));
    for (const auto& [id, index] : rows)
      each.body.push_back(make_stmt(Store{{id, index}, load(scalars[id], {}, program_.buffer(id).type)}, at));

    Question question(program_, each.var);
    const bool can = question.body(each.body, analysis::locals_of(each.body, program_, declared_));
    if (!can) {
      choices.push_back({program_.location(at), kRunningRow, 0, question.why});
      program_.buffers.resize(buffers);
      return std::nullopt;
    }
    each.lanes = this->lanes(each);
    return make_stmt(std::move(each), at);
  }
  // A maximum or minimum of all turns, in several that do not wait for each other. They begin with what counts for
  // nothing, so that none is ever NaN, and meet the row at the end.
  Body in_chains(For turns, int64_t lanes, LocationId at) {
    const auto* store = turns.body.size() == 1 ? turns.body[0].as<Store>() : nullptr;
    const auto count = constant_int(turns.extent);
    if (!store || !store->to.indices.empty() || !count || program_.buffer(store->to.buffer).type != f32)
      return {make_stmt(std::move(turns), at)};
    const Expr total = load(store->to.buffer, {}, f32);
    const auto extreme = extreme_of(store->value, total);
    int64_t chains = std::max<int64_t>(1, kLanesUnderWay / lanes);
    while (chains > 1 && *count % chains != 0) chains /= 2;
    if (!extreme || chains == 1 || *count == chains) return {make_stmt(std::move(turns), at)};
    const double infinity = std::numeric_limits<double>::infinity();
    Body out;
    For some = turns;
    some.var = program_.new_var(program_.var(turns.var).name, program_.var(turns.var).type);
    some.begin = constant(turns.begin->type, int64_t{0}), some.body.clear();
    some.extent = constant(turns.extent->type, *count / chains);
    std::vector<Expr> parts;
    for (int64_t c = 0; c < chains; ++c) {
      Buffer b = program_.buffer(store->to.buffer);
      b.name += "_part";
      const BufferId id = program_.new_buffer(std::move(b));
      parts.push_back(load(id, {}, f32));
      const DType type = program_.var(some.var).type;
      const Expr turn = add(cast(turns.begin, type), ir::sum({{chains, var(some.var, type)}}, c, type));
      const Expr x = substitute(extreme->x, {{turns.var, turn}});
      out.push_back(make_stmt(Store{{id, {}}, constant(f32, extreme->op == BinaryOp::Max ? -infinity : infinity)}, at));
      some.body.push_back(make_stmt(Store{{id, {}}, binary(extreme->op, parts.back(), x)}, turns.body[0]->location));
    }
    out.push_back(make_stmt(std::move(some), at));
    Expr joined = parts[0];
    for (size_t c = 1; c < parts.size(); ++c) joined = binary(extreme->op, joined, parts[c]);
    const Element first = {parts[0].as<Load>()->buffer, {}};
    out.push_back(make_stmt(Store{first, joined}, at));
    out.push_back(make_stmt(Store{store->to, extreme_so_far(extreme->op, total, parts[0])}, at));
    return out;
  }
  // The rows that all turns read and write at the same elements, and the elements.
  std::map<BufferId, std::vector<Expr>> rows_of(const For& g, VarId turn) const {
    std::map<BufferId, std::vector<Expr>> rows;
    std::set<VarId> changing = bound_vars(g.body);
    changing.insert(turn);
    for (const Stmt& s : g.body) {
      const auto* n = s.as<Store>();
      if (!n && !s.as<Let>()) return {};
      if (!n) continue;
      const Buffer& b = program_.buffer(n->to.buffer);
      bool same = b.space == Space::Shared && b.rank() > 0 && is_lane_type(b.type) && !b.is_view();
      for (const Expr& e : n->to.indices)
        for (VarId v : used_vars(e)) same = same && !changing.contains(v);
      for (const Expr& e : n->to.indices) same = same && !reads_elements(e);
      if (same) rows.try_emplace(n->to.buffer, n->to.indices);
    }
    auto drop = [&](BufferId id, const std::vector<Expr>& index) {
      const auto row = rows.find(id);
      if (row != rows.end() && !equal(row->second, index)) rows.erase(row);
    };
    std::set<BufferId> read;
    walk(g.body, [&](const Stmt& s) {
      if (const auto* n = s.as<Store>()) drop(n->to.buffer, n->to.indices);
    });
    walk_exprs(g.body, [&](const Expr& e) {
      if (const auto* n = e.as<Load>()) read.insert(n->buffer), drop(n->buffer, n->indices);
      if (const auto* n = e.as<Address>()) rows.erase(n->buffer);
    });
    std::erase_if(rows, [&](const auto& row) {
      const bool viewed = std::ranges::any_of(program_.buffers, [&](const Buffer& x) { return x.root == row.first; });
      return viewed || !read.contains(row.first);
    });
    return rows;
  }

  ProgramTables& program_;
  int32_t launch_;
  std::set<BufferId> declared_;  // locals around
};

}  // namespace

LoopProgram choose_lanes(LoopProgram program, const target::CpuFeatures& features) {
  if (!features.avx512) return program;
  for (size_t i = 0; i < program.launches.size(); ++i)
    program.launches[i].body = Chooser(program, i).body(Body(program.launches[i].body));
  return program;
}

std::vector<LaneChoice> lane_choices(const LoopProgram& program, const target::CpuFeatures& features) {
  if (!features.avx512) return {};
  std::vector<LaneChoice> choices;
  LoopProgram copy = program;
  for (size_t i = 0; i < program.launches.size(); ++i) {
    Chooser chooser(copy, i);
    chooser.body(program.launches[i].body);
    choices.insert(choices.end(), chooser.choices.begin(), chooser.choices.end());
  }
  return choices;
}

}  // namespace tilewright::passes
