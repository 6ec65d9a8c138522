// What sm_90a has beside loads and stores: mbarriers (PTX ISA 9.7.13.15), TMA (9.7.9.27), wgmma (9.7.15), setmaxnreg.

//@ tw_tensor_map: types
struct alignas(64) tw_tensor_map {
  uint64_t words[16];
};

//@ tw_shared_address: types
__device__ __forceinline__ uint32_t tw_shared_address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

// griddepcontrol (PTX ISA 9.7.13.13) under the names that CUDA's headers give it. The memory of the grids before is
// there behind the wait: no load may be moved up over it.
//@ cudaGridDependencySynchronize: types
__device__ __forceinline__ void cudaGridDependencySynchronize() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

//@ cudaTriggerProgrammaticLaunchCompletion: types
__device__ __forceinline__ void cudaTriggerProgrammaticLaunchCompletion() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

//@ tw_elect: types
__device__ __forceinline__ bool tw_elect() {
  uint32_t chosen;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(chosen));
  return chosen != 0;
}

//@ tw_init_barrier: tw_shared_address
__device__ __forceinline__ void tw_init_barrier(uint64_t* barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(tw_shared_address(barrier)), "r"(arrivals) : "memory");
}

//@ tw_fence_barrier_init: types
__device__ __forceinline__ void tw_fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

//@ tw_arrive: tw_shared_address
__device__ __forceinline__ void tw_arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(tw_shared_address(barrier)) : "memory");
}

// Once what this thread has copied by cp.async is there; counted among the arrivals.
//@ tw_arrive_copied: tw_shared_address
__device__ __forceinline__ void tw_arrive_copied(uint64_t* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(tw_shared_address(barrier)) : "memory");
}

// At the mbarrier of that block of the cluster. Who waits there brings by TMA what this block's threads have read: a
// release of shared memory alone is enough, one of the whole cluster would wait for the device.
//@ tw_arrive_at: tw_shared_address
__device__ __forceinline__ void tw_arrive_at(uint64_t* barrier, uint32_t block) {
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
      "fence.release.sync_restrict::shared::cta.cluster;\n"
      "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [there];\n}" ::"r"(tw_shared_address(barrier)),
      "r"(block)
      : "memory");
}

// The same for who reads there what this thread knows to be written, in the memory of that block too.
//@ tw_arrive_written: tw_shared_address
__device__ __forceinline__ void tw_arrive_written(uint64_t* barrier, uint32_t block) {
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}" ::"r"(tw_shared_address(barrier)),
      "r"(block)
      : "memory");
}

// Several of these are told of behind one fence, which waits for all that the thread has written.
//@ tw_fence_cluster: types
__device__ __forceinline__ void tw_fence_cluster() { asm volatile("fence.acq_rel.cluster;" ::: "memory"); }

//@ tw_arrive_behind_fence: tw_shared_address
__device__ __forceinline__ void tw_arrive_behind_fence(uint64_t* barrier, uint32_t block) {
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [there];\n}" ::"r"(tw_shared_address(barrier)),
      "r"(block)
      : "memory");
}

// Where that block of the cluster has what lies here in this one's shared memory.
//@ tw_map_shared: types
__device__ __forceinline__ void* tw_map_shared(const void* here, uint32_t block) {
  uint64_t there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(here), "r"(block));
  return (void*)there;
}

//@ tw_arrive_cluster: types
__device__ __forceinline__ void tw_arrive_cluster() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }

// Of a block that has written nothing as yet.
//@ tw_arrive_cluster_first: types
__device__ __forceinline__ void tw_arrive_cluster_first() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}

//@ tw_wait_cluster: types
__device__ __forceinline__ void tw_wait_cluster() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }

//@ tw_sync_cluster: types
__device__ __forceinline__ void tw_sync_cluster() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

//@ tw_expect: tw_shared_address
__device__ __forceinline__ void tw_expect(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(tw_shared_address(barrier)), "r"(bytes)
               : "memory");
}

//@ tw_arrive_expect: tw_shared_address
__device__ __forceinline__ void tw_arrive_expect(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(tw_shared_address(barrier)), "r"(bytes)
               : "memory");
}

// A run of memory, none of a tensor's boxes.
//@ tw_bulk_load: tw_shared_address
__device__ __forceinline__ void tw_bulk_load(void* shared, const void* from, uint32_t bytes, uint64_t* full) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   tw_shared_address(shared)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(tw_shared_address(full))
               : "memory");
}

