extern "C" __global__ void __launch_bounds__(384, 1) sparse_matmul_kernel(const uint16_t* __restrict__ A, const int16_t* __restrict__ E, uint16_t* B, uint16_t* C, const __grid_constant__ tw_tensor_map A_map, const __grid_constant__ tw_tensor_map E_map, const __grid_constant__ tw_tensor_map B_map, const __grid_constant__ tw_tensor_map C_map) {
  extern __shared__ __align__(1024) unsigned char tw_shared[];
  const uint32_t tw_matrices = (tw_shared_address(tw_shared) & 0x3ffff) >> 4;
  const int32_t block = blockIdx.x;
  const int32_t tx = threadIdx.x;
  uint16_t* const A_shared = (uint16_t*)(tw_shared + 0);
  int16_t* const E_shared = (int16_t*)(tw_shared + 196608);
  uint16_t* const B_shared = (uint16_t*)(tw_shared + 32768);
  uint64_t* const A_shared_E_shared_B_shared_full = (uint64_t*)(tw_shared + 200704);
  uint64_t* const A_shared_E_shared_B_shared_empty = (uint64_t*)(tw_shared + 200720);
  uint16_t* const C_local_staged = (uint16_t*)(tw_shared + 163840);
  const int32_t warp = __shfl_sync(0xffffffffu, (int32_t)threadIdx.x / 32, 0);
  // sparse_gemm.cpp:23
  if (warp == 0) {
    if (tw_elect()) {
      tw_init_barrier(A_shared_E_shared_B_shared_full, 1);
      tw_init_barrier(&A_shared_E_shared_B_shared_full[1], 1);
      tw_init_barrier(A_shared_E_shared_B_shared_empty, 8);
      tw_init_barrier(&A_shared_E_shared_B_shared_empty[1], 8);
      tw_fence_barrier_init();
    }
  }
  __syncthreads();
  if (warp >= 8) {
    tw_leave_registers<40>();
  }
  if (warp == 8) {
    for (int32_t turn = 0; turn < 16; ++turn) {
      const int32_t tile = block + turn * 128;
      const int32_t panel = tile >> 8;
      const int32_t in_panel = tile & 255;
      const int32_t panel_height = min<int32_t>(8, panel * -8 + 64);
      const int32_t panel_column = (int32_t)floordiv<uint32_t>((uint32_t)in_panel, (uint32_t)panel_height);
      const int32_t bx = (panel & 1) == 1 ? -panel_column + 31 : panel_column;
      const int32_t by = panel * 8 + (int32_t)floormod<uint32_t>((uint32_t)in_panel, (uint32_t)panel_height);
      // sparse_gemm.cpp:30
      for (int32_t k = 0; k < 64; ++k) {
        // sparse_gemm.cpp:31
        const int32_t fill = turn * 64 + k;
        const int32_t slot = (int32_t)((uint32_t)fill & 1u);
        const int32_t parity = (int32_t)((uint32_t)fill >> 1 & 1u);
        tw_wait(&A_shared_E_shared_B_shared_empty[slot], parity ^ 1);
        if (tw_elect()) {
          tw_arrive_expect(&A_shared_E_shared_B_shared_full[slot], 83968);
          tw_tma_load_2d(A_shared + slot * 8192, &A_map, &A_shared_E_shared_B_shared_full[slot], k * 64, by * 128);
          // sparse_gemm.cpp:32
          tw_tma_load_2d(E_shared + slot * 1024, &E_map, &A_shared_E_shared_B_shared_full[slot], k * 8, by * 128);
          // sparse_gemm.cpp:33
          tw_tma_load_2d(B_shared + slot * 32768, &B_map, &A_shared_E_shared_B_shared_full[slot], k * 128, bx * 256);
          tw_tma_load_2d(B_shared + slot * 32768 + 16384, &B_map, &A_shared_E_shared_B_shared_full[slot], k * 128 + 64, bx * 256);
        }
      }
    }
  }
  // sparse_gemm.cpp:23
