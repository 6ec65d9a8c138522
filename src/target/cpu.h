// What the CPU engine may assume of a processor, and how it lays tiles out for it. Data, never a question to the
// machine that compiles: a kernel's text depends on this and the program alone.
#pragma once
#include <cstdint>

#include "support/function_ref.h"
#include "tilewright/dtype.h"

namespace tilewright::target {

// The same flags as runtime::ProcessorFeatures, which knows how to detect them.
struct CpuFeatures {
  bool avx2 = false, fma = false, f16c = false;
  bool avx512 = false;  // F, BW, VL and DQ
  bool avx512_bf16 = false, avx512_vnni = false, amx = false;
  bool operator==(const CpuFeatures&) const = default;
};

// Where element (row, column) of a gemm operand stands. width 0: row-major with this row stride. Else panels: dimension
// `axis` is cut into panels of `width`, the other one into groups of `interleave` elements; element (p, q) along and
// across the axis stands at (p / width, q / interleave, p % width, q % interleave).
struct OperandTile {
  DType stored;  // the type in memory, wide enough for the operand's
  int64_t row_stride = 0;
  int axis = 0;
  int64_t width = 0;
  int64_t interleave = 1;
  bool operator==(const OperandTile&) const = default;
};
struct GemmTiles {
  OperandTile a, b, c;
};
struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  DType a, b, c;
  bool transpose_a = false, transpose_b = false;
};

struct CpuTarget {
  CpuFeatures features;
  // The layouts the gemm text likes best, with the vectors along the rows of c or along its columns. Without it every
  // tile is row-major.
  GemmTiles (*preferred_tiles)(const GemmShape&, bool vectors_along_rows, const CpuFeatures&) = nullptr;
};

}  // namespace tilewright::target
