// What compile() and the engines refuse: one mistake a test, with the whole message.
#include "dsl/recording.h"
#include "errors/expect_error.h"
#include "interpreter/run.h"
#include "tilewright/compile.h"

namespace tilewright::errors {
namespace {

using interpreter::range_array;

void compile_for(Engine engine, const Program& program) { compile(program, {.engine = engine}); }

TEST(CompileErrors, DimensionThatNoArgumentGives) {
  const Value n = dynamic("n");
  Tensor A("A", {n * n}, f32);
  expect_error([&] { compile_for(Engine::Interpreter, kernel({A}, [&] { A(0) = 1; })); }, "");
}

TEST(CompileErrors, HostSideAssumptionOnFloats) {
  const Value x = Scalar("x", f32);
  Tensor A("A", {8}, f32);
  expect_error(
      [&] {
        const Program p = prim_func("program", {A, x}, [&] {
          assume(x < 1.0);
          for (auto bx : Kernel(8, {.threads = 32})) A(bx) = x;
        });
        compile_for(Engine::Interpreter, p);
      },
      "");
}

TEST(CompileErrors, TileOpUnderDivergentControl) {
  Tensor A("A", {8}, f32);
  expect_error(
      [&] {
        const Program p = kernel({A}, [&] {
          auto S = alloc_shared({8}, f32, "S");
          If(get_thread_binding() < 5, [&] {
            mark();
            copy(A, S);
          });
        });
        compile_for(Engine::Interpreter, p);
      },
      "");
}

TEST(CpuErrors, Roles) {
  expect_error(
      [] {
        const Program p = kernel({}, [] {
          mark();
          ws({0}, [] { sync_threads(1, 128); });
        });
        compile_for(Engine::Cpu, p);
      },
      "");
}

TEST(CpuErrors, Barriers) {
  expect_error(
      [] {
        const Program p = kernel({}, [] {
          auto barrier = alloc_barrier({128});
          mark();
          barrier_arrive(barrier);
        });
        compile_for(Engine::Cpu, p);
      },
      "");
}

TEST(CpuErrors, AsynchronousCopies) {
  Tensor A("A", {8}, f32);
  expect_error(
      [&] {
        const Program p = kernel({A}, [&] {
          auto S = alloc_shared({8}, f32, "S");
          mark();
          async_copy(A, S);
        });
        compile_for(Engine::Cpu, p);
      },
      "");
}

TEST(CpuErrors, NamedBarriers) {
  expect_error(
      [] {
        const Program p = kernel({}, [] {
          mark();
          sync_threads(1, 128);
        });
        compile_for(Engine::Cpu, p);
      },
      "");
}

TEST(CpuErrors, Clusters) {
  expect_error(
      [] {
        const Program p = prim_func("program", {}, [] {
          mark();
          for (auto bx : Kernel(4, {.threads = 32, .cluster_dims = {2}})) If(bx == 0, [] { thread_return(); });
        });
        compile_for(Engine::Cpu, p);
      },
      "");
}

TEST(CpuErrors, GemmOfPowersOfTwo) {
  expect_error(
      [] {
        const Program p = kernel({}, [] {
          auto P = alloc_shared({8, 8}, e8m0, "P");
          auto C = alloc_fragment({8, 8}, f32, "C");
          clear(C);
          fill(P, 1.0);
          mark();
          gemm(P, P, C);
        });
        compile_for(Engine::Cpu, p);
      },
      "");
}

void call_foreign(Location at = Location::current()) {
  ir::Call call;
  call.function = "their_function";
  recording("a call", at).call(std::move(call), {});
}

TEST(CpuErrors, ForeignText) {
  expect_error(
      [] {
        const Program p = kernel({}, [] {
          mark();
          call_foreign();
        });
        compile_for(Engine::Cpu, p);
      },
      "");
}

TEST(InterpreterErrors, ForeignText) {
  expect_error(
      [] {
        const Program p = kernel({}, [] {
          mark();
          call_foreign();
        });
        interpreter::run(p, {});
      },
      "");
}

TEST(InterpreterErrors, Clusters) {
  expect_error(
      [] {
        const Program p = prim_func("program", {}, [] {
          mark();
          for (auto bx : Kernel(4, {.threads = 32, .cluster_dims = {2}})) If(bx == 0, [] { thread_return(); });
        });
        interpreter::run(p, {});
      },
      "");
}

// What compile() refuses by its rules, the interpreter still checks: it also runs programs that were never compiled.
TEST(InterpreterErrors, BarrierUnderDivergentControl) {
  expect_error(
      [] {
        const Program p = kernel({}, [] {
          If(get_thread_binding() < 5, [] {
            mark();
            sync_threads();
          });
        });
        interpreter::run(p, {});
      },
      "");
}

TEST(InterpreterErrors, OperandsThatDisagree) {
  Tensor A("A", {256}, f32);
  const NDArray a = range_array({256}, f32);
  expect_error(
      [&] {
        const Program p = kernel({A}, [&] {
          auto S = alloc_shared({8}, f32, "S");
          mark();
          copy(A(get_thread_binding()), S);
        });
        interpreter::run(p, {a});
      },
      "");
}

// The builder makes both sides of a copy agree; text may say what it cannot know to be wrong.
TEST(InterpreterErrors, ExtentsThatDisagreeAtTheCall) {
  const Program p = parse_program(R"(program p {
  param n: int32
  param m: int32
  launch main(bx: 1) threads(tx: 32) {
    shared S: float32[64]
    fragment R: float32[64]
    fill to=S value=0.0
    copy from=S[0 : n] to=R[0 : m]
  }
})",
                                  "program.tile");
  expect_error([&] { interpreter::run(p, {}, {.ints = {{"n", 8}, {"m", 16}}}); }, "");
}

}  // namespace
}  // namespace tilewright::errors
