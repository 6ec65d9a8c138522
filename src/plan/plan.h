// What is decided about one launch for a GPU whose copies run by themselves: which warps do what, which tiles they hand
// on, how results leave. Plain data that can be printed and compared; nothing here changes a program.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/program.h"

namespace tilewright::plan {

// Other threads and steps than the program's.
struct Fit {
  ir::VarId half_steps_of;  // the loop, by its variable: half of a step at a time
  ir::VarId wide_steps_of;  // ..., several of its steps at a time: products of short rows (fit_steps.h)
  int64_t at_once = 1;      // so many
  int64_t threads = 0;      // that compute; 0: as many as the program has
  int64_t live = 0,
          own = 0;  // registers that tiles take in a thread: under the plan, and by the program; 0: either fits
  bool any() const { return half_steps_of.valid() || wide_steps_of.valid() || threads > 0; }
  bool operator==(const Fit&) const = default;
};

struct Schedule;  // a kind of them (schedule.h)

// A kind of schedule that a launch has, with the value of its line.
struct Use {
  const Schedule* of = nullptr;
  int64_t number = 0;
  ir::BufferId tile = {};
  bool operator==(const Use&) const = default;
};

// Which tiles of the grid a block takes.
struct Work {
  enum class Kind : uint8_t { OneTile, Persistent } kind = Kind::OneTile;  // Persistent: one after the other
  int64_t blocks = 0;              // Persistent: at most so many, one a multiprocessor
  bool reverse_odd_waves = false;  // who had much gets little: tiles are uneven
  bool drawn = false;              // of threads that bring tiles ahead: who is done draws the next number of a counter
  int64_t blocks_per_multiprocessor = 1;
  std::vector<Use> uses = {};  // what changes the launch before its rings are found, in the order of the table
  bool operator==(const Work&) const = default;

  const Use* find(const Schedule& schedule) const;
  bool has(const Schedule& schedule) const { return find(schedule) != nullptr; }
  // By one of them that stands in the place of the kind: blocks are no longer those of the program's grid.
  const Use* instead_of_kind() const;
  // A block has results of several tiles by one of them.
  bool gathers_tiles() const;
  // The tile of a ring that neighbouring blocks bring for each other; none.
  ir::BufferId shared() const;
};

// Warps of a block with one job.
struct Role {
  enum class Job : uint8_t { Load, Compute } job = Job::Compute;
  int64_t first_warp = 0, warps = 4;
  int64_t registers = 0;  // a thread has; 0: as they come
  int64_t loading = 0;    // Load: so many of the warps do, the first of them
  enum class Takes : uint8_t { All, TilesInTurn, IterationsInTurn } takes = Takes::All;
  int64_t instance = 0, instances = 1;  // of roles that take something in turn
  bool operator==(const Role&) const = default;
};

// Tiles that are brought and given back together.
struct Ring {
  std::vector<ir::BufferId> tiles;
  int64_t slots = 1, bytes = 0;  // bytes of a slot
  bool ahead = false;            // of a pipelined loop; else what a tile of the grid needs once
  int half = -1;                 // of the tile's columns: the left (0) or the right; -1: all of them
  enum class Boxes : uint8_t {
    Whole,      // they do not reach beyond their tensors by much
    Clipped,    // once each slot has its zeros, only what lies inside comes (analysis/beyond.h)
    Unclipped,  // a line says so
  } boxes = Boxes::Whole;
  bool operator==(const Ring&) const = default;
};

// How the turns of a loop with products lie beside each other; in a loop without an order each turn waits for its own.
struct Order {
  enum class How : uint8_t {
    Overlapped,   // a turn's product may run on while the next turn's operands are waited for
    MadeBeside,   // likewise, and what the next turn multiplies is made beside it
    Skewed,       // of two products, the second of a turn runs beside what the next turn makes of its first
    Alternating,  // the product of a turn runs beside what is made of the one before, which has an accumulator of its
                  // own
  } how = How::Overlapped;
  ir::VarId loop;  // by its variable
  bool operator==(const Order&) const = default;
};

// How results leave: in one piece; in chunks of columns (and rows) of which one is written while the one before is
// read; in chunks of rows, where warpgroups have their own columns; as the program says; straight from registers, to
// memory or to other registers, where the program goes by a shared buffer that nothing else needs. Chunks take less
// room and more barriers, registers none at all and write less to a line at a time.
enum class Staging : uint8_t { Whole, Chunks, RowChunks, None, Straight };
constexpr bool in_chunks(Staging how) { return how == Staging::Chunks || how == Staging::RowChunks; }
struct Epilogue {
  Staging how = Staging::None;
  bool by_columns = false;           // a piece in one may leave by columns: the block does it once
  std::vector<ir::BufferId> staged;  // fragments that go to global memory through shared memory, by TMA
  bool operator==(const Epilogue&) const = default;
};

// What the launch might have had, and why it has not: one of these, or a kind of schedule, by its word.
struct Rejection {
  static constexpr const char *kLoader = "a loader", *kIterationTeams = "teams by iteration", *kStaging = "staging",
                              *kOverlap = "overlap";
  std::string of, why;
  bool operator==(const Rejection&) const = default;
};

// A launch without roles and rings is left as it is, but for gemms that clear what they add to (`clears`).
struct Plan {
  Fit fit;
  bool clears = false;
  Work work;
  std::vector<Role> roles;
  std::vector<Ring> rings;
  bool overlap = false;  // products may run on while something else is done: loops have orders, waits come late
  std::vector<Order> orders;
  Epilogue epilogue;
  std::vector<Rejection> rejected;
  const Schedule* whole = nullptr;  // the kind of schedule that plans all of the launch, without roles

  bool has_loader() const { return !roles.empty(); }
  // Its own threads bring a tile's rings while they compute the one before.
  bool brings_ahead() const { return roles.empty() && !rings.empty(); }
  // Whether the launch is another than the program's.
  bool changes() const { return has_loader() || whole; }
  bool takes(Role::Takes what) const;
  // What a tile of the grid needs once comes while the one before is computed.
  bool next_tile_ahead() const;
  std::optional<Order::How> order_of(ir::VarId loop) const;
  // Of the first role of the job; 0: there is none, or registers come as they do.
  int64_t registers_of(Role::Job job) const;
  bool is_persistent() const { return work.kind == Work::Kind::Persistent; }
  // Empty: it has them, or nothing is against them.
  std::string why_no_loader() const { return why_no(Rejection::kLoader); }
  std::string why_no_iteration_teams() const { return why_no(Rejection::kIterationTeams); }
  std::string why_no_staging() const { return why_no(Rejection::kStaging); }
  std::string why_no_overlap() const { return why_no(Rejection::kOverlap); }
  bool operator==(const Plan&) const = default;

 private:
  std::string why_no(const char* what) const;
};

// What the tiles of a ring are called where they are slots.
std::vector<std::string> names_of(const Ring& ring, const ir::ProgramTables& program);
// What a fit changes, and what a kind of schedule does, as lines for people.
std::string text(const Fit& fit, const ir::ProgramTables& program);
std::string text(const Use& use, const ir::ProgramTables& program);
// The value in the line of a schedule.
std::string value_of(const Use& use, const ir::ProgramTables& program);
// A line for each part that is decided, with the names of the program that the plan is of.
std::vector<std::string> lines_of(const Plan& plan, const ir::ProgramTables& program);

}  // namespace tilewright::plan
