"""Operations in the words of TVM and PTX, which are written with others: pointers, reductions over threads, shuffles."""
import os
import re

import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
from on_engines import every_engine, run, run_on_hopper

ENGINES = ["interpreter", "cpu"]


def thread_sums(threads, over, dtype="float32", predicate=None):
    """The sum over the threads of dimensions `over`, of what their indices say."""
    count = threads[0] * threads[1]

    @T.prim_func
    def sums(A: T.Tensor((count,), dtype), B: T.Tensor((count,), dtype)):
        with T.Kernel(1, threads=threads):
            tx, ty = T.get_thread_binding(0), T.get_thread_binding(1)
            own = T.alloc_local((1,), dtype)
            total = T.alloc_local((1,), dtype)
            own[0] = A[ty * threads[0] + tx]
            indices = [(tx, ty)[d] for d in over]
            with T.attr(T.comm_reducer(lambda x, y: x + y, [T.cast(0, dtype)]), "reduce_scope", T.reinterpret(T.uint64(0), dtype="handle")):
                T.evaluate(T.tvm_thread_allreduce(T.uint32(1), own[0], True if predicate is None else predicate(tx), total[0], *indices, dtype="handle"))
            B[ty * threads[0] + tx] = total[0]

    return sums


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("threads, over", [((8, 4), [0]), ((8, 4), [1]), ((8, 4), [0, 1]), ((4, 32), [1]), ((2, 48), [1]), ((96, 2), [0]), ((3, 5), [1])])
def test_thread_allreduce(engine, threads, over):
    a = np.arange(threads[0] * threads[1], dtype="float32")
    b = np.empty_like(a)
    tw.compile(thread_sums(threads, over), engine=engine)(a, b)
    axes = tuple(1 - d for d in over)
    assert (b.reshape(threads[::-1]) == a.reshape(threads[::-1]).sum(axes, keepdims=True)).all()


def test_thread_allreduce_leaves_out_and_takes_other_reducers():
    a = np.arange(64, dtype="int32")
    b = np.empty_like(a)
    tw.compile(thread_sums((32, 2), [0], "int32", lambda tx: tx < 5), engine="interpreter")(a, b)
    assert (b.reshape(2, 32) == a.reshape(2, 32)[:, :5].sum(1, keepdims=True)).all()


@pytest.mark.parametrize("threads", [8, 6])
def test_thread_allreduce_rounds_as_halves_that_meet(threads):
    @T.prim_func
    def main(A: T.Tensor((threads,), "bfloat16"), B: T.Tensor((1,), "bfloat16")):
        with T.Kernel(1, threads=threads):
            tx = T.get_thread_binding(0)
            own, total = T.alloc_local((1,), "bfloat16"), T.alloc_local((1,), "bfloat16")
            own[0] = A[tx]
            with T.attr(T.comm_reducer(lambda x, y: x * y, [T.cast(1, "bfloat16")]), "reduce_scope", 0):
                T.tvm_thread_allreduce(T.uint32(1), own[0], True, total[0], tx)
            B[0] = total[0]

    torch = pytest.importorskip("torch")
    a, b = torch.tensor([3.0, 8, 5, 2, 7, 6, 4, 6])[:threads].bfloat16(), torch.empty(1).bfloat16()
    tw.compile(main, engine="interpreter")(a, b)
    assert b.item() == a.double().prod().bfloat16().item()  # one after the other would be rounded to the next


def test_thread_allreduce_needs_a_reducer():
    with pytest.raises(tw.CompileError, match="without a reducer"):

        @T.prim_func
        def main(A: T.Tensor((32,), "float32")):
            with T.Kernel(1, threads=32) as bx:
                tx = T.get_thread_binding(0)
                T.tvm_thread_allreduce(T.uint32(1), A[tx], True, A[tx], tx)

    with pytest.raises(tw.CompileError, match="T.attr of 'pragma'"):

        @T.prim_func
        def other(A: T.Tensor((32,), "float32")):
            with T.Kernel(1, threads=32):
                with T.attr(A, "pragma", 1):
                    A[0] = 1


@pytest.mark.parametrize("engine", ENGINES)
def test_bound_threads_and_blocks_are_a_launch(engine):
    @T.prim_func
    def main(A: T.Tensor((3, 64), "int32")):
        for b in T.thread_binding(3, thread="blockIdx.x"):
            for t in T.thread_binding(64, thread="threadIdx.x"):
                for i in T.unroll(0, 2, step=2):
                    A[b, t] = b * 100 + t + i

    assert "(bx: 3, by: 1, bz: 1) threads(tx: 64" in main.script()
    a = np.zeros((3, 64), "int32")
    tw.compile(main, engine=engine)(a)
    assert (a == np.arange(3)[:, None] * 100 + np.arange(64)).all()


