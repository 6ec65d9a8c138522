// The table of operations behind tw_apply(): for each, its name, its parameters as a frontend shows them, and the call
// of the builder that it is. Adding an operation of the builder to every frontend is adding a row.
#pragma once
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "ir/builder.h"
#include "tilewright/c_api.h"

struct tw_expr {
  tilewright::ir::Expr value;
};

namespace tilewright::capi {

class Operands;
using Exprs = std::vector<ir::Expr>;
using Result = std::variant<std::monostate, ir::Expr, Exprs, ir::BufferId, int64_t, std::string>;

struct Operation {
  std::string name;
  const char* group;
  std::string signature;
  std::string doc;
  Result (*apply)(const Operation&, const Operands&);
  int variant = 0;  // which one, where several rows share a function: an Operator, a Function, a ReduceOp, ...
};

const std::vector<Operation>& operations();

// The parts of the table, a file each.
void add_scalar_operations(std::vector<Operation>& table);
void add_buffer_operations(std::vector<Operation>& table);
void add_scope_operations(std::vector<Operation>& table);
void add_tile_operations(std::vector<Operation>& table);
void add_thread_operations(std::vector<Operation>& table);

// What an operation is given, checked and converted as its meaning asks: numbers become constants, elements and scalar
// variables are read where an expression is wanted.
class Operands {
 public:
  Operands(const Operation& operation, ir::Builder* builder, const SourceLocation& place,
           std::span<const tw_value> values)
      : operation_(operation), builder_(builder), place_(place), values_(values) {}

  ir::Builder& builder() const;
  ir::Builder* builder_or_null() const { return builder_; }
  const SourceLocation& place() const { return place_; }
  size_t count() const { return values_.size(); }
  bool given(size_t i) const { return i < values_.size() && values_[i].kind != TW_NONE; }
  // Whether an element or a number stands there, not a tile.
  bool is_scalar(size_t i) const;
  bool is_memory(size_t i) const { return at(i).kind == TW_BUFFER || at(i).kind == TW_TILE; }

  ir::Expr expr(size_t i) const;
  ir::Expr expr_or_none(size_t i) const { return given(i) ? expr(i) : ir::Expr{}; }
  Exprs exprs(size_t i) const;
  ir::TileRef tile(size_t i) const;
  // The elements that follow each other from an element on, or that a slice of one dimension has.
  std::vector<ir::TileRef> run(size_t i, int64_t count) const;
  ir::BufferId buffer(size_t i) const;
  DType dtype(size_t i) const;
  // A number as it was given, before it became a constant of a dtype.
  std::optional<double> number(size_t i) const;
  int64_t integer(size_t i) const;
  int64_t integer(size_t i, int64_t otherwise) const { return given(i) ? integer(i) : otherwise; }
  bool flag(size_t i, bool otherwise) const { return given(i) ? integer(i) != 0 : otherwise; }
  std::string text(size_t i, const char* otherwise = "") const;
  std::vector<int64_t> integers(size_t i) const;
  std::vector<std::string> texts(size_t i) const;
  // The place of a text in a list of words; BadOption names them.
  size_t word(size_t i, std::initializer_list<std::string_view> words) const;

 private:
  const tw_value& at(size_t i) const;
  bool any_float64(std::span<const tw_value> values) const;
  ir::Expr expr_of(const tw_value& value, size_t i) const;
  ir::TileRef tile_of(const tw_value& value, size_t i) const;
  [[noreturn]] void wrong(size_t i, const char* wanted) const;
  // `given` is the operand, or a part of it.
  [[noreturn]] void wrong(size_t i, const char* wanted, const tw_value& given) const;

  const Operation& operation_;
  ir::Builder* builder_;
  SourceLocation place_;
  std::span<const tw_value> values_;
};

}  // namespace tilewright::capi
