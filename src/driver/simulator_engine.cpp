#include "driver/simulator_engine.h"

#include "driver/interpreter_engine.h"

namespace tilewright {
namespace {

class SimulatorCallee : public runtime::Callee {
 public:
  SimulatorCallee(ir::ThreadProgram program, const simulator::SimulateOptions& options, TrafficSink sink)
      : program_(std::move(program)), options_(options), sink_(std::move(sink)) {}

  void run(const runtime::BoundCall& call, runtime::CallReport&) override {
    auto reports = simulator::simulate(program_, binding_of(program_, call), options_);
    if (sink_) sink_(std::move(reports));
  }

 private:
  ir::ThreadProgram program_;
  simulator::SimulateOptions options_;
  TrafficSink sink_;
};

}  // namespace

std::unique_ptr<runtime::Callee> simulator_callee(ir::ThreadProgram program, const simulator::SimulateOptions& options,
                                                  TrafficSink sink) {
  return std::make_unique<SimulatorCallee>(std::move(program), options, std::move(sink));
}

}  // namespace tilewright
