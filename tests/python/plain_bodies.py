"""Bodies of traced functions in ordinary Python: run as Python on NumPy's arrays, and traced on an engine, they give the same. A and B
have 8 elements, of int32 and float32 or int32."""
import numpy as np
import tilewright as tw
import tilewright.language as T

N = 8


def program_of(function, of="int32"):
    traced = T.macro(function)

    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), of)):
        with T.Kernel(1, threads=1):
            traced(A, B)

    return main


def kinds_of(function):
    return "float32" if "float32" in (function.__doc__ or "") else "int32"


def is_python(function, engine="interpreter"):
    of = kinds_of(function)
    expected, got = [[np.arange(N, dtype="int32"), np.full(N, -7, of)] for _ in range(2)]
    function(*expected)
    tw.compile(program_of(function, of), engine=engine)(*got)
    for e, g in zip(expected, got):
        assert g.tolist() == e.tolist()


def stores_first(A, i, x, *more, **named):
    A[i] = 55
    return x + sum(more) + named.get("k", 0)
