"""What a puzzle consists of, and what is known of the mistakes that it invites."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_BLOCKS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)  # sizes of tiles that a learner may have chosen
UNWRITTEN = {"float32": 0x7FC0DEAD, "float16": 0x7EAD}  # NaNs that no operation makes


@dataclass
class Mistake:
    """A typical wrong answer: how it is told apart, what is said about it, and one example of it.

    like: what such a program computes, in NumPy, from the inputs by name; of parameters called `block` and `other` every usual
        size is tried; it may yield several; NaN and None stand for what it does not write.
    when: whether what was computed is that of this mistake. slow: whether the counts are, of a program that is right.
    codes: of the errors that such a program meets; says: what stands in their text.
    example: [(part of the solution, what stands there instead)]; others: more of them.
    """

    name: str
    hint: str
    example: list[tuple[str, str]]
    like: Callable[..., Any] | None = None
    codes: tuple[str, ...] = ()
    when: Callable[[Facts], bool] | None = None
    slow: Callable[[Facts], bool] | None = None
    others: list[list[tuple[str, str]]] = field(default_factory=list)
    says: str = ""

    def fits(self, facts: Facts) -> bool:
        """Whether a run shows this mistake."""
        if facts.slow:
            return self.slow is not None and bool(self.slow(facts))
        if facts.error is not None:
            return facts.error.code in self.codes and self.says in str(facts.error)
        if facts.simulated is not None and facts.simulated.code in self.codes:
            return True
        if self.like is not None and any(facts.is_like(model) for model in self._models(facts)):
            return True
        return self.when is not None and bool(self.when(facts))

    def _models(self, facts):
        names = inspect.signature(self.like).parameters
        given = {name: facts.inputs[name] for name in names if name in facts.inputs}
        for block in _BLOCKS if "block" in names else (None,):
            for other in _BLOCKS if "other" in names else (None,):
                sizes = {n: v for n, v in (("block", block), ("other", other)) if v is not None}
                with np.errstate(all="ignore"):
                    model = self.like(**given, **sizes)
                    yield from model if isinstance(model, Iterator) else [model]


@dataclass
class Puzzle:
    number: int
    name: str  # of its function, and in its file's name
    title: str
    story: str
    picture: str
    signature: str  # the parameters and all else that is given
    answer: str  # the lines of the reference solution that are the hole of the learner's file
    hints: tuple[str, str, str]
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    reference: Callable[..., Any]  # of the inputs by name: the output, or a tuple of them
    cases: Callable[..., Any]  # of a random generator: dicts of inputs by name, and of outputs where what they hold matters
    mistakes: list[Mistake]
    tolerance: float = 1e-5  # of the largest value of an output
    limits: tuple[float, float] = (2.0, 1.05)  # of bytes beside those of the reference solution: for two stars, for three
    steps: tuple[float, float] = (3.0, 1.3)  # of steps, likewise
    needs: Callable[..., Any] | None = None  # of the facts: what a third star asks for beside, in words; "" if it is there

    @property
    def file(self) -> str:
        return f"puzzle_{self.number:02}_{self.name}.py"

    @property
    def solution(self) -> str:
        """The reference solution, a whole program."""
        return f"{_IMPORTS}\n\n{self.signature}{self.answer}"

    @property
    def _indent(self):
        return self.answer[: len(self.answer) - len(self.answer.lstrip())]

    def wrong(self, mistake: Mistake) -> Iterator[str]:
        """The examples of a mistake, whole programs."""
        for example in [mistake.example, *mistake.others]:
            text = self.solution
            for old, new in example:
                if text.count(old) != 1:
                    raise ValueError(f"puzzle {self.number}, '{mistake.name}': {old!r} stands {text.count(old)} times in the solution")
                text = text.replace(old, new)
            yield text

    @property
    def told(self) -> str:
        """The story and the picture."""
        return f"{self.number}. {self.title}\n\n{self.story.strip()}\n\n{self.picture.strip(chr(10))}"

    @property
    def template(self) -> str:
        """The learner's file."""
        return f'"""{self.told}\n"""\n{_IMPORTS}\n\n{self.signature}{self._indent}pass  # your lines instead of this one\n'


_IMPORTS = "import tilewright as tw\nimport tilewright.language as T\n"


