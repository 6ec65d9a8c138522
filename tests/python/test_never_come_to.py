"""Code that a condition keeps from running, or that has fewer turns than none, wherever it would lead."""

import numpy as np
import pytest

import tilewright as tw
import tilewright.language as T

ENGINES = ("interpreter", "cpu", "simulator")


def read(alloc, guard, rows):
    """O[j] is 7 wherever the condition is false; the read would leave the tile."""

    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), O: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            S = alloc((2, 8), "int32")
            T.fill(S, 3)
            for i, j in T.Parallel(rows, 8):
                if guard == "if":
                    O[j] = 7
                    if A[j] > 100:
                        O[j] = S[i + 2, j]
                elif guard == "choice":
                    O[j] = T.if_then_else(A[j] > 100, S[i + 2, j], 7)
                elif guard == "python":
                    O[j] = S[i - 2, j] if i >= 2 else 7
                else:
                    O[j] = T.Cast("int32", (A[j] > 100) and (S[i + 2, j] > 0)) + 7

    return main


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("guard", ["if", "choice", "python", "and"])
@pytest.mark.parametrize("alloc", [T.alloc_shared, T.alloc_fragment])
def test_reads_that_leave_a_tile_under_a_condition(alloc, guard, rows, engine):
    kernel = tw.compile(read(alloc, guard, rows), engine=engine)
    o = np.zeros(8, "int32")
    kernel(np.zeros(8, "int32"), o)
    assert (o == 7).all()


def test_reads_that_surely_leave_a_tile_are_refused():
    @T.prim_func
    def main(O: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((2, 8), "int32")
            T.fill(S, 3)
            for i, j in T.Parallel(2, 8):
                O[j] = S[i + 2, j]

    with pytest.raises(tw.CompileError, match="index 0 of 'S' runs from 2 to 3") as error:
        tw.compile(main, engine="interpreter")
    assert error.value.code == "TW1036"


@pytest.mark.parametrize("engine", ENGINES)
def test_loops_whose_extent_becomes_a_number_below_zero(engine):
    @T.prim_func
    def main(O: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(1, 8):
                O[j] = j
                for _ in T.serial(1, i % 4):
                    O[j] = 9
            for a in T.unroll(2):
                for _ in T.serial(2, a):
                    O[a] = 9

    o = np.zeros(8, "int32")
    tw.compile(main, engine=engine)(o)
    assert (o == np.arange(8)).all()
