#include "runtime/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstring>

namespace tilewright::runtime {
namespace {

struct Search {
  uintptr_t address;
  std::string id;
};

bool holds(const dl_phdr_info& object, uintptr_t address) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const auto& segment = object.dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && address - (object.dlpi_addr + segment.p_vaddr) < segment.p_memsz) return true;
  }
  return false;
}

// Notes as the ELF specification has them: three words, the owner's name, the content, both padded.
std::string build_id_of(const char* notes, size_t bytes, size_t alignment) {
  const auto padded = [&](size_t n) { return (n + alignment - 1) / alignment * alignment; };
  ElfW(Nhdr) note;
  for (size_t at = 0; at + sizeof note <= bytes;) {
    std::memcpy(&note, notes + at, sizeof note);
    const size_t name = at + sizeof note, content = name + padded(note.n_namesz);
    const size_t end = content + padded(note.n_descsz);
    if (end > bytes) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(notes + name, "GNU", 4) == 0) {
      std::string id;
      for (size_t i = 0; i < note.n_descsz; ++i)
        id += fmt::format("{:02x}", static_cast<unsigned char>(notes[content + i]));
      return id;
    }
    at = end;
  }
  return "";
}

int look(dl_phdr_info* object, size_t, void* data) {
  Search& search = *static_cast<Search*>(data);
  if (!holds(*object, search.address)) return 0;
  for (int i = 0; i < object->dlpi_phnum && search.id.empty(); ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type == PT_NOTE)
      search.id = build_id_of(reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr), segment.p_memsz,
                              segment.p_align == 8 ? 8 : 4);
  }
  return 1;
}

}  // namespace

std::string build_id_around(const void* address) {
  Search search{reinterpret_cast<uintptr_t>(address), {}};
  dl_iterate_phdr(look, &search);
  return search.id;
}

const std::string& own_build_id() {
  static const std::string id = build_id_around(reinterpret_cast<const void*>(&own_build_id));
  return id;
}

}  // namespace tilewright::runtime
