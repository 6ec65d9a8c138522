"""Checks an answer: on the interpreter, the simulated GPU and the CPU, beside NumPy; and says what is wrong, or how good it is."""
from __future__ import annotations

import functools
import json
import linecache
import signal
import traceback

import numpy as np

from ..errors import TilewrightError
from ..jitted import Jit
from ..kernel import Kernel, compile as compile_program
from ..program import PrimFunc
from ..specialized import Specialized, SpecializedKernel
from ..trace import fail
from . import limited
from .puzzle import Facts, Puzzle

LIMIT = 30  # seconds; the reference solutions take two at most
ENGINES = {"interpreter": "", "simulator": "sm_80", "cpu": ""}  # in the order in which they run, with the GPU that is simulated
_NAMES = {"interpreter": "the interpreter", "simulator": "the simulated GPU", "cpu": "the CPU"}
_NO_COMPILER, _NO_LAUNCH = "TW5500", "TW1054"
# What is said of errors that no mistake of the puzzle has.
_OF_CODES = {
    "TW6002": "Something is read before it was written: what a tile holds at first is undefined. T.clear or T.fill it, or copy to it first.",
    "TW1090": "Something is read before it was written: what a tile holds at first is undefined. T.clear or T.fill it, or copy to it first.",
    "TW6001": "An index lies outside of a tile. Tiles on chip have exactly the elements that their shape says.",
    "TW6003": "Two points of a T.Parallel write different values to one element. Each point is to have an element of its own.",
    "TW6016": "A point of a T.Parallel reads what another one writes. Two loops, one after the other, have an order; points of one loop have none.",
    "TW9001": "A race: two threads touch one element, one of them writes, and nothing says who is first.",
    "TW1037": "A whole tile is no number: T.copy(tile, C[row, column]) copies one, and C[i, j] = tile[i, j] an element.",
    "TW4001": "The signature has other parameters than the puzzle: leave the given lines as they are.",
    "TW4004": "The signature says another dtype than the puzzle: leave the given lines as they are.",
    "TW4005": "The signature says another shape than the puzzle: leave the given lines as they are.",
    "TW4007": "The signature says another shape than the puzzle: leave the given lines as they are.",
}


class Checked:
    """What a check found: `stars` (0 is wrong), `mistake` (its name, "" if it is none of the known ones), `hint`, and all of it as text."""

    puzzle: str
    number: int
    stars: int
    mistake: str
    hint: str

    def __init__(self, puzzle: Puzzle, stars: int, lines: list[str], mistake: str = "", hint: str = "") -> None:
        self.puzzle, self.number, self.stars, self.mistake, self.hint = puzzle.name, puzzle.number, stars, mistake, hint
        self._lines = lines

    def add(self, line: str) -> None:
        self._lines.append(line)

    def __str__(self) -> str:
        return "\n".join([*self._lines, *([f"hint: {self.hint}"] if self.hint else [])])

    __repr__ = __str__


def stars_text(count):
    return "*" * count + "." * (3 - count)


def steps_of(counts):
    """Of warps: what they ask of memories, in turns of the banks of shared memory, and how often they wait for each other."""
    return counts["global_accesses"] + counts["shared_wavefronts"] + counts["atomics"] + counts["barriers"]


def within(seconds, puzzle, checked):
    """What checked(begin) finds, which hands `begin` to check(), in a process of its own that ends after so many seconds."""
    try:
        return limited.run(checked, seconds)
    except limited.Ended as ended:
        return _ended(puzzle, seconds, ended)


