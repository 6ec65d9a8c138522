// What the uses of fragments ask for (fragment_uses.h) gives classes their layouts (layout_classes.h). A use that is
// not served by them then takes its fragment to shared memory, where every access is right, or a gemm from wgmma; all
// is asked again without it, until every use is served.
#include "passes/threads/placement.h"

#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/threads/copied_points.h"
#include "passes/threads/fragment_uses.h"
#include "plan/price.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kMaxRegisters = 512;  // of one fragment and thread; beyond, it could only spill

// Of a round: what was asked, and where what is found goes.
struct Round {
  const TileProgram& p;
  const target::GpuTarget& target;
  FragmentUses uses;
  Findings& found;
  const LayoutClasses& classes() const { return uses.classes; }
  void to_memory(size_t node, const char* why) const {
    found.to_memory(p.root(uses.classes.nodes[node].fragment), why);
  }
};

void check_follows(const Round& r) {
  for (const Follows& f : r.classes().follows) {
    const LayoutClass& child = r.classes().of(f.child);
    const bool everywhere = !f.writes && child.layout->is_replicated() && child.layout->copy_count() == child.threads;
    if (everywhere || equal_up_to_registers(*child.layout, wanted_of(r.classes(), f))) continue;
    r.to_memory(f.child, "two of its uses want different layouts");
  }
}

void check_covers(const Round& r) {
  for (const Covers& c : r.classes().covers) {
    const auto wanted = wanted_of(r.classes(), c);
    const std::vector<int64_t>& points = r.classes().nodes[c.map].shape;
    if (wanted && equal_up_to_registers(r.classes().layout_of(c.map), shaped(*wanted, points))) continue;
    r.to_memory(c.fragment, "a parallel loop runs over part of it, other threads over that part");
    r.found.cut.insert(r.classes().nodes[c.map].stmt->id);
  }
}

void check_reshaped(const Round& r) {
  for (const Reshaped& s : r.classes().reshaped)
    if (wanted_of(r.classes(), s.fragment, s.view) != r.classes().layout_of(s.view))
      r.to_memory(s.fragment, "its views want other layouts");
}

// What is too large for registers, if memory has room for it: a larger one spills to the memory of its threads.
void check_sizes(const Round& r) {
  for (size_t i = 0; i < r.classes().nodes.size(); ++i) {
    const BufferId id = r.classes().nodes[i].fragment;
    if (!id.valid() || r.classes().of(i).layout->registers() <= kMaxRegisters) continue;
    int64_t elements = 1;
    for (const Expr& e : r.p.buffer(id).shape) elements *= constant_int(e).value_or(1);
    if (bytes_of(r.p.buffer(id).type, elements) <= r.target.shared_bytes)
      r.to_memory(i, "it does not fit in the registers of its threads");
  }
}

// Several threads that run a point, each with copies of its elements, must not need what one of them stores.
void check_copies(const Round& r) {
  const auto in_memory = [&](BufferId id) {
    if (!id.valid()) return false;
    const Space space = r.p.buffer(r.p.root(id)).space;
    return space == Space::Global || space == Space::Shared ||
           (space == Space::Fragment && !may_be_in_registers(r.p, id, r.found));
  };
  for (size_t i = 0; i < r.classes().nodes.size(); ++i) {
    const Stmt& s = r.classes().nodes[i].stmt;
    const auto* map = s ? s.as<Map>() : nullptr;
    if (!map || r.classes().of(i).layout->copy_count() == 1 || !copies_would_meet(*map, r.p, in_memory)) continue;
    for (BufferId id : used_buffers(map->body))
      if (may_be_in_registers(r.p, id, r.found))
        r.found.to_memory(r.p.root(id), "a parallel loop that uses it reads memory that it changes");
  }
}

// Whether other warps for its rows and columns leave c as another operation has it: which of them do what is theirs to
// choose, as the program's policy only wishes.
bool takes_warps_of(GemmChoice& choice, const Gemm& gemm, const FragmentLayout& c) {
  const int64_t rows = c.shape()[0], columns = c.shape()[1], warps = choice.warps_m * choice.warps_n;
  GemmChoice other = choice;
  for (other.warps_m = 1; other.warps_m <= warps; ++other.warps_m) {
    other.warps_n = warps / other.warps_m;
    if (other.warps_m * other.warps_n != warps) continue;
    const bool whole = rows % (other.warps_m * target::kMmaRows) == 0 && columns % (other.warps_n * choice.mma->n) == 0;
    if ((gemm.is_sparse() && !whole) || accumulator_of(other, rows, columns) != c) continue;
    choice = other;
    return true;
  }
  return false;
}

// What of the choices of gemms holds, now that layouts are known.
void check_gemms(Round& r) {
  for (GemmUse& g : r.uses.gemms) {
    GemmChoice& choice = g.choice;
    const FragmentLayout c = r.classes().layout_of(g.c);
    const bool lies_so = !choice.has_layout() || c == accumulator_of(choice, c.shape()[0], c.shape()[1]);
    const char* why = "another operation decides the layout of c";
    if (choice.wgmma && !lies_so)
      r.found.no_wgmma.emplace(g.stmt->id, why), r.found.is_new = true;
    else if (choice.mma && !lies_so && !takes_warps_of(choice, *g.stmt.as<Gemm>(), c))
      choice.mma = nullptr, choice.why_not_mma = why;
    else if (!choice.has_instruction() && !lies_so)
      choice.tile.reset();
    if (!g.a) continue;
    const FragmentLayout a = r.classes().layout_of(*g.a);
    if (!choice.has_instruction() || !equal_up_to_registers(a, operand_of(choice, a.shape()[0], a.shape()[1])))
      r.to_memory(*g.a, "a gemm wants it in another layout than its other uses");
  }
}

