// tilewright simulate
#include "driver/cuda_engine.h"
#include "driver/simulator_engine.h"
#include "driver/timeline_json.h"
#include "driver/tool/commands.h"
#include "driver/tool/program_call.h"
#include "runtime/report.h"

namespace tilewright::tool {
namespace {

using simulator::LaunchReport;
using simulator::Traffic;

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
  simulator::SimulateOptions options;
  options.target = gpu_target(arguments.arch), options.seed = arguments.call.seed;
  std::vector<LaunchReport> reports;
  const auto keep = [&](std::vector<LaunchReport> r, const simulator::Timeline* timeline) {
    reports = std::move(r);
    if (timeline) write_file(arguments.trace, to_json(*timeline));
  };
  const Executable executable = counting_executable(call.program(), options, keep, !arguments.trace.empty());
  const std::vector<NDArray> arrays = call.fresh();
  executable.call(call.list(arrays));
  if (arguments.json) {
    fmt::print("{}\n", to_json(call.program().name, reports));
  } else {
    for (const LaunchReport& r : reports) show(r);
  }
  return kOk;
}

}  // namespace tilewright::tool
