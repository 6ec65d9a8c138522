#include "passes/tile/early_loads.h"

#include <numeric>

#include "analysis/body_order.h"
#include "analysis/load_rings.h"
#include "ir/buffer_vars.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/jumps.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kManyColumns = 96;  // of which a thread of an accumulator has a quarter
constexpr int64_t kReuse = 8;  // points of a Map to a value: fewer would want as many registers as the Map's tile

class EarlyLoads {
 public:
  EarlyLoads(TileProgram& p, const Launch& launch)
      : p_(p), launch_(&launch - p.launches.data()), written_(changed_roots(launch.body, p)) {}
  Body run(const Body& in) {
    return rewrite(in, [&](const Stmt& s) -> std::optional<Body> {
      const auto* loop = s.as<For>();
      if (!loop || may_jump(loop->body)) return std::nullopt;
      const auto gemm = std::find_if(loop->body.begin(), loop->body.end(), [](const Stmt& x) { return x.as<Gemm>(); });
      if (gemm == loop->body.end()) return std::nullopt;
      For f = *loop;
      f.body.clear();
      made_.clear(), behind_ = false;
      changed_ = changed_roots(loop->body, p_), turn_ = bound_vars(loop->body);
      turn_.insert(loop->var);
      // A turn before its own, if the loop is pipelined.
      const bool early = pipelined_ = loop->kind == LoopKind::Pipelined && loop->stages > 0;
      arrives_.clear();
      for (auto x = loop->body.begin(); early && x != gemm; ++x)
        if (const auto* copy = x->as<Copy>(); copy && p_.buffer(copy->to.buffer).space == Space::Shared &&
                                              p_.buffer(copy->from.buffer).space == Space::Global)
          arrives_.insert(copy->to.buffer);
      for (auto x = loop->body.begin(); x != gemm; ++x) {
        const auto* map = early ? x->as<Map>() : nullptr;
        f.body.push_back(map ? after_loads(*map, {}, (*x)->location, f.body, f.body) : *x);
      }
      // What a Map before the gemm gathers stays by it: a loader may take both.
      Body rest, before;
      behind_ = true, held_.clear();
      Late late;
      for (auto x = gemm; x != loop->body.end(); ++x) {
        const auto* map = x->as<Map>();
        rest.push_back(map ? after_loads(*map, late, (*x)->location, f.body, before) : *x);
        late.vars.merge(bound_vars({*x})), late.buffers.merge(changed_roots({*x}, p_));
      }
      f.body.insert(f.body.end(), held_.begin(), held_.end());
      f.body.insert(f.body.end(), rest.begin(), rest.end());
      Body out = std::move(before);
      out.push_back(make_stmt(std::move(f), s->location));
      return out;
    });
  }

