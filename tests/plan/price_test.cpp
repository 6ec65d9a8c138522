// The model of what a plan costs, beside what was measured: rows of bench/results, run by bench/gpu on an H200.
#include "plan/price.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "driver/arguments.h"
#include "driver/cuda_engine.h"
#include "driver/explain.h"
#include "example.h"
#include "files.h"
#include "ir/parse.h"
#include "passes/assume_fast_calls.h"
#include "passes/gpu_passes.h"
#include "passes/pipeline.h"
#include "passes/plan_search.h"
#include "tilewright/cost.h"
#include "tilewright/kernels.h"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;

const std::string kResults = TILEWRIGHT_SOURCE_DIR "/bench/results/";

double rounded(double value) { return std::round(value * 1000) / 1000; }

struct Row {
  std::string form, shape, tiles;  // bf16:nt, 8192x8192x8192, 128x256x64:stages:threads
  double measured = 0, predicted = 0;
  std::string limit = "";
  double off() const { return predicted / measured - 1; }
};

std::vector<int64_t> numbers_in(const std::string& text) {
  std::vector<int64_t> out(1);
  for (const char c : text) {
    if (c >= '0' && c <= '9')
      out.back() = out.back() * 10 + (c - '0');
    else
      out.push_back(0);
  }
  return out;
}

// C = A B, as bench/gpu's sweep writes it.
ir::TileProgram product(const Row& row) {
  const std::vector<int64_t> s = numbers_in(row.shape), t = numbers_in(row.tiles);
  const bool is_transposed = row.form.ends_with("nt");
  const char* type = row.form.starts_with("bf16") ? "bfloat16" : "float8_e4m3";
  const auto matrix = [](int64_t a, int64_t b) { return fmt::format("[{}, {}]", a, b); };
  const std::string text = fmt::format(
      "program product {{\n  param A: {0}{1}\n  param B: {0}{2}\n  param C: bfloat16{3}\n"
      "  launch product(bx: {4}, by: {5}) threads(tx: {6}) swizzle(10, row) {{\n    shared As: {0}{7}\n"
      "    shared Bs: {0}{8}\n    fragment acc: float32{9}\n    fill to=acc value=0.0\n"
      "    for k in 0..{10} pipelined(stages={11}) {{\n      copy from=A[by * {12} : {12}, k * {13} : {13}] to=As\n"
      "      copy from={14} to=Bs\n      gemm a=As b=Bs c=acc{15}\n    }}\n"
      "    copy from=acc to=C[by * {12} : {12}, bx * {16} : {16}]\n  }}\n}}\n",
      type, matrix(s[0], s[2]), is_transposed ? matrix(s[1], s[2]) : matrix(s[2], s[1]), matrix(s[0], s[1]),
      (s[1] + t[1] - 1) / t[1], (s[0] + t[0] - 1) / t[0], t[4], matrix(t[0], t[2]),
      is_transposed ? matrix(t[1], t[2]) : matrix(t[2], t[1]), matrix(t[0], t[1]), s[2] / t[2], t[3], t[0], t[2],
      is_transposed ? fmt::format("B[bx * {0} : {0}, k * {1} : {1}]", t[1], t[2])
                    : fmt::format("B[k * {1} : {1}, bx * {0} : {0}]", t[1], t[2]),
      is_transposed ? " transpose_b=true" : "", t[1]);
  return passes::run_passes(ir::parse(text, "product.tile"), passes::all_passes(), [](auto&&...) {});
}

double predict(Row& row) {
  passes::GpuProgram p{
      .tiles = passes::assume_fast_calls(product(row)), .target = gpu_target("sm_90a"), .attempts = {}};
  passes::run_gpu_passes(p, passes::gpu_tile_passes(), [](auto&&...) {});
  const plan::Plan plan = passes::decide_plan(p.tiles, 0, p.target, {});
  const auto price = plan::price(p.tiles, p.tiles.launches[0], plan, p.target);
  EXPECT_TRUE(price) << row.tiles;
  row.limit = price ? price->limit : "";
  return price ? price->microseconds : 0;
}

