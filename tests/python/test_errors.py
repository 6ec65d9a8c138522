"""Mistakes: each is a coded error at the user's line, in the user's file."""
import ctypes
import struct
import sys

import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T


def line_of(marker):
    """The line of this file that ends with the marker."""
    with open(__file__) as file:
        return next(n for n, line in enumerate(file, 1) if line.rstrip().endswith("# " + marker))


def expect(code, marker, message, kinds=()):
    """Checks the error that the block raises: its code, its line in this file, a piece of its message."""

    class Expectation:
        def __enter__(self):
            return self

        def __exit__(self, kind, error, traceback):
            assert isinstance(error, tw.TilewrightError), f"{kind}: {error}"
            assert (error.code, error.file, error.line) == (code, __file__, line_of(marker)), str(error)
            assert message in error.message, error.message
            for also in kinds:
                assert isinstance(error, also)
            assert error.help and error.code in str(error) and "-->" in str(error)
            return True

    return Expectation()


def traced(body):
    """The program of a body over A: float32[8] and B: int32[8, 8]."""

    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((8, 8), "int32")):
        with T.Kernel(1, threads=32) as bx:
            body(A, B, bx)

    return main


def test_shapes_that_do_not_fit():
    with expect("TW1063", "gemm", "gemm: the inner extents differ", [AssertionError, tw.CompileError]):

        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=128):
                a = T.alloc_shared((16, 32), "float16")
                b = T.alloc_shared((64, 16), "float16")
                c = T.alloc_fragment((16, 16), "float32")
                T.gemm(a, b, c)  # gemm


def test_wrong_number_of_indices():
    @T.macro
    def body(A, B, bx):
        B[bx] = 1  # indices

    with expect("TW1038", "indices", "2 dimensions, but 1", [IndexError]):
        traced(body)


def test_division_of_integers():
    @T.macro
    def body(A, B, bx):
        A[0] = B[0, 0] / B[0, 1]  # division

    with expect("TW1002", "division", "/ divides floats", [TypeError]):
        traced(body)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 does not say columns")
def test_columns_are_those_of_the_expression():
    @T.macro
    def body(A, B, bx):
        x = 1 + B[0, 0] % A[1]  # column
        A[0] = x

    with pytest.raises(tw.CompileError) as caught:
        traced(body)
    with open(__file__) as file:
        text = file.readlines()[line_of("column") - 1]
    assert caught.value.column == text.index("B[0, 0]") + 1


def test_operand_of_another_kind():
    @T.macro
    def body(A, B, bx):
        T.copy(3, A)  # kind

    with expect("TW1101", "kind", "copy: 'src' is a buffer, an element or a tile, but an integer is given", [TypeError]):
        traced(body)


def test_names_after_their_scope():
    @T.macro
    def body(A, B, bx):
        for i in T.serial(8):
            x = A[i] + 1
        A[0] = x  # ended

    with expect("TW1104", "ended", "'x' is used after the for", [RuntimeError]):
        traced(body)


def test_index_after_its_loop():
    @T.macro
    def body(A, B, bx):
        for i in T.serial(8):
            A[i] = 1
        A[i] = 2  # index ended

    with expect("TW1104", "index ended", "'i' is used after the for"):
        traced(body)


def test_names_bound_again_are_good():
    @T.macro
    def body(A, B, bx):
        for i in T.serial(8):
            x = A[i]
        x = A[1]
        A[0] = x

    traced(body)


def test_unsupported_syntax():
    with expect("TW1105", "an attribute", "an assignment to an attribute", [NotImplementedError]):

        @T.macro
        def attribute(A):
            A.name = 3  # an attribute

    with expect("TW1105", "a try", "try in a traced function"):

        @T.macro
        def trial(A):
            try:  # a try
                A[0] = 1
            finally:
                pass

    @T.macro
    def early(A, B, bx):
        for i in T.serial(8):
            return i  # a return

    with expect("TW1105", "a return", "return inside of a for"):
        traced(early)

    @T.macro
    def leaves(A, B, bx):
        for i in [1, 2]:
            if A[i] > 0:
                break  # a break

    with expect("TW1105", "a break", "break of a loop of Python"):
        traced(leaves)


def test_truth_of_run_time():
    def helper(A, B, bx):
        if A[0] > 0:  # truth
            A[0] = 1

    with expect("TW1106", "truth", "known only at run time", [TypeError]):
        traced(helper)


def fill(A):
    """Not the language's."""


