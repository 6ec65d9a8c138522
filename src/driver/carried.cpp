#include "driver/carried.h"

#include "driver/build_plan.h"
#include "driver/canonical.h"
#include "driver/cpu_engine.h"
#include "driver/cuda_engine.h"
#include "driver/versions.h"
#include "passes/assume_fast_calls.h"
#include "passes/pipeline.h"
#include "runtime/sha256.h"
#include "tilewright/compile.h"
#include "tilewright/cuda.h"

namespace tilewright {
namespace {

Engine engine_of(const std::string& name) {
  return name == "cpu"           ? Engine::Cpu
         : name == "cuda"        ? Engine::Cuda
         : name == "interpreter" ? Engine::Interpreter
                                 : Engine::Simulator;
}

}  // namespace

std::string hash_of_text(const std::string& text) { return runtime::hex(runtime::sha256(text)); }

CarriedKernel carry(const Program& program, const std::string& engine, const std::string& arch) {
  CarriedKernel out{engine, arch, {}};
  Dump dump(program.name());
  if (engine == "cpu") out.text = write_cpu(canonical(program.box().program), runtime::processor_features(), dump).text;
  if (engine == "cuda") {
    if (out.arch.empty()) out.arch = cuda::architecture();
    DeviceChoice choice =
        choose_by_compiler(passes::assume_fast_calls(canonical(program.box().program)), out.arch, dump);
    out.code = std::move(choice.binary->cubin);
    out.text = std::move(choice.text.kernel.text);
  }
  return out;
}

Executable load_carried(const Program& program, const std::string& engine, const std::string& arch,
                        const std::string& hash, const void* code, size_t bytes) {
  Dump dump(program.name());
  if (engine == "cpu" && code) {
    const ir::TileProgram tiles = canonical(program.box().program);
    CpuKernel kernel = write_cpu(tiles, runtime::processor_features(), dump);
    if (hash_of_text(kernel.text) == hash) {
      runtime::LaunchPlan plan = build_plan(tiles);
      plan.sites = std::move(kernel.sites);
      return runtime::make_executable(std::move(plan), runtime::bind_cpu_kernel(code), engine, std::move(kernel.text));
    }
  }
  if (engine == "cuda" && code) {
    const ir::TileProgram tiles = canonical(program.box().program), fast = passes::assume_fast_calls(tiles);
    std::vector<plan::Limits> plans(passes::limits_in_turn().begin(), passes::limits_in_turn().end());
    for (plan::Limits limits : passes::limits_in_turn()) limits.plain_integers = true, plans.push_back(limits);
    for (const plan::Limits& limits : plans) {  // the plan that was carried
      CudaText text = write_cuda(fast, arch, dump, limits);
      if (hash_of_text(text.kernel.text) != hash) continue;
      auto carried = std::make_shared<std::optional<runtime::Version>>(
          load_cuda_text(std::move(text), build_plan(fast), {{static_cast<const char*>(code), bytes}, {}, 0}));
      // The fast version is asked for first; others are compiled where a call needs them.
      auto make = [carried, arch, dump](const ir::TileProgram& p) mutable {
        return *carried ? *std::exchange(*carried, std::nullopt) : build_cuda(p, arch, dump);
      };
      runtime::LaunchPlan plan = build_plan(tiles);
      plan.memory = runtime::LaunchPlan::Memory::Cuda;
      return with_fast_version(tiles, std::move(plan), engine, std::move(make));
    }
  }
  return compile(program, {engine_of(engine), arch});
}

}  // namespace tilewright
