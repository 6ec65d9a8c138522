#include "runtime/executable.h"

#include <algorithm>
#include <cstring>

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
  Loan(const LoadedProgram& program, BoundCall& call) : pool_(program.workspaces()) {
    const std::vector<Workspace>& wanted = call.plan->workspaces;
    if (wanted.empty() || call.plan->memory != LaunchPlan::Memory::Host) return;
    set_ = pool_.take();
    set_->memory.resize(wanted.size());
    void** slot = call.buffers.data() + call.buffer_count - wanted.size();
    for (size_t i = 0; i < wanted.size(); ++i, ++slot) {
      NDArray& memory = set_->memory[i];
      const int64_t bytes = workspace_bytes(call, wanted[i]);
      if (memory.is_null() || memory.size() < bytes) memory = NDArray::empty({bytes}, u8);
      if (wanted[i].zeroed) std::memset(memory.data(), 0, static_cast<size_t>(bytes));
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

LoadedProgram::LoadedProgram(LaunchPlan plan, Version first, MakeVersion general, std::string engine)
    : plan_(std::move(plan)), first_(std::move(first)), make_general_(std::move(general)), engine_(std::move(engine)) {
  verify(plan_), verify(first_.plan);
  check_internal(first_.plan.assumes.size() >= plan_.assumes.size(), "a version that assumes less than its program");
  for (size_t i = plan_.assumes.size(); i < first_.plan.assumes.size(); ++i)
    assumptions_.push_back(first_.plan.assumes[i].text);
  for (size_t i = 0; i < plan_.parameters.size(); ++i)
    if (const int bytes = first_.plan.parameters[i].alignment; bytes > plan_.parameters[i].alignment)
      assumptions_.push_back(fmt::format("address of {} % {} == 0", plan_.parameters[i].name, bytes));
}

namespace {

constexpr int kGeneralAlignment = 16;  // the widest access of a GPU's thread, and what TMA asks for

// Of all tensors, to what the plan or, where it is more, the caller asks for.
bool is_aligned(const BoundCall& call, const LaunchPlan& plan, int at_least) {
  size_t buffer = 0;
  for (const Parameter& p : plan.parameters) {
    if (p.kind != Parameter::Kind::Tensor) continue;
    const auto address = reinterpret_cast<uintptr_t>(call.buffers[buffer++]);
    if (const int bytes = std::max(p.alignment, at_least); bytes > 0 && address % static_cast<uintptr_t>(bytes) != 0)
      return false;
  }
  return true;
}

}  // namespace

const Version& LoadedProgram::bind(std::span<const Argument> arguments, BoundCall& call) const {
  bind_call(plan_, arguments, call);
  if (!make_general_ || call.nothing_to_do || (is_aligned(call, first_.plan, 0) && assumptions_hold(call))) {
    call.plan = &first_.plan;
    call.buffer_count += static_cast<int>(first_.plan.workspaces.size() - plan_.workspaces.size());
    return first_;
  }
  const CallFacts facts = facts_of(call);
  General& general = general_for(facts);
  std::call_once(general.made, [&] {
    std::lock_guard lock(making_);
    general.version = make_general_(facts);
    verify(general.version.plan);
  });
  general_calls_.fetch_add(1, std::memory_order_relaxed);
  bind_call(general.version.plan, arguments, call);
  return general.version;
}

bool LoadedProgram::holds(const AssumeCheck& own, const BoundCall& call) const {
  int64_t value = 0;
  return evaluate(own.condition, call.symbols(), call.scalars(), value) && value != 0;
}

bool LoadedProgram::assumptions_hold(const BoundCall& call) const {
  const std::vector<AssumeCheck>& assumes = first_.plan.assumes;
  return std::all_of(assumes.begin() + static_cast<std::ptrdiff_t>(plan_.assumes.size()), assumes.end(),
                     [&](const AssumeCheck& own) { return holds(own, call); });
}

CallFacts LoadedProgram::facts_of(const BoundCall& call) const {
  CallFacts out{is_aligned(call, plan_, kGeneralAlignment), {}};
  const std::vector<AssumeCheck>& assumes = first_.plan.assumes;
  for (size_t i = plan_.assumes.size(); out.aligned && i < assumes.size(); ++i)
    out.holds.push_back(holds(assumes[i], call));
  return out;
}

LoadedProgram::General& LoadedProgram::general_for(CallFacts facts) const {
  std::lock_guard lock(finding_);
  std::unique_ptr<General>& found = general_[std::move(facts)];
  if (!found) found = std::make_unique<General>();
  return *found;
}

Executable make_executable(LaunchPlan plan, std::unique_ptr<Callee> callee, std::string engine, std::string source) {
  LaunchPlan own = plan;
  return make_executable(std::move(plan), {std::move(own), std::move(callee), std::move(source)}, {},
                         std::move(engine));
}
Executable make_executable(LaunchPlan plan, Version first, MakeVersion general, std::string engine) {
  return Executable(
      std::make_shared<LoadedProgram>(std::move(plan), std::move(first), std::move(general), std::move(engine)));
}

const Version* run_call(const LoadedProgram& program, std::span<const Argument> arguments, BoundCall& call) {
  const Version& version = program.bind(arguments, call);
  if (call.nothing_to_do) return nullptr;
  run_bound(program, version, call);
  return &version;
}

void run_bound(const LoadedProgram& program, const Version& version, BoundCall& call) {
  const Loan loan(program, call);
  CallReport report(version.plan);
  version.callee->run(call, report);
  report.throw_if_failed();
}

}  // namespace runtime

void Executable::call(std::span<const Argument> arguments) const {
  runtime::BoundCall call;
  runtime::run_call(*program_, arguments, call);
}

const std::string& Executable::name() const { return program_->plan().name; }
const std::string& Executable::engine() const { return program_->engine(); }
const std::string& Executable::source() const { return program_->first().source; }
const std::vector<std::string>& Executable::assumptions() const { return program_->assumptions(); }
int64_t Executable::general_calls() const { return program_->general_calls(); }

}  // namespace tilewright
