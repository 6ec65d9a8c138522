// 32 threads in lockstep: the lane evaluator, with everything watched that a GPU does not check.
#pragma once
#include "interpreter/strand.h"
#include "simulator/device.h"

namespace tilewright::simulator {

using interpreter::BufferCode;
using interpreter::Mask;
using interpreter::Place;
using interpreter::Step;
using interpreter::Value;

constexpr int64_t kWarpThreads = 32;

class Warp final : public interpreter::Strand {
 public:
  Warp(SimulatedBlock& block, int64_t first, int64_t count);
  void run() override;

 private:
  enum class Touch : uint8_t { Read, Write, Atomic };
  // The lanes of an access, and where each begins: in bits, of the block's shared memory or of the address space.
  struct Lanes {
    std::array<uint64_t, kWarpThreads> address;
    std::array<uint8_t, kWarpThreads> lane;
    size_t count = 0;
  };

  // ---- warp_memory.cpp
  void on_load(const Place& place, Mask mask) override;
  void on_store(const Place& place, const Value& value, Mask mask) override;
  void on_atomic(const ir::Atomic& op, const Place& place, Mask mask) override;
  using Strand::execute;
  // One thread moves neighbours between memory and its own registers in one access.
  void execute(const ir::Copy& op, const Step& step, Mask mask) override;
  void execute(const ir::Commit& op, const Step& step, Mask mask) override;
  void execute(const ir::Drain& op, const Step& step, Mask mask) override;
  void check_alignment_demanded(const BufferCode& buffer, int64_t bytes, Mask mask);
  void check_run_in_bounds(const interpreter::RegionCode& region, int64_t count, Mask mask);
  Lanes lanes_of_access(const Place& place, int64_t bits, Mask mask);
  void check_aligned(const Place& place, const Lanes& lanes, int64_t bits);
  // `bytes_of` gives what a lane stores, where Touch is Write. `pending`: it lands when the lane's queue is drained.
  void touch(Touch kind, const Place& place, int64_t bits, const Lanes& lanes,
             function_ref<const std::byte*(size_t lane)> bytes_of, bool pending = false);
  const std::byte* pointer(const Place& place, uint64_t address) const;
  [[noreturn]] void fail_race(Touch kind, const Place& place, const Lanes& lanes, size_t i, const Conflict& conflict);

  // ---- matrices.cpp
  void execute(const ir::Mma& op, const Step& step, Mask mask) override;
  void execute(const ir::LoadMatrix& op, const Step& step, Mask mask) override;
  // The registers of a region, at a lane; what is read must have been written.
  const std::byte* registers(const Place& place, int64_t lane, int64_t count);

  // ---- warp.cpp
  void execute(const ir::Shuffle& op, const Step& step, Mask mask) override;
  void execute(const ir::Vote& op, const Step& step, Mask mask) override;
  void execute(const ir::Role& op, const Step& step, Mask mask) override;
  void execute(const ir::Sync& op, const Step& step, Mask mask) override;
  void execute(const ir::Arrive& op, const Step& step, Mask mask) override;
  void execute(const ir::Wait& op, const Step& step, Mask mask) override;
  bool leads(const Step& step) const override;
  void check_whole_warp(const Step& step, Mask mask, const char* what);
  void check_converged_flag(const Step& step, Mask mask, const char* what);
  void check_full_warp(const Step& step, Mask mask, const char* what);
  void sync_warp(const Step& step, Mask mask);
  void sync_block(const Step& step, Mask mask);
  void sync_named(const ir::Sync& op, const Step& step, Mask mask);
  void sync_grid(const Step& step, Mask mask);
  std::shared_ptr<Phase> arrive_at(int64_t barrier, int64_t count, const Step& step, bool waits);
  void wait_for(const std::shared_ptr<Phase>& phase, int64_t barrier);
  std::vector<int64_t> executing(Mask mask) const;
  int64_t first_missing(Mask mask) const;

  SimulatedBlock& home_;
  Device& device_;
};

}  // namespace tilewright::simulator
