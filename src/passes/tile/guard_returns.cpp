#include "passes/tile/guard_returns.h"

#include "analysis/body_order.h"
#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class Guards {
 public:
  Guards(const TileProgram& p, const Launch& launch)
      : p_(p), of_threads_(launch.thread.begin(), launch.thread.end()), written_(changed_roots(launch.body, p)) {}

  Body body(const Body& in) {
    Body out;
    for (size_t i = 0; i < in.size(); ++i) {
      const auto* n = in[i].as<If>();
      const Body rest(in.begin() + static_cast<std::ptrdiff_t>(i) + 1, in.end());
      if (n && n->else_body.empty() && n->then_body.size() == 1 && n->then_body[0].as<Return>() && multiplies(rest) &&
          is_of_block(n->condition)) {
        out.push_back(make_stmt(If{logical_not(n->condition), body(rest), {}}, in[i]->location));
        return out;
      }
      name(in[i]);
      out.push_back(in[i]);
    }
    return out;
  }

 private:
  // Of blocks and memory that the launch does not write, so that all threads see the same, whenever they look.
  bool is_of_block(const Expr& value) const {
    bool fits = true;
    walk(value, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      fits = fits &&
             !(n && (p_.buffer(n->buffer).space != Space::Global || analysis::may_overlap(n->buffer, written_, p_)));
    });
    for (VarId v : used_vars(value)) fits = fits && !of_threads_.contains(v);
    return fits;
  }
  static bool multiplies(const Body& body) {
    bool found = false;
    walk(body, [&](const Stmt& s) { found = found || s.as<Gemm>(); });
    return found;
  }
  // Names that threads may not agree on.
  void name(const Stmt& s) {
    if (const auto* n = s.as<Let>(); n && !is_of_block(n->value)) of_threads_.insert(n->var);
    if (s.as<Let>()) return;
    for (VarId v : bound_vars({s})) of_threads_.insert(v);
  }

  const TileProgram& p_;
  std::set<VarId> of_threads_;
  const std::set<BufferId> written_;
};

}  // namespace

TileProgram guard_returns(TileProgram program) {
  for (size_t i = 0; i < program.launches.size(); ++i)
    program.launches[i].body = Guards(program, program.launches[i]).body(program.launches[i].body);
  return program;
}

}  // namespace tilewright::passes
