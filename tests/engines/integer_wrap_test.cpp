// Integers wrap around, and comparisons of them are what they are: at the ends of every type, on every engine.
#include <gtest/gtest.h>

#include "ir/program.h"
#include "tilewright/compile.h"

namespace tilewright {
namespace {

using Wide = __int128;

Wide wrapped(DType type, Wide value) {
  const Wide modulus = Wide{1} << type.bits;
  value = ((value % modulus) + modulus) % modulus;
  return type.is_signed() && value >= modulus / 2 ? value - modulus : value;
}
std::string text_of(Wide value) {
  const std::string digits = std::to_string(static_cast<uint64_t>(value < 0 ? -value : value));
  return value < 0 ? "-" + digits : digits;
}

// Numbers near both ends of the type, and in its middle.
std::vector<Wide> ends_of(DType type) {
  const Wide least = type.is_signed() ? -(Wide{1} << (type.bits - 1)) : 0;
  const Wide most = least + (Wide{1} << type.bits) - 1;
  return {least, least + 1, 0, 1, 2, most / 2, most / 2 + 1, most - 1, most};
}

class IntegerWrap : public testing::TestWithParam<DType> {
 protected:
  // `values` of x, an element of the type; each must be what `expected` says for it, as an int64.
  void expect_values(const std::vector<std::string>& values,
                     const std::function<int64_t(size_t value, Wide x)>& expected) {
    const DType type = GetParam();
    const std::vector<Wide> ends = ends_of(type);
    const auto count = static_cast<int64_t>(ends.size());
    const std::string n = std::to_string(values.size());
    std::string text = "program p {\n  param A: " + type.name() + "[" + std::to_string(count) + "]\n  param B: int64[" +
                       std::to_string(count) + ", " + n + "]\n  launch l(bx: " + std::to_string(count) +
                       ") threads(tx: 32) {\n    x: " + type.name() + " = A[bx]\n";
    for (size_t i = 0; i < values.size(); ++i) text += "    B[bx, " + std::to_string(i) + "] = " + values[i] + "\n";
    text += "  }\n}\n";
    const NDArray a = NDArray::zeros({count}, type);
    for (int64_t i = 0; i < count; ++i) a.set_int({i}, static_cast<int64_t>(ends[static_cast<size_t>(i)]));
    for (const Engine engine : {Engine::Interpreter, Engine::Cpu, Engine::Simulator}) {
      const NDArray b = NDArray::zeros({count, static_cast<int64_t>(values.size())}, i64);
      const std::vector<Argument> arguments{a, b};
      compile(parse_program(text), {.engine = engine}).call(arguments);
      for (int64_t i = 0; i < count; ++i)
        for (size_t k = 0; k < values.size(); ++k)
          EXPECT_EQ(b.get_int({i, static_cast<int64_t>(k)}), expected(k, ends[static_cast<size_t>(i)]))
              << values[k] << ", x = " << text_of(ends[static_cast<size_t>(i)]) << ", engine "
              << static_cast<int>(engine);
    }
  }
};

TEST_P(IntegerWrap, ComparisonsWithNumbersAtTheEnds) {
  const DType type = GetParam();
  const std::vector<Wide> ends = ends_of(type);
  std::vector<std::string> values;
  for (const Wide c : ends)
    for (const char* op : {"<", "<=", "==", "!="})
      values.push_back("select(x " + std::string(op) + " " + type.name() + "(" + text_of(c) + "), int64(1), int64(0))");
  expect_values(values, [&](size_t k, Wide x) -> int64_t {
    const Wide c = ends[k / 4];
    return k % 4 == 0 ? x < c : k % 4 == 1 ? x <= c : k % 4 == 2 ? x == c : x != c;
  });
}

TEST_P(IntegerWrap, SumsComparedWithTheirTerms) {
  const DType type = GetParam();
  const std::vector<Wide> ends = ends_of(type);
  std::vector<std::string> values;
  for (const Wide c : ends) {
    const std::string sum = "x + " + type.name() + "(" + text_of(c) + ")";
    values.push_back("select(x < " + sum + ", int64(1), int64(0))");
    values.push_back("select(" + sum + " < " + type.name() + "(6), int64(1), int64(0))");
    values.push_back("int64(" + sum + ")");
  }
  expect_values(values, [&](size_t k, Wide x) -> int64_t {
    const Wide sum = wrapped(type, x + ends[k / 3]);
    return k % 3 == 0 ? x < sum : k % 3 == 1 ? sum < 6 : static_cast<int64_t>(static_cast<uint64_t>(sum));
  });
}

TEST_P(IntegerWrap, SignsOfConvertedNumbers) {
  const DType types[] = {i8, u8, i16, u16, i32, u32, i64, u64};
  std::vector<std::string> values;
  for (const DType to : types)
    for (const char* op : {">= ", "> "})
      values.push_back("select(" + to.name() + "(x) " + op + to.name() + "(0), int64(1), int64(0))");
  expect_values(values, [&](size_t k, Wide x) -> int64_t {
    const Wide value = wrapped(types[k / 2], x);
    return k % 2 == 0 ? value >= 0 : value > 0;
  });
}

INSTANTIATE_TEST_SUITE_P(Types, IntegerWrap, testing::Values(i8, u8, i16, u16, i32, u32, i64, u64),
                         [](const auto& info) { return info.param.name(); });

// A loop's variable, whose range is known.
TEST(IntegerWraps, SumsOfALoopVariable) {
  const std::string text =
      "program p {\n  param B: int32[16]\n  launch l(bx: 1) threads(tx: 32) {\n    for j in 0..16 {\n"
      "      B[j] = select(j + 2147483647 > -6, 1, 0) + select(j + 1 > j, 2, 0) + select(j * 1073741824 >= 0, 4, 0)\n"
      "    }\n  }\n}\n";
  std::vector<int64_t> expected;
  for (int64_t j = 0; j < 16; ++j)
    expected.push_back((wrapped(i32, j + 2147483647) > -6) + 2 + 4 * (wrapped(i32, Wide{j} * 1073741824) >= 0));
  for (const Engine engine : {Engine::Interpreter, Engine::Cpu, Engine::Simulator}) {
    const NDArray b = NDArray::zeros({16}, i32);
    compile(parse_program(text), {.engine = engine}).call(std::vector<Argument>{b});
    EXPECT_EQ(b.to_ints(), expected);
  }
}

}  // namespace
}  // namespace tilewright
