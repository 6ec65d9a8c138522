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

constexpr Engine kEngines[] = {Engine::Interpreter, Engine::Cpu, Engine::Simulator};

// What the text writes to out: int32[64], which begins as zeros, on every engine.
void expect_written(const std::string& head, const std::string& body, std::vector<Argument> arguments,
                    const std::map<int64_t, int64_t>& expected) {
  const std::string text =
      "program p {\n" + head + "  param out: int32[64]\n  launch l(bx: 1) threads(tx: 32) {\n" + body + "  }\n}\n";
  for (const Engine engine : kEngines) {
    const NDArray out = NDArray::zeros({64}, i32);
    std::vector<Argument> all = arguments;
    all.emplace_back(out);
    compile(parse_program(text), {.engine = engine}).call(all);
    std::map<int64_t, int64_t> written;
    for (int64_t i = 0; i < 64; ++i)
      if (const int64_t value = out.get_int({i})) written[i] = value;
    EXPECT_EQ(written, expected) << text << "engine " << static_cast<int>(engine);
  }
}

// x * x = 2^32 + 605032704 is no index of 32 bits.
TEST(IntegerWraps, AnIndexIsTheOneThatWasMeant) {
  const std::vector<Argument> x{70000};
  const std::string head = "  param x: int32\n", tile = "    shared s: int32[4]\n    fill to=s value=5\n";
  expect_written(head, "    out[x * x - 605032704] = 1\n", x, {});
  expect_written(head, "    y: int32 = x * x\n    out[y - 605032704] = 1\n", x, {{0, 1}});
  expect_written(head, "    out[x * x // 605032704] = 1\n", x, {{1, 1}});  // an operand of a division is none
  expect_written(head, tile + "    copy from=s to=out[x * x - 605032704 : 4]\n", x, {});
  expect_written(head, "    map i in 2 {\n      out[x * x - 605032704 + i] = 1\n    }\n", x, {});
  expect_written(head, "    z: int32 = atomic add to=out[x * x - 605032704] value=1\n    out[1] = z + 1\n", x,
                 {{1, 1}});
  expect_written(head, "    for k in 0..5 {\n      out[k * 1073741824] = k + 1\n    }\n", x, {{0, 1}});
  expect_written(head, "    for k in 0..5 unroll {\n      out[k * 1073741824] = k + 1\n    }\n", x, {{0, 1}});
  expect_written(head, "    map i in 5 {\n      out[i * 1073741824] = i + 1\n    }\n", x, {{0, 1}});
}

// Narrower types wrap around in indices as anywhere.
TEST(IntegerWraps, IndicesOfNarrowTypesWrapAround) {
  for (const DType type : {i8, u8, i16, u16}) {
    const Wide modulus = Wide{1} << type.bits;
    const auto most = static_cast<int64_t>(type.is_signed() ? modulus / 2 - 1 : modulus - 1);
    const std::string head = "  param x: " + type.name() + "\n";
    const std::vector<Argument> x{most};
    // most + most + 7 = 5 where that wraps once, and most + 1 + most + 1 = 0
    expect_written(head, "    out[x * 2 + 7] = 1\n", x, {{5, 1}});
    expect_written(head, "    shared s: int32[4]\n    fill to=s value=2\n    copy from=s to=out[x * 2 + 6 : 4]\n", x,
                   {{4, 2}, {5, 2}, {6, 2}, {7, 2}});
    expect_written(head, "    map i in 2 {\n      out[x * 2 + 3 + " + type.name() + "(i)] = 3\n    }\n", x,
                   {{1, 3}, {2, 3}});
    expect_written(head, "    map i: " + type.name() + " in x * 2 + 4 {\n      out[i] = 4\n    }\n", x,
                   {{0, 4}, {1, 4}});
    expect_written(head, "    for k: " + type.name() + " in 0..x * 2 + 4 {\n      out[k] = 5\n    }\n", x,
                   {{0, 5}, {1, 5}});
  }
}

// The host computes shapes and grids in 64 bits: a call for which that is not what the program computes is refused.
TEST(IntegerWraps, WhatACallComputesFitsItsType) {
  const auto refusal = [](const std::string& head, const std::string& grid, const std::vector<Argument>& arguments) {
    const std::string text = "program p {\n" + head + "  param out: int32[64]\n  launch l(bx: " + grid +
                             ") threads(tx: 32) {\n    out[bx] = 1\n  }\n}\n";
    std::set<std::string> said;
    for (const Engine engine : kEngines) {
      std::vector<Argument> all = arguments;
      const NDArray out = NDArray::zeros({64}, i32);
      all.emplace_back(out);
      try {
        compile(parse_program(text), {.engine = engine}).call(all);
        said.insert("");
      } catch (const LaunchError& error) {
        EXPECT_EQ(error.diagnostic().code_text(), "TW4012");
        said.insert(error.diagnostic().message);
      }
    }
    EXPECT_EQ(said.size(), 1u) << text;
    return *said.begin();
  };
  const NDArray two = NDArray::zeros({2}, i32), ten = NDArray::zeros({10}, i32);
  const std::string dim = "  symbol N: int8\n  param A: int32[N]\n", shape = dim + "  param B: int32[N * 63]\n";
  EXPECT_EQ(refusal(dim, "(N + 31) // 32", {ten}), "");
  EXPECT_EQ(refusal(dim, "(N * 12 + 7) // 32", {ten}), "");
  EXPECT_EQ(refusal(dim, "(N * 12 + 8) // 32", {ten}),
            "p: (12 * N + 8) // 32 has no value in int8 (N = 10 from 'A'.shape[0])");
  EXPECT_EQ(refusal(shape, "1", {two, NDArray::zeros({126}, i32)}), "");
  EXPECT_EQ(refusal(shape, "1", {NDArray::zeros({3}, i32), NDArray::zeros({189}, i32)}),
            "p: 63 * N has no value in int8 (N = 3 from 'A'.shape[0])");
  EXPECT_EQ(refusal("  param n: int32\n", "(n + 31) // 32", {2147483617}),
            "p: (n + 31) // 32 has no value in int32 (n = 2147483617)");
  EXPECT_EQ(refusal("  param n: int64\n", "int32(n)", {int64_t{1} << 32}),
            "p: n has no value in int32 (n = 4294967296)");
  EXPECT_EQ(refusal("  param n: int8\n  assume n * 2 < 5\n", "1", {100}),
            "p: 2 * n < 5 has no value in int8 (n = 100)");
}

}  // namespace
}  // namespace tilewright
