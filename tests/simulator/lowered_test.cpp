// Products of every layout, type and tile, and attention, lowered for Hopper: what their threads do is what the
// interpreter says, and nothing is found wrong with their roles, rings and fences.
#include "simulator/lowered_programs.h"

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/print.h"
#include "ir/rewrite.h"
#include "passes/canonicalize.h"
#include "passes/lower_to_threads.h"
#include "tilewright/compile.h"
#include "tilewright/diagnostic.h"

namespace tilewright::simulator {
namespace {

Product random_product(std::mt19937& random) {
  const auto pick = [&](std::initializer_list<int64_t> list) { return *(list.begin() + random() % list.size()); };
  Product p{};
  p.block_m = pick({64, 128, 192}), p.block_n = pick({16, 32, 64, 96, 128}), p.block_k = pick({32, 64, 128});
  p.threads = pick({128, 256}), p.stages = pick({1, 2, 3, 4});
  p.m = p.block_m * pick({1, 2}) - pick({0, 8, 24}), p.n = p.block_n * pick({1, 2}) - pick({0, 8});
  p.k = p.block_k * pick({1, 2, 3, 5, 8}) - pick({0, 16});
  p.transpose_a = pick({0, 1}) != 0, p.transpose_b = pick({0, 1}) != 0;
  p.relu = pick({0, 1}) != 0, p.through_shared = pick({0, 0, 1}) != 0;
  const std::pair<const char*, const char*> types[] = {{"bfloat16", "bfloat16"},
                                                       {"bfloat16", "float32"},
                                                       {"float16", "float16"},
                                                       {"float8_e4m3", "float32"},
                                                       {"int8", "int32"}};
  std::tie(p.type, p.result) = types[random() % std::size(types)];
  // What wgmma reads: other operands of 8 bits take a slow road, which other tests go.
  if (p.type[0] == 'i' || std::string_view(p.type) == "float8_e4m3") p.transpose_a = false, p.transpose_b = true;
  return p;
}

// What the simulator of an sm_90a computes, and the interpreter: the same bits, for sums of small integers are exact,
// and both round once.
void expect_same(const std::string& text, std::mt19937& random) {
  const ir::TileProgram tiles = ir::parse(text, "product.tile");
  const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
  const std::vector<NDArray> want = arrays_of(tiles, random), got = clones(want);
  try {
    compile(program, {.engine = Engine::Interpreter})(want[0], want[1], want[2]);
    compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(got[0], got[1], got[2]);
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
    return;
  }
  const auto bytes = static_cast<size_t>(want[2].size() * want[2].dtype().storage_bits() / 8);
  EXPECT_EQ(std::memcmp(want[2].data(), got[2].data(), bytes), 0);
}

TEST(Lowered, RandomProductsOnHopperAreRightAndWithoutRaces) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    const std::string text = random_product(random).text();
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    expect_same(text, random);
  }
}

// The same sums in the same order as the interpreter's, so the same bits, of any numbers.
template <class T>
passes::GemmChoice expect_exact(const Product& p, int arch, const char* name) {
  SCOPED_TRACE(fmt::format("{}\n{}", name, p.text()));
  const ir::TileProgram tiles = ir::parse(p.text(), "product.tile");
  std::mt19937 random(1);
  const std::vector<NDArray> want = arrays_of(tiles, random), got = clones(want);
  for (size_t i = 0; i < 2; ++i) {
    auto* values = static_cast<T*>(want[i].data());
    for (int64_t x = 0; x < want[i].size(); ++x) values[x] = static_cast<T>(std::ldexp(random(), -31)) - 1;
    std::memcpy(got[i].data(), values, static_cast<size_t>(want[i].size()) * sizeof(T));
  }
  const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
  compile(program, {.engine = Engine::Interpreter})(want[0], want[1], want[2]);
  compile(program, {.engine = Engine::Simulator, .arch = name})(got[0], got[1], got[2]);
  EXPECT_EQ(std::memcmp(want[2].data(), got[2].data(), static_cast<size_t>(want[2].size()) * sizeof(T)), 0);
  const passes::ThreadLowering low = passes::lower_to_threads(passes::canonicalize(tiles), target::GpuTarget::of(arch));
  return low.placements[0].gemms.begin()->second;
}

