// A program that was compiled before is not lowered again, in this process or another: what it was lowered to lies in
// the kernel cache. Nothing that its kernel follows from may be missing from what it is found by.
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "driver/build_plan.h"
#include "driver/cpu_engine.h"
#include "driver/cuda_engine.h"
#include "example.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "passes/assume_fast_calls.h"
#include "passes/pipeline.h"
#include "runtime/build_id.h"
#include "runtime/cuda_test_driver.h"
#include "runtime/lowered_kernel.h"
#include "runtime/scratch.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;
using runtime::CaughtWarnings, runtime::LoweredKernel, runtime::LoweredPlace, runtime::Scratch, runtime::ScopedVariable;

constexpr const char* kPlanted = "// planted\n";

Program shifted(double by) {
  Tensor A("A", {100}, f32), B("B", {100}, f32);
  return prim_func("shifted", {A, B}, [&] {
    for (auto bx : Kernel(2, {.threads = 64})) {
      for (auto i : Parallel(64)) B(bx * 64 + i) = A(bx * 64 + i) + by;
    }
  });
}

ir::TileProgram canonical(const Program& program) {
  return passes::run_passes(order_symbols(program.box().program), passes::all_passes(), [](auto&&...) {});
}

// The first element that a call of shifted() leaves.
double first_of(const Executable& kernel) {
  const NDArray a = NDArray::zeros({100}, f32), b = NDArray::zeros({100}, f32);
  kernel(a, b);
  return b.get_float({0});
}

class LoweredBefore : public testing::Test {
 protected:
  std::string folder() const { return scratch_ / "cache"; }
  int entries() const { return static_cast<int>(std::distance(fs::directory_iterator(folder()), {})); }
  static LoweredPlace cpu_place(const Program& program) {
    return {cpu_origin(canonical(program), runtime::processor_features()), runtime::own_build_id()};
  }
  // A line at the end of the text that was kept shows whether that is what compile() takes.
  static void plant(const LoweredPlace& place) {
    std::optional<LoweredKernel> kept = place.find();
    ASSERT_TRUE(kept);
    kept->text += kPlanted;
    place.keep(*kept);
  }
  static bool is_planted(const Executable& kernel) { return kernel.source().ends_with(kPlanted); }

 private:
  const Scratch scratch_;
  const ScopedVariable directory_{"TILEWRIGHT_CACHE_DIR", folder().c_str()};
};

TEST_F(LoweredBefore, CpuKernelsAreTakenFromTheCache) {
  const Executable first = compile(shifted(1), {.engine = Engine::Cpu});
  EXPECT_EQ(entries(), 2);  // the text, and its object
  plant(cpu_place(shifted(1)));
  const Executable again = compile(shifted(1), {.engine = Engine::Cpu});
  EXPECT_EQ(again.source(), first.source() + kPlanted);
  EXPECT_EQ(first_of(again), 1);
  const Executable other = compile(shifted(2), {.engine = Engine::Cpu});
  EXPECT_FALSE(is_planted(other));
  EXPECT_EQ(first_of(other), 2);
  {
    const ScopedVariable portable("TILEWRIGHT_CPU", "portable");
    EXPECT_EQ(is_planted(compile(shifted(1), {.engine = Engine::Cpu})),
              runtime::detect_processor() == runtime::ProcessorFeatures{});
  }
  EXPECT_TRUE(is_planted(compile(shifted(1), {.engine = Engine::Cpu})));
}

TEST_F(LoweredBefore, AProgramIsLoweredWhereItsStagesAreDumped) {
  compile(shifted(1), {.engine = Engine::Cpu});
  plant(cpu_place(shifted(1)));
  const std::string dumps = folder() + "-dumps";
  const ScopedVariable dump("TILEWRIGHT_DUMP", dumps.c_str());
  EXPECT_FALSE(is_planted(compile(shifted(1), {.engine = Engine::Cpu})));
  const auto is_text = [](const fs::directory_entry& file) { return file.path().string().ends_with("-cpu.cpp"); };
  EXPECT_TRUE(std::any_of(fs::directory_iterator(dumps), {}, is_text));
}

TEST_F(LoweredBefore, DamagedEntriesAreLoweredAnewAndWrittenAnew) {
  const Executable first = compile(shifted(1), {.engine = Engine::Cpu});
  const std::string file = folder() + "/" + runtime::KernelCache::file_name(cpu_place(shifted(1)).key());
  ASSERT_TRUE(fs::exists(file));
  const auto damage = [&] { fs::resize_file(file, fs::file_size(file) / 2); };
  const auto flip = [&] {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(300);
    stream.put('\x7f');
  };
  const auto open_to_all = [&] { fs::permissions(file, fs::perms::all); };
  int damaged = 0;
  for (const std::function<void()>& act : std::vector<std::function<void()>>{damage, flip, open_to_all}) {
    act();
    const CaughtWarnings warnings;
    EXPECT_EQ(compile(shifted(1), {.engine = Engine::Cpu}).source(), first.source());
    EXPECT_EQ(warnings.count(Code::CacheEntryDamaged), 1) << ++damaged;
    EXPECT_TRUE(cpu_place(shifted(1)).find());
    EXPECT_EQ(warnings.found.size(), 1u);
  }
}

