#include "passes/threads/fit_registers.h"

#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/rewrite.h"
#include "passes/threads/narrow_steps.h"
#include "support/diagnostic.h"
#include "target/wgmma.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kFewestSteps = 64;  // a step that is a tile's column or row of panels
constexpr int64_t kGroup = target::kWarpgroupThreads;

// Fragments of a body and of the loops in it: from where to where, in the order of statements, each is alive.
class Lives {
 public:
  Lives(const ProgramTables& p, const Launch& launch) : p_(p), launch_(launch) { body(launch.body); }

  int64_t most() const {
    int64_t out = 0;
    for (int at = 0; at < now_; ++at) {
      int64_t bits = 0;
      for (const auto& [id, life] : lives_)
        if (life.first <= at && at <= life.last) bits += life.bits;
      out = std::max(out, bits);
    }
    return out / 32 / launch_.threads[0];
  }

 private:
  struct Life {
    int first, last;
    int64_t bits;
  };
  void body(const Body& in) {
    for (const Stmt& s : in) {
      const int begin = now_;
      const auto before = lives_;
      for (const Effect& e : effects_of(s).list)
        if (e.region.valid()) touch(p_.root(e.region.buffer));
      if (s.as<Map>()) {
        for (BufferId id : used_buffers({s})) touch(p_.root(id));
      } else {
        for_each_body(s, [&](const Body& inner) { body(inner); });
      }
      ++now_;
      // What was there before a loop and is used in it is alive in all of it.
      if (s.as<For>() || s.as<While>())
        for (auto& [id, life] : lives_)
          if (life.last >= begin && before.contains(id)) life.last = now_ - 1;
    }
  }
  void touch(BufferId id) {
    const Buffer& b = p_.buffer(id);
    if (b.space != Space::Fragment || b.rank() < 2) return;
    const auto [at, is_new] = lives_.try_emplace(id, Life{now_, now_, 0});
    at->second.last = now_;
    if (is_new) at->second.bits = elements_on_chip(b) * b.type.bits;
  }

  const ProgramTables& p_;
  const Launch& launch_;
  std::map<BufferId, Life> lives_;
  int now_ = 0;
};

bool is_annotated(const TileProgram& p, const Launch& launch) {
  for (BufferId id : used_buffers(launch.body))
    if (p.buffer(id).space != Space::Global && p.buffer(id).layout.kind != LayoutHint::None) return true;
  return false;
}

// Whether the body means the same with any number of threads.
bool counts_no_threads(const TileProgram& p, const Launch& launch) {
  bool fits = !used_vars(launch.body).contains(launch.thread[0]);
  walk(launch.body, [&](const Stmt& s) {
    fits = fits && !s.as<Shuffle>() && !s.as<Vote>() && !s.as<Role>() && !s.as<Print>() && !s.as<Call>() &&
           !s.as<SetRegisters>() && !s.as<Arrive>() && !s.as<Wait>();
    if (const auto* n = s.as<Sync>()) fits = fits && n->scope == SyncScope::Block;
  });
  for (BufferId id : used_buffers(launch.body)) fits = fits && p.buffer(p.root(id)).space != Space::Local;
  return fits;
}

bool writes_fragment(const TileProgram& p, const Map& map) {
  bool found = false;
  walk(map.body, [&](const Stmt& s) {
    const auto* store = s.as<Store>();
    found = found || (store && p.buffer(store->to.buffer).space == Space::Fragment);
  });
  return found;
}

// Whether two warpgroups take half of the rows of every product each; of one that only leaves for memory, columns.
bool divides_for_two(const TileProgram& p, const Launch& launch) {
  bool fits = true;
  std::set<BufferId> kept;  // fragments that are read by more than what takes them to memory
  walk(launch.body, [&](const Stmt& s) {
    if (const auto* g = s.as<Gemm>()) kept.insert(g->a.buffer);
    if (const auto* r = s.as<Reduce>()) kept.insert(r->from.buffer);
    if (const auto* m = s.as<Map>(); m && writes_fragment(p, *m))
      for (BufferId id : used_buffers(m->body)) kept.insert(id);
    if (const auto* c = s.as<Copy>(); c && p.buffer(c->to.buffer).space == Space::Fragment) kept.insert(c->from.buffer);
  });
  walk(launch.body, [&](const Stmt& s) {
    const auto* g = s.as<Gemm>();
    if (!g) return;
    const auto& extent = g->c.extent;
    const int64_t rows = constant_int(extent[extent.size() - 2]).value_or(0);
    const int64_t columns = constant_int(extent.back()).value_or(0);
    const bool by_rows = rows % (2 * target::kWgmmaRows) == 0;
    const bool by_columns = rows % target::kWgmmaRows == 0 && columns % 16 == 0 && !kept.contains(g->c.buffer) &&
                            p.buffer(g->a.buffer).space != Space::Fragment;
    fits = fits && (by_rows || by_columns);
  });
  return fits;
}

// The launch with halves of the steps of a loop of its body.
std::optional<Launch> with_half_steps(TileProgram& p, const Launch& launch, size_t loop) {
  return halve_steps(p, launch, loop, kFewestSteps);
}

}  // namespace

int64_t live_registers(const ProgramTables& program, const Launch& launch) { return Lives(program, launch).most(); }

Launch fitted(TileProgram& program, const Launch& launch, const plan::Fit& fit) {
  Launch out = launch;
  for (size_t i = 0; fit.half_steps_of.valid() && i < launch.body.size(); ++i) {
    const auto* loop = launch.body[i].as<For>();
    if (!loop || loop->var != fit.half_steps_of) continue;
    auto halved = with_half_steps(program, launch, i);
    check_internal(halved.has_value(), "a loop whose steps could be halved cannot be");
    out = std::move(*halved);
  }
  if (fit.threads > 0) out.threads[0] = fit.threads;
  return out;
}

plan::Fit fit_registers(TileProgram& program, const Launch& launch, int64_t most) {
  bool multiplies = false;
  walk(launch.body, [&](const Stmt& s) { multiplies = multiplies || s.as<Gemm>(); });
  if (!multiplies || launch.threads.size() != 1 || launch.threads[0] > 2 * kGroup) return {};
  const int64_t own = live_registers(program, launch);
  if (own <= most || is_annotated(program, launch)) return {};
  struct Way {
    plan::Fit fit;
    Launch launch;
  };
  std::optional<Way> halved;
  for (size_t i = 0; i < launch.body.size() && !halved; ++i)
    if (auto with = with_half_steps(program, launch, i))
      halved = Way{{.half_steps_of = launch.body[i].as<For>()->var}, std::move(*with)};
  std::vector<Way> ways;
  if (halved) ways.push_back(*halved);
  if (launch.threads[0] == kGroup && counts_no_threads(program, launch)) {
    for (const std::optional<Way>& base : {std::optional(Way{{}, launch}), halved}) {
      if (!base || !divides_for_two(program, base->launch)) continue;
      Way both = *base;
      both.launch.threads[0] = both.fit.threads = 2 * kGroup;
      ways.push_back(std::move(both));
    }
  }
  for (Way& way : ways) {
    way.fit.live = live_registers(program, way.launch), way.fit.own = own;
    if (way.fit.live <= most) return way.fit;
  }
  return {};
}

}  // namespace tilewright::passes
