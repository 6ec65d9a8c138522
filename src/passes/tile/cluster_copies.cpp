#include "passes/tile/cluster_copies.h"

#include <bit>
#include <map>

#include "ir/cluster.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/named_barriers.h"
#include "passes/schedule/role_code.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class ClusterCopies {
 public:
  ClusterCopies(TileProgram& p, const Launch& launch) : p_(p), launch_(launch) {}

  Body run() {
    walk(launch_.body, [&](const Stmt& s) {
      if (const auto* role = s.as<Role>()) walk(role->body, [&](const Stmt& inner) { roles_[&*inner] = role; });
    });
    const Body body = rewrite(launch_.body, [&](const Stmt& s) -> std::optional<Body> {
      const auto* copy = s.as<Copy>();
      if (!copy) return std::nullopt;
      if (is_to_peer(p_, *copy) && copy->completion.barrier.valid()) return telling(*copy, roles_[&*s], s->location);
      if (copy->multicast == 0 || !copy->completion.immediate()) return std::nullopt;
      return waiting(*copy, s->location);
    });
    Body out = std::move(start_);
    out.insert(out.end(), body.begin(), body.end());
    return out;
  }

 private:
  // The threads of the role write it, or of the block; when all have, one of them arrives there.
  Body telling(const Copy& copy, const Role* role, LocationId at) {
    Copy plain = copy;
    plain.completion = {};
    Sync all;
    if (role) {
      const int64_t threads = role->end - role->begin;
      const auto number = named_.between(role->begin, role->end);
      if (!number) no_named_barrier(p_, at, role->begin, role->end);
      all = {SyncScope::Named, constant(i32, *number), threads, false};
    }
    Expr thread = constant(i32, int64_t{0});
    for (size_t d = launch_.thread.size(); d-- > 0;)
      thread = add(mul(thread, constant(i32, launch_.threads[d])), var(launch_.thread[d], i32));
    const Expr first = binary(BinaryOp::Eq, thread, constant(i32, role ? role->begin : int64_t{0}));
    const Expr peer = p_.buffer(copy.to.buffer).cta;
    return {make_stmt(std::move(plain), at), make_stmt(std::move(all), at),
            make_stmt(If{first, {make_stmt(Arrive{copy.completion.barrier, peer}, at)}, {}}, at)};
  }
  Body waiting(const Copy& copy, LocationId at) {
    const std::string name = p_.buffer(copy.to.buffer).name;
    int64_t elements = 1;
    for (const Expr& e : copy.to.extent) elements *= constant_int(e).value_or(0);
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
  const NamedBarriers named_{launch_};
  std::map<const StmtNode*, const Role*> roles_;  // around a statement
  Body start_;                                    // no turn has been
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
