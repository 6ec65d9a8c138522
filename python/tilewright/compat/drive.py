"""One program in a process of its own: python -m tilewright.compat.drive SETTINGS.json. Results go to a file, a line for
each case as it ends, so that what a time limit cuts off still counts for what it did."""
import argparse
import json
import linecache
import os
import re
import sys
import time
import traceback

import tilewright
from tilewright import _native, as_tilelang, kernel, pretended_gpu, profiler

_PACKAGE = os.path.dirname(os.path.abspath(tilewright.__file__)) + os.sep


class OnlyCompiled(BaseException):
    """Ends a case at the first call of a kernel, where programs are only compiled."""


class Results:
    def __init__(self, file):
        self.file = open(file, "a", encoding="utf-8")
        self.not_compiled = []  # mistakes of compiling for another machine, since the last case

    def write(self, **record):
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()

    def case(self, name, outcome, seconds, error=None, reason=""):
        failed, self.not_compiled = self.not_compiled, []
        if isinstance(error, OnlyCompiled):
            outcome, error = "pass", None
        record = {"case": name, "outcome": outcome, "seconds": round(seconds, 3), "not_compiled": failed}
        if error is not None:
            record.update(described(error, name))
        elif reason:
            record.update(kind="skipped", cause=reason.removeprefix("Skipped: "))
        elif failed and outcome == "pass":
            record.update(outcome="fail", **failed[0])
        self.write(**record)


_WRONG = ("close", "mismatch", "differ", "equal", "Max diff", "similar")
_TEXT = ("source", "src", "code", "script(", ".count(", "cuda_text")
# Words of TileLang's own device library, exact statements and names of its text, its host stub and its IR: no other
# compiler has them. CUDA's own names are not here.
_OWN_TEXT = re.compile(
    r"tl::|\btma_(load|store)|cp_async_gs|Atomic(Add|Or|Max|Min)\w*x?[24]|AllReduce|\b(Sum|Max|Min)Op|run_batch|NamedBarrier"
    r"|\b(load|store)_(global|shared)_\d|ptx_stmatrix|ptx_ldmatrix|st_bulk|wgmma_ss|warpgroup_|wait_wgmma|initialize_wgmma|arrive_and_expect"
    r"|expect_transaction|\bfp[48]_e\w+_t\b|tl_shuffle|__tl_|\btl_\w|device_assert_with|__tvm|TVMFFI|dyn_shmem|dynamic shared buffer|_producer_ws"
    r"|pipeline_mbar|\(int\)threadIdx|threadIdx\.x\)|clusterDim =|\.script\(\)|broadcast_var"
)


def _looks_for_own_text(error, line, case):
    """Whether what fails looks for text that only TileLang generates."""
    asked = str(error)[:160].partition(" in '")[0]
    if isinstance(error, ValueError):
        return "substring not found" in str(error) and bool(_OWN_TEXT.search(line))
    line = line if "assert" in line.lower() else ""  # else a name of the program's that looks like one
    return isinstance(error, AssertionError) and bool(_OWN_TEXT.search(asked) or _OWN_TEXT.search(line) or _OWN_TEXT.search(case))


def _asserted_after(file, number):
    """The assertions of the same block behind that line: what a case would look at next."""
    lines = linecache.getlines(file)
    indent = re.match(r"\s*", lines[number - 1])[0] if 0 < number <= len(lines) else ""
    found = []
    for text in lines[number:]:
        if text.strip() and not text.startswith(indent):
            break
        if text.startswith(indent + "assert "):
            found.append(text)
    return "".join(found)


def _looked_up(file, number):
    """The lines of the same block before an assertion that look in a text for what it speaks of."""
    lines = linecache.getlines(file)
    if not 0 < number <= len(lines) or not lines[number - 1].strip().startswith("assert "):
        return ""
    indent, names = re.match(r"\s*", lines[number - 1])[0], set(re.findall(r"[A-Za-z_]\w*", lines[number - 1]))
    found = []
    for text in reversed(lines[: number - 1]):
        if text.strip() and not text.startswith(indent):
            break
        bound = re.match(r"(\w+) = .*\.(find|findall|search|index|count)\(", text[len(indent) :])
        if bound and bound[1] in names:
            found.append(text)
    return "".join(found)


