#include "plan/price.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/panels.h"
#include "analysis/warp_grid.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/match.h"
#include "ir/names.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"
#include "plan/residency.h"
#include "plan/schedule.h"
#include "target/mma.h"
#include "target/wgmma.h"

namespace tilewright::plan {

using namespace ir;
using namespace target;

namespace {

// The constants of the model beside the rates of units. Those that are marked so are fitted to half of the shapes of
// 922 random products on an H200 (docs/cost_model.md says which, and how near the others are). Units that run beside
// each other are in each other's way the more, the nearer they are to equally busy, and so are they and the device's
// memory: together they take the norm of these powers of what each takes (fitted).
constexpr double kUnits = 7.5, kUnitsAndMemory = 3.65;
// A row of a tile is a line of the cache, or reaches into the next one (fitted).
constexpr double kLineBytes = 128, kOverTwoLines = 1.95;
// Of the time that its bytes take, which a row of a tile takes that is less than a line (fitted).
constexpr double kShortRow = 0.57;
// Of the time that the L2 cache takes, what is for the sake of other multiprocessors: of few each gets more (fitted).
constexpr double kOthers = 0.42;
// Of the L2 cache's time, what operands take that stay in it; and by how much longer those take that neighbouring
// blocks do not share, the less of all operands stays there (fitted).
constexpr double kNear = 0.86, kFar = 0.31, kStayingBytes = 25e6;
// Clocks around a product whose operands its own threads bring: their barrier, its latency (assumed).
constexpr double kTurnOfThreads = 150;
// Of the less busy of products and other code, where they run beside each other (fitted).
constexpr double kInTheWay = 0.2;
// The same of loops in which a warpgroup's products and its other code wait for each other, divided by the warpgroups:
// only what the others do runs beside (fitted to attention of 4 x 4096 in bench/results/2026-11-30-attention.json; of
// products of float8 with one scale in tiles of 128x256 it gives 684 us for 691 measured, 2026-11-30-fp8-2.json).
constexpr double kInTurns = 0.75;
// Of the multiprocessors, those that find themselves in clusters of more than two blocks: others are left over where
// they lie together in groups of 16 or 18 (bench/results/2026-11-25-library.json, an H100: 33 clusters of three run at
// a time and 43 do not, 22 of four do and 32 do not).
constexpr double kInClusters = 0.78;
// Clocks around a product for which its turn waits before it releases what it multiplied (fitted).
constexpr double kTurnAlone = 170;
// Clocks from a release until the slot is full again: a slot's round is this and the product that uses it (fitted to
// 2026-11-29-slots.json); and of a turn, however many slots there are (fitted).
constexpr double kRoundTrip = 1200, kLeastTurn = 240;
// Clocks of a loader's warp for each cp.async of its threads, and around those of a turn (an H200, gathered rows and
// convolutions in steps of 32 and 64 elements: 370 to 450 a turn of two to eight,
// bench/results/2026-11-30-gathers.json).
constexpr double kGather = 16, kTurnOfGathers = 330, kGatheredBytes = 16;
// Clocks until TMA has written a line's zeros for what lies beyond a tensor: three times what a line of the L2 cache
// takes (fitted to six products of 16 and 64 rows, bench/results/2026-11-28-random-3.json and -4.json: 6.1 to 7.0).
constexpr double kLineBeyond = 6.5;
// What others have written into the L2 cache leaves it for what comes from memory (fitted to the same products).
constexpr double kLeavingBytes = 20e6;
constexpr double kBlock = 800;   // of a block that does next to nothing: it begins and waits once (assumed)
constexpr double kFirst = 4400;  // clocks before the first product and behind the last (fitted)

double together(double a, double b, double power) {
  const auto [less, more] = std::minmax(a, b);
  return more > 0 ? more * std::pow(1 + std::pow(less / more, power), 1 / power) : 0;
}

bool is_in(const ProgramTables& p, const Region& r, Space space) { return p.buffer(p.root(r.buffer)).space == space; }

// How warpgroups share a product; none: no instruction of theirs does it.
std::optional<WarpGrid> warpgroups_of(const ProgramTables& p, const Gemm& g, const ProductSize& size, int64_t threads,
                                      const target::GpuTarget& target) {
  const DType a = operand_type(p, g, g.a), b = operand_type(p, g, g.b), c = p.buffer(g.c.buffer).type;
  const auto* i = target.has.wgmma ? target::wgmma_for(a, b, c, g.is_sparse()) : nullptr;
  if (!i || threads % target::kWarpgroupThreads != 0) return std::nullopt;
  const auto grid = analysis::divide_warps(g.policy, size.rows, size.columns, threads / target::kWarpgroupThreads,
                                           target::kWgmmaRows, 8, true);
  const int64_t at_once = grid ? i->most_columns(size.columns / grid->n) : 0;
  const auto fits = [&](const Region& r, bool k_is_last, int64_t step, int64_t width) {
    return analysis::misfit_of_panels(p, r, {k_is_last, i->transposes, step, width}).empty();
  };
  if (at_once == 0 || !fits(g.b, g.transpose_b, i->k(), at_once)) return std::nullopt;
  if (is_in(p, g.a, Space::Shared) && !fits(g.a, !g.transpose_a, i->a_k(), size.rows / grid->m)) return std::nullopt;
  return grid;
}

double slabs_of(double rows) { return std::max(rows / target::kWgmmaRows, 1.0); }

class Pricer {
 public:
  Pricer(const ProgramTables& p, const Launch& launch, const Plan& plan, const target::GpuTarget& target,
         const Machine& machine, Substitution values)
      : p_(p), launch_(launch), plan_(plan), target_(target), machine_(machine), known_(std::move(values)) {
    for (size_t d = 0; d < launch.grid.size(); ++d) {
      const int64_t extent = known(launch.grid[d]);
      tiles_ *= static_cast<double>(extent);
      // Loops whose turns depend on the block take those of one in the middle.
      known_[launch.block[d]] = constant(i32, (extent - 1) / 2);
    }
    for (const Use& use : plan.work.uses) use.of->price(use, terms_);
    threads_ =
        plan.has_loader() ? static_cast<int64_t>(warpgroups()) * target::kWarpgroupThreads : launch.thread_count();
    turned_ = turned_products(p_, launch_, threads_, target_);
  }

