#include "ir/stmt.h"

#include <tuple>

#include "ir/match.h"
#include "ir/program.h"
#include "support/diagnostic.h"

namespace tilewright::ir {
namespace {

// Equality of two fields of one type.
struct Equal {
  bool operator()(const Expr& a, const Expr& b) const { return equal(a, b); }
  template <class T>
  bool operator()(const std::vector<T>& a, const std::vector<T>& b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), *this);
  }
  bool operator()(const Stmt& a, const Stmt& b) const { return equal(a, b); }
  template <class T>
  bool operator()(const T& a, const T& b) const {
    if constexpr (requires { T::fields(a, [](const char*, const auto&) {}); }) {
      return structs(a, b);
    } else {
      return a == b;
    }
  }
  // Walks the two field lists side by side through a list of erased pointers.
  template <class T>
  bool structs(const T& a, const T& b) const {
    std::vector<const void*> fields_of_b;
    T::fields(b, [&](const char*, const auto& field) { fields_of_b.push_back(&field); });
    bool same = true;
    size_t i = 0;
    T::fields(a, [&](const char*, const auto& field) {
      using Field = std::decay_t<decltype(field)>;
      same = same && (*this)(field, *static_cast<const Field*>(fields_of_b[i]));
      ++i;
    });
    return same;
  }
};

}  // namespace

StmtNode::StmtNode(StmtOp o, LocationId at, StmtId number) : op(std::move(o)), location(at), id(number) {}
StmtNode::StmtNode(const StmtNode&) = default;
StmtNode::StmtNode(StmtNode&&) noexcept = default;
StmtNode& StmtNode::operator=(const StmtNode&) = default;
StmtNode& StmtNode::operator=(StmtNode&&) noexcept = default;
StmtNode::~StmtNode() = default;

template <class T>
Stmt make_stmt(T op, LocationId location) {
  return Stmt(StmtNode{std::move(op), location});
}

// make_stmt of every operation, in this file alone: a copy of StmtOp takes a compiler seconds.
template <class>
struct MakersOf;
template <class... Ops>
struct MakersOf<std::variant<Ops...>> {
  template <class T>
  using Maker = Stmt (*)(T, LocationId);
  static constexpr std::tuple<Maker<StmtOp>, Maker<Ops>...> all{make_stmt<StmtOp>, make_stmt<Ops>...};
};
template struct MakersOf<StmtOp>;

bool equal(const Stmt& a, const Stmt& b) {
  if (a.same(b)) return true;
  if (!a || !b || a->op.index() != b->op.index()) return false;
  return match(a->op,
               [&](const auto& node) { return Equal{}.structs(node, std::get<std::decay_t<decltype(node)>>(b->op)); });
}

const char* name_of(const Stmt& stmt) {
  return match(stmt->op, [](const auto& node) { return std::decay_t<decltype(node)>::name; });
}

Level level_of(const Stmt& stmt) {
  return match(stmt->op, [](const auto& node) { return std::decay_t<decltype(node)>::level; });
}

bool is_tile_op(const Stmt& stmt) {
  return match(stmt->op, [](const auto& node) { return TileOp<std::decay_t<decltype(node)>>; });
}

bool has_atomic(AtomicOp op, DType type) {
  if (type.is_packed() || type.is_float8() || type.is_pointer()) return false;
  switch (op) {
    case AtomicOp::Add:
    case AtomicOp::Max:
    case AtomicOp::Min: return !type.is_bool();
    case AtomicOp::And:
    case AtomicOp::Or:
    case AtomicOp::Xor: return type.is_int();
    case AtomicOp::Exchange:
    case AtomicOp::CompareExchange:
    case AtomicOp::Load:
    case AtomicOp::Store: return true;
  }
  return false;
}

AtomicOp atomic_op_of(Combine combine) {
  check_internal(combine != Combine::None, "a plain copy is no atomic");
  return combine == Combine::Add ? AtomicOp::Add : combine == Combine::Max ? AtomicOp::Max : AtomicOp::Min;
}

bool updates(AtomicOp op, ReduceOp reducer) {
  return (op == AtomicOp::Add && reducer == ReduceOp::Sum) || (op == AtomicOp::Max && reducer == ReduceOp::Max) ||
         (op == AtomicOp::Min && reducer == ReduceOp::Min);
}

// A macro, because an overload per enum is one line of names each.
#define TILEWRIGHT_ENUM_NAMES(Enum, ...)                   \
  std::span<const char* const> enum_names(Enum) {          \
    static constexpr const char* kNames[] = {__VA_ARGS__}; \
    return kNames;                                         \
  }
TILEWRIGHT_ENUM_NAMES(AtomicOp, "add", "max", "min", "and", "or", "xor", "exchange", "compare_exchange", "load",
                      "store")
TILEWRIGHT_ENUM_NAMES(MemoryOrder, "relaxed", "acquire", "release", "acquire_release", "sequentially_consistent")
TILEWRIGHT_ENUM_NAMES(ShuffleKind, "index", "up", "down", "xor")
TILEWRIGHT_ENUM_NAMES(VoteKind, "any", "all", "ballot", "match_any", "match_all", "active_mask", "block_any",
                      "block_all", "block_count")
TILEWRIGHT_ENUM_NAMES(LoopKind, "serial", "unroll", "vectorized", "pipelined", "grid")
TILEWRIGHT_ENUM_NAMES(Queue, "none", "cp_async", "wgmma", "bulk_store", "prefetch", "st_async")
TILEWRIGHT_ENUM_NAMES(Combine, "none", "add", "max", "min")
TILEWRIGHT_ENUM_NAMES(GemmPolicy, "square", "full_row", "full_col")
TILEWRIGHT_ENUM_NAMES(ReduceOp, "sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor")
TILEWRIGHT_ENUM_NAMES(ArriveBy, "thread", "warp")
TILEWRIGHT_ENUM_NAMES(SyncScope, "warp", "block", "named", "cluster", "grid", "launches")
TILEWRIGHT_ENUM_NAMES(FenceProxy, "async", "block", "device", "wgmma", "registers", "async_all")
TILEWRIGHT_ENUM_NAMES(Rounding, "nearest", "toward_zero", "stochastic")
TILEWRIGHT_ENUM_NAMES(Space, "global", "shared", "fragment", "local", "barrier")
TILEWRIGHT_ENUM_NAMES(BarrierUse, "none", "full", "empty", "turn", "ready")
TILEWRIGHT_ENUM_NAMES(LayoutHint, "none", "linear", "swizzled", "function")
TILEWRIGHT_ENUM_NAMES(RasterOrder, "row", "column")
#undef TILEWRIGHT_ENUM_NAMES

}  // namespace tilewright::ir
