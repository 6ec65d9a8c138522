#include "passes/tile/read_originals.h"

#include "analysis/accessed.h"
#include "ir/extent.h"
#include "ir/number_statements.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/schedule/settle_plan.h"

namespace tilewright::passes {

using namespace ir;

namespace {

struct Original {
  StmtId copy;
  BufferId tile;
};

class Originals {
 public:
  Originals(const TileProgram& p, const Launch& launch) : p_(p), launch_(launch) { body(launch.body); }
  std::map<BufferId, Original> found;  // by the fragment

 private:
  void body(const Body& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      for_each_body(list[i], [&](const Body& inner) { body(inner); });
      if (const auto* n = list[i].as<Copy>(); n && is_plain(*n) && is_only_read(n->to.buffer, n->from.buffer, list, i))
        found[n->to.buffer] = {list[i]->id, n->from.buffer};
    }
  }
  bool is_plain(const Copy& n) const {
    const Buffer &to = p_.buffer(n.to.buffer), &from = p_.buffer(n.from.buffer);
    return n.completion.immediate() && n.combine == ir::Combine::None && !n.im2col.present() &&
           to.space == Space::Fragment && from.space == Space::Shared && !to.is_view() && !from.is_view() &&
           to.type == from.type && is_whole(n.to, to) && is_whole(n.from, from) &&
           std::equal(to.shape.begin(), to.shape.end(), from.shape.begin(), from.shape.end(),
                      [](const Expr& a, const Expr& b) { return equal(a, b); });
  }
  bool uses(const Stmt& s, BufferId id) const {
    const std::set<BufferId> used = used_buffers({s});
    return std::any_of(used.begin(), used.end(), [&](BufferId u) { return p_.root(u) == id; });
  }
  // By maps behind the copy, in the same turn, and nowhere else.
  bool is_only_read(BufferId fragment, BufferId tile, const Body& list, size_t copy) const {
    int here = 1, all = 0;
    bool changed = false, plain = true;
    for (size_t i = copy + 1; i < list.size(); ++i) {
      const std::set<BufferId> written = analysis::written_by({list[i]}, p_);
      const bool writes_tile = analysis::meet({tile}, written, p_);
      if (uses(list[i], fragment)) {  // its points have no order among each other
        plain = plain && list[i].as<Map>() && !changed && !writes_tile && !written.contains(fragment);
        here += analysis::accesses_of({list[i]}, fragment, p_);
      }
      // Behind what others learn of, the tile may be theirs.
      const Stmt& s = list[i];
      const bool tells =
          !s.as<Map>() && !s.as<Fill>() && !s.as<Copy>() && !s.as<Gemm>() && !s.as<Reduce>() && !s.as<Let>();
      changed = changed || tells || writes_tile;
    }
    all = analysis::accesses_of(launch_.body, fragment, p_);
    return plain && here > 1 && here == all;
  }

  const TileProgram& p_;
  const Launch& launch_;
};

}  // namespace

void read_originals(TileProgram& program, const target::GpuTarget& target) {
  for (size_t i = 0; i < program.launches.size(); ++i) {
    Launch& launch = program.launches[i];
    number_statements(launch);
    std::map<BufferId, Original> originals = Originals(program, launch).found;
    if (originals.empty()) continue;
    TileProgram scratch = program;
    const Placement placement = foreseen_placement(scratch, i, target);
    std::erase_if(originals, [&](const auto& x) { return !placement.in_memory.contains(x.first); });
    std::set<StmtId> copies;
    for (const auto& [fragment, original] : originals) copies.insert(original.copy);
    const Body without = rewrite(launch.body, [&](const Stmt& s) -> std::optional<Body> {
      return s.as<Copy>() && copies.contains(s->id) ? std::optional(Body{}) : std::nullopt;
    });
    launch.body = rewrite_exprs(without, [&](const Expr& e) -> std::optional<Expr> {
      const auto* n = e.as<Load>();
      const auto original = n ? originals.find(n->buffer) : originals.end();
      if (original == originals.end()) return std::nullopt;
      return load(original->second.tile, n->indices, e->type);
    });
  }
}

}  // namespace tilewright::passes
