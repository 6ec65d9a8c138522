"""Asks a process of its own what a file says. What the file does there, and how long it takes, is no matter to the server."""

import asyncio
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys

import tilewright

_START = "import sys; sys.path[:] = [p for p in sys.path if p]; from tilewright.lsp.forks import serve; serve(int(sys.argv.pop()))"
_LONGEST = 1 << 26  # of an answer, in bytes


def _environment():
    """That of the server, and the package that it runs from. Kernels that a file calls are compiled by nobody."""
    package = str(pathlib.Path(tilewright.__file__).parents[1])
    path = os.pathsep.join(p for p in (os.environ.get("PYTHONPATH"), package) if p)
    return {**os.environ, "PYTHONPATH": path, "TILEWRIGHT_ENGINE": "interpreter", "TILEWRIGHT_NVRTC": os.devnull}


class Processes:
    """A process that has the compiler loaded, and forks one for each question (forks.py)."""

    def __init__(self):
        self.process = self.door = None

    def start(self):
        self.door, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _START, str(theirs.fileno())], pass_fds=[theirs.fileno()], start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_environment())  # fmt: skip

    def has_ended(self):
        try:
            return self.door is None or self.door.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) == b""
        except BlockingIOError:  # it never says anything
            return False
        except OSError:
            return True

    async def ask(self, request, early):
        """The answer to a request (the arguments of Analysis): {"mistakes", "facts", "files", "complete"}; early() is called with one
        before it is known what kernels become. The file has `limit` seconds to be imported, and its kernels as long to be recorded.
        Cancelled, it ends the process, and what that started."""
        said = b""
        try:
            for _ in range(2):  # again where it was not this file's process alone that ended
                with contextlib.suppress(ConnectionError):
                    said = await self.asked(request, early)
                if said or not self.has_ended():
                    break
            return json.loads(said)
        except asyncio.TimeoutError:
            return _nothing(f"the analysis was stopped after {2 * request['limit'] + 2:g} s")
        except ValueError:
            return _nothing("the process that imported this file ended before it was done")

    async def asked(self, request, early):
        """The last line of a new process, nothing where it ends before; it has ended afterwards."""
        if self.has_ended():
            self.start()
        line, theirs = socket.socketpair()
        wanted, held = socket.socketpair()
        with theirs, held:
            socket.send_fds(self.door, [b"."], [theirs.fileno(), held.fileno()])
        reader, writer = await asyncio.open_connection(sock=line, limit=_LONGEST)
        try:
            return await asyncio.wait_for(_conversation(reader, writer, request, early), 2 * request["limit"] + 2)
        finally:
            writer.close()
            with wanted, contextlib.suppress(OSError):
                wanted.shutdown(socket.SHUT_WR)
                wanted.setblocking(False)
                await asyncio.get_running_loop().sock_recv(wanted, 1)


async def _conversation(reader, writer, request, early):
    with contextlib.suppress(ConnectionError):  # it may have ended already; then there is no answer
        writer.write(json.dumps(request).encode() + b"\n")
        await writer.drain()
        line = await reader.readline()
        if line.endswith(b', "early": true}\n'):
            early(json.loads(line))
            line = await reader.readline()
        return line
    return b""


def _nothing(why):
    return {"mistakes": [{"message": why, "line": 1, "start": 0, "end": 0, "severity": 2, "code": "", "fixes": []}],
            "facts": [], "files": [], "complete": False}  # fmt: skip
