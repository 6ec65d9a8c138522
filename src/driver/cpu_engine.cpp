#include "driver/cpu_engine.h"

#include "ir/verify.h"
#include "passes/fuse_loops.h"
#include "passes/lower_to_loops.h"
#include "passes/spread_atomics.h"
#include "passes/stream_stores.h"
#include "passes/transpose_tiles.h"

namespace tilewright {
namespace {

target::CpuFeatures features_of(const runtime::ProcessorFeatures& f) {
  return {f.avx2, f.fma, f.f16c, f.avx512, f.avx512_bf16, f.avx512_vnni};
}

}  // namespace

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
  const ir::LoopProgram fused = passes::fuse_loops(lowered);
  ir::check_valid(fused, "fuse_loops");
  dump.write("fuse_loops", fused);
  const ir::LoopProgram loops = passes::stream_stores(passes::transpose_tiles(passes::spread_atomics(fused)));
  ir::check_valid(loops, "stream_stores");
  dump.write("stream_stores", loops);
  codegen::CpuKernelSource source = codegen::emit_cpu(loops, features);
  dump.write_text("cpu", "cpp", source.text);
  return {std::move(source.text), sites_of(source.sites), std::move(source.gemms), nullptr};
}

CpuKernel build_cpu(const ir::TileProgram& program, Dump& dump) {
  const runtime::ProcessorFeatures processor = runtime::processor_features();
  CpuKernel kernel = write_cpu(program, processor, dump);
  kernel.callee = runtime::build_cpu_kernel({program.name, kernel.text, processor});
  return kernel;
}

}  // namespace tilewright
