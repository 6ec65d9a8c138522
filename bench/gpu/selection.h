// Which examples a run is about.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace bench::gpu {

// Each word chooses the example of this name, or else all whose names contain it. No words choose every example.
struct Selection {
  std::vector<std::string> words;

  // `examples` is a range of things with a `name`.
  bool contains(std::string_view name, const auto& examples) const {
    return words.empty() || std::ranges::any_of(words, [&](const std::string& word) {
             const bool exact = std::ranges::any_of(examples, [&](const auto& e) { return e.name == word; });
             return exact ? name == word : name.find(word) != name.npos;
           });
  }
};

}  // namespace bench::gpu