def test_words_that_are_called_with_other_arguments():
    def missing(A, B, bx):
        T.copy(A)  # one argument

    with expect("TW1101", "one argument", "copy: missing 1 required positional argument: 'dst'", [TypeError]):
        traced(missing)

    def unknown(A, B, bx):
        T.copy(A, B, to=B)  # a keyword

    with expect("TW1101", "a keyword", "copy: got an unexpected keyword argument 'to'", [TypeError]):
        traced(unknown)

    def own(A, B, bx):
        fill()

    with pytest.raises(TypeError, match=r"^fill\(\) missing"):
        traced(own)


def test_integers_of_run_time():
    def helper(A, B, bx):
        return range(bx)  # integer

    with expect("TW1106", "integer", "Python asks for an integer"):
        traced(helper)


def test_buffers_are_no_conditions():
    @T.macro
    def body(A, B, bx):
        if A:  # whole buffer
            A[0] = 1

    with expect("TW1101", "whole buffer", "a condition is the whole buffer 'A'", [TypeError]):
        traced(body)


def test_outside_of_a_program():
    with pytest.raises(tw.CompileError) as caught:
        T.copy(1, 2)
    assert caught.value.code == "TW1077" and isinstance(caught.value, RuntimeError)


def test_unknown_dtype():
    with expect("TW1103", "dtype", "there is no dtype 'float17'"):
        T.dtype("float17")  # dtype


def test_parameters_without_types():
    with expect("TW1107", "no type", "parameter 'B' of 'main' has no type"):

        @T.prim_func  # no type
        def main(A: T.Tensor((8,), "float32"), B):
            with T.Kernel(1, threads=32):
                A[0] = 1

    with pytest.raises(tw.CompileError, match="TW1107"):

        @T.prim_func
        def other(A: "not_there.Tensor((8,))"):  # noqa: F821
            pass


def test_source_that_cannot_be_read():
    space = {"T": T}
    exec("def main(A: T.Tensor((8,), 'float32')):\n    pass\n", space)
    with pytest.raises(tw.CompileError, match="TW1108.*cannot be read"):
        T.prim_func(space["main"])


def test_files_that_have_changed(tmp_path):
    import importlib.util
    import linecache

    file = tmp_path / "edited.py"
    text = "import tilewright.language as T\n\n\ndef main(A: T.Tensor((1,), 'int32')):\n    with T.Kernel(1):\n        A[0] = {}\n"
    file.write_text(text.format("A[0] + 1"))
    spec = importlib.util.spec_from_file_location("edited", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    file.write_text(text.format("A[0] * 5"))
    linecache.checkcache()
    with pytest.raises(tw.CompileError, match="TW1108.*the file has changed"):
        T.prim_func(module.main)


def test_loops_that_helpers_leave():
    def helper(A, B, bx):
        for i in T.serial(8):
            A[i] = 1
            break

    with pytest.raises(tw.CompileError, match="TW1105.*a for of the program is left by break"):
        traced(helper)


def test_loops_that_loops_of_python_take_apart():
    @T.macro
    def zipped(A, B, bx):
        for i, j in zip(T.serial(3), T.serial(3)):
            A[i] = A[j]

    @T.macro
    def counted(A, B, bx):
        for n, i in enumerate(T.serial(3)):
            A[i] = A[n]

    for body in (zipped, counted):
        with pytest.raises(tw.CompileError, match=r"TW1105.*taken apart by a loop of Python, as by zip\(\)"):
            traced(body)


def test_consts_that_nothing_gives():
    @tw.jit(engine="interpreter")
    def main(A):
        N = T.const("N")
        A: T.Tensor((N * 2,), "float32")
        with T.Kernel(1, threads=32):
            A[0] = N

    with pytest.raises(tw.CompileError, match="TW1109.*'N' of 'main' is no dimension") as caught:
        main(np.zeros(8, "float32"))
    assert isinstance(caught.value, RuntimeError)
    main.compile(N=4)(np.zeros(8, "float32"))


def test_outputs():
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), n: T.int32):
        with T.Kernel(1, threads=32):
            A[0] = n

    for out_idx in (2, [0, 0], 1, [-3]):
        with pytest.raises(ValueError, match="TW1110"):
            tw.compile(main, out_idx=out_idx)


def test_returns():
    with expect("TW1111", "returned", "is no tensor made by T.empty"):

        @T.prim_func  # returned
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=32):
                A[0] = 1
            return A

    with expect("TW1111", "forgotten", "does not return 'B'"):

        @T.prim_func  # forgotten
        def other(A: T.Tensor((8,), "float32")):
            B = T.empty((8,), "float32")
            with T.Kernel(1, threads=32):
                B[0] = A[0]


def test_unknown_operations_name_the_nearest():
    with pytest.raises(AttributeError, match=r"Tilewright has no T.reduce_summ\n[\s\S]*nearest it has: T.reduce_sum"):
        T.reduce_summ
    assert not hasattr(T, "alloc_everywhere")
    with pytest.raises(tw.CompileError, match="TW1102"):
        tw._native.apply(10**6, None)


