#include "passes/threads/shared_layout.h"

#include "analysis/panels.h"
#include "ir/cluster.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;
using analysis::box_columns;
using analysis::kSharedAlignment;
using analysis::panel_span;

namespace {

constexpr int64_t kBarrierBytes = 8;

// Rows of what ldmatrix reads lie an odd number of 16-byte chunks apart, so that eight of them touch all banks once.
void pad(Buffer& b) {
  const int64_t chunk = 128 / b.type.bits, row = constant_int(b.shape.back()).value_or(0);
  int64_t stride = row / chunk % 2 == 0 ? row + chunk : row;
  // Half a warp reads four doubles of each of four rows: 32 bytes that are to lie in banks of their own.
  if (b.type == f64)
    for (stride = row + row % 2; stride % 8 != 4;) stride += 2;
  b.strides.assign(b.rank(), constant(i32, int64_t{1}));
  for (size_t d = b.rank() - 1; d-- > 0;) {
    b.strides[d] = constant(i32, stride);
    stride *= constant_int(b.shape[d]).value_or(1);
  }
}

std::vector<int64_t> shape_of(const Buffer& b) {
  std::vector<int64_t> out;
  for (const Expr& e : b.shape) out.push_back(constant_int(e).value_or(1));
  return out;
}

// Places, each the lowest that keeps clear of all buffers whose lives meet this one's.
class Shelf {
 public:
  // Without an `owner` every two lives meet.
  Shelf(const ThreadProgram& p, const Launch& launch, const NamedBarriers& barriers, std::optional<RolesOf> owner)
      : p_(p) {
    if (owner) lives_.emplace(p, launch, barriers, *owner);
  }
  int64_t place(BufferId id, std::span<const BufferId> placed, int64_t multiple, std::set<Seam>& seams) const {
    const int64_t bytes = shared_bytes_of(p_.buffer(id));
    int64_t at = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (BufferId other : placed) {
        if (!overlap(at, bytes, other) || seam(id, other)) continue;
        const int64_t end = p_.buffer(other).place + shared_bytes_of(p_.buffer(other));
        at = (end + multiple - 1) / multiple * multiple, moved = true;
      }
    }
    for (BufferId other : placed)
      if (overlap(at, bytes, other)) seams.insert(*seam(id, other));
    return at;
  }

 private:
  bool overlap(int64_t at, int64_t bytes, BufferId other) const {
    const int64_t place = p_.buffer(other).place;
    return at < place + shared_bytes_of(p_.buffer(other)) && place < at + bytes;
  }
  std::optional<Seam> seam(BufferId a, BufferId b) const {
    if (!lives_) return std::nullopt;
    const auto found = lives_->seam(a, b);
    return found ? found : lives_->seam(b, a);
  }

  const ThreadProgram& p_;
  std::optional<SharedLives> lives_;
};

}  // namespace

int64_t shared_bytes_of(const Buffer& b) {
  if (b.space == Space::Barrier) return kBarrierBytes * static_cast<int64_t>(b.arrive_counts.size());
  return b.memory ? b.memory->bytes() : bytes_on_chip(b);
}

