// When things would happen: clocks of warps and of the units of a multiprocessor, a model that the simulator feeds as
// it runs. What waits for something goes on when that is done; what needs a unit has it after those that asked before.
// Nothing that the simulator finds or computes depends on it.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tilewright/diagnostic.h"

namespace tilewright::simulator {

struct TimelineEvent {
  enum class Track : uint8_t { Warp, Tma, Matrix, Barrier };  // of a block
  uint32_t launch = 0, block = 0;
  Track track = Track::Warp;
  uint32_t number = 0;  // of the warp, the quarter of the tensor cores, the mbarrier
  std::string what;     // "reads shared memory", "waits for full[2]"
  SourceLocation location;
  double begin = 0, end = 0;  // clocks from the beginning of the launch
  int64_t bytes = 0;          // that a copy moves
};

struct Timeline {
  // Blocks beyond these are not looked at, nor is anything behind so many events.
  int64_t blocks = 8;
  size_t most = 200000;

  struct Launch {
    std::string name;
    int64_t threads = 0;
    std::map<uint32_t, std::string> barriers;  // names by number
  };
  std::vector<Launch> launches;
  std::vector<TimelineEvent> events;
  bool is_full() const { return events.size() >= most; }
};

// The units of a block's multiprocessor, which it has to itself.
struct UnitClocks {
  double tma = 0;
  std::array<double, 4> matrix{};  // a quarter for each of four warps
};

// Of an mbarrier, or of another place where threads meet.
struct MeetingClock {
  double arriving = 0, met = 0;  // the last arrival of the phase that is under way; the last complete phase
  void arrive(double now) { arriving = arriving > now ? arriving : now; }
  void complete() { met = arriving > met ? arriving : met, arriving = 0; }
};

// Groups of operations that run on by themselves: committed in order, each done at a time.
struct GroupClock {
  double open = 0;           // the group that is not committed
  std::vector<double> done;  // those that are
  void add(double end) { open = open > end ? open : end; }
  void commit() {
    done.push_back(done.empty() || open > done.back() ? open : done.back());
    open = 0;
  }
  // When all but so many are done.
  double drained(int64_t pending) const {
    const auto left = static_cast<int64_t>(done.size()) - pending;
    return left > 0 ? done[static_cast<size_t>(left - 1)] : 0;
  }
};

// The clock of a warp, and what it writes down.
class WarpClock {
 public:
  void begin(Timeline* timeline, uint32_t block, uint32_t warp);
  bool runs() const { return timeline_ != nullptr; }
  double now() const { return now_; }

  // It is busy. Neighbours of one kind and line are one event, whose latency counts once.
  void work(const char* what, const SourceLocation& at, double clocks, double latency = 0);
  // It does not go on before `until`.
  void wait(std::string what, const SourceLocation& at, double until);
  // It hands an operation to a unit that is free from `free` on. Gives when it is done, `latency` later than the unit.
  double hand(TimelineEvent::Track unit, uint32_t number, double& free, std::string what, const SourceLocation& at,
              double clocks, double latency, int64_t bytes = 0);
  // A phase of an mbarrier.
  void phase(uint32_t number, const std::string& name, std::string what, const SourceLocation& at, double begin,
             double end);
  GroupClock multiplies, stores, copies;

 private:
  void add(TimelineEvent event);

  Timeline* timeline_ = nullptr;
  uint32_t block_ = 0, warp_ = 0;
  double now_ = 0;
  size_t last_ = SIZE_MAX;  // the event that work may extend
};

}  // namespace tilewright::simulator
