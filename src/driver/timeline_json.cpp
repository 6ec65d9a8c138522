#include "driver/timeline_json.h"

#include <nlohmann/json.hpp>
#include <set>

#include "layout/fragment.h"
#include "support/diagnostic.h"
#include "target/unit_rates.h"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;
using Event = simulator::TimelineEvent;
using simulator::Timeline;

// Numbers of "threads" of a block: warps first, then units, then mbarriers, as they are sorted.
constexpr int64_t kMatrixRows = 1000, kTmaRow = 1100, kBarrierRows = 1200;

int64_t row_of(const Event& e) {
  switch (e.track) {
    case Event::Track::Warp: return e.number;
    case Event::Track::Matrix: return kMatrixRows + e.number;
    case Event::Track::Tma: return kTmaRow;
    case Event::Track::Barrier: return kBarrierRows + e.number;
  }
  return 0;
}

std::string name_of_row(const Event& e, const Timeline::Launch& launch) {
  const int64_t first = e.number * kWarpThreads;
  switch (e.track) {
    case Event::Track::Warp:
      return fmt::format("warp {}, threads {} to {}", e.number, first,
                         std::min(first + kWarpThreads, launch.threads) - 1);
    case Event::Track::Matrix: return fmt::format("tensor cores, quarter {}", e.number);
    case Event::Track::Tma: return "TMA";
    case Event::Track::Barrier: return "mbarrier " + launch.barriers.at(e.number);
  }
  return "";
}

int64_t process_of(const Event& e) { return int64_t{e.launch} * 100000 + e.block; }

Json metadata(const char* what, const Event& e, const std::string& name) {
  Json out = {{"ph", "M"}, {"name", what}, {"pid", process_of(e)}, {"args", {{"name", name}}}};
  if (std::string_view(what) == "thread_name") out["tid"] = row_of(e);
  return out;
}

}  // namespace

std::string to_json(const Timeline& timeline) {
  Json events = Json::array();
  std::set<int64_t> processes;
  std::set<std::pair<int64_t, int64_t>> rows;
  for (const Event& e : timeline.events) {
    const Timeline::Launch& launch = timeline.launches[e.launch];
    const int64_t process = process_of(e), row = row_of(e);
    if (processes.insert(process).second)
      events.push_back(metadata("process_name", e, fmt::format("{}, block {}", launch.name, e.block)));
    if (rows.emplace(process, row).second) {
      events.push_back(metadata("thread_name", e, name_of_row(e, launch)));
      events.push_back({{"ph", "M"},
                        {"name", "thread_sort_index"},
                        {"pid", process},
                        {"tid", row},
                        {"args", {{"sort_index", row}}}});
    }
    Json args = {{"clocks", e.end - e.begin}};
    if (e.location.known()) args["line"] = e.location.line, args["file"] = e.location.file;
    if (e.bytes > 0) args["bytes"] = e.bytes;
    events.push_back({{"ph", "X"},
                      {"name", e.what},
                      {"pid", process},
                      {"tid", row},
                      {"ts", e.begin / target::kClock},
                      {"dur", (e.end - e.begin) / target::kClock},
                      {"args", std::move(args)}});
  }
  Json out = {{"displayTimeUnit", "ns"},
              {"otherData",
               {{"of", "the simulator's order, by a model of one multiprocessor a block"},
                {"clocks_a_microsecond", target::kClock},
                {"blocks", timeline.blocks},
                {"whole", !timeline.is_full()}}},
              {"traceEvents", std::move(events)}};
  return out.dump();
}

}  // namespace tilewright
