// Kernels for Hopper as one would write them by hand: roles, a ring of TMA loads, wgmma, an epilogue by TMA stores.
#pragma once
#include <fmt/format.h>

#include <string>
#include <vector>

#include "layout/memory.h"
#include "tilewright/tensor.h"

namespace tilewright::simulator {

// C = A * B^T in bfloat16: one warpgroup loads `stages` slots, two multiply. These share a tile of 128 x n, or, in
// ping-pong, have every other tile of 64 x n for themselves and take turns. A block goes over `tiles` tiles along m.
// The extents need not divide.
struct HopperGemm {
  int64_t m = 250, n = 64, k = 200, stages = 3, tiles = 2;
  bool ping_pong = false;

  int64_t steps() const { return (k + 63) / 64; }
  int64_t tile_rows() const { return ping_pong ? 64 : 128; }
  std::string text() const;
  struct Arrays {
    NDArray a, b, c;
    std::vector<NDArray> list() const { return {a, b, c}; }
  };
  Arrays arrays() const;
  // The largest error of the result, relative to the largest element.
  double error(const Arrays& arrays) const;
};

inline std::string HopperGemm::text() const {
  const auto tile = [](const char* name, std::vector<int64_t> shape, int64_t place) {
    return fmt::format("    shared {}: bfloat16[{}] place={} memory=\"{}\"\n", name, fmt::join(shape, ", "), place,
                       MemoryLayout::panels(shape, 16, 128).text());
  };
  const auto list = [&](int64_t count) { return fmt::format("{}", fmt::join(std::vector(stages, count), ", ")); };
  const int64_t rows = tile_rows(), a_bytes = rows * 128, b_bytes = n * 128;
  std::string s = fmt::format(
      "thread program gemm {{\n  param A: bfloat16[{}, {}] alignment=16\n  param B: bfloat16[{}, {}] alignment=16\n"
      "  param C: bfloat16[{}, {}] alignment=16\n  launch gemm(bx: 1) threads(tx: 384) {{\n",
      m, k, n, k, m, n);
  s += fmt::format("    barrier full: uint64[{}] arrive=[{}]\n    barrier empty: uint64[{}] arrive=[{}]\n", stages,
                   list(1), stages, list(ping_pong ? 1 : 2));
  s += tile("As", {stages, rows, 64}, 0) + tile("Bs", {stages, n, 64}, stages * a_bytes) +
       tile("Cs", {2, 64, 64}, stages * (a_bytes + b_bytes));
  s += fmt::format("    local acc: float32[{}]\n", n / 2);
  s += "    if tx == 0 {\n      init_barriers barriers=full\n      init_barriers barriers=empty\n    }\n    sync "
       "block\n";
  // The loader: one thread.
  s += fmt::format(
      "    role 0..128 {{\n      set_registers count=40\n      role 0..32 {{\n        elect {{\n"
      "          for t in 0..{} {{\n            for k in 0..{} {{\n              i: int32 = t * {} + k\n"
      "              wait barrier=empty[i % {}] parity=(i // {} + 1) % 2\n"
      "              expect barrier=full[i % {}] bytes={} arrive=true\n"
      "              copy from=A[t * {} : {}, k * 64 : 64] to=As[i % {} : 1, 0 : {}, 0 : 64] "
      "completion=(barrier=full[i % {}])\n"
      "              copy from=B[0 : {}, k * 64 : 64] to=Bs[i % {} : 1, 0 : {}, 0 : 64] "
      "completion=(barrier=full[i % {}])\n            }}\n          }}\n        }}\n      }}\n    }}\n",
      tiles, steps(), steps(), stages, stages, stages, a_bytes + b_bytes, rows, rows, stages, rows, stages, n, stages,
      n, stages);
  // The warpgroups that multiply, 64 rows each. In ping-pong barrier 3 + w says that it is w's turn.
  const std::string registers = fmt::format("registers=[acc[0 : {}]]", n / 2);
  const std::string row0 = ping_pong ? "0" : "w * 64";
  s += fmt::format(
      "    role 128..384 {{\n      set_registers count=232\n      w: int32 = tx // 128 - 1\n{}"
      "      for v in 0..{} {{\n        u: int32 = {}\n{}",
      ping_pong ? "      if w == 1 {\n        sync named barrier=3 count=256 arrive_only=true\n      }\n" : "",
      ping_pong ? tiles / 2 : tiles, ping_pong ? "v * 2 + w" : "v",
      ping_pong ? "        sync named barrier=3 + w count=256\n" : "");
  s += fmt::format(
      "        for l in 0..{} {{\n          j: int32 = u * {} + l\n"
      "          wait barrier=full[j % {}] parity=j // {} % 2\n          fence wgmma {}\n",
      steps(), steps(), stages, stages, registers);
  for (int64_t kk = 0; kk < 64; kk += 16)
    s += fmt::format(
        "          wgmma instruction=\"m64n{}k16.f32.bf16.bf16\" a=As[j % {} : 1, {} : 64, {} : 16] "
        "b=Bs[j % {} : 1, 0 : {}, {} : 16] c=acc[0 : {}] {}\n",
        n, stages, row0, kk, stages, n, kk, n / 2, kk == 0 ? "clear=l == 0" : "");
  s += fmt::format(
      "          commit wgmma\n          drain wgmma pending=1 {}\n          if tx % 128 == 0 and 0 < l {{\n"
      "            arrive barrier=empty[(j - 1) % {}]\n          }}\n        }}\n{}        drain wgmma {}\n"
      "        if tx % 128 == 0 {{\n          arrive barrier=empty[(u * {} + {}) % {}]\n        }}\n",
      registers, stages, ping_pong ? "        sync named barrier=4 - w count=256 arrive_only=true\n" : "", registers,
      steps(), steps() - 1, stages);
  // The epilogue, 64 columns at a time through one buffer a warpgroup.
  s += fmt::format(
      "        for c in 0..{} {{\n          if tx % 128 == 0 {{\n            drain bulk_store\n          }}\n"
      "          sync named barrier=tx // 128 count=128\n          for e in 0..32 {{\n"
      "            Cs[tx // 128 - 1, tx % 128 // 32 * 16 + tx % 32 // 4 + e // 2 % 2 * 8, "
      "e // 4 * 8 + tx % 4 * 2 + e % 2] = bfloat16(acc[c * 32 + e])\n          }}\n"
      "          fence async\n          sync named barrier=tx // 128 count=128\n          if tx % 128 == 0 {{\n"
      "            copy from=Cs[tx // 128 - 1 : 1, 0 : 64, 0 : 64] "
      "to=C[u * {} + {} : 64, c * 64 : 64] completion=(queue=bulk_store)\n"
      "            commit bulk_store\n          }}\n        }}\n      }}\n      if tx % 128 == 0 {{\n"
      "        drain bulk_store\n      }}\n    }}\n  }}\n}}\n",
      (n + 63) / 64, rows, row0);
  return s;
}

inline HopperGemm::Arrays HopperGemm::arrays() const {
  Arrays x{NDArray::zeros({m, k}, bf16), NDArray::zeros({n, k}, bf16), NDArray::zeros({m, n}, bf16)};
  for (int64_t l = 0; l < k; ++l) {
    for (int64_t i = 0; i < m; ++i) x.a.set_float({i, l}, static_cast<double>((i * 7 + l * 3) % 11 - 5));
    for (int64_t j = 0; j < n; ++j) x.b.set_float({j, l}, static_cast<double>((j * 5 + l) % 9 - 4));
  }
  return x;
}

inline double HopperGemm::error(const Arrays& x) const {
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += ((i * 7 + l * 3) % 11 - 5.0) * ((j * 5 + l) % 9 - 4.0);
      worst = std::max(worst, std::abs(sum - x.c.get_float({i, j}))), largest = std::max(largest, std::abs(sum));
    }
  return worst / largest;
}

}  // namespace tilewright::simulator
