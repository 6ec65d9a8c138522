// 32 threads in lockstep: the lane evaluator, with everything watched that a GPU does not check.
#pragma once
#include "interpreter/strand.h"
#include "layout/fragment.h"
#include "simulator/device.h"
#include "simulator/matrix_operand.h"
#include "simulator/registers.h"
#include "target/mma.h"

namespace tilewright::target {
struct WgmmaInstruction;
}

namespace tilewright::simulator {

// Stores n elements, or adds them to what is there and the like.
void combine(ir::Combine how, DType type, std::byte* to, const std::byte* from, int64_t n);

struct TmaBox;
struct TmaRow;

using interpreter::BufferCode;
using interpreter::Mask;
using interpreter::Place;
using interpreter::Step;
using interpreter::Value;

// The words of a lane as elements of a matrix of rows of k: of a (rows_of_words 2) or b (1) of an mma.
void unpack_words(DType type, const std::byte* words, int64_t count, int64_t rows_of_words, int64_t lane, int64_t k,
                  float* matrix);

class Warp final : public interpreter::Strand {
 public:
  Warp(SimulatedBlock& block, int64_t first, int64_t count);
  void run() override;

 private:
  enum class Touch : uint8_t { Read, Write };
  // The lanes of an access, and where each begins: in bits, of the block's shared memory or of the address space.
  struct Lanes {
    std::array<uint64_t, kWarpThreads> address;
    std::array<uint8_t, kWarpThreads> lane;
    size_t count = 0;
  };

  // An mbarrier, and the lanes that act on it.
  struct BarrierLanes {
    const BufferCode* buffer = nullptr;
    SimulatedBlock* block = nullptr;  // whose it is
    int64_t element = 0;
    Mbarrier* barrier = nullptr;
    std::vector<int64_t> lanes, threads;
  };
  // The warp's wgmmas, by group: committed, the last with a wgmma, drained.
  struct Multiplies {
    Clock committed = 0, last = 0, retired = 0;
    const Step* step = nullptr;
  };

  // ---- warp_memory.cpp
  void on_load(const Place& place, Mask mask) override;
  bool passes_holes_on(const Place& place) const override { return place.written; }
  Mask without_dropped(const Place&, Mask mask) override { return mask; }  // a store out of bounds is refused
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
             function_ref<const std::byte*(size_t lane)> bytes_of, bool pending = false,
             std::optional<ir::AtomicOp> update = {});
  // The warp's clock, where somebody looks: it is busy, waits, hands an operation to a unit, has made an access that
  // touch() has counted.
  void busy(const char* what, double clocks, double latency = 0) {
    if (clock_.runs()) clock_.work(what, location(), clocks, latency);
  }
  void stall(const char* what, double until) {
    if (clock_.runs()) clock_.wait(what, location(), until);
  }
  double hand(TimelineEvent::Track unit, const char* what, const std::string& name, double clocks, double latency,
              int64_t bytes = 0);
  void spend(Touch kind, const Place& place);
  void tell(const ir::Atomic& op, const Place& place, const Lanes& lanes);
  int64_t number() const { return threads_[0] / kWarpThreads; }
  const std::byte* pointer(const Place& place, uint64_t address) const;
  // Whose shared memory it is.
  SimulatedBlock& owner_of(const Place& place);
  std::string name_of_toucher(const SimulatedBlock& owner, const Access& other) const;
  [[noreturn]] void fail_race(Touch kind, const Access& me, const Place& place, const Lanes& lanes, size_t i,
                              const Conflict& conflict);

  // ---- matrices.cpp
  void execute(const ir::Mma& op, const Step& step, Mask mask) override;
  void execute(const ir::LoadMatrix& op, const Step& step, Mask mask) override;
  void execute(const ir::StoreMatrix& op, const Step& step, Mask mask) override;
  // The registers of a region, at a lane; what is read must have been written.
  const std::byte* registers(const Place& place, int64_t lane, int64_t count);

  // ---- warp.cpp
  void execute(const ir::Shuffle& op, const Step& step, Mask mask) override;
  void execute(const ir::Vote& op, const Step& step, Mask mask) override;
  void execute(const ir::Role& op, const Step& step, Mask mask) override;
  void execute(const ir::Sync& op, const Step& step, Mask mask) override;
  bool leads(const Step& step) const override;
  void check_whole_warp(const Step& step, Mask mask, const char* what);
  void check_converged_flag(const Step& step, Mask mask, const char* what);
  void check_full_warp(const Step& step, Mask mask, const char* what);
  void sync_warp(const Step& step, Mask mask);
  void sync_block(const Step& step, Mask mask);
  void sync_named(const ir::Sync& op, const Step& step, Mask mask);
  void sync_cluster(const ir::Sync& op, const Step& step, Mask mask);
  void sync_grid(const Step& step, Mask mask);
  std::shared_ptr<Phase> arrive_at(int64_t barrier, int64_t count, const Step& step, bool waits);
  void wait_for(const std::shared_ptr<Phase>& phase, int64_t barrier);
  std::vector<int64_t> executing(Mask mask) const;
  int64_t first_missing(Mask mask) const;

  int64_t registers_at_launch() const;
  void check_queues_empty();