TEST(Lowered, ProductsOfDoublesAreExact) {
  for (const auto& [arch, name, k, instruction] :
       {std::tuple{80, "sm_80", 16, "m8n8k4"}, std::tuple{90, "sm_90a", 16, "m16n8k16"},
        std::tuple{90, "sm_90a", 24, "m16n8k8"}, std::tuple{90, "sm_90a", 12, "m16n8k4"}}) {
    for (int form = 0; form < 4; ++form) {
      const Product p{100,       72,    5 * k - 2, 64,       32, k, 128, form, (form & 1) != 0, (form & 2) != 0,
                      form == 1, false, "float64", "float64"};
      const passes::GemmChoice choice = expect_exact<double>(p, arch, name);
      ASSERT_TRUE(choice.mma) << choice.why_not_mma;
      EXPECT_TRUE(choice.mma->name.starts_with(instruction)) << choice.mma->name;
    }
  }
}

// Each thread has a tile of the result; where the extents have none, single elements.
TEST(Lowered, ProductsByMultiplyAddsAreExact) {
  for (int form = 0; form < 4; ++form) {
    Product p{100,       72,    70,        64,       64, 32, 128, form, (form & 1) != 0, (form & 2) != 0,
              form == 1, false, "float32", "float32"};
    const passes::GemmChoice choice = expect_exact<float>(p, 80, "sm_80");
    ASSERT_TRUE(choice.tile) << form;
    EXPECT_EQ(choice.warps_m, choice.warps_n);
    EXPECT_EQ(choice.tile->rows, p.transpose_a ? 4 : 1);
    EXPECT_EQ(choice.tile->columns, p.transpose_b ? 1 : 4);
    expect_exact<float>(p, 90, "sm_90a");
    p.block_n = 24, p.threads = 64;
    EXPECT_EQ(expect_exact<float>(p, 80, "sm_80").tile.has_value(), p.transpose_b);
  }
}

// What threads copy and fill of their own needs no other threads.
TEST(Lowered, CopiesOfOnesOwnMemoryWhereSomeThreadsAre) {
  std::mt19937 random(1);
  expect_same(R"(program own {
  param A: float32[8, 4]
  param B: float32[128]
  param O: float32[128]
  launch own(bx: 1) threads(tx: 128) {
    local x: float32[4]
    if 100 <= tx {
      return
    }
    fill to=x value=3.0
    if B[tx] < 2.0 {
      copy from=A[tx % 8, 0 : 4] to=x
    } else {
      fill to=x[1 : 2] value=5.0
    }
    O[tx] = x[1] * 2.0 + x[3]
  }
}
)",
              random);
}

// A role brings rows into tiles of one dimension by TMA, and stores them by it: one box, or several of 256.
TEST(Lowered, TilesOfOneDimensionAreRowsForTma) {
  for (const int n : {4, 64, 100, 512, 1024}) {
    std::mt19937 random(1);
    expect_same(fmt::format(R"(program slot {{
  param A: float32[4, {0}]
  param B: float32[4, {0}]
  param O: float32[4, {0}]
  launch slot(bx: 4) threads(tx: 128) {{
    shared slot: float32[{0}]
    barrier full: uint64[1] arrive=[1]
    role 0..32 {{
      expect barrier=full[0] bytes={1} arrive=true
      copy from=A[bx, 0 : {0}] to=slot completion=(barrier=full[0])
    }}
    role 32..128 {{
      wait barrier=full[0] parity=0
      copy from=slot to=O[bx, 0 : {0}]
    }}
    sync block
    copy from=slot to=B[bx, 0 : {0}] completion=(queue=bulk_store)
    commit bulk_store
    drain bulk_store
  }}
}}
)",
                            n, n * 4),
                random);
  }
}

