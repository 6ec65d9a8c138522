"""tilewright.ops beside PyTorch and the vendor's libraries that it calls, family by family, as its chooser has them; beside
FlashAttention-4 and quack where they can be imported.

    python bench/gpu/scoreboard.py [--family matmul,rows,...] [--json FILE] [--tiles N] [--only TEXT]...
    python bench/gpu/scoreboard.py --page FILE.json      the table of docs/scoreboard.md, from what was measured

Needs a GPU, torch and Tilewright. All kernels are compiled ahead by several threads. Times are taken as in docs/measuring.md: contestants
in turns in one process, 256 MB written before each call, medians. `limit` is the time that the machine's matrix units, or its memory, need
for a call; a row's share is the limit divided by its time."""

import argparse
import datetime
import json
import math
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

# Of an H200: dense operations a second of its matrix units, and bytes a second of its memory (NVIDIA H200 data sheet).
PEAK = {"bfloat16": 989e12, "float16": 989e12, "float32": 67e12, "tf32": 494e12, "float8_e4m3fn": 1979e12, "int8": 1979e12}
BANDWIDTH = 4.8e12

_PROJECTIONS = [  # (columns, sum) of DeepSeek-V3, Llama-70B and Qwen2.5-32B
    (4096, 7168), (7168, 2048), (24576, 1536), (7168, 16384), (2112, 7168),
    (10240, 8192), (8192, 8192), (57344, 8192), (8192, 28672),
    (7168, 5120), (5120, 27648),
]  # fmt: skip
_ODD = [(5000, 5000, 5000), (1000, 3000, 1111), (4097, 4096, 4096), (4096, 4095, 4096), (777, 8192, 2048), (8192, 777, 2048),
        (3000, 3000, 3000), (129, 6151, 4100), (2050, 2050, 8200), (6000, 1500, 10000)]  # fmt: skip


def matmul_cases():
    """(dtype, order, M, N, K)"""
    for n in (256, 512, 1024, 2048, 3072, 4096, 6144, 8192, 12288, 16384):
        yield "bfloat16", "nt", n, n, n
    for M in (1, 16, 64, 128, 1024, 4096, 8192):
        for i, (N, K) in enumerate(_PROJECTIONS):
            if M >= 4096 and i in (5, 7, 8) or M == 8192 and i > 3:
                continue
            yield "bfloat16", "nt", M, N, K
    for order in ("nn", "tn"):
        for n in (2048, 4096, 8192):
            yield "float16", order, n, n, n
    for M, N, K in _ODD:
        yield "bfloat16", "nn", M, N, K
    for dtype in ("float8_e4m3fn", "int8", "tf32"):
        for M, N, K in ((4096, 4096, 4096), (8192, 8192, 8192), (128, 7168, 16384), (16, 4096, 7168)):
            yield dtype, "nt", M, N, K


def row_cases():
    """(function, rows, columns)"""
    for function in ("softmax", "log_softmax", "rms_norm", "layer_norm"):
        for rows, columns in ((65536, 1024), (32768, 4096), (131072, 8192), (16384, 32768), (2048, 131072), (128, 4096)):
            yield function, rows, columns


def reduction_cases():
    """(function, shape, dimension)"""
    for function in ("sum", "max"):
        for shape, dim in (((65536, 4096), 1), ((65536, 4096), 0), ((64, 4096, 1024), 1), ((1 << 28,), 0), ((256, 1024), 1)):
            yield function, shape, dim


def transpose_cases():
    """(dtype, shape)"""
    for dtype in ("bfloat16", "float32", "uint8"):
        for shape in ((16384, 16384), (8191, 12289), (64, 2048, 2048)):
            yield dtype, shape


def attention_cases():
    """(what, batch, heads, heads of keys, length, dim, causal)"""
    for what in ("forward", "backward"):
        for dim in (64, 128, 256):
            for causal in (False, True):
                for batch, length in ((16, 1024), (4, 4096), (1, 16384)):
                    yield what, batch, 2048 // dim, 2048 // dim, length, dim, causal
    yield "forward", 4, 32, 8, 4096, 128, True
    yield "forward", 2, 32, 8, 8000, 128, True


def _race(name, flops, moved, dtype):
    from peers import Race

    race = Race(name, flops=flops, moved=moved)
    race.limit_us = max(flops / PEAK.get(dtype, 67e12), moved / BANDWIDTH) * 1e6
    return race


def _other_tiles(wanted, shape, count):
    """Of a product: by tile the specializations that are predicted to be the best, with their times."""
    from tilewright import _native

    given = {n: t for n, t in wanted.options if n != "tile"}
    considered = json.loads(_native.library_choose("matmul", given, "sm_90a", shape))["considered"]
    for tile in sorted(considered, key=considered.get)[:count]:
        yield tile, (wanted._replace(options=tuple(sorted({**given, "tile": tile}.items()))), considered[tile])


