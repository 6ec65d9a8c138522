// Proof of the checkers: right programs, spoiled in one place at a time, must be found wrong: refused, by an error of
// the simulator, or by wrong results. Who is not found is either equivalent, which runs on other inputs bear out bit
// for bit, or a miss. With TILEWRIGHT_UPDATE=1 many more are planted, which takes minutes, and the verdicts become
// docs/mutants.md.
#include "simulator/mutants.h"

#include <gtest/gtest.h>

#include <fstream>

#include "simulator/mutant_subjects.h"
#include "tilewright/diagnostic.h"

namespace tilewright::simulator {
namespace {

bool is_update() { return std::getenv("TILEWRIGHT_UPDATE") != nullptr; }

// Places of a way that are taken, spread over the program.
int places_taken(const MutantSubject& subject, int places) {
  if (!is_update()) return std::min(places, 1);
  return subject.every_place ? places : std::min(places, 4);
}

constexpr int kLeastPercent = 95;

struct Verdict {
  Way way;
  int place = 0;
  std::string found;        // empty: it was not
  bool equivalent = false;  // then: all results were the same, bit for bit
};

struct Subject {
  std::string name;
  std::vector<Verdict> verdicts;
};

// What a program leaves, by input.
using Results = std::array<std::vector<NDArray>, kInputs>;

Results results_of(const MutantSubject& subject) {
  Results out;
  for (int input = 0; input < (is_update() ? kInputs : 1); ++input)
    out[static_cast<size_t>(input)] = subject.run(subject.threads, input);
  return out;
}

bool same_results(const MutantSubject& subject, const ir::ThreadProgram& spoiled, const Results& right) {
  for (int input = 0; input < (is_update() ? kInputs : 1); ++input) {
    const std::vector<NDArray>& want = right[static_cast<size_t>(input)];
    try {
      const std::vector<NDArray> got = subject.run(spoiled, input);
      for (size_t i = 0; i < want.size(); ++i)
        if (std::memcmp(got[i].data(), want[i].data(), static_cast<size_t>(bytes_of(want[i].dtype(), want[i].size()))))
          return false;
    } catch (const LaunchError&) {
      return false;
    }
  }
  return true;
}

Subject spoil(const MutantSubject& subject) {
  Subject out{subject.name, {}};
  EXPECT_EQ(subject.finding(subject.threads), "") << subject.name << ": a false alarm";
  const Results right = results_of(subject);
  for (size_t w = 0; w < kWays.size(); ++w) {
    const auto way = static_cast<Way>(w);
    const int places = count_places(subject.threads, way);
    const int tried = places_taken(subject, places);
    for (int i = 0; i < tried; ++i) {
      // One that is alone stands in the middle: what is at the borders is more often superfluous.
      Verdict v{way, tried == 1 ? places / 2 : places * i / tried, "", false};
      const ir::ThreadProgram spoiled = mutant(subject.threads, way, v.place);
      v.found = subject.finding(spoiled);
      v.equivalent = v.found.empty() && same_results(subject, spoiled, right);
      out.verdicts.push_back(std::move(v));
    }
  }
  return out;
}

struct Score {
  int planted = 0, found = 0, equivalent = 0;
  int missed() const { return planted - found - equivalent; }
  void add(const Verdict& v) { ++planted, found += !v.found.empty(), equivalent += v.equivalent; }
};

std::string verdict_text(const Verdict& v) {
  return !v.found.empty() ? v.found : v.equivalent ? "equivalent" : "MISSED";
}

constexpr const char* kHead = R"(# Mutants

Written by the tests (`tests/simulator/mutants_test.cpp`; `make update`). Each mutant is the code of threads of a right program with
one mistake planted, run on the simulated GPU. It is *found* if it is refused before it runs, if the simulator ends it
with an error, or if its results are wrong. One that is not found is *equivalent* if all arrays are the same bit for
bit as without the mistake on three different inputs, and nothing was found in any of the runs: the mistake was none there
(a barrier that another one makes superfluous, a guard that holds for every thread at this shape, the wait for a slot
nobody has used yet). Everything else is *missed*: so far casts of attention's weights, whose loss stays within the bounds
that those examples allow.

The programs themselves run without a finding. What neither they nor random programs had shown, and why, is in
[missed.md](missed.md).
)";

std::string page_of(const std::vector<Subject>& subjects, const std::array<Score, kWays.size()>& scores,
                    const Score& all) {
  std::string out = kHead;
  out += fmt::format("\n{} mutants of {} programs: {} found, {} equivalent, {} missed.\n", all.planted, subjects.size(),
                     all.found, all.equivalent, all.missed());
  out += "\n| Mistake | Planted | Found | Equivalent | Missed |\n|---|---|---|---|---|\n";
  for (size_t w = 0; w < kWays.size(); ++w)
    out += fmt::format("| {} | {} | {} | {} | {} |\n", kWays[w], scores[w].planted, scores[w].found,
                       scores[w].equivalent, scores[w].missed());
  for (const Subject& s : subjects) {
    out += fmt::format("\n## {}\n\n", s.name);
    for (size_t w = 0; w < kWays.size(); ++w) {
      std::vector<std::string> list;
      for (const Verdict& v : s.verdicts)
        if (v.way == static_cast<Way>(w)) list.push_back(fmt::format("{}: {}", v.place, verdict_text(v)));
      if (!list.empty()) out += fmt::format("- {}: {}\n", kWays[w], fmt::join(list, ", "));
    }
  }
  return out;
}

TEST(Mutants, AreFound) {
  std::vector<Subject> subjects;
  for (const MutantSubject& s : hopper_subjects()) subjects.push_back(spoil(s));
  const std::vector<MutantSubject> all_examples = example_subjects();
  for (size_t i = 0; i < all_examples.size(); i += is_update() ? 1 : 4) subjects.push_back(spoil(all_examples[i]));
  std::array<Score, kWays.size()> scores;
  Score all;
  std::string missed;
  for (const Subject& s : subjects)
    for (const Verdict& v : s.verdicts) {
      scores[static_cast<size_t>(v.way)].add(v), all.add(v);
      if (v.found.empty() && !v.equivalent)
        missed += fmt::format("{}: {} {}\n", s.name, kWays[static_cast<size_t>(v.way)], v.place);
    }
  EXPECT_GE(all.found * 100, (all.planted - all.equivalent) * kLeastPercent)
      << all.found << " of " << all.planted << " found, " << all.equivalent << " equivalent; missed:\n"
      << missed;
  for (size_t w = 0; w < kWays.size(); ++w) EXPECT_GE(scores[w].found, 1) << kWays[w] << " shows nothing";
  if (is_update())
    std::ofstream(fmt::format("{}/docs/mutants.md", TILEWRIGHT_SOURCE_DIR)) << page_of(subjects, scores, all);
}

}  // namespace
}  // namespace tilewright::simulator
