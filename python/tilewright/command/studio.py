"""tilewright studio: a page about a kernel."""
import json
import os
import signal

from .. import call_values, outputs, studio as page
from .kernels import _made, _numbers, _one, _parsed, _parser, _parts, _refuse_unknown, _values


def studio(argv):
    parse = _parser("studio", "Writes a page about a kernel, HTML that needs no server and no network: its source beside what it "
                    "becomes, what it costs, shared memory, rings, layouts, passes, plans. FILE.tile is a program in text form.")  # fmt: skip
    parse.add_argument("--arch", default="", metavar="sm_90a", help="on this GPU instead of where it would run here")
    parse.add_argument("-o", "--out", metavar="PAGE", help="the file (KERNEL.html)")
    parse.add_argument("--simulate", nargs="*", metavar="NAME=VALUE", help="call it on random tensors on a simulated GPU, and show "
                       "what that counts; its symbols and numbers, small ones, where they differ from those above")  # fmt: skip
    parse.add_argument("--seed", type=int, default=1, help="of the random tensors (1)")
    parse.add_argument("--trace", metavar="FILE", help="when things happen in the simulated call, for ui.perfetto.dev")
    options = parse.parse_args(argv)
    if options.trace and options.simulate is None:
        parse.error("--trace is of a simulated call: --simulate M=128")
    program, name, arch, symbols = _program(parse, options)
    out, source = options.out or f"{name}.html", _parts(options.kernel)[0]
    for written in [out, *([options.trace] if options.trace else [])]:
        outputs.check(written, source)
    simulated = None
    if options.simulate is not None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # the simulator hears no other
        numbers = call_values.numbers(program, _numbers(parse, {**symbols, **_values(parse, options.simulate)}))
        simulated = page.counted(lambda: _counts(program, arch or "sm_90a", numbers, options))
    print(page.write(program, out, arch, symbols, simulated))
    if simulated and "error" in simulated:
        print(simulated["error"])
        return 1
    return 0


def _program(parse, options):
    """(program, its name, architecture, values of its symbols)."""
    values = _values(parse, options.values)
    if options.kernel.endswith(".tile"):
        program = _parsed(options.kernel)
        name = os.path.splitext(os.path.basename(options.kernel))[0]
        return program, name, options.arch, _numbers(parse, values)
    kernel, symbols = _made(_one(options.kernel), values, "interpreter" if options.arch else None)
    _refuse_unknown(parse, kernel, symbols)
    return kernel.program, kernel.name, options.arch or kernel.explained_arch(), symbols


def _counts(program, arch, numbers, options):
    counts, trace = program.simulate(arch, numbers, options.seed)
    if options.trace:
        outputs.write(options.trace, trace)
    return json.loads(counts)
