"""Ordinary Python in traced functions, beside Python itself (plain_bodies): names that are bound again in branches and loops, flags,
counters, sums."""
import json
import random
import re

import numpy as np
import plain_programs
import pytest
import tilewright as tw
import tilewright.language as T
from plain_bodies import N, is_python, program_of

BODIES = []


def body(function):
    BODIES.append(function)
    return function


# ---- names that are bound again


@body
def flag_in_an_if(A, B):
    for i in range(N):
        flag = 0
        if A[i] > 3:
            flag = 1
        B[i] = flag


@body
def flag_on_both_sides(A, B):
    for i in range(N):
        if A[i] > 3:
            flag = 1
        else:
            flag = 2
        B[i] = flag


@body
def flag_by_elif(A, B):
    for i in range(N):
        kind = -1
        if A[i] == 0:
            kind = 5
        elif A[i] < 3:
            kind = A[i] * 10
        elif A[i] == 6:
            pass
        else:
            kind += 100
        B[i] = kind


@body
def values_on_both_sides(A, B):
    for i in range(N):
        if A[i] % 2 == 0:
            x = A[i] * 3
        else:
            x = A[i] - 1
        x = x + 1
        B[i] = x


@body
def counter_in_a_loop(A, B):
    c = 0
    for i in range(N):
        c = c + 1
        B[i] = c
    B[0] = c


@body
def sum_in_a_loop(A, B):
    total = 0
    for i in range(N):
        total += A[i]
        B[i] = total


@body
def sum_that_becomes_a_float(A, B):
    """B is float32"""
    total = 0
    for i in range(N):
        total = total + A[i] * 0.5
        B[i] = total


@body
def sum_of_floats_from_an_integer(A, B):
    """B is float32"""
    total, count = 1, 0
    for i in range(N):
        if A[i] > 2:
            total = total * 1.5
            count += 1
    B[0] = total
    B[1] = count


@body
def largest_and_where(A, B):
    A[5] = 40
    best, where = A[0], 0
    for i in range(N):
        if A[i] > best:
            best = A[i]
            where = i
    B[0], B[1] = best, where


@body
def nested_loops_carry(A, B):
    c = 0
    for i in range(3):
        d = 0
        for j in range(4):
            d = d + A[j]
            if d > 3:
                c = c + 1
        B[i] = d
    B[7] = c


@body
def swapped_in_a_loop(A, B):
    a, b = 0, 1
    for i in range(N):
        B[i] = a
        a, b = b, a + b


@body
def previous_of_a_loop(A, B):
    last = -1
    for i in range(N):
        B[i] = last
        last = A[i]
    B[0] = last


@body
def temporary_of_two_loops(A, B):
    x = A[3]
    B[0] = x
    for i in range(N):
        x = A[i] + 1
        B[i] += x
    for i in range(N):
        x = A[i] - 1
        B[i] += x


@body
def last_value_of_a_loop(A, B):
    x = 0
    for i in range(N):
        x = A[i] * 2
    B[0] = x


@body
def loop_without_turns(A, B):
    x = 3
    for i in range(A[0]):
        x = 4
    B[0] = x


@body
def breaks_and_continues(A, B):
    found, seen = -1, 0
    for i in range(N):
        if A[i] == 2:
            seen = seen + 10
            continue
        if A[i] > 4:
            found = i
            break
        seen = seen + 1
    B[0], B[1] = found, seen


@body
def breaks_of_a_while(A, B):
    n = 0
    while A[n] < 5:
        n = n + 1
        if n == 3:
            B[1] = 77
    B[0] = n


@body
def while_of_known_numbers(A, B):
    n, total = 3, 0
    while n > 0:
        n -= 1
        total += n
    B[0], B[1] = n, total


@body
def while_that_never_runs(A, B):
    n = 0
    while n > 0:
        n -= 1
    B[0] = n


@body
def bool_that_changes(A, B):
    done = False
    for i in range(N):
        if not done:
            B[i] = 1
        if A[i] == 3:
            done = True


@body
def bool_by_comparison(A, B):
    above = False
    for i in range(N):
        above = above or A[i] > 4
        B[i] = 1 if above else 0


@body
def known_loops_stay_known(A, B):
    k = 0
    for x in [3, 5, 7]:
        k = k + 1
        B[k] = x
    B[0] = len([0] * k)


@body
def known_branches_stay_known(A, B):
    k = 2
    for i in range(N):
        if N == 9:
            k = k + 1
        B[i] = len([0] * k)


@body
def parameter_bound_again(A, B, scale=2):
    for i in range(N):
        if A[i] > 5:
            scale = 3
        B[i] = A[i] * scale


@body
def deleted_and_bound_again(A, B):
    x = 1
    del x
    x = 2
    for i in range(N):
        if A[i] > 1:
            x = 5
        B[i] = x


@body
def walrus_in_a_condition(A, B):
    for i in range(N):
        if (y := A[i]) > 3:
            A[i] = 99
            B[i] = y


@body
def walrus_that_counts(A, B):
    c = 0
    for i in range(N):
        B[i] = (c := c + 2)


@body
def lambda_over_a_name(A, B):
    c = 1
    now = lambda: c  # noqa: E731
    for i in range(N):
        B[i] = now()
        c = c + 1


@pytest.mark.parametrize("function", BODIES, ids=lambda f: f.__name__)
def test_it_is_python(function):
    is_python(function)


