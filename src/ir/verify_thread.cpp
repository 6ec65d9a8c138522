// Rules of thread code, loops, roles, barriers and queues.
#include "ir/verify_rules.h"

#include "layout/fragment.h"

namespace tilewright::ir {
namespace {

constexpr int64_t kNamedBarriers = 16;  // PTX ISA, barrier: 0 to 15

bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

bool has_effect(const Stmt& stmt) { return !stmt.as<Let>() && !stmt.as<Assume>(); }

}  // namespace

// ---- thread code --------------------------------------------------------------------------------------------------

bool Verifier::check_element(const Element& element, const char* what) {
  if (!check_indices(element.buffer, element.indices, what)) return false;
  const Buffer& b = row(element.buffer);
  if (b.space != Space::Barrier) return true;
  add(Code::VerifyBarrierAccess, fmt::format("'{}' is a barrier: it is not read or written", b.name));
  return false;
}

void Verifier::check(const Let& node) {
  if (!check_value(node.value, "the value of a name") || !check_id(node.var)) return;
  if (program_.var(node.var).type != node.value->type)
    add(Code::VerifyLetType,
        fmt::format("'{}' is {}, but its value {} is {}", name(node.var), program_.var(node.var).type.name(),
                    text(node.value), node.value->type.name()));
}

void Verifier::check(const Store& node) {
  const bool element = check_element(node.to, "a store");
  if (!check_value(node.value, "the value of a store") || !element) return;
  const Buffer& b = row(node.to.buffer);
  if (b.reducer)
    add_about(Code::VerifyReducerAccess, node.to.buffer,
              fmt::format("'{}' is a reducer: it is updated by atomics, not stored to", b.name),
              "write atomic add, max or min");
  if (node.queue != Queue::None && (node.queue != Queue::CpAsync || b.space != Space::Shared))
    add_about(Code::VerifyQueue, node.to.buffer,
              fmt::format("a store to '{}' of the queue {}", b.name, name_of(node.queue)),
              "the queue cp_async copies to shared memory");
  if (b.type != node.value->type)
    add_about(
        Code::VerifyStoreType, node.to.buffer,
        fmt::format("'{}' holds {}, but {} is {}", b.name, b.type.name(), text(node.value), node.value->type.name()),
        fmt::format("cast it: {}(...)", b.type.name()));
}

void Verifier::check(const Atomic& node) {
  const bool element = check_element(node.to, "an atomic");
  const bool compares = node.op == AtomicOp::CompareExchange, reads = node.op == AtomicOp::Load;
  if (static_cast<bool>(node.value) == reads || static_cast<bool>(node.compare) != compares)
    add(Code::VerifyAtomicOperands, fmt::format("atomic {} takes {}", name_of(node.op),
                                                reads      ? "no value"
                                                : compares ? "a value and what to compare with"
                                                           : "a value and nothing to compare with"));
  if (node.value) check_expr(node.value);
  if (node.compare) check_expr(node.compare);
  if (!element) return;
  const Buffer& b = row(node.to.buffer);
  for (const Expr& e : {node.value, node.compare})
    if (e && e->type != b.type)
      add_about(Code::VerifyAtomicType, node.to.buffer,
                fmt::format("atomic {}: '{}' holds {}, but {} is {}", name_of(node.op), b.name, b.type.name(), text(e),
                            e->type.name()));
  if (node.result.valid() && check_id(node.result) && program_.var(node.result).type != b.type)
    add(Code::VerifyResultType, fmt::format("atomic {} gives {}, but '{}' is {}", name_of(node.op), b.type.name(),
                                            name(node.result), program_.var(node.result).type.name()));
  if (b.reducer)
    check_reducer_update(node, b);
  else if (b.space != Space::Global && b.space != Space::Shared)
    add_about(Code::VerifyAtomicSpace, node.to.buffer,
              fmt::format("atomic {} on '{}', a {} buffer", name_of(node.op), b.name, name_of(b.space)),
              "atomics work on global and shared memory and on reducers");
  if (!has_atomic(node.op, b.type))
    add_about(Code::VerifyAtomicDtype, node.to.buffer,
              fmt::format("there is no atomic {} on {}", name_of(node.op), b.type.name()));
}

void Verifier::check_reducer_update(const Atomic& node, const Buffer& b) {
  if (!updates(node.op, *b.reducer))
    add_about(Code::VerifyReducerUpdate, node.to.buffer,
              fmt::format("'{}' is combined by {}, but the update is atomic {}", b.name, name_of(*b.reducer),
                          name_of(node.op)));
  if (node.result.valid())
    add(Code::VerifyReducerUpdate, fmt::format("an update of the reducer '{}' has no old value", b.name),
        "read it after finalize_reducer");
}

void Verifier::check(const Shuffle& node) {
  if (!is_power_of_two(node.width) || node.width > kWarpThreads)
    add(Code::VerifyShuffleWidth,
        fmt::format("a shuffle over groups of {} lanes; it is a power of two up to 32", node.width));
  check_integer(node.lane, "the lane of a shuffle");
  if (!check_value(node.value, "the value of a shuffle") || !check_id(node.result)) return;
  if (program_.var(node.result).type != node.value->type)
    add(Code::VerifyResultType, fmt::format("shuffle gives {}, but '{}' is {}", node.value->type.name(),
                                            name(node.result), program_.var(node.result).type.name()));
}

void Verifier::check(const Vote& node) {
  const bool match = node.kind == VoteKind::MatchAny || node.kind == VoteKind::MatchAll,
             mask = node.kind == VoteKind::ActiveMask;
  if (mask && node.value) add(Code::VerifyVoteOperand, "vote active_mask takes no value");
  if (!mask && check_value(node.value, "the value of a vote")) {
    const DType type = node.value->type;
    if (match ? !type.is_int() && !type.is_float() : !type.is_bool())
      add(Code::VerifyVoteOperand, fmt::format("vote {} takes {}, but {} is {}", name_of(node.kind),
                                               match ? "a number" : "a bool", text(node.value), type.name()));
  }
  if (!check_id(node.result)) return;
  const bool gives_bool = node.kind == VoteKind::Any || node.kind == VoteKind::All || node.kind == VoteKind::BlockAny ||
                          node.kind == VoteKind::BlockAll;
  const DType type = gives_bool ? boolean : node.kind == VoteKind::BlockCount ? i32 : u32;
  if (program_.var(node.result).type != type)
    add(Code::VerifyResultType, fmt::format("vote {} gives {}, but '{}' is {}", name_of(node.kind), type.name(),
                                            name(node.result), program_.var(node.result).type.name()));
}

void Verifier::check(const Call& node) {
  const auto part_of_name = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == ':'; };
  if (node.function.empty() || !std::all_of(node.function.begin(), node.function.end(), part_of_name))
    add(Code::VerifyCallName, fmt::format("'{}' is not the name of a function", node.function));
  for (const Expr& e : node.args) {
    const auto* pointer = e ? e.as<Address>() : nullptr;  // foreign text may take memory of the thread or the block
    if (!pointer) {
      check_value(e, "an argument of a call");
    } else if (check_indices(pointer->buffer, pointer->indices, "an address") &&
               (row(pointer->buffer).space == Space::Fragment || row(pointer->buffer).space == Space::Barrier)) {
      add_about(Code::VerifyAddress, pointer->buffer,
                fmt::format("'{}' is a {} buffer, which has no address", name(pointer->buffer),
                            name_of(row(pointer->buffer).space)));
    }
  }
  for (const Region& r : node.reads) check_region(r, "what a call reads");
  for (const Region& r : node.writes) check_region(r, "what a call writes");
}

