#include "codegen/cuda_texts.h"

#include "driver/build_plan.h"
#include "passes/pipeline.h"
#include "support/diagnostic.h"

namespace tilewright {

ExampleText cuda_text_of(const std::string& program, const examples::Case& c, const std::string& arch) {
  ExampleText out{program, c.shape, arch, {}, {}};
  const ir::TileProgram tiles =
      passes::run_passes(order_symbols(c.program.box().program), passes::all_passes(), [](auto&&...) {});
  Dump dump(program);
  try {
    out.kernel = write_cuda(tiles, arch, dump).kernel;
  } catch (const CompileError& e) {
    out.refusal = e.diagnostic().code_text();
  }
  return out;
}

}  // namespace tilewright
