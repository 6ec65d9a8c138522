// What the C++ language records, by the statements of the program it makes.
#include <gtest/gtest.h>

#include "ir/program.h"
#include "ir/rewrite.h"
#include "tilewright/diagnostic.h"
#include "tilewright/language.h"

namespace tilewright {
namespace {

std::vector<std::string> statement_names(const Program& p) {
  std::vector<std::string> out;
  ir::walk(p.box().program.launches.at(0).body, [&](const ir::Stmt& s) { out.push_back(ir::name_of(s)); });
  return out;
}

TEST(Dsl, SymbolsComeFromShapes) {
  Value M = dynamic("M"), N = dynamic("N");
  Tensor A("A", {M, N}, f32), B("B", {M, N}, f32);
  Program p = prim_func("twice", {A, B}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(N, 32), ceildiv(M, 32)}, {.threads = 128})) {
      for (auto [i, j] : Parallel(32, 32)) B(by * 32 + i, bx * 32 + j) = A(by * 32 + i, bx * 32 + j) * 2;
    }
  });
  EXPECT_EQ(p.box().program.symbols.size(), 2u);
  EXPECT_EQ(p.box().program.var(p.box().program.symbols[0]).name, "M");
}

TEST(Dsl, ValueReadsWhereItStands) {
  Tensor A("A", {8}, f32);
  Program p = prim_func("swap", {A}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      Value first = A(bx);
      A(0) = A(1);
      A(1) = first;
    }
  });
  EXPECT_EQ(statement_names(p), (std::vector<std::string>{"let", "store", "store"}));
}

TEST(Dsl, ElseIfChains) {
  Tensor A("A", {8}, i32);
  Program p = prim_func("chain", {A}, [&] {
    for (auto bx : Kernel(8, {.threads = 32})) {
      If(bx == 0, [&] { A(bx) = 1; }).ElseIf(bx == 1, [&] { A(bx) = 2; }).ElseIf(bx == 2, [&] { A(bx) = 3; }).Else([&] {
        A(bx) = 4;
      });
      A(bx) += 1;
    }
  });
  EXPECT_EQ(statement_names(p),
            (std::vector<std::string>{"if", "store", "if", "store", "if", "store", "store", "store"}));
  EXPECT_EQ(p.box().program.launches[0].body.size(), 2u);
}

TEST(Dsl, LeavingATileLoopByBreakIsReported) {
  Tensor A("A", {8}, f32);
  auto build = [&] {
    return prim_func("broken", {A}, [&] {
      for (auto bx : Kernel(8, {.threads = 32})) {
        for (auto i : serial(4)) {
          A(bx) = cast(i, f32);
          break;
        }
        A(bx) = 0;
      }
    });
  };
  try {
    build();
    FAIL() << "a break was accepted";
  } catch (const CompileError& e) {
    EXPECT_EQ(e.diagnostic().message,
              "the scope of a range-for was left by break, return or goto while the program was being built");
  }
}

}  // namespace
}  // namespace tilewright
