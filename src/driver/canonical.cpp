#include "driver/canonical.h"

#include "driver/build_plan.h"

namespace tilewright {

ir::TileProgram canonical(const ir::TileProgram& program, passes::Observer observer) {
  return passes::run_passes(order_symbols(program), passes::all_passes(), observer);
}

ir::TileProgram canonical(const ir::TileProgram& program) {
  return canonical(program, [](const char*, const ir::TileProgram&, double) {});
}

}  // namespace tilewright
