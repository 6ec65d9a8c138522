"""The puzzles: their solutions earn three stars, every typical mistake gets its own hint, however it is written, and the command
leads from the list to the stars."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
from tilewright import puzzles
from tilewright.puzzles import checking, stars
from tilewright.puzzles.puzzle import Facts

ROOT = pathlib.Path(__file__).resolve().parents[2]
EVERY = puzzles.every()
each = pytest.mark.parametrize("puzzle", EVERY, ids=lambda p: p.name)


@pytest.fixture(autouse=True)
def own_stars(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def answer(name, body):
    """A function with the signature of a puzzle and another body, indented by 4."""
    puzzle = puzzles.named(name)
    head = puzzle.signature.split("    with T.Kernel")[0]
    text = f"import tilewright as tw\nimport tilewright.language as T\n\n{head}{textwrap.indent(textwrap.dedent(body), '    ')}"
    return checking.made(puzzle, text)


# ---- solutions and mistakes


@each
def test_solutions_earn_three_stars(puzzle, tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir(mode=0o700)
    result = puzzles.check(puzzle.number, checking.made(puzzle, puzzle.solution))
    assert checking.steps_of(checking._best(puzzle.name).counts) < 5000  # an answer is checked while its writer waits
    assert result.stars == 3 and not result.mistake, result
    assert "right on the interpreter, the simulated GPU and the CPU   ***" in str(result)
    assert stars.earned() == {puzzle.name: 3}


@each
def test_mistakes_get_their_own_hints(puzzle):
    for mistake in puzzle.mistakes:
        for text in puzzle.wrong(mistake):
            result = checking.check(puzzle, checking.made(puzzle, text))
            assert (result.mistake, result.hint) == (mistake.name, mistake.hint), f"{mistake.name}: {result}\n{text}"
            assert result.stars in (1, 2) if mistake.slow else result.stars == 0
            assert len(str(result).splitlines()) <= 16


def test_there_are_many_mistakes_and_each_has_a_hint_of_its_own():
    assert sum(len(p.mistakes) for p in EVERY) >= 100
    for p in EVERY:
        assert len({m.name for m in p.mistakes}) == len({m.hint for m in p.mistakes}) == len(p.mistakes) >= 5


@each
def test_solutions_show_no_mistake(puzzle):
    """No model of a mistake computes what is right, and none fits a right run."""
    for case in checking.cases_of(puzzle):
        facts = Facts(puzzle, case, "simulator")
        checking.run(checking.made(puzzle, puzzle.solution), facts)
        assert not facts.wrong_outputs() and not facts.changed_inputs()
        facts.slow, facts.best = True, facts.counts
        assert [m.name for m in puzzle.mistakes if m.fits(facts)] == []


def test_the_reference_solutions_move_each_tensor_about_once():
    """Floors that follow from the shapes; the products and the attention read tiles again."""
    for p in EVERY:
        facts = checking._best(p.name)
        once = sum(a.nbytes for a in facts.given.values())
        least = {"add": 3 * facts.given["A"].nbytes if "A" in facts.given else 0, "online_softmax": once * 1.5}.get(p.name, once)
        again = {"matmul": 4, "pipelined": 1.01, "epilogue": 4, "attention": 2, "outer": 1.8, "convolution": 2, "histogram": 1.1}
        assert least <= facts.counts["bytes_moved"] * 1.01 and facts.counts["bytes_moved"] <= again.get(p.name, 1.35) * least, p.name


def test_learners_files_are_told_what_to_begin_with(tmp_path):
    for p in EVERY:
        result = checking.check(p, checking.made(p, p.template))
        assert result.stars == 0 and p.hints[0] in result.hint, result
        assert p.template.count("your lines") == 1 and p.answer.strip() not in p.template
        assert max(map(len, p.template.splitlines())) <= 130
        assert len(p.hints) == puzzles.HINTS


def test_references_are_numpys():
    """References beside others that are written otherwise, on small arrays."""
    random = np.random.default_rng(0)
    x = random.standard_normal((5, 7)).astype("float32")
    e = np.exp(x.astype("float64"))
    for name in ("softmax", "online_softmax"):
        assert np.allclose(puzzles.named(name).reference(x), e / e.sum(1)[:, None], rtol=1e-5)
    w = np.array([1, 2, 3], "float32")
    assert np.allclose(puzzles.named("convolution").reference(x[0], w), [(x[0][i : i + 3] * w).sum() for i in range(5)], rtol=1e-5)
    assert puzzles.named("histogram").reference(np.array([1, 1, 63], "int32")).tolist() == [0, 2] + [0] * 61 + [1]
    q, s = puzzles.named("quantize").reference(np.array([[1, -4, 2.02], [0, 0, 0]], "float32"))
    assert q.tolist() == [[32, -127, 64], [0, 0, 0]] and s.tolist() == [np.float32(4) / np.float32(127), 1]
    q, k, v = (random.standard_normal((1, 4, 8)).astype("float16") for _ in range(3))
    p = np.exp([[float(a) for a in row] for row in (q[0].astype("float64") @ k[0].astype("float64").T) / 8**0.5])
    assert np.allclose(puzzles.named("attention").reference(q, k, v)[0], p @ v[0] / p.sum(1)[:, None], rtol=1e-3, atol=1e-3)


# ---- the same mistakes and right answers, written otherwise than the package's own

OTHERWISE = [
    ("copy", "the grid is rounded down", """
        blocks = N // 64
        with T.Kernel(blocks, threads=64) as block:
            T.copy(A[block * 64], B[block * 64 : block * 64 + 64])
        """),
    ("copy", "the source has no block", """
        with T.Kernel(T.ceildiv(N, 512), threads=256) as b:
            tile = T.alloc_shared((512,), "float32")
            T.copy(A[0:512], tile)
            T.copy(tile, B[b * 512])
        """),
    ("add", "no guard", """
        with T.Kernel(T.ceildiv(N, 512), threads=128) as p:
            x = T.alloc_fragment((512,), "float32")
            y = T.alloc_fragment((512,), "float32")
            T.copy(A[p * 512], x)
            T.copy(B[p * 512], y)
            for q in T.Parallel(512):
                x[q] += y[q]
            T.copy(x, C[p * 512])
        """),
    ("outer", "the store is transposed", """
        with T.Kernel(T.ceildiv(M, 16), T.ceildiv(N, 16), threads=64) as (p, q):
            for r, c in T.Parallel(16, 16):
                C[q * 16 + c, p * 16 + r] = B[q * 16 + c] + A[p * 16 + r]
        """),
    ("gradient", "no mask", """
        with T.Kernel(T.ceildiv(M, 8), threads=64) as p:
            g = T.alloc_fragment((8, N), "float32")
            T.copy(G[p * 8, 0], g)
            for r, c in T.Parallel(8, N):
                g[r, c] *= B[c]
            T.copy(g, D[p * 8, 0])
        """),
    ("row_sum", "only whole tiles are summed", """
        with T.Kernel(T.ceildiv(M, 8), threads=64) as p:
            x = T.alloc_shared((8, 128), "float32")
            s = T.alloc_fragment((8,), "float32")
            T.fill(s, 0)
            for step in range(N // 128):
                T.copy(X[p * 8, step * 128], x)
                T.reduce_sum(x, s, 1, clear=False)
            T.copy(s, S[p * 8])
        """),
    ("row_sum", "the sums begin undefined", """
        with T.Kernel(T.ceildiv(M, 8), threads=64) as p:
            s = T.alloc_fragment((8,), "float32")
            for step in T.serial(N):
                for r in T.Parallel(8):
                    s[r] = s[r] + X[p * 8 + r, step]
            T.copy(s, S[p * 8])
        """),
    ("column_max", "zeros from behind the last row", """
        with T.Kernel(T.ceildiv(N, 32), threads=64) as p:
            x = T.alloc_shared((64, 32), "float32")
            t = T.alloc_fragment((32,), "float32")
            T.fill(t, T.min_value("float32"))
            for step in T.serial(T.ceildiv(M, 64)):
                T.copy(X[step * 64, p * 32], x)
                T.reduce_max(x, t, dim=0, clear=False)
            T.copy(t, C[p * 32])
        """),
    ("softmax", "the largest is not subtracted", """
        with T.Kernel(M, threads=32) as row:
            e = T.alloc_fragment((1, N), "float32")
            total = T.alloc_fragment((1,), "float32")
            for c in T.Parallel(N):
                e[0, c] = T.exp2(X[row, c] * 1.4426950408889634)
            T.reduce_sum(e, total, dim=1)
            for c in T.Parallel(N):
                Y[row, c] = e[0, c] / total[0]
        """),
    ("online_softmax", "the sum is not scaled", """
        with T.Kernel(M, threads=64) as row:
            x = T.alloc_fragment((1, 64), "float32")
            m = T.alloc_fragment((1,), "float32")
            s = T.alloc_fragment((1,), "float32")
            T.fill(m, -T.infinity("float32"))
            T.fill(s, 0)
            for step in T.serial(T.ceildiv(N, 64)):
                for c in T.Parallel(64):
                    x[0, c] = T.if_then_else(step * 64 + c < N, X[row, step * 64 + c], -T.infinity("float32"))
                T.reduce_max(x, m, dim=1, clear=False)
                for c in T.Parallel(64):
                    x[0, c] = T.exp(x[0, c] - m[0])
                T.reduce_sum(x, s, dim=1, clear=False)
            for step in T.serial(T.ceildiv(N, 64)):
                for c in T.Parallel(64):
                    Y[row, step * 64 + c] = T.exp(X[row, step * 64 + c] - m[0]) / s[0]
        """),
    ("matmul", "the sums are cleared in each round", """
        with T.Kernel(M // 64, N // 64, threads=128) as (p, q):
            x = T.alloc_shared((64, 16), "float16")
            y = T.alloc_shared((16, 64), "float16")
            z = T.alloc_fragment((64, 64), "float32")
            for step in T.serial(K // 16):
                T.copy(A[p * 64, step * 16], x)
                T.copy(B[step * 16, q * 64], y)
                T.gemm(x, y, z, clear_accum=True)
            T.copy(z, C[p * 64, q * 64])
        """),
    ("pipelined", "K is rounded down", """
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=128) as (p, q):
            x = T.alloc_shared((32, 64), "float16")
            y = T.alloc_shared((64, 32), "float16")
            z = T.alloc_fragment((32, 32), "float32")
            T.clear(z)
            for step in T.Pipelined(K // 64, num_stages=3):
                T.copy(A[q * 32, step * 64], x)
                T.copy(B[step * 64, p * 32], y)
                T.gemm(x, y, z)
            T.copy(z, C[q * 32, p * 32])
        """),
    ("epilogue", "the bias is scaled", """
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (p, q):
            x = T.alloc_shared((64, 32), "float16")
            w = T.alloc_shared((32, 64), "float16")
            z = T.alloc_fragment((64, 64), "float32")
            for r, c in T.Parallel(64, 64):
                z[r, c] = bias[p * 64 + c]
            for step in T.serial(T.ceildiv(K, 32)):
                T.copy(X[q * 64, step * 32], x)
                T.copy(W[step * 32, p * 64], w)
                T.gemm(x, w, z)
            for r, c in T.Parallel(64, 64):
                Y[q * 64 + r, p * 64 + c] = T.max(scale[p * 64 + c] * z[r, c], 0)
        """),
    ("transpose", "memory is walked through by columns", """
        with T.Kernel(T.ceildiv(M, 32), N, threads=32) as (p, q):
            lane = T.get_thread_binding(0)
            if p * 32 + lane < M:
                B[q, p * 32 + lane] = A[p * 32 + lane, q]
        """),
    ("convolution", "the weights are turned round", """
        with T.Kernel(T.ceildiv(L, 128), threads=128) as p:
            for r in T.Parallel(128):
                v = T.alloc_var("float32", init=0)
                for k in T.serial(K):
                    v += W[k] * X[p * 128 + r + K - 1 - k]
                Y[p * 128 + r] = v
        """),
    ("histogram", "blocks store without atomics", """
        with T.Kernel(T.ceildiv(N, 256), threads=256) as p:
            t = T.get_thread_binding(0)
            if p * 256 + t < N:
                x = X[p * 256 + t]
                H[x] = H[x] + 1
        """),
    ("quantize", "cut off, not rounded", """
        with T.Kernel(M, threads=64) as row:
            x = T.alloc_shared((1, N), "float32")
            m = T.alloc_fragment((1,), "float32")
            T.copy(X[row, 0], x)
            T.reduce_absmax(x, m, dim=1)
            s = T.if_then_else(m[0] == 0, 1, m[0] / 127)
            for c in T.Parallel(N):
                Q[row, c] = T.cast(x[0, c] / s, "int8")
            S[row] = s
        """),
    ("attention", "keys behind the end take part", """
        with T.Kernel(H, T.ceildiv(L, 64), threads=128) as (h, b):
            q, k, v = (T.alloc_shared((64, D), "float16") for _ in range(3))
            e = T.alloc_shared((64, 64), "float16")
            p = T.alloc_fragment((64, 64), "float32")
            o = T.alloc_fragment((64, D), "float32")
            m, n, s = (T.alloc_fragment((64,), "float32") for _ in range(3))
            T.copy(Q[h, b * 64, 0], q)
            T.fill(m, -T.infinity("float32"))
            T.fill(s, 0)
            T.fill(o, 0)
            for t in T.Pipelined(T.ceildiv(L, 64), num_stages=1):
                T.copy(K[h, t * 64, 0], k)
                T.copy(V[h, t * 64, 0], v)
                T.gemm(q, k, p, transpose_B=True, clear_accum=True)
                T.copy(m, n)
                for i, j in T.Parallel(64, 64):
                    p[i, j] = p[i, j] / D**0.5
                T.reduce_max(p, m, dim=1, clear=False)
                for i, j in T.Parallel(64, 64):
                    p[i, j] = T.exp(p[i, j] - m[i])
                for i in T.Parallel(64):
                    n[i] = T.exp(n[i] - m[i])
                for i in T.Parallel(64):
                    s[i] = s[i] * n[i]
                T.reduce_sum(p, s, dim=1, clear=False)
                for i, j in T.Parallel(64, D):
                    o[i, j] = o[i, j] * n[i]
                T.copy(p, e)
                T.gemm(e, v, o)
            for i, j in T.Parallel(64, D):
                O[h, b * 64 + i, j] = o[i, j] / s[i]
        """),
]  # fmt: skip


@pytest.mark.parametrize("name, mistake, body", OTHERWISE, ids=[f"{name}: {mistake}" for name, mistake, _ in OTHERWISE])
def test_mistakes_that_are_written_otherwise(name, mistake, body):
    result = puzzles.check(name, answer(name, body))
    assert result.mistake == mistake, result


RIGHT = [
    ("copy", 3, """
        with T.Kernel(T.ceildiv(N, 128), threads=128) as p:
            T.copy(A[p * 128], B[p * 128 : p * 128 + 128])
        """),
    ("outer", 2, """
        with T.Kernel(T.ceildiv(N, 16), T.ceildiv(M, 16), threads=64) as (p, q):
            for r, c in T.Parallel(16, 16):
                C[q * 16 + r, p * 16 + c] = A[q * 16 + r] + B[p * 16 + c]
        """),
    ("gradient", 3, """
        with T.Kernel(T.ceildiv(N, 128), T.ceildiv(M, 16), threads=128) as (p, q):
            for r, c in T.Parallel(16, 128):
                y, x = q * 16 + r, p * 128 + c
                D[y, x] = G[y, x] * T.if_then_else(A[y, x] * B[x] > 0, B[x], 0)
        """),
    ("softmax", 2, """
        with T.Kernel(M, threads=32) as row:
            x = T.alloc_fragment((1, N), "float32")
            m = T.alloc_fragment((1,), "float32")
            s = T.alloc_fragment((1,), "float32")
            T.copy(X[row, 0], x)
            T.reduce_max(x, m, dim=1)
            for c in T.Parallel(N):
                x[0, c] = T.exp2((x[0, c] - m[0]) * 1.4426950408889634)
            T.reduce_sum(x, s, dim=1)
            for c in T.Parallel(N):
                Y[row, c] = x[0, c] / s[0]
        """),
    ("transpose", 3, """
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=128) as (p, q):
            s = T.alloc_shared((32, 33), "float32")
            t = T.get_thread_binding(0)
            for r in T.serial(8):
                s[r * 4 + t // 32, t % 32] = A[q * 32 + r * 4 + t // 32, p * 32 + t % 32]
            for r in T.serial(8):
                B[p * 32 + r * 4 + t // 32, q * 32 + t % 32] = s[t % 32, r * 4 + t // 32]
        """),
    ("matmul", 3, """
        with T.Kernel(N // 64, M // 64, threads=128) as (p, q):
            x = T.alloc_shared((64, 32), "float16")
            y = T.alloc_shared((32, 64), "float16")
            z = T.alloc_fragment((64, 64), "float32")
            for step in T.Pipelined(K // 32, num_stages=2):
                T.copy(A[q * 64, step * 32], x)
                T.copy(B[step * 32, p * 64], y)
                T.gemm(x, y, z, clear_accum=step == 0)
            T.copy(z, C[q * 64, p * 64])
        """),
]  # fmt: skip


@pytest.mark.parametrize("name, least, body", RIGHT, ids=[name for name, _, _ in RIGHT])
def test_other_right_answers(name, least, body):
    result = puzzles.check(name, answer(name, body))
    assert result.stars >= least, result


# ---- what is said


def test_the_first_differing_element_is_named():
    result = puzzles.check("row_sum", answer("row_sum", """
        with T.Kernel(M, threads=32) as row:
            S[row] = T.if_then_else(row == 3, 1000.5, 0)
        """))  # fmt: skip
    wanted = next(puzzles.named("row_sum").cases(np.random.default_rng(5)))["X"].sum(1)
    assert str(result).splitlines()[:2] == [
        "puzzle 5, row_sum: wrong on the interpreter (X 64x256, S 64)",
        f"S[0]: expected {wanted[0]:.7g}, got 0; 64 of 64 elements differ",
    ]
    assert result.mistake == "" and result.hint == "tilewright puzzles hint 5 says how to go on."


def test_errors_are_shown_as_they_are():
    result = puzzles.check(3, answer("outer", """
        with T.Kernel(1, threads=32):
            t = T.alloc_shared((4, 4), "float32")
            T.gemm(t, t, t)
        """))  # fmt: skip
    assert result.stars == 0 and "\nerror TW" in str(result) and "T.gemm(t, t, t)" in str(result) and "\nhelp: " in str(result)


def test_exceptions_of_python_are_shown_with_their_line():
    result = puzzles.check(3, answer("outer", """
        with T.Kernel(1, threads=32) as bx:
            C[0, 0] = A[by]
        """))  # fmt: skip
    assert "TW1101 build: name 'by' is not defined" in str(result) and "C[0, 0] = A[by]" in str(result)


def test_elements_that_were_never_written_are_said_to_be():
    result = puzzles.check("quantize", answer("quantize", """
        with T.Kernel(1, threads=32) as bx:
            Q[0, 0] = -127
        """))  # fmt: skip
    assert "Q[0, 1]: expected" in str(result) and "got never written" in str(result) and "S[0]: expected" in str(result)


def test_inputs_that_change_are_told():
    result = puzzles.check("softmax", answer("softmax", """
        with T.Kernel(M, threads=32) as row:
            for c in T.Parallel(N):
                X[row, c] = T.exp(X[row, c])
        """))  # fmt: skip
    assert "X is an input, and was changed" in str(result) and "second argument of T.copy" in result.hint


def test_a_race_between_blocks_is_found_by_the_simulator():
    p = puzzles.named("histogram")
    text = next(p.wrong(next(m for m in p.mistakes if "TW9001" in m.codes)))
    for _ in range(3):  # the interpreter may lose additions, or none
        result = puzzles.check("histogram", checking.made(p, text))
        assert "an error on the simulated GPU" in str(result) and "error TW9001" in str(result)


def test_without_a_compiler_the_cpu_is_left_out(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_CXX", "/nowhere/g++")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    result = puzzles.check(1, checking.made(puzzles.named(1), puzzles.named(1).solution))
    assert result.stars == 3 and "right on the interpreter, the simulated GPU   ***" in str(result)
    assert "The CPU engine is left out: there is no C++ compiler" in str(result)


def test_an_answer_that_never_ends():
    result = puzzles.check(1, answer("copy", """
        with T.Kernel(T.ceildiv(N, 256), threads=256) as bx:
            n = T.alloc_var("int32", 0)
            while n >= 0:
                n = (n + 1) % 7
        """), timeout=1)  # fmt: skip
    assert str(result).splitlines()[0] == "puzzle 1, copy: no end after 1 s on the interpreter (A 1024, B 1024)"
    assert result.stars == 0 and "what its `while` tests must change" in result.hint and "check(1, ..., timeout=10)" in result.hint
    with pytest.raises(tw.CompileError, match="timeout is -1"):
        puzzles.check(1, answer("copy", "pass"), timeout=-1)


def test_an_answer_that_takes_too_many_steps():
    result = puzzles.check(1, answer("copy", """
        with T.Kernel(T.ceildiv(N, 256), threads=128) as bx:
            for i in T.Parallel(256):
                B[:] = A[:]
        """), timeout=4)  # fmt: skip
    assert "no end after 4 s on the simulated GPU" in str(result) and result.hint.startswith("It comes to an end on the interpreter")


def test_sums_that_nobody_began():
    """What an output holds at first is a NaN, to which nothing can be added that is seen."""
    for name, body in {
        "copy": "with T.Kernel(T.ceildiv(N, 256), threads=128) as bx:\n    for i in T.Parallel(256):\n        B[bx * 256 + i] += A[bx * 256 + i]",
        "matmul": "with T.Kernel(N // 32, M // 32, threads=128) as (bx, by):\n    for i, j in T.Parallel(32, 32):\n        for k in T.serial(K):\n"
                  "            C[by * 32 + i, bx * 32 + j] += A[by * 32 + i, k] * B[k, bx * 32 + j]",
    }.items():  # fmt: skip
        result = puzzles.check(name, answer(name, body))
        assert "got a sum with what it began with" in str(result) and result.hint.startswith("Something is added to what"), result


def test_what_people_write_who_know_numpy():
    """Errors of answers that NumPy would take, each with words for it."""
    for body, code, words in (
        ("B[bx][i] = A[bx][i]", "TW1105", "all indices stand together: A[i, j]"),
        ("B[bx * 256 + i] = A", "TW1037", "A whole tile is no number"),
        ("B[bx, i] = A[bx, i]", "TW1038", "give an index in every dimension"),
    ):
        text = f"with T.Kernel(T.ceildiv(N, 256), threads=128) as bx:\n    for i in T.Parallel(256):\n        {body}"
        result = puzzles.check(1, answer("copy", text))
        assert f"error {code} build" in str(result) and words in str(result), result


def count_for_ever():
    while True:
        pass


def test_an_answer_whose_python_never_ends():
    @tw.jit
    def copy(A, B):
        N = T.const("N")
        A: T.Tensor[[N], T.float32]
        B: T.Tensor[[N], T.float32]
        with T.Kernel(T.ceildiv(N, 256), threads=256):
            count_for_ever()

    first = count_for_ever.__code__.co_firstlineno
    result = puzzles.check(1, copy, timeout=1)
    lines = str(result).splitlines()
    assert lines[0] == "puzzle 1, copy: no end after 1 s" and lines[1] in (f"  --> {__file__}:{first + 1}", f"  --> {__file__}:{first + 2}")
    assert result.stars == 0 and result.hint.startswith("Python is still at this line, and there is no program yet")


def test_an_answer_that_ends_python():
    @tw.jit
    def crash(A, B):
        os.kill(os.getpid(), signal.SIGKILL)

    @tw.jit
    def leave(A, B):
        os._exit(0)

    @tw.jit
    def raises(A, B):
        raise KeyboardInterrupt

    assert str(puzzles.check(1, crash)).startswith("puzzle 1, copy: ended by SIGKILL on the interpreter (A 1024, B 1024)\nhint: ")
    assert str(puzzles.check(1, leave)).startswith("puzzle 1, copy: Python was ended on the interpreter")
    with pytest.raises(KeyboardInterrupt):
        puzzles.check(1, raises)


def test_what_an_answer_prints_is_seen(capsys):
    @tw.jit
    def copy(A, B):
        print("a word")
        print("another", file=sys.stderr)

    puzzles.check(1, copy)
    said = capsys.readouterr()
    assert "a word\n" in said.out and "another\n" in said.err


@tw.jit
def factory(N):
    @T.prim_func
    def copy(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=32):
            T.copy(A, B)

    return copy


def test_what_is_no_kernel_is_refused():
    for wrong in (lambda A, B: A, 3, np.copy):
        with pytest.raises(tw.CompileError, match="puzzle 1 takes a function under @tw.jit") as caught:
            puzzles.check(1, wrong)
        assert caught.value.file == __file__
    with pytest.raises(tw.CompileError, match="'factory' makes programs"):
        puzzles.check(1, factory)
    for number in (0, 17, True, 1.5, "softmx", None):
        with pytest.raises(tw.CompileError, match="there is no puzzle") as caught:
            puzzles.hint(number)
        assert caught.value.file == __file__
    with pytest.raises(tw.CompileError, match="there is no hint 4"):
        puzzles.hint(1, 4)


def test_programs_and_kernels_are_answers_too():
    @T.prim_func
    def row_sum(X: T.Tensor((T.dynamic("M"), T.dynamic("N")), "float32"), S: T.Tensor((T.dynamic("M"),), "float32")):
        with T.Kernel(T.ceildiv(X.shape[0], 16), threads=128) as bx:
            tile = T.alloc_fragment((16, 64), "float32")
            sums = T.alloc_fragment((16,), "float32")
            T.clear(sums)
            for k in T.serial(T.ceildiv(X.shape[1], 64)):
                T.copy(X[bx * 16, k * 64], tile)
                T.reduce_sum(tile, sums, dim=1, clear=False)
            T.copy(sums, S[bx * 16])

    assert puzzles.check(5, row_sum).stars >= 2
    assert puzzles.check(5, tw.compile(row_sum, engine="interpreter")).stars >= 2

    M, N = T.dynamic("M, N")

    @T.prim_func
    def whole_rows(X: T.Tensor((M, N), "float32"), S: T.Tensor((M,), "float32")):  # a tile that only a call knows
        with T.Kernel(T.ceildiv(M, 4), threads=128) as bx:
            tile = T.alloc_fragment((4, N), "float32")
            sums = T.alloc_fragment((4,), "float32")
            T.copy(X[bx * 4, 0], tile)
            T.reduce_sum(tile, sums, dim=1)
            T.copy(sums, S[bx * 4])

    assert puzzles.check(5, whole_rows).stars >= 1
    assert puzzles.check(5, tw.compile(whole_rows)).stars >= 1


# ---- stars and hints


def test_the_most_stars_are_kept(tmp_path):
    p = puzzles.named("convolution")
    slow = next(m for m in p.mistakes if m.slow)
    assert puzzles.check(p.name, checking.made(p, p.solution)).stars == 3
    assert puzzles.check(p.name, checking.made(p, next(p.wrong(slow)))).stars < 3
    assert stars.earned() == {"convolution": 3}
    assert " 13  ***  convolution " in puzzles.overview() and "3 of 48 stars" in puzzles.overview()
    for spoiled in ("", "[]", '{"stars": 7}', '{"stars": {"copy": "3", "add": 9}}'):
        pathlib.Path(stars.path()).write_text(spoiled)
        assert stars.earned() == {} and "0 of 48" in puzzles.overview()


def test_stars_that_cannot_be_kept(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    result = puzzles.check(1, checking.made(puzzles.named(1), puzzles.named(1).solution))
    assert result.stars == 3 and "The stars are not kept: " in str(result)


def test_hints_come_one_after_the_other():
    assert [puzzles.hint(3)[:6] for _ in range(4)] == ["1 of 3", "2 of 3", "3 of 3", "3 of 3"]
    assert puzzles.hint(3, 1)[:6] == "1 of 3" and puzzles.hint(3)[:6] == "2 of 3" and puzzles.hint(4)[:6] == "1 of 3"


def test_solutions_are_shown_after_a_question(monkeypatch):
    asked = []
    for said, shown in {"y": True, "YES": True, "": False, "n": False}.items():
        monkeypatch.setattr("builtins.input", lambda text, said=said: asked.append(text) or said)
        assert (puzzles.solution(2) == puzzles.named(2).solution) == shown
    assert "[y/N]" in asked[0] and len(asked) == 4
    assert repr(puzzles.solution(2, yes=True)) == puzzles.named(2).solution and len(asked) == 4


# ---- the command


def command(folder, *words, flags=(), **more):
    path = os.pathsep.join([os.path.dirname(os.path.dirname(tw.__file__)), os.environ.get("PYTHONPATH", "")])
    return subprocess.run([sys.executable, *flags, "-m", "tilewright", "puzzles", *words], cwd=folder, capture_output=True,
                          text=True, env={**os.environ, "PYTHONPATH": path}, **more)  # fmt: skip


def test_from_the_list_to_the_stars(tmp_path):
    ran = command(tmp_path)
    lines = ran.stdout.splitlines()
    assert ran.returncode == 0 and [line.split()[0] for line in lines[:16]] == [str(n) for n in range(1, 17)]
    assert lines[16] == "0 of 48 stars" and "start" in lines[17]

    assert command(tmp_path, "start", "mine").stdout.startswith("16 files written to mine\n")
    first = tmp_path / "mine" / "puzzle_01_copy.py"
    ran = command(tmp_path / "mine", "check", "1")
    assert ran.returncode == 1 and "hint: Nothing is stored to B yet." in ran.stdout and ran.stderr == ""

    text = first.read_text()
    first.write_text(text.replace("pass  # your lines instead of this one", "B[bx * 256 + i] = A[i]"))
    ran = command(tmp_path, "check")  # the first without a star, where start wrote it
    assert ran.returncode == 1 and "the index of A lacks bx" in ran.stdout
    assert command(tmp_path, "start", "mine").stdout.startswith("0 files written to mine, 16 left as they are\n")

    first.write_text(text.replace("pass  # your lines instead of this one", "B[bx * 256 + i] = A[bx * 256 + i]"))
    ran = command(tmp_path, "check", "copy", "--in", "mine")
    assert ran.returncode == 0 and ran.stdout.startswith("puzzle 1, copy: right on the interpreter, the simulated GPU and the CPU   ***")
    assert command(tmp_path).stdout.splitlines()[0].split()[:3] == ["1", "***", "copy"]
    assert command(tmp_path, "check").stdout.startswith("puzzle 2, add: ")
    assert [command(tmp_path, "hint", "2").stdout[0] for _ in range(2)] == ["1", "2"]


def test_the_page_about_them(tmp_path):
    """Its sessions are what the command says, and its list is that of the puzzles."""
    page = (ROOT / "docs/puzzles.md").read_text()
    sessions = re.findall(r"```\n\$ tilewright puzzles (.*?)\n(.*?)```", page, re.DOTALL)
    assert len(sessions) == 2
    assert command(tmp_path, *sessions[0][0].split()).stdout == sessions[0][1]
    file = tmp_path / "mine" / puzzles.named(1).file
    file.write_text(file.read_text().replace("pass  # your lines instead of this one", re.search(r"first answer is `(.*?)`", page)[1]))
    assert command(tmp_path, *sessions[1][0].split()).stdout == sessions[1][1]
    assert re.findall(r"^\| (\d+) \| `(\w+)` \|", page, re.MULTILINE) == [(str(p.number), p.name) for p in EVERY]
    assert len(re.findall(r"\| T \|$", page, re.MULTILINE)) == 10


def test_the_list_imports_little(tmp_path):
    ran = command(tmp_path, flags=("-X", "importtime"))
    names = re.findall(r"\|\s+([\w.]+)$", ran.stderr, re.MULTILINE)
    assert ran.returncode == 0 and not {"torch", "pytest", "matplotlib"} & {name.partition(".")[0] for name in names}
    assert 10 < sum(name.startswith("tilewright") for name in names) < 60


def test_the_command_asks_before_it_shows_a_solution(tmp_path):
    assert puzzles.named(4).answer in command(tmp_path, "solution", "4", input="y\n").stdout
    assert command(tmp_path, "solution", "4", input="n\n").stdout.endswith("not shown\n")
    ran = command(tmp_path, "solution", "4", stdin=subprocess.DEVNULL)
    assert ran.returncode == 1 and "--yes" in ran.stderr and puzzles.named(4).answer not in ran.stdout
    assert command(tmp_path, "solution", "4", "--yes").stdout == puzzles.named(4).solution + "\n"


def test_a_number_alone_tells_the_puzzle(tmp_path):
    said = command(tmp_path, "1").stdout
    assert said.startswith(puzzles.named(1).told) and said.endswith("writes this as puzzle_01_copy.py; then: tilewright puzzles check 1\n")
    assert command(tmp_path, "17").returncode == 2


def test_an_answer_in_a_file_that_is_named(tmp_path):
    (tmp_path / "mine.py").write_text(f"import tilewright as tw\nimport tilewright.language as T\n\n\n{puzzles.named(1).solution}\n")
    assert "***" in command(tmp_path, "check", "1", "mine.py").stdout
    assert "there is no file 'elsewhere.py'" in command(tmp_path, "check", "1", "elsewhere.py").stderr


def test_mistakes_on_the_command_line(tmp_path):
    for words, text in {("check", "99"): "there is no puzzle 99; they have the numbers 1 to 16", ("hint", "softmx"): "did you mean softmax?",
                        ("hint", "1", "4"): "invalid choice", ("chek",): "invalid choice"}.items():  # fmt: skip
        ran = command(tmp_path, *words)
        assert ran.returncode == 2 and text in ran.stderr, words
    ran = command(tmp_path, "check", "1")
    assert ran.returncode == 1 and ran.stderr.startswith("error TW7003 tool: there is no puzzle_01_copy.py in . or puzzles\n")
    (tmp_path / "file").write_text("")
    ran = command(tmp_path, "start", "file")
    assert ran.returncode == 1 and ran.stderr.startswith("error TW7004 tool: the puzzles cannot be written to 'file'")


def test_files_that_python_does_not_take(tmp_path):
    command(tmp_path, "start", ".")
    file = tmp_path / "puzzle_02_add.py"
    for line, text in {"if x": "SyntaxError", "import nowhere": "ModuleNotFoundError: No module named 'nowhere'\n  --> "}.items():
        file.write_text(f"{line}\n")
        ran = command(tmp_path, "check", "2")
        assert ran.returncode == 1 and text in ran.stdout and "Traceback" not in ran.stderr, ran
    file.write_text("import tilewright as tw\n")
    ran = command(tmp_path, "check", "2")
    assert ran.returncode == 1 and "there is no 'add' in 'puzzle_02_add.py'" in ran.stderr


ENDLESS = {
    "recording": ("helper()", "def helper():\n    while True:\n        pass\n"),
    "running": ("n = T.alloc_var('int32', 0)\n        while n >= 0:\n            n = (n + 1) % 7", ""),
    "reading": ("pass", "while True:\n    pass\n"),
}


@pytest.mark.parametrize("when", ENDLESS)
def test_files_whose_answers_never_end(tmp_path, when):
    body, end = ENDLESS[when]
    text = puzzles.named("row_sum").template.replace("pass  # your lines instead of this one", body)
    (tmp_path / "puzzle_05_row_sum.py").write_text(text + end)
    ran = command(tmp_path, "check", "5", "--timeout", "1")
    assert ran.returncode == 1 and ran.stdout.startswith("puzzle 5, row_sum: no end after 1 s"), ran
    assert (" on the interpreter" if when == "running" else "while True:") in ran.stdout and ran.stderr == ""
    assert "is no time: seconds, more than 0" in command(tmp_path, "check", "5", "--timeout", "-1").stderr


def test_in_a_notebook(tmp_path):
    pytest.importorskip("IPython")
    p = puzzles.named(3)
    cells = ["from tilewright import puzzles", p.template, "puzzles.check(3, outer)", p.solution, "puzzles.check('outer', outer)", "puzzles.hint(3)"]
    driver = pathlib.Path(__file__).parent / "notebook.py"
    path = os.pathsep.join([os.path.dirname(os.path.dirname(tw.__file__)), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run([sys.executable, driver], input=json.dumps([cells]), capture_output=True, text=True, cwd=tmp_path,
                         env={**os.environ, "PYTHONPATH": path, "IPYTHONDIR": str(tmp_path)})  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout.strip().splitlines()[-1])[0]
    assert [cell["error"] for cell in said] == [None] * len(cells)
    shown = [cell["shown"].get("text/plain", "") for cell in said]
    assert "hint: Nothing is stored to C yet." in shown[2]
    assert shown[4].startswith("puzzle 3, outer: right on") and "***" in shown[4] and shown[5].startswith("1 of 3: ")
