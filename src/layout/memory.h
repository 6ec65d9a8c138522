// Where the elements of a tile or tensor lie in memory: strides, and for shared memory an XOR swizzle.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"

namespace tilewright {

// Address bits [base, base + bits) ^= address bits [base + shift, base + shift + bits), on byte addresses. TMA and
// wgmma know bits 1, 2, 3 at base 4, shift 3: 16-byte chunks move within 32, 64 or 128 bytes (PTX 5.5.6 "Swizzling
// modes", 9.7.15.5.1).
struct Swizzle {
  int bits = 0;
  int base = 4;
  int shift = 3;
  bool operator==(const Swizzle&) const = default;

  int64_t apply(int64_t address) const {
    const int64_t mask = ((int64_t{1} << bits) - 1) << base;
    return address ^ (address >> shift & mask);
  }
  // Addresses below and above a multiple of this do not mix: what the memory must be aligned to, for the XOR to mean
  // the same on offsets as on addresses.
  int64_t period() const { return bits == 0 ? 1 : int64_t{1} << (bits + base + shift); }
  int64_t span() const { return bits == 0 ? 1 : int64_t{1} << (bits + base); }  // bytes within which chunks move
  bool is_hardware() const { return bits == 0 || (bits <= 3 && base == 4 && shift == 3); }
};

// The swizzle of TMA and wgmma for rows of 32, 64 or 128 bytes; any other width: none.
Swizzle hardware_swizzle(int64_t row_bytes);

struct Mode {
  int64_t extent = 1;
  int64_t stride = 0;  // elements
  bool operator==(const Mode&) const = default;
};

// A value, canonical when made (no mode of extent 1, adjacent modes merged). Each dimension is an ordered product of
// modes, slowest first; the last may reach beyond the shape. A stride known only at run time stands here as its largest
// known divisor: questions about widths and alignment ask nothing else.
class MemoryLayout {
 public:
  using Dims = std::vector<std::vector<Mode>>;

  MemoryLayout();
  MemoryLayout(const MemoryLayout&);
  MemoryLayout(MemoryLayout&&) noexcept;
  MemoryLayout& operator=(const MemoryLayout&);
  MemoryLayout& operator=(MemoryLayout&&) noexcept;
  ~MemoryLayout();
  MemoryLayout(std::vector<int64_t> shape, Dims dims, int element_bits, Swizzle swizzle = {});
  // One stride an extent.
  MemoryLayout(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides, int element_bits,
               Swizzle swizzle = {});
  static std::string fault(const std::vector<int64_t>& shape, const Dims& dims, int64_t element_bits, Swizzle swizzle);

  static MemoryLayout row_major(const std::vector<int64_t>& shape, int element_bits);
  // Row-major, each row of the last dimension followed by pad_bytes that nobody uses.
  static MemoryLayout padded(const std::vector<int64_t>& shape, int element_bits, int64_t pad_bytes);
  // The picture that TMA and wgmma share: the last dimension is cut into panels of span bytes (32, 64, 128), panels
  // outermost of the last two dimensions, chunks of 16 bytes swizzled within a panel's rows. A span of 16: panels
  // without swizzle.
  static MemoryLayout panels(const std::vector<int64_t>& shape, int element_bits, int64_t span_bytes);

  int rank() const { return static_cast<int>(shape_.size()); }
  const std::vector<int64_t>& shape() const { return shape_; }
  const Dims& dims() const { return dims_; }
  const std::vector<Mode>& dim(int d) const { return dims_[d]; }
  int element_bits() const { return element_bits_; }
  Swizzle swizzle() const { return swizzle_; }

  int64_t elements() const;
  int64_t bytes() const;      // from the first to the last byte in use, whole swizzle spans
  int64_t alignment() const;  // bytes that the first element must be aligned to, at least 16 for shared memory
  // No two elements share memory. Exact when the modes nest; modes that interleave otherwise count as sharing.
  bool is_injective() const;

  int64_t linear_offset(std::span<const int64_t> index) const;  // elements, before the swizzle
  int64_t bit_offset(std::span<const int64_t> index) const;     // after it
  int64_t byte_offset(std::span<const int64_t> index) const { return bit_offset(index) / 8; }

  MemoryLayout with_swizzle(Swizzle swizzle) const { return {shape_, dims_, element_bits_, swizzle}; }
  MemoryLayout permuted(const std::vector<int>& order) const;  // dimension d of the result is order[d] of this

  // Readable and parsed by parse_memory_layout: "(64, 128): [64:64] x [2:4096 64:1]; bits 16; swizzle (3, 4, 3)".
  std::string text() const;
  size_t hash() const;
  bool operator==(const MemoryLayout&) const = default;

 private:
  std::vector<int64_t> shape_;
  Dims dims_;
  int element_bits_ = 8;
  Swizzle swizzle_;
};

// The inverse of text(). Bad text is TW2031 at `location`.
MemoryLayout parse_memory_layout(std::string_view text, const SourceLocation& location = {});

}  // namespace tilewright