  // ---- warp_order.cpp
  void execute(const ir::Arrive& op, const Step& step, Mask mask) override;
  void execute(const ir::Expect& op, const Step& step, Mask mask) override;
  void execute(const ir::Wait& op, const Step& step, Mask mask) override;
  void execute(const ir::InitBarriers& op, const Step& step, Mask mask) override;
  void execute(const ir::Elect& op, const Step& step, Mask mask) override;
  void execute(const ir::Fence& op, const Step& step, Mask mask) override;
  void execute(const ir::SetRegisters& op, const Step& step, Mask mask) override;
  // The mbarriers of the block that the lanes name, initialized.
  std::vector<BarrierLanes> barriers_of(const interpreter::ElementCode& at, Mask mask, SimulatedBlock& block);
  std::vector<BarrierLanes> barriers_of(const interpreter::ElementCode& at, Mask mask) {
    return barriers_of(at, mask, home_);
  }
  SimulatedBlock& peer(int64_t rank, int64_t lane);
  std::string name_of(const BarrierLanes& at) const;
  void check_initialized(const BarrierLanes& at);
  void check_bytes(const BarrierLanes& at);
  void arrive(const BarrierLanes& at, ir::MemoryOrder order = ir::MemoryOrder::Release);
  void deliver(const BarrierLanes& at, int64_t bytes);
  // What the thread has copied is there; `told`: an mbarrier says so.
  void land(int64_t thread, const std::vector<CellRange>& copied, bool told);
  // What the thread has stored by TMA is.
  void write_stored(int64_t thread, const std::vector<StoredCells>& stored);
  // The barriers that the lanes name, in the block of each.
  void at_peers(const interpreter::Node& cta, const Step& step, Mask mask, function_ref<void(const BarrierLanes&)> f);
  void settle(const BarrierLanes& at);
  void check_phase_known(const BarrierLanes& at);
  int64_t phases_known(const Mbarrier& barrier) const;
  int64_t phase_meant(const Mbarrier& barrier, int64_t parity) const;
  void wait_for_phase(const BarrierLanes& at, int64_t parity);

  // ---- tma.cpp
  void execute_tma(const ir::Copy& op, const Step& step, Mask mask);
  // Into the shared memory of the barrier's block; `reads`: from global memory too.
  void tma_load(const TmaBox& box, const BarrierLanes& at, int64_t lane, bool reads);
  std::vector<SimulatedBlock*> targets(const ir::Copy& op, int64_t lane);
  void tma_store(const TmaBox& box, const ir::Copy& op, int64_t lane);
  void touch_global_row(const TmaBox& box, const TmaRow& row, bool stores, std::optional<ir::AtomicOp> update,
                        int64_t lane);
  // An operation that is issued now touches 16 bytes of the block's shared memory.
  void issue_async(SimulatedBlock& block, const BufferCode& buffer, uint64_t cell, const AsyncAccess& me,
                   std::span<const Witness> who, int64_t lane);
  [[noreturn]] void fail_async(const BufferCode& buffer, const std::string& doing, int64_t lane,
                               const AsyncConflict& conflict);

  // ---- wgmma.cpp
  void execute(const ir::Wgmma& op, const Step& step, Mask mask) override;
  void commit_wgmma(const Step& step, Mask mask);
  void drain_wgmma(const ir::Drain& op, const Step& step, Mask mask);
  void fence_registers(const Step& step, Mask mask);
  // Ordinary code touches registers.
  void touch_registers(const Place& place, int64_t count, Mask mask);
  void touch_registers(const Place& place, const RegisterRange& range, int64_t lane);
  // The registers that a fence or drain names.
  std::vector<RegisterRange> ranges_named(const Step& step, Mask mask);
  RegisterRange range_of(const Place& place, int64_t count, Mask mask) const;
  // The registers of a region are given to a wgmma: fenced, and no other one's.
  RegisterWatch::InFlight use_registers(const Step& step, const interpreter::RegionCode& region, int64_t count,
                                        Mask mask, Place& place);
  Warpgroup& warpgroup();
  int64_t wgmma_agent() const;
  void check_warpgroup(const Step& step, Mask mask, const char* what);
  MatrixOperand operand(const interpreter::RegionCode& region, DType type, int64_t rows, int64_t k, bool transposed,
                        Mask mask);
  void read_operand(const MatrixOperand& operand, bool k_outside, float* out, std::vector<uint32_t>* cells);
  void touch_cells(const MatrixOperand& operand, const std::vector<uint32_t>& cells);
  Warpgroup::Multiply& join_multiply(const Step& step, std::array<int64_t, 2> address, bool& first);
  void multiply_rows(const target::WgmmaInstruction& row, int64_t n, const float* a, const float* b, const int64_t* met,
                     const Place& c, bool clear);
  void multiply_doubles(const target::MmaInstruction& row, const Place& a, const Place& b, const Place& c);
  std::array<uint32_t, kWarpThreads> metadata_words(const Step& step, Mask mask);
  // Where along k the elements of 16 sparse rows stand, each `depth` long.
  void find_met(DType type, const float* a, const std::array<uint32_t, kWarpThreads>& words, int64_t depth,
                int64_t* met);

  SimulatedBlock& home_;
  Device& device_;
  RegisterWatch watch_;
  Multiplies multiplies_;
  int64_t cluster_meeting_ = 0;  // the last at which it has arrived
  bool arrived_at_cluster_ = false;
  const Step* last_store_ = nullptr;
  int64_t registers_a_thread_ = 0;
  WarpClock clock_;
  Traffic last_access_;  // of touch()
  double loaded_ = 0;    // when the last TMA load is there
};

}  // namespace tilewright::simulator
