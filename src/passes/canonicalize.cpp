#include "passes/canonicalize.h"

#include <functional>

#include "analysis/divisibility.h"
#include "analysis/tma.h"
#include "analysis/uniformity.h"
#include "analysis/value_at.h"
#include "ir/effects.h"
#include "ir/number_statements.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"
#include "passes/fill_unwritten.h"
#include "passes/grow_fragments.h"
#include "passes/known_conditions.h"
#include "passes/meet_beside_roles.h"
#include "passes/meeting_points.h"
#include "passes/merge_turns.h"
#include "passes/name_bounds.h"
#include "passes/name_tensors.h"
#include "passes/own_fragments.h"
#include "passes/part_branches.h"
#include "passes/role_groups.h"
#include "passes/running_reduces.h"
#include "passes/single_elements.h"
#include "passes/thread_range.h"
#include "passes/threads/elementwise.h"
#include "passes/turn_tiles.h"

namespace tilewright::passes {
namespace {

using ir::Binary;
using ir::BinaryOp;
using ir::Body;
using ir::Expr;
using ir::Stmt;

// ---- fma

bool contracts(DType type) { return type.is_float() && !type.is_float8() && !type.is_packed(); }

const Binary* product(const Expr& e) {
  const auto* b = e.as<Binary>();
  return b && b->op == BinaryOp::Mul ? b : nullptr;
}

std::optional<Expr> form_fma(const Expr& e) {
  const auto* b = e.as<Binary>();
  if (!b || !contracts(e->type)) return std::nullopt;
  if (b->op == BinaryOp::Add) {
    if (const Binary* p = product(b->a)) return ir::fma(p->a, p->b, b->b);
    if (const Binary* p = product(b->b)) return ir::fma(p->a, p->b, b->a);
  }
  if (b->op == BinaryOp::Sub) {
    if (const Binary* p = product(b->a)) return ir::fma(p->a, p->b, ir::neg(b->b));
    if (const Binary* p = product(b->b)) return ir::fma(ir::neg(p->a), p->b, b->a);
  }
  return std::nullopt;
}

// ---- roles

bool holds_collectives(const Body& body) {
  bool found = false;
  ir::walk(body, [&](const Stmt& s) {
    const bool orders = s.as<ir::Arrive>() || s.as<ir::Expect>() || s.as<ir::Wait>();
    found = found || orders || ir::effects_of(s).scope == ir::Scope::Collective;
  });
  return found;
}

class Roles {
 public:
  explicit Roles(const ir::Launch& launch)
      : tx_(launch.thread[0]),
        threads_(launch.thread_count()),
        along_x_(launch.threads[0] == threads_),
        names_(analysis::names_in(launch.body)) {}

  // In a block along x, where a range of tx is a range of threads.
  std::optional<Body> operator()(const Stmt& s) {
    if (!along_x_) return std::nullopt;
    if (const auto* role = s.as<ir::Role>()) {
      Body inside = within({role->begin, role->end}, role->body);
      if (same(inside, role->body)) return std::nullopt;
      return Body{ir::make_stmt(ir::Role{role->begin, role->end, std::move(inside)}, s->location)};
    }
    return of_branch(s, {0, threads_});
  }

