// The table of scalar functions: pure functions of one to three scalars. A row says how users write it, what it
// accepts, which text computes it and how accurate that is. Operators of the language whose meaning is not C's are rows
// too.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tilewright/dtype.h"

namespace tilewright {

enum class Function : uint8_t {
  // exact or correctly rounded: the same bits on every engine
  Add,
  Sub,
  Mul,
  Div,
  Fma,
  Sqrt,
  Rcp,
  RsqrtRn,
  Abs,
  Neg,
  Floor,
  Ceil,
  Trunc,
  Rint,
  Round,
  NextAfter,
  Ldexp,
  AddRz,  // toward zero, up and down
  AddRu,
  AddRd,
  MulRz,
  MulRu,
  MulRd,
  DivRz,
  DivRu,
  DivRd,
  FmaRz,
  FmaRu,
  FmaRd,
  SqrtRz,
  SqrtRu,
  SqrtRd,
  Copysign,
  Fmod,
  Min,
  Max,
  MinNan,
  MaxNan,
  Clamp,
  IsNan,
  IsInf,
  IsFinite,
  // integers
  FloorDiv,
  FloorMod,
  TruncDiv,
  TruncMod,
  Shl,
  Shr,
  Popcount,
  Clz,
  Ffs,
  Brev,
  Mulhi,
  Dp4a,
  // transcendental, within max_ulp
  Exp,
  Exp2,
  Exp10,
  Expm1,
  Log,
  Log2,
  Log10,
  Log1p,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Atan2,
  Sinh,
  Cosh,
  Tanh,
  Asinh,
  Acosh,
  Atanh,
  Erf,
  Hypot,
  Pow,
  Rsqrt,
  RcpApprox,
  Sigmoid,
  // CUDA's explicit approximations of the functions of the same stem; on other engines those themselves
  FastExp,
  FastExp10,
  FastLog,
  FastLog2,
  FastLog10,
  FastSin,
  FastCos,
  FastTan,
};

enum class Operands : uint8_t {
  Float,      // any floating type but float8_e8m0
  WideFloat,  // float32 and float64
  Int,        // any integer type
  WideInt,    // integers of 8 bits or more
  Int32,      // int32 and uint32
  Number,     // Float or Int
};

struct FunctionInfo {
  Function function;
  std::string_view name;  // as users write it and programs print it
  uint8_t arity;
  Operands operands;          // all operands have one type
  std::string_view stem;      // of the text functions: "exp2" names exp2_f32 and exp2_f64, "clz" names clz<int32_t>
  bool is_predicate = false;  // gives bool; else the result has the operands' type
  bool is_closed = false;     // of floats gives numbers of their own type, where that has them: see below
  // Largest error in float32, in units in the last place of the result; 0.5: correctly rounded, in its own direction;
  // 0: exact. In float64: below two units more, the C library's. Narrower types round the float32 result once more.
  // Of an approximation: CUDA's on a GPU, in units of the largest result; of sines, cosines and tangents within [-pi,
  // pi].
  double max_ulp = 0;
  bool is_exact() const { return max_ulp <= 0.5; }
};

const FunctionInfo& info(Function function);
std::span<const FunctionInfo> all_functions();

// Also accepts the IEEE spellings: "ieee_fsqrt" is sqrt. Empty if unknown.
std::optional<Function> function_named(std::string_view name);

bool is_approximation(Function function);
// What an approximation approximates, and float64 and other engines compute; any other function itself.
Function exact_of(Function function);

bool accepts(Function function, DType type);
DType result_type(Function function, DType type);

// Whether values of a float type give one that needs no rounding to it. Where the largest is 7.5 its round() is not
// there, and a type with one zero has none that is negative.
bool is_closed(Function function, DType type);

// The C type that holds a value: float for every floating type but float64; int8_t and uint8_t for 4-bit integers;
// uint8_t for bool; uint64_t for pointers.
std::string_view c_type(DType type);

// The text function to call for operands of a type, and so the name of its piece: "exp2_f32", "floordiv<int32_t>". What
// it gives for a 4-bit integer, and for a float narrower than 32 bits unless is_closed(), must still pass through
// narrowing(type).
std::string c_name(Function function, DType type);

// The text function that brings a computed value back to what the type can hold: round_f16, wrap_i4, ...; empty where
// the C type already holds exactly the type's values.
std::string narrowing(DType type);

}  // namespace tilewright
