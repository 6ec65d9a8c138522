// Code of a CPU kernel that waits for other code of the kernel: the roles of a block take turns on one thread, and
// blocks that meet at a barrier of the grid are spread over the threads, each with a stack of its own.
#pragma once

namespace tilewright::runtime {

// What kernel_abi.text.h says of each. All of them give 0, or 1 when nothing that is waited for can come any more: then
// every wait gives 1, so that the code can come to its end.
int run_strands(void* host, int count, void (*const* code)(void*), void* const* arguments);
int run_blocks(void* host, int threads, long long blocks, int strands, long long stack_bytes,
               void (*code)(void*, long long), void* argument);
int wait_for(void* host, int (*ready)(const void*), const void* argument);
int sync_grid(void* host);

}  // namespace tilewright::runtime