def _ended(puzzle, seconds, ended):
    head = ended.last or f"puzzle {puzzle.number}, {puzzle.name}: {{}}"
    if ended.signal:
        what, hint = "Python was ended", "Something in it calls os._exit."
        if ended.signal > 0:
            what, hint = f"ended by {signal.Signals(ended.signal).name}", "Where memory did not run out the mistake is Tilewright's: please report it."
        return Checked(puzzle, 0, [head.format(what)], "", hint)
    longer = f"Where it only takes long: tilewright puzzles check --timeout {10 * seconds:g} {puzzle.number}, or check({puzzle.number}, ..., timeout={10 * seconds:g})."
    if ended.place is None and ended.last and _NAMES["interpreter"] not in ended.last:
        return Checked(puzzle, 0, [head.format(f"no end after {seconds:g} s")], "",
                       "It comes to an end on the interpreter, but takes far too many steps. What stands in a loop is done in each of its turns, in a T.Parallel "
                       f"at each of its points: B[:] = A[:] in one of 256 points copies all of A 256 times. {longer}")  # fmt: skip
    if ended.place is None:
        return Checked(puzzle, 0, [head.format(f"no end after {seconds:g} s")], "",
                       f"A loop of the program never ends, or has far too many turns: what its `while` tests must change in its body. {longer}")  # fmt: skip
    return Checked(puzzle, 0, [f"puzzle {puzzle.number}, {puzzle.name}: no end after {seconds:g} s", *_line(*ended.place)], "",
                   f"Python is still at this line, and there is no program yet: Python's own loops run while it is recorded. {longer}")  # fmt: skip


def check(puzzle, answer, begin=lambda what: None):
    """Checks a function under @tw.jit, a program under @T.prim_func, or a kernel of one. begin: is told of each run before it,
    in words that lack how it goes."""
    if not isinstance(answer, (Jit, PrimFunc, Kernel, SpecializedKernel)):
        fail("OperandKind", f"puzzle {puzzle.number} takes a function under @tw.jit, not {type(answer).__name__}",
             f"write @tw.jit above def {puzzle.name}(...), and pass {puzzle.name} itself")  # fmt: skip
    if isinstance(answer, Jit) and answer.mode == "lazy":
        fail("OperandKind", f"puzzle {puzzle.number} takes a function of tensors, and '{answer.func.__name__}' makes programs",
             "pass a program that it makes, or keep the given lines: they have T.const and T.Kernel in one function")  # fmt: skip
    cases = [_facts_of_all(puzzle, case) for case in cases_of(puzzle)]
    left_out = []
    for engine in ENGINES:
        for facts in cases:
            begin(_head(facts[engine], "{}"))
            try:
                run(answer, facts[engine])
            except TilewrightError as error:
                if error.code == _NO_COMPILER and engine == "cpu":
                    left_out = ["The CPU engine is left out: there is no C++ compiler (tilewright doctor)."]
                    break
                if error.area == "internal":
                    raise
                facts[engine].error = error
                return _failed(facts[engine])
            except Exception as error:  # of the learner's own lines, while the program is recorded
                return raised(puzzle, error, answer.func.__code__.co_filename if isinstance(answer, Jit) else "")
            if facts[engine].wrong_outputs() or facts[engine].changed_inputs():
                facts[engine].from_zeros = _from_zeros(facts[engine])
                facts[engine].simulated = None if engine != "interpreter" else _error_of(answer, facts["simulator"])
                return _wrong(facts[engine])
    return _rated(puzzle, cases[0]["simulator"], left_out)


def cases_of(puzzle):
    return list(puzzle.cases(np.random.default_rng(puzzle.number)))


def _facts_of_all(puzzle, case):
    return {engine: Facts(puzzle, case, engine) for engine in ENGINES}


def run(answer, facts):
    """Runs an answer on the case and engine of these facts, which learn what it gives."""
    arrays = [facts.arrays[name] for name in facts.puzzle.parameters]
    kernel = _kernel(answer, arrays, facts.engine)
    kernel(*arrays)
    facts.kernel = kernel
    if facts.engine == "simulator":
        facts.launches = json.loads(kernel.counts)["launches"]
        facts.counts = {name: sum(launch["total"][name] for launch in facts.launches) for name in facts.launches[0]["total"]}


def _from_zeros(facts):
    """The arrays of the run once more, whose outputs begin with zeros where nothing is said of them."""
    arrays = {n: a.copy() if n in facts.case else np.zeros_like(a) for n, a in facts.given.items()}
    try:
        facts.kernel(*(arrays[n] for n in facts.puzzle.parameters))
    except TilewrightError:
        return None
    return arrays


