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

void look_at(uint64_t low, uint64_t high, DoubtfulCode& out) {
  const bool clamps = high >> 12 & 1, is_signed = high >> 8 & 1;
  if ((low & 0x1ff) == 0x048 && clamps && (high >> 17 & 0x3f) != 0x3f) out.merged_clamp = true;
  if ((low & 0x1ff) == 0x00f && is_signed) out.triple = true;
  if ((low & 0xfff) == 0x95c) out.traps = true;
}

}  // namespace

DoubtfulCode doubtful_code(std::string_view cubin) {
  DoubtfulCode out;
  Elf64_Ehdr head{};
  if (!read(cubin, 0, head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return out;
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || !has_vimnmx(head.e_flags)) return out;
  for (uint64_t i = 0; i < head.e_shnum; ++i) {
    Elf64_Shdr section{};
    if (!read(cubin, head.e_shoff + i * sizeof(section), section)) break;
    if (section.sh_type != SHT_PROGBITS || !(section.sh_flags & SHF_EXECINSTR)) continue;
    for (uint64_t at = 0; at + kInstructionBytes <= section.sh_size; at += kInstructionBytes) {
      uint64_t code[2];
      if (!read(cubin, section.sh_offset + at, code)) break;
      look_at(code[0], code[1], out);
    }
  }
  return out;
}

}  // namespace tilewright::runtime
