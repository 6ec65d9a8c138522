// The simulator of a GPU behind an Executable.
#pragma once
#include "ir/program.h"
#include "runtime/executable.h"
#include "simulator/simulator.h"

namespace tilewright {

// Receives the reports of a call's launches.
using TrafficSink = std::function<void(std::vector<simulator::LaunchReport>)>;

// Of a program that lower_cuda() made; its symbols are in the order of the plan.
std::unique_ptr<runtime::Callee> simulator_callee(ir::ThreadProgram program, const simulator::SimulateOptions& options,
                                                  TrafficSink sink = {});

}  // namespace tilewright
