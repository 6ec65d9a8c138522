#include "passes/loops/read_again.h"

#include "analysis/body_order.h"
#include "analysis/slope.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/fuse/index.h"
#include "passes/lower/strands.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Nodes of an index that names are put into: names of names may double it at each step.
constexpr uint32_t kLargestIndex = 1024;

// The element of a global tensor that the value is, converted.
const Load* converted_element(const Expr& value) {
  Expr e = value;
  while (const auto* c = e.as<Cast>()) {
    if (c->rounding != Rounding::Nearest || !c->value->type.is_float()) return nullptr;
    e = c->value;
  }
  return e.as<Load>();
}

// The one store to a tile, and the loops from the body that holds all of the tile's uses down to it.
struct Filling {
  const Store* store = nullptr;
  Nest nest;
  Substitution lets;
};

class ReadAgain {
 public:
  ReadAgain(LoopProgram& program, int32_t launch) : program_(program), launch_(launch) {}

  Body run(Body block) {
    for (uint32_t i = 0; i < program_.buffers.size(); ++i)
      if (is_tile({i}, block)) block = without({i}, block, block);
    return block;
  }

 private:
  bool is_tile(BufferId id, const Body& block) const {
    if (program_.buffer(id).launch != launch_ || !is_tile_of_elements(id, block, program_)) return false;
    int64_t stores = 0;
    walk(block, [&](const Stmt& s) {
      const auto* n = s.as<Store>();
      stores += n && n->to.buffer == id;
    });
    return stores == 1;
  }

