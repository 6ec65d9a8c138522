#include "driver/explain_roles.h"

#include "analysis/launch_order.h"
#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/print.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"
#include "passes/warp_arrivals.h"

namespace tilewright {
namespace {

class Steps {
 public:
  Steps(const ir::TileProgram& p, const ir::Launch& launch) : p_(p), launch_(launch) {}

  std::vector<std::string> of(const ir::Body& body) {
    add(body, 0);
    return std::move(lines_);
  }

 private:
  const std::string& name(ir::BufferId id) const { return p_.buffer(id).name; }
  // Conversions between integers only make lines long.
  static std::string plain(std::string text) {
    for (const std::string_view cast : {"uint32(", "int32(", "int64("})
      for (size_t at; (at = text.find(cast)) != std::string::npos;) text.erase(at, cast.size() - 1);
    return text;
  }
  std::string text(const ir::Expr& e) const { return plain(ir::print(e, p_)); }
  std::string text(const ir::Region& r) const { return plain(ir::print(r, p_)); }
  std::string text(const ir::Element& e) const {
    std::vector<std::string> indices;
    for (const ir::Expr& i : e.indices) indices.push_back(text(i));
    return fmt::format("{}[{}]", name(e.buffer), fmt::join(indices, ", "));
  }
  void line(size_t depth, const std::string& what) { lines_.push_back(std::string(2 * depth, ' ') + what); }
  void add(const ir::Body& body, size_t depth) {
    for (const ir::Stmt& s : body) add(s, depth);
  }
  void block(const std::string& head, const ir::Body& body, size_t depth) {
    const size_t before = lines_.size();
    line(depth, head);
    add(body, depth + 1);
    if (lines_.size() == before + 1) lines_.pop_back();  // nothing worth a line is in it
  }

