// Lanes: n iterations of a loop that go together, each value of theirs in vectors of 64 bytes. What a function gives is
// bit for bit what the scalar one of that name gives, in the instructions that compilers do not make of it. Put before
// a kernel that has such loops, for processors with AVX-512 F, BW, DQ and VL.
template <class T, int n, bool one = n * sizeof(T) <= 64>
struct tw_lanes {
  typedef T V __attribute__((vector_size(n * sizeof(T))));
  V v;
};
template <class T, int n>
struct tw_lanes<T, n, false> {
  tw_lanes<T, n / 2> lo, hi;
};
template <class T>
constexpr bool tw_is_one = sizeof(T) <= 64;

template <int n, class T>
[[gnu::always_inline]] static inline tw_lanes<T, n> tw_all(T x) {
  if constexpr (tw_is_one<tw_lanes<T, n>>)
    return {x - (typename tw_lanes<T, n>::V){}};
  else
    return {tw_all<n / 2>(x), tw_all<n / 2>(x)};
}
template <int n, class T>
[[gnu::always_inline]] static inline tw_lanes<T, n> tw_read(const T* p) {
  if constexpr (tw_is_one<tw_lanes<T, n>>) {
    tw_lanes<T, n> x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
  } else
    return {tw_read<n / 2>(p), tw_read<n / 2>(p + n / 2)};
}
template <class T, int n>
[[gnu::always_inline]] static inline void tw_write(T* p, tw_lanes<T, n> x) {
  if constexpr (tw_is_one<tw_lanes<T, n>>)
    __builtin_memcpy(p, &x, sizeof x);
  else
    tw_write(p, x.lo), tw_write(p + n / 2, x.hi);
}
// The same bits as another type of the same size.
template <class R, class T, int n>
[[gnu::always_inline]] static inline tw_lanes<R, n> tw_as(tw_lanes<T, n> x) {
  if constexpr (tw_is_one<tw_lanes<T, n>>)
    return {(typename tw_lanes<R, n>::V)x.v};
  else
    return {tw_as<R>(x.lo), tw_as<R>(x.hi)};
}
// f of each vector of the arguments, which have n lanes of 4 bytes; gives lanes of R.
template <class R, int n, class F, class... A>
[[gnu::always_inline]] static inline tw_lanes<R, n> tw_each(F f, A... x) {
  if constexpr (n == 16)
    return {f(x.v...)};
  else
    return {tw_each<R, n / 2>(f, x.lo...), tw_each<R, n / 2>(f, x.hi...)};
}

typedef float tw_f32s __attribute__((vector_size(64)));
typedef int32_t tw_i32s __attribute__((vector_size(64)));
typedef uint32_t tw_u32s __attribute__((vector_size(64)));
typedef char tw_bytes __attribute__((vector_size(64)));

#define TW_OPERATOR(op, R)                                                                            \
  template <class T, int n>                                                                           \
  [[gnu::always_inline]] static inline auto operator op(tw_lanes<T, n> a, tw_lanes<T, n> b) {         \
    return tw_each<R, n>([](auto x, auto y) { return (typename tw_lanes<R, 16>::V)(x op y); }, a, b); \
  }                                                                                                   \
  template <class T, int n>                                                                           \
  [[gnu::always_inline]] static inline auto operator op(tw_lanes<T, n> a, T b) {                      \
    return a op tw_all<n>(b);                                                                         \
  }                                                                                                   \
  template <class T, int n>                                                                           \
  [[gnu::always_inline]] static inline auto operator op(T a, tw_lanes<T, n> b) {                      \
    return tw_all<n>(a) op b;                                                                         \
  }
TW_OPERATOR(+, T)
TW_OPERATOR(-, T)
TW_OPERATOR(*, T)
TW_OPERATOR(/, T)
TW_OPERATOR(&, T)
TW_OPERATOR(|, T)
TW_OPERATOR(^, T)
TW_OPERATOR(<, int32_t)
TW_OPERATOR(<=, int32_t)
TW_OPERATOR(==, int32_t)
TW_OPERATOR(!=, int32_t)
template <int n>
[[gnu::always_inline]] static inline tw_lanes<float, n> operator-(tw_lanes<float, n> x) {
  return tw_each<float, n>([](tw_f32s a) { return -a; }, x);
}
template <class T, int n>
[[gnu::always_inline]] static inline tw_lanes<T, n> tw_select(tw_lanes<int32_t, n> c, tw_lanes<T, n> a,
                                                              tw_lanes<T, n> b) {
  return tw_each<T, n>([](tw_i32s p, auto x, auto y) { return p ? x : y; }, c, a, b);
}