// More tiles than a GPU has multiprocessors: a block goes over several.
// Blocks of one tile lay its results over the rings, which they have used up, and so have a slot more.
TEST(Lowered, ResultsOfBlocksOfOneTileLieOverTheRings) {
  Product p{256, 512, 384, 128, 256, 64, 256, 4, false, true, false, false, "bfloat16", "bfloat16"};
  for (const bool walks : {false, true}) {
    if (walks) p.m = 128 * 40, p.n = 256 * 8;
    const passes::ThreadLowering low =
        passes::lower_to_threads(passes::canonicalize(ir::parse(p.text(), "product.tile")), target::GpuTarget::of(90));
    ASSERT_EQ(low.plans[0].rings.size(), 1u);
    EXPECT_EQ(low.plans[0].is_persistent(), walks);
    EXPECT_EQ(low.plans[0].rings[0].slots, walks ? 3 : 4);
    EXPECT_EQ(low.tried.back().attempt.over, !walks);
    if (walks) continue;
    std::mt19937 random(1);
    expect_same(p.text(), random);
  }
}

TEST(Lowered, BlocksThatWalkOverTilesAreRightAndWithoutRaces) {
  std::mt19937 random(1);
  expect_same(Product{1000, 1024, 72, 64, 64, 64, 128, 2, false, true, false, false, "bfloat16", "bfloat16"}.text(),
              random);
}

TEST(Lowered, AttentionOnHopperIsRightAndWithoutRaces) {
  for (const Attention& a : {Attention{100, 150, 64, 64, 64, 128, 2}, Attention{200, 130, 64, 128, 64, 256, 2},
                             Attention{64, 300, 128, 64, 128, 128, 1}, Attention{120, 96, 32, 64, 32, 128, 3},
                             Attention{10, 150, 64, 4, 64, 128, 2}, Attention{300, 200, 64, 192, 64, 384, 2}}) {
    SCOPED_TRACE(a.text());
    std::mt19937 random(1);
    const ir::TileProgram tiles = ir::parse(a.text(), "attention.tile");
    const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
    const std::vector<NDArray> want = arrays_of(tiles, random);
    const NDArray got = want[3].clone();
    compile(program, {.engine = Engine::Interpreter})(want[0], want[1], want[2], want[3]);
    compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(want[0], want[1], want[2], got);
    for (int64_t i = 0; i < a.queries; ++i)
      for (int64_t j = 0; j < a.width; ++j) ASSERT_NEAR(got.get_float({i, j}), want[3].get_float({i, j}), 0.02);
  }
}

// Of float32 as the instructions read it under the option: ten bits of mantissas, the others left out and not rounded,
// whatever the operands' layouts, on every engine.
TEST(Lowered, ProductsOfFloat32MayReadTenBits) {
  for (const bool wgmma : {false, true})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        for (const bool option : {false, true}) {
          const int64_t m = wgmma ? 64 : 32;
          Product p{m, 32, 64, m, 32, 32, 128, 2, ta, tb, false, false, "float32", "float32"};
          std::string text = p.text();
          if (option) text.insert(text.find("  launch"), "  option tf32=true\n");
          SCOPED_TRACE(text);
          const ir::TileProgram tiles = ir::parse(text, "product.tile");
          EXPECT_EQ(ir::print(tiles).find("option tf32=true") != std::string::npos, option);
          const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
          std::mt19937 random(1);
          const std::vector<NDArray> exact = arrays_of(tiles, random), more = clones(exact);
          for (int i : {0, 1})
            for (int64_t at = 0; at < more[static_cast<size_t>(i)].size(); ++at)
              static_cast<float*>(more[static_cast<size_t>(i)].data())[at] *= 1.0f + 0x1.8p-12f;
          compile(program, {.engine = Engine::Interpreter})(exact[0], exact[1], exact[2]);
          for (const Engine engine : {Engine::Interpreter, Engine::Cpu, Engine::Simulator}) {
            compile(program, {.engine = engine, .arch = engine == Engine::Simulator ? "sm_90a" : ""})(more[0], more[1],
                                                                                                      more[2]);
            const bool same = std::memcmp(exact[2].data(), more[2].data(), static_cast<size_t>(m * 32 * 4)) == 0;
            EXPECT_EQ(same, option) << static_cast<int>(engine);
          }
          const auto low = passes::lower_to_threads(passes::canonicalize(tiles), target::GpuTarget::of(90));
          for (const auto& [stmt, choice] : low.placements[0].gemms) {
            EXPECT_EQ(choice.wgmma != nullptr, option && wgmma && !ta && tb) << choice.why_not_wgmma;
            EXPECT_EQ(choice.has_instruction(), option) << choice.why_not_mma;
          }
        }
}

