// Programs on which the engines once differed: each was found by the fuzzer and made small.
#include <gtest/gtest.h>

#include "driver/arguments.h"
#include "driver/fuzz/check.h"
#include "ir/parse.h"

namespace tilewright::fuzz {
namespace {

void expect_agreement(const char* text) {
  const ir::TileProgram program = ir::parse(text, "agreement.tile");
  const std::set<ir::BufferId> written = written_parameters(program);
  std::vector<Argument> arguments;
  for (NDArray& array : random_arguments(program, {}, 1)) {
    Argument a;
    a.is_output = written.contains(program.params[arguments.size()].buffer);
    a.array = std::move(array);
    arguments.push_back(std::move(a));
  }
  const auto finding = check(program, arguments, Engines::Both);
  EXPECT_FALSE(finding) << name_of(finding->kind) << ": " << finding->message;
}

TEST(EngineAgreement, AnOperationOfANarrowTypeIsRoundedBeforeItIsWidened) {
  expect_agreement(R"(program widened {
  param X: float16[64]
  param out: float32[64]
  launch main(bx: 1) threads(tx: 32) {
    map i in 64 {
      out[i] = float32(1.0 / X[i])
    }
  }
}
)");
}

TEST(EngineAgreement, EveryOperationOfTf32IsRounded) {
  expect_agreement(R"(program tf32 {
  param X: tfloat32[64]
  param product: tfloat32[64]
  param power: tfloat32[64]
  param wide: float32[64]
  launch main(bx: 1) threads(tx: 32) {
    map i in 64 {
      product[i] = X[i] * X[i] + 1.0
      power[i] = exp(X[i])
      wide[i] = float32(X[i] / 3.0)
    }
  }
}
)");
}

TEST(EngineAgreement, ScalesOutOfBoundsAreTheLeastThereIs) {
  expect_agreement(R"(program scales {
  param X: float8_e8m0fnu[4]
  param out: float64[8]
  launch main(bx: 1) threads(tx: 32) {
    fragment t: float64[8]
    copy from=X[2 : 8] to=t
    copy from=t to=out[0 : 8]
  }
}
)");
}

TEST(EngineAgreement, BlocksThatShareABytePerElementOfFourBits) {
  expect_agreement(R"(program nibbles {
  param X: uint4[4096]
  param out: uint4[4096]
  launch main(bx: 4096) threads(tx: 32) {
    shared t: uint4[1]
    copy from=X[bx : 1] to=t
    copy from=t to=out[bx : 1]
  }
}
)");
}

TEST(EngineAgreement, ReductionsOfBools) {
  expect_agreement(R"(program bools {
  param X: bool[16, 3]
  param out: bool[5, 16]
  launch main(bx: 1) threads(tx: 32) {
    fragment x: bool[16, 3]
    shared a: bool[16]
    shared b: bool[16]
    shared c: bool[16]
    shared d: bool[16]
    shared e: bool[16, 3]
    copy from=X[0 : 16, 0 : 3] to=x
    reduce max from=x to=a dim=1
    reduce min from=x to=b dim=1
    reduce absmax from=x to=c dim=1
    reduce sum from=x to=d dim=1
    scan max from=x to=e dim=1
    copy from=a to=out[0 : 1, 0 : 16]
    copy from=b to=out[1 : 1, 0 : 16]
    copy from=c to=out[2 : 1, 0 : 16]
    copy from=d to=out[3 : 1, 0 : 16]
    map i in 16 {
      out[4, i] = e[i, 2]
    }
  }
}
)");
}

TEST(EngineAgreement, AShuffleThatLeavesItsGroup) {
  expect_agreement(R"(program shuffles {
  param out: int32[32]
  launch main(bx: 1) threads(tx: 32) {
    x: int32 = tx
    y: int32 = shuffle xor value=x lane=13 width=4
    out[tx] = y
  }
}
)");
}

}  // namespace
}  // namespace tilewright::fuzz