def _error_of(answer, facts):
    """The error of a run, if it has one: a race may be all that is wrong."""
    try:
        run(answer, facts)
    except TilewrightError as error:
        return error
    return None


def _kernel(answer, arrays, engine):
    """An answer compiled for an engine. The interpreter's is compiled by nobody, so it is the one to begin with."""
    if isinstance(answer, Jit):
        kernel = Jit(answer.func, answer.out_idx, None, answer.pass_configs, "interpreter", answer.compile_flags).compile(*arrays)
    else:
        program = answer if isinstance(answer, PrimFunc) else answer.prim_func
        if isinstance(program, Specialized):
            program = program.at(program.values_of(arrays))
        kernel = compile_program(program, engine="interpreter")
    return kernel if engine == "interpreter" else kernel._another(engine, ENGINES[engine], *([True] if engine == "simulator" else []))


def made(puzzle, text):
    """The function of a program that is given as text."""
    file = f"<puzzle {puzzle.number}: {hash(text) & 0xFFFFFFFF:08x}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"__name__": f"puzzle_{puzzle.name}"}
    exec(compile(text, file, "exec"), space)
    return space[puzzle.name]


@functools.cache
def _best(puzzle_name):
    """What the simulator counts of the reference solution, on the first case."""
    from . import named

    puzzle = named(puzzle_name)
    facts = Facts(puzzle, cases_of(puzzle)[0], "simulator")
    run(made(puzzle, puzzle.solution), facts)
    return facts


# ---- what is wrong


def _mistake(facts):
    return next((mistake for mistake in facts.puzzle.mistakes if mistake.fits(facts)), None)


def _head(facts, what):
    return f"puzzle {facts.puzzle.number}, {facts.puzzle.name}: {what} on {_NAMES[facts.engine]} ({facts.text()})"


def _not_right(facts, lines, mistake, otherwise):
    return Checked(facts.puzzle, 0, lines, mistake.name if mistake else "", mistake.hint if mistake else otherwise)


def _failed(facts):
    otherwise = _to_begin_with(facts.puzzle) if facts.error.code == _NO_LAUNCH else _OF_CODES.get(facts.error.code, "")
    return _not_right(facts, [_head(facts, "an error"), str(facts.error)], _mistake(facts), otherwise)


def _to_begin_with(puzzle):
    outputs = " and ".join(puzzle.outputs)
    return (f"Nothing is stored to {outputs} yet. What is stored to stands on the left of an =, with an index, or second in T.copy. To begin "
            f"with: {puzzle.hints[0]}")  # fmt: skip


def raised(puzzle, error, file):
    """An exception of Python, with the last line of this file that it went through."""
    lines = [f"puzzle {puzzle.number}, {puzzle.name}: an error", "".join(traceback.format_exception_only(type(error), error)).rstrip()]
    own = [entry for entry in traceback.extract_tb(error.__traceback__) if entry.filename == file]
    if own:
        lines += _line(own[-1].filename, own[-1].lineno, (own[-1].line or "").strip())
    return Checked(puzzle, 0, lines)


def _line(file, line, text):
    return [f"  --> {file}:{line}", f"  {line:>5} | {text}"]


def _wrong(facts):
    changed, lines = facts.changed_inputs(), []
    for name in facts.wrong_outputs()[:2]:
        differs = facts.differs(name)
        at = tuple(int(i) for i in np.argwhere(differs)[0])
        got = "a sum with what it began with" if facts.added(name)[at] else "never written" if facts.unwritten(name)[at] else f"{facts.got(name)[at]:.7g}"
        place, expected = ", ".join(map(str, at)), f"{facts.want(name)[at]:.7g}"
        lines.append(f"{name}[{place}]: expected {expected}, got {got}; {differs.sum()} of {differs.size} elements differ")
    lines += [f"{name} is an input, and was changed" for name in changed]
    lines.insert(0, _head(facts, "wrong"))
    if facts.is_untouched():
        return Checked(facts.puzzle, 0, lines, "", _to_begin_with(facts.puzzle))
    mistake = _mistake(facts)
    if facts.simulated is not None and (mistake is None or facts.simulated.code in mistake.codes):
        lines += [f"and an error on {_NAMES['simulator']}:", str(facts.simulated)]
        return _not_right(facts, lines, mistake, _OF_CODES.get(facts.simulated.code, ""))
    return _not_right(facts, lines, mistake, _otherwise(facts))


