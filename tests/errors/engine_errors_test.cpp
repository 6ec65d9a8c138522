// What compile() and the engines refuse: one mistake a test, with the whole message.
#include <fstream>

#include "dsl/recording.h"
#include "errors/expect_error.h"
#include "interpreter/run.h"
#include "ir/parse.h"
#include "runtime/plans.h"
#include "runtime/scratch.h"
#include "tilewright/compile.h"

namespace tilewright::errors {
namespace {

using interpreter::range_array;

void compile_for(Engine engine, const Program& program) { compile(program, {.engine = engine}); }

TEST(CompileErrors, DimensionThatNoArgumentGives) {
  const Value n = dynamic("n");
  expect_error(
      [&] {
        Tensor first("first", {8}, f32);
        mark();
        Tensor A("A", {n * n}, f32);
        compile_for(Engine::Interpreter, kernel({first, A}, [&] { A(0) = 1; }));
      },
      R"(TW1081 build: 'program': no argument gives the value of the dimension 'n'
  --> the mistake
help: let it stand alone, or times a constant plus known values, in a shape or stride of a tensor parameter)");
}

TEST(CompileErrors, HostSideAssumptionOnFloats) {
  const Value x = Scalar("x", f32);
  Tensor A("A", {8}, f32);
  expect_error(
      [&] {
        const Program p = prim_func("program", {A, x}, [&] {
          mark();
          assume(x < 1.0);
          for (auto bx : Kernel(8, {.threads = 32})) A(bx) = x;
        });
        compile_for(Engine::Interpreter, p);
      },
      R"(TW1082 build: 'program': a shape, stride, grid or host-side assumption uses an operator
  --> the mistake
help: the host computes integers only: + - * // % min max, comparisons and choices of symbols and integer parameters)");
}

TEST(CompileErrors, ShapeOnFloats) {
  const Value x = Scalar("x", f32);
  expect_error(
      [&] {
        mark();
        Tensor A("A", {8, cast(x, i32)}, f32);
        compile_for(Engine::Interpreter, kernel({A, x}, [&] { A(0, 0) = x; }));
      },
      R"(TW1082 build: 'program': a shape, stride, grid or host-side assumption uses a conversion of floats
  --> the mistake
help: the host computes integers only: + - * // % min max, comparisons and choices of symbols and integer parameters)");
}

TEST(CompileErrors, TileOpUnderDivergentControl) {
  Tensor A("A", {8}, f32);
  expect_error(
      [&] {
        const Program p = kernel({A}, [&] {
          auto S = alloc_shared({8}, f32, "S");
          mark_declaration();
          If(get_thread_binding() < 5, [&] {
            mark();
            copy(A, S);
          });
        });
        compile_for(Engine::Interpreter, p);
      },
      R"(TW3093 verify: copy is done by all threads together, but not all of them may come here
  --> the mistake
note: not all threads take the same way here, by if
  --> the declaration
help: move it out of the branch, or branch on whole warps, as in if tx < 64)");
}

TEST(ToolErrors, UnknownEngine) {
  Tensor A("A", {8}, f32);
  const Program p = kernel({A}, [&] { A(0) = 1; });
  const runtime::ScopedVariable setting("TILEWRIGHT_ENGINE", "gpu");
  expect_error([&] { compile(p); }, R"(TW7002 tool: TILEWRIGHT_ENGINE is 'gpu'
help: it is auto, cpu, interpreter, simulator or cuda)");
}

TEST(ToolErrors, DumpThatCannotBeWritten) {
  Tensor A("A", {8}, f32);
  const Program p = kernel({A}, [&] { A(0) = 1; });
  const runtime::Scratch scratch;
  std::ofstream(scratch / "file") << "no directory";
  const runtime::ScopedVariable setting("TILEWRIGHT_DUMP", (scratch / "file").c_str());
  const runtime::CaughtWarnings warnings;
  compile(p, {.engine = Engine::Interpreter});
  ASSERT_GT(warnings.count(Code::DumpNotWritten), 0);
  const std::string text = warnings.found[0].to_string();
  const std::string want =
      "warning TW7001 tool: TILEWRIGHT_DUMP: the file cannot be written\n  --> " + (scratch / "file/program.");
  EXPECT_EQ(text.substr(0, want.size()), want);
}

TEST(CpuErrors, ParallelOverThreadsOfSeveralRoles) {
  expect_error(
      [] {
        const Program p = kernel({}, [] {
          auto v = alloc_var(i32, 0);
          on_threads(0, 64, [&] { v = 1; });
          mark();
          for (auto i : Parallel(256)) v = v + i;
        });
        compile_for(Engine::Cpu, p);
      },
      R"(TW5001 cpu: a Parallel that each thread of the block does on its own values, in a block that has roles, is not something the CPU engine runs
  --> the mistake
help: the interpreter runs it: engine="interpreter" in Python, Engine::Interpreter in C++)");
}

TEST(CpuErrors, NamedBarrierThatSomeThreadsOfAWarpComeTo) {
  expect_error(
      [] {
        const Program p = kernel({}, [] {
          const Value tx = get_thread_binding();
          If(tx % 2 == 0, [&] {
            mark();
            sync_threads(1, 64);
          });
        });
        compile_for(Engine::Cpu, p);
      },
      R"(TW5004 cpu: a barrier that some threads of a role come to and others do not is not something the CPU engine runs
  --> the mistake
help: the interpreter runs it: engine="interpreter" in Python, Engine::Interpreter in C++)");
}

TEST(CpuErrors, Clusters) {
  expect_error(
      [] {
        const char* text = "program p {\n  launch p(bx: 4) threads(tx: 32) cluster(2) {\n    sync cluster\n  }\n}\n";
        compile_for(Engine::Cpu,
                    Program(std::make_shared<ir::TileProgramBox>(ir::TileProgramBox{ir::parse(text, "p.tile")})));
      },
      R"(TW5006 cpu: what reaches the other blocks of a cluster is not something the CPU engine runs
  --> p.tile:3
help: the interpreter runs it: engine="interpreter" in Python, Engine::Interpreter in C++)");
}

TEST(CpuErrors, GemmThatAccumulatesInANarrowerType) {
  expect_error(
      [] {
        const Program p = kernel({}, [] {
          auto P = alloc_shared({8, 8}, f64, "P");
          auto C = alloc_fragment({8, 8}, f32, "C");
          clear(C);
          fill(P, 1.0);
          mark();
          gemm(P, P, C);
        });
        compile_for(Engine::Cpu, p);
      },
      R"(TW5007 cpu: gemm in float32 cannot hold every value of float64
  --> the mistake
help: the interpreter runs it: engine="interpreter" in Python, Engine::Interpreter in C++)");
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
      R"(TW5005 cpu: a call of foreign text is not something the CPU engine runs
  --> the mistake
help: the interpreter runs it: engine="interpreter" in Python, Engine::Interpreter in C++)");
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
      R"(TW6090 run: the interpreter cannot run the foreign function 'their_function'
  --> the mistake)");
}

// Clusters of blocks that do not reach each other are a matter of speed.
TEST(InterpreterErrors, Clusters) {
  const auto run = [](const std::string& statement, int grid = 4) {
    const std::string text = fmt::format(
        "program p {{\n  launch p(bx: {}) threads(tx: 32) cluster(2) {{\n    shared s: float32[32]\n"
        "    shared t: float32[32] view=s cta=bx\n    fill to=s value=1.0\n{}  }}\n}}\n",
        grid, statement);
    interpreter::run(Program(std::make_shared<ir::TileProgramBox>(ir::TileProgramBox{ir::parse(text, "p.tile")})), {});
  };
  run("    sync block\n", 3);
  run("    sync cluster\n");
  run("    copy from=s to=t\n", 2);
  expect_error([&] { run("    sync cluster\n", 3); },
               R"(TW6090 run: a grid of 3 x 1 x 1 blocks in clusters of 2
  --> p.tile:2
help: a grid consists of whole clusters)");
  expect_error([&] { run("    copy from=s to=t\n"); },
               R"(TW6001 run: block 2 of a cluster of 2, in block (2), thread (0)
  --> p.tile:6)");
  expect_error([&] { run("    if bx % 2 == 0 {\n      sync cluster\n    }\n"); },
               R"(TW6009 run: deadlock: no thread can go on
  --> p.tile:7
note: block (0), threads 0 to 31 wait for the other blocks of the cluster
  --> p.tile:7)");
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
      R"(TW6011 run: a barrier of the block is not reached by all threads that execute it together, in block (0), thread (5)
  --> the mistake
help: move it out of the divergent control flow, or under a role of whole warps)");
}

TEST(InterpreterErrors, OperandsThatDisagree) {
  Tensor A("A", {256}, f32);
  const NDArray a = range_array({256}, f32);
  expect_error(
      [&] {
        const Program p = kernel({A}, [&] {
          auto S = alloc_shared({8}, f32, "S");
          mark();
          copy(A(floormod(get_thread_binding(), 7)), S);
        });
        interpreter::run(p, {a});
      },
      R"(TW6012 run: an operand differs between the threads that execute this together, in block (0), thread (1)
  --> the mistake
help: make it the same for all threads, or move the statement under a role)");
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
  expect_error(
      [&] {
        interpreter::run(p, {}, {.ints = {{"n", 8}, {"m", 16}}});
      },
      R"(TW6014 run: a copy of (8) elements of 'S' to (16) of 'R', in block (0)
  --> program.tile:8)");
}

}  // namespace
}  // namespace tilewright::errors
