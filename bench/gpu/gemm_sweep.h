// Matrix products by tile sizes given on the command line, beside cuBLAS and checked against it.
#pragma once
#include <nlohmann/json.hpp>

#include "blas.h"

namespace bench::gpu {

// "128x256x64:3:256": tiles, stages (3), threads (128).
struct GemmTiles {
  int64_t m = 0, n = 0, k = 0, stages = 3, threads = 128;
  static GemmTiles parse(const std::string& text);  // std::invalid_argument for what is none
  std::string text() const;
};

struct GemmSweep {
  std::vector<std::string> forms = {"bf16:nn", "bf16:nt"};  // input's type, its order in memory (n, t of A and B)
  std::vector<std::string> shapes = {"4096x4096x4096", "8192x8192x8192", "2048x2048x2048", "4096x7168x16384",
                                     "4096x24576x1536"};
  std::vector<std::string> tiles = {"128x256x64:3:256", "256x128x64:3:256", "128x128x64:4:256"};
};

// "bf16:nt" and "4096x7168x16384", m x n x k. 8-bit floats give bf16, int8 gives int32, others themselves.
// std::invalid_argument for what is none.
Product product_of(const std::string& form, const std::string& shape);

// What two right results may differ by, element by element: a rounding of each to the output's type, and the rounding
// of the sums. Those are K / depth steps, each of at most u of a running sum that stays within a few |a| |b| / sqrt(K),
// the norms those of A's row and B's column: 8 K / depth u |a| |b| / sqrt(K). u is 2^-23 (matrix units cut off), for
// 8-bit floats 2^-13; tf32 operands are cut to 10 bits of mantissa besides. Integers agree exactly.
class GemmBound {
 public:
  GemmBound(const Product& p, const tilewright::NDArray& a, const tilewright::NDArray& b);  // of the processor
  double operator()(int64_t i, double want) const;

 private:
  Product product_;
  std::vector<double> rows_, columns_;  // norms
  double sums_ = 0;                     // times both norms
};

// Prints rows and gives them; `failures` counts results that were wrong and programs that failed. `blas` may be null:
// then nothing is checked but what plain loops find in a sample.
nlohmann::ordered_json sweep(const GemmSweep& what, const Blas* blas, int turns, int& failures);

}  // namespace bench::gpu
