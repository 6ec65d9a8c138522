"""Reductions and scans that choose an element leave it as it is: infinities of float8_e5m2 too, which a conversion makes finite."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T

torch = pytest.importorskip("torch")


def _program(alloc):
    @T.prim_func
    def main(A: T.Tensor((32, 16), "float8_e5m2"), O: T.Tensor((4, 32), "float8_e5m2"), S: T.Tensor((32, 16), "float8_e5m2")):
        with T.Kernel(1, threads=32):
            a, s = alloc((32, 16), "float8_e5m2"), alloc((32, 16), "float8_e5m2")
            o = alloc((32,), "float8_e5m2")
            T.copy(A, a)
            T.reduce_min(a, o, dim=1)
            T.copy(o, O[0, 0:32])
            T.reduce_max(a, o, dim=1)
            T.copy(o, O[1, 0:32])
            T.reduce_absmax(a, o, dim=1)
            T.copy(o, O[2, 0:32])
            T.fill(o, 1.0)
            T.reduce_min(a, o, dim=1, clear=False)
            T.copy(o, O[3, 0:32])
            T.cummax(a, s, dim=1)
            T.copy(s, S)

    return main


@pytest.mark.parametrize("engine", ("interpreter", "cpu", "sm_80", "sm_90a"))
@pytest.mark.parametrize("alloc", (T.alloc_shared, T.alloc_fragment))
def test_infinities_of_e5m2_stay(alloc, engine):
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((32, 16)).astype("float32"))
    x[0, 3], x[1, 5], x[2, 0], x[2, 9] = -np.inf, np.inf, np.inf, -np.inf
    x[3, :], x[4, :] = np.inf, -np.inf
    a = x.to(torch.float8_e5m2)
    outputs = [torch.zeros(shape).to(torch.float8_e5m2) for shape in ((4, 32), (32, 16))]
    kernel = tw.compile(_program(alloc), engine="interpreter" if engine.startswith("sm") else engine)
    if engine.startswith("sm"):
        kernel.simulate(a, *outputs, arch=engine)
    else:
        kernel(a, *outputs)
    x, (o, s) = a.float(), (t.float() for t in outputs)
    least = x.min(dim=1).values
    for row, want in enumerate((least, x.max(dim=1).values, x.abs().max(dim=1).values, least.clamp(max=1.0))):
        assert torch.equal(o[row], want), row
    assert torch.equal(s, x.cummax(dim=1).values)
