extern "C" __global__ void __launch_bounds__(384, 1) flash_attention_kernel(uint16_t* Q, uint16_t* K, uint16_t* V, uint16_t* O, const __grid_constant__ tw_tensor_map Q_map, const __grid_constant__ tw_tensor_map K_map, const __grid_constant__ tw_tensor_map V_map, const __grid_constant__ tw_tensor_map O_map) {
  extern __shared__ __align__(1024) unsigned char tw_shared[];
  const uint32_t tw_matrices = (tw_shared_address(tw_shared) & 0x3ffff) >> 4;
  const int32_t block = blockIdx.x;
  const int32_t tx = threadIdx.x;
  uint16_t* const Q_shared = (uint16_t*)(tw_shared + 0);
  uint64_t* const Q_shared_full = (uint64_t*)(tw_shared + 229376);
  uint64_t* const Q_shared_empty = (uint64_t*)(tw_shared + 229392);
  uint16_t* const K_shared = (uint16_t*)(tw_shared + 65536);
  uint64_t* const K_shared_full = (uint64_t*)(tw_shared + 229408);
  uint64_t* const K_shared_empty = (uint64_t*)(tw_shared + 229424);
  uint16_t* const V_shared = (uint16_t*)(tw_shared + 131072);
  uint64_t* const V_shared_full = (uint64_t*)(tw_shared + 229440);
  uint64_t* const V_shared_empty = (uint64_t*)(tw_shared + 229456);
  uint16_t* const acc_o_staged = (uint16_t*)(tw_shared + 196608);
  const int32_t warp = __shfl_sync(0xffffffffu, (int32_t)threadIdx.x / 32, 0);
  // flash_attention.cpp:26
  if (warp == 0) {
    if (tw_elect()) {
      tw_init_barrier(Q_shared_full, 1);
      tw_init_barrier(&Q_shared_full[1], 1);
      tw_init_barrier(Q_shared_empty, 8);
      tw_init_barrier(&Q_shared_empty[1], 8);
      tw_init_barrier(K_shared_full, 1);
      tw_init_barrier(&K_shared_full[1], 1);
      tw_init_barrier(K_shared_empty, 8);
      tw_init_barrier(&K_shared_empty[1], 8);
      tw_init_barrier(V_shared_full, 1);
      tw_init_barrier(&V_shared_full[1], 1);
      tw_init_barrier(V_shared_empty, 8);
      tw_init_barrier(&V_shared_empty[1], 8);
      tw_fence_barrier_init();
    }
  }
  __syncthreads();
  if (warp >= 8) {
    tw_leave_registers<40>();
  }
  if (warp == 8) {
    for (int32_t turn = 0; turn < 32; ++turn) {
      const int32_t slot = (int32_t)((uint32_t)turn & 1u);
      const int32_t parity = (int32_t)((uint32_t)turn >> 1 & 1u);
      const int32_t tile = block + turn * 128;
      const int32_t bx = tile & 31;
      const int32_t h = tile >> 5 & 31;
      const int32_t b = (tile >> 5) >> 5;
      // flash_attention.cpp:39
      tw_wait(&Q_shared_empty[slot], parity ^ 1);
      if (tw_elect()) {
        tw_arrive_expect(&Q_shared_full[slot], 32768);
        tw_tma_load_4d(Q_shared + slot * 16384, &Q_map, &Q_shared_full[slot], 0, bx * 128, h, b);
        tw_tma_load_4d(Q_shared + slot * 16384 + 8192, &Q_map, &Q_shared_full[slot], 64, bx * 128, h, b);
      }
      // flash_attention.cpp:44
      for (int32_t k = 0; k < 32; ++k) {
        // flash_attention.cpp:45
        const int32_t fill = turn * 32 + k;
        const int32_t slot_1 = (int32_t)((uint32_t)fill & 1u);
        const int32_t parity_1 = (int32_t)((uint32_t)fill >> 1 & 1u);
        tw_wait(&K_shared_empty[slot_1], parity_1 ^ 1);
        if (tw_elect()) {
          tw_arrive_expect(&K_shared_full[slot_1], 32768);
          tw_tma_load_4d(K_shared + slot_1 * 16384, &K_map, &K_shared_full[slot_1], 0, k * 128, h, b);
          tw_tma_load_4d(K_shared + slot_1 * 16384 + 8192, &K_map, &K_shared_full[slot_1], 64, k * 128, h, b);
        }
        // flash_attention.cpp:52
        tw_wait(&V_shared_empty[slot_1], parity_1 ^ 1);
        if (tw_elect()) {
          tw_arrive_expect(&V_shared_full[slot_1], 32768);
          tw_tma_load_4d(V_shared + slot_1 * 16384, &V_map, &V_shared_full[slot_1], 0, k * 128, h, b);
          tw_tma_load_4d(V_shared + slot_1 * 16384 + 8192, &V_map, &V_shared_full[slot_1], 64, k * 128, h, b);
        }
      }
    }
  }
  // flash_attention.cpp:26
