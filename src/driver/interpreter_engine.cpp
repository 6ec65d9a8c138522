#include "driver/interpreter_engine.h"

#include "runtime/report.h"

namespace tilewright {
namespace {

class InterpreterCallee : public runtime::Callee {
 public:
  explicit InterpreterCallee(ir::TileProgram program) : program_(std::move(program)) {}

  void run(const runtime::BoundCall& call, runtime::CallReport&) override {
    interpreter::interpret(program_, binding_of(program_, call));
  }

 private:
  ir::TileProgram program_;
};

// Calls hold floats of up to 32 bits as binary32; the interpreter holds every float as a double.
uint64_t widened(DType type, int64_t value) {
  if (!type.is_float() || type.bits == 64) return static_cast<uint64_t>(value);
  return std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(value))));
}

}  // namespace

interpreter::Binding binding_of(const ir::ProgramTables& program, const runtime::BoundCall& call) {
  interpreter::Binding binding;
  size_t buffer = 0;
  for (const ir::Param& p : program.params)
    if (p.is_tensor()) binding.buffers.push_back({p.buffer, call.buffers[buffer++]});
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const ir::Buffer& b = program.buffers[i];
    if (b.workspace && !b.is_view())
      binding.buffers.push_back({ir::BufferId{static_cast<uint32_t>(i)}, call.buffers[buffer++]});
  }
  for (size_t i = 0; i < program.symbols.size(); ++i)
    binding.values.emplace_back(program.symbols[i], static_cast<uint64_t>(call.symbols()[i]));
  size_t scalar = 0;
  for (const ir::Param& p : program.params)
    if (!p.is_tensor()) binding.values.emplace_back(p.var, widened(program.var(p.var).type, call.scalars()[scalar++]));
  binding.print = [](std::string_view line) { runtime::print_lines(line); };
  return binding;
}

std::unique_ptr<runtime::Callee> interpreter_callee(ir::TileProgram program) {
  return std::make_unique<InterpreterCallee>(std::move(program));
}

}  // namespace tilewright
