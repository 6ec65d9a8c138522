"""Every function of tilewright.ops that tests/python/family_cases.py has a call of: right on this GPU, and how long it takes
beside PyTorch and beside a copy of as many bytes.

python bench/gpu/families.py [--json FILE] [--seconds 200] [--side 12] [--only TEXT]... [--no-times]

Needs a GPU, torch and Tilewright. First `--side` processes go through the functions, compile them and compare them with
PyTorch, at a small shape and at a large one; then one process takes times at the large shape, as in docs/measuring.md: 256
MB written before each call, contestants in turns, medians. What the limit leaves no time for is named. The status is 1 if a
result is wrong."""

import argparse
import datetime
import functools
import json
import math
import os
import sys
import time

_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [_HERE, os.path.join(_HERE, "../../tests/python")]

from processes import Rows, cases_in, in_processes  # noqa: E402
from turns import FLUSH_BYTES, medians  # noqa: E402

_TIES = ("arg", "sort", "topk", "kthvalue", "median", "cummax", "cummin", "indices", "floor_divide", "remainder", "fmod", "div")


_ROUNDED = ("nsa_topk", "moe_topk")  # places by computed scores, of which neighbours may be equal but for rounding
# What their documents round on the way, the reference has to round as well: sums with large weights behind it tell.
_ROUNDED_ON_THE_WAY = ("engram_gate_conv", "ssd_chunk_state")


def several(x):
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def dtype_of(name, case):
    if any(word in name for word in _TIES) and "float32" in case.dtypes:
        return "float32"
    return next(d for d in ("bfloat16", "float16", "float32", "int32") if d in case.dtypes)


def call_of(name, case, size, device="cuda"):
    """(arguments, named arguments, the same in float32, the dtype)"""
    import torch
    from family_cases import Draw

    kind = dtype_of(name, case)
    arguments, named = case.make(Draw(f"{name} {size}", getattr(torch, kind if kind != "int32" else "float32"), device), size)

    def wide(x):
        return x.float() if isinstance(x, torch.Tensor) and x.is_floating_point() and x.element_size() == 2 else x

    return arguments, named, [wide(x) for x in arguments], {n: wide(x) for n, x in named.items()}, kind


def error_of(got, expected, tolerance, kind, differ=0.0, sums=False):
    """The largest error in units of what is allowed, or a word. differ: the share of places that may. sums: results are sums, of
    which one near 0 is as far off as the others: what is allowed goes by their root mean square too."""
    import torch

    unit = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
    got, expected, worst = several(got), several(expected), 0.0
    if len(got) != len(expected):
        return f"{len(got)} results, not {len(expected)}"
    for y, wanted in zip(got, expected):
        if y.shape != wanted.shape:
            return f"shape {tuple(y.shape)}, not {tuple(wanted.shape)}"
        if not (wanted.is_floating_point() or wanted.is_complex()):
            wrong = (y.to(wanted.dtype) != wanted).sum().item()
            if wrong > differ * y.numel():
                return f"{wrong} of {y.numel()} differ"
            continue
        y, wanted = (torch.view_as_real(t) if t.is_complex() else t.float() for t in (y, wanted))
        narrow = unit.get(getattr(torch, kind), 0)
        finite = wanted.nan_to_num(0, 0, 0)
        usual = max(1.0, finite.square().mean().sqrt().item()) if sums and finite.numel() else 1.0
        allowed = (max(tolerance, 8 * narrow) + 1e-6) * (usual + finite.abs())
        off = torch.where((y == wanted) | (y.isnan() & wanted.isnan()), 0, (y - wanted).abs() / allowed)
        worst = max(worst, float("inf") if off.isnan().any() else off.max().item() if off.numel() else 0.0)
    return worst


def check(names, seconds, rows, device="cuda"):
    """Tells `rows` of each function. Without a GPU (device "cpu") the small shapes alone."""
    import torch
    import tilewright.ops as ops
    from family_cases import CASES, LARGE
    from tilewright.ops import _FAMILIES

    of_elements = _FAMILIES["elementwise"].split()
    torch.backends.cudnn.allow_tf32 = False  # what is compared with has all bits of float32
    begin = time.perf_counter()
    for name in names:
        if time.perf_counter() - begin > seconds:
            break
        rows.begin(name)
        case, row = CASES[name], {"name": name}
        for size in (1, LARGE) if device == "cuda" else (1,):
            try:
                arguments, named, wide, wide_named, kind = call_of(name, case, size, device)
                row["dtype"] = kind
                got = getattr(ops, name)(*arguments, **named)
                if device == "cuda":
                    torch.cuda.synchronize()
                given, also = (arguments, named) if name in _ROUNDED_ON_THE_WAY else (wide, wide_named)
                found = error_of(
                    got, case.reference(*given, **also), case.tolerance, kind, 1e-3 if name in _ROUNDED else 0.0,
                    sums=name not in of_elements,
                )  # fmt: skip
            except Exception as error:  # one function says nothing of the next
                found = f"{type(error).__name__}: {error}"[:600]
                if "CUDA error" in found or "illegal" in found:
                    row["small" if size == 1 else "large"] = found
                    rows.found(row)
                    os._exit(3)  # the device's context is gone
            row["small" if size == 1 else "large"] = found
            del found
            if device == "cuda":
                torch.cuda.empty_cache()
        rows.found(row)


