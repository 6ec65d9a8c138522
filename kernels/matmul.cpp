// Matrix products of any shape, with what comes behind them.
#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "program_of.h"
#include "tilewright/kernels.h"
#include "tilewright/language.h"

namespace tilewright::kernels {
namespace {

constexpr int64_t kScaled = 128;  // elements along K that have a scale of their own
constexpr int64_t kPanel = 8;     // rows of tiles that are taken together, so that their operands stay in the L2 cache
constexpr int64_t kWantedSlots = 4, kRoom = 224 * 1024;  // of rings; bytes of a block
constexpr double kLog2E = 1.4426950408889634;  // GPUs have an instruction for powers of two, not for those of e

// Whether the sum of each step is scaled before it is added.
bool adds_in_steps(const MatmulOptions& o) { return o.scales != Scales::None && !o.fast_sum; }

// x, or what an activation makes of it.
Value activated(const Value& x, Activation f) {
  switch (f) {
    case Activation::None: return x;
    case Activation::Relu: return max(x, 0);
    case Activation::Gelu: return 0.5 * x * (1 + erf(x * 0.7071067811865476));
    case Activation::GeluTanh: return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    case Activation::Silu: return x / (1 + exp2(x * -kLog2E));
  }
  return x;
}

// A matrix, or one of a batch, by the numbers of its first two dimensions from the last.
Tensor matrix(const char* name, bool batched, const Value& batch, const Value& rows, const Value& columns, DType type) {
  return batched ? Tensor(name, {batch, rows, columns}, type) : Tensor(name, {rows, columns}, type);
}

}  // namespace

Program matmul(const MatmulOptions& o) {
  const MatmulTile t = o.tile;
  const Value M = dynamic("M"), N = dynamic("N"), K = dynamic("K"), batch = dynamic("batch");
  const Tensor A = o.transpose_a ? matrix("A", o.batched, batch, K, M, o.a) : matrix("A", o.batched, batch, M, K, o.a);
  const Tensor B = o.transpose_b ? matrix("B", o.batched, batch, N, K, o.b) : matrix("B", o.batched, batch, K, N, o.b);
  const Tensor C = matrix("C", o.batched, batch, M, N, o.result);
  const Tensor residual = matrix("residual", o.batched, batch, M, N, o.result);
  const Tensor bias("bias", {N}, o.result);
  const DType sum = o.a.is_int() ? i32 : f32;
  const bool one = o.scales == Scales::One, in_steps = adds_in_steps(o);
  const Value steps = ceildiv(K, kScaled);
  const Tensor scale_a = one                   ? Tensor("scale_a", {1, 1})
                         : o.transpose_scale_a ? Tensor("scale_a", {steps, M})
                                               : Tensor("scale_a", {M, steps});
  const Tensor scale_b = one                        ? Tensor("scale_b", {1, 1})
                         : o.scales == Scales::Rows ? Tensor("scale_b", {steps, N})
                                                    : Tensor("scale_b", {ceildiv(N, kScaled), steps});

  // The statements of a block, of the matrix `bz` of a batch.
  const auto block = [&](const Value& bx, const Value& by, const Value& bz) {
    use_swizzle(kPanel);
    // A whole result beside the rings would cost them their fourth slot (4096 x 7168 x 16384 with scales of blocks on
    // an H200: 762 us, and 694).
    if (in_steps && kWantedSlots * (t.m + t.n) * t.k + t.m * t.n * o.result.storage_bits() / 8 > kRoom)
      annotate_plan("epilogue chunks");
    if (t.split > 1) annotate_plan("work split k=" + std::to_string(t.split));
    if (t.pairs == 1) annotate_plan("work persistent pairs=A_shared");
    if (t.pairs == 2) annotate_plan("work persistent pairs=B_shared");
    auto A_shared =
        o.transpose_a ? alloc_shared({t.k, t.m}, o.a, "A_shared") : alloc_shared({t.m, t.k}, o.a, "A_shared");
    auto B_shared =
        o.transpose_b ? alloc_shared({t.n, t.k}, o.b, "B_shared") : alloc_shared({t.k, t.n}, o.b, "B_shared");
    auto C_local = alloc_fragment({t.m, t.n}, sum);
    const auto load = [&](const Tensor& from, const Value& row, const Value& column, const Buffer& to) {
      o.batched ? copy(from(bz, row, column), to) : copy(from(row, column), to);
    };
    clear(C_local);
    const Value row = by * t.m, column = bx * t.n;
    for (auto step : Pipelined(ceildiv(K, t.k), {.num_stages = t.stages})) {
      const Value k = step * t.k;
      o.transpose_a ? load(A, k, row, A_shared) : load(A, row, k, A_shared);
      o.transpose_b ? load(B, column, k, B_shared) : load(B, k, column, B_shared);
      if (!in_steps) {
        gemm(A_shared, B_shared, C_local, {.transpose_A = o.transpose_a, .transpose_B = o.transpose_b});
        continue;
      }
      auto part = alloc_fragment({t.m, t.n}, sum, "part");
      std::optional<Buffer> of_rows;
      if (!one && o.transpose_scale_a) {
        of_rows = alloc_shared({1, t.m}, f32, "of_rows");
        copy(scale_a(step, row), *of_rows);
      }
      gemm(A_shared, B_shared, part, {.transpose_A = o.transpose_a, .transpose_B = o.transpose_b, .clear_accum = true});
      for (auto [i, j] : Parallel(t.m, t.n)) {
        const Value of_a = one ? scale_a(0, 0) : of_rows ? Value((*of_rows)(0, i)) : scale_a(row + i, step);
        const Value of_b = one                        ? scale_b(0, 0)
                           : o.scales == Scales::Rows ? scale_b(step, column + j)
                                                      : scale_b(floordiv(column + j, kScaled), step);
        C_local(i, j) += part(i, j) * (of_a * of_b);
      }
    }
    if (o.fast_sum || o.bias || o.residual || o.activation != Activation::None)
      for (auto [i, j] : Parallel(t.m, t.n)) {
        Value x = C_local(i, j);
        if (o.fast_sum) x = x * (scale_a(0, 0) * scale_b(0, 0));
        if (o.bias) x = x + cast(bias(column + j), sum);
        x = activated(x, o.activation);
        if (o.residual && o.batched) x = x + cast(residual(bz, row + i, column + j), sum);
        if (o.residual && !o.batched) x = x + cast(residual(row + i, column + j), sum);
        C_local(i, j) = x;
      }
    o.batched ? copy(C_local, C(bz, row, column)) : copy(C_local, C(row, column));
  };
  const auto body = [&] {
    set_tf32(o.tf32);
    if (o.batched)
      for (auto [bx, by, bz] : Kernel({ceildiv(N, t.n), ceildiv(M, t.m), batch}, {.threads = t.threads}))
        block(bx, by, bz);
    else
      for (auto [bx, by] : Kernel({ceildiv(N, t.n), ceildiv(M, t.m)}, {.threads = t.threads})) block(bx, by, 0);
  };
  std::vector<Parameter> all{A, B};
  if (o.scales != Scales::None) all.insert(all.end(), {scale_a, scale_b});
  if (o.bias) all.push_back(bias);
  if (o.residual) all.push_back(residual);
  all.push_back(C);
  return program_of("matmul", all, body);
}

namespace {

constexpr int64_t kMultiprocessors = 132;  // of an H200

// Columns of tiles whose rows of tiles are `rows`: all multiples of 32, and those by which N takes whole waves of
// blocks, where columns of a tile are rows of B, of which it may have any that an instruction has.
std::set<int64_t> widths(const MatmulOptions& o, int64_t rows, int64_t N) {
  constexpr int64_t kFewest = 16, kMost = 256, kWaves = 3;
  const int64_t each = o.transpose_b ? (std::max(o.a.storage_bits(), o.b.storage_bits()) == 8 ? 16 : 8) : 32;
  std::set<int64_t> out;
  for (int64_t n = 32; n <= kMost; n += 32) out.insert(n);
  for (int64_t waves = 1; waves <= kWaves; ++waves) {
    const int64_t columns = waves * kMultiprocessors / rows;  // of tiles
    if (columns == 0) continue;
    const int64_t n = ceildiv(ceildiv(N, columns), each) * each;
    if (n >= kFewest && n <= kMost) out.insert(n);
  }
  return out;
}

}  // namespace

std::vector<MatmulTile> matmul_tiles(const MatmulOptions& o, int64_t M, int64_t N, int64_t batch) {
  constexpr int64_t kSharedBytes = 200 * 1024, kSums = 160;  // sums: registers of a thread
  const int64_t bits = std::max(o.a.storage_bits(), o.b.storage_bits());
  constexpr int64_t kLine = 128;
  const int64_t line = kLine * 8 / bits;
  const bool in_steps = adds_in_steps(o);
  std::vector<MatmulTile> out;
  for (const auto& [m, threads] : {std::pair<int64_t, int64_t>{64, 128}, {128, 256}, {256, 256}, {192, 384}})
    for (const int64_t n : widths(o, std::max<int64_t>(1, ceildiv(M, m) * batch), N)) {
      // Steps of two lines where three of them fit (measured on an H100 at 64 and 128 rows: up to 9% faster).
      const int64_t k = in_steps ? kScaled : (m + n) * 2 * kLine * 3 <= kSharedBytes ? 2 * line : line;
      // A tile's columns share scales, and its sums of a step have registers beside the sums of all.
      if (in_steps &&
          (m * n > threads * kScaled || (o.scales == Scales::Blocks && kScaled % n != 0 && n % kScaled != 0)))
        continue;
      // Instructions of three warpgroups, and of one that loads, have 128 registers.
      if (threads > 256 && m * n > threads * 80) continue;
      // Tiles of more rows than there are, and thin ones of many rows, are never the best.
      if ((m > 64 && m / 2 >= M) || m > 4 * n || m * n > threads * kSums) continue;
      if (n > 64 && n / 2 >= N) continue;
      const int64_t step = (m + n) * k * bits / 8;
      const MatmulTile tile{m, n, k, std::min<int64_t>(in_steps ? 8 : 4, kSharedBytes / step), threads};
      out.push_back(tile);
      const int64_t tiles = ceildiv(M, m) * ceildiv(N, n) * batch;
      for (int64_t split : {2, 3, 4, 8}) {
        // The first block has room for the sums of the others, beside two steps of its own.
        if (o.batched || tiles * split > kMultiprocessors || (split - 1) * m * n * 4 + 2 * step > kSharedBytes) break;
        out.push_back(tile);
        out.back().split = split;
      }
    }
  return out;
}

}  // namespace tilewright::kernels
