// Exchanges of a whole warp that one instruction makes: __reduce_add_sync and its kin, of 32-bit integers, which sm_80
// and everything after has.
#pragma once
#include "ir/program.h"

namespace tilewright::codegen {

struct WarpJoin {
  std::string function;      // of CUDA: __reduce_max_sync, ...
  bool takes_signs = false;  // else of unsigned integers alone
  size_t statements = 0;     // that it stands for
  ir::Expr value;            // what each lane brings, where it has a name; its type in any case
  ir::VarId result;          // the name of what they get, or
  ir::Element place;         // where `registers` values are, each joined in its place
  int64_t registers = 0;
};
// Five steps of a butterfly over all lanes, from b[at] on, of a thread's own array or of names that nothing behind them
// reads. None: what stands there is something else.
std::optional<WarpJoin> warp_join(const ir::Body& b, size_t at, const ir::ProgramTables& program);

}  // namespace tilewright::codegen
