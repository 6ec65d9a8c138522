// What the GPU engine may assume of a device. Data: a kernel's text depends on this and the program alone.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/dtype.h"

namespace tilewright::target {

// What instructions there are (PTX ISA, by target).
struct GpuFeatures {
  // Copies of boxes that complete on mbarriers, by clusters of blocks. sm_120 and sm_121 have such copies, but none of
  // our plans for them: clusters there do not share what they load (CUTLASS, "Blackwell SM120 GEMMs").
  bool tma = false;
  bool wgmma = false;            // products of warpgroups; another architecture than sm_90a does not run them
  bool set_registers = false;    // setmaxnreg
  bool launch_order = false;     // griddepcontrol
  bool store_matrices = false;   // stmatrix
  bool fp8_conversions = false;  // pairs of float32 to float8
  bool tf32_rounding = false;    // of float32 to tf32, to nearest even
  bool vector_adds = false;      // atomic additions of several neighbours at once, and of bfloat16
  bool operator==(const GpuFeatures&) const = default;
};

// Of one multiprocessor (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
struct Multiprocessor {
  int64_t registers = 65536, threads = 2048, blocks = 32, shared_bytes = 233472;
  int64_t reserved_bytes = 1024;  // of shared memory, for each block
  int64_t register_unit = 256;    // registers are given to warps in multiples
  bool operator==(const Multiprocessor&) const = default;
};

// Operations and bytes a second, from the data sheet of one device of the architecture: without sparsity, at the clock
// that the sheet assumes. For explanations: no decision depends on it.
struct Rates {
  std::string_view device;
  double bytes = 0;  // of the device's memory
  double plain = 0;  // float32 without matrix instructions, a fused multiply-add being two
  double half = 0, tf32_rate = 0,
         eight = 0;  // matrix instructions of 16 bits, of tf32, and of 8 bits, floats or integers (0: none)
  double wide = 0;   // of float64
  double of_matrix(DType operand) const;  // 0: no matrix instruction takes it
  bool operator==(const Rates&) const = default;
};

// How many blocks of a kernel one multiprocessor runs at a time, and what keeps it from more: "registers", "shared
// memory", "threads" or "blocks".
struct Occupancy {
  int64_t blocks = 0, warps = 0, most_warps = 0;
  std::string limit;
};

struct GpuTarget {
  int arch = 0;           // compute capability times ten
  std::string_view name;  // "sm_90a"
  GpuFeatures has;
  Multiprocessor multiprocessor;
  Rates rates;
  std::string_view machine;     // of machine.h, by which its plans are priced: the nearest of those that we know
  int64_t multiprocessors = 0;  // of the device that schedules are made for; others run them as well
  int64_t shared_bytes = 0;     // that one block may use

  // What each of several blocks of a multiprocessor may use.
  int64_t shared_bytes_of_blocks(int64_t blocks) const {
    return multiprocessor.shared_bytes / blocks - multiprocessor.reserved_bytes;
  }
  // What each thread of a block begins with, where so many blocks (0: one) are to share a multiprocessor: setmaxnreg
  // moves these between warps, in multiples of 8 (PTX ISA).
  int64_t registers_at_launch(int64_t threads, int64_t blocks) const {
    constexpr int64_t kUnit = 8;
    return multiprocessor.registers / std::max<int64_t>(blocks, 1) / threads / kUnit * kUnit;
  }
  Occupancy occupancy(int64_t threads, int64_t registers, int64_t shared_bytes_of_block) const;

  // Of an architecture that we know: 80, 90, 120, ...
  static GpuTarget of(int arch);
  // By its name, which may lack the letter: "sm_90a", "sm_90". Null: we do not know it.
  static const GpuTarget* named(std::string_view name);
  bool operator==(const GpuTarget&) const = default;
};

std::span<const GpuTarget> gpu_targets();
std::vector<std::string> gpu_names();  // "sm_80", ..., as GpuTarget::named() takes them

}  // namespace tilewright::target
