// What an expression gives over a set of lanes in lockstep: one value for all, an affine function of the lane, or an
// array. A lane is a thread of the block or a point of a Map.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "scalar/evaluate.h"
#include "tilewright/dtype.h"

namespace tilewright::interpreter {

// Memory that is given back in the reverse order: scopes and temporaries of one strand.
class Arena {
 public:
  struct Mark {
    size_t chunk = 0, used = 0;
  };
  void* allocate(int64_t bytes) {
    size_t size = (static_cast<size_t>(bytes) + 63) & ~size_t{63};
    if (at_.chunk >= chunks_.size() || at_.used + size > chunks_[at_.chunk].size) next_chunk(size);
    void* result = chunks_[at_.chunk].memory + at_.used;
    at_.used += size;
    return result;
  }
  template <class T>
  T* array(int64_t n) {
    return static_cast<T*>(allocate(n * static_cast<int64_t>(sizeof(T))));
  }
  Mark mark() const { return at_; }
  void release(Mark mark) { at_ = mark; }

 private:
  struct Chunk {
    std::unique_ptr<std::byte[]> owner;
    std::byte* memory = nullptr;
    size_t size = 0;
  };
  void next_chunk(size_t size);
  std::vector<Chunk> chunks_;
  Mark at_;
};

// Everything allocated in a scope goes back at its end.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
  ~ArenaScope() { arena_.release(mark_); }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena& arena_;
  Arena::Mark mark_;
};

// Lanes stand in rows of `columns`: lane l is row l / columns, column l % columns; the last row is whole.
struct LaneShape {
  int64_t lanes = 1, columns = 1;
  int64_t rows() const { return lanes / columns; }
  bool operator==(const LaneShape&) const = default;
};

// Which lanes execute. No bits: all of them.
struct Mask {
  const uint8_t* bits = nullptr;  // 0 or 1 a lane
  int64_t count = 0;              // lanes that execute
  bool all() const { return bits == nullptr; }
  bool none() const { return count == 0; }
  bool at(int64_t lane) const { return !bits || bits[lane] != 0; }
};

struct Value {
  enum class Form : uint8_t { Uniform, Affine, Array };
  LaneKind kind = LaneKind::Int64;
  Form form = Form::Uniform;
  // Affine integers: base + row * outer + column * inner. Uniform integers: base.
  int64_t base = 0, outer = 0, inner = 0;
  double number = 0;  // uniform floats
  const void* data = nullptr;

  bool uniform() const { return form == Form::Uniform; }
  const int64_t* ints() const { return static_cast<const int64_t*>(data); }
  const float* floats() const { return static_cast<const float*>(data); }
  const double* doubles() const { return static_cast<const double*>(data); }
  int64_t int_at(int64_t lane, int64_t columns) const {
    if (form == Form::Array) return ints()[lane];
    return form == Form::Uniform ? base : base + lane / columns * outer + lane % columns * inner;
  }
  double float_at(int64_t lane) const {
    if (form == Form::Uniform) return number;
    return kind == LaneKind::Float32 ? static_cast<double>(floats()[lane]) : doubles()[lane];
  }
};

inline Value uniform_int(int64_t value) { return {.base = value}; }
inline Value uniform_float(LaneKind kind, double value) { return {.kind = kind, .number = value}; }
Value affine_value(int64_t base, int64_t outer, int64_t inner);
Value array_value(LaneKind kind, const void* data);

constexpr int64_t lane_bytes(LaneKind kind) { return kind == LaneKind::Float32 ? 4 : 8; }
// The value of every lane, in the given memory.
void spread(const Value& value, LaneShape shape, void* out);
// The value of one lane as a uniform value.
Value pick(const Value& value, int64_t lane, int64_t columns);
// Whether two lanes of the value are the same bits.
bool same_lanes(const Value& value, int64_t a, int64_t b);
// The largest and the least value of an affine or uniform integer.
struct Interval {
  int64_t low, high;
};
Interval extremes(const Value& value, LaneShape shape);

// The integer wrapped to the type, held as a lane holds it.
int64_t wrap(DType type, int64_t value);
bool fits(DType type, Interval values);
void wrap_lanes(DType type, int64_t* values, int64_t n);

}  // namespace tilewright::interpreter
