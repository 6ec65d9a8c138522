#include "support/lines.h"

#include <sstream>

namespace tilewright {

std::vector<std::string> lines_in(const std::string& text) {
  std::vector<std::string> out;
  std::stringstream all(text);
  for (std::string line; std::getline(all, line);) {
    line = line.substr(0, line.find('#'));
    const size_t first = line.find_first_not_of(" \t\r"), last = line.find_last_not_of(" \t\r");
    if (first != std::string::npos) out.push_back(line.substr(first, last - first + 1));
  }
  return out;
}

}  // namespace tilewright
