extern "C" __global__ void __launch_bounds__(384, 1) scaled_matmul_kernel(const uint8_t* __restrict__ A, const uint8_t* __restrict__ B, const float* __restrict__ SA, const float* __restrict__ SB, uint16_t* C, const __grid_constant__ tw_tensor_map B_map, const __grid_constant__ tw_tensor_map A_map, const __grid_constant__ tw_tensor_map SA_map, const __grid_constant__ tw_tensor_map C_map) {
  extern __shared__ __align__(1024) unsigned char tw_shared[];
  const uint32_t tw_matrices = (tw_shared_address(tw_shared) & 0x3ffff) >> 4;
  const int32_t block = blockIdx.x;
  const int32_t tx = threadIdx.x;
  uint8_t* const B_shared = (uint8_t*)(tw_shared + 0);
  uint8_t* const A_shared0 = (uint8_t*)(tw_shared + 65536);
  float* const SA_shared0 = (float*)(tw_shared + 163840);
  uint64_t* const B_shared_A_shared0_SA_shared0_full = (uint64_t*)(tw_shared + 165888);
  uint64_t* const B_shared_A_shared0_SA_shared0_empty = (uint64_t*)(tw_shared + 165920);
  uint16_t* const sums0_staged = (uint16_t*)(tw_shared + 131072);
  const int32_t warp = __shfl_sync(0xffffffffu, (int32_t)threadIdx.x / 32, 0);
  // fp8_gemm.cpp:25
  if (warp == 0) {
    if (tw_elect()) {
      tw_init_barrier(B_shared_A_shared0_SA_shared0_full, 1);
      tw_init_barrier(&B_shared_A_shared0_SA_shared0_full[1], 1);
      tw_init_barrier(&B_shared_A_shared0_SA_shared0_full[2], 1);
      tw_init_barrier(&B_shared_A_shared0_SA_shared0_full[3], 1);
      tw_init_barrier(B_shared_A_shared0_SA_shared0_empty, 8);
      tw_init_barrier(&B_shared_A_shared0_SA_shared0_empty[1], 8);
      tw_init_barrier(&B_shared_A_shared0_SA_shared0_empty[2], 8);
      tw_init_barrier(&B_shared_A_shared0_SA_shared0_empty[3], 8);
      tw_fence_barrier_init();
    }
  }
  __syncthreads();
  if (warp >= 8) {
    tw_leave_registers<40>();
  }
  if (warp == 8) {
    for (int32_t turn = 0; turn < 14; ++turn) {
      const int32_t tile = block + turn * 128;
      const int32_t panel = (int32_t)((uint32_t)tile / 448u);
      const int32_t in_panel = (int32_t)((uint32_t)tile % 448u);
      const int32_t panel_height = min<int32_t>(8, panel * -8 + 32);
      const int32_t panel_column = (int32_t)floordiv<uint32_t>((uint32_t)in_panel, (uint32_t)panel_height);
      const int32_t bx = (panel & 1) == 1 ? -panel_column + 55 : panel_column;
      const int32_t by = panel * 8 + (int32_t)floormod<uint32_t>((uint32_t)in_panel, (uint32_t)panel_height);
      // fp8_gemm.cpp:44
      for (int32_t k = 0; k < 128; ++k) {
        // fp8_gemm.cpp:45
        const int32_t fill = turn * 128 + k;
        const int32_t slot = (int32_t)((uint32_t)fill & 3u);
        const int32_t parity = (int32_t)((uint32_t)fill >> 2 & 1u);
        tw_wait(&B_shared_A_shared0_SA_shared0_empty[slot], parity ^ 1);
        if (tw_elect()) {
          tw_arrive_expect(&B_shared_A_shared0_SA_shared0_full[slot], 33280);
          tw_tma_load_2d(B_shared + slot * 16384, &B_map, &B_shared_A_shared0_SA_shared0_full[slot], k * 128, bx * 128);
          // fp8_gemm.cpp:48
          tw_tma_load_2d(A_shared0 + slot * 16384, &A_map, &B_shared_A_shared0_SA_shared0_full[slot], k * 128, by * 128);
          // fp8_gemm.cpp:49
          tw_tma_load_2d(SA_shared0 + slot * 128, &SA_map, &B_shared_A_shared0_SA_shared0_full[slot], by * 128, k);
        }
      }
    }
  }
  // fp8_gemm.cpp:25
