typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
__device__ __forceinline__ void __float22half2_rn(uint16_t* to, float first, float second) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  *(uint32_t*)to = pair;
}
template <class T>
__device__ __forceinline__ T safe_divisor(T a, T b) {
  constexpr T least = (T)-1 < (T)0 ? (T)((uint64_t)1 << (8 * sizeof(T) - 1)) : (T)0;
  const bool overflows = (T)-1 < (T)0 && (b == (T)-1) & (a == least);
  return (b == (T)0) | overflows ? (T)1 : b;
}
template <class T>
__device__ __forceinline__ T floordiv(T a, T b) {
  const T d = safe_divisor(a, b), q = (T)(a / d), r = (T)(a % d);
  return (T)(q - (T)((r != (T)0) & ((r < (T)0) != (d < (T)0))));
}
template <class T>
__device__ __forceinline__ T floormod(T a, T b) {
  const T d = safe_divisor(a, b), r = (T)(a % d);
  return (T)((r != (T)0) & ((r < (T)0) != (d < (T)0)) ? r + d : r);
}
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

__device__ __forceinline__ void tw_tma_load_2d(void* shared, const tw_tensor_map* map, uint64_t* full, int32_t x0, int32_t x1) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
               ::"r"(tw_shared_address(shared)), "l"(map), "r"(tw_shared_address(full)), "r"(x0), "r"(x1) : "memory");
}
__device__ __forceinline__ void tw_tma_load_4d(void* shared, const tw_tensor_map* map, uint64_t* full, int32_t x0, int32_t x1, int32_t x2, int32_t x3) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];"
               ::"r"(tw_shared_address(shared)), "l"(map), "r"(tw_shared_address(full)), "r"(x0), "r"(x1), "r"(x2), "r"(x3) : "memory");
}
__device__ __forceinline__ void tw_tma_store_2d(const void* shared, const tw_tensor_map* map, int32_t x0, int32_t x1) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%1, {%2, %3}], [%0];"
               ::"r"(tw_shared_address(shared)), "l"(map), "r"(x0), "r"(x1) : "memory");
}
__device__ __forceinline__ void tw_wgmma_m64n128k16_f32_f16_f16_tb(float* c, uint64_t a, uint64_t b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16"
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11,"
      " %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23,"
      " %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35,"
      " %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,"
      " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59,"
      " %60, %61, %62, %63},"
      " %64, %65, p, 1, 1, 0, 1;\n}"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]),
        "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]),
        "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]), "+f"(c[32]), "+f"(c[33]), "+f"(c[34]), "+f"(c[35]),
        "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), "+f"(c[40]), "+f"(c[41]), "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]),
        "+f"(c[48]), "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]), "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]),
        "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63])
      : "l"(a), "l"(b), "r"((int32_t)accumulate));
}


extern "C" __global__ void __launch_bounds__(384, 1) convolution_kernel(uint16_t* image, uint16_t* weights, uint16_t* out, const __grid_constant__ tw_tensor_map image_map, const __grid_constant__ tw_tensor_map weights_map, const __grid_constant__ tw_tensor_map out_map) {
  extern __shared__ __align__(1024) unsigned char tw_shared[];
  const int32_t block = blockIdx.x;
  const int32_t tx = threadIdx.x;
  uint16_t* const patches = (uint16_t*)(tw_shared + 0);
  uint16_t* const filters = (uint16_t*)(tw_shared + 49152);
  uint64_t* const patches_filters_full = (uint64_t*)(tw_shared + 131072);
  uint64_t* const patches_filters_empty = (uint64_t*)(tw_shared + 131096);
  uint16_t* const sums_staged = (uint16_t*)(tw_shared + 98304);
  const int32_t warp = __shfl_sync(0xffffffffu, (int32_t)threadIdx.x / 32, 0);
  // convolution.cpp:20
  if (warp == 0) {
    if (tw_elect()) {
      tw_init_barrier(patches_filters_full, 1);
      tw_init_barrier(&patches_filters_full[1], 1);
      tw_init_barrier(&patches_filters_full[2], 1);
      tw_init_barrier(patches_filters_empty, 8);
      tw_init_barrier(&patches_filters_empty[1], 8);
      tw_init_barrier(&patches_filters_empty[2], 8);
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
        const int32_t slot = (int32_t)((uint32_t)fill % 3u);
        const int32_t parity = (int32_t)((uint32_t)fill / 3u & 1u);
        tw_wait(&patches_filters_empty[slot], parity ^ 1);
        if (tw_elect()) {
          tw_arrive_expect(&patches_filters_full[slot], 32768);
          tw_tma_load_4d(patches + slot * 8192, &image_map, &patches_filters_full[slot], k * 64 & 127, (by * 128ll & 63ll) + floormod<int64_t>(k * 64ll >> 7, 3ll) - 1ll, (by * 128ll >> 6 & 63ll) + floordiv<int64_t>(k * 64ll >> 7, 3ll) - 1ll, 0ll <= (int64_t)k && (int64_t)k < 18ll ? (by * 128ll >> 6) >> 6 : -1ll);
          // convolution.cpp:27
          tw_tma_load_2d(filters + slot * 8192, &weights_map, &patches_filters_full[slot], bx * 128, k * 64);
          tw_tma_load_2d(filters + slot * 8192 + 4096, &weights_map, &patches_filters_full[slot], bx * 128 + 64, k * 64);
        }
      }
    }
  }
  // convolution.cpp:20
  if (warp < 8) {
    const int32_t thread = tx;
    const int32_t group = (int32_t)__shfl_sync(0xffffffffu, thread >> 7, 0);
    tw_take_registers<232>();
    for (int32_t turn = 0; turn < 32; ++turn) {
      alignas(16) float sums[64];
      const int32_t tile = block + turn * 128;
      const int32_t bx = 0;
      const int32_t by = tile;
      // convolution.cpp:25
      for (int32_t k = 0; k < 18; ++k) {
        // convolution.cpp:28
        const int32_t fill = turn * 18 + k;
        const int32_t slot = (int32_t)((uint32_t)fill % 3u);
        const int32_t parity = (int32_t)((uint32_t)fill / 3u & 1u);
        tw_wait(&patches_filters_full[slot], parity);
        tw_hold(sums);
        tw_wgmma_fence();
        #pragma unroll
        for (int32_t k_1 = 0; k_1 < 4; ++k_1) {
          tw_wgmma_m64n128k16_f32_f16_f16_tb(sums, tw_matrix<0x4000004000010000ull>(patches, slot * 1024 + (group & 1) * 512 + k_1 * 2), tw_matrix<0x4000004002000000ull>(filters, slot * 1024 + k_1 * 128), !(k_1 == 0 && k == 0));
        }
        tw_wgmma_commit();
        tw_wgmma_wait<0>();
        tw_hold(sums);
        __syncwarp();
        if ((tx & 31) == 0) {
          tw_arrive(&patches_filters_empty[slot]);
        }
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
          alignas(16) uint16_t sums_staged_vector[2];
          __float22half2_rn(sums_staged_vector, sums[r * 2 + r_1 * 4], sums[r * 2 + r_1 * 4 + 1]);
          *(uint32_t*)&sums_staged[(thread >> 7) * 4096 + ((thread & 127) >> 5) * 1024 + r * 512 + ((thread & 31) >> 2) * 64 + (r_1 * 8 + (thread & 3) * 2 >> 6) * 8192 + ((r_1 * 8 + (thread & 3) * 2 & 63) ^ ((((thread & 31) >> 2) * 64 >> 3) & 56))] = *(const uint32_t*)sums_staged_vector;
        }
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

