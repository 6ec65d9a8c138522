#include "passes/running_reduces.h"

#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/lowering.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Any number of times gives what one time does.
bool is_idempotent(ReduceOp op) {
  return op == ReduceOp::Max || op == ReduceOp::Min || op == ReduceOp::AbsMax || op == ReduceOp::BitAnd ||
         op == ReduceOp::BitOr;
}

bool uses(const TileProgram& p, const Stmt& s, BufferId root) {
  for (BufferId id : used_buffers({s}))
    if (p.root(id) == root) return true;
  return false;
}

Body begun(const TileProgram& p, const Body& body, BufferId root, const Stmt& fill) {
  std::vector<size_t> at;
  for (size_t i = 0; i < body.size(); ++i)
    if (uses(p, body[i], root)) at.push_back(i);
  Body out = body;
  const auto first = out.begin() + static_cast<std::ptrdiff_t>(at.front());
  if (const auto* role = at.size() == 1 ? first->as<Role>() : nullptr)
    *first = make_stmt(Role{role->begin, role->end, begun(p, role->body, root, fill)}, (*first)->location);
  else
    out.insert(first, fill);
  return out;
}

}  // namespace

void begin_running_reduces(const TileProgram& p, Launch& launch) {
  std::map<BufferId, const StmtNode*> running;
  std::set<BufferId> written;
  walk(launch.body, [&](const Stmt& s) {
    const auto* reduce = s.as<Reduce>();
    const bool runs = reduce && !reduce->clear && is_idempotent(reduce->op);
    for (const Effect& e : effects_of(s).list) {
      if (e.access == Access::Read || e.access == Access::Order || !e.region.valid()) continue;
      const BufferId root = p.root(e.region.buffer);
      if (!runs) {
        written.insert(root);
        continue;
      }
      const auto [known, is_new] = running.try_emplace(root, &*s);
      if (!is_new && std::get<Reduce>(known->second->op).op != reduce->op) written.insert(root);
    }
  });
  for (const auto& [root, reduce] : running) {
    const Buffer& b = p.buffer(root);
    if (written.contains(root) || (b.space != Space::Fragment && b.space != Space::Shared) || b.reducer) continue;
    Fill fill;
    fill.to.buffer = root, fill.value = identity(std::get<Reduce>(reduce->op).op, b.type);
    for (const Expr& extent : b.shape) fill.to.min.push_back(constant(0)), fill.to.extent.push_back(extent);
    launch.body = begun(p, launch.body, root, make_stmt(std::move(fill), reduce->location));
  }
}

}  // namespace tilewright::passes
