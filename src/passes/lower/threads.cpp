#include "passes/lower/threads.h"

#include "analysis/collectives.h"
#include "ir/cluster.h"
#include "ir/match.h"
#include "passes/lower/hazards.h"
#include "passes/lower/strides.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;
using analysis::Uniformity;

namespace {

bool is_jump(const Stmt& s) { return s.as<Break>() || s.as<Continue>() || s.as<Return>(); }

class Block {
 public:
  Block(const Uniformity& uniformity, Lowering& l)
      : u_(uniformity), l_(l), threads_(l.launch.thread_count()), hazards_(l.program, l.launch) {}

  Body lower() {
    walk(l_.launch.body, [&](const Stmt& s) {
      l_.at = s->location;
      refuse(s);
      if (s.as<Return>() && !u_.is_uniform_control(s)) has_divergent_return_ = true;
    });
    Context top;
    if (has_divergent_return_) {
      top.alive = mask("alive");
      set_mask(top.alive, constant(boolean, int64_t{1}));
    }
    body(l_.launch.body, top);
    flush(top);
    return std::move(out_);
  }

 private:
  // Under which masks the code runs, and what a jump does.
  struct Context {
    BufferId mask, iteration, alive;              // arrays over the threads, or invalid: all run
    BufferId loop;                                // which threads are still in the enclosing masked loop
    const std::function<void()>* step = nullptr;  // what that loop does between iterations
    bool masked() const { return mask.valid() || iteration.valid() || alive.valid(); }
  };
  using Predicate = std::vector<BufferId>;

  // ---- small makers
  BufferId mask(const char* name) { return l_.temporary(name, boolean, {threads_}, Space::Shared); }
  Expr new_thread() { return var(l_.program.new_var("t", i32), i32); }
  static Expr at(BufferId array, DType type, const Expr& t) { return load(array, {cast(t, i64)}, type); }
  static Expr runs(const Context& c, const Expr& t) {
    Expr all = constant(boolean, int64_t{1});
    for (BufferId m : {c.mask, c.iteration, c.alive})
      if (m.valid()) all = logical_and(all, at(m, boolean, t));
    return all;
  }
  Stmt store_at(BufferId array, const Expr& t, const Expr& value) {
    return l_.make(Store{{array, {cast(t, i64)}}, value});
  }
  // The thread variables of the launch in terms of the linear index.
  Substitution thread_vars(const Expr& t) const {
    Substitution map;
    int64_t before = 1;
    for (size_t d = 0; d < l_.launch.threads.size(); ++d) {
      const int64_t extent = l_.launch.threads[d];
      Expr v = binary(BinaryOp::FloorDiv, t, constant(before));
      if (d + 1 < l_.launch.threads.size()) v = binary(BinaryOp::FloorMod, v, constant(extent));
      map[l_.launch.thread[d]] = v;
      before *= extent;
    }
    return map;
  }
  // What all threads agree on may still mention their index: in a block of one warp, tx / 32 does. Code outside the
  // loops over the threads is that of thread 0.
  Expr of_first(const Expr& e) const { return substitute(e, thread_vars(constant(0))); }
  Body of_first(const Body& code) const { return substitute(code, thread_vars(constant(0))); }
  std::vector<Expr> place(bool of_thread) const {
    std::vector<Expr> out;
    for (const auto* vars : {&l_.launch.block, &l_.launch.thread})
      for (size_t d = 0; d < 3; ++d) {
        const bool known = d < vars->size() && (of_thread || vars == &l_.launch.block);
        const int64_t first = vars == &l_.launch.thread && d == 0 ? l_.first_thread : 0;
        out.push_back(known ? add(var((*vars)[d], i32), constant(first)) : constant(first));
      }
    return out;
  }

  // ---- loops over the threads
  // for t: body, where the body may mention thread variables.
  Body thread_loop(const Expr& t, const Body& code) {
    l_.boxes.of[id_of(t)] = l_.boxes.add(t);
    Substitution map = thread_vars(t);
    for (const auto& [counter, array] : counters_) map[counter] = at(array, l_.buffer(array).type, t);
    Body loops = lower_box({t}, {constant(threads_)}, substitute(code, map), l_);
    l_.thread_vars.merge(bound_vars(code));
    return loops;
  }
  void append(Body code) { out_.insert(out_.end(), code.begin(), code.end()); }
  // Runs for every thread, whatever the masks say.
  void for_all_threads(const Expr& t, const Body& code) { append(thread_loop(t, code)); }
  void set_mask(BufferId m, const Expr& value) {
    const Expr t = new_thread();
    for_all_threads(t, {store_at(m, t, value)});
  }

