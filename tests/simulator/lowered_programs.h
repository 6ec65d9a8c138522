// Tile programs that are lowered for Hopper: with TMA, wgmma, roles and rings where their extents fit.
#pragma once
#include <fmt/format.h>

#include <random>
#include <string>

#include "ir/operators.h"
#include "ir/program.h"
#include "tilewright/tensor.h"

namespace tilewright::simulator {

// A product of two matrices of any layout, and what comes behind it.
struct Product {
  int64_t m, n, k, block_m, block_n, block_k, threads, stages;
  bool transpose_a, transpose_b, relu, through_shared;
  const char *type, *result;

  std::string text() const {
    const auto shape = [](bool swap, int64_t i, int64_t j) {
      return swap ? fmt::format("{}, {}", j, i) : fmt::format("{}, {}", i, j);
    };
    const auto box = [](bool swap, const std::string& i, int64_t bi, const std::string& j, int64_t bj) {
      const std::string a = fmt::format("{} * {} : {}", i, bi, bi), b = fmt::format("{} * {} : {}", j, bj, bj);
      return swap ? b + ", " + a : a + ", " + b;
    };
    const bool whole = std::string_view(type) == "int8";
    const char* sum = whole ? "int32" : std::string_view(type) == "float64" ? "float64" : "float32";
    std::string s = fmt::format(
        "program product {{\n  param A: {}[{}]\n  param B: {}[{}]\n  param C: {}[{}, {}]\n"
        "  launch product(bx: {}, by: {}) threads(tx: {}) {{\n    shared As: {}[{}]\n    shared Bs: {}[{}]\n"
        "    fragment acc: {}[{}, {}]\n    fill to=acc value={}\n",
        type, shape(transpose_a, m, k), type, shape(!transpose_b, n, k), result, m, n, (n + block_n - 1) / block_n,
        (m + block_m - 1) / block_m, threads, type, shape(transpose_a, block_m, block_k), type,
        shape(!transpose_b, block_n, block_k), sum, block_m, block_n, whole ? "0" : "0.0");
    s += fmt::format(
        "    for k: int32 in 0..{} pipelined(stages={}) {{\n      copy from=A[{}] to=As\n      copy from=B[{}] to=Bs\n"
        "      gemm a=As b=Bs c=acc{}{}\n    }}\n",
        (k + block_k - 1) / block_k, stages, box(transpose_a, "by", block_m, "k", block_k),
        box(!transpose_b, "bx", block_n, "k", block_k), transpose_a ? " transpose_a=true" : "",
        transpose_b ? " transpose_b=true" : "");
    if (relu)
      s += fmt::format("    map i in {}, j in {} {{\n      acc[i, j] = max(acc[i, j], {})\n    }}\n", block_m, block_n,
                       whole ? "int32(0)" : "0.0");
    const std::string to = fmt::format("C[by * {} : {}, bx * {} : {}]", block_m, block_m, block_n, block_n);
    if (through_shared)
      s += fmt::format("    shared Cs: {}[{}, {}]\n    copy from=acc to=Cs\n    copy from=Cs to={}\n", result, block_m,
                       block_n, to);
    else
      s += fmt::format("    copy from=acc to={}\n", to);
    return s + "  }\n}\n";
  }
};

// A product in five turns, of so many rows and columns: 64 x 64 x 64 tiles of float16 operands.
constexpr Product product_of_five_turns(int64_t m, int64_t n) {
  return {.m = m,
          .n = n,
          .k = 320,
          .block_m = 64,
          .block_n = 64,
          .block_k = 64,
          .threads = 128,
          .stages = 3,
          .transpose_a = false,
          .transpose_b = true,
          .relu = true,
          .through_shared = false,
          .type = "float16",
          .result = "float32"};
}

// The text of a program whose launch begins with shared tiles, with lines of a plan.
inline std::string with_plan(std::string text, const std::string& lines) {
  const std::string before = ") {\n    shared";
  return text.replace(text.find(before), 2, ") plan(" + lines + ") ");
}

// Two gemms in one loop, the second with a fragment from registers.
struct Attention {
  int64_t queries, keys, width, block_m, block_n, threads, stages;

