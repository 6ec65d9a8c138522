"""What would surely be wrong when it runs is refused on every engine, at the user's line; and calls that are checked."""
import warnings

import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
from tilewright import settings


def line_of(marker):
    with open(__file__) as file:
        return next(n for n, line in enumerate(file, 1) if line.rstrip().endswith("# " + marker))


def refused(make, engine, code, marker, message):
    with pytest.raises(tw.CompileError) as caught:
        make(engine)
    error = caught.value
    assert (error.code, error.file, error.line) == (code, __file__, line_of(marker)), str(error)
    assert message in error.message and error.help


def forgotten_clear(engine):
    @T.prim_func
    def main(A: T.Tensor((16, 64), "float16"), B: T.Tensor((64, 16), "float16"), C: T.Tensor((16, 16), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((16, 16), "float16")
            b = T.alloc_shared((16, 16), "float16")
            c = T.alloc_fragment((16, 16), "float32")
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 16], a)
                T.copy(B[k * 16, 0], b)
                T.gemm(a, b, c)  # accumulates
            T.copy(c, C)

    tw.compile(main, engine=engine)


def loop_beyond_its_tile(engine):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64,), "float32")
            for i in T.Parallel(128):
                s[i] = A[i]  # outside

    tw.compile(main, engine=engine)


