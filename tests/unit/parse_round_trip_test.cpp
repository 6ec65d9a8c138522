// Text to program to text: samples, random expressions, clashing names, hostile input.
#include <gtest/gtest.h>

#include <random>

#include "ir/operators.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/rewrite.h"
#include "ir/verify.h"
#include "scalar/functions.h"
#include "unit/text_samples.h"

namespace tilewright::ir {
namespace {

TEST(TextForm, SamplesPrintAsWritten) {
  EXPECT_EQ(print(parse(kMatmulText, "matmul.tile")), kMatmulText);
  EXPECT_EQ(print(parse(kEverythingText, "everything.tile")), kEverythingText);
}

TEST(TextForm, LoopProgramsKeepTheirLevel) {
  const std::string text =
      "loop program p {\n  param A: float32[8]\n  launch main(bx: 1) threads(tx: 1) {\n"
      "    for i in 0..8 grid {\n      A[i] = A[i] + 1.0\n    }\n  }\n}\n";
  EXPECT_EQ(print(parse_loop_program(text, "p.tile")), text);
  EXPECT_THROW(parse(text, "p.tile"), CompileError);
}

TEST(TextForm, BytesThatNobodySeesAreNumbers) {
  const auto program = [](const char* message) {
    return std::string("program p {\n  launch main(bx: 1) threads(tx: 1) {\n    print message=\"") + message +
           "\"\n  }\n}\n";
  };
  EXPECT_EQ(print(parse(program("\\x07 \\x1f \\x7f"), "p.tile")), program("\\x07 \\x1f \\x7f"));
  EXPECT_EQ(print(parse(program("\\x1F\\x41\\x5a"), "p.tile")), program("\\x1fAZ"));
}

TEST(TextForm, LoopsBindTheVariablesOfTheirLaunch) {
  const std::string text =
      "loop program p {\n  launch main(bx: 8) threads(tx: 2) {\n    for block in 0..8 grid {\n"
      "      bx: int32 = block\n      for tx in 0..2 {\n      }\n      for tx in 0..2 {\n      }\n    }\n  }\n}\n";
  const LoopProgram p = parse_loop_program(text, "p.tile");
  EXPECT_EQ(print(p), text);
  EXPECT_TRUE(verify(p).empty());
  EXPECT_EQ(p.vars.size(), 3u);
}

TEST(TextForm, LoopProgramsHaveStatementsOfTheirOwn) {
  const std::string text = R"(loop program p {
  param A: float16[64, 64]
  param X: float32[64, 64]
  param Y: float32[64, 64]
  launch main(bx: 1) threads(tx: 32) {
    shared s: float16[64, 64]
    shared c: float32[64, 64]
    local row: float32[80]
    local parts: float32[16]
    for block: int64 in 0..1 grid {
      stream from=row to=Y[block, 0 : 64] large=true done=int64(0)
      stream from=row to=Y[block, 0 : 64] large=false done=int64(0) rest=int64(3)
      transpose from=(first=X[block, 16], along=1) to=(first=Y[0, block], along=1) rows=16 columns=32 large=false next=X[block + 1, 16]
      transpose from=(first=A[block, 16], down_step=2, along=1, along_step=2) to=(first=s[0, 0], along=1, along_step=2) rows=16 columns=32 unit=2 large=false
      prefetch address=address(X[block, 0]) offset=block * 64 bytes=64
      prefetch address=address(X[block, 0]) offset=block * 64 bytes=64 nearest=true
      gemm a=s b=s c=c next=(first=address(A[0, 0]), second=address(A[1, 0]), bytes=128, rows=64)
      for i: int64 in 0..64 vectorized(lanes=32) {
        X[block, i] = exp(X[block, i])
      }
      fold lanes=parts half=8 value=parts[int64(0)] + parts[int64(8)]
      row_scan from=(first=c[0, 0], along=1) to=(first=c[0, 0], along=1) total=parts rows=16 count=block + 8 value=parts[int64(0)] + c[0, 0]
    }
  }
}
)";
  const LoopProgram p = parse_loop_program(text, "p.tile");
  EXPECT_EQ(print(p), text);
  for (const Diagnostic& d : verify(p)) ADD_FAILURE() << d.to_string();
}

