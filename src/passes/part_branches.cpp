#include "passes/part_branches.h"

#include "analysis/uniformity.h"
#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/hazards.h"
#include "passes/thread_range.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// What lanes do together, whichever of them come to it.
bool is_of_a_warp(const Stmt& s) {
  const auto* vote = s.as<Vote>();
  const auto* sync = s.as<Sync>();
  return s.as<Shuffle>() || s.as<Mma>() || s.as<LoadMatrix>() || s.as<StoreMatrix>() ||
         (vote && vote->kind < VoteKind::BlockAny) || (sync && sync->scope == SyncScope::Warp);
}

// What a thread says of its own copies.
bool is_of_copies(const Stmt& s) {
  const auto* commit = s.as<Commit>();
  const auto* drain = s.as<Drain>();
  return (commit && commit->queue == Queue::CpAsync) || (drain && drain->queue == Queue::CpAsync);
}

// Whether a body holds code of threads alone, with no jump that leaves it.
bool is_plain(const Body& body, bool in_loop = false) {
  return std::ranges::all_of(body, [&](const Stmt& s) {
    if (const auto* n = s.as<If>()) return is_plain(n->then_body, in_loop) && is_plain(n->else_body, in_loop);
    if (const auto* n = s.as<For>()) return is_plain(n->body, true);
    if (const auto* n = s.as<While>()) return is_plain(n->body, true);
    if (s.as<Break>() || s.as<Continue>()) return in_loop;
    return s.as<Store>() || s.as<Let>() || s.as<Atomic>() || s.as<Print>() || s.as<Assert>() || s.as<Assume>() ||
           s.as<Call>() || is_of_copies(s) || is_of_a_warp(s);
  });
}

// The variable that a statement gives a value to.
VarId given_by(const Stmt& s) {
  if (const auto* n = s.as<Let>()) return n->var;
  if (const auto* n = s.as<Atomic>()) return n->result;
  if (const auto* n = s.as<Shuffle>()) return n->result;
  if (const auto* n = s.as<Vote>()) return n->result;
  if (const auto* n = s.as<Call>()) return n->result;
  return {};
}

class PartBranches {
 public:
  PartBranches(TileProgram& program, const Launch& launch)
      : program_(program), launch_(launch), threads_(program, launch) {}

  std::optional<Body> operator()(const Stmt& s) {
    const auto* n = s.as<If>();
    if (!n || threads_.in_map(s) || !threads_.is_uniform_control(s) || threads_.is_uniform(n->condition, s)) return {};
    if (!is_plain({s}) || is_of_whole_warps(n->condition)) return {};
    branch_ = s, inside_ = bound_vars({s});
    if (std::ranges::any_of(inside_, [&](VarId v) { return program_.var(v).type.is_pointer(); })) return {};
    const Expr other = logical_not(n->condition);
    if (!shares(n->then_body, n->condition) && !shares(n->else_body, other)) return {};
    Body out;
    const VarId taken = program_.new_var("taken", boolean);
    out.push_back(make_stmt(Let{taken, n->condition}, s->location));
    part(n->then_body, {var(taken, boolean), n->condition}, out);
    part(n->else_body, {logical_not(var(taken, boolean)), other}, out);
    return out;
  }

 private:
  // Which threads go in: by a name, and as the program says it.
  struct Taken {
    Expr name, condition;
  };
  bool is_of_whole_warps(const Expr& condition) const {
    constexpr int64_t kWarp = 32;
    const int64_t count = launch_.thread_count();
    if (launch_.threads[0] != count) return false;
    const auto range = threads_where(condition, launch_.thread[0], {0, count});
    const auto whole = [&](int64_t t) { return t % kWarp == 0 || t == count; };
    return range && whole(range->begin) && whole(range->end);
  }
  // What one thread alone does under the condition is known as that.
  static Stmt under(const Expr& condition, Body body, LocationId at) {
    return make_stmt(If{condition, std::move(body), {}}, at);
  }
  // A loop that can stand around the branch: all threads know its turns.
  bool is_known(const For& n) const {
    bool known = true;
    for (const Expr& e : {n.begin, n.extent}) {
      known = known && threads_.is_uniform(e, branch_);
      walk(e, [&](const Expr& x) {
        const auto* v = x.as<Var>();
        known = known && !x.as<Load>() && !(v && inside_.contains(v->id));
      });
    }
    bool jumps = false;
    walk(n.body, [&](const Stmt& s) { jumps = jumps || s.as<Break>() || s.as<Continue>(); });
    return known && !jumps && n.kind != LoopKind::Pipelined;
  }
  // Whether threads must meet within the statement, and can.
  bool parts(const Stmt& s, const Expr& condition) const {
    if (const auto* n = s.as<If>())
      return shares(n->then_body, logical_and(condition, n->condition)) ||
             shares(n->else_body, logical_and(condition, logical_not(n->condition)));
    const auto* n = s.as<For>();
    if (!n || !is_known(*n)) return false;
    For guarded = *n;
    guarded.body = {under(condition, n->body, s->location)};
    return Hazards(program_, launch_).inside(make_stmt(std::move(guarded), s->location));
  }
  bool shares(const Body& body, const Expr& condition) const {
    Hazards before(program_, launch_);
    return std::ranges::any_of(body, [&](const Stmt& s) {
      const Stmt guarded = under(condition, {s}, s->location);
      if (parts(s, condition) || before.conflicts(guarded)) return true;
      before.add(guarded);
      return false;
    });
  }

