// The blocks of code of docs/language.md, taken from its text when the build is configured: they compile, run, and give
// the same on both engines.
#include <gtest/gtest.h>

#include "runtime/report.h"
#include "tilewright/compile.h"
#include "tilewright/diagnostic.h"
#include "tilewright/language.h"

namespace tilewright::language_page {

// What the blocks of the page may name.
struct Scene {
  Tensor A, O, H, I, X;
  Value bx, tx;
};

#include "language_snippets.h"

namespace {

NDArray ramp(std::initializer_list<int64_t> shape, DType type) {
  NDArray a = NDArray::zeros(shape, type);
  std::vector<double> values(static_cast<size_t>(a.size()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 13) / 4 - 1;
  a.assign_floats(values);
  return a;
}

// A, O, H, I, X after a run, and what it printed.
struct Results {
  std::vector<std::vector<double>> arrays;
  std::string printed;
};

Results run(const Program& program, Engine engine) {
  const std::vector<NDArray> arrays = {ramp({64, 64}, f32), ramp({64, 64}, f32), ramp({64, 64}, f16),
                                       NDArray::zeros({64}, i32), ramp({1, 8, 8, 4}, f32)};
  Results out;
  const Executable kernel = compile(program, {.engine = engine});
  runtime::PrintSink before = runtime::replace_print_sink([&](std::string_view lines) { out.printed += lines; });
  kernel(arrays[0], arrays[1], arrays[2], arrays[3], arrays[4]);
  runtime::replace_print_sink(std::move(before));
  for (const NDArray& a : arrays) out.arrays.push_back(a.to_floats());
  return out;
}

TEST(Language, BlocksOfThePageRun) {
  ASSERT_GE(kSnippets.size(), 8u);
  for (size_t s = 0; s < kSnippets.size(); ++s) {
    SCOPED_TRACE("block " + std::to_string(s));
    const Tensor A("A", {64, 64}, f32), O("O", {64, 64}, f32), H("H", {64, 64}, f16), I("I", {64}, i32),
        X("X", {1, 8, 8, 4}, f32);
    const Program program = prim_func("block_" + std::to_string(s), {A, O, H, I, X}, [&] {
      // One block: those of a page that fits a screen write the same elements.
      for (auto bx : Kernel(1, {.threads = 128})) kSnippets[s]({A, O, H, I, X, bx, get_thread_binding()});
    });
    const Results expected = run(program, Engine::Interpreter);
    const Results actual = run(program, Engine::Cpu);
    EXPECT_EQ(actual.arrays, expected.arrays);
    EXPECT_EQ(actual.printed, expected.printed);
  }
}

TEST(Language, CallsOfThePageRun) {
  for (auto* snippet : kHostSnippets) snippet();
  EXPECT_EQ(kHostSnippets.size(), 1u);
}

}  // namespace
}  // namespace tilewright::language_page
