"""Ordinary Python in traced functions: each body runs as Python on NumPy's arrays, and traced on the interpreter, and
gives the same; or it is refused, with its line. A and B have 8 elements, of int32 and float32 or int32."""
import contextlib
import functools
import inspect
import itertools
import json
import random
import re

import numpy as np
import on_engines
import plain_programs
import pytest
import tilewright as tw
import tilewright.language as T
from plain_programs import moved

N = 8
BODIES = []


def body(function):
    BODIES.append(function)
    return function


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


def stores_first(A, i, x, *more, **named):
    A[i] = 55
    return x + sum(more) + named.get("k", 0)


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


# ---- targets of loops that are other names too


@body
def target_in_a_branch(A, B):
    k, m = A[2], A[3]
    if A[0] > 20:
        for k in range(8):
            B[k] = 1
    else:
        for m in range(A[2]):
            B[m] = 2
    B[6], B[7] = k, m


@body
def target_in_a_loop_of_no_turns(A, B):
    k, m = 5, A[1]
    for q in range(A[0]):
        for k in range(3):
            B[k] = 1
    for q in range(2):
        for m in range(A[0], A[2]):
            B[m] = m
    B[6], B[7] = k, m


@body
def target_of_the_loop_around(A, B):
    for j in range(5):
        if j > 2:
            for j in range(A[2]):
                A[j] = A[j] + 1
        B[j] = j + 1
    for j in range(3):
        for j in range(6, 8):
            A[j] = A[j] + 2
        B[j] = B[j] + 3


@body
def target_of_pythons_loop(A, B):
    j = 7
    for k in range(4):
        if k > 2:
            for j in [4, 2]:
                B[j] = k
        B[k] = B[k] + j
    if A[0] > 3:
        for (j, k) in [(1, 5), (2, 6)]:
            B[j] = k
    B[7] = j


@body
def target_after_its_loop(A, B):
    k = A[5]
    for k in range(A[3]):
        B[k] = 1
    B[5] = k
    for k in range(A[0]):
        B[k] = 1
    B[6] = k
    for k in range(4):
        if A[k] > 1:
            break
    B[7] = k


@body
def target_that_its_body_binds(A, B):
    for i in range(4):
        B[i] = i
        if A[i] > 1:
            i = 7
        B[i] = B[i] + 1
    n = 0
    for n in range(3):
        n = n + A[n]
    B[5] = n


@body
def sum_and_then_a_target(A, B):
    i = 0
    for j in range(3):
        i = i + j
    B[0] = i
    for i in range(3):
        B[1 + i] = i
    i = 0
    while i < A[3]:
        i += 1
    B[5] = i
    for i in range(2):
        B[6 + i] = i


@body
def walrus_in_a_while(A, B):
    while (z := A[0]) < 8:
        A[0] = z + 3
    B[0] = z
    i = 0
    while (i := i + 1) < A[5]:
        B[i] = i
    B[5] = i
    y = A[1]
    while (y := y - 1) > 100:
        B[6] = 100
    while (x := 0):
        B[6] = 1
    B[6], B[7] = y, x


@pytest.mark.parametrize("function", BODIES, ids=lambda f: f.__name__)
def test_it_is_python(function):
    is_python(function)


# ---- what is refused: the code, the text, and the line that ends in "# here"

REFUSED = []


def refused(code, text):
    def note(function):
        REFUSED.append((function, code, text))
        return function

    return note


def zero_is_hundred(x):
    if x == 0:  # here
        return 100
    return x


@refused("TW1106", "the truth of an expression is known only at run time")
def equality_in_a_helper(A, B):
    B[0] = zero_is_hundred(A[0])


@refused("TW1106", "known only at run time")
def lists_are_searched(A, B):
    B[0] = [A[0] + 1, A[1] + 1].index(3)  # here


@refused("TW1106", "looks up an element of 'A' in a set or a dictionary")
def dictionaries_are_searched(A, B):
    B[0] = {0: 10, 1: 20}.get(A[0], 5)  # here


@refused("TW1106", "known only at run time")
def elements_are_sorted(A, B):
    B[0] = sorted([A[0], A[1]])[0]  # here


@refused("TW1106", "Python asks for an integer")
def an_element_is_an_index(A, B):
    B[0] = [1, 2, 3][A[0]]  # here


@refused("TW1106", "Python asks for round()")
def rounding(A, B):
    B[0] = round(A[0])  # here


@refused("TW1106", "Python asks for an integer")
def made_an_integer(A, B):
    B[0] = int(A[0])  # here


@refused("TW1106", "text is made of a value that is known only at run time")
def an_f_string(A, B):
    x = A[0]
    B[0] = len(f"{x + 1}")  # here


@refused("TW1105", "@ of values")
def matrix_product(A, B):
    B[0] = A[0] @ A[1]  # here


@refused("TW1105", "'src' is bound again in an if of the program (buffer 'A' and buffer 'B'): only run time knows")
def one_of_two_buffers(A, B):
    src = A
    if A[0] > 5:
        src = B
    B[0] = src[1]  # here


