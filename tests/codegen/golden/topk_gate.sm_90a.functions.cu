typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
__device__ __forceinline__ float max_f32(float a, float b) { return fmaxf(a, b); }
template <class T>
__device__ __forceinline__ T min(T a, T b) {
  return b < a ? b : a;
}


