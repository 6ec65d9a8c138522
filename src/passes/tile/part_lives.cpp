#include "passes/tile/part_lives.h"

#include <algorithm>

#include "analysis/accessed.h"
#include "analysis/own_schedule.h"
#include "ir/buffer_vars.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/number_statements.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kSlots = 3;  // that a ring of a pipelined loop has where the loop says less

// Statements that use one tile, by what of its contents they have in common: every use is joined with each filling that
// may have reached it.
class Lives {
 public:
  Lives(const ProgramTables& p, BufferId tile, const Body& body) : p_(p), tile_(tile) {
    Reaching reaching = {kBefore};
    flow(body, reaching);
  }

  // Whether every use stands in statements that this can tell apart.
  bool known() const { return known_; }
  // By a use that stands for all of its life, the uses; none of those that see what was there before the launch.
  std::map<StmtId, std::set<StmtId>> all() {
    std::map<StmtId, std::set<StmtId>> out;
    for (const auto& [id, _] : joined_)
      if (id != kBefore) out[first_of(id)].insert(id);
    return out;
  }

 private:
  using Reaching = std::set<StmtId>;  // fillings whose elements may still be there
  static constexpr StmtId kBefore = static_cast<StmtId>(-1);

  StmtId first_of(StmtId id) {
    StmtId& next = joined_.try_emplace(id, id).first->second;
    return next == id ? id : next = first_of(next);
  }
  bool uses(const Body& body) const { return used_roots(body, p_).contains(tile_); }

  void flow(const Body& body, Reaching& reaching) {
    for (const Stmt& s : body) {
      if (const auto* branch = s.as<If>()) {
        Reaching other = reaching;
        flow(branch->then_body, reaching), flow(branch->else_body, other);
        reaching.merge(other);
      } else if (const auto* loop = s.as<For>()) {
        for (size_t before = 0; before != reaching.size();) {
          before = reaching.size();
          Reaching turn = reaching;
          flow(loop->body, turn);
          reaching.merge(turn);
        }
      } else if (uses({s})) {
        use(s, reaching);
      }
      if (s.as<If>() || s.as<For>())
        for (const Effect& e : effects_of(s).list)
          known_ = known_ && !(e.region.valid() && p_.root(e.region.buffer) == tile_);
    }
  }
  void use(const Stmt& s, Reaching& reaching) {
    const StmtId mine = first_of(s->id);
    if (analysis::writes_whole(s, tile_, p_) && !analysis::read_by({s}, p_).contains(tile_)) {
      reaching = {s->id};
      return;
    }
    for (StmtId id : reaching) joined_[first_of(id)] = mine;
    if (changed_roots({s}, p_).contains(tile_)) reaching.insert(s->id);
  }

  const ProgramTables& p_;
  const BufferId tile_;
  std::map<StmtId, StmtId> joined_;
  bool known_ = true;
};

class PartLives {
 public:
  PartLives(TileProgram& p, Launch& launch, const target::GpuTarget& target) : p_(p), launch_(launch) {
    room_ = target.shared_bytes;
    for (BufferId id : used_roots(launch.body, p))
      if (p.buffer(id).space == Space::Shared) room_ -= bytes_on_chip(p.buffer(id));
  }

  void run() {
    number_statements(launch_);
    find_brought(launch_.body);
    std::map<StmtId, std::map<BufferId, BufferId>> others;
    for (const auto& [tile, copies] : brought_) part(tile, copies, others);
    if (others.empty()) return;
    launch_.body = rewrite(launch_.body, [&](const Stmt& s) -> std::optional<Body> {
      const auto at = others.find(s->id);
      return at == others.end() ? std::nullopt : std::optional(with_buffers({s}, at->second));
    });
  }