// Fewer rows than an instruction has: tiles get more, which reach no other row and no memory.
TEST(Lowered, ProductsOfFewRowsHaveAnInstruction) {
  const auto lowered = [](const std::string& text, int arch) {
    return passes::lower_to_threads(passes::canonicalize(ir::parse(text, "rows.tile")), target::GpuTarget::of(arch));
  };
  for (const int arch : {80, 90}) {
    for (const int64_t rows : {2, 4, 8, 12}) {
      const passes::ThreadLowering low = lowered(Attention{10, 150, 64, rows, 64, 128, 2}.text(), arch);
      ASSERT_EQ(low.placements[0].gemms.size(), 2u);
      for (const auto& [stmt, choice] : low.placements[0].gemms) EXPECT_TRUE(choice.mma) << choice.why_not_mma;
    }
  }
  // Rows that meet others stay as many as there are; instructions have places beyond them (gemms/rows_that_meet).
  std::string text = Attention{10, 150, 64, 4, 64, 128, 2}.text();
  const std::string plain = "exp2((before[i] - top[i]) * 0.25)";
  text.replace(text.find(plain), plain.size(), "exp2((before[3 - i] - top[i]) * 0.25)");
  const passes::ThreadLowering other = lowered(text, 90);
  for (const auto& [stmt, choice] : other.placements[0].gemms) EXPECT_TRUE(choice.mma) << choice.why_not_mma;
}

// Few products of a warp, over many steps: each step adds to other sums than the three before.
TEST(Lowered, StepsOfFewProductsDoNotWaitForEachOther) {
  std::mt19937 random(5);
  const auto chains = [&](int64_t n, int64_t k) {
    Product p{16, n, k, 16, n, k, 64, 1, false, true, false, false, "float16", "float32"};
    expect_same(p.text(), random);
    const passes::ThreadLowering low =
        passes::lower_to_threads(passes::canonicalize(ir::parse(p.text(), "product.tile")), target::GpuTarget::of(80));
    int64_t registers = 0;
    for (const ir::Buffer& b : low.threads.buffers)
      if (b.name == "acc_chains") registers = ir::constant_int(b.shape[0]).value_or(0);
    return registers;
  };
  EXPECT_EQ(chains(16, 256), 4 * 4);  // a tile of 16 x 8 a warp: four registers
  EXPECT_EQ(chains(32, 256), 2 * 8);
  EXPECT_EQ(chains(64, 256), 0);
  EXPECT_EQ(chains(16, 64), 0);
}

TEST(Lowered, AUsersScheduleOnHopperIsRightAndWithoutRaces) {
  std::mt19937 random(1);
  expect_same(kUserSchedule, random);
}

// By TMA where the patches are a box of the image: several lines of pixels, or part of one.
TEST(Lowered, PatchesOfAnImageOnHopperAreRightAndWithoutRaces) {
  for (const int width : {8, 32, 128}) {
    std::mt19937 random(1);
    const int pixels = 2 * 16 * width;
    expect_same(fmt::format("program patches {{\n  param image: float16[2, 16, {0}, 64]\n  param W: float16[576, 64]\n"
                            "  param C: float16[{1}, 64]\n  launch patches(by: {2}) threads(tx: 128) {{\n"
                            "    shared Ps: float16[64, 64]\n    shared Ws: float16[64, 64]\n"
                            "    fragment acc: float32[64, 64]\n    fill to=acc value=0.0\n"
                            "    for k in 0..9 pipelined(stages=3) {{\n"
                            "      copy from=image to=Ps im2col=(row_block=by, column_block=k, kernel=3, pad=1)\n"
                            "      copy from=W[k * 64 : 64, 0 : 64] to=Ws\n      gemm a=Ps b=Ws c=acc\n    }}\n"
                            "    copy from=acc to=C[by * 64 : 64, 0 : 64]\n  }}\n}}\n",
                            width, pixels, pixels / 64),
                random);
  }
}

