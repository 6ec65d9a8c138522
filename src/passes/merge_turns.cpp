#include "passes/merge_turns.h"

#include "ir/buffer_vars.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class Turns {
 public:
  Turns(const ProgramTables& program, const Launch& launch, const For& loop, const Map& map)
      : program_(program), turn_(loop.var) {
    const auto is_known = [](const Expr& e) { return constant_int(e).value_or(0) > 0; };
    independent_ = is_known(loop.extent) && constant_int(loop.begin) &&
                   std::all_of(map.extents.begin(), map.extents.end(), is_known);
    body(map.body);
    for (VarId v : launch.thread) independent_ = independent_ && !used_.contains(v);
    for (const auto& [root, rows] : rows_)
      if (written_.contains(root)) independent_ = independent_ && rows.found && !rows.dims.empty();
  }
  bool are_points() const { return independent_ && of_fragment_; }

 private:
  // The dimensions at which every access of a tile has the loop's variable.
  struct Rows {
    BufferId buffer;
    std::set<size_t> dims;
    bool found = false;
  };
  void body(const Body& list) {
    for (const Stmt& s : list) {
      const auto* store = s.as<Store>();
      independent_ = independent_ && (s.as<Let>() || s.as<If>() || (store && store->queue == Queue::None));
      if (store) {
        access(store->to.buffer, store->to.indices);
        const Buffer& b = program_.buffer(store->to.buffer);
        written_.insert(program_.root(store->to.buffer));
        independent_ = independent_ && !b.is_view() && (b.space == Space::Fragment || b.space == Space::Shared);
      }
      for_each_expr(s, [&](const Expr& whole) {
        used_.merge(used_vars(whole));
        walk(whole, [&](const Expr& e) {
          if (const auto* n = e.as<Load>()) access(n->buffer, n->indices);
        });
      });
      for_each_body(s, [&](const Body& inside) { body(inside); });
    }
  }
  void access(BufferId id, const std::vector<Expr>& indices) {
    const Space space = program_.buffer(program_.root(id)).space;
    independent_ = independent_ && space != Space::Local;
    std::set<size_t> here;
    for (size_t d = 0; d < indices.size(); ++d) {
      const auto* v = indices[d].as<Var>();
      if (v && v->id == turn_) here.insert(d);
    }
    of_fragment_ = of_fragment_ || (space == Space::Fragment && !here.empty());
    Rows& rows = rows_[program_.root(id)];
    if (!rows.found) {
      rows = {id, std::move(here), true};
      return;
    }
    if (rows.buffer != id) rows.dims.clear();
    std::erase_if(rows.dims, [&](size_t d) { return !here.contains(d); });
  }

  const ProgramTables& program_;
  const VarId turn_;
  bool independent_ = true, of_fragment_ = false;
  std::map<BufferId, Rows> rows_;
  std::set<BufferId> written_;
  std::set<VarId> used_;
};

}  // namespace

void merge_turns(Launch& launch, const ProgramTables& program) {
  launch.body = rewrite(launch.body, [&](const Stmt& s) -> std::optional<Body> {
    const auto* loop = s.as<For>();
    if (!loop || (loop->kind != LoopKind::Serial && loop->kind != LoopKind::Unroll) || loop->body.size() != 1)
      return std::nullopt;
    const auto* map = loop->body[0].as<Map>();
    if (!map || !Turns(program, launch, *loop, *map).are_points()) return std::nullopt;
    const DType type = program.var(loop->var).type;
    Map merged = *map;
    merged.vars.insert(merged.vars.begin(), loop->var);
    merged.extents.insert(merged.extents.begin(), loop->extent);
    if (constant_int(loop->begin) != 0)
      merged.body = substitute(merged.body, {{loop->var, add(var(loop->var, type), loop->begin)}});
    return Body{make_stmt(std::move(merged), loop->body[0]->location)};
  });
}

}  // namespace tilewright::passes
