#include "passes/loops/spread_atomics.h"

#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/fuse/index.h"
#include "passes/lower/strands.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kCopies = 4;
constexpr int64_t kManyTimes = 16;          // additions for each element that has to be cleared and summed
constexpr int64_t kMostElements = 1 << 11;  // the copies stay in the nearest cache

// The least number of times that the innermost bodies run, if all loops are counted.
int64_t trips(const For& f) {
  int64_t most = 1;
  for (const Stmt& s : f.body)
    if (const auto* g = s.as<For>()) most = std::max(most, trips(*g));
  return most * constant_int(f.extent).value_or(0);
}

class Spread {
 public:
  explicit Spread(LoopProgram& program) : program_(program) {}

  Body body(const Body& in) {
    Body out;
    for (const Stmt& s : in) {
      const auto* f = s.as<For>();
      const auto counters = f ? counters_of(s, *f) : std::nullopt;
      if (counters) {
        spread(s, *counters, out);
      } else if (f) {
        For g = *f;
        g.body = body(f->body);
        out.push_back(make_stmt(std::move(g), s->location));
      } else {
        out.push_back(s);
      }
    }
    return out;
  }

 private:
  // The array that the loop does nothing with but add to its elements.
  std::optional<BufferId> counters_of(const Stmt& s, const For& f) const {
    std::optional<BufferId> found;
    if (f.kind == LoopKind::Grid) return found;
    walk({s}, [&](const Stmt& x) {
      const auto* n = x.as<Atomic>();
      if (n && !found && may_spread(n->to.buffer) && trips(f) >= kManyTimes * elements(n->to.buffer))
        found = n->to.buffer;
    });
    if (!found) return found;
    bool only = true;
    walk({s}, [&](const Stmt& x) {
      const auto* n = x.as<Atomic>();
      if (n && n->to.buffer == *found) {
        only = only && n->op == AtomicOp::Add && !n->result.valid();
        for (const Expr& e : n->to.indices) only = only && !reads(e, *found);
        only = only && !reads(n->value, *found);
      } else if (const auto* g = x.as<For>(); g || x.as<If>()) {
        if (g && is_innermost(*g)) only = only && constant_int(g->extent).value_or(1) % kCopies == 0;
        for_each_expr(x, [&](const Expr& e) { only = only && !reads(e, *found); });
      } else {
        only = only && (x.as<Let>() || x.as<Store>()) && !used_buffers({x}).contains(*found);
      }
    });
    return only ? found : std::nullopt;
  }
  static bool is_innermost(const For& f) {
    bool found = false;
    walk(f.body, [&](const Stmt& s) { found = found || s.as<For>(); });
    return !found;
  }
  static bool reads(const Expr& e, BufferId id) {
    bool found = false;
    walk(e, [&](const Expr& x) {
      const auto* n = x.as<Load>();
      found = found || (n && n->buffer == id);
    });
    return found;
  }
  bool may_spread(BufferId id) const {
    const Buffer& b = program_.buffer(id);
    if (b.space != Space::Shared || b.is_view() || b.tile || b.rank() == 0 || !b.strides.empty()) return false;
    if (!b.type.is_int() || b.type.is_packed() || elements(id) == 0 || elements(id) > kMostElements) return false;
    return std::none_of(program_.buffers.begin(), program_.buffers.end(),
                        [&](const Buffer& other) { return other.is_view() && other.root == id; });
  }
  int64_t elements(BufferId id) const {
    int64_t n = 1;
    for (const Expr& e : program_.buffer(id).shape) n *= constant_int(e).value_or(0);
    return n;
  }

