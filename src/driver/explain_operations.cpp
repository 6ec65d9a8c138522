#include "driver/explain_operations.h"

#include "analysis/async_copies.h"
#include "analysis/tma.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright {
namespace {

using passes::GemmChoice;
using passes::ThreadLowering;

// Operations are found again by their places, which lowering keeps.
using Place = std::pair<int, int>;  // line, column
Place place_of(const SourceLocation& at) { return {at.line, at.column}; }

void add_once(std::vector<std::string>& list, std::string text) {
  if (!text.empty() && std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

// Tile statements of a body; what a Map holds is thread code.
template <class F>
void for_each_tile(const ir::Body& body, const F& f) {
  for (const ir::Stmt& s : body) {
    f(s);
    if (!s.as<ir::Map>()) ir::for_each_body(s, [&](const ir::Body& inner) { for_each_tile(inner, f); });
  }
}

// What the code of one thread does: how wide it accesses each memory, and whether lanes exchange values.
class Widths {
 public:
  explicit Widths(const ir::ProgramTables& p) : p_(p) {}

  void add(const ir::Stmt& s) {
    shuffles_ = shuffles_ || s.as<ir::Shuffle>();
    if (const auto* n = s.as<ir::Copy>()) {
      if (n->completion.immediate() || n->completion.queue == ir::Queue::CpAsync) copy(*n);
      return;
    }
    if (const auto* n = s.as<ir::LoadMatrix>()) note(n->from.buffer, "reads", "ldmatrix");
    if (const auto* n = s.as<ir::StoreMatrix>()) note(n->to.buffer, "writes", "stmatrix");
    if (const auto* n = s.as<ir::Store>()) note(n->to.buffer, "writes", bytes(n->to.buffer, 1));
    if (const auto* n = s.as<ir::Atomic>()) note(n->to.buffer, "updates", bytes(n->to.buffer, 1));
    ir::for_each_expr(s, [&](const ir::Expr& e) {
      ir::walk(e, [&](const ir::Expr& x) {
        if (const auto* n = x.as<ir::Load>()) note(n->buffer, "reads", bytes(n->buffer, 1));
      });
    });
  }
  std::vector<std::string> text() const {
    std::vector<std::string> out;
    for (const auto& [what, widths] : seen_) out.push_back(fmt::format("{} {}", what, fmt::join(widths, " or ")));
    if (shuffles_) out.push_back("exchanges values between lanes by shuffles");
    return out;
  }

 private:
  std::string bytes(ir::BufferId id, int64_t elements) const {
    const int64_t bits = p_.buffer(id).type.storage_bits() * elements;
    return bits < 8 ? fmt::format("{} bits", bits) : fmt::format("{} bytes", bits / 8);
  }
  void copy(const ir::Copy& n) {
    int64_t elements = 1;
    // By cp.async, none may be read.
    const bool queued = n.completion.queue == ir::Queue::CpAsync;
    for (const ir::Expr& e : queued ? n.to.extent : n.from.extent) elements *= ir::constant_int(e).value_or(1);
    note(n.from.buffer, "reads", bytes(n.from.buffer, elements));
    note(n.to.buffer, n.combine == ir::Combine::None ? "writes" : "updates", bytes(n.to.buffer, elements));
  }
  void note(ir::BufferId id, const char* how, std::string width) {
    const ir::Space space = p_.buffer(p_.root(id)).space;
    if (space == ir::Space::Local || space == ir::Space::Barrier) return;
    seen_[fmt::format("{} {} memory by", how, ir::name_of(space))].insert(std::move(width));
  }

  const ir::ProgramTables& p_;
  std::map<std::string, std::set<std::string>> seen_;
  bool shuffles_ = false;
};

class OperationWalk {
 public:
  OperationWalk(const ir::TileProgram& tiles, const ThreadLowering& lowering, size_t number,
                const target::GpuTarget& target)
      : tiles_(tiles), l_(lowering), number_(number), target_(target) {
    for_each_tile(l_.tiles.launches[number].body,
                  [&](const ir::Stmt& s) { planned_[place_of(l_.tiles.location(s->location))].push_back(s); });
    for_each_tile(tiles.launches[number].body,
                  [&](const ir::Stmt& s) { written_.emplace(place_of(tiles.location(s->location)), s); });
    ir::walk(l_.threads.launches[number].body, [&](const ir::Stmt& s) {
      auto [at, added] = widths_.emplace(place_of(l_.threads.location(s->location)), Widths(l_.threads));
      at->second.add(s);
    });
  }

  void add(OperationFacts& op) const {
    const Place place = place_of(op.location);
    const auto made = planned_.find(place);
    const auto written = written_.find(place);
    op.rate = target_.rates.plain;
    std::vector<std::string> points;  // behind what says more
    if (made != planned_.end())
      for (const ir::Stmt& s : made->second) add(s, op, points);
    if (written != written_.end())
      if (const auto* copy = written->second.as<ir::Copy>()) alternatives(*copy, made, op);
    const auto code = widths_.find(place);
    if (code != widths_.end())
      for (std::string& text : code->second.text()) add_once(op.becomes, std::move(text));
    for (std::string& text : points) add_once(op.becomes, std::move(text));
    const auto* copy = written != written_.end() ? written->second.as<ir::Copy>() : nullptr;
    if (copy && !copy->prefer.empty() && !names(op.becomes, copy->prefer))
      add_once(op.rejected,
               fmt::format("{}, which the program prefers: the compiler has its own choice", copy->prefer));
    if (copy && op.becomes.empty() && is_staged(*copy)) add_once(op.becomes, "TMA store from shared memory");
    if (op.becomes.empty() && op.location.known())
      op.becomes.push_back(code != widths_.end() ? "in the registers of each thread"
                                                 : "no code of its own: others do it on their way");
  }

 private:
  using Planned = std::map<Place, std::vector<ir::Stmt>>;

  // Whether a line speaks of the instruction, in whatever case.
  static bool names(const std::vector<std::string>& lines, const std::string& instruction) {
    const auto same = [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
    };
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return std::search(line.begin(), line.end(), instruction.begin(), instruction.end(), same) != line.end();
    });
  }

  void add(const ir::Stmt& s, OperationFacts& op, std::vector<std::string>& points) const {
    if (const auto* n = s.as<ir::Gemm>()) return gemm(*n, s, op);
    if (const auto* n = s.as<ir::Copy>()) return add_once(op.becomes, asynchronous(*n));
    const auto* map = s.as<ir::Map>();
    const auto* store = map && !map->body.empty() ? map->body.back().as<ir::Store>() : nullptr;
    if (store && store->queue == ir::Queue::CpAsync) add_once(op.becomes, by_cp_async(store->to.buffer));
    const passes::Placement& placement = l_.placements[number_];
    if (const FragmentLayout* layout = placement.points_of(s))
      add_once(points, fmt::format("points {}", layout->text()));
  }
  void gemm(const ir::Gemm& n, const ir::Stmt& s, OperationFacts& op) const {
    const GemmChoice& c = l_.placements[number_].choice_of(s);
    add_once(op.becomes, instruction_text(n, c));
    if (c.wgmma && !n.completion.immediate()) add_once(op.becomes, "its group stays open: other code runs beside it");
    const double rate = target_.rates.of_matrix(ir::operand_type(l_.tiles, n, n.a));
    if (c.has_instruction() && rate > 0) op.rate = rate;
    if (!c.why_not_wgmma.empty()) add_once(op.rejected, "wgmma: " + c.why_not_wgmma);
    if (!c.why_not_mma.empty()) add_once(op.rejected, "mma.sync: " + c.why_not_mma);
  }
  std::string ring_of(ir::BufferId id) const {
    const ir::Buffer& b = l_.tiles.buffer(id);
    for (const plan::Ring& ring : l_.plans[number_].rings)
      for (const std::string& tile : names_of(ring, l_.tiles))
        if (tile == b.name && ring.slots > 1) return fmt::format(" into a ring of {} slots", ring.slots);
    return "";
  }
  std::string by_cp_async(ir::BufferId ring) const {
    const ir::Buffer& b = l_.tiles.buffer(ring);
    const std::string into =
        b.rank() > 0 ? fmt::format(" into a ring of {} slots", ir::constant_int(b.shape[0]).value_or(1)) : "";
    return fmt::format("cp.async{}, ahead of its loop", into);
  }
  std::string asynchronous(const ir::Copy& n) const {
    if (n.completion.queue == ir::Queue::CpAsync) return by_cp_async(n.to.buffer);
    if (n.completion.queue == ir::Queue::BulkStore)
      return n.combine == ir::Combine::None ? "TMA store from shared memory" : "TMA reduction from shared memory";
    if (n.completion.queue == ir::Queue::StAsync) return "st.async to another block, whose barrier has the bytes";
    return "TMA load" + ring_of(n.to.buffer) + ", completes on an mbarrier";
  }
  bool is_staged(const ir::Copy& n) const {
    const std::vector<ir::BufferId>& staged = l_.plans[number_].epilogue.staged;
    return tiles_.buffer(n.to.buffer).space == ir::Space::Global &&
           std::find(staged.begin(), staged.end(), n.from.buffer) != staged.end();
  }
  // What a copy might have been, and why it is not.
  void alternatives(const ir::Copy& n, Planned::const_iterator made, OperationFacts& op) const {
    bool tma = false, async = false;
    if (made != planned_.end())
      for (const ir::Stmt& s : made->second)
        if (const auto* copy = s.as<ir::Copy>()) {
          async = async || copy->completion.queue == ir::Queue::CpAsync;
          tma = tma || copy->completion.queue != ir::Queue::CpAsync;
        }
    const auto space = [&](ir::BufferId id) { return tiles_.buffer(tiles_.root(id)).space; };
    const ir::Space from = space(n.from.buffer), to = space(n.to.buffer);
    if (from != ir::Space::Global && to != ir::Space::Global) return;
    if (target_.has.tma) op.by_tma = tma || is_staged(n);
    if (!tma && (from == ir::Space::Shared || to == ir::Space::Shared)) {
      op.not_tma = why_not_tma(n);
      add_once(op.rejected, "TMA: " + op.not_tma);
    } else if (op.by_tma == false) {
      op.not_tma = to == ir::Space::Global ? "straight from registers" : "straight to registers";
    }
    if (!tma && !is_staged(n) && from == ir::Space::Fragment && l_.plans[number_].has_loader())
      add_once(op.rejected,
               "TMA store through shared memory: TMA does not take the box, or there is no room to stage it");
    if (!tma && !async && from == ir::Space::Global && to == ir::Space::Shared)
      add_once(op.rejected, "cp.async: " + why_not_async(n, op));
  }
  std::string why_not_tma(const ir::Copy& n) const {
    if (!target_.has.tma) return fmt::format("sm_{} has none", target_.arch);
    if (std::string why = analysis::tma_misfit(n, tiles_); !why.empty()) return why;
    const std::string why = l_.plans[number_].why_no_loader();
    return why.empty() ? "its tile belongs to no ring" : "no warp of the block only loads: " + why;
  }
  std::string why_not_async(const ir::Copy& n, const OperationFacts& op) const {
    if (l_.plans[number_].has_loader()) return "the loops are those of the loader and of the others";
    if (std::string why = analysis::async_misfit(n, tiles_.buffer(n.to.buffer), tiles_); !why.empty()) return why;
    // The innermost loop whose note there is: notes are few, and stand at loops before what they hold.
    std::string why;
    int best = -1;
    for (const auto& [at, text] : l_.notes) {
      const int line = l_.tiles.location(at).line;
      if (line <= op.location.line && line > best) best = line, why = text;
    }
    return why.empty() ? "it stands in no pipelined loop" : "its loop stays serial, because " + why;
  }

  const ir::TileProgram& tiles_;
  const ThreadLowering& l_;
  const size_t number_;
  const target::GpuTarget& target_;
  Planned planned_;
  std::map<Place, ir::Stmt> written_;
  std::map<Place, Widths> widths_;
};

}  // namespace

