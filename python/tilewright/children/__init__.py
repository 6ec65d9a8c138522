"""Processes that a program for TileLang starts import `tilelang`, as the program does: folders beside this file, on PYTHONPATH and
on the path that multiprocessing hands on, have a module of that name, which begins with begin()."""
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def is_here(spec):
    """Whether a module that was found is one of those."""
    return (spec.origin or "").startswith(_HERE + os.sep)


def prepare(with_tvm):
    """What processes that this one starts will find."""
    folders = [os.path.join(_HERE, name) for name in (("tilelang", "tvm") if with_tvm else ("tilelang",))]
    given = [f for f in os.environ.get("PYTHONPATH", "").split(os.pathsep) if f]
    os.environ["PYTHONPATH"] = os.pathsep.join(folders + [f for f in given if f not in folders])
    sys.path[1:] = folders + [f for f in sys.path[1:] if f not in folders]  # the first is the program's own folder


def begin():
    """In such a process: what its parent had."""
    from ..as_tilelang import install
    from ..pretended_gpu import FOR_CHILDREN, without_gpu

    if os.environ.get(FOR_CHILDREN):
        without_gpu(os.environ[FOR_CHILDREN])
    install(force=True, for_children=True)
