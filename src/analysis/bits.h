// Which bits of an integer may be set.
#pragma once
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

  // at ^ (at >> shift & mask), of 64 bits. Terms of a sum that share no bits with others, and neither stand where the
  // mask is nor come to it, are added outside, and so are multiples of what is above all that is read: the rest is the
  // same for all steps of an unrolled loop.
  ir::Expr exchanged(const ir::Expr& at, int64_t shift, int64_t mask) const;

 private:
  void add(const ir::Launch& launch);
  std::unordered_map<ir::VarId, uint64_t> vars_;
};

}  // namespace tilewright::analysis
