#include "passes/turn_tiles.h"

#include "analysis/value_at.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/number_statements.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/role_groups.h"
#include "support/warning.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// What tiles that are added may take of a block's shared memory. Those for flags and numbers are far smaller; operands
// of products, which may be larger, would no longer fit.
constexpr int64_t kMostBytes = 4096;

using Barrier = std::pair<BufferId, int64_t>;  // and the number of the mbarrier in it

std::optional<Barrier> barrier_of(const Element& e, const ProgramTables& p) {
  const auto number = e.indices.size() == 1 ? constant_int(e.indices[0]) : std::nullopt;
  return number ? std::optional(Barrier{p.root(e.buffer), *number}) : std::nullopt;
}

bool mentions(const Stmt& s, BufferId tile) { return used_buffers(Body{s}).contains(tile); }

// The role's loop, if all that it does with the tile is there.
const Stmt* loop_with(const Role& role, BufferId tile) {
  const Stmt* found = nullptr;
  for (const Stmt& s : role.body) {
    if (!mentions(s, tile)) continue;
    if (found || !s.as<For>()) return nullptr;
    found = &s;
  }
  return found;
}

// Whether the code may end or turn somewhere else than where it is written, or do what nobody here can see.
bool goes_its_own_way(const Body& body) {
  bool out = false;
  walk(body, [&](const Stmt& s) {
    out = out || s.as<While>() || s.as<Break>() || s.as<Continue>() || s.as<Return>() || s.as<Call>();
  });
  return out;
}

// One filling in a turn of the loop: the statements [begin, end) hold all uses, the one at `end` tells of it.
struct Filling {
  size_t begin = 0, end = 0;
  Barrier told;
};

// ---- whether a filling is of the whole tile

// Goes through code as threads one after the other would, and notes the elements that are surely stored.
class Covered {
 public:
  Covered(const ProgramTables& program, const Launch& launch, BufferId tile)
      : program_(program), thread_(launch.thread[0]), tile_(tile) {
    int64_t count = 1;
    for (const Expr& extent : program.buffer(tile).shape) {
      shape_.push_back(constant_int(extent).value_or(0));
      count *= shape_.back();
    }
    stored_.assign(static_cast<size_t>(std::max<int64_t>(count, 0)), false);
    point_.names = &names_;
  }

  // Whether the statements store all of it, and read nothing of it before.
  bool by(const Body& body, size_t begin, size_t end, const Role& role) {
    for (size_t i = begin; i < end && known_; ++i) {
      const bool by_thread = used_vars(Body{body[i]}).contains(thread_);
      for (int64_t t = role.begin; t < (by_thread ? role.end : role.begin + 1) && known_; ++t) {
        point_.values[thread_] = t;
        statement(body[i], true);
      }
    }
    return known_ && std::all_of(stored_.begin(), stored_.end(), [](bool b) { return b; });
  }

 private:
  static constexpr int64_t kSteps = 1 << 16;  // statements at a point each

  void all(const Body& body, bool sure) {
    for (const Stmt& s : body) statement(s, sure);
  }
  void statement(const Stmt& s, bool sure) {
    if (++steps_ > kSteps) known_ = false;
    if (!known_) return;
    if (const auto* let = s.as<Let>()) names_[let->var] = let->value;
    own_effects(s, sure, Access::Read);
    if (const auto* n = s.as<For>()) return turns(n->var, n->begin, n->extent, [&] { all(n->body, sure); });
    if (const auto* n = s.as<Map>()) return points(*n, 0, sure);
    for_each_body(s, [&](const Body& inside) { all(inside, false); });
    own_effects(s, sure, Access::Write);
  }
  template <class F>
  void turns(VarId v, const Expr& begin, const Expr& extent, F&& turn) {
    const auto first = analysis::value_at(begin, point_), count = analysis::value_at(extent, point_);
    if (!first || !count) return void(known_ = false);
    for (int64_t i = 0; i < *count && known_; ++i) point_.values[v] = *first + i, turn();
  }
  void points(const Map& map, size_t d, bool sure) {
    if (d == map.vars.size()) return all(map.body, sure);
    const DType type = map.extents[d]->type;
    turns(map.vars[d], constant(type, int64_t{0}), map.extents[d], [&] { points(map, d + 1, sure); });
  }

