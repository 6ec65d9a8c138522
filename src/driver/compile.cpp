// The whole road from a program to an executable.
#include "tilewright/compile.h"

#include "driver/build_plan.h"
#include "driver/canonical.h"
#include "driver/check_engine.h"
#include "driver/cpu_engine.h"
#include "driver/cuda_engine.h"
#include "driver/dump.h"
#include "driver/hand_in_plan.h"
#include "driver/interpreter_engine.h"
#include "driver/simulator_engine.h"
#include "driver/versions.h"
#include "passes/pipeline.h"
#include "support/diagnostic.h"
#include "support/warning.h"
#include "tilewright/cuda.h"

namespace tilewright {
namespace {

// What TILEWRIGHT_ENGINE asks for, where the caller leaves it open.
Engine chosen(Engine engine) {
  const char* name = std::getenv("TILEWRIGHT_ENGINE");
  if (engine != Engine::Auto || !name || !*name) return engine;
  const std::string_view wish = name;
  if (wish == "cpu") return Engine::Cpu;
  if (wish == "interpreter") return Engine::Interpreter;
  if (wish == "simulator") return Engine::Simulator;
  if (wish == "cuda") return Engine::Cuda;
  if (wish == "auto") return Engine::Auto;
  fail(Code::EngineUnknown, {}, fmt::format("TILEWRIGHT_ENGINE is '{}'", wish),
       "it is auto, cpu, interpreter, simulator or cuda");
}

Executable on_interpreter(ir::TileProgram tiles, runtime::LaunchPlan plan) {
  return runtime::make_executable(std::move(plan), interpreter_callee(std::move(tiles)), "interpreter", "");
}

Executable on_simulator(ir::TileProgram tiles, runtime::LaunchPlan plan, const std::string& arch, Dump dump) {
  const target::GpuTarget target = gpu_target(arch.empty() ? "sm_80" : arch);
  auto make = [target, dump = std::move(dump)](const ir::TileProgram& p) mutable -> runtime::Version {
    GpuStages stages(dump.wanted());
    ir::ThreadProgram threads = passes::lower_to_threads(p, target, {}, stages).threads;
    stages.write(dump);
    runtime::LaunchPlan own = build_plan(p);
    demand_of_calls(threads, own);
    return {std::move(own), simulator_callee(std::move(threads), {.target = target}), ""};
  };
  return with_fast_version(std::move(tiles), std::move(plan), "simulator", std::move(make));
}

Executable on_cuda(ir::TileProgram tiles, runtime::LaunchPlan plan, const std::string& arch, Dump dump) {
  plan.memory = runtime::LaunchPlan::Memory::Cuda;
  auto make = [arch, dump = std::move(dump)](const ir::TileProgram& p) mutable { return build_cuda(p, arch, dump); };
  return with_fast_version(std::move(tiles), std::move(plan), "cuda", std::move(make));
}

Executable on_cpu(const ir::TileProgram& tiles, runtime::LaunchPlan plan, Dump& dump) {
  CpuKernel kernel = build_cpu(tiles, dump);
  plan.sites = std::move(kernel.sites);
  return runtime::make_executable(std::move(plan), std::move(kernel.callee), "cpu", std::move(kernel.text));
}

// Whether it is this engine that does not take the program, or there is nobody to compile it.
bool runs_elsewhere(Code code) {
  constexpr Code kOwn[] = {Code::HostCompilerMissing, Code::CpuRole, Code::CpuSync, Code::CpuCluster,
                           Code::CpuGemmTypes};
  return std::ranges::find(kOwn, code) != std::end(kOwn);
}

}  // namespace

Executable compile_plainly(const Program& given, const CompileOptions& options) {
  const Program program = options.plan.empty() ? given : with_plan(given, options.plan);
  check_plans(program.box().program);
  Dump dump(program.name());
  ir::TileProgram tiles = canonical(program.box().program,
                                    [&](const char* pass, const ir::TileProgram& p, double) { dump.write(pass, p); });
  runtime::LaunchPlan plan = build_plan(tiles);
  const Engine engine = chosen(options.engine);
  if (engine == Engine::Interpreter) return on_interpreter(std::move(tiles), std::move(plan));
  if (engine == Engine::Simulator) return on_simulator(std::move(tiles), std::move(plan), options.arch, dump);
  if (engine == Engine::Cpu) return on_cpu(tiles, std::move(plan), dump);
  if (engine == Engine::Cuda)
    return on_cuda(std::move(tiles), std::move(plan), options.arch.empty() ? cuda::architecture() : options.arch, dump);
  try {
    return on_cpu(tiles, plan, dump);
  } catch (const CompileError& e) {
    if (!runs_elsewhere(static_cast<Code>(e.diagnostic().code))) throw;
    Diagnostic d = e.diagnostic();
    d.severity = Diagnostic::Severity::Warning;
    d.message += "; it runs on the interpreter, which is slow";
    warn(d);
    return on_interpreter(std::move(tiles), std::move(plan));
  }
}

Executable compile(const Program& program, const CompileOptions& options) {
  Executable executable = compile_plainly(program, options);
  return wants_checks() ? with_checks(program, std::move(executable)) : executable;
}

}  // namespace tilewright