def _kind(error, line, case, after="", before=""):
    if _looks_for_own_text(error, line, case) or (isinstance(error, AssertionError) and _OWN_TEXT.search(before)):
        return "text of TileLang"
    if isinstance(error, AssertionError) and any(w in line for w in _TEXT) and _OWN_TEXT.search(after):
        return "text of TileLang"
    if isinstance(error, tilewright.TilewrightError):
        return "not there" if error.message.startswith("Tilewright has no") else "refused"
    if isinstance(error, ImportError):
        return "import"
    if isinstance(error, AssertionError):
        if any(w in line for w in _TEXT):
            return "generated text"
        return "wrong numbers" if any(w in line or w in str(error) for w in _WRONG) else "assertion"
    if str(error).startswith("DID NOT RAISE"):
        return "not refused"  # what the program expects to be refused
    return "exception"


def described(error, case=""):
    """Kind, text and place of an error: the place in the program, not in this package."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if not f.filename.startswith(_PACKAGE) and "site-packages" not in f.filename
            and "/lib/python" not in f.filename and not f.filename.startswith("<")]  # fmt: skip
    at = ours[-1] if ours else frames[-1] if frames else None
    line = linecache.getline(at.filename, at.lineno).strip() if at else ""
    text = str(error).strip()
    first = next((t.strip() for t in text.splitlines() if t.strip()), "")
    own = isinstance(error, tilewright.TilewrightError) and error.code  # codes of others, as SystemExit's, are not ours
    cause = f"{error.code} {error.message}" if own else f"{type(error).__name__}: {first or line}"
    if isinstance(error, AssertionError) and line and line not in cause:
        cause += f" [{line}]"
    after, before = (_asserted_after(at.filename, at.lineno), _looked_up(at.filename, at.lineno)) if at else ("", "")
    return {"kind": _kind(error, line, case, after, before), "cause": cause[:400], "place": f"{at.filename}:{at.lineno}" if at else "", "line": line[:200]}


def compile_also(arch, results, only):
    """Compiles each program for that GPU too, whatever runs it, and shows that text; only for it, where nothing runs."""
    create, show = kernel.Kernel.__new__, kernel.Kernel.get_kernel_source

    def new(cls, program, engine, own_arch, outputs):
        if only:
            made = create(cls, program, "cuda", own_arch or arch, outputs)
            made.other_source = made.source
            return made
        made = create(cls, program, engine, own_arch, outputs)
        try:
            made.other_source = _native.Kernel(program, "cuda", arch).source
        except tilewright.TilewrightError as error:
            made.other_source = None
            results.not_compiled.append(described(error))
        return made

    kernel.Kernel.__new__ = new
    kernel.Kernel.get_kernel_source = lambda self, *ignored, **also: self.other_source or show(self)


def compile_only():
    def end(*arguments, **named):
        raise OnlyCompiled

    kernel.Kernel.__call__ = end
    kernel.Kernel.get_profiler = end
    profiler.do_bench = end


def run_tests(settings, results):
    import pytest

    from .cases import Cases

    # conftest.py of the folders above belong to the test, however the project says where it begins.
    arguments = [settings["file"], f"--confcutdir={settings['project']}", "-q", "-x" if settings.get("first") else "-q", "-p", "no:cacheprovider", "--no-header", "--tb=short"]
    try:
        return int(pytest.main(arguments, plugins=[Cases(results, settings["cases"])]))
    except (argparse.ArgumentError, ValueError) as clash:
        # An option of the project's is one of an installed plugin's: those stay out.
        if not re.search("conflicting option|already added", str(clash)) or os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
            raise
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def run_script(settings, results):
    import runpy

    sys.argv = [settings["file"]]
    begin, outcome, found = time.perf_counter(), "pass", None
    try:
        runpy.run_path(settings["file"], run_name="__main__")
    except SystemExit as error:
        if error.code not in (0, None):
            outcome, found = "fail", error
    except (Exception, OnlyCompiled) as error:
        if not isinstance(error, OnlyCompiled):
            traceback.print_exc()
        outcome, found = "fail", error
    if settings["kind"] == "refused":
        print("refused:", found)
        outcome, found = ("pass", None) if outcome == "fail" else ("fail", AssertionError("it ran, and was to be refused"))
    results.case("main", outcome, time.perf_counter() - begin, found)
    return 0


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        settings = json.load(file)
    results = Results(settings["results"])
    if settings["without_gpu"]:
        pretended_gpu.without_gpu(settings["compile_for"] or "sm_90a")
    as_tilelang.install(force=True, for_children=True)
    if settings["compile_for"]:
        compile_also(settings["compile_for"], results, settings["only_compile"])
    if settings["only_compile"]:
        compile_only()
    sys.path[0] = os.path.dirname(settings["file"])
    code = (run_tests if settings["kind"] == "tests" else run_script)(settings, results)
    results.write(exit=code)
    sys.stdout.flush()
    os._exit(code)  # what is left of threads and devices has no say any more


if __name__ == "__main__":
    main()