  void flush(const Context& c) {
    if (run_.empty()) return;
    const LocationId at = std::exchange(l_.at, run_.front()->location);
    const Expr t = new_thread();
    Body code = without_escapes(run_, c, t, false);
    if (c.masked()) code = {l_.make(If{runs(c, t), std::move(code), {}})};
    append(thread_loop(t, code));
    run_.clear();
    hazards_.clear();
    l_.at = at;
  }

  // Jumps out of the run become stores to masks; what follows one is skipped.
  Body without_escapes(const Body& code, const Context& c, const Expr& t, bool in_loop) {
    Body done;
    for (size_t i = 0; i < code.size(); ++i) {
      const Stmt& s = code[i];
      if (!escapes(s, in_loop)) {
        done.push_back(s);
        continue;
      }
      if (is_jump(s)) {
        const Expr no = constant(boolean, int64_t{0});
        if (s.as<Return>())
          done.push_back(store_at(c.alive, t, no));
        else
          done.push_back(store_at(c.iteration, t, no));
        if (s.as<Break>()) done.push_back(store_at(c.loop, t, no));
        if (s.as<Return>() && in_loop) done.push_back(l_.make(Break{}));
        return done;
      }
      if (const auto* n = s.as<If>()) {
        If f = *n;
        f.then_body = without_escapes(n->then_body, c, t, in_loop);
        f.else_body = without_escapes(n->else_body, c, t, in_loop);
        done.push_back(make_stmt(std::move(f), s->location));
      } else if (const auto* n = s.as<For>()) {
        For f = *n;
        f.body = without_escapes(n->body, c, t, true);
        done.push_back(make_stmt(std::move(f), s->location));
      } else if (const auto* n = s.as<While>()) {
        done.push_back(make_stmt(While{n->condition, without_escapes(n->body, c, t, true)}, s->location));
      }
      if (in_loop) done.push_back(l_.make(If{logical_not(runs(c, t)), {l_.make(Break{})}, {}}));
      if (i + 1 < code.size()) {
        const Body rest(code.begin() + static_cast<long>(i) + 1, code.end());
        Body guarded = without_escapes(rest, c, t, in_loop);
        if (in_loop)
          done.insert(done.end(), guarded.begin(), guarded.end());
        else
          done.push_back(l_.make(If{runs(c, t), std::move(guarded), {}}));
      }
      return done;
    }
    return done;
  }
  // A Return, or a Break or Continue whose loop is not in the statement.
  static bool escapes(const Stmt& s, bool in_loop) {
    if (s.as<Return>()) return true;
    if (is_jump(s)) return !in_loop;
    bool found = false;
    for_each_body(s, [&](const Body& b) {
      for (const Stmt& inner : b) found = found || escapes(inner, in_loop || is_loop(s));
    });
    return found;
  }

