// The table, and that the text a kernel would contain gives the bits that the library gives.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scalar/evaluate.h"
#include "scalar/pieces.h"
#include "scalar/text.h"
#include "tilewright/diagnostic.h"

extern char** environ;

namespace tilewright {
namespace {

// One of each kind of source and operand; every type is a destination.
constexpr DType kSources[] = {boolean, i4, i8, i32, i64, u4, u16, u64, f32, f64};
constexpr DType kOperands[] = {i4, i8, i32, i64, u8, u64, f16, f32, f64, bf16, e4m3, e3m4, e2m3, e4m3fnuz};
constexpr DType kTypes[] = {boolean, i4,   i8,   i16,         i32,      i64,      u4,   u8,   u16,
                            u32,     u64,  f16,  f32,         f64,      bf16,     tf32, e4m3, e5m2,
                            e8m0,    e2m1, e3m4, e4m3b11fnuz, e4m3fnuz, e5m2fnuz, e2m3, e3m2};
constexpr int kLanes = 256;

TEST(ScalarFunctions, NamesAreDistinctAndFoundAgain) {
  std::set<std::string_view> names;
  for (const FunctionInfo& row : all_functions()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(function_named(row.name), row.function);
    EXPECT_GE(row.arity, 1);
    EXPECT_LE(row.arity, 3);
  }
  EXPECT_EQ(function_named("__exp"), Function::FastExp);
  EXPECT_EQ(function_named("ieee_fsqrt"), Function::Sqrt);
  EXPECT_EQ(function_named("exponent"), std::nullopt);
}

TEST(ScalarFunctions, TypesAndTexts) {
  EXPECT_EQ(c_name(Function::Exp2, bf16), "exp2_f32");
  EXPECT_EQ(c_name(Function::Exp2, f64), "exp2_f64");
  EXPECT_EQ(c_name(Function::FloorDiv, i4), "floordiv<int8_t>");
  EXPECT_EQ(narrowing(bf16), "round_bf16");
  EXPECT_EQ(narrowing(f32), "");
  EXPECT_EQ(result_type(Function::IsNan, f16), boolean);
  EXPECT_EQ(result_type(Function::Min, u8), u8);
  EXPECT_FALSE(accepts(Function::Exp, i32));
  EXPECT_FALSE(accepts(Function::Clz, i4));
  EXPECT_FALSE(accepts(Function::Max, e8m0));
  EXPECT_THROW(c_name(Function::Exp, i32), InternalError);
}

// Of narrow floats, whatever rounds to whole numbers, negates or chooses gives a number of the type: round() of 7.5,
// the largest float6_e2m3fn, is no 8, and a type with one zero has no negative one.
TEST(ScalarFunctions, ResultsAreNumbersOfTheirType) {
  for (DType type : kTypes) {
    if (!type.is_float() || type.bits > 8) continue;
    std::vector<float> values;
    for (int code = 0; code < 1 << type.bits; ++code) {
      const auto byte = static_cast<uint8_t>(code);
      float value = 0;
      load_lanes(type, &byte, {}, 1, &value);
      values.push_back(value);
    }
    std::set<uint32_t> numbers;
    for (const float value : values) numbers.insert(std::bit_cast<uint32_t>(value));
    const auto n = static_cast<int64_t>(values.size());
    for (const FunctionInfo& row : all_functions()) {
      if (!accepts(row.function, type) || row.is_predicate || row.arity > 2) continue;
      for (const float other : values) {
        std::vector<float> others(values.size(), other), got(values.size());
        const void* in[] = {values.data(), others.data()};
        apply(row.function, type, {in, row.arity}, got.data(), n);
        for (size_t i = 0; i < got.size(); ++i)
          ASSERT_TRUE(numbers.contains(std::bit_cast<uint32_t>(got[i])) || std::isnan(got[i]))
              << row.name << " of " << type.name() << " " << values[i] << ", " << other << ": " << got[i];
        if (row.arity == 1) break;
      }
    }
  }
}

TEST(ScalarFunctions, ApproximationsAreOfTheFunctionOfTheirName) {
  int count = 0;
  for (const FunctionInfo& row : all_functions()) {
    const FunctionInfo& exact = info(exact_of(row.function));
    if (!is_approximation(row.function)) {
      EXPECT_EQ(exact.function, row.function);
      continue;
    }
    ++count;
    EXPECT_EQ(row.name, fmt::format("__{}", exact.name));
    EXPECT_EQ(c_name(row.function, f32), c_name(exact.function, f32));
    EXPECT_GT(row.max_ulp, exact.max_ulp);
  }
  EXPECT_EQ(count, 8);
}

TEST(ScalarFunctions, ConversionTexts) {
  std::set<std::string> pieces;
  EXPECT_EQ(conversion(f32, f16, Rounding::Nearest, "x", "", pieces), "round_f16(x)");
  EXPECT_EQ(conversion(f16, f32, Rounding::Nearest, "x", "", pieces), "(float)(x)");
  EXPECT_EQ(conversion(i64, bf16, Rounding::Nearest, "x", "", pieces), "round_bf16(odd_f64(odd_int64(x)))");
  EXPECT_EQ(conversion(i32, bf16, Rounding::Nearest, "x", "", pieces), "round_bf16(odd_int32(x))");
  EXPECT_EQ(conversion(u32, f16, Rounding::TowardZero, "x", "", pieces), "round_f16_rz(odd_uint32(x))");
  EXPECT_EQ(conversion(f32, e4m3, Rounding::Stochastic, "x", "r", pieces), "round_e4m3_rs(x, r)");
  EXPECT_EQ(conversion(f64, i8, Rounding::Nearest, "x", "", pieces), "int_of_float<int8_t>(x)");
  EXPECT_EQ(load_text(e2m1, "b", pieces), "load_e2m1(b)");
  EXPECT_EQ(store_text(f32, "x", pieces), "x");
  EXPECT_TRUE(pieces.contains("odd_int64") && pieces.contains("load_e2m1") && pieces.contains("round_bf16"));
  EXPECT_THROW(conversion(f32, e4m3, Rounding::TowardZero, "x", "", pieces), InternalError);
}

// What is half way between two values of a narrow type, and its neighbours, at all magnitudes: without doubles, which a
// GPU converts at a fraction of its rate.
TEST(ScalarFunctions, IntegersOf32BitsAreRoundedOnce) {
  const auto check = [](int64_t x) {
    const auto with_sign = static_cast<int32_t>(x);
    const auto without = static_cast<uint32_t>(x);
    const auto same = [&](float (*round)(float)) {
      ASSERT_EQ(round(scalar::odd_int32(with_sign)), round(scalar::odd_f64(with_sign))) << with_sign;
      ASSERT_EQ(round(scalar::odd_uint32(without)), round(scalar::odd_f64(without))) << without;
    };
    for (float (*round)(float) : {scalar::round_bf16, scalar::round_f16, scalar::round_tf32, scalar::round_bf16_rz,
                                  scalar::round_f16_rz, scalar::round_e8m0, scalar::round_e4m3})
      same(round);
  };
  for (int bit = 0; bit < 32; ++bit)
    for (int64_t digits : {0x80, 0x81, 0xff, 0x101, 0x103, 0x1fd, 0x401, 0x403, 0x7ff, 0x801, 0x803, 0xfff, 0x1001})
      for (int64_t more = -2; more <= 2; ++more)
        for (int64_t sign : {1, -1}) check(sign * ((digits << bit) + more));
}

// Lanes of a type: edges, then a spread over the whole range. 8 bytes each, whatever the lane kind.
std::vector<uint64_t> lanes_of(DType type, uint64_t seed) {
  std::vector<uint64_t> lanes(kLanes);
  std::vector<double> doubles(kLanes);
  for (int i = 0; i < kLanes; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    double sign = seed >> 63 ? -1 : 1,
           magnitude = std::ldexp(1.0 + (seed >> 12) * 0x1p-52, static_cast<int>(seed >> 3 & 63) - 32);
    doubles[i] = sign * magnitude;
  }
  const double edges[] = {0.0, -0.0,  1.0,   -1.0, HUGE_VAL, -HUGE_VAL, NAN, 0.5, 2.5, -2.5, 448,
                          464, 65504, 65520, 6,    0x1p-149, 1e300,     8,   -8,  127, 128,  -129};
  std::copy(std::begin(edges), std::end(edges), doubles.begin());
  convert(f64, type, Rounding::Nearest, doubles.data(), nullptr, lanes.data(), kLanes);
  return lanes;
}

const char* lane_c_type(DType type) {
  switch (lane_kind(type)) {
    case LaneKind::Int64: return "int64_t";
    case LaneKind::Float32: return "float";
    default: return "double";
  }
}

bool same_lanes(DType type, const void* a, const void* b, int& at) {
  for (at = 0; at < kLanes; ++at) {
    uint64_t x = 0, y = 0;
    size_t size = lane_kind(type) == LaneKind::Float32 ? 4 : 8;
    std::memcpy(&x, static_cast<const char*>(a) + at * size, size);
    std::memcpy(&y, static_cast<const char*>(b) + at * size, size);
    bool both_nan = lane_kind(type) == LaneKind::Float32
                        ? std::isnan(std::bit_cast<float>(static_cast<uint32_t>(x))) &&
                              std::isnan(std::bit_cast<float>(static_cast<uint32_t>(y)))
                    : lane_kind(type) == LaneKind::Float64
                        ? std::isnan(std::bit_cast<double>(x)) && std::isnan(std::bit_cast<double>(y))
                        : false;
    if (x != y && !both_nan) return false;
  }
  return true;
}

// A shared object of loops over lanes, each `out[i] = expression`, compiled as a kernel is: no includes, for this
// machine. -O2 vectorizes these loops of known length as -O3 would, in half the time.
class CompiledLoops {
 public:
  // Returns the loop's number. The expression reads a, b, c (of c_type(in)) and r.
  int add(DType in, DType out, const std::string& expression) {
    text_ +=
        fmt::format("extern \"C\" void loop{}(const {}* A, const {}* B, const {}* C, const int64_t* R, {}* out) {{\n",
                    count_, lane_c_type(in), lane_c_type(in), lane_c_type(in), lane_c_type(out));
    text_ += fmt::format(
        "#pragma GCC ivdep\n  for (int i = 0; i < {}; ++i) {{\n    [[maybe_unused]] {} a = ({})A[i], b = ({})B[i], c = "
        "({})C[i];\n",
        kLanes, c_type(in), c_type(in), c_type(in), c_type(in));
    text_ += fmt::format("    [[maybe_unused]] uint32_t r = (uint32_t)R[i];\n    out[i] = ({}){};\n  }}\n}}\n",
                         lane_c_type(out), expression);
    return count_++;
  }
  std::set<std::string> pieces;

