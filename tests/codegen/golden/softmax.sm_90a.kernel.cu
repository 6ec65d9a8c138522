extern "C" __global__ void __launch_bounds__(128) softmax_kernel(uint16_t* X, uint16_t* Y) {
  extern __shared__ __align__(1024) unsigned char tw_shared[];
  const int32_t by = blockIdx.x;
  const int32_t tx = threadIdx.x;
  float* const largest_parts = (float*)(tw_shared + 0);
  float* const total_parts = (float*)(tw_shared + 128);
  alignas(16) float x[32];
  alignas(16) float largest[1];
  alignas(16) float total[1];
  alignas(16) float largest_total[1];
  alignas(16) float total_total[1];
  // softmax.cpp:18
  #pragma unroll
  for (int32_t r = 0; r < 4; ++r) {
    alignas(16) uint16_t X_vector[8];
    *(uint4*)X_vector = *(const uint4*)&X[r * 1024 + tx * 8 + by * 4096];
    __bfloat1622float2(&x[r * 8], X_vector);
    __bfloat1622float2(&x[r * 8 + 2], &X_vector[2]);
    __bfloat1622float2(&x[r * 8 + 4], &X_vector[4]);
    __bfloat1622float2(&x[r * 8 + 6], &X_vector[6]);
  }
  // softmax.cpp:19
  #pragma unroll
  for (int32_t r = 0; r < 1; ++r) {
    largest_total[r] = -__int_as_float(0x7f800000);
  }
  #pragma unroll
  for (int32_t r = 0; r < 4; ++r) {
    #pragma unroll
    for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
      largest_total[0] = max_f32(largest_total[0], x[r * 8 + r_1]);
    }
  }
  #pragma unroll
  for (int32_t r = 0; r < 1; ++r) {
    const float other = (float)__shfl_xor_sync(0xffffffffu, largest_total[r], 16);
    largest_total[r] = max_f32(largest_total[r], other);
  }
  #pragma unroll
  for (int32_t r = 0; r < 1; ++r) {
    const float other = (float)__shfl_xor_sync(0xffffffffu, largest_total[r], 8);
    largest_total[r] = max_f32(largest_total[r], other);
  }
  #pragma unroll
  for (int32_t r = 0; r < 1; ++r) {
    const float other = (float)__shfl_xor_sync(0xffffffffu, largest_total[r], 4);
    largest_total[r] = max_f32(largest_total[r], other);
  }
  #pragma unroll
  for (int32_t r = 0; r < 1; ++r) {
    const float other = (float)__shfl_xor_sync(0xffffffffu, largest_total[r], 2);
    largest_total[r] = max_f32(largest_total[r], other);
  }
  #pragma unroll
  for (int32_t r = 0; r < 1; ++r) {
    const float other = (float)__shfl_xor_sync(0xffffffffu, largest_total[r], 1);
    largest_total[r] = max_f32(largest_total[r], other);
  }
  if ((tx & 31) == 0) {
    largest_parts[tx >> 5] = largest_total[0];
  }
  __syncthreads();
  largest_total[0] = largest_parts[0];
  #pragma unroll
  for (int64_t part = 1ll; part < 4ll; ++part) {
    largest_total[0] = max_f32(largest_total[0], largest_parts[part]);
  }
  largest[0] = largest_total[0];
  // softmax.cpp:20
  #pragma unroll
  for (int32_t r = 0; r < 4; ++r) {
    #pragma unroll
    for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
      x[r * 8 + r_1] = tw_exp2f((x[r * 8 + r_1] - largest[0]) * 1.442695f);
    }
  }
  // softmax.cpp:21
  #pragma unroll
  for (int32_t r = 0; r < 1; ++r) {
    total_total[r] = 0.0f;
  }
  #pragma unroll
  for (int32_t r = 0; r < 4; ++r) {
    #pragma unroll
    for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
      total_total[0] = total_total[0] + x[r * 8 + r_1];
    }
  }
  #pragma unroll
  for (int32_t r = 0; r < 1; ++r) {
    const float other = (float)__shfl_xor_sync(0xffffffffu, total_total[r], 16);
    total_total[r] = total_total[r] + other;
  }
  #pragma unroll
  for (int32_t r = 0; r < 1; ++r) {
    const float other = (float)__shfl_xor_sync(0xffffffffu, total_total[r], 8);
    total_total[r] = total_total[r] + other;
  }
  #pragma unroll
  for (int32_t r = 0; r < 1; ++r) {
    const float other = (float)__shfl_xor_sync(0xffffffffu, total_total[r], 4);
    total_total[r] = total_total[r] + other;
  }
  #pragma unroll
  for (int32_t r = 0; r < 1; ++r) {
    const float other = (float)__shfl_xor_sync(0xffffffffu, total_total[r], 2);
    total_total[r] = total_total[r] + other;
  }
  #pragma unroll
  for (int32_t r = 0; r < 1; ++r) {
    const float other = (float)__shfl_xor_sync(0xffffffffu, total_total[r], 1);
    total_total[r] = total_total[r] + other;
  }
  if ((tx & 31) == 0) {
    total_parts[tx >> 5] = total_total[0];
  }
  __syncthreads();
  total_total[0] = total_parts[0];
  #pragma unroll
  for (int64_t part = 1ll; part < 4ll; ++part) {
    total_total[0] = total_total[0] + total_parts[part];
  }
  total[0] = total_total[0];
  // softmax.cpp:22
  #pragma unroll
  for (int32_t r = 0; r < 4; ++r) {
    alignas(16) uint16_t Y_vector[8];
    alignas(16) float quotient[8];
    float least;
    const float divisor = total[0];
    const float inverse = 1.0f / divisor;
    least = __int_as_float(0x7f800000);
    #pragma unroll
    for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
      const float dividend = x[r * 8 + r_1];
      const float q = dividend * inverse;
      const float rounded = fma_f32(fma_f32(-divisor, q, dividend), inverse, q);
      quotient[r_1] = rounded;
      least = min_nan_f32(least, abs_f32(rounded));
    }
    if (!(9.094947e-13f <= abs_f32(divisor) && abs_f32(divisor) <= 1099511600000.0f && 8.6736174e-19f <= least)) {
      if (0.0f < abs_f32(divisor) && abs_f32(divisor) < __int_as_float(0x7f800000)) {
        least = __int_as_float(0x7f800000);
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
          const float x_1 = x[r * 8 + r_1];
          least = min_nan_f32(least, abs_f32(x_1 == 0.0f ? __int_as_float(0x7f800000) : quotient[r_1]));
          quotient[r_1] = x_1 == 0.0f ? (x_1 * divisor) : (quotient[r_1]);
        }
        if (!(9.094947e-13f <= abs_f32(divisor) && abs_f32(divisor) <= 1099511600000.0f && 8.6736174e-19f <= least)) {
          #pragma unroll
          for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
            quotient[r_1] = x[r * 8 + r_1] / divisor;
          }
        }
      } else {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
          quotient[r_1] = x[r * 8 + r_1] * inverse;
        }
      }
    }
    __float22bfloat162_rn(Y_vector, quotient[0], quotient[1]);
    __float22bfloat162_rn(&Y_vector[2], quotient[2], quotient[3]);
    __float22bfloat162_rn(&Y_vector[4], quotient[4], quotient[5]);
    __float22bfloat162_rn(&Y_vector[6], quotient[6], quotient[7]);
    tw_store((uint4*)&Y[r * 1024 + tx * 8 + by * 4096], *(const uint4*)Y_vector);
  }
}

