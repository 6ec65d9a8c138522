#include "passes/threads/place_sync.h"

#include <numeric>

#include "analysis/body_order.h"
#include "analysis/slope.h"
#include "analysis/slots_apart.h"
#include "analysis/thread_index.h"
#include "analysis/value_at.h"
#include "ir/any_in.h"
#include "ir/effects.h"
#include "ir/jumps.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/role_groups.h"
#include "passes/threads/alike_stores.h"
#include "passes/threads/collectives.h"
#include "passes/threads/warp_boxes.h"
#include "passes/warp_arrivals.h"

namespace tilewright::passes {

using namespace ir;

namespace {

struct Touch {
  BufferId root, buffer;
  Access access = Access::Read;
  std::vector<Expr> min, extent;  // of the box; empty: anything
  // A Map's access, if every point has an element of its own: how the points are dealt. The variables in the index of
  // any Map's access are named by their dimension.
  const FragmentLayout* points = nullptr;
  bool of_thread = false;  // thread code: one element a thread
  Proxy proxy = Proxy::Generic;
  BufferId barrier = {};  // the mbarriers on which an asynchronous copy completes
  bool fenced = false;    // a write that asynchronous readers may see, a read that is done before they write
  // A read by a bulk store that nobody has waited for: the commits since. No barrier ends it.
  std::optional<int64_t> commits = {};
  // A read by wgmma that its own threads have not waited for: the groups committed since. No barrier ends it.
  std::optional<int64_t> groups = {};
  // A write by cp.async that its threads have not waited for. Only waiting orders it: against another in flight no
  // barrier helps, and a fence before says nothing of it.
  bool in_flight = false;
  std::set<BufferId> told = {};      // mbarriers on which roles take turns, at which this one has arrived since
  std::vector<int64_t> widths = {};  // of a Map's access: elements that its points span from `min` on; 0: not known
  std::vector<bool> steady = {};     // of a Map's access: all threads have the same of the index but for its points
  std::optional<analysis::OwnElement> own = {};      // of thread code, whatever the turn of a loop
  std::optional<analysis::OwnElement> of_role = {};  // the same among the threads that do it
  std::optional<analysis::OwnElement> of_warp = {};  // the same for warps of the role
  bool of_box = false;       // by each warp of a box of its own, which no other warp touches (warp_boxes.h)
  bool by_matrices = false;  // the threads of a warp store each other's points (matrix_stores.h)
  bool in_warp = false;      // the threads of each warp have met since
  int64_t once_by = -1;      // the one thread that does all of it, in its order
  bool alike = false;        // what all lanes of the block's warp store alike, in any order
  int apart = -1;    // of an earlier turn of a loop, which this dimension tells from this turn's if it is the same
  VarId turns = {};  // of `apart`: the loop's variable
  VarId turn_before = {};  // of a loop whose turn before this one the index is of, said by the variable of this one
  analysis::OwnElements::Range by = {};                   // the threads that do it
  std::optional<analysis::OwnElements::Range> role = {};  // of a role, as what follows the role sees it
  std::vector<bool> agreed = {};                          // dimensions along which all threads have the same index
  bool lasting = false;                 // the index is the same until a loop goes on: memory does not change it
  std::optional<AtomicOp> update = {};  // of an Accumulate that is an atomic
  bool waits = false;                   // for the mbarriers `root`: threads pass it one after the other
  // What one thread begins for all of them, and whether others answer it at an mbarrier: until all have passed a wait,
  // nothing may happen that completes one more phase of what they wait for.
  bool begins = false, answered = false;

