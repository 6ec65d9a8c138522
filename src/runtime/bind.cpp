// bind_call(): the checks of a call. What happens on success is kept apart from the words of each refusal
// (bind_errors.cpp).
#include <algorithm>
#include <bit>

#include "runtime/bind_errors.h"
#include "runtime/launch_plan.h"
#include "runtime/scalar_value.h"
#include "runtime/shared_memory.h"
#include "support/symbol_room.h"

namespace tilewright::runtime {
namespace {

// DLPack's numbers: 1 cpu, 2 cuda, 3 cuda_host, 13 cuda_managed.
bool reachable(LaunchPlan::Memory memory, const Device& device) {
  if (memory == LaunchPlan::Memory::Cuda) return device.type == 2 || device.type == 13;
  return device.type == 1 || device.type == 3 || device.type == 13;
}

// A tfloat32 parameter takes float32 tensors, and one of pointers 64-bit integers: the bits are stored alike, and
// tensor libraries know only those.
bool dtype_fits(DType parameter, DType tensor) {
  return tensor == parameter || (parameter == tf32 && tensor == f32) ||
         (parameter.is_pointer() && tensor.is_int() && tensor.bits == 64);
}

bool has_elements(const NDArray& tensor) {
  for (int64_t extent : tensor.shape())
    if (extent == 0) return false;
  return true;
}

const NDArray* bind_tensor(const LaunchPlan& plan, size_t index, const Argument& argument) {
  const Parameter& p = plan.parameters[index];
  if (argument.kind() == Argument::Kind::Null) {
    if (!p.nullable) refuse_null(plan, index);
    return nullptr;
  }
  if (argument.kind() != Argument::Kind::Tensor) refuse_number_for_tensor(plan, index, argument);
  const NDArray& tensor = argument.tensor();
  if (!dtype_fits(p.dtype, tensor.dtype())) refuse_dtype(plan, index, tensor);
  if (static_cast<size_t>(tensor.rank()) != p.shape.size()) refuse_rank(plan, index, tensor);
  if (!reachable(plan.memory, tensor.device())) refuse_device(plan, index, tensor);
  return &tensor;
}

void bind_arguments(const LaunchPlan& plan, std::span<const Argument> arguments, BoundCall& call) {
  bool empty = false, elements = false;
  size_t first_tensor = plan.parameters.size();
  for (size_t i = 0; i < plan.parameters.size(); ++i) {
    const Parameter& p = plan.parameters[i];
    if (p.kind == Parameter::Kind::Tensor) {
      const NDArray* tensor = bind_tensor(plan, i, arguments[i]);
      if (tensor) {
        (has_elements(*tensor) ? elements : empty) = true;
        if (first_tensor == plan.parameters.size()) first_tensor = i, call.device_index = tensor->device().index;
        if (plan.memory == LaunchPlan::Memory::Cuda && tensor->device().index != call.device_index)
          refuse_other_device(plan, i, *tensor, first_tensor, call.device_index);
      }
      call.buffers[static_cast<size_t>(call.buffer_count++)] = tensor ? tensor->data() : nullptr;
    } else {
      int64_t& value = call.integers[static_cast<size_t>(call.integer_count++)];
      if (p.dtype.is_pointer() && arguments[i].kind() == Argument::Kind::Tensor) {  // a tensor is its address
        if (!reachable(plan.memory, arguments[i].tensor().device())) refuse_device(plan, i, arguments[i].tensor());
        value = std::bit_cast<int64_t>(arguments[i].tensor().data());
        continue;
      }
      const ScalarFit fit = scalar_value(p.dtype, arguments[i], value);
      if (fit == ScalarFit::WrongKind) refuse_scalar_kind(plan, i, arguments[i]);
      if (fit == ScalarFit::OutOfRange) refuse_scalar_range(plan, i, arguments[i]);
    }
  }
  // A gemm with K = 0 still writes its zeros: only where no tensor has elements is there nothing to write.
  call.nothing_to_do = empty && !elements;
  for (size_t i = 0; i < plan.workspaces.size(); ++i) call.buffers[static_cast<size_t>(call.buffer_count++)] = nullptr;
}

int64_t extent_or_stride(const NDArray& tensor, const Equation& e) {
  return e.source == Equation::Source::Shape ? tensor.shape(e.dim) : tensor.stride(e.dim);
}

// Whether the tensors that are there give all symbols that it uses.
bool is_known(const BoundCall& call, const IntProgram& program) {
  for (const IntOp& op : program.ops)
    if (op.kind == IntOp::Kind::Symbol && !call.solved_by[static_cast<size_t>(op.value)]) return false;
  return true;
}

bool leaves_room(DType type, int64_t value) {
  if (!integer_fits(type, value)) return false;
  return type.bits < 32 ||
         (value <= std::numeric_limits<int64_t>::max() - kSymbolRoom && integer_fits(type, value + kSymbolRoom));
}

bool solve_by(const Equation& e, size_t i, BoundCall& call) {
  const Symbol& s = call.plan->symbols[i];
  const Argument& argument = call.arguments[static_cast<size_t>(e.parameter)];
  if (argument.kind() == Argument::Kind::Null || !is_known(call, e.rest)) return false;
  int64_t rest = 0, difference = 0;
  if (!e.rest.ops.empty() && !evaluate(e.rest, call.symbols(), call.scalars(), rest)) refuse_overflow(call, e.rest);
  if (__builtin_sub_overflow(extent_or_stride(argument.tensor(), e), rest, &difference)) refuse_overflow(call, e.rest);
  if (e.coefficient == -1 ? difference == std::numeric_limits<int64_t>::min() : difference % e.coefficient != 0)
    refuse_division(call, s, e);
  const int64_t value = difference / e.coefficient;
  call.integers[i] = value, call.solved_by[i] = &e;
  if ((e.source == Equation::Source::Shape && value < 0) || !leaves_room(s.dtype, value))
    refuse_symbol(call, s, e, value);
  return true;
}

bool solve_by_any(size_t i, BoundCall& call) {
  const Symbol& s = call.plan->symbols[i];
  if (solve_by(s, i, call)) return true;
  return std::any_of(s.others.begin(), s.others.end(), [&](const Equation& e) { return solve_by(e, i, call); });
}

void solve_symbols(const LaunchPlan& plan, BoundCall& call) {
  const size_t count = plan.symbols.size();
  for (size_t i = 0; i < count; ++i) call.integers[i] = 0, call.solved_by[i] = nullptr;
  size_t open = 0;
  for (size_t i = 0; i < count; ++i) open += !solve_by(plan.symbols[i], i, call);
  for (size_t before = count + 1; open > 0 && open < before;) {
    before = open;
    for (size_t i = 0; i < count; ++i)
      if (!call.solved_by[i] && solve_by_any(i, call)) --open;
  }
  for (size_t i = 0; open > 0 && i < count; ++i)
    if (!call.solved_by[i] && plan.symbols[i].needed) refuse_null_source(call, i);
}

// What no tensor says is asked of no tensor: only those that no launch uses mention it.
void check_shape(const BoundCall& call, size_t index, const NDArray& tensor) {
  const Parameter& p = call.plan->parameters[index];
  for (size_t d = 0; d < p.shape.size(); ++d) {
    int64_t expected;
    if (!is_known(call, p.shape[d])) continue;
    if (!evaluate(p.shape[d], call.symbols(), call.scalars(), expected)) refuse_overflow(call, p.shape[d]);
    if (tensor.shape()[d] != expected) refuse_shape(call, index, tensor, static_cast<int>(d), expected);
  }
}

void check_strides(const BoundCall& call, size_t index, const NDArray& tensor) {
  const Parameter& p = call.plan->parameters[index];
  if (p.strides.empty()) {
    if (!tensor.is_contiguous()) refuse_gaps(call, index, tensor);
    return;
  }
  for (size_t d = 0; d < p.strides.size(); ++d) {
    int64_t expected;
    if (!is_known(call, p.strides[d])) continue;
    if (!evaluate(p.strides[d], call.symbols(), call.scalars(), expected)) refuse_overflow(call, p.strides[d]);
    // The stride of a dimension of extent 1 multiplies only the index 0, and libraries write anything there.
    if (tensor.strides()[d] != expected && tensor.shape()[d] != 1)
      refuse_stride(call, index, tensor, static_cast<int>(d), expected);
  }
}

void check_address(const BoundCall& call, size_t index, const NDArray& tensor) {
  const Parameter& p = call.plan->parameters[index];
  if (tensor.data() == nullptr) refuse_no_memory(call, index);
  const size_t alignment =
      p.alignment > 0 ? static_cast<size_t>(p.alignment) : static_cast<size_t>(bytes_of(p.dtype, 1));
  if (reinterpret_cast<uintptr_t>(tensor.data()) % alignment != 0) refuse_alignment(call, index, tensor, alignment);
}

// Tensors count as apart, in whatever order a program reads the one and writes the other. That one tensor stands for
// two parameters is the caller's to know: what is computed in place.
void check_overlaps(const BoundCall& call) {
  std::array<Extent, kMaxBuffers> extents;
  std::array<size_t, kMaxBuffers> tensors;
  size_t count = 0;
  bool written = false;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const Argument& argument = call.arguments[i];
    const Parameter& p = call.plan->parameters[i];
    if (p.kind != Parameter::Kind::Tensor || p.nullable || argument.kind() != Argument::Kind::Tensor) continue;
    if (!has_elements(argument.tensor())) continue;
    written = written || p.written;
    extents[count] = extent_of(argument.tensor()), tensors[count++] = i;
  }
  if (!written) return;
  for (size_t i = 0; i < count; ++i)
    for (size_t k = 0; k < i; ++k) {
      const bool i_writes = call.plan->parameters[tensors[i]].written;
      if (!extents[i].meets(extents[k]) || !(i_writes || call.plan->parameters[tensors[k]].written)) continue;
      if (overlap_in_part(call.arguments[tensors[i]].tensor(), call.arguments[tensors[k]].tensor()))
        refuse_overlap(call, i_writes ? tensors[i] : tensors[k], i_writes ? tensors[k] : tensors[i]);
    }
}

}  // namespace

