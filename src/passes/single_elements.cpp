#include "passes/single_elements.h"

#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Adds the place of the one element wherever a node names one of the tiles.
struct Places {
  const std::set<BufferId>& tiles;

  template <class T>
  void node(T& n) {
    if constexpr (requires { n.buffer, n.indices; }) {
      if (tiles.contains(n.buffer)) n.indices = {constant(i32, int64_t{0})};
    }
    T::fields(n, *this);
  }
  void operator()(const char*, auto& field) { visit(field); }
  void visit(auto& field) {
    using T = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<T, Region>) {
      if (tiles.contains(field.buffer))
        field.min = {constant(i32, int64_t{0})}, field.extent = {constant(i32, int64_t{1})};
    } else if constexpr (std::is_same_v<T, std::vector<Region>>) {
      for (Region& r : field) visit(r);
    } else if constexpr (requires { T::fields(field, *this); }) {
      node(field);
    }
  }
};

}  // namespace

TileProgram give_single_elements_a_dimension(TileProgram program) {
  std::set<BufferId> tiles;
  for (uint32_t i = 0; i < program.buffers.size(); ++i) {
    Buffer& b = program.buffers[i];
    if (b.rank() > 0 || (b.space != Space::Shared && b.space != Space::Fragment)) continue;
    b.shape = {constant(i32, int64_t{1})};
    tiles.insert({i});
  }
  if (tiles.empty()) return program;
  Places places{tiles};
  for (Launch& launch : program.launches) {
    launch.body = rewrite_exprs(launch.body, [&](const Expr& e) -> std::optional<Expr> {
      const auto* load = e.as<Load>();
      if (!load || !tiles.contains(load->buffer)) return std::nullopt;
      return make_expr(Load{load->buffer, {constant(i32, int64_t{0})}}, e->type);
    });
    launch.body = rewrite(launch.body, [&](const Stmt& s) -> std::optional<Body> {
      auto op = s->op;
      std::visit([&](auto& node) { places.node(node); }, op);
      return Body{Stmt(StmtNode{std::move(op), s->location})};
    });
  }
  return program;
}

}  // namespace tilewright::passes
