typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
__device__ __forceinline__ float f32_of_bits(uint32_t bits) { return __builtin_bit_cast(float, bits); }
__device__ __forceinline__ void __bfloat1622float2(float* to, const uint16_t* from) {
  const uint32_t pair = *(const uint32_t*)from;
  to[0] = f32_of_bits(pair << 16);
  to[1] = f32_of_bits(pair & 0xffff0000u);
}
__device__ __forceinline__ void __float22bfloat162_rn(uint16_t* to, float first, float second) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  *(uint32_t*)to = pair;
}
__device__ __forceinline__ float rsqrt_f32(float x) { return 1.0f / __fsqrt_rn(x); }
__device__ __forceinline__ void tw_store(uint2* to, uint2 v) {
  asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "r"(v.x), "r"(v.y) : "memory");
}
__device__ __forceinline__ void tw_store(float2* to, float2 v) {
  asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "f"(v.x), "f"(v.y) : "memory");
}
__device__ __forceinline__ void tw_store(uint4* to, uint4 v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "r"(v.x), "r"(v.y),
               "r"(v.z), "r"(v.w)
               : "memory");
}
__device__ __forceinline__ void tw_store(float4* to, float4 v) {
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "f"(v.x), "f"(v.y),
               "f"(v.z), "f"(v.w)
               : "memory");
}

__device__ __forceinline__ float tw_rsqrtf(float x) { return rsqrt_f32(x); }

