// Tensors larger than the caches, and many additions to few counters: rows that go around them, wherever they begin,
// and transposition by blocks.
#include <gtest/gtest.h>

#include <cstring>

#include "codegen/cpu_kernel.h"

namespace tilewright {
namespace {

NDArray counted(std::initializer_list<int64_t> shape, DType type) {
  NDArray a = NDArray::zeros(shape, type);
  std::vector<int64_t> values(static_cast<size_t>(a.size()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i * 7 % 251);
  a.assign_ints(values);
  return a;
}

// Rows of 5003 elements begin at every place of a cache line, and end in a part of a page and of a line.
TEST(CpuStream, RowsThatBeginAnywhere) {
  const Program program = parse_program(R"(program rows {
  param X: int32[2000, 5003]
  param Y: int32[2000, 5003]
  launch rows(bx: 500) threads(tx: 128) {
    fragment t: int32[4, 5003]
    copy from=X[bx * 4 : 4, 0 : 5003] to=t
    map i in 4, j in 5003 {
      t[i, j] = t[i, j] * 3 + i
    }
    copy from=t to=Y[bx * 4 : 4, 0 : 5003]
  }
}
)",
                                        "rows.tile");
  const CpuKernelUnderTest kernel(program);
  EXPECT_NE(kernel.text().find("tw_stream((char*)&Y"), std::string::npos) << kernel.text();
  const NDArray x = counted({2000, 5003}, i32), y = NDArray::zeros({2000, 5003}, i32);
  kernel.run({x, y});
  const auto* from = static_cast<const int32_t*>(x.data());
  const auto* to = static_cast<const int32_t*>(y.data());
  for (int64_t i = 0; i < y.size(); ++i) ASSERT_EQ(to[i], from[i] * 3 + i / 5003 % 4) << i;
}

TEST(CpuStream, CountersInCopiesThatTakeTurns) {
  const Program program = parse_program(R"(program count {
  param X: int32[8192]
  param H: int32[40]
  launch count(bx: 1) threads(tx: 128) {
    shared h: int32[40]
    fill to=h value=3
    for k in 0..2 {
      map i in 4096 {
        atomic add to=h[X[k * 4096 + i] % 40] value=i % 3
      }
    }
    copy from=h to=H[0 : 40]
  }
}
)",
                                        "count.tile");
  const NDArray x = counted({8192}, i32);
  expect_same(program, {x, NDArray::zeros({40}, i32)});
  EXPECT_NE(cpu_text_of(program).find("h_copies["), std::string::npos) << cpu_text_of(program);
}

// The operand of a product lies in panels of 32 of its rows; of bfloat16, pairs stay together.
void expect_panels_by_blocks(const std::string& type, double bound) {
  const Program program = parse_program("program scores {\n  param Q: " + type + "[16, 64]\n  param K: " + type +
                                            R"([256, 64]
  param S: float32[16, 256]
  launch scores(bx: 4) threads(tx: 128) {
    shared q: )" + type + R"([16, 64]
    shared k: )" + type + R"([64, 64]
    fragment s: float32[16, 64]
    copy from=Q[0 : 16, 0 : 64] to=q
    copy from=K[bx * 64 : 64, 0 : 64] to=k
    gemm a=q b=k c=s transpose_b=true clear=true
    copy from=s to=S[0 : 16, bx * 64 : 64]
  }
}
)",
                                        "scores.tile");
  const runtime::ProcessorFeatures wide = {
      .avx2 = true, .fma = true, .f16c = true, .avx512 = true, .avx512_bf16 = true};
  EXPECT_NE(cpu_text_of(program, wide).find("tw_transpose((uint32_t*)&k["), std::string::npos)
      << cpu_text_of(program, wide);
  const DType element = type == "bfloat16" ? bf16 : f32;
  expect_same(program, {ramp({16, 64}, element), ramp({256, 64}, element), NDArray::zeros({16, 256}, f32)}, {}, bound);
}
TEST(CpuStream, PanelsAreFilledByBlocks) { expect_panels_by_blocks("float32", 1e-5); }
TEST(CpuStream, PanelsOfPairsAreFilledByBlocks) { expect_panels_by_blocks("bfloat16", 1e-5); }

class Transposed : public testing::TestWithParam<DType> {};

TEST_P(Transposed, BlocksOfALargeTensor) {
  const DType type = GetParam();
  const int64_t n = type.storage_bits() == 8 ? 6144 : type.storage_bits() == 16 ? 4608 : 3072;
  const std::string name = type.name(), size = std::to_string(n), blocks = std::to_string(n / 96);
  const Program program = parse_program("program turn {\n  param X: " + name + "[" + size + ", " + size +
                                            "]\n  param Y: " + name + "[" + size + ", " + size +
                                            "]\n  launch turn(bx: " + blocks + ", by: " + blocks +
                                            R"() threads(tx: 128) {
    fragment t: )" + name + R"([96, 96]
    fragment u: )" + name + R"([96, 96]
    copy from=X[by * 96 : 96, bx * 96 : 96] to=t
    map i in 96, j in 96 {
      u[i, j] = t[j, i]
    }
    copy from=u to=Y[bx * 96 : 96, by * 96 : 96]
  }
}
)",
                                        "turn.tile");
  const CpuKernelUnderTest kernel(program);
  EXPECT_NE(kernel.text().find("tw_transpose((uint"), std::string::npos) << kernel.text();
  const NDArray x = counted({n, n}, type), y = NDArray::zeros({n, n}, type);
  kernel.run({x, y});
  const int64_t bytes = type.storage_bits() / 8;
  const auto* from = static_cast<const char*>(x.data());
  const auto* to = static_cast<const char*>(y.data());
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      ASSERT_EQ(std::memcmp(to + (i * n + j) * bytes, from + (j * n + i) * bytes, static_cast<size_t>(bytes)), 0)
          << i << ", " << j;
}

INSTANTIATE_TEST_SUITE_P(Types, Transposed, testing::Values(u8, i16, i32, i64),
                         [](const auto& type) { return std::string(type.param.name()); });

}  // namespace
}  // namespace tilewright
