#include "passes/loops/fuse_loops.h"

#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/fuse/accesses.h"
#include "passes/fuse/contract.h"
#include "passes/fuse/index.h"
#include "passes/fuse/panels.h"
#include "passes/lower/strands.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Iterations of inner loops that make a serial loop worth more than the vectorized loop that joins it.
constexpr int64_t kHeavy = 64;

bool is_heavy(const Body& body) {
  int64_t most = 0;
  walk(body, [&](const Stmt& s) {
    const auto* f = s.as<For>();
    if (!f) return;
    int64_t inside = constant_int(f->extent).value_or(kHeavy);
    walk(f->body, [&](const Stmt& t) {
      if (const auto* g = t.as<For>()) inside *= constant_int(g->extent).value_or(kHeavy);
    });
    most = std::max(most, inside);
  });
  return most >= kHeavy;
}

class Fuse {
 public:
  Fuse(LoopProgram& program, const Body& launch) : program_(program), dependences_(program, ranges_) {
    note_ranges(launch, ranges_);
  }

  Body body(const Body& in) {
    Body out;
    for (const Stmt& s : merge_conditions(in)) {
      std::optional<Stmt> panels = by_panels(s, program_);
      if (panels) note(whole_products_, *panels, s);
      if (!panels && (panels = panels_under(s))) note(conditional_, *panels, s);
      append(panels.value_or(s), out);
    }
    for (Stmt& s : out) s = inside(alone(s));
    return out;
  }

 private:
  Stmt inside(const Stmt& s) {
    if (const auto* n = s.as<For>()) {
      For f = *n;
      f.body = body(n->body);
      return make_stmt(std::move(f), s->location);
    }
    if (const auto* n = s.as<If>())
      return make_stmt(If{n->condition, body(n->then_body), body(n->else_body)}, s->location);
    if (const auto* n = s.as<While>()) return make_stmt(While{n->condition, body(n->body)}, s->location);
    return s;
  }

  // What became a loop over panels to join others: by its variable, the loop's one statement and what it was before,
  // which it is again if nothing joins.
  using Panels = std::map<VarId, std::pair<Stmt, Stmt>>;
  void note(Panels& panels, const Stmt& loop, const Stmt& before) {
    const For& f = *loop.as<For>();
    ranges_.set(f.var, {0, *constant_int(f.extent) - 1});
    panels[f.var] = {f.body[0], before};
  }
  static bool is_alone(const Panels& panels, const Stmt& s) {
    const auto* f = s.as<For>();
    const auto at = f && f->body.size() == 1 ? panels.find(f->var) : panels.end();
    return at != panels.end() && f->body[0].same(at->second.first);
  }
  bool is_products(const Stmt& s) const { return is_alone(whole_products_, s); }
  Stmt alone(const Stmt& s) const {
    for (const Panels* panels : {&whole_products_, &conditional_})
      if (is_alone(*panels, s)) return panels->at(s.as<For>()->var).second;
    return s;
  }
  // A loop over panels under a condition, as one whose panels ask each.
  std::optional<Stmt> panels_under(const Stmt& s) const {
    const auto* n = s.as<If>();
    const auto* f = n && n->else_body.empty() && n->then_body.size() == 1 ? n->then_body[0].as<For>() : nullptr;
    if (!f || f->kind != LoopKind::Serial || !constant_int(f->extent) || constant_int(f->begin) != 0)
      return std::nullopt;
    bool pure = panel_width(*f, program_) > 0;
    walk(n->condition, [&](const Expr& e) { pure = pure && !e.as<Load>() && !e.as<Address>() && !e.as<Intrinsic>(); });
    if (!pure) return std::nullopt;
    For loop = *f;
    loop.body = {make_stmt(If{n->condition, f->body, {}}, s->location)};
    return make_stmt(std::move(loop), n->then_body[0]->location);
  }
  // Products go by panels for what is made of their sums, or where others do, and not for what brings their operands.
  bool chains(const Stmt& a, const Accesses& of_a, const Stmt& b, const Accesses& of_b) const {
    auto follows = [](const Accesses& products, const Accesses& x) {
      return !x.sums.empty() ||
             std::ranges::any_of(x.list, [&](const ElementAccess& e) { return products.sums.contains(e.buffer); });
    };
    if (is_products(a) && is_products(b)) return false;
    return (!is_products(a) || follows(of_a, of_b)) && (!is_products(b) || follows(of_b, of_a));
  }

