"""Asks a process of its own what a file says. What the file does there, and how long it takes, is no matter to the server."""

import asyncio
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys

import tilewright

_START = "import sys; sys.path[:] = [p for p in sys.path if p]; from tilewright.lsp.analysis import main; main()"
_LONGEST = 1 << 26  # of an answer, in bytes


def _environment():
    """That of the server, and the package that it runs from. Kernels that a file calls are compiled by nobody."""
    package = str(pathlib.Path(tilewright.__file__).parents[1])
    path = os.pathsep.join(p for p in (os.environ.get("PYTHONPATH"), package) if p)
    return {**os.environ, "PYTHONPATH": path, "TILEWRIGHT_ENGINE": "interpreter", "TILEWRIGHT_NVRTC": os.devnull}


async def ask(request, folder):
    """The answer to a request (the arguments of Analysis): {"mistakes", "facts", "files", "complete"}. The file has
    `limit` seconds to be imported, and its kernels as long to be recorded. Cancelled, it ends the process, and what that started."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _START, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, limit=_LONGEST,
        start_new_session=True, env=_environment(), cwd=folder if os.path.isdir(folder) else None)  # fmt: skip
    try:
        said = await asyncio.wait_for(_conversation(process, request), 2 * request["limit"] + 2)
        return json.loads(said)
    except asyncio.TimeoutError:
        return _nothing(f"the analysis was stopped after {2 * request['limit'] + 2:g} s")
    except ValueError:
        return _nothing("the process that imported this file ended before it was done")
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _conversation(process, request):
    with contextlib.suppress(ConnectionError):  # it may have ended already; then there is no answer
        process.stdin.write(json.dumps(request).encode())
        await process.stdin.drain()
        process.stdin.close()
    return await process.stdout.readline()


def _nothing(why):
    return {"mistakes": [{"message": why, "line": 1, "start": 0, "end": 0, "severity": 2, "code": "", "fixes": []}],
            "facts": [], "files": [], "complete": False}  # fmt: skip
