// Which loops are written in vectors of our own: iterations go together as lanes (codegen/cpu/lanes.text.h) where a
// function of the loop, or a format of memory, takes fewer instructions than the host's compiler makes of its scalar
// text.
//
// Needs: a LoopProgram after all passes that change vectorized loops.
// Leaves: the same program, and the `lanes` of such loops: all that is in them is a matter of lanes, elements that
//   differ from lane to lane lie side by side. None on a processor without AVX-512.
#pragma once
#include "ir/program.h"
#include "target/cpu.h"

namespace tilewright::passes {

ir::LoopProgram choose_lanes(ir::LoopProgram program, const target::CpuFeatures& features);

// What became of a loop that has such a function.
struct LaneChoice {
  SourceLocation location;  // of the first such function
  std::string function;     // "exp2_f32"
  int64_t lanes = 0;        // 0: the loop is left to the host's compiler
  std::string why = {};     // it is left
};
// In the order of the text.
std::vector<LaneChoice> lane_choices(const ir::LoopProgram& program, const target::CpuFeatures& features);

}  // namespace tilewright::passes
