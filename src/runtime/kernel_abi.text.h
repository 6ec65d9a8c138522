/* What the runtime and a compiled kernel agree on; the head of every CPU kernel's text, so no includes and plain types.
 */
#ifndef TW_KERNEL_ABI
#define TW_KERNEL_ABI
struct tw_call {
  void* const* buffers;      /* the tensor parameters in order (null where null was given), then the workspaces */
  const long long* integers; /* the symbols in order, then the scalar parameters in order */
  void* host;                /* for report */
  /* A print or a failed assertion: row of the launch plan's sites, block (x, y, z) and thread (x, y, z), values. May be
     called by several threads at a time. */
  void (*report)(void* host, int site, const long long* place, const unsigned long long* values, int count);
  int max_threads; /* at most so many threads, at least 1 */
  /* Code that waits for other code of the call. Each gives 0, or 1 once nothing that anybody waits for can come.
     Runs `count` pieces in turns on this thread until all are done. */
  int (*run_strands)(void* host, int count, void (*const* code)(void*), void* const* arguments);
  /* Runs code(argument, b) for every block b, all of them under way at a time: each is `strands` pieces that come to
     sync_grid, and wants `stack_bytes` for its tiles. */
  int (*run_blocks)(void* host, int threads, long long blocks, int strands, long long stack_bytes,
                    void (*code)(void*, long long), void* argument);
  /* Until ready(argument) is not 0; without `ready`, until the others have had their turn. */
  int (*wait_for)(void* host, int (*ready)(const void*), const void* argument);
  /* Until all pieces of all blocks are here. */
  int (*sync_grid)(void* host);
};
/* A value in 64 bits (scalar parameters, reported values): integers and bool sign- or zero-extended; floating types of
   up to 32 bits as the binary32 of their value in the low half; float64 as it is. */
/* The one symbol of a kernel; 0, or nonzero after a failed assertion was reported. */
extern "C" __attribute__((visibility("default"))) int tw_entry(const struct tw_call* call);
#endif
