#include "passes/tile/load_ahead.h"

#include <set>

#include "analysis/body_order.h"
#include "analysis/slope.h"
#include "ir/buffer_vars.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/jumps.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/schedule/role_code.h"
#include "plan/hints.h"
#include "plan/schedule.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kMostElements = 512;  // of a fragment: it stands in registers twice

class LoadsAhead {
 public:
  LoadsAhead(TileProgram& p, const Launch& launch, bool aside)
      : p_(p), launch_(launch), aside_(aside), written_(changed_roots(launch.body, p)) {}
  Body run() {
    // Turns that are another block's are not what comes behind the turn before.
    const plan::Hints hints = plan::parse_hints(launch_.plan, p_.location(launch_.location));
    if (std::ranges::any_of(hints.wishes, [](const plan::Wish& w) { return w.of->is_work; })) return launch_.body;
    return rewrite(launch_.body, [&](const Stmt& s) -> std::optional<Body> {
      const auto* loop = s.as<For>();
      if (!loop || loop->kind != LoopKind::Pipelined || loop->stages == 0) return std::nullopt;
      if (!loop->order.empty() || !loop->stage.empty() || may_jump(loop->body)) return std::nullopt;
      return rotated(*loop, s->location);
    });
  }

 private:
  std::optional<Body> rotated(const For& loop, LocationId at) {
    const auto gemm = std::find_if(loop.body.begin(), loop.body.end(), [](const Stmt& x) { return x.as<Gemm>(); });
    if (gemm == loop.body.end()) return std::nullopt;
    const DType type = p_.var(loop.var).type;
    const Expr one = constant(type, int64_t{1}), end = add(loop.begin, loop.extent), i = var(loop.var, type);
    const Substitution first{{loop.var, loop.begin}},
        next{{loop.var, binary(BinaryOp::Min, add(i, one), sub(end, one))}};
    For f = loop;
    f.body.clear();
    // In front of the loop; behind its first product: addresses are computed while that runs, where the turn goes on.
    Body before, behind;
    Body& later = gemm + 1 == loop.body.end() ? f.body : behind;
    for (auto x = loop.body.begin(); x != loop.body.end(); ++x) {
      const bool early = x < gemm && is_known_outside(*x, loop);
      if (aside_ && early && gemm + 1 != loop.body.end() && lies_by_the_last(*x, loop) &&
          waits_for(*x, x + 1, gemm + 1)) {
        const auto* let = x->as<Let>();
        if (!let) {
          behind.push_back(*x);
          continue;
        }
        // A variable of those who compute: a loader has no use for the name.
        const BufferId kept = new_local(p_.var(let->var).name + "_here", let->value->type);
        behind.push_back(make_stmt(Store{{kept, {}}, let->value}, (*x)->location));
        behind.push_back(make_stmt(Let{let->var, load(kept, {}, let->value->type)}, (*x)->location));
        continue;
      }
      if (const auto* let = x->as<Let>(); early && let && let->value->type.is_float() && loads(let->value)) {
        const BufferId kept = new_local(p_.var(let->var).name + "_next", let->value->type);
        const auto keep = [&](const Substitution& turn) {
          return make_stmt(Store{{kept, {}}, substitute(let->value, turn)}, (*x)->location);
        };
        before.push_back(keep(first));
        f.body.push_back(make_stmt(Let{let->var, load(kept, {}, let->value->type)}, (*x)->location));
        later.push_back(keep(next));
      } else if (const BufferId kept = early ? fragment_of(*x) : BufferId{};
                 kept.valid() && may_wait(kept, loop, x - loop.body.begin())) {
        Buffer b = p_.buffer(kept);
        b.name += "_next";
        const BufferId ahead = p_.new_buffer(std::move(b));
        const Body bring = with_buffers({*x}, {{kept, ahead}});
        append(before, renamed(p_, substitute(bring, first)));
        Copy down;
        down.from = whole(ahead, p_), down.to = whole(kept, p_);
        f.body.push_back(make_stmt(std::move(down), (*x)->location));
        append(later, substitute(bring, next));
      } else {
        f.body.push_back(*x);
      }
      if (x == gemm) append(f.body, behind);
    }
    if (before.empty() && behind.empty()) return std::nullopt;
    const Expr any = binary(BinaryOp::Lt, constant(type, int64_t{0}), loop.extent);
    const bool as_it_is = before.empty() || constant_int(any) == 1;
    Body out = as_it_is ? std::move(before) : Body{make_stmt(If{any, std::move(before), {}}, at)};
    out.push_back(make_stmt(std::move(f), at));
    return out;
  }
  static void append(Body& out, const Body& more) { out.insert(out.end(), more.begin(), more.end()); }
  BufferId new_local(std::string name, DType type) {
    Buffer b;
    b.name = std::move(name), b.type = type, b.space = Space::Local;
    b.launch = static_cast<int32_t>(&launch_ - p_.launches.data());
    return p_.new_buffer(std::move(b));
  }
  // Whether what the statement loads lies behind what it loaded the turn before: a cache has it, mostly, before the
  // turn's product is done. Loaded a turn before, it would be copied to where the turn has it, and the copy waits for
  // the memory in front of the product (block-scaled float8, 4096 x 7168 x 16384 on an H200: 779 us, and 697).
  bool lies_by_the_last(const Stmt& s, const For& loop) const {
    const auto* let = s.as<Let>();
    if (let ? !let->value->type.is_float() || !loads(let->value) : !s.as<Map>() || !fragment_of(s).valid())
      return false;
    const Expr value = let ? let->value : s.as<Map>()->body[0].as<Store>()->value;
    bool near = true;
    walk(value, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      if (!n) return;
      for (size_t d = 0; d < n->indices.size(); ++d) {
        const bool last = d + 1 == n->indices.size(), varies = used_vars(n->indices[d]).contains(loop.var);
        near = near && (last ? analysis::slope(n->indices[d], loop.var) == 1 : !varies);
      }
    });
    return near;
  }
  // Whether none of the statements asks for what this one makes.
  bool waits_for(const Stmt& s, Body::const_iterator from, Body::const_iterator to) const {
    const auto* let = s.as<Let>();
    const BufferId made = let ? BufferId{} : fragment_of(s);
    for (; from != to; ++from)
      if (let ? used_vars(Body{*from}).contains(let->var) : used_roots({*from}, p_).contains(made)) return false;
    return true;
  }
  // Whether nothing but the loop's variable, of all that its turns bind, says what the statement reads.
  bool is_known_outside(const Stmt& s, const For& loop) const {
    const std::set<VarId> inside = bound_vars(loop.body), own = bound_vars(Body{s}), used = used_vars(Body{s});
    for (BufferId id : used_buffers({s}))
      if (stands_by(p_, id, inside) || stands_by(p_, id, {loop.var})) return false;
    return std::none_of(used.begin(), used.end(), [&](VarId v) { return inside.contains(v) && !own.contains(v); });
  }
  bool is_constant_memory(BufferId id) const {
    const Buffer& root = p_.buffer(p_.root(id));  // what an address leads to, anybody may write
    return root.space == Space::Global && !root.address && !analysis::may_overlap(id, written_, p_);
  }
  // Whether the value is made of what memory holds all the time, and of some of it at all.
  bool loads(const Expr& value) const {
    bool some = false, all = true;
    walk(value, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      some = some || n, all = all && (!n || is_constant_memory(n->buffer));
    });
    return some && all;
  }
  // The fragment that a copy, or a Map of one store, fills from memory that nobody writes; none: it does something
  // else.
  BufferId fragment_of(const Stmt& s) const {
    if (const auto* copy = s.as<Copy>()) {
      bool plain = copy->completion.immediate() && copy->combine == Combine::None && !copy->im2col.present();
      for_each_expr(s, [&](const Expr& e) { walk(e, [&](const Expr& x) { plain = plain && !x.as<Load>(); }); });
      plain = plain && is_constant_memory(copy->from.buffer) && is_whole(copy->to, p_.buffer(copy->to.buffer));
      return plain ? copy->to.buffer : BufferId{};
    }
    const auto* map = s.as<Map>();
    const auto* store = map && map->body.size() == 1 ? map->body[0].as<Store>() : nullptr;
    if (!store || store->to.indices.size() != map->vars.size() || !loads(store->value)) return {};
    for (size_t d = 0; d < map->vars.size(); ++d) {
      const auto* index = store->to.indices[d].as<Var>();
      if (!index || index->id != map->vars[d]) return {};
      if (!equal(map->extents[d], p_.buffer(store->to.buffer).shape[d])) return {};
    }
    return store->to.buffer;
  }
  // Whether only later statements of the turn read the fragment, a small one.
  bool may_wait(BufferId id, const For& loop, std::ptrdiff_t at) const {
    const Buffer& to = p_.buffer(id);
    if (to.space != Space::Fragment || to.is_view() || !(to.type.is_float() || to.type.is_bool()) ||
        elements_on_chip(to) > kMostElements)
      return false;
    int all = 0, later = 0, writes = 0;
    const auto count = [&](int& n) {
      return [&](const Stmt& s) {
        for (const Effect& e : effects_of(s).list) {
          if (!e.region.valid() || p_.root(e.region.buffer) != id) continue;
          ++n;
          writes += &n == &all && e.access != Access::Read;
        }
      };
    };
    walk(launch_.body, count(all));
    for (auto x = loop.body.begin() + at + 1; x != loop.body.end(); ++x) walk(Body{*x}, count(later));
    return writes == 1 && later == all - 1;
  }

  TileProgram& p_;
  const Launch& launch_;
  const bool aside_;
  const std::set<BufferId> written_;
};

}  // namespace

TileProgram load_ahead(TileProgram program, bool aside) {
  for (Launch& launch : program.launches) launch.body = LoadsAhead(program, launch, aside).run();
  return program;
}

}  // namespace tilewright::passes
