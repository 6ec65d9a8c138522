#include "passes/tile/two_stages.h"

#include "analysis/accessed.h"
#include "analysis/async_copies.h"
#include "analysis/body_order.h"
#include "analysis/brought_tiles.h"
#include "analysis/live_registers.h"
#include "analysis/own_schedule.h"
#include "analysis/slope.h"
#include "ir/buffer_vars.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/jumps.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/schedule/role_code.h"
#include "passes/schedule/slots.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// What a block's shared tiles may come to: two or three blocks share a multiprocessor then. Where there are fewer, for
// want of blocks or of registers, all of a block's share but what sums over its warps need.
constexpr int64_t kMostShared = 65536, kOfSums = 16384;
constexpr int64_t kOtherRegisters = 32;  // of a thread, beside its tiles
// What a block's turns that are on their way come to, where there are so few stages, and what those of all blocks of a
// multiprocessor do at least: 4.8 TB/s for 700 ns are 26 KB each.
constexpr int64_t kOnTheWay = 16384, kOnTheWayOfAll = 40960;
constexpr int64_t kMostStages = 4;
// Turns that bring less are brought several at once: threads wait and meet once for all of them, and what one row of a
// tensor holds for them is asked for at one time, while memory has its page open.
constexpr int64_t kAtOnce = 10240;
constexpr int64_t kMostTurnsAtOnce = 8, kMostStatements = 64;

class TwoStages {
 public:
  TwoStages(TileProgram& p, const Launch& launch, const target::GpuTarget& target)
      : p_(p), launch_(launch), written_(changed_roots(launch.body, p)) {
    const int64_t blocks = blocks_of_multiprocessor(launch, target), most = most_blocks(p, launch, target);
    on_the_way_ = std::max(kOnTheWay, kOnTheWayOfAll / std::min(blocks, most));
    room_of_block_ = std::min(kMostShared, target.shared_bytes_of_blocks(blocks));
    if (known_blocks(launch) <= target.multiprocessors) most_of_products_ = room_of_tiles(target, 1);
    most_shared_ = room_of_tiles(target, most);
    for (BufferId id : used_roots(launch.body, p))
      if (p.buffer(id).space == Space::Shared) shared_ += bytes_on_chip(p.buffer(id));
  }

  std::optional<Body> operator()(const Stmt& s) {
    const auto* loop = s.as<For>();
    if (!loop || !has_one_stage(*loop) || may_jump(loop->body) || !only_computes(loop->body)) return std::nullopt;
    int64_t brought = 0, staged = 0;
    tiles_.clear();
    for (size_t i = 0; i < loop->body.size(); ++i) {
      if (!reads_what_stays(loop->body[i])) continue;
      if (const auto tile = analysis::brought_tile(p_, launch_, *loop, i))
        brought += bytes_on_chip(p_.buffer(tile->tile)), tiles_.insert(tile->tile);
      else if (const auto tile = staging_of(loop->body[i]))
        staged += bytes_on_chip(*tile);
    }
    // Turns in which nobody meets are on their way together already (the text of threads); a plain loop of products is
    // as its program wants it.
    const bool multiplies = std::ranges::any_of(loop->body, [](const Stmt& x) { return x.as<Gemm>(); });
    if (brought == 0 || (multiplies && loop->stages == 0)) return std::nullopt;
    if (multiplies) staged = 0;  // the loads of its operands are its pipeline's to place
    const int64_t of_turn = brought + staged, most = multiplies ? most_of_products_ : most_shared_;
    const int64_t room = (most - shared_ + brought) / of_turn;
    For ahead = *loop;
    ahead.kind = LoopKind::Pipelined;
    if (staged > 0 && room >= 2) ahead.body = through_shared(loop->body);
    const int64_t turns = multiplies ? 1 : turns_at_once(ahead, of_turn, brought), at_once = turns * of_turn;
    int64_t stages = multiplies ? 2 : std::clamp<int64_t>((on_the_way_ + at_once / 2) / at_once + 1, 2, kMostStages);
    stages = std::min({stages, room / turns, constant_int(loop->extent).value_or(stages * turns) / turns});
    if (stages < 2) return std::nullopt;
    ahead.stages = stages;
    if (turns > 1) ahead = together(ahead, turns);
    return Body{make_stmt(std::move(ahead), s->location)};
  }

