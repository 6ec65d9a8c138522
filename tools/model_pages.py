#!/usr/bin/env python3
"""docs/cost_model.md and docs/tuner.md: what the cost model expects beside what was measured (bench/results), and how far a tuner gets
that asks it. tools/model_pages.py writes predictions and pages again (with the package on PYTHONPATH); --pages the pages alone, from
the predictions that are committed; tests/python/test_model_pages.py holds both. --of FILE prints how near and how well ranked the model
has the products of a file of bench/gpu/peers.py, shape by shape (docs/measuring.md)."""
import functools
import json
import pathlib
import re
import statistics
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench/results"
PREDICTIONS = RESULTS / "2026-11-29-predictions.json"
COMPILES, NEAR = 8, 1.02  # so many configurations are compiled; the best of them is near the best of all
FAR = 0.3  # an error that has to have a cause

FAMILIES = {
    "sweep": "products whose tiles were swept, H200", "examples": "the examples of the tree, H200",
    "random": "products at random shapes and tiles, H200", "few rows": "products of at most 128 rows, the library's tiles, H100",
    "library": "other products by the library's tiles, H100", "pairs": "products whose blocks share a tile in pairs, H100",
    "rows": "softmax and norms of long rows, by blocks of a cluster, H100",
}  # fmt: skip

# Why the model is off by more than FAR: (family, what a row of it is like, the cause). The first that fits is said.
WORD = lambda pattern: lambda row: re.search(pattern, row["case"])  # noqa: E731
EARLY = ("each measured call finds the L2 cache full of lines that others wrote, which go to memory first: 15 us whatever the size, of which the model "
         "has 5")  # fmt: skip
CAUSES = [
    (("examples",), WORD("int4_gemm"), "the conversion from 4 bits waits for its own shifts and look-ups, which the model counts as plain operations"),
    (("examples",), WORD("linear_attention"), "chunks go one after the other by what each hands on; the model takes the middle of a block's turns for all"),
    (("examples",), WORD("online_softmax|rms_norm_silu"), "a block reads its row twice, and waits for the memory in between, which the model thinks busy"),
    (("examples",), WORD("sinkhorn"), "threads wait for shuffles of small groups, whose latency no unit of the model has"),
    (("examples",), WORD("sparse_mla"), "rows that indices name are gathered piece by piece: more of the L2 cache's time than tiles that lie together"),
    (("examples",), WORD("specialized_gemm"), "a program that has roles of its own: the model takes its loader's work as done beside the products"),
    (("examples",), WORD("split_gemm"), "blocks that add to one result wait for each other's atomics"),
    (("examples",), WORD("swiglu_quantize"), "an exponential, a division and a conversion of each element, one after the other in few warps"),
    (("examples",), WORD("topk_gate"), "eight rounds of a maximum over a row, each waiting for the one before"),
    (("library", "pairs", "random"), lambda row: any(n % 8 for n in _sizes(row)), "rows that are no whole pieces of 16 bytes come by loads of threads, 4 bytes "
     "at a time, and are waited for; the model takes them at the L2 cache's rate"),
    (("random",), lambda row: _off(row) > 0 and row["plan"].startswith("l2"), "the L2 cache gives more than the rate that the model has: most of these have "
     "operands of less than 25 MB, or tiles that neighbours read at once"),
    (("random",), lambda row: _off(row) > 0 and row["plan"].startswith("memory"), "the model has all of the result cross the memory within the call; of a short one "
     "the L2 cache may still hold it at the end"),
    (("random",), lambda row: _tile(row)[0] * _tile(row)[1] > 192 * 192, "tiles whose accumulators leave no registers, or no slot of the ring, for what is to run "
     "beside them"),
    (("random", "pairs"), lambda row: _off(row) > 0 and _tile(row)[2] <= 32, "steps of 32: the model has each turn wait for its own product, as "
     "those of few rows do; blocks beside each other, and long loops, hide most of it"),
    (("random", "pairs"), lambda row: _off(row) > 0, "the L2 cache gives more than the rate that the model has, for tiles that neighbours read at once"),
    (("random", "few rows"), lambda row: _tile(row)[0] >= 128 and _sizes(row)[0] <= 64, "tiles of many more rows than the matrix has: their products are of "
     "zeros, in few warps; and " + EARLY),
    (("random", "few rows"), lambda row: _sizes(row)[0] <= 128, EARLY),
    (("random", "pairs"), lambda row: _tile(row)[1] <= 32 or _tile(row)[2] <= 32, "tiles of 32 columns or steps of 32: a warpgroup's instruction is short, and "
     "what stands around each decides"),
    (("random",), lambda row: True, "tiles whose accumulators leave no registers, or no slot of the ring, for what is to run beside them"),
    (("pairs",), lambda row: True, "rows that are no whole lines of the L2 cache, or pairs of blocks that wait for each other: how much depends on the order "
     "of blocks, which the model does not follow"),
    (("few rows",), lambda row: True, EARLY),
    (("library",), lambda row: not re.search(r"x1(x\d)?$", row["choice"]), "blocks of a cluster hand their sums over to one of them; the model has one "
     "latency for it"),
    (("rows",), lambda row: True, "a cluster's blocks exchange their parts of a row and wait for each other; the model has one latency for it"),
]  # fmt: skip


