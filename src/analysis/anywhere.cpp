#include "analysis/anywhere.h"

#include "ir/operators.h"
#include "ir/rewrite.h"
#include "scalar/functions.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

bool is_total(const Binary& n) {
  switch (n.op) {
    case BinaryOp::FloorDiv:
    case BinaryOp::FloorMod:
    case BinaryOp::TruncDiv:
    case BinaryOp::TruncMod: return constant_int(n.b).value_or(0) > 0;
    case BinaryOp::Div: return false;  // a branch of its own
    default: return true;
  }
}

}  // namespace

bool may_run_anywhere(const Expr& e, function_ref<bool(const Load&)> may_load) {
  bool may = true;
  walk(e, [&](const Expr& x) {
    if (const auto* n = x.as<Load>()) may = may && may_load(*n);
    if (const auto* n = x.as<Binary>()) may = may && is_total(*n);
    if (const auto* n = x.as<Cast>()) may = may && (!n->value->type.is_float() || x->type.is_float());
    if (const auto* n = x.as<Intrinsic>())
      may = may && (n->function == Function::Abs || n->function == Function::IsNan);
    may = may && !x.as<Address>();
  });
  return may;
}

bool may_look_anywhere(const std::vector<Expr>& indices) {
  return std::ranges::all_of(indices,
                             [](const Expr& e) { return may_run_anywhere(e, [](const Load&) { return true; }); });
}

bool may_divide_by_zero(const Expr& e) {
  const auto* n = e.as<Binary>();
  const bool divides = n && (n->op == BinaryOp::FloorDiv || n->op == BinaryOp::FloorMod ||
                             n->op == BinaryOp::TruncDiv || n->op == BinaryOp::TruncMod);
  return divides && e->type.is_int() && !constant_int(n->b);
}

int64_t work_of(const Expr& e) {
  int64_t nodes = 0;
  walk(e, [&](const Expr& x) { nodes += !x.as<Const>() && !x.as<Var>() && !x.as<Load>(); });
  return nodes;
}

}  // namespace tilewright::analysis