void Verifier::check(const Print& node) {
  for (const Expr& e : node.values) check_value(e, "a printed value");
  if (!node.buffer.valid() || !use(node.buffer)) return;
  if (row(node.buffer).space == Space::Barrier)
    add(Code::VerifyBarrierAccess, fmt::format("'{}' is a barrier: it is not read or written", name(node.buffer)));
}

void Verifier::check(const Assert& node) { check_condition(node.condition, "the condition of an assert"); }
void Verifier::check(const Assume& node) { check_condition(node.condition, "the condition of an assume"); }
void Verifier::check(const While& node) { check_condition(node.condition, "the condition of a while"); }
void Verifier::check(const If& node) { check_condition(node.condition, "the condition of an if"); }

// ---- loops and roles ----------------------------------------------------------------------------------------------

void Verifier::check(const For& node) {
  const bool begin = check_integer(node.begin, "the begin of a loop"),
             extent = check_integer(node.extent, "the extent of a loop");
  if (check_id(node.var) && begin && extent) {
    const DType type = program_.var(node.var).type;
    if (node.begin->type != type || node.extent->type != type)
      add(Code::VerifyLoopType,
          fmt::format("the loop over '{}' of {} begins at {} and has the extent {}", name(node.var), type.name(),
                      node.begin->type.name(), node.extent->type.name()),
          "all three have one type");
  }
  if (auto c = constant_int(node.extent); c && *c < 0)
    add(Code::VerifyNegativeExtent, fmt::format("the loop over '{}' has the extent {}", name(node.var), *c));
  check_schedule(node);
}