def _sizes(row):
    return [int(n) for n in re.search(r"(\d+)x(\d+)x(\d+)", row["case"]).groups()]


def _tile(row):
    return [int(n) for n in re.findall(r"\d+", row["choice"])[:3]]


# ---- what was measured


def _results(name):
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["rows"]


def _kept():
    """Rows whose predictions the C++ tests keep (tests/plan/price_test.cpp)."""
    for row in _results("2026-11-23-prices"):
        yield {"family": "sweep", "case": f"{row['form']} {row['shape']}", "choice": row["tiles"], "machine": "H200", "us": row["measured_us"],
               "predicted": row["predicted_us"]}  # fmt: skip
    for row in _results("2026-11-23-prices-of-examples"):
        yield {"family": "examples", "case": row["example"], "choice": row["shape"], "machine": "H200", "us": row["measured_us"],
               "predicted": row["predicted_us"]}  # fmt: skip


# Products at random, newest first. Of a product only the newest file counts that has it, and of a file only what no later change of
# the compiler made faster: files of 2026-11-28 before -5, and older ones, are from before boxes were clipped, few tiles split by depth
# and tiles shared by pairs, and do not count; -5 is from before rings had four slots where there is room, which products of two or
# three stages may have got. The files of 2026-11-29 are from before that, too: what it changed of them was measured again, in -slots.
SLOTS = "2026-11-29-slots"
RANDOM = {"2026-11-30-ranks": 2, "2026-11-30-random": 2, "2026-11-29-random-2": 2, "2026-11-29-random": 2, "2026-11-28-random-5": 4}  # and from how many stages on it counts
# Of what was measured under another plan than the one that is taken now, the line of that one's work.
WORKS = "2026-11-30-works"
RANKS = "2026-11-30-ranks"  # twelve tiles a shape, none of which the model is fitted to


# Of these pairs of blocks share a tile now and did not, or the other way round: they were measured under another plan.
OTHER_PLANS = {
    ("gemm float16 nt 256x7168x16384", "128x96x64:2:256"),
    ("gemm bfloat16 nn 3072x3072x3072", "128x32x64:2:256"), ("gemm bfloat16 nn 7040x1088x1344", "128x32x128:4:256"),
    ("gemm bfloat16 nn 8192x8192x8192", "128x96x32:3:256"), ("gemm float16 nn 8192x8192x8192", "128x96x32:5:256"),
}  # fmt: skip


