#include "passes/tile/two_stages.h"

#include "analysis/accessed.h"
#include "analysis/async_copies.h"
#include "analysis/body_order.h"
#include "analysis/brought_tiles.h"
#include "ir/buffer_vars.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/jumps.h"
#include "ir/rewrite.h"
#include "plan/decide.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// What a block's shared tiles may come to: two or three blocks share a multiprocessor then.
constexpr int64_t kMostShared = 65536;
// What a block's turns that are on their way come to, where there are so few stages: blocks beside it have as much.
constexpr int64_t kOnTheWay = 16384;
constexpr int64_t kMostStages = 4;

class TwoStages {
 public:
  TwoStages(TileProgram& p, const Launch& launch) : p_(p), launch_(launch), written_(changed_roots(launch.body, p)) {
    for (BufferId id : used_roots(launch.body, p))
      if (p.buffer(id).space == Space::Shared) shared_ += bytes_on_chip(p.buffer(id));
  }

  std::optional<Body> operator()(const Stmt& s) {
    const auto* loop = s.as<For>();
    if (!loop || !has_one_stage(*loop) || may_jump(loop->body) || !only_computes(loop->body)) return std::nullopt;
    int64_t brought = 0, staged = 0;
    for (size_t i = 0; i < loop->body.size(); ++i) {
      if (!reads_what_stays(loop->body[i])) continue;
      if (const auto tile = analysis::brought_tile(p_, launch_, *loop, i))
        brought += bytes_on_chip(p_.buffer(tile->tile));
      else if (const auto tile = staging_of(loop->body[i]))
        staged += bytes_on_chip(*tile);
    }
    // Turns in which nobody meets are on their way together already (the text of threads); a plain loop of products is
    // as its program wants it.
    const bool multiplies = std::ranges::any_of(loop->body, [](const Stmt& x) { return x.as<Gemm>(); });
    if (brought == 0 || (multiplies && loop->stages == 0)) return std::nullopt;
    if (multiplies) staged = 0;  // the loads of its operands are its pipeline's to place
    const int64_t of_turn = brought + staged, room = (kMostShared - shared_ + brought) / of_turn;
    int64_t stages = multiplies ? 2 : std::clamp<int64_t>(kOnTheWay / of_turn + 1, 2, kMostStages);
    stages = std::min({stages, room, constant_int(loop->extent).value_or(stages)});
    if (stages < 2) return std::nullopt;
    For ahead = *loop;
    ahead.kind = LoopKind::Pipelined, ahead.stages = stages;
    if (staged > 0) ahead.body = through_shared(loop->body);
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
      Copy in = *s.as<Copy>(), down;
      down.from = whole(id, p_), down.to = in.to;
      in.to = whole(id, p_);
      out.push_back(make_stmt(std::move(in), s->location));
      out.push_back(make_stmt(std::move(down), s->location));
    }
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
  int64_t shared_ = 0;
};

}  // namespace

TileProgram two_stages(TileProgram program) {
  for (Launch& launch : program.launches) {
    TwoStages stages(program, launch);
    if (plan::why_as_written(launch).empty())
      launch.body = rewrite(launch.body, [&](const Stmt& s) { return stages(s); });
  }
  return program;
}

}  // namespace tilewright::passes
