// The list of error codes: in order, each raised somewhere, each reached by a test, and all of them in docs/errors.md.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "files.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = TILEWRIGHT_SOURCE_DIR;

struct CodeRow {
  std::string name;
  int number = 0;
  std::string meaning;
};

struct Section {
  int first = 0;        // 1000
  std::string area;     // "build"
  std::string meaning;  // what the area is about
  std::vector<CodeRow> rows;
};

// The header has one enumerator a line, "Name = 1001,  // meaning", under comments "// 1000: area. What it is about."
std::vector<Section> sections() {
  std::vector<Section> out(1);
  std::istringstream header(text_of(kRoot / "src/support/error_codes.h"));
  for (std::string line; std::getline(header, line);) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    line.erase(0, begin);
    const size_t colon = line.find(": "), dot = line.find(". "), equals = line.find(" = "), slashes = line.find("// ");
    if (slashes == 0 && colon == 7 && dot != std::string::npos) {
      out.push_back({std::stoi(line.substr(3, 4)), line.substr(9, dot - 9), line.substr(dot + 2), {}});
    } else if (equals != std::string::npos && slashes != std::string::npos && equals < slashes) {
      out.back().rows.push_back({line.substr(0, equals), std::stoi(line.substr(equals + 3)), line.substr(slashes + 3)});
    }
  }
  out[0].area = "internal", out[0].meaning = "A mistake in Tilewright, not in the program.";
  return out;
}

std::string code_text(int number) {
  const std::string digits = std::to_string(number);
  return "TW" + std::string(4 - digits.size(), '0') + digits;
}

// All text of a tree, but for these files.
std::string tree(const fs::path& root, const std::set<std::string>& without) {
  std::string all;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.is_regular_file() && !without.contains(entry.path().filename())) all += text_of(entry.path());
  return all;
}

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool mentions(const std::string& text, const std::string& word) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    if (at + word.size() == text.size() || !is_name_character(text[at + word.size()])) return true;
  return false;
}

TEST(ErrorCodes, StandInOrderInTheirSections) {
  int last = 0, count = 0;
  for (const Section& section : sections())
    for (const CodeRow& row : section.rows) {
      EXPECT_GT(row.number, last) << row.name;
      EXPECT_EQ(row.number / 1000 * 1000, section.first) << row.name;
      EXPECT_FALSE(row.meaning.empty()) << row.name;
      last = row.number, ++count;
    }
  EXPECT_GE(count, 240);  // so many were there when this was written: the header is still being read
}

TEST(ErrorCodes, EachIsRaised) {
  const std::string sources = tree(kRoot / "src", {"error_codes.h"});
  for (const Section& section : sections())
    for (const CodeRow& row : section.rows)
      EXPECT_TRUE(mentions(sources, "Code::" + row.name))
          << code_text(row.number) << " " << row.name << " is never raised";
}

TEST(ErrorCodes, EachHasATest) {
  // The files left out name codes without reaching them.
  const std::string tests = tree(kRoot / "tests", {"codes_test.cpp", "error_files_test.cpp"});
  for (const Section& section : sections())
    for (const CodeRow& row : section.rows)
      EXPECT_TRUE(mentions(tests, code_text(row.number)) || mentions(tests, "Code::" + row.name))
          << code_text(row.number) << " " << row.name << " is reached by no test";
}

TEST(ErrorCodes, AreDocumented) {
  std::string text =
      "# Error codes\n\n"
      "Every message begins with `error TWnnnn area:`. Written by a test from `src/support/error_codes.h`; `make "
      "update` writes it again.\n";
  for (const Section& section : sections()) {
    if (section.rows.empty()) continue;
    text += "\n## " + section.area + "\n\n" + section.meaning + "\n\n| Code | Name | Meaning |\n|---|---|---|\n";
    for (const CodeRow& row : section.rows)
      text += "| " + code_text(row.number) + " | " + row.name + " | " + row.meaning + " |\n";
  }
  const fs::path path = kRoot / "docs/errors.md";
  if (std::getenv("TILEWRIGHT_UPDATE")) std::ofstream(path) << text;
  EXPECT_TRUE(text_of(path) == text) << "docs/errors.md is not what src/support/error_codes.h says; run the tests with "
                                        "TILEWRIGHT_UPDATE=1 to write it again";
}

}  // namespace
}  // namespace tilewright
