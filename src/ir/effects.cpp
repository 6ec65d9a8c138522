#include "ir/effects.h"

#include "ir/match.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::ir {
namespace {

Region element_region(const Element& e) {
  return {e.buffer, e.indices, std::vector<Expr>(e.indices.size(), constant(1))};
}

// The row that a lane points at.
Region row_region(const LoadMatrix& n) {
  constexpr int64_t kLanesOfRow = 4;
  Region r = element_region(n.from);
  if (n.matrices > 0)
    r.extent.back() = constant(constant_int(n.to.extent.back()).value_or(1) / n.matrices * kLanesOfRow);
  return r;
}

Region row_region(const StoreMatrix& n) {
  constexpr int64_t kElements = 8;  // of 16 bits
  Region r = element_region(n.to);
  r.extent.back() = constant(kElements);
  return r;
}

// The box around a matrix of so many rows and columns, of elements of so many neighbours.
Region box_of(const Matrix& m, int64_t rows, int64_t columns, int64_t unit) {
  std::vector<int64_t> extent(m.first.indices.size(), 1);
  extent[static_cast<size_t>(m.down)] += (rows - 1) * m.down_step;
  extent[static_cast<size_t>(m.along)] += (columns - 1) * m.along_step;
  extent.back() += unit - 1;
  Region r{m.first.buffer, m.first.indices, {}};
  for (int64_t e : extent) r.extent.push_back(constant(i64, e));
  return r;
}

// What the expressions of a statement load.
void add_loads(const Stmt& s, Effects& out) {
  for_each_expr(s, [&](const Expr& e) {
    walk(e, [&](const Expr& x) {
      if (const auto* l = x.as<Load>())
        out.list.push_back({Access::Read, element_region({l->buffer, l->indices}), {}, {}});
    });
  });
}

struct Own {  // one overload per op: what it touches besides what its expressions load
  Effects& out;
  void touch(Access access, Region region, Proxy proxy = Proxy::Generic, Completion completion = {}) const {
    out.list.push_back({access, std::move(region), proxy, std::move(completion)});
  }
  void order(const Element& barrier) const { touch(Access::Order, element_region(barrier)); }

