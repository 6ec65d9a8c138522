"""int8 and uint8 tensors for parameters of bool, as TileLang takes them."""

import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
import torch


@T.prim_func
def chosen(A: T.Tensor((64,), "float32"), M: T.Tensor((64,), "bool"), C: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            C[i] = T.if_then_else(M[i], A[i], 0.0) + T.cast(M[i], "float32")


@T.prim_func
def flipped(A: T.Tensor((64,), "float32"), M: T.Tensor((64,), "bool")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            if A[i] > 0:
                M[i] = not M[i]


@pytest.mark.parametrize("engine", ["cpu", "interpreter", "simulator"])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("of_torch", [True, False])
def test_bytes_that_are_not_zero_are_true(engine, kind, of_torch):
    draw = np.random.default_rng(0)
    a, mask = draw.standard_normal(64).astype("float32"), draw.integers(0, 3, 64).astype(kind)
    mask[0] = 255 if kind == "uint8" else -1
    given = [torch.from_numpy(x) for x in (a, mask)] if of_torch else [a, mask]
    made = tw.compile(chosen, out_idx=[2], target=engine)(*given)
    np.testing.assert_array_equal(np.asarray(made), np.where(mask != 0, a + 1, np.float32(0)).astype("float32"))


@pytest.mark.parametrize("of_torch", [True, False])
def test_those_that_are_written_become_zero_and_one(of_torch):
    a, mask = np.arange(-32, 32, dtype="float32"), np.resize(np.array([0, 5, 1], "uint8"), 64)
    given = [torch.from_numpy(x.copy()) for x in (a, mask)] if of_torch else [a, mask.copy()]
    tw.compile(flipped, target="cpu")(*given)
    np.testing.assert_array_equal(np.asarray(given[1]), np.where(a > 0, mask == 0, mask != 0).astype("uint8"))


def test_other_dtypes_are_refused():
    a, c = np.zeros(64, "float32"), np.zeros(64, "float32")
    for wrong in ("int32", "float32"):
        with pytest.raises(tw.LaunchError, match="TW4004.*'M' has dtype " + wrong):
            tw.compile(chosen, target="cpu")(a, np.zeros(64, wrong), c)
    with pytest.raises(tw.LaunchError, match="TW4004.*'A' has dtype float64"):
        tw.compile(chosen, target="cpu")(a.astype("float64"), np.zeros(64, "int8"), c)
