// Programs by what they are to reach in the compiler: tests/engines/programs/<pass>/*.tile. Each runs on random numbers
// on every engine, held against the interpreter. Lines begun by #= give symbols and integer parameters; those begun by
// #!, at the end, are the engines that refuse the program and what they say: TILEWRIGHT_UPDATE writes them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "driver/arguments.h"
#include "files.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "tilewright/check.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(TILEWRIGHT_SOURCE_DIR) / "tests/engines/programs"))
    if (entry.path().extension() == ".tile") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

NamedValues values_in(const std::string& text) {
  NamedValues values;
  std::stringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::stringstream words(line);
    std::string word;
    if (!(words >> word) || word != "#=") continue;
    while (words >> word) values[word.substr(0, word.find('='))] = std::stoll(word.substr(word.find('=') + 1));
  }
  return values;
}

// A comment for each engine that does not take the program.
std::string refusals(const Program& program) {
  const std::pair<const char*, CompileOptions> engines[] = {
      {"cpu", {.engine = Engine::Cpu}},
      {"sm_80", {.engine = Engine::Simulator, .arch = "sm_80"}},
      {"sm_90a", {.engine = Engine::Simulator, .arch = "sm_90a"}}};
  std::string out;
  for (const auto& [name, options] : engines) try {
      compile(program, options);
    } catch (const Error& error) {
      out += "#! " + std::string(name) + ": ";
      for (const char c : error.diagnostic().to_string()) out += c == '\n' ? std::string("\n#!   ") : std::string(1, c);
      out += "\n";
    }
  return out;
}

class ProgramFiles : public testing::TestWithParam<fs::path> {};

TEST_P(ProgramFiles, AllEnginesAgree) {
  const std::string whole = text_of(GetParam());
  const std::string text = whole.substr(0, whole.find("#!"));
  const ir::TileProgram tiles = ir::parse(text, GetParam().filename());
  ir::check_valid(tiles);
  const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
  const std::string refused = refusals(program);
  if (std::getenv("TILEWRIGHT_UPDATE"))
    std::ofstream(GetParam()) << text << refused;
  else
    EXPECT_EQ(whole.substr(text.size()), refused);

  const NamedValues values = values_in(text);
  const std::vector<NDArray> arrays = random_arguments(tiles, values, 7);
  std::vector<Argument> arguments;
  size_t next = 0;
  for (const ir::Param& p : tiles.params) {
    if (p.is_tensor())
      arguments.emplace_back(arrays[next++]);
    else
      arguments.emplace_back(values.at(tiles.var(p.var).name));
  }
  EXPECT_NO_THROW(compile_checked(program, {.engine = Engine::Interpreter}).call(arguments));
}

INSTANTIATE_TEST_SUITE_P(Files, ProgramFiles, testing::ValuesIn(files()), [](const auto& file) {
  std::string name;
  for (const char c : file.param.parent_path().filename().string() + "_" + file.param.stem().string())
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

}  // namespace
}  // namespace tilewright
