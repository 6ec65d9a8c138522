#include "passes/threads/maps_of_threads.h"

#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Each Map with the buffers that it uses; of the code around, the same without a Map.
void for_each_map_or_other(const Body& body, function_ref<void(const Stmt* map, const std::set<BufferId>& used)> f) {
  for (const Stmt& s : body) {
    if (const auto* n = s.as<Map>()) {
      f(&s, used_buffers(n->body));
      continue;
    }
    bool holds = false;
    for_each_body(s, [&](const Body&) { holds = true; });
    if (!holds) {
      f(nullptr, used_buffers(Body{s}));
      continue;
    }
    std::set<BufferId> own;
    for_each_expr(s, [&](const Expr& e) {
      walk(e, [&](const Expr& x) {
        if (const auto* n = x.as<Load>()) own.insert(n->buffer);
      });
    });
    f(nullptr, own);
    for_each_body(s, [&](const Body& inside) { for_each_map_or_other(inside, f); });
  }
}

// Whether each point stores such a variable before it does anything else with it.
bool begins_with_store(const Body& body, BufferId root, const ProgramTables& p) {
  const Buffer& b = p.buffer(root);
  if (std::any_of(b.shape.begin(), b.shape.end(), [](const Expr& e) { return constant_int(e) != 1; })) return false;
  for (const Stmt& s : body) {
    const std::set<BufferId> used = used_buffers(Body{s});
    if (std::none_of(used.begin(), used.end(), [&](BufferId id) { return p.root(id) == root; })) continue;
    const auto* store = s.as<Store>();
    bool reads = false;
    if (store)
      walk(store->value, [&](const Expr& e) {
        const auto* n = e.as<Load>();
        reads = reads || (n && p.root(n->buffer) == root);
      });
    return store && store->to.buffer == root && !reads;
  }
  return false;
}

// Variables that one Map's points use, each for itself, and the Map.
std::map<BufferId, StmtId> own_variables(const ProgramTables& p, const Launch& launch) {
  std::map<BufferId, StmtId> out;
  std::set<BufferId> elsewhere;  // what more than one map uses, or code around maps
  for_each_map_or_other(launch.body, [&](const Stmt* map, const std::set<BufferId>& used) {
    for (BufferId b : used) {
      const BufferId root = p.root(b);
      if (p.buffer(root).space != Space::Local || elsewhere.contains(root)) continue;
      const bool first = map && !out.contains(root);
      if (first && begins_with_store(map->as<Map>()->body, root, p))
        out.emplace(root, (*map)->id);
      else
        out.erase(root), elsewhere.insert(root);
    }
  });
  return out;
}

}  // namespace

std::set<StmtId> maps_of_threads(const ProgramTables& p, const Launch& launch, const analysis::Uniformity& uniformity) {
  const std::map<BufferId, StmtId> own = own_variables(p, launch);
  std::set<StmtId> out;
  walk(launch.body, [&](const Stmt& s) {
    const auto* map = s.as<Map>();
    if (!map) return;
    const std::set<BufferId> changed = changed_roots(map->body, p);
    for (BufferId b : used_buffers(map->body)) {
      const BufferId root = p.root(b);
      if (p.buffer(root).space != Space::Local) continue;
      if (const auto of = own.find(root); of != own.end() && of->second == s->id) continue;
      const std::vector<Expr> first(p.buffer(root).shape.size(), constant(0));
      if (changed.contains(root) || !uniformity.is_uniform(load(root, first, p.buffer(root).type), s))
        out.insert(s->id);
    }
  });
  return out;
}

}  // namespace tilewright::passes
