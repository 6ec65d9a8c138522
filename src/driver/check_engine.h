// A program on every engine that takes it, compared with the interpreter.
#pragma once
#include <memory>
#include <span>

#include "driver/check_program.h"
#include "tilewright/compile.h"

namespace tilewright {

// Whether TILEWRIGHT_CHECK asks for it.
bool wants_checks();

class EngineCheck {
 public:
  explicit EngineCheck(const Program& program);
  ~EngineCheck();
  // Runs on copies. LaunchError for what the interpreter or the simulator finds, and where the engines differ.
  void operator()(std::span<const Argument> arguments) const;
  // Of the last call that ended well: the interpreter first. Empty where the program cannot be checked.
  std::vector<EngineOutcome> outcomes() const;

 private:
  struct Engines;
  std::unique_ptr<Engines> engines_;
};

// compile() without checks, whatever the environment asks for.
Executable compile_plainly(const Program& program, const CompileOptions& options);
// The executable, whose calls are checked first.
Executable with_checks(const Program& program, Executable executable);

}  // namespace tilewright
