// Instructions on tiles by their numbers (Intel SDM, AMX), as inline assembly: compilers have them under different
// names. Put before a gemm that has any; a test may stand in for the processor by defining them first.
#ifndef tw_tile_load
#define tw_tile_configure(at) asm volatile("ldtilecfg (%0)" ::"r"(at) : "memory")
#define tw_tile_zero(n) asm volatile("tilezero %%tmm" #n ::)
#define tw_tile_load(n, at, bytes) \
  asm volatile("tileloadd (%0,%1,1), %%tmm" #n ::"r"(at), "r"((int64_t)(bytes)) : "memory")
#define tw_tile_store(n, at, bytes) \
  asm volatile("tilestored %%tmm" #n ", (%0,%1,1)" ::"r"(at), "r"((int64_t)(bytes)) : "memory")
#define tw_tile_product(name, c, a, b) asm volatile(#name " %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::)
#define tw_tile_release() asm volatile("tilerelease" ::)
#endif
#ifndef TW_WHOLE_TILES
#define TW_WHOLE_TILES
// All tiles as large as they may be, which every product finds and leaves: to set their shapes takes 200 cycles.
static const uint8_t tw_whole_tiles[64] __attribute__((aligned(64))) = {
    1,  0, 0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 64, 0, 64, 0,  64, 0,  64, 0,  64, 0,
    64, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0, 0,  0, 16, 16, 16, 16, 16, 16, 16, 16};
struct tw_use_tiles {
  tw_use_tiles() { tw_tile_configure(tw_whole_tiles); }
  ~tw_use_tiles() { tw_tile_release(); }
};
#endif
