#include "ir/print_expr.h"

#include <charconv>

#include "ir/match.h"
#include "ir/operators.h"
#include "scalar/functions.h"

namespace tilewright::ir {
namespace {

// No type: what a mixed list of operands is written under, so that every constant says its type.
constexpr DType kEveryTypeSpelled = pointer;

DType type_of_literal(DType type) { return type.is_float() ? f32 : type.is_bool() ? boolean : i32; }

// The fewest digits that give this value back in its type.
std::string float_text(double value, DType type) {
  const char* sign = std::signbit(value) ? "-" : "";
  if (std::isnan(value)) return fmt::format("{}nan", sign);
  if (std::isinf(value)) return fmt::format("{}inf", sign);
  for (int digits = 1; digits <= 17; ++digits) {
    std::string text = fmt::format("{:.{}g}", value, digits);
    double back = 0;
    std::from_chars(text.data(), text.data() + text.size(), back);
    if (constant_float(constant(type, back)) != value) continue;
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  }
  return fmt::format("{:.17g}", value);
}

std::string constant_text(const Const& c, DType type) {
  if (type.is_float()) return float_text(std::bit_cast<double>(c.bits), type);
  if (type.is_bool()) return c.bits ? "true" : "false";
  return type.is_signed() ? fmt::format("{}", static_cast<int64_t>(c.bits)) : fmt::format("{}", c.bits);
}

// The value of a coefficient with a sign, so that uint32's 4294967295 reads as -1.
int64_t signed_value(int64_t value, DType type) {
  if (type.bits >= 64) return value;
  const int shift = 64 - type.bits;
  return static_cast<int64_t>(static_cast<uint64_t>(value) << shift) >> shift;
}

// Whether -value may be written as a literal of the type: not so for the smallest signed number.
bool has_opposite(int64_t value, DType type) {
  return type.bits < 64 ? !type.is_signed() || -value < int64_t{1} << (type.bits - 1) : value != INT64_MIN;
}

}  // namespace

std::string ExprPrinter::text(const Expr& e, std::optional<DType> known) const {
  std::string out;
  write(out, e, kAnyPrecedence, known);
  return out;
}

std::string ExprPrinter::list(const std::vector<Expr>& list) const {
  std::string out;
  for (const Expr& e : list) {
    if (!out.empty()) out += ", ";
    write(out, e, kAnyPrecedence, {});
  }
  return out;
}

std::string ExprPrinter::element(BufferId buffer, const std::vector<Expr>& indices) const {
  return indices.empty() ? name(buffer) : fmt::format("{}[{}]", name(buffer), list(indices));
}

std::string ExprPrinter::region(const Region& region) const {
  const Buffer* buffer = row(region.buffer);
  bool whole = buffer && equal(region.extent, buffer->shape) && region.min.size() == buffer->rank();
  for (size_t d = 0; whole && d < region.min.size(); ++d)
    whole = region.min[d] && region.min[d]->type == buffer->shape[d]->type && constant_int(region.min[d]) == 0;
  std::string out = name(region.buffer);
  if (whole || (region.min.empty() && region.extent.empty())) return out;
  out += '[';
  for (size_t d = 0; d < std::max(region.min.size(), region.extent.size()); ++d) {
    if (d > 0) out += ", ";
    const Expr extent = d < region.extent.size() ? region.extent[d] : Expr();
    write(out, d < region.min.size() ? region.min[d] : Expr(), kAnyPrecedence, {});
    if (extent && extent->type == i32 && constant_int(extent) == 1) continue;
    out += " : ";
    write(out, extent, kAnyPrecedence, {});
  }
  return out + ']';
}

void ExprPrinter::write_operands(std::string& out, std::span<const Expr* const> args, std::string_view separator,
                                 std::span<const int> at_least) const {
  const auto missing = [](const Expr* e) { return !*e; };
  if (std::any_of(args.begin(), args.end(), missing)) {
    for (size_t i = 0; i < args.size(); ++i) {
      if (i > 0) out += separator;
      write(out, *args[i], at_least[i], {});
    }
    return;
  }
  const DType type = (*args[0])->type;
  const bool one_type = std::all_of(args.begin(), args.end(), [&](const Expr* e) { return (*e)->type == type; });
  bool known = std::any_of(args.begin(), args.end(), [](const Expr* e) { return !is_constant(*e); });
  known = known || type == type_of_literal(type);
  for (size_t i = 0; i < args.size(); ++i) {
    if (i > 0) out += separator;
    write(out, *args[i], at_least[i], one_type && known ? type : kEveryTypeSpelled);
    known = true;  // by the operand just written
  }
}

void ExprPrinter::write_call(std::string& out, std::string_view function,
                             std::initializer_list<const Expr*> args) const {
  const std::vector<int> any(args.size(), kAnyPrecedence);
  out += function;
  out += '(';
  write_operands(out, {args.begin(), args.size()}, ", ", any);
  out += ')';
}

void ExprPrinter::write_op(std::string& out, const Const& c, DType type, std::optional<DType> known) const {
  const std::string value = constant_text(c, type);
  out += known.value_or(type_of_literal(type)) == type ? value : fmt::format("{}({})", type.name(), value);
}

void ExprPrinter::write_op(std::string& out, const Sum& sum, DType type) const {
  bool first = true;
  for (const Term& term : sum.terms) {
    int64_t coefficient = signed_value(term.coefficient, type);
    if (first && coefficient == -1) {
      out += '-';
      coefficient = 1;
    } else if (first) {
      coefficient = type.is_signed() ? coefficient : term.coefficient;
    } else {
      const bool minus = coefficient < 0 && has_opposite(coefficient, type);
      out += minus ? " - " : " + ";
      coefficient = minus ? -coefficient : coefficient;
    }
    const bool negated = first && out.ends_with('-') && coefficient == 1;
    write(out, term.value, negated ? kUnaryPrecedence : coefficient == 1 ? kAddPrecedence + 1 : kMulPrecedence, {});
    if (coefficient != 1)
      out += type == u64 ? fmt::format(" * {}", static_cast<uint64_t>(coefficient)) : fmt::format(" * {}", coefficient);
    first = false;
  }
  if (sum.constant == 0) return;
  const int64_t constant = signed_value(sum.constant, type);
  const bool minus = constant < 0 && has_opposite(constant, type);
  const int64_t shown = minus ? -constant : constant;
  out += minus ? " - " : " + ";
  out += type == u64 ? fmt::format("{}", static_cast<uint64_t>(shown)) : fmt::format("{}", shown);
}

void ExprPrinter::write_op(std::string& out, const Binary& binary) const {
  const Expr* const args[] = {&binary.a, &binary.b};
  const int level = precedence_of(binary.op);
  const bool order = binary.op == BinaryOp::Lt || binary.op == BinaryOp::Le;
  if (order && is_constant(binary.a) && binary.b && !is_constant(binary.b)) {  // 0 < n reads better as n > 0
    const Expr* const mirrored[] = {&binary.b, &binary.a};
    const int operand[] = {level + 1, level + 1};
    return write_operands(out, mirrored, binary.op == BinaryOp::Lt ? " > " : " >= ", operand);
  }
  if (level == kPrimaryPrecedence) return write_call(out, name_of(binary.op), {&binary.a, &binary.b});
  const int at_least[] = {level == kComparePrecedence ? level + 1 : level, level + 1};
  write_operands(out, args, fmt::format(" {} ", name_of(binary.op)), at_least);
}

void ExprPrinter::write_op(std::string& out, const Cast& cast, DType type) const {
  out += type.name() + '(';
  write(out, cast.value, kAnyPrecedence, kEveryTypeSpelled);
  if (cast.rounding != Rounding::Nearest) out += fmt::format(", {}", name_of(cast.rounding));
  if (cast.random) out += fmt::format(", {}", text(cast.random));
  out += ')';
}

namespace {

int precedence_of(const Expr& e, bool typed_constant) {
  return match(
      e->op, Overloaded{
                 [&](const Const& c) -> int {
                   if (typed_constant) return kPrimaryPrecedence;
                   const bool negative = e->type.is_float() ? std::signbit(std::bit_cast<double>(c.bits))
                                                            : e->type.is_signed() && static_cast<int64_t>(c.bits) < 0;
                   return negative ? kUnaryPrecedence : kPrimaryPrecedence;
                 },
                 [&](const Sum& sum) -> int {
                   if (sum.terms.size() + (sum.constant != 0) > 1) return kAddPrecedence;
                   return signed_value(sum.terms[0].coefficient, e->type) == -1 ? kUnaryPrecedence : kMulPrecedence;
                 },
                 [](const Unary& unary) -> int { return unary.op == UnaryOp::Not ? kNotPrecedence : kUnaryPrecedence; },
                 [](const Binary& binary) -> int { return precedence_of(binary.op); },
                 [](const auto&) -> int { return kPrimaryPrecedence; },
             });
}

}  // namespace

void ExprPrinter::write(std::string& out, const Expr& e, int at_least, std::optional<DType> known) const {
  if (!e) {
    out += '?';  // a hole in a program that is not valid; no text parses to it
    return;
  }
  const bool typed_constant = known.value_or(type_of_literal(e->type)) != e->type;
  const bool parentheses = precedence_of(e, typed_constant) < at_least;
  if (parentheses) out += '(';
  match(
      e->op,
      Overloaded{
          [&](const Const& c) { write_op(out, c, e->type, known); },
          [&](const Var& v) { out += name(v.id); },
          [&](const Sum& sum) { write_op(out, sum, e->type); },
          [&](const Unary& unary) {
            out += unary.op == UnaryOp::Not ? "not " : name_of(unary.op);
            write(out, unary.a, unary.op == UnaryOp::Not ? kNotPrecedence : kUnaryPrecedence, {});
          },
          [&](const Binary& binary) { write_op(out, binary); },
          [&](const Fma& fma) {
            write_call(out, "fma", {&fma.a, &fma.b, &fma.c});
          },
          [&](const Select& select) {
            out += "select(" + text(select.condition) + ", ";
            const Expr* const sides[] = {&select.a, &select.b};
            const int any[] = {kAnyPrecedence, kAnyPrecedence};
            write_operands(out, sides, ", ", any);
            out += ')';
          },
          [&](const Cast& cast) { write_op(out, cast, e->type); },
          [&](const Bitcast& bitcast) { out += fmt::format("bitcast({}, {})", e->type.name(), text(bitcast.value)); },
          [&](const Load& load) { out += element(load.buffer, load.indices); },
          [&](const Address& address) { out += fmt::format("address({})", element(address.buffer, address.indices)); },
          [&](const Intrinsic& call) {
            std::vector<const Expr*> args;
            for (const Expr& arg : call.args) args.push_back(&arg);
            const std::vector<int> any(args.size(), kAnyPrecedence);
            out += std::string(info(call.function).name) + '(';
            if (!args.empty()) write_operands(out, args, ", ", any);
            out += ')';
          },
      });
  if (parentheses) out += ')';
}

}  // namespace tilewright::ir
