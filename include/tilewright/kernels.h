// The kernel library: programs for shapes that are known only at the call, and the tiles that suit a shape.
// Each takes tensors that are row-major and compact. Sums are made in float32, of integers in int32.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tilewright/dtype.h"
#include "tilewright/program.h"

namespace tilewright::kernels {

enum class Activation : uint8_t { None, Relu, Gelu, GeluTanh, Silu };  // Gelu by erf, GeluTanh by its approximation

// Of a product: a block of `threads` has `m` x `n` elements of the result and takes `k` of the sum in a step, with
// `stages` steps under way. With `split` that many blocks of a cluster share the sum. `pairs`: neighbouring blocks
// bring half of a tile each, for both, of A (1) or of B (2).
struct MatmulTile {
  int64_t m = 128, n = 128, k = 64, stages = 3, threads = 128, split = 1, pairs = 0;
  bool operator==(const MatmulTile&) const = default;
};

// C = activation(A B + bias) + residual. A: [M, K], or [K, M] if transpose_a; B: [K, N] or [N, K]; C, residual: [M, N];
// bias: [N]. With `batched`, A, B, C and residual have one more dimension in front. C has `result`'s dtype, rounded
// once; bias and residual have it too. Integers: int8, summed in int32, without activation.
// Numbers that operands are multiplied with: one of each, or, of each 128 elements along K, one of each row of A and,
// of B, of each column or of each 128.
enum class Scales : uint8_t { None, One, Rows, Blocks };

struct MatmulOptions {
  DType a = bf16, b = bf16, result = bf16;
  bool transpose_a = false, transpose_b = false, batched = false;
  bool bias = false, residual = false;
  bool tf32 = false;  // float32 by the tensor cores' 10 bits of mantissa
  Activation activation = Activation::None;
  Scales scales = Scales::None;  // of no batches; a sum of 128 products is scaled and added in float32 ...
  bool fast_sum = false;         // ..., of one scale each the sum of all: its bits are those that the matrix unit keeps
  bool transpose_scale_a = false;  // of rows and blocks: neighbouring rows' lie side by side, which TMA brings in steps
  MatmulTile tile = {};            // with scales in steps of 128, but of fast sums
};
// Parameters A, B, scale_a and scale_b in float32 ([1, 1] both; else [M, K / 128], or transposed, and, of rows,
// [K / 128, N], of blocks [N / 128, K / 128], rounded up), bias, residual (as far as there are), C; symbols M, N, K and
// batch.
Program matmul(const MatmulOptions& options);
// Tiles that may suit a call of M x N x `batch` results on a GPU; `tile` of the options counts for nothing.
std::vector<MatmulTile> matmul_tiles(const MatmulOptions& options, int64_t M, int64_t N, int64_t batch = 1);

enum class RowFunction : uint8_t { Softmax, LogSoftmax, RmsNorm, LayerNorm, SoftmaxBackward };

// Y[i, :] of X[i, :], computed in float32. RmsNorm: X / sqrt(mean(X^2) + epsilon) * W; LayerNorm: (X - mean) /
// sqrt(variance + epsilon) * W + B; SoftmaxBackward: X is dY, Z is the forward's Y, the result Z (X - sum(X Z)).
struct RowOptions {
  RowFunction function = RowFunction::Softmax;
  DType x = f32, result = f32;
  bool weight = false, bias = false;  // of the norms: W [N], B [N]
  int64_t columns = 0;  // N, where a row is on chip whole; 0: of any length, in two passes over tiles of it
  int64_t parts = 1;    // blocks of a cluster that share rows of `columns`
  int64_t rows = 4;     // of a block
  int64_t tile = 1024;  // columns of a tile, where the row is not on chip whole
  int64_t threads = 128;
};
// Parameters X, Z (SoftmaxBackward), W, B (as far as there are), Y, epsilon (of the norms); symbols M and N.
Program rows(const RowOptions& options);

enum class Reduction : uint8_t {
  Sum,
  Mean,
  Max,
  Min,
  Prod,
  L1Norm,
  L2Norm,
  InfNorm,  // of magnitudes
  Any,
  All,
  CountNonzero,  // of whether elements are not 0
  Variance,
  Deviation,  // of differences from C, the mean; divided by `count`
  LogSumExp,  // of differences from C, the largest
};

// Y[i, j] of X[i, :, j], along the middle of three dimensions, or of rows. Sums in float32, of int32 in int32; Max, Min
// and InfNorm are NaN where an element is. Mean, Variance and Deviation divide by `count`.
struct ReduceOptions {
  Reduction reduction = Reduction::Sum;
  DType x = f32, result = f32;
  bool last = false;    // X has two dimensions, and rows are reduced
  bool split = false;   // P blocks share what one result is made of, and each writes its own: Y has P in front
  bool mapped = false;  // X has what such blocks wrote: sums are only combined, and finished
  int64_t rows = 4, tile = 1024, columns = 64, threads = 128;  // last: rows x tile; else tile x columns
};
// Parameters X [M, R, N] or, with `last`, [M, R]; C as Y without P in float32 (of the last three); Y [M, N] or [M];
// count; symbols M, R, N, P.
Program reduce(const ReduceOptions& options);

// Y[b, j, i] = X[b, i, j], for elements of 8, 16, 32 or 64 bits. whole: for rows of X and Y that are whole pieces of 16
// bytes; any are right.
struct TransposeOptions {
  DType x = f32;
  int64_t tile = 64, threads = 256;
  bool whole = true;
};
Program transpose(const TransposeOptions& options);

// Y[i, j] = X[i, j], or 0 where X has no such element; Y may be smaller too. Elements of 8, 16, 32 or 64 bits.
struct PadOptions {
  DType x = f32;
  int64_t rows = 16, tile = 256, threads = 256;
};
// Parameters X [M, N], Y [rows, columns]; symbols of these names.
Program pad(const PadOptions& options);

// Y = f(A, B, C, D), element by element, in float32, in float64 of float64, or in the integers' type. `operands` has a
// word for each operand, with a 1 for each dimension of Y that it has: it is repeated along the others; "-" is a
// number. Functions: the rows of kernels/element_functions.cpp. `cast` saturates; comparisons give bools.
struct ElementwiseOptions {
  std::string function = "relu", operands = "1";
  DType x = f32, result = f32;
  bool gated = false;     // X [M, 2, N]: Y[m, n] = f(X[m, 0, n]) X[m, 1, n]; operands are "11"
  bool backward = false;  // the gradient of A, where the others are numbers, by G of Y's shape; gated: of X
  int64_t rows = 1, columns = 1024, threads = 128;  // of a block, in the last two dimensions
};
// Parameters: the tensors among A, B, C, D in order, G (backward), Y, the numbers; gated: X, G, Y. Symbols D0 and on,
// or M and N.
Program elementwise(const ElementwiseOptions& options);

// Of attention: a block has `m` queries and takes `n` keys in a step; backward it has `n` keys and takes `m` queries.
struct AttentionTile {
  int64_t m = 128, n = 128, stages = 2, threads = 256;
  bool operator==(const AttentionTile&) const = default;
};

// O = softmax(scale Q K^T) V for each head of queries; `group` of them beside each other share a head of keys and
// values. Queries and keys end together: with `causal` the last query sees all keys, the one before it one less. A
// query that sees no key gets zeros. Weights are rounded to `dtype` before they meet the values; all sums are float32.
struct AttentionOptions {
  DType dtype = bf16;
  int64_t dim = 128, value_dim = 128, group = 1;
  bool heads_first = false;  // (batch, head, position, dim); else (batch, position, head, dim)
  bool packed = false;       // (position, head, dim): sequence b has the positions starts[b] up to starts[b + 1]
  bool causal = false;
  bool left = false, right = false;  // a query sees so many keys before, and behind, the one that it stands at
  bool sink = false;                 // one more key for each head of queries: a score, as it is, and zeros for a value
  bool dlse = false;                 // backward: the logarithms have a gradient too
  AttentionTile tile = {};
};
// Parameters Q, K, V, sink, O, LSE, scale, left, right; with `packed` query_starts and key_starts behind sink, and
// longest_query behind LSE. LSE [batch, head, position], or [head, position]: log(sum(exp(scores))), -inf of no keys.
// scale > 0. Parameters that the options leave out are null, or any number.
Program attention(const AttentionOptions& options);
// Parameters Q, K, V, O, LSE, dO, dLSE, dQ, dK, dV, scale, left, right; with `packed` the starts behind dLSE,
// longest_query and longest_key behind dV. A sink's gradient is made of LSE and the rows of O dO.
Program attention_backward(const AttentionOptions& options);
// Tiles that may suit a call on a GPU.
std::vector<AttentionTile> attention_tiles(const AttentionOptions& options);
std::vector<AttentionTile> attention_backward_tiles(const AttentionOptions& options);

// Attention of one query a sequence, by P blocks for each head of keys: a block has `tile.m` query heads at most, and
// takes `tile.n` keys in a step. K and V lie as [batch, keys, kv_heads, dim], or with `page` > 0 in pages of so many
// keys, [pages, page, kv_heads, dim]: key k of sequence b is number k % page of page table[b, k / page]. tile.n divides
// page.
struct DecodeOptions {
  DType dtype = bf16, result = bf16;
  int64_t dim = 128, value_dim = 128, group = 1, page = 0;
  bool lengths = false;  // sequence b has lengths[b] keys; else all that there is room for
  bool left = false;     // the last left + 1 of them
  bool sink = false;
  AttentionTile tile = {64, 64, 2, 128};
};
// Parameters Q [batch, kv_heads, group, dim], K, V, sink [kv_heads, group], table (with `page`), lengths,
// O [P, batch, kv_heads, group, value_dim], LSE [P, batch, kv_heads, group], scale, left. No part reads behind a
// sequence.
Program decode_attention(const DecodeOptions& options);
std::vector<AttentionTile> decode_attention_tiles(const DecodeOptions& options);

// Rows of parts as one: the sum of X [P, rows, dim] by weights exp(logs [P, rows] - LSE), LSE = log(sum(exp(logs))).
struct CombineOptions {
  DType result = bf16;
  int64_t dim = 128, rows = 4;  // of a block
};
// Parameters X, logs, Y [rows, dim], LSE [rows].
Program combine(const CombineOptions& options);

// ---- by name: what other languages call

// {"a": "bfloat16", "transpose_b": "true", "tile": "128x256x64x3x256"}: the fields above, the family's defaults for
// those that are not there. CompileError TW1080 for what no family or option is called.
using Options = std::map<std::string, std::string>;
Program library_program(const std::string& family, const Options& options);

// What suits a call of a shape: options beside those that the call has, and why.
struct Choice {
  Options options;
  double microseconds = 0;                   // predicted, of products and attention on a GPU; else 0
  int64_t parts = 1;                         // of `reduce` with split: how many
  std::map<std::string, double> considered;  // on a GPU: each tile and its predicted microseconds
};
// `arch`: "sm_90a", or "" for the CPU; `shape`: the program's symbols. Tiles of products and of attention on a GPU are
// compared by CostModel, of which one is kept for each: the first call with some options takes 5 ms a tile, others 20
// us.
Choice choose(const std::string& family, const Options& options, const std::string& arch,
              const std::map<std::string, int64_t>& shape);

}  // namespace tilewright::kernels
