// What the CUDA engine refuses before any device compiler or device is asked.
#include "driver/cuda_engine.h"
#include "errors/expect_error.h"
#include "ir/parse.h"
#include "passes/canonicalize.h"
#include "support/warning.h"

namespace tilewright {
namespace {

std::string refusal(const std::string& text, const std::string& arch = "sm_90a") {
  Dump dump("refused");
  try {
    write_cuda(passes::canonicalize(ir::parse(text, "p.tile")), arch, dump);
  } catch (const CompileError& e) {
    return e.what();
  }
  return "";
}

TEST(GpuErrors, AnOperationThatIsNotThereYet) {
  EXPECT_EQ(refusal(R"(program p {
  param A: float32[128]
  launch p(bx: 1) threads(tx: 128) {
    barrier ready: uint64[1] arrive=[128]
    arrive barrier=ready[0]
  }
}
)",
                    "sm_80"),
            R"(error TW8201 cuda: arrive as it stands needs sm_90a; the target is sm_80
  --> p.tile:5:5
help: the interpreter runs it: engine="interpreter" in Python, Engine::Interpreter in C++)");
}

TEST(GpuErrors, ExtentsThatOnlyRunTimeKnows) {
  const auto program = [](const std::string& op) {
    return "program p {\n  param n: int32\n  param A: float32[8, 64]\n  param O: float32[8]\n"
           "  launch p(bx: 1) threads(tx: 128) {\n    shared s: float32[8, 64]\n    shared r: float32[8]\n    " +
           op + "\n    copy from=s[0 : 8, 0] to=O\n  }\n}\n";
  };
  EXPECT_EQ(refusal(program("reduce sum from=s[0 : n, 0 : 64] to=r[0 : n] dim=1")),
            R"(error TW8201 cuda: this reduce is of extents that only run time knows
  --> p.tile:8:5
help: the interpreter runs it: engine="interpreter" in Python, Engine::Interpreter in C++)");
  EXPECT_EQ(refusal(program("copy from=A[0 : n, 0 : 64] to=s[0 : n, 0 : 64] completion=(queue=cp_async)")),
            R"(error TW8201 cuda: this copy is of extents that only run time knows
  --> p.tile:8:5
help: the interpreter runs it: engine="interpreter" in Python, Engine::Interpreter in C++)");
}

TEST(GpuErrors, ClustersOfAnOlderGpu) {
  EXPECT_EQ(refusal("program p {\n  launch p(bx: 4) threads(tx: 32) cluster(2) {\n    sync cluster\n  }\n}\n", "sm_80"),
            R"(error TW8201 cuda: sync as it stands needs sm_90a; the target is sm_80
  --> p.tile:3:5
help: the interpreter runs it: engine="interpreter" in Python, Engine::Interpreter in C++)");
}

TEST(GpuErrors, AnAsynchronousCopyThatTmaDoesNotDo) {
  EXPECT_EQ(
      refusal(R"(program p {
  param A: float32[64, 36]
  launch p(bx: 1) threads(tx: 128) {
    shared tile: float32[64, 36]
    barrier ready: uint64[1] arrive=[1]
    copy from=A to=tile completion=(barrier=ready[0])
  }
}
)"),
      R"(error TW8204 cuda: this asynchronous copy is none that TMA does: rows of 'tile' are not 16 bytes, nor whole panels of 32, 64 or 128
  --> p.tile:6:5
help: copy without a barrier: the compiler then chooses how)");
}

TEST(GpuErrors, AnArchitectureThatWeDoNotWriteFor) {
  EXPECT_EQ(refusal("program p {\n  launch p(bx: 1) threads(tx: 32) {\n  }\n}\n", "sm_75"),
            R"(error TW8201 cuda: kernels for sm_75 are not something we write
help: it is one of sm_80, sm_86, sm_87, sm_89, sm_90a, sm_100a, sm_103a, sm_110a, sm_120a, sm_121a)");
}

TEST(GpuErrors, MoreSharedMemoryThanABlockHas) {
  EXPECT_EQ(refusal(R"(program p {
  param A: float32[256, 256]
  launch p(bx: 1) threads(tx: 128) {
    shared tile: float32[256, 256]
    copy from=A to=tile
    copy from=tile to=A
  }
}
)"),
            R"(error TW8203 cuda: the block needs 262144 bytes of shared memory; sm_90 has 232448
  --> p.tile:3:3
note: 'tile' takes 262144 bytes
  --> p.tile:4:12
help: make the tiles smaller, or the pipeline shorter)");
}

TEST(GpuErrors, MoreRangesThanBarriers) {
  const auto roles = [](int64_t count, int64_t threads) {
    std::string text =
        fmt::format("program p {{\n  param A: float32[64]\n  launch p(bx: 1) threads(tx: {}) {{\n", count * threads);
    text += fmt::format("    shared s: float32[{}, 64]\n", count);
    for (int64_t i = 0; i < count; ++i)
      text += fmt::format(
          "    role {}..{} {{\n      map i in 64 {{\n        s[{}, i] = A[i]\n      }}\n      map i in 64 {{\n"
          "        A[i] = s[{}, 63 - i]\n      }}\n    }}\n",
          i * threads, (i + 1) * threads, i, i);
    return text + "  }\n}\n";
  };
  EXPECT_EQ(refusal(roles(15, 64)), "");
  EXPECT_EQ(refusal(roles(32, 32)), "");  // a warp needs none
  EXPECT_EQ(refusal(roles(16, 64)),
            R"(error TW8202 cuda: no named barrier is left for threads 960 to 1023, who meet here
  --> p.tile:129:7
help: a block has 15: for those that the program names, and one for each range of threads with more than one warp)");
}

// bfloat16 is the matrix unit's, but 36 columns are no whole tiles, and not with float16; float32 is not.
TEST(GpuErrors, AGemmThatLeavesTheMatrixUnitIsTold) {
  const auto warnings = [](const char* a, const char* b) {
    std::string out;
    const WarningSink before = replace_warning_sink([&](const Diagnostic& d) { out += d.to_string(); });
    refusal(
        fmt::format("program p {{\n  param A: {0}[24, 32]\n  param B: {1}[32, 40]\n  param C: float32[24, 40]\n"
                    "  launch p(bx: 1) threads(tx: 128) {{\n    shared a: {0}[24, 32]\n    shared b: {1}[32, 36]\n"
                    "    fragment c: float32[24, 36]\n    copy from=A to=a\n    copy from=B[0 : 32, 0 : 36] to=b\n"
                    "    gemm a=a b=b c=c clear=true\n    copy from=c to=C[0 : 24, 0 : 36]\n  }}\n}}\n",
                    a, b));
    replace_warning_sink(before);
    return out;
  };
  EXPECT_EQ(
      warnings("bfloat16", "bfloat16"),
      "warning TW8205 cuda: this gemm goes element by element, not by the matrix unit: 24 x 36 does not divide into "
      "tiles of 16 x 8 for 4 warps\n  --> p.tile:11:5\nhelp: tilewright explain says what became of every operation");
  EXPECT_EQ(warnings("float32", "float32"), "");
  EXPECT_EQ(
      warnings("float16", "bfloat16"),
      "warning TW8205 cuda: this gemm goes element by element, not by the matrix unit: none multiplies float16 by "
      "bfloat16 into float32\n  --> p.tile:11:5\nhelp: copy one operand to a tile of the other's type first");
}

}  // namespace
}  // namespace tilewright
