#include "analysis/summed_turns.h"

#include <algorithm>
#include <set>

#include "analysis/accessed.h"
#include "analysis/body_order.h"
#include "analysis/own_schedule.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/jumps.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "ir/zero.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

class LoopToSplit {
 public:
  LoopToSplit(const ProgramTables& p, const Launch& launch, int64_t blocks, std::string& why)
      : p_(p), launch_(launch), blocks_(blocks), why_(why) {}

  std::optional<SplitLoop> run() {
    why_ = why_no_cluster(launch_, blocks_ > 1);
    if (!why_.empty()) return std::nullopt;
    if (!find()) return std::nullopt;
    out_.turns = constant_int(loop().extent);
    if (out_.turns && *out_.turns < blocks_)
      return refuse("'{}' has {} turns for {} blocks", name(loop().var), *out_.turns, blocks_);
    if (may_jump(loop().body)) return refuse("'{}' may end early", name(loop().var));
    const auto end = launch_.body.begin() + static_cast<std::ptrdiff_t>(out_.at);
    before_.assign(launch_.body.begin(), end), after_.assign(end + 1, launch_.body.end());
    if (!is_done_twice_alike(before_) || !sums() || !is_made_in_turns() || !keeps_what_it_reads()) return std::nullopt;
    return out_;
  }

 private:
  template <class... Args>
  std::nullopt_t refuse(fmt::format_string<Args...> format, Args&&... args) {
    why_ = fmt::format(format, std::forward<Args>(args)...);
    return std::nullopt;
  }
  const For& loop() const { return *launch_.body[out_.at].as<For>(); }
  const std::string& name(VarId id) const { return p_.var(id).name; }
  const std::string& name(BufferId id) const { return p_.buffer(id).name; }

