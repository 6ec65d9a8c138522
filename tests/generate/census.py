"""Counts what generated programs have: of so many, in how many each construct of the language stands.

    python tests/generate/census.py --seeds 1..1000"""
import argparse
import collections
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from draw import Generator  # noqa: E402
from nodes import walk  # noqa: E402
from prune import prune  # noqa: E402
from python_source import source_and_kinds  # noqa: E402
from scalars import BIT_FUNCTIONS, CLOSE_BINARY, CLOSE_FUNCTIONS, EXACT_FUNCTIONS, PREDICATES, TYPES  # noqa: E402

_STATEMENTS = ("store", "let", "for", "while", "if", "else", "break", "continue", "return", "map", "copy", "fill", "gemm", "reduce", "scan",
               "finalize_reducer", "atomic", "shuffle", "vote", "sync", "assert", "assume", "role", "arrive", "expect", "wait", "commit",
               "drain", "print", "fence", "set_registers", "call")  # fmt: skip
_FUNCTIONS = (*EXACT_FUNCTIONS, *PREDICATES, *BIT_FUNCTIONS, *CLOSE_FUNCTIONS, *CLOSE_BINARY, "min", "max", "min_nan", "max_nan", "clamp",
              "copysign", "fmod", "nextafter", "ldexp", "mulhi", "dp4a", "truncdiv", "truncmod", "fma", "select", "bitcast", "address", "erf",
              "rcp_approx", "ieee_frcp", "ieee_frsqrt", "__exp", "ieee_add_rz", "ieee_mul_ru", "ieee_fdiv_rd", "ieee_fmaf_rz")  # fmt: skip
