// Products by panels of their tiles: a panel's rows need nothing of another's, so that what is made of a product can
// follow it panel by panel, in the nearest cache.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// The number of the panel at which the region of a tile begins, if it begins with one; none: the tile has no panels, or
// it does not.
ir::Expr panel_of(const ir::Region& region, const ir::Buffer& b);

// A product whose sums lie in more than one panel of rows, or a choice between such products, as a loop over the
// panels. None: it is something else, or its tiles end within a panel.
std::optional<ir::Stmt> by_panels(const ir::Stmt& s, ir::ProgramTables& program);

// Of a loop whose variable is the number of a tile's panel: the rows of a panel; 0: of another loop.
int64_t panel_width(const ir::For& loop, const ir::ProgramTables& program);

}  // namespace tilewright::passes