def _random():
    seen = set(OTHER_PLANS)

    def row_of(case, choice, us):
        if (case, choice) not in seen:
            seen.add((case, choice))
            yield {"family": "random", "case": case, "choice": choice, "machine": "H200", "us": us}

    for file, stages in RANDOM.items():
        if file == "2026-11-29-random-2":
            for row in json.loads((RESULTS / f"{SLOTS}.json").read_text(encoding="utf-8"))["after"]:
                operand, order, M, N, K, choice = row["case"].split()
                yield from row_of(f"gemm {operand} {order} {M}x{N}x{K}", choice, row["us"][""])
        for case, choice, us in products_of(_results(file)):
            if int(re.split("[x:]", choice)[3]) >= stages:
                yield from row_of(case, choice, us)


def products_of(rows):
    """(case, choice, microseconds) of ours among the rows of bench/gpu/peers.py."""
    for row in rows:
        choice = row["name"].removeprefix("tilewright ")
        if choice != row["name"] and row.get("burst"):
            yield row["case"], choice, row["burst"]["us"]


@functools.cache
def _works():
    return {(row["case"], row["choice"]): row["work"] for row in _results(WORKS)}


def held_out(row):
    """Whether a random product's shape is of the half that no constant is fitted to."""
    return zlib.crc32(row["case"].encode()) % 2 == 1


@functools.cache
def _ranked():
    return {(case, choice) for case, choice, _ in products_of(_results(RANKS))}


def _library():
    """Of both days' files, of an H100; nothing newer has this many tiles of a product. The second has tiles with an order of blocks as their last number."""
    for file in ("2026-11-25-pairs", "2026-11-25-library"):
        for row in _results(file):
            if row["what"] not in ("small", "library", "pairs"):
                continue
            rows = int(re.search(r"(\d+)x", row["case"])[1])
            family = "pairs" if row["what"] == "pairs" else "few rows" if rows <= 128 else "library"
            for choice, us in row["us"].items():
                if choice in ("cublas", "ops") or not re.match(r"\d+x", choice):
                    continue
                of = "pairs" if "pairs" in choice else family
                yield {"family": of, "case": f"{row['what']} {row['case']}, {file[-7:].strip('-')}", "choice": choice.strip(), "machine": "H100", "us": us}


def _rows():
    for row in _results("2026-11-25-library"):
        if row["what"] != "rows":
            continue
        for choice, us in row["us"].items():
            found = re.match(r"parts (\d+) threads (\d+)", choice)
            if found:
                yield {"family": "rows", "case": row["case"], "choice": choice, "machine": "H100", "us": us,
                       "options": {**row["chosen"], "parts": found[1], "threads": found[2]}}  # fmt: skip


def measured():
    return [*_random(), *_library(), *_rows()]


# ---- what is predicted


@functools.cache
def _product(case, choice):
    """A product as bench/gpu/peers.py writes it."""
    import tilewright.language as T

    operand, order, M, N, K = re.match(r"gemm (\w+) (\w\w) (\d+)x(\d+)x(\d+)", case).groups()
    M, N, K = int(M), int(N), int(K)
    m, n, k, stages, threads = (int(x) for x in re.split("[x:]", choice))
    left, right = order[0] == "t", order[1] == "t"

    @T.prim_func
    def product(A: T.Tensor((K, M) if left else (M, K), operand), B: T.Tensor((N, K) if right else (K, N), operand), C: T.Tensor((M, N), operand)):
        with T.Kernel(T.ceildiv(N, n), T.ceildiv(M, m), threads=threads) as (bx, by):
            As, Bs = T.alloc_shared((k, m) if left else (m, k), operand), T.alloc_shared((n, k) if right else (k, n), operand)
            acc, Cs = T.alloc_fragment((m, n), "float32"), T.alloc_shared((m, n), operand)
            T.use_swizzle(panel_size=10)
            T.clear(acc)
            for turn in T.Pipelined(T.ceildiv(K, k), num_stages=stages):
                if left:
                    T.copy(A[turn * k, by * m], As)
                else:
                    T.copy(A[by * m, turn * k], As)
                if right:
                    T.copy(B[bx * n, turn * k], Bs)
                else:
                    T.copy(B[turn * k, bx * n], Bs)
                T.gemm(As, Bs, acc, transpose_A=left, transpose_B=right)
            T.copy(acc, Cs)
            T.copy(Cs, C[by * m, bx * n])

    return product.program


