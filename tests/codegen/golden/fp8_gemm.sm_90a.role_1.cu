  if (warp < 8) {
    const int32_t thread = tx;
    const int32_t group = (int32_t)__shfl_sync(0xffffffffu, thread >> 7, 0);
    tw_take_registers<232>();
    for (int32_t turn = 0; turn < 14; ++turn) {
      alignas(16) float sums0[64];
      alignas(16) uint16_t sums0_staged_words[64];
      const int32_t tile = block + turn * 128;
      const int32_t panel = (int32_t)((uint32_t)tile / 448u);
      const int32_t in_panel = (int32_t)((uint32_t)tile % 448u);
      const int32_t panel_height = min<int32_t>(8, panel * -8 + 32);
      const int32_t panel_column = (int32_t)floordiv<uint32_t>((uint32_t)in_panel, (uint32_t)panel_height);
      const int32_t bx = (panel & 1) == 1 ? -panel_column + 55 : panel_column;
      const int32_t by = panel * 8 + (int32_t)floormod<uint32_t>((uint32_t)in_panel, (uint32_t)panel_height);
      // fp8_gemm.cpp:40
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            sums0[r * 2 + r_1 * 4 + r_2] = 0.0f;
          }
        }
      }
      // fp8_gemm.cpp:44
      for (int32_t k_of_4 = 0; k_of_4 < 32; ++k_of_4) {
        float scale_B_here;
        alignas(16) float scales0[2];
        alignas(16) float inner0[64];
        alignas(16) float inner0_other[64];
        const int32_t fill = turn * 128 + k_of_4 * 4 + 3;
        const int32_t fill_1 = turn * 128 + k_of_4 * 4 + 2;
        const int32_t fill_2 = turn * 128 + k_of_4 * 4 + 1;
        const int32_t fill_3 = turn * 128 + k_of_4 * 4;
        const int32_t slot = (int32_t)((uint32_t)fill_3 & 3u);
        const int32_t parity = (int32_t)((uint32_t)fill_3 >> 2 & 1u);
        const int32_t slot_1 = (int32_t)((uint32_t)fill_2 & 3u);
        const int32_t parity_1 = (int32_t)((uint32_t)fill_2 >> 2 & 1u);
        const int32_t slot_2 = (int32_t)((uint32_t)fill_1 & 3u);
        const int32_t parity_2 = (int32_t)((uint32_t)fill_1 >> 2 & 1u);
        const int32_t slot_3 = (int32_t)((uint32_t)fill & 3u);
        const int32_t parity_3 = (int32_t)((uint32_t)fill >> 2 & 1u);
        tw_wait(&B_shared_A_shared0_SA_shared0_full[slot], parity);
        // fp8_gemm.cpp:54
        tw_hold(inner0);
        tw_wgmma_fence();
        #pragma unroll
        for (int32_t k = 0; k < 4; ++k) {
          tw_wgmma_m64n128k32_f32_e4m3_e4m3(inner0, tw_matrix<0x4000004000010000ull, 31>(tw_matrices + slot * 1024 + (group & 1) * 512, k * 2 + 4096), tw_matrix<0x4000004000010000ull, 30>(tw_matrices + slot * 1024, k * 2), k != 0);
        }
        // fp8_gemm.cpp:44
        tw_wgmma_commit();
        tw_wait(&B_shared_A_shared0_SA_shared0_full[slot_1], parity_1);
        // fp8_gemm.cpp:54
        tw_hold(inner0_other);
        tw_wgmma_fence();
        #pragma unroll
        for (int32_t k = 0; k < 4; ++k) {
          tw_wgmma_m64n128k32_f32_e4m3_e4m3(inner0_other, tw_matrix<0x4000004000010000ull, 29>(tw_matrices + slot_1 * 1024 + (group & 1) * 512, k * 2 + 4096), tw_matrix<0x4000004000010000ull, 28>(tw_matrices + slot_1 * 1024, k * 2), k != 0);
        }
        // fp8_gemm.cpp:44
        tw_wgmma_commit();
        // fp8_gemm.cpp:50
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          scales0[r] = SA_shared0[slot * 128 + (thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2)];
        }
        // fp8_gemm.cpp:52
        scale_B_here = SB[k_of_4 * 4 + bx * 128];
        const float scale_B = scale_B_here;
        // fp8_gemm.cpp:44
        tw_wgmma_wait<1>();
        tw_hold(inner0);
        tw_hold(inner0_other);
        // fp8_gemm.cpp:60
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          #pragma unroll
          for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
            #pragma unroll
            for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
              // fp8_gemm.cpp:61
              sums0[r * 2 + r_1 * 4 + r_2] = fma_f32(inner0[r * 2 + r_1 * 4 + r_2], scales0[r] * scale_B, sums0[r * 2 + r_1 * 4 + r_2]);
            }
          }
        }
        // fp8_gemm.cpp:60
        tw_hold(sums0);
        // fp8_gemm.cpp:44
        tw_fence_async_shared();
        __syncwarp();
        if ((tx & 31) == 0) {
          tw_arrive(&B_shared_A_shared0_SA_shared0_empty[slot]);
        }
        tw_wait(&B_shared_A_shared0_SA_shared0_full[slot_2], parity_2);
        // fp8_gemm.cpp:54
        tw_hold(inner0);
        tw_wgmma_fence();
        #pragma unroll
        for (int32_t k = 0; k < 4; ++k) {
          tw_wgmma_m64n128k32_f32_e4m3_e4m3(inner0, tw_matrix<0x4000004000010000ull, 27>(tw_matrices + slot_2 * 1024 + (group & 1) * 512, k * 2 + 4096), tw_matrix<0x4000004000010000ull, 26>(tw_matrices + slot_2 * 1024, k * 2), k != 0);
        }
        // fp8_gemm.cpp:44
        tw_wgmma_commit();
        // fp8_gemm.cpp:50
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          scales0[r] = SA_shared0[slot_1 * 128 + (thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2)];
        }
        // fp8_gemm.cpp:52
        scale_B_here = SB[k_of_4 * 4 + bx * 128 + 1];
        const float scale_B_1 = scale_B_here;
        // fp8_gemm.cpp:44
        tw_wgmma_wait<1>();
        tw_hold(inner0);
        tw_hold(inner0_other);
        // fp8_gemm.cpp:60
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          #pragma unroll
          for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
            #pragma unroll
            for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
              // fp8_gemm.cpp:61
              sums0[r * 2 + r_1 * 4 + r_2] = fma_f32(inner0_other[r * 2 + r_1 * 4 + r_2], scales0[r] * scale_B_1, sums0[r * 2 + r_1 * 4 + r_2]);
            }
          }
        }
        // fp8_gemm.cpp:60
        tw_hold(sums0);
        // fp8_gemm.cpp:44
        tw_fence_async_shared();
        __syncwarp();
        if ((tx & 31) == 0) {
          tw_arrive(&B_shared_A_shared0_SA_shared0_empty[slot_1]);
        }
        tw_wait(&B_shared_A_shared0_SA_shared0_full[slot_3], parity_3);
        // fp8_gemm.cpp:54
        tw_hold(inner0_other);
        tw_wgmma_fence();
        #pragma unroll
        for (int32_t k = 0; k < 4; ++k) {
          tw_wgmma_m64n128k32_f32_e4m3_e4m3(inner0_other, tw_matrix<0x4000004000010000ull, 25>(tw_matrices + slot_3 * 1024 + (group & 1) * 512, k * 2 + 4096), tw_matrix<0x4000004000010000ull, 24>(tw_matrices + slot_3 * 1024, k * 2), k != 0);
        }
        // fp8_gemm.cpp:44
        tw_wgmma_commit();
        // fp8_gemm.cpp:50
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          scales0[r] = SA_shared0[slot_2 * 128 + (thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2)];
        }
        // fp8_gemm.cpp:52
        scale_B_here = SB[k_of_4 * 4 + bx * 128 + 2];
        const float scale_B_2 = scale_B_here;
        // fp8_gemm.cpp:44
        tw_wgmma_wait<1>();
        tw_hold(inner0);
        tw_hold(inner0_other);
        // fp8_gemm.cpp:60
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          #pragma unroll
          for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
            #pragma unroll
            for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
              // fp8_gemm.cpp:61
              sums0[r * 2 + r_1 * 4 + r_2] = fma_f32(inner0[r * 2 + r_1 * 4 + r_2], scales0[r] * scale_B_2, sums0[r * 2 + r_1 * 4 + r_2]);
            }
          }
        }
        // fp8_gemm.cpp:60
        tw_hold(sums0);
        // fp8_gemm.cpp:44
        tw_fence_async_shared();
        __syncwarp();
        if ((tx & 31) == 0) {
          tw_arrive(&B_shared_A_shared0_SA_shared0_empty[slot_2]);
        }
        // fp8_gemm.cpp:50
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          scales0[r] = SA_shared0[slot_3 * 128 + (thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2)];
        }
        // fp8_gemm.cpp:52
        scale_B_here = SB[k_of_4 * 4 + bx * 128 + 3];
        const float scale_B_3 = scale_B_here;
        // fp8_gemm.cpp:44
        tw_wgmma_wait<0>();
        tw_hold(inner0_other);
        // fp8_gemm.cpp:60
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          #pragma unroll
          for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
            #pragma unroll
            for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
              // fp8_gemm.cpp:61
              sums0[r * 2 + r_1 * 4 + r_2] = fma_f32(inner0_other[r * 2 + r_1 * 4 + r_2], scales0[r] * scale_B_3, sums0[r * 2 + r_1 * 4 + r_2]);
            }
          }
        }
        // fp8_gemm.cpp:60
        tw_hold(sums0);
        // fp8_gemm.cpp:44
        tw_fence_async_shared();
        __syncwarp();
        if ((tx & 31) == 0) {
          tw_arrive(&B_shared_A_shared0_SA_shared0_empty[slot_3]);
        }
      }
      // fp8_gemm.cpp:65
      if (tw_elect()) {
        tw_bulk_wait<0>();
      }
      __syncwarp();
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
          __float22bfloat162_rn(&sums0_staged_words[r * 2 + r_1 * 4], sums0[r * 2 + r_1 * 4], sums0[r * 2 + r_1 * 4 + 1]);
        }
      }
      #pragma unroll
      for (int32_t r = 0; r < 8; ++r) {
        tw_store_matrices_4(&sums0_staged[(((thread >> 5) * 1024 + (thread >> 3 & 1) * 512 + (thread & 7) * 64 + (thread >> 4 & 1) * 8 ^ (thread & 7) * 8) ^ (r & 3) * 16) + (r >> 2) * 8192], &sums0_staged_words[r * 8]);
      }
      tw_fence_async_shared();
      __syncwarp();
      if (tw_elect()) {
        tw_tma_store_2d(sums0_staged + (thread >> 5) * 1024, &C_map, bx * 128, by * 128 + (thread >> 5) * 16);
        tw_tma_store_2d(sums0_staged + (thread >> 5) * 1024 + 8192, &C_map, bx * 128 + 64, by * 128 + (thread >> 5) * 16);
        tw_bulk_commit();
      }
    }
    // fp8_gemm.cpp:25
    if (tw_elect()) {
      tw_bulk_wait<0>();
    }
  }
}

