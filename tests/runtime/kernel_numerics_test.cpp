// The promise behind kernel_flags(): the scalar texts give the same bits in a kernel, at every processor level, as in
// the library.
#include <random>

#include "runtime/cpu_kernel.h"
#include "runtime/plans.h"
#include "runtime/scratch.h"
#include "scalar/evaluate.h"
#include "scalar/pieces.h"

namespace tilewright::runtime {
namespace {

constexpr int64_t kSamples = 6000;

std::vector<Function> float_functions() {
  std::vector<Function> functions;
  for (const FunctionInfo& row : all_functions())
    if (accepts(row.function, f32)) functions.push_back(row.function);
  return functions;
}

// out[f * n + i] = f(a[i], b[i], c[i]) in vectorized loops.
std::string kernel_text(const std::vector<Function>& functions) {
  std::set<std::string> pieces;
  std::string loops;
  for (size_t f = 0; f < functions.size(); ++f) {
    const std::string name = c_name(functions[f], f32);
    pieces.insert(name);
    const char* operands[] = {"a[i]", "a[i], b[i]", "a[i], b[i], c[i]"};
    loops += fmt::format("#pragma omp simd\n  for (long long i = 0; i < n; ++i) out[{} * n + i] = {}({});\n", f, name,
                         operands[info(functions[f]).arity - 1]);
  }
  return kernel_text_head() + pieces_text(pieces) +
         "extern \"C\" int tw_entry(const struct tw_call* call) {\n"
         "  const float *a = (const float*)call->buffers[0], *b = (const float*)call->buffers[1], *c = (const "
         "float*)call->buffers[2];\n"
         "  float* out = (float*)call->buffers[3];\n"
         "  const long long n = call->integers[0];\n" +
         loops + "  return 0;\n}\n";
}

NDArray samples(uint32_t seed) {
  const NDArray array = NDArray::empty({kSamples}, f32);
  auto* values = static_cast<float*>(array.data());
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float special[] = {0.0f,     -0.0f, 1.0f, -1.0f, 0.5f,  1e-40f,  -1e-45f, 3.4e38f,
                           -3.4e38f, inf,   -inf, nan,   88.7f, -103.9f, 2.5f};
  std::mt19937 random(seed);
  for (int64_t i = 0; i < kSamples; ++i) {
    const uint32_t bits = random();
    if (i % 3 == 0)
      values[i] = std::bit_cast<float>(bits);
    else if (i % 3 == 1)
      values[i] = (static_cast<float>(bits) / 0x1p32f - 0.5f) * 40.0f;
    else
      values[i] = special[bits % std::size(special)];
  }
  return array;
}

std::vector<float> by_the_library(Function function, std::span<const void* const> inputs) {
  std::vector<float> result(kSamples);
  if (!info(function).is_predicate) {
    apply(function, f32, inputs, result.data(), kSamples);
    return result;
  }
  std::vector<int64_t> truth(kSamples);
  apply(function, f32, inputs, truth.data(), kSamples);
  return {truth.begin(), truth.end()};
}

TEST(KernelNumerics, ScalarFunctionsGiveTheLibrarysBitsAtEveryLevel) {
  const Scratch scratch;
  const ScopedVariable cache("TILEWRIGHT_CACHE_DIR", (scratch / "cache").c_str());
  const std::vector<Function> functions = float_functions();
  const int64_t count = static_cast<int64_t>(functions.size());
  LaunchPlan plan;
  plan.name = "functions";
  for (const char* name : {"a", "b", "c"}) plan.parameters.push_back(tensor_parameter(name, f32, {symbol(0)}));
  plan.parameters.push_back(tensor_parameter("out", f32, {constant(count), symbol(0)}));
  plan.symbols = {shape_symbol("n", 0, 0)};
  const NDArray a = samples(1), b = samples(2), c = samples(3);
  const void* const inputs[] = {a.data(), b.data(), c.data()};
  for (const char* level : {"portable", "avx2", "native"}) {
    const ProcessorFeatures features = restrict_features(detect_processor(), level);
    const Executable kernel =
        make_executable(plan, build_cpu_kernel({"functions", kernel_text(functions), features}), "cpu", "");
    const NDArray out = NDArray::zeros({count, kSamples}, f32);
    kernel(a, b, c, out);
    for (size_t f = 0; f < functions.size(); ++f) {
      const FunctionInfo& row = info(functions[f]);
      const std::vector<float> expected = by_the_library(row.function, std::span(inputs, row.arity));
      const float* got = static_cast<const float*>(out.data()) + f * kSamples;
      for (size_t i = 0; i < kSamples; ++i) {
        const bool same = std::bit_cast<uint32_t>(expected[i]) == std::bit_cast<uint32_t>(got[i]);
        // Which NaN of two operands survives is the processor's choice of operand order.
        ASSERT_TRUE(same || (std::isnan(expected[i]) && std::isnan(got[i])))
            << level << " " << row.name << "(" << static_cast<const float*>(a.data())[i] << ", "
            << static_cast<const float*>(b.data())[i] << "): " << got[i] << ", the library " << expected[i];
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::runtime
