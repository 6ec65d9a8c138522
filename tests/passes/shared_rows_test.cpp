// Blocks of a cluster that share rows: where a plan that is handed in says so, or a row takes a multiprocessor.
#include "ir/rewrite.h"
#include "passes/planned.h"
#include "plan/schedule.h"
#include "tilewright/compile.h"

namespace tilewright {
namespace {

constexpr int64_t kM = 5, kN = 1024;

struct Rows {
  std::string body, plan = "\"work rows k=4\"", tiles = "", launch = "by: 3", type = "float32";
  int threads = 256;
  int64_t n = kN;

  std::string text() const {
    return fmt::format(
        "program rows {{\n  param X: {0}[{4}, {5}]\n  param W: {0}[{5}]\n  param Y: {0}[{4}, {5}]\n"
        "  launch rows({1}) threads(tx: {2}){3} {{\n    fragment x: {0}[2, {5}]\n    fragment most: {0}[2]\n"
        "    fragment all: {0}[2]\n{6}{7}  }}\n}}\n",
        type, launch, threads, plan.empty() ? "" : " plan(" + plan + ")", kM, n, tiles, body);
  }
};

std::string of(const char* text, int64_t n = kN) {
  std::string out = text;
  for (size_t at; (at = out.find("{n}")) != std::string::npos;) out.replace(at, 3, std::to_string(n));
  return out;
}

const char* const kBring = "    copy from=X[by * 2 : 2, 0 : {n}] to=x\n";
const char* const kLeave = "    copy from=x to=Y[by * 2 : 2, 0 : {n}]\n";

std::vector<Rows> cases() {
  const auto rows = [](std::string body, std::string tiles = "", std::string type = "float32") {
    return Rows{.body = of(kBring) + of(body.c_str()) + of(kLeave), .tiles = of(tiles.c_str()), .type = type};
  };
  std::vector<Rows> out;
  // Two reductions, the second of what follows from the first.
  out.push_back(
      rows("    reduce max from=x to=most dim=1\n    map i in 2, j in {n} {\n      x[i, j] = x[i, j] - most[i]\n"
           "    }\n    reduce sum from=x to=all dim=1\n    map i in 2, j in {n} {\n"
           "      x[i, j] = x[i, j] + all[i]\n    }\n"));
  // What is there already is added to; operations of several kinds, whole numbers, a number that is not one.
  for (const char* op : {"sum", "max", "min", "abssum", "absmax"})
    out.push_back(
        rows(fmt::format("    fill to=most value=-3.0\n    reduce {} from=x to=most dim=1 clear=false\n"
                         "    map i in 2, j in {{n}} {{\n      x[i, j] = x[i, j] * most[i]\n    }}\n",
                         op)));
  out.push_back(
      rows("    reduce bitxor from=x to=most dim=1\n    map i in 2, j in {n} {\n      x[i, j] = x[i, j] + most[i]\n"
           "    }\n",
           "", "int32"));
  out.push_back(
      rows("    map i in 2, j in {n} {\n      x[i, j] = select(j + i * 7 == 900, nan, x[i, j])\n    }\n"
           "    reduce max from=x to=most dim=1 nan_propagate=true\n    map i in 2, j in {n} {\n"
           "      x[i, j] = select(most[i] == most[i], 1.0, 2.0) + float32(j)\n    }\n"));
  // Tiles in shared memory, of other orders, and rows of columns that all rows share; which column it is.
  out.push_back(
      rows("    copy from=W[0 : {n}] to=w\n    map j in {n}, i in 2 {\n      t[j, i] = x[i, j] + w[j]\n    }\n"
           "    reduce sum from=t to=all dim=0\n    map i in 2, j in {n} {\n"
           "      x[i, j] = t[j, i] + all[i] + W[{n} - 1 - j] + float32(j)\n    }\n",
           "    shared w: float32[{n}]\n    fragment t: float32[{n}, 2]\n"));
  // Rows are summed, not columns, beside it; a scan of rows; a fill.
  out.push_back(
      rows("    reduce sum from=x to=of_rows dim=0\n    fill to=t value=1.0\n    map i in 2, j in {n} {\n"
           "      t[i, j] = t[i, j] + of_rows[j]\n    }\n    scan sum from=t to=t dim=0\n"
           "    reduce sum from=t to=all dim=1\n    map i in 2, j in {n} {\n      x[i, j] = t[i, j] + all[i]\n"
           "    }\n",
           "    fragment of_rows: float32[{n}]\n    fragment t: float32[2, {n}]\n"));
  // What has no columns is written once.
  out.push_back(
      rows("    reduce sum from=x to=all dim=1\n    map i in 2 {\n      if by * 2 + i < 5 {\n"
           "        atomic add to=Y[by * 2 + i, 0] value=all[i]\n      }\n    }\n    fill to=x value=0.0\n"));
  out.back().body = out.back().body.substr(0, out.back().body.find(of(kLeave)));
  return out;
}

TEST(SharedRows, BlocksHavePartsOfTheColumns) {
  for (const Rows& c : cases()) {
    for (const int64_t parts : {2, 4, 8}) {
      Rows r = c;
      r.plan = fmt::format("\"work rows k={}\"", parts);
      SCOPED_TRACE(r.text());
      const Planned p = planned(r.text());
      const plan::Use* use = p.plan.work.find(plan::kSharedRows);
      ASSERT_NE(use, nullptr) << fmt::format("{}", fmt::join(lines_of(p.plan, p.program), "\n"));
      EXPECT_EQ(use->number, parts);
      EXPECT_EQ(p.program.launches[0].cluster, (std::vector<int64_t>{1, parts}));
      const DType type = p.plain.buffers[0].type;
      expect_same_meaning(p, {numbers({kM, kN}, type, 3), numbers({kN}, type, 4)}, {kM, kN}, type);
    }
  }
}

TEST(SharedRows, IsTheSimulatorsToo) {
  for (const Rows& c : cases()) {
    SCOPED_TRACE(c.text());
    const Program program(
        std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{ir::parse(c.text(), "p.tile")}));
    const DType type = program.box().program.buffers[0].type;
    const NDArray x = numbers({kM, kN}, type, 3), w = numbers({kN}, type, 4);
    const NDArray want = numbers({kM, kN}, type, 5), got = numbers({kM, kN}, type, 5);
    compile(program, {.engine = Engine::Interpreter})(x, w, want);
    compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(x, w, got);
    EXPECT_EQ(got.to_floats(), want.to_floats());
  }
}

// Of a GPU of which a block of so many threads has a multiprocessor to itself.
const plan::Use* unasked(int64_t columns, int threads, const char* type = "bfloat16") {
  static Planned p;
  p = planned(fmt::format(
      "program rows {{\n  param X: {0}[64, {1}]\n  param Y: {0}[64, {1}]\n  launch rows(by: 64) threads(tx: {2}) {{\n"
      "    fragment x: float32[1, {1}]\n    fragment most: float32[1]\n    copy from=X[by : 1, 0 : {1}] to=x\n"
      "    reduce max from=x to=most dim=1\n    map i in 1, j in {1} {{\n      x[i, j] = x[i, j] - most[i]\n    }}\n"
      "    copy from=x to=Y[by : 1, 0 : {1}]\n  }}\n}}\n",
      type, columns, threads));
  return p.plan.work.find(plan::kSharedRows);
}

TEST(SharedRows, TilesThatAreTooLargeForABlockAreUnasked) {
  for (const int64_t columns : {65536, 131072, 49152}) {
    const plan::Use* use = unasked(columns, 1024);
    ASSERT_NE(use, nullptr) << columns;
    EXPECT_EQ(use->number, 8);
  }
  EXPECT_EQ(unasked(32768, 1024), nullptr) << "a block has room for them";
  EXPECT_EQ(unasked(65536 + 4, 1024), nullptr) << "no whole vectors for each block";
}

TEST(SharedRows, ThreadsFollowThePart) {
  const std::string sum = "    reduce sum from=x to=all dim=1\n";
  const Planned p = planned(Rows{.body = of(kBring) + sum + of(kLeave)}.text());
  EXPECT_EQ(p.program.launches[0].threads, (std::vector<int64_t>{128}));
  const std::string by_thread = "    if tx == 0 {\n      most[0] = 0.0\n    }\n";
  EXPECT_EQ(planned(Rows{.body = of(kBring) + sum + by_thread + of(kLeave)}.text()).plan.work.find(plan::kSharedRows),
            nullptr);
}

TEST(SharedRows, AreRefusedWhereTheyCannotBe) {
  const std::string sum = "    reduce sum from=x to=all dim=1\n";
  const std::pair<Rows, const char*> refused[] = {
      {{.body = of(kBring) + "    scan sum from=x to=x dim=1\n" + of(kLeave)}, "a scan goes along the columns"},
      {{.body = of(kBring) + sum + of("    map i in 2, j in {n} {\n      x[i, j] = x[i, {n} - 1 - j]\n    }\n") +
                of(kLeave)},
       "elements of 'x' are read out of their order"},
      {{.body = of(kBring) + sum + of("    map i in 2, j in {n} {\n      all[i] = x[i, j]\n    }\n") + of(kLeave)},
       "every column writes to 'all'"},
      {{.body = of(kBring) + sum + "    map i in 2, j in 512 {\n      x[i, j] = 0.0\n    }\n" + of(kLeave)},
       "a map goes over a part of the columns"},
      {{.body = "    copy from=Y[by * 2 : 2, 0 : 1024] to=x\n" + sum + of(kLeave)},
       "'Y' is written, and used by another statement"},
      {{.body = of(kBring) + of(kLeave)}, "no reduction goes along its columns"},
      {{.body = of(kBring) + "    for k in 0..3 {\n" + sum + "    }\n" + of(kLeave)}, "it has a for at its top"},
      {{.body = of(kBring, 1028) + sum + of(kLeave, 1028), .n = 1028},
       "1028 columns are no whole 8s for each of 4 blocks"},
      {{.body = of(kBring) + sum + of(kLeave), .launch = "by: 3, bx: 1, bz: 1"},
       "its grid has three dimensions already"},
  };
  for (const auto& [rows, why] : refused) {
    const Planned p = planned(rows.text());
    EXPECT_EQ(p.plan.work.find(plan::kSharedRows), nullptr) << rows.text();
    EXPECT_NE(fmt::format("{}", fmt::join(lines_of(p.plan, p.program), "\n")).find(why), std::string::npos)
        << rows.text() << fmt::format("{}", fmt::join(lines_of(p.plan, p.program), "\n"));
  }
}

}  // namespace
}  // namespace tilewright
