#include "codegen/cpu/fold.h"

#include "codegen/cpu/vector_text.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::codegen {

using namespace ir;

namespace {

constexpr int64_t kVectorBytes = 16;  // the least vector of the text

class Finder {
 public:
  Finder(const Body& block, const ProgramTables& program) : block_(block), program_(program) {}

  void find(const Body& body) {
    for (size_t i = 0; i < body.size(); ++i) {
      if (!out.rest.contains(body[i].as<For>())) begin(body, i);
      for_each_body(body[i], [&](const Body& inner) { find(inner); });
    }
  }

  Folds out;

 private:
  void begin(const Body& body, size_t at) {
    std::optional<Fold> fold = level(body[at]);
    if (!fold || !std::has_single_bit(static_cast<uint64_t>(fold->half))) return;
    if (2 * fold->half * program_.buffer(fold->lanes).type.storage_bits() < 8 * kVectorBytes) return;
    std::vector<const For*> rest;
    for (int64_t half = fold->half / 2; half > 0; half /= 2) {
      const size_t next = at + rest.size() + 1;
      const std::optional<Fold> f = next < body.size() ? level(body[next]) : std::nullopt;
      if (!f || f->half != half || f->lanes != fold->lanes || f->join != fold->join) return;
      rest.push_back(body[next].as<For>());
    }
    if (!ends_with_first(body, at + rest.size() + 1, fold->lanes)) return;
    out.rest.insert(rest.begin(), rest.end());
    out.first.emplace(body[at].as<For>(), std::move(*fold));
  }

  // One loop of the tree.
  std::optional<Fold> level(const Stmt& s) const {
    const auto* f = s.as<For>();
    if (!f || f->kind != LoopKind::Vectorized || constant_int(f->begin) != 0 || f->body.size() != 1) return {};
    const auto* store = f->body[0].as<Store>();
    const auto half = constant_int(f->extent);
    if (!store || !half || store->to.indices.size() != 1) return {};
    const Buffer& b = program_.buffer(store->to.buffer);
    const auto* lane = store->to.indices[0].as<Var>();
    const bool plain = b.space == Space::Local && !b.is_view() && b.strides.empty() && b.type.storage_bits() >= 16;
    if (!plain || !lane || lane->id != f->var) return {};
    const Expr low = store->to.indices[0], high = add(low, constant(low->type, *half));
    auto join =
        vector_text(store->value, load(store->to.buffer, {low}, b.type), load(store->to.buffer, {high}, b.type));
    if (!join) return {};
    return Fold{store->to.buffer, *half, std::move(*join)};
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

Folds folds_of(const Body& body, const ProgramTables& program) {
  Finder finder(body, program);
  finder.find(body);
  return std::move(finder.out);
}

}  // namespace tilewright::codegen
