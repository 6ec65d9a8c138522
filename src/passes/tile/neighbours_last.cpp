#include "passes/tile/neighbours_last.h"

#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// The dimension along which the tensor's elements lie side by side; none: the last, or nobody knows.
std::optional<size_t> side_by_side(const Buffer& b) {
  if (b.space != Space::Global || b.strides.empty() || constant_int(b.strides.back()) == 1) return std::nullopt;
  for (size_t d = 0; d + 1 < b.rank(); ++d)
    if (constant_int(b.strides[d]) == 1 && constant_int(b.shape[d]) != 1) return d;
  return std::nullopt;
}

template <class T>
std::vector<T> moved_last(std::vector<T> list, size_t d) {
  std::rotate(list.begin() + static_cast<std::ptrdiff_t>(d), list.begin() + static_cast<std::ptrdiff_t>(d) + 1,
              list.end());
  return list;
}

class Views {
 public:
  explicit Views(ProgramTables& p) : p_(p) {}

  std::optional<Element> of(BufferId id, const std::vector<Expr>& index) {
    const auto d = side_by_side(p_.buffer(id));
    if (!d) return std::nullopt;
    return Element{view(id, *d), moved_last(index, *d)};
  }

 private:
  BufferId view(BufferId id, size_t d) {
    if (const auto known = views_.find(id); known != views_.end()) return known->second;
    Buffer b = p_.buffer(id);
    b.root = p_.root(id), b.address = {};
    b.name += "_across";
    b.shape = moved_last(b.shape, d), b.strides = moved_last(b.strides, d);
    // Of a body that was seen before.
    for (size_t i = 0; i < p_.buffers.size(); ++i) {
      const Buffer& o = p_.buffers[i];
      const bool offset = !o.offset == !b.offset && (!b.offset || equal(o.offset, b.offset));
      if (o.name == b.name && o.root == b.root && offset && equal(o.shape, b.shape) && equal(o.strides, b.strides))
        return views_[id] = BufferId{static_cast<uint32_t>(i)};
    }
    return views_[id] = p_.new_buffer(std::move(b));
  }

  ProgramTables& p_;
  std::map<BufferId, BufferId> views_;
};

}  // namespace

Body with_neighbours_last(const Body& body, ProgramTables& program) {
  Views views(program);
  const Body loads = rewrite_exprs(body, [&](const Expr& e) -> std::optional<Expr> {
    const auto* n = e.as<Load>();
    const auto to = n ? views.of(n->buffer, n->indices) : std::nullopt;
    return to ? std::optional(load(to->buffer, to->indices, e->type)) : std::nullopt;
  });
  return rewrite(loads, [&](const Stmt& s) -> std::optional<Body> {
    const auto placed = [&](auto op) -> std::optional<Body> {
      auto to = views.of(op.to.buffer, op.to.indices);
      if (!to) return std::nullopt;
      op.to = std::move(*to);
      return Body{make_stmt(std::move(op), s->location)};
    };
    if (const auto* n = s.as<Store>()) return placed(*n);
    if (const auto* n = s.as<Atomic>()) return placed(*n);
    return std::nullopt;
  });
}

}  // namespace tilewright::passes
