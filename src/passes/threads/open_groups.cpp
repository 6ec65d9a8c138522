#include "passes/threads/open_groups.h"

#include "ir/any_in.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool is_open_product(const Stmt& s) {
  const auto* n = s.as<Gemm>();
  return n && n->completion.queue == Queue::Wgmma;
}
bool closes(const Stmt& s) {
  const auto* n = s.as<Commit>();
  return n && n->queue == Queue::Wgmma;
}
bool waits(const Stmt& s) {
  const auto* n = s.as<Drain>();
  return n && n->queue == Queue::Wgmma;
}

void pass(const Body& body, OpenGroups& groups) {
  for (const Stmt& s : body) {
    if (is_open_product(s)) groups.use(s.as<Gemm>()->c.buffer);
    if (closes(s)) groups.commit();
    if (waits(s)) groups.drain(s.as<Drain>()->pending);
    const OpenGroups before = groups;
    for_each_body(s, [&](const Body& inner) {
      if (!has_groups(inner)) return;
      OpenGroups behind = before;
      behind.forget_order();
      pass(inner, behind);
      groups.join(behind);
    });
  }
}

}  // namespace

std::set<BufferId> OpenGroups::all() const {
  std::set<BufferId> out = older_;
  out.insert(last_.begin(), last_.end());
  for (const auto& group : groups_) out.insert(group.begin(), group.end());
  return out;
}

std::set<BufferId> OpenGroups::drain(int64_t pending) {
  std::set<BufferId> before = all();
  if (static_cast<int64_t>(groups_.size()) >= pending) older_.clear();
  while (static_cast<int64_t>(groups_.size()) > pending) groups_.pop_front();
  if (pending == 0) last_.clear();
  return before;
}

void OpenGroups::join(const OpenGroups& other) {
  forget_order();
  older_.merge(other.all());
}

bool has_groups(const Body& body) {
  return any_in(body, [](const Stmt& s) { return is_open_product(s) || closes(s) || waits(s); });
}

std::set<BufferId> open_at_end(const Body& body) {
  OpenGroups groups;
  pass(body, groups);
  return groups.all();
}

}  // namespace tilewright::passes
