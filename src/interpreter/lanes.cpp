// Lane values: spreading, picking, wrapping.
#include "interpreter/lanes.h"

#include <algorithm>
#include <cstring>

namespace tilewright::interpreter {

namespace {
constexpr size_t kChunk = size_t{1} << 20;
}

void Arena::next_chunk(size_t size) {
  // A mark may lie in an earlier chunk: later chunks stay and are taken again if they are large enough.
  size_t next = chunks_.empty() ? 0 : at_.chunk + 1;
  while (next < chunks_.size() && chunks_[next].size < size) ++next;
  if (next >= chunks_.size()) {
    size_t bytes = std::max(size, kChunk);
    Chunk chunk;
    chunk.owner = std::make_unique<std::byte[]>(bytes + 64);
    auto address = reinterpret_cast<uintptr_t>(chunk.owner.get());
    chunk.memory = chunk.owner.get() + ((64 - address % 64) % 64);
    chunk.size = bytes;
    chunks_.push_back(std::move(chunk));
    next = chunks_.size() - 1;
  }
  at_ = {next, 0};
}

Value affine_value(int64_t base, int64_t outer, int64_t inner) {
  Value v = uniform_int(base);
  if (outer == 0 && inner == 0) return v;
  v.form = Value::Form::Affine, v.outer = outer, v.inner = inner;
  return v;
}

Value array_value(LaneKind kind, const void* data) {
  Value v;
  v.kind = kind, v.form = Value::Form::Array, v.data = data;
  return v;
}

void spread(const Value& value, LaneShape shape, void* out) {
  if (value.form == Value::Form::Array) {
    std::memcpy(out, value.data, static_cast<size_t>(shape.lanes * lane_bytes(value.kind)));
  } else if (value.kind == LaneKind::Float32) {
    std::fill_n(static_cast<float*>(out), shape.lanes, static_cast<float>(value.number));
  } else if (value.kind == LaneKind::Float64) {
    std::fill_n(static_cast<double*>(out), shape.lanes, value.number);
  } else if (value.uniform()) {
    std::fill_n(static_cast<int64_t*>(out), shape.lanes, value.base);
  } else {
    auto* to = static_cast<int64_t*>(out);
    for (int64_t row = 0; row < shape.rows(); ++row, to += shape.columns) {
      int64_t start = value.base + row * value.outer;
#pragma omp simd
      for (int64_t c = 0; c < shape.columns; ++c) to[c] = start + c * value.inner;
    }
  }
}

Value pick(const Value& value, int64_t lane, int64_t columns) {
  if (value.uniform()) return value;
  if (value.kind == LaneKind::Int64) return uniform_int(value.int_at(lane, columns));
  return uniform_float(value.kind, value.float_at(lane));
}

bool same_lanes(const Value& value, int64_t a, int64_t b) {
  if (value.form != Value::Form::Array) return value.uniform() || a == b;
  auto size = static_cast<size_t>(lane_bytes(value.kind));
  const auto* bytes = static_cast<const std::byte*>(value.data);
  return std::memcmp(bytes + static_cast<size_t>(a) * size, bytes + static_cast<size_t>(b) * size, size) == 0;
}

Interval extremes(const Value& value, LaneShape shape) {
  using Wide = __int128;
  const Wide down = Wide{value.outer} * (shape.rows() - 1), across = Wide{value.inner} * (shape.columns - 1);
  const Wide low = value.base + std::min<Wide>(down, 0) + std::min<Wide>(across, 0);
  const Wide high = value.base + std::max<Wide>(down, 0) + std::max<Wide>(across, 0);
  if (low < INT64_MIN || high > INT64_MAX) return {INT64_MIN, INT64_MAX};  // it wraps around in between
  return {static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

int64_t wrap(DType type, int64_t value) {
  if (type.is_bool()) return value & 1;
  if (type.bits >= 64) return value;
  int unused = 64 - type.bits;
  auto up = static_cast<uint64_t>(value) << unused;
  return type.is_signed() ? static_cast<int64_t>(up) >> unused : static_cast<int64_t>(up >> unused);
}

bool fits(DType type, Interval values) {
  return wrap(type, values.low) == values.low && wrap(type, values.high) == values.high;
}

void wrap_lanes(DType type, int64_t* values, int64_t n) {
  if (type.bits >= 64) return;
  int unused = 64 - (type.is_bool() ? 1 : type.bits);
  if (type.is_signed()) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i)
      values[i] = static_cast<int64_t>(static_cast<uint64_t>(values[i]) << unused) >> unused;
  } else {
    uint64_t keep = ~uint64_t{0} >> unused;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) values[i] = static_cast<int64_t>(static_cast<uint64_t>(values[i]) & keep);
  }
}

}  // namespace tilewright::interpreter