  bool agrees(size_t d) const { return lasting && d < agreed.size() && agreed[d]; }
};
using Touches = std::vector<Touch>;

// What is open where threads leave a loop, and where they go on with its next turn, by jumps.
struct Exits {
  const Stmt* again = nullptr;  // a While, whose condition is read before the next turn
  Touches of_loop = {}, of_turn = {};
};

// After so many rounds over a loop what is found open at the end of a turn adds up, so that there is an end.
constexpr int kRounds = 3;

// Who must meet before a touch that another one clashes with.
enum class Meeting : uint8_t { None, Warp, Team };

// An index is `at`, and any number of `every` more or less, whoever asks and whenever.
struct Steps {
  int64_t every = 1, at = 0;
};
Steps steps_of(const Expr& e) {
  if (const auto c = constant_int(e)) return {0, *c};
  const auto* sum = e.as<Sum>();
  if (!sum) return {};
  Steps out{0, sum->constant};
  for (const Term& t : sum->terms) out.every = std::gcd(out.every, t.coefficient);
  return out;
}
// Boxes that begin at steps of the same length, neither as long as the way to the other's next: neighbours in vectors
// of a thread, real and imaginary parts.
bool are_beside(const Expr& a, int64_t a_extent, const Expr& b, int64_t b_extent) {
  const Steps x = steps_of(a), y = steps_of(b);
  const int64_t every = std::gcd(x.every, y.every);
  if (every < 2) return false;
  const int64_t way = ((y.at - x.at) % every + every) % every;
  return way >= a_extent && every - way >= b_extent;
}

bool are_apart(const Touch& a, const Touch& b) {
  if (a.buffer != b.buffer || a.min.empty() || b.min.empty()) return false;
  for (size_t d = 0; d < a.min.size(); ++d) {
    const auto am = constant_int(a.min[d]), ae = constant_int(a.extent[d]);
    const auto bm = constant_int(b.min[d]), be = constant_int(b.extent[d]);
    if (am && ae && bm && be && (*am + *ae <= *bm || *bm + *be <= *am)) return true;
    if (a.of_thread && b.of_thread && ae && be && are_beside(a.min[d], *ae, b.min[d], *be)) return true;
    if (ae == 1 && be == 1 && a.agrees(d) && b.agrees(d) && analysis::are_other_slots(a.min[d], b.min[d])) return true;
  }
  return false;
}

class SyncPlacer {
 public:
  SyncPlacer(const TileProgram& p, const Launch& launch, const analysis::Uniformity& u, const Placement& placement,
             const NamedBarriers& barriers)
      : p_(p),
        launch_(launch),
        u_(u),
        placement_(placement),
        named_(barriers),
        bound_(bound_vars(launch.body)),
        used_(used_vars(launch.body)),
        own_(launch),
        names_(analysis::names_in(launch.body)),
        alike_(alike_stores(p, launch, u)),
        boxes_(warp_boxes(p, launch, placement, u)) {
    walk(launch.body, [&](const Stmt& s) {
      for (const Effect& e : effects_of(s).list)
        if (e.region.valid() && e.access != Access::Order) {
          if (e.access != Access::Read) written_.insert(p_.root(e.region.buffer));
          if (proxy_of(e, s) == Proxy::Async)
            (e.access == Access::Read ? async_ : landing_).insert(p_.root(e.region.buffer));
        }
      if (const auto* n = s.as<Arrive>(); n && n->queue == Queue::CpAsync) told_by_copies_.insert(n->barrier.buffer);
      if (const auto* n = s.as<Store>(); n && n->queue == Queue::CpAsync) copied_.insert(p_.root(n->to.buffer));
    });
    async_.insert(landing_.begin(), landing_.end());
  }

  Body body(const Body& in) {
    Body out;
    behind_.emplace_back();
    for (size_t i = 0; i < in.size(); ++i) {
      behind_.back() = std::span(in).subspan(i + 1);
      if (!in[i].as<Role>() || left_) {
        statement(in[i], out);
        const Arrive* spelled = spelled_arrival(in, i, launch_);
        if (const Arrive* arrive = spelled ? spelled : in[i].as<Arrive>()) pass_turn_on(*arrive, spelled);
        continue;
      }
      const size_t end = end_of_roles(in, i);
      roles(std::span(in).subspan(i, end - i), out);
      i = end - 1;
    }
    behind_.pop_back();
    return out;
  }

