"""A pytest plugin: Tilewright under TileLang's name, an even sample of each file's cases, and a line of JSON for each case.
run.py sets the environment that it reads."""
import json
import os

import pytest

import tilewright
from tilewright import as_tilelang

CASES = int(os.environ["TILEWRIGHT_SUITE_CASES"])
REPORT = os.environ["TILEWRIGHT_SUITE_REPORT"]

if os.environ.get("TILEWRIGHT_SUITE_WITHOUT_GPU"):
    from tilewright.compat import without_gpu

    without_gpu.install("sm_90a")
as_tilelang.install(force=True)
assert tilewright.__version__


def _tell(**line):
    with open(REPORT, "a") as out:
        out.write(json.dumps(line) + "\n")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Keeps cases that are evenly spaced over the file."""
    if 0 < CASES < len(items):
        kept = {round(i * (len(items) - 1) / max(1, CASES - 1)) for i in range(CASES)}
        config.hook.pytest_deselected(items=[t for i, t in enumerate(items) if i not in kept])
        items[:] = [t for i, t in enumerate(items) if i in kept]
    _tell(sampled=len(items))


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed" and report.when == "setup":
        outcome = "skipped" if report.outcome == "skipped" else report.outcome
        _tell(case=report.nodeid, outcome=outcome, seconds=round(report.duration, 2), text=str(report.longrepr or "")[-6000:])
