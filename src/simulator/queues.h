// The queues of asynchronous copies, one a thread (PTX ISA, cp.async.commit_group and wait_group): groups retire in
// order.
#pragma once
#include <cstdint>
#include <deque>
#include <vector>

namespace tilewright::simulator {

struct CellRange {
  uint64_t first, last;  // both included, of shared memory
};

class Queues {
 public:
  explicit Queues(int64_t threads) : queues_(static_cast<size_t>(threads)) {}

  void add(int64_t thread, CellRange cells) { at(thread).open.push_back(cells); }
  void commit(int64_t thread) {
    Queue& q = at(thread);
    q.groups.push_back(std::move(q.open));
    q.open.clear();
  }
  // What has landed once at most `pending` groups are left.
  std::vector<CellRange> drain(int64_t thread, int64_t pending) {
    Queue& q = at(thread);
    std::vector<CellRange> landed;
    for (; static_cast<int64_t>(q.groups.size()) > pending; q.groups.pop_front())
      landed.insert(landed.end(), q.groups.front().begin(), q.groups.front().end());
    return landed;
  }
  // What nobody has waited for.
  std::vector<CellRange> reset() {
    std::vector<CellRange> left;
    for (int64_t t = 0; t < static_cast<int64_t>(queues_.size()); ++t) {
      commit(t);
      for (const CellRange& cells : drain(t, 0)) left.push_back(cells);
    }
    return left;
  }

 private:
  struct Queue {
    std::vector<CellRange> open;
    std::deque<std::vector<CellRange>> groups;
  };
  Queue& at(int64_t thread) { return queues_[static_cast<size_t>(thread)]; }
  std::vector<Queue> queues_;
};

}  // namespace tilewright::simulator