 private:
  // ---- what a statement touches in memory that threads share
  bool is_shared(BufferId root) const {
    const Space space = p_.buffer(root).space;
    return space == Space::Global || space == Space::Shared ||
           (space == Space::Fragment && !placement_.layout_of(root));
  }
  // wgmma reads shared memory as TMA does, whoever waits for it.
  Proxy proxy_of(const Effect& e, const Stmt& s) const {
    const auto gemm = s.as<Gemm>() ? placement_.gemms.find(s->id) : placement_.gemms.end();
    if (s.as<Gemm>() && e.region.buffer == s.as<Gemm>()->metadata.buffer) return e.proxy;  // threads read it
    return gemm != placement_.gemms.end() && gemm->second.wgmma ? Proxy::Async : e.proxy;
  }
  static bool is_begun_here(const Stmt& s) { return s.as<Expect>() && !s.as<Expect>()->cta; }
  using Threads = analysis::OwnElements::Range;
  void collect(const Stmt& s, Touches& out) const {
    collect(s, threads_of_role().value_or(Threads{0, launch_.thread_count()}), out);
  }
  // `by`: the threads that execute it.
  void collect(const Stmt& s, Threads by, Touches& out) const {
    if (const auto* n = s.as<Map>()) return collect_map(*n, s, by, out);
    if (const auto* n = s.as<Role>()) by = {n->begin, n->end};
    const Element* to = s.as<Store>() ? &s.as<Store>()->to : s.as<Atomic>() ? &s.as<Atomic>()->to : nullptr;
    const bool once = to && is_shared(p_.root(to->buffer)) && u_.happens_once(s), alike = alike_.contains(s->id);
    if (const auto* n = s.as<Wait>()) {
      Touch& t = out.emplace_back();
      t.root = t.buffer = p_.root(n->barrier.buffer);
      t.of_thread = !u_.is_uniform_control(s), t.by = by, t.waits = true;
    }
    if (const auto* n = s.as<Copy>();
        u_.is_uniform_control(s) && (is_begun_here(s) || (n && analysis::is_by_tma(*n)))) {
      Touch& t = out.emplace_back();
      t.by = by, t.begins = true, t.answered = !n || n->completion.barrier.valid();
    }
    const Effects effects = effects_of(s);
    for (const Effect& e : effects.list) {
      if (e.access == Access::Order || !e.region.valid()) continue;
      const BufferId root = p_.root(e.region.buffer);
      if (!is_shared(root)) continue;
      // Whose threads read and write in two steps: only atomics may meet.
      const bool plain = e.access == Access::Accumulate && !e.update;
      out.push_back({root, e.region.buffer, plain ? Access::Write : e.access, e.region.min, e.region.extent, nullptr,
                     effects.scope == Scope::Thread && !u_.happens_once(s), proxy_of(e, s),
                     e.completion.barrier.buffer});
      out.back().by = by, out.back().of_box = boxes_.contains(root);
      const auto* atomic = s.as<Atomic>();  // whose old value tells what came before
      if (!atomic || !used_.contains(atomic->result)) out.back().update = e.update;
      describe_index(s, out.back());
      if (once && !alike) out.back().once_by = by.begin;
      out.back().alike = alike && e.access != Access::Read;
      const bool one = std::all_of(e.region.extent.begin(), e.region.extent.end(),
                                   [](const Expr& x) { return constant_int(x) == 1; });
      if (out.back().of_thread && one) {
        out.back().own = own_.of(e.region.min);
        if (const auto role = threads_of_role()) out.back().of_role = own_.of(e.region.min, role);
        if (role_is_of_warps()) out.back().of_warp = own_.of_warps(e.region.min, threads_of_role());
      }
      if (e.completion.queue == Queue::BulkStore && e.access == Access::Read) out.back().commits = 0;
      out.back().in_flight = e.completion.queue == Queue::CpAsync && e.access != Access::Read;
    }
    if (const auto* n = s.as<Print>(); n && n->buffer.valid() && is_shared(p_.root(n->buffer)))
      out.push_back({p_.root(n->buffer), n->buffer, Access::Read, {}, {}});
    const size_t own = out.size();
    for_each_body(s, [&](const Body& b) {
      for (const Stmt& inner : b) collect(inner, by, out);
    });
    const auto* branch = s.as<If>();
    if (!branch || !branch->else_body.empty()) return;
    if (const auto one = analysis::only_thread(branch->condition, launch_, by, &names_))
      for (size_t i = own; i < out.size(); ++i)
        if (out[i].of_thread && !out[i].waits) out[i].once_by = *one;
  }
  void describe_index(const Stmt& s, Touch& t) const {
    t.lasting = true;
    for (const Expr& e : t.min) {
      t.agreed.push_back(u_.is_uniform(e, s));
      walk(e, [&](const Expr& x) {
        if (const auto* n = x.as<Load>()) t.lasting = t.lasting && !analysis::may_overlap(n->buffer, written_, p_);
      });
    }
  }
  void collect_map(const Map& n, const Stmt& s, Threads by, Touches& out) const {
    Touches inside;
    for (const Stmt& inner : n.body) collect(inner, by, inside);
    for (Touch& t : inside) t.once_by = -1, t.alike = false;
    const FragmentLayout* points = placement_.points_of(s);
    const bool dealt = points && points->copy_count() == 1;
    const Launch of_points = points_as_threads(n, s);
    const analysis::OwnElements own(of_points);
    Substitution names;
    for (size_t d = 0; d < n.vars.size(); ++d) names[n.vars[d]] = var(point_var(d), p_.var(n.vars[d]).type);
    for (Touch& t : inside) {
      t.of_thread = false, t.own.reset(), t.of_role.reset(), t.of_warp.reset();
      for (const Expr& e : t.min) t.widths.push_back(width(e, n)), t.steady.push_back(agree_but_for_points(e, n, s));
      t.points = dealt && own.of(t.min) ? points : nullptr;
      t.by_matrices = t.access != Access::Read && placement_.matrix_stores.contains(s->id);
      for (Expr& e : t.min) e = substitute(e, names);
      out.push_back(std::move(t));
    }
  }

  // The variable of a dimension of any Map, so that indices of two can be compared: none of the program's, whose table
  // ends before them.
  VarId point_var(size_t dimension) const { return VarId{static_cast<uint32_t>(p_.vars.size() + dimension)}; }
  bool is_point_var(VarId v) const { return v.index >= p_.vars.size(); }

  // The Map as a launch of which each point is a thread.
  static Launch points_as_threads(const Map& n, const Stmt& s) {
    Launch out;
    out.thread = n.vars, out.body = {s};
    for (const Expr& e : n.extents) out.threads.push_back(constant_int(e).value_or(INT32_MAX));
    return out;
  }

