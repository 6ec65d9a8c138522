#include "runtime/processor.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cstdlib>

#include "support/diagnostic.h"

namespace tilewright::runtime {
namespace {

struct Feature {
  bool ProcessorFeatures::*member;
  const char* name;
  std::vector<const char*> flags;
};

const std::vector<Feature>& features() {
  static const std::vector<Feature> table = {
      {&ProcessorFeatures::avx2, "avx2", {"-mavx2"}},
      {&ProcessorFeatures::fma, "fma", {"-mfma"}},
      {&ProcessorFeatures::f16c, "f16c", {"-mf16c"}},
      {&ProcessorFeatures::avx512, "avx512", {"-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq"}},
      {&ProcessorFeatures::avx512_bf16, "avx512_bf16", {"-mavx512bf16"}},
      {&ProcessorFeatures::avx512_vnni, "avx512_vnni", {"-mavx512vnni"}},
      {&ProcessorFeatures::avx512_vbmi, "avx512_vbmi", {"-mavx512vbmi", "-mgfni"}},
      {&ProcessorFeatures::amx, "amx", {"-mamx-tile", "-mamx-bf16", "-mamx-int8"}},
  };
  return table;
}

#if defined(__x86_64__)
// Tiles are a process's only once it has asked for them (Linux, arch/x86/xstate: ARCH_REQ_XCOMP_PERM of XTILEDATA): its
// threads' states are 8 KB larger from then on.
bool may_use_tiles() {
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25;  // of leaf 7, EDX (Intel SDM, CPUID)
  constexpr long kRequest = 0x1023, kTileData = 18;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & (kBf16 | kTile | kInt8)) != (kBf16 | kTile | kInt8))
    return false;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}
#endif

}  // namespace

std::vector<std::string> ProcessorFeatures::compiler_flags() const {
  std::vector<std::string> flags;
  for (const Feature& f : features())
    if (this->*f.member) flags.insert(flags.end(), f.flags.begin(), f.flags.end());
  return flags;
}

std::string ProcessorFeatures::to_string() const {
  std::vector<std::string> names;
  for (const Feature& f : features())
    if (this->*f.member) names.push_back(f.name);
  return names.empty() ? "portable" : fmt::format("{}", fmt::join(names, " "));
}

unsigned ProcessorFeatures::bits() const {
  unsigned out = 0;
  for (size_t i = 0; i < features().size(); ++i) out |= static_cast<unsigned>(this->*features()[i].member) << i;
  return out;
}

ProcessorFeatures detect_processor() {
  ProcessorFeatures p;
#if defined(__x86_64__)
  // The builtins ask cpuid and also XGETBV: a processor whose operating system does not save the registers counts as
  // without.
  __builtin_cpu_init();
  p.avx2 = __builtin_cpu_supports("avx2");
  p.fma = __builtin_cpu_supports("fma");
  p.f16c = __builtin_cpu_supports("f16c") && p.avx2;
  p.avx512 = p.avx2 && p.fma && p.f16c && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  p.avx512_bf16 = p.avx512 && __builtin_cpu_supports("avx512bf16");
  p.avx512_vnni = p.avx512 && __builtin_cpu_supports("avx512vnni");
  p.amx = p.avx512_bf16 && p.avx512_vnni && may_use_tiles();
  p.avx512_vbmi = p.avx512 && __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("gfni");
#endif
  return p;
}

ProcessorFeatures restrict_features(const ProcessorFeatures& processor, std::string_view level) {
  if (level.empty() || level == "native") return processor;
  ProcessorFeatures p;
  if (level == "portable") return p;
  if (level != "avx2" && level != "avx512" && level != "amx")
    fail(Code::ProcessorUnknown, {}, fmt::format("TILEWRIGHT_CPU is '{}', which is no processor level", level),
         "use portable, avx2, avx512, amx or native");
  p.avx2 = processor.avx2;
  p.fma = processor.fma;
  p.f16c = processor.f16c;
  p.avx512 = level != "avx2" && processor.avx512;
  if (level == "amx") {
    p.avx512_bf16 = processor.avx512_bf16, p.avx512_vnni = processor.avx512_vnni;
    p.amx = processor.amx;
  }
  return p;
}

ProcessorFeatures features_of_level(std::string_view level) {
  ProcessorFeatures all{.avx2 = true, .fma = true, .f16c = true, .avx512 = true};
  all.avx512_bf16 = all.avx512_vnni = all.amx = true;
  return restrict_features(all, level);
}

ProcessorFeatures processor_features() {
  static const ProcessorFeatures processor = detect_processor();
  const char* level = std::getenv("TILEWRIGHT_CPU");
  return restrict_features(processor, level ? level : "");
}

}  // namespace tilewright::runtime
