// NVRTC as a function from text to a cubin, and the log of ptxas as data. Needs no device.
#include "runtime/nvrtc.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>

#include "runtime/failed_text.h"
#include "runtime/plans.h"
#include "runtime/scratch.h"
#include "support/warning.h"

namespace tilewright::runtime {
namespace {

DeviceBinary compile(std::string_view text, std::string arch = "sm_90a") {
  return Nvrtc::get().compile({"test", text, std::move(arch)});
}

std::string refusal(Code code, std::string_view text, std::string arch = "sm_90a") {
  try {
    compile(text, std::move(arch));
  } catch (const CompileError& e) {
    EXPECT_EQ(e.diagnostic().code, static_cast<uint16_t>(code)) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "compiled: " << text.substr(0, 60);
  return "";
}

constexpr const char* kReverse = R"(
extern "C" __global__ void __launch_bounds__(128) reverse(float* a, int n) {
  __shared__ float s[128];
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < n) a[threadIdx.x] = s[127 - threadIdx.x];
}
extern "C" __global__ void one(double* p) { *p = 1; }
)";

// 64 live values a thread, and 32 registers for them.
constexpr const char* kSpills = R"(
extern "C" __global__ void __launch_bounds__(1024, 2) spills(float* a, const float* b) {
  float x[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) x[i] = b[i * 1024 + threadIdx.x];
  for (int j = 0; j < 100; ++j) {
#pragma unroll
    for (int i = 0; i < 64; ++i) x[i] = x[i] * x[(i * 7 + 3) % 64] + b[j];
  }
#pragma unroll
  for (int i = 0; i < 64; ++i) a[i * 1024 + threadIdx.x] = x[i];
}
)";

// `touch` stands between the commit of a wgmma and its wait.
std::string wgmma_kernel(const char* touch) {
  return fmt::format(R"(
extern "C" __global__ void __launch_bounds__(128) product(float* out, unsigned long long a, unsigned long long b, int n) {{
  float d[4] = {{0, 0, 0, 0}};
  for (int i = 0; i < n; ++i) {{
    asm volatile("wgmma.fence.sync.aligned;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) :: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {{%0, %1, %2, %3}}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    {}
    asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) :: "memory");
  }}
  for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = d[i];
}}
)",
                     touch);
}

TEST(Nvrtc, IsFound) {
  const Nvrtc& nvrtc = Nvrtc::get();
  EXPECT_GE(std::stoi(nvrtc.version()), 12);
  const std::vector<int>& known = nvrtc.architectures();
  EXPECT_TRUE(std::find(known.begin(), known.end(), 90) != known.end());
}

TEST(Nvrtc, CompilesForEachArchitecture) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const DeviceBinary binary = compile(kReverse, arch);
    EXPECT_TRUE(binary.cubin.starts_with("\177ELF"));
    EXPECT_GT(binary.milliseconds, 1);
    ASSERT_EQ(binary.log.kernels.size(), 2u) << binary.log.text;
    const KernelResources* reverse = binary.log.kernel("reverse");
    ASSERT_TRUE(reverse);
    EXPECT_GT(reverse->registers, 3);
    EXPECT_EQ(reverse->shared_bytes, arch == std::string("sm_80") ? 512 : reverse->shared_bytes);
    EXPECT_GE(reverse->shared_bytes, 512);
    EXPECT_EQ(reverse->barriers, 1);
    EXPECT_EQ(reverse->spill_store_bytes, 0);
    EXPECT_TRUE(binary.log.remarks.empty()) << binary.log.text;
    EXPECT_EQ(binary.log.kernel("reverse2"), nullptr);
  }
}

TEST(Nvrtc, TellsOfSpills) {
  const DeviceBinary binary = compile(kSpills);
  const KernelResources* k = binary.log.kernel("spills");
  ASSERT_TRUE(k);
  EXPECT_EQ(k->registers, 32);
  EXPECT_GT(k->spill_store_bytes, 0);
  EXPECT_GT(k->spill_load_bytes, 0);
  EXPECT_GT(k->stack_bytes, 0);
}

