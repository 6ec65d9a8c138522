// What the programs of multi-head latent attention share: arguments and the check.
#pragma once
#include "example.h"

namespace examples {

struct MlaShape {
  int64_t batch, heads, keys, dim, pe_dim;
};

// Of a program with the parameters Q, Q_pe, KV, K_pe, Output.
Case mla_case(MlaShape shape, tilewright::Program program, tilewright::DType dtype, bool is_dynamic, Data data);

}  // namespace examples
