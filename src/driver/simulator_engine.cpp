#include "driver/simulator_engine.h"

#include <nlohmann/json.hpp>

#include "driver/build_plan.h"
#include "driver/canonical.h"
#include "driver/cuda_engine.h"
#include "driver/interpreter_engine.h"
#include "driver/versions.h"
#include "passes/pipeline.h"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;
using simulator::LaunchReport;
using simulator::Traffic;

Json json_of(const Traffic& t) {
  return {{"shared_accesses", t.shared_accesses},
          {"shared_wavefronts", t.shared_wavefronts},
          {"shared_wavefronts_ideal", t.shared_ideal},
          {"global_accesses", t.global_accesses},
          {"global_sectors", t.global_sectors},
          {"global_sectors_ideal", t.global_ideal},
          {"bytes_moved", t.bytes_moved},
          {"bytes_used", t.bytes_used},
          {"atomics", t.atomics},
          {"barriers", t.barriers}};
}

Json json_of(const LaunchReport& r) {
  Json lines = Json::array();
  for (const simulator::LineTraffic& l : r.lines) {
    Json row = {{"file", l.location.file}, {"line", l.location.line}};
    row.update(json_of(l.traffic));
    lines.push_back(std::move(row));
  }
  return {{"launch", r.name},          {"blocks", r.blocks},
          {"threads", r.threads},      {"shared_bytes", r.shared_bytes},
          {"total", json_of(r.total)}, {"lines", std::move(lines)}};
}

class SimulatorCallee : public runtime::Callee {
 public:
  SimulatorCallee(ir::ThreadProgram program, const simulator::SimulateOptions& options, TrafficSink sink, bool timeline)
      : program_(std::move(program)), options_(options), sink_(std::move(sink)), timeline_(timeline) {}

  void run(const runtime::BoundCall& call, runtime::CallReport&) override {
    simulator::Timeline timeline;  // calls may run at the same time
    simulator::SimulateOptions options = options_;
    if (timeline_) options.timeline = &timeline;
    auto reports = simulator::simulate(program_, binding_of(program_, call), options);
    if (sink_) sink_(std::move(reports), options.timeline);
  }

 private:
  ir::ThreadProgram program_;
  simulator::SimulateOptions options_;
  TrafficSink sink_;
  bool timeline_;
};

}  // namespace

std::unique_ptr<runtime::Callee> simulator_callee(ir::ThreadProgram program, const simulator::SimulateOptions& options,
                                                  TrafficSink sink, bool timeline) {
  return std::make_unique<SimulatorCallee>(std::move(program), options, std::move(sink), timeline);
}

Executable counting_executable(const ir::TileProgram& program, simulator::SimulateOptions options, TrafficSink sink,
                               bool timeline) {
  const ir::TileProgram tiles = canonical(program);
  options.count_traffic = true;
  const auto make = [options, sink = std::move(sink), timeline](const ir::TileProgram& p) -> runtime::Version {
    ir::ThreadProgram threads = passes::lower_to_threads(p, options.target).threads;
    runtime::LaunchPlan own = build_plan(p);
    demand_of_calls(threads, own);
    return {std::move(own), simulator_callee(std::move(threads), options, sink, timeline), ""};
  };
  return with_fast_version(tiles, build_plan(tiles), "simulator", make);
}

std::string to_json(const std::string& program, const std::vector<LaunchReport>& reports) {
  Json out = {{"program", program}, {"launches", Json::array()}};
  for (const LaunchReport& r : reports) out["launches"].push_back(json_of(r));
  return out.dump(2);
}

}  // namespace tilewright
