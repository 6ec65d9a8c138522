"""Sixteen puzzles to learn tile programs by: puzzles.show(3), puzzles.check(3, outer), puzzles.hint(3), puzzles.solution(3)."""
from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from ..elsewhere import nearest
from ..trace import fail
from ..tracebacks import entry
from . import stars

if TYPE_CHECKING:
    from .checking import Checked
    from .puzzle import Puzzle

MODULES = (
    "p01_copy", "p02_add", "p03_outer", "p04_gradient", "p05_row_sum", "p06_column_max", "p07_softmax", "p08_online_softmax", "p09_matmul",
    "p10_pipelined", "p11_epilogue", "p12_transpose", "p13_convolution", "p14_histogram", "p15_quantize", "p16_attention",
)  # fmt: skip
HINTS = 3


class Text(str):
    """A text that a notebook and Python's prompt show as it is."""

    def __repr__(self) -> str:
        return str(self)


def named(number: int | str) -> Puzzle:
    """The puzzle of a number, or of a name."""
    names = [module[4:] for module in MODULES]
    if isinstance(number, str) and number in names:
        number = names.index(number) + 1
    elif isinstance(number, str) and number.isdigit():
        number = int(number)
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= len(MODULES):
        near = nearest(number, names, cutoff=0.6, count=1) if isinstance(number, str) else ""
        fail("BadOption", f"there is no puzzle {number}", f"did you mean {near}?" if near else f"they have the numbers 1 to {len(MODULES)}")
    return importlib.import_module(f"{__name__}.{MODULES[number - 1]}").PUZZLE


def every() -> list[Puzzle]:
    """All of them, in order."""
    return [named(number) for number in range(1, len(MODULES) + 1)]


def overview() -> Text:
    """All puzzles with the stars that were earned."""
    earned = stars.earned()
    rows = [f"{p.number:>3}  {'*' * earned.get(p.name, 0) or '-':<3}  {p.name:<15} {p.title}" for p in every()]
    return Text("\n".join([*rows, f"{sum(earned.get(module[4:], 0) for module in MODULES)} of {3 * len(MODULES)} stars"]))


@entry
def start(folder: str | os.PathLike[str] = "puzzles") -> tuple[list[str], list[str]]:
    """Writes a file for each puzzle into a folder, and leaves files alone that are there: (paths written, paths left alone)."""
    written, kept = [], []
    try:
        os.makedirs(folder, exist_ok=True)
        for p in every():
            path = os.path.join(folder, p.file)
            if os.path.exists(path):
                kept.append(path)
                continue
            with open(path, "x", encoding="utf-8") as file:
                file.write(p.template)
            written.append(path)
    except OSError as error:
        fail("FileNotWritten", f"the puzzles cannot be written to '{folder}': {error.strerror}",
             "choose another folder: tilewright puzzles start DIR", (str(folder), 0, 0))  # fmt: skip
    stars.remember_folder(folder)
    return written, kept


@entry
def show(number: int | str) -> Text:
    """The story of a puzzle, and the lines that are given."""
    p = named(number)
    return Text(f"{p.told}\n\n{p.template.split(chr(34) * 3, 2)[2].strip()}\n")


@entry
def check(number: int | str, answer: Any, timeout: float | None = None) -> Checked:
    """Checks a function under @tw.jit: what is wrong, or 1 to 3 stars, which are remembered. An answer that takes longer than
    timeout, in seconds (30), is wrong."""
    from . import checking

    p = named(number)
    seconds = checking.LIMIT if timeout is None else timeout
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < 1e6:
        fail("BadOption", f"timeout is {timeout!r}", "seconds, more than 0")
    return _remembered(p, checking.within(seconds, p, lambda begin: checking.check(p, answer, begin)))


def _remembered(p, result):
    lost = stars.earn(p.name, result.stars) if result.stars else ""
    if lost:
        result.add(f"The stars are {lost}")
    return result


@entry
def hint(number: int | str, step: int | None = None) -> Text:
    """One of the three hints of a puzzle: the next one, if `step` does not say which."""
    p = named(number)
    if step is None:
        step = min(stars.hints_given(p.name) + 1, HINTS)
    if not isinstance(step, int) or isinstance(step, bool) or not 1 <= step <= HINTS:
        fail("BadOption", f"there is no hint {step}", f"each puzzle has the hints 1 to {HINTS}")
    stars.give_hint(p.name, step)
    return Text(f"{step} of {HINTS}: {p.hints[step - 1]}")


@entry
def solution(number: int | str, yes: bool = False) -> Text:
    """The reference solution, after a question: yes=True answers it."""
    p = named(number)
    if not yes and input(f"Show the solution of puzzle {p.number}, {p.title}? [y/N] ").strip().lower() not in ("y", "yes"):
        return Text("not shown")
    return Text(p.solution)
