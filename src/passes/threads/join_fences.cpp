#include "passes/threads/join_fences.h"

#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool is_fence(const Stmt& s) {
  const auto* n = s.as<Fence>();
  return n && n->proxy == FenceProxy::Async;
}

bool is_arrival(const Stmt& s) {
  const auto* n = s.as<Arrive>();
  return n && n->by == ArriveBy::Warp && n->queue == Queue::None && !n->cta;
}

// From registers, without a word to others; products are begun. What threads wrote for those is fenced before the
// barrier behind which they read it.
bool only_computes(const ProgramTables& p, const Stmt& s) {
  const auto space = [&](BufferId id) { return p.buffer(p.root(id)).space; };
  const auto* copy = s.as<Copy>();
  if (const auto* gemm = s.as<Gemm>()) return gemm->completion.queue == Queue::Wgmma;
  if (const auto* commit = s.as<Commit>()) return commit->queue == Queue::Wgmma;
  if (copy && (!copy->completion.immediate() || space(copy->from.buffer) == Space::Shared)) return false;
  if (!copy && !s.as<Let>() && !s.as<Store>() && !s.as<Map>() && !s.as<Fill>()) return false;
  bool loads = false;
  walk_exprs({s},
             [&](const Expr& e) { loads = loads || (e.as<Load>() && space(e.as<Load>()->buffer) == Space::Shared); });
  return !loads && std::ranges::none_of(used_buffers({s}), [&](BufferId id) { return space(id) == Space::Global; });
}

// Of the fence at `first`, if it is one that can be left out.
bool leave_out(const ProgramTables& p, Body& body, size_t first) {
  if (!is_fence(body[first])) return false;
  const auto begin = body.begin() + static_cast<std::ptrdiff_t>(first);
  const auto told = std::find_if_not(begin + 1, body.end(), is_arrival);
  const auto next = std::find_if_not(told, body.end(), [&](const Stmt& s) { return only_computes(p, s); });
  if (told == begin + 1 || next == body.end() || !is_fence(*next)) return false;
  std::rotate(begin + 1, told, next + 1);  // the arrivals behind the second
  body.erase(begin);
  return true;
}

}  // namespace

Body join_fences(const ProgramTables& p, const Body& body) {
  Body out;
  for (const Stmt& s : body) out.push_back(with_bodies(s, [&](const Body& inner) { return join_fences(p, inner); }));
  for (size_t i = 0; i < out.size();)
    if (!leave_out(p, out, i)) ++i;
  return out;
}

}  // namespace tilewright::passes
