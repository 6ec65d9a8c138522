// The text of a program, and what each of its lines says.
#pragma once
#include <string>
#include <vector>

#include "ir/program.h"

namespace tilewright::ir {

// What begins on a line: a statement, or a launch, a buffer, an assumption. Index 0: nothing that has a place.
struct PrintedPlace {
  LocationId location;
  bool is_statement = false;
};
struct PrintedLines {
  std::string text;                  // as print() has it
  std::vector<PrintedPlace> places;  // of its lines
};

PrintedLines print_lines(const TileProgram& program);
PrintedLines print_lines(const LoopProgram& program);
PrintedLines print_lines(const ThreadProgram& program);

}  // namespace tilewright::ir
