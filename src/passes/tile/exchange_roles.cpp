#include "passes/tile/exchange_roles.h"

#include "analysis/uniformity.h"
#include "ir/effects.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"
#include "passes/thread_range.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr size_t kMaxRanges = 4;  // each takes one of a block's 15 named barriers

class ExchangeRoles {
 public:
  ExchangeRoles(const ProgramTables& p, const Launch& launch)
      : p_(p), launch_(launch), all_{0, launch.thread_count()}, uniformity_(p, launch) {}

  Body run() {
    if (launch_.threads[0] != all_.end) return launch_.body;  // a range of tx is no range of threads
    find(launch_.body);
    if (found_.empty()) return launch_.body;
    return rewrite(launch_.body, [&](const Stmt& s) -> std::optional<Body> {
      const auto range = found_.find(s->id);
      if (range == found_.end()) return std::nullopt;
      const auto* branch = s.as<If>();
      Body out{make_stmt(Role{range->second.begin, range->second.end, branch->then_body}, s->location)};
      if (const auto rest = range->second.rest_of(all_); rest && !branch->else_body.empty() && !rest->empty())
        out.push_back(make_stmt(Role{rest->begin, rest->end, branch->else_body}, s->location));
      return out;
    });
  }

 private:
  void find(const Body& body) {
    for (const Stmt& s : body) {
      if (s.as<Role>() || s.as<Map>()) continue;
      if (const auto range = range_of(s))
        found_.emplace(s->id, *range);
      else
        for_each_body(s, [&](const Body& inner) { find(inner); });
    }
  }
  std::optional<ThreadRange> range_of(const Stmt& s) {
    const auto* branch = s.as<If>();
    if (!branch || !uniformity_.is_uniform_control(s)) return std::nullopt;
    if (!(exchanges(branch->then_body) || exchanges(branch->else_body))) return std::nullopt;
    if (!is_plain(branch->then_body) || !is_plain(branch->else_body)) return std::nullopt;
    const auto range = threads_where(branch->condition, launch_.thread[0], all_);
    const auto aligned = [&](int64_t t) { return t % kWarpThreads == 0 || t == all_.end; };
    if (!range || range->empty() || !aligned(range->begin) || !aligned(range->end)) return std::nullopt;
    const bool whole = range->begin == all_.begin && range->end == all_.end;
    if (whole || (!branch->else_body.empty() && !range->rest_of(all_))) return std::nullopt;
    ranges_.insert({range->begin, range->end});
    if (const auto rest = range->rest_of(all_); rest && !branch->else_body.empty())
      ranges_.insert({rest->begin, rest->end});
    return ranges_.size() <= kMaxRanges ? range : std::nullopt;
  }
  // Thread code that means the same in a role. An atomic would happen once for all threads where they agree on it.
  bool is_plain(const Body& body) const {
    bool plain = true;
    walk(body, [&](const Stmt& s) {
      plain = plain && effects_of(s).scope != Scope::Collective && !s.as<Atomic>() && !s.as<Print>() && !s.as<Call>() &&
              !s.as<Arrive>() && !s.as<Expect>() && !s.as<Wait>() && !s.as<Return>() && !s.as<Break>() &&
              !s.as<Continue>();
    });
    return plain;
  }
  bool exchanges(const Body& body) const {
    std::set<BufferId> read, written;
    walk(body, [&](const Stmt& s) {
      for (const Effect& e : effects_of(s).list) {
        if (e.access == Access::Order || !e.region.valid()) continue;
        const BufferId root = p_.root(e.region.buffer);
        if (p_.buffer(root).space == Space::Shared) (e.access == Access::Read ? read : written).insert(root);
      }
    });
    return std::any_of(written.begin(), written.end(), [&](BufferId id) { return read.contains(id); });
  }

  const ProgramTables& p_;
  const Launch& launch_;
  const ThreadRange all_;
  const analysis::Uniformity uniformity_;
  std::map<StmtId, ThreadRange> found_;
  std::set<std::pair<int64_t, int64_t>> ranges_;
};

}  // namespace

Body exchange_roles(const ProgramTables& program, const Launch& launch) { return ExchangeRoles(program, launch).run(); }

}  // namespace tilewright::passes
