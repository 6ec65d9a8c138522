"""The command `tilewright`, which is `python -m tilewright` too: a word, and what it takes."""
import importlib
import os
import sys

from .. import _native, trace
from ..elsewhere import nearest
from ..errors import TilewrightError
from ..tracebacks import colored, has_colors

# Of each word: the module and its function, what it takes, what it does.
WORDS = {
    "doctor": ("machine", "doctor", "", "what this machine offers, and what to install"),
    "explain": ("kernels", "explain", "FILE.py:NAME [M=4096 ...]", "what becomes of a kernel, and what it costs"),
    "cost": ("cost", "cost", "FILE [M=4096 ...] [--machine H100]", "how long a kernel will take on a GPU, by a model"),
    "plot": ("kernels", "plot", "FILE.py:NAME [M=4096 ...]", "pictures of its layouts"),
    "studio": ("studio", "studio", "FILE [M=4096 ...] [-o PAGE]", "a page about a kernel: source, code, memory, passes"),
    "check": ("kernels", "check", "FILE.py[:NAME] [M=64 ...]", "every engine on random tensors, compared"),
    "tune": ("tuning", "tune", "FILE.py:NAME [M=4096 ...]", "its configurations, measured and compared"),
    "build": ("building", "build", "FILE --arch cpu,sm_90a -o FOLDER", "a C header and an object, ahead of time"),
    "run": ("running", "run", "SCRIPT.py ...", "a program for TileLang as it is (--without-gpu: on the CPU)"),
    "compat": ("running", "compat", "PATH...", "which of your programs for TileLang run"),
    "reduce": ("running", "reduce", "FILE --err-msg TEXT -o OUT", "a program that goes wrong, as small as it can be"),
    "lsp": ("editor", "lsp", "", "a language server, for editors to start"),
    "puzzles": ("puzzles", "puzzles", "[start|check|hint|solution]", "tile programs, learned by sixteen puzzles"),
}
_OF_THE_TOOL = ("compile", "opt", "simulate", "fuzz", "plot-layout")  # which has this command's name
OK, WRONG, USAGE, INTERRUPTED = 0, 1, 2, 130  # exit status: 1 is the program's mistake, 2 the command line's


def _overview():
    from .machine import line

    width = max(len(word) + len(takes) for word, (_, _, takes, _) in WORDS.items()) + 3
    rows = [f"  {f'{word} {takes}'.ljust(width)}{help}" for word, (_, _, takes, help) in WORDS.items()]
    return "\n".join([line(), *rows, "tilewright WORD --help says more of each; --version the version"])


def usage(message):
    print(f"tilewright: {message}", file=sys.stderr)
    return USAGE


def _unknown(word):
    if word in _OF_THE_TOOL:
        return usage(f"no command '{word}' here: the tool of a build from source has it (docs/tool.md)")
    near = nearest(word, WORDS, cutoff=0.6, count=1)
    return usage(f"no command '{word}'; " + (f"did you mean {near}?" if near else f"it is one of {', '.join(WORDS)}"))


def main(argv=None):
    """Runs a command line; its exit status."""
    word, *rest = list(sys.argv[1:] if argv is None else argv) or [""]
    if word in ("-m", "--without-gpu") or os.path.isfile(word):
        word, rest = "run", [word, *rest]
    try:
        return _answer(word, rest)
    except TilewrightError as error:
        print(colored(str(error)) if has_colors(sys.stderr) else error, file=sys.stderr)
        return WRONG
    except KeyboardInterrupt:
        if word == "run":  # the program's own
            raise
        print(file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python still writes when it ends
        return WRONG


trace.entrances.add(main.__code__)


def _answer(word, rest):
    if word in ("", "-h", "--help", "help"):
        print(_overview(), flush=True)
        return OK
    if word in ("-V", "--version"):
        print(f"tilewright {_native.version()}", flush=True)
        return OK
    if word not in WORDS:
        return _unknown(word)
    module, function, _, _ = WORDS[word]
    return getattr(importlib.import_module(f"{__name__}.{module}"), function)(rest)
