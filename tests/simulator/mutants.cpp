#include "simulator/mutants.h"

#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::simulator {

using namespace ir;

namespace {

bool has_jump(const Body& body) {
  bool found = false;
  walk(body, [&](const Stmt& s) { found = found || s.as<Break>() || s.as<Continue>() || s.as<Return>(); });
  return found;
}

// The first comparison of a condition, taken one further.
std::optional<Expr> one_further(const Expr& condition) {
  bool done = false;
  const Expr changed = rewrite(condition, [&](const Expr& e) -> std::optional<Expr> {
    const auto* b = e.as<Binary>();
    if (done || !b || !b->a->type.is_int()) return std::nullopt;
    if (b->op != BinaryOp::Lt && b->op != BinaryOp::Le) return std::nullopt;
    done = true;
    return binary(b->op, b->a, add(b->b, constant(b->b->type, int64_t{1})));
  });
  return done ? std::optional(changed) : std::nullopt;
}

Expr next_of(const Expr& index, const Expr& extent) {
  const auto n = constant(index->type, constant_int(extent).value_or(1));
  return binary(BinaryOp::FloorMod, add(index, constant(index->type, int64_t{1})), n);
}

// The statement with the other slot of its ring, or with the mbarrier of the other slot.
std::optional<Stmt> with_next_slot(const ThreadProgram& p, const Stmt& s, Way way) {
  const auto next_slot = [&](Region& r) {
    const Buffer& b = p.buffer(r.buffer);
    if (p.buffer(p.root(r.buffer)).space != Space::Shared || b.rank() < 3 || constant_int(b.shape[0]) == 1)
      return false;
    r.min[0] = next_of(r.min[0], b.shape[0]);
    return true;
  };
  const auto next_barrier = [&](Element& e) {
    if (!e.valid() || constant_int(p.buffer(e.buffer).shape[0]) == 1) return false;
    e.indices[0] = next_of(e.indices[0], p.buffer(e.buffer).shape[0]);
    return true;
  };
  const auto changed = [&](auto node, bool done) {
    return done ? std::optional(make_stmt(std::move(node), s->location)) : std::nullopt;
  };
  if (const auto* copy = s.as<Copy>(); copy && !copy->completion.immediate()) {
    Copy c = *copy;
    const bool done =
        way == Way::SwapBarrier ? next_barrier(c.completion.barrier) : next_slot(c.to) || next_slot(c.from);
    return changed(std::move(c), done);
  }
  if (const auto* wgmma = s.as<Wgmma>(); wgmma && way == Way::SwapStage) {
    Wgmma w = *wgmma;
    const bool done = next_slot(w.b);
    return changed(std::move(w), done);
  }
  if (way != Way::SwapBarrier) return std::nullopt;
  if (const auto* arrive = s.as<Arrive>()) {
    Arrive n = *arrive;
    const bool done = next_barrier(n.barrier);
    return changed(std::move(n), done);
  }
  if (const auto* wait = s.as<Wait>()) {
    Wait n = *wait;
    const bool done = next_barrier(n.barrier);
    return changed(std::move(n), done);
  }
  return std::nullopt;
}

// What orders asynchronous operations.
std::optional<Body> spoiled_order(const ThreadProgram& p, const Stmt& s, Way way) {
  if (way == Way::DropFence && s.as<Fence>()) return Body{};
  if (way == Way::DropArrive) {
    if (s.as<Arrive>()) return Body{};
    if (const auto* n = s.as<Expect>(); n && n->arrive)
      return Body{make_stmt(Expect{n->barrier, n->bytes, false}, s->location)};
  }
  if (const auto* n = s.as<Wait>()) {
    if (way == Way::DropWait) return Body{};
    if (way == Way::ShiftParity)
      return Body{make_stmt(Wait{n->barrier, sub(constant(n->parity->type, int64_t{1}), n->parity)}, s->location)};
  }
  if (const auto* n = s.as<Expect>(); n && way == Way::HalveBytes)
    return Body{make_stmt(
        Expect{n->barrier, binary(BinaryOp::FloorDiv, n->bytes, constant(n->bytes->type, int64_t{2})), n->arrive},
        s->location)};
  if (const auto* n = s.as<Drain>()) {
    if (way == Way::DropDrain) return Body{};
    Drain other = *n;
    if (way == Way::DeepenDrain) ++other.pending;
    if (way == Way::ReadDrain) other.written = false;
    if (other.pending != n->pending || other.written != n->written)
      return Body{make_stmt(std::move(other), s->location)};
  }
  if (way == Way::DropCommit && s.as<Commit>()) return Body{};
  if (way == Way::SwapStage || way == Way::SwapBarrier)
    if (auto other = with_next_slot(p, s, way)) return Body{std::move(*other)};
  return std::nullopt;
}

// The statement with its first conversion of data through one of 8 bits.
std::optional<Stmt> with_narrow_cast(const Stmt& s) {
  bool done = false;
  const Body changed = rewrite_exprs(Body{s}, [&](const Expr& e) -> std::optional<Expr> {
    const auto* c = e.as<Cast>();
    const bool data = c && c->value->type.is_float() && c->value->type.bits > 8 && !c->value.as<Const>();
    if (done || !data) return std::nullopt;
    done = true;
    return cast(cast(c->value, e4m3), e->type);
  });
  return done ? std::optional(changed[0]) : std::nullopt;
}

// What the statement becomes; none: it is not one to spoil this way.
std::optional<Body> spoiled(const ThreadProgram& p, const Stmt& s, Way way) {
  if (const auto* n = s.as<Sync>()) {
    if (way == Way::DropBarrier) return Body{};
    if (way == Way::WarpForBlock && n->scope == SyncScope::Block)
      return Body{make_stmt(Sync{SyncScope::Warp, {}, 0, false}, s->location)};
  }
  if (const auto* n = s.as<ir::If>(); n && !has_jump(n->then_body)) {
    if (way == Way::DropGuard && n->else_body.empty()) return n->then_body;
    if (way == Way::GuardOffByOne)
      if (const auto further = one_further(n->condition))
        return Body{make_stmt(ir::If{*further, n->then_body, n->else_body}, s->location)};
  }
  if (const auto* n = s.as<Store>(); n && way == Way::ShiftStore && !n->to.indices.empty()) {
    if (p.buffer(p.root(n->to.buffer)).space == Space::Local) return std::nullopt;
    Store shifted = *n;
    Expr& last = shifted.to.indices.back();
    last = add(last, constant(last->type, int64_t{1}));
    return Body{make_stmt(std::move(shifted), s->location)};
  }
  if (way == Way::NarrowCast && (s.as<Store>() || s.as<Let>()))
    if (auto narrow = with_narrow_cast(s)) return Body{std::move(*narrow)};
  return spoiled_order(p, s, way);
}

// Drains that an arrival follows, with the statement in which it stands.
struct Release {
  Stmt drain, arrival;
};

void find_releases(const Body& body, std::vector<Release>& out) {
  for (size_t i = 0; i < body.size(); ++i) {
    for_each_body(body[i], [&](const Body& inner) { find_releases(inner, out); });
    if (i == 0 || !body[i - 1].as<Drain>()) continue;
    bool arrives = false;
    walk({body[i]}, [&](const Stmt& s) { arrives = arrives || s.as<Arrive>(); });
    if (arrives) out.push_back({body[i - 1], body[i]});
  }
}

std::vector<Release> releases(const ThreadProgram& p) {
  std::vector<Release> out;
  for (const Launch& l : p.launches) find_releases(l.body, out);
  return out;
}

// Arrive counts that can be one less: buffer and element.
std::vector<std::pair<size_t, size_t>> counts(const ThreadProgram& p) {
  std::vector<std::pair<size_t, size_t>> out;
  for (size_t b = 0; b < p.buffers.size(); ++b)
    for (size_t i = 0; i < p.buffers[b].arrive_counts.size(); ++i)
      if (p.buffers[b].arrive_counts[i] > 1) out.emplace_back(b, i);
  return out;
}

// Shared buffers in the panels that TMA fills and wgmma reads.
std::vector<size_t> swizzled(const ThreadProgram& p) {
  std::vector<size_t> out;
  std::set<BufferId> used;
  for (const Launch& l : p.launches)
    walk(l.body, [&](const Stmt& s) {
      if (const auto* n = s.as<Wgmma>()) used.insert({n->a.buffer, n->b.buffer});
      if (const auto* n = s.as<Copy>(); n && !n->completion.immediate() && n->completion.queue != Queue::CpAsync)
        used.insert({n->from.buffer, n->to.buffer});
    });
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    const auto& memory = p.buffers[b].memory;
    if (memory && memory->swizzle().bits > 0 && used.contains(BufferId{static_cast<uint32_t>(b)})) out.push_back(b);
  }
  return out;
}

}  // namespace

