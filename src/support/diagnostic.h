// How our own code reports: fail() for the user's mistakes, check_internal() for ours.
#pragma once
#include <fmt/format.h>

#include <string>
#include <vector>

#include "support/error_codes.h"
#include "tilewright/diagnostic.h"

namespace tilewright {

Diagnostic make_diagnostic(Code code, SourceLocation location, std::string message, std::string help = {},
                           std::vector<Note> notes = {});

// Throws CompileError for the areas build to verify, cpu, tool and cuda below 8100; LaunchError for launch, run,
// simulate and cuda from 8100.
[[noreturn]] void fail(Code code, SourceLocation location, std::string message, std::string help = {},
                       std::vector<Note> notes = {});

[[noreturn]] void fail_internal(std::string message, const char* file, int line);

// A broken invariant of ours is an InternalError that says where; the message is only evaluated on failure.
#define check_internal(condition, ...)                                                             \
  do {                                                                                             \
    if (!(condition)) ::tilewright::fail_internal(::fmt::format(__VA_ARGS__), __FILE__, __LINE__); \
  } while (0)

}  // namespace tilewright