  // ---- classification
  bool touches_thread_memory(const Stmt& s) const {
    bool found = false;
    auto check = [&](BufferId id) { found = found || is_thread_local(id, s); };
    for_each_region(s, [&](const Region& r) { check(r.buffer); });
    return found;
  }
  bool is_thread_local(BufferId id, const Stmt& at) const {
    const BufferId root = l_.program.root(id);
    return l_.buffer(root).space == Space::Local && !uniform_local(root, at);
  }
  bool uniform_local(BufferId root, const Stmt& at) const {
    std::vector<Expr> zero(l_.buffer(root).rank(), constant(0));
    return u_.is_uniform(load(root, zero, l_.buffer(root).type), at);
  }
  // Tile ops of each thread that comes to them.
  bool is_of_thread(const Stmt& s) const { return touches_thread_memory(s) || analysis::is_of_one_thread(s, u_); }
  bool is_point(const Stmt& s) const {  // where all threads must have arrived
    if (is_tile_op(s)) return !is_of_thread(s);
    return s.as<Sync>() || s.as<Shuffle>() || s.as<Vote>() || s.as<Wait>();
  }
  // What has no meaning where copies and products are done at once.
  static bool is_idle(const Stmt& s) {
    return s.as<Assume>() || s.as<Fence>() || s.as<SetRegisters>() || s.as<FinalizeReducer>() || s.as<Commit>() ||
           s.as<Drain>();
  }
  bool happens_once(const Stmt& s) const {
    if (const auto* n = s.as<Store>()) {
      if (l_.buffer(l_.program.root(n->to.buffer)).space == Space::Local)
        return uniform_local(l_.program.root(n->to.buffer), s);
      return u_.happens_once(s);
    }
    if (s.as<Atomic>()) return u_.happens_once(s);
    if (s.as<Expect>()) return u_.is_uniform_control(s);
    if (const auto* n = s.as<Print>()) return n->buffer.valid() && on_chip_tile(n->buffer);
    return false;
  }
  bool on_chip_tile(BufferId id) const {
    const Space space = l_.buffer(l_.program.root(id)).space;
    return space == Space::Shared || space == Space::Fragment;
  }
  // Must the statement be taken apart, or can a thread run it from end to end?
  bool must_split(const Stmt& s, bool uniform) const {
    bool split = false;
    auto look = [&](const Stmt& x) {
      split = split || is_point(x) || happens_once(x) || (is_jump(x) && u_.is_uniform_control(x));
    };
    look(s);
    for_each_body(s, [&](const Body& b) { walk(b, look); });
    return split || (uniform && hazards_.inside(s));
  }

  // ---- statements
  void body(const Body& code, const Context& c) {
    for (size_t i = 0; i < code.size(); ++i) {
      const bool clears = i + 1 < code.size() && clears_for(code[i], code[i + 1]);
      const Stmt& s = clears ? code[++i] : code[i];
      const LocationId outer = std::exchange(l_.at, s->location);
      if (clears) {
        Gemm gemm = *s.as<Gemm>();
        gemm.clear = constant(boolean, int64_t{1});
        tile_op(l_.make(gemm), c);
      } else {
        stmt(s, c);
      }
      l_.at = outer;
      if (is_jump(s)) return;  // what follows a jump never runs
    }
  }
  // A tile that is set to zero for the gemm that comes next: the gemm starts from zero instead.
  bool clears_for(const Stmt& first, const Stmt& second) const {
    const auto* fill = first.as<Fill>();
    const auto* gemm = second.as<Gemm>();
    if (!fill || !gemm || gemm->clear || touches_thread_memory(second) || fill->to.buffer != gemm->c.buffer)
      return false;
    const auto value = constant_float(fill->value);
    const bool zero = value ? *value == 0 && !std::signbit(*value) : constant_int(fill->value) == 0;
    return zero && equal(fill->to.min, gemm->c.min) && equal(fill->to.extent, gemm->c.extent);
  }

  void stmt(const Stmt& s, const Context& c) {
    if (is_idle(s)) return;
    if (is_tile_op(s) && !is_of_thread(s)) return tile_op(s, c);
    if (const auto* n = s.as<Sync>()) return sync(*n, s, c);
    if (const auto* n = s.as<Wait>()) return wait(*n, s, c);
    if (const auto* n = s.as<Shuffle>()) return shuffle(*n, s, c);
    if (const auto* n = s.as<Vote>()) return vote(*n, s, c);
    if (const auto* n = s.as<Let>(); n && u_.is_uniform_control(s) && u_.is_uniform(n->value, s))
      return let_once(*n, c);
    if (happens_once(s) && u_.is_uniform_control(s)) {  // masks of jumps that come later are still full
      flush(c);
      return append(once(s));
    }
    if (is_jump(s) && u_.is_uniform_control(s)) {  // all who are here jump: nobody runs what follows, masked or not
      flush(c);
      if (s.as<Continue>() && c.step) (*c.step)();
      return out_.push_back(s);
    }
    const bool uniform = u_.is_uniform_control(s);
    if (!s.as<If>() && !is_loop(s)) return to_run(s, c);
    if (!must_split(s, uniform)) {
      const auto* n = s.as<For>();
      return n && takes_turns(*n, s) ? take_turns(*n, s, c) : to_run(s, c);
    }
    if (const auto* n = s.as<If>()) return split_if(*n, s, c);
    if (const auto* n = s.as<For>()) return split_for(*n, s, c);
    split_while(*s.as<While>(), s, c);
  }

