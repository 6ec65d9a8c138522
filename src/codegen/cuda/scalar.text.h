// Scalar pieces (scalar/pieces.h) for which the device has instructions of the same meaning: they take the place of the
// portable ones. PTX ISA 9.7.9.21 (cvt), 9.7.3 (min, max), 9.7.3.18 (ex2: 2 ulp; with ftz,
// which saves three of four instructions, results below 2^-126 are zero).

//@ load_f16: types
__device__ __forceinline__ float load_f16(uint16_t bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}

//@ store_f16: types
__device__ __forceinline__ uint16_t store_f16(float x) {
  uint32_t pair;  // converting two runs at four times the rate of converting one
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(x));
  return (uint16_t)pair;
}

//@ round_f16: load_f16 store_f16
__device__ __forceinline__ float round_f16(float x) { return load_f16(store_f16(x)); }

//@ store_f16_rz: types
__device__ __forceinline__ uint16_t store_f16_rz(float x) {
  uint32_t pair;
  asm("cvt.rz.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(x));
  return (uint16_t)pair;
}

//@ round_f16_rz: load_f16 store_f16_rz
__device__ __forceinline__ float round_f16_rz(float x) { return load_f16(store_f16_rz(x)); }

//@ store_bf16: types
__device__ __forceinline__ uint16_t store_bf16(float x) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(x));
  return (uint16_t)pair;
}

// Two neighbours at a time, by the names of CUDA's conversions of two.
//@ __float22half2_rn: types
__device__ __forceinline__ void __float22half2_rn(uint16_t* to, float first, float second) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  *(uint32_t*)to = pair;
}

//@ __float22bfloat162_rn: types
__device__ __forceinline__ void __float22bfloat162_rn(uint16_t* to, float first, float second) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  *(uint32_t*)to = pair;
}

//@ __half22float2: load_f16
__device__ __forceinline__ void __half22float2(float* to, const uint16_t* from) {
  to[0] = load_f16(from[0]);
  to[1] = load_f16(from[1]);
}

// By the word that holds both: taken as a number of 16 bits first, the upper one would be two instructions or three.
//@ __bfloat1622float2: f32_of_bits
__device__ __forceinline__ void __bfloat1622float2(float* to, const uint16_t* from) {
  const uint32_t pair = *(const uint32_t*)from;
  to[0] = f32_of_bits(pair << 16);
  to[1] = f32_of_bits(pair & 0xffff0000u);
}

//@ round_bf16: load_bf16 store_bf16
__device__ __forceinline__ float round_bf16(float x) { return load_bf16(store_bf16(x)); }

//@ max_f32:
__device__ __forceinline__ float max_f32(float a, float b) { return fmaxf(a, b); }

//@ min_f32:
__device__ __forceinline__ float min_f32(float a, float b) { return fminf(a, b); }

// min.NaN and max.NaN take -0 for less than +0, as the portable ones do (PTX ISA 9.7.3).
//@ max_nan_f32:
__device__ __forceinline__ float max_nan_f32(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}

//@ min_nan_f32:
__device__ __forceinline__ float min_nan_f32(float a, float b) {
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}

// The device's own division without its question whether operands are extreme.
//@ moderate_quotient_f32:
__device__ __forceinline__ float moderate_quotient_f32(float a, float b) {
  float rough;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(rough) : "f"(b));
  const float inverse = __fmaf_rn(rough, __fmaf_rn(-b, rough, 1.0f), rough), first = a * inverse;
  const float second = __fmaf_rn(__fmaf_rn(-b, first, a), inverse, first);
  return __fmaf_rn(__fmaf_rn(-b, second, a), inverse, second);
}

// Far arguments are rare: a branch around them, and around the memory that they read.
//@ turn_of: near_turn far_turn
__device__ __forceinline__ float turn_of(float x, int32_t& n) {
  if (fabsf(x) < 0x1p17f) return near_turn(x, n);
  return far_turn(x, n);
}

// CUDA's own operations that round toward zero, up and down.
//@ add_rz_f32:
__device__ __forceinline__ float add_rz_f32(float a, float b) { return __fadd_rz(a, b); }

//@ add_rz_f64:
__device__ __forceinline__ double add_rz_f64(double a, double b) { return __dadd_rz(a, b); }

//@ mul_rz_f32:
__device__ __forceinline__ float mul_rz_f32(float a, float b) { return __fmul_rz(a, b); }

