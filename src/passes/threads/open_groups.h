// Which registers wgmma may have at work, statement by statement.
#pragma once
#include <deque>
#include <set>

#include "ir/program.h"

namespace tilewright::passes {

// The open groups of the code so far, the oldest first: they end in the order in which they were closed. Behind control
// flow that opens or ends any, how many there are is not known.
class OpenGroups {
 public:
  void use(ir::BufferId registers) { last_.insert(registers); }
  void use_since(ir::BufferId registers) { older_.insert(registers); }  // a turn before
  void commit() { groups_.push_back(std::exchange(last_, {})); }
  // What is in use before a wait that leaves so many open; from here on, what is behind it.
  std::set<ir::BufferId> drain(int64_t pending);
  std::set<ir::BufferId> all() const;
  void forget_order() { older_ = all(), groups_.clear(), last_.clear(); }
  void join(const OpenGroups& other);  // of another way to here

 private:
  std::set<ir::BufferId> older_, last_;  // of unknown groups; of the group that is not closed
  std::deque<std::set<ir::BufferId>> groups_;
};

// Whether the statements issue, close or wait for groups.
bool has_groups(const ir::Body& body);
// Accumulators of groups that are open at the end of a loop's body, and so at the start of its next turn.
std::set<ir::BufferId> open_at_end(const ir::Body& body);

}  // namespace tilewright::passes
