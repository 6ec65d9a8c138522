"""Runs one program in a process of its own, under a time limit, and reads what it left."""
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import tilewright

from .programs import Program

_ALL_SKIPPED, _NOTHING_COLLECTED = 5, 5  # pytest's exit status for both
OWN_TEXT = "text of TileLang"
_RIGHT, _WRONG = "✅", "❌"  # programs that print marks for their checks


@dataclass
class Result:
    program: Program
    status: str  # "pass", "text" (all that fails looks for text of TileLang's own), "fail", "timeout", "crash", "skip", "not run"
    seconds: float = 0.0
    cases: list = field(default_factory=list)  # records of drive.py
    expected: int = 0  # cases that were to run
    causes: list = field(default_factory=list)  # records of what failed, one for each case

    @property
    def passed(self):
        return sum(c["outcome"] == "pass" for c in self.cases)

    @property
    def ran(self):
        return max(self.expected, len(self.cases) - len(self.skipped))

    @property
    def skipped(self):
        return [c for c in self.cases if c["outcome"] == "skip"]

    @property
    def lacked_memory(self):
        return any("OutOfMemoryError" in c["cause"] for c in self.causes)

    def line(self):
        text = f"{self.status:8} {self.passed}/{self.ran} {self.seconds:6.1f} s  {self.program.name}"
        text += f"  ({len(self.skipped)} skipped: {self.skipped[0].get('cause', '')})" if self.skipped else ""
        return text + (f"\n    {self.causes[0]['kind']}: {self.causes[0]['cause'][:200]}" if self.causes else "")


def _environment(program, options, cache):
    package = os.path.dirname(os.path.dirname(os.path.abspath(tilewright.__file__)))
    inside = [str(program.project / folder) for folder in options.path]
    path = [package, str(program.project), *inside, os.environ.get("PYTHONPATH", "")]
    changed = {"PYTHONPATH": os.pathsep.join(p for p in path if p), "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    if not options.warm:
        changed["TILEWRIGHT_CACHE_DIR"] = cache
    if options.engine != "auto":
        changed["TILEWRIGHT_ENGINE"] = options.engine
    return {**os.environ, **changed}


def _stop(process):
    """Ends the program and what it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def run(program, options, scratch, deadline=None):
    """The result of one program."""
    left = options.limit if deadline is None else min(options.limit, deadline - time.time())
    if left <= 0:
        return Result(program, "not run")
    name = program.name.replace(os.sep, "__")
    log = Path(options.out).resolve() / "logs" / (name + ".log")
    records, settings = Path(scratch) / (name + ".jsonl"), Path(scratch) / (name + ".json")
    settings.write_text(json.dumps({
        "file": str(program.file), "project": str(program.project), "kind": program.kind, "cases": options.cases, "results": str(records),
        "without_gpu": options.without_gpu, "compile_for": options.compile_for, "only_compile": options.only_compile,
    }))  # fmt: skip
    records.unlink(missing_ok=True)
    environment = _environment(program, options, os.path.join(scratch, "cache", name))
    begin = time.time()
    with open(log, "wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tilewright.compat.drive", str(settings)],
            cwd=program.file.parent if program.file.parent.is_dir() else None,
            env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            code = process.wait(left)
        except subprocess.TimeoutExpired:
            code = None
        _stop(process)
    return _judged(program, code, time.time() - begin, records, log)


def _judged(program, code, seconds, records, log):
    lines = [json.loads(line) for line in records.read_text().splitlines()] if records.exists() else []
    cases = [r for r in lines if "case" in r]
    expected = max([r["sampled"] for r in lines if "sampled" in r], default=0)
    ended = any("exit" in r for r in lines)
    text = log.read_text(errors="replace")
    if program.kind == "script":
        cases = _marked(cases, text)
    result = Result(program, "pass", seconds, cases, expected - sum(c["outcome"] == "skip" for c in cases))
    result.causes = [c for c in cases if c["outcome"] == "fail"]
    if code is None:
        result.status = "timeout"
        result.causes.append({"case": "", "kind": "timeout", "cause": f"timeout after {result.passed} cases", "place": "", "line": ""})
    elif not ended:
        result.status = "crash"
        last = [line for line in text.splitlines() if line.strip()][-1:] or [""]
        what = signal.Signals(-code).name if code < 0 else f"exit {code}"
        result.causes.append({"case": "", "kind": "crash", "cause": f"{what}: {last[0][:200]}", "place": "", "line": ""})
    elif result.causes:
        result.status = "text" if all(c["kind"] == OWN_TEXT for c in result.causes) else "fail"
    elif code == _ALL_SKIPPED or not result.passed:
        result.status = "skip" if code in (0, _NOTHING_COLLECTED) else "fail"
    if result.status == "fail" and not result.causes:
        result.causes.append({"case": "", "kind": "exit", "cause": f"exit status {code}", "place": "", "line": ""})
    return result


def _marked(cases, text):
    """A script that prints marks has one case for each; one that ended early has its own failure besides."""
    marks = [c for c in text if c in (_RIGHT, _WRONG)]
    if not marks:
        return cases
    wrong = {"outcome": "fail", "kind": "wrong numbers", "cause": f"prints {_WRONG}", "place": "", "line": ""}
    found = [{"case": f"mark {i}", "outcome": "pass"} if m == _RIGHT else {"case": f"mark {i}", **wrong} for i, m in enumerate(marks)]
    return found + [c for c in cases if c["outcome"] == "fail"]
