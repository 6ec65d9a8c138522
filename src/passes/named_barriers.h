// Named barriers of a block (PTX ISA, "bar"): numbers 0 to 15, of which 0 is that of all threads. The one place that
// gives them out.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Of a launch whose roles are final: a number for every range of threads that has a role, none that the program takes
// itself. Between a role's statements and within the code of one its threads meet at numbers of their own while there
// are two for each range, and at one number where there are not: they come to both in one order.
class NamedBarriers {
 public:
  NamedBarriers() = default;
  explicit NamedBarriers(const ir::Launch& launch);
  // For the threads of a role, between its statements, and within the code of one. None: all are taken.
  std::optional<int64_t> between(int64_t begin, int64_t end) const;
  std::optional<int64_t> within(int64_t begin, int64_t end) const;
  // One more than roles have, for who meets elsewhere: it is taken.
  std::optional<int64_t> take();

 private:
  std::vector<int64_t> free_;                        // ascending
  std::vector<std::pair<int64_t, int64_t>> ranges_;  // of threads that get a number, in the order of the roles
};

// TW8202: the threads are to meet, and no number is left for them.
[[noreturn]] void no_named_barrier(const ir::ProgramTables& program, ir::LocationId at, int64_t begin, int64_t end);

}  // namespace tilewright::passes
