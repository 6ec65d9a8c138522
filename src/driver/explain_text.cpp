// Explanations as text and as JSON.
#include <nlohmann/json.hpp>

#include "driver/explain.h"
#include "driver/headline.h"
#include "layout/picture.h"
#include "plan/schedule.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;
using Count = std::optional<int64_t>;
using Job = plan::Role::Job;
using Takes = plan::Role::Takes;

constexpr int64_t kDrawn = 8;  // rows and columns of a small picture

Json count_json(Count n) { return n ? Json(*n) : Json(nullptr); }

Json operation_json(const OperationFacts& op, bool gpu) {
  Json out = {{"operation", op.operation},     {"text", op.text},
              {"line", op.location.line},      {"executions", count_json(op.executions)},
              {"conditional", op.conditional}, {"flops", count_json(op.flops)},
              {"bytes", count_json(op.bytes)}};
  if (!gpu) out["innermost_loops"] = op.loops, out["vectorized_loops"] = op.vectorized;
  if (op.products) out["products"] = *op.products;
  if (!op.becomes.empty()) out["becomes"] = op.becomes;
  if (!op.rejected.empty()) out["rejected"] = op.rejected;
  if (!op.warnings.empty()) out["warnings"] = op.warnings;
  if (op.by_tma) out["tma"] = *op.by_tma;
  if (!op.not_tma.empty()) out["not_tma"] = op.not_tma;
  out["file"] = op.location.file, out["column"] = op.location.column;
  return out;
}

Json launch_json(const LaunchFacts& launch, bool gpu) {
  Json out = {{"name", launch.name},
              {"grid", launch.grid},
              {"blocks", count_json(launch.blocks)},
              {"threads", launch.threads},
              {"bytes_on_chip", launch.bytes_on_chip},
              {"buffers", Json::array()},
              {"operations", Json::array()}};
  for (const OnChipBuffer& b : launch.buffers)
    out["buffers"].push_back({{"name", b.name},
                              {"space", b.space},
                              {"dtype", b.dtype},
                              {"shape", b.shape},
                              {"bytes", b.bytes},
                              {"view", b.is_view}});
  for (const OperationFacts& op : launch.operations) out["operations"].push_back(operation_json(op, gpu));
  return out;
}

Json price_json(const plan::Price& p) {
  return {{"us", p.microseconds},
          {"limit", p.limit},
          {"waves", p.waves},
          {"memory_us", p.memory},
          {"clocks_of_a_tile",
           {{"matrix", p.matrix}, {"shared", p.shared}, {"l2", p.l2}, {"issue", p.issue}, {"results", p.epilogue}}}};
}

Json turns_json(const std::vector<RingTurn>& turns) {
  Json out = Json::array();
  for (const RingTurn& t : turns)
    out.push_back({{"slot", t.slot}, {"filled", {t.filled_from, t.filled}}, {"used", {t.used_from, t.used}}});
  return out;
}

Json plan_json(const GpuLaunchFacts& launch) {
  const plan::Plan& plan = launch.plan;
  Json out = {{"loader_role", plan.has_loader()}, {"lines", launch.plan_lines}};
  if (launch.priced.price) out["price"] = price_json(*launch.priced.price);
  for (const passes::NextPlan& next : launch.priced.next)
    out["next"].push_back({{"line", next.line}, {"price", price_json(next.price)}});
  if (launch.order.waits) out["begins_early"] = launch.begins_early;
  if (plan.brings_ahead()) out["brings_ahead"] = true;
  if (!plan.has_loader()) {
    if (const std::string why = plan.why_no_loader(); !why.empty()) out["why_not"] = why;
    return out;
  }
  out["persistent"] = plan.is_persistent();
  for (const ScheduleFacts& s : launch.schedules)
    if (const char* fact = s.use.of->fact) out[fact] = s.use.tile.valid() ? Json(s.value) : Json(s.use.number);
  out["alternating"] = plan.takes(Takes::TilesInTurn), out["by_iteration"] = plan.takes(Takes::IterationsInTurn);
  const std::string no_teams = plan.why_no_iteration_teams();
  if (!no_teams.empty()) out["no_teams"] = no_teams;
  if (!launch.fitted.empty()) out["fitted"] = launch.fitted;
  out["staged"] = launch.staged;
  out["handed_over"] = launch.handed_over;
  out["loader_registers"] = plan.registers_of(Job::Load), out["math_registers"] = plan.registers_of(Job::Compute);
  for (const RingFacts& r : launch.rings)
    out["rings"].push_back(
        {{"tiles", r.tiles}, {"slots", r.slots}, {"slot_bytes", r.bytes}, {"turns", turns_json(ring_turns(r.slots))}});
  return out;
}

