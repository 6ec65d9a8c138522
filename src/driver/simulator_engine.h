// The simulator of a GPU behind an Executable.
#pragma once
#include "ir/program.h"
#include "runtime/executable.h"
#include "simulator/simulator.h"

namespace tilewright {

// Receives the reports of a call's launches, and what was written down of their times; null where nobody asked for it.
using TrafficSink = std::function<void(std::vector<simulator::LaunchReport>, const simulator::Timeline*)>;

// Of a program that passes::lower_to_threads() made; its symbols are in the order of the plan.
std::unique_ptr<runtime::Callee> simulator_callee(ir::ThreadProgram program, const simulator::SimulateOptions& options,
                                                  TrafficSink sink = {}, bool timeline = false);

// A program on the simulator that counts what the memories do in each call, and with `timeline` when things happen.
Executable counting_executable(const ir::TileProgram& program, simulator::SimulateOptions options, TrafficSink sink,
                               bool timeline = false);
// As `tilewright simulate --json` prints it.
std::string to_json(const std::string& program, const std::vector<simulator::LaunchReport>& reports);

}  // namespace tilewright
