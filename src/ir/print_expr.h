// Expressions as text: infix, with the fewest parentheses that parse back to the same node.
#pragma once
#include <string>

#include "ir/text_form.h"

namespace tilewright::ir {

class ExprPrinter {
 public:
  // What names stand for. The printer of programs numbers clashes; messages take the names of the tables.
  struct Names {
    std::function<std::string(VarId)> var;
    std::function<std::string(BufferId)> buffer;
    std::function<const Buffer*(BufferId)> row;  // none: no such buffer
  };
  explicit ExprPrinter(Names names) : names_(std::move(names)) {}

  // `known`: the type that a constant has at this place without saying so; none: int32, float32 or bool.
  std::string text(const Expr& e, std::optional<DType> known = {}) const;
  std::string list(const std::vector<Expr>& list) const;
  std::string element(BufferId buffer, const std::vector<Expr>& indices) const;
  std::string region(const Region& region) const;
  const Buffer* row(BufferId id) const { return names_.row(id); }
  std::string name(VarId id) const { return names_.var(id); }
  std::string name(BufferId id) const { return names_.buffer(id); }

 private:
  void write(std::string& out, const Expr& e, int at_least, std::optional<DType> known) const;
  void write_op(std::string& out, const Const& c, DType type, std::optional<DType> known) const;
  void write_op(std::string& out, const Sum& sum, DType type) const;
  void write_op(std::string& out, const Binary& binary) const;
  void write_op(std::string& out, const Cast& cast, DType type) const;
  void write_call(std::string& out, std::string_view function, std::initializer_list<const Expr*> args) const;
  void write_operands(std::string& out, std::span<const Expr* const> args, std::string_view separator,
                      std::span<const int> at_least) const;

  Names names_;
};

}  // namespace tilewright::ir
