// Mistakes that would surely show when the program runs: the whole message, before it runs.
#include "errors/expect_error.h"
#include "tilewright/compile.h"

namespace tilewright::errors {
namespace {

void compile_on_every_engine(const std::function<Program()>& make, const std::string& expected,
                             Location at = Location::current()) {
  for (const Engine engine : {Engine::Interpreter, Engine::Cpu, Engine::Simulator})
    expect_error([&] { compile(make(), {engine}); }, expected, at);
}

TEST(CertainErrors, AnAccumulatorThatIsNeverCleared) {
  Tensor A("A", {16, 64}, f16), B("B", {64, 16}, f16), C("C", {16, 16}, f32);
  compile_on_every_engine(
      [&] {
        return kernel({A, B, C}, [&] {
          auto a = alloc_shared({16, 16}, f16, "a"), b = alloc_shared({16, 16}, f16, "b");
          mark_declaration();
          auto c = alloc_fragment({16, 16}, f32, "c");
          for (auto k : Pipelined(4)) {
            copy(A(0, k * 16), a);
            copy(B(k * 16, 0), b);
            mark();
            gemm(a, b, c);
          }
          copy(c, C);
        });
      },
      R"(TW1090 build: 'c' is read before anything is written to it
  --> the mistake
note: 'c' is declared here
  --> the declaration
help: gemm adds to 'c': clear it before, or let the first gemm start from zero (clear_accum))");
}

TEST(CertainErrors, ALoopLongerThanItsTile) {
  Tensor A("A", {128}, f32);
  compile_on_every_engine(
      [&] {
        return kernel({A}, [&] {
          mark_declaration();
          auto s = alloc_shared({64}, f32, "s");
          mark();
          for (auto i : Parallel(128)) s(i) = A(i);
        });
      },
      R"(TW1036 build: index 0 of 's' runs from 0 to 127, but 's' has 64 elements
  --> the mistake
note: 's' is declared here
  --> the declaration
help: make the loop shorter or the tile larger, or guard the access by an if)");
}

TEST(CertainErrors, PointsThatWriteOneElement) {
  Tensor A("A", {64}, f32);
  compile_on_every_engine(
      [&] {
        return kernel({A}, [&] {
          mark_declaration();
          auto s = alloc_shared({64}, f32, "s");
          mark();
          for (auto i : Parallel(64)) s(floordiv(i, 2)) = A(i);
        });
      },
      R"(TW1091 build: points 0 and 1 of the map write different values to s[0]
  --> the mistake
note: 's' is declared here
  --> the declaration
help: give every point its own element, loop serially, or use an atomic)");
}

TEST(CertainErrors, PointsThatReadWhatOthersWrite) {
  Tensor A("A", {64}, f32);
  compile_on_every_engine(
      [&] {
        return kernel({A}, [&] {
          mark_declaration();
          auto s = alloc_shared({64}, f32, "s");
          copy(A, s);
          mark();
          for (auto i : Parallel(63)) s(i + 1) = s(i) + A(i);
          copy(s, A);
        });
      },
      R"(TW1091 build: point 1 of the map reads s[1], which point 0 writes
  --> the mistake
note: 's' is declared here
  --> the declaration
help: points have no order: loop serially, or write to a second tile)");
}

}  // namespace
}  // namespace tilewright::errors
