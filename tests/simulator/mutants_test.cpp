// Proof of the checkers: the code of threads of every example, spoiled in one place at a time, must be found wrong: by
// an error of the simulator, or by wrong results.
#include <gtest/gtest.h>

#include "driver/build_plan.h"
#include "driver/cuda_engine.h"
#include "driver/simulator_engine.h"
#include "example.h"
#include "ir/print.h"
#include "passes/pipeline.h"
#include "simulator/mutants.h"
#include "tilewright/diagnostic.h"

namespace tilewright::simulator {
namespace {

using namespace ir;

// Of the ways, in order: how much is found, of how many places. At odd extents TMA loads little; what it adds is
// spoiled in other tests.
constexpr int kLeastPercent[] = {70, 65, 50, 50, 95, 75, 75, 75, 75, 75, 75, 75, 75, 75, 75, 75, 75};
constexpr int kLeastPlaces[] = {40, 40, 40, 40, 40};

struct Subject {
  const examples::Case& c;
  TileProgram tiles;
  ThreadProgram threads;

  bool is_found_wrong(const ThreadProgram& program) const {
    try {
      const Executable executable =
          runtime::make_executable(build_plan(tiles), simulator_callee(program, {}), "simulator", "");
      return !c.check(examples::run_case(c, executable), INT64_MAX).ok();
    } catch (const LaunchError&) {
      return true;
    }
  }
};

std::optional<Subject> subject_of(const examples::Case& c, int arch) {
  TileProgram tiles = passes::run_passes(order_symbols(c.program.box().program), passes::all_passes(),
                                         [](const char*, const TileProgram&, double) {});
  try {
    ThreadProgram threads = lower_cuda(tiles, target::GpuTarget::of(arch)).program;
    return Subject{c, std::move(tiles), std::move(threads)};
  } catch (const CompileError&) {
    return std::nullopt;
  }
}

struct Score {
  int caught = 0, all = 0;
};

// The case with the most elements: in small ones many places are never reached twice.
const examples::Case& largest(const std::vector<examples::Case>& cases) {
  auto size = [](const examples::Case& c) {
    int64_t elements = 0;
    for (const auto& a : c.arguments)
      if (const auto* array = std::get_if<examples::LazyArray>(&a)) elements += array->size();
    return elements;
  };
  return *std::max_element(cases.begin(), cases.end(), [&](const auto& a, const auto& b) { return size(a) < size(b); });
}

TEST(Mutants, AreFound) {
  constexpr int kPerProgram = 4;  // of a way: spread over the program
  std::array<Score, std::size(kLeastPercent)> scores;
  std::string survivors;
  const auto spoil = [&](const Subject& subject, const std::string& name) {
    for (size_t w = 0; w < scores.size(); ++w) {
      const auto way = static_cast<Way>(w);
      const int places = count_places(subject.threads, way), tried = std::min(places, kPerProgram);
      for (int i = 0; i < tried; ++i) {
        const int place = places * i / tried;
        const bool caught = subject.is_found_wrong(mutant(subject.threads, way, place));
        scores[w].all += 1, scores[w].caught += caught;
        if (!caught) survivors += fmt::format("{}: {} {}\n", name, kWays[w], place);
      }
    }
  };
  for (const examples::Example& example : examples::all_examples()) {
    const std::vector<examples::Case> cases = example.cases(examples::Size::Odd);
    std::string before;
    for (const int arch : {80, 90}) {
      const auto subject = subject_of(largest(cases), arch);
      if (!subject) continue;
      // Most programs are the same on both.
      if (std::string text = print(subject->threads); text == std::exchange(before, text)) continue;
      ASSERT_FALSE(subject->is_found_wrong(subject->threads)) << example.name;
      spoil(*subject, fmt::format("{} on {}", example.name, arch));
    }
  }
  // Who survives changes nothing that can be observed. Barriers: before the first use of the scratch of a reduction,
  // which protects it in loops and after an earlier one. Guards: of reads whose value nobody uses, of rows of shared
  // memory that exist beyond the tensor, that hold for every thread at this shape, or that stand in the code for
  // extents with other divisors.
  for (size_t w = 0; w < scores.size(); ++w) {
    const int places = w < std::size(kLeastPlaces) ? kLeastPlaces[w] : 0;
    EXPECT_GE(scores[w].all, places) << kWays[w];
    EXPECT_GE(scores[w].caught, scores[w].all * kLeastPercent[w] / 100)
        << kWays[w] << ": " << scores[w].caught << " of " << scores[w].all << " found; not found:\n"
        << survivors;
  }
}

}  // namespace
}  // namespace tilewright::simulator