def points_that_collide(engine):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64,), "float32")
            for i in T.Parallel(128):
                s[i // 2] = A[i]  # collides

    tw.compile(main, engine=engine)


def points_that_read_others(engine):
    @T.prim_func
    def main(A: T.Tensor((65,), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((65,), "float32")
            T.copy(A, s)
            for i in T.Parallel(64):
                s[i + 1] = s[i] + A[i]  # another's
            T.copy(s, A)

    tw.compile(main, engine=engine)


def output_that_nobody_writes(engine):
    @tw.jit(engine=engine)
    def double(A):
        N = T.const("N")
        A: T.Tensor((N,), "float32")
        B = T.empty((N,), "float32")  # never written
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((N,), "float32")
            T.copy(A, s)
            T.copy(s, A)
        return B

    double(np.ones(64, "float32"))


@pytest.mark.parametrize("engine", ["interpreter", "cpu", "simulator"])
@pytest.mark.parametrize(
    "make, code, marker, message",
    [
        (forgotten_clear, "TW1090", "accumulates", "'c' is read before anything is written to it"),
        (loop_beyond_its_tile, "TW1036", "outside", "index 0 of 's' runs from 0 to 127, but 's' has 64 elements"),
        (points_that_collide, "TW1091", "collides", "points 0 and 1 of the map write different values to s[0]"),
        (points_that_read_others, "TW1091", "another's", "point 1 of the map reads s[1], which point 0 writes"),
        (output_that_nobody_writes, "TW1092", "never written", "returns this tensor, but no statement writes to it"),
    ],
)
def test_what_is_surely_wrong_is_refused(make, code, marker, message, engine):
    refused(make, engine, code, marker, message)


@tw.jit(engine="cpu")
def gathered(A, I):
    A: T.Tensor((64,), "float32")
    I: T.Tensor((64,), "int32")
    B = T.empty((64,), "float32")
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((64,), "float32")
        T.copy(A, s)
        for i in T.Parallel(64):
            B[i] = s[I[i]] * 2
    return B


def test_a_checked_call_gives_what_the_call_gives():
    a, order = np.arange(64, dtype="float32"), np.arange(64, dtype="int32")[::-1].copy()
    kernel = gathered.compile(a, order)
    assert (kernel.check(a, order) == a[::-1] * 2).all()
    assert (kernel.check(a, order) == kernel(a, order)).all()


def test_a_checked_call_finds_what_the_cpu_does_not_see():
    a, order = np.arange(64, dtype="float32"), np.full(64, 64, "int32")
    with pytest.raises(tw.LaunchError) as caught:
        gathered.compile(a, order).check(a, order)
    assert caught.value.code == "TW6001" and "outside 's' of shape (64)" in caught.value.message


def test_the_environment_asks_for_checks(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CHECK", "1")
    a, order = np.arange(64, dtype="float32"), np.full(64, -1, "int32")
    kernel = tw.compile(gathered.compile(a, order).prim_func, engine="cpu")
    with pytest.raises(tw.LaunchError) as caught:
        kernel(a, order)
    assert caught.value.code == "TW6001"


def test_an_output_beside_others_that_nobody_writes():
    @tw.jit(engine="interpreter")
    def double(A):
        N = T.const("N")
        A: T.Tensor((N,), "float32")
        B, unused = T.empty((N,), "float32"), T.empty((N,), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[i] = A[i] * 2
        return B, unused

    with pytest.warns(UserWarning, match="'double' returns 'unused', but no statement writes to it"):
        made, _ = double(np.ones(8, "float32"))
    assert (made == 2).all()


def sums(begin, change):
    """A program whose output only adds to what is there; or begins with numbers of its own."""

    @T.prim_func
    def total(A: T.Tensor((64,), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(2, threads=32) as bx:
            begin(B)
            for i in T.Parallel(32):
                change(A[bx * 32 + i], B, i % 4)

    return total


def add_in_place(a, b, i):
    b[i] = b[i] + a


NOTHING = lambda b: None
ADD = lambda a, b, i: T.atomic_add(b[i], a)


@pytest.mark.parametrize("begin, change, warned", [
    (NOTHING, ADD, True), (NOTHING, lambda a, b, i: T.atomic_max(b[i], a), True), (NOTHING, add_in_place, True),
    (T.clear, ADD, False), (NOTHING, lambda a, b, i: b.__setitem__(i, 1.0), False), (NOTHING, lambda a, b, i: T.atomic_store(b[i], a), False),
])  # fmt: skip
def test_an_output_that_is_only_added_to_has_no_beginning(monkeypatch, begin, change, warned):
    monkeypatch.setattr(settings, "_warned", set())
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        program = sums(begin, change)
        tw.compile(program, engine="interpreter")  # a tensor that the caller gives begins as the caller says
        assert not [w for w in heard if "only adds to" in str(w.message)]
        tw.compile(program, out_idx=-1, engine="interpreter")
    assert any("'total' only adds to 'B', which every call makes anew" in str(w.message) for w in heard) == warned


@pytest.mark.parametrize("target", ["interpreter", "cpu", "simulator -arch=sm_80", "simulator -arch=sm_90a"])
@pytest.mark.parametrize("columns", [8, 32])
def test_a_map_that_goes_beyond_a_fragment_ends_where_it_does(target, columns):
    """In a loop whose turns are in memory nothing is sure; the points beyond touch nothing, neither rows nor what lies behind."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, columns), "float16"), N: T.Tensor((1,), "int32"), C: T.Tensor((64, columns), "float32")):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((64, 64), "float16"), T.alloc_shared((64, columns), "float16")
            scale = T.alloc_shared((64,), "float32")
            c = T.alloc_fragment((64, columns), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            for k in T.serial(N[0]):
                for i in T.Parallel(64):
                    scale[i] = i + k
                T.gemm(a, b, c)
                for i, j in T.Parallel(64, 64):
                    c[i, j] *= scale[i]
            T.copy(c, C)

    a, b = (np.random.default_rng(s).integers(-2, 3, shape).astype("float16") for s, shape in ((0, (64, 64)), (1, (64, columns))))
    wanted, c = np.zeros((64, columns), "float32"), np.empty((64, columns), "float32")
    for k in range(2):
        wanted = (wanted + a.astype("float32") @ b) * (np.arange(64, dtype="float32") + k)[:, None]
    tw.compile(main, target=target)(a, b, np.array([2], "int32"), c)
    assert (c == wanted).all()


def relaxed(form):
    """Shortest paths in place: row and column k keep what they hold in turn k, for no path from k to k is shorter than 0."""

    @T.prim_func
    def main(A: T.Tensor((24, 24), "int32"), B: T.Tensor((24, 24), "int32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((24, 24), "int32")
            T.copy(A, s)
            for k in T.serial(24):
                for i, j in T.Parallel(24, 24):
                    if form == "min":
                        s[i, j] = T.min(s[i, j], s[i, k] + s[k, j])
                    elif form == "sum":
                        s[i, j] = s[i, j] * 2 + s[i, k] + s[k, j]
                    else:
                        s[i, j] = T.if_then_else(s[i, k] + s[k, j] < s[i, j], s[i, k] + s[k, j], s[i, j])
            T.copy(s, B)

    return main


@pytest.mark.parametrize("form", ["min", "select"])
@pytest.mark.parametrize("engine", ["interpreter", "cpu", "cuda -arch=sm_90a"])
def test_an_element_that_a_store_may_leave_as_it_is_may_be_read(engine, form):
    """Only the numbers say whether such a store changes anything; the interpreter tells where one does."""
    a = np.random.default_rng(3).integers(1, 50, (24, 24)).astype("int32")
    np.fill_diagonal(a, 0)
    wanted, b = a.copy(), np.empty_like(a)
    for k in range(24):
        wanted = np.minimum(wanted, wanted[:, k : k + 1] + wanted[k])
    kernel = tw.compile(relaxed(form), target=engine)
    if engine.startswith("cuda"):
        return
    kernel(a, b)
    assert (b == wanted).all()
    if engine == "interpreter":
        np.fill_diagonal(a, -1)
        with pytest.raises(tw.LaunchError, match="TW6016"):
            kernel(a, b)


def test_an_element_that_a_store_surely_changes_may_not():
    with pytest.raises(tw.CompileError, match="TW1091"):
        tw.compile(relaxed("sum"), engine="interpreter")


def test_a_tile_that_each_thread_would_move_is_refused():
    @T.prim_func
    def main(A: T.Tensor((64, 4), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64, 4), "int32")
            own = T.alloc_local((4,), "int32")
            tx = T.get_thread_binding()
            T.copy(A[tx, :], own)
            T.copy(A[tx, :], S[tx, :])
            B[tx] = S[tx, 0] + own[1]

    for target in ("interpreter", "cpu", "simulator -arch=sm_80", "simulator -arch=sm_90a", "cuda -arch=sm_90a"):
        with pytest.raises(tw.CompileError, match="TW6012.*threads do this copy together, but not of one part of") as caught:
            tw.compile(main, target=target)
        assert "T.copy(A[tx, :], S[tx, :])" in str(caught.value)


@pytest.mark.parametrize("engine", ["interpreter", "cpu", "simulator"])
@pytest.mark.parametrize("alloc", [T.alloc_local, T.alloc_fragment])
def test_a_fragment_in_which_each_thread_has_a_number_of_its_own(alloc, engine):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            found = alloc((2, 4), "int32")
            most = alloc((1,), "int32")
            if tx >= 64:
                T.clear(most)
                for r in T.serial(4):
                    found[1, r] = A[(tx - 64) // 8 + r * 16]
                for r in T.serial(4):
                    most[0] = T.max(most[0], found[1, r])
                B[tx - 64] = most[0]

    a = np.random.default_rng(0).integers(1, 1000, 64, dtype="int32")
    b = np.zeros(64, "int32")
    if engine == "simulator":
        tw.compile(main, target="interpreter").simulate(a, b, arch="sm_90a")
    else:
        tw.compile(main, target=engine)(a, b)
    assert (b == [max(a[t // 8 + r * 16] for r in range(4)) for t in range(64)]).all()


def test_a_fragment_of_all_threads_in_which_each_has_a_number_of_its_own_is_refused():
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            found = T.alloc_fragment((4,), "int32")
            if tx >= 64:
                for r in T.serial(4):
                    found[r] = A[(tx - 64) // 8 + r * 16]
            T.copy(found, B)

    with pytest.raises(tw.CompileError, match="TW6012.*one element of the fragment 'found'.*0 for thread 64 and 1 for thread 72") as caught:
        tw.compile(main, target="interpreter")
    assert "T.alloc_local" in str(caught.value)
