// Where an element of a patch matrix lies in the image.
#pragma once
#include "ir/program.h"

namespace tilewright::analysis {

// Indices (n, h, w, c) of the image for a point of the tile, which has an index for each of its dimensions: its rows
// and columns are the last two. Those of padding, and of what is beyond the matrix, are out of bounds. All are 64 bits
// wide.
std::vector<ir::Expr> im2col_element(const ir::Copy& patches, const std::vector<ir::Expr>& image_shape,
                                     const std::vector<ir::Expr>& point);

// The same tile as a box of the image, row by row of the tile; out of bounds where there is padding. None: it is none,
// because pixels lie apart, or the tile ends within a row of pixels or goes on in the next image.
std::optional<ir::Region> im2col_box(const ir::Copy& patches, const ir::ProgramTables& program);

}  // namespace tilewright::analysis
