// The texts that programs become, locked: some whole, of all a digest. TILEWRIGHT_UPDATE=1 rewrites the files in
// golden/; a change that does says in its message why, and what it measured.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "codegen/cpu_kernel.h"
#include "codegen/cuda_texts.h"
#include "driver/build_plan.h"
#include "files.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/pipeline.h"
#include "runtime/sha256.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;

const fs::path kGolden = fs::path(TILEWRIGHT_SOURCE_DIR) / "tests/codegen/golden";

void expect_locked(const std::string& name, const std::string& text) { expect_file(kGolden / name, text); }

ir::TileProgram canonical(const ir::TileProgram& program) {
  return passes::run_passes(order_symbols(program), passes::all_passes(), [](auto&&...) {});
}

// A digest, or the code of the refusal.
template <class F>
std::string digest_of(F text) {
  try {
    return runtime::hex(runtime::sha256(text())).substr(0, 16);
  } catch (const Error& e) {
    return e.diagnostic().code_text();
  }
}

// One line for a program: its digests as CUDA for every plan that may be tried, and as C++ for every width of vectors.
std::string digests_of(const std::string& name, const ir::TileProgram& program) {
  std::vector<std::string> columns{name};
  std::optional<ir::TileProgram> tiles;
  const std::string refused = digest_of([&] {
    tiles = canonical(program);
    return "";
  });
  if (!tiles) return fmt::format("{}\t{}\n", name, refused);
  const auto cuda = [&](const char* arch, plan::Limits limits) {
    Dump dump(program.name);
    return digest_of([&] { return write_cuda(*tiles, arch, dump, limits).kernel.text; });
  };
  columns.push_back(cuda("sm_80", {}));
  for (const plan::Limits& limits : passes::limits_in_turn()) {
    columns.push_back(cuda("sm_90a", limits));
    if (columns.size() > 3 && columns.back() == columns[2]) columns.back() = "=";
  }
  const runtime::ProcessorFeatures avx2{.avx2 = true, .fma = true, .f16c = true};
  runtime::ProcessorFeatures avx512 = avx2;
  avx512.avx512 = avx512.avx512_bf16 = avx512.avx512_vnni = avx512.avx512_vbmi = true;
  for (const runtime::ProcessorFeatures& features : {runtime::ProcessorFeatures{}, avx2, avx512}) {
    Dump dump(program.name);
    columns.push_back(digest_of([&] { return write_cpu(*tiles, features, dump).text; }));
  }
  return fmt::format("{}\n", fmt::join(columns, "\t"));
}

const char* const kColumns =
    "program\tsm_80\tsm_90a\tsm_90a, plan 2\tplan 3\tplan 4\tplan 5\tplan 6\tportable\tavx2\tavx512\n";

TEST(LockedTexts, DigestsOfExamples) {
  std::string lines = kColumns;
  for (const examples::Example& e : examples::all_examples())
    for (const examples::Case& c : {e.cases(examples::Size::Odd).back(), e.cases(examples::Size::Gpu).front()})
      lines += digests_of(fmt::format("{} {}", e.name, c.shape), c.program.box().program);
  expect_locked("examples.digests.tsv", lines);
}

TEST(LockedTexts, DigestsOfProgramFiles) {
  std::vector<fs::path> files;
  const fs::path root = fs::path(TILEWRIGHT_SOURCE_DIR) / "tests/engines/programs";
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.path().extension() == ".tile") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::string lines = kColumns;
  for (const fs::path& file : files) {
    const std::string whole = text_of(file);
    const ir::TileProgram program = ir::parse(whole.substr(0, whole.find("#!")), file.filename());
    lines += digests_of(fs::relative(file, root).replace_extension(), program);
  }
  expect_locked("program_files.digests.tsv", lines);
}

// A text is locked in parts that follow each other without a gap: the functions that the kernel calls; the kernel as
// far as all warps and those that load go; each role that computes.
void expect_parts(const std::string& name, const std::string& text) {
  const std::string kernel = "\nextern \"C\" __global__";
  const std::regex computes("\n  if \\(warp (< [0-9]+|>= [0-9]+ && warp < [0-9]+)\\) \\{");
  std::vector<size_t> begins = {0, text.find(kernel) + 1};
  ASSERT_NE(begins[1], 0u) << name;
  for (std::sregex_iterator at(text.begin(), text.end(), computes), end; at != end; ++at)
    begins.push_back(static_cast<size_t>(at->position()) + 1);
  for (size_t i = 0; i < begins.size(); ++i) {
    const size_t end = i + 1 < begins.size() ? begins[i + 1] : text.size();
    const std::string part = i == 0 ? "functions" : i == 1 ? "kernel" : fmt::format("role_{}", i - 1);
    expect_locked(name + part + ".cu", text.substr(begins[i], end - begins[i]));
  }
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(kGolden))
    files += entry.path().filename().string().starts_with(name) && entry.path().extension() == ".cu";
  EXPECT_EQ(files, begins.size()) << "golden files of " << name << " that are no part of it any more";
}

// The plan of a program: its tiles with rings and roles; and the text.
TEST(LockedTexts, WholePlansAndTexts) {
  const std::set<std::string> plans = {"gemm",     "flash_attention", "attention_backward", "mla_decode",
                                       "fp8_gemm", "grouped_gemm",    "split_gemm",         "int4_gemm"};
  const std::set<std::string> texts = {"gemm",        "flash_attention", "mla_decode", "fp8_gemm",  "split_gemm",
                                       "sparse_gemm", "softmax",         "rms_norm",   "topk_gate", "convolution"};
  size_t found = 0;
  for (const examples::Example& e : examples::all_examples()) {
    const examples::Case c = e.cases(examples::Size::Gpu).front();
    const std::string name = e.name;
    if (plans.contains(name)) {
      const ir::TileProgram tiles = canonical(c.program.box().program);
      const passes::ThreadLowering lowered = passes::lower_to_threads(tiles, gpu_target("sm_90a"));
      expect_locked(name + ".plan", passes::print_plans(lowered));
      const std::string text = ir::print(lowered.planned);
      expect_locked(name + ".planned.tile", text);
      const ir::TileProgram again = ir::parse(text, name + ".planned.tile");
      EXPECT_EQ(ir::print(again), text);
      ir::check_valid(again);
      ++found;
    }
    if (texts.contains(name)) expect_parts(name + ".sm_90a.", cuda_text_of(name, c, "sm_90a").kernel.text), ++found;
  }
  EXPECT_EQ(found, plans.size() + texts.size());
}

}  // namespace
}  // namespace tilewright
