#include "passes/gpu_passes.h"

#include <array>
#include <chrono>

#include "analysis/divisibility.h"
#include "analysis/wide_atomics.h"
#include "ir/cluster.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/number_statements.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "ir/verify.h"
#include "passes/launch_order.h"
#include "passes/lower/lowering.h"
#include "passes/schedule/apply_plan.h"
#include "passes/schedule/async_rings.h"
#include "passes/schedule/guard_bulk_stores.h"
#include "passes/schedule/narrow_roles.h"
#include "passes/schedule/settle_plan.h"
#include "passes/schedule/turn_barriers.h"
#include "passes/threads/bank_layout.h"
#include "passes/threads/copies_behind_products.h"
#include "passes/threads/elementwise.h"
#include "passes/threads/join_conditions.h"
#include "passes/threads/join_fences.h"
#include "passes/threads/late_conditions.h"
#include "passes/threads/late_sums.h"
#include "passes/threads/name_slots.h"
#include "passes/threads/narrow_bounds.h"
#include "passes/threads/place_sync.h"
#include "passes/threads/plain_quotients.h"
#include "passes/threads/share_values.h"
#include "passes/threads/shared_layout.h"
#include "passes/threads/short_indices.h"
#include "passes/threads/thread_code.h"
#include "passes/threads/widen_maps.h"
#include "passes/threads/wrap_sums.h"
#include "passes/tile/accumulators.h"
#include "passes/tile/arrive_apart.h"
#include "passes/tile/box_accumulators.h"
#include "passes/tile/cluster_copies.h"
#include "passes/tile/early_loads.h"
#include "passes/tile/end_idle_turns.h"
#include "passes/tile/exchange_roles.h"
#include "passes/tile/fetch_ahead.h"
#include "passes/tile/guard_returns.h"
#include "passes/tile/inline_lets.h"
#include "passes/tile/load_ahead.h"
#include "passes/tile/merge_lanes.h"
#include "passes/tile/name_locals.h"
#include "passes/tile/narrow_panels.h"
#include "passes/tile/operands_in_shared.h"
#include "passes/tile/order_points.h"
#include "passes/tile/pack_nibbles.h"
#include "passes/tile/pad_rows.h"
#include "passes/tile/pad_tiles.h"
#include "passes/tile/pad_widths.h"
#include "passes/tile/part_lives.h"
#include "passes/tile/products_early.h"
#include "passes/tile/products_in_parts.h"
#include "passes/tile/read_originals.h"
#include "passes/tile/reducer_parts.h"
#include "passes/tile/split_masks.h"
#include "passes/tile/spread_pairs.h"
#include "passes/tile/store_as_made.h"
#include "passes/tile/sum_copies.h"
#include "passes/tile/tiles_as_used.h"
#include "passes/tile/turn_in_registers.h"
#include "passes/tile/turns_as_atomics.h"
#include "passes/tile/two_stages.h"
#include "passes/tile/unroll_rows.h"
#include "passes/tile/unshift_maps.h"
#include "passes/tile/whole_steps.h"
#include "passes/tile/whole_turns.h"
#include "passes/tile/widen_operands.h"
#include "passes/warp_matrices.h"

