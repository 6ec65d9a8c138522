// Passes as texts: tests/passes/text/<pass>/<case>.tile, whose first line says what runs (# opt --passes=a,b --arch
// sm_90a, or --until b), and beside it <case>.out.tile, what that leaves or why it is refused; TILEWRIGHT_UPDATE=1
// writes it; --cpu avx512 for vectors that this machine may lack. Lines begun by #= give symbols and integer
// parameters. What is left must be a program that means the same.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <sstream>

#include "codegen/cpu.h"
#include "driver/arguments.h"
#include "driver/build_plan.h"
#include "driver/cpu_engine.h"
#include "driver/cuda_engine.h"
#include "driver/interpreter_engine.h"
#include "driver/pass_road.h"
#include "driver/simulator_engine.h"
#include "driver/versions.h"
#include "files.h"
#include "ir/operators.h"
#include "ir/parse.h"
#include "ir/rewrite.h"
#include "ir/verify.h"
#include "passes/pipeline.h"
#include "support/diagnostic.h"
#include "tilewright/compile.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;

const fs::path kTexts = fs::path(TILEWRIGHT_SOURCE_DIR) / "tests/passes/text";

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out;
  std::stringstream parts(text);
  for (std::string part; std::getline(parts, part, at);) out.push_back(part);
  return out;
}

struct Case {
  std::string name;  // pass/case
  std::vector<std::string> passes;
  std::string arch = "sm_90a", cpu = "portable";
  NamedValues values;
  ir::TileProgram program;
};

Case case_of(const fs::path& file) {
  Case out;
  out.name = fs::relative(file, kTexts).replace_extension();
  const std::string text = text_of(file);
  const std::vector<std::string> lines = split(text, '\n');
  const std::vector<std::string> words = split(lines.at(0), ' ');
  EXPECT_TRUE(lines[0].starts_with("# opt --")) << out.name;
  for (size_t i = 2; i < words.size(); ++i) {
    if (words[i].starts_with("--passes=")) out.passes = split(words[i].substr(words[i].find('=') + 1), ',');
    if (words[i] == "--until") out.passes = PassRoad::until(words.at(++i));
    if (words[i] == "--arch") out.arch = words.at(++i);
    if (words[i] == "--cpu") out.cpu = words.at(++i);
  }
  for (const std::string& line : lines)
    if (line.starts_with("#= "))
      for (const std::string& word : split(line.substr(3), ' '))
        out.values[word.substr(0, word.find('='))] = std::stoll(word.substr(word.find('=') + 1));
  out.program = order_symbols(ir::parse(text, file.filename()));
  ir::check_valid(out.program);
  return out;
}

// What the passes leave; the road is empty where they refuse the program.
struct Outcome {
  std::optional<PassRoad> road;
  std::string text;
};

Outcome outcome_of(const Case& c, const std::vector<std::string>& passes) {
  Outcome out;
  try {
    PassRoad road(c.program, c.arch, runtime::features_of_level(c.cpu));
    road.run(passes);
    out.text = road.text();
    out.road = std::move(road);
  } catch (const CompileError& e) {
    for (const std::string& line : split(e.diagnostic().to_string(), '\n')) out.text += "# " + line + "\n";
  }
  return out;
}

// ---- what programs mean

using Arrays = std::vector<NDArray>;

// Whole numbers, so that no order of sums rounds. What is only written starts with numbers too.
Arrays arguments_of(const Case& c) {
  Arrays arrays = random_arguments(c.program, c.values, 7);
  for (size_t i = 0; i < arrays.size(); ++i) {
    fill_random(arrays[i], i + 1);
    if (!arrays[i].dtype().is_float()) continue;
    std::vector<double> numbers = arrays[i].to_floats();
    for (double& x : numbers) x = std::round(x * 4);
    arrays[i].assign_floats(numbers);
  }
  return arrays;
}

// `program`: whose parameters the executable takes. A pass may give a tensor another type, of the same memory.
Arrays run(const Case& c, const ir::ProgramTables& program, const Executable& executable) {
  const Arrays arrays = arguments_of(c);
  std::vector<Argument> arguments;
  size_t next = 0;
  for (const ir::Param& p : program.params) {
    if (!p.is_tensor()) {
      arguments.emplace_back(c.values.at(program.var(p.var).name));
      continue;
    }
    const NDArray& array = arrays[next++];
    const ir::Buffer& b = program.buffer(p.buffer);
    if (b.type == array.dtype()) {
      arguments.emplace_back(array);
      continue;
    }
    std::vector<int64_t> shape;
    for (const ir::Expr& e : b.shape) shape.push_back(ir::constant_int(e).value());
    arguments.emplace_back(NDArray::borrow(array.data(), shape, b.type));
  }
  executable.call(arguments);
  return arrays;
}

