#include "passes/tile/accumulators.h"

#include "analysis/accessed.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/jumps.h"
#include "ir/number_statements.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/lowering.h"
#include "passes/schedule/settle_plan.h"

namespace tilewright::passes {

using namespace ir;
using analysis::writes_whole;

namespace {

// Statements of one fragment, some of which may have another in its place.
class Accumulator {
 public:
  Accumulator(TileProgram& p, const Launch& launch, BufferId c, BufferId own)
      : p_(p), launch_(launch), c_(c), own_(own) {}

  // The body with copies around runs of products; none: the fragment may be read there before it is written.
  std::optional<Body> run() {
    Body out = with_runs(launch_.body);
    return fits_ ? std::optional(std::move(out)) : std::nullopt;
  }

 private:
  bool touches(const Stmt& s) const {
    const std::set<BufferId> used = used_buffers({s});
    return std::any_of(used.begin(), used.end(), [&](BufferId id) { return p_.root(id) == c_; });
  }
  bool is_all(const Region& r) const { return r.buffer == c_ && is_whole(r, p_.buffer(c_)); }
  // Whether all that it does with the fragment is to fill it and to add products to it.
  bool is_product(const Stmt& s) const {
    if (!touches(s)) return true;
    if (const auto* n = s.as<Fill>()) return is_all(n->to) && !mentions(n->value);
    if (const auto* n = s.as<Gemm>())
      return is_all(n->c) && n->completion.immediate() && p_.root(n->a.buffer) != c_ && p_.root(n->b.buffer) != c_ &&
             !(n->is_sparse() && p_.root(n->metadata.buffer) == c_) && !(n->clear && mentions(n->clear));
    if (!s.as<For>() && !s.as<If>()) return false;
    bool own = false;
    for_each_expr(s, [&](const Expr& e) { own = own || mentions(e); });
    bool all = !own;
    for_each_body(s,
                  [&](const Body& b) { all = all && std::ranges::all_of(b, [&](auto& x) { return is_product(x); }); });
    return all;
  }
  bool mentions(const Expr& e) const {
    bool found = false;
    walk(e, [&](const Expr& x) { found = found || (x.as<Load>() && p_.root(x.as<Load>()->buffer) == c_); });
    return found;
  }
  static bool multiplies(const Stmt& s, BufferId c) {
    bool found = false;
    walk({s}, [&](const Stmt& x) { found = found || (x.as<Gemm>() && x.as<Gemm>()->c.buffer == c); });
    return found;
  }

  // Whether it writes all of the fragment, whatever happens.
  bool surely_writes(const Stmt& s) const {
    if (s.as<Gemm>() || s.as<Fill>() || s.as<Map>() || s.as<Copy>())
      return s.as<Gemm>() ? is_all(s.as<Gemm>()->c) : writes_whole(s, c_, p_);
    const auto any = [&](const Body& b) { return std::ranges::any_of(b, [&](auto& x) { return surely_writes(x); }); };
    if (const auto* n = s.as<If>()) return any(n->then_body) && any(n->else_body);
    const auto* n = s.as<For>();
    return n && constant_int(n->extent).value_or(0) > 0 && !may_jump(n->body) && any(n->body);
  }

