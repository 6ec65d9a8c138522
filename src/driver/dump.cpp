#include "driver/dump.h"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "ir/print.h"
#include "support/diagnostic.h"
#include "support/warning.h"

namespace tilewright {

Dump::Dump(std::string program_name) : program_(std::move(program_name)) {
  if (const char* folder = std::getenv("TILEWRIGHT_DUMP")) folder_ = folder;
  for (char& c : program_)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  if (wanted()) mkdir(folder_.c_str(), 0777);
}

void Dump::write(const char* stage, const ir::TileProgram& program) {
  if (wanted()) write_text(stage, "tile", ir::print(program));
}
void Dump::write(const char* stage, const ir::LoopProgram& program) {
  if (wanted()) write_text(stage, "tile", ir::print(program));
}

void Dump::write(const char* stage, const ir::ThreadProgram& program) {
  if (wanted()) write_text(stage, "tile", ir::print(program));
}

void Dump::write_text(const char* stage, const char* extension, const std::string& text) {
  if (!wanted()) return;
  const std::string path = fmt::format("{}/{}.{:02}-{}.{}", folder_, program_, next_++, stage, extension);
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) warn(make_diagnostic(Code::DumpNotWritten, {path, 0, 0}, "TILEWRIGHT_DUMP: the file cannot be written"));
}

}  // namespace tilewright