void Verifier::check_schedule(const For& node) {
  const bool pipelined = node.kind == LoopKind::Pipelined;
  if (!pipelined && (node.stages != 0 || !node.order.empty() || !node.stage.empty()))
    return add(Code::VerifyStages, fmt::format("the {} loop has stages; only a pipelined one has", name_of(node.kind)));
  if (node.factor < 0 || (node.factor > 0 && node.kind != LoopKind::Unroll))
    add(Code::VerifyStages,
        fmt::format("the {} loop has a factor of {}; an unrolled one has 0 or more", name_of(node.kind), node.factor));
  const bool has_lanes = node.kind == LoopKind::Vectorized && level_ == Level::Loop;
  if (node.lanes < 0 || (node.lanes > 0 && !has_lanes))
    add(Code::VerifyLoopStatement, fmt::format("the {} loop has {} lanes; a vectorized one of a loop program has",
                                               name_of(node.kind), node.lanes));
  if (node.stages < 0) add(Code::VerifyStages, fmt::format("a pipelined loop of {} stages", node.stages));
  if (!node.order.empty() && !node.stage.empty() && node.order.size() != node.stage.size())
    add(Code::VerifyPipelineOrder,
        fmt::format("order has {} entries, but stage has {}", node.order.size(), node.stage.size()));
  const auto effects = static_cast<size_t>(std::count_if(node.body.begin(), node.body.end(), has_effect));
  if (std::max(node.order.size(), node.stage.size()) > effects)
    add(Code::VerifyPipelineOrder,
        fmt::format("order and stage have {} entries, but the loop has {} statements with effects",
                    std::max(node.order.size(), node.stage.size()), effects));
  std::set<int64_t> positions;
  for (int64_t position : node.order)
    if (position < -1 || position >= static_cast<int64_t>(node.order.size()) ||
        (position >= 0 && !positions.insert(position).second))
      return add(Code::VerifyPipelineOrder,
                 fmt::format("order has the entry {}; its entries are different positions", position));
  for (int64_t stage : node.stage)
    if (stage < -1 || stage > std::max<int64_t>(node.stages, 1))
      return add(Code::VerifyPipelineOrder,
                 fmt::format("stage has the entry {}, but the loop has {} stages", stage, node.stages));
}

void Verifier::check(const Role& node) {
  const std::vector<int64_t>& threads = in_launch_->threads;
  if (!std::all_of(threads.begin() + 1, threads.end(), [](int64_t n) { return n == 1; }))
    return add(Code::VerifyRoleRange, "a role in a block that is not along x alone",
               "give the block one thread extent; a role is a range of its threads");
  if (node.begin < 0 || node.end <= node.begin || node.end > threads[0] || node.begin % kWarpThreads != 0 ||
      (node.end % kWarpThreads != 0 && node.end != threads[0]))
    return add(Code::VerifyRoleRange,
               fmt::format("a role on threads {} to {} of a block of {}", node.begin, node.end, threads[0]),
               "a role is a range of whole warps (multiples of 32) inside the block");
  if (role_ && (node.begin < role_->begin || node.end > role_->end))
    add(Code::VerifyRoleNested,
        fmt::format("a role on threads {} to {} stands in a role that does not have them", node.begin, node.end));
}

// ---- barriers and queues ------------------------------------------------------------------------------------------

void Verifier::check_barrier(const Element& element, const char* what) {
  if (!check_indices(element.buffer, element.indices, what)) return;
  const Buffer& b = row(element.buffer);
  if (b.space != Space::Barrier)
    add_about(Code::VerifyNoBarrier, element.buffer,
              fmt::format("{}: '{}' is no barrier but a {} buffer", what, b.name, name_of(b.space)));
}

void Verifier::check(const Arrive& node) {
  check_barrier(node.barrier, "arrive");
  if (node.cta) check_integer(node.cta, "the block of an arrive");
  if (node.queue != Queue::None && (node.queue != Queue::CpAsync || node.cta))
    add(Code::VerifyQueue, fmt::format("an arrival of the queue {}", name_of(node.queue)),
        "copies of the queue cp_async tell mbarriers of their own block");
  if (node.by == ArriveBy::Thread) return;
  if (level_ != Level::Tile)
    add(Code::VerifyLevel, "an arrival of warps in code of threads", "lowering writes it as the arrival of a thread");
  if (node.queue != Queue::None)
    add(Code::VerifyQueue, "an arrival of warps with a queue", "each thread arrives for its own copies");
}

