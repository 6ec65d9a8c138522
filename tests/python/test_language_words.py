"""Programs in the words of the language that few programs have: each compared with NumPy on the engines."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
from on_engines import every_engine, run, run_on_hopper, two_engines


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
            t = T.get_thread_binding()
            at = T.Ramp(t * 2 + 4, 1, 2)
            B[36:38] = T.add2(A[at], A[at])

    a, b, c = np.arange(1, 17, dtype="float32"), np.zeros(40, "float32"), np.zeros(4, "int32")
    run(main, engine, a, b, c)
    assert b[:4].tolist() == [3, 4, 5, 5] and b[4:12].tolist() == [1, 2, 3, 4, 5, 1, 3, 2] and b[12:14].tolist() == [4, 5]
    assert c.tolist() == [3, 5, 7, 9] and b[14:18].tolist() == [2, 5, 8, 11] and b[18:22].tolist() == [5, 6, 7, 8]
    x = a[:4]
    assert np.allclose(b[22:26], (x - 5) / (x * 0.5 + 1)) and np.allclose(b[26:30], 2**x) and (b[30:34] == x).all()
    assert b[34] == a[7] and b[35] == 3 and b[36:38].tolist() == [10, 12]


@pytest.mark.parametrize("give, kind, message", [(lambda v, x: (x, 0), ValueError, "expects a vector expression"),
                                                 (lambda v, x: (v, x), TypeError, "a compile-time integer"),
                                                 (lambda v, x: (1, 0), TypeError, "expects a PrimExpr"),
                                                 (lambda v, x: (v, 2), IndexError, "lane 2 of a vector of 2 is out of bounds")])  # fmt: skip
def test_lanes_that_are_not_there(give, kind, message):
    with pytest.raises(kind, match=message):
        T.extract_lane(*give(T.Var("v", "float32x2"), T.Var("x", "int32")))


@every_engine
def test_variables_that_hold_vectors(engine):
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=1):
            total, before = T.alloc_var("float32x2"), T.float32x2(A[0], A[1])
            A[0] = 100.0
            for i in T.serial(4):
                total = total + T.float32x2(A[2 * i], A[2 * i + 1])
            last = total
            total = 7.0
            B[0:2] = last
            B[2:4] = total
            B[4:6] = before
            B[6:8] = A[6:8]

    a, b = np.arange(8, dtype="float32"), np.empty(8, "float32")
    run(main, engine, a, b)
    assert b.tolist() == [112, 16, 7, 7, 0, 1, 6, 7]


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
@pytest.mark.parametrize("begin, word", [(None, "reducer_init"), (5, "reducer_init"), (5, "fill"), (0, "clear")])
def test_reducers_of_the_second_interface(engine, op, begin, word):
    rows, columns = 4, 48

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "int32"), B: T.Tensor((2, rows), "int32")):
        with T.Kernel(1, threads=64):
            tile, total = T.alloc_fragment((rows, columns), "int32"), T.alloc_reducer((rows,), "int32", op=op)
            out = T.alloc_fragment((rows,), "int32")
            for turn in T.serial(2):
                T.copy(A, tile)
                if word == "clear":
                    T.clear(total)
                else:
                    getattr(T, word)(total, begin)
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


@every_engine
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int8"])
def test_sums_beside_other_statements(engine, dtype):
    rows, columns = 3, 200

    @T.prim_func
    def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype), C: T.Tensor((5, rows), "int32")):
        with T.Kernel(1, threads=64):
            a, b = T.alloc_fragment((rows, columns), dtype), T.alloc_fragment((rows, columns), dtype)
            plain, late, both = (T.alloc_reducer((rows,), dtype, replication="all") for _ in range(3))
            shared = T.alloc_shared((rows,), "int32")
            T.clear(plain), T.clear(late), T.clear(both), T.clear(shared)
            T.copy(A, a)
            for turn in T.serial(2):
                for i, j in T.Parallel(rows, columns):
                    b[i, j] = a[i, columns - 1 - j] + T.cast(j % 2, dtype)
                    plain[i] += a[i, j] * T.cast(1 - j % 3, dtype)
                    late[rows - 1 - i] += b[i, j]  # what this point has just stored
                    both[i] += a[i, j]
                    both[0] += T.cast(i, dtype)
                    T.atomic_add(shared[i], T.cast(a[i, j], "int32") * j)
            T.finalize_reducer(plain), T.finalize_reducer(late), T.finalize_reducer(both)
            T.copy(b, B)
            for i in T.Parallel(rows):
                C[0, i], C[1, i], C[2, i], C[3, i] = plain[i], late[i], both[i], shared[i]
                C[4, i] = 7

    a = np.random.default_rng(3).integers(-1, 2, (rows, columns)).astype(dtype)
    b, c = np.zeros_like(a), np.zeros((5, rows), "int32")
    run(main, engine, a, b, c)
    j, wide = np.arange(columns), a.astype("int64")
    want_b = wide[:, ::-1] + j % 2
    wrap = (lambda x: x.astype("int8")) if dtype == "int8" else lambda x: x
    assert (b == want_b).all()
    assert (c[0] == wrap(2 * (wide * (1 - j % 3)).sum(1))).all() and (c[1] == wrap(2 * want_b.sum(1)[::-1])).all()
    assert (c[2] == wrap(2 * wide.sum(1) + np.array([2 * columns * 3, 0, 0]))).all()
    assert (c[3] == 2 * (wide * j).sum(1)).all() and (c[4] == 7).all()


def test_sums_on_the_cpu_are_those_of_lanes():
    @T.prim_func
    def main(A: T.Tensor((8, 8192), "float32"), B: T.Tensor((8, 8192), "float32"), C: T.Tensor((8,), "float32")):
        with T.Kernel(8, threads=128) as b:
            total = T.alloc_reducer((1,), "float32", replication="all")
            T.clear(total)
            for i in T.Parallel(8192):
                B[b, i] = A[b, i] + 1
                total[0] += A[b, i] * A[b, i]
            T.finalize_reducer(total)
            C[b] = total[0]

    a = np.random.default_rng(5).normal(size=(8, 8192)).astype("float32")
    b, c = np.empty_like(a), np.empty(8, "float32")
    run(main, "cpu", a, b, c)
    assert (b == a + 1).all() and np.abs(c / (a.astype("float64") ** 2).sum(1) - 1).max() < 1e-6


def test_reducers_that_are_refused():
    def program(kind):
        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=32):
                if kind == "bits":
                    T.alloc_reducer((8,), "float32", op="bitor")
                elif kind == "tile":
                    T.reducer_update(A, 1.0)
                elif kind == "init":
                    T.reducer_init(A)
                else:
                    total = T.alloc_reducer((8,), "float32")
                    if kind == "twice":
                        T.reducer_init(total)
                        T.reducer_init(total)
                    for i in T.Parallel(8):
                        T.reducer_update(total[i], A[i])

        return main

    for kind, message in (("bits", "alloc_reducer: bitor of float32"), ("tile", "reducer_update expects"), ("init", "reducer_init of .*no reducer"),
                          ("twice", "reducer_init of 'total', which has begun"), ("early", "reducer_update of 'total', which has not begun")):  # fmt: skip
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
            tiles = T.PersistentTileScheduler(m, n, num_workers=workers, swizzle_size=swizzle, column_major=column_major, name="tiles")
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
    assert "tiles_m_idx" in main.script()
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


@every_engine
def test_more_of_cudas_device_functions(engine):
    @T.prim_func
    def main(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32"), C: T.Tensor((8, 16), "float32"), D: T.Tensor((16,), "float64"), I: T.Tensor((3, 16), "int32"),
             H: T.Tensor((3, 16), "float16")):  # fmt: skip
        with T.Kernel(1, threads=32):
            for i in T.Parallel(16):
                C[0, i] = T.call_extern("float32", "roundf", A[i])
                C[1, i] = T.call_extern("float32", "fdimf", A[i], B[i])
                C[2, i] = T.call_extern("float32", "__saturatef", A[i])
                C[3, i] = T.call_extern("float32", "max", A[i], B[i])
                C[4, i] = T.call_extern("float32", "min", A[i], 0.25)
                C[5, i] = T.call_extern("float32", "abs", A[i])
                C[6, i] = T.call_extern("float32", "__powf", B[i], 2.0)
                C[7, i] = T.call_extern("float32", "roundf", A[i] * 1e30)
                D[i] = T.call_extern("float64", "round", T.cast(A[i], "float64"))
                n = T.cast(A[i] * 4, "int32")
                I[0, i] = T.call_extern("int32", "max", n, 3)
                I[1, i] = T.call_extern("int32", "abs", n)
                I[2, i] = T.call_extern("int32", "min", n, i)
                h = T.cast(A[i], "float16")
                H[0, i] = T.call_extern("float16", "__hadd", h, h)
                H[1, i] = T.call_extern("float16", "hexp", T.cast(B[i], "float16"))
                H[2, i] = T.call_extern("float16", "__hmax", h, T.cast(B[i], "float16"))

    a = np.array([0.5, -0.5, 2.5, -2.5, 0.49999997, 1.5, -0.0, np.inf, -np.inf, np.nan, 8388609, 3.25, -0.75, 0.2, 7, -7], "float32")
    b = np.linspace(0.5, 2, 16, dtype="float32")
    c, d, i, h = np.empty((8, 16), "float32"), np.empty(16), np.empty((3, 16), "int32"), np.empty((3, 16), "float16")
    run(main, engine, a, b, c, d, i, h)
    with np.errstate(invalid="ignore", over="ignore"):
        away = np.trunc(a) + np.copysign(np.abs(a - np.trunc(a)) >= 0.5, a).astype("float32")
        large = np.where(np.isfinite(a), a * np.float32(1e30), a)
        n = np.clip(np.nan_to_num(np.trunc(a * 4), nan=0), -(2.0**31), 2.0**31 - 1).astype("int64").astype("int32")
        away[7:9] = a[7:9]
        want = [away, np.where(a <= b, 0, a - b), np.where(np.isnan(a), 0, np.clip(a, 0, 1)), np.fmax(a, b), np.fmin(a, np.float32(0.25)), np.abs(a), b * b, large]
        assert np.allclose(c, np.stack(want), rtol=1e-5, equal_nan=True) and np.array_equal(d[:9], away[:9].astype("float64"))
        finite = np.abs(a) < 100
        assert (i == np.stack([np.maximum(n, 3), np.abs(n), np.minimum(n, np.arange(16))]))[:, finite].all()
        x = a.astype("float16")
        assert np.allclose(h, np.stack([x + x, np.exp(b.astype("float16")), np.fmax(x, b.astype("float16"))]), rtol=2e-3, equal_nan=True)


def test_pure_calls_of_device_functions():
    @T.prim_func
    def main(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=1):
            T.import_source("__device__ float twice(float x) { return 2 * x; }")
            A[0] = T.call_pure_extern("float32", "twice", A[1])

    assert "twice(" in main.script()


def test_questions_about_dtypes():
    assert T.get_tvm_dtype("float16") is T.float16 and T.type_annotation("int8") is T.int8 and T.AnyDType is not None and T.DataType("float16").bits == 16
    assert T.dtype("torch.float4_e2m1fn_x2") is T.float4_e2m1fnx2 and T.dtype("torch.float16") is T.float16
    assert T.is_float4(T.float4_e2m1fnx2) and T.is_float4_e2m1fn("float4_e2m1fn") and not T.is_float4("float8_e5m2")
    assert T.is_f8f6f4_family("float6_e3m2fn") and not T.is_f8f6f4_family("float16") and not T.is_float4_e2m1_unpacked("float4_e2m1fn")
    T.validate_gemm_ab_dtypes("float8_e4m3fn", "float6_e2m3fn", allow_f8f6f4_mixed=True)
    with pytest.raises(ValueError, match="float8_e4m3fn and float8_e5m2"):
        T.validate_gemm_ab_dtypes("float8_e4m3fn", "float8_e5m2")
    n = T.var("int32", "n")
    assert isinstance(n, T.Var) and isinstance(n, T.SizeVar) and T.float6_e2m3fn.bits == 6
    assert len(T.var("float16x2", "pair")) == 2 and T.extract_lane(T.Var("x", "float32x4"), 3).dtype == "float32"
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
tilelang.tools tilelang.tools.plot_layout tilelang.cuda.language tilelang.cuda.language.tir tilelang.autotuner.tuner tilelang.engine tilelang.engine.lower""".split()


