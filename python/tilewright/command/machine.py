"""tilewright doctor: what this machine offers, and what to install for what is missing."""
import argparse
import importlib.metadata
import json
import os
import re
import sys

from .. import _native
from ..tracebacks import has_colors

_GREEN, _RED, _PLAIN = "\033[32m", "\033[1;31m", "\033[0m"
_VECTORS = ("avx512", "avx2", "avx")


def report(trying=True):
    """What the library says of the machine, and what Python has: a dict."""
    found = json.loads(_native.machine(trying))
    found["python"] = {"version": sys.version.split()[0], "path": sys.executable}
    found["torch"] = _version("torch")
    return found


def _version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _mebibytes(count):
    return f"{count / 2**20:.0f} MiB"


def _short(compiler):
    """g++ 12.2 for the first line of --version."""
    version = re.search(r"\d+\.\d+", re.sub(r"\(.*?\)", "", compiler["version"]))
    return f"{os.path.basename(compiler['path'])} {version[0] if version else ''}".strip()


def line():
    """The machine in a line."""
    found = report(trying=False)
    vectors = next((v for v in _VECTORS if v in found["processor_used"].split()), "no vectors")
    compiler = _short(found["compiler"]) if found["compiler"]["works"] else "no compiler"
    devices = [f"{d['name']} ({d['architecture']})" for d in found["driver"]["devices"]]
    cuda = ", ".join(devices) or ("no device" if found["driver"]["works"] else "no driver")
    return (f"tilewright {found['version']}   cpu: {compiler}, {_threads(found)}, {vectors}   cuda: {cuda}   "
            f"cache: {_mebibytes(found['cache']['bytes'])}")  # fmt: skip


def _threads(found):
    return f"{found['threads']} thread{'' if found['threads'] == 1 else 's'}"


def _rows(found):
    """(name, whether it is all right or None, text, what to do)."""
    compiler, cache = found["compiler"], found["cache"]
    yield "tilewright", None, found["version"], ""
    yield "python", None, f"{found['python']['version']} {found['python']['path']}", ""
    yield "engines", None, ", ".join(found["engines"]), ""
    yield "compiler", compiler["works"], _words(compiler), compiler.get("help", "")
    for other in found["compilers"]:
        if other["path"] != compiler.get("path"):
            yield "", None, f"also {_words(other)}", ""
    used = "" if found["processor"] == found["processor_used"] else f"; used: {found['processor_used']}"
    yield "processor", None, found["processor"] + used, ""
    yield "threads", None, str(found["threads"]), ""
    nvrtc, driver = found["nvrtc"], found["driver"]
    yield "nvrtc", nvrtc["works"], _words(nvrtc), "" if nvrtc["works"] else f'pip install "tilewright[cuda]"; or {nvrtc.get("help", "")}'
    yield "driver", driver["works"], _words(driver), driver.get("help", "")
    for number, device in enumerate(driver["devices"]):
        yield f"cuda:{number}", True, (f"{device['name']}, {device['architecture']}, {device['sms']} SMs, {_mebibytes(device['memory_bytes'])}"), ""  # fmt: skip
    if not cache["directory"]:
        yield "cache", None, "none", ""
    elif not cache["exists"]:
        yield "cache", None, f"{cache['directory']}, which the first kernel makes", ""
    else:
        yield "cache", cache["usable"], f"{cache['directory']}: {cache['entries']} kernels, {_mebibytes(cache['bytes'])}", (
            "" if cache["usable"] else "it is not a private directory of this user and is not used: chmod 700, or set TILEWRIGHT_CACHE_DIR")  # fmt: skip
    yield "torch", None, found["torch"] or "not installed", "" if found["torch"] else 'pip install "tilewright[torch]", where kernels are to take its tensors'
    for name, value in found["switches"].items():
        yield "switch", None, f"{name}={value}", ""


def _words(part):
    if "problem" in part:
        return part["problem"]
    version = re.sub(r" \(\d+ bytes, .*\)$", "", part["version"])  # what tells a rebuilt compiler apart
    return f"{part['path']}  {version}" + (f"  {part['milliseconds']:.0f} ms for a kernel" if "milliseconds" in part else "")


def doctor(argv):
    parse = argparse.ArgumentParser(prog="tilewright doctor", description="What this machine offers; status 1 where the host's compiler does not work.")
    parse.add_argument("--json", action="store_true", help="an object")
    options = parse.parse_args(argv)
    found = report()
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        shown = has_colors(sys.stdout)
        for name, good, text, help in _rows(found):
            color = (_GREEN if good else _RED) if shown and good is not None else ""
            print(f"{name:<11} {color}{text}{_PLAIN if color else ''}")
            if help:
                print(f"{'':<11} {help}")
    return 0 if found["compiler"]["works"] else 1
