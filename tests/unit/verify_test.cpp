// Rules that text cannot break, because the parser refuses it first: programs changed by hand. The other rules have a
// file each under tests/errors/verify.
#include "ir/verify.h"
#include "files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/match.h"
#include "ir/operators.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "scalar/functions.h"
#include "support/error_codes.h"
#include "unit/text_samples.h"

namespace tilewright::ir {
namespace {

TileProgram sample() {
  return parse(
      "program p {\n  param A: float32[8, 8]\n  param n: int32\n  launch main(bx: 1) threads(tx: 32) {\n"
      "    shared S: float32[8, 8]\n    x: int32 = n + 1\n  }\n"
      "  launch other(bx: 1) threads(tx: 32) {\n    shared T: float32[8, 8]\n  }\n}\n",
      "sample.tile");
}

VarId var_named(const TileProgram& p, std::string_view name) {
  for (uint32_t i = 0; i < p.vars.size(); ++i)
    if (p.vars[i].name == name) return VarId{i};
  return {};
}
BufferId buffer_named(const TileProgram& p, std::string_view name) {
  for (uint32_t i = 0; i < p.buffers.size(); ++i)
    if (p.buffers[i].name == name) return BufferId{i};
  return {};
}

// The first finding after a statement was added to the first launch.
std::string first_finding(const std::function<Stmt(TileProgram&)>& make) {
  TileProgram p = sample();
  const Stmt stmt = make(p);
  p.launches[0].body.push_back(stmt);
  const std::vector<Diagnostic> findings = verify(p);
  return findings.empty() ? "valid" : findings[0].code_text() + " " + findings[0].message;
}

std::string code(Code c) { return fmt::format("TW{:04}", static_cast<int>(c)); }

Stmt let(TileProgram& p, Expr value) {
  const DType type = value->type;
  return make_stmt(Let{p.new_var("y", type), std::move(value)});
}

TEST(Verify, SamplesAreValid) {
  EXPECT_TRUE(verify(sample()).empty());
  for (const char* text : {kMatmulText, kEverythingText}) {
    const std::vector<Diagnostic> findings = verify(parse(text, "sample.tile"));
    for (const Diagnostic& d : findings) ADD_FAILURE() << d.to_string();
  }
}

TEST(Verify, TheExampleOfTheDocumentIsValid) {
  const std::string page = text_of(TILEWRIGHT_SOURCE_DIR "/docs/text_form.md");
  const size_t begin = page.find("```\nprogram") + 4, end = page.find("```", begin);
  ASSERT_LT(end, page.size());
  const TileProgram p = parse(page.substr(begin, end - begin), "text_form.md");
  EXPECT_TRUE(verify(p).empty());
  EXPECT_EQ(print(p), kMatmulText);
}

TEST(Verify, IdsOutOfRange) {
  EXPECT_EQ(first_finding([](TileProgram& p) { return let(p, var(VarId{100}, i32)); }),
            code(Code::VerifyId) + " variable 100 is named, but the program has 7");
  EXPECT_EQ(first_finding([](TileProgram& p) { return let(p, load(BufferId{9}, {}, f32)); }),
            code(Code::VerifyId) + " buffer 9 is named, but the program has 3");
}

TEST(Verify, VariablesInScope) {
  EXPECT_EQ(first_finding([](TileProgram& p) {
              If branch;
              branch.condition = constant(boolean, int64_t{1});
              branch.then_body = {let(p, constant(3))};
              const VarId inner = branch.then_body[0].as<Let>()->var;
              branch.else_body = {let(p, var(inner, i32))};
              return make_stmt(std::move(branch));
            }),
            code(Code::VerifyUndefined) + " 'y' is used where it is not defined");
  EXPECT_EQ(first_finding([](TileProgram& p) {
              return make_stmt(Let{var_named(p, "x"), constant(1)});
            }),
            code(Code::VerifyBoundTwice) + " 'x' is bound twice");
}

TEST(Verify, LoopProgramsMayRepeatALoop) {
  const std::string text = "program p {\n  launch main(bx: 1) threads(tx: 1) {\n    for i in 0..8 {\n    }\n  }\n}\n";
  TileProgram p = parse(text, "p.tile");
  p.launches[0].body.push_back(p.launches[0].body[0]);
  ASSERT_EQ(verify(p).size(), 1u);
  EXPECT_EQ(verify(p)[0].message, "'i' is bound twice");
  LoopProgram loops = parse_loop_program("loop " + text, "p.tile");
  loops.launches[0].body.push_back(loops.launches[0].body[0]);
  EXPECT_TRUE(verify(loops).empty());
}

TEST(Verify, TypesInsideExpressions) {
  EXPECT_EQ(first_finding([](TileProgram& p) {
              return let(
                  p,
                  make_expr(Binary{BinaryOp::FloorDiv, var(var_named(p, "n"), i32), constant(i64, int64_t{2})}, i32));
            }),
            code(Code::VerifyOperandTypes) + " the operands of n // int64(2) have the types int32 and int64");
  EXPECT_EQ(first_finding([](TileProgram& p) {
              return let(p, make_expr(Binary{BinaryOp::FloorDiv, constant(f32, 1.0),
                                             load(buffer_named(p, "S"), {constant(0), constant(0)}, f32)},
                                      f32));
            }),
            code(Code::VerifyOperandType) + " 1.0 // S[0, 0] has operands of float32: it takes integers");
  EXPECT_EQ(first_finding([](TileProgram& p) {
              return let(p, load(buffer_named(p, "S"), {constant(0), constant(0)}, f16));
            }),
            code(Code::VerifyOperandType) + " 'S' holds float32, but it is read as float16");
  EXPECT_EQ(first_finding([](TileProgram& p) { return let(p, var(var_named(p, "n"), i64)); }),
            code(Code::VerifyOperandType) + " 'n' is int32, but it is read as int64");
  EXPECT_EQ(first_finding([](TileProgram& p) {
              return let(p, make_expr(Fma{constant(f32, 1.0), {}, constant(f32, 1.0)}, f32));
            }),
            code(Code::VerifyMissing) + " an operand is missing in fma(1.0, ?, 1.0)");
}

TEST(Verify, NodesThatTakeOtherTypes) {
  const Expr whole = constant(1), real = constant(f32, 1.0), truth = constant(boolean, int64_t{1});
  const auto finding = [](ExprOp op, DType type) {
    return first_finding([&](TileProgram& p) { return let(p, match(op, [&](auto n) { return make_expr(n, type); })); });
  };
  const std::string type = code(Code::VerifyOperandType);
  EXPECT_EQ(finding(Sum{{{1, real}}, 1}, i32), type + " 1.0 + 1 is int32: but a term is float32");
  EXPECT_EQ(finding(Unary{UnaryOp::Not, whole}, boolean), type + " not 1 is bool: the operand has another type");
  EXPECT_EQ(finding(Fma{whole, whole, whole}, i32),
            type + " fma(1, 1, 1) is int32: fma takes and gives one float type");
  EXPECT_EQ(finding(Select{whole, real, real}, f32),
            type + " select(1, 1.0, 1.0) is float32: select takes a bool and two values of its type");
  EXPECT_EQ(finding(Cast{real, Rounding::TowardZero, {}}, i32),
            type + " int32(float32(1.0), toward_zero) is int32: no cast to it rounds toward_zero");
  EXPECT_EQ(
      finding(Cast{real, Rounding::Stochastic, whole}, e4m3),
      type +
          " float8_e4m3fn(float32(1.0), stochastic, 1) is float8_e4m3fn: a stochastic cast takes uint32 random bits");
  EXPECT_EQ(finding(Bitcast{real}, f16), type + " bitcast(float16, 1.0) is float16: float32 has no bits of this type");
  EXPECT_EQ(finding(Intrinsic{Function::Sqrt, {truth}}, f32),
            type + " sqrt(true) is float32: the function does not take these operands");
  EXPECT_EQ(finding(Binary{BinaryOp::Lt, real, real}, f32),
            type + " 1.0 < 1.0 has operands of float32: the result has another type");
  EXPECT_EQ(finding(Binary{BinaryOp::Add, whole, whole}, i32),
            type + " 1 + 1 has operands of int32: integers are added in sums");
}

TEST(Verify, IndicesAndRegions) {
  EXPECT_EQ(first_finding([](TileProgram& p) { return let(p, load(buffer_named(p, "S"), {constant(0)}, f32)); }),
            code(Code::VerifyIndexCount) + " a read: 'S' has 2 dimensions, but 1 indices are given");
  EXPECT_EQ(first_finding([](TileProgram& p) {
              return make_stmt(Fill{{buffer_named(p, "S"), {constant(0)}, {constant(8)}}, constant(f32, 0.0)});
            }),
            code(Code::VerifyRegionRank) + " the destination of a fill: 'S' has 2 dimensions, but the region has 1");
  EXPECT_EQ(first_finding([](TileProgram& p) {
              const Expr zero = constant(0), eight = constant(8);
              return make_stmt(Fill{{buffer_named(p, "T"), {zero, zero}, {eight, eight}}, constant(f32, 0.0)});
            }),
            code(Code::VerifyOtherLaunch) + " 'T' belongs to another launch");
  EXPECT_EQ(first_finding([](TileProgram&) {
              Map map;
              map.extents = {constant(4)};
              return make_stmt(std::move(map));
            }),
            code(Code::VerifyMapRank) + " a map with 0 variables and 1 extents");
}

TEST(Verify, VariablesOfALaunch) {
  TileProgram p = sample();
  p.launches[1].thread.clear();
  ASSERT_EQ(verify(p).size(), 1u);
  EXPECT_EQ(
      verify(p)[0].to_string(),
      "error " + code(Code::VerifyLaunchVars) +
          " verify: the launch 'other' needs one variable per extent of its grid and block\n  --> sample.tile:8:3");
}

TEST(Verify, CheckValidBlamesTheUserOrThePass) {
  TileProgram p = sample();
  EXPECT_NO_THROW(check_valid(p));
  p.launches[0].body.push_back(make_stmt(Break{}));
  p.launches[0].body.push_back(make_stmt(Commit{Queue::None}));
  try {
    check_valid(p);
    FAIL();
  } catch (const CompileError& e) {
    EXPECT_EQ(e.diagnostic().message, "break stands outside of any loop");
    ASSERT_EQ(e.diagnostic().notes.size(), 1u);
    EXPECT_EQ(e.diagnostic().notes[0].message, code(Code::VerifyQueue) + ": commit names no queue of groups");
  }
  try {
    check_valid(p, "canonicalize");
    FAIL();
  } catch (const InternalError& e) {
    EXPECT_EQ(e.diagnostic().message, "after the pass canonicalize the program is not valid");
    EXPECT_EQ(e.diagnostic().notes.size(), 2u);
  }
}

TEST(Verify, IndicesOfALaunchAreInt32) {
  TileProgram p = sample();
  p.vars[p.launches[1].block[0].index].type = i64;
  ASSERT_EQ(verify(p).size(), 1u);
  EXPECT_EQ(verify(p)[0].message, "the index 'bx' of a launch is int64; it is int32");
}

TEST(Verify, WhereInstructionsOfAThreadFindTheirOperands) {
  const auto findings = [](const std::string& statement) {
    std::string all;
    for (const Diagnostic& d : verify(parse_thread_program(
             "thread program p {\n  param A: float16[64, 64]\n  launch main(bx: 1) threads(tx: 128) {\n"
             "    shared s: float16[64, 64]\n    shared w: float32[64]\n    local r: uint32[4]\n    local f: "
             "float32[4]\n    barrier b: uint64[1] "
             "arrive=[1]\n    " +
                 statement + "\n  }\n}\n",
             "p.tile")))
      all += d.code_text() + " " + d.message + "\n";
    return all;
  };
  const std::string level = code(Code::VerifyLevel) + " ";
  EXPECT_EQ(findings("mma instruction=\"m16n8k16\" a=s b=r[0 : 2] c=f"), level + "mma: 's' is not in registers\n");
  EXPECT_EQ(findings("load_matrix from=A[0, 0] to=r"),
            level + "load_matrix reads 'A', which is not in shared memory\n");
  EXPECT_EQ(findings("load_matrix from=s[0, 0] to=s"), level + "load_matrix: 's' is not in registers\n");
  const std::string matrix = code(Code::VerifyMatrix) + " store_matrix ";
  EXPECT_EQ(findings("store_matrix to=s[0, 0] from=r"), "");
  EXPECT_EQ(findings("store_matrix to=A[0, 0] from=r"),
            level + "store_matrix writes 'A', which is not in shared memory\n");
  EXPECT_EQ(findings("store_matrix to=s[0, 0] from=s"),
            level + "store_matrix: 's' is not in registers\n" + matrix + "of 32 matrices; there are 1, 2 or 4\n");
  EXPECT_EQ(findings("store_matrix to=s[0, 0] from=r[0 : 3]"), matrix + "of 3 matrices; there are 1, 2 or 4\n");
  EXPECT_EQ(findings("store_matrix to=w[0] from=r"), matrix + "to float32: not 16 bits\n");
  EXPECT_EQ(findings("wgmma instruction=\"m64n8k16\" a=A b=A c=s"),
            level + "wgmma: 'A' is neither in registers nor in shared memory\n" + level +
                "wgmma: 'A' is not in shared memory\n" + level + "wgmma: 's' is not in registers\n");
  EXPECT_EQ(findings("init_barriers barriers=s"), code(Code::VerifyNoBarrier) + " init_barriers: 's' is no barrier\n");
}

TEST(Verify, TileOpsAreNotLegalInLoopPrograms) {
  LoopProgram p = parse_loop_program(
      "loop program p {\n  launch main(bx: 1) threads(tx: 1) {\n    shared S: float32[8]\n    fill to=S value=0.0\n"
      "    for i in 0..8 pipelined(stages=2) {\n    }\n  }\n}\n",
      "p.tile");
  const std::vector<Diagnostic> findings = verify(p);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].message, "fill is not legal in a loop program");
  EXPECT_EQ(findings[1].message, "a pipelined loop is not legal in a loop program");
}

}  // namespace
}  // namespace tilewright::ir
