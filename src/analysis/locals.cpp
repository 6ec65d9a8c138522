#include "analysis/locals.h"

#include "analysis/value_at.h"
#include "ir/effects.h"
#include "ir/jumps.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

// The storage that each body in it uses.
std::vector<std::set<BufferId>> used_within(const Stmt& s, const ProgramTables& p) {
  std::vector<std::set<BufferId>> out;
  for_each_body(s, [&](const Body& inner) { out.push_back(used_roots(inner, p)); });
  return out;
}

// Are all its uses in bodies of the statement? Two bodies of an If are two versions of one box, each with a buffer of
// its own.
bool lives_within(const Stmt& s, const ProgramTables& p, BufferId id, const std::vector<std::set<BufferId>>& bodies) {
  bool out = std::any_of(bodies.begin(), bodies.end(), [&](const auto& used) { return used.contains(id); });
  for_each_expr(s, [&](const Expr& e) {
    walk(e, [&](const Expr& x) {
      const auto* n = x.as<Load>();
      out = out && !(n && p.root(n->buffer) == id);
    });
  });
  return out;
}

constexpr int64_t kMostElements = 4096, kMostSteps = 16384;

// Whether code, each time that it runs, may read of a buffer what it has not written this time.
class KeptValue {
 public:
  KeptValue(const ProgramTables& p, BufferId id) : p_(p), id_(id) {
    int64_t elements = 1;
    for (const Expr& e : p.buffer(id).shape) elements *= std::clamp<int64_t>(constant_int(e).value_or(-1), -1, 1 << 20);
    if (elements < 0 || elements > kMostElements || !p.buffer(id).strides.empty())
      is_read_ = true;  // it cannot be said
    else
      written_.resize(static_cast<size_t>(elements));
  }
  bool is_read_in(const Body& body) {
    run(body);
    return is_read_;
  }
  // In one of the turns of the loop around it.
  bool is_read_in(const Body& body, const For& around) {
    constexpr int64_t kMostTurns = 64;
    const auto begin = constant_int(around.begin), extent = constant_int(around.extent);
    if (!begin || !extent || *extent > kMostTurns) return is_read_in(body);
    const std::vector<bool> before = written_;
    for (int64_t i = 0; i < *extent && !is_read_; ++i) {
      at_.values[around.var] = *begin + i, written_ = before, known_.clear();
      run(body);
    }
    return is_read_;
  }

 private:
  void run(const Body& body) {
    for (const Stmt& s : body)
      if (!is_read_) statement(s);
  }
  void statement(const Stmt& s) {
    if (++steps_ > kMostSteps) is_read_ = true;
    const Uses& uses = uses_of(s);
    if (!uses.any) return;
    if (uses.address) read_all();
    const auto* wgmma = s.as<Wgmma>();
    const bool clears = wgmma && wgmma->clear && value_at(wgmma->clear, at_) == 1;
    const auto is_write = [&](const Effect& e) {
      return e.access == Access::Write ||
             (clears && e.access == Access::Accumulate && e.region.buffer == wgmma->c.buffer);
    };
    for (const Effect& e : uses.effects)
      if (!is_write(e) && e.access != Access::Order) touch(e.region, false);
    for (const Effect& e : uses.effects)
      if (is_write(e)) touch(e.region, true);
    if (const auto* n = s.as<For>()) return loop(*n);
    if (const auto* n = s.as<If>()) return branch(*n);
    const std::vector<bool> before = written_;
    const size_t known = known_.size();
    for_each_body(s, [&](const Body& body) {  // who runs it, and how often, is open
      run(body);
      written_ = before, known_.resize(known);
    });
  }
  // What a statement has to do with the buffer, in every turn of the loops around it.
  struct Uses {
    bool any = false, address = false;  // of it or of what is in it; takes its address
    std::vector<Effect> effects;
  };
  const Uses& uses_of(const Stmt& s) {
    const auto [at, is_new] = uses_.try_emplace(&*s);
    Uses& out = at->second;
    if (!is_new) return out;
    out.any = used_roots({s}, p_).contains(id_);
    if (!out.any) return out;
    for_each_expr(s, [&](const Expr& whole) {
      walk(whole, [&](const Expr& e) {
        const auto* n = e.as<Address>();
        out.address = out.address || (n && p_.root(n->buffer) == id_);
      });
    });
    for (const Effect& e : effects_of(s).list)
      if (e.region.valid() && p_.root(e.region.buffer) == id_) out.effects.push_back(e);
    return out;
  }
  void branch(const If& n) {
    if (const auto taken = value_at(n.condition, at_)) return run(*taken ? n.then_body : n.else_body);
    const Expr turned = logical_not(n.condition);
    const std::vector<bool> before = written_, then = in_branch(n.condition, n.then_body, before),
                            other = in_branch(turned, n.else_body, before);
    for (size_t i = 0; i < written_.size(); ++i) written_[i] = then[i] && other[i];
    if (reads_memory(n.condition)) return;
    known_.emplace_back(n.condition, then), known_.emplace_back(turned, other);
  }
  // What is written behind a branch that is taken where the condition holds.
  std::vector<bool> in_branch(const Expr& condition, const Body& body, const std::vector<bool>& before) {
    written_ = before;
    const size_t known = known_.size();
    for (const auto& [same, written] : known_)
      for (size_t i = 0; equal(same, condition) && i < written_.size(); ++i) written_[i] = written_[i] || written[i];
    run(body);
    known_.resize(known);
    return written_;
  }
  bool reads_memory(const Expr& condition) const {
    bool reads = false;
    walk(condition, [&](const Expr& e) {
      const auto* v = e.as<Var>();
      reads = reads || e.as<Load>() || (v && at_.values.contains(v->id));
    });
    return reads;
  }
  void loop(const For& n) {
    const auto begin = index_at(n.begin, at_), extent = index_at(n.extent, at_);
    const std::vector<bool> before = written_;
    if (!begin || !extent || may_jump(n.body)) {  // no turn, perhaps, or not all of one
      const size_t known = known_.size();
      if (begin && !may_jump(n.body)) {  // behind the first, the others have what it writes
        at_.values[n.var] = *begin;
        run(n.body);
        known_.resize(known);
      }
      at_.values.erase(n.var);
      run(n.body);
      written_ = before, known_.resize(known);
      return;
    }
    bool names = false;  // which stand for something else in the next turn
    walk(n.body, [&](const Stmt& s) { names = names || s.as<Let>(); });
    const size_t known = known_.size();
    for (int64_t i = 0; i < *extent && !is_read_; ++i) {
      at_.values[n.var] = *begin + i;
      run(n.body);
      if (names) known_.resize(known);
      if (std::find(written_.begin(), written_.end(), false) == written_.end()) break;
    }
    at_.values.erase(n.var);
  }
  // The elements of a region, or all of which it may be some.
  void touch(const Region& r, bool writes) {
    const Buffer& b = p_.buffer(r.buffer);
    const bool plain = b.strides.empty() && !b.offset && b.type.bits == p_.buffer(id_).type.bits;
    int64_t first = 0, count = 1;
    bool known = plain;
    for (size_t d = 0; d < r.min.size() && known; ++d) {
      const auto min = index_at(r.min[d], at_), extent = index_at(r.extent[d], at_), size = constant_int(b.shape[d]);
      known = min && extent && size && (count == 1 || (*min == 0 && *extent == *size));
      if (!known) break;
      first = first * *size + *min, count *= *extent;
    }
    known = known && first >= 0 && count >= 0 && static_cast<size_t>(first + count) <= written_.size();
    if (!known && !writes) return read_all();
    if (!known) return;
    for (size_t i = static_cast<size_t>(first); i < static_cast<size_t>(first + count); ++i) {
      is_read_ = is_read_ || (!writes && !written_[i]);
      if (writes) written_[i] = true;
    }
  }
  void read_all() { is_read_ = is_read_ || std::find(written_.begin(), written_.end(), false) != written_.end(); }

