#include "simulator/timeline.h"

#include <algorithm>

namespace tilewright::simulator {

using Track = TimelineEvent::Track;

void WarpClock::begin(Timeline* timeline, uint32_t block, uint32_t warp) {
  *this = {};
  if (!timeline || block >= timeline->blocks || timeline->is_full()) return;
  timeline_ = timeline, block_ = block, warp_ = warp;
}

void WarpClock::add(TimelineEvent event) {
  if (timeline_->is_full()) return;
  event.launch = static_cast<uint32_t>(timeline_->launches.size() - 1), event.block = block_;
  timeline_->events.push_back(std::move(event));
}

void WarpClock::work(const char* what, const SourceLocation& at, double clocks, double latency) {
  if (!runs()) return;
  if (last_ < timeline_->events.size()) {
    TimelineEvent& last = timeline_->events[last_];
    if (last.what == what && last.location.line == at.line && last.end == now_) {
      last.end = now_ += clocks;
      return;
    }
  }
  const double begin = now_;
  now_ += clocks + latency;
  last_ = timeline_->events.size();
  add({0, 0, Track::Warp, warp_, what, at, begin, now_, 0});
}

void WarpClock::wait(std::string what, const SourceLocation& at, double until) {
  if (!runs() || until <= now_) return;
  add({0, 0, Track::Warp, warp_, std::move(what), at, now_, until, 0});
  now_ = until;
}

double WarpClock::hand(Track unit, uint32_t number, double& free, std::string what, const SourceLocation& at,
                       double clocks, double latency, int64_t bytes) {
  if (!runs()) return 0;
  constexpr double kIssue = 4;
  work(unit == Track::Tma ? "issues TMA" : "issues products", at, kIssue);
  const double begin = std::max(now_, free);
  free = begin + clocks;
  add({0, 0, unit, number, std::move(what), at, begin, free, bytes});
  return free + latency;
}

void WarpClock::phase(uint32_t number, const std::string& name, std::string what, const SourceLocation& at,
                      double begin, double end) {
  if (!runs()) return;
  timeline_->launches.back().barriers.emplace(number, name);
  add({0, 0, Track::Barrier, number, std::move(what), at, begin, std::max(begin, end), 0});
}

}  // namespace tilewright::simulator