// ---- instructions
[[gnu::always_inline]] static inline tw_f32s tw_fma(tw_f32s a, tw_f32s b, tw_f32s c) {
#if __has_builtin(__builtin_elementwise_fma)
  return __builtin_elementwise_fma(a, b, c);
#else
  return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4);
#endif
}
#define TW_INSTRUCTION(R, text, ...)        \
  ({                                        \
    R result;                               \
    asm(text : "=v"(result) : __VA_ARGS__); \
    result;                                 \
  })
// vrangeps: 4 smaller, 5 larger, 2 smaller and 3 larger magnitude with a's sign, 11 larger magnitude without a sign. As
// IEEE's minNum and maxNum: a number where the other is a quiet NaN, -0 below +0.
#define TW_RANGE(how, a, b) TW_INSTRUCTION(tw_f32s, "vrangeps $" #how ", %2, %1, %0", "v"(a), "v"(b))
// A NaN that does not signal.
#define TW_QUIET(x) TW_RANGE(4, x, x)
// a > b ? a : b, and a < b ? a : b
#define TW_GREATER(a, b) TW_INSTRUCTION(tw_f32s, "vmaxps %2, %1, %0", "v"(a), "v"(b))
#define TW_LESSER(a, b) TW_INSTRUCTION(tw_f32s, "vminps %2, %1, %0", "v"(a), "v"(b))
// The nearest integer, ties to even.
#define TW_INTEGER(x) TW_INSTRUCTION(tw_f32s, "vrndscaleps $8, %1, %0", "v"(x))
// p * 2^n for an integer n, rounded once.
#define TW_SCALE(p, n) TW_INSTRUCTION(tw_f32s, "vscalefps %2, %1, %0", "v"(p), "v"(n))

// The code, but the constant where x is NaN.
[[gnu::always_inline]] static inline tw_u32s tw_but_nan(tw_u32s code, tw_f32s x, uint32_t nan) {
  const tw_u32s constant = nan - (tw_u32s){};
  unsigned short is_nan;
  asm("vcmpps $3, %1, %1, %0" : "=Yk"(is_nan) : "v"(x));
  asm("vmovdqa32 %2, %0%{%1%}" : "+v"(code) : "Yk"(is_nan), "v"(constant));
  return code;
}

