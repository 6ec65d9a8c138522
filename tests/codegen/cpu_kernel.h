// Programs of the C++ language run by the CPU engine, without argument checks: they are not at issue here.
#pragma once
#include "driver/cpu_engine.h"
#include "tilewright/language.h"
#include "tilewright/tensor.h"

namespace tilewright {

class CpuKernelUnderTest {
 public:
  explicit CpuKernelUnderTest(const Program& program);
  // The tensor parameters in order, then the workspaces; the symbols, then the scalar parameters as 64-bit words.
  void run(const std::vector<NDArray>& arrays, const std::vector<int64_t>& integers = {}) const;
  const std::string& text() const { return kernel_.text; }

 private:
  CpuKernel kernel_;
  runtime::LaunchPlan plan_;
};

// Runs the program on the CPU engine and on the interpreter with the same arguments; every array must end up the same,
// bit for bit, or, with a bound, within it relative to the largest magnitude. Gives the arrays the CPU engine left.
std::vector<NDArray> expect_same(const Program& program, const std::vector<NDArray>& arrays,
                                 const std::vector<int64_t>& integers = {}, double bound = 0);
// Values that repeat every 97 elements, from -40 * scale up, in the type.
NDArray ramp(std::initializer_list<int64_t> shape, DType type, double scale = 1);

// The C++ text, for these features.
std::string cpu_text_of(const Program& program, const runtime::ProcessorFeatures& features = {});

}  // namespace tilewright
