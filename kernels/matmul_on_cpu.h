// The tile of a matrix product on a processor, by its price: what its instructions, its tiles' way to the caches and
// its result take, of the blocks of the core that has most of them.
#pragma once
#include "tilewright/kernels.h"

namespace tilewright::kernels {

struct MatmulShape {
  int64_t M = 0, N = 0, K = 0, batch = 1;
};

// Tiles that may suit: few for calls that differ in M, so that they share kernels; N and K are those of weights.
std::vector<MatmulTile> matmul_tiles_on_cpu(const MatmulOptions& options, const MatmulShape& shape);
// Cycles that a product in this tile takes on so many cores.
double matmul_cycles_on_cpu(const MatmulOptions& options, const MatmulTile& tile, const MatmulShape& shape,
                            int64_t cores);

}  // namespace tilewright::kernels
