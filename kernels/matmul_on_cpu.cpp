#include "matmul_on_cpu.h"

#include <algorithm>
#include <set>

namespace tilewright::kernels {
namespace {

// Measured on two cores of a Sapphire Rapids (48 KB of first-level cache, 2 MB of second, AMX), 28 tiles at each of 21
// shapes in float32: the choice by these numbers loses 3.5% to the best measured tile on average, at worst 18%.
constexpr double kCopied = 0.15, kRun = 30;  // of a byte brought to its tile, and of each run of neighbours
constexpr double kTransposed = 0.3;          // of a byte, where the product reads along the other dimension
constexpr double kOnce = 0.25,
                 kAgain = 0.06;       // of a byte laid out for all blocks, and of each that a block reads of it
constexpr double kBeyondNear = 0.05;  // of a byte of a step's tiles beyond those that stay near
constexpr double kOut = 0.3;          // of a byte of the result
constexpr double kReloaded = 0.1;     // of a byte of sums that a step finds outside of the second-level cache
constexpr double kUneven = 0.1;       // of a block: cores do not begin at the same time
constexpr double kStart = 8000;       // of a launch
constexpr int64_t kNear = 256 * 1024, kSecondLevel = 1000 * 1024;
constexpr int64_t kShared = 4;  // blocks that share a tile, for which the compiler lays it out once

int64_t ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t bytes_of(const MatmulOptions& o) { return std::max<int64_t>(1, o.a.storage_bits() / 8); }
// bfloat16 and int8 have a matrix unit; the products of all other types are those of float32.
bool has_unit(const MatmulOptions& o) { return o.a == o.b && (o.a == bf16 || o.a == i8); }
int64_t bytes_on_chip(const MatmulOptions& o) { return has_unit(o) ? bytes_of(o) : 4; }

// The instructions of a product of tiles.
double product_cycles(const MatmulOptions& o, const MatmulTile& t) {
  if (has_unit(o)) {
    // 32 x 32 sums, of which 64 bytes along K take four instructions of 16 cycles; they are loaded and stored.
    const double steps = static_cast<double>(ceil(t.k * bytes_of(o), 64));
    return static_cast<double>(ceil(t.m, 32) * ceil(t.n, 32)) * (steps * 70 + 300);
  }
  // Up to 14 rows of 32 columns: two vectors a row and a cycle, each of which takes four.
  const int64_t groups = ceil(t.m, 14), rows = ceil(t.m, groups);
  const int64_t block = t.k * std::max<int64_t>(rows, 4) + 10 * rows + 30;
  return static_cast<double>(groups * ceil(t.n, 32) * block);
}

}  // namespace

std::vector<MatmulTile> matmul_tiles_on_cpu(const MatmulOptions& o, const MatmulShape& shape) {
  const int64_t size = bytes_on_chip(o);
  std::set<int64_t> rows, columns, steps;
  for (const int64_t m : {1, 4, 16, 32, 64, 128, 256})
    if (m < 4 * shape.M) rows.insert(m);
  for (int64_t n = 32; n <= 512; n *= 2)
    if (n == 32 || n < 2 * shape.N) columns.insert(n);
  for (int64_t parts = 1; parts <= 4; ++parts)  // equal ones, where powers of two leave much of the last
    if (const int64_t n = ceil(ceil(shape.N, parts), 32) * 32; n <= 512) columns.insert(n);
  for (int64_t bytes = 128; bytes <= (has_unit(o) ? 512 : 1024); bytes *= 2)
    if (bytes == 128 || bytes < 2 * shape.K * size) steps.insert(bytes / size);
  std::vector<MatmulTile> out;
  for (const int64_t m : rows)
    for (const int64_t n : columns)
      for (const int64_t k : steps) out.push_back({m, n, k, 1, 128});
  return out;
}

double matmul_cycles_on_cpu(const MatmulOptions& o, const MatmulTile& t, const MatmulShape& shape, int64_t cores) {
  const int64_t down = ceil(shape.M, t.m), across = ceil(shape.N, t.n), turns = ceil(shape.K, t.k);
  const double size = static_cast<double>(bytes_on_chip(o)), all = static_cast<double>(cores);
  const double of_a = static_cast<double>(t.m * t.k) * size, of_b = static_cast<double>(t.n * t.k) * size;
  const double of_c = static_cast<double>(t.m * t.n) * 4;
  const auto brought = [&](double bytes, int64_t run, bool transposed) {
    return bytes * (kCopied + (transposed ? kTransposed : 0)) + bytes / (static_cast<double>(run) * size) * kRun;
  };
  // Tiles of the matrix unit are read along K in groups, which columns of B are not.
  const double a = brought(of_a, o.transpose_a ? t.m : t.k, has_unit(o) && o.transpose_a);
  const double b = brought(of_b, o.transpose_b ? t.k : t.n, has_unit(o) || o.transpose_b);
  const bool once = across >= kShared && down >= kShared;
  double turn = product_cycles(o, t), cycles = kStart;
  if (once) {
    const double tiles = static_cast<double>(turns * shape.batch);
    cycles += 2 * kStart +
              tiles *
                  (static_cast<double>(down) * (a + of_a * kOnce) + static_cast<double>(across) * (b + of_b * kOnce)) /
                  all;
    turn += (of_a + of_b) * kAgain;
  } else {
    turn += a + b;
  }
  turn += std::max(0.0, of_a + of_b - kNear) * kBeyondNear;
  if (of_a + of_b + of_c > kSecondLevel) turn += of_c * kReloaded;
  const double block = static_cast<double>(turns) * turn + of_c * (kCopied + kOut) + static_cast<double>(t.m) * kRun;
  return cycles + (static_cast<double>(ceil(down * across * shape.batch, cores)) + kUneven) * block;
}

}  // namespace tilewright::kernels
