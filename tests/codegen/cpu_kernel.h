// Programs of the C++ language run by the CPU engine, without the driver: argument checks are not at issue here.
#pragma once
#include "codegen/cpu.h"
#include "ir/program.h"
#include "runtime/cpu_kernel.h"
#include "tilewright/language.h"
#include "tilewright/tensor.h"

namespace tilewright {

class CpuKernelUnderTest {
 public:
  explicit CpuKernelUnderTest(const Program& program);
  // The tensor parameters in order, then the workspaces; the symbols, then the scalar parameters as 64-bit words.
  void run(std::initializer_list<NDArray> arrays, std::vector<int64_t> integers = {}) const;
  const std::string& text() const { return source_.text; }

 private:
  codegen::CpuKernelSource source_;
  runtime::LaunchPlan plan_;
  std::unique_ptr<runtime::Callee> callee_;
};

// The C++ text, for these features.
std::string cpu_text_of(const Program& program, const target::CpuFeatures& features = {});

}  // namespace tilewright
