// The parser of .tile text: recursive descent over tokens, bounded in depth. Its parts: parse_expr.cpp, parse_stmt.cpp,
// parse.cpp (programs, launches, buffers).
#pragma once
#include <string>

#include "ir/parse_tokens.h"
#include "ir/text_form.h"
#include "scalar/functions.h"
#include "support/diagnostic.h"

namespace tilewright::ir {

class Parser {
 public:
  Parser(std::string_view text, std::string file);
  TileProgram program(std::string_view header);

 private:
  // An expression, or a number that takes its type from what stands beside it.
  struct Operand {
    enum class Literal : uint8_t { None, Int, Float };
    Expr e;
    Literal literal = Literal::None;
    bool negative = false;
    uint64_t magnitude = 0;
    double real = 0;
    int depth = 1;
    const Token* at = nullptr;
    bool is_literal() const { return literal != Literal::None; }
  };
  struct Named {
    bool is_buffer = false;
    VarId var;
    BufferId buffer;
  };
  // Bounds recursion: each level of brackets, blocks or prefix operators takes one.
  class Nesting {
   public:
    explicit Nesting(Parser& parser);
    ~Nesting() { --parser_.nesting_; }

   private:
    Parser& parser_;
  };

  // ---- tokens (parse.cpp)
  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(next_ + ahead, tokens_.size() - 1)]; }
  const Token& take();
  bool take_if(std::string_view symbol_or_word);
  const Token& expect(std::string_view symbol_or_word, const char* where);
  SourceLocation place(const Token& token) const { return {file_, token.line, token.column}; }
  [[noreturn]] void fail_expected(const char* what, const Token& found) const;
  std::string spelled(const Token& token) const;  // the name's or string's value
  std::string name(const char* what);
  std::string string();
  int64_t integer(const char* what);
  DType type();
  template <class E>
  E word(const char* what);
  LocationId location_of(const Token& token);
  // After a statement's text: @ "file":line:column, @ unknown, or nothing: where the text itself stands.
  LocationId location_after(const Token& begin);
  LocationId add_location(SourceLocation location);

  // ---- names (parse.cpp)
  const Named* find(const std::string& name) const;
  void check_free(const std::string& name, const Token& at) const;
  VarId define_var(const std::string& name, DType type, const Token& at);
  BufferId define_buffer(Buffer buffer, const Token& at);
  BufferId buffer_named(const char* what);
  void leave_scope(size_t depth);

  // ---- program (parse.cpp)
  void header();
  void announce_scalars();
  VarId scalar();
  void param();
  void option();
  void launch();
  std::vector<int64_t> extents_in_parentheses();
  BufferId buffer(Space space, bool brackets_make_tensor);
  void buffer_attribute(Buffer& b, const std::string& attribute, const Token& at);
  LayoutAnnotation layout();

  // ---- expressions (parse_expr.cpp)
  Expr expression(std::optional<DType> known = {});
  Expr condition();
  Expr integer_expression(const char* what);
  std::vector<Expr> expressions_until(std::string_view close);
  Operand infix(int at_least);
  Operand prefix();
  Operand primary();
  Operand number();
  Operand named();
  Operand call();
  Operand cast_call(DType type, const Token& at);
  Operand builtin_call(const std::string& function, const Token& at);
  Operand function_call(Function function, const std::string& spelling, const Token& at);
  std::vector<Operand> arguments(const std::string& function, size_t count, const Token& at);
  Operand combine(BinaryOp op, Operand a, Operand b, bool swapped, const Token& at);
  Operand negated(Operand operand, const Token& at);
  // Gives the literals among the operands the type of the others; int32 or float32 if there are no others.
  void unify(std::span<Operand> operands, std::string_view what, const Token& at);
  Expr as_type(const Operand& operand, DType type) const;
  Expr finished(const Operand& operand) const;
  Operand made(Expr e, int depth, const Token& at) const;
  std::vector<Expr> indices(BufferId buffer, const Token& at);

  // ---- statements (parse_stmt.cpp)
  Body block();
  Stmt statement();
  Stmt binding();
  Stmt store(const Token& at, Queue queue);
  Stmt for_loop(const Token& at);
  Stmt map(const Token& at);
  Stmt role(const Token& at);
  Stmt elect(const Token& at);
  Stmt if_else(const Token& at);
  // An operator by its name, with fields. `result`: the name and type before it, if any.
  struct Result {
    std::string name;
    DType type;
    const Token* at;
  };
  Stmt operation(const Result* result);
  template <size_t I = 0>
  Stmt operation_named(const Token& at, const Result* result);
  template <class T>
  Stmt generic(const Token& at, const Result* result);
  template <class T>
  bool field_named(T& node, const std::string& field, std::optional<DType> known);
  template <class T>
  void fields_in_parentheses(T& node);
  template <class T>
  void field(T& value, std::optional<DType> known);
  Region region();
  Element element();
  bool starts_operation(const Token& at, const Token& after) const;

  std::string file_;
  std::vector<Token> tokens_;
  size_t next_ = 0;
  int nesting_ = 0;
  TileProgram program_;
  int32_t launch_ = -1;
  bool is_loop_program_ = false;
  std::unordered_map<size_t, VarId> announced_;  // by the token of the name
  // Of a loop program: the launch names them, its loops bind them.
  std::unordered_map<std::string, VarId> launch_vars_;
  std::unordered_map<std::string, Named> names_;
  std::vector<std::string> scope_;  // variables in order of definition: leaving a scope drops a tail
  std::vector<std::string> launch_buffers_;
  std::map<std::tuple<std::string, int, int>, uint32_t> locations_;
};

// One of the words of an enumeration.
template <class E>
E Parser::word(const char* what) {
  const Token& token = take();
  const std::span<const char* const> names = enum_names(E{});
  for (size_t i = 0; i < names.size(); ++i)
    if (token.is(names[i])) return static_cast<E>(i);
  if (token.kind != TokenKind::Name) fail_expected(what, token);
  fail(Code::TextWord, place(token), fmt::format("'{}' is no {}", token.text, what),
       fmt::format("one of: {}", fmt::join(names, ", ")));
}

}  // namespace tilewright::ir
