"""tilewright tune: the fastest of the configurations of a function under @jit."""
import functools
import json
import signal
import sys

from .. import outputs
from ..errors import TilewrightError
from ..jitted import Jit, each_by_threads
from ..trace import fail
from ..tuner import Tuned, configurations, parameters_of
from ..tuning import Search
from .kernels import _at_home, _facts, _name_of, _one, _parser, _parts, _values


def tune(argv):
    parse = _parser("tune", "Measures a function under @jit with each configuration that @autotune gives it, or that --over does, on random "
                    "tensors, compares what they compute, and says which is the fastest.")  # fmt: skip
    parse.add_argument("--over", action="append", default=[], metavar="NAME=VALUE,...", help="values to try of a parameter, each with each of the others'")
    parse.add_argument("--log", metavar="FILE", help="of JSON lines: a search that was stopped goes on from there")
    parse.add_argument("--json", action="store_true", help="an object; errors too")
    options = parse.parse_intermixed_args(argv)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a kernel that runs hears no other
    try:
        name, values, search, best = _searched(parse, options)
    except TilewrightError as error:
        if not options.json:
            raise
        print(json.dumps({"error": _facts(error)}))
        return 1
    rows = _rows(search, best)
    if options.json:
        print(json.dumps({"program": name, "engine": best.engine, "values": values, "best": best.config, "configurations": rows}, default=repr))
    else:
        print(_table(name, values, best, rows))
    return 0


def _searched(parse, options):
    """(name, its values, the search, the best kernel)."""
    values, over = _values(parse, options.values), _over(parse, options.over)
    if options.log:
        outputs.check(options.log, _parts(options.kernel)[0])
    found = _one(options.kernel)
    if not isinstance(found, Jit):
        fail("OperandKind", f"'{_name_of(found)}' is a program already: it has no parameters to choose",
             "tune a function under @tilewright.jit, whose parameters are numbers of a tile, threads, stages", (_parts(options.kernel)[0], 0, 0))  # fmt: skip
    module = sys.modules[found.func.__module__]
    tuned = next((v for v in vars(module).values() if isinstance(v, Tuned) and v.function is found), None)
    candidates = _candidates(found, tuned, over, values)
    for both in sorted({n for c in candidates for n in c} & set(values)):
        parse.error(f"{both} is what is tuned: it has no value of its own")
    given = {**values, **parameters_of(candidates[0])}
    for name in set(given).difference(_at_home(found, lambda: found.takes(given))):
        parse.error(f"'{_name_of(found)}' takes no {name}; it has {', '.join(found.order)}")
    makers = [functools.partial(_at_home, found, functools.partial(found.compile, **{**values, **parameters_of(c)})) for c in candidates]
    kernels = each_by_threads(makers, f"compiling {_name_of(found)}", catch=TilewrightError)
    if len({str(k) for k in kernels}) == 1 and isinstance(kernels[0], TilewrightError):
        raise kernels[0]  # of what all have in common
    search = Search(_name_of(found), **{**(tuned.options if tuned else {}), "log": options.log})
    return _name_of(found), values, search, _at_home(found, lambda: search.best_of(candidates, kernels))


def _over(parse, given):
    """{name: values}."""
    over = {}
    for text in given:
        name, equals, values = text.partition("=")
        listed = [value for value in values.split(",") if value]
        if not equals or not listed:
            parse.error(f"--over '{text}' is no NAME=VALUE,VALUE")
        over[name] = [_values(parse, [f"{name}={value}"])[name] for value in listed]
    return over


def _candidates(found, tuned, over, values):
    if over:
        return _at_home(found, lambda: configurations(over, (), {}))
    if tuned is None:
        fail("BadOption", f"'{_name_of(found)}' has no configurations to choose from",
             "write @tilewright.autotune(configs=...) above it, or say --over NAME=VALUE,VALUE", (found.func.__code__.co_filename, found.func.__code__.co_firstlineno, 0))  # fmt: skip
    return _at_home(found, lambda: configurations(tuned.configs, (), values))


def _rows(search, best):
    """Of each configuration, the fastest first: its time in ms, or why it is none to take."""
    right = next(kernels for _, kernels in search.groups if best in kernels)
    rows = []
    for config, outcome in search.outcomes:
        if isinstance(outcome, Exception):
            rows.append({"config": config, "error": str(outcome).partition("\n")[0]})
        elif outcome in right:
            rows.append({"config": config, "ms": outcome.latency})
        else:
            rows.append({"config": config, "ms": outcome.latency, "error": "computes something else than most of them"})
    return sorted(rows, key=lambda row: ("error" in row, row.get("ms", 0)))


def _table(name, values, best, rows):
    given = " ".join(f"{n}={v}" for n, v in values.items())
    lines = [f"{name} on {best.engine}{', ' if given else ''}{given}: {len(rows)} configurations"]
    for row in rows:
        time = f"{row['ms']:9.4g} ms" if "ms" in row else " " * 10 + "--"
        config = " ".join(f"{n}={v}" for n, v in row["config"].items())
        ratio = f"{row['ms'] / best.latency:5.2f} x" if "error" not in row else " " * 7
        lines.append(f"{time}  {ratio}  {config}" + (f"   {row['error']}" if "error" in row else ""))
    return "\n".join(lines)
