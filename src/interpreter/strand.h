// Threads of one block that run in lockstep, and the block they share.
#pragma once
#include <exception>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>

#include "interpreter/code.h"
#include "support/diagnostic.h"

namespace tilewright::interpreter {

// The bytes of a buffer on chip, with a shadow: bit 0 of written[i] stands for the low half of byte i, bit 1 for the
// other. A local buffer has a copy for every thread, one after the other.
struct Memory {
  std::byte* data = nullptr;
  uint8_t* written = nullptr;  // none for global memory
  int64_t bytes = 0;
  int64_t thread_bytes = 0;  // Local: what one thread has
  bool finalized = false;    // reducers: may be read
};

struct Barrier {
  int64_t count = 0;      // arrivals a phase takes
  int64_t pending = 0;    // arrivals still missing
  int64_t bytes = 0;      // announced and not yet there
  int64_t completed = 0;  // phases
};

class Strand;
class Block;

// Lanes of a value that read what is not written; the mistake that it is for who uses them.
struct Holes {
  std::vector<uint8_t> lanes;  // empty: none, or, with a mistake, all
  std::exception_ptr first;
};

// Lets strands take turns at blocking operations.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // Returns once `ready` gives true, or throws the deadlock.
  virtual void wait(Strand& strand, std::function<bool()> ready, std::function<std::string()> what) = 0;
};

// Where strands meet: a tile op of several strands is executed by the last that arrives.
struct Meeting {
  int arrived = 0;
  int64_t held = 0;   // how often it took place
  int64_t tally = 0;  // votes
  Value result;
};

struct NamedBarrier {
  int64_t arrived = 0, held = 0;
};

// Blocks that reach each other's shared memory.
struct Cluster {
  std::vector<Block*> blocks;             // by their number in the cluster
  Meeting sync;                           // of all strands
  std::map<const Step*, Meeting> copies;  // of one of each block, where one block copies for several
  int strands = 0;
};

// What all blocks of a launch share.
struct Grid {
  const ProgramCode& program;
  const LaunchCode& code;
  Scheduler* scheduler = nullptr;
  Meeting sync;
  int strands = 0;
  // Grows with everything that a loop may wait for: memory that changes, arrivals at barriers, what strands do
  // together.
  uint64_t changes = 0;
};

// On-chip memory and barriers of one block. reset() makes it another block.
class Block {
 public:
  Block(Grid& grid);
  void reset(std::array<int64_t, 3> index);

  Memory& memory(uint32_t root) { return memory_[root]; }
  std::byte* base() const { return base_; }  // of all memory on chip; of a thread program: shared memory
  int64_t bytes() const { return static_cast<int64_t>(written_.size()); }
  uint8_t* written() { return written_.data(); }  // of the byte at base()
  Barrier& barrier(uint32_t root, int64_t index) { return barriers_[root][static_cast<size_t>(index)]; }

  Grid& grid;
  Cluster* cluster = nullptr;  // none: it is alone
  std::array<int64_t, 3> index{};
  std::map<const Step*, Meeting> meetings;
  std::map<int64_t, NamedBarrier> named;

 private:
  std::vector<std::byte> storage_;
  std::byte* base_ = nullptr;
  std::vector<uint8_t> written_;
  std::vector<Memory> memory_;  // by buffer id
  std::map<uint32_t, std::vector<Barrier>> barriers_;
};

// The shape of a buffer at this moment.
struct Extents {
  std::span<const int64_t> shape, strides;
};

// Where the lanes access a buffer.
struct Place {
  const BufferCode* buffer = nullptr;
  Block* block = nullptr;  // whose memory on chip it is
  std::byte* data = nullptr;
  uint8_t* written = nullptr;
  Value offset;                     // elements from data; always inside where the lane is
  const uint8_t* inside = nullptr;  // none: every executing lane is in bounds
};

// A box of a buffer with numbers.
struct Box {
  const BufferCode* buffer = nullptr;
  std::byte* data = nullptr;
  uint8_t* written = nullptr;
  std::vector<int64_t> min, extent, shape, strides;
  int64_t base = 0;  // offset of element (0, ..., 0)
  int64_t count() const {
    int64_t n = 1;
    for (int64_t e : extent) n *= e;
    return n;
  }
};

