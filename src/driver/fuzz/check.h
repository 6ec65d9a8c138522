// Runs a program every way there is and compares.
#pragma once
#include <span>

#include "driver/fuzz/generate.h"
#include "support/function_ref.h"

namespace tilewright::fuzz {

struct Finding {
  enum class Kind : uint8_t {
    Invalid,      // the verifier refuses what the generator made
    RoundTrip,    // print -> parse -> print is not the identity
    Interpreter,  // the interpreter refuses a valid program, or finds a mistake in it
    Cpu,          // the CPU engine refuses or fails on a program that the interpreter runs
    Simulator,    // the simulator finds a mistake in the code of threads made from a program that the interpreter runs
    Cuda,         // the device compiler refuses a text, or the device a call, of a program that the interpreter runs
    Refused,      // no mistake: something a GPU's block cannot hold or do, said by name
    Mismatch,     // the engines differ
    Crash,        // the process died
    Hang,         // it did not come to an end
    Accepted,     // an invalid program was not refused
    Unlocated,    // it was refused without a code or a place
  };
  Kind kind = Kind::Invalid;
  std::string message;
};
const char* name_of(Finding::Kind kind);

enum class Engines : uint8_t {
  Interpreter,
  Both,
  BothQuickly,  // kernels compiled with less optimization
  Simulator,    // in the place of the CPU
  Cuda,         // device 0 in the place of the CPU
};

// The text form and the engines: outputs bitwise (any NaN equals any NaN) or within their tolerance.
std::optional<Finding> check(const ir::TileProgram& program, const std::vector<Argument>& arguments, Engines engines);
// The same for many programs, whose CPU kernels are compiled as one text: most of the time goes into the start of the
// host compiler. LaunchError if one of several leaves the device unusable: which one it was, a process for each shows.
std::vector<std::optional<Finding>> check_all(std::span<const Sample> samples, Engines engines);

// A random way to spoil a valid program's text; the result is not a valid program. `what` says what was done.
std::string spoil(const std::string& text, Random& random, std::string& what);
// The spoiled text must be refused by a CompileError with a code and a line.
std::optional<Finding> check_refused(const std::string& text, const std::string& what);

// The smallest program found for which `shows` still holds; it holds for `program`. Every program it is asked about is
// valid, and what it throws counts as no.
ir::TileProgram minimize(const ir::TileProgram& program, function_ref<bool(const ir::TileProgram&)> shows);

}  // namespace tilewright::fuzz