  void to_run(const Stmt& s, const Context& c) {
    if (hazards_.conflicts(s)) flush(c);
    hazards_.add(s);
    for (const Stmt& x : with_places(expanded({s}), true)) run_.push_back(x);
  }
  // Tile ops of a thread become its loops.
  Body expanded(const Body& code) {
    return rewrite(code, [&](const Stmt& s) -> std::optional<Body> {
      if (is_idle(s)) return Body{};
      if (!is_tile_op(s)) return std::nullopt;
      return lowered(s);
    });
  }

  // ---- waiting
  // Others may have written meanwhile.
  void forget_reads() {
    l_.intervals.drop_reads([](BufferId) { return true; });
  }
  void sync(const Sync& n, const Stmt& s, const Context& c) {
    flush(c);
    if (n.scope != SyncScope::Named && n.scope != SyncScope::Grid) return;
    if (!u_.is_uniform_control(s))  // else masks of jumps that come later are still full
      refuse_as(Code::CpuSync, "a barrier that some threads of a role come to and others do not");
    append(once(s));
    forget_reads();
  }
  // The strand waits once for what all its threads wait for.
  void wait(const Wait& n, const Stmt& s, const Context& c) {
    flush(c);
    bool alike = u_.is_uniform_control(s) && !c.masked() && u_.is_uniform(n.parity, s);
    for (const Expr& e : n.barrier.indices) alike = alike && u_.is_uniform(e, s);
    if (alike)
      append(once(s));
    else
      run_.push_back(s), flush(c);
    forget_reads();
  }
  Body with_places(const Body& code, bool of_thread) const {
    return rewrite(code, [&](const Stmt& s) -> std::optional<Body> {
      if (const auto* n = s.as<Print>()) {
        Print p = *n;
        p.place = place(of_thread);
        return Body{make_stmt(std::move(p), s->location)};
      }
      if (const auto* n = s.as<Assert>())
        return Body{make_stmt(Assert{n->condition, n->message, place(of_thread)}, s->location)};
      return std::nullopt;
    });
  }
  Body once(const Stmt& s) { return guard_accesses(of_first(with_places({s}, false)), l_); }

  void let_once(const Let& n, const Context& c) {
    bool reads = false;
    walk(n.value, [&](const Expr& e) { reads = reads || e.as<Load>(); });
    if (reads) flush(c);
    const Expr value = guard_accesses(of_first(n.value), l_);
    if (value->type.is_int()) l_.intervals.set(n.var, l_.intervals.of(value));
    out_.push_back(l_.make(Let{n.var, value}));
  }

  Body lowered(const Stmt& s) {
    Body out;
    const Body code = match(with_sure_operands(s, out, l_)->op, [&]<class Op>(const Op& op) -> Body {
      if constexpr (std::is_same_v<Op, Map>) return map(op);
      if constexpr (TileOp<Op>) return passes::lower(op, l_);
      return {};
    });
    out.insert(out.end(), code.begin(), code.end());
    if (const auto* n = s.as<Copy>()) land(n->completion.barrier, n->to, out);
    if (const auto* n = s.as<Gemm>()) land(n->completion.barrier, {}, out);
    return out;
  }
  void tile_op(const Stmt& s, const Context& c) {
    flush(c);
    const bool has_points = s.as<Map>();  // each of which has a thread
    append(lowered(has_points ? with_exprs(s, [&](const Expr& e) { return of_first(e); }) : of_first(Body{s})[0]));
  }
  // An asynchronous op is done as soon as it is begun; its barrier then has the bytes.
  void land(const Element& barrier, const Region& to, Body& out) {
    if (!barrier.valid()) return;
    Expr bytes = wide(0);
    if (to.valid()) {
      bytes = wide(l_.type(to.buffer).storage_bits());
      for (const Expr& e : to.extent) bytes = mul(bytes, widen(e));
      bytes = binary(BinaryOp::FloorDiv, bytes, wide(8));
    }
    for (Stmt& s : guard_accesses(Body{l_.make(Expect{barrier, neg(bytes), false})}, l_)) out.push_back(std::move(s));
  }
  // Point p of a Map, in row-major order, belongs to thread p mod T.
  Body map(const Map& n) {
    Expr point = wide(0);
    for (size_t d = 0; d < n.vars.size(); ++d)
      point = add(mul(point, widen(n.extents[d])), widen(var(n.vars[d], l_.program.var(n.vars[d]).type)));
    const Expr thread = binary(BinaryOp::FloorMod, point, wide(threads_));
    const size_t nest = l_.boxes.add(thread);
    for (VarId v : n.vars) l_.boxes.of[v] = nest;
    Map m = n;
    m.body = substitute(with_places(expanded(n.body), true), thread_vars(cast(thread, i32)));
    return passes::lower(m, l_);
  }

