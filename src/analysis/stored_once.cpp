#include "analysis/stored_once.h"

#include <cstdlib>

#include "analysis/body_order.h"
#include "analysis/slope.h"
#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

struct Stored {
  BufferId root;
  const Copy* copy = nullptr;          // none: something else, or a read
  bool reads = false;                  // alone
  std::vector<const StmtNode*> loops;  // around it
};

class StoredOnce {
 public:
  StoredOnce(const ProgramTables& p, const Launch& launch) : p_(p) { collect(launch.body); }

  std::set<BufferId> run() const {
    std::set<BufferId> out;
    for (const Stored& s : found_)
      if (s.copy) out.insert(s.root);
    std::erase_if(out, [&](BufferId id) { return !is_once(id); });
    return out;
  }

 private:
  void collect(const Body& body) {
    for (const Stmt& s : body) {
      const auto* copy = s.as<Copy>();
      if (const auto* n = s.as<Let>()) named_.insert_or_assign(n->var, substitute(n->value, named_));
      for (const Effect& e : effects_of(s).list) {
        if (!e.region.valid() || e.access == Access::Order) continue;
        const BufferId root = p_.root(e.region.buffer);
        if (p_.buffer(root).space != Space::Global) continue;
        const bool stores =
            copy && e.access != Access::Read && root == p_.root(copy->to.buffer) && copy->to.buffer == root;
        found_.push_back({root, stores ? copy : nullptr, e.access == Access::Read, loops_});
      }
      const bool again = s.as<For>() || s.as<While>();
      if (again) loops_.push_back(&*s);
      for_each_body(s, [&](const Body& inner) { collect(inner); });
      if (again) loops_.pop_back();
    }
  }

