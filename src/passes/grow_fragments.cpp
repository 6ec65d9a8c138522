#include "passes/grow_fragments.h"

#include "analysis/tile_ranges.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "support/warning.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// How the candidates are accessed: by dimension the extent of the maps whose variables stand there.
class Accesses {
 public:
  explicit Accesses(const std::set<BufferId>& candidates) {
    for (BufferId id : candidates) extents_[id];
  }
  void visit(const Body& body) {
    for (const Stmt& s : body) {
      const auto* map = s.as<Map>();
      if (map)
        for (size_t i = 0; i < map->vars.size(); ++i)
          if (const auto extent = constant_int(map->extents[i])) of_vars_[map->vars[i]] = *extent;
      statement(s);
      for_each_body(s, [&](const Body& inside) { visit(inside); });
    }
  }
  // Where all accesses are at variables of maps of one extent in each dimension; the largest of the buffers otherwise.
  std::optional<std::vector<int64_t>> points_of(BufferId id) const {
    const auto found = extents_.find(id);
    return found != extents_.end() && !found->second.empty() ? std::optional(found->second) : std::nullopt;
  }

 private:
  void statement(const Stmt& s) {
    if (const auto* n = s.as<Store>()) element(n->to.buffer, n->to.indices);
    const bool is_plain =
        s.as<Store>() || s.as<Let>() || s.as<If>() || s.as<For>() || s.as<Map>() || s.as<Role>() || s.as<While>();
    for_each_expr(s, [&](const Expr& whole) {
      walk(whole, [&](const Expr& e) {
        if (const auto* n = e.as<Load>()) element(n->buffer, n->indices);
      });
    });
    if (is_plain) return;
    for (BufferId id : used_buffers({s})) extents_.erase(id);
  }
  void element(BufferId id, const std::vector<Expr>& indices) {
    const auto at = extents_.find(id);
    if (at == extents_.end()) return;
    std::vector<int64_t> here;
    for (const Expr& index : indices) {
      const auto* v = index.as<Var>();
      const auto extent = v ? of_vars_.find(v->id) : of_vars_.end();
      if (extent == of_vars_.end()) return void(extents_.erase(at));
      here.push_back(extent->second);
    }
    if (at->second.empty())
      at->second = here;
    else if (at->second != here)
      extents_.erase(at);
  }

  std::map<BufferId, std::vector<int64_t>> extents_;
  std::map<VarId, int64_t> of_vars_;
};

bool may_grow(const TileProgram& program, BufferId id) {
  const Buffer& b = program.buffer(id);
  if (b.space != Space::Fragment || b.is_view() || b.reducer || b.layout.kind != LayoutHint::None || b.rank() == 0)
    return false;
  return std::none_of(program.buffers.begin(), program.buffers.end(), [&](const Buffer& v) { return v.root == id; });
}

// Whether a map does nothing at points of its variable `at` beyond the fragments that it stores to; how many are left.
class Beyond {
 public:
  Beyond(const ProgramTables& program, const Map& map, size_t at) : program_(program), depends_{map.vars[at]} {
    body(map.body);
    const auto extent = constant_int(map.extents[at]);
    if (nothing_else_ && has_ && extent && *has_ < *extent) points = *has_;
  }
  std::optional<int64_t> points;
  BufferId of;

