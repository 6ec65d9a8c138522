#include "runtime/bind_errors.h"

#include "runtime/scalar_value.h"
#include "support/diagnostic.h"

namespace tilewright::runtime {
namespace {

using Kind = Parameter::Kind;

std::string tuple(std::span<const int64_t> values) {
  return values.size() == 1 ? fmt::format("({},)", values[0]) : fmt::format("({})", fmt::join(values, ", "));
}

std::string dimensions(size_t rank) { return rank == 1 ? "1 dimension" : fmt::format("{} dimensions", rank); }

// "matmul: argument 1 'B'"
std::string subject(const LaunchPlan& plan, size_t index) {
  return fmt::format("{}: argument {} '{}'", plan.name, index, plan.parameters[index].name);
}

std::string describe(const Argument& argument) {
  switch (argument.kind()) {
    case Argument::Kind::Null: return "null";
    case Argument::Kind::Tensor: return fmt::format("a tensor of shape {}", tuple(argument.tensor().shape()));
    case Argument::Kind::Float: {
      std::string number = fmt::format("{}", argument.number());
      if (number.find_first_not_of("-0123456789") == std::string::npos) number += ".0";  // no integer
      return "the number " + number;
    }
    case Argument::Kind::Int: break;
  }
  return argument.is_huge() ? fmt::format("the number {}", static_cast<uint64_t>(argument.integer()))
                            : fmt::format("the number {}", argument.integer());
}

std::vector<std::string> symbol_names(const LaunchPlan& plan) {
  std::vector<std::string> names;
  for (const Symbol& s : plan.symbols) names.push_back(s.name);
  return names;
}

std::vector<std::string> scalar_names(const LaunchPlan& plan) {
  std::vector<std::string> names;
  for (const Parameter& p : plan.parameters)
    if (p.kind == Kind::Scalar) names.push_back(p.name);
  return names;
}

std::string text_of(const LaunchPlan& plan, const IntProgram& e) {
  return to_string(e, symbol_names(plan), scalar_names(plan));
}

// Where a symbol's value came from: "'A'.shape[1]".
std::string origin(const LaunchPlan& plan, const Equation& e) {
  return fmt::format("'{}'.{}[{}]", plan.parameters[static_cast<size_t>(e.parameter)].name,
                     e.source == Equation::Source::Shape ? "shape" : "strides", e.dim);
}
std::string origin(const BoundCall& call, size_t symbol) { return origin(*call.plan, *call.solved_by[symbol]); }

// The values an expression was computed from: "K = 128 from 'A'.shape[1], n = 5".
std::string inputs(const BoundCall& call, const IntProgram& e) {
  const LaunchPlan& plan = *call.plan;
  const std::vector<std::string> scalars = scalar_names(plan);
  std::vector<std::string> parts;
  for (const IntOp& op : e.ops) {
    const size_t i = static_cast<size_t>(op.value);
    std::string part;
    if (op.kind == IntOp::Kind::Symbol)
      part = fmt::format("{} = {} from {}", plan.symbols[i].name, call.symbols()[i], origin(call, i));
    else if (op.kind == IntOp::Kind::Scalar)
      part = fmt::format("{} = {}", scalars[i], call.scalars()[i]);
    if (!part.empty() && std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// "128"; "K = 128 (from 'A'.shape[1])"; "2 * K = 256 (K = 128 from 'A'.shape[1])".
std::string wanted(const BoundCall& call, const IntProgram& e, int64_t value) {
  const LaunchPlan& plan = *call.plan;
  if (e.is_constant()) return std::to_string(value);
  std::string text = fmt::format("{} = {}", text_of(plan, e), value);
  if (e.ops.size() == 1)
    return e.ops[0].kind == IntOp::Kind::Scalar
               ? text
               : text + fmt::format(" (from {})", origin(call, static_cast<size_t>(e.ops[0].value)));
  const std::string values = inputs(call, e);
  return values.empty() ? text : text + fmt::format(" ({})", values);
}

// What a symbol's dimension or stride is made of: "2 * H + 1".
std::string equation(const LaunchPlan& plan, const Symbol& s, const Equation& e) {
  std::string text = e.coefficient == 1 ? s.name : fmt::format("{} * {}", e.coefficient, s.name);
  return e.rest.ops.empty() ? text : fmt::format("{} + {}", text, text_of(plan, e.rest));
}

std::string where(const Equation& e) {
  return fmt::format("{} {}", e.source == Equation::Source::Shape ? "dimension" : "stride", e.dim);
}

std::string measured(const BoundCall& call, const Equation& e) {
  const size_t index = static_cast<size_t>(e.parameter);
  const NDArray& tensor = call.arguments[index].tensor();
  return e.source == Equation::Source::Shape
             ? fmt::format("{} has shape {}", subject(*call.plan, index), tuple(tensor.shape()))
             : fmt::format("{} has strides {}", subject(*call.plan, index), tuple(tensor.strides()));
}

}  // namespace

void refuse_count(const LaunchPlan& plan, size_t given) {
  std::vector<std::string> names;
  for (const Parameter& p : plan.parameters) names.push_back(p.name);
  const size_t count = names.size();
  fail(Code::ArgumentCount, {},
       fmt::format("{}: takes {} argument{}{}, but the call has {}", plan.name, count, count == 1 ? "" : "s",
                   count == 0 ? "" : fmt::format(" ({})", fmt::join(names, ", ")), given));
}

void refuse_null(const LaunchPlan& plan, size_t index) {
  fail(Code::ArgumentNull, {}, fmt::format("{} is null, but the program uses it", subject(plan, index)));
}

void refuse_null_source(const BoundCall& call, size_t symbol) {
  const LaunchPlan& plan = *call.plan;
  const Symbol& s = plan.symbols[symbol];
  const auto is_null = [&](const Equation& e) {
    return call.arguments[static_cast<size_t>(e.parameter)].kind() == Argument::Kind::Null;
  };
  std::vector<std::string> sources{origin(plan, s)};
  for (const Equation& e : s.others) sources.push_back(origin(plan, e));
  if (sources.size() == 1 && is_null(s))
    fail(Code::ArgumentNull, {},
         fmt::format("{} is null, but {} is taken from its {}", subject(plan, static_cast<size_t>(s.parameter)), s.name,
                     where(s)));
  fail(Code::ArgumentNull, {},
       fmt::format("{}: too many arguments are null: none of the others gives {}, which is taken from {}", plan.name,
                   s.name, fmt::join(sources, " or ")));
}

void refuse_number_for_tensor(const LaunchPlan& plan, size_t index, const Argument& argument) {
  const Parameter& p = plan.parameters[index];
  fail(Code::ArgumentKind, {},
       fmt::format("{} must be a tensor ({}, {}), but is {}", subject(plan, index), p.dtype.name(),
                   dimensions(p.shape.size()), describe(argument)));
}

void refuse_dtype(const LaunchPlan& plan, size_t index, const NDArray& tensor) {
  fail(Code::ArgumentDtype, {},
       fmt::format("{} has dtype {}, but must have {}", subject(plan, index), tensor.dtype().name(),
                   plan.parameters[index].dtype.name()),
       fmt::format("convert it, or declare the parameter as {}", tensor.dtype().name()));
}

void refuse_rank(const LaunchPlan& plan, size_t index, const NDArray& tensor) {
  fail(Code::ArgumentRank, {},
       fmt::format("{} has shape {}, but must have {}", subject(plan, index), tuple(tensor.shape()),
                   dimensions(plan.parameters[index].shape.size())));
}

void refuse_device(const LaunchPlan& plan, size_t index, const NDArray& tensor) {
  if (plan.memory == LaunchPlan::Memory::Cuda)
    fail(Code::ArgumentDevice, {},
         fmt::format("{} is on {}, but must be on a CUDA device", subject(plan, index), tensor.device().name()),
         "copy it there first: to({2, 0}) in C++, .cuda() in PyTorch");
  fail(Code::ArgumentDevice, {},
       fmt::format("{} is on {}, but must be in the processor's memory", subject(plan, index), tensor.device().name()),
       "copy it to the cpu first");
}

void refuse_other_device(const LaunchPlan& plan, size_t index, const NDArray& tensor, size_t first, int first_device) {
  fail(Code::ArgumentDevice, {},
       fmt::format("{} is on {}, but '{}' is on cuda:{}", subject(plan, index), tensor.device().name(),
                   plan.parameters[first].name, first_device),
       "a program runs on one device: copy the tensors to it");
}

void refuse_scalar_kind(const LaunchPlan& plan, size_t index, const Argument& argument) {
  const DType type = plan.parameters[index].dtype;
  fail(Code::ArgumentKind, {},
       fmt::format("{} must be {} ({}), but is {}", subject(plan, index), type.is_float() ? "a number" : "an integer",
                   type.name(), describe(argument)));
}

void refuse_scalar_range(const LaunchPlan& plan, size_t index, const Argument& argument) {
  fail(Code::ScalarRange, {},
       fmt::format("{} is {}, which does not fit {}", subject(plan, index), describe(argument),
                   plan.parameters[index].dtype.name()));
}

void refuse_division(const BoundCall& call, const Symbol& s, const Equation& e) {
  const std::string from = inputs(call, e.rest);
  fail(Code::SymbolUnsolvable, {},
       fmt::format("{}, but its {} must be {} for an integer {}{}", measured(call, e), where(e),
                   equation(*call.plan, s, e), s.name, from.empty() ? "" : fmt::format(" ({})", from)));
}

void refuse_symbol(const BoundCall& call, const Symbol& s, const Equation& e, int64_t value) {
  const std::string reason = value < 0 && e.source == Equation::Source::Shape ? "is negative"
                             : integer_fits(s.dtype, value)
                                 ? fmt::format("leaves no room in {} to round it up", s.dtype.name())
                                 : fmt::format("does not fit {}", s.dtype.name());
  fail(Code::SymbolUnsolvable, {},
       fmt::format("{}, so that {} = {}, which {}", measured(call, e), s.name, value, reason),
       value < 0 || s.dtype.bits == 64
           ? ""
           : fmt::format("declare {0} with 64 bits: T.dynamic(\"{0}\", \"int64\") in Python", s.name));
}

std::string room_of(const IntProgram& e) {
  const auto type = fitted_type(e);
  return type ? type->name() : "64 bits";
}

void refuse_overflow(const BoundCall& call, const IntProgram& e) {
  fail(Code::ExpressionOverflow, {},
       fmt::format("{}: {} has no value in {} ({})", call.plan->name, text_of(*call.plan, e), room_of(e),
                   inputs(call, e)));
}

void refuse_shape(const BoundCall& call, size_t index, const NDArray& tensor, int dim, int64_t expected) {
  fail(
      Code::ArgumentShape, {},
      fmt::format("{} has shape {}, but its dimension {} must be {}", subject(*call.plan, index), tuple(tensor.shape()),
                  dim, wanted(call, call.plan->parameters[index].shape[static_cast<size_t>(dim)], expected)));
}

void refuse_stride(const BoundCall& call, size_t index, const NDArray& tensor, int dim, int64_t expected) {
  fail(Code::ArgumentStrides, {},
       fmt::format("{} has strides {}, but its stride {} must be {}", subject(*call.plan, index),
                   tuple(tensor.strides()), dim,
                   wanted(call, call.plan->parameters[index].strides[static_cast<size_t>(dim)], expected)));
}

void refuse_gaps(const BoundCall& call, size_t index, const NDArray& tensor) {
  std::vector<int64_t> strides(static_cast<size_t>(tensor.rank()));
  int64_t step = 1;
  for (size_t d = strides.size(); d-- > 0;) {
    strides[d] = step;
    step *= tensor.shape()[d];
  }
  fail(Code::ArgumentStrides, {},
       fmt::format("{} has strides {} for shape {}, but must be row-major without gaps: strides {}",
                   subject(*call.plan, index), tuple(tensor.strides()), tuple(tensor.shape()), tuple(strides)),
       "pass a row-major copy (.contiguous() in Python, clone() in C++), or declare the parameter with strides");
}

void refuse_no_memory(const BoundCall& call, size_t index) {
  fail(Code::ArgumentNull, {},
       fmt::format("{} has elements but no memory: its data pointer is null", subject(*call.plan, index)));
}

void refuse_alignment(const BoundCall& call, size_t index, const NDArray& tensor, size_t alignment) {
  const Parameter& p = call.plan->parameters[index];
  const uintptr_t address = reinterpret_cast<uintptr_t>(tensor.data());
  fail(Code::ArgumentAlignment, {},
       fmt::format("{} lies {} bytes past a multiple of {}, but must be aligned to {} bytes{}",
                   subject(*call.plan, index), address % alignment, alignment, alignment,
                   p.alignment > 0 ? "" : fmt::format(", the size of a {}", p.dtype.name())));
}

void refuse_overlap(const BoundCall& call, size_t written, size_t other) {
  fail(Code::ArgumentsOverlap, {},
       fmt::format("{}, which the program writes, shares part of its memory with argument {} '{}'",
                   subject(*call.plan, written), other, call.plan->parameters[other].name),
       "pass a copy of one of them (.clone()); one tensor may stand for two parameters, if each element is read before "
       "it is written");
}

void refuse_assumption(const BoundCall& call, const AssumeCheck& assume) {
  const std::string values = inputs(call, assume.condition);
  fail(Code::AssumptionFailed, assume.location,
       fmt::format("{}: Assume: {} does not hold{}", call.plan->name, assume.text,
                   values.empty() ? "" : fmt::format(" ({})", values)));
}

}  // namespace tilewright::runtime
