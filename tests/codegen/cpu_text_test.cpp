// The C++ text of small programs, whole: TILEWRIGHT_UPDATE=1 rewrites the files beside this one.
#include <gtest/gtest.h>

#include "codegen/cpu_kernel.h"
#include "files.h"

namespace tilewright {
namespace {

// The text from the first function of the program on: what stands before is the business of other tests.
void expect_golden(const std::string& name, const char* program_text) {
  const Program program = parse_program(program_text, name + ".tile");
  std::string text = cpu_text_of(program);
  EXPECT_EQ(text, cpu_text_of(program));
  text = text.substr(text.find("static void tw_"));
  expect_file(TILEWRIGHT_SOURCE_DIR "/tests/codegen/golden/" + name + ".cpp.txt", text);
}

TEST(CpuText, AddWithRaggedTail) {
  expect_golden("add", R"(program add {
  symbol n: int32
  param A: float32[n]
  param B: float32[n]
  param C: float32[n]
  launch add(bx: (n + 127) // 128) threads(tx: 128) {
    map i in 128 {
      C[bx * 128 + i] = A[bx * 128 + i] + B[bx * 128 + i]
    }
  }
}
)");
}

TEST(CpuText, MatmulRelu) {
  expect_golden("matmul_relu", R"(program matmul_relu {
  param A: float16[512, 256]
  param B: float16[256, 512]
  param C: float16[512, 512]
  launch matmul_relu(bx: 4, by: 4) threads(tx: 128) {
    shared A_shared: float16[128, 64]
    shared B_shared: float16[64, 128]
    fragment C_local: float32[128, 128]
    fill to=C_local value=0.0
    for k in 0..4 pipelined(stages=3) {
      copy from=A[by * 128 : 128, k * 64 : 64] to=A_shared
      copy from=B[k * 64 : 64, bx * 128 : 128] to=B_shared
      gemm a=A_shared b=B_shared c=C_local
    }
    map i in 128, j in 128 {
      C_local[i, j] = max(C_local[i, j], 0.0)
    }
    copy from=C_local to=C[by * 128 : 128, bx * 128 : 128]
  }
}
)");
}

TEST(CpuText, ThreadsExchange) {
  expect_golden("exchange", R"(program exchange {
  param A: bfloat16[64]
  param B: bfloat16[64]
  launch exchange(bx: 1) threads(tx: 64) {
    shared s: bfloat16[64]
    local sum: float32
    sum = 0.0
    s[tx] = A[tx] * 2.0 + 1.0
    sync block
    for k in 0..3 {
      sum = sum + float32(s[(tx + k) % 64])
    }
    vote: bool = vote any value=sum > 1e+02
    if vote {
      B[tx] = bfloat16(sum)
    }
  }
}
)");
}

}  // namespace
}  // namespace tilewright
