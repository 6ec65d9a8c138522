#include "passes/tile/cluster_copies.h"

#include <bit>
#include <map>
#include <set>

#include "analysis/body_order.h"
#include "ir/cluster.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/named_barriers.h"
#include "passes/schedule/role_code.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool tells(const TileProgram& p, const Copy& copy) { return is_to_peer(p, copy) && copy.completion.barrier.valid(); }

// Whether no element of another block's tile is written twice by copies that tell: before the second, that block has
// read the first, and what says so, be it a copy, must order reads of all its threads. `loops` are those around the
// body, `written` the tiles so far.
bool writes_once(const TileProgram& p, const Body& body, const std::vector<VarId>& loops, std::set<BufferId>& written) {
  std::map<BufferId, std::vector<Expr>> side_by_side;  // by copies that follow each other: the blocks
  const auto end_group = [&] {
    for (const auto& [tile, blocks] : side_by_side) written.insert(tile);
    side_by_side.clear();
  };
  bool once = true;
  for (const Stmt& s : body) {
    const auto* copy = s.as<Copy>();
    if (copy && tells(p, *copy)) {
      const auto takes_turns = [&](VarId loop) {
        for (size_t d = 0; d < copy->to.min.size(); ++d) {
          const auto* v = copy->to.min[d].as<Var>();
          if (v && v->id == loop && constant_int(copy->to.extent[d]) == 1) return true;
        }
        return false;
      };
      const BufferId root = p.root(copy->to.buffer);
      const Expr block = p.buffer(copy->to.buffer).cta;
      const auto is_another = [&](const Expr& e) {
        const auto x = constant_int(e), y = constant_int(block);
        return x && y && *x != *y;
      };
      once = once && !written.contains(root) && std::ranges::all_of(loops, takes_turns) &&
             std::ranges::all_of(side_by_side[root], is_another);
      side_by_side[root].push_back(block);
      continue;
    }
    end_group();
    std::vector<VarId> inside = loops;
    if (const auto* loop = s.as<For>()) inside.push_back(loop->var);
    if (s.as<While>()) inside.push_back(VarId{});
    for_each_body(s, [&](const Body& inner) { once = once && writes_once(p, inner, inside, written); });
  }
  end_group();
  return once;
}

// Whether blocks of the cluster meet only to begin and at barriers that tell of copies, and share nothing else that is
// written: no tensor is read and written, nothing but the copies concerns another block's memory, and they write each
// element of it once.
bool tells_only_of_itself(const TileProgram& p, const Launch& launch) {
  std::set<BufferId> read, written, tiles;
  bool alone = writes_once(p, launch.body, {}, tiles);
  walk(launch.body, [&](const Stmt& s) {
    const auto* copy = s.as<Copy>();
    const bool tells_of_it = copy && tells(p, *copy);
    if ((!tells_of_it && !s.as<Sync>() && reaches_blocks(p, s)) || s.as<Call>() || s.as<Atomic>()) alone = false;
    for (const Effect& e : effects_of(s).list) {
      if (!e.region.valid() || e.access == Access::Order) continue;
      if (p.buffer(e.region.buffer).cta && !tells_of_it) alone = false;
      const BufferId root = p.root(e.region.buffer);
      if (p.buffer(root).space != Space::Global) continue;
      if (e.access != Access::Write) read.insert(root);
      if (e.access != Access::Read) written.insert(root);
    }
  });
  for (const BufferId a : written)
    for (const BufferId b : read) alone = alone && !analysis::may_overlap(a, b, p);
  return alone;
}

class ClusterCopies {
 public:
  ClusterCopies(TileProgram& p, const Launch& launch)
      : p_(p), launch_(launch), by_bytes_(tells_only_of_itself(p, launch)) {}

  Body run() {
    const Body body = written(launch_.body, nullptr);
    Body out = std::move(start_);
    out.insert(out.end(), body.begin(), body.end());
    return out;
  }

 private:
  Body written(const Body& in, const Role* role) {
    Body out;
    for (size_t i = 0; i < in.size(); ++i) {
      const Stmt& s = in[i];
      const auto* copy = s.as<Copy>();
      if (const size_t end = end_of_telling(in, i); end > i) {
        const Body copies{in.begin() + i, in.begin() + end};
        const bool by_bytes =
            std::ranges::all_of(copies, [&](const Stmt& x) { return may_be_stores(*x.as<Copy>(), role); });
        append(out, by_bytes ? telling_by_bytes(copies) : telling(copies, role));
        i = end - 1;
      } else if (copy && copy->multicast != 0 && copy->completion.immediate()) {
        append(out, waiting(*copy, s->location));
      } else {
        const Role* inside = s.as<Role>() ? s.as<Role>() : role;
        out.push_back(with_bodies(s, [&](const Body& body) { return written(body, inside); }));
      }
    }
    return out;
  }
  static void append(Body& out, const Body& more) { out.insert(out.end(), more.begin(), more.end()); }