def _library_program(choice):
    """A product of the library with that tile, and with a line of its plan."""
    from tilewright import _native

    tile, _, line = choice.partition(" ")
    tile += "x0" * (7 - len(tile.split("x")))
    options = {"a": "bfloat16", "b": "bfloat16", "result": "bfloat16", "transpose_b": "true", "tile": tile}
    program = _native.library_program("matmul", options)
    return program.with_plan(f"work persistent {line}") if line else program


def _plan_in_short(launch):
    """What decides, how blocks take the work, how many are on a multiprocessor, and what brings tiles."""
    lines = launch["plan"]
    work = next((line for line in lines if line.startswith("work ")), "work as_written")
    blocks = re.search(r"blocks_per_multiprocessor=(\d)", work)
    shared = " pairs" if "pairs=" in work else ""
    brought = "TMA" if any(line.startswith("role load") for line in lines) else "threads"
    return f"{launch['limit']}: {work.split()[1]}{shared}, {blocks[1] if blocks else 1} a multiprocessor, by {brought}"


def _predict(row):
    """Microseconds, and the plan of a random product; None: the program is none that the model can be asked about."""
    from tilewright import _native, call_values, cost
    from tilewright.errors import TilewrightError

    try:
        if row["family"] == "random":
            program, work = _product(row["case"], row["choice"]), _works().get((row["case"], row["choice"]))
            found = cost.predict(program.with_plan(work) if work else program, row["machine"])
            return found.us, _plan_in_short(found.launches[0])
        if row["family"] == "rows":
            function = row["options"]
            rows, columns = (int(n) for n in row["case"].split()[1].split("x"))
            program = _native.library_program("rows", function)
            values = {n: v for n, v in {"M": rows, "N": columns}.items() if n in call_values.types_of(program)}
            return cost.predict(program, row["machine"], **values).us, None
        case = row["case"].split(",")[0]
        form = re.match(r"pairs (\w\w) (\w+) ", case)
        M, N, K = (int(n) for n in re.search(r"(\d+)x(\d+)x(\d+)", case).groups())
        if form:
            tile, _, line = row["choice"].partition(" ")
            program = _product(f"gemm {form[2]} {form[1]} {M}x{N}x{K}", tile)
            if line != "plain":
                program = program.with_plan(f"work persistent pairs={line.removeprefix('pairs ')}s")
            return cost.predict(program, row["machine"]).us, None
        return cost.predict(_library_program(row["choice"]), row["machine"], M=M, N=N, K=K).us, None
    except TilewrightError:
        return None, None


def predicted(rows):
    return [{**{k: v for k, v in row.items() if k != "options"}, "predicted": None if us is None else round(us, 2), **({"plan": plan} if plan else {})}
            for row, (us, plan) in ((row, _predict(row)) for row in rows)]  # fmt: skip


# ---- the pages


def _off(row):
    return row["predicted"] / row["us"] - 1


def _cause(row):
    return next((why for families, fits, why in CAUSES if row["family"] in families and fits(row)), None)


def rows_of_pages():
    return [*_kept(), *json.loads(PREDICTIONS.read_text(encoding="utf-8"))["rows"]]


def without_cause(rows):
    return [row for row in rows if row["predicted"] and abs(_off(row)) > FAR and not _cause(row)]


def _families(rows):
    for family, what in FAMILIES.items():
        own = [row for row in rows if row["family"] == family]
        known = [_off(row) for row in own if row["predicted"]]
        if known:
            yield what, own, known


