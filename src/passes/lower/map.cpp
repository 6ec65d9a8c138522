// Map and Gemm at the loop level.
#include "ir/buffer_vars.h"
#include "ir/names.h"
#include "passes/lower/lowering.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Sums of fewer elements are not worth their lanes.
constexpr int64_t kFewestTerms = 64, kMostTerms = 16384;
constexpr uint32_t kLargestTerm = 4096;  // with the values of names in it

// Additions of a map to one element on chip for all points along its last variable, such as those to a reducer: the
// terms first, side by side, and then their sum as reduce makes it. One after the other, each would wait for the one
// before, none beside it could be in a vector, and the sum would be the worse.
class SumsApart {
 public:
  SumsApart(const Map& map, Lowering& l) : map_(map), l_(l) {}

  // Takes them out of the map; nothing if it has none, or other statements than stores and sums.
  std::optional<Map> run(Body& sums) {
    const auto count = constant_int(map_.extents.back());
    if (!count || *count < kFewestTerms || *count > kMostTerms) return std::nullopt;
    for (const Stmt& s : map_.body)
      if (!s.as<Let>() && !s.as<Store>() && !s.as<Atomic>()) return std::nullopt;
    const std::set<VarId> bound = bound_vars(map_.body);
    for (BufferId id : used_buffers(map_.body))
      if (l_.buffer(l_.program.root(id)).space == Space::Local || stands_by(l_.program, id, bound)) return std::nullopt;
    Map rest = map_;
    rest.body.clear();
    Substitution names;
    for (const Stmt& s : map_.body) {
      const auto* let = s.as<Let>();
      const auto whole = let ? spelled_out(let->value, names, kLargestTerm) : std::nullopt;
      if (whole) names[let->var] = *whole;
      const auto* sum = s.as<Atomic>();
      const auto term =
          sum && is_of_all_points(*sum, bound) ? spelled_out(sum->value, names, kLargestTerm) : std::nullopt;
      if (term && is_apart(*term, s, bound))
        add_sum(*sum, *term, *count, sums);
      else
        rest.body.push_back(s);
    }
    return sums.empty() ? std::nullopt : std::optional(std::move(rest));
  }

 private:
  VarId along() const { return map_.vars.back(); }
  bool is_of_all_points(const Atomic& n, const std::set<VarId>& bound) const {
    const Space space = l_.buffer(l_.program.root(n.to.buffer)).space;
    if (n.op != AtomicOp::Add || n.result.valid() || (space != Space::Shared && space != Space::Fragment)) return false;
    for (const Expr& e : n.to.indices)
      if (!stays(e, bound)) return false;
    return !l_.type(n.to.buffer).is_packed();
  }
  bool stays(const Expr& e, const std::set<VarId>& bound) const {
    bool found = true;
    walk(e, [&](const Expr& x) {
      const auto* v = x.as<Var>();
      found = found && !x.as<Load>() && !(v && (v->id == along() || bound.contains(v->id)));
    });
    return found;
  }
  // Nothing else of the map touches the sum or changes what the term reads, and nothing in it is a thread's own, or a
  // name of the map.
  bool is_apart(const Expr& term, const Stmt& sum, const std::set<VarId>& bound) const {
    std::set<BufferId> read;
    bool common = true;
    walk(term, [&](const Expr& e) {
      if (const auto* n = e.as<Load>()) read.insert(l_.program.root(n->buffer));
      if (const auto* v = e.as<Var>()) common = common && !is_thread(v->id) && !bound.contains(v->id);
    });
    for (const Expr& e : sum.as<Atomic>()->to.indices)
      for (VarId v : used_vars(e)) common = common && !is_thread(v);
    const BufferId total = l_.program.root(sum.as<Atomic>()->to.buffer);
    for (const Stmt& s : map_.body) {
      if (s.same(sum)) continue;
      for (BufferId id : used_buffers({s})) common = common && l_.program.root(id) != total;
      const Element* to = s.as<Store>() ? &s.as<Store>()->to : s.as<Atomic>() ? &s.as<Atomic>()->to : nullptr;
      if (!to) continue;
      const BufferId root = l_.program.root(to->buffer);
      const bool elsewhere = l_.buffer(root).address && std::any_of(read.begin(), read.end(), [&](BufferId id) {
                               return l_.buffer(id).space == Space::Global;
                             });
      common = common && !read.contains(root) && !elsewhere;
      for (BufferId id : read) common = common && !(l_.buffer(id).address && l_.is_global(root));
    }
    return common && !read.contains(total);
  }
  bool is_thread(VarId v) const {
    return std::find(l_.launch.thread.begin(), l_.launch.thread.end(), v) != l_.launch.thread.end();
  }

