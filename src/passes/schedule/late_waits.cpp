#include "passes/schedule/late_waits.h"

#include <deque>

#include "analysis/accessed.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/jumps.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;
using analysis::accessed_by;
using analysis::Buffers;
using analysis::meet;
using analysis::written_by;

namespace {

class LateWaits {
 public:
  LateWaits(const ProgramTables& p, const SlotsOf& slots) : p_(p), slots_(slots) {}

  Body run(const Body& in) const {
    return rewrite(in, [&](const Stmt& s) -> std::optional<Body> {
      const auto* loop = s.as<For>();
      if (!loop || !gains(loop->body) || may_jump(loop->body)) return std::nullopt;
      For f = *loop;
      f.body = iteration(loop->body);
      return Body{make_stmt(std::move(f), s->location)};
    });
  }

 private:
  struct Group {
    BufferId result;
    Buffers operands;
    Buffers frozen;  // operands in registers, which nobody may read either (PTX, wgmma.mma_async)
    Body releases;   // of slots it reads
  };

  bool may_run_on(const Stmt& s) const {
    const auto* g = s.as<Gemm>();
    return g && g->completion.immediate() && p_.buffer(g->c.buffer).space == Space::Fragment;
  }
  static bool has_groups_of_its_own(const Stmt& s) { return s.as<For>() || s.as<While>() || s.as<Role>(); }
  // Two or more gemms with no loop between, and none whose waits somebody has placed.
  bool gains(const Body& body) const {
    int gemms = 0;
    bool several = false;
    for (const Stmt& s : body) {
      const auto* g = s.as<Gemm>();
      if (g && !g->completion.immediate()) return false;
      if (has_groups_of_its_own(s)) gemms = 0;
      gemms += may_run_on(s);
      several = several || gemms > 1;
    }
    return several;
  }
  // How many of the open groups must be done before the statement.
  size_t needed(const Stmt& s, const std::deque<Group>& open) const {
    if (has_groups_of_its_own(s)) return open.size();
    const Buffers accessed = accessed_by({s}, p_), written = written_by({s}, p_);
    size_t count = 0;
    for (size_t i = 0; i < open.size(); ++i) {
      const Group& g = open[i];
      const bool waits =
          may_run_on(s) ? feeds(g, *s.as<Gemm>())
                        : accessed.contains(g.result) || meet(accessed, g.frozen, p_) || meet(written, g.operands, p_);
      if (waits) count = i + 1;
    }
    return count;
  }
  // Groups add to the same registers and read the same operands one after the other; none may use what another makes.
  bool feeds(const Group& g, const Gemm& n) const {
    const BufferId c = p_.root(n.c.buffer);
    return p_.root(n.a.buffer) == g.result || p_.root(n.b.buffer) == g.result ||
           (n.is_sparse() && p_.root(n.metadata.buffer) == g.result) || g.operands.contains(c) ||
           (c == g.result && !is_whole(n.c, p_.buffer(n.c.buffer)));
  }
  static void retire(size_t count, LocationId at, std::deque<Group>& open, Body& out) {
    if (count == 0) return;
    out.push_back(make_stmt(Drain{Queue::Wgmma, static_cast<int64_t>(open.size() - count), {}}, at));
    for (; count > 0; --count) {
      out.insert(out.end(), open.front().releases.begin(), open.front().releases.end());
      open.pop_front();
    }
  }
  // The slots that the statement gives back; null: none.
  const Buffers* given_back(const Stmt& s) const {
    const auto* arrive = s.as<Arrive>();
    const auto found = arrive ? slots_.find(arrive->barrier.buffer) : slots_.end();
    return found == slots_.end() ? nullptr : &found->second;
  }
  Body iteration(const Body& in) const {
    Body out;
    std::deque<Group> open;
    for (const Stmt& s : in) {
      if (const Buffers* tiles = given_back(s)) {
        const auto reader =
            std::find_if(open.rbegin(), open.rend(), [&](const Group& g) { return meet(g.operands, *tiles, p_); });
        Body& to = reader == open.rend() ? out : reader->releases;
        to.push_back(s);
        continue;
      }
      retire(needed(s, open), s->location, open, out);
      if (!may_run_on(s)) {
        out.push_back(s);
        continue;
      }
      Gemm g = *s.as<Gemm>();
      g.completion.queue = Queue::Wgmma;
      const BufferId a = p_.root(g.a.buffer);
      open.push_back({p_.root(g.c.buffer), {a, p_.root(g.b.buffer)}, {}, {}});
      if (p_.buffer(a).space == Space::Fragment) open.back().frozen.insert(a);
      out.push_back(make_stmt(std::move(g), s->location));
      out.push_back(make_stmt(Commit{Queue::Wgmma}, s->location));
    }
    retire(open.size(), in.back()->location, open, out);
    return out;
  }

  const ProgramTables& p_;
  const SlotsOf& slots_;
};

}  // namespace

Body wait_late(const ProgramTables& program, const Body& body, const SlotsOf& slots) {
  return LateWaits(program, slots).run(body);
}

}  // namespace tilewright::passes
