// Lanes joined pairwise into lanes[0], half by half, in registers. Put before a kernel that has any.
template <int half, class T, class F>
[[gnu::always_inline]] static inline void tw_fold(T* lanes, F join) {
  constexpr int bytes = half * (int)sizeof(T), part = bytes > 64 ? 64 : bytes < 16 ? 16 : bytes, n = part / sizeof(T);
  typedef T V __attribute__((vector_size(part)));
  if constexpr (bytes >= 16) {
#pragma GCC unroll 16
    for (int k = 0; k < half; k += n) *(V*)(lanes + k) = join(*(V*)(lanes + k), *(V*)(lanes + half + k));
    if constexpr (half > 1) tw_fold<half / 2>(lanes, join);
  } else {
    V a = *(V*)lanes;
#pragma GCC unroll 4
    for (int step = half; step > 0; step /= 2) {
      V b;
#pragma GCC unroll 16
      for (int k = 0; k < n; ++k) b[k] = a[(k + step) % n];
      a = join(a, b);
    }
    lanes[0] = a[0];
  }
}
