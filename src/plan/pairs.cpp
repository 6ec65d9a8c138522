// Pairs of neighbouring blocks that share a tile of a ring: each brings half of it for both, so that less comes from
// the L2 cache.
#include "analysis/shared_tiles.h"
#include "ir/any_in.h"
#include "plan/price.h"
#include "plan/schedule.h"
#include "plan/words.h"

namespace tilewright::plan {

using namespace ir;

namespace {

// Clocks of a turn of teams that take tiles in turn, at least: both blocks release a slot before it is filled (fitted
// to bench/results/2026-11-25-pairs.json: 4096 cubed in 64x128 tiles takes 427 alone, 506 and 471 as pairs).
constexpr double kPairTurn = 500;
// Pairs wait for one another in more than turns (fitted to that file). Rows over two lines show no such share.
constexpr double kPairsOfWholeLines = 1.06;

// Where the L2 cache is busy longer than all else: with a tile that pairs of blocks share, if its price is less than so
// much of the other's, in launches of that long. Clusters begin and end together, which the price does not know.
struct WorthPairs {
  double price, microseconds;
};
// Rows that are no whole lines (an H100: 5000 cubed in 128x256 tiles 384 us for 535, in 128x32 1035 for 1744).
constexpr WorthPairs kRaggedLines = {0.92, 60};
// Whole lines (bench/results/2026-11-28-pairs.json and 2026-11-30-pairs.json, an H200: 8192 cubed in 256x32 tiles 2.54
// ms for 4.74, in 128x64 2.14 for 2.52). Products of a sparse matrix are not among them.
constexpr WorthPairs kWholeLines = {0.91, 95};

const auto is_sparse_product = [](const Stmt& s) { return s.as<Gemm>() && s.as<Gemm>()->is_sparse(); };

std::optional<Use> find(const Request& of, const Wish& wish, std::string& why) {
  const auto shared = analysis::shared_tile(of.program, of.launch, *wish.tile, why);
  return shared ? std::optional(Use{.of = &kPairs, .tile = shared->tile}) : std::nullopt;
}

Offer offer(const Request& of, const Plan& alone) {
  if (!alone.has_loader() || alone.takes(Role::Takes::IterationsInTurn)) return {};
  const auto price = plan::price(of.program, of.launch, alone, of.target);
  if (!price || price->limit != "l2") return {};
  if (price->over_lines == 0 && any_in(of.launch.body, is_sparse_product)) return {};
  const WorthPairs& worth = price->over_lines == 0 ? kWholeLines : kRaggedLines;
  if (price->microseconds < worth.microseconds) return {};
  Offer out{.wishes = {}, .below = price->microseconds * worth.price};
  for (std::string& tile : analysis::tiles_to_share(of.program, of.launch))
    out.wishes.push_back({.of = &kPairs, .tile = std::move(tile)});
  return out;
}

std::vector<std::string> otherwise(const Plan& plan, const ProgramTables& program, const Launch& launch) {
  std::vector<std::string> out;
  if (plan.work.has(kPairs) || plan.work.instead_of_kind() || plan.takes(Role::Takes::IterationsInTurn)) return out;
  for (const std::string& tile : analysis::tiles_to_share(program, launch))
    out.push_back(fmt::format("work {} {}={}", word(kWorkWords, plan.work.kind), kPairs.field.name, tile));
  return out;
}

void price_of_pairs(const Use& use, Terms& terms) {
  terms.halved = use.tile, terms.least_turn = kPairTurn, terms.in_step = kPairsOfWholeLines;
}

}  // namespace

constinit const Schedule kPairs = {
    .word = "pairs",
    .says = "neighbouring blocks are pairs of a cluster: each brings half of '{}' for both",
    .fact = "pairs",
    .field = {.name = "pairs"},
    .find = find,
    .offer = offer,
    .otherwise = otherwise,
    .price = price_of_pairs,
};

}  // namespace tilewright::plan
