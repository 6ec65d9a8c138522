// Files of the tree that tests read, and hold what they find against.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tilewright {

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The file has this text, byte for byte; a failure shows the first line that differs. TILEWRIGHT_UPDATE=1 writes it.
inline void expect_file(const std::filesystem::path& path, const std::string& text) {
  if (std::getenv("TILEWRIGHT_UPDATE")) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  const std::string before = text_of(path);
  if (text == before) return;
  std::stringstream now(text), was(before);
  std::string a, b;
  for (int line = 1;; ++line) {
    const bool more = static_cast<bool>(std::getline(now, a)), had = static_cast<bool>(std::getline(was, b));
    if (more && had && a == b) continue;
    ADD_FAILURE() << path.string() << ":" << line << " is\n  " << (more ? a : "the end") << "\nand was\n  "
                  << (had ? b : "the end") << "\nTILEWRIGHT_UPDATE=1 rewrites it";
    return;
  }
}

}  // namespace tilewright
