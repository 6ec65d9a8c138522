#include "runtime/launch_plan.h"

#include "support/diagnostic.h"

namespace tilewright::runtime {
namespace {

struct Counts {
  int tensors = 0;
  int scalars = 0;
};

Counts count(const LaunchPlan& plan) {
  Counts counts;
  for (const Parameter& p : plan.parameters) ++(p.kind == Parameter::Kind::Tensor ? counts.tensors : counts.scalars);
  return counts;
}

void verify_limits(const LaunchPlan& plan, const Counts& counts) {
  const size_t buffers = static_cast<size_t>(counts.tensors) + plan.workspaces.size();
  if (buffers > kMaxBuffers)
    fail(Code::PlanTooLarge, {},
         fmt::format("{}: {} tensor parameters and workspaces; a call holds at most {}", plan.name, buffers,
                     kMaxBuffers),
         "join tensors into one, or split the program");
  const size_t integers = plan.symbols.size() + static_cast<size_t>(counts.scalars);
  if (integers > kMaxIntegers)
    fail(
        Code::PlanTooLarge, {},
        fmt::format("{}: {} symbols and scalar parameters; a call holds at most {}", plan.name, integers, kMaxIntegers),
        "make some of them constants, or split the program");
}

// symbols: how many its rest may use.
void verify_equation(const LaunchPlan& plan, const std::string& symbol, const Equation& e, size_t symbols,
                     int scalars) {
  check_internal(e.parameter >= 0 && static_cast<size_t>(e.parameter) < plan.parameters.size() &&
                     plan.parameters[static_cast<size_t>(e.parameter)].kind == Parameter::Kind::Tensor,
                 "symbol {} is not solved from a tensor", symbol);
  const Parameter& p = plan.parameters[static_cast<size_t>(e.parameter)];
  check_internal(e.dim >= 0 && static_cast<size_t>(e.dim) < p.shape.size(), "symbol {} is solved from dimension {}",
                 symbol, e.dim);
  check_internal(e.coefficient != 0, "symbol {} has the coefficient 0", symbol);
  if (!e.rest.ops.empty()) verify(e.rest, static_cast<int>(symbols), scalars);
}

void verify_symbols(const LaunchPlan& plan, int scalars) {
  for (size_t i = 0; i < plan.symbols.size(); ++i) {
    const Symbol& s = plan.symbols[i];
    check_internal(s.dtype.is_int(), "symbol {} is no integer", s.name);
    verify_equation(plan, s.name, s, i, scalars);
    for (const Equation& e : s.others) verify_equation(plan, s.name, e, plan.symbols.size(), scalars);
  }
}

void verify_sites(const LaunchPlan& plan) {
  for (const Site& site : plan.sites) {
    const size_t operands = site.operands.size();
    switch (site.kind) {
      case Site::Kind::PrintMessage: check_internal(operands == 0, "a message with operands"); break;
      case Site::Kind::PrintScalar:
      case Site::Kind::PrintBuffer: check_internal(operands == 1, "a print of {} operands", operands); break;
      case Site::Kind::Assert:
      case Site::Kind::Stuck:
      case Site::Kind::Overflow: break;
    }
  }
}

}  // namespace

void verify(const LaunchPlan& plan) {
  const Counts counts = count(plan);
  verify_limits(plan, counts);
  verify_symbols(plan, counts.scalars);
  const int symbols = static_cast<int>(plan.symbols.size());
  for (const Parameter& p : plan.parameters) {
    check_internal(p.shape.size() <= NDArray::max_rank, "parameter {} has rank {}", p.name, p.shape.size());
    check_internal(p.strides.empty() || p.strides.size() == p.shape.size(), "parameter {} has {} strides for rank {}",
                   p.name, p.strides.size(), p.shape.size());
    check_internal(p.alignment >= 0, "parameter {} is aligned to {}", p.name, p.alignment);
    for (const IntProgram& e : p.shape) verify(e, symbols, counts.scalars);
    for (const IntProgram& e : p.strides) verify(e, symbols, counts.scalars);
  }
  for (const AssumeCheck& a : plan.assumes) verify(a.condition, symbols, counts.scalars);
  for (const Workspace& w : plan.workspaces) verify(w.size, symbols, counts.scalars);
  verify_sites(plan);
}

}  // namespace tilewright::runtime
