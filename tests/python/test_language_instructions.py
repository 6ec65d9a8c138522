"""Threads, copies in bulk and products of warps by the names of the instructions: each compared with NumPy on the engines."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
from on_engines import every_engine, run, run_on_hopper, two_engines


# ---- threads


@every_engine
def test_places_of_threads_and_blocks(engine):
    @T.prim_func
    def main(B: T.Tensor((2, 3, 64, 8), "int32")):
        with T.Kernel(2, 3, threads=64) as (bx, by):
            t = T.get_thread_binding(0)
            B[bx, by, t, 0] = T.get_block_binding(1) + T.get_block_bindings()[0] * 10
            B[bx, by, t, 1] = T.get_thread_extent(0) + T.get_thread_extents()[1]
            B[bx, by, t, 2] = T.get_block_extent(1) * 10 + T.get_block_extents()[0]
            B[bx, by, t, 3] = T.get_thread_bindings()[0] + T.launch_thread("blockIdx.y", 3) * 100
            B[bx, by, t, 4] = T.get_warp_idx_sync() * 10 + T.get_warp_group_idx()
            B[bx, by, t, 5] = T.if_then_else(T.shuffle_elect(64), 1, 0)
            tx = T.env_thread("threadIdx.x")
            B[bx, by, t, 6] = T.launch_thread(tx, 64)
            x = T.int32()
            T.let(x, t * 2)
            B[bx, by, t, 7] = x
            if t >= 60:
                T.thread_return()
            B[bx, by, t, 7] = 0

    b = np.empty((2, 3, 64, 8), "int32")
    run(main, engine, b)
    for bx, by, t in np.ndindex(2, 3, 64):
        want = [by + 10 * bx, 65, 32, t + by * 100, t // 32 * 10, t == 0, t, t * 2 if t >= 60 else 0]
        assert b[bx, by, t].tolist() == want


@every_engine
def test_exchanges_of_a_warp(engine):
    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), B: T.Tensor((20, 32), "int32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            x = A[t]
            B[0, t] = T.shfl_sync(x, srcLane=5)
            B[1, t] = T.shfl_up(x, delta=1)
            B[2, t] = T.shfl_down(x, delta=2)
            B[3, t] = T.shfl_xor(x, delta=3)
            B[4, t] = T.cast(T.any_sync(x > 30), "int32")
            B[5, t] = T.cast(T.all_sync(x > -1), "int32")
            B[6, t] = T.cast(T.ballot_sync(x < 3), "int32")
            B[7, t] = T.cast(T.ballot(x < 4), "int32")
            B[8, t] = T.cast(T.activemask(), "int32")
            B[9, t] = T.cast(T.match_any_sync(value=x % 16), "int32")
            B[10, t] = T.cast(T.match_all_sync(value=x * 0), "int32")
            B[11, t] = T.cast(T.syncthreads_and(x >= 0), "int32")
            B[12, t] = T.cast(T.syncthreads_or(x > 40), "int32")
            B[13, t] = T.cast(T.syncthreads_count(x < 7), "int32")
            T.sync_warp()
            B[14, t] = T.warp_reduce_max(x)
            B[15, t] = T.warp_reduce_min(x)
            B[16, t] = T.warp_reduce_bitand(x + 8)
            B[17, t] = T.warp_reduce_bitor(x)
            B[18, t] = T.tvm_warp_activemask()
            T.tvm_storage_sync("shared")
            B[19, t] = T.warp_reduce_sum(x)

    a, b = np.arange(32, dtype="int32"), np.empty((20, 32), "int32")
    run(main, engine, a, b)
    x = a
    want = [np.full(32, 5), np.maximum(x - 1, 0), np.where(x + 2 < 32, x + 2, x), x ^ 3, np.full(32, 1), np.full(32, 1), np.full(32, 7),
            np.full(32, 15), np.full(32, -1), (1 << (x % 16) | 1 << (x % 16 + 16)), np.full(32, -1), np.full(32, 1), np.full(32, 0),
            np.full(32, 7), np.full(32, 31), np.full(32, 0), np.full(32, np.bitwise_and.reduce(x + 8)), np.full(32, 31), np.full(32, -1),
            np.full(32, 496)]  # fmt: skip
    for k, row in enumerate(want):
        assert (b[k] == np.array(row, "int64").astype("int32")).all(), k


@every_engine
def test_votes_of_a_mask(engine):
    """Groups of eight lanes vote among themselves at once, each by its own mask; halves in a branch of theirs."""

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((7, 64), "int32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            x = A[t]
            group = T.shift_left(T.uint32(0xFF), T.cast(t % 32 // 8 * 8, "uint32"))
            B[0, t] = T.cast(T.any_sync(x > 3, group), "int32")
            B[1, t] = T.cast(T.all_sync(x > 0, mask=group), "int32")
            B[2, t] = T.cast(T.ballot_sync(x > 1, group), "int32")
            B[3, t] = T.cast(T.match_any_sync(x, group), "int32")
            B[4, t] = T.cast(T.match_all_sync(x // 3, group), "int32")
            if t % 32 < 16:
                B[5, t] = T.cast(T.ballot_sync(x > 2, 0xFFFF), "int32")
            else:
                B[5, t] = T.cast(T.ballot_sync(x > 1, 0xFFFF0000), "int32")
            B[6, t] = T.cast(T.ballot_sync(x > 2, -1), "int32")

    a, b = np.random.default_rng(0).integers(0, 5, 64).astype("int32"), np.empty((7, 64), "int32")
    a[8:16], a[40:48] = 1, 4
    run(main, engine, a, b)
    for t in range(64):
        first, x = t // 32 * 32, a[t]
        group, half, warp = ([q for q in range(64) if q // n == t // n] for n in (8, 16, 32))

        def bits(lanes, which):
            return np.int64(sum(1 << (q - first) for q in lanes if which(a[q]))).astype("int32")

        same = all(a[q] // 3 == x // 3 for q in group)
        want = [any(a[group] > 3), all(a[group] > 0), bits(group, lambda v: v > 1), bits(group, lambda v: v == x),
                bits(group, lambda _: same), bits(half, lambda v: v > (2 if t % 32 < 16 else 1)), bits(warp, lambda v: v > 2)]  # fmt: skip
        assert b[:, t].tolist() == want, t


def test_a_mask_comes_behind_what_is_voted_about():
    with pytest.raises(tw.CompileError, match="the mask of ballot_sync is an integer, but this is bool"):

        @T.prim_func
        def main(A: T.Tensor((32,), "int32")):
            with T.Kernel(1, threads=32):
                A[0] = T.cast(T.ballot_sync(0xFFFFFFFF, A[0] > 0), "int32")


@every_engine
def test_atomics_and_conditions(engine):
    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            T.atomic_min(B[0], A[t])
            T.atomic_or(B[1], T.shift_left(1, t))
            T.sync_threads()
            if t == 0:
                B[2] = T.if_then_else(T.any_of(A[0:4]), 1, 0) + T.if_then_else(T.all_of(A[0:4]), 10, 0)
                T.atomic_store(B[3], src=T.atomic_load(A[3]))

    a, b = np.arange(5, 37, dtype="int32"), np.array([100, 0, 0, 0], "int32")
    run(main, engine, a, b)
    assert b.tolist() == [5, -1, 11, 8]


def test_barriers_of_clusters():
    @T.prim_func
    def main(B: T.Tensor((4, 64), "int32")):
        with T.ClusterKernel(4, cluster_dims=2, threads=64) as b:
            t = T.get_thread_binding()
            arrived = T.alloc_cluster_barrier(64)
            T.cluster_arrive_relaxed()
            T.cluster_wait()
            T.ptx_arrive_cluster_barrier(arrived, 1 - T.block_rank_in_cluster())
            T.mbarrier_wait_parity(arrived, 0)
            T.cluster_sync()
            B[b, t] = T.get_cluster_extent(0) * 10 + T.block_rank_in_cluster()

    b = np.empty((4, 64), "int32")
    run_on_hopper(main, "simulator", b)
    assert (b == 20 + (np.arange(4) % 2)[:, None]).all()


# ---- copies in bulk, barriers by number


@two_engines
def test_barriers_by_number(engine):
    @T.prim_func
    def main(A: T.Tensor((2, 64), "float32"), B: T.Tensor((2, 64), "float32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((2, 64), "float32")
            t = T.get_thread_binding()
            T.create_barriers(2)
            T.ptx_init_barrier_thread_count(0, 1)
            T.ptx_init_barrier_thread_count(1, 32)
            T.ptx_fence_barrier_init()
            if t == 0:
                T.ptx_arrive_barrier_expect_tx(0, 256)
            T.ptx_cp_async_bulk("float32", S.data, 0, A.data, 64, 256, 0)
            T.ptx_wait_barrier(0)
            T.ptx_cp_async(T.access_ptr(S[1, t * 2], "w"), T.access_ptr(A[0, t * 2], "r"), 2)
            T.ptx_cp_async_barrier(1)
            T.ptx_arrive_barrier(1)
            T.ptx_wait_barrier(1)
            T.fence_proxy_async()
            T.copy(S, B)

    a, b = np.arange(128, dtype="float32").reshape(2, 64), np.empty((2, 64), "float32")
    run_on_hopper(main, engine, a, b)
    assert (b == a[::-1]).all()
    with pytest.raises(tw.CompileError, match="ptx_wait_barrier: there is no barrier 3"):

        @T.prim_func
        def other(A: T.Tensor((2, 64), "float32")):
            with T.Kernel(1, threads=32):
                T.create_barriers(2)
                T.ptx_wait_barrier(3)


@two_engines
def test_loads_by_tensor_maps(engine):
    @T.prim_func
    def main(A: T.Tensor((8, 64), "float32"), B: T.Tensor((4, 32), "float32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((4, 32), "float32")
            bar = T.alloc_barrier(1)
            box = T.create_tma_descriptor(7, 2, A.data, 64, 8, 4, 256, 32, 4, 1, 1, 0, 0, 2, 0)
            if T.get_thread_binding() == 0:
                T.mbarrier_arrive_expect_tx(bar, tx=512)
            T.tma_load(box, bar, T.access_ptr(S, "w"), 32, 2, 0)
            T.mbarrier_wait_parity(bar, 0)
            T.copy(S, B)

    a, b = np.arange(512, dtype="float32").reshape(8, 64), np.empty((4, 32), "float32")
    run_on_hopper(main, engine, a, b)
    assert (b == a[2:6, 32:64]).all()


@two_engines
@pytest.mark.parametrize("swizzle, columns", [(1, 8), (2, 16), (3, 32)])
def test_loads_by_swizzled_tensor_maps(engine, swizzle, columns):
    """To tiles that are said to lie so, elements come to their indices; the others are refused."""

    def program(annotated):
        @T.prim_func
        def main(A: T.Tensor((16, 64), "float32"), B: T.Tensor((8, columns), "float32")):
            with T.Kernel(1, threads=32):
                S = T.alloc_shared((8, columns), "float32")
                bar = T.alloc_barrier(1)
                if annotated:
                    T.annotate_layout({S: T.make_swizzled_layout(S)})
                box = T.create_tma_descriptor(7, 2, A.data, 64, 16, 4, 256, columns, 8, 1, 1, 0, swizzle, 2, 0)
                if T.get_thread_binding() == 0:
                    T.mbarrier_arrive_expect_tx(bar, tx=columns * 32)
                T.tma_load(box, bar, T.access_ptr(S, "w"), 32, 8, 0)
                T.mbarrier_wait_parity(bar, 0)
                T.copy(S, B)

        return main

    a, b = np.arange(1024, dtype="float32").reshape(16, 64), np.empty((8, columns), "float32")
    run_on_hopper(program(True), engine, a, b)
    assert (b == a[8:, 32 : 32 + columns]).all()
    with pytest.raises(tw.CompileError, match=f"swizzle {swizzle} to a tile that lies row after row"):
        program(False)


def test_foreign_text_takes_no_tensor_map():
    with pytest.raises(tw.CompileError, match="a call of foreign text with a tensor map"):

        @T.prim_func
        def main(A: T.Tensor((8, 64), "float32")):
            with T.Kernel(1, threads=32):
                T.call_extern("handle", "load", T.create_tma_descriptor(7, 2, A.data, 64, 8, 4, 256, 32, 4, 1, 1, 0, 3, 2, 0))


@pytest.mark.parametrize("given, message", [((7, 2), "of 2 arguments"), ((7, 1, "A", 8, 4, 8, 1, 0, 4, 0, 0), "interleave 0, swizzle 4"),
                                            ((7, 1, "A", 8, 4, 8, 1, 1, 0, 0, 0), "interleave 1, swizzle 0"),
                                            ((7, 1, "A", 8, 4, 8, 2, 0, 0, 0, 0), r"steps \[2\]")])  # fmt: skip
def test_tensor_maps_that_are_refused(given, message):
    with pytest.raises(tw.CompileError, match=message):
        T.create_tma_descriptor(*given)


def test_rows_gathered_and_scattered():
    """The instructions are those of sm_100; sm_90a brings and stores the rows one by one."""

    @T.prim_func
    def main(A: T.Tensor((16, 64), "float32"), B: T.Tensor((16, 64), "float32"), R: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((4, 32), "float32")
            bar = T.alloc_barrier(1)
            if T.get_thread_binding() == 0:
                T.mbarrier_expect_tx(bar, tx=T.tma_gather4_bytes(32, "float32"))
                T.mbarrier_arrive(bar)
            T.tma_gather4(A, S, 16, [R[0], R[1], R[2], R[3]], barrier=bar)
            T.mbarrier_wait_parity(bar, 0)
            T.tma_scatter4(S, B, 32, [3, 1, 0, 2])
            T.tma_store_arrive()
            T.tma_store_wait(0)

    a, b, r = np.arange(1024, dtype="float32").reshape(16, 64), np.zeros((16, 64), "float32"), np.array([5, 0, 15, 7], "int32")
    want = np.zeros_like(b)
    want[[3, 1, 0, 2], 32:64] = a[r, 16:48]
    for run_on, engine in ((run, "interpreter"), (run_on_hopper, "simulator")):
        b[:] = 0
        run_on(main, engine, a, b, r)
        assert (b == want).all()


@two_engines
def test_copies_that_are_waited_for(engine):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "float32")
            T.async_copy(A, S)
            T.ptx_wait_group(num=0)
            T.named_barrier_arrive(barrier_id=1, thread_count=64)
            T.sync_threads(2, 64)
            T.copy(S, B)

    a, b = np.arange(64, dtype="float32"), np.empty(64, "float32")
    run(main, engine, a, b)
    assert (a == b).all()


@every_engine
@pytest.mark.parametrize("word", [T.im2col, T.c2d_im2col])
def test_patches_of_images(engine, word):
    @T.prim_func
    def main(A: T.Tensor((1, 6, 6, 8), "float16"), B: T.Tensor((16, 72), "float16")):
        with T.Kernel(9, threads=32) as k:
            S = T.alloc_shared((16, 8), "float16")
            word(A, S, 0, k, kernel=3, stride=1, dilation=1, pad=0)
            T.copy(S, B[0:16, k * 8 : k * 8 + 8])

    a, b = np.random.default_rng(7).integers(0, 9, (1, 6, 6, 8)).astype("float16"), np.empty((16, 72), "float16")
    run(main, engine, a, b)
    want = [[a[0, i + r, j + s] for r in range(3) for s in range(3)] for i in range(4) for j in range(4)]
    assert (b.reshape(16, 9, 8) == np.array(want)).all()


# ---- products


@two_engines
@pytest.mark.parametrize("form", ["words", "emitter"])
def test_sparse_products_of_a_warpgroup(engine, form):
    m, n, k = 64, 64, 64

    @T.prim_func
    def main(A: T.Tensor((m, k // 2), "float16"), E: T.Tensor((m, k // 16), "int16"), B: T.Tensor((n, k), "float16"), C: T.Tensor((m, n), "float32")):
        with T.Kernel(1, threads=128):
            a, e, b = T.alloc_shared((m, k // 2), "float16"), T.alloc_shared((m, k // 16), "int16"), T.alloc_shared((n, k), "float16")
            c = T.alloc_fragment((m, n), "float32")
            T.copy(A, a)
            T.copy(E, e)
            T.copy(B, b)
            T.clear(c)
            if form == "words":
                T.wgmma_gemm_sp(a, e, b, c, transpose_B=True)
                T.wait_wgmma(0)
            else:
                T.WGSparseTensorCoreIntrinEmitter("float16", "int16", "float16", "float32", b_transposed=True).wgmma(a, e, b, c)
            T.copy(c, C)

    rng = np.random.default_rng(8)
    a, b, c = (rng.integers(-3, 4, s).astype("float16") for s in ((m, k // 2), (n, k), (m, n)))
    c = np.empty((m, n), "float32")
    dense = np.zeros((m, k), "float16")
    dense[:, 1::4], dense[:, 2::4] = a[:, ::2], a[:, 1::2]
    e = np.full((m, k // 16), 0x9999, "uint16").view("int16")  # elements 1 and 2 of each four
    run_on_hopper(main, engine, a, e, b, c)
    assert (c == dense.astype("float32") @ b.astype("float32").T).all()


@two_engines
@pytest.mark.parametrize("form", ["gemm", "mma", "emitter"])
def test_products_of_a_warpgroup(engine, form):
    m, n, k = 64, 64, 64

    @T.prim_func
    def main(A: T.Tensor((m, k), "float16"), B: T.Tensor((n, k), "float16"), C: T.Tensor((m, n), "float32")):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((m, k), "float16"), T.alloc_shared((n, k), "float16")
            c = T.alloc_fragment((m, n), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.warpgroup_arrive()
            T.warpgroup_fence_operand(c)
            if form == "emitter":
                T.WGMMATensorCoreIntrinEmitter("float16", "float16", "float32", b_transposed=True, chunk=k).wgmma(a, b, c)
            else:
                (T.wgmma_mma if form == "mma" else T.wgmma_gemm)(a, b, c, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.warpgroup_commit_batch()
                T.warpgroup_wait(num_mma=0)
                T.wait_wgmma(id=0)
            T.copy(c, C)

    rng = np.random.default_rng(7)
    a, b = (rng.integers(-3, 4, (64, 64)).astype("float16") for _ in range(2))
    c = np.empty((m, n), "float32")
    run_on_hopper(main, engine, a, b, c)
    assert (c == a.astype("float32") @ b.astype("float32").T).all()


@every_engine
@pytest.mark.parametrize("dtype, shape", [("float16", "m16n8k16"), ("bfloat16", "m16n8k8"), ("int8", "m16n8k32"), ("float32", "m16n8k8")])
def test_products_and_loads_of_a_warp(engine, dtype, shape):
    """C = A B^T by ldmatrix and mma.sync as PTX lays them out; of a tile of 16 by 16 results both halves."""
    depth, word = int(shape.partition("k")[2]), 32 // T.dtype(dtype).bits
    given = "float32" if dtype == "bfloat16" else dtype  # which NumPy has
    of_c = "int32" if dtype == "int8" else "float32"
    registers = depth * 16 // 32 // word

    @T.prim_func
    def main(A: T.Tensor((16, depth), given), B: T.Tensor((16, depth), given), C: T.Tensor((16, 16), of_c)):
        with T.Kernel(1, threads=32):
            sa, sb = T.alloc_shared((16, depth), dtype), T.alloc_shared((16, depth), dtype)
            a, b = T.alloc_local((registers * word,), dtype), T.alloc_local((registers * word,), dtype)
            c = T.alloc_local((8,), of_c)
            T.copy(A, sa)
            T.copy(B, sb)
            t = T.get_lane_idx()
            half = 4 * word
            T.ptx_ldmatrix(False, registers, T.access_ptr(sa[t % 16, t // 16 * half % depth], "r"), T.access_ptr(a, "w"))
            for r in T.unroll(2):
                row = t % 8 + 8 * r
                T.ptx_ldmatrix(False, registers // 2, T.access_ptr(sb[row, t // 8 * half % depth], "r"),
                               T.access_ptr(b[r * registers // 2 * word], "w"))
            T.mma_fill(of_c, 8, c.data, 0)
            for r in T.unroll(2):
                T.ptx_mma(of_c, shape, "row", "col", dtype, dtype, of_c, a.data, 0, b.data, r * (registers // 2) * word, c.data, r * 4, False)
            T.mma_store(of_c, 16, 16, T.access_ptr(C, "w"), c.data, 0, 16)

    rng = np.random.default_rng(8)
    a, b = (rng.integers(-4, 5, (16, depth)).astype(given) for _ in range(2))
    c = np.empty((16, 16), of_c)
    run(main, engine, a, b, c)
    assert (c == a.astype(of_c) @ b.astype(of_c).T).all()


@every_engine
def test_loads_of_transposed_matrices(engine):
    @T.prim_func
    def main(A: T.Tensor((8, 8), "float16"), B: T.Tensor((32, 2), "float16")):
        with T.Kernel(1, threads=32):
            s, held = T.alloc_shared((8, 8), "float16"), T.alloc_local((2,), "float16")
            T.copy(A, s)
            t = T.get_lane_idx()
            T.ptx_ldmatrix(True, 1, T.access_ptr(s[t % 8, 0], "r"), T.access_ptr(held, "w"))
            B[t, 0] = held[0]
            B[t, 1] = held[1]

    a, b = np.arange(64).reshape(8, 8).astype("float16"), np.empty((32, 2), "float16")
    run(main, engine, a, b)
    assert all(b[t, e] == a[t % 4 * 2 + e, t // 4] for t in range(32) for e in range(2))


def test_places_in_matrices():
    assert T.get_mma_micro_size("float16") == (16, 16, 16) and T.get_mma_micro_size("int8") == (16, 16, 32)
    assert sorted(T.mma_store_index_map(t, e) for t in range(32) for e in range(8)) == [(i, j) for i in range(16) for j in range(16)]
    assert T.get_ldmatrix_offset("A", 17, 0, 16) == (1, 8) and T.get_ldmatrix_offset("B", 17, 0, 16, "float16", True) == (9, 0)
    assert T.get_ldmatrix_offset("A", 17, 3, 32, "int8") == (1, 19) and T.get_ldmatrix_offset("B", 12, 3, 32, "int8", True) == (4, 19)
    with pytest.raises(tw.CompileError, match="get_ldmatrix_offset of an untransposed B of int8"):
        T.get_ldmatrix_offset("B", 0, 0, 32, "int8")
    for row in range(8):
        places = {T.get_swizzle_layout(r, 8 * row, 64, "float16")[1] for r in range(8)}
        assert len(places) == 8
    assert {T.get_swizzle_layout(r, 0, 64, "float16", swizzle_bytes=32)[1] for r in range(8)} == {0, 8}