// At the barrier of that block of the cluster, of bytes that are stored to it.
//@ tw_arrive_expect_at: tw_shared_address
__device__ __forceinline__ void tw_arrive_expect_at(uint64_t* barrier, uint32_t block, uint32_t bytes) {
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [there], %2;\n}" ::"r"(
          tw_shared_address(barrier)),
      "r"(block), "r"(bytes)
      : "memory");
}

// Where that block has what lies here in this one, and at its barrier.
//@ tw_store_to_peer: tw_shared_address
__device__ __forceinline__ void tw_store_to_peer(void* place, uint64_t* barrier, uint32_t block, uint32_t value) {
  asm volatile(
      "{\n.reg .b32 there, told;\nmapa.shared::cluster.u32 there, %0, %2;\nmapa.shared::cluster.u32 told, %1, %2;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [there], %3, [told];\n}" ::"r"(
          tw_shared_address(place)),
      "r"(tw_shared_address(barrier)), "r"(block), "r"(value)
      : "memory");
}
__device__ __forceinline__ void tw_store_to_peer(void* place, uint64_t* barrier, uint32_t block, uint64_t value) {
  asm volatile(
      "{\n.reg .b32 there, told;\nmapa.shared::cluster.u32 there, %0, %2;\nmapa.shared::cluster.u32 told, %1, %2;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.u64 [there], %3, [told];\n}" ::"r"(
          tw_shared_address(place)),
      "r"(tw_shared_address(barrier)), "r"(block), "l"(value)
      : "memory");
}

//@ tw_wait: tw_shared_address
__device__ __forceinline__ void tw_wait(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra over;\n"
      "bra again;\nover:\n}" ::"r"(tw_shared_address(barrier)),
      "r"(parity)
      : "memory");
}

// For what other blocks of the cluster have written to this one's memory, too.
//@ tw_wait_written: tw_shared_address
__device__ __forceinline__ void tw_wait_written(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
      "@done bra over;\nbra again;\nover:\n}" ::"r"(tw_shared_address(barrier)),
      "r"(parity)
      : "memory");
}

// A matrix descriptor: `shared` and `own` are its address in units of 16 bytes, of which all turns of an unrolled loop
// have the first. It is added up once, in the loop: outside, all of a loop's descriptors would fill registers.
// Its upper half is a constant, which ptxas would write anew in front of each wgmma. What it cannot know stays in the
// registers of the descriptor before: dynamic_smem_size >> shift is 0, as blocks have less than 2^18 bytes. Values that
// are alike are one, and copied, so statements take different shifts.
//@ tw_matrix: tw_shared_address
template <uint64_t layout, int shift>
__device__ __forceinline__ uint64_t tw_matrix(uint32_t shared, uint32_t own) {
  uint32_t bytes;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
  asm volatile("" : "+r"(shared), "+r"(bytes));
  uint64_t out;
  asm("mov.b64 %0, {%1, %2};"
      : "=l"(out)
      : "r"(shared + ((uint32_t)layout + own)), "r"((uint32_t)(layout >> 32) + (bytes >> shift)));
  return out;
}

//@ tw_hold: types
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

//@ tw_branch: types
// A loop without a turn, though ptxas cannot know (src/analysis/wgmma_blocks.h). Of what was tried, a trap in its place
// makes ptxas wait for groups that are under way (C7517), and a loop without a statement is dropped.
__device__ __forceinline__ void tw_branch() {
  uint32_t bytes;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
  asm volatile(
      "{\n.reg .pred never;\nsetp.eq.u32 never, %0, 0xffffffff;\nagain:\n@!never bra over;\nnanosleep.u32 1;\n"
      "bra again;\nover:\n}" ::"r"(bytes)
      : "memory");
}

//@ tw_wgmma_fence: types
__device__ __forceinline__ void tw_wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

//@ tw_wgmma_commit: types
__device__ __forceinline__ void tw_wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

//@ tw_wgmma_wait: types
template <int pending>
__device__ __forceinline__ void tw_wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

//@ tw_bulk_commit: types
__device__ __forceinline__ void tw_bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

//@ tw_bulk_wait: types
template <int pending>
__device__ __forceinline__ void tw_bulk_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}

