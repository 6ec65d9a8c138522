// All that the page about a program shows (docs/studio.md), as JSON: what the program becomes, its texts with the place
// of each line, what each pass changed, pictures of layouts as numbers.
#pragma once
#include <string>

#include "driver/arguments.h"
#include "ir/program.h"

namespace tilewright {

// {"explanation": as `explain --json` has it, "texts": [...], "passes": [...], "layouts": [...], "files": [...]}.
// `arch`: a GPU, or "" for the CPU here. What the engine refuses is said in the explanation, and the texts behind that
// are missing.
std::string studio_json(const ir::TileProgram& program, const NamedValues& values, const std::string& arch);

}  // namespace tilewright