@refused("TW1105", "'src' is bound again in a loop of the program (buffer 'A' and buffer 'B'): a turn leaves in it what the next one reads")
def buffers_in_turn(A, B):
    src = A
    for i in range(N):  # here
        A[i] = src[i]
        src = B


@refused("TW1105", "'x' is bound again in an if of the program (None and int32)")
def none_or_a_number(A, B):
    x = None
    if A[0] > 0:
        x = A[1]
    B[0] = x  # here


@refused("TW1105", "'c' is bound again in a Parallel, whose points have no order")
def sum_over_a_parallel(A, B):
    c = 0
    for i in T.Parallel(N):  # here
        c = c + A[i]
    B[0] = c


@refused("TW1105", "'k' is bound again in a Parallel, whose points have no order")
def target_of_a_parallel_in_an_if(A, B):
    k = A[1]
    if A[0] > 5:
        for k in T.Parallel(N):  # here
            A[k] = 1
    B[0] = k


@refused("TW1105", "'k' is bound again in a Parallel, whose points have no order")
def outer_target_in_a_parallel(A, B):
    for k in range(3):
        if A[0] > 5:
            for k, j in T.Parallel(2, 4):  # here
                A[k * 4 + j] = 1
        B[k] = 1


@refused("TW1104", "'k' is used after the for that it is bound in has ended")
def target_that_is_the_users_variable(A, B):
    k = T.alloc_var("int32", 3)
    if A[0] > 5:
        for k in range(3):
            A[k] = 1
    B[0] = k  # here


@refused("TW1105", "'w' is bound again in an if of the program")
def bound_by_a_with(A, B):
    w = 3
    if A[0] > 5:
        with contextlib.nullcontext(4) as w:
            B[1] = w
    B[0] = w  # here


@refused("TW1105", "the list 'xs' of Python is changed in an if of the program")
def list_changed_in_an_if(A, B):
    xs = [1]
    if A[0] > 5:  # here
        xs.append(5)
    B[0] = xs[-1]


@refused("TW1105", "the list 'acc' of Python is changed in a loop of the program")
def list_changed_in_a_loop(A, B):
    acc = [0]
    for i in range(4):  # here
        acc[0] = acc[0] + i
    B[0] = acc[0]


@refused("TW1105", "a side of a conditional expression stores")
def stores_on_one_side(A, B):
    B[0] = stores_first(A, 0, 1) if A[1] > 1 else 0  # here


@refused("TW1105", "a side of a conditional expression stores")
def stores_behind_and(A, B):
    if A[1] > 1 and stores_first(A, 0, 1) > 0:  # here
        B[0] = 1


@refused("TW1101", "only run time knows whether a conditional expression is the buffer 'A'")
def a_buffer_or_another(A, B):
    B[0] = (A if A[0] > 0 else B)[1]  # here


@refused("TW1105", "raise under a condition of run time")
def raises_by_value(A, B):
    if A[0] > 0:
        raise ValueError("positive")  # here


@refused("TW1105", "a match of a value of run time")
def match_of_more(A, B):
    match [A[0], A[1]]:  # here
        case [0, x]:
            B[0] = x


@pytest.mark.parametrize("function, code, text", REFUSED, ids=lambda v: getattr(v, "__name__", ""))
def test_it_is_refused(function, code, text):
    with pytest.raises(tw.CompileError) as caught:
        program_of(function)
    assert caught.value.code == code and text in caught.value.message and caught.value.help
    lines, first = inspect.getsourcelines(zero_is_hundred if function is equality_in_a_helper else function)
    here = next(k for k, line in enumerate(lines) if line.rstrip().endswith("# here"))
    assert caught.value.line == first + here


# Where the text of a function is enough to see it.


def text_nonlocal():
    v = 0

    def traced(A, B):
        nonlocal v  # here
        v = v + A[0]

    return traced


def text_inner_nonlocal(A, B):
    v = T.alloc_var("int32", 0)

    def bump():
        nonlocal v  # here
        v = v + 1

    bump()


def text_global(A, B):
    global BODIES  # here
    BODIES = A[0]


def text_yield(A, B):
    yield A[0]  # here


def text_walrus_behind_and(A, B):
    if A[0] > 0 and (y := A[1]) > 0:  # here
        B[0] = y


def text_walrus_in_a_comprehension(A, B):
    B[0] = sum([(y := k) for k in [1, 2]])  # here
    B[1] = y


def text_attribute(A, B):
    A.name += 3  # here


def text_starred(A, B):
    x, *rest = [A[0], A[1]]  # here


def text_else_of_a_for(A, B):
    for i in range(N):
        B[i] = 1
    else:
        B[0] = 2  # here


@pytest.mark.parametrize("function", [text_nonlocal(), *(f for n, f in sorted(globals().items()) if n.startswith("text_") and n != "text_nonlocal")],
                         ids=lambda f: f.__name__)  # fmt: skip
