#include "runtime/scalar_value.h"

#include "support/diagnostic.h"

namespace tilewright::runtime {

bool integer_fits(DType type, int64_t value) {
  if (type.is_bool()) return value == 0 || value == 1;
  if (type.bits == 64) return true;
  if (type.is_signed()) return value >= -(int64_t{1} << (type.bits - 1)) && value < int64_t{1} << (type.bits - 1);
  return value >= 0 && value < int64_t{1} << type.bits;
}

namespace {

ScalarFit integer_value(DType type, const Argument& argument, int64_t& value) {
  if (argument.kind() != Argument::Kind::Int) return ScalarFit::WrongKind;
  value = argument.integer();
  if (type == u64 || type.is_pointer())
    return value >= 0 || argument.is_huge() ? ScalarFit::Fits : ScalarFit::OutOfRange;
  return !argument.is_huge() && integer_fits(type, value) ? ScalarFit::Fits : ScalarFit::OutOfRange;
}

}  // namespace

ScalarFit scalar_value(DType type, const Argument& argument, int64_t& value) {
  if (!type.is_float()) return integer_value(type, argument, value);
  double number;
  if (argument.kind() == Argument::Kind::Float)
    number = argument.number();
  else if (argument.kind() == Argument::Kind::Int)
    number = argument.is_huge() ? static_cast<double>(static_cast<uint64_t>(argument.integer()))
                                : static_cast<double>(argument.integer());
  else
    return ScalarFit::WrongKind;
  value = type == f64 ? std::bit_cast<int64_t>(number)
                      : static_cast<int64_t>(std::bit_cast<uint32_t>(static_cast<float>(number)));
  return ScalarFit::Fits;
}

std::string scalar_text(DType type, uint64_t value) {
  if (type.is_bool()) return value ? "true" : "false";
  if (type == f64) return fmt::format("{}", std::bit_cast<double>(value));
  if (type.is_float()) return fmt::format("{}", std::bit_cast<float>(static_cast<uint32_t>(value)));
  if (type.is_pointer()) return fmt::format("0x{:x}", value);
  return type.is_signed() ? fmt::format("{}", static_cast<int64_t>(value)) : fmt::format("{}", value);
}

}  // namespace tilewright::runtime