std::vector<Row> measured_products() {
  std::vector<Row> out;
  for (const char* file : {"2026-11-21-gpu.json", "2026-11-22-gpu.json"}) {
    const Json results = Json::parse(text_of(kResults + file));
    for (const Json& row : results["gemm"])
      // Ours; else it is a peer's name. Tiles of 208 columns of a row-major B had no wgmma when they were measured.
      if (const std::string tiles = row["tiles"], form = row["form"];
          tiles.find(':') != std::string::npos && !(form == "bf16:nn" && tiles.starts_with("128x208")))
        out.push_back({form, row["shape"], tiles, row["burst"]["us"]});
  }
  for (Row& row : out) row.predicted = predict(row);
  return out;
}

TEST(Price, IsNearWhatWasMeasured) {
  const std::vector<Row> rows = measured_products();
  ASSERT_GT(rows.size(), 40u);
  Json out = {
      {"what",
       "products on an H200 beside plan/price.h; measured: bursts of 2026-11-21-gpu.json and 2026-11-22-gpu.json"},
      {"rows", Json::array()}};
  std::vector<double> off;
  for (const Row& row : rows) {
    off.push_back(std::abs(row.off()));
    out["rows"].push_back({{"form", row.form},
                           {"shape", row.shape},
                           {"tiles", row.tiles},
                           {"limit", row.limit},
                           {"measured_us", rounded(row.measured)},
                           {"predicted_us", rounded(row.predicted)},
                           {"off", rounded(row.off())}});
    EXPECT_LT(std::abs(row.off()), 0.15) << row.form << " " << row.shape << " " << row.tiles;
  }
  std::ranges::sort(off);
  out["median_off"] = rounded(off[off.size() / 2]);
  EXPECT_LT(off[off.size() / 2], 0.05);
  expect_file(kResults + "2026-11-23-prices.json", out.dump(1) + "\n");
}

// Of the tiles of one shape the model would take one that loses little to the best.
TEST(Price, TakesATileThatIsFast) {
  std::map<std::string, std::vector<Row>> shapes;
  for (const Row& row : measured_products()) shapes[row.form + " " + row.shape].push_back(row);
  for (const auto& [shape, rows] : shapes) {
    const Row taken = *std::ranges::min_element(rows, {}, &Row::predicted);
    const Row best = *std::ranges::min_element(rows, {}, &Row::measured);
    EXPECT_LT(taken.measured, best.measured * 1.05) << shape << ": " << taken.tiles << ", not " << best.tiles;
  }
}

// Two warpgroups of 192 rows have 104 columns each, which lie in no whole panels where b is row-major: mma.sync does
// it, at half the rate (704x376x3840 takes an H200 103 us in such tiles, 2026-11-30-random.json).
TEST(Price, KnowsWhatWarpgroupsCannotShare) {
  Row across{"bf16:nn", "768x416x3840", "192x208x64:2:256"}, along{"bf16:nt", "768x416x3840", "192x208x64:2:256"};
  EXPECT_GT(predict(across), 1.4 * predict(along));
  Row by_rows{"bf16:nn", "768x416x3840", "128x208x64:2:256"}, likewise{"bf16:nt", "768x416x3840", "128x208x64:2:256"};
  EXPECT_LT(predict(by_rows), 1.2 * predict(likewise));
}

// What the L2 cache gives is shared: of a wave that leaves multiprocessors idle each gets more.
TEST(Price, OfFewMultiprocessorsEachGetsMoreOfTheL2Cache) {
  Row few{"bf16:nt", "64x1056x8192", "64x32x128:4:128"}, all{"bf16:nt", "256x1056x8192", "64x32x128:4:128"};
  const double of_few = predict(few), of_all = predict(all);
  EXPECT_EQ(all.limit, "l2");
  EXPECT_LT(of_few, 0.85 * of_all);
}

// The time of a product under a line of its plan.
double predict(const Row& row, const std::string& line) {
  ir::TileProgram program = product(row);
  program.launches[0].plan.push_back(line);
  passes::GpuProgram p{.tiles = passes::assume_fast_calls(program), .target = gpu_target("sm_90a"), .attempts = {}};
  passes::run_gpu_passes(p, passes::gpu_tile_passes(), [](auto&&...) {});
  const plan::Plan plan = passes::decide_plan(p.tiles, 0, p.target, {});
  if (!plan.has_loader()) return 0;
  const auto price = plan::price(p.tiles, p.tiles.launches[0], plan, p.target);
  return price ? price->microseconds : 0;
}

