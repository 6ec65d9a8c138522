#include "passes/schedule/settle_plan.h"

#include "ir/jumps.h"
#include "ir/number_statements.h"
#include "ir/rewrite.h"
#include "passes/schedule/stage_results.h"
#include "passes/threads/elementwise.h"
#include "passes/threads/widen_maps.h"

namespace tilewright::passes {

using namespace ir;
using plan::Plan;
using plan::Rejection;

namespace {

// The gemms that a plan with overlap leaves open: of loops that have an order (ring_sides.h), and of several in a loop
// with none between that is waited for (late_waits.h).
class OpenGemms {
 public:
  OpenGemms(const TileProgram& p, const Launch& launch, const Plan& plan) : p_(p), plan_(plan) {
    walk(launch.body, [&](const Stmt& s) {
      if (const auto* loop = s.as<For>()) of_loop(*loop);
    });
  }
  std::set<StmtId> found;

 private:
  static std::vector<StmtId> gemms_of(const For& loop) {
    std::vector<StmtId> out;
    for (const Stmt& s : loop.body)
      if (s.as<Gemm>()) out.push_back(s->id);
    return out;
  }
  void of_loop(const For& loop) {
    if (!plan_.order_of(loop.var)) {
      if (!may_jump(loop.body)) several(loop.body);
      return;
    }
    for (StmtId id : gemms_of(loop)) found.insert(id);
  }
  void several(const Body& body) {
    std::vector<StmtId> run, all;
    bool open = false;
    const auto note = [&](StmtId id) {
      run.push_back(id), all.push_back(id);
      open = open || run.size() > 1;
    };
    for (const Stmt& s : body) {
      if (const auto* g = s.as<Gemm>()) {
        if (!g->completion.immediate()) return;
        if (p_.buffer(g->c.buffer).space == Space::Fragment) note(s->id);
      }
      // A skewed loop begins with a product of its first turn, and ends with one of its last.
      const auto* loop = s.as<For>();
      const bool skewed = loop && plan_.order_of(loop->var) == plan::Order::How::Skewed;
      const std::vector<StmtId> products = skewed ? gemms_of(*loop) : std::vector<StmtId>{};
      if (skewed) note(products.front());
      if (loop || s.as<While>() || s.as<Role>()) run.clear();
      if (skewed) note(products.back());
    }
    if (open) found.insert(all.begin(), all.end());
  }

  const TileProgram& p_;
  const Plan& plan_;
};

// Why one of the fragments is not in registers; empty: all are.
std::string not_in_registers(const TileProgram& p, const std::vector<BufferId>& ids, const Placement& placement) {
  for (BufferId id : ids)
    if (const auto found = placement.in_memory.find(id); found != placement.in_memory.end())
      return fmt::format("'{}' would live in shared memory: {}", p.buffer(id).name, found->second);
  return "";
}

plan::Staging next(plan::Staging how) {
  return how == plan::Staging::Whole    ? plan::Staging::Chunks
         : how == plan::Staging::Chunks ? plan::Staging::RowChunks
                                        : plan::Staging::None;
}

}  // namespace

Placement foreseen_placement(TileProgram& p, size_t number, const target::GpuTarget& target, size_t buffers) {
  Launch& launch = p.launches[number];
  launch.body = copies_to_maps(launch.body, p);
  return widen_maps(p, number, target, buffers);
}

std::optional<NoWgmma> async_gemm_without_wgmma(const Launch& launch, const Placement& placement) {
  std::optional<NoWgmma> out;
  walk(launch.body, [&](const Stmt& s) {
    const auto* g = s.as<Gemm>();
    if (!g || out || g->completion.immediate()) return;
    if (const GemmChoice& choice = placement.choice_of(s); !choice.wgmma) out = {s->location, choice.why_not_wgmma};
  });
  return out;
}

std::string settle(Plan& plan, const TileProgram& program, size_t number, const analysis::StoredTensors& stored,
                   const target::GpuTarget& target) {
  const Launch& launch = program.launches[number];
  Placement placement;
  const auto written_to = [&](plan::Staging how, TileProgram& staged) {
    std::vector<BufferId> results;
    staged.launches[number].body =
        stage_results(staged, launch.body, launch.threads[0], how, plan.epilogue.by_columns, stored, results);
    return results;
  };
  while (true) {
    TileProgram staged = program;
    const std::vector<BufferId> results = written_to(plan.epilogue.how, staged);
    if (plan.epilogue.how == plan::Staging::Whole && results.empty()) {
      TileProgram chunked = program;
      if (!written_to(plan::Staging::Chunks, chunked).empty()) {
        plan.rejected.push_back({Rejection::kStaging, "whole, a result would take the room of a ring's slots"});
        plan.epilogue.how = plan::Staging::Chunks;
        continue;
      }
    }
    // A piece of a result that some threads hold would keep the others waiting: it is not widened.
    placement = foreseen_placement(staged, number, target, program.buffers.size());
    const std::string why = not_in_registers(staged, results, placement);
    if (why.empty()) break;
    constexpr const char* kHow[] = {"whole", "in chunks", "in chunks of rows"};
    plan.rejected.push_back(
        {Rejection::kStaging, fmt::format("{}, {}", kHow[static_cast<size_t>(plan.epilogue.how)], why)});
    plan.epilogue.how = next(plan.epilogue.how);
  }
  if (plan.overlap) {
    const std::set<StmtId> open = OpenGemms(program, launch, plan).found;
    for (StmtId id : open) {
      const GemmChoice& choice = placement.gemms.at(id);
      if (choice.wgmma) continue;
      plan.rejected.push_back({Rejection::kOverlap, fmt::format("wgmma cannot do a gemm: {}", choice.why_not_wgmma)});
      plan.overlap = false, plan.orders.clear();
      break;
    }
  }
  const auto own = async_gemm_without_wgmma(launch, placement);
  return own ? fmt::format("wgmma cannot do a gemm that the program leaves open: {}", own->why) : "";
}

std::string misfit_of_roles(TileProgram written, size_t number, const std::vector<BufferId>& staged,
                            const target::GpuTarget& target) {
  const Placement placement = foreseen_placement(written, number, target);
  if (const auto gemm = async_gemm_without_wgmma(written.launches[number], placement))
    return fmt::format("wgmma cannot do a gemm: {}", gemm->why);
  return not_in_registers(written, staged, placement);
}

}  // namespace tilewright::passes
