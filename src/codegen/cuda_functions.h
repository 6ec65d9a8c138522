// Functions of floats in the CUDA text: by the names that CUDA has for them, where what is called is text of ours
// behind "tw_" (so that results are those of every engine), and CUDA's own approximations where the program allows
// them.
#pragma once
#include <set>
#include <string>

#include "ir/program.h"
#include "scalar/functions.h"

namespace tilewright::codegen {

struct CudaFunction {
  std::string name;   // as it is called
  std::string piece;  // the scalar piece that it stands for; empty: CUDA's own function
};
// fast_math: the program's option, under which exp, log and their kin may be approximations.
CudaFunction cuda_function(Function function, DType type, bool fast_math);

// Whether the last bits are the device's own: CUDA's exp (1 ulp), exp2 of floats by one instruction, and what goes
// through the C library goes through CUDA's. All other functions give the bits of every engine.
bool is_own_of_device(Function function, DType type);
// How many units in the last place of the largest value four such functions, or approximations, one upon the other may
// lie from what other engines give; 0: the program has none.
double device_units(const ir::TileProgram& program);

// The definitions of names that have a piece of another name; of double where the flag is set.
std::string cuda_function_names(const std::set<std::pair<Function, bool>>& used);

}  // namespace tilewright::codegen
