#include "passes/schedule/apply_plan.h"

#include "analysis/stored_once.h"
#include "ir/any_in.h"
#include "ir/number_statements.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"
#include "passes/launch_order.h"
#include "passes/schedule/iteration_teams.h"
#include "passes/schedule/late_waits.h"
#include "passes/schedule/other_steps.h"
#include "passes/schedule/ring_sides.h"
#include "passes/schedule/role_code.h"
#include "passes/schedule/schedules.h"
#include "passes/schedule/stage_results.h"
#include "passes/schedule/walk_tiles.h"
#include "passes/tile/clear_in_gemms.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;
using analysis::find_rings;
using analysis::FoundRings;
using plan::Plan;
using plan::Work;
using Ring = analysis::FoundRing;

namespace {

class RoleWriter {
 public:
  RoleWriter(Plan& plan, TileProgram& p, Launch& launch, std::vector<VarId>& blocks)
      : plan_(plan), p_(p), launch_(launch), blocks_(blocks) {}

  void run() {
    const analysis::StoredTensors stored = analysis::stored_tensors(p_, launch_);
    if (plan_.clears) launch_.body = clear_in_gemms(p_, launch_.body);
    if (plan_.takes(plan::Role::Takes::IterationsInTurn)) return iterations_in_turn();
    for (const plan::Use& use : plan_.work.uses) {
      if (!code_of(*use.of).shape) continue;
      Ending its = code_of(*use.of).shape(p_, launch_, use);
      append(ending_.of_others, std::move(its.of_others));
      ending_.together = ending_.together || its.together;
    }
    const bool grid_meets = !ending_.of_others.empty();
    const int64_t team = launch_.threads[0];
    if (plan_.work.kind == Work::Kind::Persistent)
      walk_tiles(p_, launch_, plan_.work.blocks, plan_.work.reverse_odd_waves);
    find();
    if (plan_.work.blocks_per_multiprocessor > 1) {
      launch_ = with_order(p_, std::move(launch_));
      launch_.min_blocks = std::max(launch_.min_blocks, plan_.work.blocks_per_multiprocessor);
    }
    auto [load, compute, start, rings] = write_ring_sides(p_, launch_, found_, plan_);
    rings_ = std::move(rings);
    if (grid_meets) {
      load.push_back(meet_grid()), compute.push_back(meet_grid());
      append(compute, std::move(ending_.of_others));
    }
    if (plan_.overlap) compute = wait_late(p_, compute, slots_by_barrier());
    plan_.epilogue.staged.clear();
    compute = stage_results(p_, std::move(compute), team, plan_.epilogue.how, plan_.epilogue.by_columns, stored,
                            plan_.epilogue.staged);
    Body own = part(compute);
    const auto is_stored = [](const Stmt& s) { return s.as<Commit>() && s.as<Commit>()->queue == Queue::BulkStore; };
    if (any_in(compute, is_stored)) compute.push_back(at_launch(Drain{Queue::BulkStore, 0, {}}));
    write_roles(std::move(load), std::move(compute), std::move(own), grid_meets);
    launch_.body.insert(launch_.body.begin(), start.begin(), start.end());
  }
  // Why a schedule has nothing for a warp of its own; empty: all that want one have.
  const std::string& misfit() const { return misfit_; }

 private:
  template <class T>
  Stmt at_launch(T op) const {
    return make_stmt(std::move(op), launch_.location);
  }
  Stmt role(const plan::Role& r, int64_t warps, Body body) const {
    const int64_t begin = r.first_warp * kWarpThreads;
    return at_launch(Role{begin, begin + warps * kWarpThreads, std::move(body)});
  }

