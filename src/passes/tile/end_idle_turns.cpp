#include "passes/tile/end_idle_turns.h"

#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/intervals.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class Turns {
 public:
  Turns(const TileProgram& program, const Launch& launch)
      : program_(program), ranges_(ranges_in(launch, ranges_of_symbols(program))) {}

  std::optional<Body> operator()(const Stmt& s) {
    const auto* loop = s.as<For>();
    const auto begin = loop ? constant_int(loop->begin) : std::nullopt;
    const auto extent = loop ? constant_int(loop->extent) : std::nullopt;
    if (!begin || !extent || *extent < 1 || !idle_from(*loop, *begin, *extent - 1, *extent)) return std::nullopt;
    int64_t may_work = -1, idle = *extent - 1;  // turns: from `idle` on all are
    while (idle - may_work > 1) {
      const int64_t middle = (may_work + idle) / 2;
      (idle_from(*loop, *begin, middle, *extent) ? idle : may_work) = middle;
    }
    if (idle == 0) return Body{};
    For shorter = *loop;
    shorter.extent = constant(loop->extent->type, idle);
    return Body{make_stmt(std::move(shorter), s->location)};
  }

 private:
  bool idle_from(const For& loop, int64_t begin, int64_t turn, int64_t extent) {
    const std::pair all(loop.var, Interval{begin, begin + extent - 1});
    ranges_.set(loop.var, {begin + turn, begin + extent - 1});
    const bool out = does_nothing(loop.body);
    ranges_.set(all.first, all.second);
    return out;
  }
  bool does_nothing(const Body& body) const {
    return std::ranges::all_of(body, [&](const Stmt& s) {
      if (s.as<Let>()) return true;
      if (const auto* n = s.as<Store>()) return is_beyond(n->to);
      if (const auto* n = s.as<For>()) return does_nothing(n->body);
      if (const auto* n = s.as<If>())
        return (never_holds(n->condition) || does_nothing(n->then_body)) && does_nothing(n->else_body);
      return false;
    });
  }
  // A store outside of a tensor is none.
  bool is_beyond(const Element& to) const {
    const Buffer& b = program_.buffer(to.buffer);
    if (b.space != Space::Global || b.is_view()) return false;
    for (size_t d = 0; d < to.indices.size(); ++d) {
      const Expr at = widen(to.indices[d]);
      if (ranges_.proves(binary(BinaryOp::Le, widen(b.shape[d]), at))) return true;
    }
    return false;
  }
  bool never_holds(const Expr& condition) const {
    bool out = false;
    for_each_conjunct(condition, [&](const Expr& c) { out = out || ranges_.decides(c) == false; });
    return out;
  }

  const TileProgram& program_;
  Intervals ranges_;
};

}  // namespace

TileProgram end_idle_turns(TileProgram program) {
  for (Launch& launch : program.launches) {
    Turns turns(program, launch);
    launch.body = rewrite(launch.body, [&](const Stmt& s) { return turns(s); });
  }
  return program;
}

}  // namespace tilewright::passes
