// Scalar pieces for which devices of compute capability 8.9 and above have instructions of the same meaning:
// conversions of 8-bit floats, two at a time (PTX ISA 9.7.9.21, cvt with .e4m3x2 and .e5m2x2).

//@ load_e4m3: load_f16
__device__ __forceinline__ float load_e4m3(uint8_t bits) {
  uint32_t pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((uint16_t)bits));
  return load_f16((uint16_t)pair);
}

//@ tw_float2_of_e4m3: load_f16
__device__ __forceinline__ void tw_float2_of_e4m3(float* to, const uint8_t* from) {
  uint32_t pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(*(const uint16_t*)from));
  to[0] = load_f16((uint16_t)pair);
  to[1] = load_f16((uint16_t)(pair >> 16));
}

//@ store_e4m3: types
__device__ __forceinline__ uint8_t store_e4m3(float x) {
  uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  return (uint8_t)pair;
}

//@ __nv_cvt_float2_to_fp8x2_e4m3: types
__device__ __forceinline__ void __nv_cvt_float2_to_fp8x2_e4m3(uint8_t* to, float first, float second) {
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(*(uint16_t*)to) : "f"(second), "f"(first));
}

//@ round_e4m3: load_e4m3 store_e4m3
__device__ __forceinline__ float round_e4m3(float x) { return load_e4m3(store_e4m3(x)); }

//@ store_e5m2: types
__device__ __forceinline__ uint8_t store_e5m2(float x) {
  uint16_t pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  return (uint8_t)pair;
}

//@ __nv_cvt_float2_to_fp8x2_e5m2: types
__device__ __forceinline__ void __nv_cvt_float2_to_fp8x2_e5m2(uint8_t* to, float first, float second) {
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(*(uint16_t*)to) : "f"(second), "f"(first));
}

//@ round_e5m2: load_e5m2 store_e5m2
__device__ __forceinline__ float round_e5m2(float x) { return load_e5m2(store_e5m2(x)); }
