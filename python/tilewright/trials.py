"""Runs texts of Python programs, each in a process of its own and under a time limit, and gives what they print: by a process that
has imported what they import and forks for each, or by a new interpreter for each."""
import contextlib
import importlib
import importlib.util
import json
import os
import queue
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

BACKENDS = ("runner", "subproc")
_INSTALLED = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep, os.path.dirname(os.path.abspath(__file__)) + os.sep)
_SERVE = "import sys; sys.path.append(sys.argv[1]); from tilewright.trials import serve; serve()"


class Trials:
    """folder: where the programs find modules beside them. imports: names of modules that they import."""

    def __init__(self, backend, folder, imports, limit, jobs):
        self.backend, self.folder, self.imports, self.limit, self.jobs = backend, folder, sorted(imports), limit, jobs
        self.count = 0

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="tilewright_trials_"))
            self.pool = stack.enter_context(ThreadPoolExecutor(self.jobs))
            self.idle = queue.SimpleQueue()  # runners that have nothing to do
            stack.callback(self._stop)
            self.close = stack.pop_all().close
        return self

    def __exit__(self, *error):
        self.close()

    def printed(self, texts):
        """What each of the programs prints, to both of its outputs, in order."""
        begin, self.count = self.count, self.count + len(texts)
        return self.pool.map(self._one, range(begin, self.count), texts)

    def _one(self, number, text):
        folder = os.path.join(self.scratch, str(number))
        os.mkdir(folder)  # a folder for each: Python keeps what it has read of a file
        file, out = os.path.join(folder, "program.py"), os.path.join(folder, "output")
        with open(file, "w", encoding="utf-8") as program:
            program.write(text)
        if self.backend != "runner" or not self._forked(file, out):
            self._started(file, out)
        with open(out, encoding="utf-8", errors="replace") as output:
            return output.read()

    def _started(self, file, out):
        path = os.pathsep.join(p for p in (self.folder, os.environ.get("PYTHONPATH", "")) if p)
        with open(out, "wb") as output:
            process = subprocess.Popen([sys.executable, file], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                       env={**os.environ, "PYTHONPATH": path}, start_new_session=True)  # fmt: skip
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(self.limit)
            _end(process.pid)
            process.wait()

    def _forked(self, file, out):
        """Whether a runner has run it; one that has ended itself has not."""
        try:
            runner = self.idle.get_nowait()
        except queue.Empty:
            package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
            runner = subprocess.Popen([sys.executable, "-c", _SERVE, package, self.folder, *self.imports], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # fmt: skip
        try:
            runner.stdin.write(json.dumps([file, out, self.limit]) + "\n")
            runner.stdin.flush()
            done = runner.stdout.readline() == "done\n"
        except OSError:
            done = False
        if done:
            self.idle.put(runner)
        else:
            _finish(runner)
        return done

    def _stop(self):
        while not self.idle.empty():
            _finish(self.idle.get())


def _finish(runner):
    """A runner ends where its input does."""
    with contextlib.suppress(OSError):
        runner.stdin.close()
    runner.stdout.close()
    runner.wait()


def _end(session):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)


def _is_installed(name):
    """Whether a module is a library's: one that belongs to the program is imported anew by each of them."""
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    return found is not None and any(part in (found.origin or "") for part in _INSTALLED)


def serve():
    """A runner: takes programs from its input, one a line, and says when each has ended."""
    _, _, folder, *names = sys.argv
    sys.path[0] = folder
    asked, said = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    for own in (0, 1, 2):
        os.dup2(nothing, own)
    for name in names:
        if _is_installed(name):
            with contextlib.suppress(BaseException):  # the program will say what is wrong
                importlib.import_module(name)
    for line in asked:
        file, out, limit = json.loads(line)
        child = os.fork()
        if child == 0:
            os.setsid()
            os.close(asked.fileno())
            os.close(said.fileno())
            _run(file, out)
        _wait(child, limit)
        said.write("done\n")
        said.flush()


def _wait(child, limit):
    end = time.monotonic() + limit
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > end:
            _end(child)
            os.waitpid(child, 0)
            return
        time.sleep(0.005)
    _end(child)  # what it has started


def _run(file, out):
    """The program, in the process that was forked for it."""
    output = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.argv = [file]
    try:
        runpy.run_path(file, run_name="__main__")
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0)