 private:
  static bool same(const Body& a, const Body& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Stmt& x, const Stmt& y) { return &*x == &*y; });
  }
  Body within(ThreadRange here, const Body& body) {
    return ir::rewrite(body, [&](const Stmt& s) -> std::optional<Body> {
      const auto* role = s.as<ir::Role>();
      if (!role) return of_branch(s, here);
      // It was a branch before it was known who comes here, or stands in what was one.
      const ThreadRange on = here.both({role->begin, role->end});
      if (on.begin == role->begin && on.end == role->end) return std::nullopt;
      Body out;
      add_role(out, on, here, role->body, s->location);
      return out;
    });
  }
  void add_role(Body& out, ThreadRange on, ThreadRange here, const Body& body, ir::LocationId at) {
    if (body.empty() || on.empty()) return;
    if (on.begin == here.begin && on.end == here.end && (here.begin > 0 || here.end < threads_)) {
      out.insert(out.end(), body.begin(), body.end());
      return;
    }
    out.push_back(ir::make_stmt(ir::Role{on.begin, on.end, within(on, body)}, at));
  }
  std::optional<ThreadRange> where(const Expr& condition, ThreadRange here) const {
    return threads_where(condition, tx_, here, &names_);
  }
  std::optional<Body> of_branch(const Stmt& s, ThreadRange here) {
    const auto* branch = s.as<ir::If>();
    if (!branch || (!holds_collectives(branch->then_body) && !holds_collectives(branch->else_body)))
      return std::nullopt;
    const auto range = where(branch->condition, here);
    if (!range) return of_conjunction(*branch, s->location, here);
    if (range->empty()) return here.begin > 0 || here.end < threads_ ? std::optional(branch->else_body) : std::nullopt;
    const bool of_warps = is_of_warps(*range);
    Body out;
    if (of_warps)
      add_role(out, *range, here, branch->then_body, s->location);
    else if (branch->else_body.empty() ? waits_and_copies(branch->then_body)
                                       : holds_collectives(branch->else_body) && is_of_branches(branch->else_body))
      add_role(out, warps_of(*range).both(here), here,
               {ir::make_stmt(ir::If{branch->condition, branch->then_body, {}}, s->location)}, s->location);
    else
      return std::nullopt;
    // The other threads are one range too, or what is left of the ranges of an elif, or their side stays a branch.
    if (const auto rest = range->rest_of(here); rest && of_warps)
      add_role(out, *rest, here, branch->else_body, s->location);
    else
      add_others(out, *branch, *range, s->location, here);
    return out;
  }
  // Such code of a few threads goes on beside that of others: it is a branch in a role of their warps.
  static bool waits_and_copies(const Body& body) {
    bool waits = false, copies = false;
    ir::walk(body, [&](const Stmt& s) {
      const auto* copy = s.as<ir::Copy>();
      waits = waits || s.as<ir::Wait>(), copies = copies || (copy && analysis::is_by_tma(*copy));
    });
    return waits && copies;
  }
  bool is_of_warps(ThreadRange some) const {
    const auto aligned = [&](int64_t t) { return t % kWarpThreads == 0 || t == threads_; };
    return aligned(some.begin) && aligned(some.end);
  }
  ThreadRange warps_of(ThreadRange some) const {
    const int64_t end = (some.end + kWarpThreads - 1) / kWarpThreads * kWarpThreads;
    return {some.begin / kWarpThreads * kWarpThreads, std::min(end, threads_)};
  }
  // As an elif is, whose branches on warps are roles by now.
  static bool is_of_branches(const Body& body) {
    return !body.empty() && std::ranges::all_of(body, [](const Stmt& s) { return s.as<ir::Role>() || s.as<ir::If>(); });
  }
  void add_others(Body& out, const ir::If& branch, ThreadRange taken, ir::LocationId at, ThreadRange here) {
    if (branch.else_body.empty()) return;
    const Expr others = ir::logical_not(branch.condition);
    Body parts;
    bool apart = is_of_branches(branch.else_body);
    for (const Stmt& s : branch.else_body) {
      const auto* role = s.as<ir::Role>();
      const auto* next = s.as<ir::If>();
      const auto range = next ? where(next->condition, here) : std::nullopt;
      if (role) {
        const ThreadRange all = here.both({role->begin, role->end});
        const auto left = taken.both(all).rest_of(all);
        apart = apart && left && is_of_warps(*left);
        if (left) add_role(parts, *left, here, role->body, s->location);
      } else if (range && !range->empty() && next->else_body.empty()) {
        const Body inside{ir::make_stmt(ir::If{others, {s}, {}}, s->location)};
        add_role(parts, warps_of(*range).both(here), here, inside, s->location);
      } else {
        parts.push_back(ir::make_stmt(ir::If{others, {s}, {}}, s->location));
      }
    }
    if (!apart) parts = {ir::make_stmt(ir::If{others, branch.else_body, {}}, at)};
    out.insert(out.end(), parts.begin(), parts.end());
  }
  // On threads and on something else: that is a branch in the role.
  std::optional<Body> of_conjunction(const ir::If& branch, ir::LocationId at, ThreadRange here) {
    if (!branch.else_body.empty()) return std::nullopt;
    Expr on_threads, on_others;
    const auto join = [](Expr& all, const Expr& e) { all = all ? ir::logical_and(all, e) : e; };
    const std::function<void(const Expr&)> split = [&](const Expr& e) {
      const auto* n = e.as<Binary>();
      if (n && n->op == BinaryOp::And)
        split(n->a), split(n->b);
      else
        join(where(e, here) ? on_threads : on_others, e);
    };
    split(branch.condition);
    if (!on_threads || !on_others) return std::nullopt;
    const Body inside{ir::make_stmt(ir::If{on_others, branch.then_body, {}}, at)};
    return of_branch(ir::make_stmt(ir::If{on_threads, inside, {}}, at), here);
  }

