// Which values and which control flow all threads of the executing set agree on. The language depends on it: a store or
// an atomic with uniform operands under uniform control happens once, and tile ops stand under uniform control only.
#pragma once
#include <array>
#include <map>
#include <optional>
#include <unordered_map>

#include "ir/program.h"

namespace tilewright::analysis {

// Who has the same value: nobody in particular, the threads of a warp, or all threads of the executing set.
enum class Agreement : uint8_t { None, Warp, All };

// The threads [begin, end) of a block along x, y, z.
struct ThreadSet {
  std::array<int64_t, 3> begin{0, 0, 0}, end{1, 1, 1};
  bool contains(const ThreadSet& other) const;
  bool overlaps(const ThreadSet& other) const;
  int64_t count() const;
  bool operator==(const ThreadSet&) const = default;
};

// The answers for one launch, computed once; its statements have numbers (ir/number_statements.h). `at` is the
// statement that holds the expression; inside a Map the points take the place of the threads.
class Uniformity {
 public:
  Uniformity(const ir::ProgramTables& program, const ir::Launch& launch);

  Agreement agreement(const ir::Expr& e, const ir::Stmt& at) const;
  // Of the threads of the executing set, on whether they execute `at`.
  Agreement control(const ir::Stmt& at) const { return place(at).control; }
  bool is_uniform(const ir::Expr& e, const ir::Stmt& at) const { return agreement(e, at) == Agreement::All; }
  bool is_uniform_control(const ir::Stmt& at) const { return control(at) == Agreement::All; }
  // A Store or Atomic that happens once for the whole executing set, instead of once per active thread.
  bool happens_once(const ir::Stmt& at) const;
  // The threads of the enclosing Role, or all of the block.
  const ThreadSet& executing_set(const ir::Stmt& at) const { return place(at).set; }
  bool in_map(const ir::Stmt& at) const { return place(at).in_map; }

 private:
  struct Place {
    ThreadSet set;
    Agreement control = Agreement::All;
    bool in_map = false;
  };
  struct Walk;
  struct LocalWrite {
    ThreadSet set;
    Agreement agreement;
  };

  const Place& place(const ir::Stmt& at) const;
  Agreement of(const ir::Expr& e, const ThreadSet& set) const;
  Agreement of(const std::vector<ir::Expr>& list, const ThreadSet& set) const;
  Agreement of_binary(const ir::Binary& op, const ThreadSet& set) const;
  Agreement of_local(ir::BufferId root, const ThreadSet& set) const;
  Agreement of_load(ir::BufferId buffer, const std::vector<ir::Expr>& indices, const ThreadSet& set) const;
  // Whether e is the x index of the thread plus a multiple of 32, where 32 threads along x are a warp.
  bool is_warp_aligned_x(const ir::Expr& e) const;
  void mark_threads();

  const ir::ProgramTables& program_;
  const ir::Launch& launch_;
  ThreadSet block_;
  std::unordered_map<ir::VarId, Agreement> vars_;  // a variable that is not here is uniform
  std::map<ir::BufferId, std::map<ir::StmtId, LocalWrite>> locals_;
  std::vector<std::optional<Place>> places_;  // by number
};

}  // namespace tilewright::analysis