// Pairs of blocks that share a tile, each beside the same tiles alone: what they gain or lose.
TEST(Price, OfPairsIsNearWhatWasMeasured) {
  const Json results = Json::parse(text_of(kResults + "2026-11-25-pairs.json"));
  Json rows = Json::array();
  std::vector<double> off;
  for (const Json& row : results["rows"]) {
    const std::string what = row["what"], text = row["case"];  // nt bfloat16 5000x5000x5000
    if (what != "pairs" || !(text.starts_with("nt bfloat16 ") || text.starts_with("nn bfloat16 "))) continue;
    for (const auto& [name, us] : row["us"].items()) {
      const size_t at = name.find(" pairs ");
      if (at == std::string::npos) continue;
      const std::string tiles = name.substr(0, at), shared = name.substr(at + 7) + "s";
      const Row product{"bf16:" + text.substr(0, 2), text.substr(12), tiles};
      const double alone = predict(product, "work persistent"),
                   paired = predict(product, "work persistent pairs=" + shared);
      if (alone == 0 || paired == 0 || !row["us"].contains(tiles + " plain")) continue;
      const double was = us.get<double>() / row["us"][tiles + " plain"].get<double>(), is = paired / alone;
      off.push_back(std::abs(is / was - 1));
      rows.push_back({{"form", product.form},
                      {"shape", product.shape},
                      {"tiles", tiles},
                      {"shared", shared},
                      {"measured", rounded(was)},
                      {"predicted", rounded(is)}});
    }
  }
  ASSERT_GT(off.size(), 20u);
  std::ranges::sort(off);
  EXPECT_LT(off[off.size() / 2], 0.08);
  const char* what =
      "products by pairs of blocks, in parts of the time of the same tiles alone, on an H100 (2026-11-25-pairs.json) "
      "beside plan/price.h";
  const Json out = {{"what", what}, {"rows", rows}, {"median_off", rounded(off[off.size() / 2])}};
  expect_file(kResults + "2026-11-25-prices-of-pairs.json", out.dump(1) + "\n");
}

// Where nobody says, products of whole lines become pairs: only those that were faster so, but for what times differ
// by.
TEST(Price, PairsAreTakenWhereTheyWereFaster) {
  const Json results = Json::parse(text_of(kResults + "2026-11-28-pairs.json"));
  size_t taken = 0, left = 0;
  double gained = 0;
  for (const Json& row : results["rows"]) {
    const std::string form = row["form"];
    if (form != "bf16:nn" && form != "bf16:nt") continue;
    const Row measured{form, row["shape"], row["tiles"]};
    SCOPED_TRACE(form + " " + measured.shape + " " + measured.tiles);
    passes::GpuProgram p{
        .tiles = passes::assume_fast_calls(product(measured)), .target = gpu_target("sm_90a"), .attempts = {}};
    passes::run_gpu_passes(p, passes::gpu_tile_passes(), [](auto&&...) {});
    const plan::Plan plan = passes::decide_plan(p.tiles, 0, p.target, {});
    ASSERT_TRUE(plan.has_loader());
    if (!plan.work.shared().valid()) {
      ++left;
      continue;
    }
    ++taken;
    ASSERT_LT(plan.work.shared().index, p.tiles.buffers.size());
    const std::string tile = p.tiles.buffer(plan.work.shared()).name == "As" ? "A_shared" : "B_shared";
    double paired = 0;
    for (const auto& [line, us] : row["us"].items())
      if (line.ends_with("pairs=" + tile)) paired = us;
    EXPECT_GT(paired, 0);
    EXPECT_LT(paired, 1.02 * row["us"][""].get<double>());
    gained += std::log(row["us"][""].get<double>() / paired);
  }
  EXPECT_GE(taken, 13u);
  EXPECT_GE(left, 10u);
  EXPECT_GT(gained / static_cast<double>(taken), std::log(1.2));
}

