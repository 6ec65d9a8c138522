// Every GPU that kernels are written for: what its row says, what its texts may say, and that they are right.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "driver/cuda_engine.h"
#include "ir/parse.h"
#include "passes/canonicalize.h"
#include "runtime/cuda_kernel.h"
#include "runtime/nvrtc.h"
#include "support/diagnostic.h"
#include "target/gpu.h"
#include "target/machine.h"
#include "tilewright/compile.h"

namespace tilewright {
namespace {

// A product with a ring of tiles and a result that leaves by way of shared memory, and rows that are scaled.
constexpr const char* kProduct = R"(program product {
  param A: float16[100, 96]
  param B: float16[96, 72]
  param S: float32[100]
  param C: float16[100, 72]
  launch product(bx: 2, by: 2) threads(tx: 128) {
    shared a: float16[64, 32]
    shared b: float16[32, 64]
    shared out: float16[64, 64]
    fragment c: float32[64, 64]
    fragment s: float32[64]
    fill to=c value=0.0
    copy from=S[by * 64 : 64] to=s
    for k: int32 in 0..3 pipelined(stages=2) {
      copy from=A[by * 64 : 64, k * 32 : 32] to=a
      copy from=B[k * 32 : 32, bx * 64 : 64] to=b
      gemm a=a b=b c=c
    }
    map i in 64, j in 64 {
      c[i, j] = c[i, j] * s[i]
    }
    copy from=c to=out
    copy from=out to=C[by * 64 : 64, bx * 64 : 64]
  }
}
)";

std::vector<double> result(const CompileOptions& options) {
  NDArray a = NDArray::zeros({100, 96}, f16), b = NDArray::zeros({96, 72}, f16), s = NDArray::zeros({100}, f32),
          c = NDArray::zeros({100, 72}, f16);
  // Small whole numbers: any order of sums gives the same.
  for (int64_t i = 0; i < 100; ++i)
    for (int64_t k = 0; k < 96; ++k) a.set_float({i, k}, static_cast<double>((i * 7 + k * 5) % 9 - 4));
  for (int64_t k = 0; k < 96; ++k)
    for (int64_t j = 0; j < 72; ++j) b.set_float({k, j}, static_cast<double>((k * 3 + j) % 5 - 2));
  for (int64_t i = 0; i < 100; ++i) s.set_float({i}, i % 2 ? 0.5 : 2.0);
  compile(parse_program(kProduct), options)(a, b, s, c);
  std::vector<double> out;
  for (int64_t i = 0; i < 100; ++i)
    for (int64_t j = 0; j < 72; ++j) out.push_back(c.get_float({i, j}));
  return out;
}

TEST(GpuTargets, RowsAreWholeAndHaveAMachine) {
  std::set<std::string_view> names;
  int before = 0;
  for (const target::GpuTarget& t : target::gpu_targets()) {
    SCOPED_TRACE(t.name);
    EXPECT_TRUE(names.insert(t.name).second);
    EXPECT_GT(t.arch, before);
    before = t.arch;
    for (const std::string& name : {std::string(t.name), fmt::format("sm_{}", t.arch), fmt::format("sm_{}a", t.arch)}) {
      ASSERT_NE(target::GpuTarget::named(name), nullptr);
      EXPECT_EQ(*target::GpuTarget::named(name), t);
    }
    EXPECT_NE(target::machine_of(t.name), nullptr);
    // What a device calls itself (DeviceProperties::arch): with the letter from sm_90 on.
    EXPECT_EQ(t.name.back() == 'a', t.arch >= 90);
    EXPECT_LE(t.shared_bytes, 232448);
    EXPECT_GT(t.rates.half, t.rates.plain);
  }
}

TEST(GpuTargets, TextsHaveTheInstructionsOfTheirGpuAndAreRight) {
  const std::vector<double> right = result({.engine = Engine::Interpreter});
  bool compiles = true;
  try {
    runtime::Nvrtc::get();
  } catch (const CompileError&) {
    compiles = false;
  }
  for (const target::GpuTarget& t : target::gpu_targets()) {
    SCOPED_TRACE(t.name);
    const std::string arch(t.name);
    EXPECT_EQ(result({.engine = Engine::Simulator, .arch = arch}), right);
    Dump dump("targets");
    const CudaText text = write_cuda(passes::canonicalize(ir::parse(kProduct, "product.tile")), arch, dump);
    const auto says = [&](const char* word) { return text.kernel.text.find(word) != std::string::npos; };
    EXPECT_EQ(says("wgmma.mma_async"), t.has.wgmma);
    EXPECT_EQ(says("mma.sync"), !t.has.wgmma);
    EXPECT_EQ(says("cp.async.bulk.tensor"), t.has.tma);
    EXPECT_TRUE(t.has.set_registers || !says("setmaxnreg"));
    if (compiles) {
      EXPECT_NO_THROW(runtime::cuda::compile_cuda(text.kernel));
    }
  }
}

TEST(GpuTargets, WhatAGpuDoesNotHaveIsRefusedByItsName) {
  const Program program = parse_program(R"(program p {
  param A: float16[64, 64]
  launch p(bx: 1) threads(tx: 128) {
    shared a: float16[64, 64]
    barrier ready: uint64[1] arrive=[1]
    copy from=A to=a completion=(barrier=ready[0])
  }
}
)");
  for (const char* arch : {"sm_86", "sm_120a"}) {
    try {
      compile(program, {.engine = Engine::Simulator, .arch = arch});
      ADD_FAILURE() << arch;
    } catch (const CompileError& e) {
      EXPECT_EQ(e.diagnostic().code, static_cast<int>(Code::GpuUnsupported));
      EXPECT_NE(std::string(e.what()).find(std::string("the target is ") + (arch[3] == '8' ? "sm_86" : "sm_120")),
                std::string::npos)
          << e.what();
    }
  }
}

}  // namespace
}  // namespace tilewright
