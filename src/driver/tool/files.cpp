// Files of the command line.
#include <cstdio>

#include "driver/tool/commands.h"
#include "support/diagnostic.h"

namespace tilewright::tool {
namespace {

struct Closer {
  void operator()(std::FILE* f) const {
    if (f != stdin) std::fclose(f);
  }
};
using File = std::unique_ptr<std::FILE, Closer>;

}  // namespace

std::string read_file(const std::string& path) {
  const File file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (!file) fail(Code::FileNotReadable, {}, fmt::format("{}: {}", path, std::strerror(errno)));
  std::string text;
  char buffer[65536];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, file.get())) > 0;) text.append(buffer, n);
  if (std::ferror(file.get())) fail(Code::FileNotReadable, {}, fmt::format("{}: {}", path, std::strerror(errno)));
  return text;
}

void write_file(const std::string& path, const std::string& text) {
  File file(std::fopen(path.c_str(), "wb"));
  const bool wrote = file && std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  if (!wrote || std::fclose(file.release()) != 0)
    fail(Code::FileNotWritten, {}, fmt::format("{}: {}", path, std::strerror(errno)));
}

}  // namespace tilewright::tool
