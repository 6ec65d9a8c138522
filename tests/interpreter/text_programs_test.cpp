// What the text form says and the C++ language does not: extents that are known only when the program runs, stochastic
// casts, calls of foreign text.
#include "interpreter/run.h"
#include "ir/parse.h"

namespace tilewright::interpreter {
namespace {

Program program_of(const std::string& text) {
  return Program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{ir::parse(text, "p.tile")}));
}

// A launch of one block over A, B and n.
std::string error_in(const std::string& body, int64_t n) {
  const Program p = program_of(R"(program p {
  param A: float32[64]
  param B: float32[64, 64]
  param n: int32
  launch main(bx: 1) threads(tx: 32) {
    shared s: float32[8]
    shared S: float32[8, 4]
    fragment c: float32[8, 8]
    fill to=S value=1.0
    fill to=c value=0.0
)" + body + "  }\n}\n");
  return error_of(p, {range_array({64}, f32), range_array({64, 64}, f32)}, {.ints = {{"n", n}}});
}

// A[n - i, i] lies at one place for all i, but only one of them is an element of A.
TEST(InterpreterText, IndicesWhoseOffsetsCancelAreInsideOrNotEachByItself) {
  const Program p = program_of(R"(program p {
  param A: float32[2, 1, 8]
  param B: float32[16]
  param n: int32
  launch l(bx: 1) threads(tx: 32) {
    map i in 16 {
      B[i] = A[n - i, i, 3] + 1.0
    }
  }
}
)");
  const NDArray a = range_array({2, 1, 8}, f32, 1, 5), b = NDArray::zeros({16}, f32);
  run(p, {a, b}, {.ints = {{"n", 0}}});
  for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(b.get_float({i}), i == 0 ? a.get_float({0, 0, 3}) + 1 : 1) << i;
}

TEST(InterpreterText, ExtentsOfACopyMeetWhenItRuns) {
  const std::string copy = "copy from=A[0 : n] to=s\n";
  EXPECT_EQ(error_in(copy, 8), "no error");
  EXPECT_EQ(error_in(copy, 5), "TW6014: a copy of (5) elements of 'A' to (8) of 's', in block (0)");
  EXPECT_EQ(error_in("copy from=B[0 : n, 3 : 4] to=S\n", 4),
            "TW6014: a copy of (4, 4) elements of 'B' to (8, 4) of 'S', in block (0)");
}

TEST(InterpreterText, ExtentsOfAReductionMeetWhenItRuns) {
  const std::string reduce = "reduce sum from=S[0 : n, 0 : 4] to=s dim=1\n";
  EXPECT_EQ(error_in(reduce, 8), "no error");
  EXPECT_EQ(error_in(reduce, 3), "TW6014: a reduction of (3, 4) along dimension 1 into (8), in block (0)");
}

TEST(InterpreterText, ExtentsOfAScanMeetWhenItRuns) {
  const std::string scan = "scan sum from=S[0 : n, 0 : 4] to=c[0 : 8, 0 : 4] dim=0\n";
  EXPECT_EQ(error_in(scan, 8), "no error");
  EXPECT_EQ(error_in(scan, 2), "TW6014: a scan of (2, 4) into (8, 4), in block (0)");
}

// The verifier refuses such a gemm: only a program that was not verified gets here.
TEST(InterpreterText, ExtentsOfAGemmMeetWhenItRuns) {
  const std::string gemm = "gemm a=S[0 : n, 0 : 4] b=S[0 : n, 0 : 4] c=c transpose_b=true\n";
  EXPECT_EQ(error_in(gemm, 8), "no error");
  EXPECT_EQ(error_in(gemm, 5), "TW6014: a gemm of (5, 4) and (5, 4) into (8, 8), in block (0)");
}

TEST(InterpreterText, ForeignTextIsRefused) {
  EXPECT_EQ(error_in("r: int32 = call function=\"helper\" source=\"int helper(int a) { return a; }\" args=[n]\n", 1),
            "TW6090: the interpreter cannot run the foreign function 'helper'");
}

// Random bits of all sizes: the share that rounds up is the distance from the lower neighbour.
TEST(InterpreterText, StochasticCastsAreRightOnAverage) {
  for (const auto& [name, type, below, above] :
       {std::tuple{"float16", f16, 1.0, 1.0 + 0x1p-10}, std::tuple{"bfloat16", bf16, 1.0, 1.0 + 0x1p-7},
        std::tuple{"float8_e4m3fn", e4m3, 1.0, 1.125}, std::tuple{"float8_e5m2", e5m2, 1.0, 1.25}}) {
    const Program p = program_of(fmt::format(R"(program p {{
  param X: float32[1024]
  param R: uint32[1024]
  param Y: {0}[1024]
  launch main(bx: 1) threads(tx: 32) {{
    map i in 1024 {{
      Y[i] = {0}(X[i], stochastic, R[i])
    }}
  }}
}}
)",
                                             name));
    const int64_t n = 1024;
    NDArray x = NDArray::zeros({n}, f32), r = NDArray::zeros({n}, u32), y = NDArray::zeros({n}, type);
    x.assign_floats(std::vector<double>(static_cast<size_t>(n), below + (above - below) / 4));
    std::vector<int64_t> bits;
    for (uint32_t i = 0; i < n; ++i) bits.push_back(i * 0x9E3779B9u);  // evenly spread over 32 bits
    r.assign_ints(bits);
    run(p, {x, r, y});
    int64_t up = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double v = y.get_float({i});
      ASSERT_TRUE(v == below || v == above) << name << " " << v;
      up += v == above;
    }
    EXPECT_NEAR(static_cast<double>(up), n / 4.0, 8) << name;
  }
}

}  // namespace
}  // namespace tilewright::interpreter
