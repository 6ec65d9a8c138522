"""Runs a program on an engine and compares with what the model says."""
import os
import resource
import signal

import numpy as np
from library import DeviceLost, Refused, pack, unpack
from memory import Invalid
from model import Model
from python_source import python_source, traced
from scalars import CLOSE, EXACT, decode


LOST = "lost"  # the kind of a finding after which a process has no device any more


class Finding(Exception):
    """What is wrong with a program on an engine: its kind ("wrong", "TW6002", "SIGSEGV", "hang", "lost") and what there is to say."""

    def __init__(self, kind, message):
        super().__init__(f"{kind}: {message}")
        self.kind, self.message = kind, message


# Of the codes of a device: there is none, and what it cannot run or launch. The others are mistakes of who called it.
_NO_SUCH_DEVICE = ("TW8101", "TW8102", "TW8103", "TW8105", "TW8106")


# A compiler that does not take our text, or makes what cannot be loaded. That it does not end in time (TW5502) says more of
# who else computes on the machine.
_OUR_OWN = ("TW5501", "TW5503", "TW8003")


def may_refuse(code):
    """An engine may refuse what it cannot do: the areas parse, build and verify of all engines, compile of the CPU and of GPUs."""
    if code in _OUR_OWN:
        return False
    if code.startswith("TW81"):
        return code in _NO_SUCH_DEVICE
    return code[2:].isdigit() and code[2] in "12358"


def arguments_of(program):
    found, memories = [], {}
    for b in program.params:
        memories[b] = spread_out(b, program.inputs[b]) if b.strides else pack(b.dtype, program.inputs[b])
        found.append((b.dtype.name, b.dtype.bits, b.shape, memories[b], b.strides))
    for _, t, value in program.scalars:
        found.append(float(value) if t.is_float else int(value))
    return found, memories


BETWEEN = 0xA5  # the bytes of a tensor that are none of its elements


def spread_out(b, elements):
    """The memory of a tensor with strides."""
    places = b.places()
    memory = np.full((int(places.max(initial=0)) + 1) * b.dtype.bytes, BETWEEN, np.uint8)
    memory.view(b.dtype.storage)[places] = elements
    return memory


def gathered(b, memory):
    """The elements of such a tensor, and whether all between them is as it was."""
    places, around = b.places(), memory.copy()
    around.view(b.dtype.storage)[places] = np.full(b.dtype.bytes, BETWEEN, np.uint8).view(b.dtype.storage)[0]
    return memory.view(b.dtype.storage)[places], bool((around == BETWEEN).all())


def differences(program, expected, memories):
    """What an engine left otherwise than the model: [(buffer, how many, first index, expected, got)]."""
    found = []
    for b in program.params:
        t = b.dtype
        stored, states = expected[b]
        got, whole = gathered(b, memories[b]) if b.strides else (unpack(t, memories[b], b.size), True)
        if not whole:
            found.append((b.name + " between its rows", 1, (), "untouched", "written"))
        if t.is_packed and not t.is_signed:
            stored = stored & 15
        same = stored == got
        if t.is_float:
            x, y = decode(t, stored), decode(t, got)
            same = same | (x == y) | np.isnan(x) & np.isnan(y)
            with np.errstate(all="ignore"):
                near = np.abs(x.astype(np.float64) - y) <= np.abs(x.astype(np.float64)) * 2.0 ** (3 - t.mantissa) + 1e-6
            same = same | (states == CLOSE) & near
        wrong = ~same & ((states == EXACT) | (states == CLOSE))
        if wrong.any():
            at = int(np.argmax(wrong))
            index = tuple(int(i) for i in np.unravel_index(at, b.shape))
            found.append((b.name, int(wrong.sum()), index, decode(t, stored)[at].item(), decode(t, got)[at].item()))
    return found


def through_python(program):
    """The text of the program that tracing it as Python gives, or None."""
    source = python_source(program)
    if source is None:
        return None
    try:
        return traced(source, program.options)
    except Exception as why:  # the package's own class of error has a code
        raise Refused(getattr(why, "code", type(why).__name__), str(why), f"{why}\n{source}") from None


def check(library, program, text, expected, engine):
    """Runs the program. The code with which the engine refuses it, or None; a Finding where something is wrong."""
    arguments, memories = arguments_of(program)
    name, _, arch = engine.partition(":")
    try:
        if name == "python":
            name, text = "interpreter", through_python(program)
            if text is None:
                return "python has no word for it"
        if name == "nvrtc":
            return library.compile_by_nvrtc(text, arch)
        library.run(text, name, arch, arguments)
        if program.refused:
            raise Finding("called", f"although a shape or a grid leaves its type ({program.refused})")
    except DeviceLost as why:
        if name != "host":
            raise
        raise Finding("fault", str(why)) from None
    except Refused as why:
        if program.refused and why.code == program.refused:
            return None
        if name == "host" and why.code == "TW8003" and "this host has no " in why.text:
            return why.text.partition("error: ")[2].partition("\n")[0]
        if may_refuse(why.code) or (program.unreached and why.code == "TW6012"):
            return why.code + " " + why.message
        raise Finding(why.code, why.text) from None
    wrong = differences(program, expected, memories)
    if wrong:
        raise Finding("wrong", "; ".join(f"{n}{list(i)} is {y}, not {x} ({c} elements)" for n, c, i, x, y in wrong[:3]))
    return None


def in_child(action, seconds):
    """Runs action in a process of its own: what it returns, or a Finding where it crashes or does not end."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(receive)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
            signal.alarm(20 * seconds)  # where it does not even compute
            try:
                message = "ok " + (action() or "")
            except Finding as found:
                message = f"{found.kind} {found.message}"
            except DeviceLost as why:
                message = f"{LOST} {why}"
            except Exception as why:  # a candidate that makes no sense
                message = f"nonsense {why}"
            os.write(send, message.encode()[:60000])
        finally:
            os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        message = pipe.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        raise Finding("hang" if number in (signal.SIGALRM, signal.SIGXCPU, signal.SIGKILL) else signal.Signals(number).name, "")
    if os.WEXITSTATUS(status):
        raise Finding(f"exit {os.WEXITSTATUS(status)}", "")
    kind, _, rest = message.partition(" ")
    if kind != "ok":
        raise Finding(kind, rest)
    return rest or None


def shows(library, engine, kind, seconds=20):
    """Whether a program shows a finding of this kind on the engine, as a function for the minimizer."""
    apart = kind == "hang" or kind.startswith(("SIG", "exit")) or engine == "cuda"  # where any candidate may lose the device

    def holds(program):
        try:
            expected = Model(program, 20_000_000).run()
        except Invalid:
            return False
        text = program.text()
        try:
            if apart:
                in_child(lambda: check(library, program, text, expected, engine), 5 if kind == "hang" else seconds)
            else:
                check(library, program, text, expected, engine)
        except Finding as found:
            return found.kind == kind
        return False

    return holds
