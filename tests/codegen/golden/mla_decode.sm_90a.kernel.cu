extern "C" __global__ void __launch_bounds__(384, 1) mla_decode_kernel(uint16_t* Q, const uint16_t* __restrict__ Q_pe, const uint16_t* __restrict__ KV, const uint16_t* __restrict__ K_pe, uint16_t* Output, const __grid_constant__ tw_tensor_map KV_map, const __grid_constant__ tw_tensor_map K_pe_map, const __grid_constant__ tw_tensor_map Q_map, const __grid_constant__ tw_tensor_map Q_pe_map, const __grid_constant__ tw_tensor_map Output_map) {
  extern __shared__ __align__(1024) unsigned char tw_shared[];
  const uint32_t tw_matrices = (tw_shared_address(tw_shared) & 0x3ffff) >> 4;
  const int32_t by = blockIdx.x;
  const int32_t bx = blockIdx.y;
  const int32_t tx = threadIdx.x;
  uint16_t* const Q_pe_shared = (uint16_t*)(tw_shared + 0);
  uint16_t* const Q_shared_left = (uint16_t*)(tw_shared + 8192);
  uint16_t* const Q_shared_right = (uint16_t*)(tw_shared + 40960);
  uint16_t* const KV_shared_left = (uint16_t*)(tw_shared + 73728);
  uint64_t* const KV_shared_left_full = (uint64_t*)(tw_shared + 230912);
  uint64_t* const KV_shared_left_empty = (uint64_t*)(tw_shared + 230976);
  uint16_t* const KV_shared_right = (uint16_t*)(tw_shared + 139264);
  uint64_t* const KV_shared_right_full = (uint64_t*)(tw_shared + 230992);
  uint64_t* const KV_shared_right_empty = (uint64_t*)(tw_shared + 231056);
  uint16_t* const K_pe_shared = (uint16_t*)(tw_shared + 204800);
  uint64_t* const K_pe_shared_full = (uint64_t*)(tw_shared + 231072);
  uint64_t* const K_pe_shared_empty = (uint64_t*)(tw_shared + 231088);
  uint64_t* const once_full = (uint64_t*)(tw_shared + 231104);
  uint64_t* const ready = (uint64_t*)(tw_shared + 231112);
  uint16_t* const S_shared_handed = (uint16_t*)(tw_shared + 221184);
  uint64_t* const ready_later = (uint64_t*)(tw_shared + 231128);
  float* const scores_max_handed = (float*)(tw_shared + 229376);
  float* const scores_scale_handed = (float*)(tw_shared + 229888);
  float* const logsum_handed = (float*)(tw_shared + 230400);
  const int32_t warp = __shfl_sync(0xffffffffu, (int32_t)threadIdx.x / 32, 0);
  // mla_decode.cpp:23
  if (warp == 0) {
    if (tw_elect()) {
      tw_init_barrier(KV_shared_left_full, 1);
      tw_init_barrier(&KV_shared_left_full[1], 1);
      tw_init_barrier(&KV_shared_left_full[2], 1);
      tw_init_barrier(&KV_shared_left_full[3], 1);
      tw_init_barrier(&KV_shared_left_full[4], 1);
      tw_init_barrier(&KV_shared_left_full[5], 1);
      tw_init_barrier(&KV_shared_left_full[6], 1);
      tw_init_barrier(&KV_shared_left_full[7], 1);
      tw_init_barrier(KV_shared_left_empty, 4);
      tw_init_barrier(&KV_shared_left_empty[1], 4);
      tw_init_barrier(KV_shared_right_full, 1);
      tw_init_barrier(&KV_shared_right_full[1], 1);
      tw_init_barrier(&KV_shared_right_full[2], 1);
      tw_init_barrier(&KV_shared_right_full[3], 1);
      tw_init_barrier(&KV_shared_right_full[4], 1);
      tw_init_barrier(&KV_shared_right_full[5], 1);
      tw_init_barrier(&KV_shared_right_full[6], 1);
      tw_init_barrier(&KV_shared_right_full[7], 1);
      tw_init_barrier(KV_shared_right_empty, 4);
      tw_init_barrier(&KV_shared_right_empty[1], 4);
      tw_init_barrier(K_pe_shared_full, 1);
      tw_init_barrier(&K_pe_shared_full[1], 1);
      tw_init_barrier(K_pe_shared_empty, 4);
      tw_init_barrier(&K_pe_shared_empty[1], 4);
      tw_init_barrier(once_full, 1);
      tw_init_barrier(ready, 4);
      tw_init_barrier(&ready[1], 4);
      tw_init_barrier(ready_later, 4);
      tw_init_barrier(&ready_later[1], 4);
      tw_fence_barrier_init();
    }
  }
  __syncthreads();
  // mla_decode.cpp:41
  if (warp >= 8) {
    tw_leave_registers<24>();
  }
  if (warp == 8) {
    for (int32_t k = 0; k < 128; ++k) {
      const int32_t slot = (int32_t)((uint32_t)k & 1u);
      const int32_t parity = (int32_t)((uint32_t)k >> 1 & 1u);
      tw_wait(&KV_shared_left_empty[slot], parity ^ 1);
      if (tw_elect()) {
        tw_arrive_expect(&KV_shared_left_full[slot * 4], 8192);
        // mla_decode.cpp:42
        tw_tma_load_3d(KV_shared_left + slot * 16384, &KV_map, &KV_shared_left_full[slot * 4], 0, k * 64, bx);
        // mla_decode.cpp:41
        tw_arrive_expect(&KV_shared_left_full[slot * 4 + 1], 8192);
        // mla_decode.cpp:42
        tw_tma_load_3d(KV_shared_left + slot * 16384 + 4096, &KV_map, &KV_shared_left_full[slot * 4 + 1], 64, k * 64, bx);
        // mla_decode.cpp:41
        tw_arrive_expect(&KV_shared_left_full[slot * 4 + 2], 8192);
        // mla_decode.cpp:42
        tw_tma_load_3d(KV_shared_left + slot * 16384 + 8192, &KV_map, &KV_shared_left_full[slot * 4 + 2], 128, k * 64, bx);
        // mla_decode.cpp:41
        tw_arrive_expect(&KV_shared_left_full[slot * 4 + 3], 8192);
        // mla_decode.cpp:42
        tw_tma_load_3d(KV_shared_left + slot * 16384 + 12288, &KV_map, &KV_shared_left_full[slot * 4 + 3], 192, k * 64, bx);
      }
      // mla_decode.cpp:41
      if (k + 2 < 128) {
        if ((by & 1) == 0) {
          // mla_decode.cpp:42
          if (tw_elect()) {
            tw_tma_prefetch_3d(&KV_map, 0, k * 64 + 128, bx);
            tw_tma_prefetch_3d(&KV_map, 128, k * 64 + 128, bx);
          }
        } else {
          if (tw_elect()) {
            tw_tma_prefetch_3d(&KV_map, 64, k * 64 + 128, bx);
            tw_tma_prefetch_3d(&KV_map, 192, k * 64 + 128, bx);
          }
        }
      }
    }
  }
  // mla_decode.cpp:41
  if (warp == 9) {
    for (int32_t k = 0; k < 128; ++k) {
      const int32_t slot = (int32_t)((uint32_t)k & 1u);
      const int32_t parity = (int32_t)((uint32_t)k >> 1 & 1u);
      tw_wait(&KV_shared_right_empty[slot], parity ^ 1);
      if (tw_elect()) {
        tw_arrive_expect(&KV_shared_right_full[slot * 4], 8192);
        // mla_decode.cpp:42
        tw_tma_load_3d(KV_shared_right + slot * 16384, &KV_map, &KV_shared_right_full[slot * 4], 256, k * 64, bx);
        // mla_decode.cpp:41
        tw_arrive_expect(&KV_shared_right_full[slot * 4 + 1], 8192);
        // mla_decode.cpp:42
        tw_tma_load_3d(KV_shared_right + slot * 16384 + 4096, &KV_map, &KV_shared_right_full[slot * 4 + 1], 320, k * 64, bx);
        // mla_decode.cpp:41
        tw_arrive_expect(&KV_shared_right_full[slot * 4 + 2], 8192);
        // mla_decode.cpp:42
        tw_tma_load_3d(KV_shared_right + slot * 16384 + 8192, &KV_map, &KV_shared_right_full[slot * 4 + 2], 384, k * 64, bx);
        // mla_decode.cpp:41
        tw_arrive_expect(&KV_shared_right_full[slot * 4 + 3], 8192);
        // mla_decode.cpp:42
        tw_tma_load_3d(KV_shared_right + slot * 16384 + 12288, &KV_map, &KV_shared_right_full[slot * 4 + 3], 448, k * 64, bx);
      }
      // mla_decode.cpp:41
      if (k + 2 < 128) {
        if ((by & 1) == 0) {
          // mla_decode.cpp:42
          if (tw_elect()) {
            tw_tma_prefetch_3d(&KV_map, 256, k * 64 + 128, bx);
            tw_tma_prefetch_3d(&KV_map, 384, k * 64 + 128, bx);
          }
        } else {
          if (tw_elect()) {
            tw_tma_prefetch_3d(&KV_map, 320, k * 64 + 128, bx);
            tw_tma_prefetch_3d(&KV_map, 448, k * 64 + 128, bx);
          }
        }
      }
    }
  }
  // mla_decode.cpp:41
  if (warp == 10) {
    for (int32_t k = 0; k < 128; ++k) {
      const int32_t slot = (int32_t)((uint32_t)k & 1u);
      const int32_t parity = (int32_t)((uint32_t)k >> 1 & 1u);
      tw_wait(&K_pe_shared_empty[slot], parity ^ 1);
      if (tw_elect()) {
        tw_arrive_expect(&K_pe_shared_full[slot], 8192);
        // mla_decode.cpp:43
        tw_tma_load_3d(K_pe_shared + slot * 4096, &K_pe_map, &K_pe_shared_full[slot], 0, k * 64, bx);
      }
      // mla_decode.cpp:41
      if (k + 2 < 128) {
        if ((by + k & 1) == 0) {
          // mla_decode.cpp:43
          if (tw_elect()) {
            tw_tma_prefetch_3d(&K_pe_map, 0, k * 64 + 128, bx);
          }
        }
      }
    }
  }
  // mla_decode.cpp:41
  if (warp == 11) {
    if (tw_elect()) {
      tw_arrive_expect(once_full, 73728);
      // mla_decode.cpp:36
      tw_tma_load_3d(Q_shared_left, &Q_map, once_full, 0, by * 64, bx);
      tw_tma_load_3d(Q_shared_left + 4096, &Q_map, once_full, 64, by * 64, bx);
      tw_tma_load_3d(Q_shared_left + 8192, &Q_map, once_full, 128, by * 64, bx);
      tw_tma_load_3d(Q_shared_left + 12288, &Q_map, once_full, 192, by * 64, bx);
      tw_tma_load_3d(Q_shared_right, &Q_map, once_full, 256, by * 64, bx);
      tw_tma_load_3d(Q_shared_right + 4096, &Q_map, once_full, 320, by * 64, bx);
      tw_tma_load_3d(Q_shared_right + 8192, &Q_map, once_full, 384, by * 64, bx);
      tw_tma_load_3d(Q_shared_right + 12288, &Q_map, once_full, 448, by * 64, bx);
      // mla_decode.cpp:37
      tw_tma_load_3d(Q_pe_shared, &Q_pe_map, once_full, 0, by * 64, bx);
    }
  }
  // mla_decode.cpp:41
