// tilewright simulate
#include <nlohmann/json.hpp>

#include "driver/build_plan.h"
#include "driver/cuda_engine.h"
#include "driver/simulator_engine.h"
#include "driver/tool/commands.h"
#include "driver/tool/program_call.h"
#include "passes/pipeline.h"
#include "runtime/report.h"

namespace tilewright::tool {
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

void show_row(const std::string& where, const Traffic& t) {
  fmt::print("{:<20}{:>10}{:>10}{:>10}{:>10}{:>12}{:>12}{:>9}\n", where, t.shared_wavefronts, t.shared_ideal,
             t.global_sectors, t.global_ideal, t.bytes_moved, t.bytes_used, t.barriers);
}

void show(const LaunchReport& r) {
  fmt::print("{}: {} blocks of {} threads, {} bytes of shared memory\n", r.name, r.blocks, r.threads, r.shared_bytes);
  fmt::print("{:<20}{:>10}{:>10}{:>10}{:>10}{:>12}{:>12}{:>9}\n", "line", "wavefronts", "ideal", "sectors", "ideal",
             "bytes moved", "used", "barriers");
  for (const simulator::LineTraffic& l : r.lines)
    show_row(l.location.known() ? fmt::format("{}", l.location.line) : "?", l.traffic);
  show_row("total", r.total);
}

}  // namespace

int simulate(const SimulateArguments& arguments) {
  const ProgramCall call(arguments.call);
  if (arguments.json) runtime::replace_print_sink([](std::string_view line) { fmt::print(stderr, "{}", line); });
  const ir::TileProgram tiles = passes::run_passes(order_symbols(call.program()), passes::all_passes(),
                                                   [](const char*, const ir::TileProgram&, double) {});
  simulator::SimulateOptions options;
  options.target = gpu_target(arguments.arch);
  options.seed = arguments.call.seed, options.count_traffic = true;
  std::vector<LaunchReport> reports;
  auto callee = simulator_callee(lower_cuda(tiles, options.target).program, options,
                                 [&](std::vector<LaunchReport> r) { reports = std::move(r); });
  const Executable executable = runtime::make_executable(build_plan(tiles), std::move(callee), "simulator", "");
  const std::vector<NDArray> arrays = call.fresh();
  executable.call(call.list(arrays));
  if (arguments.json) {
    Json out = {{"program", call.program().name}, {"launches", Json::array()}};
    for (const LaunchReport& r : reports) out["launches"].push_back(json_of(r));
    fmt::print("{}\n", out.dump(2));
  } else {
    for (const LaunchReport& r : reports) show(r);
  }
  return kOk;
}

}  // namespace tilewright::tool
