#include "passes/threads/join_conditions.h"

#include "analysis/anywhere.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/threads/registers.h"

namespace tilewright::passes {

using namespace ir;
using analysis::work_of;

namespace {

constexpr int64_t kMostWork = 32;  // operations of a right side, beyond which a branch that skips it may pay

bool is_logical(const Binary* n) { return n && (n->op == BinaryOp::And || n->op == BinaryOp::Or); }

class Joining {
 public:
  Joining(const ThreadProgram& program, const Launch& launch) : program_(program), ranges_(ranges_in(launch)) {}

  std::optional<Expr> joined(const Expr& e) const {
    const auto* n = e.as<Binary>();
    if (!is_logical(n) || is_plain(n->b) || !may_run_anywhere(n->b)) return std::nullopt;
    const Expr left = may_run_anywhere(n->a) ? all_joined(n->a) : n->a;
    return bits(n->op, left, all_joined(n->b));
  }

 private:
  static Expr bits(BinaryOp op, const Expr& a, const Expr& b) {
    return binary(op == BinaryOp::And ? BinaryOp::BitAnd : BinaryOp::BitOr, a, b);
  }
  static Expr all_joined(const Expr& e) {
    return rewrite(e, [](const Expr& x) -> std::optional<Expr> {
      const auto* n = x.as<Binary>();
      return is_logical(n) ? std::optional(bits(n->op, n->a, n->b)) : std::nullopt;
    });
  }
  // One comparison, which the device's compiler joins by itself.
  static bool is_plain(const Expr& e) {
    bool plain = true;
    walk(e, [&](const Expr& x) {
      const auto* n = x.as<Binary>();
      plain = plain && !x.as<Select>() && !is_logical(n) && !(n && x->type.is_bool() && n->a->type.is_bool());
    });
    return plain;
  }
  bool may_run_anywhere(const Expr& e) const {
    return work_of(e) <= kMostWork &&
           analysis::may_run_anywhere(e, [&](const Load& n) { return is_in_registers(program_, n, ranges_); });
  }

  const ThreadProgram& program_;
  const Intervals ranges_;
};

}  // namespace

void join_conditions(ThreadProgram& program) {
  for (Launch& launch : program.launches) {
    const Joining joining(program, launch);
    launch.body = rewrite_exprs(launch.body, [&](const Expr& e) { return joining.joined(e); });
  }
}

}  // namespace tilewright::passes
