// Mistakes in expressions: one a test, with the whole message.
#include "errors/expect_error.h"

namespace tilewright::errors {
namespace {

TEST(OperatorErrors, TwoFloat8FormatsHaveNoCommonType) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          Value a = cast(x, e4m3), b = cast(x, e5m2);
          mark();
          Value c = a + b;
        });
      },
      R"(TW1001 build: + of float8_e4m3fn and float8_e5m2: the two have no common type
  --> the mistake
help: cast one of them, for example with cast(x, f32))");
}

TEST(OperatorErrors, AddressesHaveNoCommonTypeWithNumbers) {
  Tensor A("A", {8}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          mark();
          Value next = address_of(A(0)) + 1;
        });
      },
      R"(TW1001 build: + of pointer and int32: the two have no common type
  --> the mistake
help: cast one of them, for example with cast(x, f32))");
}

TEST(OperatorErrors, SidesOfSelectNeedACommonType) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          mark();
          Value c = if_then_else(x < 1, cast(x, e4m3), cast(x, e8m0));
        });
      },
      R"(TW1001 build: if_then_else of float8_e4m3fn and float8_e8m0fnu: the two have no common type
  --> the mistake
help: cast one of them, for example with cast(x, f32))");
}

TEST(OperatorErrors, ArgumentsOfFunctionsNeedACommonType) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          mark();
          Value c = pow(cast(x, e4m3), cast(x, e5m2));
        });
      },
      R"(TW1001 build: pow of float8_e4m3fn and float8_e5m2: the two have no common type
  --> the mistake
help: cast one of them, for example with cast(x, f32))");
}

TEST(OperatorErrors, SlashOfIntegers) {
  Value n = Scalar("n", i32);
  expect_error(
      [&] {
        kernel({n}, [&] {
          mark();
          Value half = n / 2;
        });
      },
      R"(TW1002 build: / of int32 and int32: / divides floats
  --> the mistake
help: use floordiv(a, b), or ceildiv(a, b) for a number of blocks; or cast an operand to a float)");
}

TEST(OperatorErrors, RemainderOfFloats) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          mark();
          Value rest = x % 2;
        });
      },
      R"(TW1003 build: % takes integers, but an operand is float32
  --> the mistake
help: cast to an integer first, or divide floats by /)");
}

TEST(OperatorErrors, BitsOfFloats) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          mark();
          Value low = x & 255;
        });
      },
      R"(TW1003 build: & takes integers, but an operand is float32
  --> the mistake
help: reinterpret the bits of a float as an integer first)");
}

TEST(OperatorErrors, ComplementOfFloats) {
  Value x = Scalar("x", f16);
  expect_error(
      [&] {
        kernel({x}, [&] {
          mark();
          Value all = ~x;
        });
      },
      R"(TW1003 build: ~ takes integers, but an operand is float16
  --> the mistake
help: reinterpret the bits of a float as an integer first)");
}

TEST(OperatorErrors, ShiftOutsideOfTheWidth) {
  Value n = Scalar("n", i32);
  expect_error(
      [&] {
        kernel({n}, [&] {
          mark();
          Value gone = n << 32;
        });
      },
      R"(TW1004 build: << of int32 by 32
  --> the mistake
help: shift by 0 to 31 bits)");
}

TEST(OperatorErrors, DivisionByTheConstantZero) {
  Value n = Scalar("n", i32);
  expect_error(
      [&] {
        kernel({n}, [&] {
          mark();
          Value never = floordiv(n, 0);
        });
      },
      R"(TW1005 build: // by the constant 0
  --> the mistake
help: integers have no quotient by 0: look at how the divisor is computed)");
}

TEST(OperatorErrors, FloatAsCondition) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          mark();
          If(x, [] {});
        });
      },
      R"(TW1006 build: a condition is a bool or an integer, but this is float32
  --> the mistake
help: compare it, for example x != 0)");
}

TEST(OperatorErrors, FloatAsOperandOfNot) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          mark();
          Value zero = !x;
        });
      },
      R"(TW1006 build: a condition is a bool or an integer, but this is float32
  --> the mistake
help: compare it, for example x != 0)");
}

TEST(OperatorErrors, NegativePowerOfTwo) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          mark();
          Value scale = -cast(x, e8m0);
        });
      },
      R"(TW1007 build: unary - takes numbers that have a sign, but an operand is float8_e8m0fnu
  --> the mistake
