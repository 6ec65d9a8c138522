// Every example at odd shapes, static and dynamic, on both engines: against its reference, and elementwise programs bit
// for bit against each other.
#include "example.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tilewright/diagnostic.h"

namespace examples {
namespace {

using tilewright::Engine;

class Examples : public testing::TestWithParam<Example> {};

// Kernels of all cases, built on all cores; what fails to build fails again, and is reported, in the test itself.
void build_kernels(const std::vector<Case>& cases) {
#pragma omp parallel for schedule(dynamic)
  for (size_t i = 0; i < cases.size(); ++i) {
    try {
      tilewright::compile(cases[i].program, {.engine = Engine::Cpu});
    } catch (const std::exception&) {
    }
  }
}

std::vector<NDArray> checked_run(const Case& c, Engine engine) {
  const auto executable = tilewright::compile(c.program, {.engine = engine});
  std::vector<NDArray> arrays = run_case(c, executable);
  const Check check = c.check(arrays, INT64_MAX);
  EXPECT_TRUE(check.ok()) << c.shape << " on " << executable.engine() << ": " << check.first_bad();
  return arrays;
}

void expect_same_bits(const Case& c, const std::vector<NDArray>& a, const std::vector<NDArray>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const auto bytes = static_cast<size_t>((a[i].size() * a[i].dtype().storage_bits() + 7) / 8);
    EXPECT_EQ(std::memcmp(a[i].data(), b[i].data(), bytes), 0)
        << c.shape << ": array " << i << " differs between the interpreter and the CPU";
  }
}

TEST_P(Examples, OddShapesAreRightOnBothEngines) {
  const std::vector<Case> cases = GetParam().cases(Size::Odd);
  build_kernels(cases);
  for (const Case& c : cases) {
    try {
      const std::vector<NDArray> interpreted = checked_run(c, Engine::Interpreter);
      const std::vector<NDArray> compiled = checked_run(c, Engine::Cpu);
      if (c.elementwise) expect_same_bits(c, interpreted, compiled);
    } catch (const tilewright::Error& error) {
      ADD_FAILURE() << c.shape << ": " << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Examples, testing::ValuesIn(all_examples()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ExampleFrame, CheckFindsWhatIsBeyondTheBound) {
  Check check;
  check.compare(1.0, 1.5, 1, [] { return "a"; });
  EXPECT_TRUE(check.ok());
  EXPECT_EQ(check.max_error(), 0.5);
  check.compare(std::nan(""), 1, 1, [] { return "C[2, 3]"; });
  EXPECT_EQ(check.first_bad(), "C[2, 3] = nan, expected 1 within 1");
  EXPECT_FALSE(Check().ok()) << "a check that compared nothing passed";
}

TEST(ExampleFrame, ElementsDecodesAsTheLibraryDoes) {
  using namespace tilewright;
  for (const DType t : {f16, bf16, e4m3, e5m2, e8m0, e2m1, i4, u4, i8, u16, f64}) {
    const NDArray array = random_array({2, 3, 33}, t, 7, t == e8m0 || t == u4 || t == u16 ? 0 : -6, 6);
    const Elements elements(array);
    const std::vector<double> expected = array.to_floats();
    for (int64_t i = 0; i < array.size(); ++i) ASSERT_EQ(elements[i], expected[static_cast<size_t>(i)]) << t.name();
  }
}

TEST(ExampleFrame, SamplesKeepTheEnds) {
  const std::vector<int64_t> some = sample(1'000'003, 100);
  EXPECT_EQ(some.size(), 100u);
  EXPECT_EQ(some.front(), 0);
  EXPECT_EQ(some.back(), 1'000'002);
  EXPECT_TRUE(std::is_sorted(some.begin(), some.end()));
  EXPECT_EQ(sample(3, 100), (std::vector<int64_t>{0, 1, 2}));
}

}  // namespace
}  // namespace examples