  // What the statement reads must be stored by then; what it surely writes is.
  void own_effects(const Stmt& s, bool sure, Access access) {
    for (const Effect& e : effects_of(s).list) {
      if (!e.region.valid() || e.region.buffer != tile_ || e.access == Access::Order) continue;
      if ((e.access == Access::Write) != (access == Access::Write)) continue;
      known_ = known_ && e.access != Access::Accumulate && e.proxy == Proxy::Generic && e.completion.immediate();
      box(e.region, 0, 0, access == Access::Read, sure);
    }
  }
  void box(const Region& r, size_t d, int64_t at, bool reads, bool sure) {
    if (!known_) return;
    if (d == shape_.size()) {
      if (reads)
        known_ = stored_[static_cast<size_t>(at)];
      else if (sure)
        stored_[static_cast<size_t>(at)] = true;
      return;
    }
    const auto first = analysis::index_at(r.min[d], point_), count = analysis::value_at(r.extent[d], point_);
    if (!first || !count || *first < 0 || *count < 0 || *first > shape_[d] - *count) return void(known_ = false);
    for (int64_t i = *first; i < *first + *count; ++i) box(r, d + 1, at * shape_[d] + i, reads, sure);
  }

  const ProgramTables& program_;
  const VarId thread_;
  const BufferId tile_;
  std::vector<int64_t> shape_;
  std::vector<bool> stored_;
  analysis::Point point_;
  std::unordered_map<VarId, Expr> names_;
  int64_t steps_ = 0;
  bool known_ = true;
};

// ---- the two roles

class TurnTiles {
 public:
  TurnTiles(TileProgram& program, Launch& launch) : program_(program), launch_(launch) {}

  void run() {
    number_statements(launch_);
    for (size_t i = 0; i < launch_.body.size();) {
      RoleGroup roles;
      const size_t end = std::max(end_of_roles(launch_.body, i), i + 1);
      for (; i < end; ++i)
        if (launch_.body[i].as<Role>()) add_innermost_roles(launch_.body[i], roles);
      for (const Stmt* writer : roles)
        for (const Stmt* reader : roles)
          if (writer != reader) between(*writer->as<Role>(), *reader->as<Role>());
    }
    if (bodies_.empty()) return;
    launch_.body = rewrite(launch_.body, [&](const Stmt& s) -> std::optional<Body> {
      const auto at = bodies_.find(s->id);
      if (at == bodies_.end()) return std::nullopt;
      For loop = *s.as<For>();
      loop.body = at->second;
      return Body{make_stmt(std::move(loop), s->location)};
    });
  }

 private:
  void between(const Role& writer, const Role& reader) {
    if (goes_its_own_way(writer.body) || goes_its_own_way(reader.body)) return;
    const std::set<BufferId> read = used_buffers(reader.body), changed = changed_roots(reader.body, program_);
    for (BufferId tile : changed_roots(writer.body, program_))
      if (program_.buffer(tile).space == Space::Shared && read.contains(tile) && !changed.contains(tile) &&
          is_theirs(tile, writer, reader))
        part(tile, writer, reader);
  }
  // Whether nobody else has anything to do with it.
  bool is_theirs(BufferId tile, const Role& writer, const Role& reader) const {
    for (const Buffer& b : program_.buffers)
      if (b.is_view() && b.root == tile) return false;
    const auto uses = [&](const Body& body) {
      size_t count = 0;
      walk(body, [&](const Stmt& s) {
        for (const Effect& e : effects_of(s).list) count += e.region.valid() && e.region.buffer == tile;
      });
      return count;
    };
    return uses(launch_.body) == uses(writer.body) + uses(reader.body);
  }

  void part(BufferId tile, const Role& writer, const Role& reader) {
    const Stmt* fills = loop_with(writer, tile);
    const Stmt* reads = loop_with(reader, tile);
    if (!fills || !reads || launch_.thread.size() != 1) return;
    const auto fillings = fillings_of(*fills->as<For>(), writer, tile);
    const auto more = static_cast<int64_t>(fillings.size()) - 1;
    if (more < 1 || more * bytes_on_chip(program_.buffer(tile)) > kMostBytes) return;
    const auto read_of = readings_of(*reads->as<For>(), fillings, tile);
    if (read_of.empty() || is_ordered(*fills->as<For>(), *reads->as<For>(), fillings, read_of)) return;
    for (const Filling& f : fillings)
      if (!Covered(program_, launch_, tile).by(fills->as<For>()->body, f.begin, f.end, writer)) return;

    warn(make_diagnostic(
        Code::DataRace, program_.location(fills->as<For>()->body[fillings[1].begin]->location),
        fmt::format("'{}' is filled again while the role that reads it may not have read it yet: each of the {} "
                    "fillings of a turn has a tile of its own",
                    program_.buffer(tile).name, fillings.size()),
        "declare a tile for each"));
    Body& filled = body_of(*fills);
    Body& seen = body_of(*reads);
    for (size_t k = 1; k < fillings.size(); ++k) {
      Buffer b = program_.buffer(tile);
      b.name += fmt::format("_{}", k);
      const std::map<BufferId, BufferId> own = {{tile, program_.new_buffer(std::move(b))}};
      for (size_t i = fillings[k].begin; i < fillings[k].end; ++i) filled[i] = with_buffers({filled[i]}, own).at(0);
      for (const auto& [i, filling] : read_of)
        if (filling == k) seen[i] = with_buffers({seen[i]}, own).at(0);
    }
  }
  Body& body_of(const Stmt& loop) { return bodies_.try_emplace(loop->id, loop.as<For>()->body).first->second; }

