"""Runs the test files of a public repository that was written for TileLang, each as its authors run it, with Tilewright in place.

    python tests/suites/run.py TREE --out RESULTS.json [--path FOLDER ...] [--only TEXT] [--cases 20] [--jobs 4] [--seconds 300]
                               [--without-gpu]

TREE is an unpacked repository; pytest runs in it, one process a file, with TREE and its folders --path importable. Of each file's
cases, --cases evenly spaced ones run. With --without-gpu, "cuda" means the CPU engine and the device is described (sm_90a).
The result names each file's status (pass, fail, skip, timeout, crash) with its cases, seconds and the causes of its failures;
the exit status is 0 when every file passed or skipped."""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


def test_files(tree, only):
    """Every test file below the tree, by path."""
    found = sorted(p for p in tree.rglob("test_*.py") if "benchmarks" not in p.relative_to(tree).parts)
    return [p for p in found if not only or any(o in str(p.relative_to(tree)) for o in only)]


def cause(text):
    """One line that says why a case failed."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    coded = re.compile(r"(?:TW\d{4}.*|Mismatched elements.*|CUDA error.*|AssertionError.*|[\w.]*(?:Error|Exception)\b.*)")
    for line in reversed(lines):
        line = line.removeprefix("E ").strip()
        if coded.match(line) or "error: TW" in line:
            return line[:300]
    return lines[-1][:300] if lines else "no text"


def run_file(path, tree, options):
    """The result of one file, and the whole output of its process."""
    report = options.out.parent / "cases" / (str(path.relative_to(tree)).replace("/", "__") + ".jsonl")
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    places = [HERE, tree, *(tree / p for p in options.path)]
    environment = dict(os.environ, TILEWRIGHT_SUITE_CASES=str(options.cases), TILEWRIGHT_SUITE_REPORT=str(report))
    environment["PYTHONPATH"] = os.pathsep.join([*map(str, places), os.environ.get("PYTHONPATH", "")])
    if options.without_gpu:
        environment["TILEWRIGHT_SUITE_WITHOUT_GPU"] = "1"
    command = [sys.executable, "-m", "pytest", "-p", "sampled_cases", "-p", "no:cacheprovider", "-p", "no:benchmark", "-q",
               "-x" if options.first else "-q", str(path.relative_to(tree))]  # fmt: skip
    started = time.monotonic()
    process = subprocess.Popen(command, cwd=tree, env=environment, text=True, errors="replace", start_new_session=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
    timed_out = False
    try:
        output, _ = process.communicate(timeout=options.seconds)
    except subprocess.TimeoutExpired:
        timed_out = True
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    cases = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
    sampled = next((c["sampled"] for c in cases if "sampled" in c), 0)
    cases = [c for c in cases if "outcome" in c]
    count = collections.Counter(c["outcome"] for c in cases)
    causes = collections.Counter(cause(c["text"]) for c in cases if c["outcome"] == "failed")
    if timed_out:
        status = "timeout"
    elif process.returncode == 0:
        status = "pass" if count["passed"] else "skip"
    elif process.returncode == 5 and not count["failed"]:
        status = "skip"
    else:
        status = "fail" if count["failed"] else "crash"
        if not causes:
            causes[cause(output)] = 1
    result = {"status": status, "sampled": sampled, **{k: count[k] for k in ("passed", "failed", "skipped")},
              "seconds": round(time.monotonic() - started, 1), "causes": dict(causes)}  # fmt: skip
    return result, output


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--path", action="append", default=[])
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--first", action="store_true", help="stop a file at its first failure")
    parser.add_argument("--without-gpu", action="store_true")
    options = parser.parse_args()
    tree, options.out = options.tree.resolve(), options.out.resolve()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    logs = options.out.parent / "logs"
    logs.mkdir(exist_ok=True)
    started, results = time.monotonic(), {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = {pool.submit(run_file, p, tree, options): p for p in test_files(tree, options.only)}
        for done in concurrent.futures.as_completed(waiting):
            name = str(waiting[done].relative_to(tree))
            result, output = done.result()
            results[name] = result
            if result["status"] not in ("pass", "skip"):
                (logs / (name.replace("/", "__") + ".txt")).write_text(output)
            summary = ", ".join(f"{n} of {c[:160]}" for c, n in result["causes"].items())
            print(f"{result['status']:8}{result['passed']:4}/{result['sampled']:<4}{result['seconds']:7.1f} s  {name}  {summary}", flush=True)
    files = collections.Counter(r["status"] for r in results.values())
    cases = {k: sum(r[k] for r in results.values()) for k in ("passed", "failed", "skipped")}
    wall = round(time.monotonic() - started, 1)
    whole = {"wall_seconds": wall, "files": dict(files), "cases": cases, "results": dict(sorted(results.items()))}
    options.out.write_text(json.dumps(whole, indent=1) + "\n")
    print(f"{tree.name}: files {dict(files)}, cases {cases}, {wall} s")
    return 0 if set(files) <= {"pass", "skip"} else 1


if __name__ == "__main__":
    sys.exit(main())
