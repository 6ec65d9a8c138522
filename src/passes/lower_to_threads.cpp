#include "passes/lower_to_threads.h"

#include "ir/extent.h"
#include "ir/rewrite.h"
#include "support/warning.h"
#include "target/mma.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kFewerRegisters = 160;  // of tiles, where the device compiler found too few for more

// Lines of plans that were handed in are as they were fixed.
void check_hints(const ThreadLowering& p) {
  for (size_t i = 0; i < p.tiles.launches.size(); ++i) {
    const Launch& launch = p.tiles.launches[i];
    const SourceLocation& at = p.tiles.location(launch.location);
    if (!p.target.has.tma) {
      if (!launch.plan.empty())
        warn(
            make_diagnostic(Code::GpuPlan, at,
                            fmt::format("launch '{}' has lines of a plan; {} has no plans", launch.name, p.target.name),
                            "they are for GPUs whose copies run by themselves: sm_90a"));
      continue;
    }
    const auto unmet = plan::first_unmet(plan::parse_hints(launch.plan, at), p.plans[i], p.tiles);
    if (!unmet) continue;
    std::vector<std::string> why;
    for (const TriedPlan& t : p.tried)
      if (t.launch == i && why.empty() && !t.why_not.empty()) why.push_back(t.why_not);
    for (const plan::Rejection& r : p.plans[i].rejected) why.push_back(r.why);
    Diagnostic d = make_diagnostic(
        Code::GpuPlan, at, fmt::format("launch '{}' has no plan with the line '{}'", launch.name, *unmet),
        "tilewright compile FILE --stage plan prints the plan that it has; take the line out, "
        "or make what stands in its way fit");
    for (const std::string& reason : why) d.notes.push_back({reason, at});
    throw CompileError(std::move(d));
  }
}

// Products for the matrix unit that are plain multiply-adds, a tenth of the speed or less: of types that it takes, here
// or on newer devices, and of two types that it does not take together, which are seldom meant.
void warn_of_slow_gemms(const GpuProgram& p) {
  constexpr int kNewest = std::numeric_limits<int>::max();
  for (size_t i = 0; i < p.tiles.launches.size(); ++i)
    walk(p.tiles.launches[i].body, [&](const Stmt& s) {
      const auto* g = s.as<Gemm>();
      if (!g) return;
      const GemmChoice& choice = p.placements[i].choice_of(s);
      const DType a = operand_type(p.tiles, *g, g->a), b = operand_type(p.tiles, *g, g->b);
      const DType c = p.tiles.buffer(g->c.buffer).type;
      const bool is_for_it = target::mma_for(a, b, c, p.target.arch, g->is_sparse());
      const bool is_for_newer = target::mma_for(a, b, c, kNewest, g->is_sparse());
      if (choice.has_instruction() || (!is_for_newer && a == b)) return;
      warn(make_diagnostic(
          Code::GpuSlowGemm, p.tiles.location(s->location),
          fmt::format("this gemm goes element by element, not by the matrix unit: {}", choice.why_not_mma),
          is_for_it || a == b ? "tilewright explain says what became of every operation"
                              : "copy one operand to a tile of the other's type first"));
    });
}

}  // namespace

ThreadLowering lower_to_threads(const TileProgram& program, const target::GpuTarget& target, plan::Limits limits,
                                GpuObserver observer) {
  ThreadLowering out = search_plans(program, target, limits, observer);
  check_hints(out);
  warn_of_slow_gemms(out);
  return out;
}

std::string print_plans(const ThreadLowering& lowered) {
  std::string out;
  for (size_t i = 0; i < lowered.plans.size(); ++i) {
    out += fmt::format("launch {}\n", lowered.tiles.launches[i].name);
    for (const std::string& line : plan::lines_of(lowered.plans[i], lowered.tiles)) out += "  " + line + "\n";
  }
  return out;
}

std::span<const plan::Limits> limits_in_turn() {
  static const plan::Limits all[] = {{},
                                     {.one_branch = true},
                                     {.other_registers = true},
                                     {.other_registers = true, .live = kFewerRegisters},
                                     {.overlap = false, .other_registers = true},
                                     {.overlap = false, .other_registers = true, .live = kFewerRegisters}};
  return all;
}

}  // namespace tilewright::passes