def _otherwise(facts):
    """A hint for what is none of the mistakes of this puzzle."""
    if facts.changed_inputs():
        return "Inputs are only read: what is stored to stands on the left of the =, and is the second argument of T.copy."
    for name in facts.wrong_outputs():
        if facts.added(name).any():
            return (f"Something is added to what {name} holds, and nothing has been stored to it before: store with =. Sums are made in a tile of the "
                    "block, which T.clear sets to 0.")  # fmt: skip
        missing, wrong = facts.unwritten(name), facts.differs(name)
        if (missing == wrong).all():
            return (f"What is there is right, but {missing.sum()} elements of {name} are never written. Do the blocks reach all of it? The grid has "
                    "T.ceildiv(extent, tile) blocks, and an index has the block's first element in it.")  # fmt: skip
        got, want = facts.got(name), facts.want(name)
        if np.issubdtype(got.dtype, np.floating) and np.isnan(got[wrong & ~missing]).any() and not np.isnan(want).any():
            return "There are NaN: something infinite is divided or subtracted, 0 is divided by 0, or an output is read before it is written."
        if got.ndim == 2 and got.shape[0] == got.shape[1] and np.allclose(got, want.T, equal_nan=True):
            return f"{name} is transposed: rows come first in an index."
    return f"tilewright puzzles hint {facts.puzzle.number} says how to go on."


# ---- how good it is


def _rated(puzzle, facts, left_out):
    best = _best(puzzle.name)
    facts.slow, facts.best = True, best.counts
    moved, least = facts.counts["bytes_moved"], best.counts["bytes_moved"]
    steps, fewest = steps_of(facts.counts), steps_of(best.counts)
    stars = 1
    for count, (of_bytes, of_steps) in enumerate(zip(puzzle.limits, puzzle.steps), start=2):
        if moved <= of_bytes * least and steps <= of_steps * fewest and stars == count - 1:
            stars = count
    lacks = puzzle.needs(facts) if puzzle.needs else ""
    if lacks:
        stars = min(stars, 2)
    engines = "the interpreter, the simulated GPU" + (" and the CPU" if not left_out else "")
    lines = [
        f"puzzle {puzzle.number}, {puzzle.name}: right on {engines}   {stars_text(stars)}",
        f"bytes moved: {moved}, reference {least}; steps of warps: {steps}, reference {fewest}",
        *left_out,
    ]
    if stars == 3:
        return Checked(puzzle, 3, lines)
    bytes_, steps_ = puzzle.limits[stars - 1] * least, puzzle.steps[stars - 1] * fewest
    lines.append(f"{stars + 1} stars: {bytes_:.0f} bytes, {steps_:.0f} steps at most" + (f"; now {lacks}" if lacks else ""))
    mistake = _mistake(facts)
    return Checked(puzzle, stars, lines, mistake.name if mistake else "", mistake.hint if mistake else _faster(facts))


def _faster(facts):
    """A hint for a right answer whose counts are those of no known mistake."""
    counts, best = facts.counts, facts.best
    if counts["bytes_used"] > 1.2 * best["bytes_used"]:
        return "More is read or written than is needed: bring an element on chip once, into a tile or under a name, and use it from there."
    if counts["bytes_moved"] > 1.2 * best["bytes_moved"]:
        return ("Memory is touched in pieces: the threads of a warp should touch neighbours in a row, many at a time. The last index is the one "
                "that runs fastest; T.copy moves whole tiles; what is read under an `if` is read one by one.")  # fmt: skip
    if counts["shared_wavefronts"] > 1.3 * counts["shared_wavefronts_ideal"] and counts["shared_wavefronts"] > 1.2 * best["shared_wavefronts"]:
        return "Threads wait for each other at the banks of shared memory: leave dealing to T.Parallel, or make rows a column wider."
    return "It takes more steps than it could: larger tiles and T.copy do more in a step."
