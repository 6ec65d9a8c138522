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
__device__ __forceinline__ void tw_tma_load_3d(void* shared, const tw_tensor_map* map, uint64_t* full, int32_t x0, int32_t x1, int32_t x2) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];"
               ::"r"(tw_shared_address(shared)), "l"(map), "r"(tw_shared_address(full)), "r"(x0), "r"(x1), "r"(x2) : "memory");
}
__device__ __forceinline__ void tw_tma_prefetch_3d(const tw_tensor_map* map, int32_t x0, int32_t x1, int32_t x2) {
  asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global [%0, {%1, %2, %3}];"
               ::"l"(map), "r"(x0), "r"(x1), "r"(x2) : "memory");
}
__device__ __forceinline__ void tw_tma_store_3d(const void* shared, const tw_tensor_map* map, int32_t x0, int32_t x1, int32_t x2) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%1, {%2, %3, %4}], [%0];"
               ::"r"(tw_shared_address(shared)), "l"(map), "r"(x0), "r"(x1), "r"(x2) : "memory");
}
__device__ __forceinline__ void tw_wgmma_m64n256k16_f32_bf16_bf16_r_tb(float* c, const uint32_t* a, uint64_t b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %133, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11,"
      " %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23,"
      " %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35,"
      " %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,"
      " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59,"
      " %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71,"
      " %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83,"
      " %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95,"
      " %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107,"
      " %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119,"
      " %120, %121, %122, %123, %124, %125, %126, %127},"
      " {%128, %129, %130, %131}, %132, p, 1, 1, 1;\n}"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]),
        "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]),
        "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]), "+f"(c[32]), "+f"(c[33]), "+f"(c[34]), "+f"(c[35]),
        "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), "+f"(c[40]), "+f"(c[41]), "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]),
        "+f"(c[48]), "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]), "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]),
        "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63]), "+f"(c[64]), "+f"(c[65]), "+f"(c[66]), "+f"(c[67]), "+f"(c[68]), "+f"(c[69]), "+f"(c[70]), "+f"(c[71]),
        "+f"(c[72]), "+f"(c[73]), "+f"(c[74]), "+f"(c[75]), "+f"(c[76]), "+f"(c[77]), "+f"(c[78]), "+f"(c[79]), "+f"(c[80]), "+f"(c[81]), "+f"(c[82]), "+f"(c[83]),
        "+f"(c[84]), "+f"(c[85]), "+f"(c[86]), "+f"(c[87]), "+f"(c[88]), "+f"(c[89]), "+f"(c[90]), "+f"(c[91]), "+f"(c[92]), "+f"(c[93]), "+f"(c[94]), "+f"(c[95]),
        "+f"(c[96]), "+f"(c[97]), "+f"(c[98]), "+f"(c[99]), "+f"(c[100]), "+f"(c[101]), "+f"(c[102]), "+f"(c[103]), "+f"(c[104]), "+f"(c[105]), "+f"(c[106]), "+f"(c[107]),
        "+f"(c[108]), "+f"(c[109]), "+f"(c[110]), "+f"(c[111]), "+f"(c[112]), "+f"(c[113]), "+f"(c[114]), "+f"(c[115]), "+f"(c[116]), "+f"(c[117]), "+f"(c[118]), "+f"(c[119]),
        "+f"(c[120]), "+f"(c[121]), "+f"(c[122]), "+f"(c[123]), "+f"(c[124]), "+f"(c[125]), "+f"(c[126]), "+f"(c[127])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int32_t)accumulate));
}

__device__ __forceinline__ void tw_wgmma_m64n256k16_f32_bf16_bf16_tb(float* c, uint64_t a, uint64_t b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11,"
      " %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23,"
      " %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35,"
      " %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,"
      " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59,"
      " %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71,"
      " %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83,"
      " %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95,"
      " %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107,"
      " %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119,"
      " %120, %121, %122, %123, %124, %125, %126, %127},"
      " %128, %129, p, 1, 1, 0, 1;\n}"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]),
        "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]),
        "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]), "+f"(c[32]), "+f"(c[33]), "+f"(c[34]), "+f"(c[35]),
        "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), "+f"(c[40]), "+f"(c[41]), "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]),
        "+f"(c[48]), "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]), "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]),
        "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63]), "+f"(c[64]), "+f"(c[65]), "+f"(c[66]), "+f"(c[67]), "+f"(c[68]), "+f"(c[69]), "+f"(c[70]), "+f"(c[71]),
        "+f"(c[72]), "+f"(c[73]), "+f"(c[74]), "+f"(c[75]), "+f"(c[76]), "+f"(c[77]), "+f"(c[78]), "+f"(c[79]), "+f"(c[80]), "+f"(c[81]), "+f"(c[82]), "+f"(c[83]),
        "+f"(c[84]), "+f"(c[85]), "+f"(c[86]), "+f"(c[87]), "+f"(c[88]), "+f"(c[89]), "+f"(c[90]), "+f"(c[91]), "+f"(c[92]), "+f"(c[93]), "+f"(c[94]), "+f"(c[95]),
        "+f"(c[96]), "+f"(c[97]), "+f"(c[98]), "+f"(c[99]), "+f"(c[100]), "+f"(c[101]), "+f"(c[102]), "+f"(c[103]), "+f"(c[104]), "+f"(c[105]), "+f"(c[106]), "+f"(c[107]),
        "+f"(c[108]), "+f"(c[109]), "+f"(c[110]), "+f"(c[111]), "+f"(c[112]), "+f"(c[113]), "+f"(c[114]), "+f"(c[115]), "+f"(c[116]), "+f"(c[117]), "+f"(c[118]), "+f"(c[119]),
        "+f"(c[120]), "+f"(c[121]), "+f"(c[122]), "+f"(c[123]), "+f"(c[124]), "+f"(c[125]), "+f"(c[126]), "+f"(c[127])
      : "l"(a), "l"(b), "r"((int32_t)accumulate));
}

