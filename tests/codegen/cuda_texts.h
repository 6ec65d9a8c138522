// The CUDA texts of the examples, which two tests read.
#pragma once
#include <optional>

#include "driver/cuda_engine.h"
#include "example.h"

namespace tilewright {

struct ExampleText {
  std::string program, shape, arch;
  runtime::cuda::CudaKernelText kernel;
  std::string refusal;  // the code of the error where the engine refuses the program; the kernel is empty then
};

ExampleText cuda_text_of(const std::string& program, const examples::Case& c, const std::string& arch);

}  // namespace tilewright
