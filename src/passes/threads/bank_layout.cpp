#include "passes/threads/bank_layout.h"

#include <bit>

#include "ir/cluster.h"
#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "layout/algebra.h"
#include "layout/banks.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kChunkBytes = 16;  // of the widest access of a thread

// Points of a Map in the order of the dimensions of a buffer that they access by one variable each; none: something
// else is between.
std::optional<FragmentLayout> in_order_of(const std::vector<Expr>& index, const Map& map,
                                          const FragmentLayout& points) {
  std::vector<int> order;
  for (const Expr& e : index) {
    const auto* c = e.as<Cast>();
    const auto* v = (c ? c->value : e).as<Var>();
    const auto at = v ? std::find(map.vars.begin(), map.vars.end(), v->id) : map.vars.end();
    if (at == map.vars.end()) return std::nullopt;
    const int dim = static_cast<int>(at - map.vars.begin());
    if (std::find(order.begin(), order.end(), dim) != order.end()) return std::nullopt;
    order.push_back(dim);
  }
  if (order.size() != map.vars.size()) return std::nullopt;
  return permute(points, order);
}

std::vector<int64_t> shape_of(const Buffer& b) {
  std::vector<int64_t> out;
  for (const Expr& e : b.shape) out.push_back(constant_int(e).value_or(0));
  return out;
}

// Maps, and other statements outside of them.
void for_each_outside_maps(const Body& body, function_ref<void(const Stmt&)> f) {
  for (const Stmt& s : body) {
    f(s);
    if (!s.as<Map>()) for_each_body(s, [&](const Body& inner) { for_each_outside_maps(inner, f); });
  }
}

bool keeps_chunks(const MemoryLayout& memory) {
  const int64_t chunk = kChunkBytes * 8 / memory.element_bits();
  if (memory.swizzle().bits > 0 && (int64_t{1} << memory.swizzle().base) < kChunkBytes) return false;
  for (const std::vector<Mode>& dim : memory.dims())
    for (const Mode& m : dim) {
      const bool inside = &dim == &memory.dims().back() && &m == &dim.back();
      if (inside ? m.stride != 1 || m.extent % chunk != 0 : m.stride % chunk != 0) return false;
    }
  return true;
}

// The swizzle that the program asks for, of what threads access by themselves: chunks of a row change places with the
// row.
std::optional<MemoryLayout> swizzled_rows(const Buffer& b, const std::vector<int64_t>& shape) {
  const int bits = b.type.storage_bits();
  const int64_t row = shape.back() * bits / 8;
  if (b.layout.kind != LayoutHint::Swizzled || row < 2 * kChunkBytes ||
      !std::has_single_bit(static_cast<uint64_t>(row)))
    return std::nullopt;
  tilewright::Swizzle swizzle = hardware_swizzle(row);
  if (swizzle.bits == 0) swizzle = {3, 4, std::countr_zero(static_cast<uint64_t>(row)) - 4};
  return MemoryLayout(shape, MemoryLayout::row_major(shape, bits).dims(), bits, swizzle);
}

// Whether nobody has said how the buffer lies, and rows of it could lie in several ways.
bool is_open(const Buffer& b) { return !b.memory && b.strides.empty() && !b.tile && b.type.bits >= 8 && b.rank() >= 2; }

}  // namespace

void spread_over_banks(ThreadProgram& p, const Launch& launch, const Placement& placement, bool tight) {
  std::map<BufferId, std::vector<SharedUse>> uses;
  std::set<BufferId> other;  // used in ways that this does not see through
  std::set<BufferId> whole;  // of these what is used as more than elements
  for (const Buffer& b : p.buffers)
    if (b.is_view() && !is_same_tile(p, b)) other.insert(b.root), whole.insert(b.root);
  auto use = [&](BufferId id, const std::vector<Expr>& index, const Map& map, const FragmentLayout* points,
                 bool by_matrices = false) {
    if (is_same_tile(p, p.buffer(id))) id = p.root(id);
    if (p.buffer(id).space != Space::Shared || p.buffer(id).is_view()) return;
    const auto fragment = points ? in_order_of(index, map, *points) : std::nullopt;
    if (fragment && fragment->shape() == shape_of(p.buffer(id)))  // all of it
      uses[id].push_back({*fragment, by_matrices});
    else
      other.insert(id);
  };
  for_each_outside_maps(launch.body, [&](const Stmt& s) {
    const auto* map = s.as<Map>();
    if (!map) {
      for (const Effect& e : effects_of(s).list)
        if (e.region.valid()) other.insert(p.root(e.region.buffer));
      for (const Effect& e : own_effects_of(s).list)
        if (e.region.valid() && !s.as<Store>()) whole.insert(p.root(e.region.buffer));
      for_each_expr(s, [&](const Expr& outer) {
        walk(outer, [&](const Expr& e) {
          if (const auto* n = e.as<Address>()) whole.insert(p.root(n->buffer));
        });
      });
      return;
    }
    const FragmentLayout* points = placement.points_of(s);
    walk(map->body, [&](const Stmt& inner) {
      if (const auto* n = inner.as<Store>())
        use(n->to.buffer, n->to.indices, *map, points, placement.matrix_stores.contains(s->id));
      if (const auto* n = inner.as<Atomic>()) other.insert(p.root(n->to.buffer)), whole.insert(p.root(n->to.buffer));
    });
    walk_exprs(map->body, [&](const Expr& e) {
      if (const auto* n = e.as<Load>()) use(n->buffer, n->indices, *map, points);
      if (const auto* n = e.as<Address>()) other.insert(p.root(n->buffer)), whole.insert(p.root(n->buffer));
    });
  });
  for (BufferId id : other) {
    Buffer& b = p.buffers[id.index];
    if (whole.contains(id) || b.space != Space::Shared || !is_open(b)) continue;
    if (auto asked = swizzled_rows(b, shape_of(b))) b.memory = std::move(asked);
  }
  for (const auto& [id, list] : uses) {
    Buffer& b = p.buffers[id.index];
    if (other.contains(id) || !is_open(b)) continue;
    const std::vector<int64_t> shape = shape_of(b);
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) continue;
    const MemoryLayout rows = MemoryLayout::row_major(shape, b.type.storage_bits());
    const MemoryLayout memory = choose_shared_layout(
        shape, b.type.storage_bits(), list, false,
        [&](const MemoryLayout& m) { return keeps_chunks(m) && (!tight || m.bytes() <= rows.bytes()); });
    if (memory != rows) b.memory = memory;
  }
  for (Buffer& b : p.buffers)
    if (is_same_tile(p, b)) b.memory = p.buffer(b.root).memory;
}

}  // namespace tilewright::passes
