#include "passes/tile/whole_steps.h"

#include <bit>
#include <numeric>

#include "analysis/half_steps.h"
#include "analysis/own_schedule.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "passes/schedule/other_steps.h"
#include "plan/hints.h"
#include "target/mma.h"
#include "target/wgmma.h"

namespace tilewright::passes {

using namespace ir;
using analysis::HalfSteps;

namespace {

constexpr int64_t kRow = 128;         // bytes of a row of an operand: the widest panel that TMA fills
constexpr int64_t kInstruction = 32;  // of which a matrix instruction multiplies a whole number, whatever the type

int64_t row_of(const ProgramTables& p, const HalfSteps& steps) {
  int64_t bytes = 0;
  for (const auto& [id, dim] : steps.cut) bytes = std::max(bytes, steps.step * p.buffer(id).type.bits / 8);
  return bytes;
}

// Of steps whose row has so many bytes.
bool are_odd(int64_t row, bool in_panels) {
  return in_panels ? row % kRow != 0 && kRow % row != 0 : row % kInstruction != 0;
}

// Whose instructions multiply what the loop does.
struct Instructions {
  bool of_warps = true, of_warpgroups = true;
};
Instructions instructions_of(const ProgramTables& p, const For& loop, const target::GpuTarget& target) {
  Instructions out{true, target.has.wgmma};
  for (const Stmt& s : loop.body) {
    const auto* g = s.as<Gemm>();
    if (!g) continue;
    const DType a = operand_type(p, *g, g->a), b = operand_type(p, *g, g->b), c = p.buffer(g->c.buffer).type;
    out.of_warps = out.of_warps && target::mma_for(a, b, c, target.arch);
    out.of_warpgroups = out.of_warpgroups && target::wgmma_for(a, b, c);
  }
  return out;
}

Ratio of_whole_steps(const ProgramTables& p, const For& loop, const HalfSteps& steps, bool in_panels) {
  const int64_t row = row_of(p, steps);
  const auto turns = constant_int(loop.extent);
  if (!analysis::ends_with_tensors(p, loop, steps.step)) {
    const int64_t times = kInstruction / std::gcd(kInstruction, row);
    return turns && *turns % times == 0 ? Ratio{times, 1} : Ratio{};
  }
  const auto nearest = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(row * 4 / 3)));
  int64_t wanted = in_panels ? std::max(row / kRow, int64_t{1}) * kRow : std::max(nearest, kInstruction);
  if (turns) wanted = std::min(wanted, (*turns * row + kInstruction - 1) / kInstruction * kInstruction);
  const int64_t shared = std::gcd(wanted, row);
  return {wanted / shared, row / shared};
}

}  // namespace

void whole_steps(TileProgram& program, const target::GpuTarget& target) {
  for (Launch& launch : program.launches) {
    const plan::Hints hints = plan::parse_hints(launch.plan, program.location(launch.location));
    if (hints.own_threads_and_steps || analysis::has_own_layouts(program, launch)) continue;
    for (size_t i = 0; i < launch.body.size(); ++i) {
      const auto* loop = launch.body[i].as<For>();
      const auto steps = loop ? analysis::product_steps(program, launch, i) : std::nullopt;
      if (!steps || constant_int(loop->begin) != 0) continue;
      const Instructions by = instructions_of(program, *loop, target);
      if (!by.of_warps || !are_odd(row_of(program, *steps), by.of_warpgroups)) continue;
      const Ratio ratio = of_whole_steps(program, *loop, *steps, by.of_warpgroups);
      if (ratio.times != ratio.parts) in_steps(program, launch.body, i, *steps, ratio, target.has.tma);
    }
  }
}

}  // namespace tilewright::passes