  // None: something is not known.
  std::optional<Price> run() {
    count(launch_.body, 1 / static_cast<double>(terms_.parts));
    tiles_ *= static_cast<double>(terms_.blocks_a_tile * terms_.parts) * paired_;
    for (BufferId id : added_to_) out_.epilogue += terms_.clocks_a_byte * bytes_of_tile(id);
    out_.epilogue += terms_.latency;
    double fix_up = 0;  // sums that one block leaves and another adds
    for (BufferId id : added_to_) fix_up += terms_.trips * bytes_of_tile(id) / machine_.result_bytes;
    if (terms_.runs > 0) fix_up += out_.epilogue;
    const double moved = memory_bytes(true) + memory_bytes(false);
    out_.memory = (moved + std::min(moved, kLeavingBytes)) / machine_.memory_bytes;
    const auto beside = static_cast<double>(plan_.has_loader() ? plan_.work.blocks_per_multiprocessor
                                                               : blocks_beside(p_, launch_, target_));
    const int64_t blocks = terms_.runs > 0 ? terms_.runs : plan_.work.blocks;
    const auto taken = static_cast<double>(blocks > 0 ? blocks : multiprocessors_taken());
    double products = out_.matrix;
    for (const double waiting : {slots_, alone_}) products = together(products, waiting / beside, kUnits);
    // Blocks with a loader fill a multiprocessor: all of a wave end together. Of others the next begins where one ends.
    const double wave = plan_.has_loader() ? beside : 1;
    out_.waves = static_cast<int64_t>(std::ceil(tiles_ / (taken * wave)));
    // A loop over tiles has as few blocks as make no more waves.
    const double in_use = plan_.is_persistent() ? std::ceil(tiles_ / static_cast<double>(out_.waves)) : tiles_ / beside;
    const double idle = std::max(0.0, 1 - in_use / static_cast<double>(target_.multiprocessors));
    out_.l2 *= 1 - kOthers * idle, out_.over_lines *= 1 - kOthers * idle;
    // Where products run on beside other code, the busier of the two decides, but for what they wait for each other.
    const bool run_on = !plan_.orders.empty() || beside > 1;
    const auto [less, more] = std::minmax(products, out_.issue);
    const bool skewed = std::ranges::any_of(plan_.orders, [](const Order& o) { return o.how == Order::How::Skewed; });
    const bool in_turns = skewed || (plan_.has_loader() && !run_on && apart_ && warpgroups() > 1);
    const double in_the_way = in_turns ? std::min(kInTurns / warpgroups(), 1.0) : run_on ? kInTheWay : 1;
    const double computing = more + less * in_the_way + waits_ / beside;
    const bool ahead = plan_.has_loader() || plan_.brings_ahead() || beside > 1 || out_.matrix > 0;
    const bool hides_results =
        out_.waves > 1 && (plan_.takes(Role::Takes::TilesInTurn) || plan_.brings_ahead() || beside > 1);
    double busy = computing;
    for (const double unit : {out_.shared, out_.l2, stored_, hides_results ? out_.epilogue : 0})
      busy = ahead ? together(busy, unit, kUnits) : busy + unit;
    if (!plan_.is_persistent() && terms_.runs == 0) busy = std::max(busy, kBlock / beside);
    const double all_waves = static_cast<double>(out_.waves),
                 taken_waves = terms_.runs > 0 ? tiles_ / taken : all_waves;
    const double clocks = taken_waves * busy * wave + (hides_results ? 1 : all_waves) * out_.epilogue + kFirst + fix_up;
    // Beside the first and the last of a block's turns little comes from memory.
    const double apart = plan_.has_loader() ? kFirst + out_.epilogue + fix_up : 0;
    const double inner = (clocks - apart) / machine_.clock;
    out_.microseconds =
        (plan_.has_loader() ? together(inner, out_.memory, kUnitsAndMemory) : std::max(inner, out_.memory)) +
        apart / machine_.clock + machine_.launch;
    if (out_.over_lines == 0) out_.microseconds *= terms_.in_step;
    const std::pair<double, std::string_view> units[] = {{products, "matrix"},
                                                         {out_.issue, "issue"},
                                                         {out_.shared, "shared"},
                                                         {out_.l2, "l2"},
                                                         {out_.epilogue, "results"}};
    out_.tiles = tiles_ / paired_, out_.places = all_waves * taken * wave, out_.multiprocessors = taken;
    out_.barriers = waits_;
    out_.limit = out_.memory > clocks / machine_.clock ? "memory" : std::ranges::max(units).second;
    return is_known_ ? std::optional(out_) : std::nullopt;
  }

