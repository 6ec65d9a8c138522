#include "analysis/shared_tiles.h"

#include <map>

#include "analysis/load_rings.h"
#include "analysis/own_schedule.h"
#include "ir/any_in.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

constexpr int64_t kRows = 16;  // of a tile whose halves begin with whole eights of rows, as panels have them

class PairSearch {
 public:
  PairSearch(const ProgramTables& p, const Launch& launch, std::string& why)
      : p_(p), launch_(launch), why_(why), found_(find_rings(p, launch, true)) {
    walk(launch.body, [&](const Stmt& s) {
      if (const auto* n = s.as<Let>()) names_[n->var] = n->value;
    });
  }

  std::optional<SharedTile> run(const std::string& name) {
    why_ = why_no_cluster(launch_, false);
    if (!why_.empty()) return std::nullopt;
    const auto copy = copy_of(name);
    const bool gathered = !copy && std::ranges::count(names(), name) > 0;
    if (gathered) return refuse("'{}' is gathered by threads", name);
    if (!copy) return refuse("no ring of a pipelined loop brings '{}'", name);
    if (copy->im2col.present()) return refuse("'{}' is patches of an image", name);
    const Buffer& tile = p_.buffer(copy->to.buffer);
    const int64_t rows = tile.rank() < 2 ? 1 : constant_int(tile.shape[tile.rank() - 2]).value_or(0);
    if (rows % kRows != 0) return refuse("'{}' has {} rows; halves have multiples of {}", name, rows, kRows / 2);
    if (std::ranges::any_of(found_.rings, &FoundRing::counted))
      return refuse("how many turns a loop has depends on the tile of the grid");
    for (size_t d = 0; d < launch_.grid.size(); ++d) {
      if (constant_int(launch_.grid[d]) == 1 || depends(copy->from.min, d)) continue;
      if (turns_depend(d)) continue;
      if (!may_be_beyond(d)) return std::nullopt;
      return SharedTile{copy->to.buffer, d};
    }
    return refuse("no two neighbouring blocks want the same '{}' in the same turns", name);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const FoundRing& r : found_.rings)
      for (BufferId id : r.ahead ? r.tiles : std::vector<BufferId>{}) out.push_back(p_.buffer(id).name);
    return out;
  }

 private:
  template <class... Args>
  std::nullopt_t refuse(fmt::format_string<Args...> format, Args&&... args) {
    why_ = fmt::format(format, std::forward<Args>(args)...);
    return std::nullopt;
  }
  const Copy* copy_of(const std::string& name) const {
    for (const FoundRing& r : found_.rings)
      for (const Stmt& s : r.copies)
        if (const auto* c = s.as<Copy>(); c && r.ahead && p_.buffer(c->to.buffer).name == name) return c;
    return nullptr;
  }
  bool depends(const Expr& e, size_t d) const {
    std::vector<VarId> next;
    std::set<VarId> seen;
    const auto add = [&](const Expr& part) {
      for (VarId v : used_vars(part))
        if (seen.insert(v).second) next.push_back(v);
    };
    for (add(e); !next.empty();) {
      const VarId v = next.back();
      next.pop_back();
      if (v == launch_.block[d]) return true;
      if (const auto named = names_.find(v); named != names_.end()) add(named->second);
    }
    return false;
  }
  bool depends(const std::vector<Expr>& list, size_t d) const {
    return std::ranges::any_of(list, [&](const Expr& e) { return depends(e, d); });
  }
  // Both blocks of a pair fill their rings as often as each other.
  bool turns_depend(size_t d) const {
    return any_in(launch_.body, [&](const Stmt& s) {
      const auto* loop = s.as<For>();
      const auto* branch = s.as<If>();
      return holds_copies(found_.rings, s) && ((loop && (depends(loop->begin, d) || depends(loop->extent, d))) ||
                                               (branch && depends(branch->condition, d)));
    });
  }
  // Of an odd number of blocks the last has a neighbour without a tile, which brings its half and leaves nothing.
  bool may_be_beyond(size_t d) {
    if (const auto extent = constant_int(launch_.grid[d]); extent && *extent % 2 == 0) return true;
    for (const Stmt& s : launch_.body) {
      if (!writes_memory(p_, s) || !is_named_outside(s)) continue;
      refuse("there may be an odd number of blocks, and the others use what a write to memory gives");
      return false;
    }
    for (const Stmt& s : launch_.body) {
      if (!holds_copies(found_.rings, s) || !writes_memory(p_, s)) continue;
      refuse("there may be an odd number of blocks, and a loop with copies of a ring writes to memory");
      return false;
    }
    return true;
  }

  // Whether other statements use a variable that the statement gives a value.
  bool is_named_outside(const Stmt& s) const {
    const std::set<VarId> own = bound_vars({s});
    return std::ranges::any_of(launch_.body, [&](const Stmt& other) {
      return !other.same(s) && std::ranges::any_of(used_vars(Body{other}), [&](VarId v) { return own.contains(v); });
    });
  }

  const ProgramTables& p_;
  const Launch& launch_;
  std::string& why_;
  const FoundRings found_;
  std::map<VarId, Expr> names_;
};

}  // namespace

bool writes_memory(const ProgramTables& p, const Stmt& s) {
  const std::set<BufferId> changed = changed_roots({s}, p);
  return holds<Print, Call>({s}) ||
         std::ranges::any_of(changed, [&](BufferId id) { return p.buffer(id).space == Space::Global; });
}

std::optional<SharedTile> shared_tile(const ProgramTables& program, const Launch& launch, const std::string& name,
                                      std::string& why) {
  return PairSearch(program, launch, why).run(name);
}

std::vector<std::string> tiles_to_share(const ProgramTables& program, const Launch& launch) {
  std::string why;
  PairSearch search(program, launch, why);
  std::vector<std::string> out = search.names();
  std::erase_if(out, [&](const std::string& name) { return !search.run(name); });
  return out;
}

}  // namespace tilewright::analysis