  std::string text() const {
    std::string s = fmt::format(
        "program attention {{\n  param Q: bfloat16[{0}, {2}]\n  param K: bfloat16[{1}, {2}]\n"
        "  param V: bfloat16[{1}, {2}]\n  param O: float32[{0}, {2}]\n  launch attention(bx: {3}) threads(tx: {4}) {{\n"
        "    shared Qs: bfloat16[{5}, {2}]\n    shared Ks: bfloat16[{6}, {2}]\n    shared Vs: bfloat16[{6}, {2}]\n"
        "    fragment S: float32[{5}, {6}]\n    fragment P: bfloat16[{5}, {6}]\n    fragment acc: float32[{5}, {2}]\n",
        queries, keys, width, (queries + block_m - 1) / block_m, threads, block_m, block_n);
    for (const char* row : {"top", "before", "scale", "part", "sum"})
      s += fmt::format("    fragment {}: float32[{}]\n", row, block_m);
    s += fmt::format(
        "    copy from=Q[bx * {0} : {0}, 0 : {2}] to=Qs\n    fill to=acc value=0.0\n    fill to=sum value=0.0\n"
        "    fill to=top value=-inf\n    for k in 0..{3} pipelined(stages={4}) {{\n"
        "      copy from=K[k * {1} : {1}, 0 : {2}] to=Ks\n      map i in {0}, j in {1} {{\n        at: int32 = k * {1} "
        "+ j\n"
        "        S[i, j] = select(at < {5}, 0.0, -inf)\n      }}\n"
        "      gemm a=Qs b=Ks c=S transpose_b=true policy=full_row\n      copy from=V[k * {1} : {1}, 0 : {2}] to=Vs\n"
        "      copy from=top to=before\n      reduce max from=S to=top dim=1 clear=false\n"
        "      map i in {0} {{\n        scale[i] = exp2((before[i] - top[i]) * 0.25)\n      }}\n"
        "      map i in {0}, j in {1} {{\n        S[i, j] = exp2((S[i, j] - top[i]) * 0.25)\n      }}\n"
        "      reduce sum from=S to=part dim=1\n      map i in {0} {{\n        sum[i] = fma(sum[i], scale[i], "
        "part[i])\n"
        "      }}\n      copy from=S to=P\n      map i in {0}, j in {2} {{\n        acc[i, j] = acc[i, j] * scale[i]\n"
        "      }}\n      gemm a=P b=Vs c=acc policy=full_row\n    }}\n"
        "    map i in {0}, j in {2} {{\n      acc[i, j] = acc[i, j] / sum[i]\n    }}\n"
        "    copy from=acc to=O[bx * {0} : {0}, 0 : {2}]\n  }}\n}}\n",
        block_m, block_n, width, (keys + block_n - 1) / block_n, stages, keys);
    return s;
  }
};

// Keys that are the values, and rows for one warpgroup: two teams take its iterations in turn.
inline constexpr const char* kLatentAttention = R"(program latent {
  param Q: bfloat16[70, 64]
  param KV: bfloat16[150, 64]
  param O: float32[70, 64]
  launch latent(bx: 2) threads(tx: 256) {
    shared Qs: bfloat16[64, 64]
    shared KVs: bfloat16[32, 64]
    shared Ps: bfloat16[64, 32]
    fragment S: float32[64, 32]
    fragment acc: float32[64, 64]
    fragment top: float32[64]
    fragment before: float32[64]
    fragment scale: float32[64]
    fragment part: float32[64]
    fragment sum: float32[64]
    copy from=Q[bx * 64 : 64, 0 : 64] to=Qs
    fill to=acc value=0.0
    fill to=sum value=0.0
    fill to=top value=-inf
    for k in 0..5 pipelined(stages=2) {
      copy from=KV[k * 32 : 32, 0 : 64] to=KVs
      gemm a=Qs b=KVs c=S transpose_b=true clear=true
      map i in 64, j in 32 {
        S[i, j] = select(k * 32 + j < 150, S[i, j], -inf)
      }
      copy from=top to=before
      reduce max from=S to=top dim=1 clear=false
      map i in 64 {
        scale[i] = exp2((before[i] - top[i]) * 0.0625)
      }
      map i in 64, j in 32 {
        S[i, j] = exp2((S[i, j] - top[i]) * 0.0625)
      }
      reduce sum from=S to=part dim=1
      copy from=S to=Ps
      map i in 64 {
        sum[i] = fma(sum[i], scale[i], part[i])
      }
      map i in 64, j in 64 {
        acc[i, j] = acc[i, j] * scale[i]
      }
      gemm a=Ps b=KVs c=acc
    }
    map i in 64, j in 64 {
      acc[i, j] = acc[i, j] / sum[i]
    }
    copy from=acc to=O[bx * 64 : 64, 0 : 64]
  }
}
)";