// Rings get as many slots as were fastest beside results that are staged.
TEST(Price, RingsHaveTheSlotsThatWereFastest) {
  const Json results = Json::parse(text_of(kResults + "2026-11-29-slots.json"));
  size_t seen = 0;
  for (const Json& row : results["after"]) {
    std::istringstream words{row["case"].get<std::string>()};
    std::string type, order, m, n, k, tiles;
    words >> type >> order >> m >> n >> k >> tiles;
    const Row measured{"bf16:" + order, m + "x" + n + "x" + k, tiles};
    const std::vector<int64_t> t = numbers_in(tiles);
    // What the test's own product can be; the others have more slots than were measured.
    if ((order != "nn" && order != "nt") || std::stoll(k) % t[2] != 0) continue;
    const passes::ThreadLowering lowered =
        passes::search_plans(passes::assume_fast_calls(product(measured)), gpu_target("sm_90a"), {}, [](auto&&...) {});
    const std::string ring = fmt::format("ring A_shared, B_shared slots={}", lowered.plans[0].rings[0].slots);
    if (!row["us"].contains(ring)) continue;
    SCOPED_TRACE(std::string(row["case"]) + ": " + ring);
    ++seen;
    double best = row["us"][""];
    for (const auto& [line, us] : row["us"].items())
      if (line != "cublas") best = std::min(best, us.get<double>());
    EXPECT_LT(row["us"][ring].get<double>(), 1.06 * best);
  }
  EXPECT_GE(seen, 8u);
}

// What the fewest slots of a ring cost beside the most that were measured.
TEST(Price, KnowsWhatSlotsAreWorth) {
  const Json results = Json::parse(text_of(kResults + "2026-11-29-slots.json"));
  std::vector<double> off;
  for (const char* part : {"before", "after"})
    for (const Json& row : results[part]) {
      std::istringstream words{row["case"].get<std::string>()};
      std::string type, order, m, n, k, tiles;
      words >> type >> order >> m >> n >> k >> tiles;
      if ((order != "nn" && order != "nt") || std::stoll(k) % numbers_in(tiles)[2] != 0) continue;
      std::map<int64_t, double> measured;
      for (int64_t slots = 2; slots <= 8; ++slots)
        if (const auto us = row["us"].find(fmt::format("ring A_shared, B_shared slots={}", slots));
            us != row["us"].end())
          measured[slots] = us->get<double>();
      if (measured.size() < 2) continue;
      const auto expected = [&](int64_t slots) {
        return predict({"bf16:" + order, m + "x" + n + "x" + k, tiles}, fmt::format("ring As, Bs slots={}", slots));
      };
      const auto few = *measured.begin(), many = *measured.rbegin();
      const double is = expected(few.first) / expected(many.first), was = few.second / many.second;
      if (std::isfinite(is) && is > 0) off.push_back(std::log(is / was));
    }
  ASSERT_GT(off.size(), 30u);
  const double mean = std::accumulate(off.begin(), off.end(), 0.0) / static_cast<double>(off.size());
  double squares = 0;
  for (const double o : off) squares += o * o;
  EXPECT_LT(std::abs(mean), 0.1);
  EXPECT_LT(std::sqrt(squares / static_cast<double>(off.size())), 0.22);
}

// Two blocks share a multiprocessor, or one has all the slots that fit: not one with the slots of two.
TEST(Price, SlotsAreThoseOfThePlanThatIsTaken) {
  const Row row{"bf16:nn", "1536x1536x1536", "64x160x32:4:128"};
  const passes::ThreadLowering lowered =
      passes::search_plans(passes::assume_fast_calls(product(row)), gpu_target("sm_90a"), {}, [](auto&&...) {});
  EXPECT_EQ(lowered.plans[0].work.blocks_per_multiprocessor, 2);
  EXPECT_GE(lowered.plans[0].rings[0].slots * lowered.plans[0].fit.at_once, 6);
}

// Seven rows of tiles: the last has no neighbour (an H200: 62.4 us by pairs, 46.6 alone; eight rows of 128x256 30.0 and
// 28.9 for 2048 cubed).
TEST(Price, PairsOfAnOddNumberHaveAnEmptyPlace) {
  const Row row{"bf16:nn", "777x8192x2048", "128x224x64:4:256"};
  EXPECT_GT(predict(row, "work persistent pairs=Bs"), 1.1 * predict(row, "work persistent"));
}

// A line lets a product run on where loads are thought to decide (an H200: 94 us for 256x4096x16384, each turn of which
// waits for its product).
TEST(Price, OfAProductThatRunsOnWhereALineSaysSo) {
  const Row row{"bf16:nt", "256x4096x16384", "128x96x64:5:128"};
  EXPECT_LT(predict(row, "order overlapped of k"), 0.9 * predict(row, "overlap no"));
}