 private:
  // What is not yet known where the loads come: names, and what changes in between.
  struct Late {
    std::set<VarId> vars;
    std::set<BufferId> buffers;
  };
  // The Map with fragments for what `early` has loaded, or `before` the loop, where it is the same in all turns.
  Stmt after_loads(const Map& map, Late late, LocationId at, Body& early, Body& before) {
    int64_t points = 1;
    for (const Expr& e : map.extents) points *= constant_int(e).value_or(0);
    late.vars.merge(bound_vars(map.body)), late.buffers.merge(changed_roots(map.body, p_));
    std::vector<std::pair<Expr, Expr>> loaded;  // and what takes their place
    auto consider = [&](const Expr& e) {
      if (std::any_of(loaded.begin(), loaded.end(), [&](const auto& known) { return equal(known.first, e); })) return;
      if (Expr kept = load_before(*e.as<Load>(), e, map, points, late, at, early, before)) loaded.emplace_back(e, kept);
    };
    for (const Stmt& s : map.body) {
      if (const auto* n = s.as<Let>()) sure_loads(n->value, consider);
      if (const auto* n = s.as<Store>()) sure_loads(n->value, consider);
    }
    Map out = map;
    out.body = rewrite_exprs(map.body, [&](const Expr& e) -> std::optional<Expr> {
      for (const auto& [from, to] : loaded)
        if (equal(from, e)) return to;
      return std::nullopt;
    });
    return make_stmt(std::move(out), at);
  }
  // Loads that happen whatever the values are: others may stand where there is nothing to load.
  static void sure_loads(const Expr& e, function_ref<void(const Expr&)> found) {
    if (e.as<Load>()) found(e);
    if (const auto* select = e.as<Select>()) return sure_loads(select->condition, found);
    if (const auto* b = e.as<Binary>(); b && (b->op == BinaryOp::And || b->op == BinaryOp::Or))
      return sure_loads(b->a, found);
    for_each_operand(e, [&](const Expr& part) { sure_loads(part, found); });
  }
  // floor((n * x + r) / d), where n divides d and 0 <= r < n whatever the Map's variables are, without r.
  static Expr without_rest(const Expr& e, const Map& map) {
    const auto* div = e.as<Binary>();
    const auto* sum = div && div->op == BinaryOp::FloorDiv ? div->a.as<ir::Sum>() : nullptr;
    const auto by = sum ? constant_int(div->b) : std::nullopt;
    if (!by || *by <= 0) return e;
    int64_t rest = 0, step = *by;
    ir::Sum kept{{}, sum->constant};
    for (const Term& t : sum->terms) {
      const auto* v = t.value.as<Var>();
      const auto d = v ? std::ranges::find(map.vars, v->id) : map.vars.end();
      if (d == map.vars.end()) {
        kept.terms.push_back(t), step = std::gcd(step, t.coefficient);
        continue;
      }
      const auto extent = constant_int(map.extents[static_cast<size_t>(d - map.vars.begin())]);
      if (!extent || t.coefficient < 0) return e;
      rest += t.coefficient * (*extent - 1);
    }
    step = std::gcd(step, kept.constant);
    for (const Term& t : kept.terms)
      for (VarId v : map.vars)
        if (used_vars(t.value).contains(v)) return e;
    return rest < step ? binary(BinaryOp::FloorDiv, ir::sum(kept.terms, kept.constant, e->type), div->b) : e;
  }
  Expr load_before(const Load& load, const Expr& all, const Map& map, int64_t points, const Late& late, LocationId at,
                   Body& early, Body& before_loop) {
    const Buffer from = p_.buffer(p_.root(load.buffer));
    const bool on_chip = behind_ && arrives_.contains(load.buffer);
    if (!on_chip && (from.space != Space::Global || from.address || analysis::may_overlap(load.buffer, written_, p_)))
      return {};
    bool stays = true;  // where it is
    for (const Expr& index : load.indices)
      walk(index, [&](const Expr& e) {
        const auto* n = e.as<Load>();
        const BufferId root = n ? p_.root(n->buffer) : BufferId{};
        stays = stays && (!n || (!analysis::may_overlap(root, changed_, p_) && !p_.buffer(root).address));
      });
    if (!stays) return {};
    const Expr value = rewrite(all, [&](const Expr& e) { return std::optional(without_rest(e, map)); });
    const std::set<VarId> used = used_vars(value);
    Map before;
    Buffer tile;
    Substitution names;
    std::vector<Expr> index, own;
    int64_t count = 1;
    for (size_t d = 0; d < map.vars.size(); ++d) {
      if (!used.contains(map.vars[d])) continue;
      const DType type = p_.var(map.vars[d]).type;
      const auto extent = constant_int(map.extents[d]);
      if (!extent) return {};  // tiles on chip have constant shapes
      count *= *extent;
      before.vars.push_back(p_.new_var(p_.var(map.vars[d]).name, type)), before.extents.push_back(map.extents[d]);
      tile.shape.push_back(map.extents[d]);
      index.push_back(var(map.vars[d], type)), own.push_back(var(before.vars.back(), type));
      names[map.vars[d]] = own.back();
    }
    if (count * kReuse > points) return {};
    const auto uses = [&](const std::set<VarId>& vars) {
      const auto buffers = used_buffers({make_stmt(Let{{}, value}, at)});
      return std::ranges::any_of(used, [&](VarId v) { return vars.contains(v) && !names.contains(v); }) ||
             std::ranges::any_of(buffers, [&](BufferId id) { return stands_by(p_, id, vars); });
    };
    if (uses(late.vars)) return {};
    bool known = true;  // where to load from
    walk(value, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      known = known && !(n && analysis::may_overlap(n->buffer, late.buffers, p_));
    });
    if (!known) return {};
    // Columns of an accumulator want as many registers as it has in a row.
    if (on_chip && (index.empty() || used.contains(map.vars.back()))) return {};
    for (const Made& made : made_)
      if (is_alike(made, value, index, before.extents))
        return made.tile.valid() ? ir::load(made.tile, index, value->type) : var(made.name, value->type);
    Body& to = on_chip ? held_ : uses(turn_) ? early : before_loop;
    if (index.empty()) {
      const VarId name = p_.new_var(from.name + "_early", value->type);
      to.push_back(make_stmt(Let{name, value}, at));
      made_.push_back({value, {}, {}, {}, name});
      return var(name, value->type);
    }
    if (const BufferId row = &to == &early ? brought(value, map, at, early) : BufferId{}; row.valid()) {
      made_.push_back({substitute(value, names), before.vars, before.extents, row, {}});
      return ir::load(row, index, value->type);
    }
    tile.name = from.name + (on_chip ? "_held" : "_early"), tile.type = value->type, tile.space = Space::Fragment,
    tile.location = at;
    tile.launch = static_cast<int32_t>(launch_);
    const BufferId id = p_.new_buffer(std::move(tile));
    made_.push_back({substitute(value, names), before.vars, before.extents, id, {}});
    before.body = {make_stmt(Store{{id, own}, substitute(value, names)}, at)};
    to.push_back(make_stmt(std::move(before), at));
    return ir::load(id, index, value->type);
  }
  // Shared memory for neighbours that a loader can bring, where they are so many that registers would not hold them and
  // the next turn's beside a product; invalid: they are few, or do not come by TMA.
  BufferId brought(const Expr& value, const Map& map, LocationId at, Body& early) {
    const auto* n = value.as<Load>();
    const VarId along = map.vars.back();
    const int64_t count = constant_int(map.extents.back()).value_or(0);
    if (!n || !pipelined_ || map.vars.size() < 2 || count < kManyColumns) return {};
    Copy copy;
    copy.from.buffer = n->buffer;
    for (size_t d = 0; d < n->indices.size(); ++d) {
      const bool last = d + 1 == n->indices.size();
      const Expr& e = n->indices[d];
      const Expr first = last ? sub(e, cast(var(along, p_.var(along).type), e->type)) : e;
      for (VarId v : map.vars)
        if (used_vars(first).contains(v)) return {};
      copy.from.min.push_back(first), copy.from.extent.push_back(constant(e->type, last ? count : 1));
    }
    Buffer row;
    row.name = p_.buffer(n->buffer).name + "_early", row.type = value->type, row.space = Space::Shared;
    row.shape = {map.extents.back()}, row.location = at, row.launch = static_cast<int32_t>(launch_);
    const BufferId id = p_.new_buffer(std::move(row));
    copy.to = whole(id, p_);
    if (!analysis::ring_misfit(p_, copy).empty()) {
      p_.buffers.pop_back();
      return {};
    }
    early.push_back(make_stmt(std::move(copy), at));
    return id;
  }

  // What is read already, of its own variables, and where it is: a tile or a name.
  struct Made {
    Expr value;
    std::vector<VarId> vars;
    std::vector<Expr> extents;
    BufferId tile;
    VarId name;
  };
  static bool is_alike(const Made& made, const Expr& value, const std::vector<Expr>& index,
                       const std::vector<Expr>& extents) {
    if (made.vars.size() != index.size()) return false;
    Substitution names;
    for (size_t d = 0; d < index.size(); ++d) {
      if (!equal(made.extents[d], extents[d])) return false;
      names[made.vars[d]] = index[d];
    }
    return equal(substitute(made.value, names), value);
  }

  TileProgram& p_;
  std::vector<Made> made_;      // of the loop
  bool pipelined_ = false;      // the loop
  bool behind_ = false;         // whether it is Maps behind the gemm that read
  std::set<BufferId> arrives_;  // tiles in shared memory that the head of the loop brings
  Body held_;                   // reads from them, right before the gemm
  const std::ptrdiff_t launch_;
  const std::set<BufferId> written_;
  std::set<BufferId> changed_;  // by the loop
  std::set<VarId> turn_;        // what each of its turns has values of its own of
};

}  // namespace

TileProgram load_early(TileProgram program) {
  for (Launch& launch : program.launches) launch.body = EarlyLoads(program, launch).run(launch.body);
  return program;
}

}  // namespace tilewright::passes