  // How many elements the index runs over with the variables of the Map, each counted once; 0: not known.
  static int64_t width(const Expr& e, const Map& n) {
    int64_t out = 1;
    const auto* s = e.as<ir::Sum>();
    for (const Term& t : s ? s->terms : std::vector<Term>{{1, e}}) {
      const Var* v = analysis::variable_of(t.value);
      for (size_t d = 0; d < n.vars.size(); ++d) {
        if (!used_vars(t.value).contains(n.vars[d])) continue;
        const auto extent = constant_int(n.extents[d]);
        if (!v || !extent || *extent <= 0 || t.coefficient <= 0) return 0;
        out += t.coefficient * (*extent - 1);
      }
    }
    return out;
  }
  bool agree_but_for_points(const Expr& e, const Map& n, const Stmt& at) const {
    const auto* s = e.as<ir::Sum>();
    const std::vector<Term> terms = s ? s->terms : std::vector<Term>{{1, e}};
    return std::ranges::all_of(terms, [&](const Term& t) {
      const std::set<VarId> used = used_vars(t.value);
      const bool of_points = std::ranges::any_of(n.vars, [&](VarId v) { return used.contains(v); });
      return of_points || u_.is_uniform(t.value, at);
    });
  }
  // Whether turns of the loop touch other elements along the dimension: the index goes on by at least what the points
  // of a turn span, and nothing else of it changes or differs between threads.
  bool goes_on(const Touch& t, size_t d, const For& n, const std::set<VarId>& changing) const {
    if (t.apart >= 0 || d >= t.widths.size() || t.widths[d] <= 0) return false;
    const auto* s = t.min[d].as<ir::Sum>();
    int64_t step = 0;
    for (const Term& term : s ? s->terms : std::vector<Term>{{1, t.min[d]}}) {
      const Var* v = analysis::variable_of(term.value);
      if (v && v->id == n.var) {
        step += term.coefficient;
        continue;
      }
      bool loads = false;
      walk(term.value, [&](const Expr& x) { loads = loads || x.as<Load>(); });
      for (VarId id : used_vars(term.value))
        loads = loads || changing.contains(id) || (bound_.contains(id) && !t.steady[d]) ||
                std::find(launch_.thread.begin(), launch_.thread.end(), id) != launch_.thread.end();
      if (loads) return false;
    }
    return std::abs(step) >= t.widths[d];
  }
  // Where the index varies, all of the dimension.
  void widen(Touch& t) const {
    const std::vector<Expr>& shape = p_.buffer(t.buffer).shape;
    for (size_t d = 0; d < t.min.size(); ++d) {
      bool varies = false;
      for (VarId v : used_vars(t.min[d])) varies = varies || is_point_var(v) || bound_.contains(v);
      walk(t.min[d], [&](const Expr& x) { varies = varies || x.as<Load>(); });
      if (varies) t.min[d] = constant(i32, int64_t{0}), t.extent[d] = shape[d];
    }
  }
  bool stays_with_thread(const Touch& a, const Touch& b) const {
    if (a.buffer != b.buffer) return false;
    if ((a.own && a.own == b.own) || (a.of_role && a.of_role == b.of_role && a.by == b.by)) return true;
    if (a.min.empty() || !a.lasting || !equal(a.min, b.min)) return false;
    if (a.points && b.points) return a.by == b.by && *a.points == *b.points;
    return a.of_thread && b.of_thread && analysis::is_own_element(a.min, launch_, bound_);
  }
  // What threads do by themselves to elements that only threads of one warp share.
  static bool stays_with_warp(const Touch& a, const Touch& b) {
    const auto plain = [](const Touch& t) {
      return t.proxy == Proxy::Generic && !t.in_flight && !t.commits && !t.barrier.valid();
    };
    return a.buffer == b.buffer && a.of_warp && a.of_warp == b.of_warp && plain(a) && plain(b);
  }
  // The tiles of different blocks of the cluster.
  static bool are_of_two_blocks(const Buffer& a, const Buffer& b) {
    const auto x = a.cta ? constant_int(a.cta) : std::nullopt, y = b.cta ? constant_int(b.cta) : std::nullopt;
    return x && y && *x != *y;
  }
  static bool are_of_warp(const Threads& t) { return t.end - t.begin <= kWarpThreads; }
  // `b` is open.
  Meeting clash(const Touch& a, const Touch& b) const {
    if (a.begins && b.waits) {
      const bool together = (a.role && a.role == b.role) || (a.by == b.by && are_of_warp(a.by));
      return together || !(a.answered || b.of_thread) ? Meeting::None : Meeting::Team;
    }
    if (a.begins || !analysis::may_overlap(a.root, b.root, p_)) return Meeting::None;
    if (are_of_two_blocks(p_.buffer(a.buffer), p_.buffer(b.buffer))) return Meeting::None;
    if (a.role && a.role == b.role) return Meeting::None;  // ordered within the role, by its own barrier
    if (b.apart >= 0 && a.apart < 0 && a.buffer == b.buffer && a.min.size() == b.min.size() && a.widths == b.widths &&
        equal(a.min[static_cast<size_t>(b.apart)], b.min[static_cast<size_t>(b.apart)]))
      return Meeting::None;
    if (a.access == Access::Read && b.access == Access::Read) return Meeting::None;
    if (commute(a.update, b.update) && p_.buffer(a.buffer).type == p_.buffer(b.buffer).type) return Meeting::None;
    if (a.barrier.valid() && b.barrier.valid()) return Meeting::None;  // mbarriers order these
    const bool in_flight = a.in_flight || b.in_flight;
    if (!in_flight && ((a.once_by >= 0 && a.once_by == b.once_by) || (a.alike && b.alike))) return Meeting::None;
    if (a.in_flight && b.in_flight) return Meeting::None;
    if (a.of_box && b.of_box && a.buffer == b.buffer && !b.commits) return b.in_warp ? Meeting::None : Meeting::Warp;
    if (stays_with_warp(a, b)) return b.in_warp || stays_with_thread(a, b) ? Meeting::None : Meeting::Warp;
    if (a.apart >= 0 || b.apart >= 0) return Meeting::Team;
    if (!stays_with_thread(a, b)) return are_apart(a, b) ? Meeting::None : Meeting::Team;
    return (a.by_matrices || b.by_matrices) && !b.in_warp ? Meeting::Warp : Meeting::None;
  }
  Meeting meeting_before(const Touches& mine) const {
    Meeting out = Meeting::None;
    for (const Touch& a : mine)
      for (const Touch& b : open_) out = std::max(out, clash(a, b));
    return out;
  }
  // Whether what clashes with `t` clashes with `o`, and what ends `o` ends `t`: fewer commits are waited for later.
  static bool covers(const Touch& o, const Touch& t) {
    return o.root == t.root && o.buffer == t.buffer && o.access == t.access && o.points == t.points &&
           o.of_thread == t.of_thread && o.proxy == t.proxy && o.barrier == t.barrier && o.fenced == t.fenced &&
           o.commits.has_value() == t.commits.has_value() && o.commits <= t.commits && o.in_flight == t.in_flight &&
           o.groups.has_value() == t.groups.has_value() && o.groups <= t.groups && o.told == t.told &&
           o.apart == t.apart && o.turns == t.turns && o.turn_before == t.turn_before && o.widths == t.widths &&
           o.steady == t.steady && o.own == t.own && o.of_role == t.of_role && o.of_warp == t.of_warp &&
           o.of_box == t.of_box && o.by_matrices == t.by_matrices && o.in_warp == t.in_warp && o.once_by == t.once_by &&
           o.alike == t.alike && o.by == t.by && o.role == t.role && o.agreed == t.agreed && o.lasting == t.lasting &&
           o.waits == t.waits && o.update == t.update && o.min.size() == t.min.size() && equal(o.min, t.min) &&
           equal(o.extent, t.extent);
  }
  static bool covers(const Touches& all, const Touch& t) {
    return std::any_of(all.begin(), all.end(), [&](const Touch& o) { return covers(o, t); });
  }
  static void add(const Touches& more, Touches& to) {
    for (const Touch& t : more)
      if (!t.begins && !covers(to, t)) to.push_back(t);
  }
  void touch(const Touches& mine) { add(mine, open_); }

