#include "passes/tile/products_early.h"

#include "analysis/accessed.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/jumps.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/schedule/settle_plan.h"
#include "passes/tile/accumulator_room.h"

namespace tilewright::passes {

using namespace ir;
using analysis::accessed_by;
using analysis::meet;
using analysis::writes_whole;
using analysis::written_by;

namespace {

constexpr int64_t kFewStages = 2;  // with one, a tile that is asked for earlier is waited for

// The statements of one turn of a loop.
class Turn {
 public:
  // room: bits of registers that fragments have.
  Turn(const ProgramTables& p, Body body, int64_t room) : p_(p), room_(room), body_(std::move(body)) {}

  Body run() {
    for (size_t i = body_.size(); i-- > 0;)
      if (body_[i].as<Gemm>() && live(body_) > room_) late(i);
    for (size_t i = 0; i < body_.size(); ++i)
      if (body_[i].as<Gemm>()) forward(i);
    for (size_t i = body_.size(); i-- > 0;)
      if (body_[i].as<Gemm>()) backward(i);
    return std::move(body_);
  }

 private:
  // Elementwise code, which has nothing to do with threads or other blocks.
  static bool is_plain(const Stmt& s) {
    if (const auto* copy = s.as<Copy>()) return copy->completion.immediate();
    if (const auto* branch = s.as<If>())
      return std::ranges::all_of(branch->then_body, is_plain) && std::ranges::all_of(branch->else_body, is_plain);
    return s.as<Map>() || s.as<Fill>() || s.as<Reduce>() || s.as<Let>();
  }
  // What a product may take along: what brings its operands, begins its result or names an index.
  bool comes_along(const Stmt& s) const {
    const auto* copy = s.as<Copy>();
    return s.as<Let>() || s.as<Fill>() ||
           (copy && is_plain(s) && p_.buffer(p_.root(copy->from.buffer)).space == Space::Global);
  }
  // What is worth passing: what only moves elements takes less time than registers that are held longer cost.
  static bool computes(const Stmt& s) { return s.as<Map>() || s.as<Reduce>() || s.as<If>(); }
  static std::set<VarId> named(const Stmt& s) {
    const auto* let = s.as<Let>();
    return let ? std::set{let->var} : std::set<VarId>{};
  }
  // Whether the order of the two matters. An operand in registers is not even read while wgmma is at it.
  bool depend(const Stmt& a, const Stmt& b) const {
    for (const auto& [one, other] : {std::pair(a, b), std::pair(b, a)}) {
      if (meet(written_by({one}, p_), accessed_by({other}, p_), p_)) return true;
      const std::set<VarId> used = used_vars(Body{other});
      if (std::ranges::any_of(named(one), [&](VarId v) { return used.contains(v); })) return true;
      const auto* g = one.as<Gemm>();
      if (g && p_.buffer(p_.root(g->a.buffer)).space == Space::Fragment && !other.as<Gemm>() &&
          accessed_by({other}, p_).contains(p_.root(g->a.buffer)))
        return true;
    }
    return false;
  }
  bool depends_on_any(const Stmt& s, const Body& others) const {
    return std::ranges::any_of(others, [&](const Stmt& x) { return depend(s, x); });
  }

  void forward(size_t i) {
    Body unit{body_[i]}, passed;
    size_t begin = i;
    for (; begin > 0; --begin) {
      const Stmt& s = body_[begin - 1];
      if (!is_plain(s)) break;
      if (!depends_on_any(s, unit))
        passed.insert(passed.begin(), s);
      else if (comes_along(s) && !depends_on_any(s, passed))
        unit.insert(unit.begin(), s);
      else
        break;
    }
    if (std::ranges::none_of(passed, [&](const Stmt& s) { return computes(s); }) || !is_waited_for(begin, passed))
      return;
    Body other(body_.begin(), body_.begin() + static_cast<std::ptrdiff_t>(begin));
    other.insert(other.end(), unit.begin(), unit.end());
    other.insert(other.end(), passed.begin(), passed.end());
    other.insert(other.end(), body_.begin() + static_cast<std::ptrdiff_t>(i) + 1, body_.end());
    take(std::move(other));
  }