// ---- functions
template <int n>
[[gnu::always_inline]] static inline tw_lanes<uint32_t, n> bits_of_f32(tw_lanes<float, n> x) {
  return tw_as<uint32_t>(x);
}
template <int n>
[[gnu::always_inline]] static inline tw_lanes<float, n> f32_of_bits(tw_lanes<uint32_t, n> x) {
  return tw_as<float>(x);
}
template <int n>
[[gnu::always_inline]] static inline tw_lanes<float, n> fma_f32(tw_lanes<float, n> a, tw_lanes<float, n> b,
                                                                tw_lanes<float, n> c) {
  return tw_each<float, n>([](tw_f32s x, tw_f32s y, tw_f32s z) { return tw_fma(x, y, z); }, a, b, c);
}
template <int n>
[[gnu::always_inline]] static inline tw_lanes<float, n> abs_f32(tw_lanes<float, n> x) {
  return tw_each<float, n>([](tw_f32s a) { return (tw_f32s)((tw_u32s)a & 0x7fffffffu); }, x);
}
// `a_quiet`, `b_quiet`: that operand is none that signals, as an instruction has made it.
template <bool a_quiet = false, bool b_quiet = false, int n>
[[gnu::always_inline]] static inline tw_lanes<float, n> min_f32(tw_lanes<float, n> a, tw_lanes<float, n> b) {
  return tw_each<float, n>(
      [](tw_f32s x, tw_f32s y) { return TW_RANGE(4, a_quiet ? x : TW_QUIET(x), b_quiet ? y : TW_QUIET(y)); }, a, b);
}
template <bool a_quiet = false, bool b_quiet = false, int n>
[[gnu::always_inline]] static inline tw_lanes<float, n> max_f32(tw_lanes<float, n> a, tw_lanes<float, n> b) {
  return tw_each<float, n>(
      [](tw_f32s x, tw_f32s y) { return TW_RANGE(5, a_quiet ? x : TW_QUIET(x), b_quiet ? y : TW_QUIET(y)); }, a, b);
}
// NaN where one of the two is: b, if it is b.
[[gnu::always_inline]] static inline tw_f32s tw_keep_nan(tw_f32s r, tw_f32s a, tw_f32s b) {
  unsigned short is_nan;
  asm("vcmpps $3, %2, %1, %0" : "=Yk"(is_nan) : "v"(a), "v"(b));
  asm("vaddps %3, %2, %0%{%1%}" : "+v"(r) : "Yk"(is_nan), "v"(b), "v"(a));
  return r;
}
template <int n>
[[gnu::always_inline]] static inline tw_lanes<float, n> clamp_f32(tw_lanes<float, n> x, tw_lanes<float, n> low,
                                                                  tw_lanes<float, n> high) {
  return tw_each<float, n>(
      [](tw_f32s a, tw_f32s b, tw_f32s c) {
        const tw_f32s above = tw_keep_nan(TW_RANGE(5, a, b), a, b);
        return tw_keep_nan(TW_RANGE(4, above, c), above, c);
      },
      x, low, high);
}
template <int n>
[[gnu::always_inline]] static inline tw_lanes<float, n> exp2_f32(tw_lanes<float, n> x) {
  return tw_each<float, n>(
      [](tw_f32s a) {
        const tw_f32s whole = TW_INTEGER(a), rest = a - whole, half = 0.5f - (tw_f32s){};
        const tw_f32s f = TW_LESSER(rest, half);  // infinities have no rest
        tw_f32s p = tw_fma(1.535335177e-04f - (tw_f32s){}, f, 1.339888782e-03f - (tw_f32s){});
        p = tw_fma(p, f, 9.618437849e-03f - (tw_f32s){});
        p = tw_fma(p, f, 5.550332367e-02f - (tw_f32s){});
        p = tw_fma(p, f, 2.402264774e-01f - (tw_f32s){});
        p = tw_fma(p, f, 6.931471825e-01f - (tw_f32s){});
        p = tw_fma(p, f, 1.0f - (tw_f32s){});
        return TW_SCALE(p, whole);
      },
      x);
}
template <int n>
[[gnu::always_inline]] static inline tw_lanes<float, n> exp_f32(tw_lanes<float, n> x) {
  return tw_each<float, n>(
      [](tw_f32s a) {
        const tw_f32s low = -120.0f - (tw_f32s){}, high = 100.0f - (tw_f32s){}, magic = 0x1.8p23f - (tw_f32s){};
        const tw_f32s b = TW_GREATER(low, a), y = TW_LESSER(high, b);  // NaN stays
        const tw_f32s whole = tw_fma(y, 1.442695041f - (tw_f32s){}, magic) - magic;
        const tw_f32s high_rest = tw_fma(whole, -6.931457520e-01f - (tw_f32s){}, y);
        const tw_f32s r = tw_fma(whole, -1.428606765e-06f - (tw_f32s){}, high_rest);
        tw_f32s p = tw_fma(1.381455921e-03f - (tw_f32s){}, r, 8.368735202e-03f - (tw_f32s){});
        p = tw_fma(p, r, 4.166838899e-02f - (tw_f32s){});
        p = tw_fma(p, r, 1.666652113e-01f - (tw_f32s){});
        p = tw_fma(p, r, 4.999999404e-01f - (tw_f32s){});
        p = tw_fma(p, r, 1.0f - (tw_f32s){});
        p = tw_fma(p, r, 1.0f - (tw_f32s){});
        return TW_SCALE(p, whole);
      },
      x);
}

// ---- memory's formats
typedef uint16_t tw_16_words __attribute__((vector_size(32)));
typedef uint16_t tw_32_words __attribute__((vector_size(64)));
typedef uint8_t tw_16_bytes __attribute__((vector_size(16)));
typedef uint8_t tw_32_bytes __attribute__((vector_size(32)));
typedef uint8_t tw_64_bytes __attribute__((vector_size(64)));

