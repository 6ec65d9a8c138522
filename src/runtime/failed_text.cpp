#include "runtime/failed_text.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>

#include "runtime/process.h"
#include "support/diagnostic.h"

namespace tilewright::runtime {

std::string keep_failed_text(std::string_view name, std::string_view extension, std::string_view text) {
  const char* directory = secure_getenv("TILEWRIGHT_DUMP");
  if (!directory || !*directory) return "set TILEWRIGHT_DUMP to a directory to keep the text";
  std::string file_name;
  for (char c : name) file_name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  mkdir(directory, 0777);
  const std::string path =
      fmt::format("{}/{}.failed.{}", directory, file_name.empty() ? "kernel" : file_name, extension);
  const File file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  return file && file.write_all(text) ? fmt::format("the text is kept in {}", path)
                                      : fmt::format("{} cannot be written", path);
}

std::string first_lines(std::string_view text, int lines) {
  size_t end = 0;
  for (int i = 0; i < lines && end != std::string_view::npos; ++i) end = text.find('\n', end + (i > 0));
  return std::string(text.substr(0, end));
}

std::string excerpt(std::string_view text, int line) {
  std::string shown;
  bool found = false;
  size_t at = 0;
  for (int number = 1; at <= text.size() && number <= line + 2; ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (number >= line - 2)
      shown += fmt::format("{} {:>5} | {}\n", number == line ? '>' : ' ', number, text.substr(at, end - at));
    found |= number == line;
    at = end + 1;
  }
  if (!found) return "";
  shown.pop_back();
  return shown;
}

}  // namespace tilewright::runtime