@pytest.mark.parametrize("engine", ["cpu", "simulator"])
@pytest.mark.parametrize("function", [flag_by_elif, largest_and_where, nested_loops_carry,
                                      breaks_and_continues, while_of_known_numbers], ids=lambda f: f.__name__)  # fmt: skip
def test_it_is_python_on_other_engines(function, engine):
    is_python(function, engine)


def test_a_buffers_name_that_becomes_a_numbers():
    """Each turn finds the buffer: as a number it would not do there."""

    @T.prim_func
    def main(scale: T.Tensor((4, 8), "float32"), B: T.Tensor((4, 8), "float32")):
        with T.Kernel(1, threads=32):
            for k in T.serial(4):
                for i in T.Parallel(8):
                    B[k, i] = scale[k, i]
                for i in T.Parallel(8):
                    if i < 6:
                        scale, half = B[k, i] * 2, B[k, i] / 2
                        B[k, i] = scale + half

    a, b = np.arange(32, dtype="float32").reshape(4, 8), np.zeros((4, 8), "float32")
    tw.compile(main, engine="interpreter")(a, b)
    assert (b == np.where(np.arange(8) < 6, a * 2.5, a)).all()


def test_rebinding_that_nobody_reads_leaves_no_trace():
    """A name that is bound again but not read afterwards is no variable."""

    def before(A, B):
        x = A[0] + 1
        B[0] = x
        for i in range(N):
            x = A[i] * 2
            B[i] = x

    def after(A, B):
        y = A[0] + 1
        B[0] = y
        for i in range(N):
            x = A[i] * 2
            B[i] = x

    texts = [re.sub(r"\b[xy](_\d)?\b", "x", program_of(f).script()) for f in (before, after)]
    assert texts[0] == texts[1] and "local" not in texts[0]


def test_names_that_a_while_binds_again():
    @T.prim_func
    def halved(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=8):
            for i in T.Parallel(8):
                x = A[i]
                while x > 0.5:
                    x = x / 2
                B[i] = x

    a = np.arange(1, 9, dtype=np.float32)
    wanted = np.array([0.5, 0.5, 0.375, 0.5, 0.3125, 0.375, 0.4375, 0.5], np.float32)
    for engine in ("interpreter", "cpu", "simulator"):
        assert np.array_equal(tw.compile(halved, out_idx=-1, engine=engine)(a), wanted)


@pytest.mark.parametrize("last", [False, True])
def test_what_a_known_operand_decides_leaves_no_trace(last):
    @T.prim_func
    def main(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32"), C: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=4):
            for k in T.serial(4):
                if k == 3 and last:
                    B[k] = A[k]
                if k == 2 or not last:
                    C[k] = A[k]

    made = np.zeros(4, "float32")
    arguments = [np.arange(4, dtype="float32"), made if last else None, np.zeros(4, "float32")]
    tw.compile(main, engine="interpreter")(*arguments)  # None is taken for a tensor that is not used
    assert made.tolist() == ([0, 0, 0, 3] if last else [0] * 4) and arguments[2].tolist() == ([0, 0, 2, 0] if last else [0, 1, 2, 3])


@pytest.mark.parametrize("engine, seeds", [("interpreter", range(60)), ("simulator", range(60, 75))])
def test_random_functions(engine, seeds):
    compared = 0
    for seed in seeds:
        function, text = plain_programs.function_of(random.Random(seed), f"<random function {seed}>")
        expected, got = [[np.arange(N, dtype="int32") * 3 % 7, np.zeros(N, "int32")] for _ in range(2)]
        with np.errstate(all="ignore"):
            try:
                function(*expected)
            except (UnboundLocalError, OverflowError):
                continue  # no meaning in Python either
        tw.compile(program_of(function), engine=engine)(*got)
        assert [a.tolist() for a in got] == [a.tolist() for a in expected], text
        compared += 1
    assert compared > len(seeds) // 2


def repeated(x, times, step):
    for _ in range(times):
        x = step(x)
    return x


@pytest.mark.parametrize("engine", ["interpreter", "cpu"])
def test_expressions_of_thousands_of_operations(engine):
    def sums(A, B):
        B[0] = repeated(A[1], 5000, lambda x: x + 1)
        B[1] = repeated(A[1], 20, lambda x: x + x)
        B[2] = repeated(3, 5000, lambda x: x + A[0])

    is_python(sums, engine)


def test_arrays_without_dimensions_are_numbers():
    def stores(A, B):
        B[0] = np.array(3)
        B[1] = A[2] * np.array(5)

    is_python(stores)


def test_arrays_of_pytorch_without_dimensions_are_numbers():
    torch = pytest.importorskip("torch")

    @tw.jit(engine="interpreter")
    def scaled(A, alpha):
        A: T.Tensor((4,), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                A[i] = A[i] * alpha

    a = torch.ones(4)
    scaled(a, torch.tensor(2.0))
    scaled(a, torch.tensor(3.0))
    assert a.tolist() == [6] * 4


def test_a_simulated_call_without_blocks(tmp_path):
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
            for i in T.Parallel(32):
                B[bx * 32 + i] = A[bx * 32 + i]

    empty = np.zeros(0, "float32")
    result, counts = tw.compile(main, engine="interpreter").simulate(empty, empty.copy(), trace=tmp_path / "trace.json")
    assert result is None and counts == {"program": "main", "launches": []} and str(counts) == ""
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"] == []
