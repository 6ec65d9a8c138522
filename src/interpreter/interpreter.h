// The reference interpreter: what a tile program means, with every rule of the language checked while it runs.
#pragma once
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace tilewright::interpreter {

// A tensor parameter or a workspace: the address of element (0, ..., 0). Shape and strides are those of the program's
// buffer with the symbols' values put in; a null address is only an error when it is accessed.
struct BoundBuffer {
  ir::BufferId buffer;
  void* data = nullptr;
};

struct Binding {
  std::vector<BoundBuffer> buffers;
  // Symbols and scalar parameters. Integers and bool sign- or zero-extended to 64 bits; floating types as the bits of
  // the double that equals them.
  std::vector<std::pair<ir::VarId, uint64_t>> values;
  // Receives every line of a Print, with its newline. Without it Print writes nothing.
  std::function<void(std::string_view line)> print;
  int threads = 0;  // blocks at a time; 0: usual_threads()
};

// Runs all launches in order. LaunchError with a code of area "run" for a mistake of the program and for what the
// interpreter cannot do (foreign text). Calls may run at the same time.
void interpret(const ir::TileProgram& program, const Binding& binding);

}  // namespace tilewright::interpreter