def accuracy(rows):
    """The tables of docs/cost_model.md."""
    lines = ["| Programs | How many | Median error | 90% are within | Above 30% | Not known |", "|---|--:|--:|--:|--:|--:|"]
    every = []
    for what, own, known in _families(rows):
        off = sorted(abs(o) for o in known)
        every += off
        lines.append(f"| {what} | {len(off)} | {statistics.median(off):.1%} | {off[int(0.9 * (len(off) - 1))]:.0%} | {sum(o > FAR for o in off)} | {len(own) - len(off)} |")
    every.sort()
    lines.append(f"| all | {len(every)} | {statistics.median(every):.1%} | {every[int(0.9 * (len(every) - 1))]:.0%} | {sum(o > FAR for o in every)} | |")
    return lines


def _classes(row):
    """What a random product is like: (of what, which)."""
    M, N, K = _sizes(row)
    operand, order = row["case"].split()[1:3]
    limit, work, blocks, brought = re.match(r"(\w+): ([\w ]+), (\d) a multiprocessor, by (\w+)", row["plan"]).groups()
    rows = (M if order[0] == "t" else K, K if order[1] == "t" else N, N)
    yield "operands", operand
    yield "transposed (t) or not", order
    yield "rows of the result", "at most 128" if M <= 128 else "more"
    yield "rows of tensors", "whole lines of 128 bytes" if all(n % 64 == 0 for n in rows) else "others"
    yield "measured", next(name for us, name in ((20, "below 20 us"), (100, "20 to 100 us"), (1e9, "100 us and more")) if row["us"] < us)
    yield "the two operands", "below 25 MB" if 2 * K * (M + N) < 25e6 else "more"
    yield "blocks take", work
    yield "blocks a multiprocessor", blocks
    yield "tiles come by", brought
    yield "what decides", limit


def classes(rows):
    """The table of errors of random products by what they are like."""
    found = {}
    for row in rows:
        if row["family"] == "random" and row["predicted"]:
            for key in _classes(row):
                found.setdefault(key, []).append(_off(row))
    order = list(dict.fromkeys(what for what, _ in found))
    lines = ["| Random products by | | How many | Median error | 90% are within | In the median off by | Above 30% |", "|---|---|--:|--:|--:|--:|--:|"]
    for (what, which), own in sorted(found.items(), key=lambda item: (order.index(item[0][0]), item[0][1])):
        off = sorted(map(abs, own))
        lines.append(f"| {what} | {which} | {len(off)} | {statistics.median(off):.1%} | {off[int(0.9 * (len(off) - 1))]:.0%} | {statistics.median(own):+.1%} | "
                     f"{sum(o > FAR for o in off)} |")  # fmt: skip
    return lines


def _ranks(values):
    """Of equal ones the mean."""
    return [sum(other < v for other in values) + (values.count(v) - 1) / 2 for v in values]


def _correlation(one, other):
    try:
        return statistics.correlation(one, other)
    except statistics.StatisticsError:  # one of them is constant: it says nothing
        return 0.0


TIE = 1.02  # measured times that are no further apart have no order: their noise is 1 to 2%


def _ranks_of_pairs(values, alike):
    """As _ranks, but that pairs of `alike` count as equal whatever their values."""
    each = range(len(values))
    return [sum(0.5 if (i, j) in alike else (values[j] < values[i]) + (values[j] == values[i]) / 2 for j in each if j != i) for i in each]


def ranks_of_shape(predicted, measured):
    """(rank correlation, the same with ties within 2% counted as ties; None: all are)."""
    each = range(len(measured))
    alike = {(i, j) for i in each for j in each if max(measured[i], measured[j]) <= TIE * min(measured[i], measured[j])}
    with_ties = None if len(alike) == len(measured) ** 2 else _correlation(*(_ranks_of_pairs(v, alike) for v in (predicted, measured)))
    return _correlation(_ranks(predicted), _ranks(measured)), with_ties


