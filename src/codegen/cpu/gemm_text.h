// The CPU engine's gemm as text: a self-contained C++ function for one shape, its types and the layouts of its
// operands.
//
// The inner kernel keeps a block of C in registers. One operand is broadcast element by element and may lie anywhere
// with constant strides; the other and C are read as vectors, best from panels. Which is which is the vector axis:
//   VectorAxis::N  A broadcast, B and C cut into panels along n: the ordinary gemm.
//   VectorAxis::M  B broadcast, A and C cut into panels along m: a C that is reduced along its rows, or that is the A
//                  of a later gemm. Attention's row maxima become vertical, K and V tiles stay as they lie in memory,
//                  and P has the layout of S.
// Layouts are data. Any combination is right: an operand in another form than the kernel's is packed inside the
// function, a C in another form is updated element by element.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "scalar/convert.h"

namespace tilewright {

// Instruction sets the text may use, as data: the machine that writes the text is not asked. The names are those of
// runtime::ProcessorFeatures. Without any the text is plain C++ on 16-byte vectors.
struct VectorFeatures {
  bool avx2 = false;
  bool fma = false;
  bool f16c = false;
  bool avx512 = false;  // F, BW, VL and DQ
  bool avx512_bf16 = false;
  bool avx512_vnni = false;
  bool amx = false;  // tiles, with products of bf16 and of 8-bit integers
  bool operator==(const VectorFeatures&) const = default;
};

// Where element (row, column) of a two-dimensional buffer lies, in elements of `stored` from the buffer's start.
//   Strided: row * row_stride + column * column_stride. A row stride of 0 is known only at run time: the function then
//     has a parameter for it.
//   Panels: dimension `axis` (0 rows, 1 columns) is cut into panels of `width`; with p the index along it, q the other
//     index and Q the other extent:
//     (p / width * ceil(Q / interleave) + q / interleave) * width * interleave + p % width * interleave
//       + q % interleave
//     The last panel and the last group of `interleave` are padded; the padding may hold anything.
// `stored` is the type in memory. Kernels without instructions for a narrow type want it widened by the copy that fills
// the buffer: f16 as f32, int8 as int16. It must hold every value of the operand's type.
struct OperandLayout {
  enum class Form : uint8_t { Strided, Panels };
  Form form = Form::Strided;
  DType stored = f32;
  int64_t row_stride = 0;
  int64_t column_stride = 1;
  int axis = 0;
  int64_t width = 1;
  int64_t interleave = 1;
  bool operator==(const OperandLayout&) const = default;

  static OperandLayout strided(DType stored, int64_t row_stride, int64_t column_stride = 1);
  static OperandLayout panels(DType stored, int axis, int64_t width, int64_t interleave = 1);
};

// Elements that a rows x columns buffer takes, padding included. Not for a run-time row stride.
int64_t layout_elements(const OperandLayout& layout, int64_t rows, int64_t columns);

// The offset of element (row, column) in elements of `stored`; as a number, and as the text of an expression on two
// non-negative index expressions (`leading` names the row stride if it is known only at run time).
int64_t layout_offset(const OperandLayout& layout, int64_t rows, int64_t columns, int64_t row, int64_t column);
std::string layout_offset_text(const OperandLayout& layout, int64_t rows, int64_t columns, std::string_view row,
                               std::string_view column, std::string_view leading = {});

// C (m x n) = A B, or += unless `clear`. The buffers are A (m x k, or k x m if transpose_a), B (k x n, or n x k if
// transpose_b), C (m x n); the layouts speak of the buffers as they are declared.
//
// Accumulation is in float for a C of 32 or fewer bits of floating point, in double for f64, and modulo 2^32 or 2^64
// for integers (exact while C is). A C narrower than float is rounded once a call. Sums run in ascending k in one chain
// per element of C, with one rounding a step where the features have fma and two where they do not; bf16 x bf16 with
// avx512_bf16 adds a pair of products at a time, with amx two sums of a pair's halves. The result of floating point
// differs from the exact one by at most (k + 2) * 2^-23 * sum |a b| + |old C| * 2^-23, plus the last rounding if C is
// narrower. Exception: vdpbf16ps and tdpbf16ps (bf16 x bf16 with avx512_bf16 or amx) read subnormal operands and
// partial sums as zero and write subnormal sums as zero. Each such operand a adds |a b|, each flushed sum 2^-126, to
// the bound. Features without these keep them. Of tf32 operands the bits that tf32 has are read.
struct GemmSpec {
  int64_t m = 0, n = 0, k = 0;
  DType a = f32, b = f32, c = f32;
  OperandLayout a_layout, b_layout, c_layout;
  bool transpose_a = false;
  bool transpose_b = false;
  bool clear = false;
  int64_t fetch_lines = 0;  // cache lines to come to the second cache meanwhile, from `next`
  VectorFeatures features;
  bool operator==(const GemmSpec&) const = default;
};

enum class VectorAxis : uint8_t { N, M };

struct PreferredLayouts {
  OperandLayout a, b, c;
};

// The layouts that the kernel reads without packing. Ignores the layouts of `spec`.
PreferredLayouts preferred_layouts(const GemmSpec& spec, VectorAxis axis = VectorAxis::N);

// Why no text exists for these types: a sentence; empty if there is one.
std::optional<std::string> gemm_unsupported(DType a, DType b, DType c);

struct GemmText {
  std::string name;
  // static void NAME(const A* a, const B* b, C* c [, int64_t lda] [, int64_t ldb] [, int64_t ldc] [, tw_rows next]):
  // the storage types of the layouts (storage_type()), a row stride for each layout that leaves it open, and what is to
  // be fetched (memory.text.h). Equal specs give equal text; texts of different names may stand in one file.
  std::string definition;
  bool tiles = false;            // called where there is a tw_use_tiles (tiles.text.h)
  std::set<std::string> pieces;  // scalar pieces (scalar/pieces.h) that must stand before the definition
  // For reports: the instructions and the block of C in registers ("avx512_fma, 13 x 32"), and the slow paths taken.
  std::string kernel;
  bool packs_a = false, packs_b = false;  // the operand is copied into the kernel's form at every call
  bool updates_elements = false;          // some or all of C is updated element by element
};
GemmText gemm_text(const GemmSpec& spec);
bool uses_tiles(const GemmSpec& spec);          // what its text says of tiles
bool flushes_subnormals(const GemmSpec& spec);  // of its operands: they count as zero

}  // namespace tilewright
