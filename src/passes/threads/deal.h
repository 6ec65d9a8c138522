// Elements of a tile dealt to threads by a layout: the loops of one thread over those that it holds.
#pragma once
#include <optional>

#include "layout/fragment.h"
#include "passes/lower/lowering.h"

namespace tilewright::passes {

// The threads that execute a collective: those of the block, or of a Role.
struct Team {
  ir::Expr thread;  // int32, from 0, of this thread among them
  int64_t count = 0;
  int64_t begin = 0;                   // the first of them in the block
  std::optional<int64_t> barrier = 0;  // the number of theirs: 0 is that of the block; none: none is left
  ir::Expr group = {};  // int32, of this thread's warpgroup among them, as a value that is the same for a warp's lanes
  bool in_line = true;  // the block's threads lie along x alone
  bool alone = false;   // control lets only one of them by: it is the one that does what one does for all
};

// The element at hand, inside the loops over registers.
struct Held {
  const FragmentLayout* layout = nullptr;
  std::vector<ir::Expr> index;   // int32, one a dimension
  std::vector<ir::Expr> digits;  // int32, one a digit of the layout
  ir::Expr valid;                // bool: the place holds an element of the tile; none: always
  ir::Expr first_copy;           // bool: of all threads that hold the element, this is the first; none: there is one
  // The registers that lie side by side along one dimension, if a vector was asked for: index and digits are those of
  // its first element plus `lane`.
  ir::Expr lane;
  int64_t vector = 1;
};

// One of the outermost loops that the caller has around it: of `inner` turns each.
struct Given {
  ir::Expr var;
  int64_t inner = 1;
};

// The loops over the registers, unrolled, around what `element` gives. With a `vector_dim`, the loop over neighbours
// along that dimension is left to `element`: it gets their number and a variable for the loop. The outermost loops, as
// many as `given` has, are the caller's, but for the turns within theirs. Places that hold no element are left out,
// unless the code is as well run there.
enum class Places : uint8_t { OfElements, All };
ir::Body deal(const FragmentLayout& layout, const Team& team, Lowering& l, std::optional<int> vector_dim,
              function_ref<ir::Body(const Held&)> element, const std::vector<Given>& given = {},
              Places places = Places::OfElements);
// The extents of those loops, the outermost first.
std::vector<int64_t> dealt_loops(const FragmentLayout& layout, std::optional<int> vector_dim);
// How many neighbours along the dimension a thread has side by side, none of which is beyond the shape.
int64_t neighbours_along(const FragmentLayout& layout, int dim);

// The register of another layout, of the same team, that holds the element at hand. dims[d] is the dimension of `at`
// that dimension d of `layout` follows; -1: the index there is 0. The layout must hold the element in every thread that
// does.
ir::Expr register_of(const FragmentLayout& layout, const Held& at, const std::vector<int>& dims);

// The value of one digit in a thread.
ir::Expr digit_value(const FragmentLayout& layout, const Digit& digit, const Team& team);

}  // namespace tilewright::passes
