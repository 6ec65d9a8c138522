// What Tilewright says when something is wrong. Every message has a stable code, a place, and, where there is one, a
// remedy.
#pragma once
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace tilewright {

// A place in a user's file. line 0: no place is known.
struct SourceLocation {
  std::string file;
  int line = 0;
  int column = 0;
  bool known() const { return line > 0; }
  bool operator==(const SourceLocation&) const = default;
};

struct Note {
  std::string message;
  SourceLocation location;
};

// One finding. to_string():
//   error TW1204 build: the inner extents of gemm differ: A has K = 32, B has K = 64
//     --> softmax.cpp:41:9
//   note: B_shared is allocated here
//     --> softmax.cpp:33:9
//   help: pass transpose_b = true if B is stored as (N, K)
struct Diagnostic {
  enum class Severity : uint8_t { Error, Warning };
  Severity severity = Severity::Error;
  uint16_t code = 0;
  std::string message;
  SourceLocation location;
  std::vector<Note> notes;
  std::string help;

  std::string code_text() const;  // "TW1204"
  const char* area() const;       // "build", from the thousands digit of the code
  std::string to_string() const;  // the text above; includes the source line when the file can be read
  std::string to_json() const;    // one object: code, area, severity, message, file, line, column, notes, help
};

// Base of all exceptions that leave the library.
class Error : public std::exception {
 public:
  explicit Error(Diagnostic diagnostic);
  const char* what() const noexcept override { return text_.c_str(); }
  const Diagnostic& diagnostic() const { return diagnostic_; }

 private:
  Diagnostic diagnostic_;
  std::string text_;
};

class CompileError : public Error {  // the user's program or text is wrong, or asks for what an engine cannot do
 public:
  using Error::Error;
};
class LaunchError : public Error {  // the arguments of a call do not fit the program, or the run found a mistake
 public:
  using Error::Error;
};
class InternalError : public Error {  // ours: please report it
 public:
  using Error::Error;
};

}  // namespace tilewright
