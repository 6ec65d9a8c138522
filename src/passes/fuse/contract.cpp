#include "passes/fuse/contract.h"

#include "analysis/slope.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/fuse/index.h"
#include "passes/fuse/panels.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool reads(const Stmt& s, BufferId id) {
  bool found = false;
  walk_exprs({s}, [&](const Expr& e) {
    const auto* n = e.as<Load>();
    found = found || (n && n->buffer == id);
  });
  return found;
}

void for_each_index(const Body& body, BufferId id, function_ref<void(const std::vector<Expr>&)> f) {
  walk(body, [&](const Stmt& s) {
    if (const auto* n = s.as<Store>(); n && n->to.buffer == id) f(n->to.indices);
  });
  walk_exprs(body, [&](const Expr& e) {
    if (const auto* n = e.as<Load>(); n && n->buffer == id) f(n->indices);
  });
}

// May a turn of the loop around end in the statement, by a jump out of it? Of a block that ends nobody reads the tiles.
bool ends_turn(const Stmt& s) {
  if (s.as<Break>() || s.as<Continue>()) return true;
  if (s.as<For>() || s.as<While>()) return false;  // a jump in it stays in it
  bool found = false;
  for_each_body(s, [&](const Body& b) { found = found || std::any_of(b.begin(), b.end(), ends_turn); });
  return found;
}

// The one side of a condition that mentions the tile.
const Body* side_of(const Stmt& s, BufferId id) {
  const auto* n = s.as<If>();
  if (!n) return nullptr;
  auto mentioned = [&](const Body& b) {
    return std::ranges::any_of(b, [&](const Stmt& x) { return mentions(x, id); });
  };
  const bool first = mentioned(n->then_body), second = mentioned(n->else_body);
  if (first == second || mentions(make_stmt(If{n->condition, {}, {}}, s->location), id)) return nullptr;
  return first ? &n->then_body : &n->else_body;
}

class Contract {
 public:
  Contract(LoopProgram& program, int32_t launch) : program_(program), launch_(launch) {}

  Body run(Body block) {
    for (uint32_t i = 0, n = static_cast<uint32_t>(program_.buffers.size()); i < n; ++i)
      if (may_shrink({i}, block)) separate({i}, block);
    for (uint32_t i = 0; i < program_.buffers.size(); ++i) {
      if (may_keep_one_panel({i})) keep_one_panel({i}, block);
      if (!may_shrink({i}, block)) continue;
      shrink({i}, block);
      if (program_.buffer({i}).rank() > 0 && is_one_element({i}, block))
        apply({i}, std::vector<char>(program_.buffer({i}).rank(), 1), true, block);
    }
    for (uint32_t i = 0; i < program_.buffers.size(); ++i)
      if (may_shrink({i}, block) && reads_last(block, {i})) block = without_last_store(block, {i});
    return block;
  }

 private:
  bool may_shrink(BufferId id, const Body& block) const {
    return program_.buffer(id).launch == launch_ && is_tile_of_elements(id, block, program_);
  }
  // Statements of the block that begin by writing all of a tile get a tile of their own.
  void separate(BufferId id, Body& block) {
    BufferId now = id;
    bool used = false;
    for (size_t i = 0; i < block.size(); ++i) {
      Stmt& s = block[i];
      if (!mentions(s, id)) continue;
      const std::vector<char> whole(program_.buffer(id).rank(), 0);
      if (used && s.as<For>() && writes_first({block.begin() + static_cast<std::ptrdiff_t>(i), block.end()}, id, whole))
        now = program_.new_buffer(Buffer(program_.buffer(id)));
      used = true;
      if (now != id) s = renamed(s, id, now);
    }
  }
  static Stmt renamed(const Stmt& s, BufferId from, BufferId to) {
    Body out = rewrite_exprs({s}, [&](const Expr& e) -> std::optional<Expr> {
      const auto* n = e.as<Load>();
      return n && n->buffer == from ? std::optional(load(to, n->indices, e->type)) : std::nullopt;
    });
    out = rewrite(out, [&](const Stmt& x) -> std::optional<Body> {
      if (const auto* n = x.as<Store>(); n && n->to.buffer == from)
        return Body{make_stmt(Store{{to, n->to.indices}, n->value}, x->location)};
      return std::nullopt;
    });
    return out[0];
  }