  void add(const ir::Stmt& s, size_t depth) {
    if (const auto* n = s.as<ir::For>())
      return block(
          fmt::format("for {} in {} .. {}:", p_.var(n->var).name, text(n->begin), text(ir::add(n->begin, n->extent))),
          n->body, depth);
    if (const auto* n = s.as<ir::While>()) return block(fmt::format("while {}:", text(n->condition)), n->body, depth);
    if (const auto* n = s.as<ir::If>()) {
      block(fmt::format("if {}:", text(n->condition)), n->then_body, depth);
      return block("else:", n->else_body, depth);
    }
    if (const auto* n = s.as<ir::Role>())
      return block(fmt::format("threads {} .. {}:", n->begin, n->end), n->body, depth);
    if (const auto* n = s.as<ir::Arrive>(); n && n->by == ir::ArriveBy::Warp)
      return add(passes::by_first_threads(*n, ir::var(launch_.thread[0], i32), s->location), depth);
    if (const std::string what = order(s); !what.empty()) return line(depth, what);
    if (const std::string what = work(s); !what.empty()) return line(depth, what);
  }
  // Waiting and being waited for.
  std::string order(const ir::Stmt& s) const {
    if (const auto* n = s.as<ir::Wait>())
      return fmt::format("wait for {}, parity {}", text(n->barrier), text(n->parity));
    if (const auto* n = s.as<ir::Arrive>()) return fmt::format("arrive at {}", text(n->barrier));
    if (const auto* n = s.as<ir::Expect>())
      return fmt::format("expect {} bytes at {}{}", text(n->bytes), text(n->barrier), n->arrive ? ", arrive" : "");
    if (const auto* n = s.as<ir::Commit>()) return fmt::format("close a group of {}", ir::name_of(n->queue));
    if (const auto* n = s.as<ir::Drain>())
      return (n->pending == 0 ? fmt::format("wait for all groups of {}", ir::name_of(n->queue))
                              : fmt::format("wait until {} groups of {} are open", n->pending, ir::name_of(n->queue))) +
             (n->written ? ", written" : "");
    if (analysis::waits_for_launches(s)) return "wait for the launches before this one";
    if (analysis::lets_launches_begin(s)) return "let the launches after this one begin";
    if (const auto* n = s.as<ir::Sync>())
      return n->scope == ir::SyncScope::Warp    ? ""
             : n->scope == ir::SyncScope::Named ? fmt::format("barrier {} of {} threads", text(n->barrier), n->count)
                                                : fmt::format("barrier of the {}", ir::name_of(n->scope));
    if (const auto* n = s.as<ir::SetRegisters>()) return fmt::format("take {} registers a thread", n->count);
    return "";
  }
  std::string work(const ir::Stmt& s) const {
    if (const auto* n = s.as<ir::Copy>())
      return fmt::format("{}: {} -> {}",
                         n->completion.queue == ir::Queue::BulkStore  ? "TMA store"
                         : n->completion.queue == ir::Queue::Prefetch ? "prefetch to L2"
                         : n->completion.queue == ir::Queue::CpAsync  ? "cp.async"
                         : n->completion.queue == ir::Queue::StAsync  ? "st.async"
                                                                      : "TMA load",
                         text(n->from), text(n->to));
    if (const auto* n = s.as<ir::Gemm>())
      return fmt::format("{}: {} {} {} * {}", n->completion.immediate() ? "gemm" : "gemm, not waited for",
                         name(n->c.buffer), n->clear ? "(+)=" : "+=", text(n->a), text(n->b));
    if (const auto* n = s.as<ir::Map>()) return written("map", n->body, s);
    if (const auto* n = s.as<ir::Reduce>())
      return fmt::format("{} of {} -> {}", ir::name_of(n->op), name(n->from.buffer), name(n->to.buffer));
    return ir::is_tile_op(s) ? moved(s) : "";
  }
  // By what any op says of itself.
  std::string moved(const ir::Stmt& s) const {
    std::vector<std::string> from, to;
    for (const ir::Effect& e : ir::own_effects_of(s).list)
      if (e.region.valid()) (e.access == ir::Access::Read ? from : to).push_back(name(e.region.buffer));
    if (to.empty()) return "";
    return fmt::format("{}{} -> {}", ir::name_of(s), from.empty() ? "" : fmt::format(" of {}", fmt::join(from, ", ")),
                       fmt::join(to, ", "));
  }
  std::string written(const char* what, const ir::Body& body, const ir::Stmt& at) const {
    std::vector<std::string> names;
    ir::walk(body, [&](const ir::Stmt& s) {
      std::string to;
      if (const auto* n = s.as<ir::Store>()) to = name(n->to.buffer);
      if (const auto* n = s.as<ir::Atomic>()) to = name(n->to.buffer);
      if (!to.empty() && std::find(names.begin(), names.end(), to) == names.end()) names.push_back(to);
    });
    const SourceLocation& place = p_.location(at->location);
    return fmt::format("{} -> {}{}", what, fmt::join(names, ", "),
                       place.known() ? fmt::format("  (line {})", place.line) : "");
  }

  const ir::TileProgram& p_;
  const ir::Launch& launch_;
  std::vector<std::string> lines_;
};

// By the job that the plan gives it; a program's own roles by what they do.
const char* job_of(const ir::Role& role, const plan::Plan& plan) {
  bool loads = false, multiplies = false, works = false;
  ir::walk(role.body, [&](const ir::Stmt& s) {
    const auto* copy = s.as<ir::Copy>();
    loads = loads || (copy && copy->completion.barrier.valid());
    multiplies = multiplies || s.as<ir::Gemm>();
    works = works || !s.as<ir::SetRegisters>();
  });
  const int64_t warp = role.begin / kWarpThreads;
  for (const plan::Role& r : plan.roles) {
    if (warp < r.first_warp || warp >= r.first_warp + r.warps) continue;
    loads = r.job == plan::Role::Job::Load && works, multiplies = r.job == plan::Role::Job::Compute;
  }
  return multiplies ? "math" : loads ? "loader" : works ? "others" : "the loader's warpgroup";
}

}  // namespace

std::vector<RoleFacts> roles_of(const ir::TileProgram& program, const ir::Launch& launch, const plan::Plan& plan) {
  std::vector<RoleFacts> out;
  ir::Body shared;
  for (const ir::Stmt& s : launch.body) {
    const auto* role = s.as<ir::Role>();
    if (!role) {
      shared.push_back(s);
      continue;
    }
    out.push_back({job_of(*role, plan), role->begin, role->end, Steps(program, launch).of(role->body)});
  }
  if (std::vector<std::string> steps = Steps(program, launch).of(shared); !steps.empty())
    out.insert(out.begin(), {"all", 0, launch.thread_count(), std::move(steps)});
  return out;
}

}  // namespace tilewright