def test_bound_blocks_of_a_kernel():
    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        with T.Kernel(4, threads=32):
            for b in T.thread_binding(3, thread="blockIdx.x"):
                A[b] = b + 1

    a = np.zeros(4, "int32")
    tw.compile(main, engine="interpreter")(a)
    assert a.tolist() == [1, 2, 3, 0]

    with pytest.raises(tw.CompileError, match="extent"):

        @T.prim_func
        def unknown(A: T.Tensor((T.dynamic("n"),), "int32")):
            for b in T.thread_binding(A.shape[0], thread="blockIdx.x"):
                A[b] = 1


@pytest.mark.parametrize("engine", [*ENGINES, "simulator"])
def test_a_barrier_among_points_parts_them(engine):
    """All points up to it, then the barrier, then the rest of all points."""

    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((64,), "int32")
            for i in T.Parallel(64):
                S[i] = A[i] + 1
                T.sync_threads()
                A[i] = S[63 - i] * 2

    assert main.script().count("map ") == 2 and main.script().count("sync ") == 1
    a = np.arange(64, dtype="int32")
    tw.compile(main, engine=engine)(a)
    assert (a == (np.arange(64)[::-1] + 1) * 2).all()


def test_what_a_barrier_among_points_cannot_part():
    def program(kind):
        @T.prim_func
        def main(A: T.Tensor((64,), "int32")):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(64):
                    if kind == 0:
                        x = A[i] + 1
                        T.sync_threads()
                        A[i] = x
                    else:
                        for j in T.serial(2):
                            T.sync_threads()

        tw.compile(main, engine="interpreter")

    for kind, why in ((0, "'x' is used where it is not defined"), (1, "a barrier inside of Parallel")):
        with pytest.raises(tw.CompileError, match=why):
            program(kind)