class Facts:
    """What is known of one run of an answer: of a case on an engine."""

    puzzle: Puzzle
    case: dict[str, Any]
    engine: str
    wanted: dict[str, Any]
    inputs: dict[str, Any]
    given: dict[str, Any]
    arrays: dict[str, Any]
    kernel: Any
    error: Any
    simulated: Any
    from_zeros: Any
    launches: list[Any]
    counts: Any
    slow: bool
    best: Any

    def __init__(self, puzzle: Puzzle, case: dict[str, Any], engine: str) -> None:
        self.puzzle, self.case, self.engine = puzzle, case, engine
        read = inspect.signature(puzzle.reference).parameters
        self.wanted = dict(zip(puzzle.outputs, _tuple(puzzle.reference(**{n: a for n, a in case.items() if n in read}))))
        self.inputs = {n: case[n] for n in puzzle.parameters if n in case}
        self.kernel = self.error = None
        self.simulated = None  # the error of the simulated GPU where the interpreter only computes something wrong
        self.from_zeros = None  # the arrays after a run whose outputs began with zeros
        self.launches, self.counts = [], None  # what the simulated GPU's memories did
        self.slow, self.best = False, None  # of a right answer: that it is to be rated, and the reference solution's counts
        self.given = {n: self._begins(n) for n in puzzle.parameters}
        self.arrays = {n: _aligned(a) for n, a in self.given.items()}

    def _begins(self, name):
        """What a tensor holds before the call: outputs of which nothing is said hold what no program computes."""
        if name in self.case:
            return self.case[name]
        wanted = self.wanted[name]
        if wanted.dtype.name in UNWRITTEN:
            bits = np.full(wanted.shape, UNWRITTEN[wanted.dtype.name], f"uint{8 * wanted.itemsize}")
            return bits.view(wanted.dtype)
        return np.full(wanted.shape, np.iinfo(wanted.dtype).min, wanted.dtype)

    def got(self, name: str | None = None) -> Any:
        return self.arrays[name or self.puzzle.outputs[0]]

    def want(self, name: str | None = None) -> Any:
        return self.wanted[name or self.puzzle.outputs[0]]

    def unwritten(self, name: str | None = None) -> Any:
        """Where an output holds what it began with, bit by bit, and should not."""
        name = name or self.puzzle.outputs[0]
        same = _bits(self.arrays[name]) == _bits(self.given[name])
        return same & ~self.added(name) & (_bits(self.wanted[name]) != _bits(self.given[name]))

    def added(self, name: str) -> Any:
        """Where something was added to what an output began with: a NaN keeps its bits."""
        if self.from_zeros is None or name in self.case:
            return np.zeros(self.arrays[name].shape, bool)
        return (_bits(self.arrays[name]) == _bits(self.given[name])) & (_bits(self.from_zeros[name]) != 0)

    def differs(self, name: str) -> Any:
        return ~close(self.arrays[name], self.wanted[name], self.puzzle.tolerance)

    def wrong_outputs(self) -> Any:
        return [n for n in self.puzzle.outputs if self.differs(n).any()]

    def is_untouched(self) -> Any:
        """Whether the run changed nothing at all."""
        return all(((_bits(self.arrays[n]) == _bits(self.given[n])) & ~self.added(n)).all() for n in self.puzzle.parameters)

    def changed_inputs(self) -> Any:
        return [n for n in self.puzzle.parameters if n not in self.puzzle.outputs and (_bits(self.arrays[n]) != _bits(self.given[n])).any()]

    def seen(self, name: str) -> Any:
        """An output as float64, NaN where nothing was written."""
        return np.where(self._untouched(name), np.nan, self.arrays[name].astype("float64"))

    def _untouched(self, name):
        """Where an output of which nothing is said holds what it began with, and nothing was added to that."""
        return (_bits(self.arrays[name]) == _bits(self.given[name])) & (name not in self.case) & ~self.added(name)

    def is_like(self, model: Any) -> bool:
        """Whether the outputs are those of a model, which may leave some of them open (None)."""
        if model is None:
            return False
        models = _tuple(model)
        if len(models) != len(self.puzzle.outputs):
            return False
        compared = [(n, m) for n, m in zip(self.puzzle.outputs, models) if m is not None]
        for name, value in compared:
            value, got = np.asarray(value), self.arrays[name]
            if value.shape != got.shape or not (close(got, value, 2 * self.puzzle.tolerance) | np.isnan(value) & self._untouched(name)).all():
                return False
        return bool(compared)

    def shared_bytes(self) -> Any:
        """Of a block."""
        return max(launch["shared_bytes"] for launch in self.launches)

    def tile_bytes(self) -> Any:
        """Of the shared tiles that the program declares."""
        launches = self.kernel.explain("sm_80", as_json=True)["launches"]
        return max(sum(b["bytes"] for b in launch["buffers"] if b["space"] == "shared") for launch in launches)

    def text(self) -> Any:
        """The shapes of the case."""
        return ", ".join(f"{n} {'x'.join(map(str, a.shape))}" for n, a in self.given.items())


def _aligned(array):
    """A copy at a multiple of 128 bytes, that a run moves the same bytes each time."""
    memory = np.empty(array.nbytes + 128, "uint8")
    begin = -memory.ctypes.data % 128
    copied = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copied[...] = array
    return copied


def _tuple(value):
    return value if isinstance(value, tuple) else (value,)


def _bits(array):
    return np.ascontiguousarray(array).view(f"uint{8 * array.itemsize}")


def close(a, b, tolerance):
    """Element by element, within a part of the largest finite value; NaN is NaN."""
    a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
    finite = b[np.isfinite(b)]
    scale = np.abs(finite).max() if finite.size else 1.0
    with np.errstate(invalid="ignore"):
        return (np.abs(a - b) <= tolerance * max(scale, 1e-30)) | (a == b) | (np.isnan(a) & np.isnan(b))
