// Functions of elements, a row each.
#include "element_functions.h"

namespace tilewright::kernels {
namespace {

constexpr double kHalfRoot = 0.7071067811865476, kPhi0 = 0.3989422804014327;  // sqrt(1/2), 1 / sqrt(2 pi)
constexpr double kGeluRoot = 0.7978845608028654, kGeluCube = 0.044715, kLn2 = 0.6931471805599453;
constexpr double kLn10 = 2.302585092994046, kTwoByRootPi = 1.1283791670955126;
constexpr double kSelu = 1.0507009873554805, kSeluAlpha = 1.6732632423543772;

using V = Operands;

Value sigmoid_of(const Value& x) { return 1 / (1 + exp(-x)); }
Value gelu_tanh_of(const Value& x) { return tanh(kGeluRoot * (x + kGeluCube * x * x * x)); }
Value softplus_of(const Value& x) { return max(x, 0.0) + log1p(exp(-abs(x))); }
Value root_of(const Value& x) { return sqrt(x); }
// NaN where one of them is.
Value with_nan(const Value& a, const Value& b, const Value& otherwise) {
  if (!a.dtype().is_float()) return otherwise;
  return if_then_else(isnan(a), a, if_then_else(isnan(b), b, otherwise));
}
Value larger(const Value& a, const Value& b) { return with_nan(a, b, max(a, b)); }
Value smaller(const Value& a, const Value& b) { return with_nan(a, b, min(a, b)); }
Value zero_of(const Value& x) { return cast(0, x.dtype()); }
Value truth(const Value& x) { return x.dtype().is_bool() ? x : Value(x != zero_of(x)); }
// With the sign of b, as Python's.
Value remainder_of(const Value& a, const Value& b) {
  const Value r = fmod(a, b);
  return if_then_else(r != 0.0 && (r < 0.0) != (b < 0.0), r + b, r);
}
// A whole quotient with the sign of a / b, which is what it is if b is 0.
Value with_sign_of_quotient(const Value& whole, const Value& a, const Value& b) {
  return if_then_else(b == 0.0, a / b, if_then_else(whole == 0.0, copysign(whole, a / b), whole));
}
// The whole number of times that b goes into a, from the exact remainder: a / b is rounded. NaN of infinities, which
// have no remainder.
Value floor_of_quotient(const Value& a, const Value& b) {
  const Value r = fmod(a, b);
  const Value whole = nearbyint((a - r) / b);
  return with_sign_of_quotient(if_then_else(r != 0.0 && (r < 0.0) != (b < 0.0), whole - 1.0, whole), a, b);
}
Value whole_of_quotient(const Value& a, const Value& b) {
  const Value whole = nearbyint((a - fmod(a, b)) / b);
  return with_sign_of_quotient(if_then_else(isfinite(whole), whole, trunc(a / b)), a, b);
}
Value hardsigmoid_of(const Value& x) { return if_then_else(x < -3, 0.0, if_then_else(x > 3, 1.0, (x + 3) / 6)); }
Value joined(const Value& a, const Value& b, bool all) {
  if (a.dtype().is_bool()) return all ? Value(a && b) : Value(a || b);
  return all ? Value(a & b) : Value(a | b);
}

Value none(const V&) { return 0.0; }
Value one(const V&) { return 1.0; }

constexpr Computes kNumbers = Computes::Numbers, kIntegers = Computes::Integers, kAny = Computes::Any;

// clang-format off
const ElementFunction kFunctions[] = {
    // Activations. Comparisons are such that NaN stays NaN, which max() would drop.
    {"relu", 1, [](const V& v) -> Value { return if_then_else(v[0] < 0, zero_of(v[0]), v[0]); },
     [](const V& v) -> Value { return if_then_else(v[0] > 0, 1.0, 0.0); }, kNumbers},
    {"relu6", 1, [](const V& v) -> Value { return if_then_else(v[0] < 0, 0.0, if_then_else(v[0] > 6, 6.0, v[0])); },
     [](const V& v) -> Value { return if_then_else(v[0] > 0 && v[0] < 6, 1.0, 0.0); }},
    {"gelu", 1, [](const V& v) -> Value { return 0.5 * v[0] * (1 + erf(v[0] * kHalfRoot)); },
     [](const V& v) -> Value { return 0.5 * (1 + erf(v[0] * kHalfRoot)) + v[0] * kPhi0 * exp(-0.5 * v[0] * v[0]); }},
    {"gelu_tanh", 1, [](const V& v) -> Value { return 0.5 * v[0] * (1 + gelu_tanh_of(v[0])); },
     [](const V& v) -> Value {
       const Value t = gelu_tanh_of(v[0]);
       return 0.5 * (1 + t) + 0.5 * v[0] * (1 - t * t) * kGeluRoot * (1 + 3 * kGeluCube * v[0] * v[0]);
     }},
    {"silu", 1, [](const V& v) -> Value { return v[0] / (1 + exp(-v[0])); },
     [](const V& v) -> Value { const Value s = sigmoid_of(v[0]); return s * (1 + v[0] * (1 - s)); }},
    {"sigmoid", 1, [](const V& v) -> Value { return sigmoid_of(v[0]); },
     [](const V& v) -> Value { const Value s = sigmoid_of(v[0]); return s * (1 - s); }},
    {"log_sigmoid", 1, [](const V& v) -> Value { return -softplus_of(-v[0]); },
     [](const V& v) -> Value { return 1 / (1 + exp(v[0])); }},
    {"tanh", 1, [](const V& v) -> Value { return tanh(v[0]); },
     [](const V& v) -> Value { const Value t = tanh(v[0]); return 1 - t * t; }},
    {"tanhshrink", 1, [](const V& v) -> Value { return v[0] - tanh(v[0]); },
     [](const V& v) -> Value { const Value t = tanh(v[0]); return t * t; }},
    {"softsign", 1, [](const V& v) -> Value { return v[0] / (1 + abs(v[0])); },
     [](const V& v) -> Value { const Value d = 1 + abs(v[0]); return 1 / (d * d); }},
    {"mish", 1, [](const V& v) -> Value { return v[0] * tanh(softplus_of(v[0])); },
     [](const V& v) -> Value {
       const Value t = tanh(softplus_of(v[0]));
       return t + v[0] * (1 - t * t) * sigmoid_of(v[0]);
     }},
    {"hardsigmoid", 1, [](const V& v) { return hardsigmoid_of(v[0]); }, [](const V& v) -> Value { return if_then_else(v[0] > -3 && v[0] < 3, 1.0 / 6, 0.0); }},
    {"hardswish", 1, [](const V& v) -> Value { return v[0] * hardsigmoid_of(v[0]); },
     [](const V& v) -> Value { return if_then_else(v[0] < -3, 0.0, if_then_else(v[0] > 3, 1.0, v[0] / 3 + 0.5)); }},
    {"selu", 1, [](const V& v) -> Value { return kSelu * if_then_else(v[0] > 0, v[0], kSeluAlpha * expm1(v[0])); },
     [](const V& v) -> Value { return kSelu * if_then_else(v[0] > 0, 1.0, kSeluAlpha * exp(v[0])); }},
    {"softplus", 3, [](const V& v) -> Value {
       const Value x = v[0] * v[1];
       return if_then_else(x > v[2], v[0], softplus_of(x) / v[1]);
     }, [](const V& v) -> Value { return if_then_else(v[0] * v[1] > v[2], 1.0, sigmoid_of(v[0] * v[1])); }},
    {"leaky_relu", 2, [](const V& v) -> Value { return if_then_else(v[0] > 0, v[0], v[0] * v[1]); },
     [](const V& v) -> Value { return if_then_else(v[0] > 0, 1.0, v[1]); }},
    {"elu", 2, [](const V& v) -> Value { return if_then_else(v[0] > 0, v[0], v[1] * expm1(v[0])); },
     [](const V& v) -> Value { return if_then_else(v[0] > 0, 1.0, v[1] * exp(v[0])); }},
    {"celu", 2, [](const V& v) -> Value { return if_then_else(v[0] > 0, v[0], v[1] * expm1(v[0] / v[1])); },
     [](const V& v) -> Value { return if_then_else(v[0] > 0, 1.0, exp(v[0] / v[1])); }},
    {"hardtanh", 3, [](const V& v) -> Value { return if_then_else(v[0] < v[1], v[1], if_then_else(v[0] > v[2], v[2], v[0])); },
     [](const V& v) -> Value { return if_then_else(v[0] > v[1] && v[0] < v[2], 1.0, 0.0); }},
    {"hardshrink", 2, [](const V& v) -> Value { return if_then_else(abs(v[0]) <= v[1], 0.0, v[0]); },
     [](const V& v) -> Value { return if_then_else(abs(v[0]) <= v[1], 0.0, 1.0); }},
    {"softshrink", 2, [](const V& v) -> Value {
       return if_then_else(abs(v[0]) <= v[1], 0.0, if_then_else(v[0] > 0, v[0] - v[1], v[0] + v[1]));
     }, [](const V& v) -> Value { return if_then_else(abs(v[0]) > v[1], 1.0, 0.0); }},
    {"threshold", 3, [](const V& v) -> Value { return if_then_else(v[0] <= v[1], v[2], v[0]); },
     [](const V& v) -> Value { return if_then_else(v[0] <= v[1], 0.0, 1.0); }},
    {"prelu", 2, [](const V& v) -> Value { return if_then_else(v[0] > 0, v[0], v[0] * v[1]); }},
    // Mathematics.
    {"exp", 1, [](const V& v) -> Value { return exp(v[0]); }, [](const V& v) -> Value { return exp(v[0]); }},
    {"exp2", 1, [](const V& v) -> Value { return exp2(v[0]); }, [](const V& v) -> Value { return kLn2 * exp2(v[0]); }},
    {"expm1", 1, [](const V& v) -> Value { return expm1(v[0]); }, [](const V& v) -> Value { return exp(v[0]); }},
    {"log", 1, [](const V& v) -> Value { return log(v[0]); }, [](const V& v) -> Value { return 1 / v[0]; }},
    {"log2", 1, [](const V& v) -> Value { return log2(v[0]); }, [](const V& v) -> Value { return 1 / (kLn2 * v[0]); }},
    {"log10", 1, [](const V& v) -> Value { return log10(v[0]); }, [](const V& v) -> Value { return 1 / (kLn10 * v[0]); }},
    {"log1p", 1, [](const V& v) -> Value { return log1p(v[0]); }, [](const V& v) -> Value { return 1 / (1 + v[0]); }},
    {"sqrt", 1, [](const V& v) -> Value { return root_of(v[0]); }, [](const V& v) -> Value { return 0.5 / sqrt(v[0]); }},
    {"rsqrt", 1, [](const V& v) -> Value { return rsqrt(v[0]); }, [](const V& v) -> Value { return -0.5 * rsqrt(v[0]) / v[0]; }},
    {"reciprocal", 1, [](const V& v) -> Value { return 1 / v[0]; }, [](const V& v) -> Value { return -1 / (v[0] * v[0]); }},
    {"square", 1, [](const V& v) -> Value { return v[0] * v[0]; }, [](const V& v) -> Value { return 2 * v[0]; }, kNumbers},
    {"abs", 1, [](const V& v) -> Value { return if_then_else(v[0] < 0, -v[0], v[0].dtype().is_float() ? Value(abs(v[0])) : v[0]); },
     [](const V& v) -> Value { return if_then_else(v[0] > 0, 1.0, if_then_else(v[0] < 0, -1.0, 0.0)); }, kNumbers},
    {"neg", 1, [](const V& v) -> Value { return -v[0]; }, [](const V&) -> Value { return -1.0; }, kNumbers},
    {"sign", 1, [](const V& v) -> Value {
       const Value zero = zero_of(v[0]), least = cast(-1, v[0].dtype()), most = cast(1, v[0].dtype());
       const Value otherwise = if_then_else(v[0] > zero, most, if_then_else(v[0] < zero, least, zero));
       return with_nan(v[0], v[0], otherwise);
     }, none, kNumbers},
    {"sin", 1, [](const V& v) -> Value { return sin(v[0]); }, [](const V& v) -> Value { return cos(v[0]); }},
    {"cos", 1, [](const V& v) -> Value { return cos(v[0]); }, [](const V& v) -> Value { return -sin(v[0]); }},
    {"tan", 1, [](const V& v) -> Value { return tan(v[0]); }, [](const V& v) -> Value { const Value t = tan(v[0]); return 1 + t * t; }},
    {"asin", 1, [](const V& v) -> Value { return asin(v[0]); }, [](const V& v) -> Value { return 1 / sqrt((1 - v[0]) * (1 + v[0])); }},
    {"acos", 1, [](const V& v) -> Value { return acos(v[0]); }, [](const V& v) -> Value { return -1 / sqrt((1 - v[0]) * (1 + v[0])); }},
    {"atan", 1, [](const V& v) -> Value { return atan(v[0]); }, [](const V& v) -> Value { return 1 / (1 + v[0] * v[0]); }},
    {"sinh", 1, [](const V& v) -> Value { return sinh(v[0]); }, [](const V& v) -> Value { return cosh(v[0]); }},
    {"cosh", 1, [](const V& v) -> Value { return cosh(v[0]); }, [](const V& v) -> Value { return sinh(v[0]); }},
    {"asinh", 1, [](const V& v) -> Value { return asinh(v[0]); }, [](const V& v) -> Value { return 1 / sqrt(v[0] * v[0] + 1); }},
    {"acosh", 1, [](const V& v) -> Value { return acosh(v[0]); }, [](const V& v) -> Value { return 1 / (sqrt(v[0] - 1) * sqrt(v[0] + 1)); }},
    {"atanh", 1, [](const V& v) -> Value { return atanh(v[0]); }, [](const V& v) -> Value { return 1 / ((1 - v[0]) * (1 + v[0])); }},
    {"erf", 1, [](const V& v) -> Value { return erf(v[0]); }, [](const V& v) -> Value { return kTwoByRootPi * exp(-v[0] * v[0]); }},
    {"floor", 1, [](const V& v) -> Value { return floor(v[0]); }, none},
    {"ceil", 1, [](const V& v) -> Value { return ceil(v[0]); }, none},
    {"trunc", 1, [](const V& v) -> Value { return trunc(v[0]); }, none},
    {"round", 1, [](const V& v) -> Value { return nearbyint(v[0]); }, none},
    {"frac", 1, [](const V& v) -> Value { return v[0] - trunc(v[0]); }, one},
    {"nan_to_num", 4, [](const V& v) -> Value {
       return if_then_else(isnan(v[0]), v[1], if_then_else(isinf(v[0]), if_then_else(v[0] > 0, v[2], v[3]), v[0]));
     }, [](const V& v) -> Value { return if_then_else(isfinite(v[0]), 1.0, 0.0); }},
    // What has another type, or any.
    {"cast", 1, [](const V& v) { return v[0]; }, nullptr, kAny},
    {"isnan", 1, [](const V& v) -> Value { return isnan(v[0]); }},
    {"isinf", 1, [](const V& v) -> Value { return isinf(v[0]); }},
    {"isfinite", 1, [](const V& v) -> Value { return isfinite(v[0]); }},
    {"eq", 2, [](const V& v) -> Value { return v[0] == v[1]; }, nullptr, kAny},
    {"ne", 2, [](const V& v) -> Value { return v[0] != v[1]; }, nullptr, kAny},
    {"gt", 2, [](const V& v) -> Value { return v[0] > v[1]; }, nullptr, kNumbers},
    {"lt", 2, [](const V& v) -> Value { return v[0] < v[1]; }, nullptr, kNumbers},
    {"ge", 2, [](const V& v) -> Value { return v[0] >= v[1]; }, nullptr, kNumbers},
    {"le", 2, [](const V& v) -> Value { return v[0] <= v[1]; }, nullptr, kNumbers},
    {"logical_not", 1, [](const V& v) -> Value { return !truth(v[0]); }, nullptr, kAny},
    {"logical_and", 2, [](const V& v) -> Value { return truth(v[0]) && truth(v[1]); }, nullptr, kAny},
    {"logical_or", 2, [](const V& v) -> Value { return truth(v[0]) || truth(v[1]); }, nullptr, kAny},
    {"logical_xor", 2, [](const V& v) -> Value { return truth(v[0]) != truth(v[1]); }, nullptr, kAny},
    {"bitwise_not", 1, [](const V& v) -> Value { return v[0].dtype().is_bool() ? Value(!v[0]) : Value(~v[0]); }, nullptr, kIntegers},
    {"bitwise_and", 2, [](const V& v) { return joined(v[0], v[1], true); }, nullptr, kIntegers},
    {"bitwise_or", 2, [](const V& v) { return joined(v[0], v[1], false); }, nullptr, kIntegers},
    {"bitwise_xor", 2, [](const V& v) -> Value { return v[0].dtype().is_bool() ? Value(v[0] != v[1]) : Value(v[0] ^ v[1]); }, nullptr, kIntegers},
    // Of several operands.
    {"add", 2, [](const V& v) -> Value { return v[0] + v[1]; }, nullptr, kNumbers},
    {"sub", 2, [](const V& v) -> Value { return v[0] - v[1]; }, nullptr, kNumbers},
    {"mul", 2, [](const V& v) -> Value { return v[0] * v[1]; }, nullptr, kNumbers},
    {"div", 2, [](const V& v) -> Value { return v[0] / v[1]; }},
    {"add_scaled", 3, [](const V& v) -> Value { return v[0] + v[2] * v[1]; }, nullptr, kNumbers},
    {"pow", 2, [](const V& v) -> Value { return pow(v[0], v[1]); }},
    {"remainder", 2, [](const V& v) { return remainder_of(v[0], v[1]); }},
    {"fmod", 2, [](const V& v) -> Value { return fmod(v[0], v[1]); }},
    {"floor_divide", 2, [](const V& v) { return floor_of_quotient(v[0], v[1]); }},
    {"trunc_divide", 2, [](const V& v) { return whole_of_quotient(v[0], v[1]); }},
    {"atan2", 2, [](const V& v) -> Value { return atan2(v[0], v[1]); }},
    {"hypot", 2, [](const V& v) -> Value { return scalar_function("hypot", {v[0], v[1]}); }},
    {"copysign", 2, [](const V& v) -> Value { return copysign(v[0], v[1]); }},
    {"logaddexp", 2, [](const V& v) -> Value {
       const Value most = larger(v[0], v[1]);
       return if_then_else(v[0] == v[1], most + kLn2, most + log1p(exp(-abs(v[0] - v[1]))));
     }},
    {"maximum", 2, [](const V& v) { return larger(v[0], v[1]); }, nullptr, kNumbers},
    {"minimum", 2, [](const V& v) { return smaller(v[0], v[1]); }, nullptr, kNumbers},
    {"fmax", 2, [](const V& v) -> Value { return max(v[0], v[1]); }},
    {"fmin", 2, [](const V& v) -> Value { return min(v[0], v[1]); }},
    {"clamp", 3, [](const V& v) { return smaller(larger(v[0], v[1]), v[2]); },
     [](const V& v) -> Value { return if_then_else(v[0] >= v[1] && v[0] <= v[2], 1.0, 0.0); }, kNumbers},
    {"where", 3, [](const V& v) -> Value { return if_then_else(v[0], v[1], v[2]); }, nullptr, kAny},
    // From the end that is nearer, so that weights of 0 and 1 give the ends themselves.
    {"lerp", 3, [](const V& v) -> Value {
       const Value d = v[1] - v[0];
       return if_then_else(abs(v[2]) < 0.5, v[0] + v[2] * d, v[1] - d * (1 - v[2]));
     }},
    {"addcmul", 4, [](const V& v) -> Value { return v[0] + v[3] * v[1] * v[2]; }},
    {"addcdiv", 4, [](const V& v) -> Value { return v[0] + v[3] * (v[1] / v[2]); }},
};
// clang-format on

}  // namespace

std::span<const ElementFunction> element_functions() { return kFunctions; }

}  // namespace tilewright::kernels
