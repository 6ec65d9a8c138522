#include "ir/parse_tokens.h"

#include "ir/text_form.h"
#include "support/diagnostic.h"

namespace tilewright::ir {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Tokenizer {
 public:
  Tokenizer(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    bool first_on_line = true;
    while (true) {
      first_on_line = skip_space() || first_on_line;
      Token token{TokenKind::End, {}, line_, column(), first_on_line};
      first_on_line = false;
      if (at_ < text_.size()) {
        const size_t begin = at_;
        token.kind = scan();
        token.text = text_.substr(begin, at_ - begin);
      }
      tokens.push_back(token);
      if (token.kind == TokenKind::End) return tokens;
    }
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  int column() const { return static_cast<int>(at_ - line_begin_) + 1; }
  SourceLocation here() const { return {file_, line_, column()}; }

  // True if a line ended.
  bool skip_space() {
    bool new_line = false;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '\n') {
        ++at_;
        ++line_;
        line_begin_ = at_;
        new_line = true;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else {
        break;
      }
    }
    return new_line;
  }

  TokenKind scan() {
    const char c = text_[at_];
    if (is_name_start(c)) {
      while (is_name_part(peek())) ++at_;
      return TokenKind::Name;
    }
    if (is_digit(c)) return number();
    if (c == '"' || c == '`') return quoted_text(c);
    for (std::string_view symbol : {"->", "..", "//", "<<", ">>", "==", "!=", "<=", ">="}) {
      if (text_.substr(at_, 2) != symbol) continue;
      at_ += 2;
      return TokenKind::Symbol;
    }
    if (std::string_view("+-*/%&|^~<>=()[]{},:@").find(c) == std::string_view::npos) {
      const auto byte = static_cast<unsigned char>(c);
      fail(Code::TextCharacter, here(),
           byte >= 0x20 && byte < 0x7f ? fmt::format("the character '{}' has no meaning here", c)
                                       : fmt::format("the byte 0x{:02x} has no meaning here", byte),
           "names with other characters stand between backquotes");
    }
    ++at_;
    return TokenKind::Symbol;
  }

  TokenKind number() {
    const size_t begin = at_;
    const SourceLocation place = here();
    bool is_float = false;
    if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X')) {
      at_ += 2;
    } else {
      while (is_digit(peek())) ++at_;
      if (peek() == '.' && is_digit(peek(1))) {
        is_float = true;
        ++at_;
        while (is_digit(peek())) ++at_;
      }
      const size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
      if ((peek() == 'e' || peek() == 'E') && is_digit(peek(1 + sign))) {
        is_float = true;
        at_ += 1 + sign;
      }
    }
    while (is_name_part(peek())) ++at_;
    const std::string_view text = text_.substr(begin, at_ - begin);
    const bool hex = text.starts_with("0x") || text.starts_with("0X");
    const std::string_view allowed = hex ? "0123456789abcdefABCDEF" : is_float ? "0123456789.eE+-" : "0123456789";
    const std::string_view digits = hex ? text.substr(2) : text;
    if (digits.empty() || digits.find_first_not_of(allowed) != std::string_view::npos)
      fail(Code::TextNumber, place, fmt::format("'{}' is no number", text),
           "write 12, 0x1f, 0.5 or 1e-3; a type is written around it: float16(0.5)");
    return is_float ? TokenKind::Float : TokenKind::Int;
  }

  TokenKind quoted_text(char quote) {
    const SourceLocation place = here();
    ++at_;
    while (peek() != quote) {
      if (at_ >= text_.size() || peek() == '\n')
        fail(Code::TextUnterminated, place,
             quote == '"' ? "the string does not end on its line" : "the quoted name does not end on its line",
             "line breaks inside are written \\n");
      at_ += peek() == '\\' && at_ + 1 < text_.size() && peek(1) != '\n' ? 2 : 1;
    }
    ++at_;
    return quote == '"' ? TokenKind::String : TokenKind::QuotedName;
  }

  std::string_view text_;
  const std::string& file_;
  size_t at_ = 0, line_begin_ = 0;
  int line_ = 1;
};

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

std::vector<Token> tokenize(std::string_view text, const std::string& file) { return Tokenizer(text, file).run(); }

std::string unquoted(const Token& token, const std::string& file) {
  std::string out;
  const std::string_view text = token.text.substr(1, token.text.size() - 2);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const char kind = ++i < text.size() ? text[i] : '\0';
    if (kind == 'n') {
      out += '\n';
    } else if (kind == 't') {
      out += '\t';
    } else if (kind == '\\' || kind == '"' || kind == '`') {
      out += kind;
    } else if (kind == 'x' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
      out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      fail(Code::TextEscape, {file, token.line, token.column + static_cast<int>(i)},
           "a backslash is followed by n, t, x and two hexadecimal digits, a quote, or a backslash");
    }
  }
  return out;
}

}  // namespace tilewright::ir