def ranks_within_shapes(rows, least=3):
    """Of random tiles of one shape: {"all": rank correlation of all, each in parts of its shape's geometric mean, "tiles": how many, "shapes": how
    many have at least `least`, "mean" and "median" over those, "with ties": the mean where times within 2% are ties}."""
    shapes = {}
    for row in rows:
        if row["family"] == "random" and row["predicted"]:
            shapes.setdefault(row["case"], []).append((row["predicted"], row["us"]))
    both = ([], [])
    for own in shapes.values():
        if len(own) > 1:
            for values, into in zip(zip(*own), both):
                mean = statistics.geometric_mean(values)
                into.extend(v / mean for v in values)
    each = [ranks_of_shape(*(list(values) for values in zip(*own))) for own in shapes.values() if len(own) >= least]
    plain, tied = [one for one, _ in each], [other for _, other in each if other is not None]
    return {"all": _correlation(*map(_ranks, both)), "tiles": len(both[0]), "shapes": len(each), "mean": statistics.mean(plain),
            "median": statistics.median(plain), "with ties": statistics.mean(tied)}  # fmt: skip


def sets_of_random(rows):
    """{what: rows} of random products: those that constants are fitted to, and those that they are not."""
    random = [row for row in rows if row["family"] == "random"]
    drawn = [row for row in random if (row["case"], row["choice"]) not in _ranked()]
    return {
        "the half of the shapes that constants are fitted to": ([row for row in drawn if not held_out(row)], 3),
        "the other half": ([row for row in drawn if held_out(row)], 3),
        "shapes of twelve tiles, fitted to none": ([row for row in random if (row["case"], row["choice"]) in _ranked()], 6),
    }


def said_of_ranks(rows):
    text = ("Which of the random tiles of one shape is faster: rank correlations of predicted and measured times. Within a shape: the mean over shapes of "
            "three tiles and more (of six in the last row); beside it the mean where measured times within 2% count as ties, since kernels that are measured "
            "again are 1% apart in the median. Over all: of all tiles, each in parts of its shape's mean. Three tiles of a shape have few orders, and a "
            "program's tiles are often the same but for stages.")  # fmt: skip
    lines = ["", *_wrapped(text, 0), "", "| Random products, H200 | Tiles | Median error | Shapes | Within a shape | Ties within 2% | Over all |",
             "|---|--:|--:|--:|--:|--:|--:|"]  # fmt: skip
    for what, (own, least) in sets_of_random(rows).items():
        found = ranks_within_shapes(own, least)
        off = statistics.median(abs(_off(row)) for row in own)
        lines.append(f"| {what} | {len(own)} | {off:.1%} | {found['shapes']} | {found['mean']:.2f} | {found['with ties']:.2f} | {found['all']:.2f} |")
    return [*lines, ""]


def said_of_file(path):
    """How near the model is to the products of a file of bench/gpu/peers.py, and how well it ranks each shape's tiles."""
    rows = [{"family": "random", "case": case, "choice": choice, "machine": "H200", "us": us}
            for case, choice, us in products_of(json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["rows"])]  # fmt: skip
    rows = [row for row in predicted(rows) if row["predicted"]]
    for case in dict.fromkeys(row["case"] for row in rows):
        own = [row for row in rows if row["case"] == case]
        plain, tied = ranks_of_shape([row["predicted"] for row in own], [row["us"] for row in own])
        off = statistics.median(abs(_off(row)) for row in own)
        yield f"{case:40} {len(own):3} tiles, median error {off:6.1%}, rank correlation {plain:5.2f}, with ties " + (f"{tied:5.2f}" if tied is not None else "-")
    found = ranks_within_shapes(rows)
    yield (f"{found['tiles']} tiles: median error {statistics.median(abs(_off(row)) for row in rows):.1%}; rank correlation within {found['shapes']} shapes "
           f"{found['mean']:.3f} in the mean, {found['median']:.3f} in the median, {found['with ties']:.3f} with ties; over all {found['all']:.3f}")  # fmt: skip


def far_ones(rows):
    """Those above 30%, by cause."""
    causes = {}
    for row in rows:
        if row["predicted"] and abs(_off(row)) > FAR:
            causes.setdefault((FAMILIES[row["family"]], _cause(row)), []).append(row)
    for (what, cause), own in causes.items():
        head, *rest = _wrapped(f"- **{what}**, {len(own)}: {cause}.", 0)
        yield from (head, *(f"  {line}" for line in rest))
        shown = sorted(own, key=_off)
        parts = [f"{row['case']} {row['choice']} {_off(row):+.0%}" for row in shown]
        yield from _wrapped("; ".join(parts) + ".", 2)


