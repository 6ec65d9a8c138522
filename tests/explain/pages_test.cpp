// docs/explain: what `tilewright explain` says of three programs, written by this test and compared with what is there.
// TILEWRIGHT_UPDATE=1 rewrites the pages.
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "driver/explain.h"
#include "example.h"
#include "files.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "layout/picture.h"
#include "runtime/nvrtc.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(TILEWRIGHT_SOURCE_DIR) / "docs/explain";
constexpr const char* kArch = "sm_90a";
constexpr int64_t kDrawn = 16;  // rows and columns of a picture

struct Subject {
  const char *page, *title, *example;
  size_t number;                      // of its cases for GPUs
  std::vector<std::string> pictures;  // buffers that are drawn
};

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> table = {
      {"gemm", "Matrix product", "gemm", 0, {"A_shared", "B_shared", "C_local"}},
      {"attention", "Attention, forward", "flash_attention", 0, {"K_shared", "acc_s", "acc_o"}},
      {"mla_decode", "Multi-head latent attention, decoding", "mla_decode", 0, {"KV_shared_left", "acc_s", "acc_o"}},
  };
  return table;
}

std::string numbered(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  int number = 0;
  for (std::string line; std::getline(lines, line);) out += fmt::format("{:>4}  {}\n", ++number, line);
  return out;
}

const examples::Case case_of(const Subject& subject) {
  for (const examples::Example& e : examples::all_examples())
    if (e.name == std::string(subject.example)) return e.cases(examples::Size::Gpu).at(subject.number);
  ADD_FAILURE() << "no example " << subject.example;
  std::abort();
}

void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.page; }

class ExplainPages : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    try {
      runtime::Nvrtc::get();
    } catch (const CompileError& e) {
      GTEST_SKIP() << e.what();  // registers and spills are its
    }
  }
};

TEST_P(ExplainPages, AreWhatExplainSays) {
  const Subject& subject = GetParam();
  const examples::Case c = case_of(subject);
  // Lines are those of the page, wherever the example's own are.
  const std::string text = ir::print(c.program.box().program);
  const Explanation e = explain_gpu(ir::parse(text, fmt::format("{}.tile", subject.page)), {}, kArch);
  ASSERT_FALSE(e.refused) << e.refused->to_string();
  std::string page = fmt::format(
      "# {}\n\nThe example `{}` at {}, as `tilewright explain --arch {}` sees it. Written by the tests "
      "(`tests/explain/pages_test.cpp`).\n\n## The program\n\n```\n{}```\n\n## What becomes of it\n\n```\n{}```\n",
      subject.title, subject.example, c.shape, kArch, numbered(text), to_text(e));
  page += fmt::format("\n## Pictures\n\nThe first {} rows and columns.\n", kDrawn);
  for (const std::string& name : subject.pictures) {
    const LayoutFacts* found = nullptr;
    for (const GpuLaunchFacts& launch : e.gpu->launches)
      for (const LayoutFacts& l : launch.layouts)
        if (l.name == name) found = &l;
    ASSERT_TRUE(found) << name << " has no layout:\n" << to_text(e);
    const std::string file = fmt::format("{}_{}.svg", subject.page, name);
    expect_file(kFolder / file,
                found->fragment ? fragment_svg(*found->fragment, kDrawn) : memory_svg(*found->memory, kDrawn));
    page += fmt::format("\n{}, decided by {}:\n\n![{}]({})\n", name, found->decided_by, name, file);
  }
  expect_file(kFolder / fmt::format("{}.md", subject.page), page);
}

INSTANTIATE_TEST_SUITE_P(All, ExplainPages, testing::ValuesIn(subjects()),
                         [](const auto& info) { return std::string(info.param.page); });

}  // namespace
}  // namespace tilewright
