#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scalar/pieces.h"
#include "tilewright/diagnostic.h"

extern char** environ;

namespace tilewright {
namespace {

// Exit status of the host compiler's syntax check; -1 if there is no compiler.
int check_syntax(const std::string& text) {
  char path[] = "/tmp/tilewright_pieces_XXXXXX.cpp";
  int file = mkstemps(path, 4);
  EXPECT_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(file);
  std::vector<const char*> arguments = {"g++", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-unused-function", "-Werror",
                                        path,  nullptr};
  pid_t child = 0;
  int status = -1;
  if (posix_spawnp(&child, "g++", nullptr, nullptr, const_cast<char**>(arguments.data()), environ) == 0) {
    waitpid(child, &status, 0);
    status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (status == 127) status = -1;
  }
  unlink(path);
  return status;
}

TEST(ScalarPieces, HoldsWhatIsNeededAndNothingElse) {
  std::string text = pieces_text({"exp2_f32"});
  EXPECT_NE(text.find("float exp2_f32(float x)"), text.npos);
  EXPECT_LT(text.find("float scale_f32("), text.find("float exp2_f32("));
  EXPECT_EQ(text.find("log_f32"), text.npos);
  EXPECT_EQ(text.find("#include"), text.npos);
  EXPECT_EQ(text.find("//"), text.npos);
}

TEST(ScalarPieces, SharedNeedsComeOnce) {
  std::string text = pieces_text({"exp_f32", "exp2_f32", "sigmoid_f32"});
  size_t first = text.find("float scale_f32(");
  ASSERT_NE(first, text.npos);
  EXPECT_EQ(text.find("float scale_f32(", first + 1), text.npos);
}

TEST(ScalarPieces, TemplateArgumentsAreIgnoredAndUnknownNamesAreOurMistake) {
  EXPECT_EQ(pieces_text({"floordiv<int32_t>"}), pieces_text({"floordiv"}));
  EXPECT_THROW(pieces_text({"no_such_function"}), InternalError);
}

// One compilation of many namespaces: each holds one piece with its needs only, so a forgotten need does not compile.
TEST(ScalarPieces, EveryPieceCompilesWithItsNeedsAlone) {
  std::string text;
  int count = 0;
  for (const std::string& name : piece_names())
    text += fmt::format("namespace n{} {{\n{}}}\n", count++, pieces_text({name}));
  EXPECT_GT(count, 100);
  int status = check_syntax(text);
  if (status < 0) GTEST_SKIP() << "no g++ on this machine";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tilewright
