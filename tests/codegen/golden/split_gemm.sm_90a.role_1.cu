  if (warp < 8) {
    alignas(16) float C_local[128];
    const int32_t thread = tx;
    const int32_t group = (int32_t)__shfl_sync(0xffffffffu, thread >> 7, 0);
    tw_take_registers<232>();
    // split_gemm.cpp:26
    const int32_t k_end = s * 32 + 32;
    for (int32_t k = s * 32; k < k_end; ++k) {
      // split_gemm.cpp:29
      const int32_t fill = k + s * -32;
      const int32_t slot = (int32_t)((uint32_t)fill & 3u);
      const int32_t parity = (int32_t)((uint32_t)fill >> 2 & 1u);
      tw_wait(&A_shared_B_shared_full[slot], parity);
      tw_hold(C_local);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k_1 = 0; k_1 < 4; ++k_1) {
        tw_wgmma_m64n256k16_f32_bf16_bf16_tb(C_local, tw_matrix<0x4000004000010000ull, 31>(tw_matrices + slot * 1024 + (group & 1) * 512, k_1 * 2), tw_matrix<0x4000004002000000ull, 30>(tw_matrices + slot * 2048, k_1 * 128 + 4096), !(k_1 == 0 && k == s * 32));
      }
      tw_wgmma_commit();
      tw_wgmma_wait<1>();
      tw_hold(C_local);
      if (s * 32 < k) {
        __syncwarp();
        if ((tx & 31) == 0) {
          tw_arrive(&A_shared_B_shared_empty[(int32_t)((uint32_t)(k + s * -32 - 1) & 3u)]);
        }
      }
    }
    // split_gemm.cpp:26
    tw_wgmma_wait<0>();
    tw_hold(C_local);
    __syncwarp();
    if ((tx & 31) == 0) {
      tw_arrive(&A_shared_B_shared_empty[3]);
    }
    // split_gemm.cpp:41
    if (warp == 0) {
      if (tw_elect()) {
        tw_bulk_wait<1>();
      }
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 4; ++r_1) {
        alignas(16) float C_local_staged_vector[2];
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          C_local_staged_vector[r_2] = C_local[r * 2 + r_1 * 4 + r_2];
        }
        *(float2*)&C_local_staged[(((thread >> 5) * 512 + (thread >> 2 & 7) * 32 + (thread & 3) * 2 ^ (thread >> 2 & 7) * 4) ^ r_1 * 8) + r * 256] = *(const float2*)C_local_staged_vector;
      }
    }
    tw_fence_async_shared();
    tw_sync_threads<256>(3);
    if (warp == 0) {
      if (tw_elect()) {
        tw_tma_add_2d(C_local_staged, &C_map, bx * 256, by * 128);
        tw_bulk_commit();
        tw_bulk_wait<1>();
      }
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 4; ++r_1) {
        alignas(16) float C_local_staged_vector[2];
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          C_local_staged_vector[r_2] = C_local[r * 2 + r_1 * 4 + r_2 + 16];
        }
        *(float2*)&C_local_staged[(((thread >> 5) * 512 + (thread >> 2 & 7) * 32 + (thread & 3) * 2 ^ (thread >> 2 & 7) * 4) ^ r_1 * 8) + r * 256 + 4096] = *(const float2*)C_local_staged_vector;
      }
    }
    tw_fence_async_shared();
    tw_sync_threads<256>(3);
    if (warp == 0) {
      if (tw_elect()) {
        tw_tma_add_2d(C_local_staged + 4096, &C_map, bx * 256 + 32, by * 128);
        tw_bulk_commit();
        tw_bulk_wait<1>();
      }
    }
    tw_sync_threads<256>(3);
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 4; ++r_1) {
        alignas(16) float C_local_staged_vector[2];
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          C_local_staged_vector[r_2] = C_local[r * 2 + r_1 * 4 + r_2 + 32];
        }
        *(float2*)&C_local_staged[(((thread >> 5) * 512 + (thread >> 2 & 7) * 32 + (thread & 3) * 2 ^ (thread >> 2 & 7) * 4) ^ r_1 * 8) + r * 256] = *(const float2*)C_local_staged_vector;
      }
    }
    tw_fence_async_shared();
    tw_sync_threads<256>(3);
    if (warp == 0) {
      if (tw_elect()) {
        tw_tma_add_2d(C_local_staged, &C_map, bx * 256 + 64, by * 128);
        tw_bulk_commit();
        tw_bulk_wait<1>();
      }
    }
    tw_sync_threads<256>(3);
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 4; ++r_1) {
        alignas(16) float C_local_staged_vector[2];
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          C_local_staged_vector[r_2] = C_local[r * 2 + r_1 * 4 + r_2 + 48];
        }
        *(float2*)&C_local_staged[(((thread >> 5) * 512 + (thread >> 2 & 7) * 32 + (thread & 3) * 2 ^ (thread >> 2 & 7) * 4) ^ r_1 * 8) + r * 256 + 4096] = *(const float2*)C_local_staged_vector;
      }
    }
    tw_fence_async_shared();
    tw_sync_threads<256>(3);
    if (warp == 0) {
      if (tw_elect()) {
        tw_tma_add_2d(C_local_staged + 4096, &C_map, bx * 256 + 96, by * 128);
        tw_bulk_commit();
        tw_bulk_wait<1>();
      }
    }
    tw_sync_threads<256>(3);
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 4; ++r_1) {
        alignas(16) float C_local_staged_vector[2];
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          C_local_staged_vector[r_2] = C_local[r * 2 + r_1 * 4 + r_2 + 64];
        }
        *(float2*)&C_local_staged[(((thread >> 5) * 512 + (thread >> 2 & 7) * 32 + (thread & 3) * 2 ^ (thread >> 2 & 7) * 4) ^ r_1 * 8) + r * 256] = *(const float2*)C_local_staged_vector;
      }
    }
    tw_fence_async_shared();
    tw_sync_threads<256>(3);
    if (warp == 0) {
      if (tw_elect()) {
        tw_tma_add_2d(C_local_staged, &C_map, bx * 256 + 128, by * 128);
        tw_bulk_commit();
        tw_bulk_wait<1>();
      }
    }
    tw_sync_threads<256>(3);
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 4; ++r_1) {
        alignas(16) float C_local_staged_vector[2];
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          C_local_staged_vector[r_2] = C_local[r * 2 + r_1 * 4 + r_2 + 80];
        }
        *(float2*)&C_local_staged[(((thread >> 5) * 512 + (thread >> 2 & 7) * 32 + (thread & 3) * 2 ^ (thread >> 2 & 7) * 4) ^ r_1 * 8) + r * 256 + 4096] = *(const float2*)C_local_staged_vector;
      }
    }
    tw_fence_async_shared();
    tw_sync_threads<256>(3);
    if (warp == 0) {
      if (tw_elect()) {
        tw_tma_add_2d(C_local_staged + 4096, &C_map, bx * 256 + 160, by * 128);
        tw_bulk_commit();
        tw_bulk_wait<1>();
      }
    }
    tw_sync_threads<256>(3);
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 4; ++r_1) {
        alignas(16) float C_local_staged_vector[2];
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          C_local_staged_vector[r_2] = C_local[r * 2 + r_1 * 4 + r_2 + 96];
        }
        *(float2*)&C_local_staged[(((thread >> 5) * 512 + (thread >> 2 & 7) * 32 + (thread & 3) * 2 ^ (thread >> 2 & 7) * 4) ^ r_1 * 8) + r * 256] = *(const float2*)C_local_staged_vector;
      }
    }
    tw_fence_async_shared();
    tw_sync_threads<256>(3);
    if (warp == 0) {
      if (tw_elect()) {
        tw_tma_add_2d(C_local_staged, &C_map, bx * 256 + 192, by * 128);
        tw_bulk_commit();
        tw_bulk_wait<1>();
      }
    }
    tw_sync_threads<256>(3);
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 4; ++r_1) {
        alignas(16) float C_local_staged_vector[2];
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          C_local_staged_vector[r_2] = C_local[r * 2 + r_1 * 4 + r_2 + 112];
        }
        *(float2*)&C_local_staged[(((thread >> 5) * 512 + (thread >> 2 & 7) * 32 + (thread & 3) * 2 ^ (thread >> 2 & 7) * 4) ^ r_1 * 8) + r * 256 + 4096] = *(const float2*)C_local_staged_vector;
      }
    }
    tw_fence_async_shared();
    tw_sync_threads<256>(3);
    if (warp == 0) {
      if (tw_elect()) {
        tw_tma_add_2d(C_local_staged + 4096, &C_map, bx * 256 + 224, by * 128);
        tw_bulk_commit();
        // split_gemm.cpp:38
        tw_bulk_wait<0>();
      }
    }
  }
}

