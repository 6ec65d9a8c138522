"""First calls of tilewright.ops by several threads at once: in a process of its own, for operators are defined once."""
import os
import subprocess
import sys

import pytest

FIRST_CALLS = """
import threading, torch
from tilewright import ops
calls = [lambda x: ops.attention(x, x, x), ops.relu, lambda x: ops.softmax(x, -1), lambda x: ops.add(x, x), lambda x: ops.matmul(x, x.mT), lambda x: ops.prod(x, -1)]
failed, together = [], threading.Barrier(3 * len(calls))

def first(call):
    x = torch.ones(1, 4, 1, 16, requires_grad=True)
    together.wait()
    try:
        call(x).sum().backward()
    except Exception as error:
        failed.append(repr(error))

threads = [threading.Thread(target=first, args=(call,)) for call in 3 * calls]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not failed, failed
"""


def test_operators_are_there_for_all_threads():
    pytest.importorskip("torch")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run([sys.executable, "-c", FIRST_CALLS], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_operators_that_come_while_one_is_defined_are_defined(monkeypatch):
    from tilewright.ops import operators

    made, waiting = [], []

    class Named:
        def __init__(self, name):
            self.name = name

        def define(self):
            if self.name == "first":
                waiting.append(Named("second"))  # as by a thread that imports more of the package
            made.append(self.name)

    waiting.append(Named("first"))
    monkeypatch.setattr(operators, "_undefined", waiting)
    operators._define_all()
    assert made == ["first", "second"] and not waiting