  void add_sum(const Atomic& n, const Expr& term, int64_t count, Body& out) {
    const DType type = l_.type(n.to.buffer);
    const BufferId terms = l_.temporary("terms", type, {count}, Space::Shared),
                   total = l_.temporary("total", type, {1}, Space::Shared);
    for (size_t d = 0; d + 1 < map_.vars.size(); ++d)
      if (const auto extent = constant_int(map_.extents[d]))
        l_.intervals.set(map_.vars[d], {0, std::max(int64_t{0}, *extent - 1)});
    const Expr point = var(along(), l_.program.var(along()).type);
    const Store store{{terms, {cast(point, i64)}}, cast(term, type)};
    Body body = lower_box({point}, {map_.extents.back()}, {l_.make(store)}, l_);
    Reduce sum;
    sum.from = {terms, {wide(0)}, {wide(count)}}, sum.to = {total, {wide(0)}, {wide(1)}};
    const Body of_terms = lower(sum, l_);
    body.insert(body.end(), of_terms.begin(), of_terms.end());
    const std::vector<Expr> place = widened(n.to.indices);
    body.push_back(l_.make(Store{{n.to.buffer, place},
                                 binary(BinaryOp::Add, load(n.to.buffer, place, type), load(total, {wide(0)}, type))}));
    for (size_t d = map_.vars.size() - 1; d-- > 0;) {
      const DType of_var = l_.program.var(map_.vars[d]).type;
      body = {loop(l_, var(map_.vars[d], of_var), constant(of_var, int64_t{0}), cast(map_.extents[d], of_var),
                   std::move(body))};
    }
    out.insert(out.end(), body.begin(), body.end());
  }

  const Map& map_;
  Lowering& l_;
};

}  // namespace

template <>
Body lower(const Map& map, Lowering& l) {
  std::vector<Expr> vars;
  for (VarId v : map.vars) vars.push_back(var(v, l.program.var(v).type));
  Body sums;
  const std::optional<Map> rest = SumsApart(map, l).run(sums);
  if (!rest) return lower_box(vars, map.extents, map.body, l);
  bool others = false;
  for (const Stmt& s : rest->body) others = others || !s.as<Let>();
  if (!others) return sums;
  Body out = lower_box(vars, map.extents, rest->body, l);
  out.insert(out.end(), sums.begin(), sums.end());
  return out;
}

namespace {

Region widened(const Region& r) { return {r.buffer, passes::widened(r.min), passes::widened(r.extent)}; }

}  // namespace

template <>
Body lower(const Gemm& gemm, Lowering& l) {
  Body out;
  Gemm g = gemm;
  g.a = widened(gemm.a), g.b = widened(gemm.b), g.c = widened(gemm.c);
  // A gemm clears or it does not; which of both is decided here.
  if (g.clear && !constant_int(g.clear)) {
    Fill zero{gemm.c, constant(l.type(gemm.c.buffer), int64_t{0})};
    out.push_back(l.make(If{guard_accesses(g.clear, l), lower(zero, l), {}}));
    g.clear = {};
  }
  if (g.clear && constant_int(g.clear) == 0) g.clear = {};
  out.push_back(l.make(g));
  return out;
}

}  // namespace tilewright::passes