  // One question for neighbours that ask the same, if the answer cannot change in between.
  static Body merge_conditions(const Body& in) {
    Body out;
    for (const Stmt& s : in) {
      const auto* b = s.as<If>();
      const auto* a = b && !out.empty() ? out.back().as<If>() : nullptr;
      bool pure = true;
      if (a) walk(a->condition, [&](const Expr& e) { pure = pure && !e.as<Load>(); });
      if (!a || !pure || !equal(a->condition, b->condition)) {
        out.push_back(s);
        continue;
      }
      If joined = *a;
      joined.then_body.insert(joined.then_body.end(), b->then_body.begin(), b->then_body.end());
      joined.else_body.insert(joined.else_body.end(), b->else_body.begin(), b->else_body.end());
      out.back() = make_stmt(std::move(joined), out.back()->location);
    }
    return out;
  }

  // Puts the statement after the others, or into one of them.
  void append(const Stmt& s, Body& out) {
    if (s.as<For>()) {
      const Accesses mine = accesses_of(s, program_);
      for (size_t k = out.size(); k-- > 0 && !mine.opaque;) {
        if (out[k].as<For>() && join(out, k, s, mine)) return;
        if (!out[k].as<For>() && accesses_of(out[k], program_).opaque) break;
      }
    }
    out.push_back(s);
  }

  // Fuses `s` with out[k], if what stands between can go in front of out[k] or stay behind both.
  bool join(Body& out, size_t k, const Stmt& s, const Accesses& mine) {
    const Accesses first = accesses_of(out[k], program_);
    if (first.opaque || !shares_tile(first, mine) || !chains(out[k], first, s, mine)) return false;
    std::vector<Accesses> staying;
    Body before, after;
    for (size_t t = k + 1; t < out.size(); ++t) {
      const Accesses between = accesses_of(out[t], program_);
      const bool moves = dependences_.commute(first, between) &&
                         std::all_of(staying.begin(), staying.end(),
                                     [&](const Accesses& a) { return dependences_.commute(a, between); });
      if (moves) {
        before.push_back(out[t]);
        continue;
      }
      if (!dependences_.commute(between, mine)) return false;
      staying.push_back(between), after.push_back(out[t]);
    }
    std::optional<Body> fused = fuse(out[k], s);
    if (!fused) return false;
    out.resize(k);
    out.insert(out.end(), before.begin(), before.end());
    // What is one loop now may share a tile with a loop that neither of its parts could join.
    append(fused->front(), out);
    out.insert(out.end(), fused->begin() + 1, fused->end());
    out.insert(out.end(), after.begin(), after.end());
    return true;
  }

  bool shares_tile(const Accesses& a, const Accesses& b) const {
    for (const ElementAccess& x : a.list)
      for (const ElementAccess& y : b.list)
        if (x.buffer == y.buffer && program_.buffer(program_.root(x.buffer)).space != Space::Global) return true;
    return false;
  }

  std::optional<Body> fuse(const Stmt& a, const Stmt& b) {
    const For &f = *a.as<For>(), &g = *b.as<For>();
    if (auto one = fuse_equal(f, g, a->location)) return Body{*one};
    // A reduction goes by chunks of lanes, what products make by panels.
    if (const auto shape = chunks_of(g); shape && f.kind == LoopKind::Vectorized) {
      const Body cut = cut_to(f, *shape, a->location);
      if (cut.empty()) return std::nullopt;
      if (auto one = fuse_equal(*cut[0].as<For>(), g, a->location)) return with_rest(*one, cut, b);
    }
    if (const auto shape = chunks_of(f); shape && g.kind == LoopKind::Vectorized) {
      const Body cut = cut_to(g, *shape, b->location);
      if (cut.empty()) return std::nullopt;
      if (auto one = fuse_equal(f, *cut[0].as<For>(), a->location)) return with_rest(*one, cut, {});
    }
    return std::nullopt;
  }
  // The rest of a loop that was cut stands behind it, and then behind the loop it was fused with.
  std::optional<Body> with_rest(const Stmt& one, const Body& cut, const Stmt& passed) const {
    Body out{one};
    if (cut.size() == 1) return out;
    if (passed && !dependences_.commute(accesses_of(cut[1], program_), accesses_of(passed, program_)))
      return std::nullopt;
    out.push_back(cut[1]);
    return out;
  }

