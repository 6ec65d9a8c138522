"""Values of a few lanes, packed atomics, tensors at addresses, layouts as functions: what programs of TileLang lean on."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
from engines import array_for, every_engine
from tilewright import _native
from tilewright.layouts import Fragment, Layout

ENGINES = ["interpreter", "cpu"]


def test_dtypes_of_vectors():
    assert T.float16x2 == "float16x2" and T.float16x2.lanes == 2 and T.float16x2.bits == 16 and T.float16x2.bytes == 4
    assert T.float16x2 is T.dtype("float16x2") and T.float32.lanes == 1
    with pytest.raises(AttributeError):
        T.nothingx2
    with pytest.raises(tw.CompileError, match="TW1103"):
        T.dtype("nothingx2")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("lanes", [2, 4])
def test_packed_atomics(engine, lanes):
    add = getattr(T, f"atomic_addx{lanes}")

    @T.prim_func
    def main(A: T.Tensor((3, 8), "float32"), B: T.Tensor((3, 8), "float32"), P: T.Tensor((lanes,), "float32")):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(3, 8 // lanes):
                add(B[i, j * lanes], A[i, j * lanes])
            T.sync_threads()
            if T.get_thread_binding() == 0:
                last = B[2, 8 - lanes : 8]
                P[0:lanes] = add(last, A[2, T.Ramp(8 - lanes, 1, lanes)], return_prev=True)
                add(B[0, 0], T.Broadcast(1.0, lanes))

    a = np.arange(24, dtype="float32").reshape(3, 8)
    b, p = np.ones_like(a), np.zeros(lanes, "float32")
    tw.compile(main, engine=engine)(a, b, p)
    want = a + 1
    assert (p == want[2, 8 - lanes :]).all()
    want[2, 8 - lanes :] += a[2, 8 - lanes :]
    want[0, :lanes] += 1
    assert (b == want).all()


def test_vectors_are_computed_by_lanes():
    @T.prim_func
    def main(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=1):
            x = T.float32x2(A[0], A[1])
            y = T.fma2(x, T.float32x2(2.0), T.float32x2(A[2], A[3]))
            B[0:2] = T.max2(y, T.mul2(x, x))
            B[2] = T.extract_lane(T.abs2(T.sub2(x, y)), 1)

    a, b = np.array([1, 5, -3, 4], "float32"), np.zeros(4, "float32")
    tw.compile(main, engine="interpreter")(a, b)
    assert b.tolist() == [1, 25, 9, 0]


@pytest.mark.parametrize("store", ["three", "stride", "lanes"])
def test_vectors_that_do_not_fit(store):
    def program():
        @T.prim_func
        def main(B: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=1):
                if store == "three":
                    B[0:3] = T.float32x2(1.0)
                elif store == "stride":
                    T.atomic_addx2(B[T.Ramp(0, 2, 2)], 1.0)
                else:
                    T.atomic_addx2(B[0:4], 1.0)

        return main

    with pytest.raises(tw.CompileError, match="TW1080"):
        program()


@pytest.mark.parametrize("engine", ENGINES)
def test_dot_products_of_bytes(engine):
    @T.prim_func
    def main(A: T.Tensor((8,), "int8"), B: T.Tensor((4,), "int8"), C: T.Tensor((2,), "int32")):
        with T.Kernel(1, threads=1):
            T.dp4a(A[4], B[0], C[1])
            T.dp4a(A[0:4], B, C[0])

    a, b = np.arange(-4, 4, dtype="int8"), np.array([100, -100, 7, -128], "int8")
    c = np.array([10, 20], "int32")
    tw.compile(main, engine=engine)(a, b, c)
    products = a.astype("int32").reshape(2, 4) @ b.astype("int32")
    assert (c == products + [10, 20]).all()


def test_dot_products_of_other_types():
    with pytest.raises(ValueError, match="dp4a requires"):

        @T.prim_func
        def main(A: T.Tensor((4,), "uint8"), C: T.Tensor((1,), "int32")):
            with T.Kernel(1, threads=1):
                T.dp4a(A, A, C)


@pytest.mark.parametrize("engine", [*ENGINES, "simulator"])
def test_tensors_at_addresses(engine):
    """Described before the launch, or read from a table in it; an argument is a tensor or its address."""

    @T.prim_func
    def main(a: T.ptr, table: T.Tensor((2,), T.ptr), out: T.Tensor((4, 4), "float32"), m: T.int32, n: T.int32):
        A = T.make_tensor(a, (m, n), "float32")
        with T.Kernel(1, threads=16):
            for i, j in T.Parallel(4, 4):
                A[i, j] = A[i, j] + 1
        with T.Kernel(2, threads=16) as b:
            X = T.make_tensor(table[b], (8,), "float32")
            for i in T.Parallel(8):
                out[b * 2 + i // 4, i % 4] = X[i] * A[b * 2 + i // 4, i % 4]

    x, y = np.arange(16, dtype="float32").reshape(4, 4), np.arange(16, dtype="float32").reshape(2, 8)
    table = np.array([y[1].ctypes.data, y[0].ctypes.data], "int64")
    for given in (x, x.ctypes.data):
        before, out = x.copy(), np.zeros((4, 4), "float32")
        tw.compile(main, engine=engine)(given, table, out, 4, 4)
        assert (x == before + 1).all()
        assert (out == y[::-1].reshape(4, 4) * x).all()


@pytest.mark.parametrize("batch, said", [(0, "must be >= 1"), (-1, "must be >= 1"), (128, "exceeds total output elements"), (3, "must evenly divide")])
def test_batches_of_reducers_are_checked(batch, said):
    def kernel(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=32):
            total = T.alloc_reducer((64,), "float32", "sum")
            T.clear(total)
            for i in T.Parallel(64):
                total[i] += A[i]
            T.finalize_reducer(total, batch=batch)

    with pytest.raises(ValueError, match=said):
        T.prim_func(kernel)


def test_reducers_by_assignment():
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((2,), "int32")):
        with T.Kernel(1, threads=32):
            least, total = T.alloc_reducer((1,), "int32", "min"), T.alloc_reducer((1,), "int32")
            T.fill(least, T.max_value("int32"))
            T.clear(total)
            for i in T.Parallel(64):
                if A[i] != 3:
                    least[0] = T.min(least[0], A[i])
                total[0] = total[0] + A[i]
            T.finalize_reducer(least)
            T.finalize_reducer(total)
            T.copy(least, B[0:1])
            T.copy(total, B[1:2])

    a = np.arange(3, 67, dtype="int32")
    assert (tw.compile(main, out_idx=-1, engine="interpreter")(a) == [4, a.sum()]).all()


def test_layouts_are_equal_where_they_map_alike():
    rows, columns = Layout([32, 4], lambda i, j: i * 4 + j), Layout([32, 4], lambda i, j: j * 32 + i)
    assert rows.is_equal(Layout([32, 4], lambda a, b: b + 4 * a)) and not rows.is_equal(columns)
    assert not rows.is_equal(Layout([16, 8], lambda i, j: i * 8 + j))
    by_four = Fragment([32, 4], forward_thread_fn=lambda i, j, rep: i * 4 + rep, replicate=4)
    by_two = Fragment([32, 4], forward_thread_fn=lambda i, j, rep: i * 4 + rep, replicate=2)
    assert by_four.is_equal(by_four) and not by_four.is_equal(by_two)
    assert not by_four.is_equal(Fragment([32, 4], lambda i, j: (i * 4 + j, i)))


def test_layouts_say_where_an_element_lies():
    assert Layout([16, 16], lambda i, j: [j, i ^ 3]).map_forward_index([3, 5]) == [5, 0]
    assert Layout([16, 32], lambda i, j: i * 32 + j).map_forward_index([3, 5]) == [101]
    lanes = Fragment([32, 4], lambda i, j: (i * 4 + j // 2, j % 2))
    assert lanes.map_forward_thread([3, 3]) == 13 and lanes.map_forward_index([3, 3]) == [1]


def test_layouts_repeat():
    atom = Layout([8, 64], lambda i, j: [i, j])
    twice = atom.repeat(dim=0, factor=2)
    assert twice.is_equal(Layout([16, 64], lambda i, j: [i // 8, i % 8, j]))
    assert twice.get_input_shape() == [16, 64] and twice.get_output_shape() == [2, 8, 64]
    assert atom.repeat(-1, 1) is atom
    for dim, factor in ((0, 0), (2, 2), (-3, 2)):
        with pytest.raises(ValueError):
            atom.repeat(dim, factor)


@pytest.mark.parametrize("engine", ENGINES)
def test_safe_values_end_with_their_block(engine):
    @T.prim_func
    def main(A: T.Tensor((6,), "int32"), B: T.Tensor((3, 8), "int32")):
        with T.Kernel(1, threads=32):
            tile = T.alloc_shared((8,), "int32")
            with T.sblock("outer"):
                T.reads()
                T.annotate_safe_value({A: -1})
                with T.sblock("inner"):
                    T.annotate_safe_value({A: -99})
                    T.copy(A[0:8], tile)
                    T.copy(tile, B[0, :])
                T.copy(A[0:8], tile)
                T.copy(tile, B[1, :])
            T.copy(A[0:8], tile)
            T.copy(tile, B[2, :])

    a, b = np.arange(6, dtype="int32"), np.zeros((3, 8), "int32")
    tw.compile(main, engine=engine)(a, b)
    assert (b[:, :6] == a).all() and b[:, 6:].tolist() == [[-99, -99], [-1, -1], [0, 0]]


@pytest.mark.parametrize("engine", ENGINES)
def test_one_value_for_every_element_of_a_tile(engine):
    @T.prim_func
    def main(A: T.Tensor((6, 8), "float32"), B: T.Tensor((4,), "int32"), x: T.float32):
        with T.Kernel(2, threads=32) as b:
            T.atomic_add(A[b * 3 : b * 3 + 2, 0:4], x)
            T.atomic_max(B, 5)

    a, b = np.zeros((6, 8), "float32"), np.array([1, 9, 3, 7], "int32")
    tw.compile(main, engine=engine)(a, b, 2.5)
    want = np.zeros_like(a)
    want[[0, 1, 3, 4], :4] = 2.5
    assert (a == want).all() and b.tolist() == [5, 9, 5, 7]


@pytest.mark.parametrize("engine", [*ENGINES, "simulator"])
def test_values_of_threads_for_the_elements_of_a_tile(engine):
    """Every thread changes each element of the tile by its own value, or a tile of its own by one value."""

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), S: T.Tensor((1,), "int32"), M: T.Tensor((3,), "int32"), R: T.Tensor((64, 2), "int32")):
        with T.Kernel(2, threads=64):
            tx = T.get_thread_binding()
            T.atomic_add(S, A[tx])
            T.atomic_max(M[1:3], A[tx] - tx)
            T.atomic_add(R[tx, :], 5)

    a = np.random.default_rng(3).integers(-50, 50, 64).astype("int32")
    s, m, r = np.zeros(1, "int32"), np.full(3, -999, "int32"), np.zeros((64, 2), "int32")
    tw.compile(main, engine=engine)(a, s, m, r)
    assert s[0] == 2 * a.sum() and m.tolist() == [-999, *[(a - np.arange(64)).max()] * 2] and (r == 10).all()


@pytest.mark.parametrize("name, order", [("load", "release"), ("load", "acq_rel"), ("store", "acquire"), ("store", "sideways")])
def test_orders_that_an_access_has_not(name, order):
    with pytest.raises(ValueError, match=f"atomic_{name} does not support memory_order"):

        @T.prim_func
        def main(A: T.Tensor((1,), "int32")):
            with T.Kernel(1, threads=1):
                if name == "load":
                    A[0] = T.atomic_load(A[0], memory_order=order)
                else:
                    T.atomic_store(A[0], 1, memory_order=order)


def test_the_source_of_two_boxes_says_how_much():
    @T.prim_func
    def main(A: T.Tensor((4, 8), "int32"), B: T.Tensor((4, 8), "int32")):
        with T.Kernel(1, threads=32):
            T.copy(A[:, :2], B[:, 1:4])

    a, b = np.arange(32, dtype="int32").reshape(4, 8), np.full((4, 8), -1, "int32")
    tw.compile(main, engine="interpreter")(a, b)
    assert (b[:, 1:3] == a[:, :2]).all() and (b[:, 3:] == -1).all() and (b[:, 0] == -1).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_bytes_for_types_of_four_bits(engine):
    """Libraries without such types hand over the bytes: shapes and strides are those of the elements."""

    @T.prim_func
    def main(A: T.StridedTensor((T.dynamic("m"), T.dynamic("n")), (T.dynamic("s"), 1), "float4_e2m1fn"), B: T.Tensor((3, 8), "float32"),
             shape: T.Tensor((3,), "int32")):  # fmt: skip
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(3, 8):
                B[i, j] = A[i, j]
            shape[0], shape[1], shape[2] = A.shape[0], A.shape[1], A.strides[0]

    storage = np.random.default_rng(0).integers(0, 256, (6, 8)).astype("uint8")
    packed = storage[::2, :4]
    b, shape = np.zeros((3, 8), "float32"), np.zeros(3, "int32")
    tw.compile(main, engine=engine)(packed, b, shape)
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], "float32")
    assert (b[:, 0::2] == values[packed & 15]).all() and (b[:, 1::2] == values[packed >> 4]).all()
    assert shape.tolist() == [3, 8, 32]


@pytest.mark.parametrize("engine", ENGINES)
def test_null_for_tensors_that_no_launch_uses(engine):
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), Bias: T.StridedTensor((T.dynamic("m"), 4), (T.dynamic("s"), 1), "float32"),
             B: T.Tensor((8,), "float32")):  # fmt: skip
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                B[i] = A[i] + 1

    a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    kernel = tw.compile(main, engine=engine)
    kernel(a, None, b)
    assert (b == a + 1).all()
    kernel(a, np.zeros((3, 4), "float32"), b)
    with pytest.raises(tw.LaunchError, match="argument 0 'A' is null"):
        kernel(None, None, b)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_extent_is_taken_from_any_tensor_that_is_there(engine):
    m, n = T.dynamic("m, n")

    @T.prim_func
    def main(A: T.Tensor((m,), "float32"), Both: T.Tensor((m + n,), "float32"), C: T.Tensor((2 * m,), "float32"),
             S: T.Tensor((2,), "int32")):  # fmt: skip
        with T.Kernel(1, threads=32):
            S[0] = m

    kernel = tw.compile(main, engine=engine)
    three, five, six = (np.zeros(k, "float32") for k in (3, 5, 6))
    for given in ((three, five, six), (three, None, None), (None, None, six), (None, five, six), (three, five, None)):
        s = np.zeros(2, "int32")
        kernel(*given, s)
        assert s[0] == 3, given
    with pytest.raises(tw.LaunchError, match="none of the others gives m"):
        kernel(None, five, None, np.zeros(2, "int32"))
    with pytest.raises(tw.LaunchError, match="dimension 0 must be 2 \\* m = 6"):
        kernel(three, None, five, np.zeros(2, "int32"))
    with pytest.raises(tw.LaunchError, match="must be 2 \\* m for an integer m"):
        kernel(None, None, five, np.zeros(2, "int32"))


@pytest.mark.parametrize("engine", ENGINES)
def test_null_for_tensors_of_which_nothing_but_a_view_is_made(engine):
    m, n = T.dynamic("m, n")

    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), Weights: T.Tensor((m, n), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            T.reshape(Weights, (m * n,))
            for i in T.Parallel(8):
                B[i] = A[i] + 1

    a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    tw.compile(main, engine=engine)(a, None, b)
    assert (b == a + 1).all()


@pytest.mark.parametrize("engine", [*ENGINES, "simulator"])
def test_a_null_address_that_is_not_gone_to(engine):
    @T.prim_func
    def main(P: T.ptr, A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32"), there: T.int32):
        with T.Kernel(1, threads=128):
            Bias = T.make_tensor(P, (512,), "float32")
            for i in T.Parallel(512):
                B[i] = A[i] + T.if_then_else(there != 0, Bias[i], 0)
            for i in T.Parallel(512):
                if there != 0:
                    B[i] = B[i] * Bias[i]

    kernel = tw.compile(main, engine=engine)
    a, bias, b = np.arange(512, dtype="float32"), np.full(512, 3, "float32"), np.zeros(512, "float32")
    kernel(0, a, b, 0)
    assert (b == a).all()
    kernel(bias.ctypes.data, a, b, 1)
    assert (b == (a + 3) * 3).all()


@pytest.mark.parametrize("engine", [*ENGINES, "simulator"])
def test_a_fragment_has_an_element_for_each_point_of_the_maps_through_it(engine):
    """As where a kernel keeps one value a row of a tile in a fragment that it declares by another extent."""
    heads, rows, columns = 8, 64, 32

    @T.prim_func
    def main(S: T.Tensor((heads,), "float16"), A: T.Tensor((rows, columns), "float32"), B: T.Tensor((heads, rows), "float32")):
        with T.Kernel(heads, threads=128) as by:
            sinks, tile, sums = T.alloc_fragment([heads], "float16"), T.alloc_fragment([rows, columns], "float32"), T.alloc_fragment([rows], "float32")
            T.copy(A, tile)
            for i in T.Parallel(rows):
                sinks[i] = S[by]
            T.reduce_sum(tile, sums, dim=1)
            for i in T.Parallel(rows):
                sums[i] += sinks[i] * 2
            T.copy(sums, B[by, :])

    s, a = np.arange(heads).astype("float16"), np.arange(rows * columns, dtype="float32").reshape(rows, columns) % 13
    b = np.zeros((heads, rows), "float32")
    tw.compile(main, engine=engine)(s, a, b)
    assert (b == a.sum(1)[None] + 2 * s[:, None].astype("float32")).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_threads_reduce_what_they_have(engine):
    @T.prim_func
    def main(A: T.Tensor((32, 3, 4), "float16"), B: T.Tensor((32, 4), "float16"), C: T.Tensor((32, 3), "float16"), D: T.Tensor((32,), "float16")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            own = T.alloc_local((3, 4), "float16")
            sums, most, first = T.alloc_local((4,), "float16"), T.alloc_local((3, 1), "float16"), T.alloc_local((4,), "float16")
            least = T.alloc_var("float16", init=0)
            for i in T.serial(3):
                for j in T.serial(4):
                    own[i, j] = A[t, i, j]
            for j in T.serial(4):
                first[j] = own[0, j]
                sums[j] = 1
            T.reduce_sum(own, sums, dim=0, clear=False)
            T.reduce_absmax(own, most, dim=1)
            T.reduce_min(first, least, dim=0)
            for j in T.serial(4):
                B[t, j] = sums[j]
            for i in T.serial(3):
                C[t, i] = most[i, 0]
            D[t] = least

    a = np.random.default_rng(1).standard_normal((32, 3, 4)).astype("float16")
    b, c, d = np.zeros((32, 4), "float16"), np.zeros((32, 3), "float16"), np.zeros(32, "float16")
    tw.compile(main, engine=engine)(a, b, c, d)
    assert np.allclose(b, a.astype("float32").sum(1) + 1, atol=1e-2)
    assert (c == np.abs(a).max(2)).all() and (d == a[:, 0].min(1)).all()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["float32", "float16", "int8", "float64"])
def test_loads_and_stores_of_many_bits(engine, name):
    lanes = 128 // T.dtype(name).bits

    @T.prim_func
    def main(A: T.Tensor((64,), name), B: T.Tensor((64,), name), C: T.Tensor((4,), "uint32")):
        with T.Kernel(1, threads=1):
            s = T.alloc_shared((64,), name)
            for i in T.serial(64 // lanes):
                T.sts128(s[i * lanes], T.ldg128(A[i * lanes : (i + 1) * lanes]))
            T.sync_threads()
            for i in T.serial(64 // lanes):
                T.stg128(B[i * lanes], T.lds128(s[i * lanes]), i != 1)
            C[0] = T.ldg32(A[lanes])
            C[2:4] = T.ldg64(A[lanes], C[0] == T.uint32(12345))

    a = np.random.default_rng(2).integers(-100, 100, 64).astype(name)
    b, c = np.zeros(64, name), np.full(4, 7, "uint32")
    tw.compile(main, engine=engine)(a, b, c)
    want = a.copy()
    want[lanes : 2 * lanes] = 0
    assert (b == want).all() and c.tolist() == [int(a.view("uint32")[4]), 7, 0, 0]


def test_loads_of_many_bits_from_elsewhere():
    with pytest.raises(tw.CompileError, match="TW1101.*T.lds32 of 'A', a global buffer"):

        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=1):
                A[0] = T.reinterpret(T.lds32(A[1]), "float32")


@pytest.mark.parametrize("engine", ENGINES)
def test_types_of_other_gpus_are_stored_and_converted(engine):
    @T.prim_func
    def main(A: T.Tensor((8,), "uint8"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            C = T.alloc_buffer((8,), T.float8_e4m3fnuz, scope="shared")
            for i in T.Parallel(8):
                C[i] = T.reinterpret(A[i], T.float8_e5m2fnuz)
            T.copy(C, B)

    assert T.float8_e4m3fnuz == "float8_e4m3fnuz" and T.float8_e4m3fnuz.bits == 8
    a, b = np.array([0x40, 0x44, 0x4A, 0xC4, 0x00, 0x7F, 0x41, 0xC0], "uint8"), np.empty(8, "float32")
    tw.compile(main, engine=engine)(a, b)
    assert b.tolist() == [1, 2, 6, -2, 0, 240, 1.25, -1]


@pytest.mark.parametrize("engine", ENGINES)
def test_bytes_stand_for_floats_that_libraries_do_not_know(engine):
    @T.prim_func
    def main(A: T.Tensor((4,), T.float6_e2m3fn), B: T.Tensor((4,), T.float8_e3m4)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                B[i] = T.cast(A[i], "float32") * 2.0

    a = np.array([0, 8, 31, 32 + 16], "uint8")  # 0, 1, 7.5, -2
    b = np.asarray(tw.compile(main, out_idx=-1, engine=engine)(a))
    assert b.view("uint8").tolist() == [0x00, 0x40, 0x6E, 0xD0]  # 0, 2, 15, -4
    with pytest.raises(TypeError, match="TW4"):
        tw.compile(main, out_idx=-1, engine=engine)(a.astype("int16"))


def test_numbers_of_8_bits_can_be_named_and_not_be_used():
    from tilewright.values import Elsewhere

    with pytest.raises(tw.CompileError, match="TW1103.*float8_e4m3fnuz"):
        Elsewhere((), T.float8_e4m3fnuz).id


def test_a_table_of_addresses_is_a_tensor_of_integers():
    @T.prim_func
    def main(pointers: T.Tensor((4,), T.ptr), B: T.Tensor((4,), "float32")):
        with T.Kernel(4, threads=1) as b:
            B[b] = T.make_tensor(pointers[b], (4,), "float32")[1]

    described = main.buffer_map[main.params[0]]
    assert described.dtype == "int64" and described.shape == [4] and main.buffer_map[main.params[1]].dtype == "float32"


@every_engine
def test_a_view_of_memory_of_vectors(engine):
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=1):
            x = T.alloc_local((4,), T.float32x2)
            lanes = T.view(x, (8,), T.float32)
            for i in T.serial(4):
                x[i] = T.abs2(T.float32x2(A[2 * i], A[2 * i + 1]))
            for i in T.serial(8):
                B[i] = lanes[7 - i]

    a, b = (array_for(engine, x) for x in (np.arange(-3, 5, dtype="float32"), np.zeros(8, "float32")))
    tw.compile(main, engine=engine)(a, b)
    assert b.tolist() == [4, 3, 2, 1, 0, 1, 2, 3]


@every_engine
def test_memory_of_vectors(engine):
    """alloc_local of a vector dtype, ramps as indices, vectors of other bits."""

    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=1):
            x = T.alloc_local((4,), T.float32x2)
            for i in T.serial(4):
                x[i] = T.float32x2(A[2 * i] + 1, A[2 * i + 1])
            y = T.alloc_local((2, 4), "float32")
            T.annotate_layout({y: T.Layout((2, 4), lambda i, j: (j, i))})
            for i in T.serial(2):
                B[2 * i : 2 * i + 2] = x[i]
            B[4:6] = T.reinterpret(T.ldg64(A[2]), "float32x2")
            B[T.Ramp(6, 1, 2)] = A[T.Ramp(4, 1, 2)]
            B[T.Ramp(8, 1, 4)] = 3
            y[1, 2] = A[7]
            B[12], B[13], B[14], B[15] = y[1, 2], T.ieee_add(A[1], A[2], "rn"), 0, 0

    a, b = array_for(engine, np.arange(8, dtype="float32")), array_for(engine, np.zeros(16, "float32"))
    tw.compile(main, engine=engine)(a, b)
    assert b.tolist() == [1, 1, 3, 3, 2, 3, 4, 5, 3, 3, 3, 3, 7, 3, 0, 0]
    with pytest.raises(tw.CompileError, match="Invalid rounding mode 'rx' of ieee_add"):
        T.ieee_add(1.0, 2.0, "rx")


@pytest.mark.parametrize("engine", ENGINES)
def test_lanes_of_a_ramp_count_from_the_end(engine):
    """Where they are negative, each for itself, though only run time knows; of a lane that is known, as of a number."""

    @T.prim_func
    def main(A: T.Tensor((16,), "float32"), B: T.Tensor((5, 4), "float32"), C: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=1):
            for t in T.serial(4):
                B[t, T.Ramp(0, 1, 4)] = A[T.Ramp(2 * t - 3, 1, 4)]
                C[T.Ramp(t - 2, 1, 2)] = B[t, 0:2]
            B[4, T.Ramp(-4, 1, 4)] = A[T.Ramp(-2, 1, 4)]

    a, b, c = (array_for(engine, x.astype("float32")) for x in (np.arange(16), np.zeros((5, 4)), np.zeros(16)))
    tw.compile(main, engine=engine)(a, b, c)
    assert b.tolist() == [[13, 14, 15, 0], [15, 0, 1, 2], [1, 2, 3, 4], [3, 4, 5, 6], [14, 15, 0, 1]]
    assert c.tolist() == [1, 3, 4, *[0] * 11, 13, 15]


def test_thread_binding_takes_its_axis_second():
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        for bx in T.thread_binding(2, "blockIdx.x"):
            for tx in T.thread_binding(4, "threadIdx.x"):
                B[bx * 4 + T.get_thread_binding()] = A[bx * 4 + tx]

    b = np.zeros(8, "float32")
    tw.compile(main, engine="interpreter")(np.arange(8, dtype="float32"), b)
    assert b.tolist() == list(range(8))


@pytest.mark.parametrize("engine", [*ENGINES, "simulator"])
def test_tensors_at_addresses_that_a_block_or_a_turn_looks_up(engine):
    @T.prim_func
    def main(table: T.Tensor((4,), T.ptr), B: T.Tensor((4, 8), "float32")):
        with T.Kernel(2, threads=32) as b:
            for k in T.serial(2):
                A = T.make_tensor(table[b * 2 + k], (8,), "float32")
                for i in T.Parallel(8):
                    B[b * 2 + k, i] = A[7 - i] * 2

    a = np.arange(32, dtype="float32").reshape(4, 8)
    b = np.zeros((4, 8), "float32")
    tw.compile(main, engine=engine)(np.array([row.ctypes.data for row in a], "int64"), b)
    assert (b == a[:, ::-1] * 2).all()


@pytest.mark.parametrize("table_of", ["parts", "rows"])
@pytest.mark.parametrize("engine", ENGINES)
def test_blocks_that_share_rows_look_up_where_they_are(engine, table_of):
    @T.prim_func
    def main(table: T.Tensor((1024,), T.ptr), B: T.Tensor((64, 16, 2), "float32")):
        with T.Kernel(2, 64, threads=32) as (part, b):
            tile, total = T.alloc_fragment((64,), "float32"), T.alloc_fragment((1,), "float32")
            for r in T.serial(16):
                if table_of == "parts":
                    A = T.make_tensor(table[part], (1024, 128), "float32")
                    T.copy(A[b * 16 + r, part * 64 : part * 64 + 64], tile)
                else:
                    A = T.make_tensor(table[b * 16 + r], (128,), "float32")
                    T.copy(A[part * 64 : part * 64 + 64], tile)
                T.reduce_sum(tile, total, dim=0)
                B[b, r, part] = total[0]

    rows = np.random.default_rng(7).integers(-8, 8, (2, 1024, 128)).astype("float32")
    memory = rows if table_of == "parts" else rows[0]
    b, table = np.zeros((64, 16, 2), "float32"), np.zeros(1024, "int64")
    table[: len(memory)] = [part.ctypes.data for part in memory]
    tw.compile(main, engine=engine)(table, b)
    parts = [rows[p if table_of == "parts" else 0][:, p * 64 : p * 64 + 64].sum(1).reshape(64, 16) for p in (0, 1)]
    assert (b == np.stack(parts, -1)).all()


@pytest.mark.parametrize("engine", [*ENGINES, "simulator"])
def test_a_view_begins_where_a_name_says(engine):
    text = """