  // ---- barriers
  Stmt barrier(LocationId at) const {
    if (!role_) return make_stmt(Sync{}, at);
    const int64_t count = role_->end - role_->begin;
    if (count == kWarpThreads) return make_stmt(Sync{SyncScope::Warp, {}, 0, false}, at);
    const auto number = named_.between(role_->begin, role_->end);
    if (!number) no_named_barrier(p_, at, role_->begin, role_->end);
    return make_stmt(Sync{SyncScope::Named, constant(*number), count, false}, at);
  }
  bool orders_all(const Sync& n) const {
    if (n.scope == SyncScope::Warp) return role_ && role_->end - role_->begin == kWarpThreads;
    if (n.scope == SyncScope::Named)
      return !n.arrive_only && role_ && (n.count == role_->end - role_->begin || n.count == launch_.thread_count());
    return !n.arrive_only && !n.wait_only;
  }
  std::optional<analysis::OwnElements::Range> threads_of_role() const {
    return role_ ? std::optional(analysis::OwnElements::Range{role_->begin, role_->end}) : std::nullopt;
  }
  bool role_is_of_warps() const {
    const int64_t begin = role_ ? role_->begin : 0, end = role_ ? role_->end : launch_.thread_count();
    return begin % kWarpThreads == 0 && end % kWarpThreads == 0;
  }
  void order(const Touches& mine, LocationId at, Body& out) {
    const Meeting meeting = meeting_before(mine);
    if (meeting == Meeting::None) return;
    if (meeting == Meeting::Warp) {
      if (std::ranges::any_of(mine, [](const Touch& t) { return t.of_box && t.proxy == Proxy::Async; })) fence(at, out);
      out.push_back(make_stmt(Sync{SyncScope::Warp, {}, 0, false}, at));
      for (Touch& t : open_) t.in_warp = true;
      return;
    }
    fence(at, out);
    out.push_back(barrier(at));
    ordered();
  }
  void ordered() {
    std::erase_if(open_, [](const Touch& t) { return !t.commits && !t.groups && !t.in_flight; });
  }
  // Whether asynchronous copies could come before it: behind a write they read or write, behind a read they write. A
  // barrier and an arrival order a read, but it may still wait in a queue that asynchronous writes do not go through.
  bool wants_fence(const Touch& t) const {
    return t.proxy == Proxy::Generic && !t.fenced &&
           analysis::may_overlap(t.root, t.access == Access::Read ? landing_ : async_, p_) &&
           (t.access != Access::Read || p_.buffer(t.root).space == Space::Shared);
  }
  // Before others are told. A load from shared memory is no more than begun when its warp comes to an arrival, which
  // overtakes it: on an H200 tiles were overwritten under the last loads from them.
  void fence(LocationId at, Body& out) {
    bool wanted = false, all = false;
    for (Touch& t : open_) {
      if (t.in_flight || !wants_fence(t)) continue;
      wanted = t.fenced = true;
      all = all || p_.buffer(t.root).space == Space::Global;
    }
    if (wanted) out.push_back(make_stmt(Fence{all ? FenceProxy::AsyncAll : FenceProxy::Async, {}}, at));
  }

  // One that stands there already, of all threads.
  void fenced_by(const Fence& n, const Stmt& s) {
    if (n.proxy != FenceProxy::Async || role_ || !u_.is_uniform_control(s)) return;
    for (Touch& t : open_)
      t.fenced = t.fenced || (!t.in_flight && wants_fence(t) && p_.buffer(t.root).space == Space::Shared);
  }