TEST(Nvrtc, TellsOfSerializedWgmma) {
  const DeviceBinary good = compile(wgmma_kernel(""));
  for (const PtxasRemark& r : good.log.remarks) EXPECT_FALSE(r.is_performance_loss()) << r.message;
  const DeviceBinary bad = compile(wgmma_kernel("d[0] = d[0] * 1.5f;"));
  const auto serialized = std::find_if(bad.log.remarks.begin(), bad.log.remarks.end(),
                                       [](const PtxasRemark& r) { return r.serializes_wgmma(); });
  ASSERT_NE(serialized, bad.log.remarks.end()) << bad.log.text;
  EXPECT_TRUE(serialized->is_performance_loss());
  EXPECT_EQ(serialized->function, "product");
  EXPECT_TRUE(serialized->code.starts_with("C75")) << serialized->code;
}

TEST(Nvrtc, KeepsTwoRoundings) {
  // An fma would have 0 as its result only where the exact product is 1; here the rounded product is.
  const std::string text = R"(
static_assert(__cplusplus >= 202002L);
float keep(float a, float b, float c) { return a * b + c; }
extern "C" __global__ void k(float* p) { p[0] = keep(p[1], p[2], p[3]); }
)";
  EXPECT_FALSE(compile(text).cubin.empty());
  const std::string& options = fmt::format("{}", fmt::join(device_options(), " "));
  EXPECT_NE(options.find("-fmad=false"), std::string::npos);
  EXPECT_EQ(options.find("fast"), std::string::npos);
}

TEST(Nvrtc, SameTextSameBytes) { EXPECT_EQ(compile(kReverse).cubin, compile(kReverse).cubin); }

TEST(Nvrtc, CompilesInSeveralThreads) {
  std::vector<std::string> cubins(4);
  std::vector<std::thread> threads;
  for (std::string& cubin : cubins) threads.emplace_back([&] { cubin = compile(kReverse).cubin; });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& cubin : cubins) EXPECT_EQ(cubin, cubins[0]);
}

TEST(Nvrtc, ShowsTheLineOfAnError) {
  const std::string text =
      refusal(Code::DeviceCompilerFailed, "int one;\nint two;\nint three() { return four; }\nint five;\n");
  EXPECT_NE(text.find("TW8003 cuda: NVRTC"), std::string::npos) << text;
  EXPECT_NE(text.find("identifier \"four\" is undefined"), std::string::npos) << text;
  EXPECT_NE(text.find(">     3 | int three() { return four; }"), std::string::npos) << text;
  EXPECT_NE(text.find("      2 | int two;"), std::string::npos) << text;
}

TEST(Nvrtc, ShowsThePtxLineOfAnAssemblerError) {
  const std::string text =
      refusal(Code::DeviceCompilerFailed,
              "extern \"C\" __global__ void k(float* a) { asm volatile(\"hello.world %0;\" :: \"f\"(a[0])); }");
  EXPECT_NE(text.find("Not a name of any known instruction: 'hello'"), std::string::npos) << text;
  EXPECT_NE(text.find("in the PTX of the text"), std::string::npos) << text;
  EXPECT_NE(text.find("| \thello.world"), std::string::npos) << text;
}

TEST(Nvrtc, KeepsARefusedText) {
  const Scratch scratch;
  const ScopedVariable dump("TILEWRIGHT_DUMP", scratch.path().c_str());
  const std::string text = refusal(Code::DeviceCompilerFailed, "nonsense\n");
  EXPECT_NE(text.find("the text is kept in " + scratch / "test.failed.cu"), std::string::npos) << text;
  std::ifstream kept(scratch / "test.failed.cu");
  std::string line;
  std::getline(kept, line);
  EXPECT_EQ(line, "nonsense");
}

TEST(Nvrtc, RefusesHostileTexts) {
  refusal(Code::DeviceCompilerFailed, "#error \"$(touch /tmp/x)\"\n");
  refusal(Code::DeviceCompilerFailed, std::string(200000, '('));
  refusal(Code::DeviceCompilerFailed, "int \xff\xfe\x01 = \";");
  refusal(Code::DeviceCompilerFailed,
          "template <int N> struct A { static constexpr int v = A<N + 1>::v; }; int x = A<0>::v;");
  // Nothing but the text may go into a kernel, or the cache would answer for other files.
  refusal(Code::DeviceTextIncludes, "#include </etc/passwd>\n");
  refusal(Code::DeviceTextIncludes, "int a;\n \t# \t include \"/etc/passwd\"\n");
  refusal(Code::DeviceTextIncludes, "%:include \"/etc/passwd\"\n");
  EXPECT_FALSE(compile("// #include <a>\n#define include 1\nextern \"C\" __global__ void k() {}\n").cubin.empty());
}

