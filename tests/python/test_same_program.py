"""Both frontends record the same program: the text of each twin is that of its C++ original."""
import pathlib
import subprocess

import pytest
import twins
import tilewright.language as T
from tilewright import _native

PRINTER = pathlib.Path(_native.__file__).parents[2] / "tests/print_examples"
ORIGINALS = [
    ("gemm", "17x33x5 float32 dynamic", twins.matmul, ("M", "N", "K", 32, 64, 16, "float32")),
    ("gemm", "127x65x33 bfloat16", twins.matmul, (127, 65, 33, 32, 64, 16, "bfloat16")),
    ("gemm_relu", "17x33x5 float16 dynamic", twins.matmul_relu, ("M", "N", "K", 32, 64, 16, "float16")),
    ("add", "127x65 bfloat16 dynamic", twins.add, ("M", "N", 16, 64, "bfloat16")),
    ("gated_residual", "17x33 float16", twins.gated_residual, (17, 33, 16, 64, "float16")),
    ("transpose", "2x17x33 uint8 dynamic", twins.batched_transpose, ("B", "M", "N", 32, 32, "uint8")),
    ("cumsum", "17x33 int32", twins.cumulative_sum, (17, 33, 8, 32, "int32")),
    ("cumsum", "17x33 bfloat16 dynamic", twins.cumulative_sum, ("M", "N", 8, 32, "bfloat16")),
    ("histogram", "8255 33 bins dynamic", twins.histogram, ("N", 33, 4, 100)),
    ("softmax", "", twins.softmax, ("M", 65, 8, "float16")),
    ("online_softmax", "", twins.online_softmax, ("M", "N", 8, 32, "float32")),
    ("rms_norm", "", twins.rms_norm, ("M", 65, 4, "bfloat16")),
    ("rms_norm_silu", "", twins.rms_norm_silu, ("M", "C", 4, 32, "float32")),
    ("layer_norm", "", twins.layer_norm, ("M", 65, 4, "float32")),
    ("topk_gate", "", twins.topk_gate, (17, 72, 6, 8)),
    ("sinkhorn", "", twins.sinkhorn, (17, 4, 10, 8)),
    ("int4_gemm", "", twins.matmul_packed_int4, ("M", "N", 33, 16, 16, 32, 8, "float32")),
    ("flash_attention", "", twins.flash_attention, ("b", 1, 1, "q", "k", 16, 16, 16, False, "float32")),
    ("flash_attention", "", twins.flash_attention, ("b", 2, 1, "q", "k", 33, 16, 32, False, "bfloat16")),
    ("expert_mapping", "", twins.expert_mapping, ("T", 6, 72, "P", 16, 3)),
]


@pytest.fixture(scope="module")
def originals():
    if not PRINTER.exists():
        pytest.skip("the program that prints the C++ examples is built in the build tree only")
    found = {}
    for part in subprocess.run([PRINTER], capture_output=True, text=True, check=True).stdout.split("### ")[1:]:
        head, _, text = part.partition("\n")
        found.setdefault(head.split(" ")[0], []).append(text.strip())
    return found


def program(twin, arguments):
    symbols = {"b": "batch", "q": "queries", "k": "keys"}
    return twin(*(T.dynamic(symbols.get(a, a)) if len(str(a)) == 1 and isinstance(a, str) else a for a in arguments)).script().strip()


@pytest.mark.parametrize("example, note, twin, arguments", ORIGINALS, ids=lambda v: getattr(v, "__name__", str(v))[:30])
def test_same_text(originals, example, note, twin, arguments):
    text = program(twin, arguments)
    assert text in originals[example], f"no original of {example} is\n{text}\nbut the first is\n{originals[example][0]}"


def test_there_are_twelve():
    assert len({o[2] for o in ORIGINALS}) >= 12
