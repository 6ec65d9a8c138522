#include "runtime/scalar_value.h"

#include "scalar/evaluate.h"
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

namespace {

// The 64 bits that stand for a value of a floating type.
int64_t float_pattern(DType type, double number) {
  if (type == f64) return std::bit_cast<int64_t>(number);
  float value = static_cast<float>(number);
  if (type != f32) convert(f64, type, Rounding::Nearest, &number, nullptr, &value, 1);
  return static_cast<int64_t>(std::bit_cast<uint32_t>(value));
}

// Rounded once: an integer of more than 53 bits must not pass through double.
int64_t float_pattern(DType type, const Argument& argument) {
  const int64_t integer = argument.integer();
  double wide = 0;
  float value = 0;
  void* const out = type == f64 ? static_cast<void*>(&wide) : &value;
  convert(argument.is_huge() ? u64 : i64, type, Rounding::Nearest, &integer, nullptr, out, 1);
  return type == f64 ? std::bit_cast<int64_t>(wide) : static_cast<int64_t>(std::bit_cast<uint32_t>(value));
}

}  // namespace

ScalarFit scalar_value(DType type, const Argument& argument, int64_t& value) {
  if (!type.is_float()) return integer_value(type, argument, value);
  if (argument.kind() == Argument::Kind::Float)
    value = float_pattern(type, argument.number());
  else if (argument.kind() == Argument::Kind::Int)
    value = float_pattern(type, argument);
  else
    return ScalarFit::WrongKind;
  return ScalarFit::Fits;
}

}  // namespace tilewright::runtime
