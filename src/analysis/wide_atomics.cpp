#include "analysis/wide_atomics.h"

#include "analysis/divisibility.h"
#include "analysis/element_offset.h"
#include "analysis/panels.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

// One of them: an atomic, or a branch with nothing else in it.
struct Addition {
  Atomic atomic;
  Expr condition, offset;
};

bool reads(const Expr& e, BufferId root, const ProgramTables& p) {
  bool found = false;
  if (e) walk(e, [&](const Expr& x) { found = found || (x.as<Load>() && p.root(x.as<Load>()->buffer) == root); });
  return found;
}

std::optional<Addition> addition(const Stmt& s, const ProgramTables& p) {
  const auto* branch = s.as<If>();
  const bool alone = branch && branch->then_body.size() == 1 && branch->else_body.empty();
  const auto* n = alone ? branch->then_body[0].as<Atomic>() : s.as<Atomic>();
  if (!n || n->op != AtomicOp::Add || n->order != MemoryOrder::Relaxed || n->result.valid()) return std::nullopt;
  const BufferId root = p.root(n->to.buffer);
  const Buffer &tensor = p.buffer(root), &b = p.buffer(n->to.buffer);
  if (tensor.space != Space::Global || tensor.address || b.address || b.type != f32 || tensor.type != f32 ||
      begins_anywhere(tensor))
    return std::nullopt;
  Addition out{*n, branch ? branch->condition : Expr{}, element_offset(p, n->to.buffer, n->to.indices)};
  if (reads(n->value, root, p) || reads(out.condition, root, p) || reads(out.offset, root, p)) return std::nullopt;
  return out;
}

bool same(const Expr& a, const Expr& b) { return a && b ? equal(a, b) : !a && !b; }

// What the statement does, turn by turn where it is a loop of nothing else.
std::vector<Stmt> turns(const Stmt& s) {
  const auto* loop = s.as<For>();
  if (!loop) return {s};
  const auto count = constant_int(loop->extent);
  if (loop->kind != LoopKind::Unroll || constant_int(loop->begin) != 0 || !count || (*count != 2 && *count != 4) ||
      loop->body.size() != 1)
    return {};
  std::vector<Stmt> out;
  for (int64_t i = 0; i < *count; ++i)
    out.push_back(substitute(loop->body, {{loop->var, constant(loop->extent->type, i)}})[0]);
  return out;
}

}  // namespace

int64_t WideAtomic::bytes() const { return static_cast<int64_t>(lanes.size()) * f32.bits / 8; }

bool adds_in_vectors(const Atomic& n, const ProgramTables& program) {
  const DType type = program.buffer(n.to.buffer).type;
  return n.op == AtomicOp::Add && n.order == MemoryOrder::Relaxed && !n.result.valid() &&
         program.buffer(program.root(n.to.buffer)).space == Space::Global &&
         (type == f32 || type == f16 || type == bf16);
}

std::optional<WideAtomic> wide_atomic(const Body& b, size_t at, const ProgramTables& program) {
  constexpr size_t kMost = 4;
  std::vector<Stmt> all = turns(b[at]);
  const bool is_loop = b[at].as<For>() != nullptr;
  if (!is_loop)
    all.assign(b.begin() + static_cast<ptrdiff_t>(at),
               b.begin() + static_cast<ptrdiff_t>(std::min(b.size(), at + kMost)));
  const auto first = all.empty() ? std::nullopt : addition(all[0], program);
  if (!first) return std::nullopt;
  WideAtomic out{first->condition, {first->atomic}};
  for (size_t i = 1; i < all.size(); ++i) {
    const auto next = addition(all[i], program);
    if (!next || next->atomic.to.buffer != first->atomic.to.buffer || !same(next->condition, first->condition)) break;
    if (constant_int(sub(next->offset, first->offset)) != static_cast<int64_t>(i)) break;
    out.lanes.push_back(next->atomic);
  }
  if (is_loop && out.lanes.size() < all.size()) return std::nullopt;
  const int64_t aligned = power_of_two_divisor(first->offset, program);
  if (!is_loop && (out.lanes.size() < kMost || aligned % kMost != 0))
    out.lanes.resize(std::min<size_t>(out.lanes.size(), 2));
  if (out.lanes.size() < 2 || aligned % static_cast<int64_t>(out.lanes.size()) != 0) return std::nullopt;
  out.statements = is_loop ? 1 : out.lanes.size();
  return out;
}

}  // namespace tilewright::analysis
