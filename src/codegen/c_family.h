// Scalar expressions and statements as text of the C family: one construct per node, and no decisions.
//
// Values: floats below 64 bits are held as float and rounded after every operation, 4-bit integers as bytes; memory
// holds bits (scalar/convert.h). What a target does in its own way (memory, atomics, collectives) it writes itself.
#pragma once
#include "analysis/locals.h"
#include "codegen/c_names.h"
#include "ir/program.h"

namespace tilewright::codegen {

// How tightly an expression's text binds, as C has it.
enum class Binds : uint8_t {
  Comma,
  Conditional,
  Or,
  And,
  BitOr,
  BitXor,
  BitAnd,
  Equality,
  Relation,
  Shift,
  Sum,
  Product,
  Unary,
  Primary,
};
struct Text {
  std::string text;
  Binds binds = Binds::Primary;
  std::string unrounded = {};  // the same before the rounding to the type, if `text` rounds
};
// The text, in parentheses if it would fall apart where `least` is needed.
std::string in(const Text& t, Binds least);

class CFamily {
 public:
  CFamily(const ir::ProgramTables& program, const std::set<std::string>& reserved)
      : program_(program), names_(reserved) {}
  virtual ~CFamily() = default;

 protected:
  // ---- the target's own
  virtual Text load(const ir::Load& n, DType type) = 0;
  virtual Text address(const ir::Address& n) = 0;
  virtual std::string load_bits(const ir::Load& n, DType type) = 0;
  // Of a choice that memory makes; none: it is computed.
  virtual std::optional<std::string> choice_bits(const ir::Select&) { return {}; }
  // The bits of what is converted, where that takes fewer steps than the value; none: as any value's.
  virtual std::optional<std::string> converted_bits(const ir::Cast&, DType) { return {}; }
  virtual void store(const ir::Store& n) = 0;
  virtual void target_statement(const ir::Stmt& s) = 0;
  // Statements from b[at] on that the target writes as one: how many it has written.
  virtual size_t target_statements(const ir::Body&, size_t) { return 0; }
  virtual void declare_local(ir::BufferId id) = 0;
  virtual void begin_turn(const ir::While&) {}  // the first lines of its body
  virtual void begin_turn(const ir::For&) {}
  virtual std::string loop_pragma(const ir::For& n) const;  // the line before a loop, or empty
  virtual Text function(Function f, DType type, const std::vector<std::string>& args);
  virtual std::optional<Text> quotient(DType, const Text&, const Text&) { return {}; }  // not by the operator
  virtual bool subtracts_by_function(const ir::Binary&) { return false; }               // not by the operator
  virtual std::optional<Text> exchange(const ir::Binary&) { return {}; }                // of bits, not by the operator
  virtual std::optional<Text> comparison(const ir::Binary&) { return {}; }              // or the lesser, the greater
  virtual std::optional<Text> choice(const ir::Select&) { return {}; }                  // not by ?:
  virtual bool may_be_negative(const ir::Expr& e) const = 0;
  virtual ir::Expr without_overflow(const ir::Expr& e) const { return e; }  // where integers of the target do not wrap
  virtual bool target_loop(const ir::For&) { return false; }  // true: it has been written in the target's own way

  // The value of an expression in its C type.
  Text value(const ir::Expr& e);
  std::string text(const ir::Expr& e) { return value(e).text; }
  // The bits that memory holds for a value of the expression's type.
  std::string bits(const ir::Expr& e);
  void body(const ir::Body& b);
  void note_source(const ir::Stmt& s);

  ir::Expr end_of(const ir::For& n) const;  // behind the last value of its variable

  Text binary(ir::BinaryOp op, DType type, const Text& a, const Text& b, const ir::Expr& right = {});
  Text rounded(DType type, const Text& t);                                          // after an operation
  virtual Text after_minus(DType type, const Text& t) { return rounded(type, t); }  // after one that takes opposites
  Text call(const std::string& function, const std::vector<std::string>& args);
  std::string constant(const ir::Expr& e) const;
  // The bits of a value as an unsigned integer, and back.
  std::string bits_of(DType type, const std::string& value);
  std::string value_of_bits(DType type, const std::string& bits);

  // The locals of which all uses in it are in this body, and not all of them in one that is further in.
  virtual std::set<ir::BufferId> locals_of(const ir::Body& b) const {
    return analysis::locals_of(b, program_, declared_);
  }
  void line(const std::string& s) { out_ += std::string(2 * depth_, ' ') + s + "\n"; }
  void open(const std::string& head);
  void reopen(const std::string& head);  // another arm
  void close(const std::string& tail = "}");

  const ir::ProgramTables& program_;
  Names names_;
  std::set<std::string> pieces_;
  std::string out_;
  size_t depth_ = 0;
  std::set<ir::BufferId> declared_;    // locals
  std::string last_source_;            // what note_source() wrote last
  std::vector<SourceLocation> marks_;  // of its lines, in their order

 private:
  Text sum(const ir::Sum& n, DType type);
  Text divide(const ir::Binary& n, DType type);
  Text conversion_of(const ir::Cast& n, DType type);
  void statement(const ir::Stmt& s);
  void for_loop(const ir::For& n);
};

}  // namespace tilewright::codegen