  bool is_once(BufferId id) const {
    for (size_t i = 0; i < found_.size(); ++i) {
      const Stored& a = found_[i];
      if (!may_overlap(a.root, id, p_)) continue;
      if (a.root != id || (!a.copy && !a.reads)) return false;
      if (a.copy && a.copy->combine == ir::Combine::None && !goes_on(a)) return false;
      for (size_t k = i + 1; k < found_.size(); ++k) {
        const Stored& b = found_[k];
        if (b.root != id || (a.reads && b.reads)) continue;
        if (!(a.copy && b.copy ? are_apart(a, b) : a.reads && b.copy && !share_loops(a, b))) return false;
      }
    }
    return true;
  }
  static bool share_loops(const Stored& a, const Stored& b) {
    return !a.loops.empty() && !b.loops.empty() && a.loops.front() == b.loops.front();
  }
  // Of the loops around it, the only one whose variable is in the index, and how far a turn goes; none: more, or what
  // changes otherwise.
  static std::optional<std::pair<const StmtNode*, int64_t>> step(const Expr& e, const Stored& s) {
    std::pair<const StmtNode*, int64_t> out{nullptr, 0};
    for (const StmtNode* loop : s.loops) {
      const auto* n = std::get_if<For>(&loop->op);
      if (!n) return std::nullopt;
      for (VarId v : bound_vars(n->body))
        if (used_vars(e).contains(v) && !is_loop_of(v, s)) return std::nullopt;
      if (!used_vars(e).contains(n->var)) continue;
      const auto by = slope_through_casts(e, n->var);
      if (!by || out.first) return std::nullopt;
      out = {loop, *by};
    }
    bool loads = false;
    walk(e, [&](const Expr& x) { loads = loads || x.as<Load>(); });
    return loads && !s.loops.empty() ? std::nullopt : std::optional(out);
  }
  static bool is_loop_of(VarId v, const Stored& s) {
    return std::any_of(s.loops.begin(), s.loops.end(), [&](const StmtNode* loop) {
      const auto* n = std::get_if<For>(&loop->op);
      return n && n->var == v;
    });
  }
  // Where an index has a loop's variable: in what is left of a division, in its quotient.
  struct Places {
    bool rest = false, quotient = false;
  };
  static void find(const Expr& e, VarId v, bool Places::*as, Places& out) {
    if (e.as<Load>()) return;
    if (const auto* n = e.as<Var>(); n && n->id == v && as) out.*as = true;
    const auto* n = e.as<Binary>();
    if (n && (n->op == BinaryOp::FloorDiv || n->op == BinaryOp::TruncDiv || n->op == BinaryOp::Shr))
      as = as ? as : &Places::quotient;
    else if (n && (n->op == BinaryOp::FloorMod || n->op == BinaryOp::TruncMod || n->op == BinaryOp::BitAnd))
      as = as ? as : &Places::rest;
    else if (n && (n->op == BinaryOp::Min || n->op == BinaryOp::Max || is_comparison(n->op)))
      return;
    for_each_operand(e, [&](const Expr& x) { find(x, v, as, out); });
  }
  // Whether an index is a multiple of the variable, by a factor that run time knows, and something that has it not.
  static bool is_multiple(const Expr& e, VarId v) {
    const auto has = [&](const Expr& x) { return used_vars(x).contains(v); };
    if (const auto* n = e.as<Var>()) return n->id == v;
    if (const auto* n = e.as<Cast>()) return is_multiple(n->value, v);
    if (const auto* n = e.as<Select>()) return !has(n->condition) && is_multiple(n->a, v) && is_multiple(n->b, v);
    if (const auto* n = e.as<ir::Sum>()) {
      const Term* only = nullptr;
      for (const Term& t : n->terms) {
        if (!has(t.value)) continue;
        if (only) return false;
        only = &t;
      }
      return only && is_multiple(only->value, v);
    }
    const auto* n = e.as<Binary>();
    return n && n->op == BinaryOp::Mul && has(n->a) != has(n->b) && is_multiple(has(n->a) ? n->a : n->b, v);
  }
  // Whether turns of each loop around it store to other elements: as far as is known or, where the step is not,
  // because an index is a multiple of the loop's variable, or a tile of the grid is found from it by a quotient and
  // what is left.
  bool goes_on(const Stored& s) const {
    const Region& to = s.copy->to;
    return std::all_of(s.loops.begin(), s.loops.end(), [&](const StmtNode* loop) {
      const auto* counted = std::get_if<For>(&loop->op);
      Places found;
      bool follows = false;
      for (size_t d = 0; d < to.min.size(); ++d) {
        const Expr min = substitute(to.min[d], named_);
        const auto by = step(min, s);
        const auto extent = constant_int(to.extent[d]);
        if (by && by->first == loop && extent && std::abs(by->second) >= *extent) return true;
        if (!counted || by) continue;
        follows = follows || is_multiple(min, counted->var);
        find(min, counted->var, nullptr, found);
      }
      return follows || (found.rest && found.quotient);
    });
  }
  static bool are_apart(const Stored& a, const Stored& b) {
    if (a.copy->combine != ir::Combine::None && a.copy->combine == b.copy->combine) return true;
    const Region &x = a.copy->to, &y = b.copy->to;
    for (size_t d = 0; d < x.min.size(); ++d) {
      const auto of_x = constant_int(x.extent[d]), of_y = constant_int(y.extent[d]);
      const auto far = x.min[d]->type == y.min[d]->type ? constant_int(sub(y.min[d], x.min[d])) : std::nullopt;
      const auto by = step(x.min[d], a), other = step(y.min[d], b);
      if (!of_x || !of_y || !far || !by || !other || *by != *other) continue;
      const bool apart = *far >= *of_x || -*far >= *of_y;
      if (apart && (!by->first || std::abs(*far) + std::max(*of_x, *of_y) <= std::abs(by->second))) return true;
    }
    return false;
  }

  const ProgramTables& p_;
  std::vector<Stored> found_;
  std::vector<const StmtNode*> loops_;
  Substitution named_;
};

}  // namespace

std::set<BufferId> stored_once(const ProgramTables& program, const Launch& launch) {
  return StoredOnce(program, launch).run();
}

}  // namespace tilewright::analysis
