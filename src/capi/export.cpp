// The functions of tilewright/c_api.h on kernels that leave the process: exported libraries, and what they call.
#include <dlfcn.h>

#include <cstring>
#include <fstream>

#include "capi/handles.h"
#include "driver/build_kernel.h"
#include "driver/carried.h"
#include "embedded_text.h"
#include "runtime/c_literal.h"
#include "runtime/host_compiler.h"
#include "runtime/process.h"
#include "runtime/processor.h"

using namespace tilewright;
using capi::guarded;

namespace {

// Where this library is.
std::string own_path() {
  Dl_info info;
  return dladdr(reinterpret_cast<void*>(&tw_kernel_export), &info) && info.dli_fname ? info.dli_fname : "";
}

// A name of C from that of a program.
std::string symbol_of(const std::string& name) {
  std::string out = "__tvm_ffi_";
  for (char c : name) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return out;
}

// The program as the library will read it: places in kernels' texts are those of its .tile form on both sides.
Program program_of(const std::string& text) { return parse_program(text, "exported.tile"); }

std::string text_of_library(const tw_kernel& kernel, const std::string& program, const CarriedKernel& carried) {
  const bool cpu = carried.engine == "cpu";
  std::string out = cpu ? carried.text : "";
  const auto constant = [&](const char* name, const std::string& value) {
    out += fmt::format("static const char* const tw_{} = {};\n", name, value);
  };
  constant("carried_program", runtime::c_string(program));
  constant("carried_engine", runtime::c_string(carried.engine));
  constant("carried_arch", runtime::c_string(carried.arch));
  constant("carried_hash", runtime::c_string(hash_of_text(carried.text)));
  if (!carried.code.empty()) constant("carried_bytes_of_code", runtime::c_string(carried.code));
  out += fmt::format("static const void* const tw_carried_code = {};\n",
                     cpu                    ? "reinterpret_cast<const void*>(&tw_entry)"
                     : carried.code.empty() ? "nullptr"
                                            : "tw_carried_bytes_of_code");
  out += fmt::format("static const unsigned long tw_carried_bytes = {}ul;\n", carried.code.size());
  constant("library_path", runtime::c_string(own_path()));
  constant("library_name", runtime::c_string(fmt::format("libtilewright.so.{}", TW_ABI_VERSION)));
  out += fmt::format("#define TW_EXPORTED {}\n", symbol_of(kernel.executable.name()));
  for (const char* header : {"dlfcn", "pthread", "stdint", "stdio", "stdlib", "string"})
    out += fmt::format("#include <{}.h>\n", header);
  return out + text::capi_tvm_ffi_module;
}

std::vector<std::string> flags_of(const std::string& engine) {
  std::vector<std::string> flags = runtime::kernel_flags();
  if (engine == "cpu") {
    const std::vector<std::string> features = runtime::processor_features().compiler_flags();
    flags.insert(flags.end(), features.begin(), features.end());
  }
  return flags;
}

}  // namespace

extern "C" {

tw_error* tw_program_build(const tw_program* program, const char* arch, const char* name, const char* folder,
                           tw_text** out) {
  return guarded([&] {
    const std::vector<std::string> paths = write_files(build_kernel(program->program, arch, name), folder);
    *out = new tw_text{fmt::format("{}\n", fmt::join(paths, "\n"))};
  });
}

tw_error* tw_kernel_export(const tw_kernel* kernel, const char* path) {
  return guarded([&] {
    const std::string program = kernel->program.text();
    const CarriedKernel carried = carry(program_of(program), kernel->executable.engine(), kernel->arch);
    const std::string library = runtime::compile_shared_object(
        runtime::host_compiler(), {text_of_library(*kernel, program, carried), flags_of(carried.engine),
                                   std::chrono::minutes(5), kernel->executable.name()});
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(library.data(), static_cast<std::streamsize>(library.size()));
    file.close();
    if (!file) fail(Code::FileNotWritten, {}, fmt::format("{}: {}", path, std::strerror(errno)));
  });
}

tw_error* tw_kernel_load(const tw_carried* c, tw_kernel** out) {
  return guarded([&] {
    const Program program = program_of(c->program);
    *out = new tw_kernel{load_carried(program, c->engine, c->arch, c->hash, c->code, c->bytes), program, c->arch};
  });
}

}  // extern "C"