// Until global memory has what was stored, so that what is stored next comes after it.
//@ tw_bulk_wait_written: types
template <int pending>
__device__ __forceinline__ void tw_bulk_wait_written() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(pending) : "memory");
}

// All threads of so many that have come to this barrier of the block go on; or one that does not wait is counted.
//@ tw_sync_threads: types
template <int threads>
__device__ __forceinline__ void tw_sync_threads(int32_t barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(threads) : "memory");
}

//@ tw_arrive_threads: types
template <int threads>
__device__ __forceinline__ void tw_arrive_threads(int32_t barrier) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(threads) : "memory");
}

// What threads have written in shared memory, or anywhere, is seen by TMA and wgmma.
//@ tw_fence_async_shared: types
__device__ __forceinline__ void tw_fence_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

//@ tw_fence_async: types
__device__ __forceinline__ void tw_fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

// So many registers for each thread of the warpgroup: more than before, or fewer.
//@ tw_take_registers: types
template <int count>
__device__ __forceinline__ void tw_take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

//@ tw_leave_registers: types
template <int count>
__device__ __forceinline__ void tw_leave_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}

// What ptxas 13.0 merges wrongly, written so that it does not merge it: max(0, min(x, y)) == x, which it answers the
// wrong way around, and min(min(x, -y), z), of which it forgets the sign.
//@ tw_equal: types
__device__ __forceinline__ bool tw_equal(int32_t x, int32_t y) {
  int32_t difference;
  asm("xor.b32 %0, %1, %2;" : "=r"(difference) : "r"(x), "r"(y));
  return difference == 0;
}

// The lower bits with their sign. ptxas 13.0 takes the opposite of int16 for one that needs no such step: that of
// -32768 became 32768. Behind this it is made in 32 bits.
//@ tw_signed_low: types
template <int bits>
__device__ __forceinline__ int32_t tw_signed_low(int32_t x) {
  int32_t low;
  asm("bfe.s32 %0, %1, 0, %2;" : "=r"(low) : "r"(x), "n"(bits));
  return low;
}

//@ tw_min: types
__device__ __forceinline__ int32_t tw_min(int32_t x, int32_t y) {
  int32_t least;
  asm("{.reg .b32 a, b;\n not.b32 a, %1;\n not.b32 b, %2;\n max.s32 a, a, b;\n not.b32 %0, a;}"
      : "=r"(least)
      : "r"(x), "r"(y));
  return least;
}

//@ tw_max: types
__device__ __forceinline__ int32_t tw_max(int32_t x, int32_t y) {
  int32_t most;
  asm("{.reg .b32 a, b;\n not.b32 a, %1;\n not.b32 b, %2;\n min.s32 a, a, b;\n not.b32 %0, a;}"
      : "=r"(most)
      : "r"(x), "r"(y));
  return most;
}

//@ tw_choose: types
__device__ __forceinline__ int32_t tw_choose(bool first, int32_t x, int32_t y) {
  int32_t chosen;
  asm("{.reg .pred p;\n setp.ne.s32 p, %1, 0;\n selp.b32 %0, %2, %3, p;}"
      : "=r"(chosen)
      : "r"((int32_t)first), "r"(x), "r"(y));
  return chosen;
}