program views {
  param A: float32[64]
  param B: float32[4, 8]
  launch views(bx: 4) threads(tx: 32) {
    at: int32 = bx * 8 + 16
    global V: float32[8] view=A offset=at
    map i in 8 {
      B[bx, i] = V[i] * 2.0
    }
  }
}
"""
    a, b = np.arange(64, dtype="float32"), np.zeros((4, 8), "float32")
    _native.Kernel(_native.parse(text, "views.tile"), engine, "", [])(a, b)
    assert (b == a[16:48].reshape(4, 8) * 2).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_layout_of_a_tile_that_becomes_a_variable_of_its_loop(engine):
    @T.prim_func
    def main(A: T.Tensor((8, 8), "float32"), B: T.Tensor((8, 8), "float32")):
        with T.Kernel(1, threads=32):
            S, F = T.alloc_shared((8, 8), "float32"), T.alloc_fragment((8, 8), "float32")
            T.annotate_layout({F: T.Fragment((8, 8), forward_fn=lambda i, j: (i * 4 + j // 2, j % 2))})
            T.copy(A, S)
            T.copy(S, F)
            T.copy(F, B)

    a, b = np.arange(64, dtype="float32").reshape(8, 8), np.empty((8, 8), "float32")
    tw.compile(main, engine=engine)(a, b)
    assert (a == b).all()


@every_engine
def test_elements_of_a_vector_of_indices(engine):
    """What they are is read where it is written; one value goes to all of them, and to a slice."""

    @T.prim_func
    def main(A: T.Tensor((16,), "int32"), B: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=1):
            even = T.Ramp(0, 2, 3)
            B[even] = T.ramp(1, 1, 3)
            B[T.Ramp(1, 2, 3)] = A[4]
            B[6:9] = 7
            kept = [A[T.Ramp(0, 1, 2)], A[T.Ramp(2, 2, 2)]]
            A[0:6] = 0
            B[9:11] = kept[0]
            B[11:13] = kept[1]
            pair = T.alloc_var("int32x2")
            pair = T.int32x2(3, 4)
            pair += kept[1]
            B[13:15] = pair
            A[14:16] = T.int32x2(A[15], A[14])

    a, b = array_for(engine, np.arange(16, dtype="int32")), array_for(engine, np.zeros(16, "int32"))
    tw.compile(main, engine=engine)(a, b)
    assert b.tolist() == [1, 4, 2, 4, 3, 4, 7, 7, 7, 0, 1, 2, 4, 5, 8, 0] and a.tolist()[14:] == [15, 14]


@every_engine
def test_integers_that_ptxas_gets_wrong(engine):
    """ptxas 13.0 takes the comparison of a clamp with its bound from the clamp, the wrong way around, and forgets a sign in a
    minimum of three; kernels are written so that it does neither."""
    @T.prim_func
    def main(X: T.Tensor((256,), "int32"), Y: T.Tensor((256,), "int32"), A: T.Tensor((256,), "int32"), B: T.Tensor((7, 256), "int32")):
        with T.Kernel(1, threads=256):
            i = T.get_thread_binding()
            x = T.max(0, T.min(64, X[i]))
            y = T.max(0, T.min(X[i], Y[i]))
            A[i] = x + y
            B[0, i] = T.if_then_else(x == 64, 1, 0)
            B[1, i] = T.if_then_else(y == X[i], 1, 0)
            B[2, i] = T.if_then_else(y != Y[i], 1, 0)
            B[3, i] = T.if_then_else(T.if_then_else(X[i] < 0, 0, T.if_then_else(X[i] < 64, X[i], 64)) == 64, 1, 0)
            B[4, i] = T.if_then_else(T.max(0, T.max(X[i], Y[i])) == Y[i], 1, 0)
            B[5, i] = T.min(0, T.min(X[i], -Y[i]))
            B[6, i] = T.max(T.max(X[i], -(X[i] + Y[i])), Y[i])

    x, y = np.arange(-100, 156, dtype="int32"), (np.arange(256, dtype="int32") * 37 % 199 - 80).astype("int32")
    low, both = np.clip(x, 0, 64), np.maximum(0, np.minimum(x, y))
    expected = np.stack([low == 64, both == x, both != y, low == 64, np.maximum(0, np.maximum(x, y)) == y,
                         np.minimum(0, np.minimum(x, -y)), np.maximum(np.maximum(x, -(x + y)), y)])  # fmt: skip
    given = [array_for(engine, v) for v in (x, y, np.zeros_like(x), np.zeros((7, 256), "int32"))]
    tw.compile(main, engine=engine)(*given)
    assert (np.asarray(given[2].cpu() if engine == "cuda" else given[2]) == low + both).all()
    assert (np.asarray(given[3].cpu() if engine == "cuda" else given[3]) == expected).all()
