  if (warp < 8) {
    const int32_t thread = tx;
    const int32_t group = (int32_t)__shfl_sync(0xffffffffu, thread >> 7, 0);
    tw_take_registers<232>();
    for (int32_t turn = 0; turn < 4; ++turn) {
      alignas(16) float C_local[128];
      alignas(16) uint16_t C_local_staged_words[128];
      const int32_t tile = block + turn * 128;
      const int32_t panel = tile >> 8;
      const int32_t in_panel = tile & 255;
      const int32_t panel_height = min<int32_t>(16, panel * -16 + 32);
      const int32_t panel_column = (int32_t)floordiv<uint32_t>((uint32_t)in_panel, (uint32_t)panel_height);
      const int32_t bx = (panel & 1) == 1 ? -panel_column + 15 : panel_column;
      const int32_t by = panel * 16 + (int32_t)floormod<uint32_t>((uint32_t)in_panel, (uint32_t)panel_height);
      // gemm.cpp:21
      for (int32_t k = 0; k < 64; ++k) {
        // gemm.cpp:24
        const int32_t fill = turn * 64 + k;
        const int32_t slot = (int32_t)((uint32_t)fill % 3u);
        const int32_t parity = (int32_t)((uint32_t)fill / 3u & 1u);
        tw_wait(&A_shared_B_shared_full[slot], parity);
        tw_hold(C_local);
        tw_wgmma_fence();
        #pragma unroll
        for (int32_t k_1 = 0; k_1 < 4; ++k_1) {
          tw_wgmma_m64n256k16_f32_bf16_bf16_tb(C_local, tw_matrix<0x4000004000010000ull, 31>(tw_matrices + slot * 1024 + (group & 1) * 512, k_1 * 2), tw_matrix<0x4000004002000000ull, 30>(tw_matrices + slot * 2048, k_1 * 128 + 3072), !(k_1 == 0 && k == 0));
        }
        tw_wgmma_commit();
        tw_wgmma_wait<0>();
        tw_hold(C_local);
        __syncwarp();
        if ((tx & 31) == 0) {
          tw_arrive(&A_shared_B_shared_empty[slot]);
        }
      }
      // gemm.cpp:26
      if (warp == 0) {
        if (tw_elect()) {
          tw_bulk_wait<0>();
        }
      }
      tw_sync_threads<256>(3);
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 32; ++r_1) {
          __float22bfloat162_rn(&C_local_staged_words[r * 2 + r_1 * 4], C_local[r * 2 + r_1 * 4], C_local[r * 2 + r_1 * 4 + 1]);
        }
      }
      #pragma unroll
      for (int32_t r = 0; r < 16; ++r) {
        tw_store_matrices_4(&C_local_staged[(((thread >> 5) * 1024 + (thread >> 3 & 1) * 512 + (thread & 7) * 64 + (thread >> 4 & 1) * 8 ^ (thread & 7) * 8) ^ (r & 3) * 16) + (r >> 2) * 8192], &C_local_staged_words[r * 8]);
      }
      tw_fence_async_shared();
      tw_sync_threads<256>(3);
      if (warp == 0) {
        if (tw_elect()) {
          tw_tma_store_2d(C_local_staged, &C_map, bx * 256, by * 128);
          tw_tma_store_2d(C_local_staged + 8192, &C_map, bx * 256 + 64, by * 128);
          tw_tma_store_2d(C_local_staged + 16384, &C_map, bx * 256 + 128, by * 128);
          tw_tma_store_2d(C_local_staged + 24576, &C_map, bx * 256 + 192, by * 128);
          tw_bulk_commit();
        }
      }
    }
    // gemm.cpp:16
    if (warp == 0) {
      if (tw_elect()) {
        tw_bulk_wait<0>();
      }
    }
  }
}

