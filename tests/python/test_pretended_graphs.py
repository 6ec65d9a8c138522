"""CUDA graphs without a GPU: what a capture has runs again at a replay, on the same tensors, and what it cannot have is refused."""
import json
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}

HEAD = """
import tilewright as tw
tw.without_gpu()
import torch
import tilewright.language as T

@tw.jit
def plus_one(A):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    B = T.empty((N,), "float32")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(N):
            B[i] = A[i] + 1
    return B

@T.prim_func
def doubled(A: T.Tensor((4,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(4):
            A[i] = A[i] * 2

def zeros(*shape):
    return torch.zeros(*shape or (4,), device="cuda")

def captured(function):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = function()
    return graph, made
"""

PROGRAMS = {
    "kernels and operations": """
x, count, in_place = zeros(), zeros(1), tw.compile(doubled)
def body():
    assert torch.cuda.is_current_stream_capturing()
    y = plus_one(x * 2)
    in_place(y)
    count.add_(1)
    scratch = torch.empty(4, device="cuda")
    torch.add(y, count, out=scratch)
    start = torch.tensor([5.0, 5.0], device="cuda")
    start += 1
    return y, scratch.view(2, 2).sum(0), start
graph, (y, sums, start) = captured(body)
assert not torch.cuda.is_current_stream_capturing()
assert count.item() == 0 and x.tolist() == [0] * 4  # a capture runs nothing
for n in (1, 2, 3):
    x.fill_(n)
    graph.replay()
    assert count.item() == n and y.tolist() == [4 * n + 2] * 4 and sums.tolist() == [2 * (5 * n + 2)] * 2 and start.tolist() == [6, 6]
assert plus_one(x).tolist() == [4] * 4  # no graph any more
""",
    "what kernels write": """
x, in_place = torch.ones(4, device="cuda"), tw.compile(doubled)
graph, _ = captured(lambda: in_place(x))
assert x.tolist() == [1] * 4
graph.replay(); graph.replay()
assert x.tolist() == [4] * 4
""",
    "memory that tensors have at the capture": """
x, y = zeros(), zeros()
there = x.view(4)
def body():
    x.add_(1)
    x.unsqueeze_(0)
    y.add_(x[0])
graph, _ = captured(body)
x.data = torch.full((4,), 9.0)
graph.replay(); graph.replay()
assert there.tolist() == [2] * 4 and y.tolist() == [3] * 4 and x.tolist() == [9] * 4
""",
    "functions of the library": """
from tilewright import ops
x = torch.ones(64, device="cuda")
ops.relu(x); ops.relu(x)  # the second by the table
graph, y = captured(lambda: ops.relu(x - 3))
x.fill_(10.0)
graph.replay()
assert y.tolist() == [7] * 64 and ops.relu(x).tolist() == [10] * 64
""",
    "an operator of torch.library": """
@torch.library.custom_op("mine::twice", mutates_args=("x",), device_types="cuda")
def twice(x: torch.Tensor) -> None:
    x *= 2
x = torch.ones(4, device="cuda")
graph, _ = captured(lambda: twice(x))
assert x.tolist() == [1] * 4
graph.replay()
assert x.tolist() == [2] * 4
""",
    "under torch.compile and torch.inference_mode": """
x = zeros()
step = torch.compile(lambda: x * (1 + 2.0**-12) + x)
with torch.inference_mode():
    graph, y = captured(step)
other, z = captured(step)
x.fill_(1 + 2.0**-12)
graph.replay(); other.replay()
assert torch.equal(y, x * (1 + 2.0**-12) + x) and torch.equal(z, step()) and y[0] != 0
""",
    "random numbers": """
torch.manual_seed(1)
graph, y = captured(lambda: torch.rand(4, device="cuda"))
graph.replay(); first = y.tolist()
graph.replay(); second = y.tolist()
torch.manual_seed(1)
assert [first, second] == [torch.rand(4).tolist(), torch.rand(4).tolist()]
""",
    "tfloat32 as at the capture": """
x = torch.full((4, 4), 1 + 2.0**-12, device="cuda")
torch.backends.cuda.matmul.allow_tf32 = True
graph, y = captured(lambda: x @ x)
torch.backends.cuda.matmul.allow_tf32 = False
graph.replay()
assert y[0, 0].item() == 4 and not torch.backends.cuda.matmul.allow_tf32 and (x @ x)[0, 0].item() > 4
""",
    "graphed callables": """
torch.manual_seed(0)
module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).cuda()
x = torch.randn(3, 4, device="cuda", requires_grad=True)
def gradients(function):
    module.zero_grad(); x.grad = None
    out = function(x)
    out.square().sum().backward()
    return [out.detach().clone(), x.grad.clone(), *(p.grad.clone() for p in module.parameters())]
plain = gradients(module)
graphed = torch.cuda.make_graphed_callables(module, (torch.randn(3, 4, device="cuda", requires_grad=True),))
for _ in range(2):
    assert all(map(torch.equal, gradients(graphed), plain))
""",
    "capture_begin, capture_end, reset": """
x, graph = zeros(), torch.cuda.CUDAGraph()
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    graph.capture_begin(pool=torch.cuda.graph_pool_handle())
    x += 1
    graph.capture_end()
graph.replay()
graph.reset()
with torch.cuda.graph(graph, pool=graph.pool(), stream=stream):
    x += 10
graph.replay()
assert x.tolist() == [11] * 4
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        x += 1
        raise KeyError("mine")
except KeyError:
    pass
assert x.tolist() == [11] * 4 and not torch.cuda.is_current_stream_capturing()
""",
    "tensors around functions under @jit": """
scale = torch.tensor([3.0])
@tw.jit
def scaled(A):
    A: T.Tensor((4,), "float32")
    B = T.empty((4,), "float32")
    factor = float(scale.shape[0])
    with T.Kernel(1, threads=32):
        for i in T.Parallel(4):
            B[i] = A[i] * factor
    return B
x = zeros()
graph, y = captured(lambda: scaled(x))
x.fill_(2)
graph.replay()
assert y.tolist() == [2] * 4
""",
    "what is refused": """
x = torch.ones(4, device="cuda")
def refused(function, words):
    try:
        function()
    except RuntimeError as error:
        assert error.code == "TW1080" and words in str(error), str(error)
    else:
        raise AssertionError(words)
    assert not torch.cuda.is_current_stream_capturing()
for body in (lambda: x.sum().item(), lambda: bool(x[0] > 0), lambda: x[x > 0], lambda: torch.equal(x, x)):
    refused(lambda: captured(body), "asks for values of tensors")
refused(lambda: captured(x.tolist), "reads the values of a tensor by tolist()")
refused(lambda: captured(x.numpy), "reads the values of a tensor by numpy()")
refused(lambda: captured(lambda: captured(lambda: x + 1)), "a capture begins in a capture")
graph, _ = captured(lambda: x + 1)
refused(lambda: captured(graph.replay), "a replay in a capture")
refused(torch.cuda.CUDAGraph().replay, "replay() without a capture before it")
refused(lambda: graph.capture_begin(), "has been captured before")
refused(graph.raw_cuda_graph, "there is no cudaGraph_t")
assert x.tolist() == [1] * 4
""",
}


ALL = """
import json, pathlib, runpy, traceback
said = {}
for file in sorted(pathlib.Path("programs").iterdir()):
    try:
        runpy.run_path(str(file))
        said[file.stem] = ""
    except Exception:
        said[file.stem] = traceback.format_exc()
pathlib.Path("said.json").write_text(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What went wrong in each program; all run in one process."""
    folder = tmp_path_factory.mktemp("graphs")
    (folder / "programs").mkdir()
    for name, program in PROGRAMS.items():
        (folder / "programs" / f"{name}.py").write_text(HEAD + program)
    ran = subprocess.run([sys.executable, "-c", ALL], cwd=folder, capture_output=True, text=True, env=ENVIRONMENT)
    assert ran.returncode == 0, ran.stderr
    return json.loads((folder / "said.json").read_text())


@pytest.mark.parametrize("name", PROGRAMS)
def test_graphs(name, said):
    assert said[name] == ""
