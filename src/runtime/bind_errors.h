// The refusals of bind_call(): one function a mistake, each throws a LaunchError that names the argument, what it is
// and what it must be.
#pragma once
#include "runtime/launch_plan.h"

namespace tilewright::runtime {

[[noreturn]] void refuse_count(const LaunchPlan& plan, size_t given);
[[noreturn]] void refuse_null(const LaunchPlan& plan, size_t index);
[[noreturn]] void refuse_null_source(const BoundCall& call, size_t symbol);
[[noreturn]] void refuse_number_for_tensor(const LaunchPlan& plan, size_t index, const Argument& argument);
[[noreturn]] void refuse_dtype(const LaunchPlan& plan, size_t index, const NDArray& tensor);
[[noreturn]] void refuse_rank(const LaunchPlan& plan, size_t index, const NDArray& tensor);
[[noreturn]] void refuse_device(const LaunchPlan& plan, size_t index, const NDArray& tensor);
[[noreturn]] void refuse_other_device(const LaunchPlan& plan, size_t index, const NDArray& tensor, size_t first,
                                      int first_device);
[[noreturn]] void refuse_scalar_kind(const LaunchPlan& plan, size_t index, const Argument& argument);
[[noreturn]] void refuse_scalar_range(const LaunchPlan& plan, size_t index, const Argument& argument);
[[noreturn]] void refuse_division(const BoundCall& call, const Symbol& symbol, const Equation& from);
[[noreturn]] void refuse_symbol(const BoundCall& call, const Symbol& symbol, const Equation& from, int64_t value);
[[noreturn]] void refuse_overflow(const BoundCall& call, const IntProgram& expression);
[[noreturn]] void refuse_shape(const BoundCall& call, size_t index, const NDArray& tensor, int dim, int64_t expected);
[[noreturn]] void refuse_stride(const BoundCall& call, size_t index, const NDArray& tensor, int dim, int64_t expected);
[[noreturn]] void refuse_gaps(const BoundCall& call, size_t index, const NDArray& tensor);
[[noreturn]] void refuse_no_memory(const BoundCall& call, size_t index);
[[noreturn]] void refuse_alignment(const BoundCall& call, size_t index, const NDArray& tensor, size_t alignment);
[[noreturn]] void refuse_overlap(const BoundCall& call, size_t written, size_t other);
[[noreturn]] void refuse_assumption(const BoundCall& call, const AssumeCheck& assume);

}  // namespace tilewright::runtime
