"""Ordinary Python in traced functions that is refused: the code, the text, and the line that ends in '# here'."""
import contextlib
import functools
import inspect

import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
from plain_bodies import N, program_of, stores_first

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


@refused("TW1105", "a list in 'd' of Python is changed in an if of the program")
def list_in_a_dict_changed(A, B):
    d = {"a": [1]}
    if A[0] > 5:  # here
        d["a"].append(2)
    B[0] = len(d["a"])


@refused("TW1105", "the ndarray 'table' of Python is changed in an if of the program")
def array_changed(A, B):
    table = np.zeros(2, "int32")
    if A[0] > 5:  # here
        table[0] = 7
    B[0] = int(table[0])


@refused("TW1105", "the list_iterator 'rest' of Python is changed in an if of the program")
def iterator_that_goes_on(A, B):
    rest = iter([1, 2, 3])
    if A[0] > 5:  # here
        B[1] = next(rest)
    B[0] = next(rest)


@refused("TW1105", "the generator 'rest' of Python is changed in a loop of the program")
def generator_that_goes_on(A, B):
    rest = (k + 1 for k in range(3))
    for i in T.serial(2):  # here
        B[i] = next(rest)
    B[2] = next(rest)


class Turns:
    def __init__(self):
        self.count = 0

    def more(self):
        self.count += 1

    @functools.cached_property
    def first(self):
        return 1


@refused("TW1105", "the Turns 'turns' of Python is changed in a loop of the program")
def object_changed(A, B):
    turns = Turns()
    for i in T.serial(4):  # here
        B[i] = turns.first
        turns.more()
    B[0] = turns.count


NOTES = []


@refused("TW1105", "the list 'NOTES' of Python is changed in a loop of the program")
def list_around_the_function_changed(A, B):
    for i in T.serial(4):  # here
        NOTES.append(i)
    B[0] = len(NOTES)


def note(i):
    NOTES.append(i)


@refused("TW1105", "the list 'NOTES' of Python is changed in a loop of the program")
def list_that_a_helper_changes(A, B):
    for i in T.serial(4):  # here
        note(i)
    B[0] = len(NOTES)


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


def test_what_python_may_note_in_a_loop():
    """A list that nothing reads, what an object keeps of what it has found; and all of it outside of loops."""

    class Pool:
        def __init__(self):
            self.tiles, self.turns = {}, 0

        def tile(self, name):
            if name not in self.tiles:
                self.tiles[name] = T.alloc_shared((4,), "int32")
            return self.tiles[name]

        def turn(self):
            self.turns += 1
            return self.turns

    def body(A, B):
        pool, rest = Pool(), iter([1, 2])
        pool.tile("a")
        B[3] = next(rest) + pool.turn()
        for i in T.serial(2):
            pool.tile("a")[0] = i
            B[i] = pool.tile("a")[0] + turns.first
            NOTES.append(i)
        B[2] = next(rest)

    turns, b = Turns(), np.zeros(N, "int32")
    NOTES.clear()
    tw.compile(program_of(body), engine="interpreter")(np.zeros(N, "int32"), b)
    assert b[:2].tolist() == [1, 2] and b[3] == 2 and len(NOTES) == 1


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
    global REFUSED  # here
    REFUSED = A[0]


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
