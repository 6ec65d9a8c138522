// Integer functions, as templates on the C type: floordiv<int32_t>(a, b). Arithmetic wraps. 4-bit values are computed
// in int8_t or uint8_t and wrapped with wrap_i4 or wrap_u4.

//@ wrap_i4: types
[[gnu::always_inline]] static inline int8_t wrap_i4(uint64_t x) { return (int8_t)((int8_t)((x & 15) << 4) >> 4); }

//@ wrap_u4: types
[[gnu::always_inline]] static inline uint8_t wrap_u4(uint64_t x) { return (uint8_t)(x & 15); }

//@ add: types
template <class T>
[[gnu::always_inline]] static inline T add(T a, T b) {
  return (T)((uint64_t)a + (uint64_t)b);
}

//@ sub: types
template <class T>
[[gnu::always_inline]] static inline T sub(T a, T b) {
  return (T)((uint64_t)a - (uint64_t)b);
}

//@ mul: types
template <class T>
[[gnu::always_inline]] static inline T mul(T a, T b) {
  return (T)((uint64_t)a * (uint64_t)b);
}

//@ neg: types
template <class T>
[[gnu::always_inline]] static inline T neg(T a) {
  return (T)(0 - (uint64_t)a);
}

//@ abs: types
template <class T>
[[gnu::always_inline]] static inline T abs(T a) {
  return a < (T)0 ? (T)(0 - (uint64_t)a) : a;
}

// Divisions are total, so that a masked-off or speculated lane cannot trap: where C leaves a quotient undefined (a zero
// divisor, the least value by -1) the divisor counts as 1. That a program divides by zero is the interpreter's to
// report.
//@ safe_divisor: types
template <class T>
[[gnu::always_inline]] static inline T safe_divisor(T a, T b) {
  constexpr T least = (T)-1 < (T)0 ? (T)((uint64_t)1 << (8 * sizeof(T) - 1)) : (T)0;
  const bool overflows = (T)-1 < (T)0 && (b == (T)-1) & (a == least);
  return (b == (T)0) | overflows ? (T)1 : b;
}

//@ truncdiv: safe_divisor
template <class T>
[[gnu::always_inline]] static inline T truncdiv(T a, T b) {
  return (T)(a / safe_divisor(a, b));
}

//@ truncmod: safe_divisor
template <class T>
[[gnu::always_inline]] static inline T truncmod(T a, T b) {
  return (T)(a % safe_divisor(a, b));
}

//@ floordiv: safe_divisor
template <class T>
[[gnu::always_inline]] static inline T floordiv(T a, T b) {
  const T d = safe_divisor(a, b), q = (T)(a / d), r = (T)(a % d);
  return (T)(q - (T)((r != (T)0) & ((r < (T)0) != (d < (T)0))));
}

//@ floormod: safe_divisor
template <class T>
[[gnu::always_inline]] static inline T floormod(T a, T b) {
  const T d = safe_divisor(a, b), r = (T)(a % d);
  return (T)((r != (T)0) & ((r < (T)0) != (d < (T)0)) ? r + d : r);
}

// Shift amounts are read as unsigned; from the width on the result is 0, or the sign for an arithmetic right shift, as
// PTX shl and shr clamp them. Shifts are computed no narrower than 32 bits: a loop of them then vectorizes.
//@ shl: types
template <class T>
[[gnu::always_inline]] static inline T shl(T a, T amount) {
  constexpr uint64_t width = 8 * sizeof(T);
  const bool inside = (uint64_t)amount < width;
  return inside ? (T)((uint64_t)a << (inside ? (uint64_t)amount : 0)) : (T)0;
}

//@ shr: types
template <class T>
[[gnu::always_inline]] static inline T shr(T a, T amount) {
  constexpr uint64_t width = 8 * sizeof(T);
  const bool inside = (uint64_t)amount < width;
  const T shifted = (T)(a >> (inside ? (int)amount : (int)(width - 1)));
  return inside | ((T)-1 < (T)0) ? shifted : (T)0;
}

//@ min: types
template <class T>
[[gnu::always_inline]] static inline T min(T a, T b) {
  return b < a ? b : a;
}

//@ max: types
template <class T>
[[gnu::always_inline]] static inline T max(T a, T b) {
  return a < b ? b : a;
}

//@ clamp: types
template <class T>
[[gnu::always_inline]] static inline T clamp(T x, T low, T high) {
  const T y = x < low ? low : x;
  return high < y ? high : y;
}

//@ bits_of_int: types
template <class T>
[[gnu::always_inline]] static inline uint64_t bits_of_int(T a) {
  return (uint64_t)a & (~(uint64_t)0 >> (64 - 8 * sizeof(T)));
}

//@ popcount: bits_of_int
template <class T>
[[gnu::always_inline]] static inline T popcount(T a) {
  return (T)__builtin_popcountll(bits_of_int(a));
}

// Leading zero bits of the type's width; the width itself for 0.
//@ clz: bits_of_int
template <class T>
[[gnu::always_inline]] static inline T clz(T a) {
  const uint64_t bits = bits_of_int(a);
  return (T)(bits == 0 ? 8 * (int)sizeof(T) : __builtin_clzll(bits) - (64 - 8 * (int)sizeof(T)));
}

// Position of the lowest set bit, from 1; 0 for 0.
//@ ffs: bits_of_int
template <class T>
[[gnu::always_inline]] static inline T ffs(T a) {
  return (T)__builtin_ffsll((int64_t)bits_of_int(a));
}

//@ brev: bits_of_int
template <class T>
[[gnu::always_inline]] static inline T brev(T a) {
  uint64_t x = bits_of_int(a);
  x = ((x >> 1) & 0x5555555555555555u) | ((x & 0x5555555555555555u) << 1);
  x = ((x >> 2) & 0x3333333333333333u) | ((x & 0x3333333333333333u) << 2);
  x = ((x >> 4) & 0x0f0f0f0f0f0f0f0fu) | ((x & 0x0f0f0f0f0f0f0f0fu) << 4);
  return (T)(__builtin_bswap64(x) >> (64 - 8 * sizeof(T)));
}

// The upper half of the product of twice the width.
//@ mulhi: types
template <class T>
[[gnu::always_inline]] static inline T mulhi(T a, T b) {
  if constexpr (sizeof(T) == 8) {
    if constexpr ((T)-1 < (T)0) return (T)(((__int128)a * b) >> 64);
    return (T)(((unsigned __int128)a * b) >> 64);
  }
  return (T)(((uint64_t)(int64_t)a * (uint64_t)(int64_t)b) >> (8 * sizeof(T) % 64));
}

// c plus the dot product of the four signed bytes of a and of b, wrapping.
//@ dp4a: types
template <class T>
[[gnu::always_inline]] static inline T dp4a(T a, T b, T c) {
  uint32_t sum = (uint32_t)c;
  for (int i = 0; i < 32; i += 8) {
    if constexpr ((T)-1 < (T)0)
      sum += (uint32_t)((int8_t)((uint32_t)a >> i) * (int8_t)((uint32_t)b >> i));
    else
      sum += (uint32_t)((uint8_t)((uint32_t)a >> i) * (uint8_t)((uint32_t)b >> i));
  }
  return (T)sum;
}
