#include "driver/fuzz/kernels.h"

#include "driver/build_plan.h"
#include "driver/canonical.h"
#include "passes/pipeline.h"
#include "runtime/executable.h"
#include "support/diagnostic.h"

namespace tilewright::fuzz {
namespace {

constexpr std::string_view kEntry = "tw_entry";

std::string entry_name(size_t number) { return fmt::format("{}_{}", kEntry, number); }

// A kernel's text without the ABI, in a namespace of its own, with an entry of its own.
std::string in_namespace(const std::string& text, size_t number) {
  const size_t head = runtime::kernel_text_head().size();
  check_internal(text.starts_with(runtime::kernel_text_head()), "a kernel that does not begin with the ABI");
  std::string out = fmt::format(
      "namespace k{} {{\nextern \"C\" __attribute__((visibility(\"default\"))) int {}(const struct tw_call* call);\n",
      number, entry_name(number));
  size_t from = head;
  for (size_t at; (at = text.find(kEntry, from)) != std::string::npos; from = at + kEntry.size())
    out.append(text, from, at - from).append(entry_name(number));
  return out.append(text, from).append("\n}\n");
}

}  // namespace

Kernels::Kernels(std::span<const ir::TileProgram* const> programs, Optimize optimize) : all_(programs.size()) {
  for (size_t i = 0; i < programs.size(); ++i) {
    try {
      lower(*programs[i], all_[i]);
    } catch (const std::exception&) {
      all_[i].error = std::current_exception();
    }
  }
  compile_all(optimize);
}

void Kernels::lower(const ir::TileProgram& program, One& one) {
  Dump dump(program.name);
  const ir::TileProgram tiles = canonical(program);
  one.plan = build_plan(tiles);
  one.kernel = write_cpu(tiles, runtime::processor_features(), dump);
  one.plan.sites = one.kernel.sites;
}

void Kernels::compile_all(Optimize optimize) {
  const std::vector<std::string> flags =
      optimize == Optimize::Little ? std::vector<std::string>{"-O1"} : std::vector<std::string>{};
  const runtime::ProcessorFeatures features = runtime::processor_features();
  std::vector<One*> lowered;
  for (One& one : all_)
    if (!one.error) lowered.push_back(&one);
  std::string text = runtime::kernel_text_head();
  for (size_t i = 0; i < lowered.size(); ++i) text += in_namespace(lowered[i]->kernel.text, i);
  try {
    if (lowered.size() > 1) {
      for (size_t i = 0; i < lowered.size(); ++i)
        lowered[i]->kernel.callee = runtime::build_cpu_kernel({"fuzz", text, features, entry_name(i), flags});
      return;
    }
  } catch (const CompileError&) {
    // One of them does not compile. Which one shows when each is compiled alone.
  }
  for (One* one : lowered) {
    try {
      one->kernel.callee = runtime::build_cpu_kernel({one->plan.name, one->kernel.text, features, "tw_entry", flags});
    } catch (const std::exception&) {
      one->error = std::current_exception();
    }
  }
}

Executable Kernels::build(size_t program) {
  One& one = all_[program];
  if (one.error) std::rethrow_exception(one.error);
  return runtime::make_executable(std::move(one.plan), std::move(one.kernel.callee), "cpu", one.kernel.text);
}

}  // namespace tilewright::fuzz
