// Rows that go to memory around the caches. Put before a kernel that has any.
#if defined __AVX512F__
typedef float tw_line __attribute__((vector_size(64), aligned(1)));
#define TW_STREAM(to, from) __builtin_ia32_movntps512((float*)(to), *(const tw_line*)(from))
#elif defined __AVX__
typedef float tw_line __attribute__((vector_size(32), aligned(1)));
#define TW_STREAM(to, from) __builtin_ia32_movntps256((float*)(to), *(const tw_line*)(from))
#elif defined __SSE2__
typedef float tw_line __attribute__((vector_size(16), aligned(1)));
#define TW_STREAM(to, from) __builtin_ia32_movntps((float*)(to), *(const tw_line*)(from))
#endif
// Bytes of a row; ordinary stores where the tensor is not large, and for what is not a whole line at its ends.
static inline void tw_stream(char* to, const char* from, int64_t bytes, bool large) {
#ifdef TW_STREAM
  const int64_t head = -(int64_t)(uint64_t)to & 63;
  if (large && bytes >= head + 64) {
    __builtin_memcpy(to, from, head);
    int64_t i = head;
    for (; i + 64 <= bytes; i += 64)
      for (int64_t k = 0; k < 64; k += (int64_t)sizeof(tw_line)) TW_STREAM(to + i + k, from + i + k);
    __builtin_memcpy(to + i, from + i, bytes - i);
    return;
  }
#endif
  __builtin_memcpy(to, from, bytes);
}
// Other cores must see the rows when the kernel returns.
static inline void tw_end_streams() {
#ifdef TW_STREAM
  __builtin_ia32_sfence();
#endif
}
