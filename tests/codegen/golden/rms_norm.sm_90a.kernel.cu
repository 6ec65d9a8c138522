extern "C" __global__ void __launch_bounds__(128) rms_norm_kernel(uint16_t* X, const uint16_t* __restrict__ W, uint16_t* Y) {
  extern __shared__ __align__(1024) unsigned char tw_shared[];
  const int32_t by = blockIdx.x;
  const int32_t tx = threadIdx.x;
  float* const scale_parts = (float*)(tw_shared + 0);
  alignas(16) float x[32];
  alignas(16) float square[32];
  alignas(16) float w[32];
  alignas(16) float scale[1];
  alignas(16) float scale_total[1];
  // norm.cpp:20
  #pragma unroll
  for (int32_t r = 0; r < 4; ++r) {
    alignas(16) uint16_t X_vector[8];
    *(uint4*)X_vector = *(const uint4*)&X[r * 1024 + tx * 8 + by * 4096];
    __bfloat1622float2(&x[r * 8], X_vector);
    __bfloat1622float2(&x[r * 8 + 2], &X_vector[2]);
    __bfloat1622float2(&x[r * 8 + 4], &X_vector[4]);
    __bfloat1622float2(&x[r * 8 + 6], &X_vector[6]);
  }
  // norm.cpp:21
  #pragma unroll
  for (int32_t r = 0; r < 4; ++r) {
    alignas(16) uint16_t W_vector[8];
    *(uint4*)W_vector = *(const uint4*)&W[r * 1024 + tx * 8];
    __bfloat1622float2(&w[r * 8], W_vector);
    __bfloat1622float2(&w[r * 8 + 2], &W_vector[2]);
    __bfloat1622float2(&w[r * 8 + 4], &W_vector[4]);
    __bfloat1622float2(&w[r * 8 + 6], &W_vector[6]);
  }
  // norm.cpp:22
  #pragma unroll
  for (int32_t r = 0; r < 4; ++r) {
    #pragma unroll
    for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
      square[r * 8 + r_1] = x[r * 8 + r_1] * x[r * 8 + r_1];
    }
  }
  // norm.cpp:23
  #pragma unroll
  for (int32_t r = 0; r < 1; ++r) {
    scale_total[r] = 0.0f;
  }
  #pragma unroll
  for (int32_t r = 0; r < 4; ++r) {
    #pragma unroll
    for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
      scale_total[0] = scale_total[0] + square[r * 8 + r_1];
    }
  }
  #pragma unroll
  for (int32_t r = 0; r < 1; ++r) {
    const float other = (float)__shfl_xor_sync(0xffffffffu, scale_total[r], 16);
    scale_total[r] = scale_total[r] + other;
  }
  #pragma unroll
  for (int32_t r = 0; r < 1; ++r) {
    const float other = (float)__shfl_xor_sync(0xffffffffu, scale_total[r], 8);
    scale_total[r] = scale_total[r] + other;
  }
  #pragma unroll
  for (int32_t r = 0; r < 1; ++r) {
    const float other = (float)__shfl_xor_sync(0xffffffffu, scale_total[r], 4);
    scale_total[r] = scale_total[r] + other;
  }
  #pragma unroll
  for (int32_t r = 0; r < 1; ++r) {
    const float other = (float)__shfl_xor_sync(0xffffffffu, scale_total[r], 2);
    scale_total[r] = scale_total[r] + other;
  }
  #pragma unroll
  for (int32_t r = 0; r < 1; ++r) {
    const float other = (float)__shfl_xor_sync(0xffffffffu, scale_total[r], 1);
    scale_total[r] = scale_total[r] + other;
  }
  if ((tx & 31) == 0) {
    scale_parts[tx >> 5] = scale_total[0];
  }
  __syncthreads();
  scale_total[0] = scale_parts[0];
  #pragma unroll
  for (int64_t part = 1ll; part < 4ll; ++part) {
    scale_total[0] = scale_total[0] + scale_parts[part];
  }
  scale[0] = scale_total[0];
  // norm.cpp:24
  scale[0] = tw_rsqrtf(scale[0] / 4096.0f + 1e-06f);
  // norm.cpp:25
  #pragma unroll
  for (int32_t r = 0; r < 4; ++r) {
    alignas(16) uint16_t Y_vector[8];
    __float22bfloat162_rn(Y_vector, x[r * 8] * scale[0] * w[r * 8], x[r * 8 + 1] * scale[0] * w[r * 8 + 1]);
    __float22bfloat162_rn(&Y_vector[2], x[r * 8 + 2] * scale[0] * w[r * 8 + 2], x[r * 8 + 3] * scale[0] * w[r * 8 + 3]);
    __float22bfloat162_rn(&Y_vector[4], x[r * 8 + 4] * scale[0] * w[r * 8 + 4], x[r * 8 + 5] * scale[0] * w[r * 8 + 5]);
    __float22bfloat162_rn(&Y_vector[6], x[r * 8 + 6] * scale[0] * w[r * 8 + 6], x[r * 8 + 7] * scale[0] * w[r * 8 + 7]);
    tw_store((uint4*)&Y[r * 1024 + tx * 8 + by * 4096], *(const uint4*)Y_vector);
  }
}

