// Where an element of a patch matrix lies in the image.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Indices (n, h, w, c) of the image for element (i, j) of a tile of rows x columns; those of padding are out of bounds.
// All are 64 bits wide.
std::vector<ir::Expr> im2col_element(const ir::Im2col& patches, const std::vector<ir::Expr>& image_shape,
                                     const ir::Expr& rows, const ir::Expr& columns, const ir::Expr& i,
                                     const ir::Expr& j);

}  // namespace tilewright::passes