  // False if there is no compiler.
  bool build() {
    char path[] = "/tmp/tilewright_loops_XXXXXX.cpp";
    int file = mkstemps(path, 4);
    std::string all = pieces_text(pieces) + text_, object = std::string(path) + ".so";
    EXPECT_EQ(write(file, all.data(), all.size()), static_cast<ssize_t>(all.size()));
    close(file);
    const char* arguments[] = {
        "g++",          "-O2",   "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
        "-shared",      "-fPIC", "-Wall",         "-Wextra",           "-Werror",         "-o",
        object.c_str(), path,    nullptr};
    pid_t child = 0;
    int status = -1;
    bool found = posix_spawnp(&child, "g++", nullptr, nullptr, const_cast<char**>(arguments), environ) == 0;
    if (found) waitpid(child, &status, 0);
    if (found && WIFEXITED(status) && WEXITSTATUS(status) == 127) found = false;
    EXPECT_TRUE(!found || status == 0);
    library_ = dlopen(object.c_str(), RTLD_NOW);
    unlink(path);
    unlink(object.c_str());
    return found;
  }
  void run(int number, const std::vector<uint64_t>* in, const std::vector<uint64_t>& random, void* out) {
    auto* loop = reinterpret_cast<void (*)(const void*, const void*, const void*, const void*, void*)>(
        dlsym(library_, fmt::format("loop{}", number).c_str()));
    ASSERT_NE(loop, nullptr);
    loop(in[0].data(), in[1].data(), in[2].data(), random.data(), out);
  }

