"""tilewright puzzles: the learner's files, from the list to the stars."""
import argparse
import os
import signal
import sys

from .. import puzzles as found
from ..errors import TilewrightError
from ..puzzles import stars
from ..trace import fail
from ..tracebacks import colored, has_colors


def _puzzle(text):
    """A puzzle by its number or name, of the command line."""
    try:
        return found.named(text)
    except TilewrightError as error:
        raise argparse.ArgumentTypeError(f"{error.message}; {error.help}") from None


def _seconds(text):
    seconds = float(text)
    if not 0 < seconds < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is no time: seconds, more than 0")
    return seconds


def _parser():
    parse = argparse.ArgumentParser(prog="tilewright puzzles",
                                    description="Sixteen puzzles to learn tile programs by. Alone: the list, with the stars earned.")  # fmt: skip
    words = parse.add_subparsers(dest="word", metavar="WORD")

    def word(name, help, description):
        return words.add_parser(name, help=help, description=description)

    start = word("start", "writes a file for each puzzle", "Writes a file for each puzzle; files that are there stay as they are.")
    start.add_argument("folder", nargs="?", default="puzzles", metavar="DIR", help="where (puzzles)")
    check = word("check", "checks an answer", "Runs an answer on the interpreter, the simulated GPU and the CPU beside NumPy. Status 1: it is wrong.")
    check.add_argument("puzzle", nargs="?", type=_puzzle, metavar="N", help="which puzzle (the first one without a star)")
    check.add_argument("file", nargs="?", metavar="FILE", help="its file, where it is elsewhere")
    check.add_argument("--in", dest="folder", metavar="DIR", help="where its file is (here, in puzzles, or where start wrote last)")
    check.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="after which an answer that still runs is wrong (30)")
    tell = word("show", "tells a puzzle", "The story, the picture and the given lines. N alone is the same.")
    tell.add_argument("puzzle", type=_puzzle, metavar="N", help="which puzzle")
    hint = word("hint", "says how to go on", "Three steps to each answer: every call gives the next.")
    hint.add_argument("puzzle", type=_puzzle, metavar="N", help="which puzzle")
    hint.add_argument("step", nargs="?", type=int, choices=range(1, found.HINTS + 1), metavar="STEP", help="1, 2 or 3 (the next one)")
    solution = word("solution", "shows the reference solution", "Shows the reference solution, after a question.")
    solution.add_argument("puzzle", type=_puzzle, metavar="N", help="which puzzle")
    solution.add_argument("--yes", action="store_true", help="do not ask")
    return parse


def puzzles(argv):
    names_one = bool(argv) and (argv[0].isdigit() or argv[0] in {puzzle.name for puzzle in found.every()})
    options = _parser().parse_args(["show", *argv] if names_one else argv)
    return {None: _list, "show": _show, "start": _start, "check": _check, "hint": _hint, "solution": _solution}[options.word](options)


def _list(options):
    print(found.overview())
    if not stars.folder():
        print("tilewright puzzles start DIR writes the files; tilewright puzzles --help says more")
    return 0


def _show(options):
    print(found.show(options.puzzle.number))
    print(f"tilewright puzzles start DIR writes this as {options.puzzle.file}; then: tilewright puzzles check {options.puzzle.number}")
    return 0


def _start(options):
    written, kept = found.start(options.folder)
    first = found.named(1)
    print(f"{len(written)} files written to {options.folder}" + (f", {len(kept)} left as they are" if kept else ""))
    print(f"open {os.path.join(options.folder, first.file)}, fill the hole, then: tilewright puzzles check 1")
    return 0


def _file_of(puzzle, folder):
    """The learner's file."""
    looked = [folder] if folder else [f for f in (".", "puzzles", stars.folder()) if f]
    for place in looked:
        path = os.path.join(place, puzzle.file)
        if os.path.isfile(path):
            return os.path.normpath(path)
    fail("FileNotReadable", f"there is no {puzzle.file} in {' or '.join(looked)}",
         "tilewright puzzles start DIR writes it; --in DIR says where it is", (puzzle.file, 0, 0))  # fmt: skip


def _next():
    """The first puzzle without a star; the last one where all have some."""
    earned = stars.earned()
    return next((p for p in found.every() if p.name not in earned), found.every()[-1])


def _check(options):
    from ..puzzles import checking  # which brings the compiler: a list needs none
    from .kernels import _one

    puzzle = options.puzzle or _next()
    if options.file and not os.path.exists(options.file):
        fail("FileNotReadable", f"there is no file '{options.file}'", f"tilewright puzzles start DIR writes {puzzle.file}", (options.file, 0, 0))
    path = options.file if options.file and os.path.isfile(options.file) else _file_of(puzzle, options.file or options.folder)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an engine that runs hears no other

    def checked(begin):
        try:
            answer = _one(f"{path}:{puzzle.name}")
        except TilewrightError as error:
            if error.__cause__ is None or error.code != "TW7003":
                raise
            return checking.raised(puzzle, error.__cause__, os.path.abspath(path))  # of the learner's own lines
        try:
            return checking.check(puzzle, answer, begin)
        except SystemExit as error:
            return checking.raised(puzzle, error, os.path.abspath(path))

    result = found._remembered(puzzle, checking.within(options.timeout or checking.LIMIT, puzzle, checked))
    print(colored(str(result)) if has_colors(sys.stdout) else result)
    return 0 if result.stars else 1


def _hint(options):
    print(found.hint(options.puzzle.number, options.step))
    return 0


def _solution(options):
    try:
        print(found.solution(options.puzzle.number, options.yes))
    except EOFError:
        print("\nnobody answers: tilewright puzzles solution N --yes shows it", file=sys.stderr)
        return 1
    return 0
