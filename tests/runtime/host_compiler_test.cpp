#include "runtime/host_compiler.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "runtime/cpu_kernel.h"
#include "runtime/plans.h"
#include "runtime/process.h"
#include "runtime/scratch.h"

namespace tilewright::runtime {
namespace {

namespace fs = std::filesystem;

void write_script(const std::string& path, const std::string& text) {
  std::ofstream(path) << "#!/bin/sh\n" << text;
  chmod(path.c_str(), 0755);
}

TEST(HostCompiler, IsFoundOnPathAndIdentified) {
  const ScopedVariable none("TILEWRIGHT_CXX", nullptr);
  const HostCompiler found = find_host_compiler();
  EXPECT_EQ(found.path[0], '/');
  EXPECT_FALSE(found.identity.empty());
  EXPECT_EQ(host_compiler().identity, found.identity);
  const ScopedVariable by_path("TILEWRIGHT_CXX", found.path.c_str());
  EXPECT_EQ(find_host_compiler().identity, found.identity);
}

TEST(HostCompiler, MissingSaysWhatToInstall) {
  const Scratch scratch;
  {
    const ScopedVariable none("TILEWRIGHT_CXX", nullptr), path("PATH", scratch.path().c_str());
    expect_refusal(Code::HostCompilerMissing, "no C++ compiler: the cpu engine looked for g++, clang++ and c++ on PATH",
                   [] {
                     build_cpu_kernel({"k", "", {}});
                   });
    try {
      find_host_compiler();
    } catch (const CompileError& e) {
      EXPECT_EQ(e.diagnostic().help,
                "install one (Debian: apt-get install g++), or set TILEWRIGHT_CXX to its absolute path");
    }
  }
  const auto expect_missing = [](const std::string& value, const std::string& message) {
    const ScopedVariable set("TILEWRIGHT_CXX", value.c_str());
    expect_refusal(Code::HostCompilerMissing, message, [] { find_host_compiler(); });
  };
  expect_missing("no-such-compiler", "TILEWRIGHT_CXX is 'no-such-compiler', which is no program");
  expect_missing("bin/g++", "TILEWRIGHT_CXX is 'bin/g++', a relative path");
  expect_missing(scratch.path(), fmt::format("TILEWRIGHT_CXX is '{}', which is no program", scratch.path()));
  write_script(scratch / "mute", "exit 3\n");
  expect_missing(scratch / "mute", fmt::format("{} does not answer --version", scratch / "mute"));
}

TEST(HostCompiler, ADifferentFileIsADifferentCompiler) {
  const Scratch scratch;
  const std::string path = scratch / "c++";
  const ScopedVariable set("TILEWRIGHT_CXX", path.c_str());
  write_script(path, "echo one\n");
  const std::string first = find_host_compiler().identity;
  write_script(path, "echo two\n");
  EXPECT_NE(find_host_compiler().identity, first);
}

// GCC 12 ends in a segmentation fault at some loops of narrow integers that are added to wide ones.
TEST(HostCompiler, WhatEndsTheOptimizerIsCompiledWithLessOfIt) {
  const Scratch scratch;
  const HostCompiler real = host_compiler();
  const std::string path = scratch / "c++";
  write_script(path,
               fmt::format("for a; do level=$([ \"$a\" = -O1 ] && echo 1 || echo $level); done\n"
                           "[ -n \"$level\" ] || {{ echo 'k.cpp:1: internal compiler error: here' >&2; exit 1; }}\n"
                           "exec {} \"$@\"\n",
                           real.path));
  const CompileRequest request{"extern \"C\" int f() { return 1; }", kernel_flags(), std::chrono::seconds(60), "f"};
  EXPECT_EQ(compile_shared_object({path, real.identity}, request).substr(1, 3), "ELF");
}

TEST(HostCompiler, SameTextSameBytes) {
  const CompileRequest request{"extern \"C\" int f() { return 1; }", kernel_flags(), std::chrono::seconds(60), "f"};
  const std::string once = compile_shared_object(host_compiler(), request);
  EXPECT_EQ(once.substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_EQ(compile_shared_object(host_compiler(), request), once);
}

TEST(HostCompiler, RefusedTextIsReportedAndKept) {
  const Scratch scratch;
  const CompileRequest request{"int f() { return nothing; }\n", kernel_flags(), std::chrono::seconds(60), "a/../b"};
  const auto compile = [&]() -> Diagnostic {
    try {
      compile_shared_object(host_compiler(), request);
    } catch (const CompileError& e) {
      return e.diagnostic();
    }
    ADD_FAILURE() << "compiled";
    return {};
  };
  {
    const ScopedVariable none("TILEWRIGHT_DUMP", nullptr);
    const Diagnostic d = compile();
    EXPECT_EQ(d.code_text(), "TW5501");
    EXPECT_EQ(d.message.find(fmt::format("{} refused kernel 'a/../b' (status 1):\n", host_compiler().path)), 0u)
        << d.message;
    EXPECT_NE(d.message.find("kernel.cpp:1:"), std::string::npos) << d.message;
    EXPECT_NE(d.message.find("nothing"), std::string::npos) << d.message;
    EXPECT_EQ(d.help, "set TILEWRIGHT_DUMP to a directory to keep the text");
  }
  const ScopedVariable dump("TILEWRIGHT_DUMP", (scratch / "dump").c_str());
  EXPECT_EQ(compile().help, fmt::format("the text is kept in {}", scratch / "dump/a____b.failed.cpp"));
  std::ifstream kept(scratch / "dump/a____b.failed.cpp");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(kept), {}), request.text);
}

TEST(HostCompiler, WithoutOpenMpItSaysWhatToInstall) {
  const Scratch scratch;
  write_script(scratch / "clang++",
               "[ \"$1\" = --version ] && echo clang && exit 0\n"
               "echo '/usr/bin/ld: cannot find -lomp: No such file or directory'; exit 1\n");
  const ScopedVariable set("TILEWRIGHT_CXX", (scratch / "clang++").c_str());
  try {
    compile_shared_object(find_host_compiler(), {"int x;", kernel_flags(), std::chrono::seconds(60), "k"});
    ADD_FAILURE() << "compiled";
  } catch (const CompileError& e) {
    EXPECT_EQ(e.diagnostic().message,
              fmt::format("{} comes without OpenMP's library, which kernels need", scratch / "clang++"));
    EXPECT_EQ(e.diagnostic().help,
              "install it (Debian: apt-get install libomp-dev), or set TILEWRIGHT_CXX to another compiler");
  }
}

TEST(HostCompiler, IsStoppedAtTheDeadlineWithItsChildren) {
  const Scratch scratch;
  const std::string path = scratch / "slow", witness = scratch / "witness";
  write_script(path,
               fmt::format("[ \"$1\" = --version ] && echo slow && exit 0\n(sleep 1; touch {}) & sleep 60\n", witness));
  const ScopedVariable set("TILEWRIGHT_CXX", path.c_str()), temporary("TMPDIR", scratch.path().c_str());
  const ScopedVariable none("TILEWRIGHT_DUMP", nullptr);
  const auto start = std::chrono::steady_clock::now();
  expect_refusal(
      Code::HostCompilerTimedOut, fmt::format("{} did not finish kernel 'k' in 0.3 s and was stopped", path), [&] {
        compile_shared_object(find_host_compiler(), {"int x;", kernel_flags(), std::chrono::milliseconds(300), "k"});
      });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  EXPECT_FALSE(fs::exists(witness));  // the grandchild died too
  for (const auto& left : fs::directory_iterator(scratch.path()))
    EXPECT_EQ(left.path().filename().string().find("tilewright-"), std::string::npos);
}

TEST(HostCompiler, MetacharactersNeverReachAShell) {
  // In the program's name, in the text, in every directory name on the way.
  const Scratch scratch;
  const std::string marker = scratch / "pwned";
  const std::string hostile = scratch / fmt::format("$(touch pwned);`touch pwned` & 'x' \"y\" #");
  ASSERT_TRUE(fs::create_directory(hostile));
  const ScopedVariable temporary("TMPDIR", hostile.c_str()),
      cache("TILEWRIGHT_CACHE_DIR", (hostile + "/cache").c_str());
  const ScopedVariable dump("TILEWRIGHT_DUMP", (hostile + "/dump").c_str());
  const std::string command = fmt::format("\n$(touch {0})`touch {0}`;touch {0}|touch {0}&", marker);
  LaunchPlan plan;
  plan.name = command;
  plan.parameters = {tensor_parameter("y", i32, {constant(1)})};
  const Executable kernel = make_executable(
      plan,
      build_cpu_kernel(
          {command,
           kernel_text_head() + "// " + command.substr(1) +
               "\nextern \"C\" int tw_entry(const struct tw_call* c) { *(int*)c->buffers[0] = 7; return 0; }",
           {}}),
      "cpu", "");
  const NDArray y = NDArray::zeros({1}, i32);
  kernel(y);
  EXPECT_EQ(*static_cast<int32_t*>(y.data()), 7);
  EXPECT_THROW(build_cpu_kernel({command, "#error refused", {}}), CompileError);
  EXPECT_FALSE(fs::exists(marker));
  EXPECT_FALSE(fs::exists("pwned"));
  EXPECT_FALSE(fs::exists(hostile + "/pwned"));
}

TEST(HostCompiler, OurEnvironmentDoesNotChangeWhatIsMade) {
  const Scratch scratch;
  std::ofstream(scratch / "planted.h") << "#define PLANTED 1\n";
  const ScopedVariable path("CPLUS_INCLUDE_PATH", scratch.path().c_str()), all("CPATH", scratch.path().c_str());
  const CompileRequest request{"#include <planted.h>\n", kernel_flags(), std::chrono::seconds(60), "k"};
  EXPECT_THROW(compile_shared_object(host_compiler(), request), CompileError);
}

TEST(Process, CapturesOutputStatusAndSignals) {
  const auto run = [](const char* script) {
    return run_process({"/bin/sh", "-c", script}, {"A=b"}, "/", std::chrono::seconds(20));
  };
  EXPECT_EQ(run("echo $A; echo err >&2; exit 5").output, "b\nerr\n");
  EXPECT_EQ(run("exit 5").status, 5);
  EXPECT_EQ(run("kill -9 $$").status, 128 + 9);
  EXPECT_EQ(run("pwd").output, "/\n");
  EXPECT_EQ(run("exec >&- 2>&-; sleep 0.2; exit 4").status, 4);
  EXPECT_FALSE(run_process({"/no/such/program"}, {}, "/", std::chrono::seconds(1)).started);
}

TEST(Processor, LevelsRestrictAndNeverAdd) {
  ProcessorFeatures all;
  all.avx2 = all.fma = all.f16c = all.avx512 = all.avx512_bf16 = all.avx512_vnni = all.avx512_vbmi = all.amx = true;
  EXPECT_EQ(all.to_string(), "avx2 fma f16c avx512 avx512_bf16 avx512_vnni avx512_vbmi amx");
  EXPECT_EQ(restrict_features(all, "portable").to_string(), "portable");
  EXPECT_EQ(restrict_features(all, "avx2").to_string(), "avx2 fma f16c");
  EXPECT_EQ(restrict_features(all, "avx512").to_string(), "avx2 fma f16c avx512");
  EXPECT_EQ(restrict_features(all, "native"), all);
  EXPECT_EQ(restrict_features(all, ""), all);
  EXPECT_EQ(restrict_features({}, "avx512"), ProcessorFeatures{});
  EXPECT_TRUE(ProcessorFeatures{}.compiler_flags().empty());
  expect_refusal(Code::ProcessorUnknown, "TILEWRIGHT_CPU is 'sse9', which is no processor level",
                 [&] { restrict_features(all, "sse9"); });
  const ScopedVariable portable("TILEWRIGHT_CPU", "portable");
  EXPECT_EQ(processor_features(), ProcessorFeatures{});
}

}  // namespace
}  // namespace tilewright::runtime