// Ranks from the least, of what is alike the mean.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<double> out;
  for (const double v : values) {
    const auto less = std::ranges::count_if(values, [&](double x) { return x < v; });
    const auto alike = std::ranges::count(values, v);
    out.push_back(static_cast<double>(less) + static_cast<double>(alike - 1) / 2);
  }
  return out;
}
double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto mean = [](const std::vector<double>& v) {
    return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
  };
  const double ma = mean(a), mb = mean(b);
  double both = 0, va = 0, vb = 0;
  for (size_t i = 0; i < a.size(); ++i)
    both += (a[i] - ma) * (b[i] - mb), va += (a[i] - ma) * (a[i] - ma), vb += (b[i] - mb) * (b[i] - mb);
  return va * vb > 0 ? both / std::sqrt(va * vb) : 0;
}

// All of each box in every turn, as it was when these were measured.
Program unclipped(const Program& program) {
  ir::TileProgram tiles = program.box().program;
  for (ir::Launch& launch : tiles.launches) launch.plan.emplace_back("ring A_shared, B_shared unclipped");
  return Program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{std::move(tiles)}));
}

double price_of_library(const std::string& tile, const std::vector<int64_t>& s) {
  static std::map<std::string, CostModel> models;  // by the tile
  auto found = models.find(tile);
  if (found == models.end()) {
    const kernels::Options options = {
        {"a", "bfloat16"}, {"b", "bfloat16"}, {"result", "bfloat16"}, {"transpose_b", "true"}, {"tile", tile}};
    found = models.try_emplace(tile, unclipped(kernels::library_program("matmul", options)), "sm_90a").first;
  }
  const auto us = found->second.microseconds({{"M", s[0]}, {"N", s[1]}, {"K", s[2]}});
  EXPECT_TRUE(us) << tile;
  return us.value_or(0);
}

// Products of few rows in tiles of the library's, parts of a loop that clusters share included: the model puts tiles of
// a shape in their order, and the one it finds the fastest loses little. The H100 that they were measured on brings
// less from memory than the H200 that the model is of: the order tells, not the time.
TEST(Price, OrdersTilesOfProductsOfFewRows) {
  const Json results = Json::parse(text_of(kResults + "2026-11-25-library.json"));
  Json rows = Json::array();
  double correlations = 0, losses = 1;
  for (const Json& row : results["rows"]) {
    if (row["what"] != "small") continue;
    const std::vector<int64_t> shape = numbers_in(row["case"]);
    if (shape[0] > 256) continue;
    std::vector<double> measured, predicted;
    Json out = {{"shape", row["case"]}, {"tiles", Json::object()}};
    for (const auto& [tile, us] : row["us"].items()) {
      if (!std::isdigit(static_cast<unsigned char>(tile.front()))) continue;
      measured.push_back(us), predicted.push_back(price_of_library(tile, shape));
      out["tiles"][tile] = {{"measured_us", us}, {"predicted_us", rounded(predicted.back())}};
    }
    const auto taken = static_cast<size_t>(std::ranges::min_element(predicted) - predicted.begin());
    const double loss = measured[taken] / *std::ranges::min_element(measured);
    out["rank_correlation"] = rounded(correlation(ranks(measured), ranks(predicted)));
    out["taken_of_best"] = rounded(loss);
    correlations += out["rank_correlation"].get<double>(), losses *= loss;
    rows.push_back(std::move(out));
  }
  ASSERT_GT(rows.size(), 15u);
  const auto count = static_cast<double>(rows.size());
  EXPECT_GT(correlations / count, 0.6);          // before turns that wait alone and clusters that find no room: 0.38
  EXPECT_LT(std::pow(losses, 1 / count), 1.04);  // 1.07
  const Json all = {
      {"what", "products of the library in bfloat16 on an H100, of 2026-11-25-library.json, beside plan/price.h"},
      {"rows", rows},
      {"mean_rank_correlation", rounded(correlations / count)},
      {"taken_of_best", rounded(std::pow(losses, 1 / count))}};
  expect_file(kResults + "2026-11-25-prices-of-few-rows.json", all.dump(1) + "\n");
}

// The options of a product of bench/gpu/scoreboard.py: the element type, and whether operands are transposed.
kernels::Options options_of(const std::string& type, const std::string& order) {
  const bool is_tf32 = type == "tf32";
  const std::string operand = is_tf32 ? "float32" : type;
  const std::string result = type == "int8" ? "int32" : type == "float8_e4m3fn" ? "bfloat16" : operand;
  return {{"a", operand},
          {"b", operand},
          {"result", result},
          {"transpose_a", order[0] == 't' ? "true" : "false"},
          {"transpose_b", order[1] == 't' ? "true" : "false"},
          {"tf32", is_tf32 ? "true" : "false"}};
}

