"""jit: factories and eager functions, what is compiled once, outputs."""
import functools
import math
import re
import threading

import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T

jit = functools.partial(tw.jit, engine="interpreter")


@jit(out_idx=[-1])
def scaled(N, factor=2.0, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, 32), threads=32) as bx:
            for i in T.Parallel(32):
                B[bx * 32 + i] = A[bx * 32 + i] * factor

    return main


@jit()
def sums(A, B, block: int = 32, negate=False):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), T.float32)
    B: T.Tensor((N,), T.float32)
    C = T.empty((M, N), T.float32)
    D = T.empty(M, dtype=T.float32)
    with T.Kernel(M, threads=block) as bx:
        total = T.alloc_fragment((1,), T.float32)
        row = T.alloc_fragment((N,), T.float32)
        for i in T.Parallel(N):
            row[i] = A[bx, i] + B[i] if not negate else -A[bx, i] - B[i]
        T.reduce_sum(row, total)
        T.copy(row, C[bx, 0])
        D[bx] = total[0]
    return C, D


def test_factories_compile_once():
    kernel = scaled(100)
    assert scaled(100) is kernel and scaled(N=100, factor=2.0) is kernel and scaled(100, 3.0) is not kernel
    a = np.arange(100, dtype="float32")
    assert (kernel(a) == a * 2).all() and kernel.engine == "interpreter" and kernel.name == "main"
    into = np.zeros(100, "float32")
    assert kernel(a, into) is into and (into == a * 2).all()
    assert "program main" in kernel.get_kernel_source() and [p.name for p in kernel.params] == ["A", "B"]


def test_eager_functions():
    a, b = np.ones((3, 8), "float32"), np.arange(8, dtype="float32")
    c, d = sums(a, b)
    assert (c == a + b).all() and (d == (a + b).sum(1)).all()
    assert (sums(a, b, negate=True)[0] == -a - b).all()
    assert (sums(a, b, 64, True)[0] == -a - b).all()
    count = len(sums.kernels)
    sums(a, b)
    sums(a, b)
    assert len(sums.kernels) == count
    sums(np.ones((5, 8), "float32"), b)  # another M
    assert len(sums.kernels) == count + 1
    with pytest.raises(tw.LaunchError, match="TW4007"):
        sums(a, np.arange(9, dtype="float32"))
    with pytest.raises(TypeError, match="missing a required argument"):
        sums(a)


def test_many_shapes_are_told_once(recwarn):
    @tw.jit(engine="interpreter")
    def doubled(A, of="float32"):
        M, N = T.const("M, N")
        A: T.Tensor[[M, N], of]
        B = T.empty((M, N), of)
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(M, N):
                B[i, j] = A[i, j] * 2
        return B

    def call(*lengths, of="float32"):
        for length in lengths:
            doubled(np.zeros((2, length), of), of)

    call(*range(1, 8), 1, 2, 3)
    call(8, of="float16")
    assert [str(w.message) for w in recwarn] == []
    call(8)
    (said,) = [w for w in recwarn]
    assert re.fullmatch(r"'doubled' was compiled for 8 values of N \(\d+\.\d s\): T\.dynamic\(\"N\"\) compiles once, where no tile on chip has that extent",
                        str(said.message)) and said.filename == __file__  # fmt: skip
    call(*range(9, 30))
    assert len(recwarn) == 1


def test_eager_functions_compile_without_tensors():
    kernel = sums.compile(M=2, N=4)
    assert [list(p.shape) for p in kernel.params] == [[2, 4], [4], [2, 4], [2]] and kernel.params[0].dtype == "float32"
    assert sums.compile(T.Tensor((2, 4), "float32"), T.Tensor((4,), "float32")) is kernel
    assert len(kernel(np.ones((2, 4), "float32"), np.ones(4, "float32"))) == 2


