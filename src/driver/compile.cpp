// The whole road from a program to an executable.
#include "tilewright/compile.h"

#include "driver/build_plan.h"
#include "driver/dump.h"
#include "driver/interpreter_engine.h"
#include "passes/pipeline.h"
#include "support/diagnostic.h"

namespace tilewright {

Executable compile(const Program& program, const CompileOptions& options) {
  Dump dump(program.name());
  ir::TileProgram tiles =
      passes::run_passes(order_symbols(program.box().program), passes::all_passes(),
                         [&](const char* pass, const ir::TileProgram& p, double) { dump.write(pass, p); });
  runtime::LaunchPlan plan = build_plan(tiles);
  (void)options;
  return runtime::make_executable(std::move(plan), interpreter_callee(std::move(tiles)), "interpreter", "");
}

}  // namespace tilewright
