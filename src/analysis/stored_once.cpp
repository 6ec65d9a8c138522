#include "analysis/stored_once.h"

#include "analysis/body_order.h"
#include "analysis/turns_apart.h"
#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

constexpr uint32_t kLargestIndex = 128;  // nodes of an index, or of a name in one, that is written out

struct Stored {
  BufferId root;
  const Copy* copy = nullptr;          // none: something else, or a read
  bool reads = false;                  // alone
  std::vector<const StmtNode*> loops;  // around it
};

class Finder {
 public:
  Finder(const ProgramTables& p, const Launch& launch) : p_(p), launch_(launch) { collect(launch.body); }

  StoredTensors run() const {
    StoredTensors out;
    std::set<BufferId> copied;
    for (const Stored& s : found_)
      if (s.copy) copied.insert(s.root);
    for (BufferId id : copied)
      if (is_only_copied(id)) (is_once(id) ? out.once : out.again).insert(id);
    return out;
  }

 private:
  void collect(const Body& body) {
    for (const Stmt& s : body) {
      const auto* copy = s.as<Copy>();
      if (const auto* n = s.as<Let>()) name(*n);
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
  // What is loaded is the same wherever the name is used, or is left to its name.
  void name(const Let& n) {
    if (!n.value->type.is_int() || n.value->size > kLargestIndex) return;
    const Expr value = written_out(n.value);
    if (value->size <= kLargestIndex && keeps_loads(p_, launch_, launch_.body, value)) named_.emplace(n.var, value);
  }
  Expr written_out(const Expr& e) const { return e->size <= kLargestIndex ? substitute(e, named_) : e; }

  bool is_only_copied(BufferId id) const {
    for (size_t i = 0; i < found_.size(); ++i) {
      const Stored& a = found_[i];
      if (!may_overlap(a.root, id, p_)) continue;
      if (a.root != id || (!a.copy && !a.reads)) return false;
      for (size_t k = i + 1; k < found_.size(); ++k) {
        const Stored& b = found_[k];
        const bool read_before = a.reads && !share_loops(a, b);
        if (b.root == id && a.reads != b.reads && !read_before) return false;
      }
    }
    return true;
  }
  static bool share_loops(const Stored& a, const Stored& b) {
    return !a.loops.empty() && !b.loops.empty() && a.loops.front() == b.loops.front();
  }
  bool is_once(BufferId id) const {
    for (size_t i = 0; i < found_.size(); ++i) {
      const Stored& a = found_[i];
      if (a.root != id || !a.copy) continue;
      if (a.copy->combine == ir::Combine::None && !turns_are_apart(p_, launch_, a.loops, box_of(a))) return false;
      for (size_t k = i + 1; k < found_.size(); ++k)
        if (found_[k].root == id && found_[k].copy && !are_apart(a, found_[k])) return false;
    }
    return true;
  }
  Box box_of(const Stored& s) const {
    Box out;
    for (const Expr& min : s.copy->to.min) out.min.push_back(written_out(min));
    for (const Expr& extent : s.copy->to.extent) out.extent.push_back(constant_int(extent));
    return out;
  }
  // Of two copies: whether they are apart in one turn of the loops around both, and what they store in one turn, taken
  // together, is apart from what they store in others.
  bool are_apart(const Stored& a, const Stored& b) const {
    if (a.copy->combine != ir::Combine::None && a.copy->combine == b.copy->combine) return true;
    const auto ways = std::mismatch(a.loops.begin(), a.loops.end(), b.loops.begin(), b.loops.end());
    const std::vector<const StmtNode*> shared(a.loops.begin(), ways.first);
    const Body& around = shared.empty() ? launch_.body : body_of(*shared.back());
    std::set<VarId> varying;
    if (ways.first != a.loops.end()) add_bound(**ways.first, varying);
    if (ways.second != b.loops.end()) add_bound(**ways.second, varying);
    const auto keeps = [&](const Expr& e) {
      const std::set<VarId> used = used_vars(e);
      return std::none_of(used.begin(), used.end(), [&](VarId v) { return varying.contains(v); }) &&
             keeps_loads(p_, launch_, around, e);
    };
    const Box x = box_of(a), y = box_of(b);
    Box both;
    bool apart = false;
    for (size_t d = 0; d < x.min.size(); ++d) {
      if (!x.extent[d] || !y.extent[d] || x.min[d]->type != y.min[d]->type) continue;
      const auto far = constant_int(sub(y.min[d], x.min[d]));
      if (!far || !keeps(x.min[d]) || !keeps(y.min[d])) continue;
      apart = apart || *far >= *x.extent[d] || -*far >= *y.extent[d];
      both.min.push_back(*far >= 0 ? x.min[d] : y.min[d]);
      both.extent.push_back(*far >= 0 ? std::max(*x.extent[d], *far + *y.extent[d])
                                      : std::max(*y.extent[d], *x.extent[d] - *far));
    }
    return apart && turns_are_apart(p_, launch_, shared, both);
  }
  static const Body& body_of(const StmtNode& loop) {
    const auto* n = std::get_if<For>(&loop.op);
    return n ? n->body : std::get<While>(loop.op).body;
  }
  static void add_bound(const StmtNode& loop, std::set<VarId>& out) {
    out.merge(bound_vars(body_of(loop)));
    if (const auto* n = std::get_if<For>(&loop.op)) out.insert(n->var);
  }

  const ProgramTables& p_;
  const Launch& launch_;
  std::vector<Stored> found_;
  std::vector<const StmtNode*> loops_;
  Substitution named_;
};

}  // namespace

StoredTensors stored_tensors(const ProgramTables& program, const Launch& launch) {
  return Finder(program, launch).run();
}

}  // namespace tilewright::analysis
