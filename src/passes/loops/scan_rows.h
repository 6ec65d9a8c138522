// Rows of a tile that are scanned side by side are one statement: each step of theirs touches elements a row apart,
// which a vector takes only after a transposition.
//
// Needs: a LoopProgram.
// Leaves: the same results. `for k < count: for row < rows: total[row] = value of total[row] and from[row, k]; to[row,
//   k] = total[row]` is a RowScan where the value has only what vectors have operators for, along k elements follow one
//   another, and the rows are as many as a vector takes, or a half or a quarter of that.
#pragma once
#include "ir/program.h"
#include "target/cpu.h"

namespace tilewright::passes {

ir::LoopProgram scan_rows(ir::LoopProgram program, const target::CpuFeatures& features);

}  // namespace tilewright::passes
