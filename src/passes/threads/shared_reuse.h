// Shared buffers whose lives do not meet may lie over each other: which ones, and where the threads then have to wait
// for each other.
#pragma once
#include "passes/named_barriers.h"

namespace tilewright::passes {

// The first use of a buffer, as a place in the list of statements in which all its uses stand.
struct Seam {
  std::optional<size_t> role;  // number of the statement of the launch that is the role; none: the launch's own list
  size_t at = 0;
  // Of the body of the loop that `at` is, which goes over tiles: every turn begins with neither buffer, and its end is
  // a seam as well.
  std::optional<size_t> of_turn = {};
  bool fence = false;   // asynchronous copies land there, behind what threads did
  bool drain = false;   // copies of the threads' own, cp.async, may not have landed in what lies there before
  bool stored = false;  // TMA may still read what lies there before
  auto operator<=>(const Seam&) const = default;
};

// Who has made the roles of a launch: its program; a plan, whose roles that compute use up all that is loaded; one for
// blocks that take tiles in turn, in a loop of each role's own list.
enum class RolesOf : uint8_t { Program, Plan, TurnsOfTiles };

// Lives of the shared buffers of a lowered launch.
class SharedLives {
 public:
  SharedLives(const ir::ThreadProgram& program, const ir::Launch& launch, const NamedBarriers& barriers, RolesOf owner);
  // Where `late` begins, if `early` is used up there and those who use `late` can wait for each other.
  std::optional<Seam> seam(ir::BufferId early, ir::BufferId late) const;

 private:
  std::optional<Seam> unfenced(ir::BufferId early, ir::BufferId late) const;
  // The numbers of the statements that use a buffer; what an instruction uses that threads do not wait for is used
  // until they do.
  using Uses = std::map<ir::BufferId, std::vector<size_t>>;
  Uses uses_of(const ir::Body& body, bool in_turn = false) const;
  bool only_fills(size_t role, ir::BufferId early) const;
  std::optional<Seam> in_role(size_t role, ir::BufferId early, ir::BufferId late) const;
  std::optional<Seam> in_turns(size_t role, ir::BufferId early, ir::BufferId late) const;
  bool is_told_to_peers(const ir::Body& body, size_t at, ir::BufferId late) const;

  const ir::ThreadProgram& program_;
  const ir::Launch& launch_;
  const NamedBarriers& barriers_;
  const RolesOf owner_;
  bool may_wait_ = true;
  Uses top_;
  std::map<size_t, Uses> roles_;
  std::set<ir::BufferId> stored_from_;       // by TMA, which reads while the threads go on
  std::set<ir::BufferId> written_by_peers_;  // by other blocks of the cluster
  std::set<ir::BufferId> landing_;           // written by asynchronous copies
  std::set<ir::BufferId> by_cp_async_;       // written by those that threads can wait for
  std::set<ir::BufferId> touched_;           // by threads themselves
};

// Lets those who use what begins at the seams wait for each other there.
void wait_at(ir::Launch& launch, const NamedBarriers& barriers, const std::set<Seam>& seams);

}  // namespace tilewright::passes
