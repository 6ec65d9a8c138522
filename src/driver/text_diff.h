// What is different between two texts, by lines.
#pragma once
#include <string_view>
#include <vector>

namespace tilewright {

// A line that both have ('='), that only the first has ('-') or only the second ('+'), with its number in the text that
// has it, from 1 (of both: in the second).
struct DiffLine {
  char kind = '=';
  size_t number = 0;
  std::string_view text;  // of the texts that were given
};

// All lines of both, in order.
std::vector<DiffLine> text_diff(std::string_view before, std::string_view after);

}  // namespace tilewright
