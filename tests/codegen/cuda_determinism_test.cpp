// The same program gives the same CUDA text, byte for byte: after other programs, in another order, in another process.
#include <gtest/gtest.h>

#include <iostream>

#include "codegen/cuda_texts.h"
#include "runtime/sha256.h"
#include "support/warning.h"

namespace tilewright {
namespace {

// A line a text: the last odd case and the first for GPUs of every example, for two architectures.
std::string digests(bool backwards) {
  std::vector<examples::Example> list = examples::all_examples();
  std::vector<std::string> architectures = {"sm_80", "sm_90a"};
  if (backwards) std::reverse(list.begin(), list.end()), std::reverse(architectures.begin(), architectures.end());
  std::set<std::string> lines;
  for (const examples::Example& e : list) {
    std::vector<examples::Case> cases = {e.cases(examples::Size::Odd).back(), e.cases(examples::Size::Gpu).front()};
    if (backwards) std::reverse(cases.begin(), cases.end());
    for (const examples::Case& c : cases)
      for (const std::string& arch : architectures) {
        const ExampleText text = cuda_text_of(e.name, c, arch);
        lines.insert(fmt::format("{} {} {} {} {}\n", e.name, c.shape, arch, text.refusal,
                                 runtime::hex(runtime::sha256(text.kernel.text))));
      }
  }
  return fmt::format("{}", fmt::join(lines, ""));
}

TEST(CudaDeterminism, TextDoesNotDependOnWhatWasBuiltBefore) { EXPECT_EQ(digests(false), digests(true)); }

// The other process starts this binary anew: memory lies elsewhere, and what it builds first, this one builds last.
TEST(CudaDeterminism, TextDoesNotDependOnTheProcess) {
  const WarningSink before = replace_warning_sink([](const Diagnostic&) {});  // its words would be among the other's
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const testing::Matcher<const std::string&> ours(digests(false));
  EXPECT_EXIT((std::cerr << digests(true), std::exit(0)), testing::ExitedWithCode(0), ours);
  replace_warning_sink(before);
}

}  // namespace
}  // namespace tilewright
