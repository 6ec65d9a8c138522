// Blocks whose roles may wait for each other, taken apart: on a CPU every role's threads are one strand, with a stack
// of its own.
#pragma once
#include "analysis/uniformity.h"

namespace tilewright::passes {

// A part of a block as if it were the block.
struct Strand {
  ir::Launch launch;
  int64_t first = 0;  // of its threads, along x, in the block
};

// Named barriers of a loop program from here on are meetings of strands, which the lowering makes itself.
inline constexpr int64_t kFirstMeeting = 16;

// The parts that the roles cut the block into; one without roles. Each has the statements that its threads execute;
// what threads of several parts do together is done by the first of them while the others wait. The tables get local
// buffers for every part. Refuses what several parts cannot do together.
std::vector<Strand> strands_of(const ir::Launch& launch, const analysis::Uniformity& uniformity, int32_t number,
                               ir::ProgramTables& tables);

// Whether code of the launch, at the loop level, waits for other code of it: what moves or joins loops leaves it alone.
bool has_waits(const ir::Launch& launch);

}  // namespace tilewright::passes
