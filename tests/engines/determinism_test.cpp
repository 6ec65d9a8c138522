// The same program gives the same source, byte for byte: built again, in another order, after other programs.
#include <gtest/gtest.h>

#include "driver/build_plan.h"
#include "driver/cpu_engine.h"
#include "example.h"
#include "passes/pipeline.h"

namespace examples {
namespace {

using tilewright::Program;

std::string source_of(const Program& program) {
  tilewright::Dump dump(program.name());
  const auto tiles = tilewright::passes::run_passes(tilewright::order_symbols(program.box().program),
                                                    tilewright::passes::all_passes(), [](auto&&...) {});
  return tilewright::write_cpu(tiles, {}, dump).text;
}

// Of the first odd case of every example that the CPU takes.
std::map<std::string, std::string> sources(bool backwards) {
  std::vector<Example> list = all_examples();
  if (backwards) std::reverse(list.begin(), list.end());
  std::map<std::string, std::string> out;
  for (const Example& e : list) {
    const std::vector<Case> cases = e.cases(Size::Odd);
    const Case& last = cases.back();
    if (!last.cpu_refuses) out[e.name] = source_of(last.program);
  }
  return out;
}

TEST(Determinism, SourceDoesNotDependOnWhatWasBuiltBefore) {
  const auto first = sources(false), again = sources(true);
  ASSERT_GE(first.size(), 20u);
  for (const auto& [name, text] : first) EXPECT_EQ(text, again.at(name)) << name;
}

}  // namespace
}  // namespace examples
