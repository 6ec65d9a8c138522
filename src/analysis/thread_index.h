// Which elements of a buffer belong to one thread alone.
#pragma once
#include <map>
#include <optional>
#include <set>

#include "ir/program.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

// True if different threads of the block are sure to index different elements: every thread variable stands in an index
// whose other terms all threads agree on. `bound` are the variables that the launch's body binds.
bool is_own_element(const std::vector<ir::Expr>& index, const ir::Launch& launch, const std::set<ir::VarId>& bound);

// How an index numbers elements by the threads and the loops around it: a sum of digits, of which none reaches the
// weight of the next, on top of what the whole launch agrees on. Threads that differ have other elements, whatever
// their loops have come to; so have threads whose index is another of the same form.
struct OwnElement {
  struct Digit {
    int64_t weight = 0, extent = 0;  // extent 0: not known, and the last
    int thread = -1;                 // dimension of the thread's index: index / divisor % extent; -1: of a loop
    int64_t divisor = 1;
    bool operator==(const Digit&) const = default;
  };
  struct Dimension {
    std::vector<Digit> digits;  // by weight
    std::vector<ir::Term> base;
    int64_t constant = 0;
    bool anything = false;  // it may be any: other dimensions tell the threads apart
    int64_t columns = 0;    // it is a quotient by so many, and the next dimension the rest; 0: it is none
  };
  std::vector<Dimension> dimensions;
  bool operator==(const OwnElement& o) const;
};

class OwnElements {
 public:
  explicit OwnElements(const ir::Launch& launch);
  // Threads of a role: of all, if the launch has one dimension of them.
  struct Range {
    int64_t begin = 0, end = 0;
    bool operator==(const Range&) const = default;
  };
  // None: threads, of the role or of all, may have the same elements.
  std::optional<OwnElement> of(const std::vector<ir::Expr>& index, std::optional<Range> role = {}) const;
  // The same for warps of the role: threads of other warps have other elements, those of one may share some. `role`
  // begins and ends with a warp; without one it is the whole block.
  std::optional<OwnElement> of_warps(const std::vector<ir::Expr>& index, std::optional<Range> role) const;

 private:
  struct Counter {  // of a loop
    int64_t begin = 0, extent = 0;
  };
  OwnElement positional(const std::vector<ir::Expr>& index, const Range& threads) const;
  std::optional<OwnElement::Digit> digit(const ir::Expr& e, const Range& threads) const;
  bool add(int64_t weight, const ir::Expr& e, OwnElement::Dimension& to, const Range& threads) const;
  bool covers_threads(const OwnElement& e, int64_t together, const Range& threads) const;
  // Of the dimension's index, where `threads` are all there are.
  int64_t threads_along(int dimension, const Range& threads) const;
  static bool is_positional(OwnElement::Dimension& d);

  const ir::Launch& launch_;
  std::map<ir::VarId, ir::Expr> named_;  // by Let
  std::map<ir::VarId, Counter> counters_;
  std::set<ir::VarId> bound_;
};

// The only one of these threads, by its number in the block, for which the condition may hold, as far as the index of a
// thread tells: of tx == 0, of tx % 128 == 0 among 128. None: there may be several, or there is none.
std::optional<int64_t> only_thread(const ir::Expr& condition, const ir::Launch& launch, OwnElements::Range among,
                                   const ir::Substitution* names = nullptr);

}  // namespace tilewright::analysis
