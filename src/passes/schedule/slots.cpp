#include "passes/schedule/slots.h"

#include "ir/match.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

void add_slots(Buffer& tile, int64_t slots) {
  tile.shape.insert(tile.shape.begin(), constant(i32, slots));
  if (tile.layout.kind == LayoutHint::Function) tile.layout = {};
}

BufferId ring_of(ProgramTables& p, BufferId buffer, int64_t slots) {
  Buffer b = p.buffer(buffer);
  add_slots(b, slots);
  return p.new_buffer(std::move(b));
}

namespace {

// Dimensions in front of those of the buffer.
size_t dims_in_front(const IntoSlots::Slot& slot) { return slot.along ? 0 : slot.is_row ? 2 : 1; }

void into_slot(const IntoSlots::Slot& slot, std::vector<Expr>& index) {
  if (slot.along) {
    Expr& e = index[*slot.along];
    e = add(e, cast(slot.number, e->type));
    return;
  }
  if (slot.is_row) index.insert(index.begin(), constant(0));
  index.insert(index.begin(), slot.number);
}

// Every region and element that a statement names, whatever it does with it.
struct IntoSlotFields {
  const std::map<BufferId, IntoSlots::Slot>& slots;
  bool changed = false;
  void operator()(const char*, auto& field) { visit(field); }
  void visit(auto& field) {
    using T = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<T, Region>) {
      const auto found = slots.find(field.buffer);
      if (found == slots.end()) return;
      changed = true, field.buffer = found->second.ring;
      into_slot(found->second, field.min);
      field.extent.insert(field.extent.begin(), dims_in_front(found->second), constant(1));
    } else if constexpr (std::is_same_v<T, Element>) {
      const auto found = slots.find(field.buffer);
      if (found == slots.end()) return;
      changed = true, field.buffer = found->second.ring;
      into_slot(found->second, field.indices);
    } else if constexpr (std::is_same_v<T, std::vector<Region>>) {
      for (Region& r : field) visit(r);
    }
  }
};

}  // namespace

Region IntoSlots::region(Region r) const {
  IntoSlotFields{slots_}.visit(r);
  return r;
}

std::optional<Expr> IntoSlots::load_of(const Expr& e) const {
  const auto* n = e.as<Load>();
  const auto found = n ? slots_.find(n->buffer) : slots_.end();
  if (found == slots_.end()) return std::nullopt;
  std::vector<Expr> index = n->indices;
  into_slot(found->second, index);
  return load(found->second.ring, std::move(index), e->type);
}

std::optional<Body> IntoSlots::statement(const Stmt& s) const {
  StmtOp op = s->op;
  IntoSlotFields fields{slots_};
  std::visit([&](auto& node) { std::decay_t<decltype(node)>::fields(node, fields); }, op);
  if (!fields.changed) return std::nullopt;
  match(s->op, [&]<class Op>(const Op& n) {
    if constexpr (CombinesAlong<Op>) {
      const auto found = slots_.find(n.from.buffer);
      if (found != slots_.end()) std::get<Op>(op).dim += static_cast<int64_t>(dims_in_front(found->second));
    }
  });
  return Body{Stmt(StmtNode{std::move(op), s->location})};
}

Body IntoSlots::body(const Body& in) const {
  const Body with_loads = rewrite_exprs(in, [&](const Expr& e) { return load_of(e); });
  return rewrite(with_loads, [&](const Stmt& s) { return statement(s); });
}

}  // namespace tilewright::passes