help: cast it to a type that has negative values)");
}

TEST(OperatorErrors, NumberOfArguments) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          mark();
          Value y = scalar_function("exp2", {x, 2});
        });
      },
      R"(TW1008 build: exp2 of 2 arguments
  --> the mistake
help: exp2 takes 1)");
}

TEST(OperatorErrors, SumOfAddresses) {
  Tensor A("A", {8}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          mark();
          Value y = address_of(A(0)) + address_of(A(1));
        });
      },
      R"(TW1007 build: + takes numbers, but an operand is pointer
  --> the mistake
help: reinterpret an address as uint64 to compute with it)");
}

TEST(OperatorErrors, NoArguments) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          Value y = scalar_function("exp2", {});
        });
      },
      R"(TW1008 build: exp2 of 0 arguments
  --> the mistake
help: exp2 takes 1)");
}

TEST(OperatorErrors, ExponentialOfIntegers) {
  Value n = Scalar("n", i32);
  expect_error(
      [&] {
        kernel({n}, [&] {
          mark();
          Value y = exp(n);
        });
      },
      R"(TW1009 build: exp takes floats, but an operand is int32
  --> the mistake
help: cast the operand first)");
}

TEST(OperatorErrors, PopulationCountOfFloats) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          mark();
          Value bits = popcount(x);
        });
      },
      R"(TW1009 build: popcount takes integers of 8 bits or more, but an operand is float32
  --> the mistake
help: cast the operand first)");
}

TEST(OperatorErrors, InfinityOfIntegers) {
  expect_error(
      [&] {
        kernel({}, [&] {
          mark();
          Value top = infinity(i32);
        });
      },
      R"(TW1009 build: infinity(int32): this type has no infinity
  --> the mistake
help: use max_value(dtype))");
}

TEST(OperatorErrors, UnknownFunction) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          mark();
          Value y = scalar_function("gamma", {x});
        });
      },
      R"(TW1078 build: there is no scalar function 'gamma'
  --> the mistake
help: the names are those of C++ where it has the function: exp2, sqrt, fmod, ...)");
}

TEST(OperatorErrors, CastOfAnAddress) {
  Tensor A("A", {8}, f32);
  expect_error(
      [&] {
        kernel({A}, [&] {
          mark();
          Value number = cast(address_of(A(0)), i64);
        });
      },
      R"(TW1010 build: pointer cannot be cast to int64
  --> the mistake
help: use reinterpret between addresses and 64-bit integers)");
}

TEST(OperatorErrors, ReinterpretBetweenWidths) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          mark();
          Value bits = reinterpret(x, u16);
        });
      },
      R"(TW1011 build: reinterpret of float32 as uint16: they have 32 and 16 bits
  --> the mistake
help: reinterpret between types of one width, or cast)");
}

TEST(OperatorErrors, ReinterpretOfBool) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          mark();
          Value bits = reinterpret(x < 1, u8);
        });
      },
      R"(TW1011 build: reinterpret of bool as uint8: they have 1 and 8 bits
  --> the mistake
help: a bool is no bit pattern: compare or cast instead)");
}

TEST(OperatorErrors, ValueThatWasNeverSet) {
  Value x = Scalar("x", f32);
  expect_error(
      [&] {
        kernel({x}, [&] {
          Value unset;
          mark();
          Value y = unset * x;
        });
      },
      R"(TW1080 build: an operator: an operand without a value
  --> the mistake
help: initialize the Value before it is used)");
}

// Every operand knows its line, also where an expression spans several and where loads of other lines follow.
TEST(OperatorErrors, LongExpressionsPointAtTheirLine) {
  Tensor A("A", {8}, f32), I("I", {8}, i32);
  expect_error(
      [&] {
        kernel({A, I}, [&] {
          Value first = A(0);
          A(1) = first * first + A(2) * A(3) + A(4) * A(5) + A(6) * first + A(7) * first +
                 // 12345678901234567890
                 [&]() -> Value {
            mark();
            Value quotient = I(0) / I(1);
            return quotient;
          }();
        });
      },
      R"(TW1002 build: / of int32 and int32: / divides floats
  --> the mistake
help: use floordiv(a, b), or ceildiv(a, b) for a number of blocks; or cast an operand to a float)");
}

}  // namespace
}  // namespace tilewright::errors