  const Copy* telling_copy(const Stmt& s) const {
    const auto* copy = s.as<Copy>();
    return copy && tells(p_, *copy) ? copy : nullptr;
  }
  // Copies that follow each other and of which none reads what one before it writes, as it may where a block is its own
  // peer.
  size_t end_of_telling(const Body& in, size_t begin) const {
    std::set<BufferId> to;
    size_t i = begin;
    for (; i < in.size(); ++i) {
      const Copy* copy = telling_copy(in[i]);
      if (!copy || to.contains(p_.root(copy->from.buffer))) break;
      to.insert(p_.root(copy->to.buffer));
    }
    return i;
  }
  // Whether a thread has one element of it, at most.
  bool may_be_stores(const Copy& copy, const Role* role) const {
    const Buffer &from = p_.buffer(copy.from.buffer), &to = p_.buffer(copy.to.buffer);
    const auto count = elements_of(copy.to);
    const int bits = to.type.storage_bits();
    return by_bytes_ && from.space == Space::Shared && from.type == to.type && (bits == 32 || bits == 64) &&
           copy.combine == Combine::None && count && elements_of(copy.from) == count &&
           *count <= (role ? role->end - role->begin : launch_.thread_count());
  }
  static std::optional<int64_t> elements_of(const Region& r) {
    int64_t count = 1;
    for (const Expr& e : r.extent) {
      const auto extent = constant_int(e);
      if (!extent) return std::nullopt;
      count *= *extent;
    }
    return count;
  }
  // Bytes may come before they are expected: the phase is not complete without the arrival.
  Body telling_by_bytes(const Body& copies) const {
    Body expected, stores;
    for (const Stmt& s : copies) {
      Copy store = *s.as<Copy>();
      const Buffer& to = p_.buffer(store.to.buffer);
      const Expr bytes = constant(i32, bytes_of(to.type, *elements_of(store.to)));
      expected.push_back(make_stmt(Expect{store.completion.barrier, bytes, true, to.cta}, s->location));
      store.completion.queue = Queue::StAsync;
      stores.push_back(make_stmt(std::move(store), s->location));
    }
    append(expected, stores);
    return expected;
  }
  // The threads of the role write it, or of the block; when all have, one of them arrives there.
  Body telling(const Body& copies, const Role* role) {
    const LocationId at = copies[0]->location;
    Sync all;
    if (role) {
      const auto number = named_.between(role->begin, role->end);
      if (!number) no_named_barrier(p_, at, role->begin, role->end);
      all = {SyncScope::Named, constant(i32, *number), role->end - role->begin, false};
    }
    Expr thread = constant(i32, int64_t{0});
    for (size_t d = launch_.thread.size(); d-- > 0;)
      thread = add(mul(thread, constant(i32, launch_.threads[d])), var(launch_.thread[d], i32));
    Body out, arrivals;
    for (const Stmt& s : copies) {
      Copy plain = *s.as<Copy>();
      arrivals.push_back(make_stmt(Arrive{plain.completion.barrier, p_.buffer(plain.to.buffer).cta}, s->location));
      plain.completion = {};
      out.push_back(make_stmt(std::move(plain), s->location));
    }
    const Expr first = binary(BinaryOp::Eq, thread, constant(i32, role ? role->begin : int64_t{0}));
    out.push_back(make_stmt(std::move(all), at));
    out.push_back(make_stmt(If{first, std::move(arrivals), {}}, at));
    return out;
  }
  Body waiting(const Copy& copy, LocationId at) {
    const std::string name = p_.buffer(copy.to.buffer).name;
    const int64_t elements = elements_of(copy.to).value_or(0);
    const Element arrived{new_barriers(p_, launch_, BarrierUse::Full, name + "_arrived", 1, 1),
                          {constant(i32, int64_t{0})}};
    const BufferId turns = counter(name + "_turns");
    const VarId turn = p_.new_var(p_.buffer(turns).name, i32);
    start_.push_back(make_stmt(Store{{turns, {}}, constant(i32, int64_t{0})}, at));

    const Expr rank = rank_in_cluster(launch_), one = constant(i32, int64_t{1});
    const int lowest = std::countr_zero(static_cast<uint64_t>(copy.multicast));
    Copy all = copy, own = copy;
    all.completion.barrier = own.completion.barrier = arrived, own.multicast = 0;
    const Expr bit = binary(BinaryOp::BitAnd, binary(BinaryOp::Shr, constant(i32, copy.multicast), rank), one);
    const Stmt by_itself =
        make_stmt(If{binary(BinaryOp::Eq, bit, constant(i32, int64_t{0})), {make_stmt(std::move(own), at)}, {}}, at);
    const Expr copies = binary(BinaryOp::Eq, rank, constant(i32, int64_t{lowest}));
    Sync meet;  // nobody uses any more what lies there
    meet.scope = SyncScope::Cluster;
    return {make_stmt(std::move(meet), at),
            make_stmt(Expect{arrived, constant(i32, bytes_of(p_.buffer(copy.to.buffer).type, elements)), true}, at),
            make_stmt(If{copies, {make_stmt(std::move(all), at)}, {by_itself}}, at),
            make_stmt(Let{turn, load(turns, {}, i32)}, at),
            make_stmt(Wait{arrived, binary(BinaryOp::BitAnd, var(turn, i32), one)}, at),
            make_stmt(Store{{turns, {}}, add(var(turn, i32), one)}, at)};
  }
  BufferId counter(std::string name) {
    Buffer b;
    b.name = std::move(name), b.type = i32, b.space = Space::Local;
    b.launch = static_cast<int32_t>(&launch_ - p_.launches.data());
    return p_.new_buffer(std::move(b));
  }

  TileProgram& p_;
  const Launch& launch_;
  const bool by_bytes_;
  const NamedBarriers named_{launch_};
  Body start_;  // no turn has been
};

}  // namespace

TileProgram materialize_cluster_copies(TileProgram program) {
  for (Launch& launch : program.launches) {
    bool together = false;
    walk(launch.body, [&](const Stmt& s) { together = together || reaches_blocks(program, s); });
    if (together)
      launch.body = ClusterCopies(program, launch).run();
    else
      launch.cluster.clear();
  }
  return program;
}

}  // namespace tilewright::passes
