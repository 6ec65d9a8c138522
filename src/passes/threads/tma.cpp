// Copies that the threads do not wait for: boxes between global and shared memory by TMA, where one thread asks for
// each panel of the tile, and elements that threads store to other blocks. Those of cp.async are maps of stores
// (map.cpp).
#include "analysis/tma.h"
#include "analysis/divisibility.h"
#include "analysis/im2col.h"
#include "analysis/panels.h"
#include "ir/operators.h"
#include "ir/widen.h"
#include "passes/assume_fast_calls.h"
#include "passes/threads/collectives.h"
#include "passes/threads/shared_layout.h"

namespace tilewright::passes {

using namespace ir;
using analysis::box_columns;
using analysis::im2col_box;
using analysis::kStrideBytes;
using analysis::tma_misfit;

// A thread for each element, in row-major order.
static Body stores_to_peer(const Copy& copy, const Team& team, const Lowering& l) {
  int64_t count = 1;
  for (const Expr& e : copy.to.extent) count *= *constant_int(e);
  check_internal(count <= team.count, "{} threads store {} elements to another block", team.count, count);
  const auto of_thread = [&](Region r) {
    Expr rest = team.thread;
    for (size_t d = r.min.size(); d-- > 0;) {
      const int64_t extent = *constant_int(std::exchange(r.extent[d], constant(1)));
      if (extent == 1) continue;
      r.min[d] = add(widen(r.min[d]), widen(binary(BinaryOp::FloorMod, rest, constant(extent))));
      rest = binary(BinaryOp::FloorDiv, rest, constant(extent));
    }
    return r;
  };
  Copy one = copy;
  one.from = of_thread(copy.from), one.to = of_thread(copy.to);
  return {l.make(If{binary(BinaryOp::Lt, team.thread, constant(count)), {l.make(std::move(one))}, {}})};
}

// The copies of the box that the thread's warp has written.
static Body panels_of_warp(const Copy& copy, const WarpBox& warp, int64_t panel, const Team& team, const Lowering& l) {
  constexpr int64_t kGroupWarps = kWarpgroupThreads / kWarpThreads;
  const Expr number = binary(BinaryOp::FloorDiv, team.thread, constant(kWarpThreads));
  const Expr in_group = binary(BinaryOp::FloorMod, number, constant(kGroupWarps));
  const Expr group = binary(BinaryOp::FloorDiv, number, constant(kGroupWarps));
  Region on_chip = copy.from, box = copy.to;
  size_t to = 0;  // the dimension of the tensor along which this one of the tile lies
  const auto next = [&] {
    while (to < box.extent.size() && constant_int(box.extent[to]) == 1) ++to;
    return to++;
  };
  for (size_t d = 0; d < warp.sides.size(); ++d) {
    const WarpBox::Side& side = warp.sides[d];
    const bool counts = constant_int(on_chip.extent[d]) != 1;
    const Expr first =
        add(add(constant(side.first), mul(in_group, constant(side.of_warp))), mul(group, constant(side.of_group)));
    std::vector<std::pair<Region*, size_t>> moved{{&on_chip, d}};
    if (counts) moved.emplace_back(&box, next());
    for (const auto& [r, at] : moved)
      r->min[at] = add(widen(r->min[at]), widen(first)), r->extent[at] = constant(side.extent);
  }
  Body out;
  for (int64_t first = 0; first < warp.sides.back().extent; first += panel) {
    Copy one = copy;
    one.from = on_chip, one.to = box;
    for (Region* r : {&one.from, &one.to}) {
      for (Expr& e : r->min) e = widen(e);
      r->min.back() = add(r->min.back(), wide(first)), r->extent.back() = constant(panel);
    }
    out.push_back(l.make(std::move(one)));
  }
  return out;
}

template <>
Body lower_for_thread(const Copy& copy, const Stmt& s, const Team& team, CollectiveLowering& c) {
  if (copy.completion.queue == Queue::CpAsync) return lower_async_copy(copy, *c.placement.points_of(s), team, c);
  Lowering& l = c.l;
  if (copy.completion.queue == Queue::StAsync) return stores_to_peer(copy, team, l);
  const bool loads = l.is_global(copy.from.buffer);
  if (loads && analysis::is_one_run(copy, l.buffer(copy.to.buffer), l.program) &&
      std::ranges::all_of(analysis::inside_of_tensor(copy, l.program),
                          [&](const Expr& c) { return l.intervals.proves(c); })) {
    Buffer& tensor = l.program.buffers[copy.from.buffer.index];
    tensor.alignment = std::max(tensor.alignment, kStrideBytes);
    Copy one = copy;
    for (Region* r : {&one.from, &one.to})
      for (Expr& e : r->min) e = widen(e);
    return by_one_thread({l.make(std::move(one))}, team, l);
  }
  if (std::string why = tma_misfit(copy, l.program); !why.empty())
    fail(Code::GpuTma, l.location(), fmt::format("this asynchronous copy is none that TMA does: {}", why),
         "copy without a barrier: the compiler then chooses how");
  const Region global = copy.im2col.present() ? *im2col_box(copy, l.program) : loads ? copy.from : copy.to;
  const Region& shared = loads ? copy.to : copy.from;
  const int64_t panel = box_columns(l.program, shared.buffer);
  const int64_t columns = *constant_int(shared.extent.back());
  Buffer& tensor = l.program.buffers[global.buffer.index];
  tensor.alignment = std::max(tensor.alignment, kStrideBytes);
  Body out;
  if (const auto found = c.warp_boxes.find(shared.buffer); found != c.warp_boxes.end() && !loads)
    return by_each_warp(panels_of_warp(copy, found->second, panel, team, l), l);
  for (int64_t first = 0; first < columns; first += panel) {
    Region on_chip = shared, box = global;
    for (Region* r : {&on_chip, &box}) {
      for (Expr& e : r->min) e = widen(e);
      r->min.back() = add(r->min.back(), wide(first)), r->extent.back() = constant(std::min(panel, columns - first));
    }
    Copy one = copy;
    one.im2col = {};
    one.from = loads ? box : on_chip, one.to = loads ? on_chip : box;
    out.push_back(l.make(std::move(one)));
  }
  return by_one_thread(std::move(out), team, l);
}

Body by_each_warp(Body body, const Lowering& l) { return {l.make(Elect{std::move(body)})}; }

Body by_one_thread(Body body, const Team& team, const Lowering& l) {
  if (team.alone) return body;
  const Stmt elected = l.make(Elect{std::move(body)});
  if (team.count <= kWarpThreads) return {elected};
  if (team.in_line) return {l.make(Role{team.begin, team.begin + kWarpThreads, {elected}})};
  return {l.make(If{binary(BinaryOp::Lt, team.thread, constant(kWarpThreads)), {elected}, {}})};
}

}  // namespace tilewright::passes
