"""Ordinary Python in traced functions, beside Python itself (plain_bodies): when elements are read, conditions and comparisons, slices
whose indices change."""
import contextlib
import functools
import itertools

import numpy as np
import on_engines
import pytest
import tilewright.language as T
from plain_bodies import N, is_python, stores_first
from plain_programs import moved

BODIES = []


def body(function):
    BODIES.append(function)
    return function


# ---- when values are read


@body
def elements_in_a_list(A, B):
    for i in range(N):
        xs = [A[i], A[i] + 1]
        A[i] = 50
        B[i] = xs[0] + xs[1]


@body
def elements_in_a_tuple_and_a_dict(A, B):
    xs, d = (A[1], A[2]), {"x": A[3] * 2}
    for k in range(4):
        A[k] = 0
    B[0], B[1], B[2] = xs[0], xs[1], d["x"]


@body
def read_in_a_loop_that_writes(A, B):
    xs = [A[0]]
    for i in range(N):
        B[i] = xs[0]
        A[0] = A[0] + 5


@body
def elements_as_defaults(A, B):
    for i in range(N):
        g = lambda x=A[i]: x  # noqa: E731
        A[i] = 77
        B[i] = g()


@body
def arguments_of_a_helper(A, B):
    for i in range(N):
        B[i] = stores_first(A, i, A[i], A[i] * 2, k=A[i])


@body
def arguments_by_partial(A, B):
    for i in range(N):
        later = functools.partial(stores_first, A, i, x=A[i])
        A[i] = 1
        B[i] = later()


@body
def order_of_evaluation(A, B):
    for i in range(N):
        B[i] = A[i] + stores_first(A, i, 1) + A[i]


class Kept:
    pass


@body
def attributes_of_an_object(A, B):
    kept = Kept()
    for i in range(N):
        setattr(kept, "x", A[i])
        A[i] = -1
        B[i] = kept.x


