// A mistake of a user's, and the whole of what Tilewright says about it.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "tilewright/diagnostic.h"
#include "tilewright/language.h"

namespace tilewright::errors {

struct Marks {
  int mistake = 0, declaration = 0;
};
inline Marks& marks() {
  static Marks marks;
  return marks;
}
// The next line holds the mistake: errors must point there.
inline void mark(Location at = Location::current()) { marks().mistake = static_cast<int>(at.line()) + 1; }
// The next line declares what a note of the error points at.
inline void mark_declaration(Location at = Location::current()) {
  marks().declaration = static_cast<int>(at.line()) + 1;
}

inline std::string place_text(const SourceLocation& at, const std::string& test_file) {
  if (!at.known()) return "";
  const std::string file = at.file.substr(at.file.rfind('/') + 1);
  if (file != test_file) return "\n  --> " + file + ":" + std::to_string(at.line);
  if (at.line == marks().mistake) return "\n  --> the mistake";
  if (at.line == marks().declaration) return "\n  --> the declaration";
  return "\n  --> line " + std::to_string(at.line);
}

// The text of a diagnostic with the marked lines named, so that it does not depend on where the file lies.
inline std::string normalized(const Diagnostic& d, const std::string& test_file) {
  std::string text = d.code_text() + " " + d.area() + ": " + d.message + place_text(d.location, test_file);
  for (const Note& note : d.notes) text += "\nnote: " + note.message + place_text(note.location, test_file);
  return d.help.empty() ? text : text + "\nhelp: " + d.help;
}

inline void expect_error(const std::function<void()>& program, const std::string& expected,
                         Location at = Location::current()) {
  marks() = {};
  const std::string file = at.file_name();
  std::string got = "no error";
  try {
    program();
  } catch (const Error& e) {
    got = normalized(e.diagnostic(), file.substr(file.rfind('/') + 1));
    const std::string head = "error " + e.diagnostic().code_text() + " " + e.diagnostic().area() + ": ";
    EXPECT_EQ(std::string(e.what()).substr(0, head.size()), head);
  }
  EXPECT_EQ(got, expected);
}

// A program of one block of 128 threads with this body.
inline Program kernel(std::initializer_list<Parameter> parameters, const std::function<void()>& body) {
  return prim_func("program", parameters, [&] {
    for (auto bx : Kernel(1, {.threads = 128})) {
      (void)bx;
      body();
    }
  });
}

}  // namespace tilewright::errors