// f of 16 words at a time.
template <int n, class F>
[[gnu::always_inline]] static inline tw_lanes<float, n> tw_widen(F f, tw_lanes<uint16_t, n> x) {
  if constexpr (n == 16)
    return {f(x.v)};
  else if constexpr (n == 32) {
    const tw_16_words low = TW_INSTRUCTION(tw_16_words, "vextracti64x4 $0, %1, %0", "v"(x.v));
    const tw_16_words high = TW_INSTRUCTION(tw_16_words, "vextracti64x4 $1, %1, %0", "v"(x.v));
    return {tw_widen(f, tw_lanes<uint16_t, 16>{low}), tw_widen(f, tw_lanes<uint16_t, 16>{high})};
  } else
    return {tw_widen(f, x.lo), tw_widen(f, x.hi)};
}
template <int n>
[[gnu::always_inline]] static inline tw_lanes<float, n> load_bf16(tw_lanes<uint16_t, n> x) {
  return tw_widen([](tw_16_words a) { return (tw_f32s)(TW_INSTRUCTION(tw_u32s, "vpmovzxwd %1, %0", "v"(a)) << 16); },
                  x);
}
// In pairs: the even ones of 32 elements, then the odd ones. What goes from words to bytes need not be in order
// between.
template <int n>
[[gnu::always_inline]] static inline tw_lanes<float, n> load_bf16_pairs(tw_lanes<uint16_t, n> x) {
  if constexpr (n == 32) {
    const tw_u32s words = (tw_u32s)x.v;
    return {{(tw_f32s)(words << 16)}, {(tw_f32s)(words & 0xffff0000u)}};
  } else
    return {load_bf16_pairs(x.lo), load_bf16_pairs(x.hi)};
}
template <int n>
[[gnu::always_inline]] static inline tw_lanes<float, n> load_f16(tw_lanes<uint16_t, n> x) {
  return tw_widen([](tw_16_words a) { return TW_INSTRUCTION(tw_f32s, "vcvtph2ps %1, %0", "v"(a)); }, x);
}
// From memory, 16 words an instruction.
typedef uint16_t tw_words_there __attribute__((vector_size(32), aligned(2), may_alias));
template <int n>
[[gnu::always_inline]] static inline tw_lanes<float, n> load_bf16(const uint16_t* p) {
  if constexpr (n == 16)
    return {(tw_f32s)(TW_INSTRUCTION(tw_u32s, "vpmovzxwd %1, %0", "m"(*(const tw_words_there*)p)) << 16)};
  else
    return {load_bf16<n / 2>(p), load_bf16<n / 2>(p + n / 2)};
}
template <int n>
[[gnu::always_inline]] static inline tw_lanes<float, n> load_bf16_pairs(const uint16_t* p) {
  return load_bf16_pairs(tw_read<n>(p));
}
template <int n>
[[gnu::always_inline]] static inline tw_lanes<float, n> load_f16(const uint16_t* p) {
  if constexpr (n == 16)
    return {TW_INSTRUCTION(tw_f32s, "vcvtph2ps %1, %0", "m"(*(const tw_words_there*)p))};
  else
    return {load_f16<n / 2>(p), load_f16<n / 2>(p + n / 2)};
}
// The low words of codes.
template <int n>
[[gnu::always_inline]] static inline tw_lanes<uint16_t, n> tw_words(tw_lanes<uint32_t, n> x) {
  if constexpr (n == 16)
    return {TW_INSTRUCTION(tw_16_words, "vpmovdw %1, %0", "v"(x.v))};
  else if constexpr (n == 32) {
    const tw_32_words even = {0,  2,  4,  6,  8,  10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
                              32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62};
    tw_32_words words = even;
    asm("vpermi2w %2, %1, %0" : "+v"(words) : "v"(x.lo.v), "v"(x.hi.v));
    return {words};
  } else
    return {tw_words(x.lo), tw_words(x.hi)};
}
template <int n>
[[gnu::always_inline]] static inline tw_lanes<uint16_t, n> store_bf16(tw_lanes<float, n> x) {
  return tw_words(tw_each<uint32_t, n>(
      [](tw_f32s a) {
        const tw_u32s bits = (tw_u32s)a;
        return tw_but_nan((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16, a, 0x7fffu);
      },
      x));
}
// Of two values a lane, as they lie side by side.
template <int n>
[[gnu::always_inline]] static inline tw_lanes<uint32_t, n> store_bf16_interleaved(tw_lanes<float, n> even,
                                                                                  tw_lanes<float, n> odd) {
  return tw_each<uint32_t, n>(
      [](tw_f32s a, tw_f32s b) {
        auto rounded = [](tw_f32s x) {
          const tw_u32s bits = (tw_u32s)x;
          return tw_but_nan(bits + 0x7fffu + (bits >> 16 & 1u), x, 0x7fff0000u);
        };
        return rounded(a) >> 16 | (rounded(b) & 0xffff0000u);
      },
      even, odd);
}
// The same, but a subnormal may become zero; for processors with AVX512-BF16.
template <int n>
[[gnu::always_inline]] static inline tw_lanes<uint16_t, n> store_bf16_flushed(tw_lanes<float, n> x) {
  if constexpr (n == 16)
    return {TW_INSTRUCTION(tw_16_words, "vcvtneps2bf16 %1, %0", "v"(x.v))};
  else if constexpr (n == 32)
    return {TW_INSTRUCTION(tw_32_words, "vcvtne2ps2bf16 %2, %1, %0", "v"(x.hi.v), "v"(x.lo.v))};
  else
    return {store_bf16_flushed(x.lo), store_bf16_flushed(x.hi)};
}
template <int n>
[[gnu::always_inline]] static inline tw_lanes<uint32_t, n> store_bf16_interleaved_flushed(tw_lanes<float, n> even,
                                                                                          tw_lanes<float, n> odd) {
  return tw_each<uint32_t, n>(
      [](tw_f32s a, tw_f32s b) {
        const tw_32_words in_turns = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
        const tw_32_words words = store_bf16_flushed(tw_lanes<float, 32>{{a}, {b}}).v;
        return TW_INSTRUCTION(tw_u32s, "vpermw %2, %1, %0", "v"(in_turns), "v"(words));
      },
      even, odd);
}
template <int n>
[[gnu::always_inline]] static inline tw_lanes<uint16_t, n> store_f16(tw_lanes<float, n> x) {
  if constexpr (n == 16) {
    const tw_16_words code = TW_INSTRUCTION(tw_16_words, "vcvtps2ph $0, %1, %0", "v"(x.v));
    const tw_16_words magnitude = code & (uint16_t)0x7fff;
    return {magnitude > (uint16_t)0x7c00 ? (uint16_t)0x7fff - (tw_16_words){} : code};
  } else if constexpr (n == 32) {
    const tw_lanes<uint16_t, 16> low = store_f16(x.lo), high = store_f16(x.hi);
    tw_lanes<uint16_t, 32> words;
    asm("vinserti64x4 $1, %2, %g1, %0" : "=v"(words.v) : "v"(low.v), "v"(high.v));
    return words;
  } else
    return {store_f16(x.lo), store_f16(x.hi)};
}
// Pairs as they lie in memory.
[[gnu::always_inline]] static inline tw_lanes<uint32_t, 32> tw_in_order(tw_lanes<uint32_t, 32> x) {
  tw_u32s low = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23}, high = low + 8u;
  asm("vpermi2d %2, %1, %0" : "+v"(low) : "v"(x.lo.v), "v"(x.hi.v));
  asm("vpermi2d %2, %1, %0" : "+v"(high) : "v"(x.lo.v), "v"(x.hi.v));
  return {{low}, {high}};
}
// Codes of 7 bits, at bit 0, with their signs, at bit 31, as bytes.
template <bool pairs, int n>
[[gnu::always_inline]] static inline tw_lanes<uint8_t, n> tw_octets(tw_lanes<uint32_t, n> x) {
  if constexpr (n == 16) {
    const tw_u32s code = (x.v & 0x7fu) | (x.v >> 24 & 0x80u);
    return {TW_INSTRUCTION(tw_16_bytes, "vpmovdb %1, %0", "v"(code))};
  } else if constexpr (n == 32) {
    if constexpr (pairs) x = tw_in_order(x);
    const tw_lanes<uint8_t, 16> low = tw_octets<false>(x.lo), high = tw_octets<false>(x.hi);
    return {TW_INSTRUCTION(tw_32_bytes, "vinserti32x4 $1, %2, %t1, %0", "v"(low.v), "v"(high.v))};
  } else {
#if defined __AVX512VBMI__ && defined __GFNI__
    // The first byte of each of 32 codes; signs come to bit 0, and bytes turn by a bit at the end.
    const tw_64_bytes in_order = {0,  4,  8,  12, 16, 20, 24, 28, 32, 36,  40,  44,  48,  52,  56,  60,
                                  64, 68, 72, 76, 80, 84, 88, 92, 96, 100, 104, 108, 112, 116, 120, 124};
    const tw_64_bytes in_turns = {0,  64, 4,  68,  8,  72,  12, 76,  16, 80,  20, 84,  24, 88,  28, 92,
                                  32, 96, 36, 100, 40, 104, 44, 108, 48, 112, 52, 116, 56, 120, 60, 124};
    const tw_64_bytes first = pairs ? in_turns : in_order;
    auto turned = [](tw_u32s code) { return code << 1 | code >> 31; };
    tw_64_bytes low = first, high = first, bytes;
    asm("vpermi2b %2, %1, %0" : "+v"(low) : "v"(turned(x.lo.lo.v)), "v"(turned(x.lo.hi.v)));
    asm("vpermi2b %2, %1, %0" : "+v"(high) : "v"(turned(x.hi.lo.v)), "v"(turned(x.hi.hi.v)));
    asm("vinserti64x4 $1, %t2, %1, %0" : "=v"(bytes) : "v"(low), "v"(high));
    const tw_64_bytes turn = (tw_64_bytes)(0x0204081020408001 - (long long __attribute__((vector_size(64)))){});
    return {TW_INSTRUCTION(tw_64_bytes, "vgf2p8affineqb $0, %2, %1, %0", "v"(bytes), "v"(turn))};
#else
    const tw_lanes<uint8_t, 32> low = tw_octets<pairs>(x.lo), high = tw_octets<pairs>(x.hi);
    return {TW_INSTRUCTION(tw_64_bytes, "vinserti64x4 $1, %t2, %g1, %0", "v"(low.v), "v"(high.v))};
#endif
  }
}
// As small_store of scalars, with the sign where it is until the end.
template <int m, int b, uint32_t most, bool pairs, int n>
[[gnu::always_inline]] static inline tw_lanes<uint8_t, n> tw_store_small(tw_lanes<float, n> x) {
  return tw_octets<pairs>(tw_each<uint32_t, n>(
      [](tw_f32s a) {
        const tw_f32s bound = (tw_f32s)(most - (tw_u32s){}),
                      least = (tw_f32s)(((uint32_t)(128 - b) << 23) - (tw_u32s){});
        const tw_f32s factor = (tw_f32s)(((uint32_t)(150 - m) << 23 | (uint32_t)b << m) - (tw_u32s){});
        const tw_f32s magnitude = TW_RANGE(2, a, bound);
        const tw_f32s binade = TW_RANGE(3, (tw_f32s)((tw_u32s)magnitude & 0xff800000u), least);
        const tw_u32s sum = (tw_u32s)tw_fma(binade, factor, magnitude);
        // The code, but what stands for NaN where it is one.
        tw_u32s code = 0x7fu - (tw_u32s){};
        unsigned short is_number;
        asm("vcmpps $7, %1, %1, %0" : "=Yk"(is_number) : "v"(a));
        asm("vpaddd %3, %2, %0%{%1%}" : "+v"(code) : "Yk"(is_number), "v"(sum), "v"((tw_u32s)binade >> (23 - m)));
        return code;
      },
      x));
}
template <int n>
[[gnu::always_inline]] static inline tw_lanes<uint8_t, n> store_e4m3(tw_lanes<float, n> x) {
  return tw_store_small<3, 7, 0x43e00000u, false>(x);  // 448
}
template <int n>
[[gnu::always_inline]] static inline tw_lanes<uint8_t, n> store_e5m2(tw_lanes<float, n> x) {
  return tw_store_small<2, 15, 0x47600000u, false>(x);  // 57344
}
template <int n>
[[gnu::always_inline]] static inline tw_lanes<uint8_t, n> store_e4m3_pairs(tw_lanes<float, n> x) {
  return tw_store_small<3, 7, 0x43e00000u, true>(x);
}
template <int n>
[[gnu::always_inline]] static inline tw_lanes<uint8_t, n> store_e5m2_pairs(tw_lanes<float, n> x) {
  return tw_store_small<2, 15, 0x47600000u, true>(x);
}
