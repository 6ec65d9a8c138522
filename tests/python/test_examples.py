"""The Python examples: each runs by itself, is right, and says its bound. gemm.py is in test_documents.py."""
import runpy
import sys

import numpy as np
import pytest
from test_documents import ROOT

FILES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.stem not in ("bounds", "gemm"))
sys.path.insert(0, str(ROOT / "examples"))
from bounds import within  # noqa: E402


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_example(path, monkeypatch, capsys):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "cpu")
    monkeypatch.setattr(sys, "argv", [str(path)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    written = capsys.readouterr().out
    assert ended.value.code == 0, written
    assert "is allowed" in written and "WRONG" not in written


def test_there_are_fifteen_and_all_are_listed():
    listed = (ROOT / "examples/README.md").read_text()
    assert len(FILES) == 15 and all(f"[{path.name}]({path.name})" in listed for path in FILES)


@pytest.mark.parametrize("got, wanted, bound, right", [
    ([1.0], [1.0], 0, True),
    ([1.1], [1.0], 0.2, True),
    ([1.3], [1.0], 0.2, False),
    ([np.nan], [1.0], 9, False),
    ([np.nan], [np.nan], 0, True),
    ([1.0, 2.0], [1.0], 9, False),
    ([], [], 9, False),
])  # fmt: skip
def test_within(got, wanted, bound, right, capsys):
    if np.shape(got) == np.shape(wanted) and np.size(got):
        assert within("x", got, wanted, bound) == right
        assert ("WRONG" in capsys.readouterr().out) == (not right)
    else:
        with pytest.raises(AssertionError):
            within("x", got, wanted, bound)