Json lives_json(const std::vector<SharedLife>& lives) {
  Json out = Json::array();
  for (const SharedLife& l : lives)
    out.push_back({{"threads", {l.first_thread, l.end_thread}}, {"begin", l.begin}, {"end", l.end}, {"of", l.of}});
  return out;
}

Json gpu_launch_json(const GpuLaunchFacts& launch) {
  Json out = {{"plan", plan_json(launch)}, {"threads", launch.threads}, {"shared_bytes", launch.shared_bytes},
              {"layouts", Json::array()},  {"shared", Json::array()},   {"roles", Json::array()}};
  for (const LayoutFacts& l : launch.layouts)
    out["layouts"].push_back({{"name", l.name},
                              {"space", l.fragment ? "registers" : "shared"},
                              {"layout", l.fragment ? l.fragment->text() : l.memory->text()},
                              {"decided_by", l.decided_by}});
  if (!launch.in_memory.empty()) out["in_memory"] = launch.in_memory;
  for (const SharedRange& s : launch.shared)
    out["shared"].push_back(
        {{"name", s.name}, {"begin", s.begin}, {"bytes", s.bytes}, {"slots", s.slots}, {"lives", lives_json(s.lives)}});
  for (const RoleFacts& r : launch.roles)
    out["roles"].push_back({{"name", r.name}, {"begin", r.begin}, {"end", r.end}, {"steps", r.steps}});
  if (launch.resources)
    out["resources"] = {{"registers", launch.resources->registers},
                        {"spill_store_bytes", launch.resources->spill_store_bytes},
                        {"spill_load_bytes", launch.resources->spill_load_bytes},
                        {"stack_bytes", launch.resources->stack_bytes}};
  if (launch.occupancy)
    out["occupancy"] = {{"blocks", launch.occupancy->blocks},
                        {"warps", launch.occupancy->warps},
                        {"most_warps", launch.occupancy->most_warps},
                        {"limit", launch.occupancy->limit}};
  return out;
}

void add_gpu_json(const GpuFacts& gpu, Json& out) {
  out["arch"] = gpu.arch, out["device"] = gpu.device, out["assumptions"] = gpu.assumptions,
  out["general"] = gpu.general, out["plans"] = gpu.ladder, out["compiler"] = gpu.compiler;
  out["remarks"] = gpu.remarks;
  out["compute_floor_us"] = gpu.compute_floor ? Json(*gpu.compute_floor * 1e6) : Json(nullptr);
  out["memory_floor_us"] = gpu.memory_floor ? Json(*gpu.memory_floor * 1e6) : Json(nullptr);
  for (size_t i = 0; i < gpu.launches.size(); ++i) out["launches"][i].update(gpu_launch_json(gpu.launches[i]));
}

// ---- text

std::string text_of(Count n) { return n ? fmt::format("{}", *n) : "unknown"; }

