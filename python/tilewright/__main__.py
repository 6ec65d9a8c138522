"""python -m tilewright script.py ...: runs a program that says `import tilelang`, untouched."""
import os
import runpy
import sys

import tilewright

from .as_tilelang import install

_USAGE = """usage: python -m tilewright [-m MODULE | SCRIPT.py] ARGUMENT...
       python -m tilewright --version

Runs a program in which `import tilelang` gives Tilewright. Of programs for TileLang, python -m tilewright.compat PATH... says
which run; the tool `tilewright` of a build has the commands for C++ and .tile texts (doctor, run, compile, explain)."""


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(_USAGE)
        return 0 if len(sys.argv) > 1 else 2
    if sys.argv[1] in ("-V", "--version"):
        print(f"tilewright {tilewright.__version__}")
        return 0
    if sys.argv[1] != "-m" and not os.path.exists(sys.argv[1]):
        print(f"python -m tilewright: there is no file '{sys.argv[1]}'\n\n{_USAGE}", file=sys.stderr)
        return 2
    install()
    if sys.argv[1] == "-m":
        sys.argv = sys.argv[2:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = sys.argv[1:]
        sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")
    return 0


sys.exit(main())
