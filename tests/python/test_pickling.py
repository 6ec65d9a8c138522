"""Kernels and functions in pickles, copies and spawned processes: a pickle says how it was made, and compiles it again."""
import copy
import multiprocessing
import pickle

import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T

ONES = np.ones(8, "float32")


@tw.jit(out_idx=-1, engine="interpreter")
def times(N, factor=2):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[i] = A[i] * factor

    return main


@tw.jit(engine="interpreter")
def plus(A, n: int = 1):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    B = T.empty((N,), "float32")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(N):
            B[i] = A[i] + n
    return B


@tw.autotune(configs=[{"factor": 2}], warmup=1, rep=1)
@tw.jit(out_idx=-1, engine="interpreter")
def tuned(N, factor=3):
    return times.func(N, factor)


@T.prim_func
def negated(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(8):
            B[i] = -A[i]


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    @tw.jit(engine="interpreter")
    def run(self, A):
        N = T.const("N")
        A: T.Tensor((N,), "float32")
        B = T.empty((N,), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[i] = A[i] * self.factor
        return B


KERNELS = {
    "method": (lambda: Scaled(6).run.compile(ONES), 6),
    "factory": (lambda: times(8, factor=5), 5),
    "eager": (lambda: plus.compile(ONES, n=3), 4),
    "eager, by names": (lambda: plus.compile(N=8), 2),
    "program": (lambda: tw.compile(negated, out_idx=-1, engine="interpreter"), -1),
}


@pytest.mark.parametrize("kind", KERNELS)
def test_kernels(kind):
    make, expected = KERNELS[kind]
    kernel = make()
    for again in (pickle.loads(pickle.dumps(kernel)), copy.copy(kernel), copy.deepcopy({"k": kernel})["k"]):
        assert again(ONES).tolist() == [expected] * 8 and again.engine == "interpreter" and again.name == kernel.name


def test_functions_and_programs():
    for made in (times, plus, tuned, negated):
        assert pickle.loads(pickle.dumps(made)) is made and copy.deepcopy([made])[0] is made
    assert copy.copy(times) is times and copy.copy(negated) is not negated


def test_what_no_module_has():
    kernel = tw.compile(times(8).prim_func, out_idx=-1, engine="interpreter")
    with pytest.raises(tw.CompileError, match="TW1101.*'main' cannot be pickled.*no module has it") as error:
        pickle.dumps(kernel)
    assert isinstance(error.value, TypeError) and "@tilewright.jit" in error.value.help


def of_worker(connection, kernel, function):
    connection.send((kernel(ONES).tolist(), function(ONES).tolist()))


def test_spawned_processes():
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    worker = context.Process(target=of_worker, args=(theirs, times(8, 7), plus), daemon=True)
    worker.start()
    try:
        assert ours.poll(60) and ours.recv() == ([7.0] * 8, [2.0] * 8)
    finally:
        worker.kill()
        worker.join()


def test_errors_come_through_pickles_as_they_are():
    errors = []
    for call in (lambda: times(8)(ONES.astype("float64")), lambda: tw.compile(7), lambda: times(8)(ONES, ONES, ONES, ONES)):
        with pytest.raises(tw.TilewrightError) as caught:
            call()
        errors.append(caught.value)
    assert any(isinstance(e, TypeError) for e in errors)
    for error in errors:
        for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
            assert type(again) is type(error) and str(again) == str(error) and again.__dict__ == error.__dict__
