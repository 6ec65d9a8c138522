// Read-modify-write on the device for what the hardware has no instruction for: compare and swap of the word that holds
// the bits. T is the unsigned integer of the element's size; `change` maps old bits to new ones; the result is the old.
template <int bytes>
struct tw_word;
template <>
struct tw_word<2> {
  using type = unsigned short;
};
template <>
struct tw_word<4> {
  using type = unsigned;
};
template <>
struct tw_word<8> {
  using type = unsigned long long;
};
template <class T, class F>
__device__ __forceinline__ T tw_update(T* at, F change) {
  if constexpr (sizeof(T) == 1) {
    unsigned* word = (unsigned*)((unsigned long long)at & ~3ull);
    const unsigned shift = ((unsigned)(unsigned long long)at & 3u) * 8u;
    unsigned seen = *(volatile unsigned*)word, expected;
    do {
      expected = seen;
      const unsigned bits = (unsigned)(unsigned char)change((T)(expected >> shift & 0xffu));
      seen = atomicCAS(word, expected, (expected & ~(0xffu << shift)) | bits << shift);
    } while (seen != expected);
    return (T)(seen >> shift & 0xffu);
  } else {
    using Word = typename tw_word<sizeof(T)>::type;
    Word seen = *(volatile Word*)at, expected;
    do {
      expected = seen;
      seen = atomicCAS((Word*)at, expected, (Word)change((T)expected));
    } while (seen != expected);
    return (T)seen;
  }
}
__device__ __forceinline__ unsigned char tw_nibble(const unsigned char* base, long long at) {
  return base[at >> 1] >> (at & 1) * 4 & 15;
}
__device__ __forceinline__ void tw_set_nibble(unsigned char* base, long long at, unsigned char bits) {
  const int shift = (int)(at & 1) * 4;
  base[at >> 1] = (base[at >> 1] & ~(15 << shift)) | (bits & 15) << shift;
}
template <class F>
__device__ __forceinline__ unsigned char tw_update_nibble(unsigned char* base, long long at, F change) {
  const int shift = (int)(at & 1) * 4;
  const unsigned char old = tw_update(base + (at >> 1), [&](unsigned char byte) -> unsigned char {
    return (byte & ~(15 << shift)) | (change((unsigned char)(byte >> shift & 15)) & 15) << shift;
  });
  return old >> shift & 15;
}
