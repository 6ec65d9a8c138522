#include "passes/tile/unroll_rows.h"

#include "analysis/accessed.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/schedule/role_code.h"
#include "passes/schedule/settle_plan.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kMostTurns = 64, kMostMaps = 256;
constexpr int64_t kMostRegisters = 128;  // of a thread, for the fragments that come to it

using Roots = std::set<BufferId>;

// The fragments that maps in the loop index by its variable, beside variables of their own. Empty: it cannot be
// unrolled, or one of them has an index that is none in any turn.
Roots rows_of(const For& loop, const ProgramTables& p) {
  const auto turns = constant_int(loop.extent), begin = constant_int(loop.begin);
  const bool serial = loop.kind == LoopKind::Serial || loop.kind == LoopKind::Unroll;
  if (!serial || !begin || !turns || *turns < 2 || *turns > kMostTurns) return {};
  if (*turns * static_cast<int64_t>(loop.body.size()) > kMostMaps) return {};
  Roots out;
  bool fits = true;
  for (const Stmt& s : loop.body) {
    const auto* map = s.as<Map>();
    if (!map) return {};
    const auto access = [&](BufferId id, const std::vector<Expr>& indices) {
      if (p.buffer(id).space != Space::Fragment) return;
      bool mine = false;
      std::vector<Expr> here;
      for (const Expr& e : indices) {
        mine = mine || used_vars(e).contains(loop.var);
        here.push_back(substitute(e, {{loop.var, loop.begin}}));
      }
      if (!mine) return;
      fits = fits && analysis::followed(here, map->vars);
      out.insert(p.root(id));
    };
    walk(map->body, [&](const Stmt& x) {
      if (const auto* n = x.as<Store>()) access(n->to.buffer, n->to.indices);
      fits = fits && !x.as<For>() && !x.as<While>();
    });
    walk_exprs(map->body, [&](const Expr& e) {
      if (const auto* n = e.as<Load>()) access(n->buffer, n->indices);
    });
  }
  return fits ? out : Roots{};
}

Body turns_of(const For& loop, ProgramTables& p) {
  Body out;
  const int64_t begin = *constant_int(loop.begin), turns = *constant_int(loop.extent);
  for (int64_t k = begin; k < begin + turns; ++k)
    for (Stmt& s : renamed(p, substitute(loop.body, {{loop.var, constant(p.var(loop.var).type, k)}})))
      out.push_back(std::move(s));
  return out;
}

// With the loops over these fragments unrolled.
TileProgram unrolled(const TileProgram& program, size_t number, const Roots& roots) {
  TileProgram out = program;
  Launch& launch = out.launches[number];
  launch.body = rewrite(launch.body, [&](const Stmt& s) -> std::optional<Body> {
    const auto* loop = s.as<For>();
    if (!loop) return std::nullopt;
    const Roots mine = rows_of(*loop, out);
    const bool any = std::any_of(mine.begin(), mine.end(), [&](BufferId id) { return roots.contains(id); });
    return any ? std::optional(turns_of(*loop, out)) : std::nullopt;
  });
  return out;
}

int64_t words(const ProgramTables& p, BufferId id, const FragmentLayout& layout) {
  return (layout.registers() * p.buffer(id).type.storage_bits() + 31) / 32;
}

}  // namespace

void unroll_rows(TileProgram& program, const target::GpuTarget& target) {
  for (size_t i = 0; i < program.launches.size(); ++i) {
    Roots rows;
    walk(program.launches[i].body, [&](const Stmt& s) {
      if (const auto* loop = s.as<For>()) rows.merge(rows_of(*loop, program));
    });
    if (rows.empty()) continue;
    TileProgram scratch = program;
    const Placement before = foreseen_placement(scratch, i, target);
    std::erase_if(rows, [&](BufferId id) { return !before.in_memory.contains(id); });
    // What stays in memory though all is unrolled keeps its loops.
    while (!rows.empty()) {
      TileProgram with = unrolled(program, i, rows);
      scratch = with;
      const Placement after = foreseen_placement(scratch, i, target);
      if (std::erase_if(rows, [&](BufferId id) { return after.in_memory.contains(id); }) > 0) continue;
      int64_t all = 0;
      for (BufferId id : rows)
        if (const FragmentLayout* layout = after.layout_of(id)) all += words(program, id, *layout);
      const bool others = std::any_of(after.in_memory.begin(), after.in_memory.end(),
                                      [&](const auto& x) { return !before.in_memory.contains(x.first); });
      if (!others && all <= kMostRegisters) program = std::move(with);
      break;
    }
  }
}

}  // namespace tilewright::passes