  std::optional<Stmt> fuse_equal(const For& f, const For& g, LocationId at) {
    const bool vectorized = f.kind == LoopKind::Vectorized && g.kind == LoopKind::Vectorized;
    for (const For* n : {&f, &g})
      if (n->kind != LoopKind::Serial && n->kind != LoopKind::Vectorized) return std::nullopt;
    if (f.kind != g.kind && !is_heavy(f.kind == LoopKind::Serial ? f.body : g.body)) return std::nullopt;
    if (!equal(widen(f.begin), widen(g.begin)) || !equal(widen(f.extent), widen(g.extent))) return std::nullopt;
    // Indices are sums of the wider variable.
    const VarId v = program_.var(f.var).type == i64 ? f.var : g.var;
    const Expr name = var(v, program_.var(v).type);
    if (bound_vars(f.body).contains(v) || bound_vars(g.body).contains(v)) return std::nullopt;
    const Body first = with_index(f, name, program_), second = with_index(g, name, program_);
    if (!dependences_.only_at_same_iteration(accesses_of(first, program_), accesses_of(second, program_), v))
      return std::nullopt;
    For out = v == f.var ? f : g;
    out.kind = vectorized ? LoopKind::Vectorized : LoopKind::Serial;
    out.body = first;
    out.body.insert(out.body.end(), second.begin(), second.end());
    return make_stmt(std::move(out), at);
  }

  // for chunk in 0..chunks: for lane in 0..lanes, vectorized
  struct Chunks {
    int64_t chunks = 0, lanes = 0;
  };
  std::optional<Chunks> chunks_of(const For& f) const {
    const auto chunks = constant_int(f.extent);
    if (f.kind != LoopKind::Serial || !chunks || constant_int(f.begin) != 0) return std::nullopt;
    if (const int64_t width = panel_width(f, program_); width > 0 && *chunks > 1) return Chunks{*chunks, width};
    std::optional<int64_t> lanes;
    for (const Stmt& s : f.body) {
      const auto* n = s.as<For>();
      const auto extent = n && n->kind == LoopKind::Vectorized ? constant_int(n->extent) : std::nullopt;
      if (!extent || constant_int(n->begin) != 0 || (lanes && lanes != extent)) return std::nullopt;
      lanes = extent;
    }
    return lanes ? std::optional(Chunks{*chunks, *lanes}) : std::nullopt;
  }
  // The loop as chunks of lanes, and what is left over.
  Body cut_to(const For& f, const Chunks& shape, LocationId at) {
    const auto extent = constant_int(f.extent);
    const int64_t whole = shape.chunks * shape.lanes;
    if (!extent || constant_int(f.begin) != 0 || *extent < whole || *extent >= whole + shape.lanes) return {};
    const VarId chunk = new_index("chunk", shape.chunks), lane = new_index("lane", shape.lanes);
    auto piece = [&](const Expr& index) { return with_index(f, index, program_); };
    const Expr lane_value = var(lane, i64), zero = constant(i64, int64_t{0});
    auto loop = [&](VarId v, int64_t n, LoopKind kind, Body b) {
      For out;
      out.var = v, out.begin = zero, out.extent = constant(i64, n), out.kind = kind, out.body = std::move(b);
      return make_stmt(std::move(out), at);
    };
    Body out{loop(chunk, shape.chunks, LoopKind::Serial,
                  {loop(lane, shape.lanes, LoopKind::Vectorized,
                        piece(sum({{shape.lanes, var(chunk, i64)}, {1, lane_value}}, 0, i64)))})};
    if (*extent > whole)
      out.push_back(loop(lane, *extent - whole, LoopKind::Vectorized, piece(sum({{1, lane_value}}, whole, i64))));
    return out;
  }
  VarId new_index(const char* name, int64_t extent) {
    const VarId v = program_.new_var(name, i64);
    ranges_.set(v, {0, extent - 1});
    return v;
  }

  LoopProgram& program_;
  Intervals ranges_;
  Dependences dependences_;
  Panels whole_products_, conditional_;
};

}  // namespace

LoopProgram fuse_loops(LoopProgram program) {
  for (size_t i = 0; i < program.launches.size(); ++i) {
    if (has_waits(program.launches[i])) continue;
    For grid = *program.launches[i].body.front().as<For>();
    const LocationId at = program.launches[i].body.front()->location;
    grid.body = Fuse(program, program.launches[i].body).body(grid.body);
    grid.body = contract_tiles(grid.body, program, static_cast<int32_t>(i));
    program.launches[i].body = {make_stmt(std::move(grid), at)};
  }
  return program;
}

}  // namespace tilewright::passes