 private:
  static bool has_one_stage(const For& loop) {
    const bool pipelined = loop.kind == LoopKind::Pipelined && loop.stages <= 1;
    return (pipelined || loop.kind == LoopKind::Serial) && loop.order.empty() && loop.stage.empty() &&
           constant_int(loop.extent).value_or(2) > 1;
  }
  // Nothing of the launch, so no other block of it, writes what the statement reads of global memory.
  bool reads_what_stays(const Stmt& s) const {
    return std::ranges::none_of(analysis::read_by({s}, p_), [&](BufferId id) {
      const bool global = p_.buffer(id).space == Space::Global;
      return global && (p_.buffer(id).address || analysis::may_overlap(id, written_, p_));
    });
  }
  // A tile of shared memory that cp.async can bring instead of the fragment that the statement loads: several turns of
  // it are on their way without registers.
  std::optional<Buffer> staging_of(const Stmt& s) const {
    const auto* copy = s.as<Copy>();
    if (!copy) return std::nullopt;
    const Buffer& fragment = p_.buffer(copy->to.buffer);
    if (fragment.space != Space::Fragment || !is_whole(copy->to, fragment)) return std::nullopt;
    Buffer tile;
    tile.name = fragment.name + "_staged", tile.type = fragment.type, tile.shape = fragment.shape;
    tile.space = Space::Shared, tile.launch = static_cast<int32_t>(&launch_ - p_.launches.data());
    tile.location = fragment.location;
    if (fragment.is_view() || !analysis::comes_by_async_copies(*copy, tile, p_)) return std::nullopt;
    return tile;
  }
  Body through_shared(const Body& body) {
    Body out;
    for (const Stmt& s : body) {
      auto tile = reads_what_stays(s) ? staging_of(s) : std::nullopt;
      if (!tile) {
        out.push_back(s);
        continue;
      }
      const BufferId id = p_.new_buffer(std::move(*tile));
      tiles_.insert(id);
      Copy in = *s.as<Copy>(), down;
      down.from = whole(id, p_), down.to = in.to;
      in.to = whole(id, p_);
      out.push_back(make_stmt(std::move(in), s->location));
      out.push_back(make_stmt(std::move(down), s->location));
    }
    return out;
  }
  static int64_t known_blocks(const Launch& launch) { return constant_int(blocks_of(launch)).value_or(INT32_MAX); }
  static int64_t blocks_of_multiprocessor(const Launch& launch, const target::GpuTarget& target) {
    const int64_t most = std::max<int64_t>(target.multiprocessor.threads / launch.thread_count(), 1);
    return std::clamp<int64_t>(known_blocks(launch) / std::max<int64_t>(target.multiprocessors, 1), 1, most);
  }
  // How many there can be at once, by blocks that there are and by what their tiles take of the registers.
  static int64_t most_blocks(const ProgramTables& p, const Launch& launch, const target::GpuTarget& target) {
    const int64_t of_thread = analysis::live_registers(p, launch, launch.thread_count()) + kOtherRegisters;
    const int64_t by_registers = target.multiprocessor.registers / (launch.thread_count() * of_thread);
    const int64_t of_all = target.multiprocessors;
    return std::max<int64_t>(std::min(by_registers, (known_blocks(launch) + of_all - 1) / of_all), 1);
  }
  static int64_t room_of_tiles(const target::GpuTarget& target, int64_t blocks) {
    return std::max(kMostShared, target.shared_bytes_of_blocks(blocks) - kOfSums);
  }
  // Which statements of the loop bring tiles for all turns that are brought at once; none: they cannot come before the
  // turns' other code.
  std::optional<std::set<size_t>> brought_at_once(const For& loop) const {
    if (constant_int(loop.begin) != 0 || !constant_int(loop.extent)) return std::nullopt;
    const std::set<VarId> bound = bound_vars(loop.body);
    std::set<size_t> out;
    for (size_t i = 0; i < loop.body.size(); ++i) {
      const auto* copy = loop.body[i].as<Copy>();
      const bool fills = std::ranges::any_of(analysis::written_by({loop.body[i]}, p_),
                                             [&](BufferId id) { return tiles_.contains(id); });
      if (!fills) continue;
      if (!copy) return std::nullopt;
      for (VarId v : used_vars(Body{loop.body[i]}))
        if (bound.contains(v)) return std::nullopt;
      out.insert(i);
    }
    return out;
  }
  // How many turns are brought at once: a divisor of all, so many that three times as many have room.
  int64_t turns_at_once(const For& loop, int64_t of_turn, int64_t brought) const {
    if (!brought_at_once(loop)) return 1;
    int64_t statements = 0;
    walk(loop.body, [&](const Stmt&) { ++statements; });
    const int64_t all = *constant_int(loop.extent), bytes = std::max(kAtOnce, on_the_way_ / 2);
    const int64_t room = (room_of_block_ - shared_ + brought) / of_turn;
    int64_t most = std::min({kMostTurnsAtOnce, bytes / of_turn, kMostStatements / statements, room / 3, all / 2});
    while (most > 1 && all % most != 0) --most;
    return std::max<int64_t>(most, 1);
  }
  // A tile that has those of several turns side by side: the turns' are its parts along one dimension.
  struct WideTile {
    Copy copy;  // of the first turn
    size_t along = 0;
    int64_t step = 0;  // of a turn
  };
  // None: what the copy brings in the next turns does not go on in the tensor where this one's ends.
  std::optional<WideTile> wide_tile(const Copy& c, const For& loop, int64_t turns) {
    const Buffer& tile = p_.buffer(c.to.buffer);
    if (tile.layout.kind != LayoutHint::None || !tile.strides.empty()) return std::nullopt;
    const std::vector<size_t> from = moving_dims(c.from), to = moving_dims(c.to);
    if (from.size() != to.size()) return std::nullopt;
    WideTile out{c};
    for (size_t d = 0; d < c.from.min.size(); ++d) {
      const auto step = analysis::slope(c.from.min[d], loop.var);
      const auto at = std::ranges::find(from, d);
      if (step == 0) continue;
      if (!step || out.step != 0 || at == from.end() || constant_int(c.from.extent[d]) != step) return std::nullopt;
      out.step = *step, out.along = to[static_cast<size_t>(at - from.begin())];
      Expr& extent = out.copy.from.extent[d];
      extent = constant(extent->type, *step * turns);
    }
    if (out.step == 0) return std::nullopt;
    Buffer wide = tile;
    Expr& extent = wide.shape[out.along];
    extent = constant(extent->type, out.step * turns);
    out.copy.to = whole(p_.new_buffer(std::move(wide)), p_);
    return out;
  }
  // A loop of so many times fewer turns, each of which brings the tiles of all that it stands for, into tiles of their
  // own or as one, and then does what they do.
  For together(const For& loop, int64_t turns) {
    const std::set<size_t> brought = *brought_at_once(loop);
    const DType type = p_.var(loop.var).type;
    For out = loop;
    out.var = p_.new_var(p_.var(loop.var).name, type);
    out.extent = constant(type, *constant_int(loop.extent) / turns);
    Body copies, rest;
    std::map<size_t, WideTile> wide;
    for (size_t i : brought)
      if (auto tile = wide_tile(*loop.body[i].as<Copy>(), loop, turns)) wide.emplace(i, std::move(*tile));
    for (int64_t t = 0; t < turns; ++t) {
      std::map<BufferId, BufferId> tiles;
      std::map<BufferId, IntoSlots::Slot> parts;
      const Expr turn = add(mul(var(out.var, type), constant(type, turns)), constant(type, t));
      for (size_t i : brought) {
        const BufferId tile = loop.body[i].as<Copy>()->to.buffer;
        const auto one = wide.find(i);
        if (one == wide.end()) {
          if (t > 0) tiles[tile] = p_.new_buffer(Buffer(p_.buffer(tile)));
          continue;
        }
        const WideTile& w = one->second;
        parts[tile] = {w.copy.to.buffer, constant(t * w.step), false, w.along};
        if (t == 0)
          append(copies, substitute(Body{make_stmt(Copy(w.copy), loop.body[i]->location)}, {{loop.var, turn}}));
      }
      const Body own = renamed(p_, with_buffers(substitute(loop.body, {{loop.var, turn}}), tiles));
      for (size_t i = 0; i < own.size(); ++i) {
        if (wide.contains(i)) continue;
        if (brought.contains(i))
          copies.push_back(own[i]);
        else
          append(rest, IntoSlots(parts).body({own[i]}));
      }
    }
    append(copies, rest);
    out.body = std::move(copies);
    return out;
  }
  // Whether no other block can tell when the turns read memory: nothing in them waits for others or lets others go on
  // (nor for mbarriers, in programs that do not schedule themselves). Loops inside of it run ahead themselves.
  bool only_computes(const Body& body) const {
    bool all = true;
    for (const Stmt& s : body) all = all && !s.as<For>();
    walk(body, [&](const Stmt& s) {
      const auto* atomic = s.as<Atomic>();
      const bool adds = atomic && !atomic->result.valid() && atomic->order == MemoryOrder::Relaxed;
      const bool orders = s.as<Call>() || s.as<While>() || s.as<Commit>() || s.as<Drain>() || s.as<Fence>();
      all = all && !orders && (!atomic || adds);
    });
    return all;
  }

  TileProgram& p_;
  const Launch& launch_;
  const std::set<BufferId> written_;
  int64_t on_the_way_ = 0, room_of_block_ = 0;                          // bytes of a block
  int64_t most_shared_ = kMostShared, most_of_products_ = kMostShared;  // of its tiles, and of those of products
  std::set<BufferId> tiles_;                                            // that the turns of a loop bring
  int64_t shared_ = 0;
};

}  // namespace

TileProgram two_stages(TileProgram program, const target::GpuTarget& target) {
  for (Launch& launch : program.launches) {
    TwoStages stages(program, launch, target);
    if (analysis::why_as_written(launch).empty())
      launch.body = rewrite(launch.body, [&](const Stmt& s) { return stages(s); });
  }
  return program;
}

}  // namespace tilewright::passes