void Verifier::check(const Expect& node) {
  check_barrier(node.barrier, "expect");
  if (node.cta) check_integer(node.cta, "the block of an expect");
  if (node.cta && !node.arrive)
    add(Code::VerifyQueue, "an expect at another block without an arrival", "what is stored there arrives as well");
  if (!check_integer(node.bytes, "the bytes of an expect")) return;
  if (auto c = constant_int(node.bytes); c && *c < 0 && level_ != Level::Loop)  // there, bytes that have come
    add(Code::VerifyExpectBytes, fmt::format("expect of {} bytes", *c));
}

void Verifier::check(const Wait& node) {
  check_barrier(node.barrier, "wait");
  if (!check_integer(node.parity, "the parity of a wait")) return;
  if (auto c = constant_int(node.parity); c && *c != 0 && *c != 1)
    add(Code::VerifyParity, fmt::format("a wait for parity {}; it is 0 or 1", *c));
}

static bool has_groups(Queue queue) {
  return queue == Queue::CpAsync || queue == Queue::Wgmma || queue == Queue::BulkStore;
}

void Verifier::check(const Commit& node) {
  if (!has_groups(node.queue))
    add(Code::VerifyQueue, "commit names no queue of groups", "name cp_async, wgmma or bulk_store");
}

void Verifier::check(const Drain& node) {
  if (!has_groups(node.queue))
    add(Code::VerifyQueue, "drain names no queue of groups", "name cp_async, wgmma or bulk_store");
  if (node.pending < 0) add(Code::VerifyQueue, fmt::format("drain until {} groups are open", node.pending));
  if (node.written && node.queue != Queue::BulkStore)
    add(Code::VerifyQueue, fmt::format("a drain of {} that waits for stores", name_of(node.queue)),
        "only those of bulk_store are written at a time of their own");
  check_registers(node.registers, "drain");
}

void Verifier::check(const Sync& node) {
  if (node.scope == SyncScope::Launches) {
    if (node.barrier || node.count != 0 || node.arrive_only == node.wait_only)
      add(Code::VerifySync, "sync launches takes wait_only or arrive_only, and nothing else",
          "wait_only waits for the launches before; arrive_only lets those after begin");
    return;
  }
  if (node.wait_only && (node.scope != SyncScope::Cluster || node.arrive_only))
    add(Code::VerifySync, fmt::format("sync {} takes no wait_only", name_of(node.scope)),
        "it belongs to sync cluster, where it follows one with arrive_only");
  if (node.scope != SyncScope::Named) {
    if (node.barrier || node.count != 0 || (node.arrive_only && node.scope != SyncScope::Cluster))
      add(Code::VerifySync, fmt::format("sync {} takes no barrier, count or arrive_only", name_of(node.scope)),
          "these belong to sync named");
    return;
  }
  if (level_ == Level::Loop) return;  // lowering has made it
  if (node.count < kWarpThreads || node.count % kWarpThreads != 0)
    add(Code::VerifySync, fmt::format("sync named of {} threads; the count is a multiple of 32", node.count));
  if (!check_integer(node.barrier, "the number of a named barrier")) return;
  if (auto c = constant_int(node.barrier); c && (*c < 0 || *c >= kNamedBarriers))
    add(Code::VerifyBarrierNumber, fmt::format("named barrier {}; there are 0 to 15", *c));
}

void Verifier::check(const SetRegisters& node) {
  if (!SetRegisters::takes(node.count))
    add(Code::VerifyRegisters, fmt::format("set_registers to {}; it is a multiple of 8 from 24 to 256", node.count));
}

// What stands in the arrays of a thread at the tile level.
bool Verifier::check_own_elements(const Region& region, const char* what, int64_t count) {
  if (region.extent.size() == 1 && constant_int(region.extent[0]) == count) return true;
  add(Code::VerifyMatrix,
      fmt::format("{} has {} elements of an array of one dimension, not {}", what, count, text(region)));
  return false;
}

void Verifier::check_of_warp(const Mma& node) {
  constexpr int64_t kRowsOfElement = 4;  // of c, and as many columns of a
  const int64_t rows = kRowsOfElement * constant_int(node.c.extent.back()).value_or(0),
                depth = kRowsOfElement * constant_int(node.b.extent.back()).value_or(0);
  const int bits = row(node.a.buffer).type.bits;
  if ((rows != 8 && rows != 16) || depth <= 0 || depth % std::max(4, 128 / bits) != 0 || node.metadata.valid())
    return add(Code::VerifyMatrix, fmt::format("an mma of {} rows and a depth of {}", rows, depth),
               "it has 8 or 16 rows, and words of 32 bits of four lanes make up its depth");
  if (row(node.b.buffer).type.bits != bits)
    add(Code::VerifyMatrix, "the operands of an mma have elements of different widths");
  check_own_elements(node.c, "the c of an mma", rows / kRowsOfElement);
  check_own_elements(node.b, "the b of an mma", depth / kRowsOfElement);
  check_own_elements(node.a, "the a of an mma", rows * depth / kWarpThreads);
}

