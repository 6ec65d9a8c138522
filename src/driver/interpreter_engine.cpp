#include "driver/interpreter_engine.h"

#include "interpreter/interpreter.h"
#include "runtime/report.h"

namespace tilewright {
namespace {

class InterpreterCallee : public runtime::Callee {
 public:
  explicit InterpreterCallee(ir::TileProgram program) : program_(std::move(program)) {}

  void run(const runtime::BoundCall& call, runtime::CallReport&) override {
    interpreter::Binding binding;
    size_t buffer = 0;
    for (const ir::Param& p : program_.params)
      if (p.is_tensor()) binding.buffers.push_back({p.buffer, call.buffers[buffer++]});
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const ir::Buffer& b = program_.buffers[i];
      if (b.workspace && !b.is_view())
        binding.buffers.push_back({ir::BufferId{static_cast<uint32_t>(i)}, call.buffers[buffer++]});
    }
    for (size_t i = 0; i < program_.symbols.size(); ++i)
      binding.values.emplace_back(program_.symbols[i], static_cast<uint64_t>(call.symbols()[i]));
    size_t scalar = 0;
    for (const ir::Param& p : program_.params)
      if (!p.is_tensor())
        binding.values.emplace_back(p.var, widened(program_.var(p.var).type, call.scalars()[scalar++]));
    binding.print = [](std::string_view line) { runtime::print_lines(line); };
    interpreter::interpret(program_, binding);
  }

 private:
  // Calls hold floats of up to 32 bits as binary32; the interpreter holds every float as a double.
  static uint64_t widened(DType type, int64_t value) {
    if (!type.is_float() || type.bits == 64) return static_cast<uint64_t>(value);
    return std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(value))));
  }

  ir::TileProgram program_;
};

}  // namespace

std::unique_ptr<runtime::Callee> interpreter_callee(ir::TileProgram program) {
  return std::make_unique<InterpreterCallee>(std::move(program));
}

}  // namespace tilewright