// One thread of a role begins what the role does together: not before all of its threads have passed the wait, for the
// answer may come before the last of them looks.
TEST(Lowered, NothingBeginsBeforeAllThreadsOfARoleHavePassedTheWait) {
  std::mt19937 random(1);
  for (const auto& [turns, own] : {std::pair{1, true}, std::pair{4, true}, std::pair{1, false}, std::pair{4, false}}) {
    const std::string text = fmt::format(R"(program wait {{
  param A: int32[4, 16]
  param B: int32[4, 16]
  param C: int32[4, 16]
  launch wait(bx: 2) threads(tx: 192) {{
    shared t: int32[1, 4, 16]
    shared s: int32[4, 16]
    barrier full: uint64[1] arrive=[1]
    barrier empty: uint64[1] arrive=[64]
    barrier begun: uint64[1] arrive=[512]
    role 0..128 {{
      for k in 0..{0} {{
        wait barrier=empty[0] parity=(k + 1) % 2
        expect barrier=full[0] bytes=256 arrive=true
        copy from=A to=t[0, 0 : 4, 0 : 16] completion=(barrier=full[0])
        {1}
      }}
    }}
    role 128..192 {{
      for k in 0..{0} {{
        wait barrier=full[0] parity=k % 2
        copy from=t[0, 0 : 4, 0 : 16] to=s
        arrive barrier=empty[0]
      }}
      copy from=s to=C
    }}
  }}
}}
)",
                                         turns, own ? "arrive barrier=begun[0]" : "");
    SCOPED_TRACE(text);
    expect_same(text, random);
    const std::string threads = ir::print(
        passes::lower_to_threads(passes::canonicalize(ir::parse(text, "wait.tile")), target::GpuTarget::of(90))
            .threads);
    const size_t wait = threads.find("wait barrier=empty"), begin = threads.find("expect barrier=full");
    const bool meet = threads.substr(wait, begin - wait).find("sync named") != std::string::npos;
    EXPECT_EQ(meet, own) << threads;  // else one warp is all that the role needs
    EXPECT_EQ(threads.find("role 0..128 {") == std::string::npos, !own) << threads;
  }
}

// Of no tiles, no blocks walk.
TEST(Lowered, AGridOfNoBlocksIsWalkedByNone) {
  const ir::TileProgram tiles = ir::parse(R"(program none {
  symbol M: int32
  param A: float16[M, 256]
  param B: float16[256, 256]
  param C: float16[M, 256]
  launch none(bx: 2, by: (M + 127) // 128) threads(tx: 128) {
    shared a: float16[128, 64]
    shared b: float16[64, 128]
    fragment c: float32[128, 128]
    fill to=c value=0.0
    for k in 0..4 pipelined(stages=3) {
      copy from=A[by * 128 : 128, k * 64 : 64] to=a
      copy from=B[k * 64 : 64, bx * 128 : 128] to=b
      gemm a=a b=b c=c
    }
    copy from=c to=C[by * 128 : 128, bx * 128 : 128]
  }
}
)",
                                          "none.tile");
  const passes::ThreadLowering low = passes::lower_to_threads(passes::canonicalize(tiles), target::GpuTarget::of(90));
  ASSERT_TRUE(low.plans[0].is_persistent());
  const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
  const NDArray none = NDArray::zeros({0, 256}, f16), b = NDArray::zeros({256, 256}, f16);
  for (const char* arch : {"sm_80", "sm_90a"})
    EXPECT_NO_THROW(compile(program, {.engine = Engine::Simulator, .arch = arch})(none, b, none)) << arch;
}

