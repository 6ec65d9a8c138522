// Passes by name, one after the other: what `tilewright opt` runs, and the texts of tests/passes/text.
#pragma once
#include <optional>
#include <stdexcept>

#include "ir/print.h"
#include "passes/gpu_passes.h"
#include "runtime/processor.h"

namespace tilewright {

// There is no such pass on the road, or it reads the findings of one that did not run.
struct PassNameError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// From tiles to what the last pass left.
class PassRoad {
 public:
  static constexpr const char* kToLoops = "lower_to_loops";
  // All passes of a road up to the one of this name.
  static std::vector<std::string> until(const std::string& name);

  // `arch`: of the GPU, for passes of its road; `cpu`: what the processor is taken to have, for passes of the CPU's.
  PassRoad(ir::TileProgram program, std::string arch, const runtime::ProcessorFeatures& cpu = {})
      : arch_(std::move(arch)), cpu_(cpu), tiles_(std::move(program)) {}

  // Once. Those of every engine, then those of the CPU behind kToLoops, or of a GPU. CompileError for what a pass
  // refuses and for a plan that cannot be.
  void run(const std::vector<std::string>& names);

  // What is left, and what the last pass decided that no statement tells: comments.
  std::string text(const ir::PrintOptions& options = {}) const;

  // Of which there is one: tiles where the others are null.
  const ir::TileProgram& tiles() const { return gpu_ ? gpu_->tiles : tiles_; }
  const ir::LoopProgram* loops() const { return loops_ ? &*loops_ : nullptr; }
  const ir::ThreadProgram* threads() const { return gpu_ && passes::is_of_threads(*gpu_) ? &gpu_->threads : nullptr; }
  const passes::GpuProgram* gpu() const { return gpu_ ? &*gpu_ : nullptr; }
  const std::vector<std::string>& decided() const { return decided_; }

 private:
  void run_loops(const std::vector<std::string>& names, size_t at);
  void run_gpu(const std::vector<std::string>& names, size_t at);

  std::string arch_;
  runtime::ProcessorFeatures cpu_;
  ir::TileProgram tiles_;
  std::optional<ir::LoopProgram> loops_;
  std::optional<passes::GpuProgram> gpu_;
  std::vector<std::string> decided_;  // by the last pass
};

}  // namespace tilewright
