// Differences between texts: both come out of them again, and little more than what changed is in them.
#include "driver/text_diff.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace tilewright {
namespace {

std::string of(const std::vector<DiffLine>& lines, const std::string& kinds) {
  std::string out;
  for (const DiffLine& line : lines)
    if (kinds.find(line.kind) != std::string::npos) out += std::string(line.text) + "\n";
  return out;
}

std::vector<DiffLine> checked(const std::string& before, const std::string& after) {
  std::vector<DiffLine> lines = text_diff(before, after);
  EXPECT_EQ(of(lines, "=-"), before);
  EXPECT_EQ(of(lines, "=+"), after);
  size_t in_before = 0, in_after = 0;
  for (const DiffLine& line : lines) {
    in_before += line.kind != '+', in_after += line.kind != '-';
    EXPECT_EQ(line.number, line.kind == '-' ? in_before : in_after);
  }
  return lines;
}

size_t changes(const std::vector<DiffLine>& lines) {
  return static_cast<size_t>(
      std::count_if(lines.begin(), lines.end(), [](const DiffLine& l) { return l.kind != '='; }));
}

TEST(TextDiff, SaysWhatChanged) {
  EXPECT_EQ(changes(checked("a\nb\nc\n", "a\nb\nc\n")), 0u);
  EXPECT_EQ(changes(checked("", "a\nb\n")), 2u);
  EXPECT_EQ(changes(checked("a\nb\n", "")), 2u);
  EXPECT_EQ(changes(checked("a\nb\nc\nd\n", "a\nx\nc\nd\n")), 2u);
  EXPECT_EQ(changes(checked("a\n}\nb\n}\n", "a\n}\n}\nb\n}\n")), 1u);
  const std::vector<DiffLine> moved = checked("one\ntwo\nthree\nfour\n", "two\nthree\nfour\none\n");
  EXPECT_EQ(changes(moved), 2u) << "the line that moved, there and here";
}

// Lines that come again and again, as braces do, and those of which each text has one.
TEST(TextDiff, RandomTexts) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::string> lines;
    for (uint32_t i = 0; i < random() % 60; ++i)
      lines.push_back(random() % 3 == 0 ? "}" : std::to_string(random() % (seed % 2 ? 8 : 1000)));
    const auto text = [&] {
      std::string out;
      for (const std::string& line : lines) out += line + "\n";
      return out;
    };
    const std::string before = text();
    const uint32_t edits = random() % 6;
    for (uint32_t i = 0; i < edits; ++i) {
      const size_t at = lines.empty() ? 0 : random() % lines.size();
      if (random() % 2 == 0 || lines.empty())
        lines.insert(lines.begin() + static_cast<int64_t>(at), random() % 2 ? "}" : "new " + std::to_string(i));
      else
        lines.erase(lines.begin() + static_cast<int64_t>(at));
    }
    SCOPED_TRACE(seed);
    checked(before, text());
  }
}

// What no line of the other text has in common is not compared line by line: that would take their product.
TEST(TextDiff, LongTextsWithNothingInCommon) {
  std::string before, after;
  for (int i = 0; i < 20000; ++i) before += "a" + std::to_string(i) + "\n", after += "b" + std::to_string(i) + "\n";
  EXPECT_EQ(changes(checked(before, after)), 40000u);
  const std::string longer = "head\n" + before + "tail\n";
  EXPECT_EQ(changes(checked("head\ntail\n", longer)), 20000u);
}

}  // namespace
}  // namespace tilewright