def test_out_idx_of_eager_functions():
    @tw.jit(out_idx=-1)
    def wrong(A):
        N = T.const("N")
        A: T.Tensor((N,), T.float32)
        with T.Kernel(1, threads=1):
            A[0] = 0

    with pytest.raises(ValueError, match="TW1110"):
        wrong(np.zeros(4, "float32"))


def test_functions_that_have_another_name_than_their_definition():
    """What functools.wraps does, and whoever names what a factory makes."""

    def logged(function):
        @functools.wraps(function)
        def wrapper(*arguments, **named):
            return function(*arguments, **named)

        return wrapper

    @tw.jit(out_idx=[-1], engine="interpreter")
    @logged
    def scaled(n, by=2.0):
        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(n):
                    B[i] = A[i] * by

        return main

    def doubled(A):
        n = T.const("n")
        A: T.Tensor((n,), "float32")
        B = T.empty((n,), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                B[i] = A[i] * 2
        return B

    def program(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                B[i] = A[i] * 4

    doubled.__name__, program.__name__ = "twice", "four_times"
    a = np.arange(8, dtype="float32")
    assert (scaled(8)(a) == 2 * a).all() and (scaled(8, by=3.0)(a) == 3 * a).all() and scaled(8) is scaled(8)
    assert (tw.jit(doubled, engine="interpreter")(a) == 2 * a).all()
    kernel = tw.compile(T.prim_func(program), out_idx=[1], engine="interpreter")
    assert kernel.name == "four_times" and (kernel(a) == 4 * a).all()


def test_programs_reached_through_helpers():
    def build(n):
        return scaled.func(n)

    @jit(out_idx=-1)
    def factory(n):
        return build(n)

    assert (factory(8)(np.ones(8, "float32")) == 2).all()


def test_shapes_of_outputs_come_from_inputs():
    M, N = T.dynamic("M, N")

    @T.prim_func
    def outer(A: T.Tensor((M,), "float32"), B: T.Tensor((N,), "float32"), C: T.Tensor((M, N * 2), "float32")):
        with T.Kernel(M, threads=32) as bx:
            for j in T.Parallel(N * 2):
                C[bx, j] = A[bx] * B[j // 2]

    kernel = tw.compile(outer, out_idx=[2], engine="interpreter")
    a, b = np.arange(3, dtype="float32"), np.arange(4, dtype="float32")
    assert (kernel(a, b) == np.outer(a, b.repeat(2))).all()

    K = T.dynamic("K")

    @T.prim_func
    def alone(A: T.Tensor((M,), "float32"), C: T.Tensor((K,), "float32")):
        with T.Kernel(1, threads=32):
            C[0] = A[0]

    with pytest.raises(ValueError, match="'K', which no given tensor has"):
        tw.compile(alone, out_idx=1, engine="interpreter")(a)


FACTOR = 2


@jit()
def with_global(A, more=0):
    N = T.const("N")
    A: T.Tensor((N,), T.float32)
    B = T.empty((N,), T.float32)
    with T.Kernel(1, threads=32):
        for i in T.Parallel(N):
            B[i] = A[i] * FACTOR / (1 + more)
    return B


def test_what_a_trace_reads_is_part_of_its_key():
    global FACTOR
    a = np.ones(4, "float32")
    assert with_global(a)[0] == 2 and with_global(a, 1)[0] == 1
    FACTOR = 3
    assert with_global(a)[0] == 3
    FACTOR = 2
    count = len(with_global.kernels)
    assert with_global(a)[0] == 2 and len(with_global.kernels) == count

    @jit()
    def kind(A, flag):
        A: T.Tensor((1,), T.float32)
        with T.Kernel(1, threads=1):
            A[0] = 1 if isinstance(flag, bool) else 2 if isinstance(flag, int) else T.copysign(3.0, flag)

    for flag, wanted in [(True, 1), (1, 2), (1.0, 3), (0.0, 3), (-0.0, -3), (True, 1)]:
        kind(a[:1], flag)
        assert a[0] == wanted


def test_numbers_of_numpy_are_numbers():
    @T.prim_func
    def main(n: T.int32, x: T.float32, B: T.Tensor((2,), "float32")):
        with T.Kernel(1, threads=1):
            B[0], B[1] = n, x

    kernel = tw.compile(main, out_idx=2, engine="interpreter")
    assert kernel(np.int64(3), np.float32(0.5)).tolist() == [3, 0.5]


def test_functions_that_are_alike_stay_apart():
    def make(value):
        @T.prim_func
        def main(B: T.Tensor((1,), "int32")):
            with T.Kernel(1, threads=1):
                B[0] = value

        return tw.compile(main, out_idx=0, engine="interpreter")

    first, second = make(1), make(2)
    assert first()[0] == 1 and second()[0] == 2


def test_threads_compile_at_the_same_time():
    found, errors = {}, []

    def work(n):
        try:
            found[n] = scaled(n, float(n))(np.ones(n, "float32"))
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(8 + k % 4,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and all((found[n] == n).all() for n in found)


def test_par_compile():
    kernels = scaled.par_compile([{"N": 4}, (8, 3.0)])
    assert (kernels[1](np.ones(8, "float32")) == 3).all()


def test_engines_by_environment(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "interpreter")

    @T.prim_func
    def main(B: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=32):
            B[0] = 1

    assert tw.compile(main).engine == "interpreter" == tw.compile(main, target="cuda").engine
    assert tw.compile(main, target="cpu").engine == "cpu"
    simulated = tw.compile(main, out_idx=0, target="simulator")
    assert simulated.engine == "simulator" and simulated()[0] == 1
    with pytest.raises(ValueError, match="TW1080"):
        tw.compile(main, target="abacus")


def test_texts_are_programs_too():
    program = scaled(8).prim_func
    assert tw.parse(program.script()).text == program.script()


def test_calls_leave_no_memory_behind():
    import tracemalloc

    kernel, a, b = scaled(8), np.ones(8, "float32"), np.ones(8, "float32")
    kernel(a, b)
    tracemalloc.start()
    before = tracemalloc.take_snapshot()
    for _ in range(500):
        kernel(a, b)
        kernel(a)
    grown = sum(s.size_diff for s in tracemalloc.take_snapshot().compare_to(before, "filename"))
    tracemalloc.stop()
    assert grown < 50_000


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    @tw.jit(engine="cpu")
    def eager(self, A, block: int = 32):
        N = T.const("N")
        A: T.Tensor((N,), "float32")
        B = T.empty((N,), "float32")
        with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * self.factor
        return B

    @tw.autotune(configs=[{"block": 16}, {"block": 32}], warmup=1, rep=1)
    @tw.jit(out_idx=-1, engine="cpu")
    def tuned(self, N, block=8):
        @T.prim_func
        def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
            with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
                for i in T.Parallel(block):
                    B[bx * block + i] = A[bx * block + i] * self.factor

        return main


def test_methods():
    """The object is an argument: what it holds chooses the kernel."""
    two, three, ones = Scaled(2), Scaled(3), np.ones(64, "float32")
    assert two.eager(ones)[0] == 2 and three.eager(ones)[0] == 3 and Scaled.eager(three, ones)[0] == 3
    assert two.tuned(64)(ones)[0] == 2 and three.tuned(64)(ones)[0] == 3 and three.tuned(64).config["block"] in (16, 32)
    assert two.tuned.compile(64, block=4)(ones)[0] == 2
    assert len(Scaled.eager.kernels) == 2
    two.factor = 5
    assert two.eager(ones, block=16)[0] == 5 and two.eager.compile(ones)(ones)[0] == 5
    assert [k(ones)[0] for k in two.eager.par_compile([{"N": 64, "block": 8}, {"N": 64}])] == [5, 5]
    assert two.eager == two.eager != three.eager and "eager(self, A, block)" in repr(two.eager)
    assert "A" in two.eager.get_tir(N=64).script() and two.eager.mode == "eager"


def test_functions_that_a_class_holds_are_not_bound():
    @tw.jit(engine="cpu")
    def doubled(A):
        N = T.const("N")
        A: T.Tensor((N,), "float32")
        B = T.empty((N,), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[i] = A[i] * 2
        return B

    class Holder:
        function = doubled

    assert Holder().function is doubled and Holder().function(np.ones(8, "float32"))[0] == 2


def test_keywords_that_no_parameter_and_no_const_has():
    a, b = np.ones((2, 8), "float32"), np.ones(8, "float32")
    for again in range(2):  # also where a kernel is there already
        for named, unknown, near in (({"blok": 16}, "blok", "block"), ({"negated": True}, "negated", "negate"), ({"X": b}, "X", ""), ({"K": 3}, "K", "")):
            with pytest.raises(TypeError, match=f"TW4001.*sums: got an unexpected keyword argument '{unknown}'") as caught:
                sums(a, b, **named)
            assert caught.value.help.endswith(f": {near}" if near else "names that T.const makes")
        for named, unknown, near in (({"A": a, "X": b}, "X", "B"), ({"A": a, "b": b}, "b", "B")):
            with pytest.raises(TypeError, match=f"TW4001.*sums: got an unexpected keyword argument '{unknown}'") as caught:
                sums(**named)
            assert caught.value.help == f"the nearest it has: {near}"
        with pytest.raises(TypeError, match="TW4001.*sums: missing a required argument: 'B'"):
            sums(a, N=8)
        sums(a, b)


def test_consts_behind_the_first_launch_choose_the_kernel():
    @jit()
    def times(A):
        N = T.const("N")
        A: T.Tensor((N,), T.float32)
        B = T.empty((N,), T.float32)
        with T.Kernel(1, threads=32):
            K = T.const("K")
            for i in T.Parallel(N):
                B[i] = A[i] * K
        return B

    assert [times(np.ones(4, "float32"), K=k)[0] for k in (2, 3, 2)] == [2, 3, 2]
    assert len(times.kernels) == 2


def test_calls_like_ones_before_have_their_kernel_at_once(monkeypatch):
    """Defaults, names and shapes that take turns: none goes the long way twice, and what differs chooses another kernel."""
    long = []
    called = tw.jitted.Jit._called
    monkeypatch.setattr(tw.jitted.Jit, "_called", lambda self, *a: long.append(a) or called(self, *a))

    @jit()
    def times(A, factor: float = 2.0, *, more: int = 1, kind=T.float32):
        n = T.const("n")
        A: T.Tensor((n,), kind)
        B = T.empty((n,), kind)
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                B[i] = A[i] * (factor or math.copysign(8.0, factor)) * more
        return B

    a, b = np.arange(1, 5, dtype="float32"), np.arange(1, 9, dtype="float32")
    calls = [(lambda: times(a), a * 2), (lambda: times(b), b * 2), (lambda: times(A=b), b * 2), (lambda: times(a, more=3), a * 6),
             (lambda: times(a, 4.0), a * 4), (lambda: times(a, factor=-4.0, more=True), a * -4),
             (lambda: times(a.astype("float16"), kind=T.float16), a * 2)]  # fmt: skip
    for turn in range(3):
        for call, want in calls:
            assert (call() == want).all()
        assert len(long) == len(calls), turn
    assert (times(a, 0.0) == a * 8).all() and (times(a, -0.0) == a * -8).all()

    @jit(out_idx=-1)
    def factory(n, dtype="float32"):
        @T.prim_func
        def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(n):
                    B[i] = A[i]

        return main

    long.clear()
    assert factory(4) is factory(4) and factory(n=4) is factory(4) is not factory(4, "float16") and len(long) == 3


def test_parameters_that_are_passed_by_name_alone():
    @T.prim_func
    def main(A: T.Tensor((4,), "float32"), *, B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                B[i] = A[i]

    a, b = np.ones(4, "float32"), np.zeros(4, "float32")
    tw.compile(main, engine="interpreter")(a, b)
    assert (a == b).all()
