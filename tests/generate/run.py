"""Draws programs and runs them on the engines, each beside a NumPy model of the language (docs/fuzzing.md).

    python tests/generate/run.py --seeds 1..1000 --engines interpreter,cpu,simulator:sm_80,simulator:sm_90a --jobs 16"""
import argparse
import collections
import dataclasses
import json
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import library  # noqa: E402
from check import LOST, Finding, check, shows  # noqa: E402
from compile_many import available, processor_seconds, processor_seconds_of  # noqa: E402
from draw import Generator  # noqa: E402
from minimize import Minimizer  # noqa: E402
from model import Model  # noqa: E402
from prune import prune  # noqa: E402

ENGINES = "interpreter,cpu,simulator:sm_80,simulator:sm_90a"


def spent():
    """Seconds that this process and its children have computed."""
    return sum(os.times()[:4])


@dataclasses.dataclass
class Outcome:
    """What came of a seed, or of many: processor seconds by stage, how often each engine ran to its end, why it did not, and
    (seed, engine, kind, message) of what is wrong."""

    times: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    ran: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    refusals: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    findings: list = dataclasses.field(default_factory=list)

    def add(self, other):
        for mine, others in ((self.times, other.times), (self.ran, other.ran), (self.refusals, other.refusals)):
            mine.update(others)


class Work:
    """What a worker does with a seed; `at` is where it is, for who watches. It is `done` once it has lost the device."""

    def __init__(self, options, at):
        self.options, self.at, self.done = options, at, False
        self.library = library.Library(options.library)

    def engines(self, seed, skip):
        """(number, engine) of those that run this seed; those in `skip` have crashed or hung on it."""
        chosen = zip(self.options.engines, self.options.every)
        return [(number, engine) for number, (engine, every) in enumerate(chosen) if seed % every == 0 and engine not in skip]

    def seed(self, seed, skip=()):
        """The Outcome of one seed."""
        out = Outcome()
        self._note(seed, len(self.options.engines))
        start = spent()
        program = Generator(seed, self.options.size).program()
        out.times["draw"] = spent() - start
        result = prune(program)
        out.times["model"] = spent() - start - out.times["draw"]
        if result is None:
            out.refusals["model: nothing is left"] += 1
            return out
        expected, text = result[0], program.text()
        for number, engine in self.engines(seed, skip):
            self._note(seed, number)
            start = spent()
            try:
                refused = check(self.library, program, text, expected, engine)
                out.ran[engine] += not refused
                if refused:
                    out.refusals[f"{engine} {refused}"] += 1
            except Finding as found:
                out.findings.append((seed, engine, found.kind, found.message))
            except library.DeviceLost as why:
                self.done = True
                out.findings.append((seed, engine, LOST, str(why)))
            out.times[engine] += spent() - start
        self._note(seed, len(self.options.engines))
        return out

    def _note(self, seed, stage):
        self.at[0], self.at[1], self.at[2] = seed, stage, time.monotonic()


def work(options, at, connection, kind=Work):
    work_ = kind(options, at)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not options.verbose:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    while not work_.done and (job := connection.recv()) is not None:
        connection.send((work_.seed(*job), work_.done))
    library.leave()


