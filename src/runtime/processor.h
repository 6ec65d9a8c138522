// Instruction sets that CPU kernels may use, as data: detected, restricted by TILEWRIGHT_CPU, part of every kernel's
// key.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::runtime {

struct ProcessorFeatures {
  bool avx2 = false;
  bool fma = false;
  bool f16c = false;
  bool avx512 = false;  // F, BW, VL and DQ together: no processor that matters has only some
  bool avx512_bf16 = false;
  bool avx512_vnni = false;
  bool avx512_vbmi = false;  // and GFNI
  bool amx = false;          // tiles, with products of bf16 and of 8-bit integers
  bool operator==(const ProcessorFeatures&) const = default;

  std::vector<std::string> compiler_flags() const;  // "-mavx2", ...
  std::string to_string() const;                    // "avx2 fma f16c"; "portable" without any
  unsigned bits() const;                            // one each, in the order of their names
};

// What this machine and its operating system can run.
ProcessorFeatures detect_processor();

// The features of `processor` that a level leaves: "portable" (none), "avx2" (avx2, fma, f16c), "avx512" (those and
// avx512), "amx" (those, avx512_bf16, avx512_vnni and amx), "native" or empty (all). CompileError for another name.
// Never more than the processor has.
ProcessorFeatures restrict_features(const ProcessorFeatures& processor, std::string_view level);

// All that a level may have: "portable", "avx2", "avx512", "amx".
ProcessorFeatures features_of_level(std::string_view level);

// detect_processor() restricted by TILEWRIGHT_CPU as it stands now.
ProcessorFeatures processor_features();

}  // namespace tilewright::runtime