 private:
  // A name whose value is long is not known: no count of anything is that.
  void name(const Let& n) {
    if (const auto value = spelled_out(n.value, known_)) known_[n.var] = *value;
  }
  int64_t known(const Expr& e) {
    const auto value = constant_int(substitute(e, known_));
    is_known_ = is_known_ && value;
    return value.value_or(1);
  }
  double extent(const Region& r, size_t from_last) {
    return static_cast<double>(known(r.extent[r.extent.size() - 1 - from_last]));
  }
  double points(const std::vector<Expr>& extents) {
    double n = 1;
    for (const Expr& e : extents) n *= static_cast<double>(known(e));
    return n;
  }
  double bytes(const Region& r) { return points(r.extent) * p_.buffer(r.buffer).type.bits / 8; }
  bool is_in(const Region& r, Space space) const { return plan::is_in(p_, r, space); }

  void count(const Body& body, double times) {
    const int64_t threads = threads_;  // a role of the program's own has others
    for (const Stmt& s : body) {
      if (const auto* n = s.as<For>()) {
        int64_t turns = std::max<int64_t>(known(n->extent), 0);
        // Of a loop that blocks share, those of the block that has most.
        if (n->kind == LoopKind::Pipelined) turns = (turns + terms_.blocks_a_tile - 1) / terms_.blocks_a_tile;
        // What depends on the turn is as in one in the middle.
        known_[n->var] = add(substitute(n->begin, known_), constant(p_.var(n->var).type, turns / 2));
        ++loops_, count(n->body, times * static_cast<double>(turns)), --loops_;
        if (n->kind == LoopKind::Pipelined) turn_alone(*n, times * static_cast<double>(turns));
      } else if (const auto* n = s.as<Let>())
        name(*n);
      else if (const auto* n = s.as<ir::Role>())
        has_roles_ = true, threads_ = n->end - n->begin, count(n->body, times);
      else if (const auto* n = s.as<If>())
        branch(*n, times);
      else if (const auto* n = s.as<Gemm>())
        multiply(*n, times);
      else if (const auto* n = s.as<Copy>())
        move(*n, times);
      else if (const auto* n = s.as<Map>())
        apart_ = apart_ && !(loops_ > 0 && stores_on_chip(*n)), compute(*n, times);
      else if (s.as<While>())
        is_known_ = false;
      else
        out_.issue += times * combined(s) / machine_.plain;
      threads_ = threads;
    }
  }
  bool stores_on_chip(const Map& m) const {
    return std::ranges::any_of(m.body, [&](const Stmt& s) {
      const auto* store = s.as<Store>();
      return store && p_.buffer(p_.root(store->to.buffer)).space == Space::Shared;
    });
  }
  double combined(const Stmt& s) {
    return match(s->op, [&]<class Op>(const Op& op) {
      if constexpr (CombinesAlong<Op>)
        return points(op.from.extent);
      else
        return 0.0;
    });
  }
  void branch(const If& n, double times) {
    const auto taken = constant_int(substitute(n.condition, known_));
    if (taken != 0) count(n.then_body, times);
    if (!taken || *taken == 0) count(n.else_body, times);
  }
  // A turn of a loop that does nothing but multiply takes as long as its slot takes to come round, and without
  // another's product beside it as its own product and what stands around that.
  void turn_alone(const For& loop, double turns) {
    const Gemm* product = nullptr;
    for (const Stmt& s : loop.body) {
      const auto* g = s.as<Gemm>();
      const auto* map = s.as<Map>();
      if (!g && !s.as<Copy>() && !s.as<Let>() && !(map && (is_gathered(*map) || is_of_rows(*map)))) return;
      if (g && std::exchange(product, g)) return;
    }
    if (!product || !plan_.has_loader() || plan_.takes(Role::Takes::IterationsInTurn)) return;
    int64_t slots = INT64_MAX;
    for (const Ring& r : plan_.rings)
      if (r.ahead) slots = std::min(slots, r.slots);
    const bool in_turn = plan_.takes(Role::Takes::TilesInTurn), in_pairs = terms_.halved.valid();
    const double round = (kRoundTrip + product_) / static_cast<double>(slots);
    slots_ += turns * std::max({round, kLeastTurn, gathered_, in_turn ? terms_.least_turn : 0});
    // What stands around one team's product runs beside the other's, if it has one; pairs of blocks keep step.
    const double by = in_pairs ? slabs(*product) : warpgroups(), alone = std::max(product_, fed_) / by + kTurnAlone;
    const bool beside_others = in_turn && !in_pairs && tiles_ > static_cast<double>(plan_.work.blocks);
    if (!plan_.order_of(loop.var)) alone_ += turns * alone / (beside_others ? 2 : 1);
  }
  double slabs(const Gemm& g) { return slabs_of(extent(g.c, 1)); }
  // That share a product: the program's, or a team's.
  double warpgroups() const {
    const auto computes = std::ranges::find(plan_.roles, Role::Job::Compute, &Role::job);
    return static_cast<double>(computes->warps * kWarpThreads / target::kWarpgroupThreads);
  }
  int64_t multiprocessors_taken() const {
    const int64_t all = target_.multiprocessors, parts = terms_.blocks_a_tile;
    return parts > 2 ? static_cast<int64_t>(static_cast<double>(all) * kInClusters) / parts * parts : all;
  }
  double bytes_of_tile(BufferId id) const {
    return static_cast<double>(elements_on_chip(p_.buffer(id)) * p_.buffer(id).type.bits) / 8;
  }
  void multiply(const Gemm& g, double times) {
    added_to_.insert(g.c.buffer);
    const size_t rank = g.c.extent.size(), depth = g.a.extent.size() - (g.transpose_a ? 2 : 1);
    const ProductSize size{known(g.c.extent[rank - 2]), known(g.c.extent[rank - 1]), known(g.a.extent[depth])};
    const bool turned = turned_.contains(&g);
    const ProductClocks clocks =
        turned ? clocks_of(p_, transpose_of(g), {size.columns, size.rows, size.depth}, threads_, target_, &machine_)
               : clocks_of(p_, g, size, threads_, target_, &machine_);
    product_ = clocks.matrix, fed_ = clocks.shared;
    out_.matrix += times * product_, out_.shared += times * fed_;
    if (!plan_.has_loader() && !has_roles_) waits_ += times * kTurnOfThreads;
  }
  void move(const Copy& c, double times) {
    const bool arrives = is_in(c.from, Space::Global), leaves = is_in(c.to, Space::Global);
    if (arrives) {
      const bool halved = c.to.buffer == terms_.halved;
      const double part = halved ? 0.5 : 1;
      for (size_t d = launch_.grid.size(); halved && d-- > 0;)
        if (const int64_t n = known(launch_.grid[d]); n > 1 && !uses(c, d))
          paired_ = static_cast<double>(n + n % 2) / static_cast<double>(n);
      const double clocks =
          times * bytes_within(c) / machine_.l2_bytes * part * short_rows(c) * kNear * (1 + longer(c));
      out_.l2 += clocks * lines_of_rows(c), out_.over_lines += clocks * (lines_of_rows(c) - 1);
      if (plan_.has_loader()) out_.l2 += turns_with_zeros(c, times) * lines_beyond(c) * kLineBeyond * part;
    }
    double& leaving = loops_ > 0 && terms_.stores_beside ? stored_ : out_.epilogue;
    if (leaves) leaving += times * bytes(c.to) / machine_.result_bytes;
    if (is_in(c.to, Space::Shared) && !arrives) out_.shared += times * bytes(c.to) / machine_.shared_bytes;
    if (is_in(c.from, Space::Shared)) out_.shared += times * bytes(c.from) / machine_.shared_bytes;
  }
  bool uses(const Copy& c, size_t d) const {  // where it is depends on that number of the block
    return std::ranges::any_of(c.from.min, [&](const Expr& e) { return used_vars(e).contains(launch_.block[d]); });
  }
  // By how much longer a tile takes that blocks which are neighbours in the launch's order do not bring, or from other
  // clusters.
  double longer(const Copy& c) {
    const bool swizzled = launch_.swizzle.panel != 0 && launch_.block.size() > 1;
    const size_t along = swizzled && launch_.swizzle.order == RasterOrder::Row ? 1 : 0;
    const double reads = memory_bytes(true);
    if (uses(c, along)) return swizzled ? kFar * reads / (reads + kStayingBytes) : 0;
    return known(launch_.grid[along]) > 1 ? terms_.apart : 0;
  }
  // Of the time that its bytes take, what they take that TMA brings in rows of a panel.
  double short_rows(const Copy& c) {
    const auto span = static_cast<double>(analysis::panel_span(p_, p_.root(c.to.buffer)));
    if (!plan_.has_loader() || span == 0) return 1;
    const double row = extent(c.to, 0) * p_.buffer(c.to.buffer).type.bits / 8;
    return 1 + kShortRow * std::max(0.0, std::ceil(row / span) * kLineBytes / row - 1);
  }
  // Boxes that cover a tensor along a dimension, of which the last may reach beyond it.
  struct Cover {
    double boxes = 1, box = 1, beyond = 0;  // elements of a box, and of the last one those beyond
    double inside() const { return 1 - beyond / (boxes * box); }
  };
  Cover cover(const Copy& c, size_t d) {
    const auto all = static_cast<double>(known(p_.buffer(c.from.buffer).shape[d]));
    const auto box = static_cast<double>(known(c.from.extent[d]));
    if (all <= 0 || box <= 0) return {};
    const double boxes = std::ceil(all / box);
    return {boxes, box, boxes * box - all};
  }
  // Of a tile that may be larger than what its tensor has there, what there is in the mean.
  double bytes_within(const Copy& c) {
    double part = 1;
    for (size_t d = 0; d < c.from.extent.size(); ++d) part *= cover(c, d).inside();
    return bytes(c.to) * part;
  }
  // Of a tile in shared memory, pieces of rows of at most a line's bytes for which TMA finds nothing in the tensor, in
  // the mean over the tiles: rows beyond its rows, and panels beyond its columns.
  double lines_beyond(const Copy& c) {
    if (c.im2col.present()) return 0;
    double rows = 1, rows_inside = 1;
    for (size_t d = 0; d + 1 < c.from.extent.size(); ++d) {
      const Cover along = cover(c, d);
      rows *= along.box, rows_inside *= along.box * along.inside();
    }
    const Cover columns = cover(c, c.from.extent.size() - 1);
    const double of_line = kLineBytes * 8 / p_.buffer(c.from.buffer).type.bits;
    const double panels = std::ceil(columns.box / of_line), beyond = std::floor(columns.beyond / of_line);
    return rows * panels - rows_inside * (panels - beyond / columns.boxes);
  }
  // How often all of its box comes: in a ring that is clipped only until each slot has its zeros.
  double turns_with_zeros(const Copy& c, double times) const {
    for (const Ring& r : plan_.rings)
      if (r.boxes == Ring::Boxes::Clipped && std::ranges::find(r.tiles, c.to.buffer) != r.tiles.end())
        return std::min(times, static_cast<double>(r.slots));
    return times;
  }
  // How many times a line's bytes move for each line of a tile's rows, which shared memory has in pieces of one.
  double lines_of_rows(const Copy& c) {
    const Buffer& b = p_.buffer(c.from.buffer);
    const double of_an_element = b.type.bits / 8.0;
    if (b.rank() < 2 || std::fmod(static_cast<double>(known(b.shape.back())) * of_an_element, kLineBytes) == 0)
      return 1;
    const double row = is_in(c.to, Space::Shared) ? kLineBytes : extent(c.from, 0) * of_an_element;
    return 1 + (kOverTwoLines - 1) * std::min(1.0, kLineBytes / std::max(row, 1.0));
  }
  // Whether the loader's threads bring the map's tile.
  bool is_gathered(const Map& m) const {
    const auto* store = m.body.empty() ? nullptr : m.body.back().as<Store>();
    const bool by_threads = plan_.has_loader() && !plan_.takes(Role::Takes::IterationsInTurn);
    return store && by_threads && std::ranges::any_of(plan_.rings, [&](const Ring& r) {
             return std::ranges::find(r.tiles, store->to.buffer) != r.tiles.end();
           });
  }
  // Whether the map says which rows a loader's threads gather.
  bool is_of_rows(const Map& m) const {
    const auto* store = m.body.empty() ? nullptr : m.body.back().as<Store>();
    return store && gathered_ > 0 && p_.buffer(store->to.buffer).type.is_integral() &&
           p_.buffer(store->to.buffer).space == Space::Fragment;
  }
  void gather(const Map& m, double times) {
    const double of_point = p_.buffer(m.body.back().as<Store>()->to.buffer).type.bits / 8.0;
    const double moved = points(m.extents) * of_point;
    out_.l2 += times * moved / machine_.l2_bytes * kNear;
    gathered_ = kTurnOfGathers + moved / kGatheredBytes / target::kWarpgroupThreads * kGather;
  }
  void compute(const Map& m, double times) {
    if (is_gathered(m)) return gather(m, times);
    double plain = 0, special = 0, conversions = 0;
    const auto look = [&](const Expr& e) {
      walk(e, [&](const Expr& x) {
        special += x.as<Intrinsic>() ? 1 : 0, conversions += x.as<Cast>() ? 1 : 0;
        plain += x.as<Binary>() || x.as<ir::Sum>() || x.as<Select>() ? 1 : 0;
      });
    };
    walk(m.body, [&](const Stmt& s) {
      if (const auto* n = s.as<Store>()) look(n->value);
      if (const auto* n = s.as<Let>()) look(n->value);
      if (const auto* n = s.as<Atomic>(); n && n->value) look(n->value);
    });
    const double by_special = special / machine_.special, all = (special + conversions + plain) / machine_.plain;
    const double all_points = times * points(m.extents);
    out_.special += all_points * by_special;
    out_.issue += all_points * std::max({by_special, conversions / machine_.conversions, all});
  }
  // Of the tensors that the launch reads or writes, all of each once.
  double memory_bytes(bool reads) {
    double bytes = 0;
    std::set<BufferId> tensors;
    walk(launch_.body, [&](const Stmt& s) {
      for (const Effect& e : effects_of(s).list)
        if (e.region.valid() && e.access != Access::Order && (e.access == Access::Read) == reads)
          tensors.insert(p_.root(e.region.buffer));
    });
    for (BufferId id : tensors) {
      const Buffer& b = p_.buffer(id);
      if (b.space == Space::Global) bytes += points(b.shape) * b.type.bits / 8;
    }
    return bytes;
  }