  // ---- control flow that is taken apart
  Body collect(const Body& code, const Context& c) {
    Body outer = std::exchange(out_, {});
    body(code, c);
    flush(c);
    return std::exchange(out_, std::move(outer));
  }

  void split_if(const If& n, const Stmt& s, const Context& c) {
    flush(c);
    if (u_.is_uniform(n.condition, s) && u_.is_uniform_control(s)) {
      If f{guard_accesses(of_first(n.condition), l_), {}, {}};
      const size_t mark = l_.intervals.mark();
      l_.intervals.assume(f.condition);
      forget_written(n.then_body, l_);
      f.then_body = collect(n.then_body, c);
      l_.intervals.forget(mark);
      f.else_body = collect(n.else_body, c);
      return out_.push_back(l_.make(std::move(f)));
    }
    // Both masks first: the then part may change what the condition reads.
    const BufferId yes = mask("then_mask"), no = mask("else_mask");
    const Expr t = new_thread();
    for_all_threads(t, {store_at(yes, t, logical_and(runs(c, t), n.condition)),
                        store_at(no, t, logical_and(runs(c, t), logical_not(n.condition)))});
    Context then_context = c, else_context = c;
    then_context.mask = yes, else_context.mask = no;
    append(collect(n.then_body, then_context));
    if (!n.else_body.empty()) append(collect(n.else_body, else_context));
  }

  // Whether a jump leaves some threads in the loop.
  bool has_divergent_jump(const Body& code) const {
    bool found = false;
    for (const Stmt& s : code) {
      if ((s.as<Break>() || s.as<Continue>()) && !u_.is_uniform_control(s)) found = true;
      if (!is_loop(s)) for_each_body(s, [&](const Body& b) { found = found || has_divergent_jump(b); });
    }
    return found;
  }

  void split_for(const For& n, const Stmt& s, const Context& c) {
    flush(c);
    const bool uniform = u_.is_uniform(n.begin, s) && u_.is_uniform(n.extent, s);
    if (!uniform) return counted_by_thread(n, c);
    For f = n;
    f.kind = n.kind == LoopKind::Unroll ? LoopKind::Unroll : LoopKind::Serial;
    f.stages = 0, f.order.clear(), f.stage.clear();
    f.begin = guard_accesses(of_first(n.begin), l_), f.extent = guard_accesses(of_first(n.extent), l_);
    const Interval begin = l_.intervals.of(f.begin), extent = l_.intervals.of(f.extent);
    if (begin.low > -kUnbounded && extent.high < kUnbounded)
      l_.intervals.set(f.var, {begin.low, std::max(begin.low, begin.high + extent.high - 1)});
    Context inner = c;
    inner.step = nullptr;
    if (has_divergent_jump(n.body)) {
      enter_loop(inner, c, constant(boolean, int64_t{1}));
      f.body = iteration(n.body, inner);
    } else {
      inner.loop = {};
      f.body = collect(n.body, inner);
    }
    out_.push_back(l_.make(std::move(f)));
  }