  void operator()(const Let&) const {}
  void operator()(const Store& n) const { touch(Access::Write, element_region(n.to), Proxy::Generic, {n.queue, {}}); }
  void operator()(const Atomic& n) const {
    touch(n.op == AtomicOp::Load ? Access::Read : Access::Accumulate, element_region(n.to));
    if (n.op != AtomicOp::Load) out.list.back().update = n.op;
  }
  void operator()(const Shuffle&) const { out.scope = Scope::Warp; }
  void operator()(const Vote& n) const { out.scope = n.kind >= VoteKind::BlockAny ? Scope::Collective : Scope::Warp; }
  void operator()(const Call& n) const {
    for (const Region& r : n.reads) touch(Access::Read, r);
    for (const Region& r : n.writes) touch(Access::Write, r);
  }
  void operator()(const For&) const {}
  void operator()(const While&) const {}
  void operator()(const If&) const {}
  void operator()(const Break&) const {}
  void operator()(const Continue&) const {}
  void operator()(const Return&) const {}
  void operator()(const Print&) const {}
  void operator()(const Assert&) const {}
  void operator()(const Assume&) const {}
  void operator()(const Copy& n) const {
    out.scope = Scope::Collective;
    if (n.completion.queue == Queue::Prefetch) return;
    const bool stores = n.completion.queue == Queue::StAsync;  // of registers: its thread has read them
    const bool by_threads = n.completion.immediate() || n.completion.queue == Queue::CpAsync || stores;
    const Proxy proxy = by_threads ? Proxy::Generic : Proxy::Async;
    touch(Access::Read, n.from, proxy, stores ? Completion{} : n.completion);
    touch(n.combine == Combine::None ? Access::Write : Access::Accumulate, n.to, proxy, n.completion);
    if (n.combine != Combine::None) out.list.back().update = atomic_op_of(n.combine);
    if (n.completion.barrier.valid()) order(n.completion.barrier);
  }
  void operator()(const Fill& n) const {
    out.scope = Scope::Collective;
    touch(Access::Write, n.to);
  }
  void operator()(const Gemm& n) const {
    out.scope = Scope::Collective;
    const Proxy proxy = n.completion.immediate() ? Proxy::Generic : Proxy::Async;
    touch(Access::Read, n.a, proxy, n.completion);
    touch(Access::Read, n.b, proxy, n.completion);
    if (n.is_sparse()) touch(Access::Read, n.metadata);
    touch(constant_int(n.clear) == 1 ? Access::Write : Access::Accumulate, n.c, proxy, n.completion);
  }
  void operator()(const Map&) const { out.scope = Scope::Collective; }
  void operator()(const Reduce& n) const {
    out.scope = Scope::Collective;
    touch(Access::Read, n.from);
    touch(n.clear ? Access::Write : Access::Accumulate, n.to);
  }
  void operator()(const Scan& n) const {
    out.scope = Scope::Collective;
    touch(Access::Read, n.from);
    touch(Access::Write, n.to);
  }
  void operator()(const FinalizeReducer&) const { out.scope = Scope::Collective; }
  void operator()(const Role&) const { out.scope = Scope::Collective; }
  void operator()(const Arrive& n) const {
    order(n.barrier);
    if (n.by == ArriveBy::Warp) out.scope = Scope::Warp;
  }
  void operator()(const Expect& n) const { order(n.barrier); }
  void operator()(const Wait& n) const { order(n.barrier); }
  void operator()(const Commit&) const {}
  void operator()(const Drain&) const {}
  void operator()(const Sync& n) const {
    out.scope = n.scope == SyncScope::Launches ? Scope::Thread
                : n.scope == SyncScope::Warp   ? Scope::Warp
                                               : Scope::Collective;
  }
  void operator()(const Fence&) const {}
  void operator()(const SetRegisters&) const { out.scope = Scope::Collective; }
  void operator()(const Mma& n) const {
    out.scope = Scope::Warp;
    touch(Access::Read, n.a), touch(Access::Read, n.b), touch(Access::Accumulate, n.c);
    if (n.metadata.valid()) touch(Access::Read, n.metadata);
  }
  void operator()(const LoadMatrix& n) const {
    out.scope = Scope::Warp;
    touch(Access::Read, row_region(n)), touch(Access::Write, n.to);
  }
  void operator()(const StoreMatrix& n) const {
    out.scope = Scope::Warp;
    touch(Access::Read, n.from), touch(Access::Write, row_region(n));
  }
  void operator()(const Wgmma& n) const {
    out.scope = Scope::Collective;
    const Completion done{Queue::Wgmma, {}};
    touch(Access::Read, n.a, Proxy::Async, done), touch(Access::Read, n.b, Proxy::Async, done);
    if (n.metadata.valid()) touch(Access::Read, n.metadata);
    touch(constant_int(n.clear) == 1 ? Access::Write : Access::Accumulate, n.c, Proxy::Async, done);
  }
  void operator()(const Elect&) const { out.scope = Scope::Warp; }
  void operator()(const InitBarriers& n) const { touch(Access::Order, {n.barriers, {}, {}}); }
  void operator()(const Stream& n) const {
    touch(n.rest ? Access::Read : Access::Accumulate, n.from), touch(Access::Write, n.to);
  }
  void operator()(const Transpose& n) const {
    touch(Access::Read, box_of(n.from, n.columns, n.rows, n.unit));
    touch(Access::Write, box_of(n.to, n.rows, n.columns, n.unit));
  }
  void operator()(const Prefetch&) const {}
  void operator()(const Fold& n) const {
    touch(Access::Accumulate, {n.lanes, {constant(0)}, {constant(i64, 2 * n.half)}});
  }
  void operator()(const RowScan& n) const {
    Region from = box_of(n.from, n.rows, 1, 1), to = box_of(n.to, n.rows, 1, 1);
    auto lengthen = [&](Region& r, const Matrix& m) {
      Expr& extent = r.extent[static_cast<size_t>(m.along)];
      extent = add(extent, mul(sub(n.count, constant(i64, int64_t{1})), constant(i64, m.along_step)));
    };
    lengthen(from, n.from), lengthen(to, n.to);
    touch(Access::Read, std::move(from)), touch(Access::Write, std::move(to));
    touch(Access::Accumulate, {n.total, {constant(0)}, {constant(i64, n.rows)}});
  }
};

}  // namespace

bool commute(std::optional<AtomicOp> a, std::optional<AtomicOp> b) {
  return a && a == b && *a <= AtomicOp::Xor;  // the arithmetic ones come first
}

Effects effects_of(const Stmt& stmt) {
  Effects out;
  add_loads(stmt, out);
  match(stmt->op, Own{out});
  return out;
}

Effects own_effects_of(const Stmt& stmt) {
  Effects out;
  match(stmt->op, Own{out});
  return out;
}

std::set<BufferId> used_roots(const Body& body, const ProgramTables& program) {
  std::set<BufferId> out;
  for (BufferId id : used_buffers(body)) out.insert(program.root(id));
  return out;
}

std::set<BufferId> changed_roots(const Body& body, const ProgramTables& program) {
  std::set<BufferId> out;
  walk(body, [&](const Stmt& s) {
    for (const Effect& e : effects_of(s).list)
      if (e.region.valid() && e.access != Access::Read) out.insert(program.root(e.region.buffer));
  });
  return out;
}

}  // namespace tilewright::ir
