// Beside every cell of memory: who touched it last, so that two touches that nothing orders are found in whatever order
// they happen to run.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <unordered_map>

#include "ir/effects.h"
#include "simulator/clocks.h"
#include "support/function_ref.h"

namespace tilewright::simulator {

struct Access {
  uint32_t era = 0;  // 0: none
  Clock clock = 0;
  uint32_t instruction = 0;  // lanes of one warp that touch memory together have one number
  uint32_t block = 0;
  // Of the block; of another block of the cluster: from the first thread of the block whose memory it is, which may be
  // ahead of it.
  int16_t thread = 0;
  uint16_t site = 0;  // which statement
  std::optional<ir::AtomicOp> atomic = {};
  bool pending = false;  // an asynchronous copy whose end nobody has waited for: unknown to everybody
  bool told = false;     // one whose end an mbarrier has told: who knows of it may fence it
  bool by_tma = false;   // what no thread wrote, and none has to fence
  bool none() const { return era == 0; }
};

struct Cell {
  Access writer, other_writer;  // the last, and the last that it did not know: an atomic, or a store of the same bits
  Access reader, far_reader;    // the last, and the last of another block
  // In more_era: number of the set of readers that do not know of each other.
  uint32_t more_era = 0, more_generation = 0, more = 0;
};

struct Conflict {
  Access other;
  bool other_writes = false;
};

// Of the block's shared memory, or of one global tensor.
//
// Races: two touches of one cell, at least one of them a write, neither known to the other's thread, unless both are
// atomics that may change places, or both are stores of the same bits. Lanes of a warp are threads like any other: only
// a barrier orders them.
class Shadow {
 public:
  // Bits of a cell: no touch is smaller.
  explicit Shadow(int cell_bits = 8) : cell_bits_(cell_bits) {}
  int cell_bits() const { return cell_bits_; }

  Cell& cell(uint64_t number);
  std::optional<Conflict> read(Cell& cell, const Access& me, const Clocks& clocks);
  // `same_bits`: whether the store leaves what the other, a store too, has written.
  std::optional<Conflict> write(Cell& cell, const Access& me, const Clocks& clocks,
                                function_ref<bool(const Access& other)> same_bits);
  // Of the cell's readers that do not know of each other: how many rows they take.
  size_t rows_of_readers(const Cell& cell, uint32_t era) const;
  // All touches but those under way are known to everybody.
  void forget_done();
  // Of an asynchronous operation: what it touches must be done where it is issued, and what threads wrote, and read
  // before it writes, be fenced for it. It leaves no trace here.
  struct AgentConflict {
    Conflict with;
    bool unfenced = false;  // all that is missing is the fence
  };
  std::optional<AgentConflict> conflict_with_agent(const Cell& cell, const Witness& who, bool writes,
                                                   const Clocks& clocks) const;
  // What those who wrote this cell by atomics tell who reads it so.
  FarKnowledge& told(uint64_t cell) { return told_[cell]; }
  void forget_told() { told_.clear(); }

 private:
  static constexpr uint64_t kPage = 512;  // cells

  void add_reader(Cell& cell, const Access& me, const Clocks& clocks);
  bool has_more(const Cell& cell, uint32_t era) const {
    return cell.more_era == era && cell.more_generation == generation_;
  }
  // Lanes of one warp that touched a cell together: what is said of them differs in the thread alone.
  struct Together {
    Access access;
    uint32_t lanes = 0;
  };
  // A warp reads most cells by one instruction: a block whose threads read all of a tile needs a row a warp, not a
  // thread.
  struct ReadersOfWarp {
    Together first;
    std::vector<Together> more;
    void add(const Access& a);
  };
  // The readers of an era that do not know of each other, by warp.
  std::vector<ReadersOfWarp>& readers(Cell& cell, uint32_t era);
  // Of those the first for which it holds.
  std::optional<Access> find_reader(const Cell& cell, uint32_t era, function_ref<bool(const Access&)> holds) const;

  int cell_bits_;
  std::unordered_map<uint64_t, FarKnowledge> told_;
  std::unordered_map<uint64_t, std::unique_ptr<std::array<Cell, kPage>>> pages_;
  uint64_t last_page_ = UINT64_MAX;
  std::array<Cell, kPage>* last_ = nullptr;
  uint32_t sets_era_ = 0, generation_ = 1;
  std::vector<std::vector<ReadersOfWarp>> sets_;  // of this generation
};

}  // namespace tilewright::simulator
