#include "passes/warp_arrivals.h"

#include "ir/operators.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"

namespace tilewright::passes {

using namespace ir;

namespace {

Expr linear_thread(const Launch& launch) {
  Expr out = constant(0);
  for (size_t d = launch.threads.size(); d-- > 0;)
    out = add(mul(out, constant(i32, launch.threads[d])), var(launch.thread[d], i32));
  return out;
}

}  // namespace

Body by_first_threads(const Arrive& arrive, const Expr& thread, LocationId at) {
  Arrive own = arrive;
  own.by = ArriveBy::Thread;
  const Expr lane = binary(BinaryOp::FloorMod, thread, constant(i32, int64_t{kWarpThreads}));
  const Expr first = binary(BinaryOp::Eq, lane, constant(i32, int64_t{0}));
  return {make_stmt(Sync{SyncScope::Warp, {}, 0, false}, at),
          make_stmt(If{first, {make_stmt(std::move(own), at)}, {}}, at)};
}

TileProgram spell_warp_arrivals(TileProgram p) {
  for (Launch& launch : p.launches) {
    const Expr thread = linear_thread(launch);
    launch.body = rewrite(launch.body, [&](const Stmt& s) -> std::optional<Body> {
      const auto* n = s.as<Arrive>();
      if (!n || n->by != ArriveBy::Warp) return std::nullopt;
      return by_first_threads(*n, thread, s->location);
    });
  }
  return p;
}

const Arrive* spelled_arrival(const Body& body, size_t at, const Launch& launch) {
  const auto* branch = at + 1 < body.size() ? body[at + 1].as<If>() : nullptr;
  const auto* arrive = branch && branch->then_body.size() == 1 ? branch->then_body[0].as<Arrive>() : nullptr;
  if (!arrive || arrive->queue != Queue::None) return nullptr;
  const Body words = by_first_threads(*arrive, linear_thread(launch), {});
  return equal(body[at], words[0]) && equal(body[at + 1], words[1]) ? arrive : nullptr;
}

}  // namespace tilewright::passes
