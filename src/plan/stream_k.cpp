// Stream-K: of the tiles that are no whole waves, each block takes an equal run of the turns of their loops.
#include "analysis/load_rings.h"
#include "analysis/summed_turns.h"
#include "plan/schedule.h"
#include "plan/words.h"

namespace tilewright::plan {

namespace {

constexpr int64_t kMostBlocks = 1 << 20;

std::optional<Use> find(const Request& of, const Wish& wish, std::string& why) {
  const int64_t blocks = wish.number.value_or(of.target.multiprocessors);
  if (blocks > of.target.multiprocessors)
    why = fmt::format("{} blocks do not run at once on {} multiprocessors", blocks, of.target.multiprocessors);
  else if (analysis::tensors_stand_by_names(of.program, of.launch))
    why = "where a tensor lies is computed by the tile of the grid";
  else if (analysis::streamed_loop(of.program, of.launch, why))
    return Use{&kStreamK, blocks};
  return std::nullopt;
}

std::vector<std::string> otherwise(const Plan& plan, const ir::ProgramTables&, const ir::Launch&) {
  if (plan.work.has(kStreamK) || plan.takes(Role::Takes::IterationsInTurn)) return {};
  return {fmt::format("work {}", kStreamK.word)};
}

void price(const Use& use, Terms& terms) {
  terms.runs = use.number, terms.trips = 2;  // one block leaves a sum, another fetches it
}

}  // namespace

constinit const Schedule kStreamK = {
    .word = "stream_k",
    .says =
        "{} blocks take equal runs of turns of the tiles that are no whole waves; who ends a tile adds all sums of "
        "it",
    .is_work = true,
    .field = {.name = "blocks", .least = 1, .most = kMostBlocks},
    .several_tiles = true,
    .find = find,
    .otherwise = otherwise,
    .price = price,
};

}  // namespace tilewright::plan
