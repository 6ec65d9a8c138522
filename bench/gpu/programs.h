// The examples on a device: right at odd shapes and at full size, timed beside copies and cuBLAS.
#pragma once
#include "blas.h"
#include "copy.h"
#include "rates.h"
#include "selection.h"

namespace bench::gpu {

struct ProgramOptions {
  Selection selection;
  int turns = 30;
  bool odd = true, timed = true;
  bool plans = false;  // the plans that a launch might have instead, beside the one that it has
  bool full = true;    // all elements of a full-size result against the CPU engine's, besides the sample by plain loops
};

// Prints rows and gives them. `blas` may be null.
Json programs(const ProgramOptions& options, const Blas* blas, int& failures);

}  // namespace bench::gpu
