"""A process that has loaded Python's part of the compiler and NumPy once, and forks one for each question of the language server:
a fork takes milliseconds, where Python's start and these imports take a few hundred."""

import contextlib
import gc
import os
import select
import signal
import socket
import warnings

import numpy  # noqa: F401
import tilewright.as_tilelang  # noqa: F401
import tilewright.command.kernels  # noqa: F401
import tilewright.language as T

from . import analysis


def warm():
    """Records and explains a product: tables of the language and of targets are made once, before there are forks."""

    @T.prim_func
    def product(A: T.Tensor((128, 64), "float16"), B: T.Tensor((64, 128), "float16"), C: T.Tensor((128, 128), "float16")):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((128, 32), "float16"), T.alloc_shared((32, 128), "float16")
            c = T.alloc_fragment((128, 128), "float32")
            T.clear(c)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    for arch in ("sm_90a", ""):
        product.program.explain(arch, True, {})


def serve(number):
    """Answers at a socket until whoever has its other end is gone. Each message brings two sockets: one for a new process, and one
    that says by its end that this process is no longer wanted, and is closed when it has ended."""
    warm()
    gc.freeze()  # forks share these objects, and no collection touches them
    door, children = socket.socket(fileno=number), {}
    door.set_inheritable(False)
    while True:
        for ready in select.select([door, *children], [], [])[0]:
            if ready is not door:
                _end(children.pop(ready))
                ready.close()
                continue
            ends = _received(door)
            if not ends:
                for child in children.values():
                    _end(child)
                return
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy's threads hold no lock of Python
                child = os.fork()
            if child == 0:
                for other in (door, *children, ends[1]):
                    other.close()
                _answer(ends[0])
            with contextlib.suppress(OSError):  # it has done so, and may have ended
                os.setpgid(child, child)
            children[ends[1]] = child
            ends[0].close()


def _received(door):
    """The two sockets of a message; none where the other side is gone."""
    _, numbers, _, _ = socket.recv_fds(door, 1, 2)
    ends = [socket.socket(fileno=number) for number in numbers]
    for end in ends:
        end.set_inheritable(False)
    return ends


def _end(child):
    """Ends a process, and what it has started."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _answer(connection):
    try:
        os.setpgid(0, 0)
        analysis.answer(connection)
    finally:
        os._exit(1)
