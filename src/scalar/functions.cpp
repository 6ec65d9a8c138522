#include "scalar/functions.h"

#include <cmath>

#include "scalar/dtype_rows.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

using enum Function;
using enum Operands;
constexpr bool kPredicate = true, kClosed = true;

// Bounds of Exp, Exp2, Exp10, Log, Log2, Log10, Tanh, Erf, Sigmoid and Rsqrt were measured over all 2^32 floats against
// the C library's double (rounded up in the second digit); functions computed in double and rounded once are within
// 0.51.
constexpr FunctionInfo kFunctions[] = {
    {Add, "ieee_add", 2, Number, "add", false, false, 0.5},
    {Sub, "ieee_sub", 2, Number, "sub", false, false, 0.5},
    {Mul, "ieee_mul", 2, Number, "mul", false, false, 0.5},
    {Div, "ieee_fdiv", 2, Float, "div", false, false, 0.5},
    {Fma, "ieee_fmaf", 3, Float, "fma", false, false, 0.5},
    {Sqrt, "sqrt", 1, Float, "sqrt", false, false, 0.5},
    {Rcp, "ieee_frcp", 1, Float, "rcp", false, false, 0.5},
    {RsqrtRn, "ieee_frsqrt", 1, Float, "rsqrt_rn", false, false, 0.5},
    {Abs, "abs", 1, Number, "abs", false, kClosed},
    {Neg, "neg", 1, Number, "neg", false, kClosed},
    {Floor, "floor", 1, Float, "floor", false, kClosed},
    {Ceil, "ceil", 1, Float, "ceil", false, kClosed},
    {Trunc, "trunc", 1, Float, "trunc", false, kClosed},
    {Rint, "nearbyint", 1, Float, "rint", false, kClosed},
    {Round, "round", 1, Float, "round", false, kClosed},
    {NextAfter, "nextafter", 2, WideFloat, "nextafter"},
    {Ldexp, "ldexp", 2, Float, "ldexp", false, false, 0.5},
    {AddRz, "ieee_add_rz", 2, WideFloat, "add_rz", false, false, 0.5},
    {AddRu, "ieee_add_ru", 2, WideFloat, "add_ru", false, false, 0.5},
    {AddRd, "ieee_add_rd", 2, WideFloat, "add_rd", false, false, 0.5},
    {MulRz, "ieee_mul_rz", 2, WideFloat, "mul_rz", false, false, 0.5},
    {MulRu, "ieee_mul_ru", 2, WideFloat, "mul_ru", false, false, 0.5},
    {MulRd, "ieee_mul_rd", 2, WideFloat, "mul_rd", false, false, 0.5},
    {DivRz, "ieee_fdiv_rz", 2, WideFloat, "div_rz", false, false, 0.5},
    {DivRu, "ieee_fdiv_ru", 2, WideFloat, "div_ru", false, false, 0.5},
    {DivRd, "ieee_fdiv_rd", 2, WideFloat, "div_rd", false, false, 0.5},
    {FmaRz, "ieee_fmaf_rz", 3, WideFloat, "fma_rz", false, false, 0.5},
    {FmaRu, "ieee_fmaf_ru", 3, WideFloat, "fma_ru", false, false, 0.5},
    {FmaRd, "ieee_fmaf_rd", 3, WideFloat, "fma_rd", false, false, 0.5},
    {SqrtRz, "ieee_fsqrt_rz", 1, WideFloat, "sqrt_rz", false, false, 0.5},
    {SqrtRu, "ieee_fsqrt_ru", 1, WideFloat, "sqrt_ru", false, false, 0.5},
    {SqrtRd, "ieee_fsqrt_rd", 1, WideFloat, "sqrt_rd", false, false, 0.5},
    {Copysign, "copysign", 2, Float, "copysign", false, kClosed},
    {Fmod, "fmod", 2, Float, "fmod", false, kClosed},
    {Min, "min", 2, Number, "min", false, kClosed},
    {Max, "max", 2, Number, "max", false, kClosed},
    {MinNan, "min_nan", 2, Float, "min_nan", false, kClosed},
    {MaxNan, "max_nan", 2, Float, "max_nan", false, kClosed},
    {Clamp, "clamp", 3, Number, "clamp", false, kClosed},
    {IsNan, "isnan", 1, Float, "isnan", kPredicate, kClosed},
    {IsInf, "isinf", 1, Float, "isinf", kPredicate, kClosed},
    {IsFinite, "isfinite", 1, Float, "isfinite", kPredicate, kClosed},
    {FloorDiv, "floordiv", 2, Int, "floordiv"},
    {FloorMod, "floormod", 2, Int, "floormod"},
    {TruncDiv, "truncdiv", 2, Int, "truncdiv"},
    {TruncMod, "truncmod", 2, Int, "truncmod"},
    {Shl, "shift_left", 2, Int, "shl"},
    {Shr, "shift_right", 2, Int, "shr"},
    {Popcount, "popcount", 1, WideInt, "popcount"},
    {Clz, "clz", 1, WideInt, "clz"},
    {Ffs, "ffs", 1, WideInt, "ffs"},
    {Brev, "brev", 1, WideInt, "brev"},
    {Mulhi, "mulhi", 2, WideInt, "mulhi"},
    {Dp4a, "dp4a", 3, Int32, "dp4a"},
    {Exp, "exp", 1, Float, "exp", false, false, 0.9},
    {Exp2, "exp2", 1, Float, "exp2", false, false, 1.0},
    {Exp10, "exp10", 1, Float, "exp10", false, false, 1.1},
    {Expm1, "expm1", 1, Float, "expm1", false, false, 1.6},
    {Log, "log", 1, Float, "log", false, false, 1.0},
    {Log2, "log2", 1, Float, "log2", false, false, 1.3},
    {Log10, "log10", 1, Float, "log10", false, false, 1.4},
    {Log1p, "log1p", 1, Float, "log1p", false, false, 1.8},
    {Sin, "sin", 1, Float, "sin", false, false, 1.7},
    {Cos, "cos", 1, Float, "cos", false, false, 1.7},
    {Tan, "tan", 1, Float, "tan", false, false, 2.8},
    {Asin, "asin", 1, Float, "asin", false, false, 0.51},
    {Acos, "acos", 1, Float, "acos", false, false, 0.51},
    {Atan, "atan", 1, Float, "atan", false, false, 0.51},
    {Atan2, "atan2", 2, Float, "atan2", false, false, 0.51},
    {Sinh, "sinh", 1, Float, "sinh", false, false, 0.51},
    {Cosh, "cosh", 1, Float, "cosh", false, false, 0.51},
    {Tanh, "tanh", 1, Float, "tanh", false, false, 1.6},
    {Asinh, "asinh", 1, Float, "asinh", false, false, 0.51},
    {Acosh, "acosh", 1, Float, "acosh", false, false, 0.51},
    {Atanh, "atanh", 1, Float, "atanh", false, false, 0.51},
    {Erf, "erf", 1, Float, "erf", false, false, 1.1},
    {Hypot, "hypot", 2, Float, "hypot", false, false, 0.51},
    {Pow, "pow", 2, Float, "pow", false, false, 0.51},
    {Rsqrt, "rsqrt", 1, Float, "rsqrt", false, false, 1.5},
    {RcpApprox, "rcp_approx", 1, Float, "rcp_approx", false, false, 1.0},
    {Sigmoid, "sigmoid", 1, Float, "sigmoid", false, false, 2.5},
    // CUDA C++ Programming Guide, "Intrinsic Functions": 2 + |1.173 x| ULP, 2 + |2.97 x| ULP, and 2^-21.41 absolutely.
    {FastExp, "__exp", 1, Float, "exp", false, false, 106},
    {FastExp10, "__exp10", 1, Float, "exp10", false, false, 116},
    {FastLog, "__log", 1, Float, "log", false, false, 6},
    {FastLog2, "__log2", 1, Float, "log2", false, false, 6},
    {FastLog10, "__log10", 1, Float, "log10", false, false, 6},
    {FastSin, "__sin", 1, Float, "sin", false, false, 6},
    {FastCos, "__cos", 1, Float, "cos", false, false, 6},
    {FastTan, "__tan", 1, Float, "tan", false, false, 24},
};

