// Properties of expressions: folding agrees with a naive evaluation, normal forms hold, equality is structural,
// rewriting keeps what it does not change.
#include "ir/operators.h"

#include <gtest/gtest.h>

#include <random>

#include "ir/rewrite.h"
#include "scalar/evaluate.h"
#include "scalar/functions.h"
#include "tilewright/language.h"

namespace tilewright::ir {
namespace {

using Wide = __int128;

// A value as the naive evaluation sees it: a number, wrapped to its type by definition and not by shifts.
struct Number {
  DType type;
  Wide value;
};

Number wrapped(DType type, Wide value) {
  if (type.is_bool()) return {type, value != 0};
  const Wide modulus = Wide{1} << type.bits;
  Wide v = value % modulus;
  if (v < 0) v += modulus;
  if (type.is_signed() && v >= modulus / 2) v -= modulus;
  return {type, v};
}

Wide floor_quotient(Wide a, Wide b) {
  Wide q = a / b;
  return q * b > a ? q - 1 : q;  // b > 0
}

Number naive(Operator op, DType type, Wide a, Wide b) {
  const Number x = wrapped(type, a), y = wrapped(type, b);
  a = x.value, b = y.value;
  const DType sum = type.is_bool() ? i32 : type;
  switch (op) {
    case Operator::Add: return wrapped(sum, a + b);
    case Operator::Sub: return wrapped(sum, a - b);
    case Operator::Mul:
      // The product of the residues is right, and fits: 64 bits at most on each side.
      return wrapped(sum, static_cast<Wide>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b)));
    case Operator::FloorDiv: return wrapped(type, floor_quotient(a, b));
    case Operator::FloorMod: return wrapped(type, a - floor_quotient(a, b) * b);
    case Operator::TruncDiv: return wrapped(type, a / b);
    case Operator::TruncMod: return wrapped(type, a % b);
    case Operator::Min: return {type, std::min(a, b)};
    case Operator::Max: return {type, std::max(a, b)};
    case Operator::BitAnd: return wrapped(type, a & b);
    case Operator::BitOr: return wrapped(type, a | b);
    case Operator::BitXor: return wrapped(type, a ^ b);
    case Operator::Shl: return wrapped(type, a * (Wide{1} << static_cast<int>(b)));
    case Operator::Shr: return wrapped(type, floor_quotient(a, Wide{1} << static_cast<int>(b)));
    case Operator::And: return {boolean, a != 0 && b != 0};
    case Operator::Or: return {boolean, a != 0 || b != 0};
    case Operator::Eq: return {boolean, a == b};
    case Operator::Ne: return {boolean, a != b};
    case Operator::Lt: return {boolean, a < b};
    case Operator::Le: return {boolean, a <= b};
    case Operator::Gt: return {boolean, a > b};
    case Operator::Ge: return {boolean, a >= b};
    default: ADD_FAILURE() << "no such operator of integers"; return {type, 0};
  }
}

// An expression made by the library together with its value for one assignment of the variables.
struct Pair {
  Expr expr;
  Number value;
};

class RandomExpressions {
 public:
  explicit RandomExpressions(uint32_t seed) : random_(seed) {
    for (DType type : {i4, u4, i8, u8, i16, u16, i32, u32, i64, u64, boolean})
      for (int copy = 0; copy < 2; ++copy) {
        const VarId id{static_cast<uint32_t>(vars_.size())};
        const Number value = wrapped(type, some_integer());
        vars_.push_back({var(id, type), value});
        assignment_[id] = constant(type, static_cast<int64_t>(value.value));
      }
  }

  Pair make(int depth) {
    if (depth == 0 || pick(8) == 0) return leaf();
    switch (pick(10)) {
      case 0: {
        const Pair a = make(depth - 1);
        return {apply_neg(a.expr), wrapped(a.value.type.is_bool() ? i32 : a.value.type, -a.value.value)};
      }
      case 1: {
        const Pair a = make(depth - 1);
        return {apply_not(a.expr), {boolean, a.value.value == 0}};
      }
      case 2: {
        const Pair a = make(depth - 1);
        const Wide flipped = a.value.type.is_bool() ? Wide{a.value.value == 0} : -a.value.value - 1;
        return {apply_bit_not(a.expr), wrapped(a.value.type, flipped)};
      }
      case 3: {
        const Pair a = make(depth - 1);
        const DType type = vars_[pick(vars_.size())].value.type;
        return {apply_cast(a.expr, type), wrapped(type, a.value.value)};
      }
      case 4: {
        const Pair c = make(depth - 1), a = make(depth - 1), b = make(depth - 1);
        const DType type = *promote(a.value.type, b.value.type);
        return {apply_select(c.expr, a.expr, b.expr), wrapped(type, c.value.value ? a.value.value : b.value.value)};
      }
      default: return operation(depth);
    }
  }

