extern "C" __global__ void __launch_bounds__(128) topk_gate_kernel(const float* __restrict__ scores, int64_t* topk_idx, float* topk_weights) {
  extern __shared__ __align__(1024) unsigned char tw_shared[];
  const int32_t bx = blockIdx.x;
  const int32_t tx = threadIdx.x;
  float* const total = (float*)(tw_shared + 0);
  int32_t* const ids = (int32_t*)(tw_shared + 128);
  float* const weights = (float*)(tw_shared + 384);
  alignas(16) float left[16];
  // topk_gate.cpp:20
  #pragma unroll
  for (int32_t r = 0; r < 2; ++r) {
    #pragma unroll
    for (int32_t r_1 = 0; r_1 < 2; ++r_1) {
      alignas(16) float scores_vector[4];
      *(float4*)scores_vector = *(const float4*)&scores[r_1 * 128 + (tx & 31) * 4 + bx * 2048 + r * 1024 + (tx >> 5) * 256];
      #pragma unroll
      for (int32_t r_2 = 0; r_2 < 4; ++r_2) {
        left[r * 8 + r_1 * 4 + r_2] = scores_vector[r_2];
      }
    }
  }
  // topk_gate.cpp:21
  if (tx < 8) {
    total[tx] = 0.0f;
  }
  // topk_gate.cpp:22
  for (int32_t k = 0; k < 8; ++k) {
    alignas(16) int32_t candidate[16];
    alignas(16) float best[2];
    alignas(16) int32_t expert[2];
    alignas(16) float best_total[2];
    alignas(16) int32_t expert_total[2];
    // topk_gate.cpp:23
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      best_total[r] = -__int_as_float(0x7f800000);
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 2; ++r_1) {
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 4; ++r_2) {
          best_total[r] = max_f32(best_total[r], left[r * 8 + r_1 * 4 + r_2]);
        }
      }
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      const float other = (float)__shfl_xor_sync(0xffffffffu, best_total[r], 16);
      best_total[r] = max_f32(best_total[r], other);
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      const float other = (float)__shfl_xor_sync(0xffffffffu, best_total[r], 8);
      best_total[r] = max_f32(best_total[r], other);
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      const float other = (float)__shfl_xor_sync(0xffffffffu, best_total[r], 4);
      best_total[r] = max_f32(best_total[r], other);
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      const float other = (float)__shfl_xor_sync(0xffffffffu, best_total[r], 2);
      best_total[r] = max_f32(best_total[r], other);
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      const float other = (float)__shfl_xor_sync(0xffffffffu, best_total[r], 1);
      best_total[r] = max_f32(best_total[r], other);
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      best[r] = best_total[r];
    }
    // topk_gate.cpp:25
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 2; ++r_1) {
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 4; ++r_2) {
          candidate[r * 8 + r_1 * 4 + r_2] = left[r * 8 + r_1 * 4 + r_2] == best[r] ? (r_1 * 128 + (tx & 31) * 4 + r_2) : (256);
        }
      }
    }
    // topk_gate.cpp:26
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      expert_total[r] = 2147483647;
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 2; ++r_1) {
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 4; ++r_2) {
          expert_total[r] = min<int32_t>(expert_total[r], candidate[r * 8 + r_1 * 4 + r_2]);
        }
      }
    }
    expert_total[0] = __reduce_min_sync(0xffffffffu, expert_total[0]);
    expert_total[1] = __reduce_min_sync(0xffffffffu, expert_total[1]);
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      expert[r] = expert_total[r];
    }
    // topk_gate.cpp:27
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 2; ++r_1) {
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 4; ++r_2) {
          // topk_gate.cpp:28
          left[r * 8 + r_1 * 4 + r_2] = r_1 * 128 + (tx & 31) * 4 + r_2 == expert[r] ? (-__int_as_float(0x7f800000)) : (left[r * 8 + r_1 * 4 + r_2]);
        }
      }
    }
    // topk_gate.cpp:30
    __syncthreads();
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      if ((tx & 31) == 0) {
        // topk_gate.cpp:31
        ids[k + r * 32 + (tx >> 5) * 8] = expert[r];
        // topk_gate.cpp:32
        weights[k + r * 32 + (tx >> 5) * 8] = best[r];
        // topk_gate.cpp:33
        total[r * 4 + (tx >> 5)] = total[r * 4 + (tx >> 5)] + best[r];
      }
    }
  }
  // topk_gate.cpp:36
  __syncthreads();
  if ((tx >> 5) < 2) {
    weights[(tx & 7) + (tx >> 3) * 8] = weights[(tx & 7) + (tx >> 3) * 8] / (total[tx >> 3] + 1e-20f);
  }
  // topk_gate.cpp:37
  if ((tx >> 5) < 2) {
    topk_idx[(tx & 7) + bx * 64 + (tx >> 3) * 8] = (int64_t)ids[(tx & 7) + (tx >> 3) * 8];
  }
  // topk_gate.cpp:38
  if ((tx >> 5) < 2) {
    topk_weights[(tx & 7) + bx * 64 + (tx >> 3) * 8] = weights[(tx & 7) + (tx >> 3) * 8];
  }
}

