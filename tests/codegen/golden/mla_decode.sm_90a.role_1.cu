  if (warp < 4) {
    alignas(16) uint16_t S_shared[32];
    alignas(16) float acc_s[32];
    alignas(16) float acc_o[128];
    alignas(16) float scores_max[2];
    alignas(16) float scores_max_prev[2];
    alignas(16) float scores_scale[2];
    alignas(16) float scores_sum[2];
    alignas(16) float logsum[2];
    alignas(16) float scores_max_total[2];
    alignas(16) float scores_sum_total[2];
    alignas(16) uint16_t Q_shared_left_words[128];
    const int32_t thread = tx;
    tw_take_registers<240>();
    // mla_decode.cpp:38
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 32; ++r_1) {
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          acc_o[r * 2 + r_1 * 4 + r_2] = 0.0f;
        }
      }
    }
    // mla_decode.cpp:39
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      logsum[r] = 0.0f;
    }
    // mla_decode.cpp:40
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      scores_max[r] = -__int_as_float(0x7f800000);
    }
    // mla_decode.cpp:41
    tw_wait(once_full, 0);
    tw_wait(K_pe_shared_full, 0);
    // mla_decode.cpp:46
    tw_hold(acc_s);
    tw_wgmma_fence();
    #pragma unroll
    for (int32_t k = 0; k < 4; ++k) {
      tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull, 31>(tw_matrices, k * 2), tw_matrix<0x4000004000010000ull, 30>(tw_matrices, k * 2 + 12800), k != 0);
    }
    // mla_decode.cpp:41
    tw_wait(KV_shared_left_full, 0);
    // mla_decode.cpp:45
    tw_hold(acc_s);
    tw_wgmma_fence();
    #pragma unroll
    for (int32_t k = 0; k < 4; ++k) {
      tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull, 29>(tw_matrices, (k * 16 & 63) * 2 + (k * 16 >> 6) * 8192 + 8192 >> 4), tw_matrix<0x4000004000010000ull, 28>(tw_matrices, (k * 16 & 63) * 2 + (k * 16 >> 6) * 8192 + 73728 >> 4), 1);
    }
    // mla_decode.cpp:41
    tw_wait(&KV_shared_left_full[1], 0);
    // mla_decode.cpp:45
    tw_hold(acc_s);
    tw_wgmma_fence();
    #pragma unroll
    for (int32_t k = 0; k < 4; ++k) {
      tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull, 27>(tw_matrices, (k * 16 + 64 & 63) * 2 + (k * 16 + 64 >> 6) * 8192 + 8192 >> 4), tw_matrix<0x4000004000010000ull, 26>(tw_matrices, (k * 16 + 64 & 63) * 2 + (k * 16 + 64 >> 6) * 8192 + 73728 >> 4), 1);
    }
    // mla_decode.cpp:41
    tw_wait(&KV_shared_left_full[2], 0);
    // mla_decode.cpp:45
    tw_hold(acc_s);
    tw_wgmma_fence();
    #pragma unroll
    for (int32_t k = 0; k < 4; ++k) {
      tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull, 25>(tw_matrices, (k * 16 + 128 & 63) * 2 + (k * 16 + 128 >> 6) * 8192 + 8192 >> 4), tw_matrix<0x4000004000010000ull, 24>(tw_matrices, (k * 16 + 128 & 63) * 2 + (k * 16 + 128 >> 6) * 8192 + 73728 >> 4), 1);
    }
    // mla_decode.cpp:41
    tw_wait(&KV_shared_left_full[3], 0);
    // mla_decode.cpp:45
    tw_hold(acc_s);
    tw_wgmma_fence();
    #pragma unroll
    for (int32_t k = 0; k < 4; ++k) {
      tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull, 23>(tw_matrices, (k * 16 + 192 & 63) * 2 + (k * 16 + 192 >> 6) * 8192 + 8192 >> 4), tw_matrix<0x4000004000010000ull, 22>(tw_matrices, (k * 16 + 192 & 63) * 2 + (k * 16 + 192 >> 6) * 8192 + 73728 >> 4), 1);
    }
    // mla_decode.cpp:41
    tw_wait(KV_shared_right_full, 0);
    // mla_decode.cpp:45
    tw_hold(acc_s);
    tw_wgmma_fence();
    #pragma unroll
    for (int32_t k = 0; k < 4; ++k) {
      tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull, 21>(tw_matrices, (k * 16 & 63) * 2 + (k * 16 >> 6) * 8192 + 40960 >> 4), tw_matrix<0x4000004000010000ull, 20>(tw_matrices, (k * 16 & 63) * 2 + (k * 16 >> 6) * 8192 + 139264 >> 4), 1);
    }
    // mla_decode.cpp:41
    tw_wait(&KV_shared_right_full[1], 0);
    // mla_decode.cpp:45
    tw_hold(acc_s);
    tw_wgmma_fence();
    #pragma unroll
    for (int32_t k = 0; k < 4; ++k) {
      tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull, 31>(tw_matrices, (k * 16 + 64 & 63) * 2 + (k * 16 + 64 >> 6) * 8192 + 40960 >> 4), tw_matrix<0x4000004000010000ull, 30>(tw_matrices, (k * 16 + 64 & 63) * 2 + (k * 16 + 64 >> 6) * 8192 + 139264 >> 4), 1);
    }
    // mla_decode.cpp:41
    tw_wait(&KV_shared_right_full[2], 0);
    // mla_decode.cpp:45
    tw_hold(acc_s);
    tw_wgmma_fence();
    #pragma unroll
    for (int32_t k = 0; k < 4; ++k) {
      tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull, 29>(tw_matrices, (k * 16 + 128 & 63) * 2 + (k * 16 + 128 >> 6) * 8192 + 40960 >> 4), tw_matrix<0x4000004000010000ull, 28>(tw_matrices, (k * 16 + 128 & 63) * 2 + (k * 16 + 128 >> 6) * 8192 + 139264 >> 4), 1);
    }
    // mla_decode.cpp:41
    tw_wait(&KV_shared_right_full[3], 0);
    // mla_decode.cpp:45
    tw_hold(acc_s);
    tw_wgmma_fence();
    #pragma unroll
    for (int32_t k = 0; k < 4; ++k) {
      tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull, 27>(tw_matrices, (k * 16 + 192 & 63) * 2 + (k * 16 + 192 >> 6) * 8192 + 40960 >> 4), tw_matrix<0x4000004000010000ull, 26>(tw_matrices, (k * 16 + 192 & 63) * 2 + (k * 16 + 192 >> 6) * 8192 + 139264 >> 4), 1);
    }
    // mla_decode.cpp:41
    tw_wgmma_commit();
    tw_wgmma_wait<0>();
    tw_hold(acc_s);
    __syncwarp();
    if ((tx & 31) == 0) {
      tw_arrive(K_pe_shared_empty);
    }
    // mla_decode.cpp:47
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          // mla_decode.cpp:48
          acc_s[r * 2 + r_1 * 4 + r_2] = acc_s[r * 2 + r_1 * 4 + r_2];
        }
      }
    }
    // mla_decode.cpp:50
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      scores_max_prev[r] = scores_max[r];
    }
    // mla_decode.cpp:51
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      scores_max_total[r] = -__int_as_float(0x7f800000);
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          scores_max_total[r] = max_f32(scores_max_total[r], acc_s[r * 2 + r_1 * 4 + r_2]);
        }
      }
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      const float other = (float)__shfl_xor_sync(0xffffffffu, scores_max_total[r], 2);
      scores_max_total[r] = max_f32(scores_max_total[r], other);
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      const float other = (float)__shfl_xor_sync(0xffffffffu, scores_max_total[r], 1);
      scores_max_total[r] = max_f32(scores_max_total[r], other);
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      scores_max[r] = max_f32(scores_max[r], scores_max_total[r]);
    }
    // mla_decode.cpp:52
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      scores_scale[r] = tw_exp2f(fma_f32(scores_max_prev[r], 0.060112294f, -(scores_max[r] * 0.060112294f)));
    }
    // mla_decode.cpp:53
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          // mla_decode.cpp:54
          acc_s[r * 2 + r_1 * 4 + r_2] = tw_exp2f(fma_f32(acc_s[r * 2 + r_1 * 4 + r_2], 0.060112294f, -(scores_max[r] * 0.060112294f)));
        }
      }
    }
    // mla_decode.cpp:57
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
        __float22bfloat162_rn(&S_shared[r * 2 + r_1 * 4], acc_s[r * 2 + r_1 * 4], acc_s[r * 2 + r_1 * 4 + 1]);
      }
    }
    // mla_decode.cpp:41
    #pragma unroll
    for (int32_t r = 0; r < 4; ++r) {
      tw_store_matrices_4(&S_shared_handed[((thread >> 5) * 1024 + (thread >> 3 & 1) * 512 + (thread & 7) * 64 + (thread >> 4 & 1) * 8 ^ (thread & 7) * 8) ^ r * 16], &S_shared[r * 8]);
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      if ((thread & 3) == 0) {
        scores_max_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2)] = scores_max[r];
      }
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      if ((thread & 3) == 0) {
        scores_scale_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2)] = scores_scale[r];
      }
    }
    tw_fence_async_shared();
    __syncwarp();
    if ((tx & 31) == 0) {
      tw_arrive(ready);
    }
    // mla_decode.cpp:59
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 32; ++r_1) {
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          acc_o[r * 2 + r_1 * 4 + r_2] = acc_o[r * 2 + r_1 * 4 + r_2] * scores_scale[r];
        }
      }
    }
    // mla_decode.cpp:60
    tw_hold(acc_o);
    tw_hold(*(uint32_t(*)[16])S_shared);
    tw_wgmma_fence();
    #pragma unroll
    for (int32_t k = 0; k < 4; ++k) {
      tw_wgmma_m64n256k16_f32_bf16_bf16_r_tb(acc_o, &((uint32_t*)S_shared)[k * 4], tw_matrix<0x4000004002000000ull, 25>(tw_matrices, k * 128 + 4608), 1);
    }
    // mla_decode.cpp:41
    tw_wgmma_commit();
    // mla_decode.cpp:56
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      scores_sum_total[r] = 0.0f;
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          scores_sum_total[r] = scores_sum_total[r] + acc_s[r * 2 + r_1 * 4 + r_2];
        }
      }
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      const float other = (float)__shfl_xor_sync(0xffffffffu, scores_sum_total[r], 2);
      scores_sum_total[r] = scores_sum_total[r] + other;
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      const float other = (float)__shfl_xor_sync(0xffffffffu, scores_sum_total[r], 1);
      scores_sum_total[r] = scores_sum_total[r] + other;
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      scores_sum[r] = scores_sum_total[r];
    }
    // mla_decode.cpp:58
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      logsum[r] = fma_f32(logsum[r], scores_scale[r], scores_sum[r]);
    }
    // mla_decode.cpp:41
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      if ((thread & 3) == 0) {
        logsum_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2)] = logsum[r];
      }
    }
    __syncwarp();
    if ((tx & 31) == 0) {
      tw_arrive(ready_later);
    }
    tw_wgmma_wait<0>();
    tw_hold(acc_o);
    tw_hold(*(uint32_t(*)[16])S_shared);
    __syncwarp();
    if ((tx & 31) == 0) {
      tw_arrive(KV_shared_left_empty);
    }
    for (int32_t pair = 0; pair < 63; ++pair) {
      alignas(16) float scores_max_total_1[2];
      alignas(16) float scores_sum_total_1[2];
      const int32_t fill = pair + 1;
      const int32_t parity = (int32_t)((uint32_t)fill & 1u);
      const int32_t parity_1 = (int32_t)((uint32_t)pair & 1u);
      tw_wait(K_pe_shared_full, parity);
      // mla_decode.cpp:46
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull, 24>(tw_matrices, k * 2), tw_matrix<0x4000004000010000ull, 23>(tw_matrices, k * 2 + 12800), k != 0);
      }
      // mla_decode.cpp:41
      tw_wait(KV_shared_left_full, parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull, 22>(tw_matrices, (k * 16 & 63) * 2 + (k * 16 >> 6) * 8192 + 8192 >> 4), tw_matrix<0x4000004000010000ull, 21>(tw_matrices, (k * 16 & 63) * 2 + (k * 16 >> 6) * 8192 + 73728 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wait(&KV_shared_left_full[1], parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull, 20>(tw_matrices, (k * 16 + 64 & 63) * 2 + (k * 16 + 64 >> 6) * 8192 + 8192 >> 4), tw_matrix<0x4000004000010000ull, 31>(tw_matrices, (k * 16 + 64 & 63) * 2 + (k * 16 + 64 >> 6) * 8192 + 73728 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wait(&KV_shared_left_full[2], parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull, 30>(tw_matrices, (k * 16 + 128 & 63) * 2 + (k * 16 + 128 >> 6) * 8192 + 8192 >> 4), tw_matrix<0x4000004000010000ull, 29>(tw_matrices, (k * 16 + 128 & 63) * 2 + (k * 16 + 128 >> 6) * 8192 + 73728 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wait(&KV_shared_left_full[3], parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull, 28>(tw_matrices, (k * 16 + 192 & 63) * 2 + (k * 16 + 192 >> 6) * 8192 + 8192 >> 4), tw_matrix<0x4000004000010000ull, 27>(tw_matrices, (k * 16 + 192 & 63) * 2 + (k * 16 + 192 >> 6) * 8192 + 73728 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wait(KV_shared_right_full, parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull, 26>(tw_matrices, (k * 16 & 63) * 2 + (k * 16 >> 6) * 8192 + 40960 >> 4), tw_matrix<0x4000004000010000ull, 25>(tw_matrices, (k * 16 & 63) * 2 + (k * 16 >> 6) * 8192 + 139264 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wait(&KV_shared_right_full[1], parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull, 24>(tw_matrices, (k * 16 + 64 & 63) * 2 + (k * 16 + 64 >> 6) * 8192 + 40960 >> 4), tw_matrix<0x4000004000010000ull, 23>(tw_matrices, (k * 16 + 64 & 63) * 2 + (k * 16 + 64 >> 6) * 8192 + 139264 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wait(&KV_shared_right_full[2], parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull, 22>(tw_matrices, (k * 16 + 128 & 63) * 2 + (k * 16 + 128 >> 6) * 8192 + 40960 >> 4), tw_matrix<0x4000004000010000ull, 21>(tw_matrices, (k * 16 + 128 & 63) * 2 + (k * 16 + 128 >> 6) * 8192 + 139264 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wait(&KV_shared_right_full[3], parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull, 20>(tw_matrices, (k * 16 + 192 & 63) * 2 + (k * 16 + 192 >> 6) * 8192 + 40960 >> 4), tw_matrix<0x4000004000010000ull, 31>(tw_matrices, (k * 16 + 192 & 63) * 2 + (k * 16 + 192 >> 6) * 8192 + 139264 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wgmma_commit();
      tw_wait(&ready[1], parity_1);
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_max[r] = scores_max_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2) + 64];
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_scale[r] = scores_scale_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2) + 64];
      }
      // mla_decode.cpp:59
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 32; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            acc_o[r * 2 + r_1 * 4 + r_2] = acc_o[r * 2 + r_1 * 4 + r_2] * scores_scale[r];
          }
        }
      }
      // mla_decode.cpp:60
      tw_hold(acc_o);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n256k16_f32_bf16_bf16_tb(acc_o, tw_matrix<0x4000004000010000ull, 30>(tw_matrices, k * 2 + 13824), tw_matrix<0x4000004002000000ull, 29>(tw_matrices, k * 128 + 6656), 1);
      }
      // mla_decode.cpp:41
      tw_wgmma_commit();
      tw_wgmma_wait<1>();
      tw_hold(acc_s);
      tw_hold(acc_o);
      __syncwarp();
      if ((tx & 31) == 0) {
        tw_arrive(K_pe_shared_empty);
      }
      // mla_decode.cpp:47
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            // mla_decode.cpp:48
            acc_s[r * 2 + r_1 * 4 + r_2] = acc_s[r * 2 + r_1 * 4 + r_2];
          }
        }
      }
      // mla_decode.cpp:50
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_max_prev[r] = scores_max[r];
      }
      // mla_decode.cpp:51
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_max_total_1[r] = -__int_as_float(0x7f800000);
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            scores_max_total_1[r] = max_f32(scores_max_total_1[r], acc_s[r * 2 + r_1 * 4 + r_2]);
          }
        }
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        const float other = (float)__shfl_xor_sync(0xffffffffu, scores_max_total_1[r], 2);
        scores_max_total_1[r] = max_f32(scores_max_total_1[r], other);
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        const float other = (float)__shfl_xor_sync(0xffffffffu, scores_max_total_1[r], 1);
        scores_max_total_1[r] = max_f32(scores_max_total_1[r], other);
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_max[r] = max_f32(scores_max[r], scores_max_total_1[r]);
      }
      // mla_decode.cpp:52
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_scale[r] = tw_exp2f(fma_f32(scores_max_prev[r], 0.060112294f, -(scores_max[r] * 0.060112294f)));
      }
      // mla_decode.cpp:53
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            // mla_decode.cpp:54
            acc_s[r * 2 + r_1 * 4 + r_2] = tw_exp2f(fma_f32(acc_s[r * 2 + r_1 * 4 + r_2], 0.060112294f, -(scores_max[r] * 0.060112294f)));
          }
        }
      }
      // mla_decode.cpp:57
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
          __float22bfloat162_rn(&S_shared[r * 2 + r_1 * 4], acc_s[r * 2 + r_1 * 4], acc_s[r * 2 + r_1 * 4 + 1]);
        }
      }
      // mla_decode.cpp:41
      tw_wgmma_wait<0>();
      tw_hold(acc_o);
      __syncwarp();
      if ((tx & 31) == 0) {
        tw_arrive(&KV_shared_left_empty[1]);
      }
      tw_sync_threads<128>(6);
      #pragma unroll
      for (int32_t r = 0; r < 4; ++r) {
        tw_store_matrices_4(&S_shared_handed[((thread >> 5) * 1024 + (thread >> 3 & 1) * 512 + (thread & 7) * 64 + (thread >> 4 & 1) * 8 ^ (thread & 7) * 8) ^ r * 16], &S_shared[r * 8]);
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        if ((thread & 3) == 0) {
          scores_max_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2)] = scores_max[r];
        }
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        if ((thread & 3) == 0) {
          scores_scale_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2)] = scores_scale[r];
        }
      }
      tw_fence_async_shared();
      __syncwarp();
      if ((tx & 31) == 0) {
        tw_arrive(ready);
      }
      // mla_decode.cpp:59
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 32; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            acc_o[r * 2 + r_1 * 4 + r_2] = acc_o[r * 2 + r_1 * 4 + r_2] * scores_scale[r];
          }
        }
      }
      // mla_decode.cpp:60
      tw_hold(acc_o);
      tw_hold(*(uint32_t(*)[16])S_shared);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n256k16_f32_bf16_bf16_r_tb(acc_o, &((uint32_t*)S_shared)[k * 4], tw_matrix<0x4000004002000000ull, 28>(tw_matrices, k * 128 + 4608), 1);
      }
      // mla_decode.cpp:41
      tw_wgmma_commit();
      tw_wait(&ready_later[1], parity_1);
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        logsum[r] = logsum_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2) + 64];
      }
      // mla_decode.cpp:56
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_sum_total_1[r] = 0.0f;
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            scores_sum_total_1[r] = scores_sum_total_1[r] + acc_s[r * 2 + r_1 * 4 + r_2];
          }
        }
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        const float other = (float)__shfl_xor_sync(0xffffffffu, scores_sum_total_1[r], 2);
        scores_sum_total_1[r] = scores_sum_total_1[r] + other;
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        const float other = (float)__shfl_xor_sync(0xffffffffu, scores_sum_total_1[r], 1);
        scores_sum_total_1[r] = scores_sum_total_1[r] + other;
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_sum[r] = scores_sum_total_1[r];
      }
      // mla_decode.cpp:58
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        logsum[r] = fma_f32(logsum[r], scores_scale[r], scores_sum[r]);
      }
      // mla_decode.cpp:41
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        if ((thread & 3) == 0) {
          logsum_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2)] = logsum[r];
        }
      }
      __syncwarp();
      if ((tx & 31) == 0) {
        tw_arrive(ready_later);
      }
      tw_wgmma_wait<0>();
      tw_hold(acc_o);
      tw_hold(*(uint32_t(*)[16])S_shared);
      __syncwarp();
      if ((tx & 31) == 0) {
        tw_arrive(KV_shared_left_empty);
      }
    }
    if (1) {
      tw_wait(&ready[1], 1);
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_max[r] = scores_max_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2) + 64];
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_scale[r] = scores_scale_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2) + 64];
      }
      // mla_decode.cpp:59
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 32; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            acc_o[r * 2 + r_1 * 4 + r_2] = acc_o[r * 2 + r_1 * 4 + r_2] * scores_scale[r];
          }
        }
      }
      // mla_decode.cpp:60
      tw_hold(acc_o);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n256k16_f32_bf16_bf16_tb(acc_o, tw_matrix<0x4000004000010000ull, 27>(tw_matrices, k * 2 + 13824), tw_matrix<0x4000004002000000ull, 26>(tw_matrices, k * 128 + 6656), 1);
      }
      // mla_decode.cpp:41
      tw_wgmma_commit();
      tw_wait(&ready_later[1], 1);
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        logsum[r] = logsum_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2) + 64];
      }
      tw_wgmma_wait<0>();
      tw_hold(acc_o);
    }
    // mla_decode.cpp:62
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 32; ++r_1) {
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          acc_o[r * 2 + r_1 * 4 + r_2] = acc_o[r * 2 + r_1 * 4 + r_2] / logsum[r];
        }
      }
    }
    // mla_decode.cpp:41
    tw_sync_threads<128>(6);
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 32; ++r_1) {
        __float22bfloat162_rn(&Q_shared_left_words[r * 2 + r_1 * 4], acc_o[r * 2 + r_1 * 4], acc_o[r * 2 + r_1 * 4 + 1]);
      }
    }
    #pragma unroll
    for (int32_t r = 0; r < 16; ++r) {
      tw_store_matrices_4(&Q_shared_left[(((thread >> 5) * 1024 + (thread >> 3 & 1) * 512 + (thread & 7) * 64 + (thread >> 4 & 1) * 8 ^ (thread & 7) * 8) ^ (r & 3) * 16) + (r >> 2) * 4096], &Q_shared_left_words[r * 8]);
    }
    tw_fence_async_shared();
    tw_sync_threads<128>(6);
    if (warp == 0) {
      if (tw_elect()) {
        tw_tma_store_3d(Q_shared_left, &Output_map, 0, by * 64, bx);
        tw_tma_store_3d(Q_shared_left + 4096, &Output_map, 64, by * 64, bx);
        tw_tma_store_3d(Q_shared_left + 8192, &Output_map, 128, by * 64, bx);
        tw_tma_store_3d(Q_shared_left + 12288, &Output_map, 192, by * 64, bx);
        tw_bulk_commit();
        tw_bulk_wait<0>();
      }
    }
  }
