// What a matrix descriptor says, decoded as PTX ISA 9.7.15.5.1 has it, against the layout it was made from.
#include <gtest/gtest.h>

#include "target/wgmma.h"

namespace tilewright {
namespace {

using target::matrix_descriptor;

// Bit fields of the 64-bit descriptor.
struct Fields {
  int64_t leading, stride;
  int mode;
  explicit Fields(uint64_t bits)
      : leading(static_cast<int64_t>(bits >> 16 & 0x3fff) * 16),
        stride(static_cast<int64_t>(bits >> 32 & 0x3fff) * 16),
        mode(static_cast<int>(bits >> 62)) {}
  int64_t span() const { return 256 >> mode; }  // 1: 128 bytes, 2: 64, 3: 32
};

// Chunks of 16 bytes are exchanged by the bits of the address above the span's eight rows.
int64_t swizzled(int64_t address, int64_t span) { return address ^ ((address >> 7 & (span / 16 - 1)) << 4); }

// Byte of element (outer, inner) of a tile that begins at `start`; inner is contiguous in memory.
int64_t k_major(const Fields& f, int64_t start, int64_t row, int64_t k_bytes) {
  return swizzled(start + row / 8 * f.stride + row % 8 * f.span() + k_bytes, f.span());
}
int64_t mn_major(const Fields& f, int64_t start, int64_t k, int64_t n_bytes) {
  return swizzled(start + n_bytes / f.span() * f.leading + k / 8 * f.stride + k % 8 * f.span() + n_bytes % f.span(),
                  f.span());
}

TEST(MatrixDescriptor, ContiguousAlongK) {
  for (const int64_t bits : {8, 16, 32}) {
    for (const int64_t span : {32, 64, 128}) {
      const int64_t width = span * 8 / bits;
      for (const int64_t panels : {1, 2, 3}) {
        const MemoryLayout m = MemoryLayout::panels({2, 64, panels * width}, static_cast<int>(bits), span);
        const auto d = matrix_descriptor(m, false);
        ASSERT_TRUE(d);
        const Fields f(d->bits());
        EXPECT_EQ(f.span(), span);
        const int64_t step = 256 / bits;  // elements of k in one instruction
        for (int64_t slot = 0; slot < 2; ++slot)
          for (int64_t row0 = 0; row0 < 64; row0 += 8)
            for (int64_t k0 = 0; k0 < panels * width; k0 += step) {
              const int64_t first[] = {slot, row0, k0};
              const int64_t start = m.linear_offset(first) * bits / 8;
              for (int64_t row = 0; row0 + row < 64; ++row)
                for (int64_t k = 0; k < step; ++k) {
                  const int64_t at[] = {slot, row0 + row, k0 + k};
                  ASSERT_EQ(k_major(f, start, row, k * bits / 8), m.byte_offset(at)) << m.text();
                }
            }
      }
    }
  }
}

TEST(MatrixDescriptor, ContiguousAlongRowsOrColumns) {
  for (const int64_t span : {32, 64, 128}) {
    const int64_t width = span / 2;
    for (const int64_t panels : {1, 2, 4}) {
      const MemoryLayout m = MemoryLayout::panels({2, 32, panels * width}, 16, span);
      const auto d = matrix_descriptor(m, true);
      ASSERT_TRUE(d);
      const Fields f(d->bits());
      for (int64_t slot = 0; slot < 2; ++slot)
        for (int64_t k0 = 0; k0 < 32; k0 += 16)
          for (int64_t n0 = 0; n0 < panels * width; n0 += width) {
            const int64_t first[] = {slot, k0, n0};
            const int64_t start = m.linear_offset(first) * 2;
            for (int64_t k = 0; k < 16; ++k)
              for (int64_t n = 0; n0 + n < panels * width; ++n) {
                const int64_t at[] = {slot, k0 + k, n0 + n};
                ASSERT_EQ(mn_major(f, start, k, n * 2), m.byte_offset(at)) << m.text();
              }
          }
    }
  }
}

TEST(MatrixDescriptor, LayoutsThatWgmmaDoesNotRead) {
  EXPECT_FALSE(matrix_descriptor(MemoryLayout::row_major({64, 64}, 16), false));
  EXPECT_FALSE(matrix_descriptor(MemoryLayout::padded({64, 64}, 16, 16), false));
  EXPECT_FALSE(matrix_descriptor(MemoryLayout::panels({12, 64}, 16, 128), false));  // no eights of rows
  EXPECT_FALSE(matrix_descriptor(MemoryLayout({64, 64}, {64, 1}, 16, Swizzle{2, 4, 3}), false));
}

TEST(WgmmaTable, Names) {
  EXPECT_EQ(target::wgmma_for(bf16, bf16, f32)->name(256), "m64n256k16.f32.bf16.bf16");
  EXPECT_EQ(target::wgmma_for(e4m3, e5m2, f32)->name(8), "m64n8k32.f32.e4m3.e5m2");
  EXPECT_EQ(target::wgmma_for(f32, f32, f32), nullptr);
  const auto found = target::wgmma_named("m64n96k32.s32.s8.s8");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->n, 96);
  EXPECT_FALSE(target::wgmma_named("m64n40k32.s32.s8.s8"));  // integers: multiples of 16 above 32
  EXPECT_TRUE(target::wgmma_named("m64n40k16.f32.f16.f16"));
  EXPECT_FALSE(target::wgmma_named("m64n260k16.f32.f16.f16"));
}

}  // namespace
}  // namespace tilewright
