#include "passes/named_barriers.h"

#include "ir/operators.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"
#include "passes/lower/intervals.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kHardwareBarriers = 16;

// Numbers that the program names, computed ones as far as their range is known.
std::set<int64_t> taken_by(const Launch& launch) {
  const Intervals vars = ranges_in(launch);
  std::set<int64_t> out;
  walk(launch.body, [&](const Stmt& s) {
    const auto* n = s.as<Sync>();
    if (!n || n->scope != SyncScope::Named) return;
    const Interval numbers = vars.of(n->barrier);
    const int64_t last = std::min(numbers.high, kHardwareBarriers - 1);
    for (int64_t i = std::max<int64_t>(numbers.low, 0); i <= last; ++i) out.insert(i);
  });
  return out;
}

}  // namespace

NamedBarriers::NamedBarriers(const Launch& launch) {
  const std::set<int64_t> taken = taken_by(launch);
  for (int64_t i = 1; i < kHardwareBarriers; ++i)
    if (!taken.contains(i)) free_.push_back(i);
  walk(launch.body, [&](const Stmt& s) {
    const auto* role = s.as<Role>();
    const std::pair range = role ? std::pair(role->begin, role->end) : std::pair<int64_t, int64_t>();
    if (role && std::find(ranges_.begin(), ranges_.end(), range) == ranges_.end()) ranges_.push_back(range);
  });
  // The threads of one warp meet without.
  if (ranges_.size() > free_.size())
    std::erase_if(ranges_, [](const auto& range) { return range.second - range.first <= kWarpThreads; });
}

std::optional<int64_t> NamedBarriers::between(int64_t begin, int64_t end) const {
  const auto found = std::find(ranges_.begin(), ranges_.end(), std::pair(begin, end));
  const auto at = static_cast<size_t>(found - ranges_.begin());
  return found != ranges_.end() && at < free_.size() ? std::optional(free_[at]) : std::nullopt;
}

std::optional<int64_t> NamedBarriers::within(int64_t begin, int64_t end) const {
  const auto found = std::find(ranges_.begin(), ranges_.end(), std::pair(begin, end));
  const auto at = static_cast<size_t>(found - ranges_.begin());
  if (found == ranges_.end() || ranges_.size() + at + 1 > free_.size()) return between(begin, end);
  return free_[free_.size() - 1 - at];
}

std::optional<int64_t> NamedBarriers::take() {
  if (free_.size() <= ranges_.size()) return std::nullopt;
  const int64_t last = free_.back();
  free_.pop_back();
  return last;
}

void no_named_barrier(const ProgramTables& p, LocationId at, int64_t begin, int64_t end) {
  fail(Code::GpuBarriers, p.location(at),
       fmt::format("no named barrier is left for threads {} to {}, who meet here", begin, end - 1),
       "a block has 15: for those that the program names, and one for each range of threads with more than one warp");
}

}  // namespace tilewright::passes