// A result goes by TMA that is stored once, or again behind what is written; none that is read behind its store.
TEST(Lowered, ResultsThatAreStoredAgainWaitForTma) {
  std::mt19937 random(1);
  const auto program = [](const char* out) {
    return fmt::format(R"(program again {{
  param A: float16[256, 128]
  param B: float16[128, 128]
  param C: float16[256, 256]
  launch again(bx: 2) threads(tx: 128) {{
    shared As: float16[64, 64]
    shared Bs: float16[64, 64]
    fragment acc: float32[64, 64]
    fill to=acc value=0.0
    for k in 0..2 pipelined(stages=2) {{
      copy from=A[bx * 64 : 64, k * 64 : 64] to=As
      copy from=B[k * 64 : 64, 0 : 64] to=Bs
      gemm a=As b=Bs c=acc
    }}
    {}
  }}
}}
)",
                       out);
  };
  const char* once[] = {"copy from=acc to=C[bx * 64 : 64, 0 : 64]",
                        "for n in 0..3 {\n copy from=acc to=C[bx * 64 : 64, n * 64 + 64 : 64]\n }",
                        "copy from=acc to=C[bx * 64 : 64, 0 : 64]\n copy from=acc to=C[bx * 64 : 64, 64 : 64]",
                        "map i in 64, j in 64 {\n acc[i, j] = acc[i, j] + float32(C[bx * 64 + i, j])\n }\n"
                        " copy from=acc to=C[bx * 64 : 64, 0 : 64]"};
  const char* again[] = {"for n in 0..3 {\n copy from=acc to=C[bx * 64 : 64, 0 : 64]\n fill to=acc value=2.0\n }",
                         "for n in 0..3 {\n copy from=acc to=C[bx * 64 : 64, n * 32 : 64]\n fill to=acc value=2.0\n }",
                         "copy from=acc to=C[bx * 64 : 64, 0 : 64]\n fill to=acc value=1.0\n"
                         " copy from=acc to=C[bx * 64 : 64, 32 : 64]",
                         "copy from=acc to=C[bx * 64 : 64, 0 : 64]\n map i in 64, j in 64 {\n"
                         " acc[i, j] = acc[i, j] + float32(C[bx * 64 + i, j])\n }\n"
                         " copy from=acc to=C[bx * 64 : 64, 128 : 64]"};
  for (const bool is_once : {true, false})
    for (const char* out : is_once ? once : again) {
      const std::string text = program(out);
      SCOPED_TRACE(text);
      expect_same(text, random);
      const passes::ThreadLowering low =
          passes::lower_to_threads(passes::canonicalize(ir::parse(text, "again.tile")), target::GpuTarget::of(90));
      int waits = 0;
      ir::walk(low.planned.launches[0].body, [&](const ir::Stmt& x) {
        const auto* drain = x.as<ir::Drain>();
        waits += drain && drain->written;
      });
      const bool reads = !is_once && out == again[3];
      EXPECT_EQ(low.plans[0].epilogue.staged.empty(), reads);
      EXPECT_EQ(waits > 0, !is_once && !reads);
    }
}

// What users get wrong in schedules of their own.
TEST(Lowered, MistakesOfUsersAreFound) {
  const auto error = [](const std::string& from, const std::string& to) {
    std::string text = kUserSchedule;
    const size_t at = text.find(from);
    text.replace(at, from.size(), to);
    std::mt19937 random(1);
    const ir::TileProgram tiles = ir::parse(text, "roles.tile");
    const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
    const std::vector<NDArray> arrays = arrays_of(tiles, random);
    try {
      compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(arrays[0], arrays[1], arrays[2]);
    } catch (const Error& e) {
      return e.diagnostic().code_text() + " at " + std::to_string(e.diagnostic().location.line);
    }
    return std::string("no error");
  };
  EXPECT_EQ(error("bytes=16384", "bytes=8192").substr(0, 6), "TW9001");
  EXPECT_EQ(error("bytes=16384", "bytes=32768").substr(0, 6), "TW6009");
  EXPECT_EQ(error("        wait barrier=full[slot] parity=k // 2 % 2\n", "").substr(0, 6), "TW6002");
  EXPECT_EQ(error("        wait barrier=empty[slot] parity=k // 2 % 2 ^ 1\n", ""), "TW9009 at 14");
  EXPECT_EQ(error("        arrive barrier=empty[slot]\n", "").substr(0, 6), "TW6009");
  EXPECT_EQ(error("arrive=[128, 128]", "arrive=[64, 64]").substr(0, 6), "TW9009");
}

}  // namespace
}  // namespace tilewright::simulator
