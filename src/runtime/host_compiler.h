// The host's C++ compiler as a function from text to the bytes of a shared object. Never through a shell, and no user
// text ever on a command line: the text travels in a file of a fixed name in a private directory.
#pragma once
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::runtime {

struct HostCompiler {
  std::string path;      // absolute
  std::string identity;  // first line of --version, and what changes when the file is replaced
};

// TILEWRIGHT_CXX (an absolute path or a name on PATH) if set, else g++, clang++, c++ of PATH. CompileError naming what
// to install if there is none.
HostCompiler find_host_compiler();
// Those of these three names that PATH has, in this order, each program once; what does not answer is left out.
std::vector<HostCompiler> host_compilers_of_path();
// What find_host_compiler() finds, looked for once while TILEWRIGHT_CXX and PATH stay as they are.
HostCompiler host_compiler();

struct CompileRequest {
  std::string_view text;
  std::vector<std::string> flags;               // ours only
  std::chrono::milliseconds deadline{120'000};  // then the compiler and its children are killed
  std::string_view dump_name;                   // names the text kept under TILEWRIGHT_DUMP
};

// A run of the compiler in a directory of its own, which has these files; by our names alone.
struct CompilerRun {
  std::vector<std::pair<std::string, std::string_view>>
      files;  // name, bytes; the first is the text that may be refused
  std::vector<std::string> arguments;
  std::string result;                           // the file that it makes
  std::chrono::milliseconds deadline{120'000};  // then the compiler and its children are killed
  std::string_view dump_name;                   // names the text kept under TILEWRIGHT_DUMP
};
// The bytes of the result. CompileError with the compiler's messages if it does not make it in time.
std::string run_compiler(const HostCompiler& compiler, const CompilerRun& run);

// The flags every CPU kernel is compiled with; see host_compiler.cpp for why each of them.
const std::vector<std::string>& kernel_flags();

// CompileError with the compiler's messages if the text does not compile in time.
std::string compile_shared_object(const HostCompiler& compiler, const CompileRequest& request);

}  // namespace tilewright::runtime
