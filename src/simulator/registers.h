// The registers of a warp's threads that wgmma uses. From a wgmma on they are its own until its group is drained; what
// other code has touched must be fenced before a wgmma uses it (PTX ISA 9.7.15.7.1, wgmma.fence). The drain names them,
// or the device's compiler, to whom it is no use of a register, may move an access above it.
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
  void watch(uint32_t root, int64_t bytes) { words_[root].assign(static_cast<size_t>((bytes + 3) / 4), kTouched); }
  void reset() {
    in_flight_.clear();
    for (auto& [root, words] : words_) words.assign(words.size(), kTouched);
  }
  bool watches(uint32_t root) const { return words_.contains(root); }

  // Other code than wgmma touches them; gives the wgmma that uses them now.
  const InFlight* touch(const RegisterRange& range) {
    change(range, kUnnamed, kTouched);
    for (const InFlight& f : in_flight_)
      if (f.range.meets(range)) return &f;
    return nullptr;
  }
  void fence(const RegisterRange& range) { change(range, 0, 0); }
  bool is_fenced(const RegisterRange& range) const { return !any(range, kTouched); }
  // A drain names them.
  void name(const RegisterRange& range) { change(range, kTouched, 0); }
  bool is_named(const RegisterRange& range) const { return !any(range, kUnnamed); }
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
    for (const InFlight& f : in_flight_)
      if (f.group <= group) change(f.range, kTouched, kUnnamed);
    std::erase_if(in_flight_, [&](const InFlight& f) { return f.group <= group; });
  }

 private:
  static constexpr uint8_t kTouched = 1, kUnnamed = 2;  // since it was fenced; by the drain of a wgmma that used it

  void change(const RegisterRange& range, uint8_t keep, uint8_t set) {
    std::vector<uint8_t>& words = words_.at(range.root);
    for (int64_t w = range.first / 4; w < (range.end + 3) / 4; ++w)
      words[static_cast<size_t>(w)] = static_cast<uint8_t>((words[static_cast<size_t>(w)] & keep) | set);
  }
  bool any(const RegisterRange& range, uint8_t bits) const {
    const std::vector<uint8_t>& words = words_.at(range.root);
    for (int64_t w = range.first / 4; w < (range.end + 3) / 4; ++w)
      if (words[static_cast<size_t>(w)] & bits) return true;
    return false;
  }

  std::map<uint32_t, std::vector<uint8_t>> words_;  // by root, a byte a word
  std::vector<InFlight> in_flight_;
};

}  // namespace tilewright::simulator
