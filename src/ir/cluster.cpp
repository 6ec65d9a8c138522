#include "ir/cluster.h"

#include "ir/operators.h"

namespace tilewright::ir {

int64_t cluster_extent(const Launch& launch, size_t dim) {
  return dim < launch.cluster.size() ? launch.cluster[dim] : 1;
}

int64_t cluster_blocks(const Launch& launch) {
  int64_t blocks = 1;
  for (const int64_t c : launch.cluster) blocks *= c;
  return blocks;
}

Expr rank_in_cluster(const Launch& launch) {
  Expr rank = constant(i32, int64_t{0});
  for (size_t d = launch.block.size(); d-- > 0;) {
    const Expr extent = constant(i32, cluster_extent(launch, d));
    rank = add(mul(rank, extent), binary(BinaryOp::FloorMod, var(launch.block[d], i32), extent));
  }
  return rank;
}

bool reaches_blocks(const Stmt& s) {
  const auto* arrive = s.as<Arrive>();
  const auto* copy = s.as<Copy>();
  const auto* sync = s.as<Sync>();
  return (arrive && arrive->cta) || (copy && copy->multicast != 0) || (sync && sync->scope == SyncScope::Cluster);
}

}  // namespace tilewright::ir