def _wrapped(text, indent, width=126):
    line = " " * indent
    for word in text.split(" "):
        if len(line) + len(word) + 1 > width and line.strip():
            yield line.rstrip()
            line = " " * indent
        line += word + " "
    yield line.rstrip()


def cases_of_tuner(rows):
    """{case: [(predicted, measured, choice)]} of programs whose configurations were measured."""
    cases = {}
    for row in rows:
        if row["family"] in ("examples",):
            continue
        cases.setdefault(row["case"], []).append((row["predicted"] or float("inf"), row["us"], row["choice"]))
    return {case: choices for case, choices in cases.items() if len(choices) >= 4}


def found_after(choices, compiles):
    """How much longer the best of those takes that the model puts first, than the best of all."""
    order = sorted(range(len(choices)), key=lambda i: choices[i][0])
    return min(choices[i][1] for i in order[:compiles]) / min(us for _, us, _ in choices)


def tuner_tables(rows):
    cases = cases_of_tuner(rows)
    many = {case: choices for case, choices in cases.items() if len(choices) > COMPILES}
    lines = ["| Configurations compiled | Cases within 2% of the best | within 5% | worst | in the geometric mean |", "|--:|--:|--:|--:|--:|"]
    for compiles in (1, 2, 4, COMPILES):
        lost = sorted(found_after(choices, compiles) for choices in many.values())
        near, nearly = sum(x <= NEAR for x in lost), sum(x <= 1.05 for x in lost)
        lines.append(f"| {compiles} | {near} of {len(lost)} ({near / len(lost):.0%}) | {nearly} ({nearly / len(lost):.0%}) | {lost[-1]:.2f} | "
                     f"{statistics.geometric_mean(lost):.3f} |")  # fmt: skip
    return lines, many


def write(path, name, lines):
    text = path.read_text(encoding="utf-8")
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    head, _, rest = text.partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        raise SystemExit(f"{path} has no {begin.strip()} ... {end}")
    return head + begin + "\n".join(lines) + "\n" + end + tail


def pages():
    """{path: text} of both pages."""
    rows = rows_of_pages()
    model, tuner = ROOT / "docs/cost_model.md", ROOT / "docs/tuner.md"
    tables, many = tuner_tables(rows)
    text = write(model, "accuracy", [*accuracy(rows), *said_of_ranks(rows), *classes(rows)])
    found = {model: text}
    model_text = text.partition("<!-- far -->\n")
    _, _, tail = model_text[2].partition("<!-- /far -->")
    found[model] = model_text[0] + "<!-- far -->\n" + "\n".join(far_ones(rows)) + "\n<!-- /far -->" + tail
    missed = sorted(((found_after(c, COMPILES), case, c) for case, c in many.items() if found_after(c, COMPILES) > NEAR), reverse=True)
    lines = [*tables, "", f"{len(many)} cases with more than {COMPILES} configurations, {sum(map(len, many.values()))} measurements. Beyond 2% after {COMPILES}:", ""]
    lines += [f"- {case}: {lost:.2f} times the best, which is {min(c, key=lambda x: x[1])[2]} of {len(c)}." for lost, case, c in missed] or ["- none."]
    found[tuner] = write(tuner, "tuner", lines)
    return found


def main():
    if "--of" in sys.argv:
        print(*said_of_file(sys.argv[sys.argv.index("--of") + 1]), sep="\n")
        return 0
    if "--pages" not in sys.argv:
        rows = predicted(measured())
        what = "what tilewright.cost expects of programs that were measured; tools/model_pages.py writes it"
        body = ",\n".join(json.dumps(row) for row in rows)
        PREDICTIONS.write_text(f'{{"what": {json.dumps(what)}, "rows": [\n{body}\n]}}\n', encoding="utf-8")
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
