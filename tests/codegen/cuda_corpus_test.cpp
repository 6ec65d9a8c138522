// The CUDA text of every example through the device compiler, without a device: it is accepted, spills nothing, and
// leaves no wgmma in series. What does not hold stands in one table with its reason, and must still be so.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "codegen/cuda_texts.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

enum class Finding : uint8_t {
  Refused,  // by the engine
  Spill,    // registers are kept in memory
  Remark,   // C75xx: the device compiler gave up something asynchronous
};

struct Exception {
  const char *program, *shape;  // shape "": all of the program's
  const char* arch;             // "": all
  Finding finding;
  const char* reason;
};

constexpr const char* kNoBarriers = "mbarriers and TMA need sm_90, and TMA rows of a multiple of 16 bytes";
constexpr const char* kNoVectors = "4 to 14 bytes: guards of every access, where rows are no whole vectors";
constexpr const char* kNoBytes = "8-bit floats multiplied as float32: a tile's operands in registers";
constexpr const char* kWgmmaTiles = "tiles for wgmma, which takes operands from shared memory";
constexpr const char* kWideTiles = "tiles for the shared memory of sm_90";
constexpr const char* kLeanLoader = "a loader with 24 registers, which the retry writes as an arm of one branch";
constexpr const char* kTooLarge = "TileLang's tiles, for the shared memory of sm_90";

const std::vector<Exception>& exceptions() {
  static const std::vector<Exception> table = {
      {"specialized_gemm", "", "", Finding::Refused, kNoBarriers},
      {"mla_decode_specialized", "", "sm_80", Finding::Refused, kNoBarriers},
      {"fp8_gemm", "", "sm_80", Finding::Spill, kNoBytes},
      {"swiglu_quantize", "1x1 float32", "sm_90a", Finding::Spill, kNoVectors},
      {"attention_backward", "4x32/32x4096x128 bfloat16", "sm_80", Finding::Spill, kWgmmaTiles},
      {"attention_backward", "4x32/32x4096x64 bfloat16", "sm_80", Finding::Spill, kWgmmaTiles},
      {"attention_backward", "4x32/32x4096x64 float16 causal dynamic", "sm_80", Finding::Spill, kWgmmaTiles},
      {"attention_backward", "4x32/32x4096x64 float16 causal dynamic", "sm_90a", Finding::Spill, kLeanLoader},
      {"attention_backward", "4x32/32x4096x128 bfloat16 causal", "sm_90a", Finding::Spill, kLeanLoader},
      {"specialized_attention", "", "sm_80", Finding::Refused, kNoBarriers},
      {"linear_attention", "8x32x4096x128+128 bfloat16", "sm_80", Finding::Spill, kWgmmaTiles},
      {"linear_attention", "2x1x1x64+64 bfloat16 dynamic", "sm_80", Finding::Spill, kWgmmaTiles},
      {"sparse_gemm", "8192x8192x8192 bfloat16 by 128x256", "sm_80", Finding::Refused, kWideTiles},
      {"sparse_gemm", "8192x8192x8192 float8_e4m3fn by 128x256", "sm_80", Finding::Refused, kWideTiles},
      {"mla_decode", "128x128x1:8192x512+64 bfloat16 by 64 keys", "sm_80", Finding::Refused, kTooLarge},
      {"mla_decode", "128x16x1:8192x512+64 bfloat16 by 64 keys", "sm_80", Finding::Refused, kTooLarge},
  };
  return table;
}

const Exception* exception_for(const ExampleText& t, Finding finding) {
  for (const Exception& e : exceptions()) {
    const bool shape = !*e.shape || t.shape == e.shape, arch = !*e.arch || t.arch == e.arch;
    if (t.program == e.program && shape && arch && e.finding == finding) return &e;
  }
  return nullptr;
}

// All shapes for GPUs; of the odd ones up to kOddTexts different texts, spread over the list. (Shapes known at the call
// share a text.)
constexpr size_t kOddTexts = 4;

std::vector<ExampleText> texts_of(const examples::Example& example, const std::string& arch) {
  std::vector<ExampleText> odd, out;
  std::set<std::string> seen;
  for (const examples::Case& c : example.cases(examples::Size::Odd)) {
    ExampleText text = cuda_text_of(example.name, c, arch);
    if (!text.refusal.empty() || seen.insert(text.kernel.text).second) odd.push_back(std::move(text));
  }
  const size_t taken = std::min(kOddTexts, odd.size());
  for (size_t i = 0; i < taken; ++i) out.push_back(odd[i * odd.size() / taken]);
  for (const examples::Case& c : example.cases(examples::Size::Gpu)) out.push_back(cuda_text_of(example.name, c, arch));
  return out;
}

struct Result {
  ExampleText text;
  std::string error;                                      // of the device compiler
  std::vector<std::pair<Finding, std::string>> findings;  // and what was seen
};

void compile(Result& result) {
  if (!result.text.refusal.empty()) {
    result.findings.emplace_back(Finding::Refused, result.text.refusal);
    return;
  }
  try {
    const runtime::DeviceLog log = runtime::cuda::compile_cuda(result.text.kernel).log;
    for (const runtime::KernelResources& k : log.kernels)
      if (k.spill_store_bytes + k.spill_load_bytes > 0)
        result.findings.emplace_back(
            Finding::Spill, fmt::format("{} spills {} bytes and loads {}, of {} registers", k.name, k.spill_store_bytes,
                                        k.spill_load_bytes, k.registers));
    for (const runtime::PtxasRemark& r : log.remarks)
      if (r.code.starts_with("C75")) result.findings.emplace_back(Finding::Remark, r.code + ": " + r.message);
  } catch (const CompileError& e) {
    result.error = e.what();
  }
}

std::vector<Result> compile_all(const std::string& arch) {
  std::vector<Result> results;
  for (const examples::Example& example : examples::all_examples())
    for (ExampleText& text : texts_of(example, arch)) results.push_back({std::move(text), {}, {}});
  std::atomic<size_t> next = 0;
  std::vector<std::jthread> workers;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    workers.emplace_back([&] {
      for (size_t at; (at = next++) < results.size();) compile(results[at]);
    });
  workers.clear();  // joins
  return results;
}

class CudaCorpus : public testing::TestWithParam<const char*> {};

TEST_P(CudaCorpus, CompilesWithoutSpillsAndRemarks) {
  try {
    runtime::Nvrtc::get();
  } catch (const CompileError& e) {
    GTEST_SKIP() << e.what();
  }
  std::set<const Exception*> met;
  for (const Result& r : compile_all(GetParam())) {
    const std::string name = fmt::format("{} {} {}", r.text.program, r.text.shape, r.text.arch);
    EXPECT_EQ(r.error, "") << name;
    for (const auto& [finding, what] : r.findings) {
      const Exception* exception = exception_for(r.text, finding);
      EXPECT_TRUE(exception) << name << ": " << what;
      met.insert(exception);
    }
  }
  for (const Exception& e : exceptions()) {
    const bool here = !*e.arch || e.arch == std::string(GetParam());
    EXPECT_TRUE(!here || met.contains(&e))
        << e.program << " " << e.shape << ": no longer so, take it off the list: " << e.reason;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaCorpus, testing::Values("sm_80", "sm_90a"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
