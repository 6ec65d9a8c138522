#include "codegen/cpu/masked_groups.h"

#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::codegen {

using namespace ir;

namespace {

// Of a loop that is written out before vectors are made: by the compiler (max-completely-peel-times), or as the text
// asks.
constexpr int64_t kMostTurns = 16, kMostUnrolled = 64;

// Of what a turn does itself, not in loops of its own.
struct Turn {
  const ProgramTables& p;
  int64_t loads = 0, stores = 0;  // under conditions; under none
  bool has_loops = false;

  void add(const Body& body, bool conditional) {
    for (const Stmt& s : body) {
      has_loops = has_loops || s.as<For>() || s.as<While>();
      if (s.as<For>() || s.as<While>()) continue;
      stores += s.as<Store>() && !conditional ? 1 : 0;
      for_each_expr(s, [&](const Expr& e) { add(e, conditional); });
      for_each_body(s, [&](const Body& b) { add(b, conditional || s.as<If>()); });
    }
  }
  void add(const Expr& e, bool conditional) {
    if (const auto* n = e.as<Load>(); n && conditional && p.buffer(p.root(n->buffer)).space == Space::Global) ++loads;
    const auto* choice = e.as<Select>();
    const auto* both = e.as<Binary>();
    const bool is_lazy = both && (both->op == BinaryOp::And || both->op == BinaryOp::Or);
    for_each_operand(e, [&](const Expr& x) {
      const bool is_chosen = choice ? &x != &choice->condition : is_lazy && &x == &both->b;
      add(x, conditional || is_chosen);
    });
  }
};

}  // namespace

bool has_masked_group(const For& loop, const ProgramTables& program) {
  Turn turn{program};
  turn.add(loop.body, false);
  if (turn.has_loops || turn.loads == 0 || turn.stores == 0) return false;
  const auto turns = constant_int(loop.extent);
  const int64_t most = loop.kind == LoopKind::Unroll ? kMostUnrolled : kMostTurns;
  return (turns && *turns > 1 && *turns <= most) || (turn.loads > 1 && turn.stores > 1);
}

}  // namespace tilewright::codegen
