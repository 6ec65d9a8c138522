// Products with a matrix of which half of the elements along k are kept (scalar/sparse_group.h).
#pragma once
#include "ir/program.h"
#include "scalar/sparse_group.h"

namespace tilewright::passes {

// The element of a tile in `region` at a row and a column, both counted from its corner.
ir::Expr element_of(const ir::Region& region, bool transposed, const ir::Expr& row, const ir::Expr& column, DType type);
// The four bits of metadata of a group of a row, uint32.
ir::Expr group_bits(const ir::Gemm& gemm, const ir::Expr& row, const ir::Expr& group, const ir::ProgramTables& program);
// The column of the dense matrix where kept element `which` of the group stands, int64.
ir::Expr kept_column(SparseGroup of, const ir::Expr& group, const ir::Expr& bits, const ir::Expr& which);

// Every sparse gemm as one of a dense tile that its operand is unpacked to: for machines that multiply nothing else.
// What meets an element that is not kept is multiplied by zero.
ir::TileProgram unpack_sparse_gemms(ir::TileProgram program);

}  // namespace tilewright::passes
