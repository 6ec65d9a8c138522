// The registers of a warp's threads that wgmma uses. From a wgmma on they are its own until its group is drained; what
// other code has touched must be fenced before a wgmma uses it (PTX ISA 9.7.15.7.1, wgmma.fence).
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "simulator/clocks.h"

namespace tilewright::simulator {

// Bytes [first, end) of what one thread has of a local buffer.
struct RegisterRange {
  uint32_t root = 0;
  int64_t first = 0, end = 0;
  bool meets(const RegisterRange& other) const { return root == other.root && first < other.end && other.first < end; }
};

class RegisterWatch {
 public:
  struct InFlight {
    RegisterRange range;
    bool accumulator = false;
    const std::string* instruction = nullptr;
    Clock group = 0;
    uint16_t site = 0;
  };

  // A local buffer that wgmma uses: no register of it is fenced.
  void watch(uint32_t root, int64_t bytes) { unfenced_[root].assign(static_cast<size_t>((bytes + 3) / 4), 1); }
  void reset() {
    in_flight_.clear();
    for (auto& [root, words] : unfenced_) words.assign(words.size(), 1);
  }
  bool watches(uint32_t root) const { return unfenced_.contains(root); }

  // Other code than wgmma touches them; gives the wgmma that uses them now.
  const InFlight* touch(const RegisterRange& range) {
    mark(range, 1);
    for (const InFlight& f : in_flight_)
      if (f.range.meets(range)) return &f;
    return nullptr;
  }
  void fence(const RegisterRange& range) { mark(range, 0); }
  bool is_fenced(const RegisterRange& range) const {
    const std::vector<uint8_t>& words = unfenced_.at(range.root);
    for (int64_t w = range.first / 4; w < (range.end + 3) / 4; ++w)
      if (words[static_cast<size_t>(w)]) return false;
    return true;
  }
  // The wgmma under way that a new one must not meet in these registers: accumulators go on from one to the next of the
  // same shape, and what both only read is no matter.
  const InFlight* blocking(const InFlight& use) const {
    for (const InFlight& f : in_flight_) {
      if (!f.range.meets(use.range) || (!f.accumulator && !use.accumulator)) continue;
      const bool chained = f.accumulator && use.accumulator && f.range.first == use.range.first &&
                           f.range.end == use.range.end && *f.instruction == *use.instruction;
      if (!chained) return &f;
    }
    return nullptr;
  }
  void add(const InFlight& use) {
    for (InFlight& f : in_flight_)
      if (f.range.root == use.range.root && f.range.first == use.range.first && f.range.end == use.range.end &&
          f.accumulator == use.accumulator) {
        f = use;
        return;
      }
    in_flight_.push_back(use);
  }
  void retire(Clock group) {
    std::erase_if(in_flight_, [&](const InFlight& f) { return f.group <= group; });
  }

 private:
  void mark(const RegisterRange& range, uint8_t value) {
    std::vector<uint8_t>& words = unfenced_.at(range.root);
    for (int64_t w = range.first / 4; w < (range.end + 3) / 4; ++w) words[static_cast<size_t>(w)] = value;
  }
  std::map<uint32_t, std::vector<uint8_t>> unfenced_;  // by root, a byte a word
  std::vector<InFlight> in_flight_;
};

}  // namespace tilewright::simulator