class Worker:
    def __init__(self, options, target):
        self.options, self.at = options, multiprocessing.Array("d", 3, lock=False)
        self.connection, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=target, args=(options, self.at, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.job, self.where, self.computed = None, None, 0.0

    def start(self, job):
        self.job, self.at[2] = job, time.monotonic()
        self.connection.send(job)

    def stage(self):
        number = int(self.at[1])
        return (self.options.engines + ["model"])[number]

    def overdue(self):
        """Whether it has computed for too long at one thing; or does not even compute."""
        waited = time.monotonic() - self.at[2]
        if self.job is None or waited < self.options.timeout:
            return False
        here = (self.at[0], self.at[1])
        if here != self.where:
            self.where, self.computed = here, processor_seconds_of(self.process.pid)
        return processor_seconds_of(self.process.pid) - self.computed > self.options.timeout or waited > 20 * self.options.timeout

    def end(self, orderly=False):
        if orderly:
            self.connection.send(None)
            self.process.join(10)
        self.process.kill()
        self.process.join()
        self.connection.close()


class Run:
    """All seeds on all workers."""

    def __init__(self, options, target=work, write=None):
        self.options, self.seeds, self.target, self.write = options, iter(options.seeds), target, write or _write_one
        self.total, self.findings = Outcome(), []
        self.done, self.dropped, self.again, self.start = 0, 0, [], time.monotonic()

    def over(self):
        return self.options.seconds and time.monotonic() - self.start > self.options.seconds

    def next_job(self):
        if self.again:
            return self.again.pop()
        if self.over():
            return None
        seed = next(self.seeds, None)
        return None if seed is None else (seed, ())

    def run(self):
        workers = [Worker(self.options, self.target) for _ in range(self.options.jobs)]
        idle = list(workers)
        while True:
            while idle and (job := self.next_job()):
                idle.pop().start(job)
            busy = [w for w in workers if w not in idle]
            if not busy:
                break
            if self.over() and time.monotonic() - self.start > self.options.seconds + self.options.grace:
                self.dropped = len(busy)
                for w in busy:
                    w.end()
                break
            ready = multiprocessing.connection.wait([w.connection for w in busy], 0.5)
            for w in busy:
                if w.connection in ready or w.overdue():
                    new = self._collect(w)
                    workers[workers.index(w)] = new
                    idle.append(new)
        for w in workers:
            if w.process.is_alive():
                w.end(orderly=True)
        return self

    def _collect(self, w):
        """Takes what a worker has found; the worker to go on with."""
        job, w.job = w.job, None
        try:
            if not w.connection.poll(0):
                raise Finding("hang", f"more than {self.options.timeout} s")
            out, ended = w.connection.recv()
        except (EOFError, ConnectionError, Finding) as why:
            w.process.join(1) if not isinstance(why, Finding) else None
            kind = why.kind if isinstance(why, Finding) else _signal(w.process.exitcode)
            seed, stage = int(w.at[0]), w.stage()
            self.found(seed, stage, kind, str(why))
            w.end()
            if stage != "model":
                self.again.append((seed, job[1] + (stage,)))
            return Worker(self.options, self.target)
        for f in out.findings:
            self.found(*f)
        self.total.add(out)
        self.done += 1
        if ended:
            w.end()
            return Worker(self.options, self.target)
        return w

    def found(self, seed, engine, kind, message):
        if not any(f[:2] == (seed, engine) for f in self.findings):
            self.findings.append((seed, engine, kind, message))
            print(f"seed {seed}: {engine}: {kind}: {' '.join(message.split())[:300]}", flush=True)
            if self.options.out:  # as it is, at once: what comes after may be the end of the run
                multiprocessing.Process(target=self.write, args=(self.options, self.findings[-1], False), daemon=True).start()


def _signal(code):
    return signal.Signals(-code).name if code is not None and code < 0 else f"exit {code}"


def drawn(options, seed):
    """The program of a seed."""
    program = Generator(seed, options.size).program()
    prune(program)
    return program


def minimized(options, seed, engine, kind):
    """The smallest program found that shows the same on the engine."""
    program = drawn(options, seed)
    return Minimizer(program, shows(library.Library(options.library), engine, kind), options.tries).run()


def shape_of(program):
    """The statements of a program without names and numbers: findings of one cause often share it."""

    def of(body):
        words = []
        for s in body:
            word = s.kind + ("+" if s.kind == "reduce" and not s.clear else "") + (" " + s.op if "op" in s.fields else "")
            word += " pipelined" if s.kind == "for" and s.loop == "pipelined" else ""
            words.append(word + "".join(" {" + of(inner) + "}" for inner in s.bodies if inner))
        return "; ".join(words)

    return " | ".join(of(l.body) for l in program.launches)


def described(seed, engine, kind, message, program):
    """A .tile file that says what it shows."""
    lines = [f"# seed {seed}: {engine}: {kind}", f"# {shape_of(program)}"] + [f"#   {line}" for line in message.splitlines()[:4]]
    lines += [f"# {name}: {value}" for name, _, value in program.scalars + program.symbols]
    lines += [f"# {b.name}: {program.inputs[b].tolist()}"[:400] for b in program.params]
    return "\n".join(lines) + "\n" + program.text()


def _write_one(options, finding, minimize):
    seed, engine, kind, message = finding
    program = minimized(options, seed, engine, kind) if minimize else drawn(options, seed)
    if minimize and kind in ("wrong",):
        try:
            check(library.Library(options.library), program, program.text(), Model(program).run(), engine)
        except Finding as found:
            message = found.message
    name = f"seed_{seed}_{engine.replace(':', '_')}_{kind}.tile"
    (pathlib.Path(options.out) / name).write_text(described(seed, engine, kind, message, program))


def minimize_all(options, findings, write=None):
    """The programs of all findings, made small, each by a process of its own: it may crash or hang."""
    left, running = list(findings), []
    while left or running:
        while left and len(running) < options.jobs:
            process = multiprocessing.Process(target=write or _write_one, args=(options, left.pop(), True), daemon=True)
            process.start()
            running.append((process, time.monotonic()))
        time.sleep(0.05)
        for row in list(running):
            process, start = row
            if not process.is_alive() or time.monotonic() - start > options.patience:
                process.kill()
                process.join()
                running.remove(row)


def parser_of(description, default_engines):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seeds", default="1..100", help="1..1000: which programs")
    parser.add_argument("--seconds", type=float, default=0, help="start nothing new after so long")
    parser.add_argument("--grace", type=float, default=1e9, help="seconds after which what still runs then is dropped, and counted")
    parser.add_argument("--engines", default=default_engines, help=default_engines + ",cuda,host:sm_90a; cpu:optimized, cpu:checked, cpu:clang++; cuda/5: every fifth seed")
    parser.add_argument("--jobs", type=int, default=0, help="worker processes; else one a processor, eight with engine cpu, which waits for compilers")
    parser.add_argument("--size", type=float, default=1.0, help="about how many statements, beside the usual")
    parser.add_argument("--timeout", type=float, default=30, help="seconds of processor time that one engine may take for a program")
    parser.add_argument("--minimize", action="store_true", help="make the program of every finding small (with --out)")
    parser.add_argument("--tries", type=int, default=4000, help="candidates of a minimization")
    parser.add_argument("--patience", type=float, default=300, help="seconds for the minimization of one finding")
    parser.add_argument("--out", default="", help="a folder for the programs of findings")
    parser.add_argument("--library", default=None, help="libtilewright.so")
    parser.add_argument("--show", action="store_true", help="print the program of each seed, and run nothing")
    parser.add_argument("--json", default="", help="a file that gets one more line, the totals")
    parser.add_argument("--verbose", action="store_true", help="let engines write to standard error")
    return parser


def finish(options):
    first, _, last = options.seeds.partition("..")
    options.seeds = range(int(first), int(last or first) + 1)
    pairs = [word.partition("/") for word in options.engines.split(",")]
    options.engines, options.every = [name for name, _, _ in pairs], [int(every or 1) for _, _, every in pairs]
    levels = [name.partition(":")[2] or "quick" for name in options.engines if name.startswith("cpu")]
    if missing := [level for level in levels if level not in available()]:
        raise SystemExit(f"no compiler for cpu:{missing[0]}; there are {', '.join(available())}")
    kinds = {name.partition(":")[0] for name in options.engines}
    if "host" in kinds and kinds & {"cuda", "nvrtc"}:
        raise SystemExit("a process has one driver and one NVRTC: the host's, or a device's")
    compiled = bool(levels)
    options.jobs = options.jobs or os.cpu_count() * (8 if compiled else 1)
    options.library = str(options.library or library.find_library())
    if options.out:
        pathlib.Path(options.out).mkdir(parents=True, exist_ok=True)
    return options


def report(run):
    seconds = time.monotonic() - run.start
    total = run.total
    total.times["compilers"] = processor_seconds()
    print(f"{run.done} programs in {seconds:.1f} s ({run.done / max(seconds, 1e-9):.1f}/s): {len(run.findings)} findings")
    print("processor milliseconds each: " + ", ".join(f"{k} {1000 * v / max(run.done, 1):.1f}" for k, v in total.times.items()))
    print("ran to their end: " + ", ".join(f"{k} {v}" for k, v in total.ran.items()) + (f"; {run.dropped} were dropped" if run.dropped else ""))
    for text, n in total.refusals.most_common(12):
        print(f"  refused {n} times: {text[:160]}")
    if run.options.json:
        row = {"seeds": f"{run.options.seeds[0]}..", "programs": run.done, "seconds": round(seconds, 1), "ran": total.ran,
               "findings": len(run.findings), "dropped": run.dropped, "refused": sum(total.refusals.values()),
               "found": [(seed, engine, kind) for seed, engine, kind, _ in run.findings]}  # fmt: skip
        with open(run.options.json, "a") as file:
            print(json.dumps(row), file=file)


def options_of(arguments):
    parser = parser_of(__doc__.splitlines()[0], ENGINES)
    return finish(parser.parse_args(arguments))


def main(arguments=None):
    options = options_of(arguments)
    if options.show:
        for seed in options.seeds:
            print(drawn(options, seed).text())
        return 0
    library.prepare()
    run = Run(options).run()
    report(run)
    if options.out and options.minimize:
        minimize_all(options, run.findings)
    return 1 if run.findings else 0


if __name__ == "__main__":
    sys.exit(main())
