"""Every function of tilewright.kernels beside a copy of as many bytes, and beside TileKernels where that is there.

    python bench/gpu/kernel_library.py [--json FILE] [--only TEXT]... [--seconds 240] [--side 12] [--turns 20]
    python bench/gpu/kernel_library.py --page FILE.json      the table, from what was measured

Needs a GPU, torch and Tilewright; `tile_kernels` takes part where TileKernels and the TileLang that it wants can be imported.
Times are taken as in docs/measuring.md: contestants in turns in one process, 256 MB written before each call, medians. First
`--side` processes call what is to be measured once, for three fifths of the time at most, so that the compilers' caches have
it; then this process measures what they have come to. `moved` counts each tensor that goes in or comes out once, and `copy` is
the driver's copy of half as many bytes, which reads and writes as many. `equal`: both libraries gave the same bits."""

import argparse
import datetime
import importlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

OURS, THEIRS = "tilewright", "tile_kernels"
_PACKAGES = {OURS: "tilewright.kernels", THEIRS: "tile_kernels"}


def packages():
    """By contestant the package that it is, of those that are there."""
    os.environ.setdefault("TILELANG_PRINT_ON_COMPILATION", "0")
    found = {}
    for name, package in _PACKAGES.items():
        try:
            found[name] = importlib.import_module(package).__name__
        except ImportError as error:
            print(f"{package} takes no part: {error}", flush=True)
    return found


def function_of(package, case):
    """The function that a case calls; None where the package has none of that name."""
    try:
        return getattr(importlib.import_module(f"{package}.{case.module}"), case.function, None)
    except ImportError:
        return None


def tensors_of(value):
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_of(item)


def bytes_moved(case, arguments, named, result):
    """Of each tensor that goes in or comes out once; of one that a function reads and writes at its place twice."""
    import torch

    sizes = {(t.data_ptr(), t.numel()): t.nbytes for t in tensors_of([arguments, list(named.values()), result])}
    return sum(sizes.values()) + sum(arguments[i].nbytes for i in case.changed if isinstance(arguments[i], torch.Tensor))


def same_bits(mine, theirs):
    import torch

    a, b = list(tensors_of(mine)), list(tensors_of(theirs))
    return len(a) == len(b) and all(
        x.shape == y.shape and torch.equal(x.flatten().view(torch.uint8), y.flatten().view(torch.uint8))
        for x, y in zip(a, b)
        if x.numel()
    )


def chosen(only):
    from kernel_cases import CASES

    return [case for case in CASES if not only or any(text in case.name for text in only)]


def warm(options):
    """What one process beside the measuring one does: a share of the cases, once each; says which are done."""
    import torch
    from kernel_cases import Size

    found, size = packages(), Size("cuda")
    index, count = (int(n) for n in options.warm.split("/"))
    for case in chosen(options.only)[index::count]:
        with torch.no_grad():
            arguments, named = case.make(size)
            for name, package in found.items():
                function = function_of(package, case)
                if function is None:
                    continue
                try:
                    function(*arguments, **named)
                    torch.cuda.synchronize()
                except Exception as error:  # said by the process that measures, where it fails again
                    print(f"{case.name}: {name}: {type(error).__name__}: {error}"[:200], file=sys.stderr, flush=True)
                print(json.dumps([case.name, name]), flush=True)
            del arguments, named
        torch.cuda.empty_cache()


def compiled_aside(options, until):
    """The (case, contestant) pairs that processes beside this one have called by `until`."""
    command = [sys.executable, os.path.abspath(__file__), *(f"--only={text}" for text in options.only)]
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, str(i)) for i in range(options.side)]
        processes = []
        for i, path in enumerate(paths):
            with open(path, "w") as out, open(path + ".err", "w") as err:
                processes.append(subprocess.Popen([*command, f"--warm={i}/{options.side}"], stdout=out, stderr=err))
        while time.time() < until and any(p.poll() is None for p in processes):
            time.sleep(0.2)
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        done = set()
        for path in paths:
            with open(path) as out:
                for line in out:
                    if line.startswith("[") and line.endswith("]\n"):
                        done.add(tuple(json.loads(line)))
            with open(path + ".err") as err:
                print("".join(line for line in err if ": tilewright: " in line or ": tile_kernels: " in line), end="", flush=True)
    return done


