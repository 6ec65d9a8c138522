"""Programs in the words of the language that few programs have: each compared with NumPy on the engines."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T

ENGINES = ["interpreter", "cpu", "simulator"]
every_engine = pytest.mark.parametrize("engine", ENGINES)
two_engines = pytest.mark.parametrize("engine", ["interpreter", "simulator"])


def run(program, engine, *arrays):
    tw.compile(program, engine=engine)(*arrays)


def run_on_hopper(program, engine, *arrays):
    """In the simulator of the GPU that has what the program names."""
    tw.compile(program, **({"target": "simulator -arch=sm_90a"} if engine == "simulator" else {"engine": engine}))(*arrays)


# ---- vectors


@every_engine
def test_parts_of_vectors(engine):
    @T.prim_func
    def main(A: T.Tensor((16,), "float32"), B: T.Tensor((40,), "float32"), C: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=1):
            x, y = T.float32x4(A[0], A[1], A[2], A[3]), T.broadcast(A[4], 4)
            B[0:4] = T.vectorcombine("float32x4", T.vectorhigh("float32x2", x), T.vectorlow("float32x2", y))
            B[4:12] = T.vectorcombine("float32x8", x, T.Shuffle([x, y], [7, 0, 2, 1]))
            B[12:14] = T.min2(T.add2(T.float32x2(A[0], A[1]), T.float32x2(A[2])), T.float32x2(A[8], A[9]))
            C[0:4] = T.ramp(3, 2, 4)
            B[14:18] = A[T.Ramp(1, 3, 4)]
            B[18:22] = A[T.Ramp(4, 1, 4)]
            B[22:26] = (x - y) / (x * 0.5 + 1.0)
            B[26:30] = T.exp2(T.float32x4(A[0:4])) if False else T.exp2(x)
            packed = T.reinterpret(T.float16x4(x), "uint32x2")
            B[30:34] = T.float32x4(T.reinterpret(packed, "float16x4"))
            B[34] = T.extract_lane(T.reinterpret(T.ldg64(A[6]), "float32x2"), 1)
            B[35] = T.Shuffle([x], [2])

    a, b, c = np.arange(1, 17, dtype="float32"), np.zeros(40, "float32"), np.zeros(4, "int32")
    run(main, engine, a, b, c)
    assert b[:4].tolist() == [3, 4, 5, 5] and b[4:12].tolist() == [1, 2, 3, 4, 5, 1, 3, 2] and b[12:14].tolist() == [4, 5]
    assert c.tolist() == [3, 5, 7, 9] and b[14:18].tolist() == [2, 5, 8, 11] and b[18:22].tolist() == [5, 6, 7, 8]
    x = a[:4]
    assert np.allclose(b[22:26], (x - 5) / (x * 0.5 + 1)) and np.allclose(b[26:30], 2**x) and (b[30:34] == x).all()
    assert b[34] == a[7] and b[35] == 3


@every_engine
def test_loads_and_stores_of_many_bits(engine):
    @T.prim_func
    def main(A: T.Tensor((16,), "float32"), B: T.Tensor((24,), "float32")):
        with T.Kernel(1, threads=1):
            S = T.alloc_shared((16,), "float32")
            T.copy(A, S)
            T.stg256(B[0], T.ldg256(A[0]))
            T.stg64(B[8], T.lds64(S[2]))
            T.stg32(B[10], T.lds32(S[5]))
            T.sts64(S[0], T.ldg64(A[8]))
            T.sts32(S[2], T.ldg32(A[10]))
            B[12] = S[0] + S[1] + S[2]
            B[13] = T.__ldg(A[3]) + T.__ldg(A, 4)

    a, b = np.arange(16, dtype="float32"), np.zeros(24, "float32")
    run(main, engine, a, b)
    assert (b[:8] == a[:8]).all() and b[8:11].tolist() == [2, 3, 5] and b[12] == 8 + 9 + 10 and b[13] == 7


# ---- reductions


@every_engine
@pytest.mark.parametrize("op", ["sum", "max", "min", "bitand", "bitor", "bitxor"])
@pytest.mark.parametrize("begin", [None, 5])
def test_reducers_of_the_second_interface(engine, op, begin):
    rows, columns = 4, 48

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "int32"), B: T.Tensor((2, rows), "int32")):
        with T.Kernel(1, threads=64):
            tile, total = T.alloc_fragment((rows, columns), "int32"), T.alloc_reducer((rows,), "int32", op=op)
            out = T.alloc_fragment((rows,), "int32")
            for turn in T.serial(2):
                T.copy(A, tile)
                T.reducer_init(total, begin)
                for i, j in T.Parallel(rows, columns):
                    T.reducer_update(total[i], tile[i, j] + turn)
                T.finalize_reducer(total, out)
                T.copy(out, B[turn, 0:rows])

    a = np.random.default_rng(5).integers(-1000, 1000, (rows, columns)).astype("int32")
    b = np.empty((2, rows), "int32")
    run(main, engine, a, b)
    function = {"sum": np.add, "max": np.maximum, "min": np.minimum, "bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor}[op]
    for turn in range(2):
        want = function.reduce(a + turn, axis=1)
        assert (b[turn] == (want if begin is None else function(want, begin))).all()


def test_reducers_that_are_refused():
    def program(kind):
        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=32):
                if kind == "bits":
                    T.alloc_reducer((8,), "float32", op="bitor")
                elif kind == "tile":
                    T.reducer_update(A, 1.0)
                else:
                    T.reducer_init(A)

        return main

    for kind, message in (("bits", "alloc_reducer: bitor of float32"), ("tile", "reducer_update expects"), ("init", "reducer_init of .*no reducer")):
        with pytest.raises(tw.CompileError, match=message):
            program(kind)


@every_engine
def test_reductions_by_bits_and_by_name(engine):
    @T.prim_func
    def main(A: T.Tensor((4, 32), "int32"), B: T.Tensor((5, 4), "int32")):
        with T.Kernel(1, threads=32):
            tile, out = T.alloc_fragment((4, 32), "int32"), T.alloc_fragment((4,), "int32")
            T.copy(A, tile)
            for k, reduction in enumerate((T.reduce_bitand, T.reduce_bitor, T.reduce_bitxor, T.reduce_abssum)):
                reduction(tile, out, dim=1)
                T.copy(out, B[k, 0:4])
            T.reduce(tile, out, "max", 1, True)
            T.copy(out, B[4, 0:4])

    a, b = np.random.default_rng(6).integers(-99, 99, (4, 32)).astype("int32"), np.empty((5, 4), "int32")
    run(main, engine, a, b)
    want = [np.bitwise_and.reduce(a, 1), np.bitwise_or.reduce(a, 1), np.bitwise_xor.reduce(a, 1), abs(a).sum(1), a.max(1)]
    assert (b == np.stack(want)).all()
    with pytest.raises(tw.CompileError, match="T.reduce by 'product'"):

        @T.prim_func
        def other(A: T.Tensor((4, 32), "int32")):
            with T.Kernel(1, threads=32):
                T.reduce(A, A, "product", 1, True)


# ---- tiles, loops and schedules


@every_engine
def test_transpose(engine):
    @T.prim_func
    def main(A: T.Tensor((8, 24), "float32"), B: T.Tensor((2, 24, 8), "float32")):
        with T.Kernel(1, threads=32):
            S, R = T.alloc_shared((8, 24), "float32"), T.alloc_shared((24, 8), "float32")
            T.copy(A, S)
            T.transpose(S, R)
            T.copy(R, B[0, 0:24, 0:8])
            T.transpose(S[0:8, 0:8], R[8:16, 0:8])
            T.copy(R, B[1, 0:24, 0:8])

    a, b = np.arange(192, dtype="float32").reshape(8, 24), np.empty((2, 24, 8), "float32")
    run(main, engine, a, b)
    second = a.T.copy()
    second[8:16] = a[:, :8].T
    assert (b[0] == a.T).all() and (b[1] == second).all()
    with pytest.raises(tw.CompileError, match=r"transpose of \[8, 24\] into \[8, 24\]"):

        @T.prim_func
        def other(A: T.Tensor((8, 24), "float32")):
            with T.Kernel(1, threads=32):
                T.transpose(A, A)


def _tiles(m, n, swizzle, column_major):
    """(row, column) of tiles in their order, written from what panels are."""
    along, across = (m, n) if column_major else (n, m)
    order = []
    for first in range(0, across, swizzle):
        width = min(swizzle, across - first)
        order += [(i, first + k) for i in range(along) for k in range(width)]
    return [(i, j) if column_major else (j, i) for i, j in order]


@every_engine
@pytest.mark.parametrize("swizzle, column_major", [(1, True), (1, False), (2, True), (3, False)])
def test_persistent_tile_scheduler(engine, swizzle, column_major):
    m, n, workers = 5, 7, 4

    @T.prim_func
    def main(B: T.Tensor((m, n), "int32"), R: T.Tensor((m * n, 2), "int32")):
        with T.Kernel(workers, threads=32) as worker:
            tiles = T.PersistentTileScheduler(m, n, num_workers=workers, swizzle_size=swizzle, column_major=column_major)
            tiles.init(worker)
            while tiles.valid():
                i, j = tiles.m_idx, tiles.n_idx
                tiles.next_tile()
                B[i, j] = (tiles.current_iter - 1) * workers + worker
            decoder = T.PersistentTileScheduler(m, n, workers, swizzle, column_major, stateful=False)
            for w in T.serial(m * n):
                row, column = decoder.coord(w)
                R[w, 0] = row
                R[w, 1] = column

    b, r = np.full((m, n), -1, "int32"), np.empty((m * n, 2), "int32")
    run(main, engine, b, r)
    order = _tiles(m, n, swizzle, column_major)
    assert [tuple(p) for p in r.tolist()] == order
    assert [int(b[i, j]) for i, j in order] == list(range(m * n))


@every_engine
def test_schedulers_of_ones_own(engine):
    @T.meta_class
    class Backwards(T.BaseTileScheduler):
        def __init__(self, count):
            super().__init__()
            self._total_tiles = count

        def update_current_idx(self, linear_idx):
            self._m_idx[0] = self._total_tiles - 1 - linear_idx
            if linear_idx % 2 == 0:
                self._n_idx[0] = 7

    @T.prim_func
    def main(B: T.Tensor((6, 2), "int32")):
        with T.Kernel(1, threads=1):
            tiles = Backwards(6)
            tiles.init(0)
            while tiles.valid():
                B[tiles.linear_idx, 0] = tiles.m_idx
                B[tiles.linear_idx, 1] = tiles.n_idx
                tiles.next_tile(1)

    b = np.zeros((6, 2), "int32")
    run(main, engine, b)
    assert b[:, 0].tolist() == [5, 4, 3, 2, 1, 0] and (b[:, 1] == 7).all()


@every_engine
def test_blocks_and_loops_in_the_words_of_scripts(engine):
    @T.prim_func
    def main(A: T.Tensor((4, 8), "int32"), B: T.Tensor((4,), "int32"), C: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=1):
            total = T.alloc_local((4,), "int32")
            for i, k in T.grid(4, 8):
                with T.sblock("sums"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    T.reads(A[vi, vk])
                    T.writes(total[vi])
                    T.where(vk < 6)
                    with T.init():
                        total[vi] = 0
                    total[vi] = total[vi] + A[vi, vk]
            for i in T.serial(4):
                B[i] = total[i]
            for i in T.parallel(3):
                T.buffer_store(C, 0, [i])
            for i in T.parallel(3, 8):
                T.buffer_store(C, 0, [i])
            for i in T.Unroll(0, 8):
                T.buffer_store(C, T.bind(i * 3), [i], predicate=i != 2)
            n = T.alloc_var("int32", 0)
            with T.While(n < 100):
                n += 1
                with T.If(n % 2 == 0), T.Then():
                    T.continue_loop()
                with T.If(n > 6), T.Then():
                    T.break_loop()
                C[n] = -n
            for k in T.serial(8):
                if k == 1:
                    T.loop_break()
                C[k] = 50
            for v in T.Vectorized(2):
                C[6 + v] = 60 + v

    a, b, c = np.arange(32, dtype="int32").reshape(4, 8), np.empty(4, "int32"), np.empty(8, "int32")
    run(main, engine, a, b, c)
    assert (b == a[:, :6].sum(1)).all() and c.tolist() == [50, -1, 0, -3, 12, -5, 60, 61]
    with pytest.raises(tw.CompileError, match="T.where outside of T.sblock"):

        @T.prim_func
        def other(A: T.Tensor((4,), "int32")):
            with T.Kernel(1, threads=1):
                T.where(A[0] > 0)


@every_engine
def test_memory_in_the_words_of_scripts(engine):
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), p: T.Ptr("float32")):
        B = T.arg("B", T.Tensor((4, 8), "float32"))
        T.Assert(True, "always")
        with T.Kernel(1, threads=32):
            S = T.allocate([4, 8], "float32", "shared")
            F = T.decl_buffer((8, 4), "float32", data=S.data)
            G = T.buffer_decl([4, 8], "float32", scope="local.fragment")
            T.copy(A, S)
            T.copy(S, G)
            X = T.make_tensor_from_addr(p, (32,), "float32")
            for i, j in T.Parallel(4, 8):
                r, c = T.index_to_coordinates(i * 8 + j, [8, 4])
                B[i, j] = F[r, c] + G[i, j] + X[i * 8 + j]
            null = T.isnullptr(p)
            Y = T.make_tensor(T.handle_add_byte_offset(T.address_of(A[1, 0]), 8), (4,), "float32")
            if T.get_thread_binding() == 0:
                B[0, 0] = T.if_then_else(null, -1.0, Y[0])
                T.Assert(B[0, 0] > 0, "an address is not null")

    a, x, b = np.arange(1, 33, dtype="float32").reshape(4, 8), np.ones(32, "float32"), np.empty((4, 8), "float32")
    run(main, engine, a, x, b)
    want = 2 * a + 1
    want[0, 0] = a[1, 2]
    assert (b == want).all()


@every_engine
def test_intrinsics_by_name(engine):
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((8, 8), "float32")):
        with T.Kernel(1, threads=8):
            for i in T.Parallel(8):
                B[0, i] = T.call_intrin("float32", "tir.exp2", A[i])
                B[1, i] = T.call_llvm_intrin("float32", "llvm.sqrt.f32", A[i])
                B[2, i] = T.call_llvm_pure_intrin("float32", "llvm.fma.f32", A[i], A[i], 1.0)
                B[3, i] = T.Add(T.Mul(A[i], 2.0), T.IntImm("int32", 3)) - T.FloatImm("float32", 0.5)
                B[4, i] = T.BufferLoad(A, [7 - i]) + T.cast(T.undef(), "float32")
                B[5, i] = T.Call("float32", "tir.fabs", [-A[i]])
                B[6, i] = T.cast(T.Div(T.cast(A[i], "int32"), 3), "float32") + T.Max(A[i], 4.0)
                B[7, i] = T.likely(A[i])

    a, b = np.arange(8, dtype="float32"), np.empty((8, 8), "float32")
    run(main, engine, a, b)
    want = [2**a, np.sqrt(a), a * a + 1, a * 2 + 2.5, a[::-1], a, a.astype(int) // 3 + np.maximum(a, 4), a]
    assert np.allclose(b, np.stack(want), rtol=1e-6)
    assert isinstance(a, T.BufferLoad) is False and T.Range(2, 5).extent == 3 and T.StringImm("x") == "x"
    with pytest.raises(tw.CompileError, match="TW1102.*there is no 'llvm.prefetch' here"):
        T.call_llvm_intrin("int32", "llvm.prefetch", 1)


def test_pure_calls_of_device_functions():
    @T.prim_func
    def main(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=1):
            T.import_source("__device__ float twice(float x) { return 2 * x; }")
            A[0] = T.call_pure_extern("float32", "twice", A[1])

    assert "twice(" in main.script()


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


@pytest.mark.parametrize("given, message", [((7, 2), "of 2 arguments"), ((7, 1, "A", 8, 4, 8, 1, 0, 3, 0, 0), "interleave 0, swizzle 3"),
                                            ((7, 1, "A", 8, 4, 8, 2, 0, 0, 0, 0), r"steps \[2\]")])  # fmt: skip
def test_tensor_maps_that_are_refused(given, message):
    with pytest.raises(tw.CompileError, match=message):
        T.create_tma_descriptor(*given)


def test_rows_gathered_and_scattered():
    """The instructions are those of sm_100; sm_90a loads a single row of a tile only where eights of rows begin."""

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
    run(main, "interpreter", a, b, r)
    want = np.zeros_like(b)
    want[[3, 1, 0, 2], 32:64] = a[r, 16:48]
    assert (b == want).all()
    with pytest.raises(tw.CompileError, match="TW8204"):
        run_on_hopper(main, "simulator", a, b, r)


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


def test_questions_about_dtypes():
    assert T.get_tvm_dtype("float16") is T.float16 and T.type_annotation("int8") is T.int8 and T.AnyDType is not None
    assert T.is_float4(T.float4_e2m1fnx2) and T.is_float4_e2m1fn("float4_e2m1fn") and not T.is_float4("float8_e5m2")
    assert T.is_f8f6f4_family("float6_e3m2fn") and not T.is_f8f6f4_family("float16") and not T.is_float4_e2m1_unpacked("float16")
    T.validate_gemm_ab_dtypes("float8_e4m3fn", "float6_e2m3fn", allow_f8f6f4_mixed=True)
    with pytest.raises(ValueError, match="float8_e4m3fn and float8_e5m2"):
        T.validate_gemm_ab_dtypes("float8_e4m3fn", "float8_e5m2")
    n = T.var("int32", "n")
    assert isinstance(n, T.Var) and isinstance(n, T.SizeVar) and T.float6_e2m3fn.bits == 6
    assert T.symbolic("k").symbol == "k" and not isinstance(n, T.IntImm)


# ---- hints and types, which change no result


@every_engine
def test_hints(engine):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        T.func_attr({"global_symbol": "main"})
        T.assume(cond=True)
        T.annotate_compile_flags(["-O3"])
        T.annotate_pass_configs({})
        T.annotate_restrict_buffers(A)
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 64), "float32")
            F = T.alloc_fragment((64, 64), "float32")
            smooth = T.make_mma_swizzle_layout(S, is_smooth=True)
            T.annotate_layout({S: smooth})
            T.annotate_layout(layout_map={F: T.PartialFragment((64, 64), forward_thread_fn=lambda i, j: i * 2 + j // 32,
                                                               forward_index_fn=lambda i, j: j % 32, combine="sum")})  # fmt: skip
            T.annotate_l2_hit_ratio({A: 0.5})
            T.annotate_producer_reg_dealloc(24)
            T.annotate_consumer_reg_alloc(240)
            T.no_set_max_nreg()
            T.disable_warp_group_reg_alloc()
            T.annotate_ws_pipeline_depth({S: 2})
            role, line = T.WSRole("all", warps_lo=0, warps_hi=4), T.WSPipeline("s", [S], 2)
            steps = [T.WSSync.producer_acquire("s"), "load", T.WSOpRef("store"), T.WSSync(T.WSSyncKind.PRODUCER_COMMIT, "s")]
            T.annotate_ws_schedule(T.WSSchedule(4, [role], [line], [T.WSScope(T.WSScope.ROOT, {"all": steps})]))
            assert all(isinstance(s, (T.WSInstr, str)) for s in steps) and isinstance(T.WSID, str)
            T.start_profile_intrinsic(1)
            T.copy(A, S, annotations={T.WSID: "load"})
            T.copy(S, F)
            T.end_profile_intrinsic(1)
            T.copy(F, B)

    a, b = np.random.default_rng(9).normal(size=(64, 64)).astype("float32"), np.empty((64, 64), "float32")
    run(main, engine, a, b)
    assert (a == b).all()


@two_engines
def test_roles_and_their_registers(engine):
    @T.macro
    def plus(F: T.FragmentBuffer((64,), "float32"), S: T.SharedBuffer((64,), "float32"), L: T.LocalBuffer((1,), "float32")):
        for i in T.Parallel(64):
            S[i] = S[i] + 1.0

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=256):
            S, L = T.alloc_shared((64,), "float32"), T.alloc_local((1,), "float32")
            ready = T.alloc_barrier(128)
            with T.ws(0):
                T.dec_max_nreg(reg_count=24)
                T.copy(A, S)
                T.mbarrier_arrive(ready)
            with T.WarpSpecialize(1):
                T.set_max_nreg(reg_count=240, is_inc=1)
                T.inc_max_nreg(reg_count=240)
                T.mbarrier_wait_parity(ready, 0)
                plus(S, S, L)
                T.copy(S, B)

    a, b = np.arange(64, dtype="float32"), np.empty(64, "float32")
    run_on_hopper(main, engine, a, b)
    assert (b == a + 1).all()
    assert isinstance(main, T.PrimFunc) and isinstance(T.ws(0), T.WarpSpecializeFrame)
    assert isinstance(T.Layout((4, 4), lambda i, j: i * 4 + j), T.Layout) and not isinstance(1, T.KernelLaunchFrame)
    assert isinstance(tw.jit(lambda: None), T.JITFunc) and callable(T.TensorCoreIntrinEmitter)
    assert T.dtypes.float16 is T.float16 and T.kernel.Kernel is T.Kernel


def test_layouts_of_more_dimensions_and_pictures_of_them(tmp_path):
    layout = T.Layout((4, 8), lambda i, j: (j // 4, i, j % 4))
    wide = layout.expand([2])
    assert [*wide.shape] == [2, 4, 8] and wide.at((1, 2, 5)) == (1, 1, 2, 1) and layout.expand([]) is layout
    from tilewright.plot_layout import plot_layout

    plot_layout(T.Layout((2, 4), lambda i, j: j * 2 + i), save_directory=str(tmp_path), name="columns", formats="svg")
    text = (tmp_path / "columns.svg").read_text()
    assert [int(line.split(">")[1].split("<")[0]) for line in text.splitlines() if line.startswith("<text")] == [0, 2, 4, 6, 1, 3, 5, 7]
    fragment = T.Fragment((2, 2), forward_fn=lambda i, j: (i * 2 + j, 0))
    plot_layout(fragment, str(tmp_path), "lanes", formats=["svg"])
    assert "T3" in (tmp_path / "lanes.svg").read_text()
    with pytest.raises(ValueError, match="format 'jpg'"):
        plot_layout(fragment, str(tmp_path), formats="jpg")


# ---- modules


MODULES = """tilelang.language.tir tilelang.language.tir.ir tilelang.language.tir.op tilelang.language.loop tilelang.language.reduce_op
tilelang.analysis tilelang.cache tilelang.cache.kernel_cache tilelang.env tilelang.carver tilelang.carver.roller tilelang.jit.adapter
tilelang.jit.adapter.utils tilelang.quantize tilelang.quantize.mxfp tilelang.utils tilelang.utils.language tilelang.utils.deprecated
tilelang.tools tilelang.tools.plot_layout tilelang.autotuner.tuner tilelang.engine tilelang.engine.lower""".split()


def test_modules_of_the_original_can_be_imported():
    import subprocess
    import sys

    text = "import tilewright as tw; tw.install_as_tilelang(force=True)\n" + "".join(f"import {m}\n" for m in MODULES)
    text += (
        "from tilelang.language.reduce_op import reduce_max\nfrom tilelang.tools import plot_layout\nfrom tilelang.utils.language import is_fragment\n"
        "from tilelang.autotuner.tuner import AutoTuner\nfrom tilelang.cache.kernel_cache import KernelCache\n"
        "import tilelang.language as T\nassert T.reduce_max is reduce_max and callable(plot_layout)\n"
        "try:\n    KernelCache()\nexcept tw.TilewrightError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "tilelang.cache.kernel_cache.KernelCache is part of TileLang's own machinery" in done.stdout
