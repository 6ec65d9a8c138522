#include "scalar/value_text.h"

namespace tilewright {

std::string value_text(DType type, uint64_t word) {
  if (type.is_bool()) return word ? "true" : "false";
  if (type == f64) return fmt::format("{}", std::bit_cast<double>(word));
  if (type.is_float()) return fmt::format("{}", std::bit_cast<float>(static_cast<uint32_t>(word)));
  if (type.is_pointer()) return fmt::format("0x{:x}", word);
  return type.is_signed() ? fmt::format("{}", static_cast<int64_t>(word)) : fmt::format("{}", word);
}

}  // namespace tilewright
