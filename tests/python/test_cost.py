"""What a program will cost, asked from Python: predictions as objects, texts, pictures."""
import dataclasses
import json

import pytest
import tilewright as tw
import tilewright.language as T
from tilewright import cost


@T.prim_func
def scaled(A: T.Tensor((4096, 4096), "float32"), f: T.float32):
    with T.Kernel(256, threads=256) as b:
        for i, j in T.Parallel(16, 4096):
            A[b * 16 + i, j] = T.exp(A[b * 16 + i, j] * f)


def test_a_prediction_says_what_it_is_made_of():
    found = cost.predict(scaled, "H200")
    launch = found.launches[0]
    assert found.us == launch["us"] and found.limit in cost.UNITS and set(found.utilization) == set(cost.UNITS)
    assert found.us >= 2 * 4096 * 4096 * 4 / 4.2e6 and launch["tiles"] == 256 and 0 < launch["last_wave"] <= 1
    text = str(found)
    assert text.startswith(f"scaled on an H200 (fitted to measurements): about {found.us:.3g} us; what decides: {cost.UNITS[found.limit]}")
    assert all(unit in text for unit in cost.UNITS.values())
    assert repr(found) == f"<scaled on an H200: about {found.us:.3g} us>" and json.dumps(found.json)
    picture = found.picture()
    assert picture.svg.count('class="g"') == len(cost.UNITS) and "How busy the units are: scaled" in picture.svg
    assert "<svg" in found._repr_html_() and "<pre>" in found._repr_html_()


def test_of_symbols():
    n = T.dynamic("n")

    @T.prim_func
    def shifted(A: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 256), threads=256) as b:
            for i in T.Parallel(256):
                A[b * 256 + i] = A[b * 256 + i] + 1

    unknown = cost.predict(shifted)
    assert unknown.us is None and unknown.unknown == ["n"] and unknown.utilization == {} and unknown.limit is None
    assert str(unknown).endswith("nothing says what n is")
    small, large = (cost.predict(shifted, n=size).us for size in (1 << 20, 1 << 24))
    assert large > 5 * small
    for value, code in {"4": "TW4010", 1.5: "TW4010", 2**31: "TW4010", 2**32 + 10: "TW4010", 2**80: "TW4010", -5: "TW4016"}.items():
        with pytest.raises(tw.TilewrightError) as error:
            cost.predict(shifted, n=value)
        assert error.value.code == code and str(value) in str(error.value)
    with pytest.raises(tw.CompileError, match="has no dimension 'm' that a call gives"):
        cost.predict(shifted, m=4)


def test_machines_are_data():
    known = cost.machines()
    assert list(known) == ["H200", "H100", "A100", "L40S", "B200"] and known["B200"].basis.startswith("on paper")
    slow = dataclasses.replace(known["A100"], memory_bytes=1e5)
    assert slow.words() == "A100 memory_bytes=100000.0"
    assert cost.predict(scaled, slow).us > 10 * cost.predict(scaled, "A100").us and cost.predict(scaled, slow).limit == "memory"
    assert cost.predict(scaled, slow).machine == slow
    assert cost.machine("A100 memory_bytes=1e5") == slow and cost.machine("sm_89").name == "L40S"
    with pytest.raises(ValueError, match="there is no machine 'H300'"):
        cost.machine("H300")
    with pytest.raises(ValueError, match="there is no machine 'mine'"):
        cost.predict(scaled, dataclasses.replace(slow, name="mine"))
    with pytest.raises(ValueError, match="predict\\(\\) of function"):
        cost.predict(lambda: 0)


def test_explain_with_a_prediction():
    kernel = tw.compile(scaled, engine="interpreter")
    plain, predicted = kernel.explain("sm_90a"), kernel.explain("sm_90a", predict=True)
    assert predicted == f"{cost.predict(kernel, 'sm_90a')}\n\n{plain}" and predicted.json["prediction"] == cost.predict(kernel, "H200").json
    assert kernel.explain("sm_90a", as_json=True, machine="A100")["prediction"]["machine"]["name"] == "A100"
    assert "prediction" not in kernel.explain("sm_90a", as_json=True)