// What the points of a running Map did to elements that some of them read and others write.
struct PointAccesses {
  const std::set<uint32_t>* watched = nullptr;    // roots
  std::unordered_map<uint64_t, int64_t> read;     // element to the point that read it; kSeveral: more than one did
  std::unordered_map<uint64_t, int64_t> changed;  // element to the point that gave it another value
  static constexpr int64_t kSeveral = -1;
};

// One lockstep context: the threads of a strand, or the points of a Map.
struct Frame {
  LaneShape shape;
  const int64_t* threads = nullptr;  // linear thread of each lane; none: lanes are points only
  Value thread;                      // the same as a value: threads count from 0
  uint8_t *left = nullptr, *skipped = nullptr, *returned = nullptr;  // lanes that broke, continued, returned
  const Step* map = nullptr;
  const int64_t* points = nullptr;  // dealt: point of each lane
  int64_t first_point = 0;
  std::span<const int64_t> extents;
  std::unordered_map<uint64_t, int64_t>* writes = nullptr;  // a Map whose stores may collide: element to point
  PointAccesses* accesses = nullptr;                        // a Map some of whose points read what others write
};

class Strand {
 public:
  Strand(Block& block, const analysis::ThreadSet& set);
  // The threads [first, first + count) by linear index: a warp.
  Strand(Block& block, int64_t first, int64_t count);
  virtual ~Strand() = default;
  Strand(const Strand&) = delete;
  Strand& operator=(const Strand&) = delete;
  // Runs the whole body of the launch.
  virtual void run();

  Block& block() { return block_; }
  const analysis::ThreadSet& set() const { return set_; }
  SourceLocation location() const;
  // "block (1, 0, 0), threads 0 to 127"
  std::string describe() const;

 protected:
  // ---- what a strand that stands for a warp watches
  virtual void on_load(const Place&, Mask) {}
  virtual void on_store(const Place&, const Value&, Mask) {}
  virtual void on_atomic(const ir::Atomic&, const Place&, Mask) {}

  // Whether a store of what is not written leaves it unwritten there, for who reads that.
  virtual bool passes_holes_on(const Place&) const { return false; }
  // The lanes whose stores arrive: what others would store is not looked at.
  virtual Mask without_dropped(const Place& place, Mask mask);

  // ---- expression.cpp
  Value eval(const Node& node, Mask mask);
  Value eval_logical(const Node& node, Mask mask, void* out);
  Value eval_select(const Node& node, Mask mask, void* out);
  Value eval_divide(const Node& node, std::span<const Value> args, Mask mask, void* out);
  // The one value of an operand that all executing lanes agree on.
  Value eval_uniform(const Node& node, Mask mask);
  int64_t eval_int(const Node& node, Mask mask) { return eval_uniform(node, mask).base; }
  Mask narrow(Mask mask, const Value& condition, bool truth);
  int64_t first_lane(Mask mask) const;

  // ---- access.cpp
  Extents extents_of(const BufferCode& buffer, Mask mask);
  Place locate(const BufferCode& buffer, const std::vector<const Node*>& indices, Mask mask);
  const uint8_t* check_bounds(const BufferCode& buffer, std::span<const Value> index, Extents extents, Mask mask);
  // Gives the block whose memory it is; null: global memory.
  Block* attach(const BufferCode& buffer, Mask mask, std::byte*& data, uint8_t*& written, Value& offset);
  // A block of the cluster, by its number.
  Block& block_at(int64_t rank, int64_t lane);
  // Where a buffer with a memory layout has the element, in elements from its start, before and by the swizzle.
  Value offset_in_layout(const MemoryLayout& memory, std::span<const Value> index);
  Value swizzled(const MemoryLayout& memory, const Value& offset);
  bool may_leave_its_root(const BufferCode& view) const;
  // The first bit of a buffer that is no view, and the one behind its last, from where it begins.
  std::pair<int64_t, int64_t> bits_of_root(const BufferCode& root, Mask mask);
  void check_inside(const Place& place, Mask mask);
  void check_inside(const Box& box, Mask mask, int64_t lane);
  [[noreturn]] void leaves_its_root(const BufferCode& view, int64_t lane);
  Value load(const Place& place, Mask mask, void* out);
  void store(const Place& place, const Value& value, Mask mask);
  void store_one(const Place& place, const Value& value);
  // Counts the change that a store is about to make, if it makes one.
  void note_store(const Place& place, const Value& value, Mask mask);
  bool lie_alike(const Place& place, Mask mask) const;
  int64_t* lane_offsets(const Place& place, Mask mask);
  void check_written(const Place& place, const int64_t* offsets, Mask mask);
  void check_collisions(const Place& place, const int64_t* offsets, const void* values);
  int64_t point_of(int64_t lane) const { return frame_.points ? frame_.points[lane] : frame_.first_point + lane; }
  bool is_watched(const Place& place) const {
    return frame_.accesses && frame_.accesses->watched->contains(place.buffer->root);
  }
  void note_reads(const Place& place, Mask mask);
  void note_change(const Place& place, uint64_t element, int64_t lane);
  [[noreturn]] void fail_bounds(const BufferCode& buffer, std::span<const Value> index, Extents extents, int64_t lane);
  [[noreturn]] void fail_unwritten(const BufferCode& buffer, int64_t element, int64_t lane);