  // Goes down the loops that hold all uses.
  void shrink(BufferId id, Body& block) {
    std::vector<char> single(program_.buffer(id).rank(), 0);
    bool any = false, repeated = false, scoped = false;
    const Body* body = &block;
    while (true) {
      const Stmt* only = nullptr;
      size_t count = 0;
      for (const Stmt& s : *body)
        if (mentions(s, id)) only = &s, ++count;
      if (const Body* side = count == 1 ? side_of(*only, id) : nullptr) {
        body = side;
        continue;
      }
      // A local scalar lives in the innermost body that holds its uses: that must be the body of the iteration.
      scoped = scoped && (count > 1 || (only && only->as<Store>()));
      const auto* f = count == 1 ? only->as<For>() : nullptr;
      if (!f) break;
      scoped = shrink_at(*f, id, repeated, single);
      any = any || scoped;
      repeated = repeated || !scoped;
      body = &f->body;
    }
    if (any) apply(id, single, scoped, block);
  }
  // Do all uses stand in one body, name the same element there, and begin with a store?
  bool is_one_element(BufferId id, const Body& block) const {
    const Body* body = &block;
    const Stmt* first = nullptr;
    for (bool deeper = true; deeper;) {
      size_t count = 0;
      for (const Stmt& s : *body)
        if (mentions(s, id) && count++ == 0) first = &s;
      if (count == 0) return false;
      const auto* f = count == 1 ? first->as<For>() : nullptr;
      const Body* side = count == 1 ? side_of(*first, id) : nullptr;
      deeper = f || side;
      if (deeper) body = f ? &f->body : side;
    }
    const auto* store = first->as<Store>();
    if (!store || store->to.buffer != id || reads(*first, id)) return false;
    for (const Stmt& s : *body)
      if (mentions(s, id) && !s.as<Store>() && !s.as<Let>()) return false;
    bool same = true;
    for_each_index(*body, id, [&](const std::vector<Expr>& index) { same = same && equal(index, store->to.indices); });
    return same;
  }
  // `repeated`: the loop as a whole may run again in this block, and find what it left.
  bool shrink_at(const For& f, BufferId id, bool repeated, std::vector<char>& single) const {
    bool any = false;
    for (size_t d = 0; d < single.size(); ++d) {
      if (single[d]) continue;
      bool own_index = true;
      for_each_index(f.body, id, [&](const std::vector<Expr>& index) {
        const Var* v = analysis::variable_of(index[d]);
        own_index = own_index && v && v->id == f.var;
      });
      if (!own_index || rebound(f)) continue;
      std::vector<char> now = single;
      now[d] = 1;
      if (repeated && !writes_first(f.body, id, now)) continue;
      single = now, any = true;
    }
    return any;
  }
  static bool rebound(const For& f) { return bound_vars(f.body).contains(f.var); }

  // Does nothing in the body read what the tile held before it? `single`: dimensions of which it has its own part.
  bool writes_first(const Body& body, BufferId id, const std::vector<char>& single) const {
    const auto first = std::find_if(body.begin(), body.end(), [&](const Stmt& s) { return mentions(s, id); });
    if (first == body.end()) return false;
    Nest nest;
    if (fills(*first, id, single, nest)) return true;
    // A loop that may make no turn, or end one early, if nothing behind it reads what was left out.
    const auto* f = first->as<For>();
    return f && first->same(*last_mention(body, id)) && writes_first(f->body, id, single);
  }
  // Is all of the tile written for certain, before the statement reads any of it?
  bool fills(const Stmt& s, BufferId id, const std::vector<char>& single, Nest& nest) const {
    if (const auto* n = s.as<Gemm>())
      return n->clear && n->c.buffer == id && n->a.buffer != id && n->b.buffer != id && single[0] != 0;
    if (const auto* n = s.as<If>()) {
      auto first = [&](const Body& b) { return b.size() == 1 && b[0].as<Gemm>() && fills(b[0], id, single, nest); };
      return first(n->then_body) && first(n->else_body);
    }
    if (const auto* n = s.as<Store>()) {
      if (n->to.buffer != id || reads(s, id)) return false;
      const Buffer& b = program_.buffer(id);
      for (size_t d = 0; d < single.size(); ++d)
        if (!single[d] && !sweeps(n->to.indices[d], *constant_int(b.shape[d]), nest)) return false;
      return true;
    }
    const auto* f = s.as<For>();
    if (!f || constant_int(f->extent).value_or(0) <= 0) return false;
    if (const auto at = std::find_if(f->body.begin(), f->body.end(), [&](const Stmt& x) { return mentions(x, id); });
        at != f->body.end() && std::none_of(f->body.begin(), at, ends_turn)) {
      Nest own;  // each iteration fills it anew
      if (fills(*at, id, single, own)) return true;
    }
    if (std::any_of(f->body.begin(), f->body.end(), ends_turn)) return false;
    nest.push_back(f);
    for (const Stmt& inner : f->body) {
      if (!mentions(inner, id)) continue;
      if (!fills(inner, id, single, nest)) return false;
      return only_own_reads(f->body, id, nest);
    }
    return false;
  }
  // Behind the filling store, the loops that fill may read only elements of the current point: others may not be there.
  bool only_own_reads(const Body& body, BufferId id, const Nest& nest) const {
    const std::vector<Expr>* first = nullptr;
    bool same = true;
    std::vector<std::vector<Expr>> all;
    for_each_index(body, id, [&](const std::vector<Expr>& index) { all.push_back(index); });
    for (const auto& index : all) {
      if (!first) first = &index;
      same = same && equal(*first, index);
    }
    return same && !nest.empty();
  }

