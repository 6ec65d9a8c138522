// What the library says of options that mean nothing.
#pragma once
#include <string>

#include "tilewright/diagnostic.h"

namespace tilewright::kernels {

[[noreturn]] inline void refuse(const std::string& message, const std::string& help) {
  Diagnostic d;
  d.code = 1080;
  d.message = message;
  d.help = help;
  throw CompileError(std::move(d));
}

}  // namespace tilewright::kernels
