"""Linear attention of tilewright.ops by chunks of 64 positions, beside PyTorch in float64: lengths and extents that suit no tile,
strides, shared heads of keys, decays from none to all at once; which calls are computed so, and by which instructions."""

import pytest

torch = pytest.importorskip("torch")

import tilewright.ops as ops  # noqa: E402
from tilewright.ops import recurrences  # noqa: E402
from tilewright.ops.calls import Place  # noqa: E402
from tilewright.ops.programs import linear_chunks as programs  # noqa: E402
from tilewright.ops.programs import state_spaces  # noqa: E402

UNIT = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}


def given(batch, length, heads, key_heads, keys, values, decays="", gates=False, begins=False, g=(-1, 0), beta=(0, 1), kind="float16"):
    """(q, k, v, decay, beta, state) of linear attention, q to v with heads before positions in memory."""
    make = torch.Generator().manual_seed(length + keys)

    def between(low, high, *extents):
        return torch.rand(extents, generator=make) * (high - low) + low

    q, k, v = (
        torch.randn(batch, h, length, n, generator=make).to(getattr(torch, kind)).transpose(1, 2)
        for h, n in ((key_heads, keys), (key_heads, keys), (heads, values))
    )
    k = torch.nn.functional.normalize(k.float(), dim=-1).to(k.dtype)
    decay = between(*g, batch, length, heads, *([keys] if decays == "key" else [])) if decays else None
    return (
        *(q, k, v, decay, between(*beta, batch, length, heads) if gates else None),
        torch.randn(batch, heads, keys, values, generator=make) if begins else None,
    )


def expect_chunks(tensors, corrects, result=None, scale=0.25):
    q, _, v, _, _, begin = tensors
    made = torch.full(v.shape, float("nan"), dtype=result or v.dtype)
    state = torch.full((v.shape[0], v.shape[2], q.shape[-1], v.shape[-1]), float("nan"))
    recurrences.chunked(*tensors, corrects, scale, made, state)
    wide = [None if t is None else t.double() for t in tensors]
    outputs, ends = recurrences._reference(*wide, corrects, scale, "float32", "")
    allowed = (16 if corrects else 8) * UNIT[v.dtype]
    assert torch.allclose(made.double(), outputs, rtol=allowed, atol=allowed)
    assert torch.allclose(state.double(), ends, rtol=allowed, atol=allowed)


