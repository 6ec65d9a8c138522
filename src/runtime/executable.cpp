#include "runtime/executable.h"

#include "support/diagnostic.h"

namespace tilewright {
namespace runtime {

std::unique_ptr<WorkspacePool::Set> WorkspacePool::take() {
  std::lock_guard lock(mutex_);
  if (free_.empty()) return std::make_unique<Set>();
  std::unique_ptr<Set> set = std::move(free_.back());
  free_.pop_back();
  return set;
}

void WorkspacePool::give_back(std::unique_ptr<Set> set) {
  std::lock_guard lock(mutex_);
  free_.push_back(std::move(set));
}

int64_t workspace_bytes(const BoundCall& call, const Workspace& w) {
  int64_t elements = 0, bits = 0;
  if (!evaluate(w.size, call.symbols(), call.scalars(), elements) || elements < 0 ||
      __builtin_mul_overflow(elements, int64_t{w.dtype.storage_bits()}, &bits))
    fail(Code::ExpressionOverflow, {},
         fmt::format("{}: the size of the workspace '{}' is negative or has no value in 64 bits", call.plan->name,
                     w.name));
  return bytes_of(w.dtype, elements);
}

namespace {

// The workspaces of one call in host memory, returned to the pool however the call ends. Those on a device are the
// callee's: their calls end before their kernels do.
class Loan {
 public:
  Loan(LoadedProgram& program, BoundCall& call) : pool_(program.workspaces) {
    const std::vector<Workspace>& wanted = call.plan->workspaces;
    if (wanted.empty() || call.plan->memory != LaunchPlan::Memory::Host) return;
    set_ = pool_.take();
    set_->memory.resize(wanted.size());
    void** slot = call.buffers.data() + call.buffer_count - wanted.size();
    for (size_t i = 0; i < wanted.size(); ++i, ++slot) {
      NDArray& memory = set_->memory[i];
      const int64_t bytes = workspace_bytes(call, wanted[i]);
      if (memory.is_null() || memory.size() < bytes) memory = NDArray::empty({bytes}, u8);
      *slot = memory.data();
    }
  }
  ~Loan() {
    if (set_) pool_.give_back(std::move(set_));
  }
  Loan(const Loan&) = delete;

 private:
  WorkspacePool& pool_;
  std::unique_ptr<WorkspacePool::Set> set_;
};

}  // namespace

Executable make_executable(LaunchPlan plan, std::unique_ptr<Callee> callee, std::string engine, std::string source) {
  verify(plan);
  auto program = std::make_shared<LoadedProgram>();
  program->plan = std::move(plan);
  program->callee = std::move(callee);
  program->engine = std::move(engine);
  program->source = std::move(source);
  return Executable(std::move(program));
}

}  // namespace runtime

void Executable::call(std::span<const Argument> arguments) const {
  runtime::BoundCall call;
  runtime::bind_call(program_->plan, arguments, call);
  if (call.nothing_to_do) return;
  const runtime::Loan loan(*program_, call);
  runtime::CallReport report(program_->plan);
  program_->callee->run(call, report);
  report.throw_if_failed();
}

const std::string& Executable::name() const { return program_->plan.name; }
const std::string& Executable::engine() const { return program_->engine; }
const std::string& Executable::source() const { return program_->source; }

}  // namespace tilewright