void Verifier::check(const Mma& node) {
  for (const Region* r : {&node.a, &node.b, &node.c, &node.metadata})
    if ((r != &node.metadata || r->valid()) && check_region(*r, "an operand of mma") &&
        row(r->buffer).space != Space::Local)
      add(Code::VerifyLevel, fmt::format("mma: '{}' is not in registers", row(r->buffer).name));
  if (level_ == Level::Tile && findings_.empty()) check_of_warp(node);
}

void Verifier::check(const LoadMatrix& node) {
  if (check_element(node.from, "the row that load_matrix reads") && row(node.from.buffer).space != Space::Shared)
    add(Code::VerifyLevel,
        fmt::format("load_matrix reads '{}', which is not in shared memory", row(node.from.buffer).name));
  if (check_region(node.to, "the registers of load_matrix") && row(node.to.buffer).space != Space::Local)
    add(Code::VerifyLevel, fmt::format("load_matrix: '{}' is not in registers", row(node.to.buffer).name));
  if (level_ != Level::Tile || !findings_.empty()) return;
  const DType type = row(node.to.buffer).type;
  if (type.bits != 8 && type.bits != 16 && (type.bits != 32 || node.transpose))
    return add(Code::VerifyMatrix, fmt::format("load_matrix of {}", type.name()),
               "elements have 8, 16 or 32 bits, and those of 32 are not transposed");
  if (row(node.from.buffer).type != type)
    add(Code::VerifyMatrix, fmt::format("load_matrix of {} to {}", row(node.from.buffer).type.name(), type.name()));
  if (node.matrices != 1 && node.matrices != 2 && node.matrices != 4)
    return add(Code::VerifyMatrix, fmt::format("load_matrix of {} matrices; there are 1, 2 or 4", node.matrices));
  check_own_elements(node.to, "what load_matrix gives", node.matrices * 32 / type.bits);
}

void Verifier::check(const StoreMatrix& node) {
  if (check_element(node.to, "the row that store_matrix writes")) {
    const Buffer& to = row(node.to.buffer);
    if (to.space != Space::Shared)
      add(Code::VerifyLevel, fmt::format("store_matrix writes '{}', which is not in shared memory", to.name));
    if (to.type.bits != 16) add(Code::VerifyMatrix, fmt::format("store_matrix to {}: not 16 bits", to.type.name()));
  }
  if (!check_region(node.from, "the registers of store_matrix")) return;
  const Buffer& from = row(node.from.buffer);
  if (from.space != Space::Local)
    add(Code::VerifyLevel, fmt::format("store_matrix: '{}' is not in registers", from.name));
  const int64_t words = constant_int(node.from.extent.back()).value_or(0) * from.type.bits / 32;
  if (words != 1 && words != 2 && words != 4)
    add(Code::VerifyMatrix, fmt::format("store_matrix of {} matrices; there are 1, 2 or 4", words));
}

void Verifier::check_registers(const std::vector<Region>& registers, const char* what) {
  for (const Region& r : registers)
    if (check_region(r, "the registers of wgmma") && row(r.buffer).space != Space::Local)
      add(Code::VerifyLevel, fmt::format("{}: '{}' is not in registers", what, row(r.buffer).name));
}

void Verifier::check(const Wgmma& node) {
  if (check_region(node.a, "an operand of wgmma") && row(node.a.buffer).space != Space::Local &&
      row(node.a.buffer).space != Space::Shared)
    add(Code::VerifyLevel,
        fmt::format("wgmma: '{}' is neither in registers nor in shared memory", row(node.a.buffer).name));
  if (check_region(node.b, "an operand of wgmma") && row(node.b.buffer).space != Space::Shared)
    add(Code::VerifyLevel, fmt::format("wgmma: '{}' is not in shared memory", row(node.b.buffer).name));
  check_registers({node.c}, "wgmma");
  if (node.metadata.valid()) check_registers({node.metadata}, "wgmma");
  if (node.clear) check_condition(node.clear, "the clear of a wgmma");
}

void Verifier::check(const InitBarriers& node) {
  if (!use(node.barriers)) return;
  if (row(node.barriers).space != Space::Barrier)
    add(Code::VerifyNoBarrier, fmt::format("init_barriers: '{}' is no barrier", name(node.barriers)));
}

}  // namespace tilewright::ir
