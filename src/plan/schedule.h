// Kinds of schedules: which there are, and what planning asks of each. One is a row here and a file of its own beside
// this one; what it makes of a launch is a row of passes/schedule/schedules.h and a file there.
#pragma once
#include <array>

#include "plan/decide.h"

namespace tilewright::plan {

// A launch that is planned.
struct Request {
  const ir::ProgramTables& program;
  const ir::Launch& launch;
  const target::GpuTarget& target;
  const Limits& limits;
  const Hints& hints;
};

// What a launch may get where nobody asks: of the plans with these wishes the cheapest, if it costs less than so many
// microseconds; without such a bound, the first that has a loader.
struct Offer {
  std::vector<Wish> wishes;
  std::optional<double> below;
};

// What a schedule changes of a price (price.cpp).
struct Terms {
  int64_t blocks_a_tile = 1;   // which share the turns of its loops
  int64_t parts = 1;           // ... or all that is done for it
  double clocks_a_byte = 0;    // of a sum, that it is handed on before results leave
  double latency = 0;          // clocks until the last of them is there
  double apart = 0;            // by how much longer a tile takes that neighbours share, which are in other clusters
  int64_t runs = 0;            // blocks that take equal runs of turns: no wave is half empty; 0: they take tiles
  double trips = 0;            // of a sum, to memory or back, behind the last turn
  bool stores_beside = false;  // results of a loop's turns are on their way beside what it does
  ir::BufferId halved = {};    // a tile of which a block brings half
  double least_turn = 0, in_step = 1;  // ...: clocks of a turn of teams in turn; by which blocks that wait for each
                                       // other take longer
};

struct Schedule {
  const char* word;       // in lines
  const char* says;       // to people, of the value
  const char* fact = {};  // what explanations call the value as JSON; none: they leave it out

  // ---- its line: 'work WORD NAME=value', or 'work one_tile NAME=value' where it goes with the other kinds of work
  bool is_work = false;
  struct Field {
    const char* name = "";
    int64_t least = 0, most = 0;  // of a number; 0: it is a tile, by its name
    const char* missing = {};     // what a line without it lacks; none: it may be left open
  } field = {};

  // ---- what follows from it
  bool several_tiles = false;  // one block a multiprocessor, which has results of several tiles
  const char* gives_way = {};  // where it leaves rings too few slots it is not taken, and the search says so; none:
                               // it stays

  // ---- who has it
  // Of a launch that is to have it; none: `why` says why it cannot.
  std::optional<Use> (*find)(const Request&, const Wish&, std::string& why) = nullptr;
  // Beside the plan that the launch has without it.
  Offer (*offer)(const Request&, const Plan& alone) = nullptr;
  // A plan of the whole launch, without roles: instead of `find` and `offer`. None: `why` says why, if it is asked for.
  std::optional<Plan> (*whole)(const Request&, std::string& why) = nullptr;
  // Lines that ask for it, for a launch that has another plan.
  std::vector<std::string> (*otherwise)(const Plan&, const ir::ProgramTables&, const ir::Launch&) = nullptr;
  void (*price)(const Use&, Terms&) = nullptr;
};

extern const Schedule kSharedRows;  // blocks of a cluster that have parts of the columns of rows (shared_rows.cpp)
extern const Schedule kTilesAhead;  // blocks whose own threads bring the next tile (tiles_ahead.cpp)
extern const Schedule kSplit;       // blocks of a cluster that share the turns of a loop (split_turns.cpp)
extern const Schedule kStreamK;     // blocks that take runs of turns, wherever tiles begin (stream_k.cpp)
extern const Schedule kPairs;       // pairs of blocks that share a tile of a ring (pairs.cpp)
extern const Schedule kStoreRole;   // a warp that stores what loops leave in their turns (store_role.cpp)

// In the order in which they are asked, and change a launch.
inline constexpr std::array kSchedules = {&kSharedRows, &kTilesAhead, &kSplit, &kStreamK, &kPairs, &kStoreRole};

}  // namespace tilewright::plan
