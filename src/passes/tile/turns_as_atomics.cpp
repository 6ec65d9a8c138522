#include "passes/tile/turns_as_atomics.h"

#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool loads(const Expr& e, BufferId root, const ProgramTables& p) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    const auto* n = x.as<Load>();
    found = found || (n && p.root(n->buffer) == root);
  });
  return found;
}

// What a store adds to what is there; none: it does something else.
Expr added_by(const Store& store, const ProgramTables& p) {
  const auto is_old = [&](const Expr& e) {
    const auto* n = e.as<Load>();
    if (!n || n->buffer != store.to.buffer || n->indices.size() != store.to.indices.size()) return false;
    for (size_t d = 0; d < n->indices.size(); ++d)
      if (!equal(n->indices[d], store.to.indices[d])) return false;
    return true;
  };
  Expr added;
  if (const auto* fma = store.value.as<Fma>(); fma && is_old(fma->c)) added = mul(fma->a, fma->b);
  if (const auto* sum = store.value.as<Binary>(); sum && sum->op == BinaryOp::Add)
    added = is_old(sum->a) ? sum->b : is_old(sum->b) ? sum->a : Expr{};
  if (store.value->type.is_int()) added = sub(store.value, load(store.to.buffer, store.to.indices, store.value->type));
  return added && !loads(added, p.root(store.to.buffer), p) ? added : Expr{};
}

// Whether some fragment is read element by element: each variable runs over a dimension of it.
bool reads_a_fragment_whole(const Expr& e, const Map& map, const ProgramTables& p) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    const auto* n = x.as<Load>();
    if (!n || p.buffer(n->buffer).space != Space::Fragment || n->indices.size() != map.vars.size()) return;
    bool whole = true;
    for (size_t d = 0; d < map.vars.size(); ++d) {
      const auto* v = n->indices[d].as<Var>();
      const auto extent = constant_int(p.buffer(n->buffer).shape[d]);
      whole = whole && v && v->id == map.vars[d] && extent && extent == constant_int(map.extents[d]);
    }
    found = found || whole;
  });
  return found;
}

std::optional<Body> at_once(TileProgram& p, const Stmt& s) {
  const auto* turns = s.as<Map>();
  if (!turns || turns->vars.size() != 1 || constant_int(turns->extents[0]) != 1) return std::nullopt;
  Map out;
  const Body* body = &turns->body;
  while (body->size() == 1 && body->front().as<For>()) {
    const auto* loop = body->front().as<For>();
    if (constant_int(loop->begin) != 0 || loop->kind != LoopKind::Serial) return std::nullopt;
    out.vars.push_back(loop->var), out.extents.push_back(loop->extent);
    body = &loop->body;
  }
  const auto* store = body->size() == 1 ? body->front().as<Store>() : nullptr;
  if (!store || out.vars.empty() || used_vars(store->value).contains(turns->vars[0])) return std::nullopt;
  const BufferId root = p.root(store->to.buffer);
  const Buffer& to = p.buffer(store->to.buffer);
  const bool on_chip = to.space == Space::Shared || to.space == Space::Fragment;
  // Others are added to by exchanges that are tried until they succeed.
  if (!on_chip || to.reducer || (to.type != f32 && !(to.type.is_int() && to.type.bits == 32))) return std::nullopt;
  for (const Expr& e : store->to.indices)  // a turn says where the next one adds
    if (loads(e, root, p)) return std::nullopt;
  const Expr added = added_by(*store, p);
  if (!added || !reads_a_fragment_whole(added, out, p)) return std::nullopt;
  Atomic add;
  add.op = AtomicOp::Add, add.to = store->to, add.value = added;
  out.body = {make_stmt(std::move(add), body->front()->location)};
  for (uint32_t i = 0; i < p.buffers.size(); ++i)
    if (p.root(BufferId{i}) == root) p.buffers[i].space = Space::Shared;
  return Body{make_stmt(std::move(out), s->location)};
}

}  // namespace

TileProgram turns_as_atomics(TileProgram program) {
  for (Launch& launch : program.launches)
    launch.body = rewrite(launch.body, [&](const Stmt& s) { return at_once(program, s); });
  return program;
}

}  // namespace tilewright::passes