  const Substitution& assignment() const { return assignment_; }

 private:
  size_t pick(size_t n) { return random_() % n; }

  Wide some_integer() {
    switch (pick(4)) {
      case 0: return static_cast<Wide>(pick(5)) - 2;
      case 1: return Wide{1} << pick(64);
      case 2: return -(Wide{1} << pick(64));
      default: return static_cast<Wide>(static_cast<uint64_t>(random_()) << 32 | random_());
    }
  }

  Pair leaf() {
    if (pick(3) != 0) return vars_[pick(vars_.size())];
    const DType type = vars_[pick(vars_.size())].value.type;
    const Number value = wrapped(type, some_integer());
    return {constant(type, static_cast<int64_t>(value.value)), value};
  }

  Pair operation(int depth) {
    const auto op = static_cast<Operator>(pick(static_cast<size_t>(Operator::Ge) + 1));
    const Pair a = make(depth - 1);
    Pair b = make(depth - 1);
    const bool divides = op >= Operator::FloorDiv && op <= Operator::TruncMod;
    const bool shifts = op == Operator::Shl || op == Operator::Shr;
    if (op == Operator::Div) return a;
    if (divides || shifts) {  // amounts and divisors for which the result is defined; of 64 bits only signed ones fold
      if (a.value.type.is_bool() || (divides && a.value.type == u64)) return a;
      const Number amount{a.value.type,
                          static_cast<Wide>(pick(shifts ? static_cast<size_t>(a.value.type.bits) : 7)) + divides};
      if (amount.value >= 1 << std::min<int>(a.value.type.bits - 1, 8)) return a;
      b = {constant(amount.type, static_cast<int64_t>(amount.value)), amount};
    }
    if (op == Operator::And || op == Operator::Or)
      return {apply(op, a.expr, b.expr), naive(op, boolean, a.value.value != 0, b.value.value != 0)};
    return {apply(op, a.expr, b.expr), naive(op, *promote(a.value.type, b.value.type), a.value.value, b.value.value)};
  }

  std::mt19937 random_;
  std::vector<Pair> vars_;
  Substitution assignment_;
};

void expect_normal_form(const Expr& e) {
  walk(e, [](const Expr& x) {
    const auto* s = x.as<Sum>();
    if (!s) return;
    EXPECT_TRUE(x->type.is_int());
    EXPECT_FALSE(s->terms.empty());
    EXPECT_FALSE(s->terms.size() == 1 && s->terms[0].coefficient == 1 && s->constant == 0);
    EXPECT_EQ(static_cast<int64_t>(wrapped(x->type, s->constant).value), s->constant);
    for (size_t i = 0; i < s->terms.size(); ++i) {
      const Term& t = s->terms[i];
      EXPECT_NE(t.coefficient, 0);
      EXPECT_EQ(static_cast<int64_t>(wrapped(x->type, t.coefficient).value), t.coefficient);
      EXPECT_EQ(t.value->type, x->type);
      EXPECT_FALSE(t.value.as<Sum>() || is_constant(t.value));
      for (size_t j = 0; j < i; ++j) EXPECT_FALSE(equal(t.value, s->terms[j].value));
    }
  });
}

TEST(Operators, TheSmallerOfTwoTruthsIsTrueWhereBothAre) {
  const Expr a = binary(BinaryOp::Lt, var(VarId{0}, i32), constant(1)),
             b = binary(BinaryOp::Lt, var(VarId{1}, i32), constant(1));
  EXPECT_TRUE(equal(binary(BinaryOp::Min, a, b), binary(BinaryOp::And, a, b)));
  EXPECT_TRUE(equal(binary(BinaryOp::Max, a, b), binary(BinaryOp::Or, a, b)));
}

