// The only place that knows how nodes are stored: immutable, shared, compared by pointer first.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "tilewright/dtype.h"

namespace tilewright::ir {

template <class Node>
class Handle {
 public:
  Handle() = default;
  explicit Handle(Node node) : node_(std::make_shared<const Node>(std::move(node))) {}
  explicit Handle(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  explicit operator bool() const { return node_ != nullptr; }
  template <class T>
  const T* as() const {  // what passes write: if (const auto* copy = stmt.as<Copy>())
    return std::get_if<T>(&node_->op);
  }
  const Node* operator->() const { return node_.get(); }
  const Node& operator*() const { return *node_; }
  const std::shared_ptr<const Node>& pointer() const { return node_; }
  bool same(const Handle& other) const { return node_ == other.node_; }

 private:
  std::shared_ptr<const Node> node_;
};

struct ExprNode;
struct StmtNode;
using Expr = Handle<ExprNode>;
using Stmt = Handle<StmtNode>;
using Body = std::vector<Stmt>;

// A struct that lists its fields.
template <class T>
concept HasFields = requires(const T& value) {
  T::fields(value, [](const char*, const auto&) {});
};

// Indices into the tables of a program. Strong types, so that one cannot pass for the other.
struct VarId {
  uint32_t index = UINT32_MAX;
  bool valid() const { return index != UINT32_MAX; }
  auto operator<=>(const VarId&) const = default;
};
struct BufferId {
  uint32_t index = UINT32_MAX;
  bool valid() const { return index != UINT32_MAX; }
  auto operator<=>(const BufferId&) const = default;
};

// Which stage of the road may hold a node. The verifier holds every program to its level.
enum class Level : uint8_t {
  Tile = 1,    // what users write: tiles, collectives, thread code
  Thread = 2,  // one thread of a GPU block, asynchrony explicit
  Loop = 4,    // one block on a CPU core: loops over elements
  Any = 7,
};
constexpr Level operator|(Level a, Level b) {
  return static_cast<Level>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
constexpr bool includes(Level set, Level one) { return (static_cast<uint8_t>(set) & static_cast<uint8_t>(one)) != 0; }

}  // namespace tilewright::ir

template <>
struct std::hash<tilewright::ir::VarId> {
  size_t operator()(tilewright::ir::VarId id) const noexcept { return id.index; }
};
template <>
struct std::hash<tilewright::ir::BufferId> {
  size_t operator()(tilewright::ir::BufferId id) const noexcept { return id.index; }
};
