"""Rows that are looked up, by asynchronous copies of each thread's own."""
import tilewright.language as T


@T.prim_func
def rows_in_two_tiles(A: T.Tensor((64, 32), "float16"), I: T.Tensor((16,), "int32"), B: T.Tensor((16, 32), "float16")):
    with T.Kernel(1, threads=32):
        low, high = T.alloc_shared((16, 16), "float16"), T.alloc_shared((16, 16), "float16")
        ready = T.alloc_barrier([32])
        tx = T.get_thread_binding()
        row = T.alloc_local([1], "int32")
        row[0] = I[tx // 2]
        with T.attr("default", "async_scope", 1):
            for v in T.vectorized(8):
                low[tx // 2, tx % 2 * 8 + v] = A[row[0], tx % 2 * 8 + v]
                high[tx // 2, tx % 2 * 8 + v] = A[row[0], 16 + tx % 2 * 8 + v]
        T.cp_async_barrier_noinc(ready[0])
        T.barrier_wait(ready[0], 0)
        for i, j in T.Parallel(16, 16):
            B[i, j] = low[15 - i, j]
            B[i, 16 + j] = high[15 - i, j]
