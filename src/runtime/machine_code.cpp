#include "runtime/machine_code.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace tilewright::runtime {
namespace {

constexpr size_t kInstructionBytes = 16;

// The compute capability that a cubin is for stands in the lowest byte of its flags, or in the next since CUDA 13.
bool has_vimnmx(uint32_t flags) { return std::max(flags & 0xff, flags >> 8 & 0xff) >= 90; }

// A copy of the T at a place of the file, or nothing of it.
template <class T>
bool read(std::string_view file, uint64_t at, T& out) {
  if (at > file.size() || file.size() - at < sizeof(T)) return false;
  std::memcpy(&out, file.data() + at, sizeof(T));
  return true;
}

bool merges_clamp(uint64_t low, uint64_t high) {
  const bool is_min_or_max = (low & 0x1ff) == 0x048, clamps = high >> 12 & 1;
  return is_min_or_max && clamps && (high >> 17 & 0x3f) != 0x3f;
}

}  // namespace

bool merges_clamps(std::string_view cubin) {
  Elf64_Ehdr head{};
  if (!read(cubin, 0, head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return false;
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || !has_vimnmx(head.e_flags)) return false;
  for (uint64_t i = 0; i < head.e_shnum; ++i) {
    Elf64_Shdr section{};
    if (!read(cubin, head.e_shoff + i * sizeof(section), section)) return false;
    if (section.sh_type != SHT_PROGBITS || !(section.sh_flags & SHF_EXECINSTR)) continue;
    for (uint64_t at = 0; at + kInstructionBytes <= section.sh_size; at += kInstructionBytes) {
      uint64_t code[2];
      if (!read(cubin, section.sh_offset + at, code)) return false;
      if (merges_clamp(code[0], code[1])) return true;
    }
  }
  return false;
}

}  // namespace tilewright::runtime
