#include "passes/lower_to_threads.h"

#include "ir/extent.h"
#include "ir/rewrite.h"
#include "support/warning.h"
#include "target/mma.h"

namespace tilewright::passes {

using namespace ir;
using plan::Staging;
using Takes = plan::Role::Takes;

namespace {

constexpr int64_t kMaxSlots = plan::Limits{}.slots;  // of a ring: no program gains from more
constexpr int64_t kEnoughSlots = 3;                  // measured: a gemm with three slots loses nothing to one with four
constexpr int64_t kFewerRegisters = 160;             // of tiles, where the device compiler found too few for more
constexpr int64_t kAnyRegisters = std::numeric_limits<int64_t>::max();

// Where the search for a launch's plan stands: the best that fits is looked for from the top down. Results staged
// beside rings that still hide latencies come first, then shorter rings without, then no loader; buffers lie over each
// other only where nothing else helps, for it takes waits between what uses them.
class PlanSearch {
 public:
  explicit PlanSearch(const plan::Limits& limits) : first_(limits), begin_(limits), limits_(limits) {
    if (!is_of_loader()) without_loader();
  }
  const plan::Limits& limits() const { return limits_; }
  bool over() const { return over_; }

  // The next after one that did not fit. False: there is none.
  bool next(const plan::Plan& plan) {
    if (!reuse_ && !over_ && ends_with_a_tile(plan)) return over_ = true;
    over_ = reuse_;
    if (is_of_loader()) {
      lower(plan);
      if (is_of_loader()) return true;
      if (plan.fit.any() && limits_.live != kAnyRegisters) {  // with the program's threads and steps, then
        limits_ = begin_, limits_.live = kAnyRegisters, begin_ = limits_;
        return true;
      }
      without_loader();
      return true;
    }
    if (reuse_) return false;
    reuse_ = over_ = true, limits_ = begin_ = first_;
    if (!is_of_loader()) without_loader();
    return true;
  }

 private:
  bool is_of_loader() const { return limits_.slots >= (limits_.side_by_side ? 1 : 2); }
  void without_loader() { limits_ = {.slots = 0}; }
  // Blocks that end with the result of one tile: it may lie where the rings were.
  static bool ends_with_a_tile(const plan::Plan& p) {
    return p.has_loader() && p.work == plan::Work{} && !p.takes(Takes::IterationsInTurn) && !p.epilogue.staged.empty();
  }

  // The limits below those that did not do.
  void lower(const plan::Plan& plan) {
    if (!plan.why_no_staging().empty()) limits_.staging = std::max(limits_.staging, plan.epilogue.how);
    const Staging next = limits_.staging == Staging::Whole    ? Staging::Chunks
                         : limits_.staging == Staging::Chunks ? Staging::None
                                                              : Staging::Straight;
    if (limits_.next_tile && plan.next_tile_ahead()) {
      limits_.next_tile = false;
      return;
    }
    int64_t longest = 0;
    for (const plan::Ring& ring : plan.rings) longest = std::max(longest, ring.slots);
    if (plan.takes(Takes::IterationsInTurn)) {
      limits_.slots = std::min(limits_.slots, longest) - 1;
      if (limits_.slots < 2) limits_.by_iteration = false, limits_.slots = kMaxSlots;
      return;
    }
    limits_.slots = std::min(limits_.slots, longest) - 1;
    if (plan.work.blocks_per_multiprocessor > 1 && limits_.staging == Staging::Chunks && limits_.slots < kEnoughSlots) {
      if (limits_.slots >= 1) return;  // the other block works while this one's loader brings the next
      limits_ = begin_;
      limits_.side_by_side = false;
      return;
    }
    const int64_t fewest = limits_.staging == Staging::None ? 2 : kEnoughSlots;
    if (limits_.staging != Staging::Straight && limits_.slots < fewest)
      limits_.staging = next, limits_.slots = kMaxSlots;
  }

  const plan::Limits first_;
  plan::Limits begin_, limits_;
  bool reuse_ = false;  // nothing has fitted without
  bool over_ = false;
};

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

// Types that the matrix unit takes, and yet the product is one of plain multiply-adds: a tenth of the speed, or less.
void warn_of_slow_gemms(const GpuProgram& p) {
  for (size_t i = 0; i < p.tiles.launches.size(); ++i)
    walk(p.tiles.launches[i].body, [&](const Stmt& s) {
      const auto* g = s.as<Gemm>();
      if (!g) return;
      const GemmChoice& choice = p.placements[i].choice_of(s);
      const DType a = operand_type(p.tiles, *g, g->a), b = operand_type(p.tiles, *g, g->b);
      const DType c = p.tiles.buffer(g->c.buffer).type;
      if (choice.has_instruction() || !target::mma_for(a, b, c, p.target.arch, g->is_sparse())) return;
      warn(make_diagnostic(
          Code::GpuSlowGemm, p.tiles.location(s->location),
          fmt::format("this gemm goes element by element, not by the matrix unit: {}", choice.why_not_mma),
          "tilewright explain says what became of every operation"));
    });
}

}  // namespace

ThreadLowering lower_to_threads(const TileProgram& program, const target::GpuTarget& target, plan::Limits limits,
                                GpuObserver observer) {
  GpuProgram tiles{.tiles = program, .target = target, .attempts = {}};
  for (Buffer& b : tiles.tiles.buffers) b.use = BarrierUse::None;  // a text may say what it does not hold
  run_gpu_passes(tiles, gpu_tile_passes(), observer);
  std::vector<PlanSearch> searches(program.launches.size(), PlanSearch(limits));
  ThreadLowering out;
  while (true) {
    static_cast<GpuProgram&>(out) = tiles;
    for (const PlanSearch& search : searches) out.attempts.push_back({search.limits(), search.over()});
    run_gpu_passes(out, gpu_plan_passes(), observer);
    if (!out.misfit) break;
    const size_t launch = out.misfit->launch;
    out.tried.push_back({launch, out.attempts[launch], out.misfit->why.message});
    if (!searches[launch].next(out.plans[launch])) throw CompileError(std::move(out.misfit->why));
  }
  check_hints(out);
  warn_of_slow_gemms(out);
  for (size_t i = 0; i < searches.size(); ++i) {
    out.tried.push_back({i, out.attempts[i], ""});
    out.prices.push_back(plan::price(tiles.tiles, tiles.tiles.launches[i], out.plans[i], target));
  }
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
                                     {.lean_loader = true},
                                     {.lean_loader = true, .live = kFewerRegisters},
                                     {.overlap = false, .lean_loader = true},
                                     {.overlap = false, .lean_loader = true, .live = kFewerRegisters}};
  return all;
}

}  // namespace tilewright::passes