  Stmt meet_grid() const {
    Sync meet;
    meet.scope = SyncScope::Grid;
    return at_launch(std::move(meet));
  }
  void find() {
    number_statements(launch_);  // as when it was decided
    found_ = find_rings(p_, launch_);
    check_internal(found_.rings.size() == plan_.rings.size(), "a plan of {} rings for a launch of {}",
                   plan_.rings.size(), found_.rings.size());
    for (size_t i = 0; i < found_.rings.size(); ++i) {
      check_internal(found_.rings[i].tiles == plan_.rings[i].tiles, "a plan of other rings than the launch has");
      found_.rings[i].slots = plan_.rings[i].slots;
    }
  }
  // Teams keep their halves of a result, and each brings its own away: no tile of all columns is in between.
  void iterations_in_turn() {
    std::vector<BufferId> none;
    launch_.body = stage_results(p_, launch_.body, launch_.threads[0], plan_.epilogue.how, false, {}, none);
    plan_.epilogue.staged = take_iterations_in_turn(p_, launch_, plan_);
  }
  // What the plan's schedules take from the threads that compute, for the first warp that the loader leaves.
  Body part(Body& compute) {
    const auto loads = std::ranges::find(plan_.roles, plan::Role::Job::Load, &plan::Role::job);
    const auto computes = std::ranges::find(plan_.roles, plan::Role::Job::Compute, &plan::Role::job);
    for (const plan::Use& use : plan_.work.uses) {
      if (!code_of(*use.of).part) continue;
      OwnWarp own;
      if (computes->takes != plan::Role::Takes::All)
        own.why = "its teams take tiles in turn";
      else if (loads->loading == loads->warps)
        own.why = "all of the loader's warps bring tiles";
      else if (!ending_.of_others.empty())
        own.why = "its blocks wait for all others, every warp of them";
      else
        own = code_of(*use.of).part(p_, launch_, use, computes->warps, compute);
      misfit_ = std::move(own.why);
      for (const auto& [name, its] : own.names)
        if (std::ranges::find(blocks_, name) != blocks_.end()) blocks_.push_back(its);
      return std::move(own.code);  // no other schedule has one
    }
    return {};
  }
  // The first warp of the loader loads, or as many as the plan says; the next has the code that is its own.
  void write_roles(Body load, Body compute, Body own, bool grid_meets) {
    Body out;
    for (const plan::Role& r : plan_.roles) {
      if (r.job == plan::Role::Job::Load) {
        if (r.registers > 0) out.push_back(role(r, r.warps, {at_launch(SetRegisters{r.registers})}));
        out.push_back(role(r, r.loading, std::move(load)));
        if (!own.empty()) {
          plan::Role next = r;
          next.first_warp += r.loading;
          out.push_back(role(next, 1, std::move(own)));
        }
        if (grid_meets && r.loading < r.warps) {  // all threads meet, those without a job too
          plan::Role others = r;
          others.first_warp += r.loading;
          out.push_back(role(others, r.warps - r.loading, {meet_grid()}));
        }
        launch_.threads[0] = (r.first_warp + r.warps) * kWarpThreads;
        continue;
      }
      if (r.instance == 0 && r.registers > 0) compute.insert(compute.begin(), at_launch(SetRegisters{r.registers}));
      if (r.takes == plan::Role::Takes::All) {
        out.push_back(role(r, r.warps, std::move(compute)));
        continue;
      }
      if (r.instance > 0) continue;
      turns_ = new_barriers(p_, launch_, BarrierUse::Turn, "turns", r.instances, r.warps);
      const plan::Role& second = plan_.roles.back();
      std::unordered_map<VarId, VarId> names;
      Body other = every_second(own_storage(renamed(p_, compute, &names)), second.instance);
      for (size_t b = 0, known = blocks_.size(); b < known; ++b)
        if (const auto name = names.find(blocks_[b]); name != names.end()) blocks_.push_back(name->second);
      out.push_back(role(r, r.warps, every_second(std::move(compute), r.instance)));
      out.push_back(role(second, second.warps, std::move(other)));
    }
    if (ending_.together) {
      Sync meet;
      meet.scope = SyncScope::Cluster;
      out.push_back(at_launch(std::move(meet)));
    }
    launch_.body = std::move(out);
  }

