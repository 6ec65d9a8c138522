"""What traced functions mean: each construct against NumPy, on the interpreter; a few on the CPU engine too."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
from gathers import rows_in_two_tiles

ENGINES = ["interpreter", "cpu"]


def run(program, *arguments, engine="interpreter"):
    tw.compile(program, engine=engine)(*arguments)
    return arguments[-1]


@pytest.mark.parametrize("engine", ENGINES)
def test_branches_are_recorded_on_both_sides(engine):
    @T.prim_func
    def sign(X: T.Tensor((100,), "float32"), Y: T.Tensor((100,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(100):
                x = X[i]
                if x > 0:
                    Y[i] = 1
                elif x < 0:
                    Y[i] = -1
                else:
                    Y[i] = 0

    x = np.linspace(-1, 1, 101, dtype="float32")[:100].copy()
    x[50] = 0
    assert (run(sign, x, np.empty_like(x), engine=engine) == np.sign(x)).all()


def test_constant_conditions_leave_nothing():
    def program(flag):
        @T.prim_func
        def main(Y: T.Tensor((4,), "int32")):
            with T.Kernel(1, threads=4):
                if flag:
                    Y[0] = 1
                else:
                    Y[1] = 2
                Y[2] = 3 if flag and not None else 4

        return main.script()

    assert "if " not in program(True) and "= 1" in program(True) and "= 2" not in program(True)
    assert "= 2" in program(False) and "= 4" in program(False)


def test_names_capture_values():
    @T.prim_func
    def main(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=1):
            x = A[0]
            A[0] = 7
            B[0] = x
            A[1], A[2] = A[2], A[1]
            B[1] = A[1]
            B[2] = B[3] = A[2]

    a, b = np.array([1, 2, 3, 4], "int32"), np.zeros(4, "int32")
    run(main, a, b)
    assert a.tolist() == [7, 3, 2, 4] and b.tolist() == [1, 3, 2, 2]


def test_numbers_of_python_stay_python():
    @T.prim_func
    def main(B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=1):
            x = 0
            for y in [1, 2, 3]:
                x = x + y
            for i in T.serial(len([0] * x) - 2):
                B[i] = x

    assert run(main, np.zeros(4, "int32")).tolist() == [6, 6, 6, 6] and "local" not in main.script()


@pytest.mark.parametrize("engine", ENGINES)
def test_variables_keep_state(engine):
    @T.prim_func
    def fibonacci(B: T.Tensor((10,), "int32")):
        with T.Kernel(1, threads=1):
            a = T.alloc_var("int32", 0)
            b = T.alloc_var("int32", init=1)
            for i in range(10):
                B[i] = a
                a, b = b, a + b

    assert run(fibonacci, np.zeros(10, "int32"), engine=engine).tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]


def test_variables_start_at_zero():
    @T.prim_func
    def main(B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=1):
            v = T.alloc_var("float32")
            v += 2.5
            w = v
            v = 0.0
            B[0] = w + v

    assert run(main, np.zeros(1, "float32"))[0] == 2.5


@pytest.mark.parametrize("engine", ENGINES)
def test_while_break_continue(engine):
    @T.prim_func
    def main(B: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=1):
            n = T.alloc_var("int32", 0)
            while n < 100:
                n += 1
                if n % 2 == 0:
                    continue
                if n > 12:
                    break
                B[n] = n

    found = run(main, np.zeros(16, "int32"), engine=engine)
    assert found.tolist() == [i if i % 2 and i <= 12 else 0 for i in range(16)]


def test_loops_of_python_repeat_the_body():
    @T.prim_func
    def main(B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=1):
            for i, (a, b) in enumerate(zip([1, 2, 3, 4], (10, 20, 30, 40))):
                if i == 3:
                    break
                if i == 1:
                    continue
                B[i] = a + b
            for name, value in {"x": 5, "y": 6}.items():
                if name == "y":
                    B[7] = value
            B[6] = sum([k * k for k in range(4)])

    assert run(main, np.zeros(8, "int32")).tolist() == [11, 0, 33, 0, 0, 0, 14, 6]


def test_loops_of_the_program():
    @T.prim_func
    def main(B: T.Tensor((40,), "int32")):
        with T.Kernel(1, threads=1) as bx:
            for i in T.serial(8, 0, -2):
                B[i] = i
            for i in T.unroll(4):
                B[10 + i] = i
            for i in T.vectorized(4):
                B[20 + i] = i
            for i, j in T.grid(2, 3):
                B[30 + i * 3 + j] = i * 10 + j
            for (m,) in T.Persistent([2], 1, bx):
                B[38 + m] = 1

    found = run(main, np.zeros(40, "int32")).tolist()
    assert found[:10] == [0, 0, 2, 0, 4, 0, 6, 0, 8, 0] and found[10:14] == [0, 1, 2, 3] == found[20:24]
    assert found[30:36] == [0, 1, 2, 10, 11, 12] and found[38:] == [1, 1]


def test_loops_that_are_known_to_have_no_turns():
    def program(known):
        @T.prim_func
        def main(N: T.int32, B: T.Tensor((12,), "int32")):
            with T.Kernel(1, threads=4):
                last = -3 if known else N
                s = T.alloc_shared((4,), "int32")
                T.clear(s)
                for i in T.unroll(last):
                    B[0] = i
                for i in range(last):
                    B[1] = 1
                for i in T.serial(4, last + 7):
                    B[2] = i
                for i in T.serial(5, last + 4, 2):
                    B[3] = i
                for i in T.serial(-1, 4 - (last + 3), -1):
                    B[4] = i
                for k in T.Pipelined(last, num_stages=2):
                    T.copy(B[4 * k : 4 * k + 4], s)
                    B[5] = s[0]
                for i in T.vectorized(last):
                    B[6 + i] = 1
                B[8] = last

        return main

    want = [0, 0, 0, 0, 0, 0, 0, 0, -3, 0, 0, 0]
    with pytest.warns(UserWarning, match=r"T\.serial\(5, 1, 2\) has no turns"):
        known = program(True)
    for engine in (*ENGINES, "simulator"):
        for main in (known, program(False)):
            assert run(main, -3, np.zeros(12, "int32"), engine=engine).tolist() == want


def test_steps_of_either_sign_that_run_time_knows():
    @T.prim_func
    def main(A: T.Tensor((8, 3), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=8):
            t = T.get_thread_binding()
            n = 0
            for i in T.serial(A[t, 0], A[t, 1], A[t, 2]):
                n = n * 3 + i
            B[t] = n

    loops = [(9, 3, -2), (9, 2, -2), (3, 9, -2), (3, 9, 2), (-1, -8, -3), (5, 5, -1), (6, 5, -1), (7, 2**31 - 1, 2**30)]
    want = []
    for bounds in loops:
        n = 0
        for i in range(*bounds):
            n = n * 3 + i
        want.append((n + 2**31) % 2**32 - 2**31)
    for engine in (*ENGINES, "simulator"):
        b = np.zeros(8, "int32")
        tw.compile(main, engine=engine)(np.array(loops, "int32"), b)
        assert b.tolist() == want


def test_logic_and_chains():
    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                if 3 <= A[i] < 10 or (A[i] == 20 and not A[i] != 20):
                    B[i] = 1
                else:
                    B[i] = 0

    a = np.arange(32, dtype="int32")
    assert (run(main, a, np.zeros(32, "int32")) == (((a >= 3) & (a < 10)) | (a == 20))).all()


def test_promotion_is_the_librarys():
    @T.prim_func
    def main(A: T.Tensor((4,), "float16"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=4):
            for i in T.Parallel(4):
                by_float = A[i] * 2.0
                by_int = A[i] * 2
                assert by_float.dtype == "float32" and by_int.dtype == T.float16
                B[i] = by_float

    assert run(main, np.array([1, 2, 3, 4], "float16"), np.zeros(4, "float32")).tolist() == [2, 4, 6, 8]


def test_macros_take_values_and_references():
    @T.macro
    def raise_to(target: T.Ref, value):
        target = T.max(target, value)

    @T.macro
    def scaled(tile, factor):
        for i in T.Parallel(8):
            tile[i] = tile[i] * factor
        return factor + 1

    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((9,), "int32")):
        with T.Kernel(1, threads=8):
            tile = T.alloc_shared((8,), "int32")
            T.copy(A, tile)
            factor = T.alloc_var("int32", 3)
            more = scaled(tile, factor)
            raise_to(factor, 9)
            T.copy(tile, B[0:8])
            B[8] = more * 100 + factor

    found = run(main, np.arange(8, dtype="int32"), np.zeros(9, "int32"))
    assert found.tolist() == [3 * i for i in range(8)] + [409]


def test_macros_store_to_the_elements_that_they_refer_to():
    """A parameter T.Ref is the element: where it was when the macro was called, in branches and loops too."""

    @T.macro
    def swap(x: T.Ref, y: T.Ref):
        kept = x
        x = y
        y = kept

    @T.macro
    def step(x: T.Ref, at):
        if at > 3:
            x = 100
        else:
            x -= 1
        for i in T.serial(4):
            x = x + i
            if i == 2:
                x += 1000

    @T.macro
    def twice(x: T.Ref, at):
        step(x, at)
        before = x
        x = 0
        x = before * 2

    @T.prim_func
    def main(A: T.Tensor((6,), "int32"), B: T.Tensor((2, 4), "int32"), c: T.int32):
        with T.Kernel(1, threads=32):
            i = T.alloc_var("int32", init=0)
            swap(A[i], A[i + 1])
            swap(i, A[2])
            step(A[3], c)
            twice(A[4], A[0])
            A[5] = i
            for j, k in T.Parallel(2, 4):
                step(B[j, k], k)

    for c in (1, 7):
        a = np.array([3, 4, 9, 7, 8, 0], "int32")
        b = np.zeros((2, 4), "int32")
        run(main, a, b, c)
        assert a.tolist() == [4, 3, 0, (100 if c > 3 else 6) + 1006, 2 * 1106, 9]
        assert (b == 1005).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_dynamic_shapes(engine):
    M, N = T.dynamic("M, N")

    @T.prim_func
    def scale(X: T.Tensor((M, N), "float32"), factor: T.float32, Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, 8), T.ceildiv(N, 32), threads=64) as (bx, by):
            for i, j in T.Parallel(8, 32):
                Y[bx * 8 + i, by * 32 + j] = X[bx * 8 + i, by * 32 + j] * factor

    kernel = tw.compile(scale, out_idx=-1, engine=engine)
    for shape in [(1, 1), (17, 33), (8, 64)]:
        x = np.random.default_rng(0).standard_normal(shape, dtype="float32")
        assert (kernel(x, 1.5) == x * np.float32(1.5)).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_tile_ops(engine):
    @T.prim_func
    def main(A: T.Tensor((16, 32), "float32"), S: T.Tensor((16,), "float32"), C: T.Tensor((16, 32), "float32")):
        with T.Kernel(1, threads=64):
            a = T.alloc_fragment((16, 32), "float32")
            s = T.alloc_fragment((16,), "float32")
            c = T.alloc_shared((16, 32), "float32")
            T.copy(A, a)
            T.fill(s, 10.0)
            T.reduce_sum(a, s, dim=1, clear=False)
            T.copy(s, S)
            T.copy(a, c)
            T.cumsum(c, dim=1)
            T.copy(c[:, 0:16], C[:, 16:])
            T.atomic_add(C[0, 0], 5.0)

    a = np.random.default_rng(1).integers(-4, 4, (16, 32)).astype("float32")
    s, c = np.zeros(16, "float32"), np.zeros((16, 32), "float32")
    run(main, a, s, c, engine=engine)
    assert (s == a.sum(1) + 10).all() and (c[1:, 16:] == a.cumsum(1)[1:, :16]).all() and c[0, 0] == 5


def test_views_and_layouts():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((8, 8), "uint32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((8, 8), "float32")
            flat = T.reshape(s, (64,))
            bits = T.view(s, dtype="uint32")
            T.annotate_layout({s: T.make_swizzled_layout(s)})
            T.copy(A, flat)
            T.copy(bits, B)

    a = np.arange(64, dtype="float32")
    assert (run(main, a, np.zeros((8, 8), "uint32")) == a.view("uint32").reshape(8, 8)).all()


def test_strided_tensors_and_text_annotations():
    from postponed import strided

    x = np.arange(48, dtype="float32").reshape(6, 8)
    y = np.zeros((6, 4), "float32")
    run(strided(6, 4, 8), x[:, :4], y)
    assert (y == x[:, :4]).all()


def test_older_spellings():
    @T.prim_func
    def main(A: T.Buffer((8,), "float16"), b: T.handle):
        B = T.match_buffer(b, (8,), "float32")
        for i in T.Serial(8):
            B[i] = T.Cast("float32", A[i]) + T.Select(i < 4, 1, 0)

    a = np.arange(8, dtype="float16")
    assert (run(main, a, np.zeros(8, "float32")) == a + (np.arange(8) < 4)).all()


def test_warps_and_threads():
    @T.prim_func
    def main(B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            total = T.warp_reduce_sum(tx)
            T.sync_threads()
            with T.If(tx < 32):
                with T.Then():
                    B[tx] = total + T.shfl_xor(tx, 1)
                with T.Else():
                    B[tx] = T.get_warp_idx() * 1000 + T.get_lane_idx()

    found = run(main, np.zeros(64, "int32"))
    assert found[:32].tolist() == [496 + (i ^ 1) for i in range(32)]
    assert found[32:].tolist() == [1000 + i for i in range(32)]


def test_scalar_functions():
    names = ["exp2", "log2", "sqrt", "abs", "floor", "ceil", "tanh"]

    @T.prim_func
    def main(X: T.Tensor((16,), "float32"), Y: T.Tensor((8, 16), "float32")):
        with T.Kernel(1, threads=16):
            for i in T.Parallel(16):
                for row, name in enumerate(names):
                    Y[row, i] = getattr(T, name)(X[i])
                Y[7, i] = T.clamp(T.pow(X[i], 2) - T.infinity("float32"), -1.0, T.max_value("float16"))

    x = np.linspace(0.5, 3, 16, dtype="float32")
    found = run(main, x, np.zeros((8, 16), "float32"))
    wanted = np.stack([getattr(np, n)(x) for n in names])
    assert np.allclose(found[:7], wanted, rtol=1e-6) and (found[7] == -1).all()


def test_several_launches_and_scratch():
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        scratch = T.alloc_global((64,), "int32")
        with T.Kernel(2, threads=32) as bx:
            for i in T.Parallel(32):
                scratch[bx * 32 + i] = A[bx * 32 + i] + 1
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                B[i] = scratch[63 - i]

    a = np.arange(64, dtype="int32")
    assert (run(main, a, np.zeros(64, "int32")) == a[::-1] + 1).all()


@pytest.mark.parametrize("engine", ENGINES + ["simulator"])
def test_scratch_under_another_shape(engine):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((8, 8), "int32")):
        scratch = T.alloc_global((8, 8), "int32")
        with T.Kernel(2, threads=32) as bx:
            flat = T.reshape(scratch, (64,))
            for i in T.Parallel(32):
                flat[bx * 32 + i] = A[bx * 32 + i] + 1
        with T.Kernel(1, threads=32):
            tile = T.alloc_shared((8, 8), "float32")
            T.copy(T.view(scratch, dtype="float32"), tile)
            for i, j in T.Parallel(8, 8):
                B[i, j] = T.reinterpret(tile[7 - i, 7 - j], "int32")

    a, b = np.arange(64, dtype="int32") + (127 << 23), np.zeros((8, 8), "int32")
    tw.compile(main, engine=engine)(a, b)
    assert (b.reshape(-1) == a[::-1] + 1).all()


def test_helpers_of_python_run():
    def three(buffer, value):
        for i in range(3):  # a loop of Python: this function is not rewritten
            buffer[i] = value + i

    @T.prim_func
    def main(B: T.Tensor((3,), "int32")):
        with T.Kernel(1, threads=1) as bx:
            three(B, bx)

    assert run(main, np.zeros(3, "int32")).tolist() == [0, 1, 2]


def test_other_names_are_operations():
    for name in T._OTHER_NAMES:
        assert callable(getattr(T, name))


def test_help_comes_from_the_table():
    assert "C += A B" in T.gemm.__doc__ and "transpose_A" in T.gemm.__annotations__
    assert {"gemm", "copy", "Kernel", "reduce_sum", "float16"} <= set(dir(T))


@pytest.mark.parametrize("engine", ENGINES)
def test_rounds_around_launches(engine):
    """range() outside of a launch counts rounds of Python, each of which opens its own."""

    @T.macro
    def stage(A: T.Tensor((4, 32), "float32"), k, last):
        with T.Kernel(4, threads=32) as b:
            for i in T.Parallel(32):
                A[b, i] = A[b, i] * 2 + (1 << k)
            if last:
                for i in T.Parallel(32):
                    A[b, i] = -A[b, i]

    @T.prim_func
    def main(A: T.Tensor((4, 32), "float32")):
        for k in range(3):
            stage(A, k, k == 2)

    a = np.ones((4, 32), "float32")
    tw.compile(main, engine=engine)(a)
    assert (a == -(((1 * 2 + 1) * 2 + 2) * 2 + 4)).all()
    assert main.script().count("launch ") == 3


@pytest.mark.parametrize("engine", ENGINES)
def test_what_never_happens_may_be_outside(engine):
    """An index, or a box, behind a condition that no thread fulfills."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((16,), "float32")
            for i in T.Parallel(16):
                s[i] = A[i]
            for i in T.Parallel(32):
                j = i + 32
                if j < 16 and i >= 0:
                    s[j] = A[j]
                if j >= 16:
                    A[j] = 7
                else:
                    s[j] = 9
            for k in T.serial(4):
                if k + 16 < 16:
                    T.copy(A[0:8], s[k + 16 : k + 24])
            T.copy(s, B)

    a, b = np.arange(64, dtype="float32"), np.zeros(16, "float32")
    tw.compile(main, engine=engine)(a, b)
    assert (b == np.arange(16)).all() and (a[32:] == 7).all()

    @T.prim_func
    def outside(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((16,), "float32")
            for i in T.Parallel(32):
                if i < 16:
                    s[i + 32] = A[i]
            T.copy(s, A[0:16])

    with pytest.raises(tw.CompileError, match="index 0 of 's'"):
        tw.compile(outside, engine=engine)


@pytest.mark.parametrize("target", ["interpreter", "simulator -arch=sm_90a"])
def test_stores_of_an_asynchronous_scope(target):
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float16"), B: T.Tensor((4, 64), "float16")):
        with T.Kernel(4, threads=32) as b:
            s = T.alloc_shared((64,), "float16")
            ready = T.alloc_barrier([32])
            tx = T.get_thread_binding()
            with T.attr("default", "async_scope", 1):
                for v in T.vectorized(2):
                    s[tx * 2 + v] = A[b, tx * 2 + v]
            T.cp_async_barrier_noinc(ready[0])
            T.barrier_wait(ready[0], 0)
            for i in T.Parallel(64):
                B[b, i] = s[63 - i]

    assert "cp_async s[tx * 2 + v] = A[b, tx * 2 + v]" in main.script()
    a = np.random.default_rng(3).random((4, 64)).astype("float16")
    b = np.zeros_like(a)
    tw.compile(main, target=target)(a, b)
    assert (b == a[:, ::-1]).all()


@pytest.mark.parametrize("target", ["interpreter", "simulator -arch=sm_90a"])
def test_stores_of_an_asynchronous_scope_in_several_tiles(target):
    """Rows that are looked up, in two tiles by one loop: each thread goes on while they are under way."""
    rng = np.random.default_rng(3)
    a, rows = rng.random((64, 32)).astype("float16"), rng.integers(0, 64, 16).astype("int32")
    b = np.zeros((16, 32), "float16")
    tw.compile(rows_in_two_tiles, target=target)(a, rows, b)
    assert (b == a[rows][::-1]).all()


def test_the_region_of_a_tile():
    seen = []

    def look(tile):
        seen.append((tile.shape, [(r.min, r.extent) for r in tile.region]))

    @T.prim_func
    def main(A: T.Tensor((3, 64, 32), "float32")):
        with T.Kernel(3, threads=32):
            s = T.alloc_shared((2, 64, 32), "float32")
            look(s[1, :, 4:12])
            T.clear(s)

    assert seen == [((1, 64, 8), [(1, 1), (0, 64), (4, 8)])]


@pytest.mark.parametrize("target", ["interpreter", "cpu", "simulator -arch=sm_90a"])
@pytest.mark.parametrize("of", ["float32", "int32"])
def test_a_running_maximum_that_nothing_begins(target, of):
    """It begins with the least there is, in every block."""

    @T.prim_func
    def main(A: T.Tensor((3, 8, 32), of), B: T.Tensor((3, 32), of), C: T.Tensor((3, 32), of)):
        with T.Kernel(3, threads=32) as b:
            a = T.alloc_fragment((8, 32), of)
            most = T.alloc_fragment((32,), of)
            least = T.alloc_fragment((32,), of)
            T.copy(A[b, :, :], a)
            T.reduce_max(a, most, dim=0, clear=False)
            for k in T.serial(2):
                T.reduce_min(a, least, dim=0, clear=False)
            T.copy(most, B[b, :])
            T.copy(least, C[b, :])

    a = (np.random.default_rng(4).random((3, 8, 32)) * 100 - 200).astype(of)
    b, c = np.zeros((2, 3, 32), of)
    tw.compile(main, target=target)(a, b, c)
    assert (b == a.max(1)).all() and (c == a.min(1)).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_number_beside_float64_keeps_its_bits(engine):
    @T.prim_func
    def main(X: T.Tensor((4,), "float64"), Y: T.Tensor((14,), "float64")):
        with T.Kernel(1, threads=1):
            tile = T.alloc_fragment((2,), "float64")
            value = T.alloc_var("float64", init=0.1)
            T.fill(tile, 0.1)
            Y[0] = X[0] * 0.1
            Y[1] = 0.1 - X[0]
            Y[2] = 0.1
            Y[3] = value
            Y[4] = T.max(X[1], 0.1)
            Y[5] = T.if_then_else(X[0] > 2.0, X[0], 0.1)
            Y[6] = T.cast(0.1, "float64")
            Y[7] = T.float64(0.1)
            Y[8] = T.pow(X[0], 0.1)
            Y[9] = tile[0]
            Y[10] = T.Select(X[2] == 0.1, 1.0, 0.0)
            Y[11] = X[0]
            Y[11] += 0.1
            Y[12] = X[0]
            T.atomic_add(Y[12], 0.1)
            value = 0.3
            Y[13] = value

    x = np.array([1.0, -1.0, 0.1, 0.0])
    found = run(main, x, np.zeros(14), engine=engine)
    wanted = [0.1, 0.1 - 1.0, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1.0, 0.1, 1.0, 1.1, 1.1, 0.3]
    assert found.tolist() == wanted


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("block", (1, 2))
def test_a_tile_of_one_element_takes_the_first_of_a_dynamic_slice(engine, block):
    n = T.dynamic("n")

    @T.prim_func
    def main(X: T.Tensor((n,), "int32"), Y: T.Tensor((3, block), "int32")):
        with T.Kernel(1, threads=32):
            tile = T.alloc_fragment((block,), "int32")
            T.copy(X[: n - 1], tile)
            T.copy(tile, Y[0, 0])
            T.copy(X[1:], tile)
            T.copy(tile, Y[1, 0])
            T.copy(X, tile)
            T.copy(tile, Y[2, 0])

    found = run(main, np.arange(5, 10, dtype="int32"), np.empty((3, block), "int32"), engine=engine)
    first = np.arange(5, 5 + block)
    assert (found == [first, first + 1, first]).all()


def test_extents_of_slices_by_bounds_of_any_integer_type():
    """A slice between bounds of int64 has as many elements as one of int32."""

    @T.prim_func
    def p(X: T.Tensor((40, 8), "int32"), Y: T.Tensor((40, 8), "int32"), Z: T.Tensor((40,), "int32")):
        with T.Kernel(2, threads=32) as bx:
            first = T.cast(bx, "int64") * 16
            tile, rows, sums = T.alloc_shared((32, 8), "int32"), T.alloc_shared((32, 8), "int32"), T.alloc_fragment((32,), "int32")
            T.copy(X[first : first + 16, 0:8], tile[0:16, 0:8])
            T.copy(X[first : first + 16, 0:8], tile[first : first + 16, 0:8])
            T.fill(sums, 0)
            T.reduce_sum(tile[first : first + 16, 0:8], sums[0:16], dim=1)
            T.cumsum(tile[first : first + 16, 0:8], rows[0:16, 0:8], dim=1)
            T.copy(rows[0:16, 0:8], Y[first : first + 16, 0:8])
            T.copy(sums[0:16], Z[first : first + 16])

    x = np.arange(320, dtype=np.int32).reshape(40, 8)
    y, z = np.zeros_like(x), np.zeros(40, np.int32)
    tw.compile(p, engine="interpreter")(x, y, z)
    np.testing.assert_array_equal(y[:32], np.cumsum(x, 1)[:32])
    np.testing.assert_array_equal(z[:32], x.sum(1)[:32])


@pytest.mark.parametrize("n", [32, 64])
def test_what_an_index_means_does_not_depend_on_the_shape(n):
    """Where the only block makes it negative it is beyond the tensor, as in the first of many; -1 - i is, whatever i counts to."""

    @tw.jit(engine="interpreter")
    def before(A):
        N = T.const("N")
        A: T.Tensor[[N], T.float32]
        B, C, D = (T.empty((N,), "float32") for _ in range(3))
        with T.Kernel(N // 32, threads=32) as bx:
            for i in T.Parallel(32):
                B[bx * 32 + i] = A[bx * 32 + i - 1] + A[bx * 32 - 1]
            for k in T.serial(N // 32):
                for i in T.Parallel(32):
                    C[k * 32 + i] = A[(k - 1) * 32 + i]
            for i in T.serial(N):
                D[i] = A[-1 - i]
        return B, C, D

    a = np.arange(1, n + 1, dtype=np.float32)
    b, c, d = before(a)
    last = np.repeat([0, *a[31:-1:32]], 32)
    np.testing.assert_array_equal(b, np.concatenate([[0], a[:-1]]) + last)
    np.testing.assert_array_equal(c, np.concatenate([np.zeros(32), a[:-32]]))
    np.testing.assert_array_equal(d, a[::-1])


def test_an_index_that_loops_alone_keep_before_a_tensor_is_told(capfd):
    """TileLang counts it from the end; what a larger grid would bring into the tensor is no mistake."""

    @T.prim_func
    def before(told: T.Tensor((8,), "int32"), silent: T.Tensor((8,), "int32"), B: T.Tensor((4, 8), "int32")):
        with T.Kernel(2, threads=32) as bx:
            for i in T.Parallel(8):
                B[0, i] = told[i - 8]
                B[1, i] = silent[bx * 8 + i - 16]
                B[2, i] = silent[-1 - i]
            for k in T.serial(1):
                B[3, k] = silent[k - 1]

    b = np.full((4, 8), 7, np.int32)
    tw.compile(before, engine="interpreter")(np.ones(8, np.int32), np.ones(8, np.int32), b)
    assert b[:3].sum(1).tolist() == [0, 0, 8] and b[3, 0] == 0
    said = capfd.readouterr().err
    assert "warning TW1036" in said and "index 0 of 'told' is between -8 and -1, before the tensor" in said
    assert said.count("TW1036") == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_tiles_larger_than_a_whole_dimension_of_a_tensor(engine):
    """What is beyond reads zero and is not written; a slice that ends within the tensor says what is meant, and is refused."""

    def rows(begin, end):
        @T.prim_func
        def main(A: T.Tensor((2, 6, 40), "float32"), C: T.Tensor((6, 40), "float32"), D: T.Tensor((8, 48), "float32")):
            with T.Kernel(1, threads=32):
                tile = T.alloc_shared((8, 48), "float32")
                T.copy(A[1, begin:end, :], tile)
                T.copy(tile, C[begin:end, :])
                T.copy(tile, D)

        return main

    a = np.random.default_rng(0).standard_normal((2, 6, 40), dtype=np.float32)
    c, d = np.zeros((6, 40), np.float32), np.ones((8, 48), np.float32)
    run(rows(0, 6), a, c, d, engine=engine)
    np.testing.assert_array_equal(c, a[1])
    np.testing.assert_array_equal(d, np.pad(a[1], ((0, 2), (0, 8))))
    with pytest.raises(tw.CompileError, match="TW1057.*the extents differ"):
        tw.compile(rows(0, 4), engine=engine)


def test_a_tensor_is_no_dtype():
    """NumPy takes what has a dtype for one, in some of its versions."""

    class Named:
        dtype = np.dtype("float32")

    with pytest.raises(tw.CompileError, match="TW1103"):
        T.dtype(Named())
    with pytest.raises(tw.CompileError, match="TW1103.*there is no dtype <buffer A>"):

        @T.prim_func
        def main(A: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=32):
                A[0] = T.infinity(A)


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_a_grid_of_a_choice(target):
    """The host chooses: Python's own max, and if_then_else, of what a call gives."""
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
        with T.Kernel(max(0, n - 3), T.if_then_else(n > 6, 2, 1), threads=32) as (bx, by):
            T.atomic_add(B[bx], A[bx + 3])

    kernel = tw.compile(main, target=target)
    for count, times in ((2, 0), (3, 0), (5, 1), (6, 1), (9, 2)):
        a, b = np.arange(1, count + 1, dtype="int32"), np.zeros(count, "int32")
        kernel(a, b)
        assert (b[: max(0, count - 3)] == times * a[3:]).all() and (b[max(0, count - 3) :] == 0).all()


def test_values_that_outlive_their_program_can_be_shown():
    kept = []

    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=4):
            kept.extend([A, A[0]])
            A[0] = 1

    assert [repr(v) for v in kept] == ["<buffer ?>", "<tile of ?>"]
