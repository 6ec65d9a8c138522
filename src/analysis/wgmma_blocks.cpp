#include "analysis/wgmma_blocks.h"

#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

class Blocks {
 public:
  Blocks(const Body& code, const ProgramTables& p) : p_(p) {
    walk(code, [&](const Stmt& s) {
      if (const auto* n = s.as<Wgmma>()) accumulators_.insert(p_.root(n->c.buffer));
    });
    if (!accumulators_.empty()) scan(code);
  }
  std::vector<bool> split;  // by fence

 private:
  // What the basic block at hand may hold of an accumulator, one after the other.
  enum class Step { None, Group, Read, GroupAgain };
  struct Seen {
    Step step = Step::None;
    size_t fence = 0;  // of the last group
  };
  using Block = std::map<BufferId, Seen>;

  void scan(const Body& body) {
    for (const Stmt& s : body) statement(s);
  }
  void statement(const Stmt& s) {
    for_each_expr(s, [&](const Expr& e) {
      walk(e, [&](const Expr& x) {
        if (const auto* n = x.as<Load>()) read(n->buffer);
      });
    });
    if (const auto* n = s.as<Copy>()) read(n->from.buffer);
    if (s.as<Call>()) for_each_region(s, [&](const Region& r) { read(r.buffer); });
    if (s.as<Wait>()) here_ = {};
    if (const auto* n = s.as<Fence>(); n && n->proxy == FenceProxy::Wgmma) fence(*n);
    const bool loops = s.as<For>() || s.as<While>();
    const Block before = here_;
    Block after = before;
    for_each_body(s, [&](const Body& b) {
      here_ = before;
      const size_t first = next_;
      scan(b);
      if (loops) next_ = first, scan(b);  // what a turn leaves meets the next one
      for (const auto& [id, seen] : here_)
        if (Seen& known = after[id]; known.step < seen.step) known = seen;
    });
    here_ = loops ? here_ : std::move(after);
  }
  void read(BufferId id) {
    id = p_.root(id);
    if (!accumulators_.contains(id)) return;
    if (const Seen seen = here_[id]; seen.step == Step::GroupAgain) {
      split[seen.fence] = true;
      here_ = {{id, {Step::Group, seen.fence}}};
    }
    if (Seen& seen = here_[id]; seen.step == Step::Group) seen.step = Step::Read;
  }
  void fence(const Fence& n) {
    const size_t number = next_++;
    if (number == split.size()) split.push_back(false);
    if (split[number]) here_ = {};
    for (const Region& r : n.registers) {
      Seen& seen = here_[p_.root(r.buffer)];
      seen = {seen.step < Step::Read ? Step::Group : Step::GroupAgain, number};
    }
  }

  const ProgramTables& p_;
  std::set<BufferId> accumulators_;
  Block here_;
  size_t next_ = 0;  // fence
};

}  // namespace

std::vector<bool> wgmma_fences_to_split(const Body& code, const ProgramTables& program) {
  return Blocks(code, program).split;
}

}  // namespace tilewright::analysis
