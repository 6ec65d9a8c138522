// Transposition by square blocks in registers. Put before a kernel that has any.
#if defined TW_EXCHANGE && (defined __AVX512F__ || defined __AVX2__)
#ifdef __AVX512F__
#define TW_VECTOR_BYTES 64
#else
#define TW_VECTOR_BYTES 32
#endif
// n rows of n elements.
template <class T, int n>
[[gnu::always_inline]] static inline void tw_transpose_block(T* to, int64_t to_step, const T* from, int64_t from_step) {
  typedef T V __attribute__((vector_size(n * sizeof(T))));
  typedef T Unaligned __attribute__((vector_size(n * sizeof(T)), aligned(sizeof(T))));
  V row[n];
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) row[i] = *(const Unaligned*)(from + i * from_step);
  tw_exchange<n>(row);
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) *(Unaligned*)(to + i * to_step) = row[i];
}
#endif
// to[i][j] = from[j][i] for i < rows, j < columns, both multiples of 16; rows of a large tensor go around the caches.
// Meanwhile the box at `next`, if any, comes into the second cache: rows a power of two apart share few lines of the
// first.
template <class T>
static inline void tw_transpose(T* to, int64_t to_step, const T* from, int64_t from_step, int64_t rows, int64_t columns,
                                bool large, const T* next) {
#ifdef TW_VECTOR_BYTES
  constexpr int n = TW_VECTOR_BYTES / sizeof(T) < 16 ? TW_VECTOR_BYTES / sizeof(T) : 16;
  T strip[n * 64] __attribute__((aligned(64)));
  int64_t due = 0;  // elements of `next` that could be there by now, beyond whole rows
  for (int64_t i = 0; i < rows; i += n)
    for (int64_t first = 0; first < columns; first += 64) {
      const int64_t width = columns - first < 64 ? columns - first : 64;
      for (int64_t j = 0; j < width; j += n) {
        for (due += next ? n * n : 0; due >= rows; due -= rows, next += from_step)
          for (int64_t k = 0; k < rows; k += 64 / (int64_t)sizeof(T)) __builtin_prefetch(next + k, 0, 2);
        T* place = large ? strip + j : to + i * to_step + first + j;
        tw_transpose_block<T, n>(place, large ? 64 : to_step, from + (first + j) * from_step + i, from_step);
      }
      for (int64_t k = 0; large && k < n; ++k)
        tw_stream_row((char*)(to + (i + k) * to_step + first), (const char*)(strip + k * 64),
                      width * (int64_t)sizeof(T));
    }
#else
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to[i * to_step + j] = from[j * from_step + i];
#endif
}
