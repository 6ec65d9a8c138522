"""Operators of torch.library that are for CUDA, without a GPU."""
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}

PROGRAM = """
import gc, warnings
warnings.simplefilter("error")
import tilewright
tilewright.without_gpu()
import torch
from torch.library import Library, custom_op, impl, register_autograd, register_kernel

x = torch.zeros(4, device="cuda")

def says(operator, *arguments):
    return operator(x, *arguments)[0].item()

@custom_op("mine::plus", mutates_args=(), device_types="cuda")
def plus(x: torch.Tensor, n: int = 1) -> torch.Tensor:
    return x + n

assert says(plus) == says(torch.ops.mine.plus) == 1
plus.register_autograd(lambda ctx, grad: (grad * 3, None))
y = torch.zeros(4, device="cuda", requires_grad=True)
plus(y).sum().backward()
assert y.grad.tolist() == [3] * 4

# A kernel for the CPU is the program's own, whichever is registered first.
@plus.register_kernel("cpu")
def of_cpu(x, n=1):
    return x + 10 * n

assert says(plus) == 10

@custom_op("mine::both", mutates_args=(), device_types=("cpu", "cuda"))
def both(x: torch.Tensor) -> torch.Tensor:
    return x + 5

assert says(both) == 5

@custom_op("mine::later", mutates_args=(), device_types="cpu")
def later(x: torch.Tensor) -> torch.Tensor:
    return x + 6

later.register_kernel("cuda")(lambda x: x + 7)
assert says(later) == 6

# Defined anew, it is what it is then.
@custom_op("mine::plus", mutates_args=(), device_types="cuda")
def plus(x: torch.Tensor) -> torch.Tensor:
    return x + 2

assert says(plus) == 2

mine = Library("mine", "FRAGMENT")
mine.define("direct(Tensor x) -> Tensor")
mine.define("more(Tensor x, int n) -> Tensor")
mine.define("more.two(Tensor x, int n, int m) -> Tensor")
mine.impl("direct", lambda x: x + 3, "CUDA")
assert says(torch.ops.mine.direct) == 3
mine.impl("direct", lambda x: x + 4, "CPU")
assert says(torch.ops.mine.direct) == 4
impl("mine::more", "cuda")(lambda x, n: x + n)
register_kernel("mine::more.two", "cuda", lambda x, n, m: x + n * m)
assert says(torch.ops.mine.more, 8) == 8 and says(torch.ops.mine.more, 3, 3) == 9
mine.define("fourth(Tensor x) -> Tensor")
implementing = Library("mine", "IMPL", "CUDA")
implementing.impl("fourth", lambda x: x + 11)
assert says(torch.ops.mine.fourth) == 11
del implementing
gc.collect()
try:
    torch.ops.mine.fourth(x)
except NotImplementedError as error:
    assert "mine::fourth" in str(error)
else:
    raise AssertionError("a kernel outlives its library")
print("right")
"""


def test_what_is_registered_for_cuda_runs(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    ran = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, env=ENVIRONMENT)
    assert ran.stdout == "right\n", ran.stderr