CASES = {
    "none": (dict(batch=1, length=70, heads=2, key_heads=1, keys=16, values=20), False),
    "head": (dict(batch=1, length=64, heads=2, key_heads=2, keys=16, values=33, decays="head", begins=True, kind="bfloat16"), False),
    "space": (dict(batch=2, length=65, heads=2, key_heads=1, keys=7, values=9, decays="head", gates=True, begins=True), False),
    "key": (dict(batch=1, length=130, heads=2, key_heads=1, keys=20, values=40, decays="key", begins=True), False),
    "all at once": (dict(batch=1, length=67, heads=1, key_heads=1, keys=16, values=16, decays="key", begins=True, g=(-20, -19)), False),
    "never": (dict(batch=1, length=67, heads=1, key_heads=1, keys=16, values=16, decays="key", g=(0, 0)), False),
    "delta": (dict(batch=1, length=130, heads=2, key_heads=1, keys=20, values=40, gates=True, begins=True), True),
    "gated": (dict(batch=1, length=70, heads=2, key_heads=2, keys=16, values=20, decays="head", gates=True, kind="bfloat16"), True),
    "replaced": (dict(batch=1, length=128, heads=1, key_heads=1, keys=16, values=16, gates=True, begins=True, beta=(1, 1)), True),
    "unwritten": (dict(batch=1, length=3, heads=1, key_heads=1, keys=16, values=16, gates=True, begins=True, beta=(0, 0)), True),
    "gated at once": (
        dict(batch=1, length=67, heads=1, key_heads=1, keys=16, values=16, decays="head", gates=True, begins=True, g=(-20, -19)),
        True,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_chunks_on_the_interpreter(name, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "interpreter")
    extents, corrects = CASES[name]
    expect_chunks(given(**extents), corrects, torch.float32 if name == "space" else None)


@pytest.mark.parametrize("name", ["space", "all at once", "gated"])
def test_chunks_in_the_simulator(name, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "simulator")
    extents, corrects = CASES[name]
    expect_chunks(given(**extents), corrects, torch.float32 if name == "space" else None)


@pytest.mark.parametrize("decays", ["head", "key"])
def test_states_are_forgotten_whole_and_numbers_that_are_none_stay(decays, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "interpreter")
    tensors = given(1, 80, 1, 1, 16, 16, decays, begins=True)
    tensors[3][:, 5::7] = -torch.inf
    expect_chunks(tensors, False)
    tensors[3][:, 70] = torch.nan
    made, state = torch.zeros(1, 80, 1, 16), torch.zeros(1, 1, 16, 16)
    recurrences.chunked(*tensors, False, 1.0, made, state)
    assert made[:, :64].isfinite().all() and made[:, 70:].isnan().all() and state.isnan().all()


def test_which_calls_go_by_chunks(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "simulator")
    found = []
    for name in ("walked", "chunked"):
        monkeypatch.setattr(recurrences, name, lambda *_, name=name: found.append(name))
    q = torch.zeros(1, 33, 2, 16, dtype=torch.float16)
    for x in (q, q[:, :32], q.float(), torch.zeros(1, 33, 2, 260, dtype=torch.float16)):
        ops.retention(x, x, x, x[..., 0])
    ops.gla_decode(*[q[:, 0]] * 4, torch.zeros(1, 2, 16, 16))
    ops.mamba2(q, q[..., 0].float(), torch.zeros(2), q, q)
    assert found == ["chunked", "walked", "walked", "walked", "walked", "chunked"]


@pytest.fixture
def without_registers(monkeypatch):
    """Pages say nothing of registers, and are made in a tenth of the time."""
    monkeypatch.setenv("TILEWRIGHT_NVRTC", "/nowhere")


def on_tensor_cores(family, **options):
    """That every product of the program is by wgmma, and nothing of a thread lies in memory."""
    page = family.program(**options).program.explain("sm_90a", False, {})
    assert "wgmma.mma_async" in page
    for word in ("multiply-adds", "mma.sync", "lives in shared memory", "waited for at once"):
        assert word not in page


@pytest.mark.parametrize("threads, keys, columns", [(128, 64, 64), (256, 128, 64), (256, 128, 32), (256, 256, 32)])
def test_chunks_are_multiplied_on_tensor_cores(threads, keys, columns, without_registers):
    shared = dict(x="bfloat16", keys=keys)
    walk = dict(result="bfloat16", begins=True, columns=columns, state="float32", stages=2, threads=threads, **shared)
    for decays, gates, corrects in (("head", False, True), ("head", True, False), ("key", False, False)):
        on_tensor_cores(programs.attend, decays=decays, gates=gates, corrects=corrects, **walk)
    on_tensor_cores(programs.weights, decay="float32", threads=512 if keys > 128 else 256, **shared)
    on_tensor_cores(programs.corrections, decays="head", columns=128, threads=128, **shared)


@pytest.mark.parametrize("arch, keys, columns", [("sm_80", 128, 64), ("sm_86", 64, 64), ("sm_120a", 64, 64)])
def test_blocks_have_room_for_chunks(arch, keys, columns, without_registers, monkeypatch):
    walk = dict(x="float16", result="float32", keys=keys, begins=True, columns=columns, state="float32", stages=2)
    walk["threads"] = 256 if keys > 64 else 128
    for corrects, decays in ((True, "head"), (False, "key")):
        page = programs.attend.program(decays=decays, gates=False, corrects=corrects, **walk).program.explain(arch, False, {})
        assert "mma.sync" in page and "multiply-adds" not in page
    found = []
    for name in ("walked", "chunked"):
        monkeypatch.setattr(recurrences, name, lambda *_, name=name: found.append(name))
    monkeypatch.setattr(recurrences, "place_of", lambda x: Place("cuda", arch))
    monkeypatch.setattr(recurrences, "on_gpu", lambda x: True)
    for n in (keys, keys + 1):
        ops.gla(*[torch.zeros(1, 33, 1, n, dtype=torch.float16)] * 4)
    assert found == ["chunked", "walked"]


def test_parts_of_state_spaces_are_multiplied_on_tensor_cores(without_registers):
    shared = dict(x="bfloat16", step="float32", whole=False, stages=2, threads=128)
    on_tensor_cores(state_spaces.chunk_state, marked=False, rows=64, columns=128, depth=64, **shared)
    on_tensor_cores(state_spaces.chunk_scan, product="float32", state="float32", columns=64, depth=128, **shared)
