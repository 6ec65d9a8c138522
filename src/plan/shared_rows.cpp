// Launches whose rows blocks share: each tile of the grid gets a cluster of them, and each has a part of the columns.
#include "analysis/shared_rows.h"

#include "ir/any_in.h"
#include "plan/schedule.h"
#include "plan/words.h"

namespace tilewright::plan {

using namespace ir;

namespace {

constexpr int64_t kFewestParts = 2, kMostParts = 8;  // blocks of a cluster that every device of sm_90 has room for
constexpr int64_t kUnit = 8;                         // columns of a part come by this many: vectors of 16-bit elements
// Of a tile, in blocks of 128 threads: 64 in each. What a block has room for in registers is faster by itself (an H200,
// bench/results/2026-11-30-rows.json, of a copy: softmax of 32,768 columns 0.77 alone and 0.60 by four blocks, of
// 65,536 0.50 and 0.58 by eight, of 131,072 0.16 and 0.58; RMSNorm of 65,536 0.66 and 0.86).
constexpr int64_t kElements = 8192, kElementsOfOne = 40960;

// Where nobody asks, of tiles that are too large for a block.
std::optional<int64_t> parts_of(const Request& of, const Wish* wish, std::string& why) {
  const auto rows = analysis::rows_to_share(of.program, of.launch, why);
  if (!rows) return std::nullopt;
  int64_t parts = wish ? *wish->number : kFewestParts;
  while (!wish && parts < kMostParts && rows->elements > parts * kElements) parts *= 2;
  if (rows->columns % (parts * kUnit) != 0)
    why = fmt::format("{} columns are no whole {}s for each of {} blocks", rows->columns, kUnit, parts);
  return why.empty() && (wish || rows->elements > kElementsOfOne) ? std::optional(parts) : std::nullopt;
}

std::optional<Plan> plan_whole(const Request& of, std::string& why) {
  const Wish* wish = of.hints.wish_for(kSharedRows);
  if (!of.target.has.tma || (!wish && (of.hints.work || of.hints.no_loader || holds<Gemm>(of.launch.body))))
    return std::nullopt;
  const auto parts = parts_of(of, wish, why);
  if (!wish) why.clear();  // nobody has asked for it
  if (!parts) return std::nullopt;
  Plan plan;
  plan.whole = &kSharedRows, plan.work.uses = {{&kSharedRows, *parts}};
  return plan;
}

std::vector<std::string> otherwise(const Plan& plan, const ProgramTables& program, const Launch& launch) {
  std::vector<std::string> out;
  if (std::string why; !analysis::rows_to_share(program, launch, why)) return out;
  const Use* own = plan.work.find(kSharedRows);
  for (int64_t parts = kFewestParts; parts <= kMostParts; parts *= 2)
    if (!own || own->number != parts)
      out.push_back(fmt::format("work {} {}={}", kSharedRows.word, kSharedRows.field.name, parts));
  return out;
}

void price(const Use& use, Terms& terms) { terms.parts = use.number; }

}  // namespace

constinit const Schedule kSharedRows = {
    .word = "rows",
    .says = "{} blocks of a cluster share the rows: each has a part of the columns",
    .fact = "parts_of_rows",
    .is_work = true,
    .field = {.name = "k",
              .least = kFewestParts,
              .most = kMostParts,
              .missing = "it does not say among how many blocks"},
    .whole = plan_whole,
    .otherwise = otherwise,
    .price = price,
};

}  // namespace tilewright::plan
