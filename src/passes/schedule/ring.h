// A ring hands tiles on: a producer fills its slots, one after the other and again and again; consumers wait for a
// fill, use it and release the slot. This is what each of them writes for it, whatever brings the tiles.
#pragma once
#include "passes/schedule/slots.h"

namespace tilewright::passes {

struct SlotRing {
  enum class Filled : uint8_t {
    TmaBytes,  // by copies that tell `full` of their bytes
    Arrive,    // by a warp, which arrives at `full` when it is done
    CpAsync,   // by the consumers themselves: a fill is a group of the queue cp_async
    Threads,   // by cp.async of the producer's threads, each of which arrives at `full`, beside copies that tell it of
               // their bytes
  };
  enum class Released : uint8_t {
    Arrive,  // by warps that arrive at `empty`
    Block,   // by all threads, who meet while they wait for the fill that follows
    Never,   // there is one fill, and no slot of its own for it
  };
  std::vector<ir::BufferId> tiles = {};  // as the program has them
  int64_t slots = 1;
  int64_t bytes = 0;    // that come by TMA, of a slot
  int64_t threads = 0;  // of the producer: Threads
  int64_t panels = 1;   // pieces of a fill that come one by one, each with an mbarrier of its own: TmaBytes
  Filled filled = Filled::TmaBytes;
  Released released = Released::Arrive;
  bool filled_in_turn = false;  // CpAsync: behind its last reader, not behind the wait of the next turn
  ir::Expr peer = {};  // a block of the cluster that fills a part of the slots, as this one does of its: both are told
                       // when a slot is released; none: no other does
  // What open_ring makes: the tiles with a dimension of slots in front, and the mbarriers.
  std::vector<ir::BufferId> slots_of = {};
  ir::BufferId full = {}, empty = {};
};
// The ring with its buffers. `consumers`: the warps that release a slot.
SlotRing open_ring(ir::TileProgram& program, const ir::Launch& launch, const std::string& name, SlotRing ring,
                   int64_t consumers);

// Fill `count` (from 0, int32) of a ring: which slot it is in, and the parity of that round of the slots.
struct Turn {
  ir::Expr slot, parity;
};
Turn turn_of(int64_t slots, const ir::Expr& count);

// The slot in the place of the tiles: adds to what IntoSlots takes.
void use_slot(const SlotRing& ring, const ir::Expr& slot, const ir::ProgramTables& program,
              std::map<ir::BufferId, IntoSlots::Slot>& all);

// The producer: waits for the slot, brings each panel by its code, tells of it. `exists`: there is such a fill; none:
// always. The code's copies are already to the slot, or are put there later.
ir::Body fill(const SlotRing& ring, const Turn& turn, std::vector<ir::Body> panels, ir::LocationId at,
              const ir::Expr& exists = {});
// The same of one panel of TMA's bytes, of which only a part comes unless `whole` holds.
struct Part {
  ir::Expr whole;
  ir::Body copies;
  ir::Expr bytes;
};
ir::Body fill(const SlotRing& ring, const Turn& turn, ir::Body copies, Part part, ir::LocationId at);
// A consumer: waits for the fill, or a panel of it, and releases its slot.
ir::Body wait_full(const SlotRing& ring, const Turn& turn, ir::LocationId at, int64_t panel = 0);
ir::Body release(const SlotRing& ring, const ir::Expr& slot, ir::LocationId at);

}  // namespace tilewright::passes