  // ---- holes.cpp
  // What the lanes of `holes` are read for is not known yet: reads of what is not written are noted, not refused.
  Value eval_with_holes(const Node& node, Mask mask, Holes& holes);
  // Indices, conditions and divisors are used where they are.
  Value eval_whole(const Node& node, Mask mask);
  Value eval_name(uint32_t slot, Mask mask);
  void note_hole(const BufferCode& buffer, int64_t element, int64_t lane);
  void note_holes(const BufferCode& buffer, int64_t element, Mask mask);
  void note_holes(const Holes& holes, Mask mask);
  Mask without(const Holes& holes, Mask mask);
  void store_holes(const Place& place, const Holes& holes, Mask mask);

  void check_readable(const BufferCode& buffer, int64_t lane);

  // ---- statement.cpp
  // Gives the lanes of a loop their own record of breaks and continues.
  struct LoopScope {
    LoopScope(Strand& strand, bool needed);
    ~LoopScope() { frame.left = left, frame.skipped = skipped; }
    void next();  // the next iteration
    Frame& frame;
    uint8_t *left, *skipped;
    size_t lanes = 0;
  };
  void run(const Steps& steps, Mask mask);
  void step(const Step& step, Mask mask);
  Mask without_jumped(Mask mask);
  void run_body(const Steps& steps, Mask mask);
  void execute(const ir::Let& op, const Step& step, Mask mask);
  void execute(const ir::Store& op, const Step& step, Mask mask);
  void execute(const ir::Atomic& op, const Step& step, Mask mask);
  virtual void execute(const ir::Shuffle& op, const Step& step, Mask mask);
  virtual void execute(const ir::Vote& op, const Step& step, Mask mask);
  void execute(const ir::Call& op, const Step& step, Mask mask);
  void execute(const ir::For& op, const Step& step, Mask mask);
  void execute(const ir::While& op, const Step& step, Mask mask);
  void execute(const ir::If& op, const Step& step, Mask mask);
  void execute(const ir::Break& op, const Step& step, Mask mask);
  void execute(const ir::Continue& op, const Step& step, Mask mask);
  void execute(const ir::Return& op, const Step& step, Mask mask);
  void execute(const ir::Print& op, const Step& step, Mask mask);
  void execute(const ir::Assert& op, const Step& step, Mask mask);
  void execute(const ir::Assume& op, const Step& step, Mask mask);
  void bind(ir::VarId var, const Value& value);
  void vote_of_block(const ir::Vote& op, const Step& step, Mask mask);
  Value atomic_once(const ir::Atomic& op, const Step& step, Mask mask);
  Value atomic_lane(const ir::Atomic& op, const Place& place, int64_t lane, const Value& value, const Value& compare);
  void print_buffer(const ir::Print& op, const BufferCode& buffer, int64_t lane, Mask mask);
  std::string print_head(const ir::Print& op, int64_t lane) const;

  // ---- tile ops: in a file of each
  template <ir::TileOp Op>
  void execute(const Op& op, const Step& step, Mask mask);
  virtual void execute(const ir::Copy& op, const Step& step, Mask mask);

  // ---- map.cpp
  void map_points(const Step& step, std::span<const int64_t> extents, Mask mask);
  void bind_points(const Step& step, std::span<const int64_t> extents, int64_t first, bool affine);
  int64_t rank_in(const analysis::ThreadSet& set, int64_t thread) const;
  void map_dealt(const Step& step, std::span<const int64_t> extents, Mask mask);

