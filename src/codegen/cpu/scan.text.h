// Rows scanned side by side, a square of n rows and n columns at a time: transposed, a step of all rows is one
// operation. Put before a kernel that has any.
template <int n, class T, class F>
[[gnu::always_inline]] static inline void tw_scan(T* to, int64_t to_step, const T* from, int64_t from_step, T* total,
                                                  int64_t count, F join) {
  int64_t k = 0;
#ifdef TW_EXCHANGE
  typedef T V __attribute__((vector_size(n * sizeof(T))));
  typedef T Unaligned __attribute__((vector_size(n * sizeof(T)), aligned(sizeof(T))));
  V sum = *(const Unaligned*)total;
  for (; k + n <= count; k += n) {
    V row[n];
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) row[i] = *(const Unaligned*)(from + i * from_step + k);
    tw_exchange<n>(row);
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) row[i] = sum = join(sum, row[i]);
    tw_exchange<n>(row);
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) *(Unaligned*)(to + i * to_step + k) = row[i];
  }
  *(Unaligned*)total = sum;
#endif
  for (; k < count; ++k) {
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) to[i * to_step + k] = total[i] = join(total[i], from[i * from_step + k]);
  }
}
