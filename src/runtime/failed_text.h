// The text of a kernel that a compiler refused: kept for the user, and shown in pieces.
#pragma once
#include <string>
#include <string_view>

namespace tilewright::runtime {

// Writes the text to <name>.failed.<extension> in the directory TILEWRIGHT_DUMP; returns what the error says about it.
std::string keep_failed_text(std::string_view name, std::string_view extension, std::string_view text);

std::string first_lines(std::string_view text, int lines);

// Line `line` (from 1) with its number and two neighbours on each side, the line itself marked; empty if there is no
// such line.
std::string excerpt(std::string_view text, int line);

}  // namespace tilewright::runtime
