// Launches whose blocks share the turns of a loop of products: each tile of the grid gets a cluster of them.
#include "analysis/summed_turns.h"
#include "ir/extent.h"
#include "plan/schedule.h"

namespace tilewright::plan {

using namespace ir;

namespace {

constexpr int64_t kMostParts = 8;  // blocks of a cluster that every device of sm_90 has room for (CUDA guide)
// Of sums that go to the first block of a cluster (assumed), and until it has the last of them (fitted, as price.cpp
// says).
constexpr double kPeerBytes = 32, kPeerLatency = 1500;
// By how much longer the L2 cache takes for a tile that blocks share which are not neighbours within a cluster (fitted
// to half of the shapes of 2026-11-30-library-tiles.json: 128x5120x27648 in 64x160 tiles takes 109 us by two, in 128x96
// 95, where one block reads each column).
constexpr double kApart = 0.44;
constexpr int64_t kFewestTurns = 24;  // of a block that shares a loop of several products

// Measured on an H200 (bench/results/2026-11-23-split.json): 22 tiles of 128x4096x16384 take 124 us alone, 72 in pairs,
// 57 by three; 32 of 128x4096x7168 40, 31, 32 and 42 by four, whose clusters do not all find room. How much of the sum
// each block has to make: of 222 products (2026-11-28-split.json) those in pairs of at least 960 elements a block take
// 0.90 of the time in geometric mean (5 of 43 more, by up to a tenth), of 750 to 900 0.98 (14 of 44 more), of fewer
// than 450 1.13; by three blocks of at least 480 elements 0.79 (2 of 46 more); four of fewer than 900 take longer than
// three, of more 3% less.
constexpr std::pair<int64_t, int64_t> kShares[] = {{4, 900}, {3, 480}, {2, 960}};  // blocks, least elements of each

// Among how many blocks the turns are shared where nobody says: a launch of products whose tiles leave at least half of
// the multiprocessors idle, of so many turns that handing over is worth it. 1: it stays as it is.
int64_t blocks_to_share(const ProgramTables& program, const Launch& launch, const target::GpuTarget& target) {
  const auto tiles = constant_int(blocks_of(launch));
  if (!tiles || *tiles <= 0) return 1;
  std::string why;
  const auto found =
      *tiles * 2 <= target.multiprocessors ? analysis::split_loop(program, launch, 2, why) : std::nullopt;
  if (!found) return 1;
  const int64_t turns = found->turns.value_or(0);
  for (const auto& [blocks, least] : kShares) {
    const bool fit = *tiles * blocks <= target.multiprocessors / (blocks > 2 ? 2 : 1);
    const bool worth = found->depth ? turns * *found->depth >= least * blocks : turns >= kFewestTurns * blocks;
    if (fit && worth) return blocks;
  }
  return 1;
}

std::optional<Use> find(const Request& of, const Wish& wish, std::string& why) {
  if (!analysis::split_loop(of.program, of.launch, *wish.number, why)) return std::nullopt;
  return Use{&kSplit, *wish.number};
}

Offer offer(const Request& of, const Plan&) {
  const int64_t blocks = blocks_to_share(of.program, of.launch, of.target);
  return blocks > 1 ? Offer{{{&kSplit, blocks}}, {}} : Offer{};
}

std::vector<std::string> otherwise(const Plan& plan, const ProgramTables&, const Launch&) {
  std::vector<std::string> out;
  const Use* own = plan.work.find(kSplit);
  for (const int64_t blocks : {2, 4})
    if (!plan.is_persistent() && (!own || own->number != blocks))
      out.push_back(fmt::format("work {} {}={}", kSplit.word, kSplit.field.name, blocks));
  return out;
}

void price(const Use& use, Terms& terms) {
  terms.blocks_a_tile = use.number, terms.latency = kPeerLatency, terms.apart = kApart;
  terms.clocks_a_byte = static_cast<double>(use.number - 1) / kPeerBytes;
}

}  // namespace

constinit const Schedule kSplit = {
    .word = "split",
    .says = "{} blocks of a cluster share the turns of the loop of products; the first adds their sums up",
    .fact = "parts",
    .is_work = true,
    .field = {.name = "k", .least = 2, .most = kMostParts, .missing = "it does not say among how many blocks"},
    .gives_way = "no turns shared",
    .find = find,
    .offer = offer,
    .otherwise = otherwise,
    .price = price,
};

}  // namespace tilewright::plan
