#include "analysis/launch_order.h"

#include <map>

#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "support/diagnostic.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

// What statements do with global memory, and the first of them that does it.
struct Touched {
  std::map<BufferId, LocationId> read, changed;
};

class LaunchOrder {
 public:
  explicit LaunchOrder(const TileProgram& program) : program_(program) {
    for (const Launch& launch : program.launches) all_.push_back(touched(launch.body));
  }

  std::vector<Diagnostic> run() {
    for (size_t i = 0; i < program_.launches.size(); ++i) {
      const Body& body = program_.launches[i].body;
      check_places(body);
      const auto wait = std::ranges::find_if(body, waits_for_launches);
      if (wait == body.end()) continue;
      const Body before(body.begin(), wait);
      check_returns(before, (*wait)->location);
      check_early(touched(before), i);
    }
    return std::move(findings_);
  }

 private:
  bool waits(size_t launch) const { return std::ranges::any_of(program_.launches[launch].body, waits_for_launches); }
  // A grid without blocks is not launched.
  bool is_launched(const Launch& launch) const {
    return std::ranges::all_of(launch.grid, [](const Expr& e) { return constant_int(e).value_or(0) > 0; });
  }

  // ---- where a wait stands
  void check_places(const Body& body) {
    for (const Stmt& s : body)
      for_each_body(s, [&](const Body& inner) {
        walk(inner, [&](const Stmt& x) {
          if (!waits_for_launches(x)) return;
          findings_.push_back(make_diagnostic(
              Code::VerifyLaunchWait, program_.location(x->location),
              fmt::format("the wait for the launches before stands under {}: some threads might not come to it",
                          name_of(s)),
              "let it be a statement of the kernel itself; it may stand before the loops and branches",
              {{"the statement around it", program_.location(s->location)}}));
        });
      });
  }
  void check_returns(const Body& before, LocationId wait) {
    walk(before, [&](const Stmt& s) {
      if (!s.as<Return>()) return;
      findings_.push_back(make_diagnostic(Code::VerifyLaunchWait, program_.location(wait),
                                          "threads that have returned do not come to the wait for the launches before",
                                          "let the wait stand before the return",
                                          {{"here they return", program_.location(s->location)}}));
    });
  }

  // ---- what comes before a wait
  Touched touched(const Body& body) const {
    Touched out;
    walk(body, [&](const Stmt& s) {
      for (const Effect& e : effects_of(s).list) {
        if (!e.region.valid()) continue;
        const BufferId root = program_.root(e.region.buffer);
        if (program_.buffer(root).space == Space::Global)
          (e.access == Access::Read ? out.read : out.changed).try_emplace(root, s->location);
      }
    });
    return out;
  }
  // A tensor that is made from an address may be any memory.
  bool may_meet(BufferId a, BufferId b) const {
    return a == b || program_.buffer(a).address || program_.buffer(b).address;
  }
  struct Clash {
    BufferId mine, theirs;
    LocationId at, other;
    const char *does, *did;
  };
  std::optional<Clash> clash(const Touched& mine, const Touched& theirs) const {
    struct Pair {
      const std::map<BufferId, LocationId>&a, &b;
      const char *does, *did;
    };
    for (const Pair& pair :
         {Pair{mine.read, theirs.changed, "read", "changed"}, Pair{mine.changed, theirs.changed, "changed", "changed"},
          Pair{mine.changed, theirs.read, "changed", "read"}})
      for (const auto& [a, at] : pair.a)
        for (const auto& [b, other] : pair.b)
          if (may_meet(a, b)) return Clash{a, b, at, other, pair.does, pair.did};
    return std::nullopt;
  }
  // Launches that may still run when launch `i` begins: those before it, up to one that has begun when all before it
  // had ended; then those of the call before.
  void check_early(const Touched& mine, size_t i) {
    const size_t count = program_.launches.size();
    for (size_t back = 1; back <= count; ++back) {
      const size_t j = (i + count - back) % count;
      const bool earlier_call = back > i;
      if (const auto found = clash(mine, all_[j])) return report(*found, program_.launches[j], earlier_call);
      if (!waits(j) && is_launched(program_.launches[j])) return;
    }
  }
  void report(const Clash& c, const Launch& theirs, bool earlier_call) {
    const std::string &mine = program_.buffer(c.mine).name, &other = program_.buffer(c.theirs).name;
    findings_.push_back(make_diagnostic(
        Code::VerifyEarlyAccess, program_.location(c.at),
        fmt::format(
            "'{}' is {} before the wait for the launches before, of which {} may still run", mine, c.does,
            earlier_call ? fmt::format("'{}' of the call before", theirs.name) : fmt::format("'{}'", theirs.name)),
        "wait first: pdl_sync() in front of it",
        {{c.mine == c.theirs
              ? fmt::format("'{}' is {} there", other, c.did)
              : fmt::format("'{}' is {} there, and may be the same memory: one of them is made from an address", other,
                            c.did),
          program_.location(c.other)}}));
  }

  const TileProgram& program_;
  std::vector<Touched> all_;  // by launch
  std::vector<Diagnostic> findings_;
};

}  // namespace

bool waits_for_launches(const Stmt& stmt) {
  const auto* sync = stmt.as<Sync>();
  return sync && sync->scope == SyncScope::Launches && sync->wait_only;
}
bool lets_launches_begin(const Stmt& stmt) {
  const auto* sync = stmt.as<Sync>();
  return sync && sync->scope == SyncScope::Launches && sync->arrive_only;
}

std::vector<Diagnostic> check_launch_order(const TileProgram& program) { return LaunchOrder(program).run(); }

}  // namespace tilewright::analysis
