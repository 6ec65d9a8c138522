// Matrices in rows of another length.
#include "tilewright/kernels.h"
#include "tilewright/language.h"

namespace tilewright::kernels {

Program pad(const PadOptions& o) {
  const Value M = dynamic("M"), N = dynamic("N"), rows = dynamic("rows"), columns = dynamic("columns");
  const Tensor X("X", {M, N}, o.x), Y("Y", {rows, columns}, o.x);
  return prim_func("pad", {X, Y}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(columns, o.tile), ceildiv(rows, o.rows)}, {.threads = o.threads})) {
      auto x = alloc_fragment({o.rows, o.tile}, o.x);
      copy(X(by * o.rows, bx * o.tile), x);  // zeros where X ends
      copy(x, Y(by * o.rows, bx * o.tile));
    }
  });
}

}  // namespace tilewright::kernels
