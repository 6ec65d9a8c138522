// Whole kernels for Hopper: right results, no finding, in every order of the warps, and fast enough to be a test.
#include "simulator/hopper_programs.h"

#include "simulator/simulate.h"

namespace tilewright::simulator {
namespace {

TEST(Hopper, AGemmWithRolesAndRingsIsRight) {
  for (const HopperGemm& gemm : {HopperGemm{}, HopperGemm{130, 128, 64, 2, 2}, HopperGemm{128, 64, 520, 4, 1},
                                 HopperGemm{250, 64, 200, 3, 4, true}, HopperGemm{384, 128, 328, 4, 6, true}})
    for (uint64_t seed = 0; seed < 3; ++seed) {
      SCOPED_TRACE(fmt::format("{} x {} x {}, seed {}", gemm.m, gemm.n, gemm.k, seed));
      const HopperGemm::Arrays arrays = gemm.arrays();
      SimulateOptions options;
      options.seed = seed;
      run(gemm.text(), arrays.list(), options);
      EXPECT_LE(gemm.error(arrays), 0.004);
    }
}

// By the letter of PTX a drain tells a warp of its own part alone: then one thread cannot release for its warpgroup.
TEST(Hopper, OneThreadReleasesForItsWarpgroupByTheSwitch) {
  const HopperGemm gemm;
  SimulateOptions options;
  options.warpgroup_retires_together = false;
  try {
    run(gemm.text(), gemm.arrays().list(), options);
    FAIL();
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.diagnostic().code_text(), "TW9001");
    EXPECT_NE(std::string(error.what()).find("written by a TMA load while a wgmma of thread"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tilewright::simulator
