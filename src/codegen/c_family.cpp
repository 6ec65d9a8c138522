#include "codegen/c_family.h"

#include <cmath>

#include "codegen/source_marks.h"
#include "ir/match.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "scalar/convert.h"
#include "scalar/functions.h"
#include "support/diagnostic.h"

namespace tilewright::codegen {

using namespace ir;

std::string in(const Text& t, Binds least) { return t.binds < least ? "(" + t.text + ")" : t.text; }

namespace {

bool is_small_int(DType type) { return type.is_int() && type.bits < 32; }
bool is_narrow_float(DType type) { return type.is_float() && type != f32 && type != f64 && type != tf32; }

struct Spelling {
  const char* symbol;
  Binds binds;
};
std::optional<Spelling> spelling(BinaryOp op) {
  switch (op) {
    case BinaryOp::Add: return Spelling{"+", Binds::Sum};
    case BinaryOp::Sub: return Spelling{"-", Binds::Sum};
    case BinaryOp::Mul: return Spelling{"*", Binds::Product};
    case BinaryOp::Div: return Spelling{"/", Binds::Product};
    case BinaryOp::BitAnd: return Spelling{"&", Binds::BitAnd};
    case BinaryOp::BitOr: return Spelling{"|", Binds::BitOr};
    case BinaryOp::BitXor: return Spelling{"^", Binds::BitXor};
    case BinaryOp::And: return Spelling{"&&", Binds::And};
    case BinaryOp::Or: return Spelling{"||", Binds::Or};
    case BinaryOp::Eq: return Spelling{"==", Binds::Equality};
    case BinaryOp::Ne: return Spelling{"!=", Binds::Equality};
    case BinaryOp::Lt: return Spelling{"<", Binds::Relation};
    case BinaryOp::Le: return Spelling{"<=", Binds::Relation};
    default: return std::nullopt;
  }
}

std::string float_text(double v, bool is_double) {
  const char* suffix = is_double ? "" : "f";
  if (std::isnan(v)) return fmt::format("__builtin_nan{}(\"\")", suffix);
  if (std::isinf(v)) return fmt::format("{}__builtin_inf{}()", v < 0 ? "-" : "", suffix);
  std::string s = is_double ? fmt::format("{}", v) : fmt::format("{}", static_cast<float>(v));
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s + suffix;
}

// Whether a factor or a constant is written with its sign in front: the least number of a type has no opposite there.
bool is_subtracted(int64_t v, DType type) {
  const bool narrow = type.is_int() && type.is_signed() && type.bits < 64;
  return v < 0 && v != (narrow ? -(int64_t{1} << (type.bits - 1)) : INT64_MIN);
}
// Whether a product with -v never overflows where that with v does not: x * -v is 2^(bits - 1) for powers of two alone.
bool is_subtracted_product(int64_t v, DType type) {
  return is_subtracted(v, type) && (v == -1 || !std::has_single_bit(static_cast<uint64_t>(-v)));
}

}  // namespace

std::string CFamily::constant(const Expr& e) const {
  if (auto f = constant_float(e)) return float_text(*f, e->type == f64);
  const int64_t v = constant_int(e).value_or(0);
  if (e->type.is_pointer() || e->type == u64) return fmt::format("{}ull", static_cast<uint64_t>(v));
  if (e->type == i64) return v == INT64_MIN ? "(-9223372036854775807ll - 1)" : fmt::format("{}ll", v);
  if (e->type == i32) return v == INT32_MIN ? "(-2147483647 - 1)" : fmt::format("{}", v);
  if (e->type == u32) return fmt::format("{}u", v);
  if (e->type.is_bool()) return fmt::format("{}", v);
  return fmt::format("({}){}", c_type(e->type), v);
}

Text CFamily::call(const std::string& function, const std::vector<std::string>& args) {
  pieces_.insert(function);
  return {fmt::format("{}({})", function, fmt::join(args, ", "))};
}

Text CFamily::function(Function f, DType type, const std::vector<std::string>& args) {
  return call(c_name(f, type), args);
}

Text CFamily::rounded(DType type, const Text& t) {
  if (type == tf32) return call(narrowing(type), {t.text});  // memory holds it as it is: it is never left unrounded
  if (is_narrow_float(type) || type.bits == 4) {
    Text out = call(narrowing(type), {t.text});
    out.unrounded = t.text;
    return out;
  }
  if (is_small_int(type)) return {fmt::format("({}){}", c_type(type), in(t, Binds::Primary)), Binds::Unary};
  return t;
}

// constant + sum of coefficient * value. In 64 bits one wide operand makes an addition wide, so that 32-bit values are
// widened by hand only where nothing before them is: the first addend, unless its factor is.
Text CFamily::sum(const Sum& n, DType type) {
  std::vector<Term> terms = n.terms;
  if (type == i64)  // a product first: its factor makes all that follows wide
    std::stable_partition(terms.begin(), terms.end(), [](const Term& t) { return t.coefficient > 1; });
  std::string out;
  for (const Term& t : terms) {
    const bool first = out.empty(), negative = is_subtracted_product(t.coefficient, type);
    const int64_t magnitude = negative ? -t.coefficient : t.coefficient;
    const auto* c = t.value.as<Cast>();
    const bool widens = type == i64 && c && c->value->type.is_int() && c->value->type.bits <= 32;
    const Text v = value(widens && (magnitude != 1 || !first) ? c->value : t.value);
    Text product = v;
    if (magnitude != 1)
      product = {in(v, Binds::Product) + " * " +
                     constant(ir::constant(type.is_int() && type.bits == 16 ? u32 : type, magnitude)),
                 Binds::Product};  // unsigned in C, where a product of 16 bits or a sum of some may overflow
    if (first)
      out = negative ? "-" + in(product, Binds::Primary) : in(product, Binds::Sum);
    else
      out += (negative ? " - " : " + ") + in(product, Binds::Product);
  }
  if (n.constant != 0) {
    const bool negative = is_subtracted(n.constant, type);
    out += (negative ? " - " : " + ") + constant(ir::constant(type, negative ? -n.constant : n.constant));
  }
  const bool single = terms.size() == 1 && n.constant == 0;
  const bool minus = std::ranges::any_of(terms, [](const Term& t) { return t.coefficient < 0; });
  const auto finish = [&](const Text& t) { return minus ? after_minus(type, t) : rounded(type, t); };
  if (!single) return finish({out, Binds::Sum});
  return finish({out, is_subtracted_product(terms[0].coefficient, type) ? Binds::Unary : Binds::Product});
}

Text CFamily::divide(const Binary& n, DType type) {
  const Text a = value(n.a);
  const auto divisor = constant_int(n.b);
  const bool floors = n.op == BinaryOp::FloorDiv || n.op == BinaryOp::FloorMod;
  const bool quotient = n.op == BinaryOp::FloorDiv || n.op == BinaryOp::TruncDiv;
  if (divisor && *divisor > 0 && type.bits >= 32) {
    const bool power = (*divisor & (*divisor - 1)) == 0;
    const int shift = std::countr_zero(static_cast<uint64_t>(*divisor));
    if (floors && power && quotient) return {fmt::format("{} >> {}", in(a, Binds::Sum), shift), Binds::Shift};
    if (floors && power)
      return {in(a, Binds::BitAnd) + " & " + constant(ir::constant(type, *divisor - 1)), Binds::BitAnd};
    if (!floors || !type.is_signed())
      return {in(a, Binds::Product) + (quotient ? " / " : " % ") + constant(n.b), Binds::Product};
  }
  const Text t = call(c_name(*function_of(n.op), type), {a.text, text(n.b)});
  return type.bits == 4 ? rounded(type, t) : t;
}

Text CFamily::binary(BinaryOp op, DType type, const Text& a, const Text& b, const Expr& right) {
  if (const auto s = spelling(op)) {
    // Operands of one operator side by side, anything else of lower binding than a product in parentheses.
    const Binds least = s->binds <= Binds::Shift && s->binds >= Binds::BitOr ? Binds::Sum : s->binds;
    const auto after = static_cast<Binds>(static_cast<int>(s->binds) + 1);
    Text t{in(a, least) + " " + s->symbol + " " + in(b, std::max(least, after)), s->binds};
    // C multiplies 16 unsigned bits as signed integers, whose product may overflow.
    if (op == BinaryOp::Mul && type == u16) t.text = "(uint32_t)" + in(a, Binds::Unary) + " * " + in(b, after);
    const bool computes = op == BinaryOp::Add || op == BinaryOp::Sub || op == BinaryOp::Mul || op == BinaryOp::Div;
    return computes ? rounded(type, t) : t;
  }
  const auto amount = right ? constant_int(right) : std::nullopt;
  const bool shift = op == BinaryOp::Shl || op == BinaryOp::Shr;
  if (shift && amount && *amount >= 0 && *amount < type.bits && type.bits >= 32)
    return {fmt::format("{} {} {}", in(a, Binds::Sum), op == BinaryOp::Shl ? "<<" : ">>", *amount), Binds::Shift};
  const Text t = call(c_name(*function_of(op), type), {a.text, b.text});
  return type.bits == 4 && type.is_int() ? rounded(type, t) : t;
}

std::string CFamily::bits_of(DType type, const std::string& v) {
  if (type == f32 || type == tf32) return call("bits_of_f32", {v}).text;
  if (type == f64) return call("bits_of_f64", {v}).text;
  if (type.is_float() || type.bits == 4) return keep_text(type, v, pieces_);
  return fmt::format("(uint{}_t)({})", type.storage_bits(), v);
}

std::string CFamily::value_of_bits(DType type, const std::string& b) {
  if (type == f32 || type == tf32) return call("f32_of_bits", {b}).text;
  if (type == f64) return call("f64_of_bits", {b}).text;
  if (type.is_float() || type.bits == 4) return load_text(type, b, pieces_);
  return fmt::format("({})({})", c_type(type), b);
}

Text CFamily::conversion_of(const Cast& n, DType type) {
  const Text from = value(n.value);
  const std::string to = std::string(c_type(type));
  const std::string random = n.random ? text(n.random) : "";
  const std::string out = conversion(n.value->type, type, n.rounding, from.text, random, pieces_);
  // A wider type than the one that was rounded to keeps the rounded value.
  const Text same = n.value->type == type ? from : Text{from.text, from.binds};
  if (out == from.text) return same;
  if (out == fmt::format("({})({})", to, from.text)) {
    if (to == c_type(n.value->type)) return same;
    return {fmt::format("({}){}", to, in(from, Binds::Unary)), Binds::Unary};
  }
  Text t{out, out.front() == '(' ? Binds::Equality : Binds::Primary};
  const std::string call = narrowing(type) + "(";
  if (is_narrow_float(type) && n.rounding == Rounding::Nearest && out.starts_with(call))
    t.unrounded = out.substr(call.size(), out.size() - call.size() - 1);
  return t;
}

namespace {

// The largest magnitude of a float that is a whole number: a byte, a constant, sums, differences and products of such.
// None: it may be another.
std::optional<double> whole_magnitude(const Expr& e) {
  if (!e->type.is_float()) return std::nullopt;
  if (const auto c = constant_float(e))
    return std::isfinite(*c) && std::trunc(*c) == *c ? std::optional(std::abs(*c)) : std::nullopt;
  if (const auto* n = e.as<Cast>()) {
    const DType from = n->value->type;
    if (!from.is_int() || from.bits > 8) return std::nullopt;
    return std::ldexp(1.0, from.bits - (from.is_signed() ? 1 : 0));
  }
  const auto* n = e.as<Binary>();
  if (!n || (n->op != BinaryOp::Add && n->op != BinaryOp::Sub && n->op != BinaryOp::Mul)) return std::nullopt;
  const auto a = whole_magnitude(n->a), b = whole_magnitude(n->b);
  if (!a || !b) return std::nullopt;
  return n->op == BinaryOp::Mul ? *a * *b : *a + *b;
}

// Whether rounding to the type of the expression leaves it as it is: a float32 that holds it need not be rounded.
bool is_exact(const Expr& e) {
  if (e->type != f16 && e->type != bf16) return false;
  const auto most = whole_magnitude(e);
  return most && *most <= (e->type == f16 ? 2048 : 256);
}

}  // namespace

Text CFamily::value(const Expr& e) {
  const DType type = e->type;
  return match(e->op, Overloaded{
                          [&](const Const&) -> Text {
                            const std::string c = constant(e);
                            return {c, c.front() == '-' || c.front() == '(' ? Binds::Unary : Binds::Primary};
                          },
                          [&](const Var& n) -> Text { return {names_.of(n.id)}; },
                          [&](const Sum& n) -> Text { return sum(n, type); },
                          [&](const Unary& n) -> Text {
                            const char* op = n.op == UnaryOp::Neg ? "-" : n.op == UnaryOp::Not ? "!" : "~";
                            const Text t{op + in(value(n.a), Binds::Primary), Binds::Unary};
                            if (!type.is_int()) return is_closed(Function::Neg, type) ? t : rounded(type, t);
                            return n.op == UnaryOp::Neg ? after_minus(type, t) : rounded(type, t);
                          },
                          [&](const Binary& n) -> Text {
                            if (n.op == BinaryOp::FloorDiv || n.op == BinaryOp::FloorMod ||
                                n.op == BinaryOp::TruncDiv || n.op == BinaryOp::TruncMod)
                              return divide(n, type);
                            if (n.op == BinaryOp::Div)
                              if (auto own = quotient(type, value(n.a), value(n.b))) return rounded(type, *own);
                            if (n.op == BinaryOp::BitXor)
                              if (auto own = exchange(n)) return *own;
                            if (auto own = comparison(n)) return *own;
                            if (is_exact(e)) return binary(n.op, f32, value(n.a), value(n.b), n.b);
                            if (n.op == BinaryOp::Sub && subtracts_by_function(n))
                              return rounded(type, call(c_name(Function::Sub, type), {text(n.a), text(n.b)}));
                            return binary(n.op, n.a->type, value(n.a), value(n.b), n.b);
                          },
                          [&](const Fma& n) -> Text {
                            return rounded(type, call(c_name(Function::Fma, type), {text(n.a), text(n.b), text(n.c)}));
                          },
                          [&](const Select& n) -> Text {
                            if (auto own = choice(n)) return *own;
                            return {in(value(n.condition), Binds::Or) + " ? " + in(value(n.a), Binds::Or) + " : " +
                                        in(value(n.b), Binds::Conditional),
                                    Binds::Conditional};
                          },
                          [&](const Cast& n) -> Text { return conversion_of(n, is_exact(e) ? f32 : type); },
                          [&](const Bitcast& n) -> Text {
                            if (const auto* from = n.value.as<Cast>())
                              if (const auto converted = converted_bits(*from, n.value->type))
                                return {"(" + value_of_bits(type, *converted) + ")"};
                            return {"(" + value_of_bits(type, bits_of(n.value->type, text(n.value))) + ")"};
                          },
                          [&](const Load& n) -> Text { return load(n, type); },
                          [&](const Address& n) -> Text { return address(n); },
                          [&](const Intrinsic& n) -> Text {
                            std::vector<std::string> args;
                            for (const Expr& a : n.args) args.push_back(text(a));
                            const Text t = function(n.function, n.args[0]->type, args);
                            const FunctionInfo& row = info(n.function);
                            const DType of = n.args[0]->type;
                            const bool exact = row.is_predicate || (type.is_float() && is_closed(n.function, of));
                            const bool narrow = is_narrow_float(type) || type == tf32 || type.bits == 4;
                            return exact || !narrow ? t : rounded(type, t);
                          },
                      });
}

std::string CFamily::bits(const Expr& e) {
  if (const auto* n = e.as<Load>()) return load_bits(*n, e->type);
  if (const auto* n = e.as<Select>())
    if (auto chosen = choice_bits(*n)) return *std::move(chosen);
  if (const auto* n = e.as<Select>(); n && !choice(*n))
    return in(value(n->condition), Binds::Or) + " ? (" + bits(n->a) + ") : (" + bits(n->b) + ")";
  if (const auto* n = e.as<Cast>())
    if (auto converted = converted_bits(*n, e->type)) return *std::move(converted);
  // Bits that become a value only to be stored stay bits.
  if (const auto* n = e.as<Bitcast>(); n && is_narrow_float(e->type) && n->value->type.is_int() && e->type.bits >= 8)
    return fmt::format("(uint{}_t)({})", e->type.storage_bits(), text(n->value));
  const Text v = value(e);
  // What is rounded on its way to memory need not be rounded before.
  if (v.unrounded.empty() || !e->type.is_float()) return keep_text(e->type, v.text, pieces_);
  return store_text(e->type, v.unrounded, pieces_);
}

void CFamily::open(const std::string& head) {
  line(head);
  ++depth_;
  names_.open();
}
void CFamily::reopen(const std::string& head) {
  names_.close();
  --depth_;
  open(head);
}
void CFamily::close(const std::string& tail) {
  names_.close();
  --depth_;
  line(tail);
}

void CFamily::note_source(const Stmt& s) {
  if (s->location.index == 0) return;
  const SourceLocation& at = program_.location(s->location);
  const std::string source = source_mark(at);
  if (!at.known() || source == last_source_) return;
  last_source_ = source;
  marks_.push_back(at);
  line(source);
}

void CFamily::body(const Body& b) {
  const std::set<BufferId> mine = locals_of(b);
  for (BufferId id : mine) {
    declared_.insert(id);
    declare_local(id);
  }
  for (size_t i = 0; i < b.size();) {
    if (const size_t written = target_statements(b, i); written > 0) {
      i += written;
      continue;
    }
    statement(b[i++]);
  }
  for (BufferId id : mine) declared_.erase(id);
}

namespace {

constexpr int64_t kUnrolledStatements = 2048;  // a host compiler takes half a minute for some 5,000 that hold loops
constexpr int64_t kLoopStatements = 8;         // a loop that stays, beside its body

// How often the body of a loop is written, whose statements come to `size`.
int64_t unrolled_times(const For& n, int64_t size) {
  const int64_t extent = constant_int(n.extent).value_or(4);
  const bool may = n.kind == LoopKind::Unroll && extent > 1 && extent <= 64;
  return may && extent * size <= kUnrolledStatements ? extent : 1;
}

// Statements of a body whose loops are unrolled as they say.
int64_t unrolled_size(const Body& body) {
  int64_t size = 0;
  for (const Stmt& s : body) {
    int64_t inside = 0;
    for_each_body(s, [&](const Body& b) { inside += unrolled_size(b); });
    const auto* loop = s.as<For>();
    const int64_t times = loop ? unrolled_times(*loop, inside) : 1;
    size += times > 1 ? times * inside : 1 + inside + (loop ? kLoopStatements : 0);
  }
  return size;
}

}  // namespace

std::string CFamily::loop_pragma(const For& n) const {
  if (n.kind == LoopKind::Vectorized) return "#pragma GCC ivdep";
  const int64_t times = unrolled_times(n, unrolled_size(n.body));
  return times > 1 ? fmt::format("#pragma GCC unroll {}", times) : "";
}

// Fewer turns than none are none: a negative begin and a negative extent may add up to a large number.
Expr CFamily::end_of(const For& n) const {
  const Expr none = ir::constant(n.extent->type, int64_t{0});
  const bool falls = may_be_negative(n.begin) && may_be_negative(n.extent);
  return without_overflow(add(n.begin, falls ? ir::binary(BinaryOp::Max, n.extent, none) : n.extent));
}

void CFamily::for_loop(const For& n) {
  if (target_loop(n)) return;
  const VarInfo& v = program_.var(n.var);
  const std::string begin = text(n.begin);
  const Expr last = end_of(n);
  std::string end = text(last);
  if (!is_constant(last) && !last.as<Var>()) {  // once, before the loop
    const std::string bound = names_.fresh(v.name + "_end");
    line(fmt::format("const {} {} = {};", c_type(v.type), bound, end));
    end = bound;
  }
  names_.open();
  const std::string name = names_.declare(n.var, v.name);
  if (const std::string pragma = loop_pragma(n); !pragma.empty()) line(pragma);
  open(fmt::format("for ({0} {1} = {2}; {1} < {3}; ++{1}) {{", c_type(v.type), name, begin, end));
  begin_turn(n);
  body(n.body);
  close();
  names_.close();
}

void CFamily::statement(const Stmt& s) {
  note_source(s);
  if (const auto* n = s.as<Let>()) {
    const std::string v = text(n->value);
    const std::string name = names_.declare(n->var, program_.var(n->var).name);
    return line(fmt::format("const {} {} = {};", c_type(n->value->type), name, v));
  }
  if (const auto* n = s.as<Store>()) return store(*n);
  if (const auto* n = s.as<For>(); n && n->kind != LoopKind::Grid) return for_loop(*n);
  if (const auto* n = s.as<While>()) {
    open(fmt::format("while ({}) {{", text(n->condition)));
    begin_turn(*n);
    body(n->body);
    return close();
  }
  if (const auto* n = s.as<If>()) {
    open(fmt::format("if ({}) {{", text(n->condition)));
    body(n->then_body);
    if (!n->else_body.empty()) {
      reopen("} else {");
      body(n->else_body);
    }
    return close();
  }
  if (s.as<Assume>()) return;  // a promise: nothing to compute
  if (s.as<Break>()) return line("break;");
  if (s.as<Continue>()) return line("continue;");
  if (s.as<Return>()) return line("return;");
  target_statement(s);
}

}  // namespace tilewright::codegen
