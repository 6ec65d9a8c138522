// Rows of a tile that are scanned side by side, found again in loops: each step of theirs touches elements a row apart,
// which a vector takes only after a transposition.
#pragma once
#include "ir/program.h"

namespace tilewright::codegen {

// for k in count: for row in rows: total[row] = join of total[row] and from[row, k]; to[row, k] = total[row]
struct RowScan {
  int64_t rows = 0, to_step = 0, from_step = 0;  // steps from row to row, in elements
  ir::BufferId total;
  ir::Element to, from;  // row 0, k 0
  ir::Expr count;
  std::string join;  // as vector_text() has it
};

// Rows of one type, along which elements follow one another, and as many as a vector of so many bytes takes or a half
// or a quarter of that.
std::optional<RowScan> row_scan_of(const ir::For& along, const ir::ProgramTables& program, int64_t vector_bytes);

}  // namespace tilewright::codegen