void lay_out_shared(ThreadProgram& p, const Launch& launch, const Placement& placement, bool tight) {
  std::set<BufferId> panels, rows;
  walk(launch.body, [&](const Stmt& s) {
    if (const auto* copy = s.as<Copy>(); copy && !copy->completion.immediate() &&
                                         copy->completion.queue != Queue::CpAsync &&
                                         copy->completion.queue != Queue::StAsync) {
      panels.insert(p.buffer(copy->from.buffer).space == Space::Global ? copy->to.buffer : copy->from.buffer);
    }
    if (const auto* n = s.as<LoadMatrix>(); n && p.buffer(n->from.buffer).rank() > 1) rows.insert(n->from.buffer);
    const auto* gemm = s.as<Gemm>();
    if (!gemm) return;
    const GemmChoice& choice = placement.choice_of(s);
    if (!choice.has_layout()) return;
    for (const Region* r : {&gemm->a, &gemm->b})
      if (!placement.layout_of(r->buffer)) (choice.wgmma ? panels : rows).insert(r->buffer);
  });
  walk(launch.body, [&](const Stmt& s) {
    const auto* call = s.as<Call>();
    for (const Expr& e : call ? call->args : std::vector<Expr>{}) {
      const auto* pointer = e.as<Address>();
      if (!pointer) continue;
      rows.erase(p.root(pointer->buffer));  // foreign text knows rows without gaps only
      if (panels.contains(p.root(pointer->buffer)))
        fail(Code::GpuUnsupported, p.location(s->location),
             fmt::format("'{}' is passed to '{}', but lies in the panels that TMA and wgmma read",
                         p.buffer(pointer->buffer).name, call->function),
             "pass a copy of it");
    }
  });
  for (BufferId id : panels) {
    rows.erase(id);
    Buffer& b = p.buffers[id.index];
    const int64_t span = panel_span(p, id);
    if (span == 0) continue;
    b.memory = box_columns(p, id) * b.type.bits / 8 == span ? MemoryLayout::panels(shape_of(b), b.type.bits, span)
                                                            : MemoryLayout::row_major(shape_of(b), b.type.bits);
  }
  if (tight) rows.clear();
  std::vector<Buffer*> of_peers;  // which lie as the tile does
  for (Buffer& b : p.buffers)
    if (is_same_tile(p, b))
      of_peers.push_back(&b);
    else if (b.is_view())
      rows.erase(b.root);  // a view sees rows without gaps
  std::erase_if(rows, [&](BufferId id) { return p.buffer(id).is_view() || !p.buffer(id).strides.empty(); });
  for (BufferId id : rows) pad(p.buffers[id.index]);
  for (Buffer* b : of_peers) b->memory = p.buffer(b->root).memory, b->strides = p.buffer(b->root).strides;
}

std::optional<Diagnostic> place_shared(ThreadProgram& p, int32_t number, const target::GpuTarget& target,
                                       const Placement& placement, const NamedBarriers& barriers,
                                       std::optional<RolesOf> reuse) {
  Launch& launch = p.launches[static_cast<size_t>(number)];
  std::set<BufferId> used;
  for (BufferId b : used_buffers(launch.body)) used.insert(p.root(b));
  std::vector<BufferId> order;
  for (BufferId id : used) {
    const Buffer& b = p.buffer(id);
    if (b.launch == number && (b.space == Space::Shared || b.space == Space::Barrier)) order.push_back(id);
  }
  // What is aligned most comes first, so that little is lost between; then what is largest, which others fit over.
  auto alignment = [&](BufferId id) {
    const Buffer& b = p.buffer(id);
    return b.memory                    ? std::max(kSharedAlignment, b.memory->alignment())
           : b.space == Space::Barrier ? kBarrierBytes
                                       : kSharedAlignment;
  };
  std::stable_sort(order.begin(), order.end(), [&](BufferId a, BufferId b) {
    const int64_t size_a = reuse ? shared_bytes_of(p.buffer(a)) : 0, size_b = reuse ? shared_bytes_of(p.buffer(b)) : 0;
    return std::pair(alignment(a), size_a) > std::pair(alignment(b), size_b);
  });
  const Shelf shelf(p, launch, barriers, reuse);
  std::set<Seam> seams;
  std::vector<Note> notes;
  int64_t end = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    Buffer& b = p.buffers[order[i].index];
    b.place = shelf.place(order[i], std::span(order).first(i), alignment(order[i]), seams);
    end = std::max(end, b.place + shared_bytes_of(b));
    std::string takes = fmt::format("'{}' takes {} bytes", b.name, shared_bytes_of(b));
    const auto why = placement.in_memory.find(order[i]);
    if (why != placement.in_memory.end())
      takes += fmt::format(": a fragment that lives in shared memory, since {}", why->second);
    notes.push_back({std::move(takes), p.location(b.location)});
  }
  if (end <= target.shared_bytes) {
    wait_at(launch, barriers, seams);
    return std::nullopt;
  }
  return make_diagnostic(
      Code::GpuSharedMemory, p.location(launch.location),
      fmt::format("the block needs {} bytes of shared memory; sm_{} has {}", end, target.arch, target.shared_bytes),
      "make the tiles smaller, or the pipeline shorter", std::move(notes));
}

}  // namespace tilewright::passes
