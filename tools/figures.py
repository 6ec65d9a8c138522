#!/usr/bin/env python3
"""Tables that files of the tree decide: the figures of README.md, from bench/results, and the versions of docs/support.md, from what
sets them. tools/figures.py writes them again; tools/check_docs.py holds them."""
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
HEAD = "| On | What | Time | Beside | Times its speed |\n|---|---|---|---|---|\n"
GPU, CPU = "an H200", "two cores with AVX-512"
# (file, machine, program, shape, peer, what the row says)
ROWS = [
    ("2026-11-21-gpu", GPU, "gemm", "4096x4096x4096 bfloat16", "cuBLAS", "product, 4096 cubed, bfloat16"),
    ("2026-11-22-gpu", GPU, "softmax", "32768x4096 bfloat16", "copy by the driver", "softmax, 32768 x 4096, bfloat16"),
    ("2026-11-22-gpu", GPU, "rms_norm", "32768x4096 bfloat16", "copy by the driver", "RMS norm, 32768 x 4096, bfloat16"),
    ("2026-11-22-gpu", GPU, "per_token_cast", "16384x7168 bfloat16", "copy by the driver", "rows to float8 with scales, 16384 x 7168"),
    ("2026-11-22-cpu", CPU, "gemm", "2048x2048x2048 float32", "OpenBLAS float32", "product, 2048 cubed, float32"),
    ("2026-11-22-cpu", CPU, "flash_attention", "2x8/8x2048x64 float32", "torch attention float32 2 8 2048 64",
     "attention, 2 x 8 heads of 2048 x 64, float32"),
    ("2026-11-22-cpu", CPU, "softmax", "4096x4096 float32", "copy", "softmax, 4096 x 4096, float32"),
]  # fmt: skip
PEERS = {"copy by the driver": "the driver's copy of as many bytes", "copy": "a copy of as many bytes", "OpenBLAS float32": "OpenBLAS"}


def _row(file, machine, program, shape, peer, what):
    data = json.loads((ROOT / f"bench/results/{file}.json").read_text(encoding="utf-8"))
    if "cpu" in data:
        (row,) = (r for r in data["cpu"] if (r["program"], r["shape"], r["peer"]) == (program, shape, peer))
        seconds, ratio = row["own_seconds"], row["ratio"]
    else:
        (row,) = (r for r in data["programs"] if (r["program"], r["shape"]) == (program, shape))
        (beside,) = (p for p in row["peers"] if p["peer"] == peer)
        seconds, ratio = row["sustained"]["us"] * 1e-6, beside["ratio_sustained"]
    time = f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"
    name = PEERS.get(peer, "PyTorch" if peer.startswith("torch") else peer)
    return f"| {machine} | {what} | {time} | {name} | [{ratio:.2f}](bench/results/{file}.json) |\n"


def figures():
    """The table of README.md."""
    return HEAD + "".join(_row(*row) for row in ROWS)


def _first(pattern, file):
    return re.search(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)[1]


def support():
    """The table of docs/support.md."""
    gpu = json.loads((ROOT / "bench/results/2026-11-22-gpu.json").read_text(encoding="utf-8"))["machine"]
    pins = "tests/requirements.txt"
    rows = [
        ("System", "Debian 12, x86-64", "docs/decisions/005-dependencies.md"),
        ("Compiler of the build", f"g++ {_first(r'at_least (12) g', 'tools/setup')} or newer", "tools/setup"),
        ("CMake", f"{_first(r'at_least ([0-9.]+) cmake', 'tools/setup')} or newer", "tools/setup"),
        ("Python", f"{_first(r'requires-python = .>=([0-9.]+)', 'pyproject.toml')} or newer", "pyproject.toml"),
        ("Pythons that tests of the wheel run with", "3." + ", 3.".join(_first(r"for minor in ([0-9 ]+); do", "tools/test_wheel").split()), "tools/test_wheel"),
        ("C library that a wheel from Debian 12 needs", f"glibc {_first(r'^newest_glibc=([0-9.]+)', 'tools/test_wheel')}", "tools/test_wheel"),
        ("PyTorch", _first(r"^torch==(\S+)", pins), pins),
        ("NVRTC", _first(r"^nvidia-cuda-nvrtc==([0-9.]+)", pins), pins),
        ("GPU", f"{gpu['device']} ({gpu['arch']}), driver {gpu['driver']}", "bench/results/2026-11-22-gpu.json"),
    ]
    lines = [f"| {what} | {version} | [{file}]({'../' + file if not file.startswith('docs/') else file[5:]}) |\n" for what, version, file in rows]
    return "| What | Version | Set by |\n|---|---|---|\n" + "".join(lines)


TABLES = {"README.md": ("figures", figures), "docs/support.md": ("support", support)}


def with_table(page, text):
    """The text of a page with its table as the files have it."""
    mark, made = TABLES[page]
    marked = re.compile(f"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)", re.DOTALL)
    if not marked.search(text):
        raise ValueError(f"{page} has no place for its table: <!-- {mark} -->")
    return marked.sub(lambda match: match[1] + made() + match[2], text)


if __name__ == "__main__":
    for page in TABLES:
        path = ROOT / page
        path.write_text(with_table(page, path.read_text(encoding="utf-8")), encoding="utf-8")