  // ---- tile_copy.cpp
  Box box(const RegionCode& region, Mask mask, int64_t lane, bool reads);
  // As the copy says, where other blocks of the cluster get it too, or alone.
  void copy_to_blocks(const ir::Copy& op, const Step& step, const Box& from, const Box& to, Mask mask, int64_t lane);
  // Runs `once` for the whole set, or for every executing thread with its lane if the op works on local buffers.
  void collective(const Step& step, Mask mask, const std::function<void(int64_t lane)>& once);
  void load_row(const Box& box, int64_t offset, int64_t stride, int64_t n, void* out, int64_t lane);
  void store_row(const Box& box, int64_t offset, int64_t stride, int64_t n, const void* in);
  void copy_box(const ir::Copy& op, const Box& from, const Box& to, int64_t lane);
  void copy_im2col(const ir::Copy& op, const Step& step, const Box& to, Mask mask, int64_t lane);
  // That an op writes none of what it reads; `in_place`, element for element it may.
  void check_apart(const Step& step, const Box& from, const Box& to, bool in_place, int64_t lane);
  // All elements of a box, row-major, as lanes of the type.
  void* read_box(const Box& box, DType type, int64_t lane);
  void write_box(const Box& box, DType type, const void* values);

  // ---- order.cpp
  virtual void execute(const ir::Role& op, const Step& step, Mask mask);
  virtual void execute(const ir::Arrive& op, const Step& step, Mask mask);
  virtual void execute(const ir::Expect& op, const Step& step, Mask mask);
  virtual void execute(const ir::Wait& op, const Step& step, Mask mask);
  virtual void execute(const ir::Commit& op, const Step& step, Mask mask);
  virtual void execute(const ir::Drain& op, const Step& step, Mask mask);
  virtual void execute(const ir::Sync& op, const Step& step, Mask mask);
  virtual void execute(const ir::Fence& op, const Step& step, Mask mask);
  virtual void execute(const ir::SetRegisters& op, const Step& step, Mask mask);
  virtual void execute(const ir::Mma& op, const Step& step, Mask mask);
  virtual void execute(const ir::LoadMatrix& op, const Step& step, Mask mask);
  virtual void execute(const ir::StoreMatrix& op, const Step& step, Mask mask);
  virtual void execute(const ir::Wgmma& op, const Step& step, Mask mask);
  virtual void execute(const ir::Elect& op, const Step& step, Mask mask);
  virtual void execute(const ir::InitBarriers& op, const Step& step, Mask mask);
  template <class Op>
  requires(Op::level == ir::Level::Loop) void execute(const Op& op, const Step&, Mask) {
    check_internal(false, "{} in a tile program", op.name);
  }
  // True for the strand that is to execute the op; false, later, for the others of its set.
  bool meet(const Step& step, Mask mask, const std::function<Value()>& last);
  void complete(Block& block, const ElementCode& barrier, int64_t bytes, Mask mask);
  void arrive(const ElementCode& at, Barrier& barrier, int64_t arrivals, int64_t lane);
  Barrier& barrier_at(Block& block, const ElementCode& at, Mask mask, int64_t lane, std::string* name = nullptr);
  void meet_cluster(Meeting& all, int strands, bool arrives, bool waits);
  void check_converged(const Step& step, Mask mask, const char* what);
  void wait(std::function<bool()> ready, std::function<std::string()> what);
  // A chance for others: a loop may wait for memory that they write.
  void yield();
  // Until anything changed after `seen`; a deadlock if nobody is left to change it.
  void wait_for_change(uint64_t seen);
  // Whether this strand acts for its set where something happens once.
  virtual bool leads(const Step& step) const;
  int strands_in(const Step& step) const;

  // ---- diagnosis
  [[noreturn]] void fail_at(Code code, int64_t lane, std::string message, std::string help = {});
  std::string where(int64_t lane) const;
  // "(1, 0, 3)" of a thread by linear index.
  std::string thread_name(int64_t thread) const;

  const ProgramCode& program_;
  const LaunchCode& code_;
  Block& block_;
  analysis::ThreadSet set_;
  std::vector<int64_t> threads_;  // linear index of each lane
  Arena arena_;
  std::vector<Value> slots_;             // by variable
  std::map<uint32_t, Holes> unwritten_;  // by variable: names of what was not written, for who uses them
  Holes* holes_ = nullptr;               // that are noted; null: they are refused
  Frame frame_;
  const Step* current_ = nullptr;
  uint64_t loop_saw_ = UINT64_MAX;  // Grid::changes when the innermost While last began its body; the largest: none
  int64_t lanes_ = 0;               // threads of the strand
  int64_t cluster_meeting_ = 0;     // at which it has arrived
};

}  // namespace tilewright::interpreter
