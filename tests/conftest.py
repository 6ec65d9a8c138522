"""Tests of kernels at the shapes of models, on a GPU where there is one: pytest tests/moe -n 4 --run-benchmark.
TK_FULL_TEST=1 asks for more shapes.
Without a GPU they are small. tests/python has what every change must pass."""

import importlib.util
import os
import pathlib
import sys

import pytest

if importlib.util.find_spec("tilewright") is None:
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "build/release/python"))


def pytest_addoption(parser):
    parser.addoption("--run-benchmark", action="store_true", help="measures kernels too")


def pytest_configure(config):
    config.addinivalue_line("markers", "benchmark: measures, and checks nothing; skipped without --run-benchmark")
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker and "torch" not in sys.modules and "CUDA_VISIBLE_DEVICES" not in os.environ:
        count = len([d for d in os.listdir("/dev") if d.startswith("nvidia") and d[6:].isdigit()])
        if count:
            os.environ["CUDA_VISIBLE_DEVICES"] = str(int(worker[2:]) % count)


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--run-benchmark"):
        for item in items:
            if "benchmark" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="measures: --run-benchmark"))


@pytest.fixture
def device():
    import torch

    torch.manual_seed(0)
    return "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture
def tokens_of(device):
    """Of a number of tokens, as many as suit the device."""
    return lambda count: count if device == "cuda" else min(count, 48)


@pytest.fixture
def measure(device, request, capsys):
    """Prints what a call takes, and the bytes of its tensors a second."""

    def measured(fn, *args, **kwargs):
        from tilewright.kernels.testing import benchmark_kernel

        brief = {} if device == "cuda" else {"warmup": 1, "rep": 1}
        found = benchmark_kernel(fn, args, kwargs, **brief)
        with capsys.disabled():
            print(f"\n{request.node.name}: {found.mean * 1e3:.1f} us, {found.gbps:.0f} GB/s")
        assert found.mean > 0

    return measured