// Whether no other operation cares how a fragment lies: all that touches it goes through its elements, and gemms that
// could be done the other way round. `covers`: maps over part of it have threads of their own.
bool is_free(const Round& r, size_t node, const FragmentLayout& wanted, bool covers = true) {
  const LayoutClasses& all = r.classes();
  const auto here = [&](size_t other) { return all.find(other) == all.find(node); };
  const LayoutClass& c = all.of(node);
  if (c.reduced || c.within > 0 || c.operand || c.annotated) return false;
  for (const Follows& f : all.follows)
    if (here(f.parent) || here(f.child)) return false;
  for (const Covers& f : all.covers)
    if (covers && (here(f.fragment) || here(f.map))) return false;
  for (const Reshaped& f : all.reshaped)
    if (here(f.fragment) || here(f.view)) return false;
  return std::ranges::all_of(r.uses.gemms, [&](const GemmUse& g) {
    return !here(g.c) ||
           (g.transposed && accumulator_of(*g.transposed, wanted.shape()[0], wanted.shape()[1]) == wanted);
  });
}

// Products of a loop run on beside each other and beside what else it does if all of them are wgmma's; by mma.sync one
// would be waited for where it stands, and its warps would do nothing else. So where others of the loop are wgmma's,
// one that has too few rows for it is done the other way round. `cheaper`: all of a loop's, where that takes less time;
// asked before what follows from their layouts.
void offer_transposes(Round& r, const Launch& launch, const analysis::Uniformity& uniformity, bool cheaper) {
  walk(launch.body, [&](const Stmt& s) {
    const auto* loop = s.as<For>();
    if (!loop) return;
    std::vector<const GemmUse*> others;
    bool any = false, all = true;
    for (const GemmUse& g : r.uses.gemms) {
      if (std::ranges::none_of(loop->body, [&](const Stmt& x) { return x->id == g.stmt->id; })) continue;
      any = any || g.choice.wgmma;
      all = all && g.transposed &&
            plan::is_cheaper_turned(r.p, *g.stmt.as<Gemm>(), uniformity.executing_set(g.stmt).count(), r.target);
      if (g.transposed && !r.found.transposed.contains(g.stmt->id)) others.push_back(&g);
    }
    for (const GemmUse* g : (cheaper ? all : any) ? others : std::vector<const GemmUse*>{}) {
      const auto [rows, columns, k] = extents_of(*g->stmt.as<Gemm>());
      if (!is_free(r, g->c, accumulator_of(*g->transposed, rows, columns), !cheaper)) continue;
      r.found.transposed.insert(g->stmt->id), r.found.is_new = true;
    }
  });
}

Placement placement_of(const Round& r) {
  Placement out;
  out.in_memory = r.found.in_memory;
  out.cut = r.found.cut;
  for (size_t i = 0; i < r.classes().nodes.size(); ++i) {
    const LayoutNode& node = r.classes().nodes[i];
    if (!r.classes().of(i).layout) continue;
    if (node.fragment.valid()) {
      out.registers.emplace(node.fragment, r.classes().layout_of(i));
      out.decided_by.emplace(node.fragment, r.classes().of(i).decided_by);
    } else {
      out.points.emplace(node.stmt->id, r.classes().layout_of(i));
    }
  }
  for (const GemmUse& g : r.uses.gemms) out.gemms.emplace(g.stmt->id, g.choice);
  return out;
}

void find_matrix_stores(const Body& body, const Team& team, const TileProgram& p, const analysis::Uniformity& u,
                        Placement& out) {
  for (const Stmt& s : body) {
    if (const FragmentLayout* points = s.as<Map>() ? out.points_of(s) : nullptr)
      if (const auto how = matrix_store_of(s, *points, team, p, u)) out.matrix_stores.emplace(s->id, *how);
    Team of_body = team;
    if (const auto* n = s.as<Role>()) of_body.begin = n->begin, of_body.count = n->end - n->begin;
    for_each_body(s, [&](const Body& inner) { find_matrix_stores(inner, of_body, p, u, out); });
  }
}

}  // namespace

Placement place_fragments(const TileProgram& program, const Launch& launch, const analysis::Uniformity& uniformity,
                          const target::GpuTarget& target) {
  Findings found;
  while (true) {
    found.is_new = false;
    Round round{program, target, fragment_uses(program, launch, uniformity, target, found), found};
    if (!found.is_new) offer_transposes(round, launch, uniformity, true);
    if (found.is_new) continue;
    choose_layouts(round.uses.classes);
    check_follows(round), check_covers(round), check_reshaped(round), check_sizes(round), check_copies(round),
        check_gemms(round);
    if (!found.is_new) offer_transposes(round, launch, uniformity, false);
    if (found.is_new) continue;
    Placement out = placement_of(round);
    Team team;
    team.count = launch.thread_count();
    if (target.has.store_matrices) find_matrix_stores(launch.body, team, program, uniformity, out);
    return out;
  }
}

}  // namespace tilewright::passes
