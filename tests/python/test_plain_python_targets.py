"""Ordinary Python in traced functions, beside Python itself (plain_bodies): targets of loops that are other names too."""
import pytest
from plain_bodies import is_python

BODIES = []


def body(function):
    BODIES.append(function)
    return function


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


@pytest.mark.parametrize("engine", ["cpu", "simulator"])
@pytest.mark.parametrize("function", [target_in_a_branch, target_in_a_loop_of_no_turns, target_of_the_loop_around,
                                      target_of_pythons_loop, target_after_its_loop, walrus_in_a_while], ids=lambda f: f.__name__)  # fmt: skip
def test_it_is_python_on_other_engines(function, engine):
    is_python(function, engine)