_OPERATORS = ("+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">=", "and", "or")


def _patterns():
    found = {"store": r"^ *\w+\[[^=]*\] = ", "let": r"^ *\w+: \w+ = (?!atomic|shuffle|vote)", "else": r"^ *} else"}
    for name in _STATEMENTS:
        found.setdefault(name, rf"^ *(\w+: \w+ = )?{name}\b")
    found |= {f"{name}()": rf"\b{name}\(" for name in _FUNCTIONS}
    found |= {f"operator {op}": rf"[\w\])] {re.escape(op)} [\w(-]" for op in _OPERATORS} | {"operator ~": "~", "operator not": r"\bnot "}
    found |= {f"type {name}": rf"\b{name}\b" for name in (*TYPES, "float8_e8m0fnu", "tfloat32")}
    found |= {f"loop {kind}": rf"^ *for .* {kind}\b" for kind in ("unroll", "vectorized", "pipelined")}
    found |= {f"pipelined {w}": rf"pipelined\(.*\b{w}=" for w in ("stages", "order", "stage")}
    found |= {f"space {s}": rf"^ *{s} \w+: " for s in ("symbol", "param", "global", "shared", "fragment", "local", "barrier")}
    found |= {f"buffer {w}": rf"^ *\w+ \w+: [^=]*(\w+=\S+ )*{w}=" for w in ("strides", "view", "offset", "fill", "layout", "reducer", "arrive", "address", "cta", "alignment")}
    found |= {f"launch {w}": rf"^ *launch .*\) {w}\(|^ *launch .* {w}\(" for w in ("cluster", "min_blocks", "swizzle", "plan")}
    found |= {"strides of the call": r"strides=\[[^\]]*\bS\d", "cluster of a grid of the call": r"^ *launch \w+\([^{]*\(M \*[^{]* cluster\(",
              "plan of several lines": r' plan\("[^"]*", "', "loop to less than none perhaps": r"^ *for .* \(n0 - int32\(\d"}  # fmt: skip
    found |= {f"plan {line}": rf' plan\([^{{]*"{line}' for line in ("work split", "work stream_k", "work (one_tile|persistent)[^\"]* pairs", "order", "ring", "fit", "epilogue", "role")}
    found |= {"threads in two dimensions": r"threads\(tx: \d+, ty", "threads in three dimensions": r"threads\(.* tz: "}
    found |= {f"option {w}": rf"^ *option {w}=" for w in ("contract", "fast_math", "strict", "tf32")}
    found |= {f"reduce {op}": rf"reduce {op} " for op in ("sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor")}
    found |= {f"scan {op}": rf"scan {op} " for op in ("sum", "max")}
    found |= {f"reduce {w}": rf"^ *reduce .* {w}" for w in ("clear=false", "nan_propagate")} | {"scan reverse": r"^ *scan .* reverse"}
    found |= {f"atomic {op}": rf"atomic {op} " for op in ("add", "max", "min", "and", "or", "xor", "exchange", "compare_exchange", "load", "store")}
    found |= {f"shuffle {op}": rf"shuffle {op} " for op in ("index", "up", "down", "xor")}
    found |= {f"vote {op}": rf"vote {op} " for op in ("any", "all", "ballot", "match_any", "match_all", "active", "block_all", "block_any", "block_count")}
    found |= {f"sync {scope}": rf"sync {scope}" for scope in ("block", "warp", "grid", "cluster", "named")}
    found |= {f"gemm {w}": rf"^ *gemm .* {w}=" for w in ("transpose_a", "transpose_b", "policy", "clear", "metadata", "completion")}
    found |= {f"copy {w}": rf"^ *copy .* {w}=" for w in ("completion", "combine", "im2col")} | {"cp_async": r"queue=cp_async", "tma load": r"completion=\(barrier"}
    found |= {"index of a narrow type or unsigned": r"^ *\w+\[.*\[[^\]]*\b(u?int8|u?int16|uint32)\(", "index that wraps around before it is divided": r"\[[^\]]*\(\(\w+ \* int32\(-?\d{8,}\)\) \+ int32\(\d+\)\) (//|%)"}
    found |= {"cast toward zero": r", toward_zero\)", "cast stochastic": r", stochastic,"}
    return {name: re.compile(p, re.M) for name, p in found.items()}


PATTERNS = _patterns()

# What no word shows, but a statement says of itself.
KINDS = (
    "alias of what changes", "variable carried through a loop", "slice with a name", "element with a name", "operand written by points",
    "operand in parts", "copy to a slot of several", "copy of a part to a slot of several", "operand of the next turn", "values before keys",
    "clear by a condition", "clear in a branch", "product in a loop of one turn", "product in a loop of no turns",
    "product in a loop of less than none", "rescaled between products", "attention", "tiles in turn", "in place", "stored and read again",
    "atomic of one thread in a product's loop", "atomic of one thread behind a loop", "value of an atomic used", "threads behind a loop",
    "guard that never holds", "tile larger than its tensor", "dimension of one element", "tile partly outside before", "tile partly outside behind", "tile wholly outside",
)  # fmt: skip
# How the engine `python` writes programs.
OF_PYTHON = tuple(f"python: {kind}" for kind in (
    "name bound again", "name bound again in a loop", "name bound again in a branch", "name carried through a loop", "loop targets of one name",
    "target of a name that has a value", "slice with a name", "negative index"))  # fmt: skip


def kinds_of(program):
    """Those of KINDS that statements of a program are."""
    return {kind for l in program.launches for s, _ in walk(l.body) for kind in s.fields.get("kinds", ())}

# What no program has, and who looks at it instead.
NOT_DRAWN = {
    "print": "tests/engines", "fence": "means nothing here", "set_registers": "means nothing here", "call": "tests/engines",
    "address()": "tests/python", "buffer address": "tests/python", "buffer offset": "comes from passes", "buffer alignment": "comes from passes",
    "buffer cta": "tests/simulator", "sync cluster": "tests/simulator", "sync grid": "tests/engines", "sync warp": "tests/simulator",
    "sync named": "tests/engines", "pipelined order": "the mutator", "pipelined stage": "the mutator",
    "option fast_math": "other results on a GPU", "option strict": "tests/python", "gemm metadata": "tests/engines",
    "gemm completion": "tests/codegen", "vote match_any": "tests/engines", "vote match_all": "tests/python", "vote active": "tests/engines",
    "cast stochastic": "tests/unit", "rcp_approx()": "tests/simulator", "ieee_frcp()": "tests/python", "ieee_frsqrt()": "tests/python",
    "ieee_fmaf_rz()": "tests/unit", "__exp()": "tests/unit", "type float8_e8m0fnu": "tests/unit", "type tfloat32": "tests/unit",
}  # fmt: skip


def census(seeds, size=1.0):
    """(programs, in how many of them each construct stands)."""
    programs, found = 0, collections.Counter({name: 0 for name in (*PATTERNS, *KINDS, "python", *OF_PYTHON)})
    for seed in seeds:
        program = Generator(seed, size).program()
        if prune(program) is None:
            continue
        programs += 1
        text = program.text()
        found.update(name for name, pattern in PATTERNS.items() if pattern.search(text))
        source, written = source_and_kinds(program)
        found.update(kinds_of(program) | written | ({"python"} if source else set()))
    return programs, found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1..1000")
    first, _, last = parser.parse_args().seeds.partition("..")
    programs, found = census(range(int(first), int(last or first) + 1))
    print(f"{programs} programs")
    for name, count in found.most_common():
        print(f"{count:7} {name}" + (f" ({NOT_DRAWN[name]})" if not count and name in NOT_DRAWN else ""))


if __name__ == "__main__":
    main()
