"""docs/cost_model.md and docs/tuner.md are what tools/model_pages.py writes, of predictions that the model makes today."""
import json
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


def test_how_good_the_model_is_for_random_products():
    """Of the newest measurements, to which no constant is fitted; one of two halves is no luckier than the other."""
    random = [row for row in ROWS if row["family"] == "random"]
    assert len(random) >= 300 and all(row["predicted"] for row in random)
    for own in (random, random[::2], random[1::2]):
        assert statistics.median(abs(row["predicted"] / row["us"] - 1) for row in own) <= 0.15
    found = model_pages.ranks_within_shapes(random)
    assert found["tiles"] >= 300 and found["all"] >= 0.9 and found["mean"] >= 0.8
    (_, _), (other, _), (ranked, least) = model_pages.sets_of_random(random).values()
    assert model_pages.ranks_within_shapes(other)["mean"] >= 0.8
    found = model_pages.ranks_within_shapes(ranked, least)
    assert found["shapes"] >= 30 and found["mean"] >= 0.9 and found["with ties"] >= 0.93


def test_newest_measurement_of_a_product_counts():
    """4096 cubed took 313 us before its ring had four slots; and older files have nothing of two or three stages."""
    rows = {(row["case"], row["choice"]): row["us"] for row in model_pages.measured() if row["family"] == "random"}
    assert rows["gemm float16 nt 4096x4096x4096", "128x160x64:2:256"] < 220
    older = {(row["case"], row["name"].removeprefix("tilewright ")) for row in model_pages._results("2026-11-28-random-5")}
    newer = {(row["case"], row["name"].removeprefix("tilewright ")) for f in ("2026-11-29-random", "2026-11-29-random-2") for row in model_pages._results(f)}
    again = {(f"gemm {o} {t} {m}x{n}x{k}", choice) for o, t, m, n, k, choice in
             (row["case"].split() for row in json.loads((model_pages.RESULTS / f"{model_pages.SLOTS}.json").read_text())["after"])}
    left = (rows.keys() & older) - newer - again
    assert left and all(int(choice.replace(":", "x").split("x")[3]) >= 4 for _, choice in left)


def test_rank_correlation_of_what_is_known():
    row = lambda case, us, predicted: {"family": "random", "case": case, "us": us, "predicted": predicted}  # noqa: E731
    right = [row("a", us, us * 3) for us in (1.0, 2.0, 4.0)] + [row("b", us, us) for us in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)]
    assert model_pages.ranks_within_shapes(right) == pytest.approx({"all": 1.0, "tiles": 9, "shapes": 2, "mean": 1.0, "median": 1.0, "with ties": 1.0})
    assert model_pages.ranks_within_shapes(right, 6)["shapes"] == 1
    wrong = [{**r, "predicted": 1 / r["us"]} for r in right]
    assert [model_pages.ranks_within_shapes(wrong)[k] for k in ("all", "mean", "with ties")] == pytest.approx([-1.0] * 3)
    assert model_pages.ranks_within_shapes([{**r, "predicted": 1.0} for r in right])["mean"] == 0.0, "equal predictions say nothing"


def test_times_within_two_percent_have_no_order():
    plain, tied = model_pages.ranks_of_shape([2.0, 1.0, 3.0], [10.0, 10.1, 20.0])
    assert plain == pytest.approx(0.5) and tied == pytest.approx(1.0)
    assert model_pages.ranks_of_shape([2.0, 1.0, 3.0], [10.0, 10.3, 20.0])[1] == pytest.approx(0.5)
    assert model_pages.ranks_of_shape([1.0, 2.0], [10.0, 10.1])[1] is None


@pytest.mark.parametrize("order, compiles, lost", [((1, 2, 3), 1, 2.0), ((3, 2, 1), 1, 1.5), ((3, 1, 2), 2, 1.0), ((9, 9, 9), 1, 2.0)])
def test_what_is_counted(order, compiles, lost):
    """Of three configurations that take 20, 10 and 15 us, by what the model expects."""
    choices = [(time, us, str(us)) for time, us in zip(order, (20.0, 10.0, 15.0))]
    assert model_pages.found_after(choices, compiles) == lost