int count_places(const ThreadProgram& p, Way way) {
  if (way == Way::ReleaseEarly) return static_cast<int>(releases(p).size());
  if (way == Way::ShrinkCount) return static_cast<int>(counts(p).size());
  if (way == Way::WrongSwizzle) return static_cast<int>(swizzled(p).size());
  int n = 0;
  for (const Launch& l : p.launches) walk(l.body, [&](const Stmt& s) { n += spoiled(p, s, way).has_value(); });
  return n;
}

ThreadProgram mutant(const ThreadProgram& p, Way way, int place) {
  ThreadProgram out = p;
  if (way == Way::ShrinkCount) {
    const auto [buffer, element] = counts(p)[static_cast<size_t>(place)];
    --out.buffers[buffer].arrive_counts[element];
    return out;
  }
  if (way == Way::WrongSwizzle) {
    std::optional<MemoryLayout>& memory = out.buffers[swizzled(p)[static_cast<size_t>(place)]].memory;
    tilewright::Swizzle swizzle = memory->swizzle();
    --swizzle.bits;
    memory = memory->with_swizzle(swizzle);
    return out;
  }
  int n = 0;
  const auto spoil = [&](const Stmt& s) -> std::optional<Body> {
    if (way == Way::ReleaseEarly) {
      const Release r = releases(p)[static_cast<size_t>(place)];
      if (s.same(r.drain)) return Body{};
      return s.same(r.arrival) ? std::optional(Body{r.arrival, r.drain}) : std::nullopt;
    }
    auto change = spoiled(p, s, way);
    return change && n++ == place ? change : std::nullopt;
  };
  for (Launch& l : out.launches) l.body = rewrite(l.body, spoil);
  return out;
}

}  // namespace tilewright::simulator
