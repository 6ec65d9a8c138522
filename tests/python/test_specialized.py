"""Tiles on chip whose extents are known at the call."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
from tilewright.targets import Target

ENGINES = ["interpreter", "cpu"]


def reversed_rows():
    rows, columns = T.dynamic("rows, columns")

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((rows, columns), "float32"), scale: T.float32):
        with T.Kernel(rows, threads=32) as r:
            row = T.alloc_shared((columns,), "float32")
            T.copy(A[r, 0], row)
            for i in T.Parallel(columns):
                B[r, i] = row[columns - 1 - i] * scale

    return main


@pytest.mark.parametrize("engine", ENGINES)
def test_a_kernel_for_each_value(engine):
    kernel = tw.compile(reversed_rows(), engine=engine)
    for shape in ((3, 5), (2, 64), (3, 5), (4, 64)):
        a, b = np.random.default_rng(0).random(shape, dtype="float32"), np.zeros(shape, "float32")
        kernel(a, b, 2.0)
        assert (b == a[:, ::-1] * 2).all()
    assert len(kernel.kernels) == 3 and kernel.engine == engine
    with pytest.raises(tw.LaunchError):
        kernel(np.zeros((3, 5), "float32"), np.zeros((3, 6), "float32"), 2.0)


def test_outputs_are_made():
    torch = pytest.importorskip("torch")
    kernel = tw.compile(reversed_rows(), out_idx=[1], engine="cpu")
    a = torch.rand(2, 8)
    assert (kernel(a, 2.0) == a.flip(1) * 2).all()


def test_what_is_not_known_before_a_call():
    made = reversed_rows()
    assert [p.name for p in made.params] == ["A", "B", "scale"]
    for use in (made.script, lambda: tw.compile(made, engine="cpu").source):
        with pytest.raises(tw.CompileError, match="TW1020"):
            use()


def test_other_uses_of_such_extents_stay_mistakes():
    n = T.dynamic("n")
    with pytest.raises(tw.CompileError, match="TW1020.*a fragment, is indexed by 'i'"):

        @T.prim_func
        def main(A: T.Tensor((n,), "float32")):
            with T.Kernel(1, threads=128):
                F = T.alloc_fragment((128,), "float32")
                for i in T.Parallel(n):
                    F[i] = A[i]


def test_an_extent_that_no_shape_gives_stays_a_mistake():
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), n: T.int32):
        with T.Kernel(1, threads=32):
            T.alloc_shared((n,), "float32")

    with pytest.raises(tw.CompileError, match="TW1020"):
        tw.compile(main, engine="cpu")(np.zeros(8, "float32"), 3)


def test_names_around_mean_what_they_did_when_it_was_defined():
    """As in programs that are traced at once: kernels of several values of a name are several."""
    n, kernels = T.dynamic("n"), []
    for factor in (1, 2, 3):

        @T.prim_func
        def scaled(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
            with T.Kernel(1, threads=32):
                tile = T.alloc_shared((n,), "int32")
                T.copy(A, tile)
                for i in T.Parallel(n):
                    B[i] = tile[i] * factor * FACTOR

        kernels.append(tw.compile(scaled, engine="interpreter"))
    before = globals()["FACTOR"]
    try:
        globals()["FACTOR"] = 5
        for k, kernel in enumerate(kernels):
            b = np.zeros(4, "int32")
            kernel(np.ones(4, "int32"), b)
            assert b.tolist() == [(k + 1) * before] * 4
    finally:
        globals()["FACTOR"] = before


FACTOR = 2


def test_the_target_is_the_one_that_it_was_compiled_for():
    with Target("cuda -arch=sm_80"):
        kernel = tw.compile(reversed_rows())
    a, b = np.ones((2, 8), "float32"), np.zeros((2, 8), "float32")
    kernel(a, b, 2.0)
    assert kernel.arch == "sm_80" and (b == 2).all()
