#include "passes/threads/points_in_order.h"

#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/threads/map_sums.h"
#include "passes/threads/point_count.h"

namespace tilewright::passes {

using namespace ir;

Body points_in_order(const Map& map, const Team& team, Lowering& l) {
  MapSums sums(map, team, l);
  const Expr total = point_count(map.extents, l);
  const Expr rounds = binary(BinaryOp::FloorDiv, add(total, wide(team.count - 1)), wide(team.count));
  const Expr round = l.index("round", rounds);
  const Expr point = add(mul(round, wide(team.count)), cast(team.thread, i64));
  const VarId p = l.program.new_var("point", i64);
  l.intervals.set(p, {0, std::max<int64_t>(l.intervals.of(total).high - 1, 0)});
  Expr rest = var(p, i64);
  Body bind;
  std::vector<Expr> index(map.vars.size());
  for (size_t d = map.vars.size(); d-- > 0;) {
    const Expr extent = widen(map.extents[d]);
    index[d] = d == 0 ? rest : binary(BinaryOp::FloorMod, rest, extent);
    rest = binary(BinaryOp::FloorDiv, rest, extent);
    const DType type = l.program.var(map.vars[d]).type;
    const Interval range = l.intervals.of(extent);
    const VarId v = l.program.new_var(l.program.var(map.vars[d]).name, type);
    l.intervals.set(v, {0, range.high < kUnbounded ? std::max<int64_t>(range.high - 1, 0) : kUnbounded});
    bind.push_back(l.make(Let{v, cast(index[d], type)}));
    index[d] = var(v, type);
  }
  Substitution names;
  for (size_t d = 0; d < map.vars.size(); ++d) names[map.vars[d]] = index[d];
  const Body taken = rewrite(map.body, [&](const Stmt& s) { return sums.take(s, {}); });
  const Body body = guard_accesses(substitute(taken, names), l);
  bind.insert(bind.end(), body.begin(), body.end());
  Body inside{l.make(Let{p, point})};
  inside.push_back(l.make(If{binary(BinaryOp::Lt, var(p, i64), total), std::move(bind), {}}));
  Body out = sums.begin();
  out.push_back(loop(l, round, wide(0), rounds, std::move(inside)));
  const Body end = sums.end();
  out.insert(out.end(), end.begin(), end.end());
  return out;
}

}  // namespace tilewright::passes