@pytest.mark.parametrize("engine", ENGINES)
def test_warp_shuffles(engine):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((3, 64), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding(0)
            B[0, tx] = T.tvm_warp_shuffle(0xFFFFFFFF, A[tx], (tx ^ 4) % 32, 32, 32)
            B[1, tx] = T.tvm_warp_shuffle_up(0xFFFFFFFF, A[tx], 1, 8, 32)
            B[2, tx] = T.tvm_warp_shuffle_down(0xFFFFFFFF, A[tx], 2, 32, 32)

    a = np.random.default_rng(0).random(64, dtype="float32")
    b = np.empty((3, 64), "float32")
    tw.compile(main, engine=engine)(a, b)
    lanes = np.arange(64)
    assert (b[0] == a[lanes ^ 4]).all()
    assert (b[1] == a[np.where(lanes % 8 == 0, lanes, lanes - 1)]).all()
    assert (b[2] == a[np.where(lanes % 32 >= 30, lanes, lanes + 2)]).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_shuffle_with_its_mask_first(engine):
    """As TileLang 0.1.8 has it: the mask, the value, the lane, the width."""

    @T.prim_func
    def main(A: T.Tensor((4, 32), "int32")):
        with T.Kernel(1, threads=32):
            x = T.get_thread_binding()
            A[0, x] = T.shfl_sync(0xFFFFFFFF, x * 10, 31)
            A[1, x] = T.shfl_sync(0xFFFFFFFF, x * 10, 16)
            A[2, x] = T.shfl_sync(0xFFFFFFFF, x * 10, x // 8, 8)
            A[3, x] = T.shfl_sync(x * 10, 31 - x, mask=0xFFFFFFFF)

    a = np.zeros((4, 32), "int32")
    tw.compile(main, engine=engine)(a)
    x = np.arange(32)
    assert (a == [x * 0 + 310, x * 0 + 160, (x // 8 * 8 + x // 8) * 10, (31 - x) * 10]).all()


def test_a_sparse_product_in_the_order_of_earlier_releases():
    """T.gemm_sp_v2 has whether B is transposed before E."""

    def text(product):
        @T.prim_func
        def main(C: T.Tensor((16, 16), "float32")):
            with T.Kernel(1, threads=32):
                a, e = T.alloc_shared((32, 16), "float16"), T.alloc_shared((16, 4), "int16")
                b, c = T.alloc_shared((16, 64), "float16"), T.alloc_fragment((16, 16), "float32")
                for tile in (a, e, b, c):
                    T.clear(tile)
                product(a, e, b, c)
                T.copy(c, C)

        return main.script()

    named = text(lambda *tiles: T.gemm_sp(*tiles, transpose_A=True, transpose_B=True))
    assert text(lambda *tiles: T.gemm_sp_v2(*tiles, True, True)) == named
    assert text(lambda *tiles: T.gemm_sp_v2(*tiles, True, True, False, T.GemmWarpPolicy.FullRow)) != named


def test_copies_of_neighbours():
    @T.prim_func
    def main(A: T.Tensor((32, 16), "float16"), B: T.Tensor((32, 16), "float16")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding(0)
            S = T.alloc_shared((32, 16), "float16")
            T.ptx_cp_async(T.access_ptr(S[tx // 2, tx % 2 * 8], "w", 8), T.access_ptr(A[tx // 2, tx % 2 * 8], "r", 8), 8, tx < 48)
            T.ptx_commit_group()
            T.ptx_wait_group(0)
            T.sync_threads()
            T.copy(S, B)

    a = np.random.default_rng(1).random((32, 16), dtype="float32").astype("float16")
    b = np.empty_like(a)
    tw.compile(main, engine="interpreter")(a, b)
    assert (b[:24] == a[:24]).all() and (b[24:] == 0).all()


def test_copies_of_neighbours_tell_a_barrier():
    @T.prim_func
    def main(A: T.Tensor((4, 256), "int32"), B: T.Tensor((4, 256), "int32")):
        with T.Kernel(1, threads=160):
            S = T.alloc_shared((256,), "int32")
            full, free = T.alloc_barrier(32), T.alloc_barrier(128)
            tx = T.get_thread_binding(0)
            if tx >= 128:
                for k in T.serial(4):
                    T.barrier_wait(free, (k & 1) ^ 1)
                    for u in T.serial(2):
                        T.ptx_cp_async(T.access_ptr(S[(u * 32 + tx - 128) * 4], "w", 4), T.access_ptr(A[k, (u * 32 + tx - 128) * 4], "r", 4), 4)
                    T.cp_async_barrier_noinc(full)
            else:
                for k in T.serial(4):
                    T.barrier_wait(full, k & 1)
                    B[k, tx] = S[tx] + 1
                    B[k, tx + 128] = S[tx + 128] + 1
                    T.barrier_arrive(free)

    a = np.arange(1024, dtype="int32").reshape(4, 256)
    b = np.empty_like(a)
    tw.compile(main, engine="interpreter")(a, b)
    assert (b == a + 1).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_atomics_on_neighbours(engine):
    @T.prim_func
    def main(A: T.Tensor((8, 64), "float32"), B: T.Tensor((64,), "float32"), C: T.Tensor((16, 4), "float32")):
        with T.Kernel(8, threads=16) as bx:
            S = T.alloc_shared((64,), "float32")
            T.copy(A[bx, :], S)
            for i in T.Parallel(16):
                T.atomic_addx4(B[i * 4], S[i * 4])
            for i in T.Parallel(32):
                T.atomic_addx2(C[i // 2, i % 2 * 2 : i % 2 * 2 + 2], S[i * 2 : i * 2 + 2])

    a = np.random.default_rng(2).integers(-9, 9, (8, 64)).astype("float32")
    b, c = np.zeros(64, "float32"), np.zeros((16, 4), "float32")
    tw.compile(main, engine=engine)(a, b, c)
    assert (b == a.sum(0)).all() and (c.reshape(-1) == a.sum(0)).all()


def test_pointers_begin_where_their_buffer_does():
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=1):
            L = T.alloc_local((4, 8), "float32")
            T.ptx_cp_async(T.access_ptr(L, "w"), T.access_ptr(A, "r"), 32)
            T.ptx_cp_async(T.access_ptr(B, "w", offset=16), T.access_ptr(L[2, 0:8], "r"), 8)

    a = np.arange(32, dtype="float32").reshape(4, 8)
    b = np.zeros(32, "float32")
    tw.compile(main, engine="interpreter")(a, b)
    assert (b[16:24] == a[2]).all() and b[:16].sum() == 0


def test_what_has_no_meaning_is_refused():
    with pytest.raises(tw.CompileError, match="T.access_ptr of 3"):
        T.access_ptr(3)


def products_that_warps_hold(dtype, accumulator, a_transposed=False, b_transposed=True):
    from tilewright.warp_mma import TensorCoreIntrinEmitter, get_swizzle_layout

    M, N, K = 64, 32, 64
    emitter = TensorCoreIntrinEmitter(a_dtype=dtype, b_dtype=dtype, accum_dtype=accumulator, a_transposed=a_transposed, b_transposed=b_transposed,
                                      block_row_warps=2, block_col_warps=1, warp_row_tiles=32, warp_col_tiles=32, chunk=32)  # fmt: skip

    of_a, of_b = ((K, M) if a_transposed else (M, K)), ((N, K) if b_transposed else (K, N))
    step_a, step_b = ((32, M) if a_transposed else (M, 32)), ((N, 32) if b_transposed else (32, N))

    @T.prim_func
    def main(A: T.Tensor(of_a, dtype), B: T.Tensor(of_b, dtype), C: T.Tensor((M, N), accumulator)):
        with T.Kernel(1, threads=emitter.threads):
            A_shared, B_shared = T.alloc_shared(step_a, dtype), T.alloc_shared(step_b, dtype)
            C_shared = T.alloc_shared((M // 16, N // 16, 16, 16), accumulator)
            A_local = T.alloc_local((emitter.warp_rows * emitter.local_size_a,), dtype)
            B_local = T.alloc_local((emitter.warp_cols * emitter.local_size_b,), dtype)
            C_local = T.alloc_local((emitter.warp_rows * emitter.warp_cols * emitter.local_size_out,), accumulator)
            if not a_transposed:
                T.annotate_layout({A_shared: T.Layout((M, 32), lambda i, j: list(get_swizzle_layout(i, j, 32, dtype)))})
            T.clear(C_local)
            for ko in T.Pipelined(K // 32, num_stages=2):
                for i, j in T.Parallel(*step_a):
                    A_shared[i, j] = A[ko * 32 + i, j] if a_transposed else A[i, ko * 32 + j]
                for i, j in T.Parallel(*step_b):
                    B_shared[i, j] = B[i, ko * 32 + j] if b_transposed else B[ko * 32 + i, j]
                for ki in T.serial(32 // emitter.micro_size_k):
                    emitter.ldmatrix_a(A_local, A_shared, ki)
                    emitter.ldmatrix_b(B_local, B_shared, ki)
                    emitter.mma(A_local, B_local, C_local)
            emitter.stmatrix(C_local, C_shared)
            for i, j in T.Parallel(M, N):
                C[i, j] = C_shared[i // 16, j // 16, i % 16, j % 16]

    return main, M, N, K


@every_engine
@pytest.mark.parametrize("dtype, accumulator, ta, tb", [("float16", "float32", False, True), ("float16", "float32", True, False),
                                                        ("float16", "float16", False, True), ("int8", "int32", False, True),
                                                        ("int8", "int32", True, False)])  # fmt: skip
def test_products_that_warps_hold(engine, dtype, accumulator, ta, tb):
    main, M, N, K = products_that_warps_hold(dtype, accumulator, ta, tb)
    random = np.random.default_rng(3)
    a, b = random.integers(-4, 5, (M, K)).astype(dtype), random.integers(-4, 5, (N, K)).astype(dtype)
    c = np.empty((M, N), accumulator)
    run(main, engine, np.ascontiguousarray(a.T) if ta else a, b if tb else np.ascontiguousarray(b.T), c)
    assert (c == a.astype(accumulator) @ b.astype(accumulator).T).all()


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_products_that_warps_hold_are_instructions(arch):
    """Lanes exchange nothing by shuffles, both tiles come a turn ahead, and results are stored without meeting each time."""
    main, *_ = products_that_warps_hold("float16", "float32")
    text = tw.compile(main, target="interpreter").get_kernel_source(arch=arch)
    assert "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" in text and "ldmatrix.sync.aligned.m8n8.x4.shared.b16" in text
    assert "__shfl" not in text and "cp.async.cg" in text and text.count("__syncthreads()") <= 4
    text = tw.compile(products_that_warps_hold("int8", "int32")[0], target="interpreter").get_kernel_source(arch=arch)
    assert "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32" in text and "__shfl" not in text


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_what_a_lane_holds_of_operands(dtype):
    """In the order of the registers of one product by A, and of two by the first and the last eight columns of B."""
    from tilewright.warp_mma import TensorCoreIntrinEmitter

    emitter = TensorCoreIntrinEmitter(dtype, dtype, "float32", b_transposed=True, block_row_warps=1, block_col_warps=1,
                                      warp_row_tiles=16, warp_col_tiles=16, chunk=32)  # fmt: skip
    k, size, word = emitter.micro_size_k, emitter.local_size_a, emitter.word

    @T.prim_func
    def main(S: T.Tensor((16, k), dtype), A: T.Tensor((32, size), dtype), B: T.Tensor((32, size), dtype)):
        with T.Kernel(1, threads=32):
            shared, a, b = T.alloc_shared((16, k), dtype), T.alloc_local((size,), dtype), T.alloc_local((size,), dtype)
            T.copy(S, shared)
            emitter.ldmatrix_a(a, shared, 0)
            emitter.ldmatrix_b(b, shared, 0)
            for e in T.serial(size):
                A[T.get_lane_idx(), e] = a[e]
                B[T.get_lane_idx(), e] = b[e]

    s = (np.arange(16 * k) % 127).reshape(16, k).astype(dtype)
    a, b = np.empty((32, size), dtype), np.empty((32, size), dtype)
    tw.compile(main, engine="interpreter")(s, a, b)
    for lane in range(32):
        for e in range(size):
            inner, second, fourth = lane % 4 * word + e % word, e // word % 2, e // (2 * word)
            assert a[lane, e] == s[lane // 4 + second * 8, inner + fourth * k // 2]
            assert b[lane, e] == s[lane // 4 + fourth * 8, inner + second * k // 2]


def test_operands_of_other_makers_are_refused():
    from tilewright.warp_mma import TensorCoreIntrinEmitter, TensorCoreIntrinEmitterWithLadderTransform

    with pytest.raises(tw.CompileError, match="both have 16 bits"):
        TensorCoreIntrinEmitter("float16", "int8", "float32")
    with pytest.raises(tw.CompileError, match="BitBLAS"):
        TensorCoreIntrinEmitterWithLadderTransform("float16", "float16", "float32")


def foreign(space="local"):
    @T.prim_func
    def main(A: T.Tensor((64,), "float16"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding(0)
            T.import_source("template <class X> __device__ void twice(X* from, float* to, int n) { to[0] = n * 2.0f; }")
            T.import_source("__device__ float half_of(float x) { return x / 2; }")
            L = T.alloc_local((2,), "float16") if space == "local" else T.alloc_shared((2,), "float16")
            R = T.alloc_local((2,), "float32") if space != "fragment" else T.alloc_fragment((2,), "float32")
            T.copy(A[tx * 2], L)
            T.call_extern("twice", T.access_ptr(L, "r"), T.access_ptr(R[1], "w"), 2, dtype="float16")
            T.call_extern("handle", "twice", T.access_ptr(L[1], "r"), R, tx)
            if space == "local":
                T.call_extern("handle", "twice", T.address_of(L[0]), T.address_of(R[1]), 3)
            B[tx * 2] = T.call_extern("float32", "half_of", R[1])

    return main


def test_foreign_text_is_of_the_gpu():
    text = foreign().script()
    assert "half_of" in text and "args=[address(L[0]), address(R[1]), 3]" in text
    for engine, code in (("interpreter", "TW6012"), ("cpu", "TW5005")):
        with pytest.raises(tw.TilewrightError) as caught:
            tw.compile(foreign(), engine=engine)(np.zeros(64, "float16"), np.zeros(64, "float32"))
        assert "foreign" in str(caught.value)
    with pytest.raises(tw.CompileError, match="foreign text takes addresses"):
        foreign("fragment")


@every_engine
def test_a_scope_decides_where_a_tile_lives(engine):
    """Whatever word allocates it: alloc_fragment of the scope local is what each thread has to itself."""

    @T.prim_func
    def main(A: T.Tensor((4, 32), "int32"), B: T.Tensor((4, 32), "int32")):
        with T.Kernel(4, threads=32) as b:
            tx = T.get_thread_binding()
            first, last = T.alloc_fragment((1,), T.int32, "local"), T.alloc_shared((1,), "int32", scope="local.var")
            shared = T.alloc_local((32,), "int32", scope="shared")
            first[0] = tx % 3
            last[0] = T.min(first[0] + 9, 32)
            T.copy(A[b, :], shared)
            B[b, tx] = 0
            for i in T.serial(first[0], last[0]):
                B[b, tx] += shared[i]
            assert (first.scope(), last.scope(), shared.scope()) == ("local", "local", "shared.dyn")

    a = np.arange(128, dtype="int32").reshape(4, 32)
    want = [[row[x % 3 : x % 3 + 9].sum() for x in range(32)] for row in a]
    b = np.zeros_like(a)
    run(main, engine, a, b)
    assert b.tolist() == np.array(want).tolist()
    with pytest.raises(tw.CompileError, match="T.alloc_shared: scope is 'registers'"):
        with_scope("registers")


def with_scope(scope):
    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32):
            T.alloc_shared((4,), "int32", scope)


@every_engine
def test_barriers_by_numbers_that_run_time_knows(engine):
    """Of T.create_list_of_mbarrier: mbarrier=k % 2 is the barrier of that number."""

    @T.prim_func
    def main(A: T.Tensor((6, 64), "float32"), B: T.Tensor((6, 64), "float32")):
        with T.Kernel(1, threads=256):
            tile = T.alloc_shared((2, 64), "float32")
            T.create_list_of_mbarrier([128, 128] * 2)
            for k in T.serial(6):
                with T.ws(1):
                    T.mbarrier_wait_parity(mbarrier=k % 2 + 2, parity=(k // 2 % 2) ^ 1)
                    T.copy(A[k, :], tile[k % 2, :])
                    T.mbarrier_arrive(mbarrier=k % 2)
                with T.ws(0):
                    T.mbarrier_wait_parity(k % 2, k // 2 % 2)
                    T.copy(tile[k % 2, :], B[k, :])
                    T.mbarrier_arrive(k % 2 + 2)

    a, b = np.arange(384, dtype="float32").reshape(6, 64), np.zeros((6, 64), "float32")
    run_on_hopper(main, engine, a, b)
    assert (a == b).all()


@pytest.mark.parametrize("engine", [*ENGINES, "simulator"])
def test_functions_of_cuda_by_their_names(engine):
    @T.prim_func
    def main(A: T.Tensor((32,), "float32"), I: T.Tensor((32,), "int32"), H: T.Tensor((32,), "float16"), F: T.Tensor((7, 32), "float32"),
             N: T.Tensor((9, 32), "int32")):  # fmt: skip
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            H[t] = T.call_extern(T.float16, "__float2half_rz", A[t])
            F[0, t] = T.call_extern("float32", "__fadd_rd", A[t], 1e-3)
            F[1, t] = T.call_extern("float32", "fmaxf", A[t], 0)
            F[2, t] = T.call_extern("__shfl_xor_sync", 0xFFFFFFFF, A[t], 1, dtype="float32")
            F[3, t] = T.call_extern("float32", "__int_as_float", I[t])
            F[4, t] = T.call_extern("float32", "__half2float", H[t])
            F[5, t] = T.call_extern("float32", "rintf", A[t])
            F[6, t] = T.call_extern("float32", "__uint2float_rn", I[t])
            N[0, t] = T.call_extern("int32", "__match_any_sync", -1, I[t] % 3)
            N[1, t] = T.call_extern("int32", "__popc", I[t])
            N[2, t] = T.call_extern("int32", "__clzll", T.cast(I[t], "int64"))
            N[3, t] = T.call_extern("int32", "__float2int_ru", A[t])
            N[4, t] = T.call_extern("int32", "__any_sync", T.uint32(0xFFFFFFFF), I[t] == 5)
            N[5, t] = T.call_extern("int32", "__umulhi", I[t], 1 << 30)
            N[6, t] = T.call_extern("int32", "__float_as_int", A[t])
            N[7, t] = T.call_extern("int32", "__shfl_sync", 0xFFFFFFFF, I[t], 3, 8)
            N[8, t] = T.call_extern("int32", "__activemask")

    rng = np.random.default_rng(4)
    a, i = rng.normal(size=32).astype("float32") * 100, rng.integers(0, 1 << 30, 32).astype("int32")
    a[:3], h, f, n = [1e5, -1e5, 0.1], np.zeros(32, "float16"), np.zeros((7, 32), "float32"), np.zeros((9, 32), "int32")
    tw.compile(main, engine=engine)(a, i, h, f, n)
    near = np.clip(a, -65504, 65504).astype("float16")
    assert (h == np.where(np.abs(near.astype("float32")) > np.abs(a), np.nextafter(near, np.float16(0)), near)).all()
    exact = a.astype("float64") + np.float64(np.float32(1e-3))
    low = exact.astype("float32")
    assert (f[0] == np.where(low > exact, np.nextafter(low, np.float32(-np.inf)), low)).all()
    assert (f[1] == np.maximum(a, 0)).all() and (f[2] == a[np.arange(32) ^ 1]).all() and (f[3] == i.view("float32")).all()
    assert (f[4] == h.astype("float32")).all() and (f[5] == np.rint(a)).all() and (f[6] == i.astype("float32")).all()
    lanes = np.array([sum(1 << k for k in range(32) if i[k] % 3 == v % 3) for v in i], "uint32").view("int32")
    ones, zeros = [v.bit_count() for v in i.tolist()], [64 - v.bit_length() for v in i.tolist()]
    assert (n[0] == lanes).all() and n[1].tolist() == ones and n[2].tolist() == zeros and (n[3] == np.ceil(a)).all()
    assert (n[4] == (5 in i)).all() and (n[5] == i.astype("int64") * (1 << 30) >> 32).all() and (n[6] == a.view("int32")).all()
    assert (n[7] == i[np.arange(32) // 8 * 8 + 3]).all() and (n[8] == -1).all()


def test_functions_of_cuda_that_stay_text():
    @T.prim_func
    def main(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "float32"), N: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            T.import_source("__device__ float __expf(float x) { return x; }")
            B[t] = T.call_extern("float32", "__expf", A[t])  # the text's own
            B[t] = T.call_extern("float32", "__logf", A[t])
            N[t] = T.call_extern("int32", "__ballot_sync", 0xFF, A[t] > 0)  # of some lanes
            N[t] = T.call_extern("int32", "__ballot_sync", 0xFFFFFFFF, A[t] > 0)
            N[t] = T.call_extern("int32", "__vadd2", N[t], N[t])  # not in the language

    assert re.findall(r'call function="(\w+)"', main.script()) == ["__expf", "__ballot_sync", "__vadd2"]


@pytest.mark.parametrize("engine", [*ENGINES, "simulator"])
@pytest.mark.parametrize("source", ["float32", "float64", "int32"])
def test_casts_toward_zero(engine, source):
    @T.prim_func
    def main(A: T.Tensor((64,), source), H: T.Tensor((64,), "float16"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                H[i] = T.cast(A[i], "float16", round="rz")
                B[i] = T.cast(A[i], "bfloat16", "rz")

    a = (np.random.default_rng(8).normal(size=64) * 3000).astype(source)
    a[a == 0] = 7
    a[:2] = [2049, -2049]
    h, b = np.zeros(64, "float16"), np.zeros(64, "float32")
    tw.compile(main, engine=engine)(a, h, b)
    for got, bits in ((h, 11), (b, 8)):  # significant bits: the value without those below
        unit = 2.0 ** (np.floor(np.log2(np.abs(a.astype("float64")))) + 1 - bits)
        assert (got == np.trunc(a / unit) * unit).all()


def test_casts_that_are_not_rounded_toward_zero():
    for dtype in ("float32", "int32", "float8_e4m3fn"):
        with pytest.raises(tw.CompileError, match=f"TW1080 build: cast: float64 is not rounded toward zero to {dtype}"):
            T.cast(T.float64(1.5), dtype, round="rz")


def test_layouts_of_global_tensors_change_nothing():
    with pytest.warns(UserWarning, match="'B' is in global memory"):

        @T.prim_func
        def main(A: T.Tensor((4, 8), "float32"), B: T.Tensor((4, 8), "float32")):
            with T.Kernel(1, threads=32):
                T.annotate_layout({B: T.Layout((4, 8), lambda i, j: [j % 4, j // 4 * 4 + i])})
                T.copy(A, B)

    a = np.arange(32, dtype="float32").reshape(4, 8)
    b = np.empty_like(a)
    tw.compile(main, engine="interpreter")(a, b)
    assert (a == b).all()


def test_atomics_that_tma_has_not():
    def program(dtype, use_tma):
        @T.prim_func
        def main(A: T.Tensor((16, 16), dtype)):
            with T.Kernel(1, threads=32):
                S = T.alloc_shared((16, 16), dtype)
                T.fill(S, 2)
                T.atomic_add(A, S, use_tma=use_tma)

        return main

    for dtype, use_tma in (("float32", True), ("uint64", False)):
        a = np.ones((16, 16), dtype)
        tw.compile(program(dtype, use_tma), engine="interpreter")(a)
        assert (a == 3).all()
    with pytest.raises(tw.CompileError, match="TMA atomic add does not support dtype uint64.*supported scalar dtypes"):
        program("uint64", True)


def test_names_where_earlier_releases_had_them(tmp_path):
    """Programs name a symbol by tvm.te.var, make kernels by profiler.cached, and types of tensors by map_torch_type."""
    import subprocess
    import sys

    text = """
import tilewright; tilewright.install_as_tilelang(force=True)
import numpy as np, tilelang, tilelang.language as T, tvm
from tilelang.profiler import cached
from tilelang.utils import map_torch_type
from tilelang.utils.tensor import map_torch_type as of_tensors

assert map_torch_type is of_tensors
def doubled(n, dtype):
    @T.prim_func
    def main(A: T.Buffer((n,), dtype), B: T.Buffer((n,), dtype)):
        with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
            for i in T.Parallel(32):
                B[bx * 32 + i] = A[bx * 32 + i] * 2
    return main
kernel = cached(doubled, [1], tvm.te.var("n"), "float32")
assert (kernel(np.ones(33, "float32")) == 2).all() and (kernel(np.ones(5, "float32")) == 2).all()
assert cached(doubled(8, "int32"), [1])(np.ones(8, "int32")).tolist() == [2] * 8
from tilelang.intrinsics.utils import get_swizzle_layout
from tilelang.intrinsics.mma_macro_generator import TensorCoreIntrinEmitter as Emitter
assert (Emitter.M_DIM, Emitter.n_dim, Emitter.WARP_SIZE, Emitter("int8", "int8", "int32").k_dim) == (16, 16, 32, 32)
@T.prim_func
def bytes_of(A: T.Tensor((99,), "float8_e5m2"), B: T.Tensor((99,), "float8_e5m2")):
    with T.Kernel(1):
        T.copy(A, B)
kernel = tilelang.compile(bytes_of)
for supply, large in ((tilelang.TensorSupplyType.Normal, False), (tilelang.TensorSupplyType.Integer, True)):
    assert all((t.float().abs().max() > 9) == large for t in kernel.get_profiler(supply)._inputs())
print(map_torch_type("e4m3_float8"), map_torch_type("e5m2_float8"), map_torch_type("float16"))
"""
    pytest.importorskip("torch")
    (tmp_path / "older.py").write_text(text)
    done = subprocess.run([sys.executable, str(tmp_path / "older.py")], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["torch.float8_e4m3fn", "torch.float8_e5m2", "torch.float16"]


@every_engine
def test_buffers_by_all_that_their_words_take(engine):
    """The third of alloc_buffer is its scope, the fourth of Buffer its strides; a tensor is matched by its elements, not by its name."""

    @T.prim_func
    def main(A: T.Buffer((8, 16), "float32", strides=(32, 1)), B: T.Tensor((4, 32), "float32", None, "global"), C: T.Tensor((2, 16), "float32")):
        D = T.match_buffer(param=B, shape=(16, 8), dtype="float32")
        with T.Kernel(2, threads=32) as b:
            S = T.alloc_buffer((16,), "float32", "shared")
            U = T.alloc_buffer((2, 8), "float32", S.data, None, None, "shared")
            T.alloc_buffer((2, 8), "float32", None, (8, 1), 0, "shared")
            V = T.Tensor((16,), "int32", data=S.data, scope="shared")
            with T.Assert(A[0, 0] >= 0, "not below zero"):
                for i in T.Parallel(16):
                    S[i] = A[b * 4, i] + B[b, i]
            for i in T.Parallel(16):
                C[b, i] = U[i // 8, i % 8] + T.reinterpret(V[15 - i], "float32")
            for i in T.Parallel(8):
                D[b * 8 + 7, i] = 7.0
            assert S.scope() == "shared.dyn" and T.match_buffer(C) is C and D.shape[0] == 16

    wide = np.arange(256, dtype="float32").reshape(8, 32)
    b, c = np.arange(128, dtype="float32").reshape(4, 32), np.empty((2, 16), "float32")
    want_b = b.copy()
    want_b.reshape(16, 8)[[7, 15]] = 7
    sums = wide[[0, 4], :16] + b[:2, :16]
    run(main, engine, wide[:, :16], b, c)
    assert (c == sums + sums[:, ::-1]).all() and (b == want_b).all()


@pytest.mark.parametrize("make, message", [
    (lambda A: T.decl_buffer((8,), "float32", A.data, elem_offset=4), "decl_buffer: a view that begins inside"),
    (lambda A: T.decl_buffer((8,), "float32", elem_offset=4, scope="shared"), "decl_buffer: a view that begins inside"),
    (lambda A: T.decl_buffer((8,), "float32", strides=(2,), scope="shared"), "decl_buffer: strides of an allocation"),
    (lambda A: T.alloc_buffer((8,), "float32", None, None, 4, "shared"), "T.alloc_buffer: a view that begins inside"),
    (lambda A: T.alloc_buffer((8,), "float32", strides=(2,), scope="shared"), "T.alloc_buffer: strides of an allocation"),
    (lambda A: T.Buffer((8,), "float32", A.data, None, 4), "T.Tensor: a view that begins inside"),
    (lambda A: T.match_buffer(A, (8,), elem_offset=4), "match_buffer: a view that begins inside"),
    (lambda A: T.match_buffer(A.data[0]), "match_buffer: no shape"),
    (lambda A: T.match_buffer(A, (8,), "float32"), "view"),
    (lambda A: T.empty((8,), dtyp="float16"), "unexpected keyword argument 'dtyp'"),
    (lambda A: T.alloc_buffer((8,), "float32", "sharde"), "scope is 'sharde'"),
    (lambda A: T.prim_func(lambda B: None, eager_jit=True), "eager_jit"),
])  # fmt: skip
def test_buffers_that_are_refused(make, message):
    def main(A: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=32):
            make(A)

    with pytest.raises((tw.CompileError, TypeError), match=message):
        T.prim_func(main)


def test_no_array_has_elements_that_are_vectors():
    with pytest.raises(tw.CompileError, match=r"TW1103.*parameter 'A' has elements of float32x4") as caught:

        @T.prim_func
        def main(A: T.Tensor((8,), T.float32x4)):
            with T.Kernel(1, threads=8):
                A[0] = 0

    assert "T.Tensor((8, 4), 'float32')" in caught.value.help


def test_words_of_nodes_have_their_names():
    """Parameters are named as in the words that they stand for: the calls that leave out a name leave out what it says."""

    @T.prim_func
    def main(A: T.Tensor((32,), "float32"), B: T.Tensor((4, 32), "float32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            B[0, t] = T.Select(condition=A[t] > 3, true_value=T.meta_var(value=A[t]), false_value=T.float32(-1))
            B[1, t] = T.tvm_warp_shuffle(mask=-1, value=A[t], warp_id=5, width=32, warp_size=32)
            B[2, t] = T.tvm_warp_shuffle_up(mask=-1, value=A[t], offset=1, width=32, warp_size=32)
            B[3, t] = T.tvm_warp_shuffle_down(mask=-1, value=A[t], offset=2, width=32, warp_size=32)
            if T.ignore_loop_partition(predicate=t < 4):
                B[3, t] = A[t] * 2

    a, b = np.arange(32, dtype="float32"), np.empty((4, 32), "float32")
    run(main, "interpreter", a, b)
    assert (b == np.stack([np.where(a > 3, a, -1), np.full(32, 5), np.maximum(a - 1, 0), np.where(a < 4, 2 * a, np.where(a < 30, a + 2, a))])).all()