  // ---- the last store to a tile: if only its own iteration reads what it stores, a name does
  // Is the last mention of the tile an element's that nothing reads once its iteration is over?
  bool reads_last(const Body& block, BufferId id) const {
    Nest nest;
    const Body* innermost = &block;
    while (const Stmt* last = last_mention(*innermost, id)) {
      const auto* f = last->as<For>();
      if (!f) break;
      nest.push_back(f), innermost = &f->body;
    }
    const std::vector<char> whole(program_.buffer(id).rank(), 0);
    for (const For* f : nest)
      if (!own_part(*f, nest, id) && !writes_first(f->body, id, whole)) return false;
    return stored_for_itself(*innermost, id);
  }
  static const Stmt* last_mention(const Body& body, BufferId id) {
    const Stmt* last = nullptr;
    for (const Stmt& s : body)
      if (mentions(s, id)) last = &s;
    return last;
  }
  // Do the statements behind the last store to the tile read that element alone?
  static bool stored_for_itself(const Body& body, BufferId id) {
    const Store* store = last_store(body, id);
    bool behind = false, same = store != nullptr;
    for (const Stmt& s : body) {
      if (mentions(s, id) && !s.as<Store>() && !s.as<Let>()) return false;
      if (behind)
        for_each_index({s}, id,
                       [&](const std::vector<Expr>& index) { same = same && equal(index, store->to.indices); });
      behind = behind || s.as<Store>() == store;
    }
    return same;
  }
  static const Store* last_store(const Body& body, BufferId id) {
    const Store* found = nullptr;
    for (const Stmt& s : body)
      if (const auto* n = s.as<Store>(); n && n->to.buffer == id) found = n;
    return found;
  }
  // Does each iteration of a loop of the nest have elements of its own? In some dimension its variable is the index of
  // all uses, or a digit of the one index that there is.
  bool own_part(const For& f, const Nest& nest, BufferId id) const {
    const Buffer& b = program_.buffer(id);
    std::vector<char> own(b.rank(), 1), digit(b.rank(), 1);
    std::optional<std::vector<Expr>> first;
    for_each_index(f.body, id, [&](const std::vector<Expr>& index) {
      if (!first) first = index;
      for (size_t d = 0; d < own.size(); ++d) {
        const Var* v = analysis::variable_of(index[d]);
        own[d] = own[d] && v && v->id == f.var;
        digit[d] = digit[d] && equal(index[d], (*first)[d]) && used_vars(index[d]).contains(f.var) &&
                   sweeps(index[d], *constant_int(b.shape[d]), nest);
      }
    });
    bool any = false;
    for (size_t d = 0; d < own.size(); ++d) any = any || own[d] || digit[d];
    return any && !rebound(f);
  }
  Body without_last_store(const Body& body, BufferId id) {
    Body out = body;
    const Stmt* last = last_mention(body, id);
    size_t at = static_cast<size_t>(last - body.data());
    if (const auto* n = last->as<For>()) {
      For f = *n;
      f.body = without_last_store(n->body, id);
      out[at] = make_stmt(std::move(f), (*last)->location);
      return out;
    }
    const Store* store = last_store(body, id);
    for (at = 0; body[at].as<Store>() != store; ++at) {
    }
    const DType type = program_.buffer(id).type;
    const VarId name = program_.new_var(program_.buffer(id).name, type);
    out[at] = make_stmt(Let{name, store->value}, body[at]->location);
    Body behind(out.begin() + static_cast<std::ptrdiff_t>(at) + 1, out.end());
    behind = rewrite_exprs(behind, [&](const Expr& e) -> std::optional<Expr> {
      const auto* n = e.as<Load>();
      return n && n->buffer == id ? std::optional(var(name, type)) : std::nullopt;
    });
    out.resize(at + 1);
    out.insert(out.end(), behind.begin(), behind.end());
    return out;
  }