TEST(Operators, FoldingAgreesWithANaiveEvaluation) {
  int folded = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    RandomExpressions expressions(seed);
    for (int i = 0; i < 50; ++i) {
      const Pair p = expressions.make(1 + i % 6);
      ASSERT_EQ(p.expr->type, p.value.type) << "seed " << seed << ", expression " << i;
      const Expr value = substitute(p.expr, expressions.assignment());
      const std::optional<int64_t> number = constant_int(value);
      ASSERT_TRUE(number) << "not folded: seed " << seed << ", expression " << i;
      ASSERT_EQ(*number, static_cast<int64_t>(p.value.value)) << "seed " << seed << ", expression " << i;
      folded += !is_constant(p.expr);
    }
  }
  EXPECT_GT(folded, 1500);  // expressions with variables, not constants from the start
}

TEST(Operators, SumsAreInNormalForm) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    RandomExpressions expressions(seed);
    for (int i = 0; i < 50; ++i) expect_normal_form(expressions.make(1 + i % 6).expr);
  }
}

TEST(Operators, EqualExpressionsHaveEqualHashes) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    RandomExpressions first(seed), second(seed);
    Expr previous;
    for (int i = 0; i < 50; ++i) {
      const Expr a = first.make(4).expr, b = second.make(4).expr;
      ASSERT_TRUE(equal(a, b));
      ASSERT_EQ(hash(a), hash(b));
      if (previous) {
        ASSERT_EQ(equal(a, previous), a->type == previous->type && hash(a) == hash(previous));
      }
      previous = a;
    }
  }
  const Expr x = var(VarId{0}, i32), y = var(VarId{1}, i32);
  EXPECT_TRUE(equal(add(x, y), add(y, x)));
  EXPECT_EQ(hash(add(x, y)), hash(add(y, x)));
  EXPECT_FALSE(equal(sub(x, y), sub(y, x)));
  EXPECT_FALSE(equal(x, var(VarId{0}, i64)));
  EXPECT_FALSE(equal(load(BufferId{0}, {x}, f32), load(BufferId{1}, {x}, f32)));
  EXPECT_TRUE(equal(sub(add(x, y), y), x));
  EXPECT_TRUE(equal(mul(add(x, y), constant(2)), add(add(x, x), add(y, y))));
}

TEST(Operators, RewritingNothingKeepsThePointer) {
  const VarId absent{1000};
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    RandomExpressions expressions(seed);
    for (int i = 0; i < 50; ++i) {
      const Expr e = expressions.make(5).expr;
      ASSERT_TRUE(rewrite(e, [](const Expr&) { return std::optional<Expr>{}; }).same(e));
      ASSERT_TRUE(substitute(e, {{absent, constant(1)}}).same(e));
      // An unchanged statement stays the same one, and so does its place in the source.
      const Body body{make_stmt(Let{absent, e}, LocationId{3})};
      const Body same = rewrite_exprs(body, [](const Expr&) { return std::optional<Expr>{}; });
      ASSERT_TRUE(same.at(0).same(body[0]));
    }
  }
}

TEST(Operators, SubstitutionReachesEveryUse) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    RandomExpressions expressions(seed);
    for (int i = 0; i < 50; ++i) {
      const Expr e = expressions.make(5).expr;
      const std::set<VarId> used = used_vars(e);
      Substitution fresh;
      std::set<VarId> renamed;
      walk(e, [&](const Expr& x) {
        if (const auto* v = x.as<Var>()) fresh[v->id] = var(VarId{v->id.index + 100}, x->type);
      });
      for (VarId id : used) renamed.insert(VarId{id.index + 100});
      const Expr r = substitute(e, fresh);
      ASSERT_EQ(used_vars(r), renamed);
      ASSERT_EQ(equal(r, e), used.empty());
      expect_normal_form(r);
    }
  }
}

// Floats saturate where they are converted: what does not fit is left to the conversion.
TEST(Operators, FloatsBelowZeroAreNoUnsignedConstants) {
  for (const DType type : {u8, u32, u64}) {
    EXPECT_FALSE(is_constant(cast(constant(f32, -2.0), type))) << type.name();
    EXPECT_EQ(constant_int(cast(constant(f32, 2.0), type)), 2) << type.name();
  }
  EXPECT_EQ(constant_int(cast(constant(f32, -2.0), i64)), -2);
}

