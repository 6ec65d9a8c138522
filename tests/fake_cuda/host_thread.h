// What a kernel that runs on the host (device.h) and who runs its threads (host_threads.cpp) know of each other.
#pragma once

struct HostThread {
  struct {
    unsigned x, y, z;
  } thread, block, threads, blocks;
  unsigned lane;  // of its warp
  unsigned rank;  // of its block in the cluster
  unsigned char* shared;
  unsigned shared_bytes;
};

// What threads do with others. Each call may let others run first.
struct HostCalls {
  void (*turn)();                                        // others run: of who waits in a loop
  void (*arrive)(int barrier, int threads);              // of so many; 0: all that there are of the block
  void (*sync)(int barrier, int threads);                // and goes on when all have
  int (*count)(int holds);                               // __syncthreads_count
  void* const* (*exchange)(unsigned lanes, void* mine);  // what all of these lanes have brought, by lane
  void (*leave)(unsigned lanes);                         // until all have read it
  void (*arrive_cluster)();
  void (*wait_cluster)();
  unsigned char* (*shared_of)(unsigned rank);
  // A box between shared memory and a tensor: 'l'oad, 's'tore, or the first letters of a reduction. Its bytes.
  unsigned (*box)(const char* how, void* shared, const void* map, const int* at, unsigned rank);
  // "tw_wgmma_m64n8k16_f32_f16_f16_ta": a thread's part of the product; of A in registers by the lanes of its warp.
  void (*wgmma)(const char* name, void* c, void* const* a_words, unsigned long long a, unsigned long long b,
                bool accumulate);
  void (*fault)(const char* what);  // the launch fails with this; the first one counts
};
