// Two dimensions change places, through a tile that is read across.
#include "tilewright/kernels.h"
#include "tilewright/language.h"

namespace tilewright::kernels {

Program transpose(const TransposeOptions& o) {
  const Value batch = dynamic("batch"), M = dynamic("M"), N = dynamic("N");
  const Tensor X("X", {batch, M, N}, o.x), Y("Y", {batch, N, M}, o.x);
  return prim_func("transpose", {X, Y}, [&] {
    for (auto [bx, by, b] : Kernel({ceildiv(N, o.tile), ceildiv(M, o.tile), batch}, {.threads = o.threads})) {
      auto rows = alloc_shared({o.tile, o.tile}, o.x);
      auto columns = alloc_fragment({o.tile, o.tile}, o.x);
      copy(X(b, by * o.tile, bx * o.tile), rows);
      for (auto [j, i] : Parallel(o.tile, o.tile)) columns(j, i) = rows(i, j);
      copy(columns, Y(b, bx * o.tile, by * o.tile));
    }
  });
}

}  // namespace tilewright::kernels
