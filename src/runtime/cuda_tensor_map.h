// Tensor maps of a call: evaluated, checked, encoded by the driver, and kept by address and shape.
#pragma once
#include <mutex>
#include <vector>

#include "runtime/cuda_driver.h"
#include "runtime/cuda_plan.h"

namespace tilewright::runtime::cuda {

inline constexpr size_t kMaxTensorMapRank = 5;

// CUtensorMapDataType of an element type; -1 if there is none.
int tensor_map_type(DType dtype);

// What of a map differs between calls.
struct TensorMapValues {
  uint64_t address = 0;
  std::array<uint64_t, kMaxTensorMapRank> dims{};         // elements
  std::array<uint64_t, kMaxTensorMapRank - 1> strides{};  // bytes, of dims[1] and on
  bool operator==(const TensorMapValues&) const = default;
};

// `placeholder` is an address of 16 zero bytes on the device. A buffer without elements gets a map of one element
// there: it reads zeros everywhere and what is written to it is lost, as it should be, and the map itself is valid, so
// that a kernel may prefetch it. LaunchError TensorMapInvalid for sizes and strides that TMA cannot walk.
TensorMapValues evaluate_map(const TensorMapPlan& map, const BoundCall& call, const void* buffer, uint64_t placeholder);

TensorMap encode_map(const Driver& driver, const TensorMapPlan& map, const BoundCall& call,
                     const TensorMapValues& values);

// The maps of one plan. An entry is found by what went into it, so nothing ever has to be invalidated.
class TensorMapCache {
 public:
  explicit TensorMapCache(size_t maps) : entries_(maps * kEntriesPerMap) {}
  // Writes the map to `out`. `encode` is called, without a lock held, if it is not here.
  template <class Encode>
  void get(size_t map, const TensorMapValues& values, TensorMap& out, Encode&& encode) {
    Entry& entry = entries_[map * kEntriesPerMap + slot_of(values)];
    {
      std::lock_guard lock(mutex_);
      if (entry.filled && entry.values == values) {
        out = entry.map;
        return;
      }
    }
    out = encode();
    std::lock_guard lock(mutex_);
    entry = {values, out, true};
  }

 private:
  static constexpr size_t kEntriesPerMap = 64;  // a newcomer takes the place of the one with its hash
  struct Entry {
    TensorMapValues values;
    TensorMap map;
    bool filled = false;
  };
  static size_t slot_of(const TensorMapValues& values);

  std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace tilewright::runtime::cuda