// None: blocks that reach each other, which the interpreter does not run, and branches that are not roles yet.
std::optional<Arrays> interpreted(const Case& c, const ir::TileProgram& program) {
  try {
    return run(c, program,
               runtime::make_executable(build_plan(program), interpreter_callee(program), "interpreter", ""));
  } catch (const LaunchError& e) {
    for (const Code known : {Code::InterpreterRefuses, Code::DivergentCollective})
      if (e.diagnostic().code == static_cast<uint16_t>(known)) return std::nullopt;
    throw;
  }
}

Arrays compiled(const Case& c, const ir::LoopProgram& loops) {
  const runtime::ProcessorFeatures cpu = runtime::features_of_level(c.cpu);
  const codegen::CpuKernelSource source = codegen::emit_cpu(loops, features_of(cpu));
  runtime::LaunchPlan plan = build_plan(c.program);
  plan.sites = sites_of(source.sites);
  return run(
      c, c.program,
      runtime::make_executable(std::move(plan), runtime::build_cpu_kernel({loops.name, source.text, cpu}), "cpu", ""));
}

Arrays simulated(const Case& c, const ir::ThreadProgram& threads) {
  runtime::LaunchPlan plan = build_plan(c.program);
  demand_of_calls(threads, plan);
  return run(c, c.program,
             runtime::make_executable(std::move(plan), simulator_callee(threads, {.target = gpu_target(c.arch)}),
                                      "simulator", ""));
}

// Functions and sums of their values may be a few roundings apart.
void expect_same_arrays(const Arrays& got, const Arrays& wanted, const std::string& who) {
  for (size_t i = 0; i < got.size(); ++i) {
    if (!got[i].dtype().is_float()) {
      EXPECT_EQ(got[i].to_ints(), wanted[i].to_ints()) << who << ", tensor " << i;
      continue;
    }
    const std::vector<double> a = got[i].to_floats(), b = wanted[i].to_floats();
    double largest = 0;
    for (const double x : b)
      if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
    const double allowed = largest * (got[i].dtype().bits >= 32 ? 0x1p-20 : got[i].dtype().bits == 16 ? 0x1p-7 : 0);
    for (size_t e = 0; e < a.size(); ++e) {
      if (a[e] == b[e] || (std::isnan(a[e]) && std::isnan(b[e])) || std::abs(a[e] - b[e]) <= allowed) continue;
      ADD_FAILURE() << who << ": tensor " << i << ", element " << e << " is " << a[e] << ", not " << b[e];
      return;
    }
  }
}

bool all_have_places(const ir::ThreadProgram& p) {
  for (const ir::Launch& launch : p.launches)
    for (ir::BufferId id : ir::used_buffers(launch.body)) {
      const ir::Buffer& b = p.buffer(p.root(id));
      if ((b.space == ir::Space::Shared || b.space == ir::Space::Barrier) && b.place < 0) return false;
    }
  return true;
}

// Of tensors: a program of more, whose sizes decide what a pass does, takes the interpreter minutes. Its text alone is
// compared; smaller texts of its pass are run.
constexpr int64_t kMostElements = int64_t{1} << 21;

bool is_small(const Case& c) {
  int64_t elements = 0;
  for (const ir::Param& p : c.program.params) {
    if (!p.is_tensor()) continue;
    int64_t of_tensor = 1;
    for (const ir::Expr& e : c.program.buffer(p.buffer).shape) of_tensor *= ir::constant_int(e).value_or(1);
    elements += of_tensor;
  }
  return elements <= kMostElements;
}

