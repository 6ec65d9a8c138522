extern "C" __global__ void __launch_bounds__(128) split_matmul_atomics_kernel_0(float* C) {
  const int32_t bx = blockIdx.x;
  const int32_t by = blockIdx.y;
  const int32_t tx = threadIdx.x;
  // split_gemm.cpp:37
  for (int32_t r = 0; r < 64; ++r) {
    alignas(16) float C_vector[4];
    #pragma unroll
    for (int32_t r_1 = 0; r_1 < 4; ++r_1) {
      C_vector[r_1] = 0.0f;
    }
    tw_store((float4*)&C[bx * 256 + (tx & 63) * 4 + by * 65536 + r * 1024 + (tx >> 6) * 512], *(const float4*)C_vector);
  }
}

extern "C" __global__ void __launch_bounds__(384, 1) split_matmul_atomics_1_kernel_1(const uint16_t* __restrict__ A, const uint16_t* __restrict__ B, float* C, const __grid_constant__ tw_tensor_map A_map, const __grid_constant__ tw_tensor_map B_map, const __grid_constant__ tw_tensor_map C_map) {
  extern __shared__ __align__(1024) unsigned char tw_shared[];
  const uint32_t tw_matrices = (tw_shared_address(tw_shared) & 0x3ffff) >> 4;
  const int32_t bx = blockIdx.x;
  const int32_t by = blockIdx.y;
  const int32_t s = blockIdx.z;
  const int32_t tx = threadIdx.x;
  uint16_t* const A_shared = (uint16_t*)(tw_shared + 0);
  uint16_t* const B_shared = (uint16_t*)(tw_shared + 65536);
  uint64_t* const A_shared_B_shared_full = (uint64_t*)(tw_shared + 229376);
  uint64_t* const A_shared_B_shared_empty = (uint64_t*)(tw_shared + 229408);
  float* const C_local_staged = (float*)(tw_shared + 196608);
  const int32_t warp = __shfl_sync(0xffffffffu, (int32_t)threadIdx.x / 32, 0);
  // split_gemm.cpp:38
  if (warp == 0) {
    if (tw_elect()) {
      tw_init_barrier(A_shared_B_shared_full, 1);
      tw_init_barrier(&A_shared_B_shared_full[1], 1);
      tw_init_barrier(&A_shared_B_shared_full[2], 1);
      tw_init_barrier(&A_shared_B_shared_full[3], 1);
      tw_init_barrier(A_shared_B_shared_empty, 8);
      tw_init_barrier(&A_shared_B_shared_empty[1], 8);
      tw_init_barrier(&A_shared_B_shared_empty[2], 8);
      tw_init_barrier(&A_shared_B_shared_empty[3], 8);
      tw_fence_barrier_init();
    }
  }
  __syncthreads();
  if (warp >= 8) {
    tw_leave_registers<40>();
  }
  if (warp == 8) {
    // split_gemm.cpp:26
    const int32_t k_end = s * 32 + 32;
    for (int32_t k = s * 32; k < k_end; ++k) {
      // split_gemm.cpp:27
      const int32_t fill = k + s * -32;
      const int32_t slot = (int32_t)((uint32_t)fill & 3u);
      const int32_t parity = (int32_t)((uint32_t)fill >> 2 & 1u);
      tw_wait(&A_shared_B_shared_empty[slot], parity ^ 1);
      if (tw_elect()) {
        tw_arrive_expect(&A_shared_B_shared_full[slot], 49152);
        tw_tma_load_2d(A_shared + slot * 8192, &A_map, &A_shared_B_shared_full[slot], k * 64, by * 128);
        // split_gemm.cpp:28
        tw_tma_load_2d(B_shared + slot * 16384, &B_map, &A_shared_B_shared_full[slot], bx * 256, k * 64);
        tw_tma_load_2d(B_shared + slot * 16384 + 4096, &B_map, &A_shared_B_shared_full[slot], bx * 256 + 64, k * 64);
        tw_tma_load_2d(B_shared + slot * 16384 + 8192, &B_map, &A_shared_B_shared_full[slot], bx * 256 + 128, k * 64);
        tw_tma_load_2d(B_shared + slot * 16384 + 12288, &B_map, &A_shared_B_shared_full[slot], bx * 256 + 192, k * 64);
      }
    }
  }
  // split_gemm.cpp:38
