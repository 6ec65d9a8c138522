// What a plan costs, by a model of a multiprocessor whose units run beside each other.
#pragma once
#include <optional>
#include <set>
#include <string_view>

#include "ir/rewrite.h"
#include "plan/plan.h"
#include "target/gpu.h"
#include "target/machine.h"

namespace tilewright::plan {

struct Price {
  // Clocks for which a tile of the grid keeps each unit of a multiprocessor busy.
  double matrix = 0;           // products
  double shared = 0;           // shared memory: operands that products read there, copies on chip
  double l2 = 0;               // tiles that come from the L2 cache
  double over_lines = 0;       // of that, for rows that are no whole lines
  double issue = 0;            // elementwise code and reductions, functions of the special unit included
  double special = 0;          // of that, exponentials and the like
  double epilogue = 0;         // results on their way to memory
  double barriers = 0;         // no unit is busy: threads wait for each other
  double tiles = 0;            // of the grid
  double places = 0;           // for them in all waves: the last is not always full
  double multiprocessors = 0;  // that take them
  int64_t waves = 0;           // of tiles, one a block
  double memory = 0;           // microseconds that the device's memory takes for all that is read and written, once
  double microseconds = 0;
  std::string_view limit;  // what decides: matrix, shared, l2, issue, results or memory
};

// Of a canonical launch under its plan, with values of its variables as far as they are known, on a machine, or on the
// one that the target's schedules are made for. None: the number of tiles, or of a loop's turns, is not known.
std::optional<Price> price(const ir::ProgramTables& program, const ir::Launch& launch, const Plan& plan,
                           const target::GpuTarget& target, const ir::Substitution& known = {},
                           const target::Machine* machine = nullptr);

// Of a product by so many threads of a block: clocks of the matrix unit, and those in which shared memory feeds it.
struct ProductClocks {
  double matrix = 0, shared = 0;
  bool by_warpgroups = false;
  double together() const;  // of both, which run beside each other
};
struct ProductSize {
  int64_t rows = 0, columns = 0, depth = 0;
};
ProductClocks clocks_of(const ir::ProgramTables& program, const ir::Gemm& gemm, const ProductSize& size,
                        int64_t threads, const target::GpuTarget& target, const target::Machine* machine = nullptr);

// Whether wgmma does a product of other rows the other way round (c^T = b^T a^T) in less time than mma.sync does it, by
// so many threads.
bool is_cheaper_turned(const ir::ProgramTables& program, const ir::Gemm& gemm, int64_t threads,
                       const target::GpuTarget& target);
// The products of loops that are: all of a loop's, into fragments that no other operation wants to lie otherwise.
std::set<const ir::Gemm*> turned_products(const ir::ProgramTables& program, const ir::Launch& launch, int64_t threads,
                                          const target::GpuTarget& target);

}  // namespace tilewright::plan
