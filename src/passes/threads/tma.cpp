// Copies of boxes between global and shared memory by TMA: one thread asks for each panel of the tile.
#include "analysis/divisibility.h"
#include "ir/operators.h"
#include "passes/assume_fast_calls.h"
#include "passes/lower/im2col.h"
#include "passes/threads/collectives.h"
#include "passes/threads/shared_layout.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// CUDA driver API, cuTensorMapEncodeTiled.
constexpr size_t kMaxRank = 5;
constexpr int64_t kStrideBytes = 16;

bool is_multiple(const Expr& e, int64_t elements, const ProgramTables& p) {
  return elements <= 1 || analysis::power_of_two_divisor(widen(e), p) % elements == 0;
}

}  // namespace

std::string tma_misfit(const Copy& copy, const ProgramTables& p) {
  const bool loads = p.buffer(copy.from.buffer).space == Space::Global;
  const Region& shared = loads ? copy.to : copy.from;
  const std::optional<Region> patches = copy.im2col.present() ? im2col_box(copy, p) : std::nullopt;
  if (copy.im2col.present() && !patches) return "it takes patches of an image that are no box of it";
  const Region& global = patches ? *patches : loads ? copy.from : copy.to;
  const Buffer &g = p.buffer(global.buffer), &s = p.buffer(shared.buffer);
  if (g.type != s.type) return "it converts";
  if (begins_anywhere(g)) return fmt::format("'{}' may begin at any of its elements", g.name);
  if (g.is_view() || g.address) return fmt::format("'{}' is a view", g.name);
  if (g.fill && constant_int(g.fill) != 0) return fmt::format("'{}' has a fill value", g.name);
  if (g.rank() > kMaxRank) return fmt::format("'{}' has more than {} dimensions", g.name, kMaxRank);
  if (box_columns(p, shared.buffer) == 0)
    return s.rank() == 1 ? fmt::format("'{}' is no multiple of 16 bytes, or seen through views", s.name)
                         : fmt::format("rows of '{}' are not 16 bytes, nor whole panels of 32, 64 or 128", s.name);
  const int64_t elements = std::max<int64_t>(kStrideBytes * 8 / g.type.bits, 1);
  if (!g.strides.empty() && constant_int(g.strides.back()) != 1) return fmt::format("'{}' is not contiguous", g.name);
  for (size_t d = 0; d + 1 < g.rank(); ++d)
    if (!is_multiple(g.strides.empty() ? g.shape.back() : g.strides[d], elements, p))
      return fmt::format("rows of '{}' are not known to be multiples of {} bytes", g.name, kStrideBytes);
  // Seen on an H200: a box that begins elsewhere is an illegal instruction, whatever its swizzle.
  if (!is_multiple(global.min.back(), elements, p))
    return fmt::format("it may begin between pieces of {} bytes of rows of '{}'", kStrideBytes, g.name);
  // The tile: the last two dimensions on chip, whole rows of it, against the last of the tensor.
  const size_t rank = shared.min.size();
  for (size_t d = 0; d + 2 < rank; ++d)
    if (constant_int(shared.extent[d]) != 1) return fmt::format("it fills more than a matrix of '{}'", s.name);
  const int64_t panel = box_columns(p, shared.buffer);
  const auto first = constant_int(shared.min[rank - 1]), columns = constant_int(shared.extent[rank - 1]);
  if (!first || !columns || *first % panel != 0 || *columns % panel != 0)
    return fmt::format("it moves part of a panel of '{}'", s.name);
  if (rank > 1 && !is_multiple(shared.min[rank - 2], 8, p))
    return fmt::format("it begins between eights of rows of '{}'", s.name);
  if (constant_int(global.extent.back()) != constant_int(shared.extent.back()))
    return fmt::format("rows of '{}' are not along its last dimension", g.name);
  const int64_t rows = rank > 1 ? constant_int(shared.extent[rank - 2]).value_or(0) : 1;
  int64_t boxed = 1;
  for (size_t d = 0; d + 1 < global.extent.size(); ++d) {
    const auto extent = constant_int(global.extent[d]);
    if (!extent || *extent <= 0 || *extent > kMaxBox) return "its box has more than 256 rows";
    if (*extent != 1 && boxed != 1 && !patches) return "its rows run over two dimensions";
    boxed *= *extent;
  }
  if (boxed != rows) return "the rows of both sides differ";
  if (copy.combine != ir::Combine::None && loads) return "it combines on chip";
  return "";
}

bool is_by_tma(const Copy& copy) {
  const Queue queue = copy.completion.queue;
  return !copy.completion.immediate() && queue != Queue::CpAsync && queue != Queue::Prefetch;
}

Body lower_tma(const Copy& copy, const Team& team, CollectiveLowering& c) {
  Lowering& l = c.l;
  const bool loads = l.is_global(copy.from.buffer);
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
  for (int64_t first = 0; first < columns; first += panel) {
    Region on_chip = shared, box = global;
    for (Region* r : {&on_chip, &box}) {
      for (Expr& e : r->min) e = widen(e);
      r->min.back() = add(r->min.back(), wide(first)), r->extent.back() = constant(panel);
    }
    Copy one = copy;
    one.im2col = {};
    one.from = loads ? box : on_chip, one.to = loads ? on_chip : box;
    out.push_back(l.make(std::move(one)));
  }
  return by_one_thread(std::move(out), team, l);
}

Body by_one_thread(Body body, const Team& team, const Lowering& l) {
  const Stmt elected = l.make(Elect{std::move(body)});
  if (team.count <= kWarpThreads) return {elected};
  if (team.in_line) return {l.make(Role{team.begin, team.begin + kWarpThreads, {elected}})};
  return {l.make(If{binary(BinaryOp::Lt, team.thread, constant(kWarpThreads)), {elected}, {}})};
}

}  // namespace tilewright::passes
