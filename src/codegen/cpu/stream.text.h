// Rows that go to memory around the caches. Put before a kernel that has any.
#if defined __AVX512F__
#define TW_LINE_BYTES 64
#define TW_STORE __builtin_ia32_movntps512
#elif defined __AVX__
#define TW_LINE_BYTES 32
#define TW_STORE __builtin_ia32_movntps256
#elif defined __SSE2__
#define TW_LINE_BYTES 16
#define TW_STORE __builtin_ia32_movntps
#endif
#ifdef TW_LINE_BYTES
typedef float tw_line __attribute__((vector_size(TW_LINE_BYTES), aligned(1)));
typedef float tw_whole_line __attribute__((vector_size(TW_LINE_BYTES)));
#ifdef __clang__
#define TW_STREAM(to, from) __builtin_nontemporal_store((tw_whole_line) * (const tw_line*)(from), (tw_whole_line*)(to))
#else
#define TW_STREAM(to, from) TW_STORE((float*)(to), *(const tw_line*)(from))
#endif
#endif
// row + 64 has the next bytes of a run of which `done` bytes went before; a multiple of 64, ordinary stores where the
// tensor is not large. The run may begin anywhere in a line: lines are stored as they fill, and the bytes of the last
// one that is not full wait in the row's first 64.
[[gnu::always_inline]] static inline void tw_stream(char* to, int64_t done, char* row, int64_t bytes, bool large) {
  const char* from = row + 64;
#ifdef TW_STREAM
  if (large) {
    const int64_t skew = (int64_t)((uint64_t)to & 63);
    if (skew != 0 && done == 0)
      __builtin_memcpy(to, from, 64 - skew);
    else
      for (int64_t k = 0; k < 64; k += (int64_t)sizeof(tw_line)) TW_STREAM(to - skew + k, from - skew + k);
    for (int64_t i = 64; i < bytes; i += (int64_t)sizeof(tw_line)) TW_STREAM(to - skew + i, from - skew + i);
    if (skew != 0) __builtin_memcpy(row, from + bytes - 64, 64);
    return;
  }
#endif
  __builtin_memcpy(to, from, bytes);
}
// The end of the run that begins at `to`: what waits in the row, and fewer bytes than a call of the above takes.
static inline void tw_stream_rest(char* to, int64_t done, const char* row, int64_t bytes, bool large) {
  char* const end = to + done;
#ifdef TW_STREAM
  const int64_t skew = (int64_t)((uint64_t)to & 63);
  if (large && skew != 0 && done != 0) __builtin_memcpy(end - skew, row + 64 - skew, skew);
#endif
  __builtin_memcpy(end, row + 64, bytes);
}
// A run of its own, of any length.
static inline void tw_stream_row(char* to, const char* from, int64_t bytes) {
  int64_t i = 0;
#ifdef TW_STREAM
  const int64_t head = -(int64_t)(uint64_t)to & 63;
  if (bytes >= head + 64) {
    __builtin_memcpy(to, from, head);
    for (i = head; i + 64 <= bytes; i += 64)
      for (int64_t k = 0; k < 64; k += (int64_t)sizeof(tw_line)) TW_STREAM(to + i + k, from + i + k);
  }
#endif
  __builtin_memcpy(to + i, from + i, bytes - i);
}
// Other cores must see the rows when the kernel returns.
static inline void tw_end_streams() {
#ifdef TW_STREAM
  __builtin_ia32_sfence();
#endif
}
