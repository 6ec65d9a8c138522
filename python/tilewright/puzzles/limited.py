"""Runs a function in a process of its own, forked from this one, under a time limit: neither Python nor an engine can be trusted
to end, and an engine hears nothing while it runs."""
from __future__ import annotations

import contextlib
import ctypes
import io
import os
import signal
import sys
import time
import traceback
import warnings
from multiprocessing.connection import Pipe
from multiprocessing.pool import ExceptionWithTraceback

from ..errors import TilewrightError
from ..tracebacks import is_of_python, is_ours

_GRACE = 1.0  # seconds in which Python says where it is, before the process is ended
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


class Ended(Exception):
    """No result came: `signal` is 0 where the time was up, else what ended the process (-1: it ended itself). `last` is what had
    begun, and `place` the entry of a traceback in lines that are not this package's, where Python was still running."""

    def __init__(self, signal, last, place=None):
        super().__init__(signal, last, place)
        self.signal, self.last, self.place = signal, last, place


class _TimeIsUp(BaseException):
    """No Exception: the function's own handlers leave it alone."""


class _Written(io.TextIOBase):
    """A stream whose text is written by the parent: only there it may be a notebook's."""

    def __init__(self, pipe, name):
        self._pipe, self._name = pipe, name

    def writable(self):
        return True

    def write(self, text):
        self._pipe.send((self._name, text))
        return len(text)


def run(function, seconds):
    """What function(begin) returns or raises; begin(what) says what it does from now on."""
    received, sent = Pipe(duplex=False)
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads: the child uses none of the parent's
        child = os.fork()
    if child == 0:
        _run(function, seconds, sent)
    sent.close()
    waited = 0
    try:
        last, end = None, time.monotonic() + seconds + _GRACE
        while received.poll(max(0, end - time.monotonic())):
            try:
                kind, value = received.recv()
            except EOFError:
                status = os.waitpid(child, 0)[1]
                waited = child
                raise Ended(os.WTERMSIG(status) if os.WIFSIGNALED(status) else -1, last) from None
            if kind == "begun":
                last = value
            elif kind == "returned":
                return value
            elif kind == "raised":
                raise value
            elif kind == "late":
                raise Ended(0, last, value)
            else:
                getattr(sys, kind).write(value)
        raise Ended(0, last)
    finally:
        received.close()
        if not waited:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _time_is_up(*_):
    raise _TimeIsUp


def _run(function, seconds, pipe):
    """The child."""
    try:
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGALRM, _time_is_up)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        with contextlib.redirect_stdout(_Written(pipe, "stdout")), contextlib.redirect_stderr(_Written(pipe, "stderr")):
            pipe.send(("returned", function(lambda what: pipe.send(("begun", what)))))
    except _TimeIsUp as error:
        pipe.send(("late", _place(error)))
    except BaseException as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        is_coded = isinstance(error, TilewrightError) and error.area != "internal"
        pipe.send(("raised", error if is_coded else ExceptionWithTraceback(error, error.__traceback__)))
    finally:
        os._exit(0)


def _place(error):
    """File, line and text of the last line that is neither this package's nor Python's."""
    place = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if not is_ours(frame.f_code) and not is_of_python(frame.f_code):
            (entry,) = traceback.StackSummary.extract([(frame, line)])
            place = entry.filename, entry.lineno, (entry.line or "").strip()
    return place