def measure_case(case, size, found, done, turns):
    """Its rows, `moved` in each."""
    import torch
    from peers import Race

    arguments, named = case.make(size)
    results = {}
    race = Race(case.name)

    def contestant(name):
        function = function_of(found[name], case)

        def prepare():
            results[name] = function(*arguments, **named)
            return (lambda: function(*arguments, **named)), None

        return prepare

    for name in found:
        if function_of(found[name], case) is None:
            continue
        if name == THEIRS and (case.name, name) not in done:
            race.notes[name] = {"failed": "not compiled in time"}
            continue
        race.add(name, contestant(name))
    if OURS in results:
        moved = race.moved = bytes_moved(case, arguments, named, results[OURS])
        half = torch.empty(max(1, moved // 2), dtype=torch.uint8, device=size.device).random_()
        to = torch.empty_like(half)
        race.add("copy", lambda: ((lambda: to.copy_(half)), None))
    equal = same_bits(results[OURS], results[THEIRS]) if {OURS, THEIRS} <= results.keys() and not case.changed else None
    rows = race.run(turns)
    for row in rows:
        row["moved"] = race.moved
        if row["name"] == THEIRS and equal is not None:
            row["equal"] = equal
    return rows


def measure(options):
    import torch
    from kernel_cases import Size

    start = time.time()
    found = packages()
    done = compiled_aside(options, start + 0.6 * options.seconds) if options.side else set()
    ready = time.time() - start
    print(f"{len(done)} of {len(chosen(options.only))} x {len(found)} calls compiled in {ready:.0f} s", flush=True)
    out = {"date": datetime.date.today().isoformat(), "device": torch.cuda.get_device_name(), "torch": torch.__version__,
           "command": " ".join(sys.argv), "turns": options.turns, "rows": []}  # fmt: skip
    for case in chosen(options.only):
        if time.time() - start > options.seconds - 5:
            out["rows"].append({"case": case.name, "name": OURS, "failed": f"not begun within {options.seconds:g} s"})
            continue
        try:
            with torch.no_grad():
                rows = measure_case(case, Size("cuda"), found, done, options.turns)
        except Exception as error:  # a case that fails must not take the others along
            rows = [{"case": case.name, "name": OURS, "failed": f"{type(error).__name__}: {error}"[:300]}]
        out["rows"] += rows
        print(line_of(rows), flush=True)
        torch.cuda.empty_cache()
        if options.json:  # what has been measured stays, should the machine go
            with open(options.json, "w") as file:
                json.dump(out, file, indent=1)
    summary(out["rows"])


def times_of(rows):
    """By case: moved bytes and microseconds by contestant, of bursts."""
    found = {}
    for row in rows:
        if "burst" in row:
            found.setdefault(row["case"], {"moved": row["moved"]})[row["name"]] = row["burst"]["us"]
    return {name: times for name, times in found.items() if OURS in times}


def summary(rows):
    for other in ("copy", THEIRS):
        ratios = [times[other] / times[OURS] for times in times_of(rows).values() if other in times]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"{other}: {mean:.3f} in geometric mean of {len(ratios)}, least {min(ratios):.2f}; above 1 we are faster")


def line_of(rows):
    parts = [rows[0]["case"]]
    for row in rows:
        parts.append(f"{row['name']} {row['failed']}" if "failed" in row else f"{row['name']} {row['burst']['us']}")
    return " | ".join(parts)


def page(path):
    with open(path) as file:
        found = json.load(file)
    equal = {row["case"]: row["equal"] for row in found["rows"] if "equal" in row}
    print(f"Measured on {found['date']}, on one {found['device']}: microseconds, bursts; above 1 we are faster.\n")
    print("| Function | MB | tilewright | of a copy | TileKernels | of it | same bits |\n|---|--:|--:|--:|--:|--:|---|")
    for name, times in times_of(found["rows"]).items():
        of_copy, of_theirs = (f"{times[n] / times[OURS]:.2f}" if n in times else "" for n in ("copy", THEIRS))
        print(f"| {name} | {times['moved'] / 1e6:.1f} | {times[OURS]} | {of_copy} | {times.get(THEIRS, '')} | {of_theirs} | "
              f"{({True: 'yes', False: 'no'}).get(equal.get(name), '')} |")  # fmt: skip
    for row in found["rows"]:
        if "failed" in row:
            print(f"\n{row['case']}: {row['name']}: {row['failed']}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--side", type=int, default=12)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--json")
    parser.add_argument("--page")
    parser.add_argument("--warm", help=argparse.SUPPRESS)
    given = parser.parse_args()
    page(given.page) if given.page else warm(given) if given.warm else measure(given)
