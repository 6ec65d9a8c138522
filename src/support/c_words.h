// Names that C and C++ have given a meaning already: what generated text may not call its own things.
#pragma once
#include <cstdint>
#include <string_view>

namespace tilewright {

enum class CWord : uint8_t {
  None,
  Keyword,       // of either language
  Type,          // of a standard header
  Macro,         // of a standard header, or one that compilers define
  MathFunction,  // of libm
  Function,      // of another part of the C library
};

// What a program that includes standard headers means by the name.
CWord c_word(std::string_view name);

}  // namespace tilewright