def test_modules_of_the_original_can_be_imported():
    import os
    import subprocess
    import sys

    text = "import tilewright as tw; tw.install_as_tilelang(force=True)\n" + "".join(f"import {m}\n" for m in MODULES)
    text += (
        "from tilelang.language.reduce_op import reduce_max\nfrom tilelang.tools import plot_layout\nfrom tilelang.utils.language import is_fragment\n"
        "from tilelang.autotuner.tuner import AutoTuner\nfrom tilelang.cache.kernel_cache import KernelCache\n"
        "from tilelang.quantize import _tir_packed_to_unsigned_convert, get_lop3_intrin_group\nassert callable(_tir_packed_to_unsigned_convert)\n"
        "from tilelang.intrinsics.mma_macro_generator import TensorCoreIntrinEmitter, TensorCoreIntrinEmitterWithLadderTransform\n"
        "from tilelang.intrinsics import get_swizzle_layout, make_mma_swizzle_layout, mfma_layout\n"
        "from tilelang.transform.simplify import apply_simplify\nfrom tilelang.intrinsics.utils import get_mma_micro_size\nassert get_mma_micro_size('int8') == (16, 16, 32)\n"
        "from tilelang.tileop.base import GemmWarpPolicy\nfrom tilelang.utils import determine_fp8_type\nfrom tilelang.cache import cached\n"
        "import tilelang, tvm\nassert tilelang.profiler.cached and tvm.te.var('n') is not None\n"
        "import tilelang.language as T\nassert T.GemmWarpPolicy is GemmWarpPolicy and T.reduce_max is reduce_max and callable(plot_layout)\n"
        "try:\n    KernelCache()\nexcept tw.TilewrightError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
    assert "tilelang.cache.kernel_cache.KernelCache is part of TileLang's own machinery" in done.stdout
