#include "runtime/plans.h"

namespace tilewright::runtime {
namespace {

using Arguments = std::vector<Argument>;

void expect_bind(const LaunchPlan& plan, const Arguments& arguments, Code code, const std::string& message) {
  verify(plan);
  BoundCall call;
  expect_refusal(code, message, [&] { bind_call(plan, arguments, call); });
}

// One tensor 'x' of the given parameter, one argument.
LaunchPlan single(Parameter parameter) {
  LaunchPlan plan;
  plan.name = "k";
  plan.parameters = {std::move(parameter)};
  return plan;
}

struct Matrices {
  NDArray a = NDArray::zeros({256, 128}, f16), b = NDArray::zeros({128, 64}, f16), c = NDArray::zeros({256, 64}, f32);
};

TEST(Bind, GivesBuffersSymbolsAndScalars) {
  LaunchPlan plan = matmul_plan();
  plan.parameters.push_back(scalar_parameter("n", i32));
  plan.parameters.push_back(scalar_parameter("scale", f32));
  plan.parameters.push_back(scalar_parameter("shift", f64));
  plan.parameters.push_back(scalar_parameter("seed", u64));
  plan.parameters.push_back(scalar_parameter("on", boolean));
  plan.workspaces = {{"w", f32, symbol(0)}};
  verify(plan);
  const Matrices m;
  const Arguments arguments = {m.a, m.b, m.c, -3, 0.5, 2, ~uint64_t{0}, true};
  BoundCall call;
  bind_call(plan, arguments, call);
  EXPECT_FALSE(call.nothing_to_do);
  ASSERT_EQ(call.buffer_count, 4);
  EXPECT_EQ(call.buffers[0], m.a.data());
  EXPECT_EQ(call.buffers[2], m.c.data());
  EXPECT_EQ(call.buffers[3], nullptr);
  ASSERT_EQ(call.integer_count, 8);
  EXPECT_EQ(call.symbols()[0], 256);
  EXPECT_EQ(call.symbols()[1], 128);
  EXPECT_EQ(call.symbols()[2], 64);
  EXPECT_EQ(call.scalars()[0], -3);
  EXPECT_EQ(call.scalars()[1], 0x3f000000);
  EXPECT_EQ(call.scalars()[2], 0x4000000000000000);
  EXPECT_EQ(call.scalars()[3], -1);
  EXPECT_EQ(call.scalars()[4], 1);
}

TEST(Bind, ScalarsAreRoundedOnceToTheirType) {
  const auto pattern = [](DType type, const Argument& argument) {
    const LaunchPlan plan = single(scalar_parameter("s", type));
    BoundCall call;
    bind_call(plan, {&argument, 1}, call);
    return call.scalars()[0];
  };
  EXPECT_EQ(pattern(f16, 0.1), std::bit_cast<uint32_t>(0.0999755859375f));
  EXPECT_EQ(pattern(bf16, 1), std::bit_cast<uint32_t>(1.0f));
  EXPECT_EQ(pattern(e4m3, 1000), std::bit_cast<uint32_t>(448.0f));
  EXPECT_EQ(pattern(f32, 0.1), std::bit_cast<uint32_t>(0.1f));
  EXPECT_EQ(pattern(f64, 0.1), std::bit_cast<int64_t>(0.1));
  EXPECT_EQ(pattern(f64, ~uint64_t{0}), std::bit_cast<int64_t>(0x1p64));
  // 2^60 + 2^36 + 1 lies just above the middle of two floats, and double would drop the 1.
  EXPECT_EQ(pattern(f32, (int64_t{1} << 60) + (int64_t{1} << 36) + 1), std::bit_cast<uint32_t>(0x1.000002p60f));
}

TEST(Bind, Count) {
  const Matrices m;
  expect_bind(matmul_plan(), {m.a, m.b}, Code::ArgumentCount,
              "matmul_relu: takes 3 arguments (A, B, C), but the call has 2");
  expect_bind(single(scalar_parameter("n", i32)), {1, 2}, Code::ArgumentCount,
              "k: takes 1 argument (n), but the call has 2");
  expect_bind({.name = "k", .parameters = {}, .symbols = {}, .assumes = {}, .workspaces = {}, .grids = {}, .sites = {}},
              {1}, Code::ArgumentCount, "k: takes 0 arguments, but the call has 1");
}

TEST(Bind, Kind) {
  const Matrices m;
  expect_bind(matmul_plan(), {m.a, 5, m.c}, Code::ArgumentKind,
              "matmul_relu: argument 1 'B' must be a tensor (float16, 2 dimensions), but is the number 5");
  expect_bind(matmul_plan(), {m.a, 0.5, m.c}, Code::ArgumentKind,
              "matmul_relu: argument 1 'B' must be a tensor (float16, 2 dimensions), but is the number 0.5");
  expect_bind(single(tensor_parameter("x", f32, {constant(4)})), {~uint64_t{0}}, Code::ArgumentKind,
              "k: argument 0 'x' must be a tensor (float32, 1 dimension), but is the number 18446744073709551615");
  expect_bind(single(scalar_parameter("n", i32)), {m.a}, Code::ArgumentKind,
              "k: argument 0 'n' must be an integer (int32), but is a tensor of shape (256, 128)");
  expect_bind(single(scalar_parameter("n", i32)), {2.5}, Code::ArgumentKind,
              "k: argument 0 'n' must be an integer (int32), but is the number 2.5");
  expect_bind(single(scalar_parameter("s", f32)), {nullptr}, Code::ArgumentKind,
              "k: argument 0 's' must be a number (float32), but is null");
}

TEST(Bind, Null) {
  const Matrices m;
  expect_bind(matmul_plan(), {m.a, nullptr, m.c}, Code::ArgumentNull,
              "matmul_relu: argument 1 'B' is null, but the program uses it");
  expect_bind(matmul_plan(), {m.a, NDArray(), m.c}, Code::ArgumentNull,
              "matmul_relu: argument 1 'B' is null, but the program uses it");
  LaunchPlan plan = matmul_plan();
  plan.parameters[2].nullable = true;
  BoundCall call;
  const Arguments arguments = {m.a, m.b, nullptr};
  bind_call(plan, arguments, call);
  EXPECT_EQ(call.buffers[2], nullptr);
  plan.parameters[1].nullable = true;
  expect_bind(plan, {m.a, nullptr, m.c}, Code::ArgumentNull,
              "matmul_relu: argument 1 'B' is null, but N is taken from its dimension 1");
  expect_bind(single(tensor_parameter("x", f32, {constant(4)})), {NDArray::borrow(nullptr, {4}, f32)},
              Code::ArgumentNull, "k: argument 0 'x' has elements but no memory: its data pointer is null");
}

// f(A[m], B[m], C[m + n], D[n], x: int32), none of which a launch uses; m is needed, n is not.
LaunchPlan plan_of_optional_tensors() {
  LaunchPlan plan;
  plan.name = "f";
  const IntProgram sum = combine(IntOp::Kind::Add, symbol(0), symbol(1));
  plan.parameters = {tensor_parameter("A", f32, {symbol(0)}), tensor_parameter("B", f32, {symbol(0)}),
                     tensor_parameter("C", f32, {sum}), tensor_parameter("D", f32, {symbol(1)})};
  for (Parameter& p : plan.parameters) p.nullable = true;
  Equation of_b, of_c;
  of_b.parameter = 1;
  of_c.parameter = 2, of_c.rest = symbol(1);
  plan.symbols = {shape_symbol("m", 0, 0), shape_symbol("n", 3, 0)};
  plan.symbols[0].others = {of_b, of_c};
  of_c.rest = symbol(0);
  plan.symbols[1].others = {of_c};
  plan.symbols[1].needed = false;
  return plan;
}

TEST(Bind, SymbolsComeFromAnyTensorThatIsThere) {
  const LaunchPlan plan = plan_of_optional_tensors();
  verify(plan);
  const NDArray two = NDArray::zeros({2}, f32), five = NDArray::zeros({5}, f32), three = NDArray::zeros({3}, f32);
  const auto symbols_of = [&](const Arguments& arguments) {
    BoundCall call;
    bind_call(plan, arguments, call);
    return std::vector<int64_t>(call.symbols().begin(), call.symbols().end());
  };
  using Values = std::vector<int64_t>;
  EXPECT_EQ(symbols_of({two, two, five, three}), (Values{2, 3}));
  EXPECT_EQ(symbols_of({nullptr, two, five, nullptr}), (Values{2, 3}));
  EXPECT_EQ(symbols_of({nullptr, nullptr, five, three}), (Values{2, 3}));
  EXPECT_EQ(symbols_of({nullptr, two, nullptr, nullptr}), (Values{2, 0}));
}

TEST(Bind, SymbolsThatNoTensorGivesOrThatTensorsDoNotAgreeOn) {
  const LaunchPlan plan = plan_of_optional_tensors();
  const NDArray two = NDArray::zeros({2}, f32), five = NDArray::zeros({5}, f32);
  expect_bind(plan, {nullptr, nullptr, five, nullptr}, Code::ArgumentNull,
              "f: too many arguments are null: none of the others gives m, which is taken from 'A'.shape[0] or "
              "'B'.shape[0] or 'C'.shape[0]");
  expect_bind(plan, {nullptr, two, five, two}, Code::ArgumentShape,
              "f: argument 2 'C' has shape (5,), but its dimension 0 must be m + n = 4 (m = 2 from 'B'.shape[0], n = 2 "
              "from 'D'.shape[0])");
  expect_bind(plan, {nullptr, five, two, nullptr}, Code::SymbolUnsolvable,
              "f: argument 2 'C' has shape (2,), so that n = -3, which is negative");
}

TEST(Bind, DtypeRankDevice) {
  const Matrices m;
  expect_bind(matmul_plan(), {m.a, m.c, m.c}, Code::ArgumentDtype,
              "matmul_relu: argument 1 'B' has dtype float32, but must have float16");
  expect_bind(matmul_plan(), {m.a, NDArray::zeros({2, 3, 4}, f16), m.c}, Code::ArgumentRank,
              "matmul_relu: argument 1 'B' has shape (2, 3, 4), but must have 2 dimensions");
  expect_bind(single(tensor_parameter("x", f16, {constant(4)})), {NDArray::zeros({}, f16)}, Code::ArgumentRank,
              "k: argument 0 'x' has shape (), but must have 1 dimension");
  const std::vector<int64_t> shape = {128, 64};
  const NDArray remote = NDArray::borrow(m.b.data(), shape, f16, {}, 0, {}, {2, 1});
  expect_bind(matmul_plan(), {m.a, remote, m.c}, Code::ArgumentDevice,
              "matmul_relu: argument 1 'B' is on cuda:1, but must be in the processor's memory");
  BoundCall call;  // float32 memory is what a tfloat32 parameter is stored in
  const LaunchPlan tensor_float = single(tensor_parameter("x", tf32, {constant(4)}));
  const NDArray x = NDArray::zeros({4}, f32);
  const Arguments arguments = {x};
  bind_call(tensor_float, arguments, call);
  EXPECT_EQ(call.buffers[0], x.data());
}

TEST(Bind, Shape) {
  const Matrices m;
  expect_bind(
      matmul_plan(), {m.a, NDArray::zeros({64, 32}, f16), m.c}, Code::ArgumentShape,
      "matmul_relu: argument 1 'B' has shape (64, 32), but its dimension 0 must be K = 128 (from 'A'.shape[1])");
  expect_bind(single(tensor_parameter("x", f32, {constant(4)})), {NDArray::zeros({5}, f32)}, Code::ArgumentShape,
              "k: argument 0 'x' has shape (5,), but its dimension 0 must be 4");
  LaunchPlan plan = matmul_plan();
  using Op = IntOp::Kind;
  plan.parameters[2].shape[1] = combine(Op::Add, combine(Op::Mul, constant(2), symbol(2)), scalar(0));
  plan.parameters.push_back(scalar_parameter("pad", i32));
  expect_bind(plan, {m.a, m.b, m.c, 7}, Code::ArgumentShape,
              "matmul_relu: argument 2 'C' has shape (256, 64), but its dimension 1 must be 2 * N + pad = 135 (N = 64 "
              "from 'B'.shape[1], pad = 7)");
  plan.parameters[2].shape[1] = scalar(0);
  expect_bind(plan, {m.a, m.b, m.c, 7}, Code::ArgumentShape,
              "matmul_relu: argument 2 'C' has shape (256, 64), but its dimension 1 must be pad = 7");
}

TEST(Bind, Strides) {
  const Matrices m;
  const NDArray transposed = NDArray::borrow(m.b.data(), {128, 64}, f16, {1, 128});
  expect_bind(matmul_plan(), {m.a, transposed, m.c}, Code::ArgumentStrides,
              "matmul_relu: argument 1 'B' has strides (1, 128) for shape (128, 64), but must be row-major without "
              "gaps: strides (64, 1)");
  LaunchPlan plan = matmul_plan();
  Symbol s = shape_symbol("S", 1, 0);
  s.source = Symbol::Source::Stride;
  plan.symbols.push_back(s);
  plan.parameters[1].strides = {symbol(3), constant(1)};
  plan.parameters[2].strides = {symbol(3), constant(1)};
  const NDArray memory = NDArray::zeros({128, 100}, f16);
  const NDArray wide = NDArray::borrow(memory.data(), {128, 64}, f16, {100, 1});
  expect_bind(
      plan, {m.a, wide, m.c}, Code::ArgumentStrides,
      "matmul_relu: argument 2 'C' has strides (64, 1), but its stride 0 must be S = 100 (from 'B'.strides[0])");
  expect_bind(plan, {m.a, transposed, m.c}, Code::ArgumentStrides,
              "matmul_relu: argument 1 'B' has strides (1, 128), but its stride 1 must be 1");
  // Strides of extent 1 are whatever a library wrote there.
  BoundCall call;
  const NDArray column = NDArray::borrow(m.a.data(), {4, 1}, f32, {1, 99});
  const Arguments arguments = {column};
  const LaunchPlan dense = single(tensor_parameter("x", f32, {constant(4), constant(1)}));
  bind_call(dense, arguments, call);
  const LaunchPlan strided = single(tensor_parameter("x", f32, {constant(4), constant(1)}, {constant(1), constant(1)}));
  bind_call(strided, arguments, call);
}

TEST(Bind, Alignment) {
  const NDArray memory = NDArray::zeros({100}, u8);
  const NDArray odd = NDArray::borrow(static_cast<char*>(memory.data()) + 6, {4}, f32);
  expect_bind(
      single(tensor_parameter("x", f32, {constant(4)})), {odd}, Code::ArgumentAlignment,
      "k: argument 0 'x' lies 2 bytes past a multiple of 4, but must be aligned to 4 bytes, the size of a float32");
  Parameter p = tensor_parameter("x", f32, {constant(4)});
  p.alignment = 16;
  expect_bind(single(p), {NDArray::borrow(static_cast<char*>(memory.data()) + 4, {4}, f32)}, Code::ArgumentAlignment,
              "k: argument 0 'x' lies 4 bytes past a multiple of 16, but must be aligned to 16 bytes");
}

TEST(Bind, ScalarRange) {
  expect_bind(single(scalar_parameter("n", i32)), {int64_t{1} << 31}, Code::ScalarRange,
              "k: argument 0 'n' is the number 2147483648, which does not fit int32");
  expect_bind(single(scalar_parameter("n", u8)), {-1}, Code::ScalarRange,
              "k: argument 0 'n' is the number -1, which does not fit uint8");
  expect_bind(single(scalar_parameter("n", u64)), {-1}, Code::ScalarRange,
              "k: argument 0 'n' is the number -1, which does not fit uint64");
  expect_bind(single(scalar_parameter("n", i64)), {~uint64_t{0}}, Code::ScalarRange,
              "k: argument 0 'n' is the number 18446744073709551615, which does not fit int64");
  expect_bind(single(scalar_parameter("n", boolean)), {2}, Code::ScalarRange,
              "k: argument 0 'n' is the number 2, which does not fit bool");
}

LaunchPlan heads_plan(int64_t coefficient, IntProgram rest) {
  LaunchPlan plan = single(tensor_parameter("x", f32, {symbol(0)}));
  Symbol h = shape_symbol("H", 0, 0);
  h.coefficient = coefficient;
  h.rest = std::move(rest);
  plan.symbols = {h};
  using Op = IntOp::Kind;
  IntProgram extent = combine(Op::Mul, constant(coefficient), symbol(0));
  plan.parameters[0].shape[0] = h.rest.ops.empty() ? extent : combine(Op::Add, extent, h.rest);
  return plan;
}

TEST(Bind, SymbolEquations) {
  BoundCall call;
  const LaunchPlan plan = heads_plan(2, constant(1));
  const NDArray x = NDArray::zeros({33}, f32);
  const Arguments arguments = {x};
  bind_call(plan, arguments, call);
  EXPECT_EQ(call.symbols()[0], 16);
  expect_bind(plan, {NDArray::zeros({34}, f32)}, Code::SymbolUnsolvable,
              "k: argument 0 'x' has shape (34,), but its dimension 0 must be 2 * H + 1 for an integer H");
  expect_bind(heads_plan(1, constant(4)), {NDArray::zeros({2}, f32)}, Code::SymbolUnsolvable,
              "k: argument 0 'x' has shape (2,), so that H = -2, which is negative");
  LaunchPlan narrow = heads_plan(1, {});
  narrow.symbols[0].dtype = i8;
  expect_bind(narrow, {NDArray::zeros({128}, f32)}, Code::SymbolUnsolvable,
              "k: argument 0 'x' has shape (128,), so that H = 128, which does not fit int8");
  LaunchPlan large = heads_plan(1, constant(-2147483000));
  large.symbols[0].dtype = i32;
  expect_bind(large, {NDArray::zeros({4}, f32)}, Code::SymbolUnsolvable,
              "k: argument 0 'x' has shape (4,), so that H = 2147483004, which leaves no room in int32 to round it up");
  LaunchPlan of_scalar = heads_plan(2, scalar(0));
  of_scalar.parameters.push_back(scalar_parameter("pad", i32));
  expect_bind(of_scalar, {x, 2}, Code::SymbolUnsolvable,
              "k: argument 0 'x' has shape (33,), but its dimension 0 must be 2 * H + pad for an integer H (pad = 2)");
}

TEST(Bind, Overflow) {
  LaunchPlan plan = heads_plan(1, {});
  plan.parameters.push_back(scalar_parameter("n", i64));
  plan.parameters[0].shape[0] = combine(IntOp::Kind::Mul, symbol(0), scalar(0));
  expect_bind(plan, {NDArray::zeros({4}, f32), int64_t{1} << 62}, Code::ExpressionOverflow,
              "k: H * n has no value in 64 bits (H = 4 from 'x'.shape[0], n = 4611686018427387904)");
  plan.parameters[0].shape[0] = combine(IntOp::Kind::FloorDiv, symbol(0), scalar(0));
  expect_bind(plan, {NDArray::zeros({4}, f32), 0}, Code::ExpressionOverflow,
              "k: H // n has no value in 64 bits (H = 4 from 'x'.shape[0], n = 0)");
}

TEST(Bind, Assumptions) {
  LaunchPlan plan = heads_plan(1, {});
  using Op = IntOp::Kind;
  plan.assumes = {{combine(Op::Equal, combine(Op::FloorMod, symbol(0), constant(16)), constant(0)),
                   "H % 16 == 0",
                   {"heads.py", 7, 3}}};
  expect_bind(plan, {NDArray::zeros({20}, f32)}, Code::AssumptionFailed,
              "k: Assume: H % 16 == 0 does not hold (H = 20 from 'x'.shape[0])");
  BoundCall call;
  const NDArray x = NDArray::zeros({32}, f32);
  const Arguments arguments = {x};
  bind_call(plan, arguments, call);
}

TEST(Bind, NoElements) {
  BoundCall call;
  const NDArray a = NDArray::zeros({256, 0}, f16), b = NDArray::borrow(nullptr, {0, 64}, f16),
                c = NDArray::zeros({256, 64}, f32);
  const Arguments arguments = {a, b, c};
  const LaunchPlan plan = matmul_plan();
  bind_call(plan, arguments, call);
  EXPECT_FALSE(call.nothing_to_do);  // K = 0: C is written
  const NDArray no_rows = NDArray::zeros({0, 0}, f16), no_product = NDArray::zeros({0, 64}, f32);
  const Arguments empty = {no_rows, b, no_product};
  bind_call(plan, empty, call);
  EXPECT_TRUE(call.nothing_to_do);
}

TEST(Bind, TheFirstMistakeInOrderIsReported) {
  const Matrices m;
  const NDArray wrong_type = NDArray::zeros({3, 3}, f64);
  expect_bind(matmul_plan(), {m.a, wrong_type, 7}, Code::ArgumentDtype,
              "matmul_relu: argument 1 'B' has dtype float64, but must have float16");
  // A dtype of a later argument comes before a shape of an earlier one.
  expect_bind(matmul_plan(), {m.a, NDArray::zeros({1, 1}, f16), m.a}, Code::ArgumentDtype,
              "matmul_relu: argument 2 'C' has dtype float16, but must have float32");
}

TEST(LaunchPlan, LimitsAreTheUsersContradictionsAreOurs) {
  LaunchPlan plan;
  plan.name = "k";
  for (int i = 0; i < 65; ++i) plan.parameters.push_back(tensor_parameter(fmt::format("t{}", i), f32, {}));
  expect_refusal(Code::PlanTooLarge, "k: 65 tensor parameters and workspaces; a call holds at most 64",
                 [&] { verify(plan); });
  plan.parameters.assign(129, scalar_parameter("n", i32));
  expect_refusal(Code::PlanTooLarge, "k: 129 symbols and scalar parameters; a call holds at most 128",
                 [&] { verify(plan); });
  LaunchPlan unknown = single(tensor_parameter("x", f32, {symbol(3)}));
  EXPECT_THROW(verify(unknown), InternalError);
  LaunchPlan unfinished = single(tensor_parameter("x", f32, {IntProgram{}}));
  EXPECT_THROW(verify(unfinished), InternalError);
  LaunchPlan no_operand = single(tensor_parameter("x", f32, {IntProgram{{{IntOp::Kind::Add, 0}}}}));
  EXPECT_THROW(verify(no_operand), InternalError);
}

TEST(IntProgram, EvaluatesAndPrints) {
  using Op = IntOp::Kind;
  const std::vector<std::string> symbols = {"M", "N"}, scalars = {"n"};
  const std::vector<int64_t> symbol_values = {-7, 3}, scalar_values = {5};
  const IntProgram m = symbol(0), n = symbol(1), s = scalar(0);
  const struct {
    IntProgram program;
    int64_t value;
    const char* text;
  } cases[] = {
      {combine(Op::FloorDiv, m, n), -3, "M // N"},
      {combine(Op::FloorMod, m, n), 2, "M % N"},
      {combine(Op::Mul, combine(Op::Add, m, n), s), -20, "(M + N) * n"},
      {combine(Op::Sub, m, combine(Op::Sub, n, s)), -5, "M - (N - n)"},
      {combine(Op::Sub, combine(Op::Sub, m, n), s), -15, "M - N - n"},
      {combine(Op::Min, m, combine(Op::Max, n, s)), -7, "min(M, max(N, n))"},
      {combine(Op::And, combine(Op::Less, m, n), combine(Op::LessEqual, n, constant(3))), 1, "M < N and N <= 3"},
      {combine(Op::Or, combine(Op::Equal, m, n), combine(Op::NotEqual, n, constant(3))), 0, "M == N or N != 3"},
      {negate(combine(Op::Equal, m, n)), 1, "not M == N"},
      {combine(Op::Mul, constant(2), constant(-4)), -8, "2 * (-4)"},
  };
  for (const auto& c : cases) {
    verify(c.program, 2, 1);
    int64_t value = 0;
    EXPECT_TRUE(evaluate(c.program, symbol_values, scalar_values, value));
    EXPECT_EQ(value, c.value) << c.text;
    EXPECT_EQ(to_string(c.program, symbols, scalars), c.text);
  }
  int64_t value = 0;
  EXPECT_FALSE(evaluate(combine(Op::Add, constant(std::numeric_limits<int64_t>::max()), constant(1)), {}, {}, value));
  EXPECT_FALSE(
      evaluate(combine(Op::FloorDiv, constant(std::numeric_limits<int64_t>::min()), constant(-1)), {}, {}, value));
  EXPECT_FALSE(evaluate(combine(Op::FloorMod, constant(1), constant(0)), {}, {}, value));
}

// 'a' is read and 'b' written, both of strides of their own.
void expect_overlap(const NDArray& a, const NDArray& b, bool refused) {
  LaunchPlan plan;
  plan.name = "k";
  for (const char* name : {"a", "b"}) {
    const NDArray& t = name[0] == 'a' ? a : b;
    Parameter p = tensor_parameter(name, t.dtype(), {});
    for (int64_t extent : t.shape()) p.shape.push_back(constant(extent));
    for (int64_t stride : t.strides()) p.strides.push_back(constant(stride));
    p.written = name[0] == 'b';
    plan.parameters.push_back(std::move(p));
  }
  if (refused)
    expect_bind(plan, {a, b}, Code::ArgumentsOverlap,
                "k: argument 1 'b', which the program writes, shares part of its memory with argument 0 'a'");
  BoundCall call;
  if (!refused) {
    EXPECT_NO_THROW(bind_call(plan, Arguments{a, b}, call));
  }
  plan.parameters[1].written = false;
  EXPECT_NO_THROW(bind_call(plan, Arguments{a, b}, call));
}

TEST(Bind, RefusesMemoryThatIsSharedInPart) {
  const NDArray all = NDArray::zeros({64, 64}, f32);
  float* first = static_cast<float*>(all.data());
  const auto part = [&](int64_t offset, std::vector<int64_t> shape, std::vector<int64_t> strides = {}) {
    return NDArray::borrow(first + offset, shape, f32, strides);
  };
  expect_overlap(part(0, {64}), part(32, {64}), true);
  expect_overlap(part(0, {64, 64}), part(0, {64}), true);
  expect_overlap(part(0, {8, 8}, {64, 1}), part(4, {8, 8}, {64, 1}), true);
  expect_overlap(part(0, {16}, {3}), part(9, {16}, {5}), true);
  // The same elements, in whatever shape; others between them.
  expect_overlap(part(0, {64}), part(0, {64}), false);
  expect_overlap(part(0, {64}), part(0, {8, 8}), false);
  expect_overlap(part(0, {8, 8}, {64, 1}), part(0, {8, 8}, {64, 1}), false);
  expect_overlap(part(0, {32}), part(32, {32}), false);
  expect_overlap(part(0, {64, 32}, {64, 1}), part(32, {64, 32}, {64, 1}), false);
  expect_overlap(part(0, {64, 32}, {64, 2}), part(1, {64, 32}, {64, 2}), false);
  expect_overlap(part(0, {16}, {6}), part(2, {16}, {4}), true);
  expect_overlap(part(0, {16}, {6}), part(1, {16}, {4}), false);
}

}  // namespace
}  // namespace tilewright::runtime