namespace tilewright::passes {

using namespace ir;
using analysis::Uniformity;

namespace {

// A pass from tiles to tiles as a row's.
template <TileProgram (*kPass)(TileProgram)>
void on_tiles(GpuProgram& p) {
  p.tiles = kPass(std::move(p.tiles));
}

// ---- the plan and what it consists of

void decide(GpuProgram& p, size_t i) { p.plans.push_back(decide_plan(p.tiles, i, p.target, p.attempts[i].limits)); }

void apply(GpuProgram& p, size_t i) { p.blocks.push_back(apply_plan(p.plans[i], p.tiles, i)); }

void ring_by_threads(GpuProgram& p) {
  std::set<size_t> without;
  for (size_t i = 0; i < p.attempts.size(); ++i)
    if (!p.attempts[i].gathers) without.insert(i);
  AsyncRings rings = materialize_async_rings(std::move(p.tiles), without, &p.target);
  p.tiles = std::move(rings.program), p.notes = std::move(rings.notes), p.gathering = std::move(rings.gathering);
  p.planned = p.tiles;
}

bool are_constant(const std::vector<Expr>& extents) {
  return std::all_of(extents.begin(), extents.end(), [](const Expr& e) { return constant_int(e).has_value(); });
}

void refuse(GpuProgram& program, size_t i) {
  const TileProgram& p = program.tiles;
  const Launch& launch = p.launches[i];
  const target::GpuTarget& target = program.target;
  const char* help = kUseInterpreter;
  walk(launch.body, [&](const Stmt& s) {
    const auto* copy = s.as<Copy>();
    const auto* arrive = s.as<Arrive>();
    const auto* reduce = s.as<Reduce>();
    const bool async = copy && !copy->completion.immediate() &&
                       (copy->completion.queue != Queue::CpAsync || copy->completion.barrier.valid());
    const bool queue = (s.as<Commit>() && s.as<Commit>()->queue != Queue::CpAsync) ||
                       (s.as<Drain>() && s.as<Drain>()->queue != Queue::CpAsync);
    if (async && copy->completion.queue == Queue::CpAsync)
      fail(Code::GpuUnsupported, p.location(s->location),
           fmt::format("{} is not something the CUDA engine runs yet", name_of(s)), help);
    if ((reduce && !are_constant(reduce->from.extent)) ||
        (copy && !copy->completion.immediate() && !are_constant(copy->to.extent)))
      fail(Code::GpuUnsupported, p.location(s->location),
           fmt::format("this {} is of extents that only run time knows", name_of(s)), help);
    if (!target.has.tma && (async || queue || arrive || reaches_blocks(p, s) || s.as<Expect>() || s.as<Wait>()))
      fail(Code::GpuUnsupported, p.location(s->location),
           fmt::format("{} as it stands needs sm_90a; the target is sm_{}", name_of(s), target.arch), help);
  });
}

void give_roles(GpuProgram& p, size_t i) {
  Launch& launch = p.tiles.launches[i];
  number_statements(launch);
  launch.body = exchange_roles(p.tiles, launch);
}

void take_one_warp(GpuProgram& p, size_t i) {
  Launch& launch = p.tiles.launches[i];
  number_statements(launch);
  launch.body = narrow_roles(p.tiles, launch);
}

void guard_stores(GpuProgram& p, size_t i) {
  Launch& launch = p.tiles.launches[i];
  launch.body = guard_bulk_stores(p.tiles, launch, i < p.blocks.size() ? p.blocks[i] : launch.block);
}

void end_turns(GpuProgram& p, size_t i) { end_turns_together(p.tiles, p.tiles.launches[i]); }

void order_between_roles(GpuProgram& p, size_t i) {
  p.handed_over.push_back(order_hand_overs(p.tiles.launches[i], p.tiles));
}

// ---- registers and barriers

void widen(GpuProgram& p, size_t i) { widen_maps(p.tiles, i, p.target); }

void place(GpuProgram& p, size_t i) {
  Launch& launch = p.tiles.launches[i];
  number_statements(launch);
  p.placements.push_back(place_fragments(p.tiles, launch, Uniformity(p.tiles, launch), p.target));
  p.barriers.emplace_back(launch);
}

// Of the device, or of one of the blocks that share it.
target::GpuTarget share_of(const target::GpuTarget& target, const plan::Plan& plan, const Launch& launch) {
  target::GpuTarget share = target;
  if (plan.work.blocks_per_multiprocessor > 1) share.shared_bytes = target.shared_bytes_of_blocks(launch.min_blocks);
  return share;
}

// Blocks that take tiles in turn: results may lie over what is used up before them, for two waits a tile, which cost
// less than shorter rings or results that threads store one by one.
bool stages_in_turns(const plan::Plan& plan) {
  return plan.is_persistent() && !plan.epilogue.staged.empty() && !plan.takes(plan::Role::Takes::TilesInTurn);
}

// A plan whose tiles alone are too large, known before it is lowered.
std::optional<Diagnostic> too_large(const TileProgram& p, const Launch& launch, const target::GpuTarget& share,
                                    bool in_turns) {
  std::set<BufferId> brought, stored;  // by TMA; what is stored behind loops, not added in them
  walk(launch.body, [&](const Stmt& s) {
    const auto* copy = s.as<Copy>();
    if (!copy || copy->completion.immediate()) return;
    if (copy->completion.queue != Queue::BulkStore)
      brought.insert({p.root(copy->from.buffer), p.root(copy->to.buffer)});
    else if (copy->combine == ir::Combine::None)
      stored.insert(p.root(copy->from.buffer));
  });
  int64_t bytes = 0, others = 0, result = 0;
  for (BufferId id : used_roots(launch.body, p)) {
    if (p.buffer(id).space != Space::Shared) continue;
    const int64_t own = bytes_on_chip(p.buffer(id));
    if (!in_turns || brought.contains(id))
      bytes += own;
    else if (stored.contains(id))
      result = std::max(result, own);  // it may lie over what is neither
    else
      others += own;
  }
  bytes += std::max(others, result);
  if (bytes <= share.shared_bytes) return std::nullopt;
  return make_diagnostic(Code::GpuSharedMemory, p.location(launch.location),
                         fmt::format("the block needs at least {} bytes of shared memory; sm_{} has {}", bytes,
                                     share.arch, share.shared_bytes),
                         "make the tiles smaller, or the pipeline shorter");
}

// What a plan asks for has been asked before (settle_plan.h); what a program asks for itself has not.
void check_plan(GpuProgram& p, size_t i) {
  const Launch& launch = p.tiles.launches[i];
  const plan::Plan& plan = p.plans[i];
  if (const auto gemm = async_gemm_without_wgmma(launch, p.placements[i])) {
    check_internal(!plan.has_loader(), "a plan leaves a gemm open that wgmma does not do: {}", gemm->why);
    fail(Code::GpuUnsupported, p.tiles.location(gemm->at), fmt::format("wgmma cannot do this gemm: {}", gemm->why),
         "write gemm: the compiler then takes the best instruction there is");
  }
  for (BufferId id : plan.epilogue.staged)
    check_internal(!p.placements[i].in_memory.contains(id), "a plan stages '{}', which is not in registers",
                   p.tiles.buffer(id).name);
  if (p.attempts[i].over || p.attempts[i].limits.slots == 0)
    return;  // there is no plan below: all that takes memory is to be told
  if (auto why = too_large(p.tiles, launch, share_of(p.target, plan, launch), stages_in_turns(plan)))
    p.misfit = Misfit{i, std::move(*why)};
}

void sum_late(GpuProgram& p, size_t i) {
  Launch& launch = p.tiles.launches[i];
  launch.body = late_sums(p.tiles, launch, p.placements[i]);
}

void copy_behind(GpuProgram& p, size_t i) {
  Launch& launch = p.tiles.launches[i];
  launch.body = copies_behind_products(p.tiles, launch, p.placements[i]);
}

void sync(GpuProgram& p, size_t i) {
  Launch& launch = p.tiles.launches[i];
  find_turn_barriers(p.tiles, launch);
  number_statements(launch);
  const Uniformity uniformity(p.tiles, launch);
  launch.body = join_fences(p.tiles, place_sync(p.tiles, launch, uniformity, p.placements[i], p.barriers[i]));
}

// ---- the code of a thread

void begin_threads(GpuProgram& p) {
  p.threads = with_level<ThreadProgram>(p.tiles);
  p.threads.launches.clear();
}

void lay_out(GpuProgram& p, size_t i) {
  lay_out_shared(p.threads, p.tiles.launches[i], p.placements[i], p.attempts[i].tight);
}

void spread(GpuProgram& p, size_t i) {
  spread_over_banks(p.threads, p.tiles.launches[i], p.placements[i], p.attempts[i].tight);
}

// Tensors to which neighbours are added at once begin at whole vectors.
void align_additions(const Body& b, ThreadProgram& p) {
  for (size_t i = 0; i < b.size(); ++i) {
    for_each_body(b[i], [&](const Body& inner) { align_additions(inner, p); });
    const auto wide = analysis::wide_atomic(b, i, p);
    if (!wide) continue;
    Buffer& tensor = p.buffers[p.root(wide->lanes[0].to.buffer).index];
    tensor.alignment = std::max(tensor.alignment, wide->bytes());
    i += wide->statements - 1;
  }
}

void lower(GpuProgram& p, size_t i) {
  number_statements(p.tiles.launches[i]);
  p.threads.launches.push_back(lower_launch(p.tiles, p.tiles.launches[i], p.placements[i], p.barriers[i], p.threads));
  if (p.target.has.vector_adds) align_additions(p.threads.launches.back().body, p.threads);
  for (Buffer& b : p.threads.buffers) {
    if (b.launch != static_cast<int32_t>(i) || b.space != Space::Fragment) continue;
    b.space = Space::Shared, b.reducer.reset();
  }
}

void place_buffers(GpuProgram& p, size_t i) {
  const target::GpuTarget share = share_of(p.target, p.plans[i], p.tiles.launches[i]);
  const plan::Plan& plan = p.plans[i];
  const RolesOf owner = plan.has_loader() && plan.is_persistent() ? RolesOf::TurnsOfTiles
                        : plan.has_loader()                       ? RolesOf::Plan
                                                                  : RolesOf::Program;
  const auto place = [&](bool over) {
    return place_shared(p.threads, static_cast<int32_t>(i), share, p.placements[i], p.barriers[i],
                        over ? std::optional(owner) : std::nullopt);
  };
  auto why = place(p.attempts[i].over);
  if (why && stages_in_turns(plan) && !p.attempts[i].over) why = place(true);
  if (why) p.misfit = Misfit{i, std::move(*why)};
}

// ---- the tables

constexpr GpuPass kTilePasses[] = {
    {.name = "drop_launch_order",
     .what = "waits for other launches, and what lets others begin, are dropped",
     .here = "first: nobody may take them for statements; griddepcontrol is of sm_90 and above (PTX ISA)",
     .run = on_tiles<drop_launch_order>,
     .wanted = [](const target::GpuFeatures& has) { return !has.launch_order; }},
    {.name = "matrix_instructions",
     .what = "matrices of a warp name their instruction, or become shuffles",
     .here = "before all that asks whose values depend on other lanes",
     .run = [](GpuProgram& p) { p.tiles = choose_matrix_instructions(std::move(p.tiles), p.target); }},
    {.name = "inline_lets",
     .what = "names of sums become the sums",
     .here = "before rings, whose copies follow indices: what divides them is seen in the sums",
     .run = on_tiles<inline_lets>},
    {.name = "tiles_as_used",
     .what = "shared tiles that are used through one view, or in part, are what is used of them",
     .here = "before all that asks for whole tiles; behind inline_lets, whose sums say where accesses end",
     .run = on_tiles<tiles_as_used>},
    {.name = "reducers_to_reductions",
     .what = "reducers of maps become fragments and a reduce",
     .here = "before plans, which count the registers that its fragments take",
     .run = on_tiles<reducers_to_reductions>},
    {.name = "cluster_copies",
     .what = "copies to blocks of a cluster: one by TMA, and a wait of each block",
     .here = "before rings, which take copies that tell no barrier for their own",
     .run = on_tiles<materialize_cluster_copies>},
    {.name = "pack_nibbles",
     .what = "tensors of 4-bit integers as bytes of two",
     .here = "before rings: TMA brings bytes",
     .run = on_tiles<pack_nibbles>},
    {.name = "fetch_ahead",
     .what = "which rows a copy gathers is read before the loop",
     .here = "while the program's own loops stand: rings divide them among roles",
     .run = on_tiles<fetch_ahead>},
    {.name = "name_locals",
     .what = "a thread's own variables are read by the names of what they hold",
     .here = "before rings, whose loader knows names alone; behind fetch_ahead, which looks for variables",
     .run = on_tiles<name_locals>},
    {.name = "box_accumulators",
     .what = "products that add to part of a fragment add to one of their own",
     .here = "before pad_rows, which looks for whole ones",
     .run = on_tiles<box_accumulators>},
    {.name = "pad_rows",
     .what = "products of rows that no instruction divides among the warps get more",
     .here = "before plans: products decide them",
     .run = [](GpuProgram& p) { p.tiles = pad_rows(std::move(p.tiles), p.target); }},
    {.name = "guard_returns",
     .what = "an early return becomes a condition around the rest",
     .here = "a launch that returns gets no roles",
     .run = on_tiles<guard_returns>},
    {.name = "skip_empty_tiles",
     .what = "what leaves nothing unless a number is positive is a branch of that",
     .here = "behind name_locals: the number has a name; before plans, which take blocks as they end",
     .run = on_tiles<skip_empty_tiles>},
    {.name = "end_idle_turns",
     .what = "loops end where all that is left is out of bounds",
     .here = "behind names, whose sums show what an index may be",
     .run = on_tiles<end_idle_turns>},
    {.name = "merge_lanes",
     .what = "loops over neighbours in the points of a map are points, where a fragment follows them",
     .here = "before plans, which count what goes to shared memory",
     .run = on_tiles<merge_lanes>},
    {.name = "turns_as_atomics",
     .what = "points that take turns at a tile though a fragment lies over the threads add to it atomically",
     .here = "before plans, which count what goes to shared memory",
     .run = on_tiles<turns_as_atomics>},
    {.name = "unshift_maps",
     .what = "maps that read a fragment at a distance run over its own elements",
     .here = "before layouts, which follow the points of maps",
     .run = on_tiles<unshift_maps>},
    {.name = "sums_as_copies",
     .what = "a map that adds a tile to memory is a copy that adds",
     .here = "before staging, which takes copies alone",
     .run = on_tiles<sums_as_copies>},
    {.name = "stores_as_copies",
     .what = "a map behind products that stores a tile is a copy",
     .here = "before staging, which takes copies alone",
     .run = on_tiles<stores_as_copies>,
     .wanted = [](const target::GpuFeatures& has) { return has.tma; }},
    {.name = "loads_as_copies",
     .what = "a map of a pipelined loop that brings a tile is a copy",
     .here = "before plans, whose rings take copies alone",
     .run = on_tiles<loads_as_copies>},
    {.name = "arrive_apart",
     .what = "tiles that loops bring and change in place arrive in tiles of their own",
     .here = "behind loads_as_copies, which shows what loops bring; before plans, whose rings are of tiles that only "
             "arrive",
     .run = [](GpuProgram& p) { arrive_apart(p.tiles, p.target); }},
    {.name = "operands_in_shared",
     .what = "fragments that only bring operands of products are shared tiles",
     .here = "behind loads_as_copies, which shows what comes as it is; before part_lives, which parts shared tiles",
     .run = [](GpuProgram& p) { operands_in_shared(p.tiles, p.target); }},
    {.name = "widen_operands",
     .what = "operands of types, or orders of bytes, that no instruction multiplies are copied to ones that one does",
     .here = "behind operands_in_shared, whose operands come as they are; before rings, of which the copies are none",
     .run = [](GpuProgram& p) { widen_operands(p.tiles, p.target); }},
    {.name = "whole_steps",
     .what = "loops of products in steps that no instruction multiplies are cut anew",
     .here = "behind widen_operands, whose operands are multiplied as they come",
     .run = [](GpuProgram& p) { whole_steps(p.tiles, p.target); }},
    {.name = "pad_widths",
     .what = "dimensions that end with their tensors, and that no instruction multiplies, get zeros behind them",
     .here = "behind whole_steps, which needs no zeros; before plans: products decide them",
     .run = [](GpuProgram& p) { pad_widths(p.tiles, p.target); }},
    {.name = "pad_tiles",
     .what = "products of rows or columns that no wgmma has get more, where that is cheaper",
     .here = "behind pad_widths, whose panels are whole; before plans: products decide them",
     .run = [](GpuProgram& p) { pad_tiles(p.tiles, p.target); },
     .wanted = [](const target::GpuFeatures& has) { return has.wgmma; }},
    {.name = "part_lives",
     .what = "shared tiles that are filled anew for another loop are tiles of their own",
     .here = "behind loads_as_copies, which shows what loops bring; before all that asks whether a tile is its loop's",
     .run = [](GpuProgram& p) { part_lives(p.tiles, p.target); }},
    {.name = "two_stages",
     .what = "loops of one stage that bring little have two",
     .here = "behind loads_as_copies, which shows what they bring; before load_early, which looks for stages",
     .run = [](GpuProgram& p) { p.tiles = two_stages(std::move(p.tiles), p.target); }},
    {.name = "products_in_parts",
     .what = "accumulators that have no room beside others are made some columns, or rows, at a time",
     .here = "before split_masks: a mask is made with its columns",
     .run = [](GpuProgram& p) { products_in_parts(p.tiles, p.target); },
     .wanted = [](const target::GpuFeatures& has) { return has.wgmma; }},
    {.name = "split_masks",
     .what = "masks that only some tiles need are asked for once a tile",
     .here = "before load_early: what a mask alone reads stays below its condition",
     .run = [](GpuProgram& p) { split_masks(p.tiles, p.target); }},
    {.name = "load_early",
     .what = "what a map behind a gemm reads comes before the gemm",
     .here = "before load_ahead, which brings its loads another turn forward",
     .run = on_tiles<load_early>},
    {.name = "load_ahead",
     .what = "what code beside a gemm reads comes a turn before",
     .here = "behind load_early, whose loads it moves as well",
     .run = [](GpuProgram& p) { p.tiles = load_ahead(std::move(p.tiles), p.target.has.wgmma); },
     .wanted = [](const target::GpuFeatures& has) { return has.tma; }},
    {.name = "narrow_panels",
     .what = "panels that divide the columns of each warpgroup",
     .here = "behind pad_rows: gemms are as they will be",
     .run = [](GpuProgram& p) { narrow_panels(p.tiles, p.target); }},
    {.name = "order_points",
     .what = "maps over the transpose of a fragment have its order, where it then stays in registers",
     .here = "before plans, which count what goes to shared memory",
     .run = [](GpuProgram& p) { order_points(p.tiles, p.target); }},
    {.name = "read_originals",
     .what = "fragments that are copies of shared tiles, and not in registers, are read where they were",
     .here = "before plans, which say how long a tile is in use",
     .run = [](GpuProgram& p) { read_originals(p.tiles, p.target); }},
    {.name = "unroll_rows",
     .what = "loops over parts of a fragment are their turns, where the fragment then stays in registers",
     .here = "behind what looks for loops; before plans, which count what goes to shared memory",
     .run = [](GpuProgram& p) { unroll_rows(p.tiles, p.target); }},
    {.name = "products_early",
     .what = "products come before code that they have nothing to do with",
     .here = "behind all that moves code around products",
     .run = [](GpuProgram& p) { products_early(p.tiles, p.target); },
     .wanted = [](const target::GpuFeatures& has) { return has.wgmma; }},
    {.name = "accumulate_in_registers",
     .what = "products whose fragment cannot be the instruction's add to one of their own",
     .here = "last, as plans will find the program: what is asked of fragments stands in its statements",
     .run = [](GpuProgram& p) { accumulate_in_registers(p.tiles, p.target); }},
};

constexpr GpuPass kPlanPasses[] = {
    {.name = "decide_plan",
     .what = "a loader by TMA, roles, the loop over tiles, how results leave; changes nothing",
     .here = "on tile operations: what is moved and multiplied is still in view",
     .run_launch = decide},
    {.name = "apply_plan",
     .what = "the plan as statements: roles, mbarriers, copies that complete on them",
     .here = "behind decide_plan, whose plan it is",
     .run_launch = apply,
     .needs = "decide_plan"},
    {.name = "async_rings",
     .what = "pipelined loops that are left bring their tiles by cp.async",
     .here = "behind apply_plan, which takes what TMA brings",
     .run = ring_by_threads},
    {.name = "copies_to_maps",
     .what = "copies and fills of threads are maps",
     .here = "behind rings: what is left is elementwise",
     .run =
         [](GpuProgram& p) {
           on_tiles<copies_to_maps>(p);
           analysis::note_multiples(p.tiles);  // of names that roles and rings have of their own, too
         }},
    {.name = "turn_in_registers",
     .what = "maps that transpose memory do so through a fragment, with vectors on both sides",
     .here = "behind copies_to_maps: copies that transpose are maps",
     .run = on_tiles<turn_in_registers>},
    {.name = "store_as_made",
     .what = "elements that leave for memory are stored by the map that makes them",
     .here = "behind turn_in_registers: maps that transpose memory have another order",
     .run = on_tiles<store_as_made>},
    {.name = "spread_pairs",
     .what = "scratch that TMA adds accumulators to has its columns in another order",
     .here = "behind copies_to_maps: all that touches it is elements, but for TMA",
     .run = on_tiles<spread_pairs>,
     .wanted = [](const target::GpuFeatures& has) { return has.tma; }},
    {.name = "refuse",
     .what = "what the target cannot do is refused",
     .here = "behind all that could have made something else of it",
     .run_launch = refuse},
    {.name = "exchange_roles",
     .what = "branches of whole warps that exchange values are roles",
     .here = "before barriers, which roles have of their own",
     .run_launch = give_roles},
    {.name = "narrow_roles",
     .what = "a role that begins copies and waits is one warp",
     .here = "behind all that makes roles",
     .run_launch = take_one_warp},
    {.name = "guard_bulk_stores",
     .what = "a TMA store that may begin below 0 is a copy of threads where it does",
     .here = "behind narrow_roles: what such a copy adds to a role is no work of its own",
     .run_launch = guard_stores},
    {.name = "whole_turns",
     .what = "threads that continue a while meet the others at the end of the turn",
     .here = "before barriers, which may stand there",
     .run_launch = end_turns},
    {.name = "hand_overs",
     .what = "a barrier between roles where the program has none",
     .here = "behind all that changes who is in a role",
     .run_launch = order_between_roles},
    {.name = "widen_maps",
     .what = "maps over part of a fragment, of which not every thread holds some, run over all of it",
     .here = "statements that touch fragments are final, but for this; layouts follow the points of maps",
     .run_launch = widen},
    {.name = "place_fragments",
     .what = "which instruction a gemm takes, which registers a fragment; changes nothing",
     .here = "statements that touch fragments are final, but for their order",
     .run_launch = place,
     .needs = "decide_plan"},
    {.name = "check_plan",
     .what = "whether its tiles may fit, and gemms that run on are wgmma's; changes nothing",
     .here = "as early as instructions and layouts are known",
     .run_launch = check_plan,
     .needs = "place_fragments"},
    {.name = "late_sums",
     .what = "lanes keep their parts of sums and maxima until a loop is over",
     .here = "behind layouts, which say who has a part",
     .run_launch = sum_late,
     .needs = "place_fragments"},
    {.name = "copies_behind_products",
     .what = "copies by cp.async into other slots begin while their turn's product is at work",
     .here = "behind place_fragments, which says which products run on",
     .run_launch = copy_behind,
     .needs = "place_fragments",
     .wanted = [](const target::GpuFeatures& has) { return has.wgmma; }},
    {.name = "place_sync",
     .what = "barriers between threads that touch the same memory",
     .here = "behind layouts: elements that stay with a thread need none",
     .run_launch = sync,
     .needs = "place_fragments"},
    {.name = "begin_threads",
     .what = "the program's tables for threads",
     .here = "tile code is final; what follows adds buffers and variables of threads",
     .run = begin_threads,
     .needs = "place_fragments"},
    {.name = "lay_out_shared",
     .what = "panels, padding, rows: how shared buffers lie",
     .here = "before code, which computes addresses from it",
     .run_launch = lay_out,
     .needs = "begin_threads"},
    {.name = "spread_over_banks",
     .what = "swizzles of buffers that only maps touch",
     .here = "behind lay_out_shared, whose layouts stand",
     .run_launch = spread,
     .needs = "lay_out_shared"},
    {.name = "lower",
     .what = "the code of one thread",
     .here = "everything is decided",
     .run_launch = lower,
     .needs = "lay_out_shared"},
    {.name = "place_shared",
     .what = "where shared buffers begin",
     .here = "behind code, which adds buffers of its own",
     .run_launch = place_buffers,
     .needs = "lower"},
    {.name = "name_slots",
     .what = "slots and parities of rings have names; names that nobody reads go",
     .here = "behind code, which says them several times; before wrap_sums, whose casts tell them apart",
     .run = [](GpuProgram& p) { name_slots(p.threads); },
     .needs = "lower"},
    {.name = "short_indices",
     .what = "neighbouring digits of a thread's number are one, comparisons are of 32 bits where there is room",
     .here = "behind code, which says digits as layouts do; before share_values, which names what points share",
     .run = [](GpuProgram& p) { short_indices(p.threads); },
     .needs = "lower"},
    {.name = "share_values",
     .what = "quotients and functions that all points of a thread have in common are computed once",
     .here = "behind code, whose loops show what is common; before join_conditions, which computes what is left whole",
     .run = [](GpuProgram& p) { share_values(p.threads); },
     .needs = "lower"},
    {.name = "narrow_bounds",
     .what = "what is between 0 and an extent is compared once, without sign, points of an unrolled loop in 32 bits",
     .here = "behind code; before join_conditions, after which the two comparisons are none of one condition",
     .run = [](GpuProgram& p) { narrow_bounds(p.threads); },
     .needs = "lower"},
    {.name = "join_conditions",
     .what = "conditions of registers are computed whole, without a branch between their parts",
     .here = "behind code; before wrap_sums: what is computed everywhere may wrap where a condition kept it from it",
     .run = [](GpuProgram& p) { join_conditions(p.threads); },
     .needs = "lower"},
    {.name = "wrap_sums",
     .what = "integers that may wrap are computed without sign",
     .here = "behind all that computes an index",
     .run = [](GpuProgram& p) { wrap_sums(p.threads); },
     .needs = "lower"},
    {.name = "plain_quotients",
     .what = "quotients of what is not negative are unsigned ones of 32 bits",
     .here = "behind wrap_sums, which knows how quotients look at their operands",
     .run = [](GpuProgram& p) { plain_quotients(p.threads); },
     .needs = "lower"},
    {.name = "late_conditions",
     .what = "conditions of threads that all turns of a loop have in common are asked behind the turn's product",
     .here = "last: what it reads a thread's number from has no range of its own",
     .run = [](GpuProgram& p) { late_conditions(p.threads); },
     .needs = "lower"},
};

// What a pass left must be a program of the level that it has come to. What has no words is looked at again as threads.
void verify(const GpuProgram& p, const char* name) {
  if (is_of_threads(p)) return check_valid(p.threads, name);
  if (has_words(p)) check_valid(p.tiles, name);
}

}  // namespace

std::span<const GpuPass> gpu_tile_passes() { return kTilePasses; }
std::span<const GpuPass> gpu_plan_passes() { return kPlanPasses; }

bool is_of_threads(const GpuProgram& p) {
  return !p.threads.launches.empty() && p.threads.launches.size() == p.tiles.launches.size();
}

bool has_words(const GpuProgram& p) {
  if (is_of_threads(p)) return true;
  bool found = std::none_of(p.placements.begin(), p.placements.end(),
                            [](const Placement& placement) { return !placement.partial.empty(); });
  for (const Launch& launch : p.tiles.launches)
    walk(launch.body, [&](const Stmt& s) {
      const auto* n = s.as<Store>();
      found = found && !(n && p.tiles.buffer(n->to.buffer).reducer);
    });
  return found;
}

const GpuPass* find_gpu_pass(std::string_view name) {
  for (const std::span<const GpuPass> table : {gpu_tile_passes(), gpu_plan_passes()})
    for (const GpuPass& pass : table)
      if (pass.name == name) return &pass;
  return nullptr;
}

void run_gpu_passes(GpuProgram& program, std::span<const GpuPass> passes, GpuObserver observer) {
  const auto wanted = [&](const GpuPass& p) { return !p.wanted || p.wanted(program.target.has); };
  const auto timed = [&](const GpuPass& pass, auto&& run) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    if (program.misfit) return;
    verify(program, pass.name);
    observer(pass.name, program, took.count());
  };
  for (size_t at = 0; at < passes.size() && !program.misfit;) {
    if (passes[at].run) {
      if (wanted(passes[at])) timed(passes[at], [&] { passes[at].run(program); });
      ++at;
      continue;
    }
    size_t end = at;
    while (end < passes.size() && passes[end].run_launch) ++end;
    for (size_t launch = 0; launch < program.tiles.launches.size(); ++launch)
      for (size_t i = at; i < end && !program.misfit; ++i)
        if (wanted(passes[i])) timed(passes[i], [&] { passes[i].run_launch(program, launch); });
    at = end;
  }
}

}  // namespace tilewright::passes