@body
def swapped_elements(A, B):
    for i in range(N // 2):
        A[2 * i], A[2 * i + 1] = A[2 * i + 1], A[2 * i]


@body
def one_value_for_two(A, B):
    for i in range(N):
        A[i] = B[i] = A[i] + B[i]


@body
def generator_of_elements(A, B):
    g = (A[j] for j in [0, 1, 2])
    A[1] = 9
    B[0] = sum(g)


@body
def list_that_grows(A, B):
    a = [1]
    b = a
    a += [A[2]]
    A[2] = 0
    B[0], B[1] = len(b), b[1]


# ---- conditions and comparisons


@body
def in_a_tuple(A, B):
    for i in range(N):
        if A[i] in (0, 1, 5):
            B[i] = 10
        if A[i] not in [0, 2, 4, 6]:
            B[i] = B[i] + 1


@body
def in_other_containers(A, B):
    for i in range(N):
        B[i] = (A[i] in {1, 2}) + (A[i] in range(1, 8, 3)) * 10 + (A[i] in {3: 0, 4: 0}) * 100 + (5 in [A[i], 9]) * 1000


@body
def match_of_numbers(A, B):
    for i in range(N):
        match A[i]:
            case 0:
                B[i] = 10
            case 1 | 2:
                B[i] = 20
            case 3 if B[i] < 0:
                B[i] = 30
            case other:
                B[i] = other * 2


@body
def match_of_what_is_known(A, B):
    for kind in [("a", 1), ("b", 2)]:
        match kind:
            case ("a", x):
                B[0] = x
            case (_, x):
                B[1] = x


@body
def or_and_and_as_values(A, B):
    for i in range(N):
        B[i] = (A[i] or 3) + (A[i] and 5) * 10 + ((A[i] % 2) or (A[i] % 3) or 9) * 100


@body
def not_and_chains(A, B):
    for i in range(N):
        B[i] = (1 if not A[i] else 0) + (10 if 1 < A[i] <= 5 else 0) + (100 if 0 <= A[i] < i + 1 != 3 else 0)


@body
def any_and_all(A, B):
    for i in range(N):
        if any(A[i] == c for c in (0, 1)):
            B[i] = 1
        elif all([A[i] != 3, A[i] != 4]):
            B[i] = 2
        elif any([]) or not all(()):
            B[i] = 3


@body
def max_and_min(A, B):
    for i in range(N):
        B[i] = max(A[i], 3) + min(A[i], A[7 - i], 2) * 10 + max([A[i], 6]) * 100


@body
def lambdas_decide(A, B):
    g = lambda x: 100 if x == 0 else x  # noqa: E731
    h = lambda x: x > 3 and x < 6  # noqa: E731
    for i in range(N):
        B[i] = g(A[i]) + (1000 if h(A[i]) else 0)


@body
def truth_by_bool(A, B):
    for i in range(N):
        B[i] = 1 if bool(A[i]) else 2


@body
def numbers_of_python(A, B):
    for i in range(N):
        B[i] = abs(A[i] - 4) + pow(A[i], 2) + divmod(A[i], 3)[1] * 100 + (+A[i]) - (-A[i]) + (~A[i])


@body
def comprehensions_of_elements(A, B):
    B[0] = sum([A[j] for j in range(N)])
    B[1] = sum(A[j] * k for j, k in zip([1, 2], [10, 20]))
    B[2] = [x for x in (A[3], A[4])][1]
    for j, x in enumerate(reversed([A[5], A[6]])):
        B[3 + j] = x
    B[6] = {k: A[k] for k in (1, 2)}[2]


@body
def with_and_itertools(A, B):
    import contextlib

    with contextlib.nullcontext(3) as three:
        for i, j in itertools.product([0, 1], [0, 2]):
            B[i + j] = three + A[i]




# ---- slices that are used after what is in their indices has changed


@body
def slices_in_a_loop(A, B):
    v = 0
    for i in range(3):
        row, two = A[v : v + 1], A[v : v + 2]
        v = v + 2
        moved(row, B[i : i + 1])
        moved(two, B[v : v + 2])


@body
def slices_by_memory(A, B):
    row = A[A[1] : A[1] + 2]
    last = B[A[3] : A[3] + 2]
    A[1] = 5
    A[3] = 6
    moved(row, last)


@body
def slices_in_containers(A, B):
    v = A[2]
    for i in range(A[1]):
        v = v + 1
    listed, named = [A[v : v + 1], A[v + 1 : v + 2]], {"third": A[v + 2 : v + 3]}

    def last(source=A[v + 3 : v + 4]):
        moved(source, B[3:4])

    if A[4] > 2:
        v = 0
    moved(listed[0], B[0:1])
    moved(listed[1], B[1:2])
    moved(named["third"], B[2:3])
    last()
    B[4] = v


@body
def a_slice_that_the_next_turn_uses(A, B):
    v = A[1]
    row = A[v : v + 2]
    for i in range(3):
        moved(row, B[2 * i : 2 * i + 2])
        v = v + 1
    B[7] = v


@pytest.mark.parametrize("function", BODIES, ids=lambda f: f.__name__)
def test_it_is_python(function):
    is_python(function)


@pytest.mark.parametrize("engine", ["cpu", "simulator"])
@pytest.mark.parametrize("function", [elements_in_a_list, or_and_and_as_values, slices_in_a_loop,
                                      slices_by_memory, slices_in_containers, a_slice_that_the_next_turn_uses], ids=lambda f: f.__name__)  # fmt: skip
def test_it_is_python_on_other_engines(function, engine):
    is_python(function, engine)


@pytest.mark.parametrize("engine", ["interpreter", "cpu", "simulator"])
def test_what_else_keeps_its_indices(engine):
    """A macro's argument, a barrier by name, an address, a pointer."""

    @T.macro
    def moved_later(source, to, v: T.Ref):
        v = v + 1
        T.copy(source, to)

    @T.prim_func
    def main(A: T.Tensor((4, 32), "int32"), B: T.Tensor((4, 32), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            v = T.alloc_var("int32", 1)
            bars = T.alloc_barrier([32, 1])
            S = T.alloc_shared((2, 32), "int32")
            moved_later(A[v, 0:32], B[0, 0:32], v)
            bar, row = bars[v - 2], S[v - 2, 0:32]
            addresses = [T.address_of(A[v, 0])]
            v = 3
            T.copy(A[v, 0:32], row)
            T.mbarrier_arrive(bar)
            T.mbarrier_wait_parity(bar, 0)
            B[1, tx] = S[0, tx]
            Y = T.make_tensor(addresses[0], (32,), "int32")
            B[2, tx] = Y[tx]

    a, b = np.arange(128, dtype="int32").reshape(4, 32), np.zeros((4, 32), "int32")
    on_engines.run_on_hopper(main, engine, a, b)
    assert (b[:3] == a[[1, 3, 2]]).all()
