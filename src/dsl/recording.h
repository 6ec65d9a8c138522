// The program that the C++ language is recording on this thread.
#pragma once
#include "ir/builder.h"
#include "tilewright/language.h"

namespace tilewright {

// The builder of the prim_func that runs now; OutsideProgram if there is none. Errors of what follows name `at`.
ir::Builder& recording(const char* what, const Location& at);
ir::Builder* recording_or_null();
SourceLocation source_location_of(const Location& at);

ir::Expr expr_of(const Operand& operand, const char* what);
std::vector<ir::Expr> exprs_of(std::span<const Operand> operands, const char* what);

// The name of the variable that the statement at `at` initializes, read from the source: "" if it cannot be read.
std::string declared_name(const Location& at);
// The names of the loop header there: for (auto [i, j] : ...).
std::vector<std::string> declared_loop_names(const Location& at);

// What tiles and references hold, for the implementation of the operations.
struct TileAccess {
  static ir::TileRef of(const Ref& ref);
  static ir::TileRef of(const Region& region);
  static ir::TileRef of(const Tile& tile);
  static const Location& place(const Ref& ref) { return ref.at_; }

 private:
  static ir::TileRef make(uint32_t buffer, const std::vector<Index>& indices);
};

}  // namespace tilewright
