// Fixed-width integers and the bits of floats, for text that includes no header.
// Like every *.text.h here: each function follows a marker line "piece: pieces it needs", so that a kernel carries only
// what it calls (scalar/pieces.h); the library compiles the same text through scalar/text.h.

//@ types:
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;

//@ bits_of_f32: types
[[gnu::always_inline]] static inline uint32_t bits_of_f32(float x) { return __builtin_bit_cast(uint32_t, x); }

//@ f32_of_bits: types
[[gnu::always_inline]] static inline float f32_of_bits(uint32_t bits) { return __builtin_bit_cast(float, bits); }

//@ bits_of_f64: types
[[gnu::always_inline]] static inline uint64_t bits_of_f64(double x) { return __builtin_bit_cast(uint64_t, x); }

//@ f64_of_bits: types
[[gnu::always_inline]] static inline double f64_of_bits(uint64_t bits) { return __builtin_bit_cast(double, bits); }
