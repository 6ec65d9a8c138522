// Which plans launches get: the best that fit.
#pragma once
#include "ir/rewrite.h"
#include "passes/gpu_passes.h"
#include "plan/price.h"

namespace tilewright::passes {

// Under which limits a plan of a launch was made, and why it was not taken; empty: it was.
struct TriedPlan {
  size_t launch = 0;
  PlanAttempt attempt;
  std::string why_not;
};

// The plan that was taken, `tiles` with rings and roles, of which the placements speak, and the threads' program.
struct ThreadLowering : GpuProgram {
  std::vector<TriedPlan> tried;  // in this order, those that were taken last
};

// The best plans under the limits that fit, and what became of the program under them.
ThreadLowering search_plans(const ir::TileProgram& program, const target::GpuTarget& target, const plan::Limits& limits,
                            GpuObserver observer);

// What a plan of one of the program's launches costs, with the threads and steps that its fit makes of it
// (plan/price.h).
std::optional<plan::Price> price_of(const ir::TileProgram& program, size_t launch, const plan::Plan& plan,
                                    const target::GpuTarget& target, const ir::Substitution& known,
                                    const target::Machine* machine = nullptr);

// What a launch might have instead: the plan that it gets where this line is handed in (plan/hints.h).
struct NextPlan {
  std::string line;
  plan::Price price;
};

// What the plan of a launch costs; none: it depends on values that are not known, and then `next` is empty.
struct PricedPlan {
  std::optional<plan::Price> price;
  std::vector<NextPlan> next;  // of the plans that differ from it by one line the cheapest that fit, in order
};

// By launch, at most so many next ones each. `program` is what `taken` was lowered from; `known`: values of its symbols
// and scalar parameters.
std::vector<PricedPlan> price_plans(const ir::TileProgram& program, const ThreadLowering& taken,
                                    const ir::Substitution& known, size_t most);

}  // namespace tilewright::passes
