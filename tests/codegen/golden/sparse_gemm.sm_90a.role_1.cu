  if (warp < 8) {
    const int32_t thread = tx;
    const int32_t group = (int32_t)__shfl_sync(0xffffffffu, thread >> 7, 0);
    tw_take_registers<232>();
    for (int32_t turn = 0; turn < 16; ++turn) {
      alignas(16) float C_local[128];
      alignas(16) uint16_t C_local_staged_words[32];
      alignas(16) uint16_t C_local_staged_words_1[32];
      alignas(16) uint16_t C_local_staged_words_2[32];
      alignas(16) uint16_t C_local_staged_words_3[32];
      const int32_t tile = block + turn * 128;
      const int32_t panel = tile >> 8;
      const int32_t in_panel = tile & 255;
      const int32_t panel_height = min<int32_t>(8, panel * -8 + 64);
      const int32_t panel_column = (int32_t)floordiv<uint32_t>((uint32_t)in_panel, (uint32_t)panel_height);
      const int32_t bx = (panel & 1) == 1 ? -panel_column + 31 : panel_column;
      const int32_t by = panel * 8 + (int32_t)floormod<uint32_t>((uint32_t)in_panel, (uint32_t)panel_height);
      // sparse_gemm.cpp:30
      for (int32_t k = 0; k < 64; ++k) {
        alignas(16) uint32_t E_shared_words[4];
        // sparse_gemm.cpp:34
        const int32_t fill = turn * 64 + k;
        const int32_t slot = (int32_t)((uint32_t)fill & 1u);
        const int32_t parity = (int32_t)((uint32_t)fill >> 1 & 1u);
        tw_wait(&A_shared_E_shared_B_shared_full[slot], parity);
        #pragma unroll
        for (int32_t k_1 = 0; k_1 < 4; ++k_1) {
          E_shared_words[k_1] = (uint32_t)((uint16_t)((uint16_t)(E_shared[slot * 1024 + (group & 1) * 512 + (thread >> 5 & 3) * 128 + ((thread & 31) >> 2 & 7) * 8 + k_1 * 2 + (thread & 31 & 1)]))) | ((uint32_t)((uint16_t)((uint16_t)(E_shared[slot * 1024 + (group & 1) * 512 + (thread >> 5 & 3) * 128 + ((thread & 31) >> 2 & 7) * 8 + k_1 * 2 + (thread & 31 & 1) + 64]))) << 16);
        }
        tw_hold(C_local);
        tw_wgmma_fence();
        #pragma unroll
        for (int32_t k_1 = 0; k_1 < 4; ++k_1) {
          tw_wgmma_m64n256k32_f32_bf16_bf16(C_local, tw_matrix<0x4000004000010000ull, 31>(tw_matrices + slot * 1024 + (group & 1) * 512, k_1 * 2), tw_matrix<0x4000004000010000ull, 30>(tw_matrices + slot * 4096, (k_1 * 32 & 63) * 2 + (k_1 * 32 >> 6) * 32768 + 32768 >> 4), E_shared_words[k_1], !(k_1 == 0 && k == 0));
        }
        tw_wgmma_commit();
        tw_wgmma_wait<0>();
        tw_hold(C_local);
        tw_fence_async_shared();
        __syncwarp();
        if ((tx & 31) == 0) {
          tw_arrive(&A_shared_E_shared_B_shared_empty[slot]);
        }
      }
      // sparse_gemm.cpp:36
      if (warp == 0) {
        if (tw_elect()) {
          tw_bulk_wait<1>();
        }
      }
      tw_sync_threads<256>(3);
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
          __float22bfloat162_rn(&C_local_staged_words[r * 2 + r_1 * 4], C_local[r * 2 + r_1 * 4], C_local[r * 2 + r_1 * 4 + 1]);
        }
      }
      #pragma unroll
      for (int32_t r = 0; r < 4; ++r) {
        tw_store_matrices_4(&C_local_staged[((thread >> 5) * 1024 + (thread >> 3 & 1) * 512 + (thread & 7) * 64 + (thread >> 4 & 1) * 8 ^ (thread & 7) * 8) ^ r * 16], &C_local_staged_words[r * 8]);
      }
      tw_fence_async_shared();
      tw_sync_threads<256>(3);
      if (warp == 0) {
        if (tw_elect()) {
          tw_tma_store_2d(C_local_staged, &C_map, bx * 256, by * 128);
          tw_bulk_commit();
          tw_bulk_wait<1>();
        }
      }
      tw_sync_threads<256>(3);
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
          __float22bfloat162_rn(&C_local_staged_words_1[r * 2 + r_1 * 4], C_local[r * 2 + r_1 * 4 + 32], C_local[r * 2 + r_1 * 4 + 33]);
        }
      }
      #pragma unroll
      for (int32_t r = 0; r < 4; ++r) {
        tw_store_matrices_4(&C_local_staged[(((thread >> 5) * 1024 + (thread >> 3 & 1) * 512 + (thread & 7) * 64 + (thread >> 4 & 1) * 8 ^ (thread & 7) * 8) ^ r * 16) + 8192], &C_local_staged_words_1[r * 8]);
      }
      tw_fence_async_shared();
      tw_sync_threads<256>(3);
      if (warp == 0) {
        if (tw_elect()) {
          tw_tma_store_2d(C_local_staged + 8192, &C_map, bx * 256 + 64, by * 128);
          tw_bulk_commit();
          tw_bulk_wait<1>();
        }
      }
      tw_sync_threads<256>(3);
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
          __float22bfloat162_rn(&C_local_staged_words_2[r * 2 + r_1 * 4], C_local[r * 2 + r_1 * 4 + 64], C_local[r * 2 + r_1 * 4 + 65]);
        }
      }
      #pragma unroll
      for (int32_t r = 0; r < 4; ++r) {
        tw_store_matrices_4(&C_local_staged[((thread >> 5) * 1024 + (thread >> 3 & 1) * 512 + (thread & 7) * 64 + (thread >> 4 & 1) * 8 ^ (thread & 7) * 8) ^ r * 16], &C_local_staged_words_2[r * 8]);
      }
      tw_fence_async_shared();
      tw_sync_threads<256>(3);
      if (warp == 0) {
        if (tw_elect()) {
          tw_tma_store_2d(C_local_staged, &C_map, bx * 256 + 128, by * 128);
          tw_bulk_commit();
          tw_bulk_wait<1>();
        }
      }
      tw_sync_threads<256>(3);
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
          __float22bfloat162_rn(&C_local_staged_words_3[r * 2 + r_1 * 4], C_local[r * 2 + r_1 * 4 + 96], C_local[r * 2 + r_1 * 4 + 97]);
        }
      }
      #pragma unroll
      for (int32_t r = 0; r < 4; ++r) {
        tw_store_matrices_4(&C_local_staged[(((thread >> 5) * 1024 + (thread >> 3 & 1) * 512 + (thread & 7) * 64 + (thread >> 4 & 1) * 8 ^ (thread & 7) * 8) ^ r * 16) + 8192], &C_local_staged_words_3[r * 8]);
      }
      tw_fence_async_shared();
      tw_sync_threads<256>(3);
      if (warp == 0) {
        if (tw_elect()) {
          tw_tma_store_2d(C_local_staged + 8192, &C_map, bx * 256 + 192, by * 128);
          tw_bulk_commit();
        }
      }
    }
    // sparse_gemm.cpp:23
    if (warp == 0) {
      if (tw_elect()) {
        tw_bulk_wait<0>();
      }
    }
  }
}