  bool find() {
    size_t loops = 0;
    walk(launch_.body, [&](const Stmt& s) {
      const auto* loop = s.as<For>();
      loops += loop && loop->kind == LoopKind::Pipelined;
    });
    const auto found = std::ranges::find_if(launch_.body, [](const Stmt& s) {
      const auto* loop = s.as<For>();
      return loop && loop->kind == LoopKind::Pipelined;
    });
    if (loops != 1 || found == launch_.body.end()) {
      refuse("it has {} pipelined loops{}", loops, loops == 1 ? ", but not at the top of its body" : "");
      return false;
    }
    out_.at = static_cast<size_t>(found - launch_.body.begin());
    return true;
  }
  // What every block does for itself must concern nobody else.
  bool is_done_twice_alike(const Body& body) {
    bool alone = true;
    walk(body, [&](const Stmt& s) {
      for (const Effect& e : effects_of(s).list)
        if (const bool global = e.region.valid() && p_.buffer(p_.root(e.region.buffer)).space == Space::Global;
            alone && global && e.access != Access::Read) {
          alone = false;
          refuse("'{}' is written before the loop is over, and every block would", name(e.region.buffer));
        }
      if (alone && (s.as<Print>() || s.as<Call>())) {
        alone = false;
        refuse("a {} stands before the loop's end, and every block would execute it", name_of(s));
      }
    });
    return alone;
  }
  // What products of the loop add to, or maps that take what a product made anew, from zero on, while nobody looks.
  bool sums() {
    std::set<BufferId> seen;
    size_t products = 0;
    for (const Stmt& s : loop().body) {
      const auto* g = s.as<Gemm>();
      const BufferId id = g ? g->c.buffer : added_to(s);
      const bool anew = g && writes_whole(s, id, p_);
      if (g) {
        const std::vector<Expr>& a = g->a.extent;
        out_.depth = ++products == 1 ? constant_int(a[a.size() - (g->transpose_a ? 2 : 1)]) : std::nullopt;
      }
      if (id.valid() && !anew && seen.insert(id).second) out_.sums.push_back(id);
    }
    if (out_.sums.empty()) {
      refuse("'{}' has no product", name(loop().var));
      return false;
    }
    return std::ranges::all_of(out_.sums, [&](BufferId id) { return is_sum(id); });
  }
  bool is_sum(BufferId id) {
    const Buffer& b = p_.buffer(id);
    if (b.space != Space::Fragment || b.is_view() || b.reducer) {
      refuse("products add to '{}', which is no fragment of its own", b.name);
      return false;
    }
    bool starts = false, first = true;
    for (const Stmt& s : loop().body) {
      if (!accessed_by({s}, p_).contains(id)) continue;
      const auto* g = s.as<Gemm>();
      const bool adds = g ? g->completion.immediate() && accesses_of({s}, id, p_) == 1 : added_to(s) == id;
      if (!adds) {
        refuse("'{}' is used in the loop by more than what adds to it", b.name);
        return false;
      }
      if (g && g->clear && constant_int(g->clear) != 0) {
        if (!first || !is_first_turn(g->clear) || !is_whole(g->c, b)) {
          refuse("a product clears '{}' in other turns than the first", b.name);
          return false;
        }
        starts = true;
      }
      first = false;
    }
    if (starts && !out_.turns) {
      refuse("how many turns '{}' has is not known, and a block without one would not clear '{}'", name(loop().var),
             b.name);
      return false;
    }
    if (!starts && !is_cleared_before(id)) {
      refuse("'{}' is not cleared before the loop", b.name);
      return false;
    }
    return true;
  }
  // The fragment to whose elements a Map adds, and does nothing else; invalid: it does, or is no Map.
  BufferId added_to(const Stmt& s) const {
    const auto* map = s.as<Map>();
    const auto* store = map && !map->body.empty() ? map->body.back().as<Store>() : nullptr;
    if (!store || p_.buffer(store->to.buffer).space != Space::Fragment) return {};
    for (size_t i = 0; i + 1 < map->body.size(); ++i)
      if (!map->body[i].as<Let>()) return {};
    const BufferId id = store->to.buffer;
    return accesses_of({s}, id, p_) == 2 && adds_to(store->value, store->to) ? id : BufferId{};
  }
  // Whether the value is the element and something else, which does not read its fragment.
  bool adds_to(const Expr& value, const Element& to) const {
    const auto apart = [&](const Expr& e) {
      bool out = true;
      walk(e, [&](const Expr& x) { out = out && !(x.as<Load>() && x.as<Load>()->buffer == to.buffer); });
      return out;
    };
    if (const auto* n = value.as<Load>())
      return n->buffer == to.buffer && std::ranges::equal(n->indices, to.indices, same);
    if (const auto* n = value.as<Fma>()) return adds_to(n->c, to) && apart(n->a) && apart(n->b);
    const auto* n = value.as<Binary>();
    if (!n) return false;
    if (n->op == BinaryOp::Sub) return adds_to(n->a, to) && apart(n->b);
    return n->op == BinaryOp::Add && ((adds_to(n->a, to) && apart(n->b)) || (adds_to(n->b, to) && apart(n->a)));
  }
  static bool same(const Expr& a, const Expr& b) { return equal(a, b); }
  bool is_first_turn(const Expr& e) const {
    return equal(e, binary(BinaryOp::Eq, var(loop().var, p_.var(loop().var).type), loop().begin));
  }
  bool is_cleared_before(BufferId id) const {
    for (size_t i = before_.size(); i-- > 0;) {
      if (!accessed_by({before_[i]}, p_).contains(id)) continue;
      const auto* fill = before_[i].as<Fill>();
      return fill && is_zero(fill->value) && is_whole(fill->to, p_.buffer(id));
    }
    return false;
  }
  // All else that a turn changes is made anew in it, and nobody asks for it afterwards.
  bool is_made_in_turns() {
    if (!is_done_twice_alike(loop().body)) return false;
    const Buffers later = accessed_by(after_, p_);
    for (BufferId id : changed_roots(loop().body, p_)) {
      if (std::ranges::find(out_.sums, id) != out_.sums.end()) continue;
      const auto first =
          std::ranges::find_if(loop().body, [&](const Stmt& s) { return accessed_by({s}, p_).contains(id); });
      const bool anew =
          first != loop().body.end() && writes_whole(*first, id, p_) && !read_by({*first}, p_).contains(id);
      if (anew && !later.contains(id)) continue;
      refuse("what a turn leaves in '{}' is used after it", name(id));
      return false;
    }
    return true;
  }

  // One block stores the results while another may still read what all of them read before.
  bool keeps_what_it_reads() {
    Buffers read = read_by(before_, p_), written = written_by(after_, p_);
    read.merge(read_by(loop().body, p_));
    std::erase_if(written, [&](BufferId id) { return p_.buffer(id).space != Space::Global; });
    for (BufferId id : read)
      if (may_overlap(id, written, p_)) {
        refuse("every block reads '{}' before the loop is over, and one writes to it behind", name(id));
        return false;
      }
    return true;
  }

  const ProgramTables& p_;
  const Launch& launch_;
  const int64_t blocks_;
  std::string& why_;
  SplitLoop out_;
  Body before_, after_;
};

}  // namespace

std::optional<SplitLoop> split_loop(const ProgramTables& program, const Launch& launch, int64_t blocks,
                                    std::string& why) {
  return LoopToSplit(program, launch, blocks, why).run();
}

std::optional<SplitLoop> streamed_loop(const ProgramTables& program, const Launch& launch, std::string& why) {
  auto out = split_loop(program, launch, 1, why);
  if (!out) return std::nullopt;
  const For& loop = *launch.body[out->at].as<For>();
  std::set<VarId> of_tile = bound_vars(launch.body);
  of_tile.insert(launch.block.begin(), launch.block.end());
  for (const Expr& e : {loop.begin, loop.extent})
    for (VarId v : used_vars(e))
      if (of_tile.contains(v)) {
        why = fmt::format("how many turns '{}' has depends on the tile", program.var(loop.var).name);
        return std::nullopt;
      }
  return out;
}

}  // namespace tilewright::analysis