double price_of_tile(const std::string& words, const std::string& tile) {  // matmul bfloat16 nt 128 5120 27648
  static std::map<std::string, CostModel> models;
  std::istringstream in{words};
  std::string family, type, order;
  int64_t m = 0, n = 0, k = 0;
  in >> family >> type >> order >> m >> n >> k;
  auto found = models.find(type + order + tile);
  if (found == models.end()) {
    kernels::Options options = options_of(type, order);
    options["tile"] = tile;
    found = models.try_emplace(type + order + tile, kernels::library_program(family, options), "sm_90a").first;
  }
  const auto us = found->second.microseconds({{"M", m}, {"N", n}, {"K", k}});
  EXPECT_TRUE(us) << words << " " << tile;
  return us.value_or(0);
}

// Of the tiles of the library that were measured, the cheapest loses little to the best. Before blocks of clusters had
// their own price of tiles that neighbours share, products alone waited for shared memory, and a team alone counted as
// two: 1.02 in the mean, 1.20 at most.
TEST(Price, TakesATileOfTheLibraryThatIsFast) {
  const Json results = Json::parse(text_of(kResults + "2026-11-30-library-tiles.json"));
  std::map<std::string, std::map<std::string, double>> shapes;
  for (const Json& row : results["rows"])
    if (const std::string name = row["name"]; name.starts_with("tile ") && row.contains("burst"))
      shapes[row["case"]][name.substr(5)] = row["burst"]["us"];
  double losses = 0;
  for (const auto& [words, measured] : shapes) {
    std::map<double, double> of_price;
    double best = INFINITY;
    for (const auto& [tile, us] : measured) of_price.emplace(price_of_tile(words, tile), us), best = std::min(best, us);
    const double loss = of_price.begin()->second / best;
    EXPECT_LT(loss, 1.08) << words;
    losses += std::log(loss);
  }
  ASSERT_GT(shapes.size(), 40u);
  EXPECT_LT(std::exp(losses / static_cast<double>(shapes.size())), 1.014);
}

// Blocks that read the same columns are in different clusters (an H200: 109 us, and 95 where one block has all rows).
TEST(Price, ClustersDoNotShareWhatTheyRead) {
  const std::string words = "matmul bfloat16 nt 128 5120 27648";
  EXPECT_GT(price_of_tile(words, "64x160x128x3x128x2x0"), 1.08 * price_of_tile(words, "128x96x128x3x256x2x0"));
}

// One tile a block: nothing runs beside its products, which wait for their operands (an H200: 21.6 us, and 18.0 by
// two blocks of half as many turns).
TEST(Price, ATeamWithoutAnotherTileIsAlone) {
  const std::string words = "matmul bfloat16 nt 1 2112 7168";
  EXPECT_GT(price_of_tile(words, "64x32x128x4x128x1x0"), price_of_tile(words, "64x64x128x4x128x2x0"));
}

// Values of the symbols of a case's program and its scalars.
NamedValues values_of(const examples::Case& c, const ir::TileProgram& p) {
  std::vector<std::vector<int64_t>> shapes;
  for (size_t i = 0; i < p.params.size(); ++i) {
    if (!p.params[i].is_tensor()) continue;
    const auto& array = std::get<examples::LazyArray>(c.arguments[i]);
    std::vector<int64_t>& shape = shapes.emplace_back();
    for (size_t d = 0; d < p.buffer(p.params[i].buffer).shape.size(); ++d)
      shape.push_back(array.shape(static_cast<int>(d)));
  }
  NamedValues out = symbol_values(p, shapes);
  for (size_t i = 0; i < p.params.size(); ++i)
    if (const auto* n = std::get_if<int64_t>(&c.arguments[i])) out[p.var(p.params[i].var).name] = *n;
  return out;
}

struct PricedLaunch {
  std::string example, shape, name;
  passes::PricedPlan priced;
};