TEST(TextForm, LocationsAreThoseOfTheTextOrTheSuffix) {
  TileProgram p = parse(
      "program p {\n launch main(b: 1) threads(t: 32) {\n  sync block\n  sync warp @ \"a.py\":7:3\n"
      "  sync grid @ unknown\n }\n}\n",
      "p.tile");
  const Body& body = p.launches[0].body;
  EXPECT_EQ(p.location(body[0]->location), (SourceLocation{"p.tile", 3, 3}));
  EXPECT_EQ(p.location(body[1]->location), (SourceLocation{"a.py", 7, 3}));
  EXPECT_EQ(p.location(body[2]->location), SourceLocation{});
  const std::string text = print(p, {.locations = true});
  EXPECT_EQ(text,
            "program p {\n  launch main(b: 1) threads(t: 32) @ \"p.tile\":2:2 {\n    sync block @ \"p.tile\":3:3\n"
            "    sync warp @ \"a.py\":7:3\n    sync grid @ unknown\n  }\n}\n");
  EXPECT_EQ(print(parse(text, "other.tile"), {.locations = true}), text);
}

TEST(TextForm, EverythingKeepsItsLocations) {
  const std::string text = print(parse(kEverythingText, "everything.tile"), {.locations = true});
  EXPECT_EQ(print(parse(text, "other.tile"), {.locations = true}), text);
}

// A program with one launch around statements made by hand.
struct OneLaunch {
  TileProgram program;
  Launch launch;
  OneLaunch() {
    program.name = "p";
    launch.name = "main";
    launch.grid = {constant(1)};
    launch.block = {program.new_var("bx", i32)};
    launch.threads = {32};
    launch.thread = {program.new_var("tx", i32)};
  }
  std::string text(Body body) {
    TileProgram p = program;
    p.launches = {launch};
    p.launches[0].body = std::move(body);
    return print(p);
  }
};

