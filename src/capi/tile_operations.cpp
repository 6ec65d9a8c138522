// Tile ops: copies, gemms, reductions, scans, and their asynchronous forms.
#include <bit>

#include "capi/operations.h"
#include "support/diagnostic.h"

namespace tilewright::capi {
namespace {

Result copy(const Operation&, const Operands& o) {
  ir::CopyOptions options;
  options.prefer = o.text(2);
  const ir::TileRef from = o.tile(0), to = o.tile(1);  // in order, so that the first mistake is the one reported
  o.builder().copy(from, to, std::move(options));
  return {};
}

Result fill(const Operation&, const Operands& o) {
  const ir::TileRef to = o.tile(0);
  o.builder().fill(to, o.given(1) ? o.expr(1) : ir::constant(o.builder().buffer(to.buffer).type, int64_t{0}));
  return {};
}

ir::GemmPolicy policy(const Operation& op, const Operands& o, size_t index) {
  const int64_t policy = o.integer(index, 0);
  if (policy < 0 || policy > 2)
    fail(Code::BadOption, o.place(), fmt::format("{}: policy is {}", op.name, policy),
         "it is one of GemmWarpPolicy: Square, FullRow, FullCol");
  return static_cast<ir::GemmPolicy>(policy);
}

Result gemm(const Operation& op, const Operands& o) {
  ir::GemmOptions options;
  options.transpose_a = o.flag(3, false), options.transpose_b = o.flag(4, false);
  options.policy = policy(op, o, 5);
  options.clear = o.expr_or_none(6);
  if (options.clear && ir::constant_int(options.clear) == 0) options.clear = {};
  options.completion.queue = static_cast<ir::Queue>(op.variant);
  const ir::TileRef a = o.tile(0), b = o.tile(1), c = o.tile(2);
  o.builder().gemm(a, b, c, std::move(options));
  if (static_cast<ir::Queue>(op.variant) == ir::Queue::Wgmma) o.builder().commit(ir::Queue::Wgmma);
  return {};
}

Result sparse_gemm(const Operation& op, const Operands& o) {
  ir::GemmOptions options;
  options.transpose_a = o.flag(4, false), options.transpose_metadata = o.flag(5, false);
  options.transpose_b = o.flag(6, false);
  options.policy = policy(op, o, 7);
  options.clear = o.expr_or_none(8);
  if (options.clear && ir::constant_int(options.clear) == 0) options.clear = {};
  options.completion.queue = static_cast<ir::Queue>(op.variant);
  const ir::TileRef a = o.tile(0), e = o.tile(1), b = o.tile(2), c = o.tile(3);
  options.metadata = e;
  o.builder().gemm(a, b, c, std::move(options));
  if (static_cast<ir::Queue>(op.variant) == ir::Queue::Wgmma) o.builder().commit(ir::Queue::Wgmma);
  return {};
}

Result reduce(const Operation& op, const Operands& o) {
  const ir::TileRef from = o.tile(0), to = o.tile(1);
  o.builder().reduce(static_cast<ir::ReduceOp>(op.variant), from, to,
                     {o.integer(2, -1), o.flag(3, true), o.flag(4, false)});
  return {};
}

Result scan(const Operation& op, const Operands& o) {
  const ir::TileRef from = o.tile(0);
  o.builder().scan(static_cast<ir::ReduceOp>(op.variant), from, o.given(1) ? o.tile(1) : from, o.integer(2, 0),
                   o.flag(3, false));
  return {};
}

// Elements of the tile that a copy to or from this reference moves; none if it names only the head of one.
std::optional<int64_t> elements_of(const ir::Builder& b, const ir::TileRef& ref) {
  int64_t count = 1;
  const ir::Buffer& buffer = b.buffer(ref.buffer);
  if (ref.whole) {
    for (const ir::Expr& e : buffer.shape) {
      const auto extent = ir::constant_int(e);
      if (!extent) return {};
      count *= *extent;
    }
    return count;
  }
  if (ref.is_element()) return {};
  for (size_t d = 0; d < ref.indices.size(); ++d) {
    const ir::IndexSpec& i = ref.indices[d];
    if (!i.is_slice) continue;
    const ir::Expr begin = i.begin ? i.begin : ir::constant(0), end = i.end ? i.end : buffer.shape[d];
    const auto extent = ir::constant_int(ir::apply(ir::Operator::Sub, end, begin));
    if (!extent) return {};
    count *= *extent;
  }
  return count;
}

// The block of the lowest bit copies for all that have one, the other blocks of the cluster for themselves.
void copy_to_blocks(ir::Builder& b, const ir::TileRef& from, const ir::TileRef& to, ir::CopyOptions options,
                    int64_t mask) {
  const ir::Expr rank = b.cluster_rank();
  const auto is = [](const ir::Expr& e, int64_t value) { return ir::apply(ir::Operator::Eq, e, ir::constant(value)); };
  b.open_if(is(rank, std::countr_zero(static_cast<uint64_t>(mask))));
  ir::CopyOptions all = options;
  all.multicast = mask;
  b.copy(from, to, std::move(all));
  b.close();
  b.open_else();
  const ir::Expr bit = ir::apply(ir::Operator::Shr, ir::constant(mask), rank);
  b.open_if(is(ir::apply(ir::Operator::BitAnd, bit, ir::constant(int64_t{1})), 0));
  b.copy(from, to, std::move(options));
  b.close();
  b.close();
}

// A load announces its bytes on the barrier, then starts; a store starts and closes its group.
Result tma_copy(const Operation&, const Operands& o) {
  ir::Builder& b = o.builder();
  const ir::TileRef from = o.tile(0), to = o.tile(1);
  ir::CopyOptions options;
  if (b.buffer(to.buffer).space == ir::Space::Global) {
    options.completion.queue = ir::Queue::BulkStore;
    b.copy(from, to, std::move(options));
    b.commit(ir::Queue::BulkStore);
    return {};
  }
  if (!o.given(2))
    fail(Code::BadOption, o.place(), "tma_copy: a load without a barrier", "pass barrier=, which counts its bytes");
  const ir::TileRef barrier = o.tile(2);
  std::optional<int64_t> elements = elements_of(b, to);
  if (!elements) elements = elements_of(b, from);
  if (!elements)
    fail(Code::DynamicTile, o.place(), "tma_copy: the size of the tile is not known now",
         "give the shared buffer whole, or slices of constant length");
  b.expect(barrier, ir::constant(bytes_of(b.buffer(to.buffer).type, *elements)), false);
  options.completion.barrier = b.barrier_element(barrier);
  if (const int64_t mask = o.integer(3, 0); mask != 0)
    copy_to_blocks(b, from, to, std::move(options), mask);
  else
    b.copy(from, to, std::move(options));
  return {};
}

// The bytes are announced by the program.
Result load_to_barrier(const Operation&, const Operands& o) {
  ir::CopyOptions options;
  options.completion.barrier = o.builder().barrier_element(o.tile(2));
  const ir::TileRef from = o.tile(0), to = o.tile(1);
  o.builder().copy(from, to, std::move(options));
  return {};
}

Result store_in_bulk(const Operation&, const Operands& o) {
  ir::CopyOptions options;
  options.completion.queue = ir::Queue::BulkStore;
  const ir::TileRef from = o.tile(0), to = o.tile(1);
  o.builder().copy(from, to, std::move(options));
  return {};
}

Result copy_cluster(const Operation&, const Operands& o) {
  ir::CopyOptions options;
  const ir::TileRef from = o.tile(0), to = o.tile(1);
  options.cta = o.expr_or_none(2), options.multicast = o.integer(3, 0);
  if (options.cta && options.multicast != 0)
    fail(Code::BadOption, o.place(), "copy_cluster: both dst_block and cluster_mask",
         "dst_block sends a tile of this block to another one; cluster_mask brings one from global memory to several");
  if (o.given(4) && !options.cta)
    fail(Code::BadOption, o.place(), "copy_cluster: a remote_barrier without dst_block",
         "it is told of copies to another block; a copy from global memory waits by itself");
  if (o.given(4)) options.completion.barrier = o.builder().barrier_element(o.tile(4));
  o.builder().copy(from, to, std::move(options));
  return {};
}

Result async_copy(const Operation&, const Operands& o) {
  ir::CopyOptions options;
  options.completion.queue = ir::Queue::CpAsync;
  const ir::TileRef from = o.tile(0), to = o.tile(1);
  o.builder().copy(from, to, std::move(options));
  o.builder().commit(ir::Queue::CpAsync);
  return {};
}

Result im2col(const Operation&, const Operands& o) {
  o.builder().im2col(o.tile(0), o.tile(1),
                     {o.expr(2), o.expr(3), o.integer(4), o.integer(5), o.integer(6), o.integer(7)});
  return {};
}

constexpr const char* kGemmSignature =
    "A: tile, B: tile, C: tile, transpose_A: bool = False, transpose_B: bool = False, policy: int = 0, "
    "clear_accum: expr = False, k_pack: ignored = 1, wg_wait: ignored = 0, mbar: absent = None, "
    "annotations: ignored = None";
constexpr const char* kSparseGemmSignature =
    "A_sparse: tile, E: tile, B: tile, C: tile, transpose_A: bool = False, transpose_E: bool = False, "
    "transpose_B: bool = False, policy: int = 0, clear_accum: expr = False, wg_wait: ignored = 0, "
    "annotations: ignored = None";
constexpr const char* kReduceSignature =
    "buffer: tile, out: tile, dim: int = -1, clear: bool = True, batch: ignored = 1, nan_propagate: bool = False, "
    "annotations: ignored = None";
constexpr const char* kScanSignature =
    "src: tile, dst: tile = None, dim: int = 0, reverse: bool = False, annotations: ignored = None";

void add_reductions(std::vector<Operation>& table) {
  constexpr std::pair<const char*, const char*> kReductions[] = {
      {"reduce_sum", "The sum"},
      {"reduce_max", "The largest"},
      {"reduce_min", "The smallest"},
      {"reduce_abssum", "The sum of the absolute values"},
      {"reduce_absmax", "The largest absolute value"},
      {"reduce_bitand", "The bitwise and"},
      {"reduce_bitor", "The bitwise or"},
      {"reduce_bitxor", "The bitwise exclusive or"},
  };
  int op = 0;
  for (const auto& [name, what] : kReductions)
    table.push_back({name, "tile", kReduceSignature,
                     fmt::format("{} along one dimension of a tile, into `out`, which has the shape without it or with "
                                 "1 there. Without clear it combines with what is in `out`.",
                                 what),
                     reduce, op++});
  table.push_back({"cumsum", "tile", kScanSignature, "Running sums along one dimension; in reverse from its end.", scan,
                   static_cast<int>(ir::ReduceOp::Sum)});
  table.push_back({"cummax", "tile", kScanSignature, "Running maxima along one dimension; in reverse from its end.",
                   scan, static_cast<int>(ir::ReduceOp::Max)});
}

void need_batch(const Operands& o, ir::BufferId id, int64_t batch) {
  int64_t elements = 1;
  for (const ir::Expr& e : o.builder().buffer(id).shape) elements *= ir::constant_int(e).value_or(1);
  const char* wrong = batch < 1               ? "must be >= 1"
                      : batch > elements      ? "exceeds total output elements"
                      : elements % batch != 0 ? "must evenly divide the output elements"
                                              : nullptr;
  if (wrong)
    fail(Code::BadOption, o.place(),
         fmt::format("batch {} (finalize_reducer), but is {} of {}", wrong, batch, elements),
         "leave it out: it changes no result");
}

}  // namespace

void add_tile_operations(std::vector<Operation>& table) {
  const std::vector<Operation> rows = {
      {"copy", "tile",
       "src: tile, dst: tile, *, coalesced_width: ignored = None, disable_tma: ignored = False, "
       "eviction_policy: ignored = None, prefer_instruction: text = None, annotations: ignored = None, "
       "loop_layout: ignored = None",
       "Moves a tile between any two spaces and converts its elements. What lies outside of a global tensor reads as "
       "zero and is not written.",
       copy},
      {"fill", "tile", "buffer: tile, value: expr, annotations: ignored = None", "Sets every element of a tile.", fill},
      {"clear", "tile", "buffer: tile, annotations: ignored = None", "Sets every element of a tile to zero.", fill},
      {"gemm", "tile", kGemmSignature, "C += A B on tiles on chip; op(A) is (M, K), op(B) is (K, N), C is (M, N).",
       gemm, static_cast<int>(ir::Queue::None)},
      {"gemm_sp", "tile", kSparseGemmSignature,
       "C += A B, where A_sparse holds the kept elements of A, two of each four along a row (one of two of float32), "
       "and "
       "E has four bits for each group that say which.",
       sparse_gemm, static_cast<int>(ir::Queue::None)},
      {"wgmma_gemm_sp", "tile", kSparseGemmSignature, "A gemm_sp that does not wait: T.wait_wgmma(n) does.",
       sparse_gemm, static_cast<int>(ir::Queue::Wgmma)},
      {"wgmma_gemm", "tile", kGemmSignature, "A gemm that does not wait: T.wait_wgmma(n) does.", gemm,
       static_cast<int>(ir::Queue::Wgmma)},
      {"tma_copy", "tile",
       "src: tile, dst: tile, *, barrier: tile = None, cluster_mask: int = 0, "
       "leader_scope_threads: ignored = None, eviction_policy: ignored = None, annotations: ignored = None",
       "A bulk copy that does not wait: a load announces its bytes at `barrier` itself, which leaves "
       "T.barrier_arrive to the program; a store joins the queue of T.tma_store_wait.",
       tma_copy},
      {"load_to_barrier", "scope", "src: tile, dst: tile, barrier: tile",
       "A bulk load that does not wait, and completes at a barrier that has been told its bytes.", load_to_barrier},
      {"store_in_bulk", "scope", "src: tile, dst: tile",
       "A bulk store that does not wait, of the group that T.tma_store_arrive closes.", store_in_bulk},
      {"copy_cluster", "tile",
       "src: tile, dst: tile, *, dst_block: expr = None, cluster_mask: int = 0, remote_barrier: tile = None, "
       "eviction_policy: ignored = None, coalesced_width: ignored = None, annotations: ignored = None, "
       "loop_layout: ignored = None",
       "With `dst_block`, a copy from this block's shared memory or fragments to the tile `dst` of that block of the "
       "cluster: all threads of the block write it, and T.cluster_sync() says that it is there, or one arrival at "
       "that block's own `remote_barrier`. Without, a copy from global memory to the same tile of the blocks that "
       "`cluster_mask` has bits for: the lowest of them copies for all, other blocks for themselves. Waits.",
       copy_cluster},
      {"async_copy", "tile",
       "src: tile, dst: tile, *, coalesced_width: ignored = None, annotations: ignored = None, "
       "loop_layout: ignored = None",
       "A copy of the threads from global to shared memory that does not wait: T.ptx_wait_group(n) does.", async_copy},
      {"im2col", "tile",
       "img: tile, col: tile, nhw_step: expr, c_step: expr, kernel: int, stride: int, dilation: int, pad: int, "
       "eviction_policy: ignored = None",
       "Patches of an NHWC image as a tile of the patch matrix.", im2col},
      {"finalize_reducer", "tile", "reducer: buffer, dst: tile = None, batch: int = 1, annotations: ignored = None",
       "Makes a reducer readable, or writes what it holds to `dst`; batch, how many elements are joined at once, "
       "changes "
       "no result.",
       [](const Operation&, const Operands& o) -> Result {
         need_batch(o, o.buffer(0), o.integer(2, 1));
         o.builder().finalize_reducer(o.buffer(0));
         if (o.given(1)) o.builder().copy(o.tile(0), o.tile(1));
         return {};
       }},
  };
  table.insert(table.end(), rows.begin(), rows.end());
  add_reductions(table);
}

}  // namespace tilewright::capi