  // ---- statements
  void statement(const Stmt& s, Body& out) {
    if (left_) return out.push_back(s);  // nobody comes here
    if (s.as<Break>() || s.as<Continue>() || s.as<Return>()) {
      if (s.as<Continue>() && !exits_.empty() && exits_.back().again) condition(*exits_.back().again, out);
      jump(s);
      left_ = true;
      return out.push_back(s);
    }
    if (const auto* n = s.as<Sync>()) {
      fence(s->location, out);
      if (orders_all(*n)) ordered();
      return out.push_back(s);
    }
    if (const auto* n = s.as<Arrive>()) {
      fence(s->location, out);
      if (n->queue == Queue::CpAsync) before_copies_tell(s->location, out);
      if (n->by == ArriveBy::Warp && role_ && are_of_warp({role_->begin, role_->end})) ordered();
    }
    if (const auto* n = s.as<Expect>(); n && n->cta) fence(s->location, out);
    if (const auto* n = s.as<Fence>()) fenced_by(*n, s);
    if (const auto* n = s.as<Commit>(); n && n->queue == Queue::BulkStore)
      for (Touch& t : open_)
        if (t.commits) ++*t.commits;
    if (const auto* n = s.as<Drain>(); n && n->queue == Queue::BulkStore)
      for (Touch& t : open_)
        if (t.commits && *t.commits > n->pending) t.commits.reset(), t.in_warp = false;
    if (const auto* n = s.as<Commit>(); n && n->queue == Queue::Wgmma)
      for (Touch& t : open_)
        if (t.groups) ++*t.groups;
    if (const auto* n = s.as<Drain>(); n && n->queue == Queue::Wgmma)
      for (Touch& t : open_)
        if (t.groups && *t.groups > n->pending) t.groups.reset();
    if (const auto* n = s.as<Drain>(); n && n->queue == Queue::CpAsync)
      for (Touch& t : open_) t.in_flight = false;
    if (const auto* n = s.as<Wait>())
      std::erase_if(open_, [&](const Touch& t) {
        return (t.barrier.valid() && t.barrier == n->barrier.buffer) || t.told.contains(n->barrier.buffer);
      });
    before_parting(s, out);
    if (const auto* n = s.as<For>(); n && u_.is_uniform_control(s) && agree(n->begin, s) && agree(n->extent, s))
      return loop(*n, s, out);
    if (const auto* n = s.as<While>(); n && u_.is_uniform_control(s) && agree(n->condition, s)) return loop(*n, s, out);
    if (const auto* n = s.as<If>(); n && u_.is_uniform_control(s) && agree(n->condition, s)) return branch(*n, s, out);
    Touches mine;
    collect(s, mine);
    if (all_arrive_behind(s)) std::erase_if(mine, [](const Touch& t) { return t.begins; });
    if (u_.is_uniform_control(s)) order(mine, s->location, out);  // else it is no place for a barrier
    out.push_back(s);
    if (const auto* n = s.as<Gemm>(); n && n->completion.queue == Queue::Wgmma)
      for (Touch& t : mine)
        if (t.proxy == Proxy::Async && t.access == Access::Read) t.groups = 0;
    touch(mine);
    jumps_within(s);
    // Copies by cp.async are no asynchronous proxy's (PTX ISA, "async proxy"): who learns of them fences what they
    // wrote.
    if (const auto* n = s.as<Wait>(); n && told_by_copies_.contains(n->barrier.buffer) && copies_are_read_async())
      out.push_back(make_stmt(Fence{FenceProxy::Async, {}}, s->location));
  }
  // Whether every thread has to arrive, behind this statement, at the mbarrier that hears of what it begins: the phase
  // ends for nobody before all have passed what they waited for.
  bool all_arrive_behind(const Stmt& s) const {
    const auto* copy = s.as<Copy>();
    const Element* told = is_begun_here(s) ? &s.as<Expect>()->barrier : copy ? &copy->completion.barrier : nullptr;
    if (!told || !told->valid()) return false;
    const Threads all = threads_of_role().value_or(Threads{0, launch_.thread_count()});
    const std::vector<int64_t>& counts = p_.buffer(p_.root(told->buffer)).arrive_counts;
    if (std::ranges::any_of(counts, [&](int64_t n) { return n < all.end - all.begin; })) return false;
    for (const Stmt& x : behind_.back()) {
      if (may_jump({x})) return false;
      const auto* n = x.as<Arrive>();
      if (n && n->by == ArriveBy::Thread && !n->cta && u_.is_uniform_control(x) && n->barrier.buffer == told->buffer &&
          equal(n->barrier.indices, told->indices))
        return std::ranges::none_of(told->indices, [](const Expr& e) {
          return any_in(e, [](const Expr& i) { return i.as<Load>() != nullptr; });
        });
    }
    return false;
  }
  // What is open when all warps arrive for a turn, who waits for his next one knows.
  void pass_turn_on(const Arrive& n, bool spelled) {
    const BarrierUse use = p_.buffer(n.barrier.buffer).use;
    if ((use != BarrierUse::Turn && use != BarrierUse::Ready) || n.cta || !(spelled || n.by == ArriveBy::Warp)) return;
    for (Touch& t : open_)
      if (!t.in_flight && !t.commits && !t.groups && !wants_fence(t)) t.told.insert(n.barrier.buffer);
  }
  // Where some threads jump and others do not, no barrier can stand from there on to where they meet again: what is
  // done up to there comes behind one before them.
  void before_parting(const Stmt& s, Body& out) {
    if (!u_.is_uniform_control(s)) return;
    bool parts = false, jumps = false;
    for_each_body(s, [&](const Body& b) { parts = parts || (!b.empty() && !u_.is_uniform_control(b[0])); });
    if (parts) walk({s}, [&](const Stmt& x) { jumps = jumps || x.as<Break>() || x.as<Continue>() || x.as<Return>(); });
    if (!jumps) return;
    Touches alone;
    collect(s, alone);
    for (const std::span<const Stmt> rest : behind_)
      for (const Stmt& x : rest)
        if (!u_.is_uniform_control(x)) collect(x, alone);
    order(alone, s->location, out);
  }
  bool copies_are_read_async() const {
    return std::any_of(copied_.begin(), copied_.end(), [&](BufferId id) { return async_.contains(id); });
  }
  // Such an arrival speaks of copies alone.
  void before_copies_tell(LocationId at, Body& out) const {
    const bool others = std::any_of(open_.begin(), open_.end(), [](const Touch& t) {
      return !t.in_flight && t.access != Access::Read && t.proxy == Proxy::Generic;
    });
    if (others) out.push_back(make_stmt(Fence{FenceProxy::Block, {}}, at));
  }
  bool agree(const Expr& e, const Stmt& s) const { return u_.is_uniform(e, s); }
  void condition(const Stmt& s, Body& out) {  // of If, While: what its own expressions load
    Touches mine;
    for (const Effect& e : effects_of(s).list)
      if (const BufferId root = p_.root(e.region.buffer); is_shared(root)) {
        mine.push_back({root, e.region.buffer, e.access, e.region.min, e.region.extent, nullptr, false});
        describe_index(s, mine.back());
      }
    order(mine, s->location, out);
    touch(mine);
  }
  // What is open goes with those that leave a loop or a turn of it.
  void jump(const Stmt& s) {
    if (exits_.empty()) return;
    if (s.as<Break>()) add(open_, exits_.back().of_loop);
    if (s.as<Continue>()) add(open_, exits_.back().of_turn);
  }
  // Of a statement that only some of the threads may execute, in a loop of all.
  void jumps_within(const Stmt& s) {
    jump(s);
    if (s.as<For>() || s.as<While>() || s.as<Map>()) return;  // its own
    for_each_body(s, [&](const Body& b) {
      for (const Stmt& inner : b) jumps_within(inner);
    });
  }
  template <class Loop>
  void loop(const Loop& n, const Stmt& s, Body& out) {
    condition(s, out);
    Touches before = open_;
    Loop copy = n;
    copy.body = turns(n, s);
    // What stands open before the loop is cheaper to order once than in every turn.
    if (const int64_t each = barriers(copy.body); each > 0 && !before.empty()) {
      const Touches after = open_;
      open_ = before, ordered();
      Body none;
      condition(s, none);  // it is read behind that barrier
      Touches behind = open_;
      Body first_ordered = turns(n, s);
      if (barriers(first_ordered) < each) {
        const Touches after_ordered = std::exchange(open_, before);
        fence(s->location, out);
        out.push_back(barrier(s->location));
        open_ = after_ordered, copy.body = std::move(first_ordered), before = std::move(behind);
      } else {
        open_ = after;
      }
    }
    fence_before(n, s, before, copy.body, out);
    out.push_back(make_stmt(std::move(copy), s->location));
  }
  // What stands open before the loop is cheaper to fence once than in every turn.
  template <class Loop>
  void fence_before(const Loop& n, const Stmt& s, const Touches& before, Body& body, Body& out) {
    const int64_t each = fences(body);
    if (each == 0) return;
    const Touches after = std::exchange(open_, before);
    Body first;
    fence(s->location, first);
    Body fenced = first.empty() ? body : turns(n, s);
    if (fences(fenced) >= each) return void(open_ = after);
    body = std::move(fenced);
    out.insert(out.end(), first.begin(), first.end());
  }
  // The body for every turn of a loop, and what is open after it: what is open at the start of a turn is so before the
  // loop, or at the end of the turn before. A barrier that this asks for may take the place of another, behind which
  // more is open then: until no end of a turn leaves what its start does not know of.
  template <class Loop>
  Body turns(const Loop& n, const Stmt& s) {
    const Touches before = open_;
    Touches start = before;
    for (int round = 0;; ++round) {
      open_ = start;
      exits_.push_back({std::is_same_v<Loop, While> ? &s : nullptr});
      Body out = body(n.body);
      if (std::exchange(left_, false))
        open_.clear();
      else if (exits_.back().again)
        condition(s, out);
      add(exits_.back().of_turn, open_);
      const Touches end = open_, left = std::move(exits_.back().of_loop);
      exits_.pop_back();
      age(n);
      const bool known = std::all_of(open_.begin(), open_.end(), [&](const Touch& t) { return covers(start, t); });
      if (known) {
        open_ = before;
        add(end, open_), add(left, open_);
        return out;
      }
      if (round < kRounds) start = before;
      add(open_, start);
    }
  }
  static int64_t barriers(const Body& b) {
    int64_t count = 0;
    walk(b, [&](const Stmt& s) { count += s.as<Sync>() && s.as<Sync>()->scope != SyncScope::Warp ? 1 : 0; });
    return count;
  }
  // One that waits for the whole device counts for many.
  static int64_t fences(const Body& b) {
    int64_t count = 0;
    walk(b, [&](const Stmt& s) {
      const auto* n = s.as<Fence>();
      if (n && n->proxy == FenceProxy::AsyncAll) count += 64;
      if (n && n->proxy == FenceProxy::Async) count += 1;
    });
    return count;
  }
  // Indices of the iteration before say nothing about those of this one.
  template <class Loop>
  void age(const Loop& n) {
    std::set<VarId> changing = bound_vars(n.body);
    if constexpr (std::is_same_v<Loop, For>) {
      changing.insert(n.var);
      if (n.kind == LoopKind::Grid)  // what blocks do to global memory nothing orders
        std::erase_if(open_, [&](const Touch& t) { return p_.buffer(t.root).space == Space::Global; });
    }
    for (Touch& t : open_) {
      bool changes = false;
      for (const Expr& e : t.min) {
        for (VarId v : used_vars(e)) changes = changes || changing.contains(v);
        walk(e, [&](const Expr& x) { changes = changes || x.as<Load>(); });
      }
      if (!changes) continue;
      int apart = -1;
      if constexpr (std::is_same_v<Loop, For>) {
        if (t.apart >= 0 && t.turns == n.var) continue;  // of all turns before
        for (size_t d = 0; d < t.min.size(); ++d)
          if (goes_on(t, d, n, changing)) apart = static_cast<int>(d);
        t.turns = apart >= 0 ? n.var : VarId{};
      }
      t.apart = apart;
      if (apart >= 0) continue;
      if constexpr (std::is_same_v<Loop, For>)
        if (to_turn_before(t, n, changing)) continue;
      if (t.widths.empty() || t.points)
        t.min.clear(), t.extent.clear();
      else
        widen(t);
      t.widths.clear(), t.steady.clear(), t.turns = {};
    }
  }
  // What a turn touched, as the next one says it: where nothing but the loop's variable changes in the index, and once.
  static bool to_turn_before(Touch& t, const For& n, const std::set<VarId>& changing) {
    if (std::exchange(t.turn_before, VarId{}).valid() || t.min.empty()) return false;
    for (const Expr& e : t.min) {
      for (VarId v : used_vars(e))
        if (v != n.var && changing.contains(v)) return false;
      if (any_in(e, [](const Expr& x) { return x.as<Load>() != nullptr; })) return false;
    }
    for (Expr& e : t.min) {
      if (!used_vars(e).contains(n.var)) continue;
      const Expr turn = var(n.var, n.begin->type);
      e = substitute(e, {{n.var, sub(turn, constant(turn->type, int64_t{1}))}});
    }
    t.turn_before = n.var;
    return true;
  }
  void branch(const If& n, const Stmt& s, Body& out) {
    condition(s, out);
    const Touches before = open_;
    If copy = n;
    copy.then_body = body(n.then_body);
    const bool then_left = std::exchange(left_, false);
    const Touches after_then = std::exchange(open_, before);
    copy.else_body = body(n.else_body);
    if (left_) open_.clear();
    if (!then_left) add(after_then, open_);
    left_ = left_ && then_left;
    out.push_back(make_stmt(std::move(copy), s->location));
  }
  void roles(std::span<const Stmt> group, Body& out) {
    Touches all;
    for (const Stmt& s : group) {
      const size_t first = all.size();
      collect(s, all);
      for (size_t i = first; i < all.size(); ++i) all[i].role = Threads{s.as<Role>()->begin, s.as<Role>()->end};
    }
    order(all, group[0]->location, out);
    const Touches before = open_;
    for (const Stmt& s : group) {
      const Role* outer = std::exchange(role_, s.as<Role>());
      open_ = before;
      Role copy = *role_;
      copy.body = body(role_->body);
      left_ = false;
      out.push_back(make_stmt(std::move(copy), s->location));
      role_ = outer;
    }
    open_ = before;
    touch(all);
  }

