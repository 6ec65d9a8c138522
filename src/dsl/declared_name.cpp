// Python frontends know the names of variables; C++ does not, so they are read from the line that declares them. Names
// only make generated text and messages readable: nothing depends on them.
#include <fstream>

#include "dsl/recording.h"

namespace tilewright {
namespace {

std::string line_at(const Location& at) {
  static thread_local std::map<std::string, std::vector<std::string>> files;
  auto [found, added] = files.try_emplace(at.file_name());
  if (added) {
    std::ifstream file(at.file_name());
    for (std::string line; std::getline(file, line);) found->second.push_back(line);
  }
  return at.line() >= 1 && at.line() <= found->second.size() ? found->second[at.line() - 1] : "";
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The identifier that ends right before position `end`, skipping blanks.
std::string name_before(const std::string& line, size_t end) {
  while (end > 0 && line[end - 1] == ' ') --end;
  size_t begin = end;
  while (begin > 0 && is_name(line[begin - 1])) --begin;
  return line.substr(begin, end - begin);
}

bool is_identifier(const std::string& s) { return !s.empty() && !std::isdigit(static_cast<unsigned char>(s[0])); }

}  // namespace

std::string declared_name(const Location& at) {
  const std::string line = line_at(at);
  // Several declarations may share a line: take the last '=' before the column of the call.
  const size_t limit = std::min<size_t>(line.size(), at.column() > 0 ? at.column() : line.size());
  for (size_t i = limit; i-- > 0;) {
    if (line[i] != '=' || (i > 0 && std::string_view("=<>!+-*/|&^").find(line[i - 1]) != std::string_view::npos) ||
        (i + 1 < line.size() && line[i + 1] == '='))
      continue;
    const std::string name = name_before(line, i);
    return is_identifier(name) ? name : "";
  }
  return "";
}

std::vector<std::string> declared_loop_names(const Location& at) {
  const std::string line = line_at(at);
  const size_t limit = at.column() > 0 ? std::min<size_t>(line.size(), at.column()) : line.size();
  const size_t colon = line.rfind(" : ", limit);
  if (colon == std::string::npos) return {};
  const size_t bracket = line.rfind('[', colon), keyword = line.rfind("auto", colon);
  if (keyword == std::string::npos) return {};
  if (bracket == std::string::npos || bracket < keyword) {
    const std::string name = name_before(line, colon);
    return is_identifier(name) ? std::vector<std::string>{name} : std::vector<std::string>{};
  }
  std::vector<std::string> names;
  std::string name;
  for (size_t i = bracket + 1; i < colon; ++i) {
    if (is_name(line[i])) {
      name += line[i];
    } else if ((line[i] == ',' || line[i] == ']') && is_identifier(name)) {
      names.push_back(std::exchange(name, {}));
    }
  }
  return names;
}

}  // namespace tilewright