 private:
  // Copies from global memory to whole shared tiles that stand in the turns of a loop which may run ahead
  // (two_stages.h).
  void find_brought(const Body& body) {
    walk(body, [&](const Stmt& s) {
      const auto* loop = s.as<For>();
      if (!loop || !may_run_ahead(*loop)) return;
      const int64_t slots = loop->kind == LoopKind::Pipelined ? std::max(loop->stages, kSlots) : 1;
      for (const Stmt& x : loop->body) {
        const auto* copy = x.as<Copy>();
        if (copy && may_be_parted(copy->to.buffer) && analysis::writes_whole(x, copy->to.buffer, p_) &&
            p_.buffer(p_.root(copy->from.buffer)).space == Space::Global)
          brought_[copy->to.buffer][x->id] = slots;
      }
    });
  }
  static bool may_run_ahead(const For& loop) {
    const bool multiplies = std::ranges::any_of(loop.body, [](const Stmt& x) { return x.as<Gemm>(); });
    return loop.kind == LoopKind::Pipelined || (loop.kind == LoopKind::Serial && !multiplies);
  }
  bool may_be_parted(BufferId id) const {
    const Buffer& b = p_.buffer(id);
    return b.space == Space::Shared && !b.is_view() && !b.reducer && !analysis::names_as_a_whole(launch_.body, id) &&
           std::ranges::none_of(p_.buffers, [&](const Buffer& x) { return x.is_view() && x.root == id; });
  }
  using Slots = std::map<StmtId, int64_t>;  // of the rings that the copies may fill

  // The first life keeps the tile, and with it all that no loop brings.
  void part(BufferId tile, const Slots& copies, std::map<StmtId, std::map<BufferId, BufferId>>& others) {
    Lives lives(p_, tile, launch_.body);
    if (!lives.known()) return;
    std::vector<std::set<StmtId>> brought, left;
    for (const auto& [_, uses] : lives.all()) (slots_of(uses, copies) > 0 ? brought : left).push_back(uses);
    const int64_t bytes = bytes_on_chip(p_.buffer(tile));
    int64_t more = left.empty() ? -1 : 0;
    if (!follow_each_other(brought)) {
      for (const auto& uses : brought) more += slots_of(uses, copies);
    } else {
      more += static_cast<int64_t>(brought.size());
    }
    if (brought.size() + left.size() < 2 || more * bytes > room_) return;
    room_ -= more * bytes;
    for (size_t i = left.empty() ? 1 : 0; i < brought.size(); ++i) {
      Buffer own = p_.buffer(tile);
      own.name += fmt::format("_{}", i + (left.empty() ? 1 : 2));
      const BufferId id = p_.new_buffer(std::move(own));
      for (StmtId use : brought[i]) others[use][tile] = id;
    }
  }
  static int64_t slots_of(const std::set<StmtId>& uses, const Slots& copies) {
    int64_t slots = 0;
    for (const auto& [copy, of_loop] : copies)
      if (uses.contains(copy)) slots = std::max(slots, of_loop);
    return slots;
  }
  // Whether the launch's own statements are for one life each, one life after the other: rings may then lie over each
  // other (SharedLives), and only the largest must find room.
  bool follow_each_other(const std::vector<std::set<StmtId>>& lives) const {
    std::set<size_t> begun;
    size_t now = lives.size();
    bool out = true;
    for (const Stmt& top : launch_.body) {
      std::set<size_t> here;
      walk({top}, [&](const Stmt& s) {
        for (size_t i = 0; i < lives.size(); ++i)
          if (lives[i].contains(s->id)) here.insert(i);
      });
      if (here.empty()) continue;
      const size_t next = *here.begin();
      out = out && here.size() == 1 && (next == now || begun.insert(next).second);
      now = next;
    }
    return out;
  }

  TileProgram& p_;
  Launch& launch_;
  int64_t room_ = 0;
  std::map<BufferId, Slots> brought_;
};

// Whether the code goes through its statements in order, and says all that it uses.
bool runs_as_it_stands(const Launch& launch) {
  bool out = analysis::why_as_written(launch).empty();
  walk(launch.body, [&](const Stmt& s) {
    out = out && !s.as<While>() && !s.as<Break>() && !s.as<Continue>() && !s.as<Return>() && !s.as<Call>();
  });
  return out;
}

}  // namespace

void part_lives(TileProgram& program, const target::GpuTarget& target) {
  for (Launch& launch : program.launches)
    if (runs_as_it_stands(launch)) PartLives(program, launch, target).run();
}

}  // namespace tilewright::passes