  // Statements between which threads need not meet, or one within which they do.
  struct Piece {
    Body body;
    bool parted = false;
  };
  std::vector<Piece> pieces(const Body& body, const Expr& condition) const {
    std::vector<Piece> out;
    Hazards run(program_, launch_);
    bool fresh = true;
    for (const Stmt& s : body) {
      const Stmt guarded = under(condition, {s}, s->location);
      const bool parted = parts(s, condition);
      if (fresh || parted || run.conflicts(guarded)) out.emplace_back(), run.clear();
      out.back().body.push_back(s), out.back().parted = parted;
      run.add(guarded);
      fresh = parted;
    }
    return out;
  }
  // What a piece gives to later ones stands in variables of the thread: its names end with its branch.
  void keep(std::vector<Piece>& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      Body kept;
      for (const Stmt& s : list[i].body) {
        kept.push_back(s);
        const VarId v = given_by(s);
        const auto is_used = [&](const Piece& p) { return used_vars(p.body).contains(v); };
        if (!v.valid() || std::none_of(list.begin() + static_cast<ptrdiff_t>(i) + 1, list.end(), is_used)) continue;
        const DType type = program_.var(v).type;
        const BufferId held = variable(program_.var(v).name, type);
        kept.push_back(make_stmt(Store{{held, {}}, var(v, type)}, s->location));
        for (size_t j = i + 1; j < list.size(); ++j)
          list[j].body = substitute(list[j].body, {{v, load(held, {}, type)}});
      }
      list[i].body = std::move(kept);
    }
  }
  BufferId variable(std::string name, DType type) {
    Buffer b;
    b.name = std::move(name), b.type = type, b.space = Space::Local, b.location = branch_->location;
    b.launch = static_cast<int32_t>(&launch_ - program_.launches.data());
    return program_.new_buffer(std::move(b));
  }

  void part(const Body& body, const Taken& taken, Body& out) {
    std::vector<Piece> list = pieces(body, taken.condition);
    keep(list);
    for (Piece& p : list) {
      const Stmt first = p.body[0];
      if (!p.parted) {
        out.push_back(under(taken.name, std::move(p.body), first->location));
        continue;
      }
      if (const auto* n = first.as<For>()) {
        For turns = *n;
        if (turns.kind == LoopKind::Vectorized) turns.kind = LoopKind::Serial;
        turns.body.clear();
        part(n->body, taken, turns.body);
        out.push_back(make_stmt(std::move(turns), first->location));
      } else {
        nested(*first.as<If>(), taken, first->location, out);
      }
    }
  }
  // The inner condition is asked where the outer one holds alone.
  void nested(const If& n, const Taken& outer, LocationId at, Body& out) {
    const BufferId inner = variable("taken", boolean);
    out.push_back(make_stmt(Store{{inner, {}}, ir::constant(boolean, int64_t{0})}, at));
    out.push_back(under(outer.name, {make_stmt(Store{{inner, {}}, n.condition}, at)}, at));
    const Expr is_taken = load(inner, {}, boolean);
    part(n.then_body, {is_taken, logical_and(outer.condition, n.condition)}, out);
    part(n.else_body,
         {logical_and(outer.name, logical_not(is_taken)), logical_and(outer.condition, logical_not(n.condition))}, out);
  }

  TileProgram& program_;
  const Launch& launch_;
  const analysis::Uniformity threads_;
  Stmt branch_;  // that is parted
  std::set<VarId> inside_;
};

}  // namespace

void part_branches(TileProgram& program, Launch& launch) {
  PartBranches parted(program, launch);
  launch.body = rewrite(launch.body, [&](const Stmt& s) { return parted(s); });
}

}  // namespace tilewright::passes
