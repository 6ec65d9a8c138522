// Buffers, tile ops, atomics, threads and order: each one call of the builder.
#include "dsl/recording.h"
#include "support/diagnostic.h"
#include "support/lines.h"

namespace tilewright {
namespace {

Expression&& result(const ir::Expr& e) { return Expression::make(e.pointer()); }

Buffer allocate(const char* what, ir::Space space, std::span<const Operand> shape, DType dtype, std::string name,
                const Location& at) {
  ir::Builder& b = recording(what, at);
  if (name.empty()) name = declared_name(at);
  return Buffer(b.alloc(space, name, exprs_of(shape, what), dtype).index);
}

std::span<const Operand> span_of(std::initializer_list<Operand> list) { return {list.begin(), list.size()}; }

}  // namespace

// ---- buffers

Buffer alloc_shared(std::initializer_list<Operand> shape, DType dtype, std::string name, Location at) {
  return allocate("alloc_shared", ir::Space::Shared, span_of(shape), dtype, std::move(name), at);
}
Buffer alloc_fragment(std::initializer_list<Operand> shape, DType dtype, std::string name, Location at) {
  return allocate("alloc_fragment", ir::Space::Fragment, span_of(shape), dtype, std::move(name), at);
}
Buffer alloc_local(std::initializer_list<Operand> shape, DType dtype, std::string name, Location at) {
  return allocate("alloc_local", ir::Space::Local, span_of(shape), dtype, std::move(name), at);
}
Buffer alloc_global(std::initializer_list<Operand> shape, DType dtype, std::string name, Location at) {
  ir::Builder& b = recording("alloc_global", at);
  if (name.empty()) name = declared_name(at);
  return Buffer(b.workspace(name, exprs_of(span_of(shape), "alloc_global"), dtype).index);
}
Var alloc_var(DType dtype, Location at) {
  const std::string name = declared_name(at);
  return Var(recording("alloc_var", at).alloc(ir::Space::Local, name.empty() ? "var" : name, {}, dtype).index);
}
Var alloc_var(DType dtype, const Operand& init, Location at) {
  Var v = alloc_var(dtype, at);
  v = init;
  return v;
}
Buffer alloc_reducer(std::initializer_list<Operand> shape, DType dtype, ReducerOp op, std::string name, Location at) {
  static constexpr ir::ReduceOp kOps[] = {ir::ReduceOp::Sum, ir::ReduceOp::Max, ir::ReduceOp::Min};
  ir::Builder& b = recording("alloc_reducer", at);
  if (name.empty()) name = declared_name(at);
  return Buffer(
      b.alloc_reducer(name, exprs_of(span_of(shape), "alloc_reducer"), dtype, kOps[static_cast<size_t>(op)]).index);
}
Buffer alloc_barrier(std::initializer_list<int64_t> arrive_counts, Location at) {
  const std::string name = declared_name(at);
  return Buffer(recording("alloc_barrier", at).alloc_barrier(name, arrive_counts).index);
}
Buffer make_tensor(const Operand& address, std::initializer_list<Operand> shape, DType dtype, Location at) {
  const std::string name = declared_name(at);
  return Buffer(recording("make_tensor", at)
                    .tensor_at(name, expr_of(address, "make_tensor"), exprs_of(span_of(shape), "make_tensor"), dtype)
                    .index);
}
Buffer reshape(const Buffer& buffer, std::initializer_list<Operand> shape, Location at) {
  return view(buffer, shape, buffer.dtype(at), at);
}
Buffer view(const Buffer& buffer, std::initializer_list<Operand> shape, DType dtype, Location at) {
  const std::string name = declared_name(at);
  return Buffer(
      recording("view", at).view(name, ir::BufferId{buffer.id(at)}, exprs_of(span_of(shape), "view"), dtype).index);
}

Layout make_swizzled_layout(const Buffer&) { return Layout(Layout::Kind::Swizzled); }

void annotate_layout(const Buffer& buffer, const Layout& layout, Location at) {
  ir::Builder& b = recording("annotate_layout", at);
  const ir::BufferId id{buffer.id(at)};
  ir::LayoutAnnotation out;
  out.kind = layout.kind == Layout::Kind::Linear     ? ir::LayoutHint::Linear
             : layout.kind == Layout::Kind::Swizzled ? ir::LayoutHint::Swizzled
                                                     : ir::LayoutHint::Function;
  out.replicate = layout.replicate;
  if (layout.kind == Layout::Kind::Function) {
    std::vector<Value> index;
    for (size_t d = 0; d < b.buffer(id).rank(); ++d) {
      const ir::Expr v = b.layout_index("i", i32);
      out.vars.push_back(v.as<ir::Var>()->id);
      index.emplace_back(v.pointer());
    }
    out.image = exprs_of(layout.forward(index), "a layout");
  }
  b.annotate_layout(id, std::move(out));
}
void annotate_safe_value(const Buffer& buffer, const Operand& value, Location at) {
  recording("annotate_safe_value", at)
      .annotate_fill(ir::BufferId{buffer.id(at)}, expr_of(value, "annotate_safe_value"));
}
void annotate_plan(const std::string& lines, Location at) {
  recording("annotate_plan", at).annotate_plan(lines_in(lines));
}
void use_swizzle(int64_t panel_size, const std::string& order, Location at) {
  ir::Builder& b = recording("use_swizzle", at);
  const bool column = order == "column" || order == "col";
  if (!column && order != "row")
    fail(Code::BadOption, b.location(), fmt::format("use_swizzle: order is '{}'", order),
         "it is \"row\" or \"column\"");
  b.use_swizzle(panel_size, column ? ir::RasterOrder::Column : ir::RasterOrder::Row);
}

// ---- tile ops

void copy(const Tile& from, const Tile& to, CopyOptions options, Location at) {
  ir::CopyOptions o;
  o.prefer = std::move(options.prefer_instruction);
  recording("copy", at).copy(TileAccess::of(from), TileAccess::of(to), std::move(o));
}
void copy_cluster(const Tile& from, const Tile& to, const Operand& dst_block, Location at) {
  ir::CopyOptions o;
  o.cta = expr_of(dst_block, "copy_cluster");
  recording("copy_cluster", at).copy(TileAccess::of(from), TileAccess::of(to), std::move(o));
}
void copy_cluster(const Tile& from, const Tile& to, const Operand& dst_block, const Tile& remote_barrier, Location at) {
  ir::Builder& b = recording("copy_cluster", at);
  ir::CopyOptions o;
  o.cta = expr_of(dst_block, "copy_cluster"), o.completion.barrier = b.barrier_element(TileAccess::of(remote_barrier));
  b.copy(TileAccess::of(from), TileAccess::of(to), std::move(o));
}
void cluster_sync(Location at) { recording("cluster_sync", at).sync(ir::SyncScope::Cluster); }
void cluster_arrive(Location at) { recording("cluster_arrive", at).sync(ir::SyncScope::Cluster, {}, 0, true); }
void cluster_wait(Location at) { recording("cluster_wait", at).sync(ir::SyncScope::Cluster, {}, 0, false, true); }
void fill(const Tile& to, const Operand& value, Location at) {
  recording("fill", at).fill(TileAccess::of(to), expr_of(value, "fill"));
}
void clear(const Tile& to, Location at) {
  ir::Builder& b = recording("clear", at);
  const ir::TileRef ref = TileAccess::of(to);
  b.fill(ref, ir::constant(b.buffer(ref.buffer).type, int64_t{0}));
}

namespace {
constexpr ir::GemmPolicy kPolicies[] = {ir::GemmPolicy::Square, ir::GemmPolicy::FullRow, ir::GemmPolicy::FullCol};

void emit_gemm(const char* what, const Tile& A, const Tile& B, const Tile& C, const GemmOptions& options,
               ir::Queue queue, const Location& at) {
  ir::GemmOptions o;
  o.transpose_a = options.transpose_A, o.transpose_b = options.transpose_B;
  o.policy = kPolicies[static_cast<size_t>(options.policy)];
  if (options.clear_accum.node()) o.clear = expr_of(options.clear_accum, what);
  o.completion.queue = queue;
  recording(what, at).gemm(TileAccess::of(A), TileAccess::of(B), TileAccess::of(C), std::move(o));
}
void reduce(const char* what, ir::ReduceOp op, const Tile& from, const Tile& to, const ReduceOptions& o,
            const Location& at) {
  recording(what, at).reduce(op, TileAccess::of(from), TileAccess::of(to), {o.dim, o.clear, o.nan_propagate});
}
}  // namespace

void gemm(const Tile& A, const Tile& B, const Tile& C, GemmOptions options, Location at) {
  emit_gemm("gemm", A, B, C, options, ir::Queue::None, at);
}
void gemm_sp(const Tile& A_sparse, const Tile& E, const Tile& B, const Tile& C, SparseGemmOptions options,
             Location at) {
  ir::GemmOptions o;
  o.metadata = TileAccess::of(E);
  o.transpose_a = options.transpose_A, o.transpose_b = options.transpose_B;
  o.transpose_metadata = options.transpose_E;
  o.policy = kPolicies[static_cast<size_t>(options.policy)];
  if (options.clear_accum.node()) o.clear = expr_of(options.clear_accum, "gemm_sp");
  recording("gemm_sp", at).gemm(TileAccess::of(A_sparse), TileAccess::of(B), TileAccess::of(C), std::move(o));
}
void wgmma_gemm(const Tile& A, const Tile& B, const Tile& C, GemmOptions options, Location at) {
  emit_gemm("wgmma_gemm", A, B, C, options, ir::Queue::Wgmma, at);
  recording("wgmma_gemm", at).commit(ir::Queue::Wgmma);  // a group of its own, as wait_wgmma counts them
}
void reduce_sum(const Tile& from, const Tile& to, ReduceOptions o, Location at) {
  reduce("reduce_sum", ir::ReduceOp::Sum, from, to, o, at);
}
void reduce_max(const Tile& from, const Tile& to, ReduceOptions o, Location at) {
  reduce("reduce_max", ir::ReduceOp::Max, from, to, o, at);
}
void reduce_min(const Tile& from, const Tile& to, ReduceOptions o, Location at) {
  reduce("reduce_min", ir::ReduceOp::Min, from, to, o, at);
}
void reduce_abssum(const Tile& from, const Tile& to, ReduceOptions o, Location at) {
  reduce("reduce_abssum", ir::ReduceOp::AbsSum, from, to, o, at);
}
void reduce_absmax(const Tile& from, const Tile& to, ReduceOptions o, Location at) {
  reduce("reduce_absmax", ir::ReduceOp::AbsMax, from, to, o, at);
}
void reduce_bitand(const Tile& from, const Tile& to, ReduceOptions o, Location at) {
  reduce("reduce_bitand", ir::ReduceOp::BitAnd, from, to, o, at);
}
void reduce_bitor(const Tile& from, const Tile& to, ReduceOptions o, Location at) {
  reduce("reduce_bitor", ir::ReduceOp::BitOr, from, to, o, at);
}
void reduce_bitxor(const Tile& from, const Tile& to, ReduceOptions o, Location at) {
  reduce("reduce_bitxor", ir::ReduceOp::BitXor, from, to, o, at);
}
void cumsum(const Tile& from, const Tile& to, ScanOptions o, Location at) {
  recording("cumsum", at).scan(ir::ReduceOp::Sum, TileAccess::of(from), TileAccess::of(to), o.dim, o.reverse);
}
void cummax(const Tile& from, const Tile& to, ScanOptions o, Location at) {
  recording("cummax", at).scan(ir::ReduceOp::Max, TileAccess::of(from), TileAccess::of(to), o.dim, o.reverse);
}
void finalize_reducer(const Buffer& reducer, Location at) {
  recording("finalize_reducer", at).finalize_reducer(ir::BufferId{reducer.id(at)});
}
void im2col(const Buffer& image, const Tile& to, const Operand& nhw_step, const Operand& c_step, Im2colOptions o,
            Location at) {
  recording("im2col", at)
      .im2col(TileAccess::of(Tile(image, at)), TileAccess::of(to),
              {expr_of(nhw_step, "im2col"), expr_of(c_step, "im2col"), o.kernel, o.stride, o.dilation, o.pad});
}

// ---- atomics

namespace {
Expression&& atomic(const char* what, ir::AtomicOp op, const Ref& to, const Operand& value, bool want_old,
                    const Location& at, const Operand& compare = {}) {
  ir::Builder& b = recording(what, at);
  const ir::Expr old = b.atomic(op, TileAccess::of(to), value.node() ? expr_of(value, what) : ir::Expr{}, want_old,
                                ir::MemoryOrder::Relaxed, compare.node() ? expr_of(compare, what) : ir::Expr{});
  return result(old);
}
void atomic_tile(const char* what, ir::Combine combine, const Tile& to, const Buffer& from, const Location& at) {
  ir::CopyOptions o;
  o.combine = combine;
  recording(what, at).copy(TileAccess::of(Tile(from, at)), TileAccess::of(to), std::move(o));
}
}  // namespace

Expression&& atomic_add(const Ref& to, const Operand& v, AtomicOptions o, Location at) {
  return atomic("atomic_add", ir::AtomicOp::Add, to, v, o.return_prev, at);
}
Expression&& atomic_max(const Ref& to, const Operand& v, AtomicOptions o, Location at) {
  return atomic("atomic_max", ir::AtomicOp::Max, to, v, o.return_prev, at);
}
Expression&& atomic_min(const Ref& to, const Operand& v, AtomicOptions o, Location at) {
  return atomic("atomic_min", ir::AtomicOp::Min, to, v, o.return_prev, at);
}
Expression&& atomic_and(const Ref& to, const Operand& v, AtomicOptions o, Location at) {
  return atomic("atomic_and", ir::AtomicOp::And, to, v, o.return_prev, at);
}
Expression&& atomic_or(const Ref& to, const Operand& v, AtomicOptions o, Location at) {
  return atomic("atomic_or", ir::AtomicOp::Or, to, v, o.return_prev, at);
}
Expression&& atomic_xor(const Ref& to, const Operand& v, AtomicOptions o, Location at) {
  return atomic("atomic_xor", ir::AtomicOp::Xor, to, v, o.return_prev, at);
}
Expression&& atomic_exchange(const Ref& to, const Operand& v, Location at) {
  return atomic("atomic_exchange", ir::AtomicOp::Exchange, to, v, true, at);
}
Expression&& atomic_cas(const Ref& to, const Operand& compare, const Operand& v, Location at) {
  return atomic("atomic_cas", ir::AtomicOp::CompareExchange, to, v, true, at, compare);
}
Expression&& atomic_load(const Ref& from, Location at) {
  return atomic("atomic_load", ir::AtomicOp::Load, from, {}, true, at);
}
void atomic_store(const Ref& to, const Operand& v, Location at) {
  atomic("atomic_store", ir::AtomicOp::Store, to, v, false, at);
}
void atomic_add(const Tile& to, const Buffer& from, Location at) {
  atomic_tile("atomic_add", ir::Combine::Add, to, from, at);
}
void atomic_max(const Tile& to, const Buffer& from, Location at) {
  atomic_tile("atomic_max", ir::Combine::Max, to, from, at);
}
void atomic_min(const Tile& to, const Buffer& from, Location at) {
  atomic_tile("atomic_min", ir::Combine::Min, to, from, at);
}

// ---- threads and warps

Value get_thread_binding(int dim, Location at) {
  return Value(recording("get_thread_binding", at).thread_index(dim).pointer());
}
Value get_block_binding(int dim, Location at) {
  return Value(recording("get_block_binding", at).block_index(dim).pointer());
}
Expression&& get_lane_idx(Location at) {
  return result(ir::binary(ir::BinaryOp::FloorMod, recording("get_lane_idx", at).linear_thread(), ir::constant(32)));
}
Expression&& get_warp_idx(Location at) {
  return result(ir::binary(ir::BinaryOp::FloorDiv, recording("get_warp_idx", at).linear_thread(), ir::constant(32)));
}

namespace {
Expression&& shuffle(const char* what, ir::ShuffleKind kind, const Operand& value, const Operand& lane, int64_t width,
                     const Location& at) {
  return result(recording(what, at).shuffle(kind, expr_of(value, what), expr_of(lane, what), width));
}
Expression&& vote(const char* what, ir::VoteKind kind, const Operand& value, const Location& at) {
  return result(recording(what, at).vote(kind, value.node() ? expr_of(value, what) : ir::Expr{}));
}
Expression&& warp_reduce(const char* what, ir::Operator op, const Operand& value, const Location& at) {
  return result(recording(what, at).warp_reduce(op, expr_of(value, what)));
}
}  // namespace

Expression&& shfl_sync(const Operand& v, const Operand& lane, int64_t width, Location at) {
  return shuffle("shfl_sync", ir::ShuffleKind::Index, v, lane, width, at);
}
Expression&& shfl_up(const Operand& v, const Operand& delta, int64_t width, Location at) {
  return shuffle("shfl_up", ir::ShuffleKind::Up, v, delta, width, at);
}
Expression&& shfl_down(const Operand& v, const Operand& delta, int64_t width, Location at) {
  return shuffle("shfl_down", ir::ShuffleKind::Down, v, delta, width, at);
}
Expression&& shfl_xor(const Operand& v, const Operand& mask, int64_t width, Location at) {
  return shuffle("shfl_xor", ir::ShuffleKind::Xor, v, mask, width, at);
}
Expression&& any_sync(const Operand& p, Location at) { return vote("any_sync", ir::VoteKind::Any, p, at); }
Expression&& all_sync(const Operand& p, Location at) { return vote("all_sync", ir::VoteKind::All, p, at); }
Expression&& ballot_sync(const Operand& p, Location at) { return vote("ballot_sync", ir::VoteKind::Ballot, p, at); }
Expression&& match_any_sync(const Operand& v, Location at) {
  return vote("match_any_sync", ir::VoteKind::MatchAny, v, at);
}
Expression&& match_all_sync(const Operand& v, Location at) {
  return vote("match_all_sync", ir::VoteKind::MatchAll, v, at);
}
Expression&& activemask(Location at) { return vote("activemask", ir::VoteKind::ActiveMask, {}, at); }
Expression&& syncthreads_and(const Operand& p, Location at) {
  return vote("syncthreads_and", ir::VoteKind::BlockAll, p, at);
}
Expression&& syncthreads_or(const Operand& p, Location at) {
  return vote("syncthreads_or", ir::VoteKind::BlockAny, p, at);
}
Expression&& syncthreads_count(const Operand& p, Location at) {
  return vote("syncthreads_count", ir::VoteKind::BlockCount, p, at);
}
Expression&& warp_reduce_sum(const Operand& v, Location at) {
  return warp_reduce("warp_reduce_sum", ir::Operator::Add, v, at);
}
Expression&& warp_reduce_max(const Operand& v, Location at) {
  return warp_reduce("warp_reduce_max", ir::Operator::Max, v, at);
}
Expression&& warp_reduce_min(const Operand& v, Location at) {
  return warp_reduce("warp_reduce_min", ir::Operator::Min, v, at);
}

// ---- order

void sync_warp(Location at) { recording("sync_warp", at).sync(ir::SyncScope::Warp); }
void sync_threads(Location at) { recording("sync_threads", at).sync(ir::SyncScope::Block); }
void sync_threads(const Operand& id, int64_t count, Location at) {
  recording("sync_threads", at).sync(ir::SyncScope::Named, expr_of(id, "sync_threads"), count);
}
void named_barrier_arrive(const Operand& id, int64_t count, Location at) {
  recording("named_barrier_arrive", at).sync(ir::SyncScope::Named, expr_of(id, "named_barrier_arrive"), count, true);
}
void sync_grid(Location at) { recording("sync_grid", at).sync(ir::SyncScope::Grid); }
void pdl_sync(Location at) { recording("pdl_sync", at).sync(ir::SyncScope::Launches, {}, 0, false, true); }
void pdl_trigger(Location at) { recording("pdl_trigger", at).sync(ir::SyncScope::Launches, {}, 0, true); }
void barrier_arrive(const Tile& barrier, Location at) {
  recording("barrier_arrive", at).arrive(TileAccess::of(barrier));
}
void barrier_arrive_by_warps(const Tile& barrier, Location at) {
  recording("barrier_arrive_by_warps", at).arrive(TileAccess::of(barrier), ir::Queue::None, {}, ir::ArriveBy::Warp);
}
void barrier_wait(const Tile& barrier, const Operand& parity, Location at) {
  recording("barrier_wait", at).wait(TileAccess::of(barrier), expr_of(parity, "barrier_wait"));
}
void mbarrier_expect_tx(const Tile& barrier, const Operand& bytes, Location at) {
  recording("mbarrier_expect_tx", at).expect(TileAccess::of(barrier), expr_of(bytes, "mbarrier_expect_tx"), false);
}
void mbarrier_arrive_expect_tx(const Tile& barrier, const Operand& bytes, Location at) {
  recording("mbarrier_arrive_expect_tx", at)
      .expect(TileAccess::of(barrier), expr_of(bytes, "mbarrier_arrive_expect_tx"), true);
}

namespace {
void async(const char* what, const Tile& from, const Tile& to, ir::Completion completion, const Location& at) {
  ir::CopyOptions o;
  o.completion = std::move(completion);
  recording(what, at).copy(TileAccess::of(from), TileAccess::of(to), std::move(o));
}
}  // namespace

void tma_copy(const Tile& from, const Tile& to, const Tile& barrier, Location at) {
  async("tma_copy", from, to, {ir::Queue::None, recording("tma_copy", at).barrier_element(TileAccess::of(barrier))},
        at);
}
void tma_store(const Tile& from, const Tile& to, Location at) {
  async("tma_store", from, to, {ir::Queue::BulkStore, {}}, at);
  recording("tma_store", at).commit(ir::Queue::BulkStore);
}
void tma_store_wait(int64_t pending, Location at) {
  recording("tma_store_wait", at).drain(ir::Queue::BulkStore, pending);
}
void async_copy(const Tile& from, const Tile& to, Location at) {
  async("async_copy", from, to, {ir::Queue::CpAsync, {}}, at);
  recording("async_copy", at).commit(ir::Queue::CpAsync);
}
void cp_async_wait(int64_t pending, Location at) { recording("cp_async_wait", at).drain(ir::Queue::CpAsync, pending); }
void wait_wgmma(int64_t pending, Location at) { recording("wait_wgmma", at).drain(ir::Queue::Wgmma, pending); }
void fence_proxy_async(Location at) { recording("fence_proxy_async", at).fence(ir::FenceProxy::Async); }
void set_max_nreg(int64_t registers, Location at) { recording("set_max_nreg", at).set_registers(registers); }

// ---- checks and output

void assume(const Operand& condition, Location at) { recording("assume", at).assume(expr_of(condition, "assume")); }
void device_assert(const Operand& condition, std::string message, Location at) {
  recording("device_assert", at).check(expr_of(condition, "device_assert"), message);
}
void print(const Operand& value, std::string message, Location at) {
  recording("print", at).print(message, {expr_of(value, "print")});
}
void print(const Buffer& buffer, std::string message, Location at) {
  recording("print", at).print(message, {}, ir::BufferId{buffer.id(at)});
}
void print(std::string message, Location at) { recording("print", at).print(message, {}); }

}  // namespace tilewright