  // Down to the body of which several statements use the tile.
  Body without(BufferId id, const Body& body, const Body& block) {
    std::vector<size_t> users;
    for (size_t k = 0; k < body.size(); ++k)
      if (mentions(body[k], id)) users.push_back(k);
    if (users.empty()) return body;
    const auto* only = users.size() == 1 ? body[users[0]].as<For>() : nullptr;
    if (only && only->kind == LoopKind::Serial) {
      For f = *only;
      f.body = without(id, f.body, block);
      Body out = body;
      out[users[0]] = make_stmt(std::move(f), body[users[0]]->location);
      return out;
    }
    Filling filling;
    if (users.size() < 2 || !find(body[users[0]], id, filling)) return body;
    const Load* source = converted_element(filling.store->value);
    if (!source || !may_read(*source, id, block) || !reads_own(body[users[0]], *filling.store)) return body;
    const auto box = box_of(filling, *source, bound_vars({body[users[0]]}));
    return box ? replaced(id, body, filling, *box) : body;
  }
  static bool find(const Stmt& s, BufferId id, Filling& filling) {
    if (const auto* n = s.as<Store>()) {
      filling.store = n->to.buffer == id ? n : nullptr;
      return filling.store != nullptr;
    }
    const auto* f = s.as<For>();
    if (!f) return false;
    filling.nest.push_back(f);
    for (const Stmt& inner : f->body) {
      if (const auto* n = inner.as<Let>()) {
        const Expr whole = substitute(n->value, filling.lets);
        if (whole->size > kLargestIndex) return false;
        filling.lets[n->var] = whole;
      }
      if (mentions(inner, id)) return find(inner, id, filling);
    }
    return false;
  }
  // While it is filled, an element that is not yet there is an old one.
  static bool reads_own(const Stmt& filling, const Store& store) {
    bool own = true;
    walk_exprs({filling}, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      own = own && !(n && n->buffer == store.to.buffer && !equal(n->indices, store.to.indices));
    });
    return own;
  }
  bool may_read(const Load& source, BufferId tile, const Body& block) const {
    const Buffer &from = program_.buffer(source.buffer), &root = program_.buffer(program_.root(source.buffer));
    if (root.space != Space::Global || root.address || from.type.is_packed()) return false;
    if (from.type.storage_bits() >= program_.buffer(tile).type.storage_bits()) return false;
    bool clean = true;
    walk(block, [&](const Stmt& s) {
      if (s.as<Let>() || s.as<For>() || s.as<If>() || s.as<While>()) return;
      const auto* n = s.as<Store>();
      const BufferId to = n ? program_.root(n->to.buffer) : BufferId{};
      clean = clean && n && !analysis::may_overlap(to, source.buffer, program_) &&
              (program_.buffer(to).space != Space::Global || program_.buffer(n->to.buffer).type != from.type);
    });
    return clean;
  }

  // Index m of the source = first[m] + sum over d of factors[m][d] * index d of the tile.
  struct Box {
    std::vector<Expr> first;
    std::vector<std::vector<int64_t>> factors;
  };
  std::optional<Box> box_of(const Filling& filling, const Load& source, const std::set<VarId>& inside) const {
    const Buffer& tile = program_.buffer(filling.store->to.buffer);
    std::vector<Expr> to, from;
    for (const Expr& e : filling.store->to.indices) to.push_back(substitute(e, filling.lets));
    for (const Expr& e : source.indices) from.push_back(substitute(e, filling.lets));
    Box box{from, std::vector<std::vector<int64_t>>(from.size(), std::vector<int64_t>(to.size(), 0))};
    std::set<VarId> placed;
    for (size_t d = 0; d < to.size(); ++d) {
      const auto extent = constant_int(tile.shape[d]);
      if (!extent || !sweeps(to[d], *extent, filling.nest)) return {};
      bool first = true;
      for (const For* f : filling.nest) {
        const auto step = analysis::slope_through_casts(to[d], f->var);
        if (!step) return {};
        if (*step == 0) continue;
        if (!placed.insert(f->var).second) return {};
        for (size_t m = 0; m < from.size(); ++m) {
          const auto along = analysis::slope_through_casts(from[m], f->var);
          if (!along || *along % *step != 0 || (!first && box.factors[m][d] != *along / *step)) return {};
          box.factors[m][d] = *along / *step;
        }
        first = false;
      }
    }
    if (placed.size() != filling.nest.size()) return {};
    for (Expr& e : box.first) {
      e = rewrite(e, [&](const Expr& x) -> std::optional<Expr> {
        const auto* v = x.as<Var>();
        return v && placed.contains(v->id) ? std::optional(constant(x->type, int64_t{0})) : std::nullopt;
      });
      bool known = true;
      walk(e, [&](const Expr& x) { known = known && !x.as<Load>(); });
      for (VarId v : used_vars(e)) known = known && !inside.contains(v);
      if (!known) return {};
    }
    return box;
  }

  Body replaced(BufferId id, const Body& body, const Filling& filling, const Box& box) {
    const Store& store = *filling.store;
    const DType type = program_.buffer(id).type;
    const VarId name = program_.new_var(program_.buffer(id).name, type);
    bool named = false;
    // In the iteration that filled it, the element has a name.
    Body out = rewrite(body, [&](const Stmt& s) -> std::optional<Body> {
      const auto* f = s.as<For>();
      if (!f || std::none_of(f->body.begin(), f->body.end(), [&](const Stmt& x) { return is_filling(x, id); }))
        return std::nullopt;
      For with_name = *f;
      bool behind = false;
      for (Stmt& x : with_name.body) {
        if (is_filling(x, id)) {
          x = make_stmt(Let{name, store.value}, x->location);
          behind = true;
        } else if (behind) {
          x = rewrite_exprs({x}, [&](const Expr& e) -> std::optional<Expr> {
            const auto* n = e.as<Load>();
            if (!n || n->buffer != id || !equal(n->indices, store.to.indices)) return std::nullopt;
            named = true;
            return var(name, type);
          })[0];
        }
      }
      if (!named) std::erase_if(with_name.body, [&](const Stmt& x) { return x.as<Let>() && x.as<Let>()->var == name; });
      return Body{make_stmt(std::move(with_name), s->location)};
    });
    return rewrite_exprs(out, [&](const Expr& e) -> std::optional<Expr> {
      const auto* n = e.as<Load>();
      return n && n->buffer == id ? std::optional(element(store.value, *n, box)) : std::nullopt;
    });
  }
  static bool is_filling(const Stmt& s, BufferId id) {
    const auto* n = s.as<Store>();
    return n && n->to.buffer == id;
  }
  static Expr element(const Expr& value, const Load& use, const Box& box) {
    return rewrite(value, [&](const Expr& e) -> std::optional<Expr> {
      const auto* n = e.as<Load>();
      if (!n) return std::nullopt;
      std::vector<Expr> index;
      for (size_t m = 0; m < box.first.size(); ++m) {
        Expr at = cast(box.first[m], i64);
        for (size_t d = 0; d < use.indices.size(); ++d)
          at = add(at, mul(cast(use.indices[d], i64), constant(i64, box.factors[m][d])));
        index.push_back(at);
      }
      return load(n->buffer, index, e->type);
    });
  }

  LoopProgram& program_;
  const int32_t launch_;
};

}  // namespace

LoopProgram read_again(LoopProgram program) {
  for (size_t i = 0; i < program.launches.size(); ++i) {
    if (has_waits(program.launches[i])) continue;
    For grid = *program.launches[i].body.front().as<For>();
    const LocationId at = program.launches[i].body.front()->location;
    grid.body = ReadAgain(program, static_cast<int32_t>(i)).run(grid.body);
    program.launches[i].body = {make_stmt(std::move(grid), at)};
  }
  return program;
}

}  // namespace tilewright::passes