  const ProgramTables& p_;
  const Launch& launch_;
  const Plan& plan_;
  const target::GpuTarget& target_;
  const Machine& machine_;
  Substitution known_;  // of variables
  Terms terms_;         // of the plan's schedules
  std::set<BufferId> added_to_;
  double tiles_ = 1, waits_ = 0;
  double product_ = 0, fed_ = 0;  // clocks of the last one that was counted, and of its operands in shared memory
  double gathered_ = 0;           // clocks of a loader's threads in a turn that gathers
  double slots_ = 0, alone_ = 0;  // of turns, by their slots, and that nothing else runs beside
  double stored_ = 0;             // clocks of results that leave in turns, where that is beside them
  int loops_ = 0;                 // around what is counted
  int64_t threads_ = 0;           // that do what is counted
  std::set<const Gemm*> turned_;
  double paired_ = 1;  // places of tiles that pairs take: of an odd number of neighbours the last has none beside it
  bool is_known_ = true;
  bool has_roles_ = false;  // of its own
  bool apart_ = true;       // warpgroups do not meet in loops: what they compute there stays in registers
  Price out_;
};

}  // namespace

double ProductClocks::together() const { return plan::together(matrix, shared, kUnits); }

ProductClocks clocks_of(const ProgramTables& p, const Gemm& g, const ProductSize& size, int64_t threads,
                        const target::GpuTarget& target, const Machine* of) {
  const Machine& machine = of ? *of : *machine_of(target.arch);
  const DType a = operand_type(p, g, g.a), b = operand_type(p, g, g.b), c = p.buffer(g.c.buffer).type;
  const std::optional<WarpGrid> groups = warpgroups_of(p, g, size, threads, target);
  const auto* of_warps = target::mma_for(a, b, c, target.arch, g.is_sparse(), size.depth);
  const bool by_matrix_unit = groups || (of_warps && size.depth % of_warps->k == 0);
  const double of_unit = machine.multiply_adds * 16 / std::max(a.bits, b.bits) * (groups ? 1 : machine.of_warps);
  const double rate = c.bits == 64 ? machine.multiply_adds_64 : by_matrix_unit ? of_unit : machine.plain;
  const auto m = static_cast<double>(size.rows), n = static_cast<double>(size.columns),
             k = static_cast<double>(size.depth);
  ProductClocks out{m * n * k / rate, 0, groups.has_value()};
  // Each slab of 64 rows reads all of b; warpgroups that share the columns of one read all of its a.
  const double slabs_of_b = groups ? slabs_of(m) : 1, groups_of_a = groups ? static_cast<double>(groups->n) : 1;
  const auto read = [&](const Region& r, double elements) {
    const double bytes = elements * p.buffer(r.buffer).type.bits / 8;
    return is_in(p, r, Space::Shared) ? bytes / machine.shared_bytes : 0;
  };
  out.shared = read(g.a, m * k) * groups_of_a + read(g.b, k * n * (g.is_sparse() ? 2 : 1)) * slabs_of_b;
  return out;
}

namespace {

constexpr int64_t kFewRows = 32;  // of accumulators that lie as they are (assumed)

// Whether nothing but products, and what goes through each element, touches the fragment and those that lie alike.
bool lies_anyhow(const ProgramTables& p, const Launch& launch, BufferId fragment, std::set<BufferId>& alike) {
  if (!alike.insert(fragment).second) return true;
  const Buffer& c = p.buffer(fragment);
  bool free = c.space == Space::Fragment && c.rank() == 2 && !c.is_view() && c.layout.kind == LayoutHint::None &&
              std::ranges::none_of(p.buffers, [&](const Buffer& b) { return b.root == fragment; });
  const auto each = [&](const auto& self, const Body& body) -> void {
    for (const Stmt& s : body) {
      const auto* map = s.as<Map>();
      if (!map) for_each_body(s, [&](const Body& inner) { self(self, inner); });
      if (!free || s.as<For>() || s.as<If>() || !used_buffers({s}).contains(fragment)) continue;
      if (const auto* g = s.as<Gemm>()) {
        free = g->a.buffer != fragment && g->b.buffer != fragment;
      } else if (const auto* copy = s.as<Copy>()) {
        const BufferId other = copy->from.buffer == fragment ? copy->to.buffer : copy->from.buffer;
        free = p.buffer(other).space != Space::Fragment || lies_anyhow(p, launch, other, alike);
      } else if (map) {
        for (BufferId other : used_buffers({s}))
          if (p.buffer(other).space == Space::Fragment) free = free && lies_anyhow(p, launch, other, alike);
      } else {
        free = s.as<Fill>() != nullptr;
      }
    }
  };
  each(each, launch.body);
  return free;
}

}  // namespace

bool is_cheaper_turned(const ProgramTables& p, const Gemm& g, int64_t threads, const target::GpuTarget& target) {
  const size_t rank = g.c.extent.size();
  const auto rows = constant_int(g.c.extent[rank - 2]), columns = constant_int(g.c.extent[rank - 1]),
             depth = constant_int(g.a.extent[g.a.extent.size() - (g.transpose_a ? 2 : 1)]);
  if (!target.has.wgmma || g.is_sparse() || !rows || !columns || !depth || *rows <= kFewRows) return false;
  const ProductClocks as_is = clocks_of(p, g, {*rows, *columns, *depth}, threads, target),
                      turned = clocks_of(p, transpose_of(g), {*columns, *rows, *depth}, threads, target);
  return !as_is.by_warpgroups && turned.by_warpgroups && turned.together() < as_is.together();
}

std::set<const Gemm*> turned_products(const ProgramTables& p, const Launch& launch, int64_t threads,
                                      const target::GpuTarget& target) {
  std::set<const Gemm*> out;
  walk(launch.body, [&](const Stmt& s) {
    const auto* loop = s.as<For>();
    std::vector<const Gemm*> here;
    for (const Stmt& x : loop ? loop->body : Body{})
      if (const auto* g = x.as<Gemm>()) here.push_back(g);
    const bool all = std::ranges::all_of(here, [&](const Gemm* g) {
      std::set<BufferId> alike;
      return p.buffer(g->a.buffer).space == Space::Shared && is_cheaper_turned(p, *g, threads, target) &&
             lies_anyhow(p, launch, g->c.buffer, alike);
    });
    if (all) out.insert(here.begin(), here.end());
  });
  return out;
}

std::optional<Price> price(const ProgramTables& program, const Launch& launch, const Plan& plan,
                           const target::GpuTarget& target, const Substitution& known, const Machine* machine) {
  return Pricer(program, launch, plan, target, machine ? *machine : *machine_of(target.arch), known).run();
}

}  // namespace tilewright::plan