// What folding leaves of operands that were rewritten is not rewritten again.
TEST(Operators, SubstitutionHappensOnce) {
  const Expr k = var(VarId{0}, i32), j = var(VarId{1}, i32), flag = var(VarId{2}, boolean);
  const auto next = [&](const Expr& e) { return substitute(e, {{VarId{0}, add(k, constant(1))}}); };
  EXPECT_TRUE(equal(next(sub(k, constant(1))), k));
  EXPECT_TRUE(equal(next(sub(k, constant(2))), sub(k, constant(1))));
  EXPECT_TRUE(equal(next(binary(BinaryOp::Max, k, add(j, constant(1)))),
                    binary(BinaryOp::Max, add(k, constant(1)), add(j, constant(1)))));
  EXPECT_TRUE(
      equal(substitute(binary(BinaryOp::FloorDiv, k, j), {{VarId{0}, add(j, k)}, {VarId{1}, constant(1)}}), add(j, k)));
  EXPECT_TRUE(
      equal(substitute(add(k, mul(j, constant(2))), {{VarId{0}, add(j, k)}, {VarId{1}, constant(0)}}), add(j, k)));
  EXPECT_TRUE(equal(
      substitute(select(flag, k, j), {{VarId{0}, j}, {VarId{1}, k}, {VarId{2}, constant(boolean, int64_t{1})}}), j));
  EXPECT_TRUE(equal(substitute(cast(cast(k, i64), f32), {{VarId{0}, j}, {VarId{1}, k}}), cast(cast(j, i64), f32)));
  // A new node is seen: j + k of a sum that has become one.
  const auto named = rewrite(add(k, constant(1)), [&](const Expr& e) -> std::optional<Expr> {
    if (e.as<Var>()) return mul(j, constant(3));
    return equal(e, add(mul(j, constant(3)), constant(1))) ? std::optional(k) : std::nullopt;
  });
  EXPECT_TRUE(equal(named, k));
}

// Integers in order of width; unsigned wins over signed of its width; any float wins over any integer; float4 < float8
// < bfloat16 < float16 < float32 < float64; two formats of eight bits have no common type ("-").
TEST(Operators, PromotionTable) {
  constexpr const char* kTypes[] = {"bool",     "int8",    "uint8",   "int16",         "uint16",        "int32",
                                    "uint32",   "int64",   "uint64",  "float4_e2m1fn", "float8_e4m3fn", "float8_e5m2",
                                    "bfloat16", "float16", "float32", "float64"};
  constexpr size_t kCount = std::size(kTypes);
  // The column of the result, in hexadecimal.
  constexpr const char* kTable[kCount] = {
      "0123456789abcdef",  // bool
      "1123456789abcdef",  // int8
      "2223456789abcdef",  // uint8
      "3333456789abcdef",  // int16
      "4444456789abcdef",  // uint16
      "5555556789abcdef",  // int32
      "6666666789abcdef",  // uint32
      "7777777789abcdef",  // int64
      "8888888889abcdef",  // uint64
      "9999999999abcdef",  // float4
      "aaaaaaaaaaa-cdef",  // float8_e4m3fn
      "bbbbbbbbbb-bcdef",  // float8_e5m2
      "cccccccccccccdef",  // bfloat16
      "ddddddddddddddef",  // float16
      "eeeeeeeeeeeeeeef",  // float32
      "ffffffffffffffff",  // float64
  };
  for (size_t row = 0; row < kCount; ++row)
    for (size_t column = 0; column < kCount; ++column) {
      const std::optional<DType> a = parse_dtype(kTypes[row]), b = parse_dtype(kTypes[column]);
      ASSERT_TRUE(a && b) << kTypes[row] << " " << kTypes[column];
      const std::optional<DType> got = promote(*a, *b);
      const char want = kTable[row][column];
      const size_t index = want <= '9' ? static_cast<size_t>(want - '0') : static_cast<size_t>(want - 'a' + 10);
      EXPECT_EQ(got ? got->name() : "-", want == '-' ? "-" : parse_dtype(kTypes[index])->name())
          << kTypes[row] << " and " << kTypes[column];
    }
  EXPECT_EQ(promote(e8m0, e4m3), std::nullopt);
  EXPECT_EQ(promote(pointer, i64), std::nullopt);
  EXPECT_EQ(promote(i4, u4), u4);
  EXPECT_EQ(promote(tf32, f32), f32);
  EXPECT_EQ(promote(e2m3, e2m1), e2m3);
  EXPECT_EQ(promote(e3m2, e4m3), e4m3);
  EXPECT_EQ(promote(e2m3, i8), e2m3);
  EXPECT_EQ(promote(e2m3, e3m2), std::nullopt);
}

