// What the C++ language records, by the statements of the program it makes.
#include <gtest/gtest.h>

#include <fstream>

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

Program matmul_relu(int64_t M, int64_t N, int64_t K, int64_t block_M, int64_t block_N, int64_t block_K) {
  Tensor A("A", {M, K}, f16), B("B", {K, N}, f16), C("C", {M, N}, f16);
  return prim_func("matmul_relu", {A, B, C}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(N, block_N), ceildiv(M, block_M)}, {.threads = 128})) {
      auto A_shared = alloc_shared({block_M, block_K}, f16);
      auto B_shared = alloc_shared({block_K, block_N}, f16);
      auto C_local = alloc_fragment({block_M, block_N}, f32);
      clear(C_local);
      for (auto k : Pipelined(ceildiv(K, block_K), {.num_stages = 3})) {
        copy(A(by * block_M, k * block_K), A_shared);
        copy(B(k * block_K, bx * block_N), B_shared);
        gemm(A_shared, B_shared, C_local);
      }
      for (auto [i, j] : Parallel(block_M, block_N)) C_local(i, j) = max(C_local(i, j), 0);
      copy(C_local, C(by * block_M, bx * block_N));
    }
  });
}

TEST(Dsl, GemmReluRecordsItsStatements) {
  Program p = matmul_relu(256, 256, 128, 64, 64, 32);
  EXPECT_EQ(statement_names(p),
            (std::vector<std::string>{"fill", "for", "copy", "copy", "gemm", "map", "store", "copy"}));
  const ir::TileProgram& program = p.box().program;
  EXPECT_EQ(program.params.size(), 3u);
  // Names come from the source where it can be read (a compiler cache may make its path relative to another folder).
  EXPECT_EQ(program.buffers[3].name, std::ifstream(__FILE__).good() ? "A_shared" : "shared");
  EXPECT_EQ(program.var(program.launches[0].block[1]).name, "by");
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
