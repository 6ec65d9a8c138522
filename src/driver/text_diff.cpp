#include "driver/text_diff.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

namespace tilewright {
namespace {

using Lines = std::vector<std::string_view>;

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// A part of both texts.
struct Part {
  size_t a, a_end, b, b_end;
};

class Comparison {
 public:
  Comparison(std::string_view before, std::string_view after) : a_(lines_of(before)), b_(lines_of(after)) {}

  std::vector<DiffLine> run() {
    compare({0, a_.size(), 0, b_.size()});
    return std::move(out_);
  }

 private:
  // Texts of programs are long and mostly alike: what is the same at both ends goes first, then they are cut at lines
  // that each has once. What is left is short, or has nothing in common.
  static constexpr size_t kMostCells = 1 << 20;

  void compare(Part p) {
    while (p.a < p.a_end && p.b < p.b_end && a_[p.a] == b_[p.b]) ++p.a, both(p.b++);
    size_t same = 0;
    while (p.a < p.a_end && p.b < p.b_end && a_[p.a_end - 1] == b_[p.b_end - 1]) --p.a_end, --p.b_end, ++same;
    const std::vector<std::pair<size_t, size_t>> cuts = cuts_of(p);
    if (cuts.empty()) {
      (p.a_end - p.a) * (p.b_end - p.b) <= kMostCells ? by_table(p) : replace(p);
    } else {
      Part next = p;
      for (const auto& [a, b] : cuts) {
        next.a_end = a, next.b_end = b;
        compare(next);
        both(b);
        next.a = a + 1, next.b = b + 1;
      }
      next.a_end = p.a_end, next.b_end = p.b_end;
      compare(next);
    }
    for (size_t i = 0; i < same; ++i) both(p.b_end + i);
  }

  // Pairs of lines that either text has once, as many as stand in the same order in both.
  std::vector<std::pair<size_t, size_t>> cuts_of(const Part& p) const {
    struct Seen {
      size_t in_a = 0, in_b = 0, at_a = 0, at_b = 0;
    };
    std::unordered_map<std::string_view, Seen> seen;
    for (size_t i = p.a; i < p.a_end; ++i) ++seen[a_[i]].in_a, seen[a_[i]].at_a = i;
    for (size_t i = p.b; i < p.b_end; ++i) ++seen[b_[i]].in_b, seen[b_[i]].at_b = i;
    std::vector<std::pair<size_t, size_t>> pairs;
    for (size_t i = p.a; i < p.a_end; ++i)
      if (const Seen& s = seen[a_[i]]; s.in_a == 1 && s.in_b == 1) pairs.emplace_back(i, s.at_b);
    return longest_ascending(pairs);
  }
  static std::vector<std::pair<size_t, size_t>> longest_ascending(const std::vector<std::pair<size_t, size_t>>& pairs) {
    std::vector<size_t> ends, before(pairs.size());  // the pair at which the best run of each length ends
    for (size_t i = 0; i < pairs.size(); ++i) {
      const auto at = std::lower_bound(ends.begin(), ends.end(), pairs[i].second,
                                       [&](size_t e, size_t second) { return pairs[e].second < second; });
      before[i] = at == ends.begin() ? SIZE_MAX : *(at - 1);
      if (at == ends.end())
        ends.push_back(i);
      else
        *at = i;
    }
    std::vector<std::pair<size_t, size_t>> out;
    for (size_t i = ends.empty() ? SIZE_MAX : ends.back(); i != SIZE_MAX; i = before[i]) out.push_back(pairs[i]);
    std::reverse(out.begin(), out.end());
    return out;
  }

  // Along a longest common subsequence.
  void by_table(const Part& p) {
    const size_t rows = p.a_end - p.a, columns = p.b_end - p.b;
    std::vector<uint32_t> common((rows + 1) * (columns + 1));
    const auto at = [&](size_t i, size_t j) -> uint32_t& { return common[i * (columns + 1) + j]; };
    for (size_t i = rows; i-- > 0;)
      for (size_t j = columns; j-- > 0;)
        at(i, j) = a_[p.a + i] == b_[p.b + j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
    size_t i = 0, j = 0;
    while (i < rows || j < columns) {
      if (i < rows && j < columns && a_[p.a + i] == b_[p.b + j]) {
        both(p.b + j), ++i, ++j;
      } else if (j == columns || (i < rows && at(i + 1, j) >= at(i, j + 1))) {
        removed(p.a + i++);
      } else {
        added(p.b + j++);
      }
    }
  }
  void replace(const Part& p) {
    for (size_t i = p.a; i < p.a_end; ++i) removed(i);
    for (size_t j = p.b; j < p.b_end; ++j) added(j);
  }
  void both(size_t j) { out_.push_back({'=', j + 1, b_[j]}); }
  void removed(size_t i) { out_.push_back({'-', i + 1, a_[i]}); }
  void added(size_t j) { out_.push_back({'+', j + 1, b_[j]}); }

  const Lines a_, b_;
  std::vector<DiffLine> out_;
};

}  // namespace

std::vector<DiffLine> text_diff(std::string_view before, std::string_view after) {
  return Comparison(before, after).run();
}

}  // namespace tilewright