TEST(Nvrtc, RefusesWhatIsUndefined) {
  const char* own =
      "extern \"C\" __global__ void k(unsigned* p, int i) {\n  unsigned own[2] = {p[0], p[1]};\n  {}\n"
      "  p[2] = own[i];\n}\n";
  const auto with = [&](std::string statement) {
    return std::string(own).replace(std::string(own).find("{}"), 2, statement);
  };
  const std::string told = refusal(Code::DeviceCompilerFailed, with("atomicAdd(&own[i], 1);"));
  EXPECT_NE(told.find("a trap that its text does not have"), std::string::npos) << told;
  EXPECT_FALSE(compile(with("if (i > 1) asm volatile(\"trap;\");")).cubin.empty());
}

TEST(Nvrtc, RefusesUnknownArchitectures) {
  for (const char* arch : {"sm_77", "", "sm_90a;ls", "banana"}) {
    const std::string text = refusal(Code::DeviceArchitecture, kReverse, arch);
    EXPECT_NE(text.find("it knows sm_"), std::string::npos) << text;
  }
}

TEST(Nvrtc, SaysWhatToInstall) {
  const ScopedVariable missing("TILEWRIGHT_NVRTC", "/nowhere/libnvrtc.so");
  const std::string text = refusal(Code::DeviceCompilerMissing, kReverse);
  EXPECT_NE(text.find("/nowhere/libnvrtc.so"), std::string::npos) << text;
  EXPECT_NE(text.find("nvidia-cuda-nvrtc"), std::string::npos) << text;
}

TEST(Nvrtc, RefusesAnotherLibrary) {
  const ScopedVariable other("TILEWRIGHT_NVRTC", "libm.so.6");
  EXPECT_NE(refusal(Code::DeviceCompilerUnusable, kReverse).find("has no nvrtcVersion"), std::string::npos);
}

// Where NVRTC 13.0 and 13.5 end by SIGSEGV: places that are multiples of one sum, in two unrolled loops.
constexpr const char* kCrashes = R"(
__device__ int floormod(int a, int b) {
  const int d = b == 0 | b == -1 ? 1 : b, r = a % d;
  return r != 0 & (r < 0) != (d < 0) ? r + d : r;
}
extern "C" __global__ void __launch_bounds__(256) crashes(float*) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const int tx = threadIdx.x;
  float* const total = (float*)(shared + 0);
  float* const weights = (float*)(shared + 384);
  float* const parts = (float*)(shared + 640);
  for (int k = 0; k < 6; ++k) {
    float most = 0;
    if ((tx & 31) / 12 < 2) {
      for (long long part = 1; part < 24; ++part)
        most = fmaxf(most, parts[(tx >> 7) * 4ll + ((tx & 127) >> 6) * 2ll + part * 8ll + ((tx & 31) / 12)]);
    }
    if (((tx & 63) >> 5) == 0 && floormod(tx, 12) == 0) {
      weights[k + (tx >> 7) * 24 + ((tx & 127) >> 6) * 12 + ((tx & 31) / 12) * 6] = most;
      total[(tx >> 7) * 4 + ((tx & 127) >> 6) * 2 + ((tx & 31) / 12)] =
          total[(tx >> 7) * 4 + ((tx & 127) >> 6) * 2 + ((tx & 31) / 12)] + most;
    }
  }
}
)";

// NVRTC in the shape of tests/fake_cuda/fake_nvrtc.cpp, and what is warned of.
class FakeNvrtc {
 public:
  FakeNvrtc() : sink_(replace_warning_sink([this](const Diagnostic& d) { warned.push_back(d.to_string()); })) {}
  ~FakeNvrtc() { replace_warning_sink(sink_); }
  std::vector<std::string> warned;

