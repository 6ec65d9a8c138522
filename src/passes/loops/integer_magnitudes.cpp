#include "passes/loops/integer_magnitudes.h"

#include "analysis/body_order.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/strands.h"
#include "scalar/functions.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class Magnitudes {
 public:
  Magnitudes(LoopProgram& program, int32_t launch) : program_(program), launch_(launch) {}

  Body run(Body block) {
    for (uint32_t i = 0, n = static_cast<uint32_t>(program_.buffers.size()); i < n; ++i) {
      const Buffer& b = program_.buffer({i});
      if (b.launch != launch_ || b.space != Space::Local || b.rank() != 1 || b.type != f32 || b.is_view()) continue;
      lanes_ = {i}, elements_.clear();
      if (is_absmax(block) && !elements_.empty()) block = replaced(block);
    }
    return block;
  }

 private:
  // ---- are the lanes those of an absmax of such elements?
  bool is_absmax(const Body& block) {
    bool fits = true;
    auto body = [&](const Body& b) {
      for (size_t k = 0; k < b.size(); ++k) {
        const auto* n = b[k].as<Store>();
        if (n && n->to.buffer == lanes_) fits = fits && step(b, k, *n);
      }
    };
    body(block);
    walk(block, [&](const Stmt& s) {
      for_each_body(s, body);
      fits = fits && (s.as<Store>() || s.as<Let>() || s.as<For>() || !used_buffers({s}).contains(lanes_));
    });
    walk_exprs(block, [&](const Expr& e) {
      const auto* n = e.as<Address>();
      fits = fits && !(n && n->buffer == lanes_);
    });
    return fits && fixes_type(block);
  }
  // A start at zero, an element that joins its lane, or two lanes that join.
  bool step(const Body& body, size_t at, const Store& n) {
    if (constant_float(n.value) == 0.0) return true;
    const auto joined = join_of(n);
    if (!joined) return false;
    if (const auto* other = joined->as<Load>(); other && other->buffer == lanes_) return true;
    const auto* abs = joined->as<Intrinsic>();
    if (!abs || abs->function != Function::Abs) return false;
    const auto* widened = known(abs->args[0], body, at).as<Cast>();
    const auto* element = widened ? widened->value.as<Load>() : nullptr;
    if (!element || (widened->value->type != bf16 && widened->value->type != f16)) return false;
    const Buffer& root = program_.buffer(program_.root(element->buffer));
    if (root.space != Space::Global || root.address) return false;
    if (elements_.empty()) type_ = widened->value->type;
    elements_.emplace_back(n.value, widened->value);
    return type_ == widened->value->type;
  }
  // x of lane = lane < x ? x : lane
  std::optional<Expr> join_of(const Store& n) const {
    const auto* s = n.value.as<Select>();
    const auto* less = s ? s->condition.as<Binary>() : nullptr;
    const auto* lane = less ? less->a.as<Load>() : nullptr;
    if (!lane || less->op != BinaryOp::Lt || lane->buffer != lanes_ || !equal(lane->indices, n.to.indices)) return {};
    if (!equal(less->b, s->a) || !equal(less->a, s->b)) return {};
    return s->a;
  }
  // What the statements before tell of an element that they store, or of a name, if it is the same where `at` stands:
  // nothing has stored over what it reads.
  Expr known(const Expr& e, const Body& body, size_t at) const {
    const auto* l = e.as<Load>();
    const auto* v = e.as<Var>();
    std::set<BufferId> stored;
    auto here = [&](const Expr& value) {
      bool same = true;
      walk(value, [&](const Expr& x) {
        const auto* n = x.as<Load>();
        same = same && !(n && analysis::may_overlap(n->buffer, stored, program_));
      });
      return same ? value : e;
    };
    for (size_t k = at; k-- > 0;) {
      const auto* let = body[k].as<Let>();
      const auto* store = body[k].as<Store>();
      if (store) stored.insert(store->to.buffer);
      if (v && let && let->var == v->id) return here(let->value);
      if (l && store && store->to.buffer == l->buffer)
        return equal(store->to.indices, l->indices) ? here(store->value) : e;
      if (!let && !store) break;
    }
    return e;
  }
  // Elsewhere the first lane alone is read.
  bool fixes_type(const Body& block) const {
    bool first = true;
    walk(block, [&](const Stmt& s) {
      const auto* n = s.as<Store>();
      if (n && n->to.buffer == lanes_) return;
      auto look = [&](const Expr& e) {
        walk(e, [&](const Expr& x) {
          const auto* l = x.as<Load>();
          if (l && l->buffer == lanes_) first = first && constant_int(l->indices[0]) == 0;
        });
      };
      for_each_expr(s, look);
    });
    return first;
  }

  // ---- as integers
  int64_t bias() const { return type_ == bf16 ? 0x7f : 0x3ff; }  // 0x7fff - infinity's bits
  Body replaced(const Body& block) {
    Buffer lanes = program_.buffer(lanes_);
    lanes.type = i16;
    const BufferId whole = program_.new_buffer(std::move(lanes));
    auto lane = [&](const std::vector<Expr>& index) { return load(whole, index, i16); };
    auto larger = [&](const Expr& a, const Expr& b) { return select(binary(BinaryOp::Lt, a, b), b, a); };
    Body out = rewrite(block, [&](const Stmt& s) -> std::optional<Body> {
      const auto* n = s.as<Store>();
      if (!n || n->to.buffer != lanes_) return std::nullopt;
      auto stored = [&](const Expr& value) {
        return Body{make_stmt(Store{{whole, n->to.indices}, value}, s->location)};
      };
      if (constant_float(n->value)) return stored(constant(i16, bias()));
      const Expr joined = *join_of(*n);
      if (const auto* other = joined.as<Load>(); other && other->buffer == lanes_)
        return stored(larger(lane(n->to.indices), lane(other->indices)));
      for (const auto& [value, element] : elements_)
        if (equal(value, n->value)) return stored(larger(lane(n->to.indices), magnitude(*element.as<Load>())));
      return std::nullopt;
    });
    return rewrite_exprs(out, [&](const Expr& e) -> std::optional<Expr> {
      const auto* n = e.as<Load>();
      if (!n || n->buffer != lanes_) return std::nullopt;
      return cast(bitcast(sub(lane(n->indices), constant(i16, bias())), type_), f32);
    });
  }
  Expr magnitude(const Load& element) {
    const auto [at, is_new] = views_.try_emplace(element.buffer);
    if (is_new) {
      Buffer bits = program_.buffer(element.buffer);
      if (!bits.is_view()) bits.root = element.buffer;
      bits.type = i16, bits.fill = {};
      at->second = program_.new_buffer(std::move(bits));
    }
    const Expr bits = load(at->second, element.indices, i16);
    return add(binary(BinaryOp::BitAnd, bits, constant(i16, int64_t{0x7fff})), constant(i16, bias()));
  }

  LoopProgram& program_;
  const int32_t launch_;
  BufferId lanes_;
  DType type_;                                   // of the elements
  std::vector<std::pair<Expr, Expr>> elements_;  // what a store joins, and the element in it
  std::map<BufferId, BufferId> views_;           // tensors as int16
};

}  // namespace

LoopProgram integer_magnitudes(LoopProgram program) {
  for (size_t i = 0; i < program.launches.size(); ++i)
    if (!has_waits(program.launches[i]))
      program.launches[i].body = Magnitudes(program, static_cast<int32_t>(i)).run(program.launches[i].body);
  return program;
}

}  // namespace tilewright::passes
