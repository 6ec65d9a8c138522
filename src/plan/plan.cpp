#include "plan/plan.h"

#include <fmt/ranges.h>

#include "plan/schedule.h"
#include "plan/words.h"

namespace tilewright::plan {

const Use* Work::find(const Schedule& schedule) const {
  const auto found = std::ranges::find(uses, &schedule, &Use::of);
  return found == uses.end() ? nullptr : &*found;
}

const Use* Work::instead_of_kind() const {
  const auto found = std::ranges::find_if(uses, [](const Use& use) { return use.of->is_work; });
  return found == uses.end() ? nullptr : &*found;
}

bool Work::gathers_tiles() const {
  return std::ranges::any_of(uses, [](const Use& use) { return use.of->several_tiles; });
}

ir::BufferId Work::shared() const {
  const auto found = std::ranges::find_if(uses, [](const Use& use) { return use.tile.valid(); });
  return found == uses.end() ? ir::BufferId{} : found->tile;
}

bool Plan::takes(Role::Takes what) const {
  return std::any_of(roles.begin(), roles.end(), [&](const Role& r) { return r.takes == what; });
}

bool Plan::next_tile_ahead() const {
  return std::any_of(rings.begin(), rings.end(), [](const Ring& r) { return !r.ahead && r.slots > 1; });
}

std::optional<Order::How> Plan::order_of(ir::VarId loop) const {
  const auto found = std::ranges::find(orders, loop, &Order::loop);
  return found == orders.end() ? std::nullopt : std::optional(found->how);
}

int64_t Plan::registers_of(Role::Job job) const {
  const auto found = std::find_if(roles.begin(), roles.end(), [&](const Role& r) { return r.job == job; });
  return found == roles.end() ? 0 : found->registers;
}

std::string Plan::why_no(const char* what) const {
  const auto found = std::find_if(rejected.begin(), rejected.end(), [&](const Rejection& r) { return r.of == what; });
  return found == rejected.end() ? "" : found->why;
}

std::vector<std::string> names_of(const Ring& ring, const ir::ProgramTables& program) {
  std::vector<std::string> out;
  for (ir::BufferId id : ring.tiles) out.push_back(program.buffer(id).name + word(kHalfWords, ring.half + 1));
  return out;
}

std::string text(const Fit& fit, const ir::ProgramTables& program) {
  if (!fit.any()) return "";
  std::vector<std::string> how;
  if (fit.half_steps_of.valid())
    how.push_back(fmt::format("half of a step of '{}' at a time", program.var(fit.half_steps_of).name));
  if (fit.wide_steps_of.valid())
    how.push_back(fmt::format("{} steps of '{}' at a time", fit.at_once, program.var(fit.wide_steps_of).name));
  if (fit.threads > 0)
    how.push_back(fmt::format("{} threads{}", fit.threads,
                              fit.live < fit.own ? fmt::format(" instead of {}", fit.threads / 2) : ""));
  const std::string all = fmt::format("{}", fmt::join(how, ", "));
  if (fit.live == 0) return all + ": 128 bytes of a row of the operands in each";
  return fmt::format("{}: tiles take {} registers a thread, not {}", all, fit.live, fit.own);
}

std::string value_of(const Use& use, const ir::ProgramTables& program) {
  return use.tile.valid() ? program.buffer(use.tile).name : fmt::format("{}", use.number);
}

std::string text(const Use& use, const ir::ProgramTables& program) {
  return fmt::format(fmt::runtime(use.of->says), value_of(use, program));
}

std::vector<std::string> lines_of(const Plan& plan, const ir::ProgramTables& program) {
  std::vector<std::string> out;
  const auto line = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    out.push_back(fmt::format(format, std::forward<Args>(args)...));
  };
  const auto names = [&](const std::vector<ir::BufferId>& ids) {
    std::vector<std::string> list;
    for (ir::BufferId id : ids) list.push_back(program.buffer(id).name);
    return fmt::format("{}", fmt::join(list, ", "));
  };
  if (plan.fit.any())
    line("fit{}{}{}{}", plan.fit.half_steps_of.valid() ? " half_steps=" + program.var(plan.fit.half_steps_of).name : "",
         plan.fit.wide_steps_of.valid()
             ? fmt::format(" wide_steps={} at_once={}", program.var(plan.fit.wide_steps_of).name, plan.fit.at_once)
             : "",
         plan.fit.threads > 0 ? fmt::format(" threads={}", plan.fit.threads) : "",
         plan.fit.live > 0 ? fmt::format(" live={} of={}", plan.fit.live, plan.fit.own) : "");
  if (plan.clears) line("clear in gemms");
  if (plan.changes()) {
    const Work& w = plan.work;
    const auto value = [&](const Use& use) {
      return fmt::format(" {}={}", use.of->field.name, value_of(use, program));
    };
    const Use* own = w.instead_of_kind();
    std::string beside;
    for (const Use& use : w.uses) beside += use.of->is_work ? "" : value(use);
    line("work {}{}{}{}{}{}", own ? own->of->word : word(kWorkWords, w.kind),
         own            ? value(*own)
         : w.blocks > 0 ? fmt::format(" blocks={}", w.blocks)
                        : "",
         w.reverse_odd_waves ? " reverse_odd_waves" : "", plan.brings_ahead() ? word(kNextTileWords, w.drawn) : "",
         w.blocks_per_multiprocessor > 1 ? fmt::format(" blocks_per_multiprocessor={}", w.blocks_per_multiprocessor)
                                         : "",
         beside);
  }
  for (const Role& r : plan.roles) {
    const std::string turn = r.takes == Role::Takes::All ? "" : fmt::format("={}/{}", r.instance, r.instances);
    line("role {} warps={}..{}{}{}{}", word(kJobWords, r.job), r.first_warp, r.first_warp + r.warps,
         r.registers > 0 ? fmt::format(" registers={}", r.registers) : "",
         r.loading > 1 ? fmt::format(" loading={}", r.loading) : "",
         r.job == Role::Job::Load ? "" : fmt::format(" {}{}", word(kTakesWords, r.takes), turn));
  }
  for (const Ring& r : plan.rings)
    line("ring {} slots={} bytes={}{}{}", fmt::join(names_of(r, program), ", "), r.slots, r.bytes,
         r.ahead ? " ahead" : "", word(kBoxesWords, r.boxes));
  if (plan.has_loader()) {
    line("overlap {}", plan.overlap ? "yes" : "no");
    for (const Order& o : plan.orders) line("order {} of {}", word(kOrderWords, o.how), program.var(o.loop).name);
    line("epilogue {}{}{}", word(kStagingWords, plan.epilogue.how), plan.epilogue.by_columns ? " by_columns" : "",
         plan.epilogue.staged.empty() ? "" : " of " + names(plan.epilogue.staged));
  }
  for (const Rejection& r : plan.rejected) line("not {}: {}", r.of, r.why);
  return out;
}

}  // namespace tilewright::plan