def test_arguments_of_calls():
    @T.prim_func
    def main(A: T.Tensor((8, 4), "float32"), n: T.int32, B: T.Tensor((8,), "float16")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                B[i] = A[i, 0] + n

    kernel = tw.compile(main, engine="interpreter")
    a, b = np.zeros((8, 4), "float32"), np.zeros(8, "float16")
    cases = [
        ((a, 1), tw.LaunchError, "TW4001.*main expects 3 arguments, but 2 are given"),
        ((a.astype("float64"), 1, b), tw.LaunchError, "TW4004"),
        ((a[0], 1, b), tw.LaunchError, "TW4005"),
        ((a[:, :3], 1, b), tw.LaunchError, "TW4007"),
        ((np.zeros((4, 8), "float32").T, 1, b), tw.LaunchError, "TW4008"),
        ((a, 1.5, b), tw.LaunchError, "TW4002"),
        ((a, 2**40, b), tw.LaunchError, "TW4010"),
        ((a, 1, 3), tw.LaunchError, "TW4002"),
        ((None, 1, b), tw.LaunchError, "TW4003"),
        ((a, 1, "text"), TypeError, "an argument is of type str"),
    ]
    for arguments, kind, message in cases:
        with pytest.raises(kind, match=message):
            kernel(*arguments)
    with pytest.raises(TypeError, match="by position"):
        kernel(A=a, n=1, B=b)
    frozen = a.copy()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="TW4002.*argument 2 'B' cannot be handed to a kernel: a read-only array"):
        kernel(a, 1, frozen[:])
    with pytest.raises(tw.LaunchError, match="TW4002.*argument 2 'B' cannot be handed to a kernel: there is no dtype 'void32'"):
        kernel(a, 1, np.zeros(8, dtype=[("x", "f4")]))
    with pytest.raises(tw.LaunchError, match="TW4010.*argument 1 'n' is a number beyond 64 bits"):
        kernel(a, 10**30, b)


class Malformed:
    """A DLPack capsule with fields that no tensor has."""

    def __init__(self, **fields):
        self.shape = (ctypes.c_int64 * 1)(fields.pop("extent", 8))
        values = {"rank": 1, "shape": ctypes.addressof(self.shape), "offset": 0, **fields}
        self.memory = (ctypes.c_float * 8)()
        self.bytes = ctypes.create_string_buffer(
            struct.pack("PiiiBBHPPQPP", ctypes.addressof(self.memory), 1, 0, values["rank"], 2, 32, 1, values["shape"], 0, values["offset"], 0, 0)
        )

    def __dlpack__(self):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.bytes), b"dltensor", None)


@pytest.mark.parametrize("fields, text", [
    ({"rank": -1}, "a number of dimensions that no tensor has"), ({"rank": 10**6}, "a number of dimensions that no tensor has"),
    ({"shape": 0}, "no shape"), ({"offset": 2**62}, "an offset beyond all memory"), ({"extent": -3}, "a negative extent"),
    ({"extent": 2**62}, "more elements than any memory has"),
], ids=str)  # fmt: skip
def test_capsules_that_are_not_well_formed(fields, text):
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=1):
            T.copy(A, B)

    kernel = tw.compile(main, engine="interpreter")
    kernel(Malformed(), np.zeros(8, "float32"))
    with pytest.raises(tw.LaunchError, match=f"TW4002.*argument 0 'A' cannot be handed to a kernel: its DLPack capsule is not well formed: it has {text}"):
        kernel(Malformed(**fields), np.zeros(8, "float32"))


def test_assertions_say_where():
    @T.prim_func
    def main(A: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=1):
            T.device_assert(A[0] > 0, "positive")  # assertion

    for engine in ("interpreter", "cpu"):
        with pytest.raises(tw.LaunchError) as caught:
            tw.compile(main, engine=engine)(np.zeros(8, "float32"))
        assert caught.value.line == line_of("assertion") and "positive" in str(caught.value)


def unfilled():
    @T.prim_func
    def main(A: T.Tensor[[32], T.float32]):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((32,), "float32")
            for i in T.Parallel(32):
                A[i] = s[31 - i]  # read before it is filled

    return main


@pytest.mark.parametrize("options", [{}, {"tilewright.tf32": True}, {"tl.enable_fast_math": True}, {"tl.disable_tma_lower": True}])
def test_options_of_a_compilation_keep_the_place(options):
    with expect("TW1090", "read before it is filled", "'s'"):
        tw.compile(unfilled(), pass_configs=options)
    with expect("TW1090", "read before it is filled", "'s'"):
        tw.jit(unfilled, pass_configs=options)()