  Body with_runs(const Body& in) {
    Body out;
    for (size_t i = 0; i < in.size();) {
      size_t end = i, last = i;  // of the run, and behind what touches the fragment last
      bool any = false;
      for (; end < in.size() && is_product(in[end]) && !may_jump({in[end]}); ++end)
        if (touches(in[end])) last = end + 1, any = any || multiplies(in[end], c_);
      const std::span<const Stmt> run = std::span(in).subspan(i, last - i);
      if (any && touches(in[i]) && products(run, out)) {
        i = last;
        continue;
      }
      out.push_back(touches(in[i]) ? inside(in[i]) : in[i]);
      if (touches(in[i])) touched_ = true, whole_ = whole_ || surely_writes(in[i]);
      ++i;
    }
    return out;
  }
  Stmt inside(const Stmt& s) {
    const bool before = whole_;
    const auto nested = [&](const Body& body) {
      Body out = with_runs(body);
      whole_ = before;
      return out;
    };
    if (const auto* n = s.as<For>()) {
      For f = *n;
      const bool outside = std::exchange(in_loop_, true);
      f.body = nested(n->body);
      in_loop_ = outside;
      return make_stmt(std::move(f), s->location);
    }
    if (const auto* n = s.as<If>()) {
      Body then_body = nested(n->then_body);
      return make_stmt(If{n->condition, std::move(then_body), nested(n->else_body)}, s->location);
    }
    if (multiplies(s, c_)) fits_ = false;
    return s;
  }
  // What the fragment holds comes first, unless the run starts anew or nothing is there yet. False: the fragment or its
  // sum would be copied where it may not have been written.
  bool products(std::span<const Stmt> run, Body& out) {
    const auto* first = run[0].as<Gemm>();
    const bool anew = run[0].as<Fill>() || (first && first->clear && constant_int(first->clear) == 1);
    const bool begins = !touched_ && !in_loop_ && std::ranges::any_of(run, [&](auto& s) { return surely_writes(s); });
    if (!anew && !whole_ && !begins) return false;
    if (!anew && whole_) out.push_back(copy(c_, own_, run[0]->location));
    for (const Stmt& s : run) append(s, out);
    out.push_back(copy(own_, c_, run.back()->location));
    return touched_ = whole_ = true;
  }
  void append(const Stmt& s, Body& out) {
    if (!touches(s)) return out.push_back(s);
    if (const auto* n = s.as<Fill>())
      return out.push_back(make_stmt(Fill{whole(own_, p_), cast(n->value, p_.buffer(own_).type)}, s->location));
    if (const auto* n = s.as<Gemm>()) {
      Gemm g = *n;
      g.c = whole(own_, p_);
      out.push_back(make_stmt(std::move(g), s->location));
      return round(s->location, out);
    }
    const auto nested = [&](const Body& in) {
      Body body;
      for (const Stmt& x : in) append(x, body);
      return body;
    };
    if (const auto* n = s.as<For>()) {
      For f = *n;
      f.body = nested(n->body);
      out.push_back(make_stmt(std::move(f), s->location));
    } else if (const auto* n = s.as<If>()) {
      out.push_back(make_stmt(If{n->condition, nested(n->then_body), nested(n->else_body)}, s->location));
    }
  }
  // A product rounds to the fragment's type once.
  void round(LocationId at, Body& out) {
    const Buffer own = p_.buffer(own_);
    const DType narrow = p_.buffer(c_).type;
    if (own.type == narrow) return;
    Map m;
    std::vector<Expr> point;
    for (const Expr& extent : own.shape) {
      m.vars.push_back(p_.new_var(m.vars.empty() ? "i" : "j", i32));
      m.extents.push_back(cast(extent, i32)), point.push_back(var(m.vars.back(), i32));
    }
    const Expr value = cast(cast(load(own_, point, own.type), narrow), own.type);
    m.body = {make_stmt(Store{{own_, point}, value}, at)};
    out.push_back(make_stmt(std::move(m), at));
  }
  Stmt copy(BufferId from, BufferId to, LocationId at) const {
    Copy c;
    c.from = whole(from, p_), c.to = whole(to, p_);
    return make_stmt(std::move(c), at);
  }

  TileProgram& p_;
  const Launch& launch_;
  const BufferId c_, own_;
  bool touched_ = false, whole_ = false;  // the fragment, by what came before; all of it was written
  bool in_loop_ = false;
  bool fits_ = true;
};

// Whether statements are done one after the other by all threads of the block.
bool is_in_order(const Launch& launch) {
  bool found = false;
  walk(launch.body, [&](const Stmt& s) {
    const auto* copy = s.as<Copy>();
    found = found || s.as<Role>() || s.as<Arrive>() || s.as<Wait>() || s.as<Return>() ||
            (copy && !copy->completion.immediate());
  });
  return !found;
}

// Fragments and shared tiles to which products are added that no matrix instruction does as it stands.
std::set<BufferId> slow_accumulators(const ProgramTables& p, const Launch& launch, const Placement& placement) {
  std::set<BufferId> out;
  walk(launch.body, [&](const Stmt& s) {
    const auto* g = s.as<Gemm>();
    if (!g || placement.choice_of(s).has_instruction()) return;
    const Buffer& c = p.buffer(g->c.buffer);
    const bool on_chip = c.space == Space::Fragment || (c.space == Space::Shared && c.strides.empty());
    if (on_chip && !c.is_view() && c.rank() == 2 && !c.reducer && !c.type.is_packed() &&
        c.layout.kind == LayoutHint::None)
      out.insert(g->c.buffer);
  });
  return out;
}

bool have_instruction(const Launch& launch, BufferId c, const Placement& placement) {
  bool all = true;
  walk(launch.body, [&](const Stmt& s) {
    const auto* g = s.as<Gemm>();
    all = all && (!g || g->c.buffer != c || placement.choice_of(s).has_instruction());
  });
  return all;
}

}  // namespace

void accumulate_in_registers(TileProgram& program, const target::GpuTarget& target) {
  for (size_t i = 0; i < program.launches.size(); ++i) {
    bool multiplies = false;
    walk(program.launches[i].body, [&](const Stmt& s) { multiplies = multiplies || s.as<Gemm>(); });
    if (!multiplies || !is_in_order(program.launches[i])) continue;
    TileProgram scratch = program;
    const Placement before = foreseen_placement(scratch, i, target);
    for (BufferId c : slow_accumulators(scratch, scratch.launches[i], before)) {
      TileProgram with = program;
      Buffer own = with.buffer(c);
      own.name += "_sum", own.type = accumulator(own.type), own.space = Space::Fragment;
      const BufferId sum = with.new_buffer(std::move(own));
      auto body = Accumulator(with, with.launches[i], c, sum).run();
      if (!body) continue;
      with.launches[i].body = std::move(*body);
      scratch = with;
      const Placement after = foreseen_placement(scratch, i, target);
      if (have_instruction(scratch.launches[i], sum, after)) program = std::move(with);
    }
  }
}

}  // namespace tilewright::passes