constexpr bool rows_are_in_order() {
  for (size_t i = 0; i < std::size(kFunctions); ++i)
    if (static_cast<size_t>(kFunctions[i].function) != i) return false;
  return true;
}
static_assert(rows_are_in_order());

struct Alias {
  std::string_view name;
  Function function;
};
constexpr Alias kAliases[] = {
    {"__exp2", Exp2}, {"__pow", Pow}, {"fast_rcp", Rcp}, {"ieee_fsqrt", Sqrt}, {"rcp", Rcp},       {"ieee_sqrt", Sqrt},
    {"fabs", Abs},    {"rint", Rint}, {"shl", Shl},      {"shr", Shr},         {"popc", Popcount}, {"add", Add},
    {"sub", Sub},     {"fmul", Mul},  {"fma", Fma},      {"fmin", Min},        {"fmax", Max},
};

}  // namespace

const FunctionInfo& info(Function function) { return kFunctions[static_cast<size_t>(function)]; }

std::span<const FunctionInfo> all_functions() { return kFunctions; }

std::optional<Function> function_named(std::string_view name) {
  for (const FunctionInfo& row : kFunctions)
    if (row.name == name) return row.function;
  for (const Alias& row : kAliases)
    if (row.name == name) return row.function;
  return std::nullopt;
}

