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

  // 5000: cpu. The CPU engine, the host compiler, the kernel cache.

  // 6000: run. Mistakes of a program that the interpreter finds while it runs.

  // 7000: tool. The command line.
};

}  // namespace tilewright