  // Where registers do not hold all results of products, one comes right before what is made of it.
  void late(size_t i) {
    const bool filled = i > 0 && body_[i - 1].as<Fill>() && depend(body_[i - 1], body_[i]);
    const size_t first = filled ? i - 1 : i;
    const Body unit(body_.begin() + static_cast<std::ptrdiff_t>(first),
                    body_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    size_t end = i + 1;
    while (end < body_.size() && (is_plain(body_[end]) || body_[end].as<Gemm>()) && !depends_on_any(body_[end], unit))
      ++end;
    Body other = body_;
    std::rotate(other.begin() + static_cast<std::ptrdiff_t>(first), other.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                other.begin() + static_cast<std::ptrdiff_t>(end));
    if (end > i + 1 && live(other) < live(body_)) body_ = std::move(other);
  }

  // ptxas lets code touch an accumulator beside a product that runs on only behind a wait that stands between the two
  // (C7517: else it waits there for all of them). There is one where the first that is touched comes from the products
  // right in front.
  bool is_waited_for(size_t begin, const Body& passed) const {
    analysis::Buffers results, open;
    for (const Stmt& s : body_)
      if (s.as<Gemm>()) results.insert(result(s));
    for (size_t i = begin; i > 0 && (body_[i - 1].as<Gemm>() || comes_along(body_[i - 1])); --i)
      if (body_[i - 1].as<Gemm>()) open.insert(result(body_[i - 1]));
    for (const Stmt& s : passed) {
      bool touches = false, waits = false;
      for (BufferId id : accessed_by({s}, p_))
        touches = touches || results.contains(id), waits = waits || open.contains(id);
      if (touches) return waits;
    }
    return true;
  }

  void backward(size_t i) {
    const Stmt product = body_[i];
    size_t next = i + 1;
    int64_t between = 0, behind = 0;
    for (; next < body_.size() && !body_[next].as<Gemm>(); ++next) {
      if (!is_plain(body_[next])) return;
      // Its operand in registers may be read: it stands behind that, then.
      if (meet(written_by({product}, p_), accessed_by({body_[next]}, p_), p_) ||
          meet(written_by({body_[next]}, p_), accessed_by({product}, p_), p_))
        return;
      if (!comes_along(body_[next])) between += bits(body_[next]);
    }
    if (next == body_.size() || depend(product, body_[next])) return;
    const BufferId own = result(product), other = result(body_[next]);
    for (size_t k = next + 1; k < body_.size(); ++k) {
      const analysis::Buffers used = accessed_by({body_[k]}, p_);
      // Another that runs beside what needs the next one is enough: this one does so beside what comes before that.
      if (used.contains(own) || (behind == 0 && body_[k].as<Gemm>())) return;
      if (used.contains(other)) behind += bits(body_[k]);
    }
    if (behind <= between) return;
    Body moved = body_;
    std::rotate(moved.begin() + static_cast<std::ptrdiff_t>(i), moved.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                moved.begin() + static_cast<std::ptrdiff_t>(next) + 1);
    take(std::move(moved));
  }

  BufferId result(const Stmt& gemm) const { return p_.root(gemm.as<Gemm>()->c.buffer); }
  // Of the largest tile that it has to do with.
  int64_t bits(const Stmt& s) const {
    int64_t most = 0;
    for (BufferId id : accessed_by({s}, p_))
      if (const Buffer& b = p_.buffer(id); b.space == Space::Fragment)
        most = std::max(most, elements_on_chip(b) * b.type.bits);
    return most;
  }
  void take(Body other) {
    if (live(other) <= live(body_)) body_ = std::move(other);
  }
  // The most bits of fragments at any time of a turn: from what writes all of one to its last use, else always.
  int64_t live(const Body& body) const {
    struct Span {
      size_t first, last;
      bool always;
    };
    std::map<BufferId, Span> spans;
    for (size_t i = 0; i < body.size(); ++i)
      for (BufferId id : accessed_by({body[i]}, p_)) {
        if (p_.buffer(id).space != Space::Fragment) continue;
        const bool anew = writes_whole(body[i], id, p_) && !analysis::read_by({body[i]}, p_).contains(id);
        const auto found = spans.emplace(id, Span{i, i, !anew});
        found.first->second.last = i;
      }
    int64_t most = 0;
    for (size_t i = 0; i < body.size(); ++i) {
      int64_t now = 0;
      for (const auto& [id, span] : spans)
        if (span.always || (span.first <= i && i <= span.last))
          now += elements_on_chip(p_.buffer(id)) * p_.buffer(id).type.bits;
      most = std::max(most, now);
    }
    return most;
  }

  const ProgramTables& p_;
  const int64_t room_;
  Body body_;
};

// Loops all products of which are wgmma's, by their variables.
std::set<VarId> loops_of_wgmma(const TileProgram& program, size_t number, const target::GpuTarget& target) {
  TileProgram scratch = program;
  const Placement placement = foreseen_placement(scratch, number, target);
  std::set<VarId> out;
  walk(scratch.launches[number].body, [&](const Stmt& s) {
    const auto* loop = s.as<For>();
    if (!loop) return;
    const bool all =
        std::ranges::all_of(loop->body, [&](const Stmt& x) { return !x.as<Gemm>() || placement.choice_of(x).wgmma; });
    if (all) out.insert(loop->var);
  });
  return out;
}

bool may_gain(const For& loop) {
  const auto products = std::ranges::count_if(
      loop.body, [](const Stmt& s) { return s.as<Gemm>() && s.as<Gemm>()->completion.immediate(); });
  return loop.kind == LoopKind::Pipelined && loop.stages >= kFewStages && loop.order.empty() && products > 1 &&
         !may_jump(loop.body);
}

}  // namespace

void products_early(TileProgram& program, const target::GpuTarget& target) {
  for (size_t i = 0; i < program.launches.size(); ++i) {
    Launch& launch = program.launches[i];
    bool any = false;
    walk(launch.body, [&](const Stmt& s) { any = any || (s.as<For>() && may_gain(*s.as<For>())); });
    if (!any) continue;
    const std::set<VarId> loops = loops_of_wgmma(program, i, target);
    const int64_t room = most_registers(launch, target) * 32 * launch.thread_count();
    launch.body = rewrite(launch.body, [&](const Stmt& s) -> std::optional<Body> {
      const auto* loop = s.as<For>();
      if (!loop || !loops.contains(loop->var) || !may_gain(*loop)) return std::nullopt;
      For f = *loop;
      f.body = Turn(program, loop->body, room).run();
      return Body{make_stmt(std::move(f), s->location)};
    });
  }
}

}  // namespace tilewright::passes
