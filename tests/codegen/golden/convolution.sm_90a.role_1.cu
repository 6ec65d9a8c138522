  if (warp < 8) {
    const int32_t thread = tx;
    const int32_t group = (int32_t)__shfl_sync(0xffffffffu, thread >> 7, 0);
    tw_take_registers<232>();
    for (int32_t turn = 0; turn < 32; ++turn) {
      alignas(16) float sums[64];
      alignas(16) uint16_t sums_staged_words[64];
      const int32_t tile = block + turn * 128;
      const int32_t bx = 0;
      const int32_t by = tile;
      // convolution.cpp:25
      for (int32_t k = 0; k < 18; ++k) {
        // convolution.cpp:28
        const int32_t fill = turn * 18 + k;
        const int32_t slot = (int32_t)((uint32_t)fill & 3u);
        const int32_t parity = (int32_t)((uint32_t)fill >> 2 & 1u);
        tw_wait(&patches_filters_full[slot], parity);
        tw_hold(sums);
        tw_wgmma_fence();
        #pragma unroll
        for (int32_t k_1 = 0; k_1 < 4; ++k_1) {
          tw_wgmma_m64n128k16_f32_f16_f16_tb(sums, tw_matrix<0x4000004000010000ull, 31>(tw_matrices + slot * 1024 + (group & 1) * 512, k_1 * 2), tw_matrix<0x4000004002000000ull, 30>(tw_matrices + slot * 1024, k_1 * 128 + 4096), !(k_1 == 0 && k == 0));
        }
        tw_wgmma_commit();
        tw_wgmma_wait<1>();
        tw_hold(sums);
        if (0 < k) {
          __syncwarp();
          if ((tx & 31) == 0) {
            tw_arrive(&patches_filters_empty[(int32_t)((uint32_t)(turn * 18 + k - 1) & 3u)]);
          }
        }
      }
      // convolution.cpp:25
      tw_wgmma_wait<0>();
      tw_hold(sums);
      __syncwarp();
      if ((tx & 31) == 0) {
        tw_arrive(&patches_filters_empty[(int32_t)((uint32_t)(turn * 18 + 17) & 3u)]);
      }
      // convolution.cpp:30
      if (warp == 0) {
        if (tw_elect()) {
          tw_bulk_wait<0>();
        }
      }
      tw_sync_threads<256>(3);
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
          __float22half2_rn(&sums_staged_words[r * 2 + r_1 * 4], sums[r * 2 + r_1 * 4], sums[r * 2 + r_1 * 4 + 1]);
        }
      }
      #pragma unroll
      for (int32_t r = 0; r < 8; ++r) {
        tw_store_matrices_4(&sums_staged[(((thread >> 5) * 1024 + (thread >> 3 & 1) * 512 + (thread & 7) * 64 + (thread >> 4 & 1) * 8 ^ (thread & 7) * 8) ^ (r & 3) * 16) + (r >> 2) * 8192], &sums_staged_words[r * 8]);
      }
      tw_fence_async_shared();
      tw_sync_threads<256>(3);
      if (warp == 0) {
        if (tw_elect()) {
          tw_tma_store_2d(sums_staged, &out_map, bx * 128, by * 128);
          tw_tma_store_2d(sums_staged + 8192, &out_map, bx * 128 + 64, by * 128);
          tw_bulk_commit();
        }
      }
    }
    // convolution.cpp:20
    if (warp == 0) {
      if (tw_elect()) {
        tw_bulk_wait<0>();
      }
    }
  }
}

