// A warp of its own that stores what loops leave in their turns: those who compute write it to shared memory, tell that
// warp, and wait for nothing but a free place.
#include "analysis/stored_once.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "plan/price.h"
#include "plan/schedule.h"
#include "plan/words.h"

namespace tilewright::plan {

using namespace ir;

namespace {

constexpr int64_t kMostPlaces = 8;
// Taken if its price is below so much of the other's: a result of a long loop's is not worth a barrier more (assumed).
constexpr double kWorth = 0.95;
// Of what only calls know: how much of a turn its results are hardly depends on it.
constexpr int64_t kAssumed = 4096;

Substitution assumed(const ProgramTables& program) {
  Substitution out;
  const auto assume = [&](VarId v) {
    if (program.var(v).type.is_int()) out[v] = constant(program.var(v).type, kAssumed);
  };
  for (VarId v : program.symbols) assume(v);
  for (const Param& p : program.params)
    if (!p.is_tensor()) assume(p.var);
  return out;
}

// Whether a loop's turns copy tiles from registers to tensors that TMA may store to.
bool leaves_in_turns(const ProgramTables& program, const Launch& launch) {
  const analysis::StoredTensors stored = analysis::stored_tensors(program, launch);
  bool found = false;
  walk(launch.body, [&](const Stmt& loop) {
    if (!loop.as<For>()) return;
    walk(loop.as<For>()->body, [&](const Stmt& s) {
      const auto* copy = s.as<Copy>();
      if (!copy || program.buffer(copy->from.buffer).space != Space::Fragment) return;
      const BufferId to = program.root(copy->to.buffer);
      found = found || stored.once.contains(to) || stored.again.contains(to);
    });
  });
  return found;
}

std::optional<Use> find(const Request& of, const Wish& wish, std::string& why) {
  if (leaves_in_turns(of.program, of.launch)) return Use{&kStoreRole, wish.number.value_or(1)};
  why = "no loop leaves a tile in its turns that TMA may store";
  return std::nullopt;
}

Offer offer(const Request& of, const Plan& alone) {
  if (!alone.has_loader() || !leaves_in_turns(of.program, of.launch)) return {};
  const Substitution known = assumed(of.program);
  Plan beside = alone;
  beside.work.uses.push_back({&kStoreRole, 1});
  const auto price = plan::price(of.program, of.launch, alone, of.target, known),
             its = plan::price(of.program, of.launch, beside, of.target, known);
  if (!price || !its || its->microseconds > kWorth * price->microseconds) return {};
  return {.wishes = {Wish{.of = &kStoreRole, .number = 1}}, .below = {}};
}

std::vector<std::string> otherwise(const Plan& plan, const ProgramTables& program, const Launch& launch) {
  if (plan.work.instead_of_kind() || !leaves_in_turns(program, launch)) return {};
  const std::string work = fmt::format("work {}", word(kWorkWords, plan.work.kind));
  if (plan.work.has(kStoreRole)) return {work};
  return {fmt::format("{} {}=1", work, kStoreRole.field.name)};
}

void price_of_role(const Use&, Terms& terms) { terms.stores_beside = true; }

}  // namespace

constinit const Schedule kStoreRole = {
    .word = "store_role",
    .says = "a warp of its own stores what loops leave in their turns, from {} places in shared memory",
    .fact = "store_places",
    .field = {.name = "store_places", .least = 1, .most = kMostPlaces},
    .find = find,
    .offer = offer,
    .otherwise = otherwise,
    .price = price_of_role,
};

}  // namespace tilewright::plan
