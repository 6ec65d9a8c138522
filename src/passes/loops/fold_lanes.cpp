#include "passes/loops/fold_lanes.h"

#include "ir/joins.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kVectorBytes = 16;  // the least vector of the text

class Folding {
 public:
  Folding(const Body& block, const ProgramTables& program) : block_(block), program_(program) {}

  Body body(const Body& in) const {
    Body out;
    for (size_t i = 0; i < in.size();) {
      if (std::optional<Fold> fold = fold_at(in, i)) {
        const LocationId at = in[i]->location;
        i += static_cast<size_t>(std::bit_width(static_cast<uint64_t>(fold->half)));
        out.push_back(make_stmt(std::move(*fold), at));
      } else {
        out.push_back(inside(in[i++]));
      }
    }
    return out;
  }

 private:
  Stmt inside(const Stmt& s) const {
    if (const auto* n = s.as<For>()) {
      For f = *n;
      f.body = body(n->body);
      return make_stmt(std::move(f), s->location);
    }
    if (const auto* n = s.as<If>())
      return make_stmt(If{n->condition, body(n->then_body), body(n->else_body)}, s->location);
    if (const auto* n = s.as<While>()) return make_stmt(While{n->condition, body(n->body)}, s->location);
    if (const auto* n = s.as<Role>()) return make_stmt(Role{n->begin, n->end, body(n->body)}, s->location);
    return s;
  }

  std::optional<Fold> fold_at(const Body& body, size_t at) const {
    std::optional<Fold> fold = level(body[at]);
    if (!fold || !std::has_single_bit(static_cast<uint64_t>(fold->half))) return {};
    if (2 * fold->half * program_.buffer(fold->lanes).type.storage_bits() < 8 * kVectorBytes) return {};
    size_t next = at + 1;
    for (int64_t half = fold->half / 2; half > 0; half /= 2, ++next) {
      const std::optional<Fold> f = next < body.size() ? level(body[next], fold->half) : std::nullopt;
      if (!f || f->half != half || f->lanes != fold->lanes || !equal(f->value, fold->value)) return {};
    }
    return ends_with_first(body, next, fold->lanes) ? fold : std::nullopt;
  }

  // One loop of the tree; its value as if the upper lane were the one of that index, if not its own.
  std::optional<Fold> level(const Stmt& s, std::optional<int64_t> upper = {}) const {
    const auto* f = s.as<For>();
    if (!f || f->kind != LoopKind::Vectorized || constant_int(f->begin) != 0 || f->body.size() != 1) return {};
    const auto* store = f->body[0].as<Store>();
    const auto half = constant_int(f->extent);
    if (!store || !half || store->to.indices.size() != 1) return {};
    const Buffer& b = program_.buffer(store->to.buffer);
    const auto* lane = store->to.indices[0].as<Var>();
    const bool plain = b.space == Space::Local && !b.is_view() && b.strides.empty() && b.type.storage_bits() >= 16;
    if (!plain || !lane || lane->id != f->var) return {};
    auto element = [&](const Expr& index) { return load(store->to.buffer, {index}, b.type); };
    const Expr index = store->to.indices[0];
    const Expr low = element(index), high = element(add(index, constant(index->type, *half)));
    if (!joins_in_vectors(store->value, low, high)) return {};
    const Expr first = element(constant(i64, int64_t{0})), other = element(constant(i64, upper.value_or(*half)));
    return Fold{store->to.buffer, *half, rewrite(store->value, [&](const Expr& e) -> std::optional<Expr> {
                  return equal(e, low) ? std::optional(first) : equal(e, high) ? std::optional(other) : std::nullopt;
                })};
  }

  // Does the rest of the body read the first lane alone, and does nothing outside of the body touch the lanes?
  bool ends_with_first(const Body& body, size_t from, BufferId lanes) const {
    bool first = true;
    const Body rest(body.begin() + static_cast<std::ptrdiff_t>(from), body.end());
    walk(rest, [&](const Stmt& s) {
      const auto* n = s.as<Store>();
      const bool plain = n || s.as<Let>() || s.as<For>() || s.as<If>() || s.as<While>();
      first = first && !(n && n->to.buffer == lanes) && (plain || !used_buffers({s}).contains(lanes));
    });
    walk_exprs(rest, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      if (n && n->buffer == lanes) first = first && constant_int(n->indices[0]) == 0;
    });
    return first && uses(body, lanes) == uses(block_, lanes);
  }
  static int64_t uses(const Body& body, BufferId id) {
    int64_t count = 0;
    walk(body, [&](const Stmt& s) {
      const auto* n = s.as<Store>();
      count += n && n->to.buffer == id;
    });
    walk_exprs(body, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      count += n && n->buffer == id;
    });
    return count;
  }

  const Body& block_;
  const ProgramTables& program_;
};

}  // namespace

LoopProgram fold_lanes(LoopProgram program) {
  for (Launch& launch : program.launches) launch.body = Folding(launch.body, program).body(launch.body);
  return program;
}

}  // namespace tilewright::passes
