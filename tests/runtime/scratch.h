// A directory that goes with the test, and the warnings of its time.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>

#include "support/warning.h"

namespace tilewright::runtime {

class Scratch {
 public:
  Scratch() {
    path_ = (std::filesystem::temp_directory_path() / "tilewright-test-XXXXXX").string();
    if (!mkdtemp(path_.data())) ADD_FAILURE() << "no directory " << path_;
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class CaughtWarnings {
 public:
  CaughtWarnings() {
    before_ = replace_warning_sink([this](const Diagnostic& d) { found.push_back(d); });
  }
  ~CaughtWarnings() { replace_warning_sink(before_); }
  CaughtWarnings(const CaughtWarnings&) = delete;
  int count(Code code) const {
    return static_cast<int>(std::count_if(found.begin(), found.end(),
                                          [&](const Diagnostic& d) { return d.code == static_cast<uint16_t>(code); }));
  }
  std::vector<Diagnostic> found;

 private:
  WarningSink before_;
};

}  // namespace tilewright::runtime