// The roles and the ring that a user writes: one thread loads two slots for a warpgroup that multiplies.
inline constexpr const char* kUserSchedule = R"(program roles {
  param A: float16[120, 264]
  param B: float16[264, 128]
  param C: float16[120, 128]
  launch roles(bx: 2, by: 2) threads(tx: 256) {
    shared As: float16[2, 64, 64]
    shared Bs: float16[2, 64, 64]
    fragment acc: float32[64, 64]
    barrier full: uint64[2] arrive=[1, 1]
    barrier empty: uint64[2] arrive=[128, 128]
    role 128..256 {
      for k in 0..5 {
        slot: int32 = k % 2
        wait barrier=empty[slot] parity=k // 2 % 2 ^ 1
        expect barrier=full[slot] bytes=16384 arrive=true
        copy from=A[by * 64 : 64, k * 64 : 64] to=As[slot, 0 : 64, 0 : 64] completion=(barrier=full[slot])
        copy from=B[k * 64 : 64, bx * 64 : 64] to=Bs[slot, 0 : 64, 0 : 64] completion=(barrier=full[slot])
      }
    }
    role 0..128 {
      fill to=acc value=0.0
      for k in 0..5 {
        slot: int32 = k % 2
        wait barrier=full[slot] parity=k // 2 % 2
        gemm a=As[slot, 0 : 64, 0 : 64] b=Bs[slot, 0 : 64, 0 : 64] c=acc
        arrive barrier=empty[slot]
      }
      copy from=acc to=C[by * 64 : 64, bx * 64 : 64]
    }
  }
}
)";

// Small integers for every parameter.
inline std::vector<NDArray> arrays_of(const ir::TileProgram& program, std::mt19937& random) {
  std::vector<NDArray> list;
  for (const ir::Param& param : program.params) {
    const ir::Buffer& b = program.buffer(param.buffer);
    std::vector<int64_t> shape;
    for (const ir::Expr& e : b.shape) shape.push_back(*ir::constant_int(e));
    NDArray x = NDArray::zeros(shape, b.type);
    std::vector<int64_t> whole;
    std::vector<double> values;
    for (int64_t i = 0; i < x.size(); ++i) {
      whole.push_back(static_cast<int64_t>(random() % 7) - 3);
      values.push_back(static_cast<double>(whole.back()));
    }
    if (b.type.is_int())
      x.assign_ints(whole);
    else
      x.assign_floats(values);
    list.push_back(std::move(x));
  }
  return list;
}

inline std::vector<NDArray> clones(const std::vector<NDArray>& arrays) {
  std::vector<NDArray> list;
  for (const NDArray& x : arrays) list.push_back(x.clone());
  return list;
}

}  // namespace tilewright::simulator