//@ mul_rz_f64:
__device__ __forceinline__ double mul_rz_f64(double a, double b) { return __dmul_rz(a, b); }

//@ div_rz_f32:
__device__ __forceinline__ float div_rz_f32(float a, float b) { return __fdiv_rz(a, b); }

//@ div_rz_f64:
__device__ __forceinline__ double div_rz_f64(double a, double b) { return __ddiv_rz(a, b); }

//@ fma_rz_f32:
__device__ __forceinline__ float fma_rz_f32(float a, float b, float c) { return __fmaf_rz(a, b, c); }

//@ fma_rz_f64:
__device__ __forceinline__ double fma_rz_f64(double a, double b, double c) { return __fma_rz(a, b, c); }

//@ sqrt_rz_f32:
__device__ __forceinline__ float sqrt_rz_f32(float a) { return __fsqrt_rz(a); }

//@ sqrt_rz_f64:
__device__ __forceinline__ double sqrt_rz_f64(double a) { return __dsqrt_rz(a); }

//@ add_ru_f32:
__device__ __forceinline__ float add_ru_f32(float a, float b) { return __fadd_ru(a, b); }

//@ add_ru_f64:
__device__ __forceinline__ double add_ru_f64(double a, double b) { return __dadd_ru(a, b); }

//@ mul_ru_f32:
__device__ __forceinline__ float mul_ru_f32(float a, float b) { return __fmul_ru(a, b); }

//@ mul_ru_f64:
__device__ __forceinline__ double mul_ru_f64(double a, double b) { return __dmul_ru(a, b); }

//@ div_ru_f32:
__device__ __forceinline__ float div_ru_f32(float a, float b) { return __fdiv_ru(a, b); }

//@ div_ru_f64:
__device__ __forceinline__ double div_ru_f64(double a, double b) { return __ddiv_ru(a, b); }

//@ fma_ru_f32:
__device__ __forceinline__ float fma_ru_f32(float a, float b, float c) { return __fmaf_ru(a, b, c); }

//@ fma_ru_f64:
__device__ __forceinline__ double fma_ru_f64(double a, double b, double c) { return __fma_ru(a, b, c); }

//@ sqrt_ru_f32:
__device__ __forceinline__ float sqrt_ru_f32(float a) { return __fsqrt_ru(a); }

//@ sqrt_ru_f64:
__device__ __forceinline__ double sqrt_ru_f64(double a) { return __dsqrt_ru(a); }

//@ add_rd_f32:
__device__ __forceinline__ float add_rd_f32(float a, float b) { return __fadd_rd(a, b); }

//@ add_rd_f64:
__device__ __forceinline__ double add_rd_f64(double a, double b) { return __dadd_rd(a, b); }

//@ mul_rd_f32:
__device__ __forceinline__ float mul_rd_f32(float a, float b) { return __fmul_rd(a, b); }

//@ mul_rd_f64:
__device__ __forceinline__ double mul_rd_f64(double a, double b) { return __dmul_rd(a, b); }

//@ div_rd_f32:
__device__ __forceinline__ float div_rd_f32(float a, float b) { return __fdiv_rd(a, b); }

//@ div_rd_f64:
__device__ __forceinline__ double div_rd_f64(double a, double b) { return __ddiv_rd(a, b); }

//@ fma_rd_f32:
__device__ __forceinline__ float fma_rd_f32(float a, float b, float c) { return __fmaf_rd(a, b, c); }

//@ fma_rd_f64:
__device__ __forceinline__ double fma_rd_f64(double a, double b, double c) { return __fma_rd(a, b, c); }

//@ sqrt_rd_f32:
__device__ __forceinline__ float sqrt_rd_f32(float a) { return __fsqrt_rd(a); }

//@ sqrt_rd_f64:
__device__ __forceinline__ double sqrt_rd_f64(double a) { return __dsqrt_rd(a); }

//@ mulhi: types
template <class T>
__device__ __forceinline__ T mulhi(T a, T b) {
  if constexpr (sizeof(T) == 8) {
    if constexpr ((T)-1 < (T)0) return (T)__mul64hi(a, b);
    return (T)__umul64hi(a, b);
  }
  // Not mul.hi: of sums of several ptxas 13.0 leaves some out (16 in a row are 2).
  uint32_t low, high;
  if constexpr ((T)-1 < (T)0)
    asm("{\n.reg .b64 w;\nmul.wide.s32 w, %2, %3;\nmov.b64 {%0, %1}, w;\n}"
        : "=r"(low), "=r"(high)
        : "r"((uint32_t)a), "r"((uint32_t)b));
  else
    asm("{\n.reg .b64 w;\nmul.wide.u32 w, %2, %3;\nmov.b64 {%0, %1}, w;\n}"
        : "=r"(low), "=r"(high)
        : "r"((uint32_t)a), "r"((uint32_t)b));
  return (T)high;
}

