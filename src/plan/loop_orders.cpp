#include "plan/loop_orders.h"

#include "analysis/accessed.h"
#include "analysis/live_registers.h"
#include "ir/any_in.h"
#include "ir/buffer_vars.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/jumps.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "plan/decide.h"
#include "target/wgmma.h"

namespace tilewright::plan {

using namespace ir;
using analysis::accessed_by;
using analysis::accesses_of;
using analysis::Buffers;
using analysis::FoundRing;
using analysis::meet;
using analysis::writes_whole;
using analysis::written_by;

namespace {

// Registers that tiles of a thread may take, by the warpgroups that compute: of 232 and more, 160, 112.
constexpr int64_t kLive[] = {0, 216, 216, 136, 88};

// A tile of m x n elements takes m * n / 2048 cycles for each step along k in the matrix unit, and its operands
// 2 * (m + n) bytes, of which 64 come from the L2 cache in a cycle; narrower types take fewer of both. So a tile of
// which m * n is less than this times m + n waits for what is loaded: the more is under way, the better (measured at
// 128x4096x7168, tiles of 64 x 64: 230 TFLOP/s of four slots of which one is given back late, 248 given back at once,
// 289 of six).
constexpr int64_t kLoadBound = 64;
// Slots of which one may be given back late all the same, by products of so many elements of a warpgroup that has a
// multiprocessor to itself: the matrix unit has nothing else to do while it waits for one to begin (an H200,
// 256x4096x16384 in tiles of 128x96 by one warpgroup: 94 us of seven slots of which none is late, 71 of seven of which
// one is, 94 of four; 128x64 60.9 and 59.0; of 64x64 and fewer as fast either way).
constexpr int64_t kManySlots = 6, kManyElements = 128 * 64;

bool clash(const Body& a, const Body& b, const ProgramTables& p) {
  return meet(written_by(a, p), accessed_by(b, p), p) || meet(written_by(b, p), accessed_by(a, p), p);
}

struct Extents {
  int64_t m = 0, n = 0;
};
// Of the first product of a turn.
Extents product_of(const FoundRing& r) {
  for (const Stmt& s : turn_of(r))
    if (const auto* g = s.as<Gemm>())
      return {constant_int(g->c.extent[g->c.extent.size() - 2]).value_or(0),
              constant_int(g->c.extent.back()).value_or(0)};
  return {};
}

bool may_be_late(const FoundRing& r, bool alone) {
  const auto [m, n] = product_of(r);
  return r.slots > kEnoughSlots && (!waits_for_loads(r) || (alone && r.slots >= kManySlots && m * n >= kManyElements));
}

}  // namespace

bool waits_for_loads(const FoundRing& r) {
  const auto [m, n] = product_of(r);
  return m * n < kLoadBound * (m + n);
}

bool feed_gemms(const ProgramTables& p, const Launch& launch, const std::vector<FoundRing>& rings) {
  return any_in(launch.body, [&](const Stmt& s) {
    const auto* g = s.as<Gemm>();
    const auto type = [&](const Region& region) { return operand_type(p, *g, region); };
    return g && target::wgmma_for(type(g->a), type(g->b), p.buffer(g->c.buffer).type, g->is_sparse()) &&
           std::ranges::any_of(
               rings, [&](const FoundRing& r) { return r.ahead && (r.brings(g->a.buffer) || r.brings(g->b.buffer)); });
  });
}

const FoundRing* OverlappedProducts::feeds_one_gemm(const For& loop) const {
  const FoundRing* ring = nullptr;
  for (const Stmt& s : loop.body) {
    if (is_moved(rings_, s) || s.as<Let>()) continue;
    const auto* g = s.as<Gemm>();
    if (!g || ring || p_.buffer(g->c.buffer).space != Space::Fragment) return nullptr;
    ring = fed_by(s, loop);
    if (!ring || ring->slots < 2) return nullptr;
  }
  return ring;
}

Made OverlappedProducts::makes_operand(const For& loop) const {
  Made none, out;
  for (const Stmt& s : loop.body) {
    if (is_moved(rings_, s)) continue;
    if (out.brought) return none;  // the product is the last statement
    const auto* g = s.as<Gemm>();
    if (!g) {
      if (holds<Gemm, Sync, For>({s})) return none;
      continue;
    }
    if (g->is_sparse() || !g->completion.immediate() || p_.buffer(g->c.buffer).space != Space::Fragment) return none;
    out.brought = fed_by(s, loop);
    if (!out.brought || out.brought->slots < kEnoughSlots || !out.brought->ahead) return none;
    const bool brings_a = out.brought->brings(g->a.buffer);
    if (brings_a == out.brought->brings(g->b.buffer)) return none;
    out.tile = brings_a ? g->b.buffer : g->a.buffer;
    const Body before(loop.body.begin(), std::ranges::find_if(loop.body, [&](const Stmt& x) { return &*x == &*s; }));
    if (accessed_by(before, p_).contains(p_.root(g->c.buffer)) || !is_made_anew(out.tile, before)) return none;
  }
  return out.brought ? out : none;
}

// Whether the statements before the product write all of the tile, which nobody else has to do with.
bool OverlappedProducts::is_made_anew(BufferId id, const Body& before) const {
  const Buffer& b = p_.buffer(id);
  if (b.space != Space::Shared || b.is_view()) return false;
  for (const Buffer& other : p_.buffers)
    if (other.is_view() && other.root == id) return false;
  const int uses = accesses_of(launch_.body, id, p_);
  int writes = 0;
  bool all = false;
  for (const Stmt& s : before) {
    walk({s}, [&](const Stmt& x) {
      for (const Effect& e : effects_of(x).list)
        if (e.region.valid() && e.region.buffer == id) writes += e.access == Access::Write ? 1 : uses;
    });
    all = all || writes_whole(s, id, p_);
  }
  return all && writes + 1 == uses;
}

const FoundRing* OverlappedProducts::fed_by(const Stmt& s, const For& loop) const {
  const FoundRing* found = nullptr;
  for (const FoundRing& r : rings_) {
    if (r.first_use != &*s || r.last_use != &*s || r.nest.empty() || r.nest.back() != &loop) continue;
    if (found) return nullptr;
    found = &r;
  }
  return found;
}

std::optional<Skew> OverlappedProducts::skewed(const For& loop) const {
  Skew s;
  Body between;
  std::set<VarId> names;
  for (const Stmt& x : loop.body) {
    if (is_moved(rings_, x)) continue;
    if (s.second.gemm) return std::nullopt;  // the second gemm is the last statement
    const auto* g = x.as<Gemm>();
    if (!g) {
      if (holds<Gemm, Sync>({x})) return std::nullopt;
      if (const auto* let = x.as<Let>(); let && !s.first.gemm) names.insert(let->var);
      (s.first.gemm ? between : s.head).push_back(x);
      continue;
    }
    if (p_.buffer(g->c.buffer).space != Space::Fragment) return std::nullopt;
    const FoundRing* ring = fed_by(x, loop);
    if (!ring) return std::nullopt;
    (s.first.gemm ? s.second : s.first) = {x, ring};
  }
  if (!s.second.gemm || s.first.operand == s.second.operand) return std::nullopt;
  // What the second multiplies is given back behind the next turn's first, which the loader may bring later.
  if (s.second.operand < s.first.operand && s.second.operand->slots < 2) return std::nullopt;
  const Gemm& second = *s.second.gemm.as<Gemm>();
  if (p_.buffer(second.a.buffer).space != Space::Fragment || second.clear) return std::nullopt;
  for (const Region* r : {&second.a, &second.c})
    for (const Expr& e : r->min)
      if (!constant_int(e)) return std::nullopt;
  Body head = s.head, rest = between;
  head.push_back(s.first.gemm), rest.push_back(s.second.gemm);
  if (clash(head, {s.second.gemm}, p_)) return std::nullopt;
  for (VarId v : used_vars(rest))
    if (names.contains(v)) return std::nullopt;  // each side has names of its own
  const std::set<BufferId> mine{p_.root(second.a.buffer), p_.root(second.c.buffer)};
  for (const Stmt& x : between) {
    const bool touches = std::ranges::any_of(accessed_by({x}, p_), [&](BufferId id) { return mine.contains(id); });
    if (!touches && clash({x}, s.pack, p_)) return std::nullopt;  // it would move before what it needs
    (touches ? s.pack : s.map).push_back(x);
  }
  return s;
}

std::optional<Promoted> OverlappedProducts::promoted(const For& loop) const {
  int fed = 0;
  for (const FoundRing& r : rings_) {
    if (std::ranges::find(r.nest, &loop) == r.nest.end()) continue;
    if (r.nest.back() != &loop || r.slots < kEnoughSlots) return std::nullopt;
    ++fed;
  }
  Promoted out;
  Body before;
  for (const Stmt& s : loop.body) {
    if (is_moved(rings_, s)) continue;
    if (s.as<Gemm>()) {
      if (out.gemm) return std::nullopt;
      out.gemm = s;
      continue;
    }
    if (holds<Gemm, Sync>({s})) return std::nullopt;
    (out.gemm ? out.rest : before).push_back(s);
  }
  if (fed == 0 || !out.gemm || out.rest.empty() || may_jump(loop.body)) return std::nullopt;
  const Gemm& g = *out.gemm.as<Gemm>();
  const Buffer& c = p_.buffer(g.c.buffer);
  if (!g.clear || constant_int(g.clear) != 1 || !g.completion.immediate() || c.space != Space::Fragment ||
      !is_whole(g.c, c) || !fits_twice(g.c.buffer))
    return std::nullopt;
  // Nobody else knows the tile: each turn begins with nothing of it.
  Body uses = out.rest;
  uses.push_back(out.gemm);
  const BufferId own = p_.root(g.c.buffer);
  if (accesses_of(launch_.body, own, p_) != accesses_of(uses, own, p_)) return std::nullopt;
  // What is not for the product moves behind it.
  Body needed{out.gemm};
  for (auto s = before.rbegin(); s != before.rend(); ++s) {
    const auto* let = s->as<Let>();
    const bool is_needed =
        let ? used_vars(needed).contains(let->var) : meet(written_by({*s}, p_), accessed_by(needed, p_), p_);
    Body& to = is_needed ? needed : out.rest;
    to.insert(to.begin(), *s);
    if (is_needed) out.head.insert(out.head.begin(), *s);
  }
  // It comes before the rest of the turn before, then.
  const auto without_result = [&](Buffers of) {
    of.erase(p_.root(g.c.buffer));
    return of;
  };
  if (meet(without_result(written_by(needed, p_)), accessed_by(out.rest, p_), p_) ||
      meet(written_by(out.rest, p_), without_result(accessed_by(needed, p_)), p_))
    return std::nullopt;
  for (const Stmt& s : out.head)
    if (const auto* let = s.as<Let>(); let && used_vars(out.rest).contains(let->var)) return std::nullopt;
  return out;
}

bool OverlappedProducts::fits_twice(BufferId id) const {
  const int64_t bits =
      analysis::bits_of_fragments({id}, p_) + analysis::bits_of_fragments(used_roots(launch_.body, p_), p_);
  return bits / 32 / launch_.threads[0] <= kLive[std::min<int64_t>(launch_.threads[0] / target::kWarpgroupThreads, 4)];
}

std::vector<Order> OverlappedProducts::orders(const Body& body, const Hints& hints) const {
  std::vector<Order> out;
  for (const Stmt& s : body) {
    const auto* loop = s.as<For>();
    // Where turns have tensors of their own, none is written as another.
    const bool are_alike = loop && !binds_buffers(p_, s);
    const auto wanted = loop ? hints.orders.find(p_.var(loop->var).name) : hints.orders.end();
    const auto asks = [&](Order::How how) { return wanted != hints.orders.end() && wanted->second == how; };
    const bool is_open = wanted == hints.orders.end() || asks(Order::How::Alternating);
    const FoundRing* one = are_alike ? feeds_one_gemm(*loop) : nullptr;
    if (are_alike && is_open && promoted(*loop))
      out.push_back({Order::How::Alternating, loop->var});
    else if (are_alike && skewed(*loop))
      out.push_back({Order::How::Skewed, loop->var});
    else if (one && (asks(Order::How::Overlapped) || may_be_late(*one, alone_)))
      out.push_back({Order::How::Overlapped, loop->var});
    else if (are_alike && makes_operand(*loop).brought)
      out.push_back({Order::How::MadeBeside, loop->var});
    else if (loop || holds_copies(rings_, s))
      for_each_body(s, [&](const Body& inner) {
        for (const Order& o : orders(inner, hints)) out.push_back(o);
      });
  }
  return out;
}

}  // namespace tilewright::plan
