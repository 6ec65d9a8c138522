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
  bool avx512_bf16 = false, avx512_vnni = false;
  bool operator==(const CpuFeatures&) const = default;
};

// The layout of a gemm operand in a buffer of its own. width 0: row-major. Else panels: the dimension that is not
// summed over is cut into panels of `width`, the summed one into groups of `interleave`:
// element (i, k) stands at ((i / width) * (K / interleave) + k / interleave, i % width, k % interleave).
struct PanelLayout {
  int64_t width = 0;
  int64_t interleave = 1;
  bool panels() const { return width > 0; }
};
struct GemmLayouts {
  PanelLayout a, b;
};
struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  DType a, b, c;
  bool transpose_a = false, transpose_b = false;
};

struct CpuTarget {
  CpuFeatures features;
  // Which layouts the gemm text likes best; without it everything is row-major.
  GemmLayouts (*preferred_layouts)(const GemmShape&, const CpuFeatures&) = nullptr;
};

}  // namespace tilewright::target
