// The matrix instructions of warpgroups: wgmma.mma_async.sync.aligned of PTX ISA 9.7.15, c (64 x n) (+)= a (64 x k) * b
// (k x n), and how they see tiles in shared memory. Of a sparse one (9.7.15.6) a is 64 x k / 2, and each warp has the
// metadata of its 16 rows as mma.sp has it (target/mma.h).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "layout/memory.h"
#include "tilewright/dtype.h"

namespace tilewright::target {

constexpr int64_t kWarpgroupThreads = 128;
constexpr int64_t kWgmmaRows = 64;
constexpr int64_t kWgmmaStepBytes = 32;  // of a row of a in one instruction, whatever the type

// A row of the table; n is chosen for each use.
struct WgmmaInstruction {
  std::string_view types;  // "f32.bf16.bf16": of c, a and b
  DType a, b, c;
  bool transposes = false;  // tiles may be stored with k slower than the other dimension (16-bit types only)
  bool sparse = false;

  int64_t a_k() const { return kWgmmaStepBytes * 8 / a.bits; }
  int64_t k() const { return sparse ? 2 * a_k() : a_k(); }
  bool has_columns(int64_t n) const;  // 8 to 256 in steps of 8; of integers fewer (PTX, "Shape")
  // Of a row of so many, those of one instruction of which it has a whole number; 0: there is none.
  int64_t most_columns(int64_t of) const;
  std::string name(int64_t n) const;  // "m64n256k16.f32.bf16.bf16"
};

// The instruction for operands of these types, accumulating in `c`; null: there is none.
// Of a GPU that has them: no other than sm_90a does.
const WgmmaInstruction* wgmma_for(DType a, DType b, DType c, bool sparse = false);
struct WgmmaShape {
  const WgmmaInstruction* row;
  int64_t n;
};
std::optional<WgmmaShape> wgmma_named(std::string_view name);

// The matrix descriptor (PTX ISA 9.7.15.5.1.2.2) of a box that begins at an element of a tile, less its address.
// `transposed`: k is the slower of the tile's last two dimensions.
struct MatrixDescriptor {
  int64_t leading_bytes = 0;  // between panels of the dimension that is not k; 16 where that is not looked at
  int64_t stride_bytes = 0;   // between groups of eight rows
  int swizzle = 0;            // bits 62 and 63: 1, 2, 3 for spans of 128, 64 and 32 bytes
  uint64_t bits() const;
};
// None: the layout is not one of the panels that the instruction reads.
std::optional<MatrixDescriptor> matrix_descriptor(const MemoryLayout& memory, bool transposed);

}  // namespace tilewright::target