  const ir::VarId tx_;
  const int64_t threads_;
  const bool along_x_;
  const ir::Substitution names_;
};

// ---- maps

std::optional<Body> merged_maps(const Stmt& s) {
  const auto* outer = s.as<ir::Map>();
  const auto* inner = outer && outer->body.size() == 1 ? outer->body[0].as<ir::Map>() : nullptr;
  if (!inner) return std::nullopt;
  ir::Map merged = *outer;
  merged.vars.insert(merged.vars.end(), inner->vars.begin(), inner->vars.end());
  merged.extents.insert(merged.extents.end(), inner->extents.begin(), inner->extents.end());
  merged.body = inner->body;
  return Body{ir::make_stmt(std::move(merged), s->location)};
}

// Without variables that have one value: neighbours are told by the last.
std::optional<Body> without_single_points(const ir::TileProgram& program, const Stmt& s) {
  const auto* map = s.as<ir::Map>();
  if (!map || map->vars.size() < 2) return std::nullopt;
  ir::Map kept;
  ir::Substitution zeros;
  for (size_t d = 0; d < map->vars.size(); ++d) {
    const bool last_of_all = kept.vars.empty() && d + 1 == map->vars.size();
    if (ir::constant_int(map->extents[d]) == 1 && !last_of_all) {
      zeros.emplace(map->vars[d], ir::constant(program.var(map->vars[d]).type, int64_t{0}));
    } else {
      kept.vars.push_back(map->vars[d]), kept.extents.push_back(map->extents[d]);
    }
  }
  if (zeros.empty()) return std::nullopt;
  kept.body = ir::substitute(map->body, zeros);
  return Body{ir::make_stmt(std::move(kept), s->location)};
}

// A loop without what nobody comes to behind a jump to its next turn, and without the jump: a loop that jumps has no
// loader.
std::optional<Body> without_rest_of_turn(const Stmt& s) {
  const auto* loop = s.as<ir::For>();
  if (!loop) return std::nullopt;
  const auto jump = std::ranges::find_if(loop->body, [](const Stmt& x) { return x.as<ir::Continue>() != nullptr; });
  if (jump == loop->body.end()) return std::nullopt;
  ir::For whole = *loop;
  whole.body.assign(loop->body.begin(), jump);
  if (whole.body.empty()) return Body{};
  return Body{ir::make_stmt(std::move(whole), s->location)};
}

// What threads copy and fill of their own is thread code where not all of them come by.
Body own_copies_apart(ir::TileProgram& program, const ir::Launch& launch) {
  const analysis::Uniformity threads(program, launch);
  return ir::rewrite(launch.body, [&](const Stmt& s) -> std::optional<Body> {
    if ((!s.as<ir::Copy>() && !s.as<ir::Fill>()) || threads.in_map(s) || threads.is_uniform_control(s))
      return std::nullopt;
    auto loops = own_loops(s, program);
    return loops ? std::optional(Body{std::move(*loops)}) : std::nullopt;
  });
}

}  // namespace

ir::TileProgram canonicalize(ir::TileProgram program) {
  program = grow_fragments(fill_unwritten(give_single_elements_a_dimension(std::move(program))));
  for (ir::Launch& launch : program.launches) {
    decide_known_conditions(launch);
    if (program.options.contract)
      launch.body = ir::rewrite_exprs(launch.body, [](const Expr& e) { return form_fma(e); });
    Roles as_roles(launch);
    launch.body = ir::rewrite(launch.body, [&](const Stmt& s) -> std::optional<Body> {
      if (auto r = decided(s)) return r;
      if (auto r = without_rest_of_turn(s)) return r;
      if (auto r = merged_maps(s)) return r;
      if (auto r = without_single_points(program, s)) return r;
      return as_roles(s);
    });
    name_tensors_of_turns(program, launch);
    name_changing_bounds(program, launch);
    merge_turns(launch, program);
    let_meeting_points_take_turns(program, launch);
    give_threads_own_fragments(program, launch);
    ir::number_statements(launch);
    launch.body = own_copies_apart(program, launch);
    ir::number_statements(launch);
    part_branches(program, launch);
    meet_in_roles(launch);
    meet_beside_roles(program, launch);
    begin_running_reduces(program, launch);
    part_turn_tiles(program, launch);
  }
  analysis::note_multiples(program);
  return program;
}

}  // namespace tilewright::passes
