// The same program gives the same source, byte for byte, and is found by the same text in the kernel cache: built
// again, in another order, after other programs, in another process.
#include <gtest/gtest.h>

#include <iostream>

#include "driver/build_plan.h"
#include "driver/cpu_engine.h"
#include "example.h"
#include "passes/pipeline.h"
#include "runtime/sha256.h"

namespace examples {
namespace {

using tilewright::Program;

std::string source_of(const Program& program) {
  tilewright::Dump dump(program.name());
  const auto tiles = tilewright::passes::run_passes(tilewright::order_symbols(program.box().program),
                                                    tilewright::passes::all_passes(), [](auto&&...) {});
  return tilewright::cpu_origin(tiles, {}) + tilewright::write_cpu(tiles, {}, dump).text;
}

// Of the first odd case of every example that the CPU takes.
std::map<std::string, std::string> sources(bool backwards) {
  std::vector<Example> list = all_examples();
  if (backwards) std::reverse(list.begin(), list.end());
  std::map<std::string, std::string> out;
  for (const Example& e : list) {
    const std::vector<Case> cases = e.cases(Size::Odd);
    const Case& last = cases.back();
    out[e.name] = source_of(last.program);
  }
  return out;
}

TEST(Determinism, SourceDoesNotDependOnWhatWasBuiltBefore) {
  const auto first = sources(false), again = sources(true);
  ASSERT_GE(first.size(), 20u);
  for (const auto& [name, text] : first) EXPECT_EQ(text, again.at(name)) << name;
}

// A line a program.
std::string digests(bool backwards) {
  std::string out;
  for (const auto& [name, text] : sources(backwards))
    out += name + " " + tilewright::runtime::hex(tilewright::runtime::sha256(text)) + "\n";
  return out;
}

// The other process starts this binary anew: memory lies elsewhere, and what it builds first, this one builds last.
TEST(Determinism, SourceDoesNotDependOnTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const testing::Matcher<const std::string&> ours(digests(false));
  EXPECT_EXIT((std::cerr << digests(true), std::exit(0)), testing::ExitedWithCode(0), ours);
}

}  // namespace
}  // namespace examples
