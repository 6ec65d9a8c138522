#include "runtime/cuda_tensor_map.h"

#include <algorithm>

#include "support/diagnostic.h"

namespace tilewright::runtime::cuda {
namespace {

constexpr uint64_t kMaxExtent = uint64_t{1} << 32, kMaxStride = uint64_t{1} << 40;

[[noreturn]] void refuse(const TensorMapPlan& map, const BoundCall& call, const std::string& reason) {
  fail(Code::TensorMapInvalid, {}, fmt::format("{}: no tensor map of '{}': {}", call.plan->name, map.name, reason),
       "TMA walks at most 2^32 elements a dimension, with strides that are multiples of 16 bytes below 2^40");
}

int64_t value_of(const IntProgram& e, const TensorMapPlan& map, const BoundCall& call) {
  int64_t value = 0;
  if (!evaluate(e, call.symbols(), call.scalars(), value)) refuse(map, call, "a size has no value in 64 bits");
  return value;
}

uint64_t stride_of(size_t d, const TensorMapPlan& map, const BoundCall& call) {
  const uint64_t unit = map.interleave == TensorMapPlan::Interleave::Bytes32 ? 32 : 16;
  const int64_t elements = value_of(map.strides[d], map, call);
  int64_t bits = 0;
  const bool fits = !__builtin_mul_overflow(elements, int64_t{map.dtype.storage_bits()}, &bits) && bits >= 0;
  const uint64_t bytes = static_cast<uint64_t>(bits) / 8;
  if (!fits || bytes % unit != 0 || bytes >= kMaxStride)
    refuse(map, call,
           fmt::format("the stride of its dimension {} (innermost first) is {} elements of {}", d + 1, elements,
                       map.dtype.name()));
  return bytes;
}

std::string describe(const TensorMapPlan& map, const TensorMapValues& values) {
  const size_t rank = map.dims.size();
  return fmt::format("address {:#x}, dims ({}), strides ({}) bytes, box ({}), {}, swizzle {}, interleave {}",
                     values.address, fmt::join(std::span(values.dims).first(rank), ", "),
                     fmt::join(std::span(values.strides).first(rank - 1), ", "), fmt::join(map.box, ", "),
                     map.dtype.name(), static_cast<int>(map.swizzle), static_cast<int>(map.interleave));
}

constexpr uint64_t kLine = 128;  // bytes of a line of the L2 cache

// A box whose rows are less than a line, or lie across two, shares lines with others: 256 bytes a miss then bring what
// nobody has asked for yet. On an H200 products of 5000 cubed take 550 us with 256 and 464 with 128, those of tiles
// whose rows are 64 bytes up to a fifth less (4096 cubed, 256x64x32: 351 and 293); products of whole lines as long.
TensorMapPlan::L2Promotion promotion_of(const TensorMapPlan& map, const TensorMapValues& values) {
  bool whole_lines =
      map.box[0] * static_cast<uint64_t>(map.dtype.storage_bits()) / 8 % kLine == 0 && values.address % kLine == 0;
  for (size_t d = 0; d + 1 < map.dims.size(); ++d)
    whole_lines = whole_lines && (values.dims[d + 1] == 1 || values.strides[d] % kLine == 0);
  return whole_lines ? map.l2_promotion : std::min(map.l2_promotion, TensorMapPlan::L2Promotion::Bytes128);
}

}  // namespace

int tensor_map_type(DType dtype) {
  // CUtensorMapDataType: UINT8, UINT16, UINT32, INT32, UINT64, INT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16,
  // FLOAT32_FTZ, TFLOAT32. A TFLOAT32 map rounds while it loads.
  if (dtype == f16) return 6;
  if (dtype == bf16) return 9;
  if (dtype == f32) return 7;
  if (dtype == tf32) return 11;
  if (dtype == f64) return 8;
  if (dtype == i32) return 3;
  if (dtype == i64) return 5;
  switch (dtype.storage_bits()) {
    case 8: return 0;
    case 16: return 1;
    case 32: return 2;
    case 64: return 4;
    default: return -1;
  }
}

TensorMapValues evaluate_map(const TensorMapPlan& map, const BoundCall& call, const void* buffer,
                             uint64_t placeholder) {
  TensorMapValues values;
  const size_t rank = map.dims.size();
  bool empty = buffer == nullptr;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t extent = value_of(map.dims[d], map, call);
    if (extent < 0 || static_cast<uint64_t>(extent) > kMaxExtent)
      refuse(map, call, fmt::format("its dimension {} (innermost first) has {} elements", d, extent));
    values.dims[d] = static_cast<uint64_t>(extent);
    empty |= extent == 0;
  }
  const uint64_t unit = map.interleave == TensorMapPlan::Interleave::Bytes32 ? 32 : 16;
  if (empty) {
    values.address = placeholder;
    for (size_t d = 0; d < rank; ++d) values.dims[d] = 1;
    for (size_t d = 0; d + 1 < rank; ++d) values.strides[d] = unit;
    return values;
  }
  values.address = reinterpret_cast<uint64_t>(buffer) + static_cast<uint64_t>(map.byte_offset);
  if (values.address % unit != 0)
    refuse(map, call, fmt::format("its address lies {} bytes past a multiple of {}", values.address % unit, unit));
  // The stride of a dimension of extent 1 is never walked, and libraries write anything there.
  for (size_t d = 0; d + 1 < rank; ++d) values.strides[d] = values.dims[d + 1] == 1 ? unit : stride_of(d, map, call);
  return values;
}

TensorMap encode_map(const Driver& driver, const TensorMapPlan& map, const BoundCall& call,
                     const TensorMapValues& values) {
  if (!driver.tensor_map_encode)
    fail(Code::CudaDriverTooOld, {}, fmt::format("the CUDA driver {} has no cuTensorMapEncodeTiled", driver.path),
         "CUDA 12.0 or newer is needed for kernels with TMA: update NVIDIA's driver");
  std::array<uint32_t, kMaxTensorMapRank> element_strides;
  element_strides.fill(1);
  std::copy(map.element_strides.begin(), map.element_strides.end(), element_strides.begin());
  TensorMap out;
  const Result result = driver.tensor_map_encode(
      &out, tensor_map_type(map.dtype), static_cast<unsigned>(map.dims.size()), reinterpret_cast<void*>(values.address),
      values.dims.data(), values.strides.data(), map.box.data(), element_strides.data(),
      static_cast<int>(map.interleave), static_cast<int>(map.swizzle), static_cast<int>(promotion_of(map, values)),
      static_cast<int>(map.oob_fill));
  if (result != kSuccess)
    refuse(map, call, fmt::format("the driver refuses it ({}): {}", driver.describe(result), describe(map, values)));
  return out;
}

size_t TensorMapCache::slot_of(const TensorMapValues& values) {
  // Addresses are aligned, and most calls differ in the address alone.
  uint64_t hash = values.address;
  for (uint64_t v : values.dims) hash = (hash ^ v) * 0x9e3779b97f4a7c15u;
  for (uint64_t v : values.strides) hash = (hash ^ v) * 0x9e3779b97f4a7c15u;
  return static_cast<size_t>(hash >> 58) % kEntriesPerMap;
}

}  // namespace tilewright::runtime::cuda
