// Along which dimension of the grid tiles take longer and longer.
#pragma once
#include <optional>

#include "ir/program.h"

namespace tilewright::analysis {

// The dimension of the grid along which loops of the launch's tiles take more and more turns, or fewer and fewer. None:
// along no dimension, or several, do the turns of pipelined loops surely rise or fall.
std::optional<size_t> uneven_along(const ir::Launch& launch);

}  // namespace tilewright::analysis
