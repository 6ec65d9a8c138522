"""tilewright run: a program in which `import tilelang` is Tilewright, untouched. tilewright compat: many, and a report.
tilewright reduce: one that goes wrong, made small."""
import argparse
import os
import runpy
import sys

from ..tracebacks import is_ours
from . import OK, WRONG, usage


def run(argv):
    parse = argparse.ArgumentParser(prog="tilewright run", usage="tilewright run [--without-gpu] (SCRIPT.py | -m MODULE) [ARGUMENT ...]", description=run.__doc__)
    parse.add_argument("--without-gpu", action="store_true", help='what says "cuda" runs on the CPU, tensors of torch too')
    parse.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="a module, as python -m: -m pytest tests/")
    parse.add_argument("script", nargs=argparse.REMAINDER, help="a file, and its own arguments")
    options = parse.parse_args(argv)
    given = options.module or options.script
    if not given:
        parse.error("give a file, or -m MODULE")
    if not options.module and not os.path.exists(given[0]):
        return usage(f"run: there is no file '{given[0]}'")
    from ..as_tilelang import install

    if options.without_gpu:
        from ..pretended_gpu import NOTE, without_gpu

        print(NOTE, file=sys.stderr)
        without_gpu()
    install()
    sys.argv = given
    sys.path[0] = os.getcwd() if options.module else os.path.dirname(os.path.abspath(given[0]))
    try:
        if options.module:
            runpy.run_module(given[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(given[0], run_name="__main__")
    except Exception as error:
        sys.stdout.flush()
        sys.excepthook(type(error), error.with_traceback(_of_program(error.__traceback__)), error.__traceback__)
        return WRONG
    return OK


def _of_program(traceback):
    """As Python itself would show it: without those who run the program."""
    while traceback.tb_next and (is_ours(traceback.tb_frame.f_code) or traceback.tb_frame.f_globals.get("__name__") == "runpy"):
        traceback = traceback.tb_next
    return traceback


run.__doc__ = "Runs a program in which `import tilelang` gives Tilewright."


def reduce(argv):
    from ..as_tilelang import install
    from ..autodd import main
    from ..errors import TilewrightError

    try:
        install()  # programs that are tried import tilelang too
    except TilewrightError:
        pass  # TileLang itself is installed, and is what they import
    return main(argv, "tilewright reduce")


def compat(argv):
    from ..compat.__main__ import main

    return main(argv)
