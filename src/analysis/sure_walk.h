// A walk over a launch that knows which statements surely happen, and at which points: what certain mistakes are found
// with. A launch that does not run, and a loop whose extent only the call knows, count as running.
#pragma once
#include "analysis/value_at.h"
#include "ir/program.h"
#include "support/diagnostic.h"
#include "support/function_ref.h"

namespace tilewright::analysis {

class SureWalk {
 public:
  SureWalk(const ir::ProgramTables& program, const ir::Launch& launch);
  virtual ~SureWalk() = default;
  SureWalk(const SureWalk&) = delete;
  SureWalk& operator=(const SureWalk&) = delete;
  void run();

  std::vector<Diagnostic> findings;

 protected:
  enum class Kind : uint8_t { Block, Thread, Loop, Map };
  // A variable has each of these values at some point that is surely come to.
  struct Span {
    int64_t first = 0, last = 0;
    Kind kind = Kind::Loop;
  };
  struct Guard {
    ir::Expr condition;
    bool truth = true;
  };

  // Before what is inside of it; not called for what never happens.
  virtual void visit(const ir::Stmt& s) = 0;

  // What the expressions of a statement load, with the guards under which they do.
  void for_each_load(const ir::Stmt& s, function_ref<void(const ir::Load&)> f);
  // Whether everything around holds at the point.
  bool holds(const Point& point) const;
  // All variables at their first values: of loops, the first turn.
  const Point& first() const { return first_; }
  bool surely_at_first() const { return !uncertain_ && holds(first_); }
  // The variables of an expression that have values, through names.
  void add_variables(const ir::Expr& e, std::vector<ir::VarId>& to) const;
  // Every combination of first and last values of the variables, the others at their first, until f gives false. False:
  // there are too many.
  bool for_each_corner(const std::vector<ir::VarId>& vars, function_ref<bool(const Point&)> f) const;
  // Whether the value is the same for all threads, blocks and points of a map: it depends on loops alone.
  bool is_of_loops(const ir::Expr& e) const;
  void report(Code code, const ir::Stmt& at, ir::BufferId about, std::string message, std::string help);

  const ir::ProgramTables& program_;
  const ir::Launch& launch_;
  bool uncertain_ = false;  // for a reason that no guard says
  std::vector<Guard> guards_;
  const ir::Body* apart_ = nullptr;  // the innermost body around that only some threads, blocks or points run
  std::unordered_map<ir::VarId, Span> spans_;
  std::unordered_map<ir::VarId, ir::Expr> names_;

 private:
  void body(const ir::Body& list);
  void statement(const ir::Stmt& s);
  void loop(const ir::For& loop);
  void branch(const ir::If& branch);
  void map(const ir::Map& map);
  void role(const ir::Role& role);
  void guarded(const ir::Expr& condition, bool truth, const ir::Body& inside);
  void set(ir::VarId id, Span span);
  void unset(ir::VarId id);
  void loads_of(const ir::Expr& e, function_ref<void(const ir::Load&)> f);

  Point first_;
  std::unordered_set<const ir::ExprNode*> seen_;  // of this statement's expressions
};

}  // namespace tilewright::analysis
