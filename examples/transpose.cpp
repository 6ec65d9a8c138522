// Batched transpose: Y[b, j, i] = X[b, i, j], through a tile that is read across.
#include "example.h"

namespace examples {
namespace {

using namespace tilewright;

Program batched_transpose(Value B, Value M, Value N, int64_t block_M, int64_t block_N, DType dtype, int64_t threads) {
  Tensor X("X", {B, M, N}, dtype), Y("Y", {B, N, M}, dtype);
  return prim_func("batched_transpose", {X, Y}, [&] {
    for (auto [bx, by, b] : Kernel({ceildiv(N, block_N), ceildiv(M, block_M), B}, {.threads = threads})) {
      auto rows = alloc_shared({block_M, block_N}, dtype);
      auto columns = alloc_fragment({block_N, block_M}, dtype);
      copy(X(b, by * block_M, bx * block_N), rows);
      for (auto [j, i] : Parallel(block_N, block_M)) columns(j, i) = rows(i, j);
      copy(columns, Y(b, bx * block_N, by * block_M));
    }
  });
}

// Elements move unchanged: the bound is 0.
Check check_transpose(const std::vector<NDArray>& arrays, int64_t max_elements) {
  const Elements X(arrays[0]), Y(arrays[1]);
  const int64_t M = arrays[0].shape(1), N = arrays[0].shape(2);
  Check check;
  for (const int64_t at : sample(Y.size(), max_elements)) {
    const int64_t b = at / (M * N), j = at / M % N, i = at % M;
    check.compare(Y[at], X[(b * M + i) * N + j], 0, [&] { return element_name("Y", {arrays[1].shape(0), N, M}, at); });
  }
  return check;
}

// `threads`: of 128 each moves 32 bytes of a tile of e4m3, of 256 it is 16 (540 and 617 us of an H200).
Case transpose_case(int64_t B, int64_t M, int64_t N, int64_t block, DType dtype, bool is_dynamic,
                    int64_t threads = 256) {
  Case c{.shape = std::to_string(B) + "x" + std::to_string(M) + "x" + std::to_string(N) + " " + dtype.name() +
                  (is_dynamic ? " dynamic" : ""),
         .program = is_dynamic
                        ? batched_transpose(dynamic("B"), dynamic("M"), dynamic("N"), block, block, dtype, threads)
                        : batched_transpose(B, M, N, block, block, dtype, threads),
         .arguments = {random_array({B, M, N}, dtype, 1, -100, 100), output_array({B, N, M}, dtype)},
         .check = check_transpose,
         .elementwise = true};
  c.bytes = static_cast<double>(2 * B * M * N) * dtype.storage_bits() / 8;
  c.peer = Peer::copy();
  return c;
}

}  // namespace

std::vector<Case> transpose_cases(Size size) {
  if (size == Size::Gpu) {
    return {transpose_case(64, 4096, 4096, 64, bf16, false), transpose_case(64, 4096, 4096, 64, e4m3, true, 128)};
  }
  if (size == Size::Benchmark) return {transpose_case(8, 2048, 1024, 64, f32, false)};
  std::vector<Case> out;
  for (const DType dtype : {f32, f16, u8, e4m3}) {
    out.push_back(transpose_case(1, 1, 1, 32, dtype, true));
    out.push_back(transpose_case(2, 17, 33, 32, dtype, true));
    out.push_back(transpose_case(3, 127, 65, 32, dtype, true));
  }
  out.push_back(transpose_case(1, 1, 17, 32, f32, false));
  out.push_back(transpose_case(3, 127, 65, 32, f32, false));
  return out;
}

}  // namespace examples
