#include "passes/tile/store_as_made.h"

#include "analysis/accessed.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/schedule/role_code.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kVectorBits = 128;  // of the widest access of a thread

class Joiner {
 public:
  Joiner(const TileProgram& p, const Launch& launch) : p_(p), launch_(launch) {
    walk(launch.body, [&](const Stmt& s) {
      if (const auto* g = s.as<Gemm>())
        for (BufferId id : {g->a.buffer, g->b.buffer, g->c.buffer}) of_products_.insert(p_.root(id));
    });
  }

  Body body(const Body& in) {
    Body out;
    for (const Stmt& s : in) {
      out.push_back(with_bodies(s, [&](const Body& inner) { return s.as<Map>() ? inner : body(inner); }));
      if (auto both = joined(out)) out.pop_back(), out.back() = std::move(*both);
    }
    return out;
  }

 private:
  // The element that all of the map's names lead to.
  const Store* made_by(const Map& m) const {
    if (m.body.empty()) return nullptr;
    for (size_t i = 0; i + 1 < m.body.size(); ++i)
      if (!m.body[i].as<Let>()) return nullptr;
    const auto* store = m.body.back().as<Store>();
    return store && store->queue == Queue::None ? store : nullptr;
  }
  bool reads_registers_alone(const Body& body) const {
    bool alone = true;
    walk_exprs(body, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      alone = alone && (!n || p_.buffer(p_.root(n->buffer)).space == Space::Fragment);
    });
    return alone;
  }

  // Whether threads store vectors whatever the call: else what makes elements would stand in both branches.
  static bool leaves_in_vectors(const Buffer& tensor) {
    if (tensor.shape.empty() || !tensor.strides.empty() || tensor.is_view()) return false;
    const auto row = constant_int(tensor.shape.back());
    return row && *row * tensor.type.storage_bits() % kVectorBits == 0;
  }
  // Whether the last two statements of the list are all that there is of the tile behind what fills it before.
  bool ends_here(const Body& list, BufferId tile) const {
    int here = 0;
    for (size_t i = list.size(); i-- > 0;) {
      const int its = analysis::accesses_of({list[i]}, tile, p_);
      here += its;
      if (its == 0 || i + 1 == list.size()) continue;
      if (analysis::writes_whole(list[i], tile, p_) && !analysis::read_by({list[i]}, p_).contains(tile))
        return here == analysis::accesses_of(launch_.body, tile, p_);
    }
    return false;
  }

  // The last two statements of a list as one.
  std::optional<Stmt> joined(const Body& list) {
    if (list.size() < 2) return std::nullopt;
    const Stmt &before = list[list.size() - 2], &behind = list.back();
    const auto *makes = before.as<Map>(), *leaves = behind.as<Map>();
    if (!makes || !leaves) return std::nullopt;
    const Store *made = made_by(*makes), *left = leaves->body.size() == 1 ? made_by(*leaves) : nullptr;
    if (!made || !left || !reads_registers_alone(makes->body) || !reads_registers_alone(leaves->body))
      return std::nullopt;
    const Buffer &tile = p_.buffer(made->to.buffer), &memory = p_.buffer(p_.root(left->to.buffer));
    if (tile.space != Space::Fragment || tile.is_view() || tile.reducer || memory.space != Space::Global)
      return std::nullopt;
    if (of_products_.contains(made->to.buffer) || !leaves_in_vectors(p_.buffer(left->to.buffer))) return std::nullopt;
    const auto names = points(*makes, *made, *leaves);
    if (!names) return std::nullopt;
    if (!ends_here(list, made->to.buffer)) return std::nullopt;
    Map both = *makes;
    both.body.pop_back();
    append(both.body, rewrite_exprs(substitute(leaves->body, *names), [&](const Expr& e) -> std::optional<Expr> {
             const auto* n = e.as<Load>();
             return n && n->buffer == made->to.buffer ? std::optional(made->value) : std::nullopt;
           }));
    return make_stmt(std::move(both), before->location);
  }

  // The variables of the map that stores as those of the map that makes: each point of one has the element of one of
  // the other, in the same order.
  std::optional<Substitution> points(const Map& makes, const Store& made, const Map& leaves) const {
    const auto own = [&](const Element& e, const Map& m) -> std::optional<std::vector<int>> {
      std::vector<int> out;  // by the dimension: the variable; -1: there is one element
      for (size_t d = 0; d < e.indices.size(); ++d) {
        const auto* v = e.indices[d].as<Var>();
        const auto at = v ? std::ranges::find(m.vars, v->id) - m.vars.begin() : std::ssize(m.vars);
        const bool one = constant_int(p_.buffer(e.buffer).shape[d]) == 1;
        if (!one && at == std::ssize(m.vars)) return std::nullopt;
        out.push_back(one ? -1 : static_cast<int>(at));
      }
      return out;
    };
    const auto of_makes = own(made.to, makes);
    std::optional<std::vector<int>> of_leaves;
    bool alike = of_makes.has_value();
    walk_exprs(leaves.body, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      if (!n || n->buffer != made.to.buffer) return;
      auto its = own({n->buffer, n->indices}, leaves);
      alike = alike && its && (!of_leaves || its == of_leaves);
      of_leaves = std::move(its);
    });
    if (!alike || !of_leaves) return std::nullopt;
    Substitution names;
    std::set<int> used;
    int last_from = -1, last_to = -1;
    for (size_t d = 0; d < of_makes->size(); ++d) {
      const int from = (*of_leaves)[d], to = (*of_makes)[d];
      if (from < 0) continue;
      const auto f = static_cast<size_t>(from), t = static_cast<size_t>(to);
      const auto extent = constant_int(makes.extents[t]);
      if (from <= last_from || to <= last_to || !extent || extent != constant_int(leaves.extents[f]))
        return std::nullopt;
      last_from = from, last_to = to, used.insert(to);
      names[leaves.vars[f]] = cast(var(makes.vars[t], p_.var(makes.vars[t]).type), p_.var(leaves.vars[f]).type);
    }
    for (size_t i = 0; i < makes.vars.size(); ++i)
      if (!used.contains(static_cast<int>(i)) && constant_int(makes.extents[i]) != 1) return std::nullopt;
    for (size_t i = 0; i < leaves.vars.size(); ++i) {
      if (names.contains(leaves.vars[i])) continue;
      if (constant_int(leaves.extents[i]) != 1) return std::nullopt;
      names[leaves.vars[i]] = constant(p_.var(leaves.vars[i]).type, int64_t{0});
    }
    return names;
  }

  const TileProgram& p_;
  const Launch& launch_;
  std::set<BufferId> of_products_;
};

}  // namespace

TileProgram store_as_made(TileProgram program) {
  for (Launch& launch : program.launches) {
    const Launch own = launch;
    launch.body = Joiner(program, own).body(own.body);
  }
  return program;
}

}  // namespace tilewright::passes