def test_its_text_is_refused(function):
    with pytest.raises(tw.CompileError) as caught:
        program_of(function)
    lines, first = inspect.getsourcelines(function)
    here = next(k for k, line in enumerate(lines) if line.rstrip().endswith("# here"))
    assert caught.value.code == "TW1105" and caught.value.line == first + here and caught.value.help


def test_async():
    async def traced(A, B):
        B[0] = A[0]

    with pytest.raises(tw.CompileError, match="TW1105.*async in a traced function"):
        program_of(traced)


@pytest.mark.parametrize("engine", ["cpu", "simulator"])
@pytest.mark.parametrize("function", [flag_by_elif, largest_and_where, nested_loops_carry, breaks_and_continues, while_of_known_numbers,
                                      elements_in_a_list, or_and_and_as_values, target_in_a_branch, target_in_a_loop_of_no_turns,
                                      target_of_the_loop_around, target_of_pythons_loop, target_after_its_loop, walrus_in_a_while,
                                      slices_in_a_loop, slices_by_memory, slices_in_containers, a_slice_that_the_next_turn_uses], ids=lambda f: f.__name__)  # fmt: skip
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


# ---- numbers that are none, and expressions without end


def number_refused(value, text):
    def stores(A, B):
        B[0] = A[0] + value  # here

    with pytest.raises(tw.CompileError, match=text) as caught:
        program_of(stores)
    assert caught.value.code == "TW1101" and caught.value.line == inspect.getsourcelines(stores)[1] + 1


def test_numbers_that_no_program_has():
    number_refused(10**30, "an operand is an integer beyond 64 bits")
    number_refused(1 + 2j, r"an operand is \(1\+2j\), which is no value, buffer or tile")
    number_refused(np.array([1, 2]), r"an operand is an array of Python, of shape \(2,\)")


def test_arrays_without_dimensions_are_numbers():
    def stores(A, B):
        B[0] = np.array(3)
        B[1] = A[2] * np.array(5)

    is_python(stores)


@T.macro
def endless(A):
    A[0] = 1
    endless(A)


def test_a_macro_without_end():
    with pytest.raises(tw.CompileError, match="TW1105.*macro 'endless' calls itself without end"):
        program_of(lambda_free(endless))


def lambda_free(macro):
    def calls(A, B):
        macro(A)

    return calls


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


def test_a_while_that_nothing_leaves():
    with pytest.raises(tw.CompileError, match="the condition of this while is always true"):

        @T.prim_func
        def main(A: T.Tensor((32,), "int32")):
            with T.Kernel(1, threads=32):
                while True:
                    x = 0
                    for i in T.serial(3):
                        if A[i] == x:
                            break


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


# ---- first mistakes in an eager kernel


def first_mistake(function, code, text, help, *arguments):
    with pytest.raises(tw.CompileError, match=text) as caught:
        tw.jit(function)(*arguments)
    lines, first = inspect.getsourcelines(function)
    here = next(k for k, line in enumerate(lines) if line.rstrip().endswith("# here"))
    assert caught.value.code == code and caught.value.line == first + here and help in caught.value.help


TABLE = np.array([1, 2, 3], "float32")


def test_first_mistakes():
    def shape_first(A):
        N = A.shape[0]  # here
        A: T.Tensor((N,), "float32")
        with T.Kernel(1, threads=32):
            A[0] = 1

    def not_annotated(A, B):
        A: T.Tensor((4,), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                A[i] = B[i]  # here

    def a_table(A):
        A: T.Tensor((4,), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                A[i] = TABLE[i % 3]  # here

    def numpys_empty(A):
        N = T.const("N")
        A: T.Tensor((N,), "float32")
        C = np.empty(N, "float32")  # here
        with T.Kernel(1, threads=32):
            A[0] = C[0]

    def a_typo(A):
        A: T.Tensor((4,), "float32")
        index = 1
        with T.Kernel(1, threads=32):
            A[indx] = 1  # here # noqa: F821

    def scaled(A, alpha):
        A: T.Tensor((4,), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                A[i] = A[i] * alpha  # here

    a = np.ones(4, "float32")
    first_mistake(shape_first, "TW1107", "parameter 'A' is used before its annotation", "T.const", a)
    first_mistake(not_annotated, "TW1107", "'B' of 'not_annotated' is given a tensor, but has no annotation", 'B: T.Tensor((4,), "float32")', a, a)
    first_mistake(a_table, "TW1106", "the array 'TABLE' of Python has an index that is known only at run time", "TABLE: T.Tensor", a)
    first_mistake(numpys_empty, "TW1106", "a function of Python is given a value that is known only at run time", "T.empty", a)
    with pytest.raises(NameError):
        tw.jit(a_typo)(a)
    first_mistake(scaled, "TW1101", r"an operand is an array of Python, of shape \(1,\)", "annotate the parameter", a, np.array([2.0]))
    tw.jit(scaled)(a, np.array(2.0))
    assert (a == 2).all()


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