  const TileProgram& p_;
  const Launch& launch_;
  const analysis::Uniformity& u_;
  const Placement& placement_;
  const NamedBarriers& named_;
  const std::set<VarId> bound_, used_;
  const analysis::OwnElements own_;
  const Substitution names_;
  const std::set<StmtId> alike_;
  const std::map<BufferId, WarpBox> boxes_;
  std::set<BufferId> async_, landing_;  // what asynchronous operations touch, and what of it they write
  std::set<BufferId> written_;          // by the launch
  std::set<BufferId> copied_;           // what threads store by the queue cp_async
  std::set<BufferId> told_by_copies_;   // mbarriers at which such stores arrive
  Touches open_;                        // since the last barrier
  bool left_ = false;                   // a jump stands before this: the statements up to the end of the body are dead
  std::vector<std::span<const Stmt>> behind_;  // what follows, in each of the bodies around
  std::vector<Exits> exits_;                   // of the loops around
  const Role* role_ = nullptr;
};

}  // namespace

Body place_sync(const TileProgram& program, const Launch& launch, const analysis::Uniformity& uniformity,
                const Placement& placement, const NamedBarriers& barriers) {
  return SyncPlacer(program, launch, uniformity, placement, barriers).body(launch.body);
}

}  // namespace tilewright::passes