void bind_call(const LaunchPlan& plan, std::span<const Argument> arguments, BoundCall& call) {
  call.plan = &plan;
  call.arguments = arguments;
  call.nothing_to_do = false;
  call.device_index = 0;
  call.buffer_count = 0;
  call.integer_count = static_cast<int>(plan.symbols.size());
  if (arguments.size() != plan.parameters.size()) refuse_count(plan, arguments.size());
  bind_arguments(plan, arguments, call);
  solve_symbols(plan, call);
  const auto each_tensor = [&](auto&& check) {
    for (size_t i = 0; i < arguments.size(); ++i)
      if (arguments[i].kind() == Argument::Kind::Tensor) check(i, arguments[i].tensor());
  };
  each_tensor([&](size_t i, const NDArray& tensor) { check_shape(call, i, tensor); });
  each_tensor([&](size_t i, const NDArray& tensor) {
    if (has_elements(tensor)) check_strides(call, i, tensor);
  });
  each_tensor([&](size_t i, const NDArray& tensor) {
    if (has_elements(tensor)) check_address(call, i, tensor);
  });
  check_overlaps(call);
  for (const AssumeCheck& assume : plan.assumes) {
    int64_t holds = 0;
    if (!evaluate(assume.condition, call.symbols(), call.scalars(), holds)) refuse_overflow(call, assume.condition);
    if (holds == 0) refuse_assumption(call, assume);
  }
  for (const IntProgram& extent : plan.grids)
    if (int64_t value = 0; is_known(call, extent) && !evaluate(extent, call.symbols(), call.scalars(), value))
      refuse_overflow(call, extent);
}

}  // namespace tilewright::runtime
