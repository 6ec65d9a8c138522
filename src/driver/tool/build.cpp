// tilewright build
#include "driver/build_kernel.h"
#include "driver/tool/commands.h"
#include "tilewright/program.h"

#include <fmt/format.h>

namespace tilewright::tool {

int build(const BuildArguments& arguments) {
  const Program program = parse_program(read_file(arguments.file), arguments.file);
  for (const std::string& arch : arguments.arch)
    for (const std::string& path : write_files(build_kernel(program, arch, arguments.name), arguments.out))
      fmt::print("{}\n", path);
  return kOk;
}

}  // namespace tilewright::tool
