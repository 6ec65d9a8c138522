#include "codegen/source_marks.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::codegen {

std::string source_mark(const SourceLocation& at) {
  std::string file = at.file.substr(at.file.find_last_of('/') + 1);
  for (char& c : file)
    if (c == '\n' || c == '\r' || c == '\\') c = '_';
  return fmt::format("// {}:{}", file, at.line);
}

std::vector<SourceLocation> places_of_lines(std::string_view text, std::span<const SourceLocation> marks) {
  std::vector<std::string> comments;
  for (const SourceLocation& at : marks) comments.push_back(source_mark(at));
  std::vector<SourceLocation> places;
  SourceLocation here;
  for (size_t next = 0; !text.empty();) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t begin = line.find_first_not_of(' ');
    if (begin == 0) here = {};  // where functions begin and end
    if (begin != std::string_view::npos && line.substr(begin).starts_with("// ")) {
      // Text that was written and dropped leaves marks that do not come.
      const auto found = std::find(comments.begin() + static_cast<int64_t>(next), comments.end(), line.substr(begin));
      if (found != comments.end()) {
        next = static_cast<size_t>(found - comments.begin());
        here = marks[next++];
      }
    }
    const bool closes = begin != std::string_view::npos && line[begin] == '}';
    places.push_back(closes ? SourceLocation() : here);
  }
  return places;
}

}  // namespace tilewright::codegen