  // ---- loops around the loop over the threads
  // May the threads go through the loop together, and do they touch neighbouring elements then?
  bool takes_turns(const For& n, const Stmt& s) const {
    bool plain = n.kind != LoopKind::Vectorized;
    walk(n.body, [&](const Stmt& x) {
      const auto* a = x.as<Atomic>();
      const bool any_order = a && !a->result.valid() && l_.type(a->to.buffer).is_int();
      plain = plain && (any_order || x.as<Store>() || x.as<Let>() || x.as<If>() || x.as<Assume>());
    });
    return plain && u_.is_uniform(n.begin, s) && extreme(n.extent, s, true) &&
           strides_past_neighbours(
               n, [&](int64_t t) { return thread_vars(constant(t)); }, l_.program);
  }
  Expr extreme(const Expr& e, const Stmt& s, bool greatest) const {
    return extreme_over_threads(e, greatest, l_.launch, [&](const Expr& x) { return u_.is_uniform(x, s); });
  }
  // The iterations that all threads have, and then those that only some do.
  void take_turns(const For& n, const Stmt& s, const Context& c) {
    flush(c);
    const Expr most = extreme(n.extent, s, true);
    Expr all = extreme(n.extent, s, false);
    if (all && !equal(all, most)) all = maximum(all, constant(all->type, int64_t{0}));
    const Body code = with_places(expanded(n.body), true);
    if (all) together(n, n.begin, all, code, c);
    if (all && equal(all, most)) return;
    const Expr done = all ? all : constant(most->type, int64_t{0});
    const DType type = l_.program.var(n.var).type;
    const Expr in_loop = binary(BinaryOp::Lt, var(n.var, type), add(n.begin, cast(n.extent, type)));
    together(n, add(n.begin, cast(done, type)), sub(most, done), {l_.make(If{in_loop, code, {}})}, c);
  }
  // for n.var from begin: for all threads: code
  void together(const For& n, const Expr& begin, const Expr& extent, const Body& code, const Context& c) {
    For f;
    f.var = l_.program.new_var(l_.program.var(n.var).name, l_.program.var(n.var).type);
    f.begin = guard_accesses(of_first(begin), l_), f.extent = guard_accesses(of_first(extent), l_);
    const Interval low = l_.intervals.of(f.begin), count = l_.intervals.of(f.extent);
    if (low.low > -kUnbounded && count.high < kUnbounded)
      l_.intervals.set(f.var, {low.low, std::max(low.low, low.high + count.high - 1)});
    Body outer = std::exchange(out_, {});
    run_ = substitute(code, {{n.var, var(f.var, l_.program.var(f.var).type)}});
    flush(c);
    f.body = std::exchange(out_, std::move(outer));
    out_.push_back(l_.make(std::move(f)));
  }

  // Makes the masks of a loop: the threads in it, and those in the current iteration.
  void enter_loop(Context& inner, const Context& outer, const Expr& condition) {
    inner.loop = mask("in_loop");
    inner.iteration = mask("in_iteration");
    inner.mask = {};
    const Expr t = new_thread();
    for_all_threads(t, {store_at(inner.loop, t, logical_and(runs(outer, t), condition))});
  }
  Body iteration(const Body& code, const Context& inner) {
    Body outer = std::exchange(out_, {});
    const Expr t = new_thread();
    for_all_threads(t, {store_at(inner.iteration, t, at(inner.loop, boolean, t))});
    body(code, inner);
    flush(inner);
    return std::exchange(out_, std::move(outer));
  }
  // While any thread is in the loop: `step` moves every such thread on; the new mask is mask && condition.
  void masked_loop(const Body& code, Context inner, const Body& step, const Expr& step_thread, const Expr& condition) {
    const BufferId go = l_.temporary("any_thread", boolean, {}, Space::Fragment);
    auto look = [&] {
      out_.push_back(l_.make(Store{{go, {}}, constant(boolean, int64_t{0})}));
      const Expr t = new_thread();
      const Expr any = binary(BinaryOp::Or, load(go, {}, boolean), at(inner.loop, boolean, t));
      for_all_threads(t, {l_.make(Store{{go, {}}, any})});
    };
    const std::function<void()> move_on = [&] {
      Context stepping = inner;
      stepping.iteration = inner.loop;
      Body next = step;
      next.push_back(store_at(inner.loop, step_thread, condition));
      const Expr t = new_thread();
      const Body code_of_step{
          l_.make(If{runs(stepping, step_thread), std::move(next), {}}),
          store_at(inner.loop, step_thread,
                   logical_and(at(inner.loop, boolean, step_thread), runs_alive(inner, step_thread)))};
      for_all_threads(t, substitute(code_of_step, {{id_of(step_thread), t}}));
      look();
    };
    look();
    inner.step = &move_on;
    Body inside = iteration(code, inner);
    Body outer = std::exchange(out_, std::move(inside));
    move_on();
    inside = std::exchange(out_, std::move(outer));
    out_.push_back(l_.make(While{load(go, {}, boolean), std::move(inside)}));
  }
  static Expr runs_alive(const Context& c, const Expr& t) {
    return c.alive.valid() ? at(c.alive, boolean, t) : constant(boolean, int64_t{1});
  }