TEST(TextForm, ClashingAndUnusualNamesAreToldApart) {
  OneLaunch one;
  Body body;
  Expr total = constant(0);
  for (const char* name : {"x", "x", "x_1", "a b", "a b", "and", "", "min", "block`"}) {
    const VarId id = one.program.new_var(name, i32);
    body.push_back(make_stmt(Let{id, add(total, constant(1))}));
    total = add(var(id, i32), total);
  }
  const std::string text = one.text(body);
  EXPECT_NE(text.find("    x: int32 = 1\n    x_1: int32 = x + 1\n    x_1_1: int32 = x_1 + x + 1\n    `a b`: int32 ="),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\n    `a b_1`: int32 = "), std::string::npos) << text;
  EXPECT_EQ(print(parse(text, "p.tile")), text);
}

TEST(TextForm, NamesAreFreeAgainAfterTheirScope) {
  OneLaunch one;
  const VarId i = one.program.new_var("i", i32), j = one.program.new_var("i", i32), k = one.program.new_var("i", i32);
  const auto loop = [](VarId id, int64_t begin, Expr extent, Body body) {
    For node;
    node.var = id;
    node.begin = constant(begin);
    node.extent = std::move(extent);
    node.body = std::move(body);
    return make_stmt(std::move(node));
  };
  const std::string text =
      one.text({loop(i, 0, constant(4), {}), loop(j, 1, constant(4), {loop(k, 0, var(j, i32), {})})});
  EXPECT_NE(text.find("    for i in 0..4 {\n    }\n    for i in 1 : 4 {\n      for i_1 in 0..i {\n      }\n    }\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(print(parse(text, "p.tile")), text);
}

// ---- random expressions -------------------------------------------------------------------------------------------

class RandomExpressions {
 public:
  explicit RandomExpressions(uint32_t seed) : random_(seed) {
    for (DType type : kTypes) {
      vars_.push_back(one_.program.new_var("v", type));
      one_.program.params.push_back({{}, vars_.back()});
      Buffer b;
      b.name = "B";
      b.type = type;
      b.shape = {constant(16), constant(4)};
      buffers_.push_back(one_.program.new_buffer(b));
      one_.program.params.push_back({buffers_.back(), {}});
    }
  }
  size_t below(size_t n) { return random_() % n; }
  Expr make(DType type, int depth) {
    if (depth == 0 || below(8) == 0) return leaf(type);
    switch (below(8)) {
      case 0: return select(make(boolean, depth - 1), make(type, depth - 1), make(type, depth - 1));
      case 1: return converted(type, depth);
      case 2: return prefixed(type, depth);
      case 3:
        if (type == f32) return fma(make(type, depth - 1), make(type, depth - 1), make(type, depth - 1));
        if (type == f32 || type == f16) return intrinsic(Function::Exp2, {make(type, depth - 1)});
        [[fallthrough]];
      default: return infix(type, depth);
    }
  }
  std::string text(DType type, const Expr& e) {
    return one_.text({make_stmt(Let{one_.program.new_var("r", type), e})});
  }
  // The parser numbers the scalar parameters from 0.
  Expr with_own_ids(const Expr& e) {
    Substitution own;
    for (uint32_t i = 0; i < vars_.size(); ++i) own[VarId{i}] = var(vars_[i], kTypes[i]);
    return substitute(e, own);
  }
  static constexpr DType kTypes[] = {i32, i64, u32, i8, u64, f32, f16, bf16, f64, e4m3, boolean};

 private:
  size_t row(DType type) { return std::find(std::begin(kTypes), std::end(kTypes), type) - std::begin(kTypes); }
  Expr leaf(DType type) {
    switch (below(4)) {
      case 0: return var(vars_[row(type)], type);
      case 1: return load(buffers_[row(type)], {var(vars_[0], i32), constant(static_cast<int64_t>(below(4)))}, type);
      default: return number(type);
    }
  }
  Expr number(DType type) {
    if (type.is_float()) {
      static constexpr double kValues[] = {0.0, -0.0, 1.0, 0.1, -2.5, 1e-8, 65504.0, 3e38, HUGE_VAL, -HUGE_VAL, NAN};
      const auto any = std::bit_cast<float>(static_cast<uint32_t>(random_()));
      return constant(type, below(3) == 0 && !std::isnan(any) ? any : kValues[below(11)]);
    }
    static constexpr int64_t kValues[] = {0, 1, -1, 2, 7, 127, -128, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    return constant(type, kValues[below(11)]);
  }
  Expr converted(DType type, int depth) {
    const DType from = kTypes[below(std::size(kTypes))];
    if (from != type && from.bits == type.bits && !from.is_bool()) return bitcast(make(from, depth - 1), type);
    return cast(make(from, depth - 1), type);
  }
  Expr prefixed(DType type, int depth) {
    const Expr a = make(type, depth - 1);
    if (type.is_bool()) return unary(UnaryOp::Not, a);
    return type.is_int() && below(2) ? unary(UnaryOp::BitNot, a) : neg(a);
  }
  Expr infix(DType type, int depth) {
    using enum BinaryOp;
    static constexpr BinaryOp kInts[] = {Add, Sub,    Mul,   FloorDiv, FloorMod, TruncDiv, TruncMod, Min,
                                         Max, BitAnd, BitOr, BitXor,   Shl,      Shr,      Add,      Add};
    static constexpr BinaryOp kFloats[] = {Add, Sub, Mul, Div, Min, Max, MinNan, MaxNan};
    static constexpr BinaryOp kBools[] = {And, Or, BitAnd, BitXor, Eq, Ne, Lt, Le};
    const DType from = type.is_bool() ? kTypes[below(std::size(kTypes))] : type;
    BinaryOp op = type.is_bool() ? kBools[below(8)] : type.is_float() ? kFloats[below(8)] : kInts[below(16)];
    const bool compares = is_comparison(op);
    const DType operand = compares ? from : type;
    return binary(op, make(operand, depth - 1), make(operand, depth - 1));
  }

  std::mt19937 random_;
  OneLaunch one_;
  std::vector<VarId> vars_;
  std::vector<BufferId> buffers_;
};

TEST(TextForm, RandomExpressionsComeBackEqual) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    RandomExpressions expressions(seed);
    for (DType type : RandomExpressions::kTypes) {
      for (int n = 0; n < 10; ++n) {
        const Expr e = expressions.make(type, 1 + n / 2);
        const std::string text = expressions.text(type, e);
        std::string again;
        Expr back;
        try {
          const TileProgram p = parse(text, "random.tile");
          again = print(p);
          back = p.launches[0].body[0].as<Let>()->value;
        } catch (const Error& error) {
          FAIL() << "seed " << seed << "\n" << error.what() << "\n" << text;
        }
        ASSERT_EQ(again, text) << "seed " << seed;
        ASSERT_TRUE(equal(expressions.with_own_ids(back), e)) << text;
      }
    }
  }
}

// ---- hostile input ------------------------------------------------------------------------------------------------

// Anything but a program or a CompileError of the area parse ends the test.
void parse_anything(const std::string& text) {
  try {
    const TileProgram program = parse(text, "hostile.tile");
    verify(program);  // whatever it finds
    const std::string printed = print(program);
    ASSERT_EQ(print(parse(printed, "hostile.tile")), printed) << text;
  } catch (const CompileError& e) {
    ASSERT_STREQ(e.diagnostic().area(), "parse") << text;
    ASSERT_GT(e.diagnostic().location.line, 0) << e.what();
    ASSERT_GT(e.diagnostic().location.column, 0) << e.what();
  }
}

TEST(TextForm, EveryTruncationIsACodedError) {
  for (const std::string text : {kMatmulText, kEverythingText})
    for (size_t length = 0; length < text.size(); ++length) parse_anything(text.substr(0, length));
}

TEST(TextForm, FiveThousandMutationsAreRefusedOrPrintStably) {
  std::mt19937 random(1);
  static constexpr std::string_view kPieces[] = {
      "(",     ")",   "{",    "}", "[",   "]",       "-",  "..",   ":", "=", "@", "\"", "`", "0", "9999999999999999999",
      "1e999", "nan", "not ", "x", " A ", "float16", "\n", "\xff", "#"};
  for (int n = 0; n < 5000; ++n) {
    std::string text = n % 2 ? kEverythingText : kMatmulText;
    for (size_t edits = 1 + random() % 4; edits > 0; --edits) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text.erase(at, 1 + random() % 8); break;
        case 1: text.insert(at, kPieces[random() % std::size(kPieces)]); break;
        case 2: text[at] = static_cast<char>(random()); break;
        default: text.insert(at, text.substr(random() % text.size(), random() % 60));
      }
    }
    parse_anything(text);
  }
}

std::string repeated(std::string_view piece, size_t times) {
  std::string text;
  while (times-- > 0) text += piece;
  return text;
}

TEST(TextForm, DeepNestingIsACodedError) {
  const std::string begin = "program p { param n: int32 param f: float32 launch main(b: 1) threads(t: 32) {\n";
  for (const std::string_view piece :
       {"x: int32 = (", "if true {", "x: int32 = -", "x: int32 = ~", "x: bool = not ", "x: int32 = min("}) {
    const size_t cut = piece.find('=');
    const std::string head(cut == std::string_view::npos ? "" : piece.substr(0, cut + 2));
    const std::string body(cut == std::string_view::npos ? piece : piece.substr(cut + 2));
    parse_anything(begin + head + repeated(body, 100000));
  }
  parse_anything(begin + "x: float32 = f" + repeated(" + f", 100000) + "\n}}");
  parse_anything(begin + "x: int32 = n" + repeated(" * n", 100000) + "\n}}");
  parse_anything(begin + "if true {}" + repeated(" else if true {}", 100000) + "\n}}");
  parse_anything(begin + repeated("if true {", 300) + repeated("}", 302));
}

}  // namespace
}  // namespace tilewright::ir
