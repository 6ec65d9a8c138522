#include "driver/cuda_engine.h"

#include "ir/verify.h"

namespace tilewright {

passes::ThreadLowering lower_cuda(const ir::TileProgram& program, const target::GpuTarget& target) {
  passes::ThreadLowering threads = passes::lower_to_threads(program, target);
  ir::check_valid(threads.program, "lower_to_threads");
  return threads;
}

codegen::CudaSource write_cuda(const ir::TileProgram& program, const target::GpuTarget& target, Dump& dump) {
  const passes::ThreadLowering threads = lower_cuda(program, target);
  dump.write("lower_to_threads", threads.program);
  codegen::CudaSource source = codegen::emit_cuda(threads.program, target, "");
  dump.write_text("cuda", "cu", source.text);
  return source;
}

}  // namespace tilewright
