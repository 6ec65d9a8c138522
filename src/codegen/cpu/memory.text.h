// Memory of CPU kernels: 4-bit elements and read-modify-write, plain and atomic. Put before a kernel that needs any.
template <class T>
[[gnu::always_inline]] static inline uint8_t tw_nibble(const uint8_t* p, T i) {
  return (uint8_t)(p[i >> 1] >> ((i & 1) * 4) & 15);
}

// p[i] = f(p[i]); gives the old bits.
template <class Bits, class F>
[[gnu::always_inline]] static inline Bits tw_update(Bits* p, F f) {
  const Bits old = *p;
  *p = f(old);
  return old;
}
template <class Bits, class F>
static inline Bits tw_update_atomic(Bits* p, F f) {
  Bits old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(p, &old, f(old), true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
  return old;
}

// The same for a 4-bit element.
template <class T, class F>
[[gnu::always_inline]] static inline uint8_t tw_update_nibble(uint8_t* p, T i, F f) {
  const int at = (int)(i & 1) * 4;
  const uint8_t old = p[i >> 1];
  p[i >> 1] = (uint8_t)((old & ~(15 << at)) | (f((uint8_t)(old >> at & 15)) & 15) << at);
  return (uint8_t)(old >> at & 15);
}
template <class T, class F>
static inline uint8_t tw_update_nibble_atomic(uint8_t* p, T i, F f) {
  const int at = (int)(i & 1) * 4;
  const uint8_t old = tw_update_atomic(p + (i >> 1), [&](uint8_t byte) {
    return (uint8_t)((byte & ~(15 << at)) | (f((uint8_t)(byte >> at & 15)) & 15) << at);
  });
  return (uint8_t)(old >> at & 15);
}
// The lines of these bytes on their way to the nearest cache, or to the second; where there is no memory, nothing
// happens.
[[gnu::always_inline]] static inline void tw_prefetch(const char* p, int64_t bytes, bool nearest) {
  for (int64_t i = 0; i < bytes; i += 64) {
    if (nearest)
      __builtin_prefetch(p + i);
    else
      __builtin_prefetch(p + i, 0, 2);
  }
}
// Rows of `bytes` that are `step` apart: a line of them comes to the second cache at each call, and whatever lies
// behind.
struct tw_rows {
  const char* row;
  int64_t step, bytes, at;
};
[[gnu::always_inline]] static inline void tw_fetch_line(tw_rows& r) {
  __builtin_prefetch(r.row + r.at, 0, 2);
  r.at += 64;
  if (r.at >= r.bytes) r.at = 0, r.row += r.step;
}
