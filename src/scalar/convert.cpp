#include "scalar/convert.h"

#include "scalar/functions.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

bool is_narrow(DType type) { return type.is_float() && type != f32 && type != f64; }

// The name of the text function that rounds a float to `to`.
std::string rounding_function(DType to, Rounding rounding) {
  check_internal(can_round(to, rounding), "no such rounding to {}", to.name());
  const char* suffix = rounding == Rounding::TowardZero ? "_rz" : rounding == Rounding::Stochastic ? "_rs" : "";
  return narrowing(to) + suffix;
}

// `value` as a float from which one more rounding to a narrow type is correct.
std::string odd_float(DType from, const std::string& value, std::set<std::string>& pieces) {
  if (from.is_float() && from != f64) return value;
  if (from.is_integral() && from.bits <= 16) return fmt::format("(float)({})", value);
  if (from.is_integral() && from.bits <= 32) {
    std::string exact = from.is_signed() ? "odd_int32" : "odd_uint32";
    pieces.insert(exact);
    return fmt::format("{}({})", exact, value);
  }
  pieces.insert("odd_f64");
  if (from == f64) return fmt::format("odd_f64({})", value);
  std::string exact = from.is_signed() ? "odd_int64" : "odd_uint64";
  pieces.insert(exact);
  return fmt::format("odd_f64({}({}))", exact, value);
}

std::string to_integer(DType from, DType to, const std::string& value, std::set<std::string>& pieces) {
  if (!from.is_float()) {
    std::string wrap = narrowing(to);
    if (wrap.empty()) return fmt::format("({})({})", c_type(to), value);
    pieces.insert(wrap);
    return fmt::format("{}((uint64_t)({}))", wrap, value);
  }
  if (to.bits == 4) {
    std::string name = fmt::format("{}4_of_{}", to.is_signed() ? "i" : "u", from == f64 ? "f64" : "f32");
    pieces.insert(name);
    return fmt::format("{}({})", name, value);
  }
  pieces.insert("int_of_float");
  return fmt::format("int_of_float<{}>({})", c_type(to), value);
}

}  // namespace

bool can_round(DType to, Rounding rounding) {
  if (rounding == Rounding::TowardZero) return to == f16 || to == bf16 || to == tf32 || to == e8m0;
  if (rounding == Rounding::Stochastic) return to == f16 || to == bf16 || to == e4m3 || to == e5m2 || to == e2m1;
  return true;
}

std::string conversion(DType from, DType to, Rounding rounding, const std::string& value, const std::string& random,
                       std::set<std::string>& pieces) {
  if (from == to) return value;
  if (to.is_bool()) return fmt::format("(uint8_t)(({}) != 0)", value);
  if (!to.is_float()) return to_integer(from, to, value, pieces);
  if (!is_narrow(to)) return fmt::format("({})({})", c_type(to), value);
  // Narrow floats have at most tf32's 10 bits of mantissa and 8 of exponent.
  if (to == tf32 && is_narrow(from) && rounding == Rounding::Nearest) return value;
  std::string name = rounding_function(to, rounding);
  pieces.insert(name);
  std::string argument = odd_float(from, value, pieces);
  return rounding == Rounding::Stochastic ? fmt::format("{}({}, {})", name, argument, random)
                                          : fmt::format("{}({})", name, argument);
}

std::string storage_type(DType type) {
  if (type == f64) return "double";
  if (type == tf32 || type == f32) return "float";
  const bool is_signed = type.kind == Kind::Int && !type.is_packed();
  return fmt::format("{}int{}_t", is_signed ? "" : "u", std::max(8, type.storage_bits()));
}

std::string load_text(DType type, const std::string& bits, std::set<std::string>& pieces) {
  if (type == i4 || type == u4) {
    pieces.insert(narrowing(type));
    return fmt::format("{}({})", narrowing(type), bits);
  }
  if (!is_narrow(type) || type == tf32) return bits;
  std::string name = "load" + narrowing(type).substr(5);
  pieces.insert(name);
  return fmt::format("{}({})", name, bits);
}

std::string store_text(DType type, const std::string& value, std::set<std::string>& pieces) {
  if (type == i4 || type == u4) return fmt::format("(uint8_t)(({}) & 15)", value);
  if (!is_narrow(type) || type == tf32) return value;
  std::string name = "store" + narrowing(type).substr(5);
  pieces.insert(name);
  return fmt::format("{}({})", name, value);
}

std::string keep_text(DType type, const std::string& value, std::set<std::string>& pieces) {
  if (type != e5m2) return store_text(type, value, pieces);
  pieces.insert("keep_e5m2");
  return fmt::format("keep_e5m2({})", value);
}

}  // namespace tilewright