  // The turns of the loop over tiles that have this remainder of two, each when the other team has waited for all that
  // was brought for the turn before: a parity tells two fills of a slot apart, not three.
  Body every_second(Body body, int64_t remainder) {
    for (Stmt& s : body) {
      const auto* tiles = s.as<For>();
      if (!tiles) continue;
      For f = *tiles;
      const DType type = p_.var(f.var).type;
      const Expr two = constant(type, int64_t{2}), first = constant(type, remainder);
      f.var = p_.new_var("pair", type);
      const Expr pair = var(f.var, type);
      f.extent = binary(BinaryOp::FloorDiv, add(tiles->extent, constant(type, 1 - remainder)), two);
      f.body = substitute(tiles->body, {{tiles->var, add(mul(pair, two), first)}});
      size_t last = 0;
      for (size_t i = 0; i < f.body.size(); ++i)
        walk({f.body[i]}, [&](const Stmt& x) { last = x.as<Wait>() ? i : last; });
      f.body.insert(f.body.begin() + static_cast<std::ptrdiff_t>(last) + 1,
                    arrive_by_warps({turns_, {constant(i32, 1 - remainder)}}, s->location));
      // The first turn of all is nobody's to give.
      const Expr round = binary(BinaryOp::FloorMod, cast(pair, i32), constant(i32, int64_t{2}));
      const Expr parity = remainder == 0 ? binary(BinaryOp::BitXor, round, constant(i32, int64_t{1})) : round;
      f.body.insert(f.body.begin(), make_stmt(Wait{{turns_, {constant(i32, remainder)}}, parity}, s->location));
      s = make_stmt(std::move(f), s->location);
    }
    return body;
  }
  // The same on buffers of its own, where they are of the block and no ring.
  Body own_storage(const Body& body) {
    const auto number = static_cast<int32_t>(&launch_ - p_.launches.data());
    std::set<BufferId> shared{turns_};
    for (const SlotRing& r : rings_) {
      shared.insert(r.full), shared.insert(r.empty);
      shared.insert(r.slots_of.begin(), r.slots_of.end());
    }
    std::map<BufferId, BufferId> own;
    for (BufferId id : used_buffers(body)) {
      for (BufferId each : {p_.root(id), id}) {
        if (p_.buffer(each).launch != number || shared.contains(p_.root(each)) || own.contains(each)) continue;
        Buffer b = p_.buffer(each);
        if (b.is_view()) b.root = own.at(b.root);
        own[each] = p_.new_buffer(std::move(b));
      }
    }
    return with_buffers(body, own);
  }

  SlotsOf slots_by_barrier() const {
    SlotsOf out;
    for (const SlotRing& r : rings_) out[r.empty].insert(r.slots_of.begin(), r.slots_of.end());
    return out;
  }

  Plan& plan_;
  TileProgram& p_;
  Launch& launch_;
  std::vector<VarId>& blocks_;  // variables that number blocks, by all of their names
  FoundRings found_;
  std::vector<SlotRing> rings_;  // as they are written
  Ending ending_;                // of the plan's schedules
  std::string misfit_;           // of the schedule that has a warp of its own
  BufferId turns_;               // of two teams: mbarriers on which each waits for its turn
};

}  // namespace

std::vector<VarId> apply_plan(Plan& plan, TileProgram& program, size_t number) {
  Launch& launch = program.launches[number];
  std::vector<VarId> blocks = launch.block;
  if (!plan.changes()) {
    if (plan.fit.any()) launch = fitted(program, launch, plan.fit);
    if (plan.clears) launch.body = clear_in_gemms(program, launch.body);
    return blocks;
  }
  const LaunchOrder order = launch_order(launch);
  launch.body = without_launch_order(launch.body);
  if (plan.fit.any()) launch = fitted(program, launch, plan.fit);
  if (plan.whole) {
    code_of(*plan.whole).write(plan, program, launch);
  } else {
    RoleWriter writer(plan, program, launch, blocks);
    writer.run();
    check_internal(writer.misfit().empty(), "a plan with a warp of its own for nothing: {}", writer.misfit());
  }
  if (order.any()) launch.body = order_around_roles(launch, order, program);
  return blocks;
}

std::string misfit_of_warps(Plan plan, TileProgram program, size_t number) {
  const auto has_part = [](const plan::Use& use) { return code_of(*use.of).part != nullptr; };
  if (std::ranges::none_of(plan.work.uses, has_part)) return "";
  std::vector<VarId> blocks;
  RoleWriter writer(plan, program, program.launches[number], blocks);
  writer.run();
  return writer.misfit();
}

}  // namespace tilewright::passes
