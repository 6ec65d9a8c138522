  if (warp < 8) {
    const int32_t thread = tx;
    const int32_t group = (int32_t)__shfl_sync(0xffffffffu, thread >> 7, 0);
    tw_take_registers<232>();
    for (int32_t turn = 0; turn < 32; ++turn) {
      alignas(16) float acc_s[64];
      alignas(16) uint16_t acc_s_cast[64];
      alignas(16) float acc_o[64];
      alignas(16) float scores_max[2];
      alignas(16) float scores_max_prev[2];
      alignas(16) float scores_scale[2];
      alignas(16) float scores_sum[2];
      alignas(16) float logsum[2];
      alignas(16) float scores_max_total[2];
      alignas(16) float scores_sum_total[2];
      float least;
      alignas(16) uint16_t acc_o_staged_words[64];
      const int32_t fill = turn * 32 + 31;
      const int32_t fill_1 = turn * 32;
      const int32_t slot = (int32_t)((uint32_t)turn & 1u);
      const int32_t parity = (int32_t)((uint32_t)turn >> 1 & 1u);
      const int32_t slot_1 = (int32_t)((uint32_t)fill_1 & 1u);
      const int32_t parity_1 = (int32_t)((uint32_t)fill_1 >> 1 & 1u);
      const int32_t slot_2 = (int32_t)((uint32_t)fill & 1u);
      const int32_t parity_2 = (int32_t)((uint32_t)fill >> 1 & 1u);
      const int32_t tile = block + turn * 128;
      const int32_t bx = tile & 31;
      const int32_t h = tile >> 5 & 31;
      const int32_t b = (tile >> 5) >> 5;
      // flash_attention.cpp:40
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            acc_o[r * 2 + r_1 * 4 + r_2] = 0.0f;
          }
        }
      }
      // flash_attention.cpp:41
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        logsum[r] = 0.0f;
      }
      // flash_attention.cpp:42
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_max[r] = -__int_as_float(0x7f800000);
      }
      // flash_attention.cpp:44
      tw_wait(&Q_shared_full[slot], parity);
      tw_wait(&K_shared_full[slot_1], parity_1);
      // flash_attention.cpp:51
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 8; ++k) {
        tw_wgmma_m64n128k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull, 31>(tw_matrices + slot * 2048 + (group & 1) * 512, (k * 16 & 63) * 2 + (k * 16 >> 6) * 16384 >> 4), tw_matrix<0x4000004000010000ull, 30>(tw_matrices + slot_1 * 2048, (k * 16 & 63) * 2 + (k * 16 >> 6) * 16384 + 65536 >> 4), k != 0);
      }
      tw_wgmma_commit();
      tw_wgmma_wait<0>();
      tw_hold(acc_s);
      // flash_attention.cpp:44
      __syncwarp();
      if ((tx & 31) == 0) {
        tw_arrive(&K_shared_empty[slot_1]);
      }
      // flash_attention.cpp:53
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_max_prev[r] = scores_max[r];
      }
      // flash_attention.cpp:54
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_max_total[r] = -__int_as_float(0x7f800000);
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
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
      // flash_attention.cpp:55
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_scale[r] = tw_exp2f((scores_max_prev[r] - scores_max[r]) * 0.12751743f);
      }
      // flash_attention.cpp:56
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            // flash_attention.cpp:57
            acc_s[r * 2 + r_1 * 4 + r_2] = tw_exp2f(fma_f32(acc_s[r * 2 + r_1 * 4 + r_2], 0.12751743f, -(scores_max[r] * 0.12751743f)));
          }
        }
      }
      // flash_attention.cpp:59
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_sum_total[r] = 0.0f;
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            scores_sum_total[r] = scores_sum_total[r] + acc_s[r * 2 + r_1 * 4 + r_2];
          }
        }
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_sum[r] = scores_sum_total[r];
      }
      // flash_attention.cpp:60
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        logsum[r] = fma_f32(logsum[r], scores_scale[r], scores_sum[r]);
      }
      // flash_attention.cpp:61
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
          __float22bfloat162_rn(&acc_s_cast[r * 2 + r_1 * 4], acc_s[r * 2 + r_1 * 4], acc_s[r * 2 + r_1 * 4 + 1]);
        }
      }
      // flash_attention.cpp:62
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            acc_o[r * 2 + r_1 * 4 + r_2] = acc_o[r * 2 + r_1 * 4 + r_2] * scores_scale[r];
          }
        }
      }
      // flash_attention.cpp:44
      for (int32_t k = 1; k < 32; ++k) {
        alignas(16) float scores_max_total_1[2];
        alignas(16) float scores_sum_total_1[2];
        const int32_t fill_2 = turn * 32 + k - 1;
        const int32_t fill_3 = turn * 32 + k;
        const int32_t slot_3 = (int32_t)((uint32_t)fill_3 & 1u);
        const int32_t parity_3 = (int32_t)((uint32_t)fill_3 >> 1 & 1u);
        const int32_t slot_4 = (int32_t)((uint32_t)fill_2 & 1u);
        const int32_t parity_4 = (int32_t)((uint32_t)fill_2 >> 1 & 1u);
        tw_wait(&K_shared_full[slot_3], parity_3);
        // flash_attention.cpp:51
        tw_hold(acc_s);
        tw_wgmma_fence();
        #pragma unroll
        for (int32_t k_1 = 0; k_1 < 8; ++k_1) {
          tw_wgmma_m64n128k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull, 29>(tw_matrices + slot * 2048 + (group & 1) * 512, (k_1 * 16 & 63) * 2 + (k_1 * 16 >> 6) * 16384 >> 4), tw_matrix<0x4000004000010000ull, 28>(tw_matrices + slot_3 * 2048, (k_1 * 16 & 63) * 2 + (k_1 * 16 >> 6) * 16384 + 65536 >> 4), k_1 != 0);
        }
        // flash_attention.cpp:44
        tw_wgmma_commit();
        tw_wait(&V_shared_full[slot_4], parity_4);
        // flash_attention.cpp:63
        tw_hold(acc_o);
        tw_hold(*(uint32_t(*)[32])acc_s_cast);
        tw_wgmma_fence();
        #pragma unroll
        for (int32_t k_1 = 0; k_1 < 8; ++k_1) {
          tw_wgmma_m64n128k16_f32_bf16_bf16_r_tb(acc_o, &((uint32_t*)acc_s_cast)[k_1 * 4], tw_matrix<0x4000004004000000ull, 27>(tw_matrices + slot_4 * 2048, k_1 * 128 + 8192), 1);
        }
        // flash_attention.cpp:44
        tw_wgmma_commit();
        tw_wgmma_wait<1>();
        tw_hold(acc_s);
        tw_hold(acc_o);
        tw_hold(*(uint32_t(*)[32])acc_s_cast);
        __syncwarp();
        if ((tx & 31) == 0) {
          tw_arrive(&K_shared_empty[slot_3]);
        }
        // flash_attention.cpp:53
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          scores_max_prev[r] = scores_max[r];
        }
        // flash_attention.cpp:54
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          scores_max_total_1[r] = -__int_as_float(0x7f800000);
        }
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          #pragma unroll
          for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
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
        // flash_attention.cpp:55
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          scores_scale[r] = tw_exp2f((scores_max_prev[r] - scores_max[r]) * 0.12751743f);
        }
        // flash_attention.cpp:56
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          #pragma unroll
          for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
            #pragma unroll
            for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
              // flash_attention.cpp:57
              acc_s[r * 2 + r_1 * 4 + r_2] = tw_exp2f(fma_f32(acc_s[r * 2 + r_1 * 4 + r_2], 0.12751743f, -(scores_max[r] * 0.12751743f)));
            }
          }
        }
        // flash_attention.cpp:59
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          scores_sum_total_1[r] = 0.0f;
        }
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          #pragma unroll
          for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
            #pragma unroll
            for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
              scores_sum_total_1[r] = scores_sum_total_1[r] + acc_s[r * 2 + r_1 * 4 + r_2];
            }
          }
        }
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          scores_sum[r] = scores_sum_total_1[r];
        }
        // flash_attention.cpp:60
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          logsum[r] = fma_f32(logsum[r], scores_scale[r], scores_sum[r]);
        }
        // flash_attention.cpp:44
        tw_wgmma_wait<0>();
        tw_hold(acc_o);
        tw_hold(*(uint32_t(*)[32])acc_s_cast);
        __syncwarp();
        if ((tx & 31) == 0) {
          tw_arrive(&V_shared_empty[slot_4]);
        }
        // flash_attention.cpp:61
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          #pragma unroll
          for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
            __float22bfloat162_rn(&acc_s_cast[r * 2 + r_1 * 4], acc_s[r * 2 + r_1 * 4], acc_s[r * 2 + r_1 * 4 + 1]);
          }
        }
        // flash_attention.cpp:62
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          #pragma unroll
          for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
            #pragma unroll
            for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
              acc_o[r * 2 + r_1 * 4 + r_2] = acc_o[r * 2 + r_1 * 4 + r_2] * scores_scale[r];
            }
          }
        }
      }
      // flash_attention.cpp:44
      tw_wait(&V_shared_full[slot_2], parity_2);
      // flash_attention.cpp:63
      tw_hold(acc_o);
      tw_hold(*(uint32_t(*)[32])acc_s_cast);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 8; ++k) {
        tw_wgmma_m64n128k16_f32_bf16_bf16_r_tb(acc_o, &((uint32_t*)acc_s_cast)[k * 4], tw_matrix<0x4000004004000000ull, 26>(tw_matrices + slot_2 * 2048, k * 128 + 8192), 1);
      }
      tw_wgmma_commit();
      tw_wgmma_wait<0>();
      tw_hold(acc_o);
      tw_hold(*(uint32_t(*)[32])acc_s_cast);
      // flash_attention.cpp:44
      __syncwarp();
      if ((tx & 31) == 0) {
        tw_arrive(&V_shared_empty[slot_2]);
      }
      __syncwarp();
      if ((tx & 31) == 0) {
        tw_arrive(&Q_shared_empty[slot]);
      }
      // flash_attention.cpp:65
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        const float other = (float)__shfl_xor_sync(0xffffffffu, logsum[r], 2);
        logsum[r] = logsum[r] + other;
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        const float other = (float)__shfl_xor_sync(0xffffffffu, logsum[r], 1);
        logsum[r] = logsum[r] + other;
      }
      least = __int_as_float(0x7f800000);
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            const float dividend = acc_o[r * 2 + r_1 * 4 + r_2];
            const float divisor = logsum[r];
            const float inverse = 9.094947e-13f <= divisor && divisor <= 1099511600000.0f ? 1.0f / divisor : __int_as_float(0x7fc00000);
            const float q = dividend * inverse;
            const float over = fma_f32(divisor, q, -dividend);
            const float rounded = fma_f32(over, -inverse, q);
            least = min_nan_f32(least, abs_f32(dividend == 0.0f ? inverse : rounded));
          }
        }
      }
      if (8.6736174e-19f <= least) {
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          #pragma unroll
          for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
            #pragma unroll
            for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
              const float dividend = acc_o[r * 2 + r_1 * 4 + r_2];
              const float divisor = logsum[r];
              const float inverse = 9.094947e-13f <= divisor && divisor <= 1099511600000.0f ? 1.0f / divisor : __int_as_float(0x7fc00000);
              const float q = dividend * inverse;
              const float over = fma_f32(divisor, q, -dividend);
              const float rounded = fma_f32(over, -inverse, q);
              acc_o[r * 2 + r_1 * 4 + r_2] = rounded;
            }
          }
        }
      } else {
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          #pragma unroll
          for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
            #pragma unroll
            for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
              acc_o[r * 2 + r_1 * 4 + r_2] = acc_o[r * 2 + r_1 * 4 + r_2] / logsum[r];
            }
          }
        }
      }
      // flash_attention.cpp:66
      if (tw_elect()) {
        tw_bulk_wait<0>();
      }
      __syncwarp();
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
          __float22bfloat162_rn(&acc_o_staged_words[r * 2 + r_1 * 4], acc_o[r * 2 + r_1 * 4], acc_o[r * 2 + r_1 * 4 + 1]);
        }
      }
      #pragma unroll
      for (int32_t r = 0; r < 8; ++r) {
        tw_store_matrices_4(&acc_o_staged[(((thread >> 5) * 1024 + (thread >> 3 & 1) * 512 + (thread & 7) * 64 + (thread >> 4 & 1) * 8 ^ (thread & 7) * 8) ^ (r & 3) * 16) + (r >> 2) * 8192], &acc_o_staged_words[r * 8]);
      }
      tw_fence_async_shared();
      __syncwarp();
      if (tw_elect()) {
        tw_tma_store_4d(acc_o_staged + (thread >> 5) * 1024, &O_map, 0, bx * 128 + (thread >> 5) * 16, h, b);
        tw_tma_store_4d(acc_o_staged + (thread >> 5) * 1024 + 8192, &O_map, 64, bx * 128 + (thread >> 5) * 16, h, b);
        tw_bulk_commit();
      }
    }
    // flash_attention.cpp:26
    if (tw_elect()) {
      tw_bulk_wait<0>();
    }
  }
}

