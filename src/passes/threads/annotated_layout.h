// The layout that the program gives a fragment, as digits of its indices.
#pragma once
#include "ir/program.h"
#include "layout/fragment.h"

namespace tilewright::passes {

// None: there is none, no such layout is the function, or not all of these threads have elements of their own by it.
std::optional<FragmentLayout> annotated_layout(const ir::ProgramTables& program, const ir::Buffer& fragment,
                                               const std::vector<int64_t>& shape, int64_t threads);

}  // namespace tilewright::passes
