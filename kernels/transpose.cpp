// Two dimensions change places, through a tile that is read across.
#include <algorithm>

#include "tilewright/kernels.h"
#include "tilewright/language.h"

namespace tilewright::kernels {

namespace {

constexpr int64_t kWordBits = 32;

// Neighbours of a row are in neighbouring lanes on both sides, element by element, as rows that begin anywhere allow; a
// word of the tile has elements that are far from each other in the row, which a lane brings and takes one by one.
Program of_odd_rows(const TransposeOptions& o) {
  const Value batch = dynamic("batch"), M = dynamic("M"), N = dynamic("N");
  const Tensor X("X", {batch, M, N}, o.x), Y("Y", {batch, N, M}, o.x);
  const int64_t words = std::max<int64_t>(1, kWordBits / o.x.storage_bits()), columns = o.tile / words;
  return prim_func("transpose", {X, Y}, [&] {
    for (auto [bx, by, b] : Kernel({ceildiv(N, o.tile), ceildiv(M, o.tile), batch}, {.threads = o.threads})) {
      auto rows = alloc_shared({o.tile, columns + 1, words}, o.x);  // rows of an odd number of words: no bank twice
      for (auto [i, j, w] : Parallel(o.tile, columns, words))
        rows(i, j, w) = X(b, by * o.tile + i, bx * o.tile + w * columns + j);
      for (auto [j, i, w] : Parallel(columns, o.tile, words))
        Y(b, bx * o.tile + w * columns + j, by * o.tile + i) = rows(i, j, w);
    }
  });
}

}  // namespace

Program transpose(const TransposeOptions& o) {
  if (!o.whole) return of_odd_rows(o);
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
