// Rules of expressions: every node as the constructors of ir/operators.h make it, every name defined.
#include "ir/match.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "ir/verify_rules.h"
#include "scalar/functions.h"

namespace tilewright::ir {

bool Verifier::check_id(VarId id) {
  if (id.index < program_.vars.size()) return true;
  add(Code::VerifyId, fmt::format("variable {} is named, but the program has {}", id.index, program_.vars.size()));
  return false;
}

bool Verifier::check_id(BufferId id) {
  if (id.index < program_.buffers.size()) return true;
  add(Code::VerifyId, fmt::format("buffer {} is named, but the program has {}", id.index, program_.buffers.size()));
  return false;
}

void Verifier::use(VarId id) {
  if (!check_id(id) || visible_[id.index]) return;
  add(Code::VerifyUndefined, fmt::format("'{}' is used where it is not defined", name(id)),
      bound_[id.index] ? "it is bound in another scope or further down" : "");
}

bool Verifier::use(BufferId id) {
  if (!check_id(id)) return false;
  const Buffer& b = row(id);
  if (b.space != Space::Global && b.launch != launch_) {
    add_about(Code::VerifyOtherLaunch, id, fmt::format("'{}' belongs to another launch", b.name),
              "what is on chip is gone when its launch ends: pass it through a workspace");
    return false;
  }
  if (b.root.valid() && !check_id(b.root)) return false;
  // Where a tensor lies may be computed in the body.
  for (const auto* list : {&b.shape, &b.strides})
    for (const Expr& e : *list)
      if (e) check_expr(e);
  for (const Expr& e : {b.offset, b.cta, b.address, b.fill})
    if (e) check_expr(e);
  return true;
}

void Verifier::check_expr(const Expr& e) {
  if (!checked_.insert(&*e).second) return;
  bool whole = true;
  for_each_operand(e, [&](const Expr& operand) { check_expr(operand); });
  match(e->op, Overloaded{
                   [&](const Sum& n) {
                     whole = std::all_of(n.terms.begin(), n.terms.end(),
                                         [](const Term& t) { return static_cast<bool>(t.value); });
                   },
                   [&](const Unary& n) { whole = static_cast<bool>(n.a); },
                   [&](const Binary& n) { whole = n.a && n.b; },
                   [&](const Fma& n) { whole = n.a && n.b && n.c; },
                   [&](const Select& n) { whole = n.condition && n.a && n.b; },
                   [&](const Cast& n) { whole = static_cast<bool>(n.value); },
                   [&](const Bitcast& n) { whole = static_cast<bool>(n.value); },
                   [&](const Intrinsic& n) {
                     whole =
                         std::all_of(n.args.begin(), n.args.end(), [](const Expr& a) { return static_cast<bool>(a); });
                   },
                   [&](const auto&) {},
               });
  if (!whole) return add(Code::VerifyMissing, fmt::format("an operand is missing in {}", text(e)));
  check_node(e);
}

void Verifier::check_same(const Expr& e, std::initializer_list<const Expr*> operands) {
  for (const Expr* operand : operands) {
    if ((*operand)->type == (**operands.begin())->type) continue;
    return add(Code::VerifyOperandTypes, fmt::format("the operands of {} have the types {} and {}", text(e),
                                                     (**operands.begin())->type.name(), (*operand)->type.name()));
  }
}

void Verifier::check_node(const Expr& e) {
  const auto wrong = [&](const char* rule) {
    add(Code::VerifyOperandType, fmt::format("{} is {}: {}", text(e), e->type.name(), rule));
  };
  match(e->op, Overloaded{
                   [](const Const&) {},
                   [&](const Var& n) {
                     use(n.id);
                     if (n.id.index < program_.vars.size() && program_.var(n.id).type != e->type)
                       add(Code::VerifyOperandType, fmt::format("'{}' is {}, but it is read as {}", name(n.id),
                                                                program_.var(n.id).type.name(), e->type.name()));
                   },
                   [&](const Sum& n) {
                     if (!e->type.is_int()) wrong("sums of this form are of integers");
                     for (const Term& t : n.terms)
                       if (t.value->type != e->type)
                         return wrong(fmt::format("but a term is {}", t.value->type.name()).c_str());
                   },
                   [&](const Unary& n) {
                     if (n.a->type != e->type) wrong("the operand has another type");
                     if (n.op == UnaryOp::Not && !e->type.is_bool()) wrong("not takes a bool");
                     if (n.op == UnaryOp::BitNot && !e->type.is_int()) wrong("~ takes integers");
                   },
                   [&](const Binary& n) { check_binary(e, n); },
                   [&](const Fma& n) {
                     check_same(e, {&n.a, &n.b, &n.c});
                     if (wants_instead(BinaryOp::Div, e->type) || n.a->type != e->type)
                       wrong("fma takes and gives one float type");
                   },
                   [&](const Select& n) {
                     check_same(e, {&n.a, &n.b});
                     if (!n.condition->type.is_bool() || n.a->type != e->type)
                       wrong("select takes a bool and two values of its type");
                   },
                   [&](const Cast& n) {
                     if (n.value->type.is_pointer() != e->type.is_pointer()) wrong("addresses are not cast");
                     if (!can_round(e->type, n.rounding))
                       wrong(fmt::format("no cast to it rounds {}", name_of(n.rounding)).c_str());
                     const bool stochastic = n.rounding == Rounding::Stochastic;
                     if (static_cast<bool>(n.random) != stochastic || (n.random && n.random->type != u32))
                       wrong("a stochastic cast takes uint32 random bits");
                   },
                   [&](const Bitcast& n) {
                     if (!can_bitcast(n.value->type, e->type))
                       wrong(fmt::format("{} has no bits of this type", n.value->type.name()).c_str());
                   },
                   [&](const Load& n) {
                     if (!check_indices(n.buffer, n.indices, "a read")) return;
                     const Buffer& b = row(n.buffer);
                     if (b.space == Space::Barrier)
                       return add(Code::VerifyBarrierAccess,
                                  fmt::format("'{}' is a barrier: it is not read or written", b.name));
                     if (b.type != e->type)
                       add(Code::VerifyOperandType,
                           fmt::format("'{}' holds {}, but it is read as {}", b.name, b.type.name(), e->type.name()));
                   },
                   [&](const Address& n) {
                     if (!check_indices(n.buffer, n.indices, "an address")) return;
                     if (row(n.buffer).space != Space::Global)
                       add_about(Code::VerifyAddress, n.buffer,
                                 fmt::format("'{}' is not in global memory; only global elements have addresses",
                                             name(n.buffer)));
                     if (!e->type.is_pointer()) wrong("an address is a pointer");
                   },
                   [&](const Intrinsic& n) {
                     const FunctionInfo& row = info(n.function);
                     if (n.args.size() != row.arity || !accepts(n.function, n.args[0]->type))
                       return wrong("the function does not take these operands");
                     for (const Expr& arg : n.args) check_same(e, {&n.args[0], &arg});
                     if (result_type(n.function, n.args[0]->type) != e->type) wrong("the function gives another type");
                   },
               });
}

void Verifier::check_binary(const Expr& e, const Binary& n) {
  const auto wrong = [&](const std::string& rule) {
    add(Code::VerifyOperandType, fmt::format("{} has operands of {}: {}", text(e), n.a->type.name(), rule));
  };
  const DType type = n.a->type;
  check_same(e, {&n.a, &n.b});
  const DType result = is_comparison(n.op) ? boolean : type;
  if (e->type != result) wrong("the result has another type");
  if (const char* takes = wants_instead(n.op, type))
    wrong(fmt::format("it takes {}", takes));
  else if ((n.op == BinaryOp::Add || n.op == BinaryOp::Sub) && type.is_int())
    wrong("integers are added in sums");
}

bool Verifier::check_indices(BufferId buffer, const std::vector<Expr>& indices, const char* what) {
  if (!use(buffer)) return false;
  const Buffer& b = row(buffer);
  if (indices.size() != b.rank()) {
    add_about(
        Code::VerifyIndexCount, buffer,
        fmt::format("{}: '{}' has {} dimensions, but {} indices are given", what, b.name, b.rank(), indices.size()));
    return false;
  }
  bool good = true;
  for (size_t d = 0; d < indices.size(); ++d) {
    good = check_integer(indices[d], "an index") && good;
    const auto index = good ? constant_int(indices[d]) : std::nullopt, extent = constant_int(b.shape[d]);
    if (b.space == Space::Global || !index || !extent || (*index >= 0 && *index < *extent)) continue;
    add_about(Code::VerifyIndexBounds, buffer,
              fmt::format("{}: index {} of '{}' is {}, but the extent is {}", what, d, b.name, *index, *extent));
  }
  return good;
}

bool Verifier::check_value(const Expr& e, const char* what) {
  if (!e) {
    add(Code::VerifyMissing, fmt::format("{} is missing", what));
    return false;
  }
  check_expr(e);
  return true;
}

bool Verifier::check_condition(const Expr& e, const char* what) {
  if (!check_value(e, what)) return false;
  if (e->type.is_bool()) return true;
  add(Code::VerifyCondition, fmt::format("{} is {}; it is a bool", what, e->type.name()),
      "compare it, for example x != 0");
  return false;
}

bool Verifier::check_integer(const Expr& e, const char* what) {
  if (!check_value(e, what)) return false;
  if (e->type.is_int()) return true;
  add(Code::VerifyIndexType, fmt::format("{} is {}; it is an integer", what, e->type.name()), "cast it to int32");
  return false;
}

}  // namespace tilewright::ir
