#include "codegen/cuda_functions.h"

#include <fmt/format.h>

#include "ir/rewrite.h"

namespace tilewright::codegen {
namespace {

using enum Function;

// CUDA C++ Programming Guide, "Intrinsic Functions": as one or two instructions, a few ulp off near 1 and more
// elsewhere.
bool has_approximation(Function f) {
  switch (f) {
    case Exp:
    case Exp10:
    case Log:
    case Log2:
    case Log10:
    case Sin:
    case Cos:
    case Tan: return true;
    default: return false;
  }
}

// Functions whose names are those of CUDA's mathematics.
bool has_cuda_name(Function f) {
  switch (f) {
    case Sqrt:
    case Floor:
    case Ceil:
    case Trunc:
    case Rint:
    case Round:
    case Copysign:
    case Fmod: return true;
    default: return f >= Exp && f <= Rsqrt;
  }
}

}  // namespace

CudaFunction cuda_function(Function f, DType type, bool fast_math) {
  const bool is_double = type == f64;
  if (!type.is_float()) return {c_name(f, type), c_name(f, type)};
  if (f == IsFinite) return {"isfinite", ""};
  if (fast_math && !is_double && has_approximation(f)) return {fmt::format("__{}f", info(f).name), ""};
  // PyTorch's exp, and that of kernels by other compilers, is CUDA's, within 1 ulp: results that are rounded to 8 bits
  // behind it agree to the last one only by the same function.
  if (f == Exp && !is_double) return {"expf", ""};
  const std::string piece = c_name(f, type);
  if (!has_cuda_name(f)) return {piece, piece};
  return {fmt::format("tw_{}{}", info(f).name, is_double ? "" : "f"), piece};
}

bool is_own_of_device(Function f, DType type) {
  if (type == f64) return f >= Exp && f <= Sigmoid;
  return f == Exp || f == Exp2 || f == Log1p || f == Expm1 || f == Tan;
}

bool uses_own_of_device(const ir::TileProgram& program) {
  bool found = false;
  for (const ir::Launch& launch : program.launches)
    ir::walk_exprs(launch.body, [&](const ir::Expr& e) {
      const auto* n = e.as<ir::Intrinsic>();
      found = found || (n && is_own_of_device(n->function, e->type));
    });
  return found;
}

std::string cuda_function_names(const std::set<std::pair<Function, bool>>& used) {
  std::string out;
  for (const auto& [f, is_double] : used) {
    const CudaFunction as = cuda_function(f, is_double ? f64 : f32, false);
    const char* value = is_double ? "double" : "float";
    const bool two = info(f).arity == 2;
    out += fmt::format("__device__ __forceinline__ {0} {1}({0} x{2}) {{ return {3}(x{4}); }}\n", value, as.name,
                       two ? fmt::format(", {} y", value) : "", as.piece, two ? ", y" : "");
  }
  return out;
}

}  // namespace tilewright::codegen
