// Maps that store 16-bit values to shared memory as their threads hold them in accumulators: by stmatrix, a quarter of
// the instructions that stores of two neighbours are.
#pragma once
#include "analysis/uniformity.h"
#include "passes/threads/deal.h"

namespace tilewright::passes {

struct MatrixStore {
  int64_t matrices = 0;     // of one instruction: 2 or 4
  bool transposed = false;  // the elements that a row of a matrix in memory holds are of eight lanes of a thread's own
  bool operator==(const MatrixStore&) const = default;
};

// The number of a thread's point among all of its points, in the order of their registers, between which a part of a
// fragment leaves others out; and how many there are.
ir::Expr number_of_point(const Held& at);
int64_t points_of_thread(const FragmentLayout& points);

// How a Map's only statement, a store, is one by matrices; none: it is not. Of each matrix's rows the lane that points
// at it must know the place: indices are of the points, and of what all threads agree on.
std::optional<MatrixStore> matrix_store_of(const ir::Stmt& map, const FragmentLayout& points, const Team& team,
                                           const ir::ProgramTables& program, const analysis::Uniformity& uniformity);

// The stores of a thread whose values lie in `registers` by the numbers of its points. None: a row may be out of
// bounds.
std::optional<ir::Body> store_matrices(const ir::Map& map, const MatrixStore& how, const FragmentLayout& points,
                                       ir::BufferId registers, const Team& team, Lowering& l);

}  // namespace tilewright::passes