//@ brev: types
template <class T>
__device__ __forceinline__ T brev(T a) {
  if constexpr (sizeof(T) == 8) return (T)__brevll((uint64_t)a);
  return (T)(__brev((uint32_t)a) >> (32 - 8 * (int)sizeof(T)) % 32);
}

// Roundings of CUDA's headers, which programs call by name; halves are floats between statements.
//@ __float2half: load_f16
__device__ __forceinline__ float __float2half(float x) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return load_f16(bits);
}

//@ __float2half_rn: load_f16
__device__ __forceinline__ float __float2half_rn(float x) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return load_f16(bits);
}

//@ __float2half_rz: load_f16
__device__ __forceinline__ float __float2half_rz(float x) {
  uint16_t bits;
  asm("cvt.rz.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return load_f16(bits);
}

//@ __float2half_rd: load_f16
__device__ __forceinline__ float __float2half_rd(float x) {
  uint16_t bits;
  asm("cvt.rm.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return load_f16(bits);
}

//@ __float2half_ru: load_f16
__device__ __forceinline__ float __float2half_ru(float x) {
  uint16_t bits;
  asm("cvt.rp.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return load_f16(bits);
}

//@ tw_sync_grid: types
// A barrier of all blocks, which a cooperative launch runs at once. The top bit turns when the last block has come: the
// step of the first makes up the difference, from wherever the counter stands.
__device__ uint32_t tw_grid_arrived;
__device__ __forceinline__ void tw_sync_grid() {
  __syncthreads();
  if ((threadIdx.x | threadIdx.y | threadIdx.z) == 0) {
    const uint32_t others = gridDim.x * gridDim.y * gridDim.z - 1u;
    const bool first = (blockIdx.x | blockIdx.y | blockIdx.z) == 0;
    __threadfence();
    const uint32_t before = atomicAdd(&tw_grid_arrived, first ? 0x80000000u - others : 1u);
    while (((*(volatile uint32_t*)&tw_grid_arrived ^ before) & 0x80000000u) == 0u) {
    }
    __threadfence();
  }
  __syncthreads();
}
namespace cooperative_groups {
struct tw_grid {
  __device__ __forceinline__ void sync() const { tw_sync_grid(); }
};
__device__ __forceinline__ tw_grid this_grid() { return {}; }
}  // namespace cooperative_groups

//@ rcp_approx_f32:
__device__ __forceinline__ float rcp_approx_f32(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

//@ exp2_f32:
__device__ __forceinline__ float exp2_f32(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The portable text's bits (all 2^32 arguments were tried) in fewer instructions: bounds that keep NaN, and a power of
// two in two normal factors, of which 254 more in `shifted` make the first as it stands in a float.
//@ exp_f32: exp_core bits_of_f32 f32_of_bits max_nan_f32 min_nan_f32
__device__ __forceinline__ float exp_f32(float x) {
  const float y = min_nan_f32(max_nan_f32(x, -120.0f), 100.0f);
  const float shifted = __fmaf_rn(y, 1.442695041f, 0x1.8p23f + 254.0f), n = shifted - (0x1.8p23f + 254.0f);
  const float p = exp_core(__fmaf_rn(n, -1.428606765e-06f, __fmaf_rn(n, -6.931457520e-01f, y)));
  const uint32_t half = bits_of_f32(shifted) << 22 & 0x7f800000u;
  return p * f32_of_bits(half) * f32_of_bits((bits_of_f32(shifted) << 23) - half);
}

// NVVM 13.0 may compute the magnitudes of neighbouring bytes in halves of a word and forget to extend their sign before
// it compares them. Of a sum of absolute differences it knows nothing.
//@ abs: types
template <class T>
__device__ __forceinline__ T abs(T a) {
  if constexpr (sizeof(T) == 1 && (T)-1 < (T)0) return (T)__sad((int32_t)a, 0, 0u);
  return a < (T)0 ? (T)(0 - (uint64_t)a) : a;
}
