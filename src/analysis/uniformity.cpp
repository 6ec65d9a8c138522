// A fixpoint over one launch: everything starts uniform and falls until nothing changes.
#include "analysis/uniformity.h"

#include "ir/effects.h"
#include "ir/match.h"
#include "ir/number_statements.h"
#include "ir/rewrite.h"
#include "support/diagnostic.h"

namespace tilewright::analysis {

using namespace ir;

namespace {
constexpr int64_t kWarp = 32;
Agreement least(Agreement a, Agreement b) { return std::min(a, b); }
}  // namespace

bool ThreadSet::contains(const ThreadSet& other) const {
  for (size_t d = 0; d < 3; ++d)
    if (other.begin[d] < begin[d] || other.end[d] > end[d]) return false;
  return true;
}

bool ThreadSet::overlaps(const ThreadSet& other) const {
  for (size_t d = 0; d < 3; ++d)
    if (other.begin[d] >= end[d] || begin[d] >= other.end[d]) return false;
  return true;
}

int64_t ThreadSet::count() const {
  int64_t n = 1;
  for (size_t d = 0; d < 3; ++d) n *= std::max<int64_t>(end[d] - begin[d], 0);
  return n;
}

// One pass over the body. Facts only ever fall from All to None, so repeating it ends.
struct Uniformity::Walk {
  Uniformity& result;
  bool changed = false;
  ThreadSet set;
  bool in_map = false;
  Agreement control = Agreement::All;          // by the enclosing statements
  Agreement in_loop = Agreement::All;          // by breaks and continues before this point of the loop body
  Agreement in_launch = Agreement::All;        // by returns before this point
  bool leaves_role = false;                    // a jump out of the role: outside of it threads are missing
  std::vector<std::pair<StmtId, bool>> loops;  // the enclosing loops, and whether inside this role
  std::map<StmtId, Agreement>& left_early;     // by breaks anywhere in the loop

  Agreement here() const { return least(control, least(in_loop, in_launch)); }

  void lower(VarId var, Agreement to) {
    if (!var.valid()) return;
    auto [at, fresh] = result.vars_.try_emplace(var, Agreement::All);
    if (to < at->second) at->second = to, changed = true;
  }
  void local_write(BufferId buffer, const Stmt& stmt, Agreement agreement) {
    BufferId root = result.program_.root(buffer);
    if (result.program_.buffer(root).space != Space::Local) return;
    if (in_map) agreement = Agreement::None;  // points are dealt to threads
    auto [at, fresh] = result.locals_[root].try_emplace(stmt->id, LocalWrite{set, Agreement::All});
    if (agreement < at->second.agreement) at->second.agreement = agreement, changed = true;
    if (fresh) changed = true;
  }
  void leave_loop(Agreement when) {
    if (loops.empty()) return;
    auto [at, fresh] = left_early.try_emplace(loops.back().first, Agreement::All);
    if (when < at->second) at->second = when, changed = true;
  }

  void body(const Body& list) {
    for (const Stmt& stmt : list) statement(stmt);
  }
  void nested(const Body& list, Agreement condition) {
    Agreement before = control;
    control = least(control, condition);
    body(list);
    control = before;
  }
  void loop(const Stmt& stmt, const Body& list, Agreement condition) {
    Agreement loop_before = in_loop, control_before = control;
    control = least(here(), condition);
    auto left = left_early.find(stmt->id);
    in_loop = left == left_early.end() ? Agreement::All : left->second;
    loops.emplace_back(stmt->id, true);
    body(list);
    loops.pop_back();
    in_loop = loop_before, control = control_before;
  }
  void role(const Role& op) {
    ThreadSet set_before = set;
    bool leaves_before = std::exchange(leaves_role, false);
    Agreement launch_before = in_launch, loop_before = in_loop;
    auto loops_before = loops;
    for (auto& [loop, inside] : loops) inside = false;
    set.begin[0] = op.begin, set.end[0] = op.end;
    body(op.body);
    set = set_before, loops = loops_before;
    in_launch = leaves_role ? Agreement::None : launch_before;
    in_loop = leaves_role ? Agreement::None : loop_before;
    leaves_role = leaves_before || leaves_role;
  }
  void map(const Map& op) {
    Agreement loop_before = std::exchange(in_loop, Agreement::All), control_before = control;
    Agreement launch_before = in_launch;
    auto loops_before = std::exchange(loops, {});
    control = least(control, least(loop_before, in_launch));
    bool map_before = std::exchange(in_map, true);
    for (size_t d = 0; d < op.vars.size(); ++d)
      lower(op.vars[d], constant_int(op.extents[d]) == 1 ? Agreement::All : Agreement::None);
    body(op.body);
    in_map = map_before, in_loop = loop_before, control = control_before, in_launch = launch_before;
    loops = loops_before;
  }
  void atomic(const Stmt& stmt, const Atomic& op) {
    Agreement a = least(result.of(op.to.indices, set), here());
    if (op.value) a = least(a, result.of(op.value, set));
    if (op.compare) a = least(a, result.of(op.compare, set));
    if (result.program_.buffer(result.program_.root(op.to.buffer)).space == Space::Local) {
      local_write(op.to.buffer, stmt, a);
      a = least(a, result.of_load(op.to.buffer, op.to.indices, set));
    }
    if (in_map) a = Agreement::None;  // every point has its turn
    lower(op.result, a == Agreement::All ? a : Agreement::None);
  }
  void vote(const Vote& op) {
    switch (op.kind) {
      case VoteKind::BlockAny:
      case VoteKind::BlockAll:
      case VoteKind::BlockCount: return lower(op.result, here());
      case VoteKind::MatchAny: return lower(op.result, Agreement::None);
      default: return lower(op.result, least(Agreement::Warp, here()));
    }
  }
  void jump(bool whole_launch) {
    Agreement when = here();
    if (whole_launch) {
      in_launch = least(in_launch, when);
      for (auto& [loop, inside] : loops) {
        auto [at, fresh] = left_early.try_emplace(loop, Agreement::All);
        Agreement falls = inside ? when : Agreement::None;
        if (falls < at->second) at->second = falls, changed = true;
      }
      leaves_role = true;
      return;
    }
    bool inside = !loops.empty() && loops.back().second;
    if (!inside && !loops.empty()) leaves_role = true;
    in_loop = least(in_loop, when);
  }
  // Tile ops that write a local buffer run per thread; what they read decides.
  void tile_op(const Stmt& stmt) {
    Agreement a = here();
    for_each_expr(stmt, [&](const Expr& e) { a = least(a, result.of(e, set)); });
    const std::vector<Effect> effects = own_effects_of(stmt).list;
    for (const Effect& e : effects)
      if (e.access == Access::Read) a = least(a, result.of_load(e.region.buffer, e.region.min, set));
    for (const Effect& e : effects)
      if (e.access == Access::Write || e.access == Access::Accumulate) local_write(e.region.buffer, stmt, a);
  }

