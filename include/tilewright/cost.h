// What a program will cost, before it runs.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tilewright/program.h"

namespace tilewright {

// Microseconds of one call on a GPU, "sm_90a", by the model that plans are priced by (ARCHITECTURE.md,
// src/plan/price.cpp); `values`: of its symbols and numbers. None: a count of blocks or turns depends on what is not
// given. CompileError for what the GPU's engine refuses. Takes about 10 ms.
std::optional<double> predicted_microseconds(const Program& program, const std::string& arch,
                                             const std::map<std::string, int64_t>& values);

}  // namespace tilewright