// The text of what is left is a program again, and means what the case does.
void expect_same_meaning(const Case& c, const PassRoad& road) {
  const std::optional<Arrays> wanted = is_small(c) ? interpreted(c, c.program) : std::nullopt;
  if (const ir::LoopProgram* loops = road.loops()) {
    EXPECT_EQ(ir::print(ir::parse_loop_program(ir::print(*loops), c.name)), ir::print(*loops));
    const bool runs_here =
        runtime::restrict_features(runtime::detect_processor(), c.cpu) == runtime::features_of_level(c.cpu);
    if (wanted && runs_here) expect_same_arrays(compiled(c, *loops), *wanted, "the loops");
    return;
  }
  if (const ir::ThreadProgram* threads = road.threads()) {
    const ir::ThreadProgram again = ir::parse_thread_program(ir::print(*threads), c.name);
    EXPECT_EQ(ir::print(again), ir::print(*threads));
    ir::check_valid(again);
    if (wanted && all_have_places(*threads)) expect_same_arrays(simulated(c, *threads), *wanted, "the threads");
  } else if (!road.gpu() || passes::has_words(*road.gpu())) {
    const ir::TileProgram again = ir::parse(road.text(), c.name);
    EXPECT_EQ(ir::print(again), ir::print(road.tiles()));
    ir::check_valid(again);
    if (const std::optional<Arrays> got = wanted ? interpreted(c, again) : std::nullopt)
      expect_same_arrays(*got, *wanted, "what is left");
  }
  if (!road.gpu() || !wanted) return;
  const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{c.program}));
  expect_same_arrays(run(c, c.program, compile(program, {.engine = Engine::Simulator, .arch = c.arch})), *wanted,
                     c.arch);
}

// ---- the tests

std::vector<fs::path> files() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(kTexts)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".tile") && !name.ends_with(".out.tile")) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

class PassTexts : public testing::TestWithParam<fs::path> {};

TEST_P(PassTexts, LeaveWhatStandsBesideThem) {
  const Case c = case_of(GetParam());
  const Outcome outcome = outcome_of(c, c.passes);
  const fs::path expected = fs::path(GetParam()).replace_extension(".out.tile");
  expect_file(expected, outcome.text);
  if (outcome.road) expect_same_meaning(c, *outcome.road);
}

INSTANTIATE_TEST_SUITE_P(Files, PassTexts, testing::ValuesIn(files()), [](const auto& file) {
  std::string name;
  for (const char c : file.param.parent_path().filename().string() + "_" + file.param.stem().string())
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

// Whether the last pass changes the program, decides something, or refuses it.
bool does_something(const Case& c) {
  const std::vector<std::string> others(c.passes.begin(), c.passes.end() - 1);
  const Outcome before = outcome_of(c, others), after = outcome_of(c, c.passes);
  if (!before.road) return false;
  if (!after.road || !after.road->decided().empty()) return true;
  const auto statements = [](const std::string& text) { return text.substr(0, text.find("\n# ")); };
  return statements(before.text) != statements(after.text);
}

TEST(PassTexts, EveryPassHasOne) {
  std::set<std::string> rows = {PassRoad::kToLoops}, shown;
  for (const passes::Pass& p : passes::all_passes()) rows.insert(p.name);
  for (const passes::LoopPass& p : passes::loop_passes()) rows.insert(p.name);
  for (const auto& table : {passes::gpu_tile_passes(), passes::gpu_plan_passes()})
    for (const passes::GpuPass& p : table) rows.insert(p.name);
  for (const fs::path& file : files()) {
    const Case c = case_of(file);
    const std::string folder = file.parent_path().filename();
    EXPECT_TRUE(rows.contains(folder)) << c.name << ": there is no such pass";
    EXPECT_EQ(c.passes.back(), folder) << c.name << " ends with another pass";
    if (!shown.contains(folder) && does_something(c)) shown.insert(folder);
  }
  for (const std::string& row : rows)
    EXPECT_TRUE(shown.contains(row)) << "no text under tests/passes/text/" << row
                                     << " in which the pass does something";
}

// A pass that reads another's findings stands behind it.
TEST(PassTables, NeedsStandBefore) {
  for (const auto& table : {passes::gpu_tile_passes(), passes::gpu_plan_passes()}) {
    std::set<std::string_view> before;
    for (const passes::GpuPass& p : table) {
      EXPECT_TRUE(!p.needs || before.contains(p.needs)) << p.name << " needs " << p.needs;
      EXPECT_NE(p.run == nullptr, p.run_launch == nullptr) << p.name;
      before.insert(p.name);
    }
  }
}

}  // namespace
}  // namespace tilewright
