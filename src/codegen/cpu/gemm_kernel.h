// The register kernel of a gemm: what it multiplies, how wide, how many registers, and the text of its instructions.
#pragma once
#include <string>

#include "codegen/cpu/gemm_text.h"

namespace tilewright {

// Of a tile: its rows, and the steps along k of one product of two tiles.
constexpr int kTileRows = 16, kTileSteps = 16;

// One step of the kernel: accumulators += broadcast * vector.
enum class GemmStep : uint8_t {
  Multiply,    // two roundings, any compiler and machine; integers modulo their width
  Fma,         // f32 and f64
  Bf16Pairs,   // vdpbf16ps: two products a lane
  Int16Pairs,  // vpmaddwd and an add, or vpdpwssd: two products a lane
  Bf16Tiles,   // tdpbf16ps: 16 pairs of products for each of 16 x 16 elements
  Int8Tiles,   // tdpbssd or tdpbuud: 16 times four products for each
};

struct GemmKernel {
  GemmStep step = GemmStep::Multiply;
  DType element = f32;      // what the kernel reads: the type of panels
  DType accumulator = f32;  // f32, f64, u32 or u64
  int interleave = 1;       // elements along k that one step multiplies
  int bytes = 16;           // of a vector register
  int vectors = 2;          // vectors along the vector axis
  int rows = 6;             // most rows along the broadcast axis; of tiles: along the axis that is not theirs
  bool vnni = false;

  bool tiles() const { return step == GemmStep::Bf16Tiles || step == GemmStep::Int8Tiles; }
  int lanes() const { return bytes * 8 / accumulator.bits; }
  int64_t width() const { return int64_t{lanes()} * vectors; }
  // "avx512_fma", "plain": tells texts for different features apart.
  std::string code() const;
};

GemmKernel choose_kernel(const GemmSpec& spec, VectorAxis axis);

// The vector axis that the layout of C asks for.
VectorAxis vector_axis(const GemmSpec& spec);

// Types for the beginning of a function body: `vec` (accumulators), `loose` (the same at any address), `word` (what is
// broadcast, at any address), `words` and `loose_words` (vectors of it), and what the step needs.
std::string kernel_types(const GemmKernel& kernel);

// A macro of three vectors (accumulators, broadcast, vector) whose value is the new accumulators. Texts that use the
// same step repeat the same definition, which the preprocessor allows.
std::string step_name(const GemmKernel& kernel);
std::string step_definition(const GemmKernel& kernel);

}  // namespace tilewright