// Loads where `inside` is true (PTX ISA 9.7.9.8), else `to` stays: without a branch, which the device's compiler makes
// of an if, and in which it waits for one load before it begins the next. `constant`: nobody changes it while the
// kernel runs.
//@ tw_load_if: types
template <bool constant>
__device__ __forceinline__ void tw_load_if(bool inside, uint16_t* to, const uint16_t* from) {
  uint16_t v = *to;
  if constexpr (constant)
    asm("{\n.reg .pred p;\nsetp.ne.b32 p, %2, 0;\n@p ld.global.nc.u16 %0, [%1];\n}"
        : "+h"(v)
        : "l"(__cvta_generic_to_global(from)), "r"((int32_t)inside));
  else
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %2, 0;\n@p ld.global.u16 %0, [%1];\n}"
                 : "+h"(v)
                 : "l"(__cvta_generic_to_global(from)), "r"((int32_t)inside)
                 : "memory");
  *to = v;
}
template <bool constant>
__device__ __forceinline__ void tw_load_if(bool inside, uint32_t* to, const uint32_t* from) {
  uint32_t v = *to;
  if constexpr (constant)
    asm("{\n.reg .pred p;\nsetp.ne.b32 p, %2, 0;\n@p ld.global.nc.u32 %0, [%1];\n}"
        : "+r"(v)
        : "l"(__cvta_generic_to_global(from)), "r"((int32_t)inside));
  else
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %2, 0;\n@p ld.global.u32 %0, [%1];\n}"
                 : "+r"(v)
                 : "l"(__cvta_generic_to_global(from)), "r"((int32_t)inside)
                 : "memory");
  *to = v;
}
template <bool constant>
__device__ __forceinline__ void tw_load_if(bool inside, uint2* to, const uint2* from) {
  uint2 v = *to;
  if constexpr (constant)
    asm("{\n.reg .pred p;\nsetp.ne.b32 p, %3, 0;\n@p ld.global.nc.v2.u32 {%0, %1}, [%2];\n}"
        : "+r"(v.x), "+r"(v.y)
        : "l"(__cvta_generic_to_global(from)), "r"((int32_t)inside));
  else
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %3, 0;\n@p ld.global.v2.u32 {%0, %1}, [%2];\n}"
                 : "+r"(v.x), "+r"(v.y)
                 : "l"(__cvta_generic_to_global(from)), "r"((int32_t)inside)
                 : "memory");
  *to = v;
}
template <bool constant>
__device__ __forceinline__ void tw_load_if(bool inside, uint4* to, const uint4* from) {
  uint4 v = *to;
  if constexpr (constant)
    asm("{\n.reg .pred p;\nsetp.ne.b32 p, %5, 0;\n@p ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
        : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
        : "l"(__cvta_generic_to_global(from)), "r"((int32_t)inside));
  else
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %5, 0;\n@p ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
                 : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
                 : "l"(__cvta_generic_to_global(from)), "r"((int32_t)inside)
                 : "memory");
  *to = v;
}
template <bool constant>
__device__ __forceinline__ void tw_load_if(bool inside, uint8_t* to, const uint8_t* from) {
  uint16_t v = *to;
  if constexpr (constant)
    asm("{\n.reg .pred p;\nsetp.ne.b32 p, %2, 0;\n@p ld.global.nc.u8 %0, [%1];\n}"
        : "+h"(v)
        : "l"(__cvta_generic_to_global(from)), "r"((int32_t)inside));
  else
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %2, 0;\n@p ld.global.u8 %0, [%1];\n}"
                 : "+h"(v)
                 : "l"(__cvta_generic_to_global(from)), "r"((int32_t)inside)
                 : "memory");
  *to = (uint8_t)v;
}
// Other types of those sizes, as such a word.
template <int bytes>
struct tw_loaded;
template <>
struct tw_loaded<1> {
  using type = uint8_t;
};
template <>
struct tw_loaded<2> {
  using type = uint16_t;
};
template <>
struct tw_loaded<4> {
  using type = uint32_t;
};
template <>
struct tw_loaded<8> {
  using type = uint2;
};
template <>
struct tw_loaded<16> {
  using type = uint4;
};
template <bool constant, class T>
__device__ __forceinline__ void tw_load_if(bool inside, T* to, const T* from) {
  using Word = typename tw_loaded<sizeof(T)>::type;
  tw_load_if<constant>(inside, (Word*)to, (const Word*)from);
}

// What is there where `inside` is true, else zero.
//@ tw_load_or_zero: tw_load_if
template <bool constant, class T>
__device__ __forceinline__ T tw_load_or_zero(bool inside, const T* from) {
  T v{};
  tw_load_if<constant>(inside, &v, from);
  return v;
}

// Stores of 8 and 16 bytes in global memory that stay whole: the device's compiler takes an assignment apart, and does
// not put it together again where its place is a sum of several names (PTX ISA 9.7.9.12).
//@ tw_store: types
__device__ __forceinline__ void tw_store(uint2* to, uint2 v) {
  asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "r"(v.x), "r"(v.y) : "memory");
}
__device__ __forceinline__ void tw_store(float2* to, float2 v) {
  asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "f"(v.x), "f"(v.y) : "memory");
}
__device__ __forceinline__ void tw_store(uint4* to, uint4 v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "r"(v.x), "r"(v.y),
               "r"(v.z), "r"(v.w)
               : "memory");
}
__device__ __forceinline__ void tw_store(float4* to, float4 v) {
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "f"(v.x), "f"(v.y),
               "f"(v.z), "f"(v.w)
               : "memory");
}

