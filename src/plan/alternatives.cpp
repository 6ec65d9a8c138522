#include "plan/alternatives.h"

#include <fmt/format.h>

#include "ir/rewrite.h"
#include "plan/schedule.h"
#include "plan/words.h"

namespace tilewright::plan {

std::vector<std::string> lines_otherwise(const Plan& plan, const ir::ProgramTables& program, const ir::Launch& launch) {
  std::vector<std::string> out;
  const auto line = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    out.push_back(fmt::format(format, std::forward<Args>(args)...));
  };
  const auto of_schedules = [&] {
    for (const Schedule* s : kSchedules)
      if ((s->whole != nullptr) != plan.has_loader())
        for (std::string& other : s->otherwise(plan, program, launch)) out.push_back(std::move(other));
  };
  if (!plan.has_loader()) {
    of_schedules();
    return out;
  }
  const Work& work = plan.work;
  if (!plan.is_persistent()) line("work {}", word(kWorkWords, Work::Kind::Persistent));
  for (const int64_t blocks : {1, 2})
    if (plan.is_persistent() || work.blocks_per_multiprocessor != blocks)
      line("work {} blocks_per_multiprocessor={}", word(kWorkWords, Work::Kind::OneTile), blocks);
  of_schedules();
  for (const auto takes : {Role::Takes::All, Role::Takes::TilesInTurn, Role::Takes::IterationsInTurn})
    if (!plan.takes(takes)) line("role {} {}", word(kJobWords, Role::Job::Compute), word(kTakesWords, takes));
  line("overlap {}", plan.overlap ? "no" : "yes");
  ir::walk(launch.body, [&](const ir::Stmt& s) {
    const auto* loop = s.as<ir::For>();
    if (loop && loop->kind == ir::LoopKind::Pipelined && plan.order_of(loop->var) != Order::How::Alternating)
      line("order {} of {}", word(kOrderWords, Order::How::Alternating), program.var(loop->var).name);
  });
  for (const auto how : {Staging::Whole, Staging::Chunks, Staging::RowChunks, Staging::None, Staging::Straight})
    if (plan.epilogue.how != how) line("epilogue {}", word(kStagingWords, how));
  if (plan.fit.any()) line("fit none");
  line("not {}", Rejection::kLoader);
  return out;
}

}  // namespace tilewright::plan
