"""What a program will cost on a machine, before it runs: predict(kernel, "H200", M=4096) (docs/cost_model.md)."""
from __future__ import annotations

import dataclasses
import functools
import html
import json
from typing import Any

from . import _native, call_values
from .shown import Picture, table
from .trace import fail
from .tracebacks import entry

UNITS = {"matrix": "matrix unit", "shared": "shared memory", "l2": "L2 cache", "memory": "device memory", "issue": "elementwise code",
         "special": "special functions", "results": "results that leave", "barriers": "barriers"}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Machine:
    """What the units of a device do: rates a clock and multiprocessor, bytes of its memory a microsecond, clocks a microsecond.
    dataclasses.replace() makes another one of it."""

    name: str
    arch: str  # whose plans are priced
    basis: str  # where the numbers come from
    multiprocessors: float
    clock: float
    multiply_adds: float
    of_warps: float
    multiply_adds_64: float
    plain: float
    special: float
    conversions: float
    shared_bytes: float
    l2_bytes: float
    result_bytes: float
    memory_bytes: float
    launch: float

    def words(self) -> str:
        """As the library takes it: the name, and the numbers that differ from those of the machine of that name."""
        known = machines().get(self.name.upper())
        if known is None:
            fail("BadOption", f"there is no machine '{self.name}'",
                 f"make it of one of {', '.join(machines())}, by dataclasses.replace(machine, memory_bytes=...), and keep its name")  # fmt: skip
        changed = (f.name for f in dataclasses.fields(self) if getattr(self, f.name) != getattr(known, f.name))
        return " ".join([self.name, *(f"{name}={getattr(self, name)!r}" for name in changed if name != "name")])


@functools.cache
def _machines():
    return {row["name"]: Machine(**row) for row in json.loads(_native.machines())}


def machines() -> dict[str, Machine]:
    """The machines that predictions know, by name; `basis` says of each whether it was measured."""
    return dict(_machines())


# A program that fits every machine.
_NOTHING = "program nothing {\n  param A: float32[1]\n  launch nothing(bx: 1) threads(tx: 32) {\n    fill to=A value=0.0\n  }\n}\n"


def machine(text: str) -> Machine:
    """The machine that a text means: "H200", "sm_80", "H100 memory_bytes=2e6"."""
    return Machine(**json.loads(_native.parse(_NOTHING, "nothing.tile").cost(text, {}))["machine"])


