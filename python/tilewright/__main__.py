"""python -m tilewright script.py ...: runs a program that says `import tilelang`, untouched."""
import os
import runpy
import sys

from .as_tilelang import install


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print("usage: python -m tilewright [-m MODULE | SCRIPT.py] ARGUMENT...\n\nRuns a program in which `import tilelang` gives Tilewright.")
        return 0 if len(sys.argv) > 1 else 2
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