  // Empty if the role tells anyone of anything but by an arrival at a barrier of its own behind each filling.
  std::vector<Filling> fillings_of(const For& loop, const Role& role, BufferId tile) const {
    std::vector<Filling> out;
    std::optional<size_t> begin;
    for (size_t i = 0; i < loop.body.size(); ++i) {
      const auto* arrive = loop.body[i].as<Arrive>();
      if (mentions(loop.body[i], tile)) begin = begin.value_or(i);
      if (!arrive) continue;
      const auto told = barrier_of(arrive->barrier, program_);
      if (!begin || !told || arrive->cta) return {};
      for (const Filling& f : out)
        if (f.told == *told) return {};
      out.push_back({*begin, i, *told}), begin.reset();
    }
    size_t tells = 0;
    walk(role.body, [&](const Stmt& s) {
      const auto* sync = s.as<Sync>();
      const auto* copy = s.as<Copy>();
      tells += s.as<Arrive>() || s.as<Expect>() || s.as<Atomic>() || (sync && sync->scope != SyncScope::Warp) ||
               (copy && copy->completion.barrier.valid());
    });
    return begin || tells != out.size() ? std::vector<Filling>{} : out;
  }

  static bool waits(const Stmt& s) {
    bool out = false;
    walk(Body{s}, [&](const Stmt& x) {
      const auto* sync = x.as<Sync>();
      out = out || x.as<Wait>() || (sync && sync->scope != SyncScope::Warp);
    });
    return out;
  }
  // By statement of the reader's loop, which filling it reads. Empty: that is not sure.
  std::map<size_t, size_t> readings_of(const For& loop, const std::vector<Filling>& fillings, BufferId tile) const {
    size_t waits_for = 0, known = 0;  // waits for fillings in the whole launch; those that the turn has come to
    walk(launch_.body, [&](const Stmt& s) {
      const auto* wait = s.as<Wait>();
      for (const Filling& f : fillings)
        waits_for += wait && program_.root(wait->barrier.buffer) == f.told.first &&
                     barrier_of(wait->barrier, program_).value_or(f.told) == f.told;
    });
    std::map<size_t, size_t> out;
    bool fresh = false;  // nothing was waited for behind the last filling
    for (size_t i = 0; i < loop.body.size(); ++i) {
      const Stmt& s = loop.body[i];
      const auto* wait = s.as<Wait>();
      const bool next = wait && known < fillings.size() && barrier_of(wait->barrier, program_) == fillings[known].told;
      if (next) ++known;
      if (next || waits(s)) fresh = next;
      if (!mentions(s, tile)) continue;
      if (!fresh) return {};
      out[i] = known - 1;
    }
    return known == fillings.size() && waits_for == known ? out : std::map<size_t, size_t>{};
  }

  // Whether the writer waits, before each filling, for what the reader tells when it has read the one before.
  bool is_ordered(const For& fills, const For& reads, const std::vector<Filling>& fillings,
                  const std::map<size_t, size_t>& read_of) const {
    for (size_t k = 0; k < fillings.size(); ++k) {
      const size_t next = (k + 1) % fillings.size();
      std::set<Barrier> waited;
      for (size_t i = fillings[k].end; i != fillings[next].begin; i = i + 1 == fills.body.size() ? 0 : i + 1)
        if (const auto* wait = fills.body[i].as<Wait>())
          if (const auto b = barrier_of(wait->barrier, program_)) waited.insert(*b);
      bool told = false;
      const size_t last = last_read(read_of, k), end = reads.body.size();
      for (size_t i = last + 1; last < end && !told; ++i) {
        const Stmt& s = reads.body[i % end];
        const auto* wait = s.as<Wait>();
        if (wait && barrier_of(wait->barrier, program_) == fillings[next].told) break;
        const auto* arrive = s.as<Arrive>();
        const auto b = arrive && !arrive->cta ? barrier_of(arrive->barrier, program_) : std::nullopt;
        told = b && waited.contains(*b);
      }
      if (last < end && !told) return false;
    }
    return true;
  }
  static size_t last_read(const std::map<size_t, size_t>& read_of, size_t filling) {
    size_t out = SIZE_MAX;
    for (const auto& [i, k] : read_of)
      if (k == filling) out = i;
    return out;
  }

  TileProgram& program_;
  Launch& launch_;
  std::map<StmtId, Body> bodies_;  // of loops, as they become
};

}  // namespace

void part_turn_tiles(TileProgram& program, Launch& launch) { TurnTiles(program, launch).run(); }

}  // namespace tilewright::passes