// Of every example at its sizes for GPUs.
const std::vector<PricedLaunch>& priced_examples() {
  static const auto all = [] {
    std::vector<PricedLaunch> out;
    for (const examples::Example& e : examples::all_examples())
      for (const examples::Case& c : e.cases(examples::Size::Gpu)) {
        const ir::TileProgram& program = c.program.box().program;
        const Explanation found = explain_gpu(program, values_of(c, program), "sm_90a", false);
        for (size_t i = 0; i < found.gpu->launches.size(); ++i)
          out.push_back({e.name, c.shape, found.launches[i].name, found.gpu->launches[i].priced});
      }
    return out;
  }();
  return all;
}

// Every launch whose work is known before the call has a price, and plans beside its own have theirs. Where the model
// has one of those cheaper, it is wrong or the order in which plans are tried: the file says where, for a device to
// tell.
TEST(Price, OfEveryExampleAndOfPlansBesideIts) {
  Json rows = Json::array();
  int priced = 0, with_two = 0;
  for (const PricedLaunch& launch : priced_examples()) {
    Json row = {{"example", launch.example}, {"shape", launch.shape}, {"launch", launch.name}};
    if (const auto& p = launch.priced.price) {
      row["us"] = rounded(p->microseconds), row["limit"] = p->limit;
      row["clocks"] = {{"matrix", rounded(p->matrix)},
                       {"shared", rounded(p->shared)},
                       {"l2", rounded(p->l2)},
                       {"issue", rounded(p->issue)},
                       {"results", rounded(p->epilogue)}};
      ++priced;
    }
    for (const passes::NextPlan& next : launch.priced.next)
      row["next"].push_back({{"line", next.line}, {"us", rounded(next.price.microseconds)}});
    with_two += launch.priced.next.size() == 2;
    rows.push_back(std::move(row));
  }
  EXPECT_GT(priced, 70);
  EXPECT_GT(with_two, 30);
  const char* what =
      "launches of the examples at their sizes for GPUs: what their plan costs, and the next ones, by plan/price.h";
  expect_file(kResults + "2026-11-23-plans.json", Json{{"what", what}, {"rows", rows}}.dump(1) + "\n");
}

// The sum of a program's launches beside what it took.
TEST(Price, OfExamplesIsNearWhatWasMeasured) {
  std::map<std::pair<std::string, std::string>, std::optional<double>> predicted;
  for (const PricedLaunch& launch : priced_examples()) {
    auto& sum = predicted.try_emplace({launch.example, launch.shape}, 0.0).first->second;
    sum = sum && launch.priced.price ? std::optional(*sum + launch.priced.price->microseconds) : std::nullopt;
  }
  std::map<std::pair<std::string, std::string>, double> measured;  // the newest
  for (const char* file : {"2026-11-21-gpu.json", "2026-11-22-gpu.json"}) {
    const Json results = Json::parse(text_of(kResults + file));
    for (const Json& row : results["programs"]) measured[{row["program"], row["shape"]}] = row["burst"]["us"];
  }
  Json rows = Json::array();
  std::vector<double> off;
  for (const auto& [program, took] : measured) {
    const auto found = predicted.find(program);
    if (found == predicted.end() || !found->second) continue;
    off.push_back(std::abs(*found->second / took - 1));
    rows.push_back({{"example", program.first},
                    {"shape", program.second},
                    {"measured_us", rounded(took)},
                    {"predicted_us", rounded(*found->second)},
                    {"off", rounded(*found->second / took - 1)}});
  }
  ASSERT_GT(off.size(), 60u);
  std::ranges::sort(off);
  EXPECT_LT(off[off.size() / 2], 0.10);
  const char* what =
      "examples on an H200 beside plan/price.h; measured: bursts of 2026-11-21-gpu.json and 2026-11-22-gpu.json";
  const Json out = {{"what", what}, {"rows", rows}, {"median_off", rounded(off[off.size() / 2])}};
  expect_file(kResults + "2026-11-23-prices-of-examples.json", out.dump(1) + "\n");
}

TEST(Price, IsNotKnownBeforeTheCallWhereExtentsAreNot) {
  const ir::TileProgram p = ir::parse(
      "program p {\n  symbol n: int32\n  param A: float32[n]\n  launch p(bx: n // 128) threads(tx: 128) {\n"
      "    map i in 128 {\n      A[bx * 128 + i] = A[bx * 128 + i] + 1.0\n    }\n  }\n}\n",
      "p.tile");
  EXPECT_FALSE(plan::price(p, p.launches[0], {}, gpu_target("sm_90a")));
}

}  // namespace
}  // namespace tilewright
