"""tilewright cost: how long a kernel will take, by a model of a machine."""
import dataclasses
import json

from .. import cost as model, outputs
from ..errors import TilewrightError
from ..trace import fail
from .kernels import _facts, _made, _numbers, _one, _parsed, _parser, _parts, _refuse_unknown, _values


def cost(argv):
    parse = _parser("cost", "How long a kernel will take on a GPU and how busy it keeps each unit, by a model of the machine: nothing is "
                    "compiled, and no GPU is needed. FILE.tile is a program in text form.")  # fmt: skip
    parse.add_argument("--machine", action="append", metavar="NAME", help="H200, H100, A100, L40S, B200 or an architecture, with numbers of it "
                       'behind: "H100 memory_bytes=2e6"; several times: beside each other (sm_90a: an H200)')  # fmt: skip
    parse.add_argument("--machines", action="store_true", help="what the machines are")
    parse.add_argument("--json", action="store_true", help="an object a machine; errors too")
    parse.add_argument("--picture", metavar="FILE", help="how busy the units are, as SVG")
    if "--machines" in argv:
        return _machines("--json" in argv)
    options = parse.parse_intermixed_args(argv)
    machines = options.machine or [""]
    if options.picture and len(machines) > 1:
        parse.error("--picture is of one machine")
    try:
        found = _predictions(parse, options, machines)
    except TilewrightError as error:
        if not options.json:
            raise
        print(json.dumps({"error": _facts(error)}))
        return 1
    for number, prediction in enumerate(found):
        print(json.dumps(prediction.json) if options.json else "\n" * (number > 0) + str(prediction))
    if options.picture:
        found[0].picture().save(options.picture)
    return 0


def _predictions(parse, options, machines):
    values = _values(parse, options.values)
    if options.kernel.endswith(".tile"):
        what, symbols = _parsed(options.kernel), _numbers(parse, values)
    else:
        what, symbols = _made(_one(options.kernel), values, "interpreter")
        _refuse_unknown(parse, what, symbols)
    if options.picture:
        outputs.check(options.picture, _parts(options.kernel)[0])
    found = [model.predict(what, machine or "sm_90a", **symbols) for machine in machines]
    for unknown in (prediction.unknown for prediction in found if prediction.us is None and prediction.unknown):
        fail("ArgumentCount", f"{found[0].program}: nothing says what {', '.join(unknown)} {'is' if len(unknown) == 1 else 'are'}", f"give a value: {unknown[0]}=4096")
    return found


def _machines(as_json):
    known = [dataclasses.asdict(machine) for machine in model.machines().values()]
    if as_json:
        print(json.dumps(known))
        return 0
    from ..shown import table

    rows = [[name, *(f"{m[name]:g}" if isinstance(m[name], float) else m[name] for m in known)] for name in known[0] if name not in ("name", "basis")]
    print("\n".join(table(("", *(m["name"] for m in known)), rows)))
    print("\n".join(f"{m['name']}: {m['basis']}" for m in known))
    return 0
