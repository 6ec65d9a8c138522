// The one list of error codes. The thousands digit names the area. A code, once released, keeps its meaning.
#pragma once
#include <cstdint>

namespace tilewright {

enum class Code : uint16_t {
  Internal = 1,  // a broken invariant of ours

  // 1000: build. The program being built is wrong.

  // 2000: parse. Text (.tile) that is not a program.

  // 3000: verify. A well-formed program that breaks a rule of the language or of its level.

  // 4000: launch. Arguments of a call.
  ArgumentCount = 4001,       // not as many arguments as parameters
  ArgumentKind = 4002,        // a tensor where a number belongs, or the reverse
  ArgumentNull = 4003,        // null where the parameter may not be null
  ArgumentDtype = 4004,       // the tensor has another dtype
  ArgumentRank = 4005,        // the tensor has another number of dimensions
  ArgumentDevice = 4006,      // the tensor is not in the engine's memory
  ArgumentShape = 4007,       // a dimension differs from what the program says
  ArgumentStrides = 4008,     // a stride differs from what the program says
  ArgumentAlignment = 4009,   // the address is not a multiple of what the program needs
  ScalarRange = 4010,         // the number does not fit the parameter's dtype
  SymbolUnsolvable = 4011,    // no integer value of the symbol gives this dimension or stride
  ExpressionOverflow = 4012,  // a shape, stride or size leaves 64 bits or divides by zero
  AssumptionFailed = 4013,    // what the program assumes does not hold for these arguments
  PlanTooLarge = 4014,        // more parameters, workspaces or symbols than a call can hold
  AssertionFailed = 4015,     // an assertion in the kernel
  ArrayInvalid = 4016,        // an array that cannot be: negative extent, rank above 8, index out of range
  DlpackInvalid = 4017,       // a DLPack tensor that has no NDArray
  OutOfMemory = 4018,         // no memory for an array or a workspace

  // 5000: cpu. The CPU engine, the host compiler, the kernel cache.
  HostCompilerMissing = 5500,    // no C++ compiler was found
  HostCompilerFailed = 5501,     // the compiler refused our text
  HostCompilerTimedOut = 5502,   // the compiler was stopped at the deadline
  KernelNotLoadable = 5503,      // the dynamic linker refused the compiled kernel
  ProcessorUnknown = 5504,       // TILEWRIGHT_CPU names no processor
  ScratchDirectory = 5505,       // no private directory for the compiler's files
  SettingInvalid = 5506,         // an environment variable that is not a number
  CacheDirectoryRefused = 5510,  // not a private directory of this user: not used
  CacheEntryDamaged = 5511,      // set aside and compiled again
  CacheNotWritable = 5512,       // the kernel was compiled but could not be kept

  // 6000: run. Mistakes of a program that the interpreter finds while it runs.

  // 7000: tool. The command line.
};

}  // namespace tilewright