bool is_approximation(Function function) { return function >= FastExp && function <= FastTan; }

Function exact_of(Function function) {
  return is_approximation(function) ? *function_named(info(function).stem) : function;
}

bool is_closed(Function function, DType type) {
  const FunctionInfo& row = info(function);
  if (!row.is_closed || row.is_predicate || !type.is_float() || type.bits >= 32) return row.is_closed;
  switch (function) {
    case Abs:
    case Min:
    case Max:
    case MinNan:
    case MaxNan:
    case Clamp: return true;  // one of the operands, but for its sign
    default: break;
  }
  const bool one_zero = type == e4m3fnuz || type == e5m2fnuz || type == e4m3b11fnuz;
  const bool rounds =
      function == Floor || function == Ceil || function == Trunc || function == Rint || function == Round;
  const double largest = dtype_row(type)->largest;
  return !one_zero && (!rounds || std::floor(largest) == largest);
}

bool accepts(Function function, DType type) {
  const bool is_float = type.is_float() && type != e8m0;
  switch (info(function).operands) {
    case Operands::Float: return is_float;
    case Operands::WideFloat: return type == f32 || type == f64;
    case Operands::Int: return type.is_int();
    case Operands::WideInt: return type.is_int() && type.bits >= 8;
    case Operands::Int32: return type.is_int() && type.bits == 32;
    case Operands::Number: return is_float || type.is_int();
  }
  return false;
}

DType result_type(Function function, DType type) { return info(function).is_predicate ? boolean : type; }

std::string_view c_type(DType type) {
  if (type.is_float()) return type == f64 ? "double" : "float";
  if (type.is_bool()) return "uint8_t";
  if (type.is_pointer()) return "uint64_t";
  switch (type.bits) {
    case 4:
    case 8: return type.is_signed() ? "int8_t" : "uint8_t";
    case 16: return type.is_signed() ? "int16_t" : "uint16_t";
    case 32: return type.is_signed() ? "int32_t" : "uint32_t";
    default: return type.is_signed() ? "int64_t" : "uint64_t";
  }
}

std::string c_name(Function function, DType type) {
  const FunctionInfo& row = info(function);
  check_internal(accepts(function, type), "{} does not accept {}", row.name, type.name());
  if (type.is_int()) return fmt::format("{}<{}>", row.stem, c_type(type));
  return fmt::format("{}_{}", row.stem, type == f64 ? "f64" : "f32");
}

std::string narrowing(DType type) {
  if (type == i4) return "wrap_i4";
  if (type == u4) return "wrap_u4";
  if (!type.is_float() || type == f32 || type == f64) return "";
  return fmt::format("round_{}", dtype_row(type)->code);
}

}  // namespace tilewright
