// Which instruction does a gemm: by the program, the gemm, the threads that do it and the target alone. Whether its
// accumulator and an operand in registers can lie as the instruction wants them, the other operations on them say
// (placement.h).
#pragma once
#include <string>

#include "analysis/uniformity.h"
#include "ir/program.h"
#include "layout/standard.h"
#include "target/gpu.h"
#include "target/mma.h"
#include "target/wgmma.h"

namespace tilewright::passes {

// Fused multiply-adds on elements of c that a thread keeps: neighbours that it holds (layout/standard.h), and how many
// steps of k come at a time.
struct FmaTile {
  int64_t rows = 1, columns = 1, depth = 1;
  int64_t unit_rows() const { return kTileLanesOfColumn * rows; }
  int64_t unit_columns() const { return kTileLanesOfRow * columns; }
};

// How a Gemm is done: by an instruction of warpgroups, or one of warps, or fused multiply-adds, of tiles in registers
// where the extents allow it.
struct GemmChoice {
  const target::WgmmaInstruction* wgmma = nullptr;
  const target::MmaInstruction* mma = nullptr;
  std::optional<FmaTile> tile;
  // Warp (or warpgroup) i + j * warps_m takes rows i and columns j of the tile.
  int64_t warps_m = 1, warps_n = 1;
  bool a_in_registers = false;
  // Why words of mma.sync are put together from elements of an operand, not loaded by ldmatrix; empty: they are loaded.
  std::string a_by_elements, b_by_elements;
  bool transposed = false;  // the instruction multiplies b^T by a^T into c^T, and the warps are dealt to c^T
  std::string why_not_wgmma, why_not_mma;
  bool has_instruction() const { return wgmma || mma; }
  bool has_layout() const { return has_instruction() || tile; }
};

// The extents of a gemm, all of which are constants: c has rows x columns, and k is what is summed over.
struct GemmExtents {
  int64_t rows, columns, k;
};
GemmExtents extents_of(const ir::Gemm& gemm);

// What is known of a gemm beside the program.
struct GemmPlace {
  analysis::ThreadSet threads;  // that do it
  bool c_in_registers = false;  // all of a fragment, which may live there
  bool a_in_registers = false;  // a fragment, which may live there
  int64_t min_blocks = 0;       // of the launch, at once on a multiprocessor (ir/program.h)
  std::string no_wgmma;         // why not, where that has been found out; empty: it has not
  bool may_transpose = false;   // where wgmma has no such rows
};
GemmChoice choose_gemm(const ir::ProgramTables& program, const ir::Gemm& gemm, const GemmPlace& place,
                       const target::GpuTarget& target);

// How the accumulator lies, and an operand a in registers, for a choice that has a layout, or an instruction.
FragmentLayout accumulator_of(const GemmChoice& choice, int64_t rows, int64_t columns);
FragmentLayout operand_of(const GemmChoice& choice, int64_t rows, int64_t k);

}  // namespace tilewright::passes