def checked(names, side, seconds):
    """{name: row} of all processes."""
    command = [sys.executable, os.path.abspath(__file__)]
    return in_processes(command, names, side, seconds + 5, key="name", lost="large", spare=5)


def bytes_of(tensors):
    import torch

    return sum(t.numel() * t.element_size() for t in tensors if isinstance(t, torch.Tensor))


def times(rows, seconds):
    """Adds the times to the rows; returns the names that there was no time for."""
    import torch
    import tilewright.ops as ops
    from family_cases import CASES, LARGE

    begin, left = time.perf_counter(), []
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    for name, row in rows.items():
        if time.perf_counter() - begin > seconds:
            left.append(name)
            continue
        if not isinstance(row.get("large"), float):
            continue
        case = CASES[name]
        arguments, named, _, _, _ = call_of(name, case, LARGE)
        ours, theirs = getattr(ops, name), case.reference
        made = ours(*arguments, **named)
        row["bytes"] = bytes_of(arguments) + bytes_of(several(made))
        one = torch.empty(max(row["bytes"] // 2, 16), dtype=torch.uint8, device="cuda")
        contestants = {
            "ours_us": functools.partial(ours, *arguments, **named),
            "torch_us": functools.partial(theirs, *arguments, **named),
            "copy_us": functools.partial(torch.empty_like(one).copy_, one),
        }
        try:
            row.update(medians(contestants, flush))
        except Exception as error:
            row["times"] = f"{type(error).__name__}: {error}"[:300]
        del arguments, named, made, one, contestants
        torch.cuda.empty_cache()
    return left


def geometric(values):
    return round(math.exp(sum(map(math.log, values)) / len(values)), 3) if values else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json")
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--side", type=int, default=12)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--no-times", action="store_true")
    for name in ("--cases", "--rows"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--device", default="cuda", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cases:
        return check(cases_in(options.cases), options.seconds, Rows(options.rows), options.device)
    begin = time.perf_counter()
    import torch
    from family_cases import CASES

    names = [n for n in CASES if not options.only or any(text in n for text in options.only)]
    rows = checked(names, options.side, options.seconds * (0.95 if options.no_times else 0.55))
    without = [n for n in names if n not in rows]
    left = [] if options.no_times else times(rows, options.seconds - (time.perf_counter() - begin) - 3)

    def is_right(found):
        return isinstance(found, (int, float)) and found <= 1

    wrong = {
        n: {k: row.get(k) for k in ("small", "large")}
        for n, row in rows.items()
        if not (is_right(row.get("small")) and is_right(row.get("large")))
    }
    timed = [row for row in rows.values() if "ours_us" in row]
    summary = {
        "functions": len(names),
        "checked": len(rows),
        "right": len(rows) - len(wrong),
        "timed": len(timed),
        "of_torch": geometric([row["torch_us"] / row["ours_us"] for row in timed]),
        "of_a_copy": geometric([row["copy_us"] / row["ours_us"] for row in timed]),
    }
    for row in sorted(timed, key=lambda r: r["torch_us"] / r["ours_us"]):
        speeds = f"{row['torch_us'] / row['ours_us']:7.2f} of torch  {row['copy_us'] / row['ours_us']:6.2f} of a copy"
        print(f"{row['name']:28} {row['dtype']:9} {row['ours_us']:10.1f} us  {speeds}")
    for name, found in wrong.items():
        print("WRONG", name, json.dumps(found))
    for text, missed in (("not checked", without), ("not timed", left)):
        if missed:
            print(text + ":", " ".join(missed))
    print(json.dumps(summary))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(
                {
                    "date": datetime.date.today().isoformat(),
                    "device": torch.cuda.get_device_name(),
                    "torch": torch.__version__,
                    **summary,
                    "rows": list(rows.values()),
                    "not_checked": without,
                    "not_timed": left,
                },
                file,
                indent=1,
            )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