std::string instruction_text(const ir::Gemm& gemm, const GemmChoice& c) {
  const size_t columns_at = gemm.c.extent.size() - (c.transposed ? 2 : 1);
  const int64_t columns = ir::constant_int(gemm.c.extent[columns_at]).value_or(0);
  const std::string a = c.transposed ? "c transposed, from b and a"
                                     : fmt::format("a from {}", c.a_in_registers ? "registers" : "shared memory");
  if (c.wgmma)
    return fmt::format("wgmma.mma_async{} {}, {} x {} warpgroups, {}", c.wgmma->sparse ? ".sp" : "",
                       c.wgmma->name(c.wgmma->most_columns(columns / c.warps_n)), c.warps_m, c.warps_n, a);
  if (c.mma) {
    std::string out = fmt::format("mma{} {}, {} x {} warps, {}", c.mma->sparse ? ".sp" : ".sync", c.mma->name,
                                  c.warps_m, c.warps_n, a);
    if (!c.a_by_elements.empty()) out += fmt::format(", a element by element: {}", c.a_by_elements);
    if (!c.b_by_elements.empty()) out += fmt::format(", b element by element: {}", c.b_by_elements);
    return out;
  }
  if (!c.tile) return "fused multiply-adds, each thread its own elements of c";
  const int64_t rows = ir::constant_int(gemm.c.extent[gemm.c.extent.size() - 2]).value_or(0);
  return fmt::format("fused multiply-adds, tiles of {} x {} in registers", rows / c.warps_m / kTileLanesOfColumn,
                     columns / c.warps_n / kTileLanesOfRow);
}

void add_operation_facts(const ir::TileProgram& tiles, const passes::ThreadLowering& lowering, size_t number,
                         const target::GpuTarget& target, LaunchFacts& launch) {
  const OperationWalk walk(tiles, lowering, number, target);
  for (OperationFacts& op : launch.operations) walk.add(op);
}

}  // namespace tilewright
