typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
__device__ __forceinline__ void __float22bfloat162_rn(uint16_t* to, float first, float second) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  *(uint32_t*)to = pair;
}
__device__ __forceinline__ float exp2_f32(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float fma_f32(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ float max_f32(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ uint32_t tw_shared_address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void tw_arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(tw_shared_address(barrier)) : "memory");
}
__device__ __forceinline__ void tw_arrive_expect(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(tw_shared_address(barrier)), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void tw_bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int pending>
__device__ __forceinline__ void tw_bulk_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}
__device__ __forceinline__ bool tw_elect() {
  uint32_t chosen;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(chosen));
  return chosen != 0;
}
__device__ __forceinline__ void tw_fence_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ __forceinline__ void tw_fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
template <int n>
__device__ __forceinline__ void tw_hold(float (&r)[n]) {
#pragma unroll
  for (int i = 0; i < n; ++i) asm volatile("" : "+f"(r[i])::"memory");
}
template <class T, int n>
__device__ __forceinline__ void tw_hold(T (&r)[n]) {
#pragma unroll
  for (int i = 0; i < n; ++i) asm volatile("" : "+r"(r[i])::"memory");
}
__device__ __forceinline__ void tw_init_barrier(uint64_t* barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(tw_shared_address(barrier)), "r"(arrivals) : "memory");
}
template <int count>
__device__ __forceinline__ void tw_leave_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
template <uint64_t layout>
__device__ __forceinline__ uint64_t tw_matrix(const void* tile, uint32_t offset) {
  uint32_t address = tw_shared_address(tile);
  asm volatile(""
               : "+r"(address));  // not known outside of loops, where all of a loop's descriptors would fill registers
  return (layout >> 32) << 32 | (uint32_t)(layout | (address & 0x3ffff) >> 4) + offset;
}
template <int threads>
__device__ __forceinline__ void tw_sync_threads(int32_t barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(threads) : "memory");
}
template <int count>
__device__ __forceinline__ void tw_take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}
struct alignas(64) tw_tensor_map {
  uint64_t words[16];
};
__device__ __forceinline__ void tw_wait(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra over;\n"
      "bra again;\nover:\n}" ::"r"(tw_shared_address(barrier)),
      "r"(parity)
      : "memory");
}
__device__ __forceinline__ void tw_wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void tw_wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
template <int pending>
__device__ __forceinline__ void tw_wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

__device__ __forceinline__ float tw_exp2f(float x) { return exp2_f32(x); }
__device__ __forceinline__ void tw_tma_load_4d(void* shared, const tw_tensor_map* map, uint64_t* full, int32_t x0, int32_t x1, int32_t x2, int32_t x3) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];"
               ::"r"(tw_shared_address(shared)), "l"(map), "r"(tw_shared_address(full)), "r"(x0), "r"(x1), "r"(x2), "r"(x3) : "memory");
}
__device__ __forceinline__ void tw_tma_store_4d(const void* shared, const tw_tensor_map* map, int32_t x0, int32_t x1, int32_t x2, int32_t x3) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%1, {%2, %3, %4, %5}], [%0];"
               ::"r"(tw_shared_address(shared)), "l"(map), "r"(x0), "r"(x1), "r"(x2), "r"(x3) : "memory");
}
__device__ __forceinline__ void tw_wgmma_m64n128k16_f32_bf16_bf16(float* c, uint64_t a, uint64_t b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11,"
      " %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23,"
      " %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35,"
      " %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,"
      " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59,"
      " %60, %61, %62, %63},"
      " %64, %65, p, 1, 1, 0, 0;\n}"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]),
        "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]),
        "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]), "+f"(c[32]), "+f"(c[33]), "+f"(c[34]), "+f"(c[35]),
        "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), "+f"(c[40]), "+f"(c[41]), "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]),
        "+f"(c[48]), "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]), "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]),
        "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63])
      : "l"(a), "l"(b), "r"((int32_t)accumulate));
}

__device__ __forceinline__ void tw_wgmma_m64n128k16_f32_bf16_bf16_r_tb(float* c, const uint32_t* a, uint64_t b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11,"
      " %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23,"
      " %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35,"
      " %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,"
      " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59,"
      " %60, %61, %62, %63},"
      " {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]),
        "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]),
        "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]), "+f"(c[32]), "+f"(c[33]), "+f"(c[34]), "+f"(c[35]),
        "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), "+f"(c[40]), "+f"(c[41]), "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]),
        "+f"(c[48]), "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]), "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]),
        "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int32_t)accumulate));
}