 private:
  std::string text_;
  int count_ = 0;
  void* library_ = nullptr;
};

TEST(ScalarFunctions, TextsGiveTheBitsOfTheLibrary) {
  CompiledLoops loops;
  std::vector<std::function<void()>> checks;
  const std::vector<uint64_t> random = lanes_of(u32, 99);
  for (const FunctionInfo& row : all_functions())
    for (DType type : kOperands) {
      if (!accepts(row.function, type)) continue;
      std::string call = fmt::format("{}({})", c_name(row.function, type),
                                     row.arity == 1   ? "a"
                                     : row.arity == 2 ? "a, b"
                                                      : "a, b, c");
      loops.pieces.insert(c_name(row.function, type));
      const bool exact = row.is_predicate || (type.is_float() && is_closed(row.function, type));
      std::string narrow = exact ? "" : narrowing(type);
      if (!narrow.empty()) loops.pieces.insert(narrow);
      int number =
          loops.add(type, result_type(row.function, type), narrow.empty() ? call : fmt::format("{}({})", narrow, call));
      checks.push_back([&, type, number] {
        std::vector<uint64_t> in[] = {lanes_of(type, 1), lanes_of(type, 2), lanes_of(type, 3)}, want(kLanes),
                              got(kLanes);
        const void* pointers[] = {in[0].data(), in[1].data(), in[2].data()};
        apply(row.function, type, {pointers, row.arity}, want.data(), kLanes);
        loops.run(number, in, random, got.data());
        int at = 0;
        EXPECT_TRUE(same_lanes(result_type(row.function, type), want.data(), got.data(), at))
            << row.name << " " << type.name() << " lane " << at;
      });
    }
  for (DType from : kSources)
    for (DType to : kTypes)
      for (Rounding rounding : {Rounding::Nearest, Rounding::TowardZero, Rounding::Stochastic}) {
        if (!can_round(to, rounding)) continue;
        int number = loops.add(from, to, conversion(from, to, rounding, "a", "r", loops.pieces));
        checks.push_back([&, from, to, rounding, number] {
          std::vector<uint64_t> in[3] = {lanes_of(from, 5)}, want(kLanes), got(kLanes);
          convert(from, to, rounding, in[0].data(), reinterpret_cast<const int64_t*>(random.data()), want.data(),
                  kLanes);
          loops.run(number, in, random, got.data());
          int at = 0;
          EXPECT_TRUE(same_lanes(to, want.data(), got.data(), at))
              << from.name() << " to " << to.name() << " lane " << at;
        });
      }
  if (!loops.build()) GTEST_SKIP() << "no g++ on this machine";
  ASSERT_GT(checks.size(), 500u);
  for (const auto& check : checks) check();
}

}  // namespace
}  // namespace tilewright