  // The extent differs between threads: each counts for itself.
  void counted_by_thread(const For& n, const Context& c) {
    const DType type = l_.program.var(n.var).type;
    const BufferId count = l_.temporary(l_.program.var(n.var).name, type, {threads_}, Space::Shared);
    const BufferId end = l_.temporary("end", type, {threads_}, Space::Shared);
    const Expr t = new_thread();
    Body start{store_at(count, t, n.begin), store_at(end, t, add(n.begin, cast(n.extent, type)))};
    for_all_threads(t, {l_.make(If{runs(c, t), start, {}})});
    Context inner = c;
    const Expr t2 = new_thread();
    inner.loop = mask("in_loop"), inner.iteration = mask("in_iteration"), inner.mask = {};
    for_all_threads(t2,
                    {store_at(inner.loop, t2,
                              logical_and(runs(c, t2), binary(BinaryOp::Lt, at(count, type, t2), at(end, type, t2))))});
    const Expr t3 = new_thread();
    const Expr next = add(at(count, type, t3), constant(type, int64_t{1}));
    counters_[n.var] = count;
    masked_loop(n.body, inner, {store_at(count, t3, next)}, t3,
                binary(BinaryOp::Lt, at(count, type, t3), at(end, type, t3)));
  }

  void split_while(const While& n, const Stmt& s, const Context& c) {
    flush(c);
    if (u_.is_uniform(n.condition, s) && u_.is_uniform_control(s) && !has_divergent_jump(n.body)) {
      Context inner = c;
      inner.loop = {}, inner.step = nullptr;
      Body inside = collect(n.body, inner);
      return out_.push_back(l_.make(While{guard_accesses(of_first(n.condition), l_), std::move(inside)}));
    }
    Context inner = c;
    enter_loop(inner, c, n.condition);
    masked_loop(n.body, inner, {}, new_thread(), n.condition);
  }

  // ---- shuffles and votes: values go through arrays over the threads
  int64_t lanes() const { return (threads_ + 31) / 32 * 32; }
  void shuffle(const Shuffle& n, const Stmt& s, const Context& c) {
    if (hazards_.conflicts(s)) flush(c);
    const DType type = n.value->type;
    const BufferId values = l_.temporary("shuffled", type, {lanes()}, Space::Shared);
    publish(values, n.value, c);
    const Expr self = linear_thread();
    const Expr width = constant(n.width), lane = cast(n.lane, i32);
    const Expr base = mul(binary(BinaryOp::FloorDiv, self, width), width);
    const Expr mine = binary(BinaryOp::FloorMod, self, width);
    const Expr masked = binary(BinaryOp::FloorMod, lane, width);
    Expr other;
    switch (n.kind) {
      case ShuffleKind::Index: other = add(base, masked); break;
      case ShuffleKind::Up: other = select(binary(BinaryOp::Lt, mine, lane), self, sub(self, lane)); break;
      case ShuffleKind::Down:
        other = select(binary(BinaryOp::Lt, add(mine, lane), width), add(self, lane), self);
        break;
      case ShuffleKind::Xor:
        // As PTX shfl.bfly: a lane of an earlier group is read, one of a later group is not.
        other = add(warp_start(), binary(BinaryOp::BitXor, binary(BinaryOp::FloorMod, self, constant(32)), lane));
        other = select(binary(BinaryOp::Lt, other, add(base, width)), other, self);
        break;
    }
    run_.push_back(l_.make(Let{n.result, load(values, {other}, type)}));
  }
  // Every running thread writes its value, then all go on.
  void publish(BufferId values, const Expr& value, const Context& c) {
    run_.push_back(l_.make(Store{{values, {linear_thread()}}, value}));
    flush(c);
  }
  Expr linear_thread() const {
    Expr t = constant(0);
    for (size_t d = l_.launch.threads.size(); d-- > 0;)
      t = add(mul(t, constant(l_.launch.threads[d])), var(l_.launch.thread[d], i32));
    return t;
  }