  void spread(const Stmt& s, BufferId id, Body& out) {
    Buffer b = program_.buffer(id);
    const std::vector<Expr> shape = b.shape;
    const DType type = b.type;
    b.name += "_copies";
    b.shape.insert(b.shape.begin(), constant(i32, kCopies));
    const BufferId copies = program_.new_buffer(std::move(b));
    auto element = [&](const Expr& copy, std::vector<Expr> index) {
      index.insert(index.begin(), copy);
      return Element{copies, std::move(index)};
    };
    // for each copy and element: f(copy, indices)
    auto sweep = [&](auto&& make) {
      const VarId copy = program_.new_var("copy", i64);
      std::vector<Expr> index;
      for (size_t d = 0; d < shape.size(); ++d) index.push_back(var(program_.new_var("i", i64), i64));
      Body code{make(var(copy, i64), index)};
      for (size_t d = shape.size(); d-- > 0;)
        code = {loop(index[d], cast(shape[d], i64), std::move(code),
                     d + 1 == shape.size() ? LoopKind::Vectorized : LoopKind::Serial, s->location)};
      return loop(var(copy, i64), constant(i64, kCopies), std::move(code), LoopKind::Serial, s->location);
    };
    out.push_back(sweep([&](const Expr& copy, const std::vector<Expr>& index) {
      return make_stmt(Store{element(copy, index), constant(type, int64_t{0})}, s->location);
    }));
    out.push_back(taking_turns(s, id, element, constant(i64, int64_t{0}))[0]);
    out.push_back(sweep([&](const Expr& copy, const std::vector<Expr>& index) {
      const Element from = element(copy, index);
      const Expr sum_of_both = add(load(id, index, type), load(from.buffer, from.indices, type));
      return make_stmt(Store{{id, index}, sum_of_both}, s->location);
    }));
  }
  // Innermost loops go by kCopies iterations, each of which has its copy: stores that meet are then those of one
  // instruction, which processors tell apart from the others.
  template <class MakeElement>
  Body taking_turns(const Stmt& s, BufferId id, const MakeElement& element, const Expr& turn) {
    if (const auto* n = s.as<For>()) {
      For f = *n;
      if (!is_innermost(*n)) {
        f.body = all_taking_turns(n->body, id, element, turn);
        return {make_stmt(std::move(f), s->location)};
      }
      const Expr group = var(program_.new_var("group", i64), i64), copy = var(program_.new_var("copy", i64), i64);
      const Expr index = sum({{kCopies, group}, {1, copy}}, 0, i64);
      Body own = all_taking_turns(with_index(f, add(cast(f.begin, i64), index), program_), id, element, copy);
      const Expr groups = constant(i64, *constant_int(f.extent) / kCopies);
      Body turns{loop(copy, constant(i64, kCopies), std::move(own), LoopKind::Unroll, s->location)};
      return {loop(group, groups, std::move(turns), LoopKind::Serial, s->location)};
    }
    if (const auto* n = s.as<If>())
      return {make_stmt(If{n->condition, all_taking_turns(n->then_body, id, element, turn),
                           all_taking_turns(n->else_body, id, element, turn)},
                        s->location)};
    const auto* n = s.as<Atomic>();
    if (!n || n->to.buffer != id) return {s};
    Atomic a = *n;
    a.to = element(turn, n->to.indices);
    return {make_stmt(std::move(a), s->location)};
  }
  template <class MakeElement>
  Body all_taking_turns(const Body& body, BufferId id, const MakeElement& element, const Expr& turn) {
    Body out;
    for (const Stmt& s : body) out.push_back(taking_turns(s, id, element, turn)[0]);
    return out;
  }
  static Stmt loop(const Expr& v, const Expr& extent, Body body, LoopKind kind, LocationId at) {
    For f;
    f.var = v.as<Var>()->id, f.begin = constant(i64, int64_t{0}), f.extent = extent, f.kind = kind;
    f.body = std::move(body);
    return make_stmt(std::move(f), at);
  }

  LoopProgram& program_;
};

}  // namespace

LoopProgram spread_atomics(LoopProgram program) {
  for (size_t i = 0; i < program.launches.size(); ++i)
    if (!has_waits(program.launches[i])) program.launches[i].body = Spread(program).body(program.launches[i].body);
  return program;
}

}  // namespace tilewright::passes
