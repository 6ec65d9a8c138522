// Kernels that were compiled elsewhere and are carried beside their program: what an exported library holds.
#pragma once
#include <string>

#include "tilewright/executable.h"
#include "tilewright/program.h"

namespace tilewright {

struct CarriedKernel {
  std::string engine;     // "cpu", "cuda"; others carry nothing
  std::string arch;       // of a GPU
  std::string text;       // what the code is compiled from, and
  std::string code = {};  // the code, where it is not an entry of the library that carries it
};

// The kernel of a program as it is carried: for the CPU the text alone, which the library compiles.
CarriedKernel carry(const Program& program, const std::string& engine, const std::string& arch);
// What stands for a text beside its code.
std::string hash_of_text(const std::string& text);

// With the code in place of a compiler where it is that of the text that we write for this program and processor;
// else as compile() makes it. code: the entry of a CPU kernel, or a cubin.
Executable load_carried(const Program& program, const std::string& engine, const std::string& arch,
                        const std::string& hash, const void* code, size_t bytes);

}  // namespace tilewright
