"""docs/cost_model.md and docs/tuner.md are what tools/model_pages.py writes, of predictions that the model makes today."""
import os
import statistics
import sys

import pytest
from pages import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import model_pages  # noqa: E402

ROWS = model_pages.rows_of_pages()


def test_predictions_are_the_models():
    """Every 25th; TILEWRIGHT_UPDATE=1 asks about all of them again."""
    if os.environ.get("TILEWRIGHT_UPDATE"):
        model_pages.main()
    kept = {(row["family"], row["case"], row["choice"]): row for row in model_pages.rows_of_pages()}
    asked = model_pages.measured()[::25]
    assert len(asked) > 40
    for row in model_pages.predicted(asked):
        assert kept[row["family"], row["case"], row["choice"]] == row, "TILEWRIGHT_UPDATE=1 pytest tests/python/test_model_pages.py"


def test_pages_are_up_to_date():
    for path, text in model_pages.pages().items():
        if os.environ.get("TILEWRIGHT_UPDATE"):
            path.write_text(text)
        assert path.read_text() == text, "TILEWRIGHT_UPDATE=1 pytest tests/python/test_model_pages.py"


def test_every_far_prediction_has_a_cause():
    assert model_pages.without_cause(ROWS) == []
    far = [{"family": "sweep", "case": "bf16:nt 8x8x8", "choice": "8x8x8", "us": 1.0, "predicted": 2.0}]
    assert model_pages.without_cause(far) == far, "a family that is right has none, and would be told"


def test_how_good_the_model_is():
    off = [abs(row["predicted"] / row["us"] - 1) for row in ROWS if row["predicted"]]
    assert len(off) >= 300 and statistics.median(off) <= 0.15
    lost = [model_pages.found_after(choices, model_pages.COMPILES) for choices in model_pages.cases_of_tuner(ROWS).values() if len(choices) > model_pages.COMPILES]
    assert len(lost) >= 60 and sum(x <= model_pages.NEAR for x in lost) >= 0.9 * len(lost)


@pytest.mark.parametrize("order, compiles, lost", [((1, 2, 3), 1, 2.0), ((3, 2, 1), 1, 1.5), ((3, 1, 2), 2, 1.0), ((9, 9, 9), 1, 2.0)])
def test_what_is_counted(order, compiles, lost):
    """Of three configurations that take 20, 10 and 15 us, by what the model expects."""
    choices = [(time, us, str(us)) for time, us in zip(order, (20.0, 10.0, 15.0))]
    assert model_pages.found_after(choices, compiles) == lost
