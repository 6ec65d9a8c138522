"""Operations in the words of TVM and PTX, which are written with others: pointers, reductions over threads, shuffles."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T

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
    with pytest.raises(tw.CompileError, match="return_prev"):

        @T.prim_func
        def prev(A: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=1):
                T.atomic_addx4(A[0], A[0], return_prev=True)

    with pytest.raises(tw.CompileError, match="T.access_ptr of 3"):
        T.access_ptr(3)