class Prediction:
    """What a program costs: `us` (None: `unknown` says which symbols have no value), `limit`, the unit that decides,
    `launches`, `utilization`, the share of the time for which each unit is busy, `machine`, `json`."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.json = facts
        self.program: str = facts["program"]
        self.machine: Machine = Machine(**facts["machine"])
        self.us: float | None = facts["us"]
        self.unknown: list[str] = facts.get("unknown", [])
        self.launches: list[dict[str, Any]] = facts["launches"]

    @property
    def limit(self) -> str | None:
        """The unit that decides, of the launch that takes longest."""
        return max(self.launches, key=lambda launch: launch["us"])["limit"] if self.launches else None

    @property
    def utilization(self) -> dict[str, float]:
        """Of each unit, the share of the time of all launches for which it is busy."""
        if not self.us:
            return {}
        return {unit: sum(launch["utilization"][unit] * launch["us"] for launch in self.launches) / self.us for unit in UNITS}

    def __str__(self) -> str:
        where = f"{self.program} on {_article(self.machine.name)} ({self.machine.basis})"
        if self.us is None:
            why = f"nothing says what {', '.join(self.unknown)} {'is' if len(self.unknown) == 1 else 'are'}" if self.unknown else (
                "how many tiles or turns there are depends on what memory says")
            return f"{where}: {why}"
        lines = [f"{where}: about {_rounded(self.us)} us; what decides: {UNITS[self.limit]}"]
        for launch in self.launches:
            lines += ["", *_said_of(launch)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{self.program} on {_article(self.machine.name)}: {'unknown' if self.us is None else f'about {_rounded(self.us)} us'}>"

    def picture(self) -> Picture:
        """Bars of how busy each unit is, by launch."""
        return Picture(_drawn(self), f"{self.program} on {_article(self.machine.name)}")

    def _repr_html_(self):
        return f"{_drawn(self)}<details><summary>as text</summary><pre>{html.escape(str(self))}</pre></details>"

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


def _article(name):
    return f"an {name}" if name[0] in "AEFHILMNORSX" else f"a {name}"


def _rounded(number):
    return f"{float(f'{number:.3g}'):g}"


def _said_of(launch):
    waves = "1 wave" if launch["waves"] == 1 else f"{launch['waves']} waves"
    last = "" if launch["waves"] == 1 and launch["last_wave"] == 1 else f", {launch['last_wave']:.0%} of the last one full"
    yield (f"launch {launch['name']}: about {_rounded(launch['us'])} us, {launch['tiles']:.0f} tiles in {waves}{last}; "
           f"the device's memory alone {_rounded(launch['memory_us'])} us")  # fmt: skip
    clocks = launch["clocks_of_a_tile"]
    rows = [[UNITS[unit], f"{clocks[unit]:.0f}" if unit in clocks else "", f"{100 * share:.0f}%", "decides" if unit == launch["limit"] else ""]
            for unit, share in launch["utilization"].items()]  # fmt: skip
    yield from (f"  {line}" for line in table(("unit", "clocks a tile", "busy", ""), rows))
    yield from (f"  {line}" for line in launch["plan"])


# ---- the picture

_BAR, _ROW, _LEFT = 420, 22, 170
_STYLE = ("text{font:13px system-ui,sans-serif;fill:#1b1f24}.b{fill:#0550ae}.d{fill:#b3470b}.g{fill:#e6ebf1}"
          "@media(prefers-color-scheme:dark){text{fill:#e3e7ec}.b{fill:#7db7ff}.d{fill:#f2a267}.g{fill:#2a313b}}")  # fmt: skip


def _drawn(prediction):
    parts, y = [], 18

    def say(x, text, more=""):
        parts.append(f'<text x="{x}" y="{y}"{more}>{html.escape(text)}</text>')

    say(0, str(prediction).split("\n")[0], ' font-weight="600"')
    for launch in prediction.launches:
        y += _ROW + 6
        say(0, f"{launch['name']}: about {_rounded(launch['us'])} us, {launch['tiles']:.0f} tiles in {launch['waves']} waves")
        for unit, share in launch["utilization"].items():
            y += _ROW
            say(0, UNITS[unit])
            parts.append(f'<rect class="g" x="{_LEFT}" y="{y - 12}" width="{_BAR}" height="15" rx="3"/>')
            parts.append(f'<rect class="{"d" if unit == launch["limit"] else "b"}" x="{_LEFT}" y="{y - 12}" width="{max(1, _BAR * share):.0f}" height="15" rx="3"/>')
            say(_LEFT + _BAR + 10, f"{100 * share:.0f}%" + (" decides" if unit == launch["limit"] else ""))
    title = html.escape(f"How busy the units are: {prediction.program}")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{title}" width="{_LEFT + _BAR + 110}" height="{y + 12}" '
            f'viewBox="0 0 {_LEFT + _BAR + 110} {y + 12}"><title>{title}</title><style>{_STYLE}</style>{"".join(parts)}</svg>')  # fmt: skip


@entry
def predict(what: Any, machine: Any = "", **symbols: int) -> Prediction:
    """What a kernel or a program costs on a machine, which need not be there, and nothing is compiled.

    what: a kernel, a function under @T.prim_func, or what tilewright.parse() gives. machine: "H200" and the like (machines() has
    them), an architecture, or a Machine; without one, that of the kernel's target, or an H200. symbols: values of T.dynamic and of
    parameters that are integers. CompileError TW8203 and others where no plan for that machine fits."""
    program = getattr(what, "program", what)
    if not isinstance(program, _native.Program):
        fail("OperandKind", f"predict() of {type(what).__name__}", "it takes a kernel, or a program: product(4096, 4096, 4096), not product")
    if not machine:
        machine = getattr(what, "arch", "") or "sm_90a"
    symbols = call_values.integers(program, symbols)
    words = machine.words() if isinstance(machine, Machine) else str(machine)
    return Prediction(json.loads(program.cost(words, symbols)))