// With a checksum that fits, but nothing that we would write.
TEST_F(LoweredBefore, EntriesOfAnotherFormAreLoweredAnewAndWrittenAnew) {
  const Executable first = compile(shifted(1), {.engine = Engine::Cpu});
  const LoweredPlace place = cpu_place(shifted(1));
  runtime::KernelCache::from_environment().store(place.key(), {"no kernel", "no text"});
  EXPECT_FALSE(place.find());
  const CaughtWarnings warnings;
  EXPECT_EQ(compile(shifted(1), {.engine = Engine::Cpu}).source(), first.source());
  EXPECT_TRUE(place.find());
  EXPECT_TRUE(warnings.found.empty());
}

TEST_F(LoweredBefore, ADirectoryThatIsNotOursIsSaidOnce) {
  fs::create_directory(folder());
  fs::permissions(folder(), fs::perms::all);
  const CaughtWarnings warnings;
  EXPECT_EQ(first_of(compile(shifted(4), {.engine = Engine::Cpu})), 4);
  ASSERT_EQ(warnings.found.size(), 1u);
  EXPECT_EQ(warnings.count(Code::CacheDirectoryRefused), 1);
  EXPECT_EQ(entries(), 0);
}

TEST_F(LoweredBefore, ProcessesShareWhatTheyLower) {
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    // It must not run what it compiles: OpenMP's threads are the parent's.
    if (child == 0) _exit(compile(shifted(3), {.engine = Engine::Cpu}).source().empty() ? 1 : 0);
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(entries(), 2);
  plant(cpu_place(shifted(3)));
  const Executable kernel = compile(shifted(3), {.engine = Engine::Cpu});
  EXPECT_TRUE(is_planted(kernel));
  EXPECT_EQ(first_of(kernel), 3);
}

TEST_F(LoweredBefore, CudaKernelsAreTakenFromTheCache) {
  const runtime::cuda::FakeDriver driver;
  const auto make = [](const std::string& arch) { return compile(shifted(1), {.engine = Engine::Cuda, .arch = arch}); };
  const Executable first = make("sm_90a");
  EXPECT_EQ(entries(), 2);
  const ir::TileProgram fast = passes::assume_fast_calls(canonical(shifted(1)));
  plant({cuda_origin(fast, "sm_90a", "sm_90a"), runtime::own_build_id()});
  EXPECT_EQ(make("sm_90a").source(), first.source() + kPlanted);
  EXPECT_EQ(entries(), 3);  // the planted text was compiled
  EXPECT_FALSE(is_planted(make("sm_80")));
  const std::string key = cuda_origin(fast, "sm_80", "sm_80");
  EXPECT_NE(key, cuda_origin(fast, "sm_80", "sm_90"));
  EXPECT_NE(key, cuda_origin(fast, "sm_89", "sm_80"));
  EXPECT_NE(key.find("\nNVRTC " + runtime::Nvrtc::get().version() + "\n"), std::string::npos);
}

// Where names clash the text form numbers them, and what is read has those names.
std::string without_numbers_of_names(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    const size_t end = text[at] == '_' ? text.find_first_not_of("0123456789", at + 1) : at + 1;
    if (end == at + 1)
      out += text[at];
    else
      at = std::min(end, text.size()) - 1;
  }
  return out;
}

// Of every example: what it is found by says all that its kernel follows from, because a program that is read from that
// text gives the same kernel, with the same plan and sites.
TEST(LoweredOrigin, SaysAllThatKernelsFollowFrom) {
  int programs = 0;
  for (const examples::Example& e : examples::all_examples()) {
    for (const auto size : {examples::Size::Odd, examples::Size::Gpu}) {
      const std::vector<examples::Case> cases = e.cases(size);
      if (cases.empty()) continue;
      const ir::TileProgram program = passes::assume_fast_calls(canonical(cases.back().program));
      const ir::TileProgram read = ir::parse(ir::print(program, {.locations = true}), "other.tile");
      const auto lowered = [&](const ir::TileProgram& p) -> runtime::CacheEntry {
        Dump dump(p.name);
        try {
          CudaText cuda = write_cuda(p, "sm_90a", dump);
          std::string text = without_numbers_of_names(cuda.kernel.text);
          return runtime::encode_lowered({std::move(text), cuda.sites, cuda.kernel.plan, cuda.alignments});
        } catch (const CompileError& refusal) {
          return {"refused", refusal.diagnostic().code_text()};
        }
      };
      const runtime::CacheEntry one = lowered(program), other = lowered(read);
      EXPECT_EQ(one.payload, other.payload) << e.name;
      EXPECT_EQ(one.metadata, other.metadata) << e.name;
      ++programs;
    }
  }
  EXPECT_GT(programs, 60);
}

}  // namespace
}  // namespace tilewright
