// Where the tiles of gemms lie in memory. The gemm text says what it likes; every other access of such a tile follows.
#pragma once
#include "passes/lower/lowering.h"

namespace tilewright::passes {

// Chooses for every tile that gemms use as a whole and that has no views. Marks the rows of the buffer table (their
// shape and type become those of the memory); accesses still name elements of the tile until place_tiles().
void choose_tiles(Lowering& l);

// Loads and stores of such tiles go to where the elements lie.
ir::Body place_tiles(const ir::Body& body, Lowering& l);

// Cuts the variables of a box that run along panels, so that the innermost loop runs along the lanes of one.
struct CutBox {
  std::vector<ir::Expr> vars, extents;
  size_t lanes = 0;  // how many of them, at the end, are lanes of panels
  size_t parts = 0;  // and then, elements that stand together at a lane
  ir::Body body;
};
CutBox cut_to_panels(const std::vector<ir::Expr>& vars, const std::vector<ir::Expr>& extents, const ir::Body& body,
                     Lowering& l);
// A box whose lanes run across the lines of global memory (a transposing copy) takes them a cache line at a time: the
// variable that runs along the lines is cut, and its pieces stand inside the lanes. False if nothing was to be done.
bool cut_to_lines(CutBox& box, Lowering& l);
bool touches_panels(const ir::Body& body, const Lowering& l);

}  // namespace tilewright::passes
