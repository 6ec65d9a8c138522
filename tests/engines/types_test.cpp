// Every scalar function, operator, reduction, scan, atomic and conversion of every type either works on all engines,
// with one result, or is refused by a code of its own.
#include <gtest/gtest.h>

#include "driver/build_plan.h"
#include "driver/cpu_engine.h"
#include "passes/pipeline.h"
#include "scalar/functions.h"
#include "tilewright/compile.h"

namespace tilewright {
namespace {

const DType kTypes[] = {boolean, i4,  u4,   i8,   u8,  i16, u16,  i32,  u32,  i64,
                        u64,     f16, bf16, tf32, f32, f64, e4m3, e5m2, e8m0, e2m1};

// What the engine leaves of the program in its last argument; empty where the program is refused by a code.
std::vector<double> results(const std::string& text, const std::vector<Argument>& arguments, const NDArray& out,
                            Engine engine) {
  try {
    compile(parse_program(text), {.engine = engine}).call(arguments);
    return out.to_floats();
  } catch (const Error& error) {
    EXPECT_NE(error.diagnostic().code_text(), "TW0001") << text << error.what();
    return {};
  }
}

std::string head(DType from, DType to) {
  return "program p {\n  param A: " + from.name() + "[64]\n  param B: " + from.name() +
         "[64]\n  param C: " + to.name() + "[64]\n  launch l(bx: 1) threads(tx: 32) {\n";
}

void expect_agreement(const std::string& text, DType from, DType to) {
  const NDArray a = NDArray::zeros({64}, from), b = NDArray::zeros({64}, from);
  std::vector<double> x(64), y(64);
  for (size_t i = 0; i < 64; ++i) x[i] = static_cast<double>(i % 7) / 2, y[i] = static_cast<double>(1 + i % 3);
  a.assign_floats(x), b.assign_floats(y);
  std::vector<double> first;
  for (const Engine engine : {Engine::Interpreter, Engine::Simulator}) {
    const NDArray c = NDArray::zeros({64}, to);
    const std::vector<double> now = results(text, {a, b, c}, c, engine);
    if (engine == Engine::Interpreter) {
      first = now;
      continue;
    }
    ASSERT_EQ(now.size(), first.size()) << "refused by one engine alone:\n" << text;
    for (size_t i = 0; i < now.size(); ++i)
      EXPECT_TRUE(now[i] == first[i] || (std::isnan(now[i]) && std::isnan(first[i])) ||
                  std::abs(now[i] - first[i]) <= 1e-5 * std::abs(first[i]))
          << text << i << ": " << first[i] << ", " << now[i];
  }
  if (first.empty()) return;
  Dump dump("types");
  const ir::TileProgram program =
      passes::run_passes(order_symbols(parse_program(text).box().program), passes::all_passes(), [](auto&&...) {});
  EXPECT_FALSE(write_cpu(program, {}, dump).text.empty());
}

void expect_agreement_of(const std::string& value, DType from, DType to) {
  SCOPED_TRACE(value + " of " + from.name());
  expect_agreement(head(from, to) + "    map i in 64 {\n      C[i] = " + value + "\n    }\n  }\n}\n", from, to);
}

TEST(Types, OfScalarFunctions) {
  for (const FunctionInfo& row : all_functions())
    for (const DType type : kTypes) {
      std::string arguments = "A[i]";
      for (int k = 1; k < row.arity; ++k) arguments += ", B[i]";
      expect_agreement_of(std::string(row.name) + "(" + arguments + ")", type, row.is_predicate ? boolean : type);
    }
}

TEST(Types, OfOperators) {
  for (const DType type : kTypes) {
    for (const char* op : {"+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "and", "or"})
      expect_agreement_of("A[i] " + std::string(op) + " B[i]", type, type);
    for (const char* op : {"min_nan", "max_nan", "truncdiv", "truncmod"})
      expect_agreement_of(std::string(op) + "(A[i], B[i])", type, type);
    for (const char* op : {"==", "!=", "<", "<="})
      expect_agreement_of("A[i] " + std::string(op) + " B[i]", type, boolean);
    for (const char* op : {"-", "~", "not "}) expect_agreement_of(std::string(op) + "A[i]", type, type);
    expect_agreement_of("fma(A[i], B[i], A[i])", type, type);
    expect_agreement_of("select(A[i] < B[i], A[i], B[i])", type, type);
  }
}

TEST(Types, OfConversions) {
  for (const DType from : kTypes)
    for (const DType to : kTypes) expect_agreement_of(to.name() + "(A[i])", from, to);
}

TEST(Types, OfReductionsAndScans) {
  for (const DType type : kTypes)
    for (const std::string op : {"reduce sum", "reduce max", "reduce min", "reduce abssum", "reduce absmax",
                                 "reduce bitand", "reduce bitor", "reduce bitxor", "scan sum", "scan max"}) {
      const bool scans = op[0] == 's';
      for (const std::string& rest : scans ? std::vector<std::string>{"", " reverse=true"}
                                           : std::vector<std::string>{"", " clear=false", " nan_propagate=true"}) {
        SCOPED_TRACE(op + rest + " of " + type.name());
        const std::string shape = scans ? "[16, 4]" : "[16]";
        expect_agreement(head(type, type) + "    shared s: " + type.name() + "[16, 4]\n    fragment r: " + type.name() +
                             shape + "\n    fill to=r value=" + type.name() + "(1)\n" +
                             "    map i in 16, j in 4 {\n      s[i, j] = A[i * 4 + j]\n    }\n    " + op +
                             " from=s to=r dim=1" + rest + "\n" +
                             (scans ? "    map i in 16, j in 4 {\n      C[i * 4 + j] = r[i, j]\n    }\n"
                                    : "    map i in 16 {\n      C[i] = r[i]\n    }\n") +
                             "  }\n}\n",
                         type, type);
      }
    }
}

TEST(Types, OfAtomics) {
  for (const DType type : kTypes)
    for (const char* op : {"add", "max", "min", "and", "or", "xor", "exchange", "store"}) {
      SCOPED_TRACE(op + (" of " + type.name()));
      expect_agreement(
          head(type, type) + "    map i in 64 {\n      atomic " + op + " to=C[i] value=A[i]\n    }\n  }\n}\n", type,
          type);
    }
}

// An e5m2 that is infinite stays so where it is copied, filled or chosen; what is converted or computed saturates.
TEST(Types, OfInfinities) {
  const std::string text =
      "program p {\n  param A: float8_e5m2[64]\n  param C: float8_e5m2[4, 64]\n  launch l(bx: 1) threads(tx: 32) {\n"
      "    shared s: float8_e5m2[64]\n    fragment f: float8_e5m2[64]\n    copy from=A to=s\n    copy from=s to=C[0, 0 "
      ": 64]\n"
      "    fill to=f value=inf\n    copy from=f to=C[1, 0 : 64]\n    map i in 64 {\n"
      "      C[2, i] = max(s[i], A[63 - i])\n      C[3, i] = float8_e5m2(float32(A[i]))\n    }\n  }\n}\n";
  const NDArray a = NDArray::zeros({64}, e5m2);
  std::memset(a.data(), 0x7c, 32), std::memset(static_cast<char*>(a.data()) + 32, 0xfc, 32);
  for (const Engine engine : {Engine::Interpreter, Engine::Cpu, Engine::Simulator}) {
    const NDArray c = NDArray::zeros({4, 64}, e5m2);
    compile(parse_program(text), {.engine = engine}).call(std::vector<Argument>{a, c});
    const auto* bits = static_cast<const uint8_t*>(c.data());
    for (int i = 0; i < 64; ++i) {
      EXPECT_EQ(bits[i], i < 32 ? 0x7c : 0xfc);
      EXPECT_EQ(bits[64 + i], 0x7c);
      EXPECT_EQ(bits[128 + i], 0x7c);
      EXPECT_EQ(bits[192 + i], i < 32 ? 0x7b : 0xfb);
    }
  }
}

}  // namespace
}  // namespace tilewright