extern "C" __global__ void __launch_bounds__(384, 1) flash_attention_kernel(uint16_t* Q, uint16_t* K, uint16_t* V, uint16_t* O, const __grid_constant__ tw_tensor_map Q_map, const __grid_constant__ tw_tensor_map K_map, const __grid_constant__ tw_tensor_map V_map, const __grid_constant__ tw_tensor_map O_map) {
  extern __shared__ __align__(1024) unsigned char tw_shared[];
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
  if (warp < 8) {
    const int32_t thread = tx;
    const int32_t group = (int32_t)__shfl_sync(0xffffffffu, thread >> 7, 0);
    tw_take_registers<232>();
    for (int32_t turn = 0; turn < 32; ++turn) {
      alignas(16) float acc_s[64];
      alignas(16) uint16_t acc_s_cast[64];
      alignas(16) float acc_o[64];
      alignas(16) float scores_max[2];
      alignas(16) float scores_max_prev[2];
      alignas(16) float scores_scale[2];
      alignas(16) float scores_sum[2];
      alignas(16) float logsum[2];
      alignas(16) float scores_max_total[2];
      alignas(16) float scores_sum_total[2];
      const int32_t fill = turn * 32 + 31;
      const int32_t fill_1 = turn * 32;
      const int32_t slot = (int32_t)((uint32_t)turn & 1u);
      const int32_t parity = (int32_t)((uint32_t)turn >> 1 & 1u);
      const int32_t slot_1 = (int32_t)((uint32_t)fill_1 & 1u);
      const int32_t parity_1 = (int32_t)((uint32_t)fill_1 >> 1 & 1u);
      const int32_t slot_2 = (int32_t)((uint32_t)fill & 1u);
      const int32_t parity_2 = (int32_t)((uint32_t)fill >> 1 & 1u);
      const int32_t tile = block + turn * 128;
      const int32_t bx = tile & 31;
      const int32_t h = tile >> 5 & 31;
      const int32_t b = (tile >> 5) >> 5;
      // flash_attention.cpp:40
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            acc_o[r * 2 + r_1 * 4 + r_2] = 0.0f;
          }
        }
      }
      // flash_attention.cpp:41
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        logsum[r] = 0.0f;
      }
      // flash_attention.cpp:42
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_max[r] = -__int_as_float(0x7f800000);
      }
      // flash_attention.cpp:44
      tw_wait(&Q_shared_full[slot], parity);
      tw_wait(&K_shared_full[slot_1], parity_1);
      // flash_attention.cpp:51
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 8; ++k) {
        tw_wgmma_m64n128k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared, slot * 32768 + (group & 1) * 8192 + (k * 16 & 63) * 2 + (k * 16 >> 6) * 16384 >> 4), tw_matrix<0x4000004000010000ull>(K_shared, slot_1 * 32768 + (k * 16 & 63) * 2 + (k * 16 >> 6) * 16384 >> 4), k != 0);
      }
      tw_wgmma_commit();
      tw_wgmma_wait<0>();
      tw_hold(acc_s);
      // flash_attention.cpp:44
      __syncwarp();
      if ((tx & 31) == 0) {
        tw_arrive(&K_shared_empty[slot_1]);
      }
      // flash_attention.cpp:53
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_max_prev[r] = scores_max[r];
      }
      // flash_attention.cpp:54
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_max_total[r] = -__int_as_float(0x7f800000);
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            scores_max_total[r] = max_f32(scores_max_total[r], acc_s[r * 2 + r_1 * 4 + r_2]);
          }
        }
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        const float other = (float)__shfl_xor_sync(0xffffffffu, scores_max_total[r], 2);
        scores_max_total[r] = max_f32(scores_max_total[r], other);
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        const float other = (float)__shfl_xor_sync(0xffffffffu, scores_max_total[r], 1);
        scores_max_total[r] = max_f32(scores_max_total[r], other);
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_max[r] = max_f32(scores_max[r], scores_max_total[r]);
      }
      // flash_attention.cpp:55
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_scale[r] = tw_exp2f((scores_max_prev[r] - scores_max[r]) * 0.12751743f);
      }
      // flash_attention.cpp:56
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            // flash_attention.cpp:57
            acc_s[r * 2 + r_1 * 4 + r_2] = tw_exp2f(fma_f32(acc_s[r * 2 + r_1 * 4 + r_2], 0.12751743f, -(scores_max[r] * 0.12751743f)));
          }
        }
      }
      // flash_attention.cpp:59
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_sum_total[r] = 0.0f;
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            scores_sum_total[r] = scores_sum_total[r] + acc_s[r * 2 + r_1 * 4 + r_2];
          }
        }
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_sum[r] = scores_sum_total[r];
      }
      // flash_attention.cpp:60
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        logsum[r] = fma_f32(logsum[r], scores_scale[r], scores_sum[r]);
      }
      // flash_attention.cpp:61
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
          __float22bfloat162_rn(&acc_s_cast[r * 2 + r_1 * 4], acc_s[r * 2 + r_1 * 4], acc_s[r * 2 + r_1 * 4 + 1]);
        }
      }
      // flash_attention.cpp:62
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            acc_o[r * 2 + r_1 * 4 + r_2] = acc_o[r * 2 + r_1 * 4 + r_2] * scores_scale[r];
          }
        }
      }
      // flash_attention.cpp:44
      for (int32_t k = 1; k < 32; ++k) {
        alignas(16) float scores_max_total_1[2];
        alignas(16) float scores_sum_total_1[2];
        const int32_t fill_2 = turn * 32 + k - 1;
        const int32_t fill_3 = turn * 32 + k;
        const int32_t slot_3 = (int32_t)((uint32_t)fill_3 & 1u);
        const int32_t parity_3 = (int32_t)((uint32_t)fill_3 >> 1 & 1u);
        const int32_t slot_4 = (int32_t)((uint32_t)fill_2 & 1u);
        const int32_t parity_4 = (int32_t)((uint32_t)fill_2 >> 1 & 1u);
        tw_wait(&K_shared_full[slot_3], parity_3);
        // flash_attention.cpp:51
        tw_hold(acc_s);
        tw_wgmma_fence();
        #pragma unroll
        for (int32_t k_1 = 0; k_1 < 8; ++k_1) {
          tw_wgmma_m64n128k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared, slot * 32768 + (group & 1) * 8192 + (k_1 * 16 & 63) * 2 + (k_1 * 16 >> 6) * 16384 >> 4), tw_matrix<0x4000004000010000ull>(K_shared, slot_3 * 32768 + (k_1 * 16 & 63) * 2 + (k_1 * 16 >> 6) * 16384 >> 4), k_1 != 0);
        }
        // flash_attention.cpp:44
        tw_wgmma_commit();
        tw_wait(&V_shared_full[slot_4], parity_4);
        // flash_attention.cpp:63
        tw_hold(acc_o);
        tw_hold(*(uint32_t(*)[32])acc_s_cast);
        tw_wgmma_fence();
        #pragma unroll
        for (int32_t k_1 = 0; k_1 < 8; ++k_1) {
          tw_wgmma_m64n128k16_f32_bf16_bf16_r_tb(acc_o, &((uint32_t*)acc_s_cast)[k_1 * 4], tw_matrix<0x4000004004000000ull>(V_shared, slot_4 * 2048 + k_1 * 128), 1);
        }
        // flash_attention.cpp:44
        tw_wgmma_commit();
        tw_wgmma_wait<1>();
        tw_hold(acc_s);
        tw_hold(acc_o);
        tw_hold(*(uint32_t(*)[32])acc_s_cast);
        __syncwarp();
        if ((tx & 31) == 0) {
          tw_arrive(&K_shared_empty[slot_3]);
        }
        // flash_attention.cpp:53
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          scores_max_prev[r] = scores_max[r];
        }
        // flash_attention.cpp:54
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          scores_max_total_1[r] = -__int_as_float(0x7f800000);
        }
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          #pragma unroll
          for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
            #pragma unroll
            for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
              scores_max_total_1[r] = max_f32(scores_max_total_1[r], acc_s[r * 2 + r_1 * 4 + r_2]);
            }
          }
        }
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          const float other = (float)__shfl_xor_sync(0xffffffffu, scores_max_total_1[r], 2);
          scores_max_total_1[r] = max_f32(scores_max_total_1[r], other);
        }
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          const float other = (float)__shfl_xor_sync(0xffffffffu, scores_max_total_1[r], 1);
          scores_max_total_1[r] = max_f32(scores_max_total_1[r], other);
        }
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          scores_max[r] = max_f32(scores_max[r], scores_max_total_1[r]);
        }
        // flash_attention.cpp:55
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          scores_scale[r] = tw_exp2f((scores_max_prev[r] - scores_max[r]) * 0.12751743f);
        }
        // flash_attention.cpp:56
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          #pragma unroll
          for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
            #pragma unroll
            for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
              // flash_attention.cpp:57
              acc_s[r * 2 + r_1 * 4 + r_2] = tw_exp2f(fma_f32(acc_s[r * 2 + r_1 * 4 + r_2], 0.12751743f, -(scores_max[r] * 0.12751743f)));
            }
          }
        }
        // flash_attention.cpp:59
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          scores_sum_total_1[r] = 0.0f;
        }
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          #pragma unroll
          for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
            #pragma unroll
            for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
              scores_sum_total_1[r] = scores_sum_total_1[r] + acc_s[r * 2 + r_1 * 4 + r_2];
            }
          }
        }
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          scores_sum[r] = scores_sum_total_1[r];
        }
        // flash_attention.cpp:60
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          logsum[r] = fma_f32(logsum[r], scores_scale[r], scores_sum[r]);
        }
        // flash_attention.cpp:44
        tw_wgmma_wait<0>();
        tw_hold(acc_s);
        tw_hold(acc_o);
        tw_hold(*(uint32_t(*)[32])acc_s_cast);
        __syncwarp();
        if ((tx & 31) == 0) {
          tw_arrive(&V_shared_empty[slot_4]);
        }
        // flash_attention.cpp:61
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          #pragma unroll
          for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
            __float22bfloat162_rn(&acc_s_cast[r * 2 + r_1 * 4], acc_s[r * 2 + r_1 * 4], acc_s[r * 2 + r_1 * 4 + 1]);
          }
        }
        // flash_attention.cpp:62
        #pragma unroll
        for (int32_t r = 0; r < 2; ++r) {
          #pragma unroll
          for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
            #pragma unroll
            for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
              acc_o[r * 2 + r_1 * 4 + r_2] = acc_o[r * 2 + r_1 * 4 + r_2] * scores_scale[r];
            }
          }
        }
      }
      // flash_attention.cpp:44
      tw_wait(&V_shared_full[slot_2], parity_2);
      // flash_attention.cpp:63
      tw_hold(acc_o);
      tw_hold(*(uint32_t(*)[32])acc_s_cast);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 8; ++k) {
        tw_wgmma_m64n128k16_f32_bf16_bf16_r_tb(acc_o, &((uint32_t*)acc_s_cast)[k * 4], tw_matrix<0x4000004004000000ull>(V_shared, slot_2 * 2048 + k * 128), 1);
      }
      tw_wgmma_commit();
      tw_wgmma_wait<0>();
      tw_hold(acc_o);
      tw_hold(*(uint32_t(*)[32])acc_s_cast);
      // flash_attention.cpp:44
      __syncwarp();
      if ((tx & 31) == 0) {
        tw_arrive(&V_shared_empty[slot_2]);
      }
      __syncwarp();
      if ((tx & 31) == 0) {
        tw_arrive(&Q_shared_empty[slot]);
      }
      // flash_attention.cpp:65
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        const float other = (float)__shfl_xor_sync(0xffffffffu, logsum[r], 2);
        logsum[r] = logsum[r] + other;
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        const float other = (float)__shfl_xor_sync(0xffffffffu, logsum[r], 1);
        logsum[r] = logsum[r] + other;
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 16; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            acc_o[r * 2 + r_1 * 4 + r_2] = acc_o[r * 2 + r_1 * 4 + r_2] / logsum[r];
          }
        }
      }
      // flash_attention.cpp:66
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
          alignas(16) uint16_t acc_o_staged_vector[2];
          __float22bfloat162_rn(acc_o_staged_vector, acc_o[r * 2 + r_1 * 4], acc_o[r * 2 + r_1 * 4 + 1]);
          *(uint32_t*)&acc_o_staged[(thread >> 7) * 4096 + ((thread & 127) >> 5) * 1024 + r * 512 + ((thread & 31) >> 2) * 64 + (r_1 * 8 + (thread & 3) * 2 >> 6) * 8192 + ((r_1 * 8 + (thread & 3) * 2 & 63) ^ ((((thread & 31) >> 2) * 64 >> 3) & 56))] = *(const uint32_t*)acc_o_staged_vector;
        }
      }
      tw_fence_async_shared();
      tw_sync_threads<256>(3);
      if (warp == 0) {
        if (tw_elect()) {
          tw_tma_store_4d(acc_o_staged, &O_map, 0, bx * 128, h, b);
          tw_tma_store_4d(acc_o_staged + 8192, &O_map, 64, bx * 128, h, b);
          tw_bulk_commit();
        }
      }
    }
    // flash_attention.cpp:26
    if (warp == 0) {
      if (tw_elect()) {
        tw_bulk_wait<0>();
      }
    }
  }
}

