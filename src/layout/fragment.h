// The layout of a fragment: which thread and register holds each element of a tile. Pure integers, exact, no solver.
//
// Each logical dimension is an ordered product of factors, slowest first; each factor has a home and a stride there.
// The accumulator of wgmma over 128 x 128 elements on two warpgroups (PTX 9.7.15.5.1.1, "wgmma .m64nNk16"):
//
//   (128, 128): [2:G(1) 4:W(1) 2:R(2) 8:L(4)] x [16:R(4) 4:L(1) 2:R(1)]
//
// Row 77 = ((1*4 + 0)*2 + 1)*8 + 5: warpgroup 1, warp 0, register +2, lane +20. The register, thread and CTA of an
// element are the sums over its digits, so what a question needs is the list of digits and nothing about the tile's
// size.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"

namespace tilewright {

// Where the digit of an index lives. A register holds one element here, whatever its width.
enum class Home : uint8_t { Register, Lane, Warp, Warpgroup, Cta };

inline constexpr int64_t kWarpThreads = 32;
inline constexpr int64_t kWarpgroupThreads = 128;

// Threads from one value of a digit at this home to the next; 0 for homes that are no threads.
int64_t threads_per(Home home);

struct Factor {
  int64_t extent = 1;
  Home home = Home::Register;
  int64_t stride = 1;  // in units of the home: registers, lanes, warps, warpgroups, CTAs
  bool operator==(const Factor&) const = default;
};

// How values that are held in parts become one value.
enum class Combine : uint8_t { Sum, Max, Min, And, Or, Xor };
std::span<const char* const> enum_names(Combine);

// More than one place holds an element: copies of it, or, with partial, parts of it that are still to be combined.
struct Copies {
  Factor factor;  // never in registers
  std::optional<Combine> partial;
  bool operator==(const Copies&) const = default;
};

// One digit of an index, or (dim -1) the number of a copy.
struct Digit {
  int dim = -1;
  int64_t extent = 1;
  Home home = Home::Register;
  int64_t stride = 1;  // in units of the home
  int64_t weight = 1;  // what one step of this digit adds to the index (or to the number of the copy)
  std::optional<Combine> partial;
  // How it is read: value = position % modulus / step; modulus 0: nothing lies above. The position is the register, the
  // CTA, or the thread in the block; for a digit of lanes of a layout that is_warp_aligned() it is the lane in the
  // warp. A value of extent or more: the place is idle.
  int64_t step = 1;
  int64_t modulus = 0;
};

struct Place {
  int64_t reg = 0;     // of the thread's registers of this fragment
  int64_t thread = 0;  // of the block, or of the role that owns the fragment
  int64_t cta = 0;     // rank in the cluster
  bool operator==(const Place&) const = default;
  int64_t lane() const { return thread % kWarpThreads; }
  int64_t warp() const { return thread / kWarpThreads % (kWarpgroupThreads / kWarpThreads); }
  int64_t warpgroup() const { return thread / kWarpgroupThreads; }
};

// What a place holds. Padding: the index is outside of the shape. Idle: the layout never uses this place.
struct Held {
  enum class Kind : uint8_t { Element, Padding, Idle };
  Kind kind = Kind::Idle;
  std::vector<int64_t> index;  // Element and Padding
  int64_t copy = 0;
};

// A value: canonical when made, so that equal distributions compare equal. Canonical: no factor of extent 1, adjacent
// factors merged, thread factors split at warps and warpgroups where the radices allow it.
class FragmentLayout {
 public:
  using Dims = std::vector<std::vector<Factor>>;

  FragmentLayout() = default;  // rank 0: one element, in register 0 of thread 0
  // shape[d] may be less than the product of dims[d]: the rest is padding. Broken rules are internal errors; ask
  // fault() first where a user gives the factors.
  FragmentLayout(std::vector<int64_t> shape, Dims dims, std::vector<Copies> copies = {});

  // Why these are no layout, or empty: extents and strides are positive, the digits cover the shape, and they can be
  // read off a place: sorted by stride, each stride is a multiple of the one below and more than what all below can sum
  // up to. (Lanes that stay within a warp and warps need not divide each other.)
  static std::string fault(const std::vector<int64_t>& shape, const Dims& dims, const std::vector<Copies>& copies = {});

  int rank() const { return static_cast<int>(shape_.size()); }
  const std::vector<int64_t>& shape() const { return shape_; }
  const Dims& dims() const { return dims_; }
  const std::vector<Factor>& dim(int d) const { return dims_[d]; }
  const std::vector<Copies>& copies() const { return copies_; }
  // All digits of the dimensions, then of the copies, each slowest first.
  // Lowering writes an index as the sum of value * weight over the digits of its dimension.
  const std::vector<Digit>& digits() const { return digits_; }

  int64_t elements() const;                         // of the shape
  int64_t padded_extent(int d) const;               // product of the factors of a dimension
  bool is_padded() const;                           // some places hold padding: guard by index < shape
  int64_t registers() const { return registers_; }  // of each thread
  int64_t threads() const { return threads_; }      // the highest thread in use, plus one
  int64_t ctas() const { return ctas_; }            // of the cluster
  int64_t copy_count() const { return copy_count_; }
  bool is_replicated() const;  // every place in use holds all elements
  bool is_partial() const;
  // No digit of the lane runs over the end of a warp, as it must where 48 threads share a dimension: then the lane and
  // the warp are not digits of their own, and questions about lanes take their safe answers.
  bool is_warp_aligned() const { return warp_aligned_; }
  bool uses_all_threads() const;  // every thread below threads() holds elements or padding

  Place place(std::span<const int64_t> index, int64_t copy = 0) const;
  Held held_at(const Place& place) const;

  // Readable and parsed by parse_fragment_layout: "(64, 32): [4:W(1) 16:L(2)] x [16:R(1) 2:L(1)]; replica [2:G(1)]".
  std::string text() const;
  size_t hash() const;
  bool operator==(const FragmentLayout& other) const {
    return shape_ == other.shape_ && dims_ == other.dims_ && copies_ == other.copies_;
  }

 private:
  void derive();

  std::vector<int64_t> shape_;
  Dims dims_;
  std::vector<Copies> copies_;
  // Derived.
  std::vector<Digit> digits_;
  std::vector<uint8_t> by_stride_;  // indices into digits_, widest stride first, registers, then threads, then CTAs
  int64_t registers_ = 1, threads_ = 1, ctas_ = 1, copy_count_ = 1;
  bool warp_aligned_ = true;
};

// The inverse of text(). Bad text is TW2031 at `location`.
FragmentLayout parse_fragment_layout(std::string_view text, const SourceLocation& location = {});

}  // namespace tilewright

template <>
struct std::hash<tilewright::FragmentLayout> {
  size_t operator()(const tilewright::FragmentLayout& layout) const noexcept { return layout.hash(); }
};
