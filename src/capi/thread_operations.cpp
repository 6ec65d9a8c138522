// Stores, atomics, warps, order, checks: the code of threads.
#include "capi/operations.h"
#include "ir/rewrite.h"
#include "support/diagnostic.h"
#include "support/lines.h"

namespace tilewright::capi {
namespace {

Result store(const Operation& op, const Operands& o) {
  const ir::TileRef to = o.tile(0);
  o.builder().store(to, o.expr(1), static_cast<ir::Queue>(op.variant));
  return {};
}
Result update(const Operation&, const Operands& o) {
  constexpr ir::Operator kOperators[] = {ir::Operator::Add,    ir::Operator::Sub,      ir::Operator::Mul,
                                         ir::Operator::Div,    ir::Operator::FloorDiv, ir::Operator::FloorMod,
                                         ir::Operator::BitAnd, ir::Operator::BitOr,    ir::Operator::BitXor,
                                         ir::Operator::Shl,    ir::Operator::Shr};
  const size_t op = o.word(0, {"+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>"});
  const ir::TileRef to = o.tile(1);
  o.builder().update(kOperators[op], to, o.expr(2));
  return {};
}

ir::MemoryOrder memory_order(const Operands& o, size_t i) {
  constexpr ir::MemoryOrder kOrders[] = {ir::MemoryOrder::Relaxed,        ir::MemoryOrder::Acquire,
                                         ir::MemoryOrder::Acquire,        ir::MemoryOrder::Release,
                                         ir::MemoryOrder::AcquireRelease, ir::MemoryOrder::SequentiallyConsistent};
  return kOrders[o.word(i, {"relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"})];
}

// Whether all threads are sure to have the same value: of constants, arguments of the call, indices of blocks, and
// memory that is not a thread's own.
bool surely_alike(const ir::Builder& b, const ir::Expr& e) {
  bool alike = true;
  ir::walk(e, [&](const ir::Expr& x) {
    if (x.as<ir::Intrinsic>()) alike = false;
    if (const auto* n = x.as<ir::Load>()) {
      const ir::Buffer& from = b.buffer(n->buffer);
      if (from.space != ir::Space::Global && from.space != ir::Space::Shared) alike = false;
    }
    if (const auto* n = x.as<ir::Var>()) {
      bool known = ir::is_free_var(n->id);
      for (int d = 0; d < 3; ++d) {
        const ir::Expr block = b.block_index(d);
        known = known || (block.as<ir::Var>() && block.as<ir::Var>()->id == n->id);
      }
      alike = alike && known;
    }
  });
  return alike;
}

// A value for every element of a box. Where threads have values of their own, or boxes, each of them goes through its
// elements; else each element is changed once, and the threads share them.
void atomic_on_elements(ir::AtomicOp kind, const Operands& o, ir::TileRef to) {
  ir::Builder& b = o.builder();
  const ir::Buffer& buffer = b.buffer(to.buffer);
  if (to.whole) to.indices.assign(buffer.rank(), {{}, {}, true});
  to.whole = false;
  const ir::Expr value = o.expr(1);
  bool alike = surely_alike(b, value);
  std::vector<size_t> dims;
  Exprs extents, begins;
  for (size_t d = 0; d < to.indices.size(); ++d) {
    ir::IndexSpec& index = to.indices[d];
    if (index.begin) alike = alike && surely_alike(b, index.begin);
    if (!index.is_slice) continue;
    const ir::Expr end = index.end ? index.end : buffer.shape[d];
    begins.push_back(index.begin ? index.begin : ir::constant(i32, int64_t{0}));
    extents.push_back(ir::apply(ir::Operator::Sub, end, begins.back(), o.place()));
    dims.push_back(d);
  }
  const std::vector<std::string> names{"i", "j", "k", "l", "m", "n", "o", "p"};
  Exprs points;
  if (alike) points = b.open_map(names, extents);
  for (size_t i = 0; !alike && i < dims.size(); ++i)
    points.push_back(b.open_for(names[i], ir::constant(i32, int64_t{0}), extents[i]));
  for (size_t i = 0; i < dims.size(); ++i)
    to.indices[dims[i]] = {ir::apply(ir::Operator::Add, begins[i], points[i], o.place()), {}, false};
  b.atomic(kind, to, value, false, memory_order(o, 2));
  for (size_t i = 0; i < (alike ? 1 : dims.size()); ++i) b.close();
}

// With a value: on one element. With a tile: on every element of the destination.
Result atomic_update(const Operation& op, const Operands& o) {
  const auto kind = static_cast<ir::AtomicOp>(op.variant);
  const ir::TileRef to = o.tile(0);
  const bool to_element = to.is_element() || o.builder().buffer(to.buffer).rank() == 0;
  if (to_element && o.is_scalar(1)) {
    const ir::Expr old = o.builder().atomic(kind, to, o.expr(1), o.flag(3, false), memory_order(o, 2));
    return old ? Result(old) : Result();
  }
  if (kind != ir::AtomicOp::Add && kind != ir::AtomicOp::Max && kind != ir::AtomicOp::Min)
    fail(Code::NeedsElement, o.place(), fmt::format("{} of a tile", op.name), "give an index in every dimension");
  if (o.flag(3, false))
    fail(Code::BadOption, o.place(), fmt::format("{}: return_prev of a tile", op.name),
         "only an element has an old value: give an index in every dimension");
  if (!o.is_memory(1) || o.is_scalar(1)) {
    atomic_on_elements(kind, o, to);
    return {};
  }
  ir::CopyOptions options;
  options.combine = kind == ir::AtomicOp::Add   ? ir::Combine::Add
                    : kind == ir::AtomicOp::Max ? ir::Combine::Max
                                                : ir::Combine::Min;
  o.builder().copy(o.tile(1), to, std::move(options));
  return {};
}

// Adds to each of a few elements that follow each other: one atomic an element, as the hardware's packed ones are.
Result atomic_add_run(const Operation& op, const Operands& o) {
  const int64_t count = op.variant;
  const auto to = o.run(0, count);
  Exprs values;
  if (o.is_memory(1))
    for (const ir::TileRef& from : o.run(1, count)) values.push_back(o.builder().load(from));
  else
    values = o.exprs(1);
  if (values.size() == 1) values.resize(static_cast<size_t>(count), values[0]);
  if (values.size() != to.size())
    fail(Code::BadOption, o.place(), fmt::format("{} of {} values", op.name, values.size()),
         fmt::format("give {} values, or one for all", count));
  Exprs old;
  for (size_t k = 0; k < to.size(); ++k)
    old.push_back(o.builder().atomic(ir::AtomicOp::Add, to[k], values[k], o.flag(2, false), memory_order(o, 3)));
  return o.flag(2, false) ? Result(old) : Result();
}

// A load acquires and a store releases; the other way round means nothing.
ir::MemoryOrder order_of(const Operation& op, const Operands& o, size_t i, std::string_view refused) {
  const std::string word = o.text(i, "seq_cst");
  static constexpr std::string_view kOrders[] = {"relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"};
  const bool known = std::find(std::begin(kOrders), std::end(kOrders), word) != std::end(kOrders);
  if (!known || word == "acq_rel" || refused.find(word) != std::string_view::npos)
    fail(Code::BadOption, o.place(), fmt::format("{} does not support memory_order '{}'", op.name, word),
         op.name == "atomic_load" ? "it is relaxed, consume, acquire or seq_cst" : "it is relaxed, release or seq_cst");
  return memory_order(o, i);
}

Result atomic_load(const Operation& op, const Operands& o) {
  return o.builder().atomic(ir::AtomicOp::Load, o.tile(0), {}, true, order_of(op, o, 1, "release"));
}
Result atomic_store(const Operation& op, const Operands& o) {
  o.builder().atomic(ir::AtomicOp::Store, o.tile(0), o.expr(1), false, order_of(op, o, 2, "acquire consume"));
  return {};
}
Result atomic_cas(const Operation&, const Operands& o) {
  return o.builder().atomic(ir::AtomicOp::CompareExchange, o.tile(0), o.expr(2), true, ir::MemoryOrder::Relaxed,
                            o.expr(1));
}

Result shuffle(const Operation& op, const Operands& o) {
  return o.builder().shuffle(static_cast<ir::ShuffleKind>(op.variant), o.expr(0), o.expr(1), o.integer(2, 32));
}
// The lanes that a vote is among, as bits; none given, and all of them, are the lanes that are here. Lanes that vote at
// once may have masks of their own: those of a group of lanes among themselves.
ir::Expr some_lanes(const Operation& op, const Operands& o) {
  const ir::Expr mask = o.expr_or_none(1);
  if (!mask) return mask;
  if (!mask->type.is_int())
    fail(Code::NeedsIntegers, o.place(),
         fmt::format("the mask of {} is an integer, but this is {}", op.name, mask->type.name()),
         "what the lanes vote about comes first, then the lanes that are asked, as bits");
  constexpr int64_t kAll = 0xFFFFFFFF;
  const auto known = ir::constant_int(mask);
  return known && (*known & kAll) == kAll ? ir::Expr{} : o.builder().let("", ir::cast(mask, u32));
}
Result vote(const Operation& op, const Operands& o) {
  ir::Builder& b = o.builder();
  const auto kind = static_cast<ir::VoteKind>(op.variant);
  const ir::Expr value = o.expr_or_none(0), mask = some_lanes(op, o), none = ir::constant(u32, int64_t{0});
  if (!mask) return b.vote(kind, value);
  auto among = [&](const ir::Expr& lanes) { return ir::apply(ir::Operator::BitAnd, lanes, mask, o.place()); };
  switch (kind) {
    case ir::VoteKind::Any:
      return ir::apply(ir::Operator::Ne, among(b.vote(ir::VoteKind::Ballot, value)), none, o.place());
    case ir::VoteKind::All: {
      const ir::Expr no = ir::logical_not(ir::as_condition(value, o.place()));
      return ir::apply(ir::Operator::Eq, among(b.vote(ir::VoteKind::Ballot, no)), none, o.place());
    }
    case ir::VoteKind::MatchAll: {
      const ir::Expr here = b.let("", among(b.vote(ir::VoteKind::ActiveMask, {})));
      const ir::Expr same = ir::apply(ir::Operator::Eq, among(b.vote(ir::VoteKind::MatchAny, value)), here, o.place());
      return ir::select(same, here, none);
    }
    default: return among(b.vote(kind, value));
  }
}
Result warp_reduce(const Operation& op, const Operands& o) {
  return o.builder().warp_reduce(static_cast<ir::Operator>(op.variant), o.expr(0));
}
// The linear index of the thread, divided into warps or groups of them, or its rest.
Result lane_index(const Operation&, const Operands& o) {
  return ir::binary(ir::BinaryOp::FloorMod, o.builder().linear_thread(), ir::constant(o.integer(0, 32)));
}
Result warp_index(const Operation& op, const Operands& o) {
  const int64_t threads = o.integer(0, 32) * (op.variant ? o.integer(1, 4) : 1);
  return ir::binary(ir::BinaryOp::FloorDiv, o.builder().linear_thread(), ir::constant(threads));
}
Result is_first_of_group(const Operation&, const Operands& o) {
  const int64_t threads = o.integer(0, 0);
  ir::Expr thread = o.builder().linear_thread();
  if (threads > 0) thread = ir::binary(ir::BinaryOp::FloorMod, thread, ir::constant(threads));
  return ir::binary(ir::BinaryOp::Eq, thread, ir::constant(0));
}

Result print(const Operation&, const Operands& o) {
  ir::Builder& b = o.builder();
  const std::string message = o.text(1);
  if (!o.given(0)) {
    b.print(message, {});
  } else if (o.is_scalar(0)) {
    b.print(message, {o.expr(0)});
  } else {
    b.print(message, {}, o.buffer(0));
  }
  return {};
}

Result sync_threads(const Operation& op, const Operands& o) {
  if (!o.given(0))
    o.builder().sync(ir::SyncScope::Block);
  else
    o.builder().sync(ir::SyncScope::Named, o.expr(0), o.integer(1), op.variant != 0);
  return {};
}

Result call_extern(const Operation&, const Operands& o) {
  ir::Call call;
  call.function = o.text(1);
  call.args = o.exprs(2);
  call.source = o.text(3);
  const std::string type = o.text(0);
  const bool result = !type.empty() && type != "handle" && type != "void";
  const ir::Expr value = o.builder().call(std::move(call), result ? std::optional(o.dtype(0)) : std::nullopt);
  return value ? Result(value) : Result();
}

Result warp_mma(const Operation&, const Operands& o) {
  o.builder().mma(o.tile(0), o.tile(1), o.tile(2), o.integer(3), o.integer(4, 16));
  return {};
}
Result load_matrix(const Operation&, const Operands& o) {
  o.builder().load_matrix(o.tile(0), o.tile(1), o.integer(2), o.flag(3, false));
  return {};
}

constexpr const char* kAtomicSignature =
    "dst: tile, value: tile, memory_order: text = None, return_prev: bool = False, use_tma: ignored = False, "
    "annotations: ignored = None";

void add_warp_operations(std::vector<Operation>& table) {
  constexpr const char* kRest = "width: int = 32, mask: ignored = None";
  for (const auto& [name, lane, kind] : {std::tuple{"shfl_sync", "srcLane", ir::ShuffleKind::Index},
                                         {"shfl_up", "delta", ir::ShuffleKind::Up},
                                         {"shfl_down", "delta", ir::ShuffleKind::Down},
                                         {"shfl_xor", "delta", ir::ShuffleKind::Xor}})
    table.push_back({name, "thread", fmt::format("value: expr, {}: expr, {}", lane, kRest),
                     "The value of another lane of the warp.", shuffle, static_cast<int>(kind)});
  struct {
    const char* name;
    ir::VoteKind kind;
    const char* doc;
  } const votes[] = {
      {"any_sync", ir::VoteKind::Any, "Whether a lane of the warp, or of the mask, has it true."},
      {"all_sync", ir::VoteKind::All, "Whether all lanes of the warp, or of the mask, have it true."},
      {"ballot_sync", ir::VoteKind::Ballot, "The lanes of the warp, or of the mask, that have it true, as bits."},
      {"ballot", ir::VoteKind::Ballot, "The lanes of the warp, or of the mask, that have it true, as bits."},
      {"match_any_sync", ir::VoteKind::MatchAny,
       "The lanes of the warp, or of the mask, whose value is mine, as bits."},
      {"match_all_sync", ir::VoteKind::MatchAll,
       "All lanes, or those of the mask, as bits if their values are equal, else 0."},
      {"syncthreads_and", ir::VoteKind::BlockAll, "A barrier; whether all threads have it true."},
      {"syncthreads_or", ir::VoteKind::BlockAny, "A barrier; whether a thread has it true."},
      {"syncthreads_count", ir::VoteKind::BlockCount, "A barrier; how many threads have it true."},
  };
  for (const auto& v : votes) {
    const bool match = v.kind == ir::VoteKind::MatchAny || v.kind == ir::VoteKind::MatchAll;
    const bool of_block = std::string_view(v.name).starts_with("syncthreads");
    table.push_back({v.name, "thread",
                     fmt::format("{}: expr{}", match ? "value" : "predicate", of_block ? "" : ", mask: expr = None"),
                     v.doc, vote, static_cast<int>(v.kind)});
  }
  table.push_back({"activemask", "thread", "", "The lanes of the warp that are here, as bits.", vote,
                   static_cast<int>(ir::VoteKind::ActiveMask)});
  for (const auto& [name, op] : {std::pair{"warp_reduce_sum", ir::Operator::Add},
                                 {"warp_reduce_max", ir::Operator::Max},
                                 {"warp_reduce_min", ir::Operator::Min},
                                 {"warp_reduce_bitand", ir::Operator::BitAnd},
                                 {"warp_reduce_bitor", ir::Operator::BitOr}})
    table.push_back({name, "thread", "value: expr", "Over the whole warp; every lane gets the result.", warp_reduce,
                     static_cast<int>(op)});
  table.push_back({"warp_mma", "thread", "a: tile, b: tile, c: tile, depth: int, rows: int = 16",
                   "C += A B of a warp, on elements of its threads' arrays from these on, where mma.m16n8k* has them.",
                   warp_mma});
  table.push_back({"load_matrix", "thread", "src: tile, dst: tile, matrices: int, transpose: bool = False",
                   "Each lane takes its elements of matrices of 8 rows of 16 bytes; lane 8 m + r points at row r of "
                   "matrix m.",
                   load_matrix});
  table.push_back(
      {"get_lane_idx", "thread", "warp_size: int = None", "The lane of this thread in its warp.", lane_index});
  for (const char* name : {"get_warp_idx", "get_warp_idx_sync"})
    table.push_back(
        {name, "thread", "warp_size: int = None", "Which warp of the block this thread is in.", warp_index, 0});
  table.push_back({"get_warp_group_idx", "thread", "warp_size: int = None, warps_per_group: int = None",
                   "Which group of warps this thread is in.", warp_index, 1});
  table.push_back({"shuffle_elect", "thread", "thread_extent: int",
                   "Whether this is the first thread of its group of that many; of the block where that is 0.",
                   is_first_of_group});
}

void add_atomics(std::vector<Operation>& table) {
  struct {
    const char* name;
    ir::AtomicOp op;
    const char* doc;
  } const updates[] = {
      {"atomic_add", ir::AtomicOp::Add, "Adds to an element, or a tile to a tile, atomically."},
      {"atomic_max", ir::AtomicOp::Max, "Raises an element, or a tile by a tile, atomically."},
      {"atomic_min", ir::AtomicOp::Min, "Lowers an element, or a tile by a tile, atomically."},
      {"atomic_and", ir::AtomicOp::And, "Bitwise and into an element, atomically."},
      {"atomic_or", ir::AtomicOp::Or, "Bitwise or into an element, atomically."},
      {"atomic_xor", ir::AtomicOp::Xor, "Bitwise exclusive or into an element, atomically."},
      {"atomic_exchange", ir::AtomicOp::Exchange, "Stores, atomically, with the old value as result if asked."},
  };
  for (const auto& u : updates)
    table.push_back({u.name, "thread", kAtomicSignature, u.doc, atomic_update, static_cast<int>(u.op)});
  for (const int lanes : {2, 4})
    table.push_back({fmt::format("atomic_addx{}", lanes), "thread",
                     "dst: tile, value: expr, return_prev: bool = False, memory_order: text = 'relaxed'",
                     fmt::format("Adds to each of {} elements that follow each other, atomically.", lanes),
                     atomic_add_run, lanes});
  table.push_back({"atomic_load", "thread", "src: tile, memory_order: text = 'seq_cst'", "Reads an element atomically.",
                   atomic_load});
  table.push_back({"atomic_store", "thread", "dst: tile, src: expr, memory_order: text = 'seq_cst'",
                   "Writes an element atomically.", atomic_store});
  table.push_back({"atomic_cas", "thread", "dst: tile, compare: expr, value: expr",
                   "Writes the element if it equals `compare`; gives the old value.", atomic_cas});
}

void add_order(std::vector<Operation>& table) {
  using Apply = Result (*)(const Operation&, const Operands&);
  const Apply arrive = [](const Operation& op, const Operands& o) -> Result {
    const auto queue = static_cast<ir::Queue>(op.variant);
    o.builder().arrive(o.tile(0), queue, queue == ir::Queue::None ? o.expr_or_none(1) : ir::Expr());
    return {};
  };
  const Apply wait = [](const Operation&, const Operands& o) -> Result {
    o.builder().wait(o.tile(0), o.expr(1));
    return {};
  };
  const Apply expect = [](const Operation& op, const Operands& o) -> Result {
    o.builder().expect(o.tile(0), o.expr(1), op.variant != 0);
    return {};
  };
  const Apply drain = [](const Operation& op, const Operands& o) -> Result {
    o.builder().drain(static_cast<ir::Queue>(op.variant), o.integer(0, 0));
    return {};
  };
  const Apply commit = [](const Operation& op, const Operands& o) -> Result {
    o.builder().commit(static_cast<ir::Queue>(op.variant));
    return {};
  };
  const Apply sync = [](const Operation& op, const Operands& o) -> Result {
    o.builder().sync(static_cast<ir::SyncScope>(op.variant));
    return {};
  };
  const Apply order_of_launches = [](const Operation& op, const Operands& o) -> Result {
    o.builder().sync(ir::SyncScope::Launches, {}, 0, op.variant == 0, op.variant != 0);
    return {};
  };
  const Apply half_of_cluster = [](const Operation& op, const Operands& o) -> Result {
    o.builder().sync(ir::SyncScope::Cluster, {}, 0, op.variant == 0, op.variant != 0);
    return {};
  };
  for (const char* name : {"mbarrier_arrive", "barrier_arrive"})
    table.push_back(
        {name, "order", "mbarrier: tile, cta_id: expr = None",
         "Arrives at an mbarrier, or at that of block `cta_id` of the cluster: who waits there may copy over "
         "what this block has read. What blocks say through global memory needs T.cluster_sync().",
         arrive});
  for (const char* name : {"mbarrier_wait_parity", "barrier_wait"})
    table.push_back({name, "order", "mbarrier: tile, parity: expr", "Waits for the phase of this parity.", wait});
  table.push_back({"mbarrier_expect_tx", "order", "mbarrier: tile, tx: expr", "Announces bytes.", expect, 0});
  table.push_back(
      {"mbarrier_arrive_expect_tx", "order", "mbarrier: tile, tx: expr", "Announces bytes and arrives.", expect, 1});
  constexpr auto kCpAsync = static_cast<int>(ir::Queue::CpAsync), kBulk = static_cast<int>(ir::Queue::BulkStore),
                 kWgmma = static_cast<int>(ir::Queue::Wgmma);
  table.push_back({"cp_async_barrier_noinc", "order", "barrier: tile",
                   "Arrives at an mbarrier when what this thread has copied by T.ptx_cp_async is there.", arrive,
                   kCpAsync});
  table.push_back({"ptx_wait_group", "order", "num: int = 0", "Waits for groups of async_copy.", drain, kCpAsync});
  table.push_back({"cp_async_wait", "order", "pending: int = 0", "Waits for groups of async_copy.", drain, kCpAsync});
  table.push_back(
      {"tma_store_wait", "order", "count: int = 0, read: ignored = True", "Waits for bulk stores.", drain, kBulk});
  table.push_back({"wait_wgmma", "order", "id: int = 0", "Waits for wgmma_gemm.", drain, kWgmma});
  table.push_back({"warpgroup_wait", "order", "num_mma: int = 0", "Another name of wait_wgmma.", drain, kWgmma});
  table.push_back({"warpgroup_commit_batch", "order", "",
                   "Closes a group of products that do not wait; T.wgmma_gemm closes its own.", commit, kWgmma});
  table.push_back(
      {"tma_store_arrive", "order", "", "Closes a group of bulk stores; T.tma_copy closes its own.", commit, kBulk});
  table.push_back({"ptx_commit_group", "order", "", "Closes a group of async_copy.", commit, kCpAsync});
  table.push_back({"sync_warp", "order", "mask: ignored = None", "A barrier of the warp.", sync,
                   static_cast<int>(ir::SyncScope::Warp)});
  table.push_back(
      {"cluster_sync", "order", "", "A barrier of the cluster.", sync, static_cast<int>(ir::SyncScope::Cluster)});
  for (const char* name : {"cluster_arrive", "cluster_arrive_relaxed"})
    table.push_back({name, "order", "", "Arrives at the barrier of the cluster; T.cluster_wait() is the other half.",
                     half_of_cluster, 0});
  table.push_back({"cluster_wait", "order", "", "Waits for the blocks of the cluster, where this one has arrived.",
                   half_of_cluster, 1});
  for (const char* name : {"sync_grid", "sync_global"})
    table.push_back({name, "order", "", "A barrier of the grid.", sync, static_cast<int>(ir::SyncScope::Grid)});
  table.push_back({"pdl_sync", "order", "",
                   "Waits until the kernels before this one have ended and what they wrote is there. Such a kernel is "
                   "launched early, where they let it: before the wait it touches nothing that they do.",
                   order_of_launches, 1});
  table.push_back({"pdl_trigger", "order", "",
                   "Lets the kernels after this one begin, those that wait by T.pdl_sync(), once all blocks have come "
                   "here or are done.",
                   order_of_launches, 0});
  table.push_back({"sync_threads", "order", "barrier_id: expr = None, arrive_count: int = None",
                   "A barrier of the block, or a named one of `arrive_count` threads.", sync_threads, 0});
  table.push_back({"named_barrier_arrive", "order", "barrier_id: expr, thread_count: int",
                   "Arrives at a named barrier without waiting.", sync_threads, 1});
  table.push_back({"fence_proxy_async", "order", "", "Orders writes before asynchronous copies that read them.",
                   [](const Operation&, const Operands& o) -> Result {
                     o.builder().fence(ir::FenceProxy::Async);
                     return {};
                   }});
  for (const char* name : {"set_max_nreg", "inc_max_nreg", "dec_max_nreg"})
    table.push_back({name, "order", "reg_count: int, is_inc: ignored = None",
                     "Registers that a thread may use from here.", [](const Operation&, const Operands& o) -> Result {
                       o.builder().set_registers(o.integer(0));
                       return {};
                     }});
}

}  // namespace

void add_thread_operations(std::vector<Operation>& table) {
  const std::vector<Operation> rows = {
      {"store", "scope", "element: tile, value: expr", "element = value", store},
      {"store_later", "scope", "element: tile, value: expr", "element = value, by the queue cp_async", store,
       static_cast<int>(ir::Queue::CpAsync)},
      {"update", "scope", "operator: text, element: tile, value: expr", "element op= value", update},
      {"get_thread_binding", "thread", "dim: int = 0", "The index of this thread in its block.",
       [](const Operation&, const Operands& o) -> Result {
         return o.builder().thread_index(static_cast<int>(o.integer(0, 0)));
       }},
      {"get_block_binding", "thread", "dim: int = 0", "The index of this block in the grid.",
       [](const Operation&, const Operands& o) -> Result {
         return o.builder().block_index(static_cast<int>(o.integer(0, 0)));
       }},
      {"block_rank_in_cluster", "thread", "", "The number of this block in its cluster, x first.",
       [](const Operation&, const Operands& o) -> Result { return o.builder().cluster_rank(); }},
      {"get_cluster_dim", "thread", "dim: int = 0", "The number of blocks of a cluster along a dimension.",
       [](const Operation&, const Operands& o) -> Result {
         return o.builder().cluster_extent(static_cast<int>(o.integer(0, 0)));
       }},
      {"get_thread_extent", "thread", "dim: int = 0", "The number of threads of a block along a dimension.",
       [](const Operation&, const Operands& o) -> Result {
         return o.builder().thread_extent(static_cast<int>(o.integer(0, 0)));
       }},
      {"annotate_min_blocks_per_sm", "thread", "n: int",
       "As many blocks that a multiprocessor can hold at once: a bound on registers.",
       [](const Operation&, const Operands& o) -> Result {
         o.builder().min_blocks(o.integer(0));
         return {};
       }},
      {"annotate_plan", "thread", "lines: text",
       "Lines that the launch's plan for a GPU is to have, as `tilewright compile --stage plan` prints them.",
       [](const Operation&, const Operands& o) -> Result {
         o.builder().annotate_plan(lines_in(o.text(0)));
         return {};
       }},
      {"use_swizzle", "thread", "panel_size: int, order: text = 'row', enable: bool = True",
       "The order in which blocks run: in panels of rows or columns.",
       [](const Operation&, const Operands& o) -> Result {
         const bool column = o.word(1, {"row", "column", "col"}) > 0;
         if (o.flag(2, true))
           o.builder().use_swizzle(o.integer(0), column ? ir::RasterOrder::Column : ir::RasterOrder::Row);
         return {};
       }},
      {"print", "thread", "obj: expr = None, msg: text = '', warp_group_id: ignored = 0, warp_id: ignored = 0",
       "Prints a value, a buffer, or a message.", print},
      {"device_assert", "thread", "condition: expr, msg: text = '', no_stack_info: ignored = False",
       "Stops the call where the condition is false.",
       [](const Operation&, const Operands& o) -> Result {
         o.builder().check(o.expr(0), o.text(1));
         return {};
       }},
      {"assume", "thread", "cond: expr", "Vouches for a condition. Before the first Kernel it is checked at the call.",
       [](const Operation&, const Operands& o) -> Result {
         o.builder().assume(o.expr(0));
         return {};
       }},
      {"call_function", "scope", "dtype: text, name: text, args: exprs, source: text = ''",
       "Calls a device function by its name; `source` is the text that defines it.", call_extern},
      {"pointer_for_call", "scope", "element: tile", "The address of an element, for call_function alone.",
       [](const Operation&, const Operands& o) -> Result { return o.builder().pointer_for_call(o.tile(0)); }},
  };
  table.insert(table.end(), rows.begin(), rows.end());
  add_atomics(table);
  add_warp_operations(table);
  add_order(table);
}

}  // namespace tilewright::capi
