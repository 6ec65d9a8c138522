#include "passes/schedule/iteration_teams.h"

#include "analysis/stored_once.h"
#include "analysis/tma.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/schedule/role_code.h"
#include "passes/schedule/team_iterations.h"
#include "passes/schedule/team_loader.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;
using analysis::tma_misfit;

namespace {

class TeamsWriter {
 public:
  TeamsWriter(TileProgram& p, Launch& launch, const IterationParts& parts, const plan::Plan& plan)
      : p_(p),
        launch_(launch),
        parts_(parts),
        stored_(analysis::stored_tensors(p, launch)),
        plan_(plan),
        loop_(open_team_loop(p, launch, parts, plan)),
        exchange_(open_exchange(loop_)) {
    for (int team : {0, 1}) own_fragments(team);
  }

  std::vector<BufferId> run() {
    Body body;
    loader(body);
    for (int team : {0, 1})
      body.push_back(loop_.stmt(Role{team * kTeamThreads, (team + 1) * kTeamThreads, of_team(team)}));
    share_what_is_brought();
    launch_.body = std::move(body);
    launch_.threads[0] = 3 * kTeamThreads;
    return std::move(staged_);
  }

 private:
  // Fragments of the team; of the result, its columns.
  void own_fragments(int team) {
    for (BufferId id : used_buffers(launch_.body)) {
      if (p_.buffer(id).space != Space::Fragment && id != parts_.left) continue;
      Buffer b = p_.buffer(id);
      b.space = Space::Fragment;
      if (id == parts_.result) b.shape[1] = constant(parts_.half);
      own_[team][id] = p_.new_buffer(std::move(b));
    }
  }
  // Blocks that bring the same tiles run side by side, so that the second finds them in the L2 cache.
  void share_what_is_brought() {
    if (launch_.swizzle.panel > 0) return;
    const std::set<VarId> used = vars_of_rings(loop_);
    std::vector<Expr> grid;
    std::vector<VarId> block;
    for (const bool brings : {false, true})
      for (size_t d = 0; d < launch_.grid.size(); ++d)
        if (used.contains(launch_.block[d]) == brings)
          grid.push_back(launch_.grid[d]), block.push_back(launch_.block[d]);
    launch_.grid = std::move(grid), launch_.block = std::move(block);
  }

  // ---- the loader's warps
  void loader(Body& out) const {
    constexpr int64_t kBegin = 2 * kTeamThreads;
    constexpr auto kWarps = static_cast<size_t>(kTeamWarps);
    out.push_back(loop_.stmt(
        Role{kBegin, kBegin + kTeamThreads, {loop_.stmt(SetRegisters{plan_.registers_of(plan::Role::Job::Load)})}}));
    const size_t last = loop_.rings.size() < kWarps ? kWarps - 1 : 0;
    for (size_t warp = 0; warp < kWarps; ++warp) {
      Body work = warp == last ? load_once(loop_) : Body{};
      if (warp < loop_.rings.size()) append(work, load_ring(loop_, loop_.rings[warp]));
      const int64_t begin = kBegin + static_cast<int64_t>(warp) * kWarpThreads;
      if (work.empty()) continue;
      out.push_back(loop_.stmt(Role{begin, begin + kWarpThreads, with_names(std::move(work))}));
    }
  }
  Body with_names(Body work) const {
    Body names;
    for (const Stmt& s : parts_.prologue)
      if (s.as<Let>()) names.push_back(s);
    return renamed(p_, behind_names(names, std::move(work)));
  }

  // ---- a team, from its first statement to its last
  Body of_team(int team) {
    Body out;
    for (const Stmt& s : parts_.prologue) append(out, around(s, team));
    if (!loop_.once.empty()) append(out, wait_full(loop_.once_ring, {constant(0), constant(0)}, parts_.at));
    const Expr any = binary(BinaryOp::Lt, constant(0), loop_.extent());
    const auto surely = constant_int(any);
    Body turns = surely == 0 ? Body{} : iterations_of(loop_, exchange_, team);
    if (surely)
      append(out, std::move(turns));
    else
      out.push_back(loop_.stmt(If{any, std::move(turns), {}}));
    for (const Stmt& s : parts_.epilogue) append(out, around(s, team));
    out = with_buffers(out, own_[team]);
    out.insert(out.begin(), loop_.stmt(SetRegisters{plan_.registers_of(plan::Role::Job::Compute)}));
    return renamed(p_, std::move(out));
  }
  bool touches_result(const Stmt& s) const { return used_buffers({s}).contains(parts_.result); }
  Body around(const Stmt& s, int team) {
    if (touches_result(s)) {
      const Stmt mine = of_columns(loop_, s, team);
      const auto* leaves = mine.as<Copy>();
      return leaves ? leave(*leaves, team) : Body{mine};
    }
    bool leaves = false;
    walk({s}, [&](const Stmt& x) {
      const auto* store = x.as<Store>();
      const auto* moved = x.as<Copy>();
      const BufferId to = store ? store->to.buffer : moved ? moved->to.buffer : BufferId{};
      leaves = leaves || (to.valid() && p_.buffer(to).space == Space::Global);
    });
    return leaves && team == 1 ? Body{} : Body{s};
  }
  // A half of the result goes by TMA from where the same half of a tile was that no scores need any more: who has taken
  // the last iteration knows that both teams have read it.
  Body leave(const Copy& c, int team) {
    if (!stored_.once.contains(p_.root(c.to.buffer))) return {loop_.stmt(c)};
    for (const auto& [tile, halves] : loop_.halves) {
      const BufferId half = halves[static_cast<size_t>(team)];
      const Buffer& b = p_.buffer(half);
      const bool is_once =
          std::any_of(loop_.once.begin(), loop_.once.end(), [&](const TeamTile& t) { return t.tile == half; });
      if (!is_once || b.type != p_.buffer(c.to.buffer).type || constant_int(b.shape[0]) != target::kWgmmaRows ||
          constant_int(b.shape[1]) != parts_.half)
        continue;
      Copy away;
      away.from = whole(half, p_), away.to = c.to, away.completion.queue = Queue::BulkStore;
      if (!tma_misfit(away, p_).empty()) continue;
      if (team == 0) staged_.push_back(c.from.buffer);
      Copy out;
      out.from = c.from, out.to = whole(half, p_);
      return {loop_.stmt(std::move(out)), loop_.stmt(std::move(away)), loop_.stmt(Commit{Queue::BulkStore}),
              loop_.stmt(Drain{Queue::BulkStore, 0, {}})};
    }
    return {loop_.stmt(c)};
  }

  TileProgram& p_;
  Launch& launch_;
  const IterationParts& parts_;
  const analysis::StoredTensors stored_;
  const plan::Plan& plan_;
  const TeamLoop loop_;
  const TeamExchange exchange_;
  std::vector<BufferId> staged_;
  std::map<BufferId, BufferId> own_[2];  // fragments of the teams
};

}  // namespace

std::vector<BufferId> take_iterations_in_turn(TileProgram& program, Launch& launch, const plan::Plan& plan) {
  std::string why;
  const auto parts = analysis::iteration_parts(program, launch, why);
  check_internal(parts.has_value(), "teams that could take the iterations in turn cannot: {}", why);
  return TeamsWriter(program, launch, *parts, plan).run();
}

}  // namespace tilewright::passes
