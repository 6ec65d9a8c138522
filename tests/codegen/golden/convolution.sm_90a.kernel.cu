extern "C" __global__ void __launch_bounds__(384, 1) convolution_kernel(uint16_t* image, const uint16_t* __restrict__ weights, uint16_t* out, const __grid_constant__ tw_tensor_map image_map, const __grid_constant__ tw_tensor_map weights_map, const __grid_constant__ tw_tensor_map out_map) {
  extern __shared__ __align__(1024) unsigned char tw_shared[];
  const uint32_t tw_matrices = (tw_shared_address(tw_shared) & 0x3ffff) >> 4;
  const int32_t block = blockIdx.x;
  const int32_t tx = threadIdx.x;
  uint16_t* const patches = (uint16_t*)(tw_shared + 0);
  uint16_t* const filters = (uint16_t*)(tw_shared + 65536);
  uint64_t* const patches_filters_full = (uint64_t*)(tw_shared + 163840);
  uint64_t* const patches_filters_empty = (uint64_t*)(tw_shared + 163872);
  uint16_t* const sums_staged = (uint16_t*)(tw_shared + 131072);
  const int32_t warp = __shfl_sync(0xffffffffu, (int32_t)threadIdx.x / 32, 0);
  // convolution.cpp:20
  if (warp == 0) {
    if (tw_elect()) {
      tw_init_barrier(patches_filters_full, 1);
      tw_init_barrier(&patches_filters_full[1], 1);
      tw_init_barrier(&patches_filters_full[2], 1);
      tw_init_barrier(&patches_filters_full[3], 1);
      tw_init_barrier(patches_filters_empty, 8);
      tw_init_barrier(&patches_filters_empty[1], 8);
      tw_init_barrier(&patches_filters_empty[2], 8);
      tw_init_barrier(&patches_filters_empty[3], 8);
      tw_fence_barrier_init();
    }
  }
  __syncthreads();
  if (warp >= 8) {
    tw_leave_registers<40>();
  }
  if (warp == 8) {
    for (int32_t turn = 0; turn < 32; ++turn) {
      const int32_t tile = block + turn * 128;
      const int32_t bx = 0;
      const int32_t by = tile;
      // convolution.cpp:25
      for (int32_t k = 0; k < 18; ++k) {
        // convolution.cpp:26
        const int32_t fill = turn * 18 + k;
        const int32_t slot = (int32_t)((uint32_t)fill & 3u);
        const int32_t parity = (int32_t)((uint32_t)fill >> 2 & 1u);
        tw_wait(&patches_filters_empty[slot], parity ^ 1);
        if (tw_elect()) {
          tw_arrive_expect(&patches_filters_full[slot], 32768);
          tw_tma_load_4d(patches + slot * 8192, &image_map, &patches_filters_full[slot], k * 64 & 127, (by * 128ll & 63ll) + (uint32_t)(k * 64ll >> 7) % 3u - 1ll, (by * 128ll >> 6 & 63ll) + (uint32_t)(k * 64ll >> 7) / 3u - 1ll, tw_select<int64_t>(0 <= k && k < 18, (by * 128ll >> 6) >> 6, -1ll));
          // convolution.cpp:27
          tw_tma_load_2d(filters + slot * 8192, &weights_map, &patches_filters_full[slot], bx * 128, k * 64);
          tw_tma_load_2d(filters + slot * 8192 + 4096, &weights_map, &patches_filters_full[slot], bx * 128 + 64, k * 64);
        }
      }
    }
  }
  // convolution.cpp:20