 private:
  void body(const Body& list) {
    for (const Stmt& s : list) {
      if (const auto* n = s.as<Store>()) {
        store(*n);
      } else if (const auto* let = s.as<Let>()) {
        if (uses(let->value)) depends_.push_back(let->var);
      } else if (const auto* branch = s.as<If>()) {
        inside(s, uses(branch->condition));
      } else if (const auto* loop = s.as<For>()) {
        inside(s, uses(loop->begin) || uses(loop->extent));
      } else {
        nothing_else_ = false;
      }
    }
  }
  // What a condition on the variable guards may be left by nobody.
  void inside(const Stmt& s, bool guarded) {
    nothing_else_ = nothing_else_ && !guarded;
    for_each_body(s, [&](const Body& b) { body(b); });
  }
  void store(const Store& n) {
    const Buffer& b = program_.buffer(n.to.buffer);
    std::optional<int64_t> here;
    for (size_t d = 0; d < n.to.indices.size() && b.space == Space::Fragment && !b.is_view(); ++d)
      if (const auto* v = n.to.indices[d].as<Var>(); v && v->id == depends_.front()) here = constant_int(b.shape[d]);
    nothing_else_ = nothing_else_ && here && (!has_ || *has_ == *here);
    has_ = here, of = n.to.buffer;
  }
  bool uses(const Expr& e) const {
    const auto used = used_vars(e);
    return std::any_of(depends_.begin(), depends_.end(), [&](VarId v) { return used.contains(v); });
  }

  const ProgramTables& program_;
  std::vector<VarId> depends_;  // the variable, and names of what depends on it
  bool nothing_else_ = true;
  std::optional<int64_t> has_;
};

// Maps end where the fragments end that are all they store to: no other point has an element to store.
Body cut_maps(const TileProgram& program, const Body& body) {
  return rewrite(body, [&](const Stmt& s) -> std::optional<Body> {
    const auto* map = s.as<Map>();
    if (!map) return std::nullopt;
    Map cut = *map;
    bool some = false;
    for (size_t d = 0; d < map->vars.size(); ++d) {
      const Beyond beyond(program, *map, d);
      if (!beyond.points) continue;
      warn(make_diagnostic(
          Code::IndexOutOfBounds, program.location(s->location),
          fmt::format("a map of {} points goes beyond the {} elements of '{}', and does nothing there",
                      constant_int(map->extents[d]).value_or(0), *beyond.points, program.buffer(beyond.of).name),
          "make the map as large as the fragment"));
      cut.extents[d] = constant(map->extents[d]->type, *beyond.points), some = true;
    }
    return some ? std::optional(Body{make_stmt(std::move(cut), s->location)}) : std::nullopt;
  });
}

// Fragments that a map stores to beyond their elements, whatever is around the map.
std::set<BufferId> left_by_maps(const TileProgram& program) {
  std::set<BufferId> left;
  for (const Launch& launch : program.launches)
    walk(launch.body, [&](const Stmt& s) {
      const auto* map = s.as<Map>();
      for (size_t d = 0; map && d < map->vars.size(); ++d)
        if (const Beyond beyond(program, *map, d); beyond.points) left.insert(beyond.of);
    });
  return left;
}

TileProgram grown(TileProgram program) {
  std::set<BufferId> candidates = analysis::tiles_surely_left(program);
  candidates.merge(left_by_maps(program));
  std::erase_if(candidates, [&](BufferId id) { return !may_grow(program, id); });
  if (candidates.empty()) return program;
  Accesses accesses(candidates);
  for (const Launch& launch : program.launches) accesses.visit(launch.body);
  for (BufferId id : candidates) {
    const auto points = accesses.points_of(id);
    if (!points) continue;
    Buffer& b = program.buffers[id.index];
    std::vector<std::string> had, has;
    for (size_t d = 0; d < b.rank(); ++d) {
      const int64_t old = constant_int(b.shape[d]).value_or(0), extent = std::max(old, (*points)[d]);
      had.push_back(std::to_string(old)), has.push_back(std::to_string(extent));
      b.shape[d] = constant(b.shape[d]->type, extent);
    }
    warn(make_diagnostic(Code::IndexOutOfBounds, program.location(b.location),
                         fmt::format("'{}' has {} elements, but maps go through {} of it: it gets that many", b.name,
                                     fmt::join(had, " x "), fmt::join(has, " x ")),
                         "declare it as large as the maps that go through it"));
  }
  return program;
}

}  // namespace

TileProgram grow_fragments(TileProgram program) {
  program = grown(std::move(program));
  for (Launch& launch : program.launches) launch.body = cut_maps(program, launch.body);
  return program;
}

}  // namespace tilewright::passes
