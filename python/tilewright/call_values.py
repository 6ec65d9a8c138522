"""Values of a program's symbols and numbers that stand for those of a call: checked as a call's own are."""
import operator
import re

from .trace import fail

_NAME = r'(\w+|`(?:[^`\\]|\\.)*`)'  # in backquotes where it is no word
_PROGRAM = re.compile(rf"^program {_NAME}", re.MULTILINE)
_NAMED = re.compile(rf"^ *(?:symbol {_NAME}: (\w+)|param {_NAME}: (\w+)$)", re.MULTILINE)
_OF_FLOATS = re.compile(r"b?float|tfloat")


def types_of(program):
    """{name: dtype} of the symbols and numbers that a program takes."""
    return {(symbol or number).strip("`"): symbol_type or type for symbol, symbol_type, number, type in _NAMED.findall(program.text)}


def numbers(program, values):
    """{name: number} as the library takes them. It refuses what no call could give; here, names and values that have no
    number of 64 bits."""
    types, checked = types_of(program), {}
    name = _PROGRAM.search(program.text)[1].strip("`")
    for key, value in values.items():
        if key not in types:
            fail("BadOption", f"'{name}' has no dimension '{key}' that a call gives", f"it has {', '.join(types)}" if types else "its shapes are known")
        checked[key] = _number(name, key, value, types[key])
    return checked


def integers(program, values):
    """Those of integers alone: no plan and no time depends on others."""
    return {name: value for name, value in numbers(program, values).items() if isinstance(value, int)}


def _number(program, name, value, dtype):
    if _OF_FLOATS.match(dtype) and isinstance(value, float):
        return value
    try:
        number = operator.index(value)
    except TypeError:
        fail("ScalarRange", f"{program}: '{name}' is {dtype}, but is given {value!r}", "give a number" if _OF_FLOATS.match(dtype) else "give an integer")
    if _OF_FLOATS.match(dtype):
        return float(number)
    if not -(2**63) <= number < 2**63:
        fail("ScalarRange", f"{program}: {name} = {number} does not fit {dtype}")
    return number
