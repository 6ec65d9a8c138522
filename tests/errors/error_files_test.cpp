// One mistake a file: tests/errors/<area>/*.tile. The lines after the program, each begun by #!, are the whole message.
// With TILEWRIGHT_UPDATE set, the messages are rewritten instead: read the difference before it is committed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "files.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "support/error_codes.h"

namespace tilewright::ir {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_of(const char* area) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(TILEWRIGHT_SOURCE_DIR) / "tests/errors" / area))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<Diagnostic> findings(const std::string& program, const std::string& file, bool any_level) {
  if (any_level && program.starts_with("loop program")) return verify(parse_loop_program(program, file));
  return verify(parse(program, file));
}

// The findings, as comments. The file is called by its name alone: messages must not depend on where the tree lies.
std::string findings_of(const std::string& program, const std::string& file, bool any_level) {
  std::string text;
  try {
    for (const Diagnostic& d : findings(program, file, any_level)) text += (text.empty() ? "" : "\n") + d.to_string();
  } catch (const CompileError& e) {
    text = e.what();
  }
  std::string comments = "#! ";
  for (char c : text) comments += c == '\n' ? std::string("\n#! ") : std::string(1, c);
  return comments + "\n";
}

void check_area(const char* area, int thousands, std::set<int> not_in_text) {
  std::set<int> seen = std::move(not_in_text);
  for (const fs::path& path : files_of(area)) {
    const std::string whole = text_of(path);
    const std::string program = whole.substr(0, whole.find("#!"));
    const std::string found = findings_of(program, path.filename(), thousands == 3000);
    if (std::getenv("TILEWRIGHT_UPDATE"))
      std::ofstream(path) << program << found;
    else
      EXPECT_EQ(whole.substr(program.size()), found) << path;
    const size_t code = found.find("error TW");
    ASSERT_NE(code, std::string::npos) << path << " is valid";
    EXPECT_EQ(found.find("error TW", code + 1), std::string::npos) << path << " has more than one mistake\n" << found;
    seen.insert(std::stoi(found.substr(code + 8, 4)));
  }
  // Every code of the area has its file. The last ones are the largest numbers of the list of codes.
  const int last =
      thousands == 2000 ? static_cast<int>(Code::TextComparisonChain) : static_cast<int>(Code::VerifyLoopStatement);
  for (int code = thousands + 1; code <= last; ++code) EXPECT_TRUE(seen.contains(code)) << "no test of TW" << code;
}

std::set<int> codes(std::initializer_list<Code> list) {
  std::set<int> numbers;
  for (Code code : list) numbers.insert(static_cast<int>(code));
  return numbers;
}

TEST(ErrorFiles, Parse) { check_area("parse", 2000, {}); }

TEST(ErrorFiles, Verify) {
  // What text cannot say is built by hand in tests/unit/verify_test.cpp; collectives and the order of launches are
  // checked after canonicalize.
  check_area("verify", 3000,
             codes({Code::VerifyId, Code::VerifyUndefined, Code::VerifyBoundTwice, Code::VerifyOperandTypes,
                    Code::VerifyOperandType, Code::VerifyIndexCount, Code::VerifyOtherLaunch, Code::VerifyLaunchVars,
                    Code::VerifyRegionRank, Code::VerifyMapRank, Code::VerifyCollective, Code::VerifyLaunchWait,
                    Code::VerifyEarlyAccess}));
}

}  // namespace
}  // namespace tilewright::ir
