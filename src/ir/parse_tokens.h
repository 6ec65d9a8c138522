// The words of .tile text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/diagnostic.h"

namespace tilewright::ir {

enum class TokenKind : uint8_t {
  Name,        // plain
  QuotedName,  // between backquotes: never a keyword
  String,
  Int,
  Float,
  Symbol,  // operators and brackets
  End,
};

struct Token {
  TokenKind kind = TokenKind::End;
  std::string_view text;  // as in the source, with its quotes
  int line = 1, column = 1;
  bool first_on_line = false;

  bool is(std::string_view symbol_or_word) const {
    return (kind == TokenKind::Symbol || kind == TokenKind::Name) && text == symbol_or_word;
  }
  bool is_name() const { return kind == TokenKind::Name || kind == TokenKind::QuotedName; }
};

// All tokens, the last one End. Comments run from # to the end of the line.
std::vector<Token> tokenize(std::string_view text, const std::string& file);

// The value of a string or quoted name.
std::string unquoted(const Token& token, const std::string& file);

}  // namespace tilewright::ir
