#pragma once
#include <string>
#include <vector>

namespace tilewright {

// Lines of a text, without those that are empty, comments (`#`), and the space around them.
std::vector<std::string> lines_in(const std::string& text);

}  // namespace tilewright
