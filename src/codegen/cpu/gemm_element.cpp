// Conversions between what memory holds and what the kernel multiplies, by the scalar pieces.
#include "codegen/cpu/gemm_element.h"

#include <fmt/format.h>

#include "codegen/cpu/gemm_text.h"
#include "scalar/dtype_rows.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

bool needs_load_function(DType t) { return (t.is_float() && t.bits < 32) || t == e2m1; }

std::string nibble(const std::string& base, const std::string& offset) {
  return fmt::format("(({0}[({1}) >> 1] >> ((({1}) & 1) * 4)) & 15)", base, offset);
}

// The value in float, double or an integer type.
std::string load_value(DType stored, const std::string& base, const std::string& offset,
                       std::set<std::string>& pieces) {
  const std::string bits = stored.is_packed() ? nibble(base, offset) : fmt::format("{}[{}]", base, offset);
  if (needs_load_function(stored)) {
    const std::string piece = "load_" + type_code(stored);
    pieces.insert(piece);
    return fmt::format("{}({})", piece, bits);
  }
  if (stored == tf32) {
    pieces.insert("round_tf32_rz");
    return fmt::format("round_tf32_rz({})", bits);
  }
  if (stored == i4) return fmt::format("(({} ^ 8) - 8)", bits);
  return bits;
}

}  // namespace

std::string type_code(DType type) { return dtype_row(type)->code; }

bool same_bits(DType stored, DType element) {
  if (stored == element) return true;
  return stored.is_int() && element.is_int() && stored.bits == element.bits && element.bits >= 32;
}

std::string load_element(DType stored, DType element, const std::string& base, const std::string& offset,
                         std::set<std::string>& pieces) {
  if (same_bits(stored, element)) return fmt::format("{}[{}]", base, offset);
  const std::string value = load_value(stored, base, offset, pieces);
  if (element == bf16) {
    pieces.insert("store_bf16");
    return fmt::format("store_bf16({})", value);
  }
  return fmt::format("({}){}", storage_type(element), value);
}

std::string store_element(DType type, DType stored, const std::string& base, const std::string& offset,
                          const std::string& value, std::set<std::string>& pieces) {
  std::string converted = fmt::format("({})({})", storage_type(stored), value);
  if (type.is_float() && (type.bits < 32 || type == tf32)) {
    const std::string piece = (stored == type && type != tf32 ? "store_" : "round_") + type_code(type);
    pieces.insert(piece);
    converted = fmt::format("{}({})", piece, value);
  }
  return fmt::format("{}[{}] = {};", base, offset, converted);
}

}  // namespace tilewright