  void vote(const Vote& n, const Stmt& s, const Context& c) {
    const BufferId active = l_.temporary("active", boolean, {lanes()}, Space::Shared);
    const DType type = n.value ? n.value->type : boolean;
    const BufferId values = l_.temporary("voted", type, {lanes()}, Space::Shared);
    flush(c);
    clear(active);
    run_.push_back(l_.make(Store{{active, {linear_thread()}}, constant(boolean, int64_t{1})}));
    publish(values, n.value ? n.value : constant(boolean, int64_t{1}), c);
    const bool block = n.kind == VoteKind::BlockAny || n.kind == VoteKind::BlockAll || n.kind == VoteKind::BlockCount;
    // The one warp of a block agrees on its vote: what depends on it runs once.
    const bool one_warp = threads_ <= 32 && n.kind != VoteKind::MatchAny && u_.is_uniform_control(s);
    if (block || one_warp)
      append(of_first(count_votes(n, active, values, wide(0), threads_)));
    else
      for (const Stmt& s : count_votes(n, active, values, warp_start(), 32)) run_.push_back(s);
  }
  Expr warp_start() const { return mul(binary(BinaryOp::FloorDiv, linear_thread(), constant(32)), constant(32)); }
  void clear(BufferId array) {
    const Expr i = l_.index("i", wide(lanes()));
    out_.push_back(loop(l_, i, wide(0), wide(lanes()), {l_.make(Store{{array, {i}}, constant(boolean, int64_t{0})})},
                        LoopKind::Vectorized));
  }
  // Goes over the active threads start .. start + extent and combines their votes into n.result.
  Body count_votes(const Vote& n, BufferId active, BufferId values, const Expr& start, int64_t extent) {
    const DType type = l_.program.var(n.result).type;
    const bool all = n.kind == VoteKind::All || n.kind == VoteKind::BlockAll;
    const bool masks = type == u32;
    const Expr i = l_.index("i", wide(extent)), other = add(widen(start), i);
    const BufferId total = l_.temporary("votes", type, {}, Space::Local);
    const Expr old = load(total, {}, type);
    const Expr value = load(values, {other}, n.value ? n.value->type : boolean);
    const Expr is_active = load(active, {other}, boolean);
    Expr counts = value;
    if (n.kind == VoteKind::MatchAny)
      counts = binary(BinaryOp::Eq, value, load(values, {linear_thread()}, value->type));
    if (n.kind == VoteKind::ActiveMask || n.kind == VoteKind::MatchAll) counts = constant(boolean, int64_t{1});
    Body code{l_.make(Store{{total, {}}, constant(type, int64_t{all})})};
    Stmt step;
    if (masks) {
      // Without a branch: the lanes of a warp are then those of a vector.
      const Expr bit = binary(BinaryOp::BitAnd, cast(is_active, u32), cast(counts, u32));
      step = l_.make(Store{{total, {}}, binary(BinaryOp::BitOr, old, binary(BinaryOp::Shl, bit, cast(i, u32)))});
    } else {
      const bool number = n.kind == VoteKind::BlockCount;
      const Expr now = number ? add(old, cast(value, type)) : binary(all ? BinaryOp::And : BinaryOp::Or, old, value);
      step = l_.make(If{is_active, {l_.make(Store{{total, {}}, now})}, {}});
    }
    code.push_back(loop(l_, i, wide(0), wide(extent), {step}));
    if (n.kind == VoteKind::MatchAll) {
      const Expr differs = binary(BinaryOp::Ne, value, load(values, {linear_thread()}, value->type));
      code.push_back(loop(l_, i, wide(0), wide(extent),
                          {l_.make(If{logical_and(load(active, {other}, boolean), differs),
                                      {l_.make(Store{{total, {}}, constant(type, int64_t{0})})},
                                      {}})}));
    }
    code.push_back(l_.make(Let{n.result, load(total, {}, type)}));
    return code;
  }

  // ---- what this engine does not do
  [[noreturn]] void refuse_as(Code code, const char* what) const {
    fail(code, l_.location(), fmt::format("{} is not something the CPU engine runs", what), kUseInterpreter);
  }
  void refuse(const Stmt& s) const {
    if (reaches_blocks(l_.program, s)) refuse_as(Code::CpuCluster, "what reaches the other blocks of a cluster");
    if (s.as<Call>()) refuse_as(Code::CpuForeignCall, "a call of foreign text");
  }

  const Uniformity& u_;
  Lowering& l_;
  int64_t threads_;
  Hazards hazards_;
  bool has_divergent_return_ = false;
  Body out_;                            // the block's code so far
  Body run_;                            // statements of the current run
  std::map<VarId, BufferId> counters_;  // loop variables that each thread counts for itself
};

}  // namespace

Body lower_block(const Uniformity& uniformity, Lowering& l) { return Block(uniformity, l).lower(); }

}  // namespace tilewright::passes
