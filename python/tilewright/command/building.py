"""tilewright build: kernels as C headers and objects, for programs without Python and without a compiler."""
import os
import re

from .kernels import _made, _one, _parsed, _parser, _values

_ARCHITECTURE = re.compile(r"cpu(:.*)?|sm_\d+\w*")
_ARCHITECTURES = "cpu (this machine's), cpu:portable, cpu:avx2, cpu:avx512, cpu:amx, or GPUs: sm_90a, sm_80"


def build(argv):
    parse = _parser("build", "Compiles a kernel ahead of time: for each architecture a folder with a C header, an object, JSON that says what it assumes, "
                    "and the runtime that all kernels share. FILE.tile is a program in text form.")  # fmt: skip
    parse.add_argument("--arch", required=True, metavar="ARCH,...", help=_ARCHITECTURES)
    parse.add_argument("-o", "--out", required=True, metavar="FOLDER", help="in which each architecture has a folder")
    parse.add_argument("--arg", action="append", default=[], metavar="NAME=VALUE", help="one of the values, as behind FILE.py:NAME")
    parse.add_argument("--name", default="", help="of the C function (the program's); {arch} in it is the architecture's")
    options = parse.parse_intermixed_args(argv)
    architectures = [arch.strip() for arch in options.arch.split(",")]
    if not all(architectures):
        parse.error(f"'{options.arch}' is no list of architectures: {_ARCHITECTURES}")
    for arch in architectures:
        if not _ARCHITECTURE.fullmatch(arch):
            parse.error(f"'{arch}' is no architecture: {_ARCHITECTURES}")
    program = _program(parse, options.kernel, _values(parse, [*options.values, *options.arg]))
    for arch in architectures:
        print(program.build(arch, options.name, os.fspath(options.out)), end="", flush=True)
    return 0


def _program(parse, target, values):
    if target.endswith(".tile"):
        if values:
            parse.error(f"a .tile text takes no values: {', '.join(values)}")
        return _parsed(target)
    kernel, others = _made(_one(target), values, "interpreter")
    if others:
        parse.error(f"'{kernel.name}' takes no {', '.join(sorted(others))} now: what its calls decide are parameters of the function")
    return kernel.program

