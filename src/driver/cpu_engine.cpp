#include "driver/cpu_engine.h"

#include "ir/print.h"
#include "ir/verify.h"
#include "passes/lower_to_loops.h"
#include "passes/pipeline.h"
#include "runtime/build_id.h"
#include "runtime/lowered_kernel.h"

namespace tilewright {

target::CpuFeatures features_of(const runtime::ProcessorFeatures& f) {
  return {f.avx2, f.fma, f.f16c, f.avx512, f.avx512_bf16, f.avx512_vnni, f.amx};
}

std::vector<runtime::Site> sites_of(const std::vector<codegen::ReportSite>& sites) {
  std::vector<runtime::Site> out;
  for (const codegen::ReportSite& s : sites) {
    runtime::Site site;
    site.kind = static_cast<runtime::Site::Kind>(s.kind);
    site.message = s.message, site.location = s.location;
    for (const auto& operand : s.operands) site.operands.push_back({operand.name, operand.type});
    out.push_back(std::move(site));
  }
  return out;
}

ir::LoopProgram lower_cpu(const ir::TileProgram& program, const runtime::ProcessorFeatures& processor) {
  ir::LoopProgram loops = passes::lower_to_loops(program, codegen::cpu_target(features_of(processor)));
  ir::check_valid(loops, "lower_to_loops");
  return loops;
}

CpuKernel write_cpu(const ir::TileProgram& program, const runtime::ProcessorFeatures& processor, Dump& dump) {
  const target::CpuFeatures features = features_of(processor);
  const ir::LoopProgram lowered = lower_cpu(program, processor);
  dump.write("lower_to_loops", lowered);
  const ir::LoopProgram loops =
      passes::run_loop_passes(lowered, passes::loop_passes(), features,
                              [&](const char* pass, const ir::LoopProgram& p) { dump.write(pass, p); });
  codegen::CpuKernelSource source = codegen::emit_cpu(loops, features);
  dump.write_text("cpu", "cpp", source.text);
  return {std::move(source.text),
          sites_of(source.sites),
          std::move(source.gemms),
          passes::lane_choices(loops, features),
          nullptr,
          source.waits,
          std::move(source.marks)};
}

std::string cpu_origin(const ir::TileProgram& program, const runtime::ProcessorFeatures& processor) {
  return fmt::format("cpu\n{}\n{}", processor.to_string(), ir::print(program, {.locations = true}));
}

CpuKernel build_cpu(const ir::TileProgram& program, Dump& dump) {
  const runtime::ProcessorFeatures processor = runtime::processor_features();
  const runtime::LoweredPlace place(cpu_origin(program, processor), runtime::own_build_id());
  CpuKernel kernel;
  // A dump shows stages, which only lowering has.
  if (std::optional<runtime::LoweredKernel> found = dump.wanted() ? std::nullopt : place.find()) {
    kernel.text = std::move(found->text), kernel.sites = std::move(found->sites);
  } else {
    kernel = write_cpu(program, processor, dump);
    place.keep({kernel.text, kernel.sites, {}, {}});
  }
  kernel.callee = runtime::build_cpu_kernel({program.name, kernel.text, processor});
  return kernel;
}

}  // namespace tilewright
