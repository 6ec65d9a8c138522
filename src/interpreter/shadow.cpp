// Shadow bits, a run of elements at a time.
#include "interpreter/shadow.h"

#include <cstring>

namespace tilewright::interpreter {

int64_t first_unwritten(const uint8_t* written, DType type, int64_t first, int64_t n) {
  if (type.is_packed()) {
    for (int64_t i = first; i < first + n; ++i)
      if (!(written[i / 2] & (1 << (i & 1)))) return i;
    return -1;
  }
  int64_t size = type.storage_bits() / 8;
  const uint8_t* begin = written + first * size;
  // A byte of which a 4-bit store wrote one half counts as written for wider elements.
  const auto* hole = static_cast<const uint8_t*>(std::memchr(begin, 0, static_cast<size_t>(n * size)));
  return hole ? first + (hole - begin) / size : -1;
}

void mark_written(uint8_t* written, DType type, int64_t first, int64_t n) {
  if (type.is_packed()) {
    for (int64_t i = first; i < first + n; ++i) written[i / 2] = static_cast<uint8_t>(written[i / 2] | 1 << (i & 1));
    return;
  }
  int64_t size = type.storage_bits() / 8;
  std::memset(written + first * size, 3, static_cast<size_t>(n * size));
}

void forget_written(uint8_t* written, DType type, int64_t element) {
  if (type.is_packed()) {
    written[element / 2] = static_cast<uint8_t>(written[element / 2] & ~(1 << (element & 1)));
    return;
  }
  const int64_t size = type.storage_bits() / 8;
  std::memset(written + element * size, 0, static_cast<size_t>(size));
}

void copy_written(uint8_t* to, int64_t to_first, const uint8_t* from, int64_t from_first, DType type, int64_t n) {
  if (!type.is_packed()) {
    const int64_t size = type.storage_bits() / 8;
    std::memcpy(to + to_first * size, from + from_first * size, static_cast<size_t>(n * size));
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t t = to_first + i, f = from_first + i;
    const int bit = from[f / 2] >> (f & 1) & 1;
    to[t / 2] = static_cast<uint8_t>((to[t / 2] & ~(1 << (t & 1))) | bit << (t & 1));
  }
}

}  // namespace tilewright::interpreter
