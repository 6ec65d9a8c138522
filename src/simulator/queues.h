// The queues of asynchronous copies, one a thread (PTX ISA, cp.async.commit_group and wait_group, and those of
// cp.async.bulk): groups retire in order.
#pragma once
#include <deque>
#include <optional>
#include <vector>

#include "simulator/clocks.h"

namespace tilewright::simulator {

struct CellRange {
  uint64_t first, last;  // both included
};
struct StoredCells {
  uint32_t root;  // in global memory
  CellRange cells;
};

class Queues {
 public:
  explicit Queues(int64_t threads) : queues_(static_cast<size_t>(threads)), stores_(static_cast<size_t>(threads)) {}

  void add(int64_t thread, CellRange cells) { at(thread).open.push_back(cells); }
  void commit(int64_t thread) {
    Queue& q = at(thread);
    q.groups.push_back(std::move(q.open));
    q.open.clear();
  }
  // All that the thread has copied, in groups or not.
  std::vector<CellRange> take_all(int64_t thread) {
    commit(thread);
    return drain(thread, 0);
  }
  // What has landed once at most `pending` groups are left.
  std::vector<CellRange> drain(int64_t thread, int64_t pending) {
    Queue& q = at(thread);
    std::vector<CellRange> landed;
    for (; static_cast<int64_t>(q.groups.size()) > pending; q.groups.pop_front())
      landed.insert(landed.end(), q.groups.front().begin(), q.groups.front().end());
    return landed;
  }

  // ---- bulk stores. Groups count from 1.
  Clock add_store(int64_t thread) {
    Stores& q = stores_of(thread);
    return q.last = q.committed + 1;
  }
  void add_stored(int64_t thread, StoredCells cells) {
    Stores& q = stores_of(thread);
    q.stored.push_back({q.committed + 1, cells});
  }
  void commit_stores(int64_t thread) { ++stores_of(thread).committed; }
  // The thread knows now that all but `pending` groups have read what they store.
  void drain_stores(int64_t thread, int64_t pending, Clock now) {
    Stores& q = stores_of(thread);
    while (static_cast<int64_t>(q.drained.size()) + pending < q.committed) q.drained.push_back(now);
  }
  // What all but `pending` groups have stored, and nobody has been told of.
  std::vector<StoredCells> take_written(int64_t thread, int64_t pending) {
    Stores& q = stores_of(thread);
    std::vector<StoredCells> out;
    for (; !q.stored.empty() && q.stored.front().first + pending <= q.committed; q.stored.pop_front())
      out.push_back(q.stored.front().second);
    return out;
  }
  // The thread's clock when it knew.
  std::optional<Clock> stores_drained_at(int64_t thread, Clock group) const {
    const std::vector<Clock>& drained = stores_[static_cast<size_t>(thread)].drained;
    return group <= drained.size() ? std::optional(drained[group - 1]) : std::nullopt;
  }
  bool has_stores_left(int64_t thread) {
    const Stores& q = stores_of(thread);
    return q.last > q.drained.size();
  }

  // What nobody has waited for.
  std::vector<CellRange> reset() {
    for (Stores& q : stores_) q = {};
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
  struct Stores {
    Clock committed = 0, last = 0;  // groups; the last with a store
    std::vector<Clock> drained;
    std::deque<std::pair<int64_t, StoredCells>> stored = {};  // by group
  };
  Queue& at(int64_t thread) { return queues_[static_cast<size_t>(thread)]; }
  Stores& stores_of(int64_t thread) { return stores_[static_cast<size_t>(thread)]; }
  std::vector<Queue> queues_;
  std::vector<Stores> stores_;
};

}  // namespace tilewright::simulator
