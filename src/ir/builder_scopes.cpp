// Loops, branches and the code of threads.
#include "ir/builder.h"
#include "ir/match.h"
#include "ir/rewrite.h"
#include "support/diagnostic.h"

namespace tilewright::ir {
namespace {

// Whether the host can tell from the arguments of a call: integer arithmetic of free variables.
bool host_computes(const Expr& e) {
  if (!e->type.is_integral()) return false;
  if (e.as<Const>()) return true;
  if (const auto* v = e.as<Var>()) return is_free_var(v->id);
  if (const auto* c = e.as<Cast>()) return host_computes(c->value);
  if (const auto* c = e.as<Select>()) return host_computes(c->condition) && host_computes(c->a) && host_computes(c->b);
  if (const auto* u = e.as<Unary>()) return u->op == UnaryOp::Not && host_computes(u->a);
  if (const auto* s = e.as<Sum>())
    return std::all_of(s->terms.begin(), s->terms.end(), [](const Term& t) { return host_computes(t.value); });
  const auto* b = e.as<Binary>();
  if (!b) return false;
  switch (b->op) {
    case BinaryOp::Mul:
    case BinaryOp::FloorDiv:
    case BinaryOp::FloorMod:
    case BinaryOp::Min:
    case BinaryOp::Max:
    case BinaryOp::And:
    case BinaryOp::Or:
    case BinaryOp::Eq:
    case BinaryOp::Ne:
    case BinaryOp::Lt:
    case BinaryOp::Le: return host_computes(b->a) && host_computes(b->b);
    default: return false;
  }
}

struct Update {
  AtomicOp op;
  Expr value;
};

// What acc(i) = acc(i) + v, max(acc(i), v) and min(acc(i), v) do to a reducer: v is in exactly one operand.
std::optional<Update> update_of(const Element& to, const Expr& stored) {
  const auto is_old = [&](const Expr& e) {
    const auto* load = e.as<Load>();
    return load && load->buffer == to.buffer && equal(load->indices, to.indices);
  };
  if (const auto* sum = stored.as<Sum>()) {
    for (const Term& t : sum->terms)
      if (t.coefficient == 1 && is_old(t.value)) return Update{AtomicOp::Add, sub(stored, t.value)};
    return {};
  }
  if (const auto* fma = stored.as<Fma>(); fma && is_old(fma->c))
    return Update{AtomicOp::Add, binary(BinaryOp::Mul, fma->a, fma->b)};
  const auto* b = stored.as<Binary>();
  if (!b) return {};
  const std::optional<AtomicOp> op = b->op == BinaryOp::Add   ? std::optional(AtomicOp::Add)
                                     : b->op == BinaryOp::Max ? std::optional(AtomicOp::Max)
                                     : b->op == BinaryOp::Min ? std::optional(AtomicOp::Min)
                                                              : std::nullopt;
  if (!op || is_old(b->a) == is_old(b->b)) return {};
  return Update{*op, is_old(b->a) ? b->b : b->a};
}

}  // namespace

// ---- scopes

Expr Builder::open_for(const std::string& name, const Expr& begin, const Expr& end, LoopOptions options) {
  const auto type = promote(begin->type, end->type);
  if (!type || !type->is_int())
    fail_here(Code::LoopType, fmt::format("a loop from {} to {}", begin->type.name(), end->type.name()),
              "the bounds of a loop are integers: cast them to int32");
  if (options.step && !options.step->type.is_int())
    fail_here(Code::LoopType, fmt::format("a loop with a step of type {}", options.step->type.name()),
              "the step of a loop is an integer");
  if (options.kind == LoopKind::Pipelined) need_no_map("Pipelined");
  if (options.stages < 0)
    fail_here(Code::StageCount, fmt::format("num_stages is {}", options.stages), "it is 0 (no pipeline) or more");
  if (options.factor < 0 || (options.factor > 0 && options.kind != LoopKind::Unroll))
    fail_here(Code::StageCount, fmt::format("unroll_factor is {}", options.factor),
              "it is 1 or more, of an unrolled loop");
  if (!options.order.empty() && options.order.size() != options.stage.size())
    fail_here(Code::StageCount,
              fmt::format("order has {} entries, but stage has {}", options.order.size(), options.stage.size()),
              "both have one entry for each statement of the body");
  const Expr first = cast(begin, *type), last = cast(end, *type);
  const Expr step = options.step ? cast(options.step, *type) : constant(*type, int64_t{1});
  const auto step_value = constant_int(step);
  if (step_value == 0) fail_here(Code::LoopStep, "a loop with step 0", "it would never end");
  Expr extent = sub(last, first);
  if (step_value && *step_value < 0)
    extent = ceildiv(neg(extent), constant(*type, -*step_value));
  else if (!step_value)  // of either sign
    extent = neg(binary(BinaryOp::FloorDiv, neg(extent), step));
  else if (step_value != 1)
    extent = ceildiv(extent, step);
  // A loop whose end is known to stand before its begin has no turns, as where run time says so.
  if (const auto known = constant_int(extent); known && *known < 0) extent = constant(*type, int64_t{0});
  For loop;
  loop.var = program_.new_var(fresh_name(name), *type);
  loop.begin = step_value == 1 ? first : constant(*type, int64_t{0});
  loop.extent = extent;
  loop.kind = options.kind, loop.stages = options.stages, loop.factor = options.factor,
  loop.order = std::move(options.order), loop.stage = std::move(options.stage);
  set_range(loop.var, loop.begin, range(extent));
  const Expr index = var(loop.var, *type);
  emit(loop);  // checks that a statement may stand here; close() puts the full one in its place
  scopes_.push_back({loop, {}, location_id(location_)});
  return step_value == 1 ? index : add(first, mul(index, step));
}

std::vector<Expr> Builder::open_map(const std::vector<std::string>& names, std::vector<Expr> extents) {
  if (extents.empty()) fail_here(Code::ParallelRank, "Parallel without extents", "give one for each index");
  Map map;
  std::vector<Expr> points;
  for (size_t d = 0; d < extents.size(); ++d) {
    need_extent(extents[d], fmt::format("extent {} of Parallel", d));
    if (auto c = constant_int(extents[d]); c && *c < 0)
      fail_here(Code::BadExtent, fmt::format("extent {} of Parallel is {}", d, *c), "an extent is 0 or more");
    map.vars.push_back(program_.new_var(d < names.size() ? fresh_name(names[d]) : "i", extents[d]->type));
    set_range(map.vars.back(), constant(0), range(extents[d]));
    points.push_back(var(map.vars.back(), extents[d]->type));
  }
  map.extents = std::move(extents);
  emit(map);
  scopes_.push_back({map, {}, location_id(location_)});
  return points;
}

std::vector<Expr> Builder::open_persistent(const std::vector<std::string>& names, std::vector<Expr> domain,
                                           const Expr& workers, const Expr& index, int64_t group) {
  if (domain.empty()) fail_here(Code::ParallelRank, "Persistent without a domain", "give one extent for each index");
  for (size_t d = 0; d < domain.size(); ++d) {
    need_extent(domain[d], fmt::format("extent {} of Persistent", d));
    domain[d] = cast(domain[d], i32);
  }
  need_integer(workers, "the wave size of Persistent");
  need_integer(index, "the index of a worker of Persistent");
  const Expr last = domain.back();
  // group is clamped to [1, last extent]
  Expr width = constant(std::max<int64_t>(group, 1));
  width = binary(BinaryOp::Max, binary(BinaryOp::Min, width, last), constant(1));
  const Expr groups = ceildiv(last, width);
  Expr total = mul(groups, width);
  for (size_t d = 0; d + 1 < domain.size(); ++d) total = mul(total, domain[d]);
  const Expr wave = open_for("wave", constant(0), ceildiv(total, cast(workers, i32)));
  const Expr id = let("tile", add(mul(wave, cast(workers, i32)), cast(index, i32)));
  // id counts (last / width, domain[0 .. n-2], width) with the last fastest
  Expr rest = id;
  const Expr inner = let("inner", binary(BinaryOp::FloorMod, rest, width));
  rest = binary(BinaryOp::FloorDiv, rest, width);
  std::vector<Expr> coordinates(domain.size());
  for (size_t d = domain.size() - 1; d-- > 0;) {
    coordinates[d] = let(d < names.size() ? names[d] : "i", binary(BinaryOp::FloorMod, rest, domain[d]));
    rest = binary(BinaryOp::FloorDiv, rest, domain[d]);
  }
  coordinates.back() = let(names.size() == domain.size() ? names.back() : "i", add(mul(rest, width), inner));
  open_if(logical_and(binary(BinaryOp::Lt, id, total), binary(BinaryOp::Lt, coordinates.back(), last)));
  scopes_.back().close_with = 1;
  return coordinates;
}

void Builder::open_while(const Expr& condition, size_t since) {
  const Expr c = as_condition(condition, location_);
  Body& around = body();
  const bool computed = since < around.size();
  Body first;
  if (computed) {
    first.assign(around.begin() + static_cast<std::ptrdiff_t>(since), around.end());
    around.resize(since);
  }
  const While loop{computed ? constant(boolean, int64_t{1}) : c, {}};
  emit(loop);
  scopes_.push_back({loop, std::move(first), location_id(location_)});
  if (!computed) return;
  open_if(logical_not(c));
  emit(Break{});
  close();
}

namespace {
// Whether a statement leaves the loop whose body this is.
bool leaves(const Body& body, bool breaks_count = true) {
  return std::any_of(body.begin(), body.end(), [&](const Stmt& s) {
    if (s.as<Return>() || (breaks_count && s.as<Break>())) return true;
    const bool inner_loop = s.as<For>() || s.as<While>();
    bool found = false;
    for_each_body(s, [&](const Body& b) { found = found || leaves(b, breaks_count && !inner_loop); });
    return found;
  });
}
}  // namespace

// Variables never change: a condition that reads no memory stays what it is.
void Builder::need_end(const While& loop, const SourceLocation& at) const {
  bool reads = false;
  walk(loop.condition, [&](const Expr& e) { reads = reads || e.as<Load>(); });
  if (reads || leaves(loop.body)) return;
  if (constant_int(loop.condition) == 1)
    fail(Code::EndlessLoop, at, "the condition of this while is always true",
         "test a variable that the body changes, or leave by break_loop() under a condition that the loop tests");
  fail(Code::EndlessLoop, at, "the condition of this while never changes: it reads no memory",
       "what an atomic, a vote or a shuffle gives is one value, taken before the loop: let the condition read an "
       "element, or a variable that the body sets");
}

void Builder::open_if(const Expr& condition) {
  If branch{as_condition(condition, location_), {}, {}};
  emit(branch);
  scopes_.push_back({branch, {}, location_id(location_)});
}

void Builder::open_else() {
  const Body& before = body();
  const If* last = before.empty() ? nullptr : before.back().as<If>();
  if (!last || !last->else_body.empty())
    fail_here(Code::ElseWithoutIf, "Else without an If right before it",
              "write If(...).Else(...), with no statement between the two");
  Scope scope{*last, {}, before.back()->location, true};
  scopes_.push_back(std::move(scope));
}

void Builder::open_role(int64_t begin, int64_t end) {
  need_no_map("a role");
  need_launch("a role");
  const int64_t threads = program_.launches.back().thread_count();
  if (threads != program_.launches.back().threads[0])
    fail_here(Code::RoleRange, "a role in a block that is not along x alone",
              "give the block one thread extent; a role is a range of its threads");
  if (begin < 0 || end <= begin || end > threads || begin % 32 != 0 || (end % 32 != 0 && end != threads))
    fail_here(Code::RoleRange, fmt::format("a role on threads {} to {} of a block of {}", begin, end, threads),
              "a role is a range of whole warps (multiples of 32) inside the block");
  Role role{begin, end, {}};
  emit(role);
  scopes_.push_back({role, {}, location_id(location_)});
}

void Builder::open_groups(std::vector<int64_t> warpgroups) {
  std::sort(warpgroups.begin(), warpgroups.end());
  bool adjacent = !warpgroups.empty();
  for (size_t i = 1; i < warpgroups.size(); ++i) adjacent = adjacent && warpgroups[i] == warpgroups[i - 1] + 1;
  if (!adjacent)
    fail_here(Code::RoleRange, "ws: the groups do not follow each other",
              "a role is one range of threads: name adjacent groups");
  open_role(warpgroups.front() * 128, warpgroups.back() * 128 + 128);
}

void Builder::close() {
  check_internal(!scopes_.empty(), "close() without an open scope");
  Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  match(scope.op, Overloaded{
                      [&](const If&) {
                        auto& branch = std::get<If>(scope.op);
                        (scope.in_else ? branch.else_body : branch.then_body) = std::move(scope.body);
                      },
                      [&](const auto& op) {
                        using T = std::decay_t<decltype(op)>;
                        if constexpr (requires(T t) { t.body; }) std::get<T>(scope.op).body = std::move(scope.body);
                      },
                  });
  if (const auto* loop = std::get_if<While>(&scope.op)) need_end(*loop, program_.location(scope.location));
  Body& parent = body();
  parent.back() = Stmt(StmtNode{std::move(scope.op), scope.location});
  for (int i = 0; i < scope.close_with; ++i) close();
}

// ---- thread code

void Builder::store(const TileRef& ref, const Expr& value, Queue queue) {
  Element to = element(ref, "a store");
  const Buffer& b = program_.buffer(ref.buffer);
  if (b.space == Space::Barrier)
    fail_here(Code::BarrierAccess, fmt::format("a store to '{}', which is a barrier", b.name),
              "barriers are used by barrier_arrive and barrier_wait");
  if (b.reducer) {
    if (const auto update = update_of(to, value); update && updates(update->op, *b.reducer)) {
      atomic(update->op, ref, update->value, false);
      return;
    }
    fail_here(Code::ReducerStore, fmt::format("a store to '{}', which is a reducer", b.name),
              "reducers are updated by acc(i) += v, atomic_max or atomic_min, and read after finalize_reducer");
  }
  if (value->type.is_pointer() != b.type.is_pointer())
    fail_here(Code::BadCast,
              fmt::format("a {} is stored to '{}', which holds {}", value->type.name(), b.name, b.type.name()),
              "use reinterpret between addresses and 64-bit integers");
  emit(Store{std::move(to), cast(value, b.type), b.space == Space::Shared ? queue : Queue::None});
}

void Builder::update(Operator op, const TileRef& to, const Expr& value) {
  if (op == Operator::Add && program_.buffer(to.buffer).reducer)
    atomic(AtomicOp::Add, to, value, false);
  else
    store(to, apply(op, load(to), value, location_));
}

void Builder::need_atomic(AtomicOp op, DType type) const {
  if (has_atomic(op, type)) return;
  const bool bits = op == AtomicOp::And || op == AtomicOp::Or || op == AtomicOp::Xor;
  fail_here(Code::AtomicType, fmt::format("atomic {} on {}", ir::name_of(op), type.name()),
            bits ? "bit operations take integers" : "use an integer type or float16, bfloat16, float32, float64");
}

Expr Builder::atomic(AtomicOp op, const TileRef& ref, const Expr& value, bool want_old, MemoryOrder order,
                     const Expr& compare) {
  Atomic a;
  a.op = op, a.order = order;
  a.to = element(ref, "an atomic");
  const Buffer& b = program_.buffer(ref.buffer);
  if (b.space != Space::Global && b.space != Space::Shared && !b.reducer)
    fail_here(Code::AtomicSpace, fmt::format("an atomic on '{}', a {} buffer", b.name, ir::name_of(b.space)),
              "atomics work on global and shared memory; a fragment that many points add to is an alloc_reducer");
  need_atomic(op, b.type);
  if (b.reducer) {
    if (!updates(op, *b.reducer) || want_old)
      fail_here(
          Code::ReducerOp,
          want_old ? fmt::format("the old value of an element of '{}', which is a reducer", b.name)
                   : fmt::format("atomic {} on '{}', a {} reducer", ir::name_of(op), b.name, ir::name_of(*b.reducer)),
          want_old ? "a reducer is read after finalize_reducer" : "the operation of the update is that of the reducer");
  }
  if (value) a.value = cast(value, b.type);
  if (compare) a.compare = cast(compare, b.type);
  if (want_old) a.result = new_result("old", b.type);
  const VarId result = a.result;
  const DType type = b.type;
  emit(std::move(a));
  return want_old ? var(result, type) : Expr{};
}

Expr Builder::shuffle(ShuffleKind kind, const Expr& value, const Expr& lane, int64_t width) {
  need_no_map("a shuffle");
  if (width < 1 || width > 32 || (width & (width - 1)) != 0)
    fail_here(Code::ShuffleWidth, fmt::format("a shuffle of width {}", width),
              "the width is a power of two up to 32, the lanes of a warp");
  need_integer(lane, "the lane of a shuffle");
  VarId result = new_result("shuffled", value->type);
  emit(Shuffle{kind, result, value, cast(lane, i32), width});
  return var(result, value->type);
}

Region Builder::own_elements(const TileRef& first, int64_t count, const char* what) const {
  Region r = region(first);
  const Buffer& b = program_.buffer(first.buffer);
  if (b.space != Space::Local || b.rank() != 1)
    fail_here(Code::OperandKind, fmt::format("'{}' as {}", b.name, what),
              "it is an element of an array of one dimension of a thread's own: T.alloc_local");
  r.extent = {constant(count)};
  return r;
}

void Builder::mma(const TileRef& a, const TileRef& b, const TileRef& c, int64_t depth, int64_t rows) {
  need_no_map("an mma");
  const DType type = program_.buffer(a.buffer).type, other = program_.buffer(b.buffer).type;
  if ((rows != 8 && rows != 16) || depth <= 0 || depth % std::max(4, 128 / type.bits) != 0)
    fail_here(Code::BadOption, fmt::format("an mma of {} rows, {} deep, of {}", rows, depth, type.name()),
              "it has 8 or 16 rows, and its depth is that of four words of 32 bits, or several of them");
  if (type.bits != other.bits)
    fail_here(Code::BadOption, fmt::format("an mma of {} and {}", type.name(), other.name()),
              "both operands have elements of one width");
  Mma n;
  n.a = own_elements(a, rows * depth / 32, "the first operand of an mma");
  n.b = own_elements(b, depth / 4, "the second operand of an mma");
  n.c = own_elements(c, rows / 4, "the result of an mma");
  emit(std::move(n));
}

void Builder::load_matrix(const TileRef& from, const TileRef& to, int64_t matrices, bool transpose) {
  need_no_map("load_matrix");
  const Buffer& shared = program_.buffer(from.buffer);
  const DType type = shared.type, other = program_.buffer(to.buffer).type;
  if (matrices != 1 && matrices != 2 && matrices != 4)
    fail_here(Code::BadOption, fmt::format("load_matrix of {} matrices", matrices), "there are 1, 2 or 4");
  if ((type.bits != 8 && type.bits != 16 && (type.bits != 32 || transpose)) || type != other)
    fail_here(Code::BadOption, fmt::format("load_matrix of {} to {}", type.name(), other.name()),
              "both are of one type, of 8, 16 or 32 bits, and those of 32 are not transposed");
  if (shared.space != Space::Shared || !from.is_element())
    fail_here(Code::OperandKind, fmt::format("'{}' as where load_matrix reads", shared.name),
              "it is an element of a tile in shared memory: T.alloc_shared");
  LoadMatrix n;
  const Region row = region(from);
  n.from = {row.buffer, row.min}, n.to = own_elements(to, matrices * 32 / type.bits, "what load_matrix gives");
  n.transpose = transpose, n.matrices = matrices;
  emit(std::move(n));
}

Expr Builder::vote(VoteKind kind, const Expr& value) {
  need_no_map("a vote");
  const bool match_values = kind == VoteKind::MatchAny || kind == VoteKind::MatchAll;
  if (match_values) need_integer(value, "an operand of match");
  const Expr operand = kind == VoteKind::ActiveMask ? Expr{} : match_values ? value : as_condition(value, location_);
  const bool is_bool =
      kind == VoteKind::Any || kind == VoteKind::All || kind == VoteKind::BlockAny || kind == VoteKind::BlockAll;
  const DType type = is_bool ? boolean : kind == VoteKind::BlockCount ? i32 : u32;
  VarId result = new_result("vote", type);
  emit(Vote{kind, result, operand});
  return var(result, type);
}

// A butterfly: every lane ends with the same combination, in the same order on every engine.
Expr Builder::warp_reduce(Operator op, const Expr& value) {
  Expr total = let("", value);
  for (int64_t mask = 16; mask > 0; mask /= 2)
    total = let("", apply(op, total, shuffle(ShuffleKind::Xor, total, constant(mask), 32), location_));
  return total;
}

void Builder::break_loop() {
  need_loop("break");
  emit(Break{});
}
void Builder::continue_loop() {
  need_loop("continue");
  emit(Continue{});
}
void Builder::return_thread() { emit(Return{}); }

void Builder::print(std::string message, std::vector<Expr> values, BufferId buffer) {
  if (message.empty() && buffer.valid())
    message = fmt::format("buffer<{}, {}>", program_.buffer(buffer).name, program_.buffer(buffer).type.name());
  else if (message.empty() && !values.empty())
    message = "expr";
  emit(Print{std::move(message), std::move(values), buffer});
}
void Builder::check(const Expr& condition, const std::string& message) {
  emit(Assert{as_condition(condition, location_), message});
}

void Builder::assume(const Expr& condition) {
  const Expr c = as_condition(condition, location_);
  if (launch_ < 0) {
    program_.assumptions.push_back({c, location_id(location_)});
  } else {
    // What is assumed of a whole launch and depends on the call alone is checked there.
    if (scopes_.empty() && host_computes(c)) program_.assumptions.push_back({c, location_id(location_)});
    emit(Assume{c});
  }
}

Expr Builder::call(Call call, std::optional<DType> result) {
  if (call.function.empty() || !std::all_of(call.function.begin(), call.function.end(),
                                            [](unsigned char c) { return std::isalnum(c) || c == '_' || c == ':'; }))
    fail_here(Code::CallName, fmt::format("'{}' is not the name of a function", call.function),
              "a name has letters, digits, _ and ::");
  // What foreign text does with a pointer is its own affair: it may read and write the whole buffer.
  for (const Expr& e : call.args) {
    const auto* pointer = e.as<Address>();
    if (!pointer) continue;
    Region all{pointer->buffer, {}, {}};
    for (const Expr& extent : program_.buffer(pointer->buffer).shape)
      all.min.push_back(constant(extent->type, int64_t{0})), all.extent.push_back(extent);
    call.reads.push_back(all), call.writes.push_back(all);
  }
  if (result) call.result = new_result("called", *result);
  const VarId id = call.result;
  emit(std::move(call));
  return result ? var(id, *result) : Expr{};
}

}  // namespace tilewright::ir