def _flash_attention():
    """flash_attn_func(q, k, v, causal=) of FlashAttention-4; None: it is not there."""
    try:
        from flash_attn.cute import flash_attn_func
    except ImportError:
        return None

    def run(q, k, v, causal):
        result = flash_attn_func(q, k, v, causal=causal)
        return result[0] if isinstance(result, tuple) else result

    return run


def _quack(function, columns, torch):
    """softmax(x) or rms_norm(x) of quack; None: it is not there, or has no such function."""
    try:
        from quack.rmsnorm import rmsnorm
        from quack.softmax import softmax
    except ImportError:
        return None
    if function == "rms_norm":
        weight = torch.ones(columns, device="cuda")
        return lambda x: rmsnorm(x, weight)
    return softmax if function == "softmax" else None


class Case:
    """A call of a family: `wanted` is what it compiles, race() what takes part."""

    def __init__(self, family, *what):
        import torch
        import tilewright.ops as ops

        self.family, self.what, self.tiles = family, what, {}
        Spec = ops.Spec
        if family == "matmul":
            dtype, order, M, N, K = what
            kind = "float32" if dtype == "tf32" else dtype
            self.options = {"transpose_a": order[0] == "t", "transpose_b": order[1] == "t", "tf32": dtype == "tf32"}
            specs = (Spec((K, M) if order[0] == "t" else (M, K), kind, "cuda"), Spec((N, K) if order[1] == "t" else (K, N), kind, "cuda"))
            self.wanted, self.found = ops.matmul.plan(*specs, **self.options), ops.matmul.choice(*specs, **self.options)
        elif family == "attention":
            what, batch, heads, kv_heads, length, dim, causal = what
            q, k = (Spec((batch, length, h, dim), "bfloat16", "cuda") for h in (heads, kv_heads))
            self.wanted, self.found = ops.attention.plan(q, k, k, causal=causal), ops.attention.choice(q, k, k, causal=causal)
        elif family == "rows":
            function, rows, columns = what
            self.wanted = getattr(ops, function).plan(Spec((rows, columns), "bfloat16", "cuda"))
        elif family == "reductions":
            function, shape, dim = what
            self.wanted = getattr(ops, function).plan(Spec(shape, "float32", "cuda"), dim)
        else:
            dtype, shape = what
            self.wanted = ops.transpose.plan(Spec(shape, dtype, "cuda"))
        self.torch = torch

    def name(self):
        return f"{self.family} " + " ".join("x".join(map(str, w)) if isinstance(w, tuple) else str(w) for w in self.what)

    def all_wanted(self, tiles):
        if tiles and self.family == "matmul" and len(self.wanted) == 1:
            self.tiles = dict(_other_tiles(self.wanted[0], dict(zip("MNK", self.what[2:])), tiles))
        return [*self.wanted, *(wanted for wanted, _ in self.tiles.values())]

    def run(self):
        import tilewright.ops as ops

        return getattr(self, "_" + self.family)(self.torch, ops)

    def _matmul(self, torch, ops):
        dtype, order, M, N, K = self.what
        made = {"int8": lambda *s: torch.randint(-128, 128, s, device="cuda", dtype=torch.int8), "tf32": lambda *s: torch.randn(*s, device="cuda")}
        random = made.get(dtype, lambda *s: torch.randn(*s, device="cuda").to(getattr(torch, dtype)))
        a, b = random(*((K, M) if order[0] == "t" else (M, K))), random(*((N, K) if order[1] == "t" else (K, N)))
        left, right = a.T if order[0] == "t" else a, b.T if order[1] == "t" else b
        size = a.element_size()
        torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
        race = _race(self.name(), 2 * M * N * K, size * (M * K + N * K) + (4 if size == 4 or dtype == "int8" else 2) * M * N, dtype)
        if dtype == "float8_e4m3fn":
            one = torch.ones((), device="cuda")
            theirs = lambda: torch._scaled_mm(left, right, one, one, out_dtype=torch.bfloat16, use_fast_accum=True)  # noqa: E731
        else:
            theirs = (lambda: torch._int_mm(left, right)) if dtype == "int8" else (lambda: torch.mm(left, right))
        # The result is checked where it is cheap: some rows of it, in float64.
        some = torch.randint(0, M, (min(M, 32),), device="cuda")
        expected = left[some].double() @ right.double() if dtype != "int8" else None

        def checked(call):
            result = call()
            if expected is None:
                wrong = (result[some].cpu().long() - left[some].cpu().long() @ right.cpu().long()).abs().max().item() if M * N * K < 1e11 else 0
            else:
                magnitudes = left[some].double().abs() @ right.double().abs()
                unit = {"tf32": 2.0**-11, "float16": 2.0**-11}.get(dtype, 2.0**-8)
                bound = magnitudes * (K * 2.0**-24 + (2.0**-10 if dtype == "tf32" else 0) + (2.0**-13 if "float8" in dtype else 0)) + expected.abs() * unit
                wrong = ((result[some].double() - expected).abs() > bound + 1e-30).sum().item()
            if wrong:
                raise AssertionError(f"{wrong} results of {32 * N} are beyond their bound")
            return call, None

        race.add("tilewright", lambda: checked(lambda: ops.matmul(a, b, **self.options)))
        race.add("torch", lambda: (theirs, theirs())[:1] + (None,))
        for tile, (wanted, _) in self.tiles.items():
            kernel = ops.calls.compiled(wanted)
            race.add(f"tile {tile}", lambda kernel=kernel: checked(lambda: kernel(a, b)))
        rows = race.run(turns=20)
        for row in rows:
            tile = row["name"].removeprefix("tile ")
            row["predicted_us"] = self.tiles[tile][1] if tile in self.tiles else self.found.get("predicted_us")
            row["kernel"] = self.found["kernels"][0]
        return race, rows

    def _attention(self, torch, ops):
        from peers import _cudnn

        what, batch, heads, kv_heads, length, dim, causal = self.what
        q, k, v = (torch.randn(batch, length, h, dim, device="cuda", dtype=torch.bfloat16) for h in (heads, kv_heads, kv_heads))
        flops = (4 if what == "forward" else 10) * batch * heads * length * length * dim // (1 + causal)
        race = _race(self.name(), flops, 2 * (2 * q.numel() + 2 * k.numel()), "bfloat16")

        def by_cudnn(q, k, v):
            wide = [x.repeat_interleave(heads // kv_heads, 2) for x in (k, v)] if heads > kv_heads else (k, v)
            return _cudnn(q, *wide, causal)

        def ours(q, k, v):
            return ops.attention(q, k, v, causal=causal)

        contestants, flash = {"tilewright": ours, "torch": by_cudnn}, _flash_attention()
        if flash:
            contestants["FlashAttention-4"] = lambda q, k, v: flash(q, k, v, causal)
        tolerance = 2e-2
        if what == "forward":
            wrong = (ours(q, k, v).float() - by_cudnn(q, k, v).float()).abs().max().item()
            calls = {name: lambda f=f: f(q, k, v) for name, f in contestants.items()}
        else:
            grad, calls, got = torch.randn_like(q), {}, []
            for name, f in contestants.items():
                leaves = [x.clone().requires_grad_() for x in (q, k, v)]
                out = f(*leaves)
                call = lambda out=out, leaves=leaves: torch.autograd.grad(out, leaves, grad, retain_graph=True)  # noqa: E731
                calls[name] = call
                got.append(call())
            wrong = max((a.float() - b.float()).abs().max().item() / max(1, b.float().abs().max().item()) for a, b in zip(*got[:2]))
        if not wrong < tolerance:
            raise AssertionError(f"{self.name()}: off by {wrong}")
        for name, call in calls.items():
            race.add(name, lambda call=call: (call, None))
        rows = race.run(turns=10 if what == "backward" else 20)
        for row in rows:
            row["predicted_us"], row["kernel"] = self.found.get("predicted_us"), self.found["kernels"][0]
        return race, rows

    def _of(self, torch, race, ours, theirs, tolerance, copied, quack=None):
        got, expected = ours().float(), theirs().float()
        if not torch.allclose(got, expected, atol=tolerance, rtol=tolerance):
            raise AssertionError(f"{self.name()}: off by {(got - expected).abs().max().item()}")
        out = torch.empty_like(copied)
        race.add("tilewright", lambda: (ours, None))
        race.add("torch", lambda: (theirs, None))
        if quack:
            race.add("quack", lambda: (quack, quack())[:1] + (None,))
        race.add("copy", lambda: (lambda: out.copy_(copied), None))
        return race, race.run(turns=20)

    def _rows(self, torch, ops):
        function, rows, columns = self.what
        x = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)
        race = _race(self.name(), 0, 4 * x.numel(), "bfloat16")
        f = torch.nn.functional
        theirs = {"softmax": lambda: f.softmax(x, -1), "log_softmax": lambda: f.log_softmax(x, -1),
                  "rms_norm": lambda: f.rms_norm(x, (columns,), eps=1e-6), "layer_norm": lambda: f.layer_norm(x, (columns,), eps=1e-5)}  # fmt: skip
        quack = _quack(function, columns, torch)
        return self._of(torch, race, lambda: getattr(ops, function)(x), theirs[function], 2e-2, x, quack and (lambda: quack(x)))

    def _reductions(self, torch, ops):
        function, shape, dim = self.what
        x = torch.randn(*shape, device="cuda")
        race = _race(self.name(), 0, 4 * x.numel(), "float32")
        theirs = (lambda: torch.sum(x, dim)) if function == "sum" else (lambda: torch.amax(x, dim))
        half = x.view(-1)[: x.numel() // 2]
        return self._of(torch, race, lambda: getattr(ops, function)(x, dim), theirs, 0.3, half)

    def _transposes(self, torch, ops):
        dtype, shape = self.what
        x = torch.randn(*shape, device="cuda").to(getattr(torch, dtype))
        race = _race(self.name(), 0, 2 * x.numel() * x.element_size(), "bfloat16")
        return self._of(torch, race, lambda: ops.transpose(x), lambda: x.mT.contiguous(), 0, x)


FAMILIES = {"matmul": matmul_cases, "attention": attention_cases, "rows": row_cases, "reductions": reduction_cases, "transposes": transpose_cases}


def measure(options):
    import torch
    import tilewright.ops as ops

    start = time.time()
    cases = [Case(family, *what) for family in options.family.split(",") for what in FAMILIES[family]()]
    cases = [c for c in cases if not options.only or any(t in c.name() for t in options.only)]
    chosen = time.time() - start
    kernels = ops.plan([c.all_wanted(options.tiles) for c in cases])
    print(f"{len(cases)} cases: chosen in {chosen:.1f} s, {len(kernels)} kernels compiled in {time.time() - start - chosen:.1f} s", flush=True)
    found = {"date": datetime.date.today().isoformat(), "device": torch.cuda.get_device_name(), "kernels": len(kernels),
             "compile_s": round(time.time() - start - chosen, 1), "rows": []}  # fmt: skip
    for case in cases:
        if time.time() - start > options.seconds:
            print(f"stopped behind {options.seconds} s")
            break
        try:
            race, rows = case.run()
        except Exception as error:
            found["rows"].append({"case": case.name(), "name": "tilewright", "failed": f"{type(error).__name__}: {error}"[:300]})
            print(case.name(), found["rows"][-1]["failed"], flush=True)
            continue
        for row in rows:
            found["rows"].append({**row, "limit_us": round(race.limit_us, 2)})
        print(line_of(rows, race.limit_us), flush=True)
        torch.cuda.empty_cache()
    if options.json:
        with open(options.json, "w") as file:
            json.dump(found, file, indent=1)
    for family in options.family.split(","):
        shares = [r for r in ratios(found["rows"]) if r[0].startswith(family)]
        if shares:
            mean = math.exp(sum(math.log(r[1]) for r in shares) / len(shares))
            print(f"{family}: {mean:.3f} of torch, {sum(r[1] < 0.96 for r in shares)} of {len(shares)} below 0.96, least {min(shares, key=lambda r: r[1])}")


def line_of(rows, limit_us):
    parts = [rows[0]["case"]]
    for row in rows:
        parts.append(f"{row['name']} {row['failed']}" if "failed" in row else f"{row['name']} {row['burst']['us']} ({row['sustained']['us']})")
    return " | ".join(parts) + f" | limit {limit_us:.1f}"


def ratios(rows):
    """(case, torch's time in ours)"""
    by_case = {}
    for row in rows:
        if "burst" in row:
            by_case.setdefault(row["case"], {})[row["name"]] = row["burst"]["us"]
    return [(case, times["torch"] / times["tilewright"]) for case, times in by_case.items() if {"torch", "tilewright"} <= times.keys()]


def page(path):
    with open(path) as file:
        found = json.load(file)
    by_case = {}
    for row in found["rows"]:
        by_case.setdefault(row["case"], {})[row["name"]] = row
    print(f"Measured on {found['date']}, on one {found['device']}: microseconds, burst; `share` is the limit's part of our time.\n")
    print("| Case | tilewright | torch | ratio | copy | share |\n|---|---|---|---|---|---|")
    for case, rows in by_case.items():
        ours = rows.get("tilewright", {})
        if "burst" not in ours:
            print(f"| {case} | **{ours.get('failed', 'not run').split(':')[0]}** | | | | |")
            continue
        us = ours["burst"]["us"]
        other = {n: rows[n]["burst"]["us"] for n in ("torch", "copy") if "burst" in rows.get(n, {})}
        ratio = other.get("torch", 0) / us
        text = "" if not ratio else f"**{ratio:.2f}**" if ratio < 0.96 else f"{ratio:.2f}"
        print(f"| {case} | {us} | {other.get('torch', '')} | {text} | {other.get('copy', '')} | {ours['limit_us'] / us:.2f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", default=",".join(FAMILIES))
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--tiles", type=int, default=0, help="so many of the tiles that are predicted to be the best, too")
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--json")
    parser.add_argument("--page")
    chosen_options = parser.parse_args()
    page(chosen_options.page) if chosen_options.page else measure(chosen_options)
