// Which bits of an integer may be set.
#pragma once
#include <set>
#include <unordered_map>

#include "ir/program.h"

namespace tilewright::analysis {

class Bits {
 public:
  static constexpr uint64_t kUnknown = ~uint64_t{0};

  // What is known of the threads' numbers and of the variables of loops over constants.
  explicit Bits(const ir::ProgramTables& program);

  // Bits of a value that is not negative. kUnknown: it may be, or may be anything.
  uint64_t of(const ir::Expr& e) const;

  // at ^ (at >> shift & mask), of 64 bits. Both sides are linear in the bits of what `at` is made of: what the steps of
  // unrolled loops give stands apart from the rest, which all of them have in common, and is exclusive-ored or added to
  // it. Where bits are not known, multiples of what is above all that is read are added outside.
  ir::Expr exchanged(const ir::Expr& at, int64_t shift, int64_t mask) const;

 private:
  // Bits of a number, moved to the left (or, below 0, to the right): those of the result.
  struct Piece {
    ir::Expr of;
    int64_t left = 0;
    uint64_t bits = 0;
  };
  // What the value is the exclusive or of; none: it is not known which bits are set.
  using Pieces = std::vector<Piece>;
  std::optional<Pieces> pieces(const ir::Expr& e) const;
  std::optional<Pieces> parts(const ir::Expr& e) const;
  std::optional<Pieces> addends(const ir::Sum& sum) const;
  bool is_of_steps(const Piece& piece) const;
  void add_terms(const Piece& piece, std::vector<ir::Term>& to) const;
  ir::Expr joined(const Pieces& pieces) const;
  void add(const ir::Launch& launch);
  std::unordered_map<ir::VarId, uint64_t> vars_;
  std::set<ir::VarId> steps_;  // variables of loops that are unrolled
};

}  // namespace tilewright::analysis
