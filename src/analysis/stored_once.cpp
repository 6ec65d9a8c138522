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
  // A division in an index by which a tile of the grid is found from a loop's variable.
  struct Division {
    Expr dividend, divisor;
    size_t dim = 0;
  };
  struct Divisions {
    std::vector<Division> quotients, rests;
  };
  static void find(const Expr& e, VarId v, size_t dim, Divisions& out) {
    const auto* n = e.as<Binary>();
    if (e.as<Load>() || !used_vars(e).contains(v)) return;
    if (n && (n->op == BinaryOp::Min || n->op == BinaryOp::Max || is_comparison(n->op))) return;
    if (n && (n->op == BinaryOp::FloorDiv || n->op == BinaryOp::TruncDiv))
      out.quotients.push_back({n->a, n->b, dim});
    else if (n && (n->op == BinaryOp::FloorMod || n->op == BinaryOp::TruncMod))
      out.rests.push_back({n->a, n->b, dim});
    else if (n && n->op == BinaryOp::Shr && constant_int(n->b))
      out.quotients.push_back({n->a, constant(n->a->type, int64_t{1} << *constant_int(n->b)), dim});
    else if (n && n->op == BinaryOp::BitAnd && constant_int(n->b))
      out.rests.push_back({n->a, constant(n->a->type, *constant_int(n->b) + 1), dim});
    for_each_operand(e, [&](const Expr& x) { find(x, v, dim, out); });
  }
  // Whether the quotient of a division leads along one dimension, and what it leaves along another.
  static bool lead_apart(const Divisions& found) {
    return std::any_of(found.quotients.begin(), found.quotients.end(), [&](const Division& q) {
      return std::any_of(found.rests.begin(), found.rests.end(), [&](const Division& r) {
        return q.dim != r.dim && equal(q.dividend, r.dividend) && equal(q.divisor, r.divisor);
      });
    });
  }
  // How far an index goes in a turn of the loop with the variable, at least; none: it is not linear in it.
  static std::optional<int64_t> least_step(const Expr& e, VarId v) {
    if (const auto* n = e.as<Select>(); n && !used_vars(n->condition).contains(v)) {
      const auto a = least_step(n->a, v), b = least_step(n->b, v);
      return a && b ? std::optional(std::min(*a, *b)) : std::nullopt;
    }
    const auto by = slope_through_casts(e, v);
    return by ? std::optional(std::abs(*by)) : std::nullopt;
  }
  // Whether turns of each loop around it store to other elements: an index goes on by a tile or more, or tiles of the
  // grid are found from the loop's variable by a division.
  bool goes_on(const Stored& s) const {
    const Region& to = s.copy->to;
    return std::all_of(s.loops.begin(), s.loops.end(), [&](const StmtNode* loop) {
      const auto* counted = std::get_if<For>(&loop->op);
      if (!counted) return false;
      Divisions found;
      for (size_t d = 0; d < to.min.size(); ++d) {
        const Expr min = substitute(to.min[d], named_);
        const auto extent = constant_int(to.extent[d]);
        if (extent && least_step(min, counted->var).value_or(0) >= *extent) return true;
        find(min, counted->var, d, found);
      }
      return lead_apart(found);
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
