// What the printer and the parser of .tile text agree on: operators and their precedence, names, strings. The grammar
// is in docs/text_form.md.
#pragma once
#include <string>
#include <string_view>

#include "ir/program.h"

namespace tilewright::ir {

// Loosest first. Comparisons do not chain; all other infix operators group to the left.
enum Precedence : int {
  kAnyPrecedence = 0,
  kOrPrecedence,
  kAndPrecedence,
  kNotPrecedence,
  kComparePrecedence,
  kBitOrPrecedence,
  kBitXorPrecedence,
  kBitAndPrecedence,
  kShiftPrecedence,
  kAddPrecedence,
  kMulPrecedence,
  kUnaryPrecedence,
  kPrimaryPrecedence,
};

// The precedence of an operator written between its operands; kPrimaryPrecedence: it is written as a function.
Precedence precedence_of(BinaryOp op);

// A name as it stands in the text: plain, or between backquotes if it is no identifier or a word of expressions.
std::string name_text(std::string_view name);
std::string quoted(std::string_view text, char quote);
bool is_name_start(char c);
bool is_name_part(char c);

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

}  // namespace tilewright::ir
