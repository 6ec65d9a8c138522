// Every example at odd shapes: what its threads compute on the simulated GPU is what the interpreter computes, bit for
// bit where it is elementwise, and no race, barrier or access is found wrong.
#include "example.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tilewright/diagnostic.h"

namespace examples {
namespace {

using tilewright::Engine;

class SimulatedExamples : public testing::TestWithParam<Example> {};

// What the GPU engine refuses.
bool is_refusal(const tilewright::Diagnostic& d) { return d.code / 100 == 82; }

void expect_right(const Case& c, const char* arch, const std::vector<NDArray>& want) {
  SCOPED_TRACE(c.shape + " on " + arch);
  try {
    const auto simulated = tilewright::compile(c.program, {.engine = Engine::Simulator, .arch = arch});
    const std::vector<NDArray> got = run_case(c, simulated);
    const Check check = c.check(got, INT64_MAX);
    EXPECT_TRUE(check.ok()) << check.first_bad();
    for (size_t i = 0; c.elementwise && i < got.size(); ++i) {
      const auto bytes = static_cast<size_t>((got[i].size() * got[i].dtype().storage_bits() + 7) / 8);
      EXPECT_EQ(std::memcmp(got[i].data(), want[i].data(), bytes), 0) << "array " << i;
    }
  } catch (const tilewright::Error& error) {
    // Programs that the CPU refuses use what the GPU engine may not run yet.
    EXPECT_TRUE(c.names_instructions && is_refusal(error.diagnostic())) << error.what();
  }
}

TEST_P(SimulatedExamples, OddShapesAreRightAndWithoutRaces) {
  for (const Case& c : GetParam().cases(Size::Odd)) {
    std::vector<NDArray> want;
    if (c.elementwise) want = run_case(c, tilewright::compile(c.program, {.engine = Engine::Interpreter}));
    for (const char* arch : {"sm_80", "sm_90a"}) expect_right(c, arch, want);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SimulatedExamples, testing::ValuesIn(all_examples()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace examples
