#include "analysis/body_order.h"

#include <cstdlib>

#include "analysis/slope.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

// Statements that say something about the order of all memory.
bool orders_memory(const Stmt& s) {
  if (const auto* n = s.as<Atomic>()) return n->order != MemoryOrder::Relaxed;
  if (const auto* n = s.as<Vote>()) return n->kind >= VoteKind::BlockAny;
  return s.as<Sync>() || s.as<Fence>() || s.as<Arrive>() || s.as<Expect>() || s.as<Wait>() || s.as<Commit>() ||
         s.as<Drain>();
}

bool loads(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) { found = found || x.as<Load>(); });
  return found;
}

std::vector<bool> stores_of(const Body& body) {
  std::vector<bool> out;
  for (const Stmt& s : body) out.push_back(s.as<Store>() != nullptr);
  return out;
}

bool always_turns(const For& loop) { return constant_int(loop.extent).value_or(0) > 0; }

}  // namespace

bool may_overlap(BufferId a, BufferId b, const ProgramTables& program) {
  const BufferId x = program.root(a), y = program.root(b);
  if (x == y) return true;
  const Buffer &of_x = program.buffer(x), &of_y = program.buffer(y);
  return of_x.space == Space::Global && of_y.space == Space::Global && (of_x.address || of_y.address);
}

bool may_overlap(BufferId a, const std::set<BufferId>& any, const ProgramTables& program) {
  return std::ranges::any_of(any, [&](BufferId b) { return may_overlap(a, b, program); });
}

BodyOrder::BodyOrder(const Body& body, const ProgramTables& program, std::optional<Turns> turns)
    : program_(program), stores_(stores_of(body)), turns_(turns), bound_(bound_vars(body)) {
  add(body, std::nullopt);
}

void BodyOrder::add(const Body& body, std::optional<size_t> top) {
  for (size_t i = 0; i < body.size(); ++i) add(body[i], top.value_or(i));
}

void BodyOrder::add(const Stmt& s, size_t top) {
  const auto* loop = s.as<For>();
  const bool outside = is_sure_;
  if (!s.as<While>()) for_each_expr(s, [&](const Expr& e) { reads(e, top, is_sure_); });
  if (loop || s.as<While>()) loops_.push_back(&*s);
  if (const auto* n = s.as<While>()) reads(n->condition, top, is_sure_);
  if (orders_memory(s)) touch({}, {}, top, true);
  if (const auto* n = s.as<Print>(); n && n->buffer.valid()) touch(n->buffer, {}, top, false);
  if (const auto* n = s.as<Atomic>()) {
    touch(n->to.buffer, n->to.indices, top, n->op != AtomicOp::Load);
  } else {
    for (const Effect& e : effects_of(s).list) {
      if (!e.region.valid() || (e.access == Access::Read && !s.as<Call>())) continue;
      touch(e.region.buffer, s.as<Store>() ? e.region.min : std::vector<Expr>{}, top, e.access != Access::Read);
    }
  }
  if (const auto* n = s.as<Call>())
    for (const Expr& arg : n->args)
      walk(arg, [&](const Expr& x) {
        if (const auto* place = x.as<Address>()) touch(place->buffer, {}, top, true);
      });
  is_sure_ = is_sure_ && !s.as<If>() && !s.as<While>() && (!loop || always_turns(*loop));
  for_each_body(s, [&](const Body& inner) { add(inner, top); });
  is_sure_ = outside;
  if (loop || s.as<While>()) loops_.pop_back();
}

void BodyOrder::reads(const Expr& e, size_t top, bool is_sure) {
  const auto* n = e.as<Load>();
  if (const auto* select = e.as<Select>()) {
    reads(select->condition, top, is_sure), reads(select->a, top, false), reads(select->b, top, false);
  } else if (const auto* b = e.as<Binary>(); b && (b->op == BinaryOp::And || b->op == BinaryOp::Or)) {
    reads(b->a, top, is_sure), reads(b->b, top, false);
  } else {
    for_each_operand(e, [&](const Expr& part) { reads(part, top, is_sure); });
  }
  if (n) touch(n->buffer, n->indices, top, false), events_.back().is_sure = is_sure;
}

void BodyOrder::touch(BufferId buffer, std::vector<Expr> index, size_t top, bool changes) {
  events_.push_back({top, buffer, std::move(index), changes, false, loops_});
}

bool BodyOrder::is_load(const Event& e, const Load& load) {
  return !e.changes && e.buffer == load.buffer && equal(e.index, load.indices);
}

bool BodyOrder::may_overlap(const Event& a, const Event& b) const {
  return !a.buffer.valid() || !b.buffer.valid() || analysis::may_overlap(a.buffer, b.buffer, program_);
}