  void statement(const Stmt& stmt) {
    std::optional<Place>& place = result.places_[stmt->id.index];
    if (!place) place = Place{set, Agreement::All, in_map};
    if (here() < place->control) place->control = here(), changed = true;
    if (const auto* let = stmt.as<Let>()) return lower(let->var, least(result.of(let->value, set), here()));
    if (const auto* store = stmt.as<Store>()) {
      Agreement a = least(result.of(store->value, set), result.of(store->to.indices, set));
      return local_write(store->to.buffer, stmt, least(a, here()));
    }
    if (const auto* op = stmt.as<Atomic>()) return atomic(stmt, *op);
    if (const auto* op = stmt.as<Shuffle>()) return lower(op->result, Agreement::None);
    if (const auto* op = stmt.as<Vote>()) return vote(*op);
    if (const auto* op = stmt.as<Mma>()) return local_write(op->c.buffer, stmt, Agreement::None);
    if (const auto* op = stmt.as<LoadMatrix>()) return local_write(op->to.buffer, stmt, Agreement::None);
    if (const auto* op = stmt.as<Call>()) {
      for (const Region& region : op->writes) local_write(region.buffer, stmt, Agreement::None);
      return lower(op->result, Agreement::None);
    }
    if (const auto* op = stmt.as<For>()) {
      Agreement range = least(result.of(op->begin, set), result.of(op->extent, set));
      auto left = left_early.find(stmt->id);
      Agreement stays = left == left_early.end() ? Agreement::All : left->second;
      lower(op->var, least(least(range, stays), here()));
      return loop(stmt, op->body, range);
    }
    if (const auto* op = stmt.as<While>()) return loop(stmt, op->body, result.of(op->condition, set));
    if (const auto* op = stmt.as<If>()) {
      Agreement condition = result.of(op->condition, set);
      nested(op->then_body, condition);
      return nested(op->else_body, condition);
    }
    if (stmt.as<Break>())
      return leave_loop(loops.empty() || loops.back().second ? here() : Agreement::None), jump(false);
    if (stmt.as<Continue>()) return jump(false);
    if (stmt.as<Return>()) return jump(true);
    if (const auto* op = stmt.as<Role>()) return role(*op);
    if (const auto* op = stmt.as<Map>()) return map(*op);
    if (is_tile_op(stmt)) tile_op(stmt);
  }
};

Uniformity::Uniformity(const ProgramTables& program, const Launch& launch) : program_(program), launch_(launch) {
  for (size_t d = 0; d < launch.threads.size() && d < 3; ++d) block_.end[d] = launch.threads[d];
  check_numbered(launch);
  places_.resize(launch.numbers + 1);
  mark_threads();
  std::map<StmtId, Agreement> left_early;
  for (bool changed = true; changed;) {
    Walk walk{*this, false, block_, false, Agreement::All, Agreement::All, Agreement::All, false, {}, left_early};
    walk.body(launch.body);
    changed = walk.changed;
  }
}

void Uniformity::mark_threads() {
  int64_t before = 1;  // threads along the dimensions before this one
  for (size_t d = 0; d < launch_.thread.size(); ++d) {
    Agreement a = d > 0 && before % kWarp == 0 ? Agreement::Warp : Agreement::None;
    vars_[launch_.thread[d]] = launch_.threads[d] == 1 ? Agreement::All : a;
    before *= launch_.threads[d];
  }
}

const Uniformity::Place& Uniformity::place(const Stmt& at) const {
  const bool known = at->id.index < places_.size() && places_[at->id.index];
  check_internal(known, "uniformity was asked about a statement that its launch does not hold");
  return *places_[at->id.index];
}

Agreement Uniformity::agreement(const Expr& e, const Stmt& at) const { return of(e, place(at).set); }

bool Uniformity::happens_once(const Stmt& at) const {
  const Place& where = place(at);
  if (where.in_map || where.control != Agreement::All) return false;
  const Element* to = nullptr;
  bool uniform = true;
  if (const auto* store = at.as<Store>()) to = &store->to, uniform = of(store->value, where.set) == Agreement::All;
  if (const auto* op = at.as<Atomic>()) {
    to = &op->to, uniform = !op->each;
    for (const Expr& e : {op->value, op->compare}) uniform = uniform && (!e || of(e, where.set) == Agreement::All);
  }
  if (!to || program_.buffer(program_.root(to->buffer)).space == Space::Local) return false;
  return uniform && of(to->indices, where.set) == Agreement::All;
}

Agreement Uniformity::of(const std::vector<Expr>& list, const ThreadSet& set) const {
  Agreement a = Agreement::All;
  for (const Expr& e : list) a = least(a, of(e, set));
  return a;
}

Agreement Uniformity::of(const Expr& e, const ThreadSet& set) const {
  if (!e || e.as<Const>()) return Agreement::All;
  Agreement a = Agreement::All;
  if (const auto* var = e.as<Var>()) {
    auto found = vars_.find(var->id);
    a = found == vars_.end() ? Agreement::All : found->second;
  } else if (const auto* load = e.as<Load>()) {
    a = of_load(load->buffer, load->indices, set);
  } else if (const auto* op = e.as<Binary>()) {
    a = of_binary(*op, set);
  } else {
    for_each_operand(e, [&](const Expr& operand) { a = least(a, of(operand, set)); });
  }
  return a == Agreement::Warp && set.count() <= kWarp ? Agreement::All : a;
}

bool Uniformity::is_warp_aligned_x(const Expr& e) const {
  if (launch_.thread.empty() || (launch_.threads.size() > 1 && launch_.threads[0] % kWarp != 0)) return false;
  auto is_x = [&](const Expr& x) {
    const auto* var = x.as<Var>();
    return var && var->id == launch_.thread[0];
  };
  if (is_x(e)) return true;
  const auto* sum = e.as<Sum>();
  return sum && sum->terms.size() == 1 && sum->terms[0].coefficient == 1 && is_x(sum->terms[0].value) &&
         sum->constant % kWarp == 0;
}

Agreement Uniformity::of_binary(const Binary& op, const ThreadSet& set) const {
  Agreement a = least(of(op.a, set), of(op.b, set));
  if (a != Agreement::None) return a;
  auto constant = constant_int(op.b);
  bool aligned = constant && *constant % kWarp == 0 && is_warp_aligned_x(op.a);
  switch (op.op) {
    case BinaryOp::FloorDiv:
    case BinaryOp::TruncDiv: return aligned && *constant > 0 ? Agreement::Warp : a;
    case BinaryOp::Shr: return constant && *constant >= 5 && is_warp_aligned_x(op.a) ? Agreement::Warp : a;
    case BinaryOp::Lt: return aligned ? Agreement::Warp : a;  // x < 32 n
    case BinaryOp::Le: {                                      // 32 n <= x
      auto left = constant_int(op.a);
      return left && *left % kWarp == 0 && is_warp_aligned_x(op.b) ? Agreement::Warp : a;
    }
    default: return a;
  }
}

Agreement Uniformity::of_load(BufferId buffer, const std::vector<Expr>& indices, const ThreadSet& set) const {
  const Buffer& b = program_.buffer(buffer);
  Agreement a = of(indices, set);
  if (b.offset) a = least(a, of(b.offset, set));
  const BufferId root = program_.root(buffer);
  const Buffer& memory = program_.buffer(root);
  if (memory.address) a = least(a, of(memory.address, set));
  return memory.space == Space::Local ? least(a, of_local(root, set)) : a;
}

Agreement Uniformity::of_local(BufferId root, const ThreadSet& set) const {
  Agreement a = Agreement::All;
  auto found = locals_.find(root);
  if (found == locals_.end()) return a;
  for (const auto& [stmt, write] : found->second) {
    if (write.set.contains(set) || !write.set.overlaps(set))
      a = least(a, write.agreement);
    else
      a = Agreement::None;  // some of these threads wrote, the others did not
  }
  return a;
}

}  // namespace tilewright::analysis