 private:
  const ScopedVariable library_{"TILEWRIGHT_NVRTC", TILEWRIGHT_FAKE_NVRTC};
  WarningSink sink_;
};

TEST(NvrtcProcess, IsNotThisOne) {
  const FakeNvrtc fake;
  const std::string code = compile("text").cubin;
  EXPECT_TRUE(code.starts_with("made by ")) << code;
  EXPECT_EQ(code.find(fmt::format("made by {}", getpid())), std::string::npos) << code;
  EXPECT_TRUE(fake.warned.empty()) << fake.warned.front();
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // nobody is left
  EXPECT_EQ(errno, ECHILD);
}

TEST(NvrtcProcess, ACrashIsAnErrorAtTheProgram) {
  const FakeNvrtc fake;
  for (const auto& [text, why] :
       {std::pair{"crash always", "(SIGSEGV)"}, {"end in between", "(it ended without a word)"}})
    try {
      Nvrtc::get().compile({"test", text, "sm_90a", {}, {"user.py", 3, 5}});
      FAIL() << text;
    } catch (const CompileError& e) {
      const std::string told = e.what();
      EXPECT_EQ(e.diagnostic().code, static_cast<uint16_t>(Code::DeviceCompilerFailed));
      EXPECT_NE(told.find(fmt::format("NVRTC 99.0 crashed {} on kernel 'test' for sm_90a", why)), std::string::npos);
      EXPECT_NE(told.find("user.py:3:5"), std::string::npos) << told;
      EXPECT_NE(told.find("help: take other tile sizes"), std::string::npos) << told;
    }
  EXPECT_TRUE(fake.warned.empty()) << fake.warned.front();
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(NvrtcProcess, WhereItCrashesItOptimizesLess) {
  const FakeNvrtc fake;
  EXPECT_TRUE(compile("crash where optimized").cubin.starts_with("made by "));
  ASSERT_EQ(fake.warned.size(), 1u);
  EXPECT_NE(fake.warned[0].find("NVRTC 99.0 crashed (SIGSEGV) on kernel 'test': it was compiled with fewer"),
            std::string::npos);
}

TEST(NvrtcProcess, ATextOnWhichNvrtcCrashesIsCompiled) {
  std::vector<std::string> warned;
  const WarningSink sink = replace_warning_sink([&](const Diagnostic& d) { warned.push_back(d.to_string()); });
  const DeviceBinary binary = compile(kCrashes);
  replace_warning_sink(sink);
  EXPECT_TRUE(binary.cubin.starts_with("\177ELF"));
  EXPECT_TRUE(binary.log.kernel("crashes"));
  if (Nvrtc::get().version() == "13.0") {  // a later one may be mended
    EXPECT_EQ(warned.size(), 1u);
  }
}

TEST(NvrtcProcess, IsStoppedAtItsDeadline) {
  const NvrtcAnswer answer =
      call_nvrtc_apart({"", TILEWRIGHT_FAKE_NVRTC, false, "never end", {}}, std::chrono::milliseconds(200));
  EXPECT_EQ(answer.end, NvrtcAnswer::End::TimedOut);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(NvrtcProcess, AnswersOfAnySize) {
  const std::string text = "x" + std::string(3 << 20, ' ');
  EXPECT_EQ(call_nvrtc_apart({"", TILEWRIGHT_FAKE_NVRTC, true, text, {"a", "b"}}).end, NvrtcAnswer::End::Answered);
  const NvrtcAnswer none = call_nvrtc_apart({"", "/nowhere/libnvrtc.so", false, "text", {}});
  EXPECT_EQ(none.end, NvrtcAnswer::End::NotStarted);
  EXPECT_NE(none.problem.find("/nowhere/libnvrtc.so"), std::string::npos) << none.problem;
}

// What is loaded here stays so when its file goes, which no other process can load then.
TEST(NvrtcProcess, WhereThereCanBeNoneItRunsHere) {
  const auto alone = [] {
    const Scratch scratch;
    std::filesystem::copy_file(TILEWRIGHT_FAKE_NVRTC, scratch / "libnvrtc.so");
    const ScopedVariable library("TILEWRIGHT_NVRTC", (scratch / "libnvrtc.so").c_str());
    Nvrtc::get();
    std::filesystem::remove(scratch / "libnvrtc.so");
    const std::string mine = fmt::format("made by {}", getpid());
    bool right = true;
    for (int i = 0; i < 2; ++i) right &= compile("text").cubin.starts_with(mine);
    _exit(right ? 0 : 1);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(alone(), testing::ExitedWithCode(0), "TW8002 cuda: NVRTC runs in this process");
}

// A file beside it says its version, and another process compiles.
TEST(NvrtcProcess, NothingIsLoadedHereToCompile) {
  const Scratch scratch;
  const std::string file = scratch / "libnvrtc.so.97";
  std::filesystem::copy_file(TILEWRIGHT_FAKE_NVRTC, file);
  std::ofstream(scratch / "libnvrtc-builtins.so.97.3");
  std::ofstream(scratch / "libnvrtc-builtins.alt.so.97.3");
  const auto is_loaded = [&] {
    void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (handle) dlclose(handle);
    return handle != nullptr;
  };
  const ScopedVariable library("TILEWRIGHT_NVRTC", file.c_str());
  EXPECT_EQ(Nvrtc::get().version(), "97.3");
  EXPECT_TRUE(compile("text").cubin.starts_with("made by "));
  EXPECT_FALSE(is_loaded());
  EXPECT_EQ(Nvrtc::get().architectures(), std::vector<int>{90});
  EXPECT_TRUE(is_loaded());
}

TEST(DeviceLog, ReadsEveryLine) {
  const DeviceLog log = parse_device_log(
      "ptxas info    : (C7519) warpgroup.arrive is injected in around line 57 by compiler to allow use of registers in "
      "GMMA in function 'k'\n"
      "ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
      "insufficient register resources for the wgmma pipeline in the function 'k'\n"
      "ptxas warning : Value of threads per SM for entry k is out of range. .minnctapersm will be ignored\n"
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
      "ptxas info    : Function properties for k\n"
      "ptxas         .     304 bytes stack frame, 640 bytes spill stores, 652 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 2 barriers, 304 bytes cumulative stack size, 512 bytes smem, 360 bytes "
      "cmem[0], 8 bytes cmem[2]\n"
      "ptxas info    : Compile time = 91.258 ms\n");
  ASSERT_EQ(log.kernels.size(), 1u);
  const KernelResources want{"k", 168, 304, 640, 652, 512, 368, 2, 91.258};
  EXPECT_EQ(log.kernels[0], want);
  ASSERT_EQ(log.remarks.size(), 3u);
  EXPECT_EQ(log.remarks[0].code, "C7519");
  EXPECT_FALSE(log.remarks[0].is_performance_loss());
  EXPECT_EQ(log.remarks[1].code, "C7511");
  EXPECT_TRUE(log.remarks[1].serializes_wgmma());
  EXPECT_EQ(log.remarks[1].function, "k");
  EXPECT_EQ(log.remarks[2].code, "");
  EXPECT_EQ(log.remarks[2].severity, "warning");
}

TEST(DeviceLog, ReadsAnything) {
  for (const char* text : {"", "\n\n", "ptxas", "ptxas:", "ptxas info : (C", "ptxas info : Used", "ptxas .",
                           "ptxas info : Used registers, used , ,,", "ptxas info : Compiling entry function 'k",
                           "ptxas info : Used 99999999999999999999 registers", "\xff\xff\n"})
    EXPECT_EQ(parse_device_log(text).text, text);
  EXPECT_EQ(parse_device_log("ptxas info : Used 99999999999999999999 registers").kernels[0].registers, 0);
}

TEST(FailedText, ShowsTheNeighbours) {
  EXPECT_EQ(excerpt("a\nb\nc\nd\ne\nf", 4), "      2 | b\n      3 | c\n>     4 | d\n      5 | e\n      6 | f");
  EXPECT_EQ(excerpt("a", 1), ">     1 | a");
  EXPECT_EQ(excerpt("a", 3), "");
  EXPECT_EQ(excerpt("a", 0), "");
}

}  // namespace
}  // namespace tilewright::runtime
