// Operations on scalars: operators, conversions, constants, and every row of the table of scalar functions. Only reads
// of memory need a builder.
#include "capi/operations.h"
#include "scalar/functions.h"
#include "support/diagnostic.h"

namespace tilewright::capi {
namespace {

struct OperatorRow {
  const char* name;
  ir::Operator op;
  const char* doc;
};
constexpr OperatorRow kOperators[] = {
    {"add", ir::Operator::Add, "a + b"},
    {"sub", ir::Operator::Sub, "a - b"},
    {"mul", ir::Operator::Mul, "a * b"},
    {"div", ir::Operator::Div, "a / b, of floats"},
    {"floordiv", ir::Operator::FloorDiv, "a // b of integers, rounded down"},
    {"floormod", ir::Operator::FloorMod, "a % b of integers, with the sign of b"},
    {"truncdiv", ir::Operator::TruncDiv, "The quotient of integers, rounded toward zero, as in C."},
    {"truncmod", ir::Operator::TruncMod, "The remainder of truncdiv, with the sign of a, as in C."},
    {"min", ir::Operator::Min, "The smaller of two values; of NaN and a number the number."},
    {"max", ir::Operator::Max, "The larger of two values; of NaN and a number the number."},
    {"bitwise_and", ir::Operator::BitAnd, "a & b"},
    {"bitwise_or", ir::Operator::BitOr, "a | b"},
    {"bitwise_xor", ir::Operator::BitXor, "a ^ b"},
    {"shift_left", ir::Operator::Shl, "a << b"},
    {"shift_right", ir::Operator::Shr, "a >> b"},
    {"logical_and", ir::Operator::And, "a and b; b is evaluated only where a is true."},
    {"logical_or", ir::Operator::Or, "a or b; b is evaluated only where a is false."},
    {"equal", ir::Operator::Eq, "a == b"},
    {"not_equal", ir::Operator::Ne, "a != b"},
    {"less", ir::Operator::Lt, "a < b"},
    {"less_equal", ir::Operator::Le, "a <= b"},
    {"greater", ir::Operator::Gt, "a > b"},
    {"greater_equal", ir::Operator::Ge, "a >= b"},
};

const char* operand_names(const OperatorRow& row) {
  return row.op >= ir::Operator::BitAnd && row.op <= ir::Operator::Shr ? "x: expr, y: expr" : "a: expr, b: expr";
}

// What the table of scalar functions knows by these spellings too.
constexpr const char* kOtherSpellings[] = {"fma", "fabs"};

Result apply_operator(const Operation& op, const Operands& o) {
  return ir::apply(static_cast<ir::Operator>(op.variant), o.expr(0), o.expr(1), o.place());
}

Result apply_function(const Operation& op, const Operands& o) {
  const auto function = static_cast<Function>(op.variant);
  Exprs args;
  for (size_t i = 0; i < info(function).arity; ++i) args.push_back(o.expr(i));
  if (op.name.starts_with("__"))
    for (const ir::Expr& e : args)
      if (!e->type.is_float() || e->type.bits < 16)
        fail(Code::FunctionType, o.place(),
             fmt::format("T.{} only supports floating-point inputs, but got {}", op.name, e->type.name()),
             "cast the operand first");
  return ir::apply_function(function, std::move(args), o.place());
}

// "ieee_add" and its like with a rounding mode; the difference is the sum with the negative, rcp the quotient of 1.
Result rounded(const Operation& op, const Operands& o) {
  constexpr std::string_view kModes[] = {"rn", "rz", "ru", "rd"};
  const auto nearest = static_cast<Function>(op.variant);
  const size_t arity = info(nearest).arity;
  Exprs args;
  for (size_t i = 0; i < arity; ++i) args.push_back(o.expr(i));
  const std::string mode = o.text(arity, "rn");
  const auto found = std::find(std::begin(kModes), std::end(kModes), mode) - std::begin(kModes);
  if (found == std::ssize(kModes))
    fail(Code::BadOption, o.place(), fmt::format("Invalid rounding mode '{}' of {}", mode, op.name),
         "it is rn (to nearest), rz (toward zero), ru (up) or rd (down)");
  if (found == 0) return ir::apply_function(nearest, std::move(args), o.place());
  std::string name = op.name;
  if (nearest == Function::Sub) name = "ieee_add", args[1] = ir::apply_neg(args[1], o.place());
  if (nearest == Function::Rcp) name = "ieee_fdiv", args.insert(args.begin(), ir::constant(args[0]->type, 1.0));
  return ir::apply_function(*function_named(fmt::format("{}_{}", name, mode)), std::move(args), o.place());
}

// A whole power is a product: exact where the base is, and cheap.
Result power(const Operation&, const Operands& o) {
  constexpr int64_t kLongestProduct = 64;
  const ir::Expr x = o.expr(0), y = o.expr(1);
  const auto exponent = ir::constant_int(y);
  if (!exponent || *exponent < 0 || *exponent > kLongestProduct)
    return ir::apply_function(Function::Pow, {x, y}, o.place());
  if (*exponent == 0) return ir::constant(x->type, int64_t{1});
  ir::Expr product = x;
  for (int64_t i = 1; i < *exponent; ++i) product = ir::apply(ir::Operator::Mul, product, x, o.place());
  return product;
}

// c + a[0] * b[0] + ... + a[3] * b[3]: four bytes from an element of each tile on, or the four that an int32 packs.
Result dot_of_bytes(const Operation&, const Operands& o) {
  if (!o.is_memory(2)) return ir::apply_function(Function::Dp4a, {o.expr(0), o.expr(1), o.expr(2)}, o.place());
  const auto type_of = [&](size_t i) { return o.builder().buffer(o.tile(i).buffer).type; };
  if (!o.is_memory(0) || !o.is_memory(1) || type_of(0) != i8 || type_of(1) != i8 || type_of(2) != i32)
    fail(Code::FunctionType, o.place(), "dp4a requires int8 elements and an int32 element to add to",
         "convert them first, or use gemm");
  const auto a = o.run(0, 4), b = o.run(1, 4), c = o.run(2, 1);
  ir::Expr sum = o.builder().load(c[0]);
  for (size_t k = 0; k < a.size(); ++k) {
    const ir::Expr x = ir::apply_cast(o.builder().load(a[k]), i32, o.place());
    const ir::Expr y = ir::apply_cast(o.builder().load(b[k]), i32, o.place());
    sum = ir::apply(ir::Operator::Add, sum, ir::apply(ir::Operator::Mul, x, y, o.place()), o.place());
  }
  o.builder().store(c[0], sum);
  return {};
}

Result convert(const Operation&, const Operands& o) {
  const bool toward_zero = o.word(2, {"", "rn", "rz"}) == 2;
  if (!o.flag(3, true))
    fail(Code::BadOption, o.place(), "cast: sat=False, but values that are too large become the largest",
         "leave it out, or clamp and reinterpret");
  const ir::Expr value = o.expr(0);
  const DType type = o.dtype(1);
  if (!toward_zero || value->type == type) return ir::apply_cast(value, type, o.place());
  if (value->type.is_pointer() || !can_round(type, Rounding::TowardZero))
    fail(Code::BadOption, o.place(),
         fmt::format("cast: {} is not rounded toward zero to {}", value->type.name(), type.name()),
         "float16, bfloat16, tfloat32 and float8_e8m0 are; leave 'round' out");
  return ir::cast(value, type, Rounding::TowardZero);
}

Result round_to_integer(const Operation&, const Operands& o) {
  constexpr Function kModes[] = {Function::Rint, Function::Round, Function::Floor, Function::Ceil, Function::Trunc};
  const size_t mode = o.word(1, {"ties-to-even", "ties-away-from-zero", "floor", "ceil", "trunc"});
  return ir::apply_function(kModes[mode], {o.expr(0)}, o.place());
}

Result dynamic_symbol(const Operation&, const Operands& o) {
  const DType type = o.dtype(1);
  return ir::var(ir::new_free_var(o.text(0), type), type);
}

Result typed_constant(const Operation&, const Operands& o) {
  const ir::Expr value = o.expr(0);
  const DType type = o.dtype(1);
  if (const auto number = ir::constant_float(value); number && type.is_float()) return ir::constant(type, *number);
  return ir::apply_cast(value, type, o.place());
}

// Functions whose operands TileLang calls x1 and x2.
bool has_numbered_operands(const FunctionInfo& f) {
  switch (f.function) {
    case Function::Atan2:
    case Function::Copysign:
    case Function::Hypot:
    case Function::Ldexp:
    case Function::NextAfter: return true;
    default: return false;
  }
}

constexpr std::string_view kRounded[] = {"ieee_add",  "ieee_sub",  "ieee_mul",  "ieee_fdiv",
                                         "ieee_fmaf", "ieee_frcp", "ieee_fsqrt"};

// Those that take a rounding mode, and what they are with one.
bool is_rounded(std::string_view name) {
  return std::any_of(std::begin(kRounded), std::end(kRounded), [&](std::string_view r) { return name.starts_with(r); });
}

// The functions whose name means something else here, or that are operators.
bool has_its_own_row(std::string_view name) {
  static const std::set<std::string_view> rows = {"min",      "max",      "floordiv",   "floormod",
                                                  "truncdiv", "truncmod", "shift_left", "shift_right",
                                                  "pow",      "round",    "dp4a"};
  return rows.count(name) > 0 || is_rounded(name);
}

void add_functions(std::vector<Operation>& table) {
  constexpr const char* kSignatures[] = {"", "x: expr", "x: expr, y: expr", "x: expr, y: expr, z: expr"};
  for (const FunctionInfo& f : all_functions()) {
    if (has_its_own_row(f.name)) continue;
    const bool clamps = f.function == Function::Clamp;
    table.push_back({std::string(f.name), "scalar",
                     clamps                     ? "dst: expr, min_val: expr, max_val: expr"
                     : has_numbered_operands(f) ? "x1: expr, x2: expr"
                                                : kSignatures[f.arity],
                     is_approximation(f.function)
                         ? fmt::format("{}, as CUDA's approximation on a GPU, element by element.", f.stem)
                         : fmt::format("The scalar function {}, element by element.", f.name),
                     apply_function, static_cast<int>(f.function)});
  }
  for (const std::string_view name : kRounded) {
    const Function f = *function_named(name);
    constexpr const char* kModes = "rounding_mode: text = 'rn'";
    table.push_back({std::string(name), "scalar", fmt::format("{}, {}", kSignatures[info(f).arity], kModes),
                     "Rounded as rounding_mode says: rn (to nearest), rz (toward zero), ru (up), rd (down), the last "
                     "three of float32 and float64; never joined with another operation.",
                     rounded, static_cast<int>(f)});
  }
  for (const char* name : kOtherSpellings) {
    const auto f = function_named(name);
    const bool taken = std::any_of(table.begin(), table.end(), [&](const Operation& o) { return o.name == name; });
    if (f && !taken)
      table.push_back({name, "scalar", kSignatures[info(*f).arity], fmt::format("Another name of {}.", info(*f).name),
                       apply_function, static_cast<int>(*f)});
  }
}

}  // namespace

void add_scalar_operations(std::vector<Operation>& table) {
  for (const OperatorRow& row : kOperators)
    table.push_back({row.name, "scalar", operand_names(row), row.doc, apply_operator, static_cast<int>(row.op)});
  add_functions(table);
  const std::vector<Operation> rows = {
      {"negative", "scalar", "a: expr", "-a",
       [](const Operation&, const Operands& o) -> Result { return ir::apply_neg(o.expr(0), o.place()); }},
      {"bitwise_not", "scalar", "x: expr", "~x",
       [](const Operation&, const Operands& o) -> Result { return ir::apply_bit_not(o.expr(0), o.place()); }},
      {"logical_not", "scalar", "a: expr", "not a",
       [](const Operation&, const Operands& o) -> Result { return ir::apply_not(o.expr(0), o.place()); }},
      {"condition", "scalar", "a: expr", "A bool as it is; whether an integer is not zero.",
       [](const Operation&, const Operands& o) -> Result { return ir::as_condition(o.expr(0), o.place()); }},
      {"ceildiv", "scalar", "lhs: expr, rhs: expr", "The quotient of integers, rounded up.",
       [](const Operation&, const Operands& o) -> Result {
         return ir::apply_ceildiv(o.expr(0), o.expr(1), o.place());
       }},
      {"pow", "scalar", "x: expr, y: expr", "x to the power y; a whole constant y multiplies.", power},
      {"dp4a", "scalar", "A: tile, B: tile, C: tile",
       "Adds to C the products of four int8 elements of A and B from these elements on; of packed int32 values it is "
       "the sum.",
       dot_of_bytes},
      {"round", "scalar", "x: expr, rounding_mode: text = 'ties-to-even'", "To a whole number.", round_to_integer},
      {"cast", "scalar", "value: expr, dtype: dtype, round: text = '', sat: bool = True, rbits: ignored = None",
       "The value as another dtype: to nearest even, or with round='rz' toward zero; floats to integers truncate and "
       "saturate.",
       convert},
      {"reinterpret", "scalar", "value: expr, dtype: dtype", "The same bits as another dtype of that width.",
       [](const Operation&, const Operands& o) -> Result {
         return ir::apply_bitcast(o.expr(0), o.dtype(1), o.place());
       }},
      {"if_then_else", "scalar", "cond: expr, t: expr, f: expr",
       "t where the condition is true, else f; only that side is evaluated.",
       [](const Operation&, const Operands& o) -> Result {
         return ir::apply_select(o.expr(0), o.expr(1), o.expr(2), o.place());
       }},
      {"infinity", "scalar", "dtype: dtype", "Infinity of a float dtype.",
       [](const Operation&, const Operands& o) -> Result { return ir::infinity(o.dtype(0), o.place()); }},
      {"max_value", "scalar", "dtype: dtype", "The largest finite value of a dtype.",
       [](const Operation&, const Operands& o) -> Result { return ir::max_value(o.dtype(0)); }},
      {"min_value", "scalar", "dtype: dtype", "The least finite value of a dtype.",
       [](const Operation&, const Operands& o) -> Result { return ir::min_value(o.dtype(0)); }},
      {"constant", "scope", "value: expr, dtype: dtype", "A number of a dtype.", typed_constant},
      {"dynamic_symbol", "scope", "name: text, dtype: dtype", "A dimension or scalar that is known at the call.",
       dynamic_symbol},
      {"load", "scope", "element: expr", "The value of an element or a scalar variable.",
       [](const Operation&, const Operands& o) -> Result { return o.expr(0); }},
      {"let", "scope", "name: text, value: expr", "Evaluates the value here, once, and names it.",
       [](const Operation&, const Operands& o) -> Result {
         return o.builder_or_null() ? o.builder().let(o.text(0), o.expr(1)) : o.expr(1);
       }},
      {"address_of", "scalar", "obj: tile", "The address of an element of a global tensor.",
       [](const Operation&, const Operands& o) -> Result { return o.builder().address(o.tile(0)); }},
  };
  table.insert(table.end(), rows.begin(), rows.end());
}

}  // namespace tilewright::capi
