#include "analysis/waiting_blocks.h"

#include "ir/effects.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

constexpr int64_t kThreadsOfDevice = 132 * 2048;

// Whether an atomic leaves what it finds: some wait by adding 0, or by exchanging a value for itself.
bool is_load(const Atomic& n) {
  if (n.op == AtomicOp::CompareExchange) return equal(n.compare, n.value);
  const bool keeps = n.op == AtomicOp::Add || n.op == AtomicOp::Or || n.op == AtomicOp::Xor;
  return n.op == AtomicOp::Load || (keeps && constant_int(n.value) == 0);
}

bool writes(const Stmt& s, const Effect& e) {
  const auto* n = s.as<Atomic>();
  return e.region.valid() && e.access != Access::Read && !(n && is_load(*n));
}

// What a loop reads of global memory, where it changes nothing but memory of its block; else nothing.
std::set<BufferId> read_in_vain(const ProgramTables& program, const Stmt& loop) {
  std::set<BufferId> read;
  bool changes = false;
  const auto look = [&](const Stmt& s) {
    for (const Effect& e : own_effects_of(s).list) {
      if (!e.region.valid()) continue;
      const BufferId root = program.root(e.region.buffer);
      const Space space = program.buffer(root).space;
      const bool own = space == Space::Local || space == Space::Fragment || space == Space::Shared;
      changes = changes || (writes(s, e) && !own);
      if (!writes(s, e) && space == Space::Global) read.insert(root);
    }
  };
  const auto load = [&](const Expr& e) {
    const auto* n = e.as<Load>();
    if (n && program.buffer(program.root(n->buffer)).space == Space::Global) read.insert(program.root(n->buffer));
  };
  const auto* turn = loop.as<While>();
  walk(turn->condition, load);
  walk_exprs(turn->body, load);
  walk(turn->body, look);
  return changes ? std::set<BufferId>() : read;
}

}  // namespace

int64_t blocks_that_wait(const ProgramTables& program, const Launch& launch) {
  std::set<BufferId> read, written;
  walk(launch.body, [&](const Stmt& s) {
    if (s.as<While>()) read.merge(read_in_vain(program, s));
    for (const Effect& e : own_effects_of(s).list)
      if (writes(s, e)) written.insert(program.root(e.region.buffer));
  });
  const bool waits = std::any_of(read.begin(), read.end(), [&](BufferId id) { return written.contains(id); });
  return waits ? std::max<int64_t>(kThreadsOfDevice / std::max<int64_t>(launch.thread_count(), 1), 1) : 1;
}

}  // namespace tilewright::analysis