// Appends lines.
class Page {
 public:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  void block(const std::string& lines, const std::string& margin) {
    for (size_t begin = 0; begin < lines.size();) {
      const size_t end = std::min(lines.find('\n', begin), lines.size());
      text_ += margin + lines.substr(begin, end - begin) + '\n';
      begin = end + 1;
    }
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void show(const OperationFacts& op, Page& page) {
  page.line("  {:>4}  {}", op.location.line, op.text.empty() ? op.operation : op.text);
  std::string facts = fmt::format("{}{} times", op.conditional ? "at most " : "", text_of(op.executions));
  if (op.flops != 0) facts += fmt::format(", {} flops each", text_of(op.flops));
  if (op.bytes != 0) facts += fmt::format(", {} bytes each", text_of(op.bytes));
  if (op.loops > 0) facts += fmt::format("; innermost loops {}, vectorized {}", op.loops, op.vectorized);
  page.line("        {}", facts);
  for (const std::string& fact : op.becomes) page.line("        {}", fact);
  for (const std::string& fact : op.rejected) page.line("        not {}", fact);
  for (const std::string& warning : op.warnings) page.line("        warning: {}", warning);
}

void show_rings(const GpuLaunchFacts& launch, Page& page) {
  for (const RingFacts& r : launch.rings)
    page.line("    ring of {}: {} of {} bytes", fmt::join(r.tiles, " and "),
              r.slots == 1 ? "1 slot" : fmt::format("{} slots", r.slots), r.bytes);
}

void show_plan(const GpuLaunchFacts& launch, Page& page) {
  const plan::Plan& plan = launch.plan;
  if (plan.whole) {
    const plan::Use* own = plan.work.instead_of_kind();
    page.line("  plan: {}", own ? launch.schedules.front().says : plan.whole->says);
    return show_rings(launch, page);
  }
  if (!plan.has_loader()) {
    page.line("  plan: every warp does everything; no loader role, because {}", plan.why_no_loader());
    if (!launch.fitted.empty()) page.line("    {}", launch.fitted);
    return;
  }
  int64_t loading = 0;
  for (const plan::Role& r : plan.roles) loading += r.loading;
  page.line("  plan: {} by TMA, the others compute{}",
            loading > 1 ? fmt::format("{} warps load", loading) : "a warp loads",
            plan.is_persistent() ? "; one block a multiprocessor, which takes one tile after the other" : "");
  show_rings(launch, page);
  if (plan.takes(Takes::TilesInTurn)) page.line("    two teams of the other threads take the tiles in turn");
  for (const ScheduleFacts& s : launch.schedules) page.line("    {}", s.says);
  if (plan.work.blocks_per_multiprocessor > 1)
    page.line("    two blocks a multiprocessor: one multiplies while the other does something else");
  if (plan.takes(Takes::IterationsInTurn))
    page.line(
        "    two teams of the other threads take the iterations in turn; each keeps half of the result's columns");
  if (!launch.fitted.empty()) page.line("    {}", launch.fitted);
  if (const std::string why = plan.why_no_iteration_teams(); !why.empty())
    page.line("    no two teams that take the iterations in turn, because {}", why);
  if (const std::string why = plan.why_no_staging(); !why.empty())
    page.line("    results are not staged{} {}", launch.staged.empty() ? ":" : "", why);
  if (const std::string why = plan.why_no_overlap(); !why.empty())
    page.line("    every gemm is waited for at once, because {}", why);
  if (!launch.staged.empty())
    page.line("    through shared memory to global by TMA: {}", fmt::join(launch.staged, ", "));
  if (plan.registers_of(Job::Compute) > 0)
    page.line("    registers a thread: the loader's {}, the others' {}", plan.registers_of(Job::Load),
              plan.registers_of(Job::Compute));
}

// By the model of plan/price.h.
void show_price(const GpuLaunchFacts& launch, Page& page) {
  if (!launch.priced.price) return;
  const plan::Price& p = *launch.priced.price;
  page.line("    price: about {:.0f} us, as a model of the device has it; {} decides", p.microseconds,
            p.limit == "matrix"    ? "the matrix unit"
            : p.limit == "shared"  ? "shared memory"
            : p.limit == "l2"      ? "the L2 cache"
            : p.limit == "issue"   ? "elementwise code"
            : p.limit == "results" ? "what leaves"
                                   : "the device's memory");
  page.line(
      "      {} of tiles; clocks of a tile: matrix unit {:.0f}, shared memory {:.0f}, L2 {:.0f}, elementwise {:.0f}, "
      "results {:.0f}",
      p.waves == 1 ? "1 wave" : fmt::format("{} waves", p.waves), p.matrix, p.shared, p.l2, p.issue, p.epilogue);
  for (const passes::NextPlan& next : launch.priced.next)
    page.line("      with the line '{}' instead: about {:.0f} us", next.line, next.price.microseconds);
}

void show_order(const GpuLaunchFacts& launch, Page& page) {
  const plan::Plan& plan = launch.plan;
  if (launch.order.waits && launch.begins_early)
    page.line("    begins while the launches before it run; it waits for them {}",
              plan.has_loader() ? "before the roles begin, as the loader runs ahead" : "where the program does");
  if (launch.order.waits && !launch.begins_early)
    page.line("    begins when the launches before it have ended: its blocks wait for each other, and so run at once");
  if (launch.order.lets_begin)
    page.line("    lets those after it begin {}",
              plan.has_loader() ? "where the roles that write results are done" : "where the program does");
}

void show_roles(const GpuLaunchFacts& launch, Page& page) {
  page.line("  roles");
  if (!launch.handed_over.empty())
    page.line("    a barrier between them that the program lacks, for {}", fmt::join(launch.handed_over, ", "));
  for (const RoleFacts& r : launch.roles) {
    page.line("    {}, threads {} .. {}", r.name, r.begin, r.end);
    for (const std::string& step : r.steps) page.line("      {}", step);
  }
  for (const RingFacts& r : launch.rings) {
    if (r.slots < 2) continue;
    page.line("    slots of the ring of {} in time, where using one takes twice as long as filling it",
              fmt::join(r.tiles, " and "));
    for (const std::string& row : ring_timeline(r.slots)) page.line("      {}", row);
  }
}

void show_memory(const GpuLaunchFacts& launch, Page& page) {
  page.line("  shared memory: {} bytes", launch.shared_bytes);
  for (const SharedRange& s : launch.shared)
    page.line("    {:>7} .. {:<7} {}{}", s.begin, s.begin + s.bytes, s.name,
              s.slots > 1 ? fmt::format(", {} slots", s.slots) : "");
  page.line("  layouts");
  for (const LayoutFacts& l : launch.layouts) {
    page.line("    {} in {}, decided by {}", l.name,
              l.fragment ? "registers (thread:register)" : "shared memory (byte/bank)", l.decided_by);
    page.block(l.fragment ? fragment_table(*l.fragment, kDrawn) : memory_table(*l.memory, kDrawn), "      ");
  }
  for (const std::string& why : launch.in_memory) page.line("    {}", why);
}

void show(const GpuLaunchFacts& launch, const std::string& compiler, Page& page) {
  show_plan(launch, page);
  show_price(launch, page);
  show_order(launch, page);
  show_roles(launch, page);
  show_memory(launch, page);
  if (!launch.resources) {
    page.line("  registers: unknown ({})", compiler);
    return;
  }
  const runtime::KernelResources& r = *launch.resources;
  page.line("  {}: {} registers a thread, {} bytes of spills stored and {} loaded, {} bytes of stack", compiler,
            r.registers, r.spill_store_bytes, r.spill_load_bytes, r.stack_bytes);
  if (launch.occupancy)
    page.line("  occupancy: {} blocks, {} of {} warps on a multiprocessor; {} {} the limit", launch.occupancy->blocks,
              launch.occupancy->warps, launch.occupancy->most_warps, launch.occupancy->limit,
              launch.occupancy->limit.ends_with('s') ? "are" : "is");
}

void show_totals(const Explanation& e, Page& page) {
  page.line("one call: {} flops, {} bytes moved, {} bytes of tensors", text_of(e.flops), text_of(e.moved_bytes),
            text_of(e.tensor_bytes));
  if (e.flops && e.moved_bytes && e.tensor_bytes && *e.moved_bytes > 0 && *e.tensor_bytes > 0) {
    const auto flops = static_cast<double>(*e.flops);
    page.line("          {:.3g} flops a byte moved, {:.3g} a byte of tensors",
              flops / static_cast<double>(*e.moved_bytes), flops / static_cast<double>(*e.tensor_bytes));
  }
  if (!e.gpu || !e.gpu->compute_floor || !e.gpu->memory_floor) return;
  const double compute = *e.gpu->compute_floor * 1e6, memory = *e.gpu->memory_floor * 1e6;
  page.line("          on an {} at least {:.4g} us for the arithmetic, {:.4g} us for the memory: {} decides",
            e.gpu->device, compute, memory, compute > memory ? "arithmetic" : "memory");
}

}  // namespace

std::string to_json(const Explanation& e) {
  const bool gpu = e.gpu.has_value();
  Json out = {{"program", e.program}, {"engine", gpu ? "cuda" : "cpu"}};
  if (!gpu) out["processor"] = e.processor;
  out["headline"] = headline(e);
  out["flops"] = count_json(e.flops), out["moved_bytes"] = count_json(e.moved_bytes);
  out["tensor_bytes"] = count_json(e.tensor_bytes);
  out["launches"] = Json::array();
  for (const LaunchFacts& launch : e.launches) out["launches"].push_back(launch_json(launch, gpu));
  if (gpu) add_gpu_json(*e.gpu, out);
  out["warnings"] = Json::array();
  for (const Diagnostic& d : e.warnings) out["warnings"].push_back(Json::parse(d.to_json()));
  if (e.refused) out["refused"] = Json::parse(e.refused->to_json());
  return out.dump(2);
}

std::string to_text(const Explanation& e) {
  Page page;
  const char* engine = e.gpu ? "cuda" : "cpu";
  page.line("{} on the {} engine ({})", e.program, engine,
            e.gpu ? fmt::format("{}, rates of an {}", e.gpu->arch, e.gpu->device) : e.processor);
  if (e.gpu && !e.gpu->assumptions.empty())
    page.line("{}: {}",
              e.gpu->general ? "the general version, for of this call it does not hold that"
                             : "assumed of a call, which else takes a general version",
              fmt::join(e.gpu->assumptions, ", "));
  if (e.gpu && !e.gpu->ladder.empty()) {
    page.line("plans, best first");
    for (const std::string& plan : e.gpu->ladder) page.line("  {}", plan);
  }
  for (size_t i = 0; i < e.launches.size(); ++i) {
    const LaunchFacts& launch = e.launches[i];
    page.line("launch {}: grid {} = {} blocks, threads {}", launch.name, fmt::join(launch.grid, " x "),
              text_of(launch.blocks), fmt::join(launch.threads, " x "));
    page.line("  {} bytes on chip", launch.bytes_on_chip);
    for (const OnChipBuffer& b : launch.buffers)
      page.line("    {:<9}{}: {}[{}]  {} bytes{}", b.space, b.name, b.dtype, fmt::join(b.shape, ", "), b.bytes,
                b.is_view ? " (a view)" : "");
    for (const OperationFacts& op : launch.operations) show(op, page);
    if (e.gpu && i < e.gpu->launches.size()) show(e.gpu->launches[i], e.gpu->compiler, page);
  }
  show_totals(e, page);
  if (e.gpu)
    for (const std::string& remark : e.gpu->remarks) page.line("{}: {}", e.gpu->compiler, remark);
  for (const Diagnostic& d : e.warnings) page.line("{}", d.to_string());
  if (e.refused) page.line("the {} engine refuses it:\n{}", engine, e.refused->to_string());
  return page.take();
}

}  // namespace tilewright
