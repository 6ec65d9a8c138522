#include "codegen/cuda_functions.h"

#include <fmt/format.h>

#include "ir/rewrite.h"

namespace tilewright::codegen {
namespace {

using enum Function;

// One or two instructions, a few ulp off near 1 and more elsewhere: what the program writes so itself, and under its
// option what there is of the function. None: it is not approximated.
std::optional<Function> approximation_of(Function f, DType type, bool fast_math) {
  if (!type.is_float() || type == f64) return std::nullopt;
  if (is_approximation(f)) return f;
  if (fast_math)
    for (const FunctionInfo& row : all_functions())
      if (is_approximation(row.function) && exact_of(row.function) == f) return row.function;
  return std::nullopt;
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
  if (const auto fast = approximation_of(f, type, fast_math)) return {fmt::format("{}f", info(*fast).name), ""};
  f = exact_of(f);
  // PyTorch's exp, and that of kernels by other compilers, is CUDA's, within 1 ulp: results that are rounded to 8 bits
  // behind it agree to the last one only by the same function.
  if (f == Exp && !is_double) return {"expf", ""};
  const std::string piece = c_name(f, type);
  if (!has_cuda_name(f)) return {piece, piece};
  return {fmt::format("tw_{}{}", info(f).name, is_double ? "" : "f"), piece};
}

bool is_own_of_device(Function f, DType type) {
  f = exact_of(f);
  if (type == f64) return f >= Exp && f <= Sigmoid;
  return f == Exp || f == Exp2;
}

double device_units(const ir::TileProgram& program) {
  constexpr double kOneUponTheOther = 4, kUnitsOfOwn = 4, kUnitsOfQuotient = 2;
  const bool fast = program.options.fast_math;
  double most = 0;
  for (const ir::Launch& launch : program.launches)
    ir::walk_exprs(launch.body, [&](const ir::Expr& e) {
      if (const auto* n = e.as<ir::Intrinsic>()) {
        if (is_own_of_device(n->function, e->type)) most = std::max(most, kUnitsOfOwn);
        if (const auto f = approximation_of(n->function, e->type, fast)) most = std::max(most, info(*f).max_ulp);
      }
      const auto* n = e.as<ir::Binary>();
      if (n && n->op == ir::BinaryOp::Div && fast && e->type.is_float() && e->type != f64)
        most = std::max(most, kUnitsOfQuotient);
    });
  return kOneUponTheOther * most;
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