// Additions of neighbours in global memory, each of them atomic (PTX ISA 9.7.13.7, red).
//@ tw_add_f32x2: types
__device__ __forceinline__ void tw_add_f32x2(void* to, const float* v) {
  asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "f"(v[0]),
               "f"(v[1])
               : "memory");
}
//@ tw_add_f32x4: types
__device__ __forceinline__ void tw_add_f32x4(void* to, const float* v) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
               "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3])
               : "memory");
}
//@ tw_add_f16x2x1: types
__device__ __forceinline__ void tw_add_f16x2x1(void* to, const uint16_t* pairs) {
  asm volatile("red.relaxed.gpu.global.add.noftz.f16x2 [%0], %1;" ::"l"(__cvta_generic_to_global(to)),
               "r"(*(const uint32_t*)pairs)
               : "memory");
}
//@ tw_add_f16x2x2: types
__device__ __forceinline__ void tw_add_f16x2x2(void* to, const uint16_t* pairs) {
  const uint2 v = *(const uint2*)pairs;
  asm volatile("red.relaxed.gpu.global.add.noftz.v2.f16x2 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)),
               "r"(v.x), "r"(v.y)
               : "memory");
}
//@ tw_add_f16x2x4: types
__device__ __forceinline__ void tw_add_f16x2x4(void* to, const uint16_t* pairs) {
  const uint4 v = *(const uint4*)pairs;
  asm volatile("red.relaxed.gpu.global.add.noftz.v4.f16x2 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
               "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}
//@ tw_add_bf16x2x1: types
__device__ __forceinline__ void tw_add_bf16x2x1(void* to, const uint16_t* pairs) {
  asm volatile("red.relaxed.gpu.global.add.noftz.bf16x2 [%0], %1;" ::"l"(__cvta_generic_to_global(to)),
               "r"(*(const uint32_t*)pairs)
               : "memory");
}
//@ tw_add_bf16x2x2: types
__device__ __forceinline__ void tw_add_bf16x2x2(void* to, const uint16_t* pairs) {
  const uint2 v = *(const uint2*)pairs;
  asm volatile("red.relaxed.gpu.global.add.noftz.v2.bf16x2 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)),
               "r"(v.x), "r"(v.y)
               : "memory");
}
//@ tw_add_bf16x2x4: types
__device__ __forceinline__ void tw_add_bf16x2x4(void* to, const uint16_t* pairs) {
  const uint4 v = *(const uint4*)pairs;
  asm volatile("red.relaxed.gpu.global.add.noftz.v4.bf16x2 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
               "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}

// One addition, where the device has no function for the type.
//@ tw_add_f16: types
__device__ __forceinline__ void tw_add_f16(void* to, uint16_t v) {
  asm volatile("red.relaxed.gpu.global.add.noftz.f16 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "h"(v) : "memory");
}
//@ tw_atomic_add_f16: types
__device__ __forceinline__ uint16_t tw_atomic_add_f16(void* to, uint16_t v) {
  uint16_t old;
  asm volatile("atom.relaxed.gpu.global.add.noftz.f16 %0, [%1], %2;"
               : "=h"(old)
               : "l"(__cvta_generic_to_global(to)), "h"(v)
               : "memory");
  return old;
}
//@ tw_add_bf16: types
__device__ __forceinline__ void tw_add_bf16(void* to, uint16_t v) {
  asm volatile("red.relaxed.gpu.global.add.noftz.bf16 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "h"(v)
               : "memory");
}
//@ tw_atomic_add_bf16: types
__device__ __forceinline__ uint16_t tw_atomic_add_bf16(void* to, uint16_t v) {
  uint16_t old;
  asm volatile("atom.relaxed.gpu.global.add.noftz.bf16 %0, [%1], %2;"
               : "=h"(old)
               : "l"(__cvta_generic_to_global(to)), "h"(v)
               : "memory");
  return old;
}

// One of two values that are both there: no branch.
//@ tw_select: types
template <class T>
__device__ __forceinline__ T tw_select(bool first, T x, T y) {
  return first ? x : y;
}

// Bits of an offset that its higher bits exchange, so that rows begin in different banks.
//@ tw_swizzle: types
template <int shift, int mask, class T>
__device__ __forceinline__ T tw_swizzle(T at) {
  return at ^ (at >> shift & mask);
}