// Ints of C++ are int32, or int64 where they do not fit; doubles are float32.
TEST(Operators, NumbersOfTheHostLanguage) {
  const Value half = Scalar("h", f16), brain = Scalar("b", bf16), byte = Scalar("c", i8);
  const auto type_of = [](const Expression& e) { return Value(e).dtype(); };
  EXPECT_EQ(type_of(half * 2.0), f32);
  EXPECT_EQ(type_of(half * 2), f16);
  EXPECT_EQ(type_of(brain * 1.0), f32);
  EXPECT_EQ(type_of(brain + half), f16);
  EXPECT_EQ(type_of(byte + 1), i32);
  EXPECT_EQ(type_of(byte + (int64_t{1} << 40)), i64);
  EXPECT_EQ(type_of(byte / 2.0), f32);
  EXPECT_EQ(type_of((byte < 1) + (byte < 2)), i32);
  EXPECT_EQ(type_of(byte < 1.5), boolean);
}

// What is folded at build time is what the engines compute at run time.
TEST(Operators, FloatsFoldAsTheyAreComputed) {
  struct Row {
    Operator op;
    Function function;
  };
  constexpr Row kRows[] = {{Operator::Add, Function::Add}, {Operator::Sub, Function::Sub},
                           {Operator::Mul, Function::Mul}, {Operator::Div, Function::Div},
                           {Operator::Min, Function::Min}, {Operator::Max, Function::Max}};
  std::mt19937 random(7);
  int folded = 0;
  for (DType type : {f16, bf16, tf32, f32, e4m3, e5m2, e3m4, e4m3b11fnuz, e4m3fnuz, e5m2fnuz, e2m3, e3m2, e2m1})
    for (int i = 0; i < 2000; ++i) {
      const auto number = [&] {
        return std::ldexp(static_cast<double>(random()) - 0x1p31, static_cast<int>(random() % 40) - 50);
      };
      const Expr a = constant(type, number()), b = constant(type, number());
      const auto x = static_cast<float>(*constant_float(a)), y = static_cast<float>(*constant_float(b));
      for (const Row& row : kRows) {
        const std::optional<double> got = constant_float(apply(row.op, a, b));
        if (!got) continue;
        const void* const in[] = {&x, &y};
        float want = 0;
        tilewright::apply(row.function, type, in, &want, 1);
        ASSERT_TRUE(std::isnan(want) ? std::isnan(*got) : *got == want) << type.name() << " " << x << " " << y;
        ++folded;
      }
    }
  EXPECT_GT(folded, 50'000);
}

std::string refusal(const std::function<void()>& build) {
  try {
    build();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Operators, NothingIsBuiltThatWalksCouldNotRecurseThrough) {
  const SourceLocation at{"p.py", 7, 1};
  const Expr x = var(VarId{0}, f32);
  EXPECT_EQ(
      refusal([&] {
        Expr sum = x;
        for (int i = 0; i < 5000; ++i) sum = apply(Operator::Add, sum, x, at);
      }),
      "error TW1087 build: the expression is more than 1000 operations deep\n  --> p.py:7:1\nhelp: store a part of "
      "it in a variable (alloc_var), and go on with that");
  EXPECT_EQ(refusal([&] {
              Expr twice = x;
              for (int i = 0; i < 64; ++i) twice = apply(Operator::Mul, twice, twice, at);
            }),
            "error TW1087 build: the expression has more than 65536 operations, where each use of a part counts\n"
            "  --> p.py:7:1\nhelp: store a part of it in a variable (alloc_var), and go on with that");
  EXPECT_NE(refusal([&] {
              Expr down = x;
              for (int i = 0; i < 5000; ++i) down = apply_function(Function::Exp, {down}, at);
            }),
            "");
}

TEST(Operators, LongSumsOfIntegersAreOneNode) {
  Expr sum = var(VarId{0}, i32);
  for (uint32_t i = 1; i < 3000; ++i) sum = apply(Operator::Add, sum, var(VarId{i}, i32), {});
  for (uint32_t i = 0; i < 3000; i += 2) sum = apply(Operator::Sub, sum, var(VarId{i}, i32), {});
  ASSERT_TRUE(sum.as<Sum>());
  EXPECT_EQ(sum.as<Sum>()->terms.size(), 1500u);
  EXPECT_EQ(sum->depth, 2u);
}

}  // namespace
}  // namespace tilewright::ir
