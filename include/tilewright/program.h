// A tile program: what the C++ language, the Python package and the text parser make, and what compile() takes.
#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace tilewright {

namespace ir {
struct TileProgramBox;
}

// A handle to an immutable program; copies are the same program.
class Program {
 public:
  explicit Program(std::shared_ptr<const ir::TileProgramBox> box) : box_(std::move(box)) {}
  const std::string& name() const;
  std::string text() const;  // the .tile form; parse_program() reads it back
  const ir::TileProgramBox& box() const { return *box_; }

 private:
  std::shared_ptr<const ir::TileProgramBox> box_;
};

// Reads the .tile form. CompileError with line and column if it is not a valid program.
Program parse_program(std::string_view text, const std::string& file_name = "program.tile");

}  // namespace tilewright
