// What a device of an architecture can hold and do at most. For explanations: no decision depends on it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "tilewright/dtype.h"

namespace tilewright::target {

// Of one multiprocessor (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
struct Multiprocessor {
  int64_t registers = 65536, threads = 2048, blocks = 32, shared_bytes = 233472;
  int64_t reserved_bytes = 1024;  // of shared memory, for each block
  int64_t register_unit = 256;    // registers are given to warps in multiples
};
Multiprocessor multiprocessor_of(int arch);

// How many blocks of a kernel one multiprocessor runs at a time, and what keeps it from more: "registers", "shared
// memory", "threads" or "blocks".
struct Occupancy {
  int64_t blocks = 0, warps = 0, most_warps = 0;
  std::string limit;
};
Occupancy occupancy_of(int arch, int64_t threads, int64_t registers, int64_t shared_bytes);

// Operations and bytes a second, from the data sheets of one device of each architecture: without sparsity, at the
// clock that the sheet assumes.
struct Rates {
  std::string_view device;
  double bytes;  // of the device's memory
  double plain;  // float32 without matrix instructions, a fused multiply-add being two
  double half, tf32_rate,
      eight;    // matrix instructions of 16 bits, of tf32, and of 8 bits, floats or integers (0: none)
  double wide;  // of float64
  double of_matrix(DType operand) const;  // 0: no matrix instruction takes it
};
const Rates& rates_of(int arch);

}  // namespace tilewright::target
