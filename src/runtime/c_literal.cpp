#include "runtime/c_literal.h"

#include <fmt/format.h>

#include <limits>

namespace tilewright::runtime {

// Octal escapes end by themselves.
std::string c_string(std::string_view bytes) {
  std::string out = "\"";
  size_t column = 0;
  for (char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\' || c == '"')
      out += '\\', out += c;
    else if (byte >= 32 && byte < 127 && c != '?')  // ? begins trigraphs
      out += c;
    else
      out += fmt::format("\\{:03o}", byte);
    if (++column % 4096 == 0) out += "\"\n\"";
  }
  return out + '"';
}

std::string c_integer(int64_t value) {
  if (value == std::numeric_limits<int64_t>::min()) return "(-9223372036854775807ll - 1)";
  return fmt::format("{}ll", value);
}

}  // namespace tilewright::runtime