__device__ __forceinline__ void tw_wgmma_m64n64k16_f32_bf16_bf16(float* c, uint64_t a, uint64_t b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16"
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11,"
      " %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23,"
      " %24, %25, %26, %27, %28, %29, %30, %31},"
      " %32, %33, p, 1, 1, 0, 0;\n}"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]),
        "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]),
        "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31])
      : "l"(a), "l"(b), "r"((int32_t)accumulate));
}


extern "C" __global__ void __launch_bounds__(384, 1) mla_decode_kernel(uint16_t* Q, uint16_t* Q_pe, uint16_t* KV, uint16_t* K_pe, uint16_t* Output, const __grid_constant__ tw_tensor_map KV_map, const __grid_constant__ tw_tensor_map K_pe_map, const __grid_constant__ tw_tensor_map Q_map, const __grid_constant__ tw_tensor_map Q_pe_map, const __grid_constant__ tw_tensor_map Output_map) {
  extern __shared__ __align__(1024) unsigned char tw_shared[];
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
  if (warp < 4) {
    alignas(16) uint16_t S_shared[32];
    alignas(16) float acc_s[32];
    alignas(16) float acc_o[128];
    alignas(16) float scores_max[2];
    alignas(16) float scores_max_prev[2];
    alignas(16) float scores_scale[2];
    alignas(16) float scores_sum[2];
    alignas(16) float logsum[2];
    alignas(16) float scores_max_total[2];
    alignas(16) float scores_sum_total[2];
    const int32_t thread = tx;
    tw_take_registers<240>();
    // mla_decode.cpp:38
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 32; ++r_1) {
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          acc_o[r * 2 + r_1 * 4 + r_2] = 0.0f;
        }
      }
    }
    // mla_decode.cpp:39
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      logsum[r] = 0.0f;
    }
    // mla_decode.cpp:40
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      scores_max[r] = -__int_as_float(0x7f800000);
    }
    // mla_decode.cpp:41
    tw_wait(once_full, 0);
    tw_wait(K_pe_shared_full, 0);
    // mla_decode.cpp:46
    tw_hold(acc_s);
    tw_wgmma_fence();
    #pragma unroll
    for (int32_t k = 0; k < 4; ++k) {
      tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_pe_shared, k * 2), tw_matrix<0x4000004000010000ull>(K_pe_shared, k * 2), k != 0);
    }
    // mla_decode.cpp:41
    tw_wait(KV_shared_left_full, 0);
    // mla_decode.cpp:45
    tw_hold(acc_s);
    tw_wgmma_fence();
    #pragma unroll
    for (int32_t k = 0; k < 4; ++k) {
      tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_left, (k * 16 & 63) * 2 + (k * 16 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_left, (k * 16 & 63) * 2 + (k * 16 >> 6) * 8192 >> 4), 1);
    }
    // mla_decode.cpp:41
    tw_wait(&KV_shared_left_full[1], 0);
    // mla_decode.cpp:45
    tw_hold(acc_s);
    tw_wgmma_fence();
    #pragma unroll
    for (int32_t k = 0; k < 4; ++k) {
      tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_left, (k * 16 + 64 & 63) * 2 + (k * 16 + 64 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_left, (k * 16 + 64 & 63) * 2 + (k * 16 + 64 >> 6) * 8192 >> 4), 1);
    }
    // mla_decode.cpp:41
    tw_wait(&KV_shared_left_full[2], 0);
    // mla_decode.cpp:45
    tw_hold(acc_s);
    tw_wgmma_fence();
    #pragma unroll
    for (int32_t k = 0; k < 4; ++k) {
      tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_left, (k * 16 + 128 & 63) * 2 + (k * 16 + 128 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_left, (k * 16 + 128 & 63) * 2 + (k * 16 + 128 >> 6) * 8192 >> 4), 1);
    }
    // mla_decode.cpp:41
    tw_wait(&KV_shared_left_full[3], 0);
    // mla_decode.cpp:45
    tw_hold(acc_s);
    tw_wgmma_fence();
    #pragma unroll
    for (int32_t k = 0; k < 4; ++k) {
      tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_left, (k * 16 + 192 & 63) * 2 + (k * 16 + 192 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_left, (k * 16 + 192 & 63) * 2 + (k * 16 + 192 >> 6) * 8192 >> 4), 1);
    }
    // mla_decode.cpp:41
    tw_wait(KV_shared_right_full, 0);
    // mla_decode.cpp:45
    tw_hold(acc_s);
    tw_wgmma_fence();
    #pragma unroll
    for (int32_t k = 0; k < 4; ++k) {
      tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_right, (k * 16 & 63) * 2 + (k * 16 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_right, (k * 16 & 63) * 2 + (k * 16 >> 6) * 8192 >> 4), 1);
    }
    // mla_decode.cpp:41
    tw_wait(&KV_shared_right_full[1], 0);
    // mla_decode.cpp:45
    tw_hold(acc_s);
    tw_wgmma_fence();
    #pragma unroll
    for (int32_t k = 0; k < 4; ++k) {
      tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_right, (k * 16 + 64 & 63) * 2 + (k * 16 + 64 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_right, (k * 16 + 64 & 63) * 2 + (k * 16 + 64 >> 6) * 8192 >> 4), 1);
    }
    // mla_decode.cpp:41
    tw_wait(&KV_shared_right_full[2], 0);
    // mla_decode.cpp:45
    tw_hold(acc_s);
    tw_wgmma_fence();
    #pragma unroll
    for (int32_t k = 0; k < 4; ++k) {
      tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_right, (k * 16 + 128 & 63) * 2 + (k * 16 + 128 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_right, (k * 16 + 128 & 63) * 2 + (k * 16 + 128 >> 6) * 8192 >> 4), 1);
    }
    // mla_decode.cpp:41
    tw_wait(&KV_shared_right_full[3], 0);
    // mla_decode.cpp:45
    tw_hold(acc_s);
    tw_wgmma_fence();
    #pragma unroll
    for (int32_t k = 0; k < 4; ++k) {
      tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_right, (k * 16 + 192 & 63) * 2 + (k * 16 + 192 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_right, (k * 16 + 192 & 63) * 2 + (k * 16 + 192 >> 6) * 8192 >> 4), 1);
    }
    // mla_decode.cpp:41
    tw_wgmma_commit();
    tw_wgmma_wait<0>();
    tw_hold(acc_s);
    __syncwarp();
    if ((tx & 31) == 0) {
      tw_arrive(K_pe_shared_empty);
    }
    // mla_decode.cpp:47
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          // mla_decode.cpp:48
          acc_s[r * 2 + r_1 * 4 + r_2] = acc_s[r * 2 + r_1 * 4 + r_2];
        }
      }
    }
    // mla_decode.cpp:50
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      scores_max_prev[r] = scores_max[r];
    }
    // mla_decode.cpp:51
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      scores_max_total[r] = -__int_as_float(0x7f800000);
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
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
    // mla_decode.cpp:52
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      scores_scale[r] = tw_exp2f(fma_f32(scores_max_prev[r], 0.060112294f, -(scores_max[r] * 0.060112294f)));
    }
    // mla_decode.cpp:53
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          // mla_decode.cpp:54
          acc_s[r * 2 + r_1 * 4 + r_2] = tw_exp2f(fma_f32(acc_s[r * 2 + r_1 * 4 + r_2], 0.060112294f, -(scores_max[r] * 0.060112294f)));
        }
      }
    }
    // mla_decode.cpp:57
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
        __float22bfloat162_rn(&S_shared[r * 2 + r_1 * 4], acc_s[r * 2 + r_1 * 4], acc_s[r * 2 + r_1 * 4 + 1]);
      }
    }
    // mla_decode.cpp:41
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
        alignas(16) uint16_t S_shared_handed_vector[2];
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          S_shared_handed_vector[r_2] = S_shared[r * 2 + r_1 * 4 + r_2];
        }
        *(uint32_t*)&S_shared_handed[(thread >> 5) * 1024 + r * 512 + ((thread & 31) >> 2) * 64 + (thread & 3) * 2 + (r_1 * 8 ^ ((((thread & 31) >> 2) * 64 >> 3) & 56))] = *(const uint32_t*)S_shared_handed_vector;
      }
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      if ((thread & 3) == 0) {
        scores_max_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2)] = scores_max[r];
      }
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      if ((thread & 3) == 0) {
        scores_scale_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2)] = scores_scale[r];
      }
    }
    tw_fence_async_shared();
    __syncwarp();
    if ((tx & 31) == 0) {
      tw_arrive(ready);
    }
    // mla_decode.cpp:59
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 32; ++r_1) {
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          acc_o[r * 2 + r_1 * 4 + r_2] = acc_o[r * 2 + r_1 * 4 + r_2] * scores_scale[r];
        }
      }
    }
    // mla_decode.cpp:60
    tw_hold(acc_o);
    tw_hold(*(uint32_t(*)[16])S_shared);
    tw_wgmma_fence();
    #pragma unroll
    for (int32_t k = 0; k < 4; ++k) {
      tw_wgmma_m64n256k16_f32_bf16_bf16_r_tb(acc_o, &((uint32_t*)S_shared)[k * 4], tw_matrix<0x4000004002000000ull>(KV_shared_left, k * 128), 1);
    }
    // mla_decode.cpp:41
    tw_wgmma_commit();
    // mla_decode.cpp:56
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      scores_sum_total[r] = 0.0f;
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          scores_sum_total[r] = scores_sum_total[r] + acc_s[r * 2 + r_1 * 4 + r_2];
        }
      }
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      const float other = (float)__shfl_xor_sync(0xffffffffu, scores_sum_total[r], 2);
      scores_sum_total[r] = scores_sum_total[r] + other;
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      const float other = (float)__shfl_xor_sync(0xffffffffu, scores_sum_total[r], 1);
      scores_sum_total[r] = scores_sum_total[r] + other;
    }
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      scores_sum[r] = scores_sum_total[r];
    }
    // mla_decode.cpp:58
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      logsum[r] = fma_f32(logsum[r], scores_scale[r], scores_sum[r]);
    }
    // mla_decode.cpp:41
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      if ((thread & 3) == 0) {
        logsum_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2)] = logsum[r];
      }
    }
    __syncwarp();
    if ((tx & 31) == 0) {
      tw_arrive(ready_later);
    }
    tw_wgmma_wait<0>();
    tw_hold(acc_o);
    tw_hold(*(uint32_t(*)[16])S_shared);
    __syncwarp();
    if ((tx & 31) == 0) {
      tw_arrive(KV_shared_left_empty);
    }
    for (int32_t pair = 0; pair < 63; ++pair) {
      alignas(16) float scores_max_total_1[2];
      alignas(16) float scores_sum_total_1[2];
      const int32_t fill = pair + 1;
      const int32_t parity = (int32_t)((uint32_t)fill & 1u);
      const int32_t parity_1 = (int32_t)((uint32_t)pair & 1u);
      tw_wait(K_pe_shared_full, parity);
      // mla_decode.cpp:46
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_pe_shared, k * 2), tw_matrix<0x4000004000010000ull>(K_pe_shared, k * 2), k != 0);
      }
      // mla_decode.cpp:41
      tw_wait(KV_shared_left_full, parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_left, (k * 16 & 63) * 2 + (k * 16 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_left, (k * 16 & 63) * 2 + (k * 16 >> 6) * 8192 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wait(&KV_shared_left_full[1], parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_left, (k * 16 + 64 & 63) * 2 + (k * 16 + 64 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_left, (k * 16 + 64 & 63) * 2 + (k * 16 + 64 >> 6) * 8192 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wait(&KV_shared_left_full[2], parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_left, (k * 16 + 128 & 63) * 2 + (k * 16 + 128 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_left, (k * 16 + 128 & 63) * 2 + (k * 16 + 128 >> 6) * 8192 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wait(&KV_shared_left_full[3], parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_left, (k * 16 + 192 & 63) * 2 + (k * 16 + 192 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_left, (k * 16 + 192 & 63) * 2 + (k * 16 + 192 >> 6) * 8192 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wait(KV_shared_right_full, parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_right, (k * 16 & 63) * 2 + (k * 16 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_right, (k * 16 & 63) * 2 + (k * 16 >> 6) * 8192 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wait(&KV_shared_right_full[1], parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_right, (k * 16 + 64 & 63) * 2 + (k * 16 + 64 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_right, (k * 16 + 64 & 63) * 2 + (k * 16 + 64 >> 6) * 8192 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wait(&KV_shared_right_full[2], parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_right, (k * 16 + 128 & 63) * 2 + (k * 16 + 128 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_right, (k * 16 + 128 & 63) * 2 + (k * 16 + 128 >> 6) * 8192 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wait(&KV_shared_right_full[3], parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_right, (k * 16 + 192 & 63) * 2 + (k * 16 + 192 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_right, (k * 16 + 192 & 63) * 2 + (k * 16 + 192 >> 6) * 8192 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wgmma_commit();
      tw_wait(&ready[1], parity_1);
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_max[r] = scores_max_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2) + 64];
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_scale[r] = scores_scale_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2) + 64];
      }
      // mla_decode.cpp:59
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 32; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            acc_o[r * 2 + r_1 * 4 + r_2] = acc_o[r * 2 + r_1 * 4 + r_2] * scores_scale[r];
          }
        }
      }
      // mla_decode.cpp:60
      tw_hold(acc_o);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n256k16_f32_bf16_bf16_tb(acc_o, tw_matrix<0x4000004000010000ull>(S_shared_handed, k * 2), tw_matrix<0x4000004002000000ull>(KV_shared_left, k * 128 + 2048), 1);
      }
      // mla_decode.cpp:41
      tw_wgmma_commit();
      tw_wgmma_wait<1>();
      tw_hold(acc_s);
      tw_hold(acc_o);
      __syncwarp();
      if ((tx & 31) == 0) {
        tw_arrive(K_pe_shared_empty);
      }
      // mla_decode.cpp:47
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            // mla_decode.cpp:48
            acc_s[r * 2 + r_1 * 4 + r_2] = acc_s[r * 2 + r_1 * 4 + r_2];
          }
        }
      }
      // mla_decode.cpp:50
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_max_prev[r] = scores_max[r];
      }
      // mla_decode.cpp:51
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_max_total_1[r] = -__int_as_float(0x7f800000);
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
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
      // mla_decode.cpp:52
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_scale[r] = tw_exp2f(fma_f32(scores_max_prev[r], 0.060112294f, -(scores_max[r] * 0.060112294f)));
      }
      // mla_decode.cpp:53
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            // mla_decode.cpp:54
            acc_s[r * 2 + r_1 * 4 + r_2] = tw_exp2f(fma_f32(acc_s[r * 2 + r_1 * 4 + r_2], 0.060112294f, -(scores_max[r] * 0.060112294f)));
          }
        }
      }
      // mla_decode.cpp:57
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
          __float22bfloat162_rn(&S_shared[r * 2 + r_1 * 4], acc_s[r * 2 + r_1 * 4], acc_s[r * 2 + r_1 * 4 + 1]);
        }
      }
      // mla_decode.cpp:41
      tw_wgmma_wait<0>();
      tw_hold(acc_s);
      tw_hold(acc_o);
      __syncwarp();
      if ((tx & 31) == 0) {
        tw_arrive(&KV_shared_left_empty[1]);
      }
      tw_sync_threads<128>(6);
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
          alignas(16) uint16_t S_shared_handed_vector[2];
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            S_shared_handed_vector[r_2] = S_shared[r * 2 + r_1 * 4 + r_2];
          }
          *(uint32_t*)&S_shared_handed[(thread >> 5) * 1024 + r * 512 + ((thread & 31) >> 2) * 64 + (thread & 3) * 2 + (r_1 * 8 ^ ((((thread & 31) >> 2) * 64 >> 3) & 56))] = *(const uint32_t*)S_shared_handed_vector;
        }
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        if ((thread & 3) == 0) {
          scores_max_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2)] = scores_max[r];
        }
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        if ((thread & 3) == 0) {
          scores_scale_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2)] = scores_scale[r];
        }
      }
      tw_fence_async_shared();
      __syncwarp();
      if ((tx & 31) == 0) {
        tw_arrive(ready);
      }
      // mla_decode.cpp:59
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 32; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            acc_o[r * 2 + r_1 * 4 + r_2] = acc_o[r * 2 + r_1 * 4 + r_2] * scores_scale[r];
          }
        }
      }
      // mla_decode.cpp:60
      tw_hold(acc_o);
      tw_hold(*(uint32_t(*)[16])S_shared);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n256k16_f32_bf16_bf16_r_tb(acc_o, &((uint32_t*)S_shared)[k * 4], tw_matrix<0x4000004002000000ull>(KV_shared_left, k * 128), 1);
      }
      // mla_decode.cpp:41
      tw_wgmma_commit();
      tw_wait(&ready_later[1], parity_1);
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        logsum[r] = logsum_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2) + 64];
      }
      // mla_decode.cpp:56
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_sum_total_1[r] = 0.0f;
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            scores_sum_total_1[r] = scores_sum_total_1[r] + acc_s[r * 2 + r_1 * 4 + r_2];
          }
        }
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        const float other = (float)__shfl_xor_sync(0xffffffffu, scores_sum_total_1[r], 2);
        scores_sum_total_1[r] = scores_sum_total_1[r] + other;
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        const float other = (float)__shfl_xor_sync(0xffffffffu, scores_sum_total_1[r], 1);
        scores_sum_total_1[r] = scores_sum_total_1[r] + other;
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_sum[r] = scores_sum_total_1[r];
      }
      // mla_decode.cpp:58
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        logsum[r] = fma_f32(logsum[r], scores_scale[r], scores_sum[r]);
      }
      // mla_decode.cpp:41
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        if ((thread & 3) == 0) {
          logsum_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2)] = logsum[r];
        }
      }
      __syncwarp();
      if ((tx & 31) == 0) {
        tw_arrive(ready_later);
      }
      tw_wgmma_wait<0>();
      tw_hold(acc_o);
      tw_hold(*(uint32_t(*)[16])S_shared);
      __syncwarp();
      if ((tx & 31) == 0) {
        tw_arrive(KV_shared_left_empty);
      }
    }
    if (1) {
      tw_wait(&ready[1], 1);
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_max[r] = scores_max_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2) + 64];
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_scale[r] = scores_scale_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2) + 64];
      }
      // mla_decode.cpp:59
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 32; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            acc_o[r * 2 + r_1 * 4 + r_2] = acc_o[r * 2 + r_1 * 4 + r_2] * scores_scale[r];
          }
        }
      }
      // mla_decode.cpp:60
      tw_hold(acc_o);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n256k16_f32_bf16_bf16_tb(acc_o, tw_matrix<0x4000004000010000ull>(S_shared_handed, k * 2), tw_matrix<0x4000004002000000ull>(KV_shared_left, k * 128 + 2048), 1);
      }
      // mla_decode.cpp:41
      tw_wgmma_commit();
      tw_wait(&ready_later[1], 1);
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        logsum[r] = logsum_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2) + 64];
      }
      tw_wgmma_wait<0>();
      tw_hold(acc_o);
    }
    // mla_decode.cpp:62
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 32; ++r_1) {
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          acc_o[r * 2 + r_1 * 4 + r_2] = acc_o[r * 2 + r_1 * 4 + r_2] / logsum[r];
        }
      }
    }
    // mla_decode.cpp:41
    tw_sync_threads<128>(6);
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 32; ++r_1) {
        alignas(16) uint16_t Q_shared_left_vector[2];
        __float22bfloat162_rn(Q_shared_left_vector, acc_o[r * 2 + r_1 * 4], acc_o[r * 2 + r_1 * 4 + 1]);
        *(uint32_t*)&Q_shared_left[(thread >> 5) * 1024 + r * 512 + ((thread & 31) >> 2) * 64 + (r_1 * 8 + (thread & 3) * 2 >> 6) * 4096 + ((r_1 * 8 + (thread & 3) * 2 & 63) ^ ((((thread & 31) >> 2) * 64 >> 3) & 56))] = *(const uint32_t*)Q_shared_left_vector;
      }
    }
    tw_fence_async_shared();
    tw_sync_threads<128>(6);
    if (warp == 0) {
      if (tw_elect()) {
        tw_tma_store_3d(Q_shared_left, &Output_map, 0, by * 64, bx);
        tw_tma_store_3d(Q_shared_left + 4096, &Output_map, 64, by * 64, bx);
        tw_tma_store_3d(Q_shared_left + 8192, &Output_map, 128, by * 64, bx);
        tw_tma_store_3d(Q_shared_left + 12288, &Output_map, 192, by * 64, bx);
        tw_bulk_commit();
        tw_bulk_wait<0>();
      }
    }
  }
  if (warp >= 4 && warp < 8) {
    alignas(16) float acc_o[128];
    alignas(16) float scores_max[2];
    alignas(16) float scores_scale[2];
    alignas(16) float logsum[2];
    const int32_t thread = tx - 128;
    tw_take_registers<240>();
    // mla_decode.cpp:38
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 32; ++r_1) {
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          acc_o[r * 2 + r_1 * 4 + r_2] = 0.0f;
        }
      }
    }
    // mla_decode.cpp:39
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      logsum[r] = 0.0f;
    }
    // mla_decode.cpp:40
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      scores_max[r] = -__int_as_float(0x7f800000);
    }
    // mla_decode.cpp:41
    tw_wait(once_full, 0);
    for (int32_t pair = 0; pair < 64; ++pair) {
      alignas(16) uint16_t S_shared[32];
      alignas(16) float acc_s[32];
      alignas(16) float scores_max_prev[2];
      alignas(16) float scores_sum[2];
      alignas(16) float scores_max_total[2];
      alignas(16) float scores_sum_total[2];
      const int32_t parity = (int32_t)((uint32_t)pair & 1u);
      tw_wait(&K_pe_shared_full[1], parity);
      // mla_decode.cpp:46
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_pe_shared, k * 2), tw_matrix<0x4000004000010000ull>(K_pe_shared, k * 2 + 512), k != 0);
      }
      // mla_decode.cpp:41
      tw_wait(&KV_shared_right_full[4], parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_right, (k * 16 & 63) * 2 + (k * 16 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_right, (k * 16 & 63) * 2 + (k * 16 >> 6) * 8192 + 32768 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wait(&KV_shared_right_full[5], parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_right, (k * 16 + 64 & 63) * 2 + (k * 16 + 64 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_right, (k * 16 + 64 & 63) * 2 + (k * 16 + 64 >> 6) * 8192 + 32768 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wait(&KV_shared_right_full[6], parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_right, (k * 16 + 128 & 63) * 2 + (k * 16 + 128 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_right, (k * 16 + 128 & 63) * 2 + (k * 16 + 128 >> 6) * 8192 + 32768 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wait(&KV_shared_right_full[7], parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_right, (k * 16 + 192 & 63) * 2 + (k * 16 + 192 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_right, (k * 16 + 192 & 63) * 2 + (k * 16 + 192 >> 6) * 8192 + 32768 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wait(&KV_shared_left_full[4], parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_left, (k * 16 & 63) * 2 + (k * 16 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_left, (k * 16 & 63) * 2 + (k * 16 >> 6) * 8192 + 32768 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wait(&KV_shared_left_full[5], parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_left, (k * 16 + 64 & 63) * 2 + (k * 16 + 64 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_left, (k * 16 + 64 & 63) * 2 + (k * 16 + 64 >> 6) * 8192 + 32768 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wait(&KV_shared_left_full[6], parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_left, (k * 16 + 128 & 63) * 2 + (k * 16 + 128 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_left, (k * 16 + 128 & 63) * 2 + (k * 16 + 128 >> 6) * 8192 + 32768 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wait(&KV_shared_left_full[7], parity);
      // mla_decode.cpp:45
      tw_hold(acc_s);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n64k16_f32_bf16_bf16(acc_s, tw_matrix<0x4000004000010000ull>(Q_shared_left, (k * 16 + 192 & 63) * 2 + (k * 16 + 192 >> 6) * 8192 >> 4), tw_matrix<0x4000004000010000ull>(KV_shared_left, (k * 16 + 192 & 63) * 2 + (k * 16 + 192 >> 6) * 8192 + 32768 >> 4), 1);
      }
      // mla_decode.cpp:41
      tw_wgmma_commit();
      tw_wait(ready, parity);
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_max[r] = scores_max_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2)];
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_scale[r] = scores_scale_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2)];
      }
      // mla_decode.cpp:59
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 32; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            acc_o[r * 2 + r_1 * 4 + r_2] = acc_o[r * 2 + r_1 * 4 + r_2] * scores_scale[r];
          }
        }
      }
      // mla_decode.cpp:60
      tw_hold(acc_o);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n256k16_f32_bf16_bf16_tb(acc_o, tw_matrix<0x4000004000010000ull>(S_shared_handed, k * 2), tw_matrix<0x4000004002000000ull>(KV_shared_right, k * 128), 1);
      }
      // mla_decode.cpp:41
      tw_wgmma_commit();
      tw_wgmma_wait<1>();
      tw_hold(acc_s);
      tw_hold(acc_o);
      __syncwarp();
      if ((tx & 31) == 0) {
        tw_arrive(&K_pe_shared_empty[1]);
      }
      // mla_decode.cpp:47
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            // mla_decode.cpp:48
            acc_s[r * 2 + r_1 * 4 + r_2] = acc_s[r * 2 + r_1 * 4 + r_2];
          }
        }
      }
      // mla_decode.cpp:50
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_max_prev[r] = scores_max[r];
      }
      // mla_decode.cpp:51
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_max_total[r] = -__int_as_float(0x7f800000);
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
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
      // mla_decode.cpp:52
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_scale[r] = tw_exp2f(fma_f32(scores_max_prev[r], 0.060112294f, -(scores_max[r] * 0.060112294f)));
      }
      // mla_decode.cpp:53
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            // mla_decode.cpp:54
            acc_s[r * 2 + r_1 * 4 + r_2] = tw_exp2f(fma_f32(acc_s[r * 2 + r_1 * 4 + r_2], 0.060112294f, -(scores_max[r] * 0.060112294f)));
          }
        }
      }
      // mla_decode.cpp:57
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
          __float22bfloat162_rn(&S_shared[r * 2 + r_1 * 4], acc_s[r * 2 + r_1 * 4], acc_s[r * 2 + r_1 * 4 + 1]);
        }
      }
      // mla_decode.cpp:41
      tw_wgmma_wait<0>();
      tw_hold(acc_s);
      tw_hold(acc_o);
      __syncwarp();
      if ((tx & 31) == 0) {
        tw_arrive(KV_shared_right_empty);
      }
      tw_sync_threads<128>(7);
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
          alignas(16) uint16_t S_shared_handed_vector[2];
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            S_shared_handed_vector[r_2] = S_shared[r * 2 + r_1 * 4 + r_2];
          }
          *(uint32_t*)&S_shared_handed[(thread >> 5) * 1024 + r * 512 + ((thread & 31) >> 2) * 64 + (thread & 3) * 2 + (r_1 * 8 ^ ((((thread & 31) >> 2) * 64 >> 3) & 56))] = *(const uint32_t*)S_shared_handed_vector;
        }
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        if ((thread & 3) == 0) {
          scores_max_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2) + 64] = scores_max[r];
        }
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        if ((thread & 3) == 0) {
          scores_scale_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2) + 64] = scores_scale[r];
        }
      }
      tw_fence_async_shared();
      __syncwarp();
      if ((tx & 31) == 0) {
        tw_arrive(&ready[1]);
      }
      // mla_decode.cpp:59
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 32; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            acc_o[r * 2 + r_1 * 4 + r_2] = acc_o[r * 2 + r_1 * 4 + r_2] * scores_scale[r];
          }
        }
      }
      // mla_decode.cpp:60
      tw_hold(acc_o);
      tw_hold(*(uint32_t(*)[16])S_shared);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n256k16_f32_bf16_bf16_r_tb(acc_o, &((uint32_t*)S_shared)[k * 4], tw_matrix<0x4000004002000000ull>(KV_shared_right, k * 128 + 2048), 1);
      }
      // mla_decode.cpp:41
      tw_wgmma_commit();
      tw_wait(ready_later, parity);
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        logsum[r] = logsum_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2)];
      }
      // mla_decode.cpp:56
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_sum_total[r] = 0.0f;
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 8; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            scores_sum_total[r] = scores_sum_total[r] + acc_s[r * 2 + r_1 * 4 + r_2];
          }
        }
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        const float other = (float)__shfl_xor_sync(0xffffffffu, scores_sum_total[r], 2);
        scores_sum_total[r] = scores_sum_total[r] + other;
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        const float other = (float)__shfl_xor_sync(0xffffffffu, scores_sum_total[r], 1);
        scores_sum_total[r] = scores_sum_total[r] + other;
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_sum[r] = scores_sum_total[r];
      }
      // mla_decode.cpp:58
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        logsum[r] = fma_f32(logsum[r], scores_scale[r], scores_sum[r]);
      }
      // mla_decode.cpp:41
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        if ((thread & 3) == 0) {
          logsum_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2) + 64] = logsum[r];
        }
      }
      __syncwarp();
      if ((tx & 31) == 0) {
        tw_arrive(&ready_later[1]);
      }
      tw_wgmma_wait<0>();
      tw_hold(acc_o);
      tw_hold(*(uint32_t(*)[16])S_shared);
      __syncwarp();
      if ((tx & 31) == 0) {
        tw_arrive(&KV_shared_right_empty[1]);
      }
    }
    if (0) {
      tw_wait(ready, 1);
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_max[r] = scores_max_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2)];
      }
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        scores_scale[r] = scores_scale_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2)];
      }
      // mla_decode.cpp:59
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        #pragma unroll
        for (int32_t r_1 = 0; r_1 < 32; ++r_1) {
          #pragma unroll
          for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
            acc_o[r * 2 + r_1 * 4 + r_2] = acc_o[r * 2 + r_1 * 4 + r_2] * scores_scale[r];
          }
        }
      }
      // mla_decode.cpp:60
      tw_hold(acc_o);
      tw_wgmma_fence();
      #pragma unroll
      for (int32_t k = 0; k < 4; ++k) {
        tw_wgmma_m64n256k16_f32_bf16_bf16_tb(acc_o, tw_matrix<0x4000004000010000ull>(S_shared_handed, k * 2), tw_matrix<0x4000004002000000ull>(KV_shared_right, k * 128 + 2048), 1);
      }
      // mla_decode.cpp:41
      tw_wgmma_commit();
      tw_wait(ready_later, 1);
      #pragma unroll
      for (int32_t r = 0; r < 2; ++r) {
        logsum[r] = logsum_handed[(thread >> 5) * 16 + r * 8 + ((thread & 31) >> 2)];
      }
      tw_wgmma_wait<0>();
      tw_hold(acc_o);
    }
    // mla_decode.cpp:62
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 32; ++r_1) {
        #pragma unroll
        for (int32_t r_2 = 0; r_2 < 2; ++r_2) {
          acc_o[r * 2 + r_1 * 4 + r_2] = acc_o[r * 2 + r_1 * 4 + r_2] / logsum[r];
        }
      }
    }
    // mla_decode.cpp:41
    #pragma unroll
    for (int32_t r = 0; r < 2; ++r) {
      #pragma unroll
      for (int32_t r_1 = 0; r_1 < 32; ++r_1) {
        alignas(16) uint16_t Q_shared_right_vector[2];
        __float22bfloat162_rn(Q_shared_right_vector, acc_o[r * 2 + r_1 * 4], acc_o[r * 2 + r_1 * 4 + 1]);
        *(uint32_t*)&Q_shared_right[(thread >> 5) * 1024 + r * 512 + ((thread & 31) >> 2) * 64 + (r_1 * 8 + (thread & 3) * 2 >> 6) * 4096 + ((r_1 * 8 + (thread & 3) * 2 & 63) ^ ((((thread & 31) >> 2) * 64 >> 3) & 56))] = *(const uint32_t*)Q_shared_right_vector;
      }
    }
    tw_fence_async_shared();
    tw_sync_threads<128>(7);
    if (warp == 4) {
      if (tw_elect()) {
        tw_tma_store_3d(Q_shared_right, &Output_map, 256, by * 64, bx);
        tw_tma_store_3d(Q_shared_right + 4096, &Output_map, 320, by * 64, bx);
        tw_tma_store_3d(Q_shared_right + 8192, &Output_map, 384, by * 64, bx);
        tw_tma_store_3d(Q_shared_right + 12288, &Output_map, 448, by * 64, bx);
        tw_bulk_commit();
        tw_bulk_wait<0>();
      }
    }
  }
}

