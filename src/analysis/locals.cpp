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

 private:
  void run(const Body& body) {
    for (const Stmt& s : body)
      if (!is_read_) statement(s);
  }
  void statement(const Stmt& s) {
    if (++steps_ > kMostSteps) is_read_ = true;
    if (!used_roots({s}, p_).contains(id_)) return;
    for_each_expr(s, [&](const Expr& whole) {
      walk(whole, [&](const Expr& e) {
        if (const auto* n = e.as<Address>(); n && p_.root(n->buffer) == id_) read_all();
      });
    });
    const auto* wgmma = s.as<Wgmma>();
    const bool clears = wgmma && wgmma->clear && value_at(wgmma->clear, at_) == 1;
    const std::vector<Effect> effects = effects_of(s).list;
    const auto is_mine = [&](const Effect& e) { return e.region.valid() && p_.root(e.region.buffer) == id_; };
    const auto is_write = [&](const Effect& e) {
      return e.access == Access::Write ||
             (clears && e.access == Access::Accumulate && e.region.buffer == wgmma->c.buffer);
    };
    for (const Effect& e : effects)
      if (is_mine(e) && !is_write(e) && e.access != Access::Order) touch(e.region, false);
    for (const Effect& e : effects)
      if (is_mine(e) && is_write(e)) touch(e.region, true);
    if (const auto* n = s.as<For>()) return loop(*n);
    const std::vector<bool> before = written_;
    std::vector<std::vector<bool>> after;
    for_each_body(s, [&](const Body& body) {
      written_ = before;
      run(body);
      after.push_back(written_);
    });
    if (after.empty()) return;
    written_ = s.as<If>() ? after.front() : before;  // who runs the others, and how often, is open
    for (const std::vector<bool>& other : after)
      for (size_t i = 0; i < written_.size(); ++i) written_[i] = written_[i] && other[i];
  }
  void loop(const For& n) {
    const auto begin = index_at(n.begin, at_), extent = index_at(n.extent, at_);
    const std::vector<bool> before = written_;
    if (!begin || !extent || may_jump(n.body)) {  // no turn, perhaps, or not all of one
      at_.values.erase(n.var);
      if (begin) at_.values[n.var] = *begin;
      run(n.body);
      at_.values.erase(n.var), written_ = before;
      return;
    }
    for (int64_t i = 0; i < *extent && !is_read_; ++i) {
      at_.values[n.var] = *begin + i;
      run(n.body);
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
  int64_t steps_ = 0;
  bool is_read_ = false;
};

// Whether all uses are in a loop of which a turn may find what one before has left.
bool is_kept(const Stmt& s, const ProgramTables& p, BufferId id) {
  const Stmt* at = &s;
  for (bool loops = false;;) {
    loops = loops || at->as<For>() || at->as<While>();
    std::vector<const Body*> bodies;
    for_each_body(*at, [&](const Body& inner) {
      if (used_roots(inner, p).contains(id)) bodies.push_back(&inner);
    });
    if (bodies.size() != 1) return loops && KeptValue(p, id).is_read_in({*at});
    std::vector<const Stmt*> users;
    for (const Stmt& inner : *bodies[0])
      if (used_roots({inner}, p).contains(id)) users.push_back(&inner);
    if (users.size() > 1 || !lives_within(*users[0], p, id, used_within(*users[0], p)))
      return loops && KeptValue(p, id).is_read_in(*bodies[0]);
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