bool BodyOrder::clash(size_t before, size_t after) const {
  const Event &a = events_[before], &b = events_[after];
  const bool again = !a.loops.empty() && !b.loops.empty() && a.loops.front() == b.loops.front();
  if ((before >= after && !again) || !may_overlap(a, b)) return false;
  if (a.buffer != b.buffer || a.index.size() != b.index.size()) return true;
  for (size_t d = 0; d < a.index.size(); ++d) {
    if (a.index[d]->type != b.index[d]->type || loads(a.index[d]) || loads(b.index[d])) continue;
    bool varies = false;  // from turn to turn of a loop around both
    for (VarId v : used_vars(a.index[d])) varies = varies || (again && bound_.contains(v));
    if (!varies && constant_int(sub(a.index[d], b.index[d])).value_or(0) != 0) return false;
  }
  return true;
}

bool BodyOrder::clash_between_turns(const Event& a, const Event& b) const {
  if (!turns_ || !may_overlap(a, b)) return false;
  if (a.buffer != b.buffer || a.index.size() != b.index.size()) return true;
  for (size_t d = 0; d < a.index.size(); ++d) {
    if (a.index[d]->type != b.index[d]->type || loads(a.index[d]) || loads(b.index[d])) continue;
    const auto step = slope_through_casts(a.index[d], turns_->var),
               other = slope_through_casts(b.index[d], turns_->var);
    const auto apart = constant_int(sub(a.index[d], b.index[d]));
    bool varies = false;
    for (VarId v : used_vars(a.index[d])) varies = varies || bound_.contains(v);
    if (varies || !step || step != other || !apart) continue;
    if (std::abs(*step) > INT32_MAX / std::max<int64_t>(turns_->count, 1)) continue;  // turns may meet by wrapping
    if (*step == 0 ? *apart != 0 : *apart % *step != 0 || *apart == 0 || std::abs(*apart / *step) >= turns_->count)
      return false;
  }
  return true;
}

bool BodyOrder::reads_what_was(size_t top, const Expr& load) const {
  for (size_t i = 0; i < events_.size(); ++i) {
    if (events_[i].top != top || !is_load(events_[i], *load.as<Load>())) continue;
    for (size_t k = 0; k < events_.size(); ++k)
      if (events_[k].changes && (clash(k, i) || clash_between_turns(events_[k], events_[i]))) return false;
  }
  return true;
}

bool BodyOrder::reads_what_is_stored(size_t top, const Expr& load, size_t store) const {
  const auto stored =
      std::find_if(events_.begin(), events_.end(), [&](const Event& e) { return e.top == store && e.changes; });
  if (top <= store || stored == events_.end()) return false;
  if (stored->buffer != load.as<Load>()->buffer || !equal(stored->index, load.as<Load>()->indices)) return false;
  for (VarId v : used_vars(load))
    if (bound_.contains(v)) return false;
  bool reads = false;
  for (const Expr& e : stored->index) reads = reads || loads(e);
  if (reads) return false;
  const auto at = static_cast<size_t>(stored - events_.begin());
  for (size_t i = 0; i < events_.size(); ++i) {
    if (events_[i].top != top || !is_load(events_[i], *load.as<Load>())) continue;
    for (size_t k = 0; k < events_.size(); ++k)
      if (k != at && events_[k].changes && (k > at || events_[k].top == top) &&
          (clash(k, i) || clash_between_turns(events_[k], events_[i])))
        return false;
  }
  return true;
}

std::optional<size_t> BodyOrder::store_read_by(size_t top, const Expr& load) const {
  for (size_t store = top; store-- > 0;)
    if (stores_[store] && reads_what_is_stored(top, load, store)) return store;
  return std::nullopt;
}

bool BodyOrder::may_be_last(size_t store) const {
  const auto stored =
      std::find_if(events_.begin(), events_.end(), [&](const Event& e) { return e.top == store && e.changes; });
  const auto at = static_cast<size_t>(stored - events_.begin());
  for (size_t k = 0; k < events_.size(); ++k) {
    const Event& e = events_[k];
    if (k == at || (!clash(at, k) && !clash_between_turns(*stored, e))) continue;
    if (!stores_[store] || e.changes || !e.buffer.valid()) return false;
    if (e.index.size() != stored->index.size()) return false;
    if (!reads_what_is_stored(e.top, load(e.buffer, e.index, program_.buffer(e.buffer).type), store)) return false;
  }
  return true;
}

bool BodyOrder::surely_reads(size_t top, const Expr& load) const {
  return std::any_of(events_.begin(), events_.end(),
                     [&](const Event& e) { return e.top == top && is_load(e, *load.as<Load>()) && e.is_sure; });
}

}  // namespace tilewright::analysis