  const ProgramTables& p_;
  const BufferId id_;
  Point at_;
  std::vector<bool> written_;
  std::map<const StmtNode*, Uses> uses_;
  std::vector<std::pair<Expr, std::vector<bool>>> known_;  // to be written where the condition holds
  int64_t steps_ = 0;
  bool is_read_ = false;
};

// Whether all uses are in a loop of which a turn may find what one before has left.
bool is_kept(const Stmt& s, const ProgramTables& p, BufferId id) {
  const For* around = nullptr;
  bool loops = false;
  const auto is_read_in = [&](const Body& body) {
    if (!loops) return false;
    return around ? KeptValue(p, id).is_read_in(body, *around) : KeptValue(p, id).is_read_in(body);
  };
  for (const Stmt* at = &s;;) {
    std::vector<const Body*> bodies;
    for_each_body(*at, [&](const Body& inner) {
      if (used_roots(inner, p).contains(id)) bodies.push_back(&inner);
    });
    if (bodies.size() != 1) return is_read_in({*at});
    if (at->as<For>() || at->as<While>()) loops = true, around = at->as<For>();
    std::vector<const Stmt*> users;
    for (const Stmt& inner : *bodies[0])
      if (used_roots({inner}, p).contains(id)) users.push_back(&inner);
    if (users.size() > 1 || !lives_within(*users[0], p, id, used_within(*users[0], p))) return is_read_in(*bodies[0]);
    at = users[0];
  }
}

std::set<BufferId> locals_in(const Body& body, const ProgramTables& program, const std::set<BufferId>& declared,
                             bool stay) {
  std::map<BufferId, std::vector<const Stmt*>> users;
  for (const Stmt& s : body)
    for (BufferId id : used_roots({s}, program))
      if (program.buffer(id).space == Space::Local && !declared.contains(id)) users[id].push_back(&s);
  std::set<BufferId> out;
  std::map<const Stmt*, std::vector<std::set<BufferId>>> within;
  for (const auto& [id, statements] : users) {
    const Stmt* only = statements.front();
    const bool is_only = statements.size() == 1;
    if (is_only && !within.contains(only)) within[only] = used_within(*only, program);
    if (!is_only || !lives_within(*only, program, id, within[only]) || (stay && is_kept(*only, program, id)))
      out.insert(id);
  }
  return out;
}

}  // namespace

std::set<BufferId> locals_of(const Body& body, const ProgramTables& program, const std::set<BufferId>& declared) {
  return locals_in(body, program, declared, false);
}

std::set<BufferId> locals_that_stay(const Body& body, const ProgramTables& program,
                                    const std::set<BufferId>& declared) {
  return locals_in(body, program, declared, true);
}

}  // namespace tilewright::analysis
