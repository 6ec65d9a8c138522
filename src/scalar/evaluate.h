// Scalar functions, conversions, loads and stores over arrays: what the interpreter and the simulator run. A lane array
// holds one value a lane: floats narrower than 64 bits as float, float64 as double, and integers of any width, bool and
// pointers sign- or zero-extended in int64_t. Results are the same bits as the texts give in a kernel.
#pragma once
#include <cstdint>
#include <span>

#include "scalar/convert.h"
#include "scalar/functions.h"

namespace tilewright {

enum class LaneKind : uint8_t { Int64, Float32, Float64 };
LaneKind lane_kind(DType type);

// out[i] = function(in[0][i], in[1][i], ...), rounded to `type`. The arrays are of lane_kind(type), but a predicate's
// result is int64_t. `out` may be one of the inputs, if it has their lane kind.
void apply(Function function, DType type, std::span<const void* const> in, void* out, int64_t n);

// out[i] = in[i] converted. `random` (uint32 values in int64 lanes) is read by Rounding::Stochastic only. In place only
// if both types have one lane kind.
void convert(DType from, DType to, Rounding rounding, const void* in, const int64_t* random, void* out, int64_t n);

// Which elements of an array the lanes touch: offsets[i], or first + i if there are no offsets. A negative offset
// touches nothing: the lane's value stays as it was, the store is dropped. Offsets count elements, also of packed
// types.
struct Elements {
  const int64_t* offsets = nullptr;
  int64_t first = 0;
};
void load_lanes(DType type, const void* base, Elements elements, int64_t n, void* out);
// Lanes are stored in order; values must already be of the type (what is not representable is rounded or wrapped).
void store_lanes(DType type, void* base, Elements elements, int64_t n, const void* in);

}  // namespace tilewright