  // ---- tiles of products
  bool may_keep_one_panel(BufferId id) const {
    const Buffer& b = program_.buffer(id);
    if (b.launch != launch_ || b.is_view() || !b.tile || b.tile->width == 0) return false;
    if (b.space != Space::Shared && b.space != Space::Fragment) return false;
    return std::ranges::none_of(program_.buffers, [&](const Buffer& x) { return x.is_view() && x.root == id; });
  }
  // Where only iterations of one loop use the tile, each its own panel, and none reads what another has left.
  void keep_one_panel(BufferId id, Body& block) {
    const Body* body = &block;
    while (true) {
      const Stmt* only = nullptr;
      size_t count = 0;
      for (const Stmt& s : *body)
        if (mentions(s, id)) only = &s, ++count;
      const auto* f = count == 1 ? only->as<For>() : nullptr;
      if (!f) return;
      if (uses_own_panel(*f, id)) break;
      body = &f->body;
    }
    Buffer& b = program_.buffers[id.index];
    const auto axis = static_cast<size_t>(b.tile->axis);
    b.shape[0] = constant(b.shape[0]->type, int64_t{1});
    (axis == 0 ? b.tile->rows : b.tile->columns) = b.tile->width;
    auto first = [&](std::vector<Expr> index) {
      index[0] = constant(i64, int64_t{0});
      return index;
    };
    block = rewrite(with_elements_at(block, id, first), [&](const Stmt& s) -> std::optional<Body> {
      const auto* n = s.as<Gemm>();
      if (!n || !mentions(s, id)) return std::nullopt;
      Gemm g = *n;
      for (Region* r : {&g.a, &g.b, &g.c})
        if (r->buffer == id) r->min[axis] = constant(i64, int64_t{0});
      return Body{make_stmt(std::move(g), s->location)};
    });
  }
  bool uses_own_panel(const For& f, BufferId id) const {
    const Buffer& b = program_.buffer(id);
    bool own = !rebound(f);
    auto note = [&](const Expr& number) {
      const Var* v = number ? analysis::variable_of(number) : nullptr;
      own = own && v && v->id == f.var;
    };
    for_each_index(f.body, id, [&](const std::vector<Expr>& index) { note(index[0]); });
    walk(f.body, [&](const Stmt& s) {
      if (const auto* g = s.as<Gemm>()) {
        for (const Region* r : {&g->a, &g->b, &g->c})
          if (r->buffer == id) note(has_one_whole_panel(*r, b) ? panel_of(*r, b) : Expr());
      } else if (!s.as<For>() && !s.as<If>() && !s.as<Store>() && !s.as<Let>()) {
        own = own && !mentions(s, id);
      }
    });
    return own && writes_first(f.body, id, {1, 0, 0, 0});
  }
  static bool has_one_whole_panel(const Region& r, const Buffer& b) {
    const auto axis = static_cast<size_t>(b.tile->axis), other = 1 - axis;
    const int64_t across = axis == 0 ? b.tile->columns : b.tile->rows;
    return r.extent.size() == 2 && constant_int(r.extent[axis]) == b.tile->width && constant_int(r.min[other]) == 0 &&
           constant_int(r.extent[other]) == across;
  }

  void apply(BufferId id, const std::vector<char>& single, bool scoped, Body& block) {
    Buffer& b = program_.buffers[id.index];
    int64_t elements = 1;
    for (size_t d = 0; d < single.size(); ++d) {
      if (single[d]) b.shape[d] = constant(b.shape[d]->type, int64_t{1});
      elements *= *constant_int(b.shape[d]);
    }
    const bool scalar = elements == 1;
    if (scalar) b.shape.clear(), b.strides.clear(), b.space = scoped ? Space::Local : Space::Fragment;
    auto moved = [&](const std::vector<Expr>& index) {
      if (scalar) return std::vector<Expr>{};
      std::vector<Expr> out = index;
      for (size_t d = 0; d < out.size(); ++d)
        if (single[d]) out[d] = constant(i64, int64_t{0});
      return out;
    };
    block = with_elements_at(block, id, moved);
  }
  // With the buffer's elements, where they are loaded and stored, at other indices.
  static Body with_elements_at(const Body& block, BufferId id,
                               function_ref<std::vector<Expr>(const std::vector<Expr>&)> place) {
    const Body loaded = rewrite_exprs(block, [&](const Expr& e) -> std::optional<Expr> {
      const auto* n = e.as<Load>();
      return n && n->buffer == id ? std::optional(load(id, place(n->indices), e->type)) : std::nullopt;
    });
    return rewrite(loaded, [&](const Stmt& s) -> std::optional<Body> {
      const auto* n = s.as<Store>();
      if (!n || n->to.buffer != id) return std::nullopt;
      return Body{make_stmt(Store{{id, place(n->to.indices)}, n->value}, s->location)};
    });
  }

  LoopProgram& program_;
  int32_t launch_;
};

}  // namespace

Body contract_tiles(const Body& block, LoopProgram& program, int32_t launch) {
  return Contract(program, launch).run(block);
}

}  // namespace tilewright::passes
