"""python -m tilewright.reference: the language as a page, docs/python_language.md. Operations come from the library's
table, the rest from the functions themselves."""
import enum
import inspect
import sys

from . import _native, dtypes, language
from .refused import Refused

GROUPS = {
    "buffer": ("Memory", "Tiles of a block, variables of a thread, and other views of them."),
    "tile": ("Tiles", "What all threads of a block do together, on whole tiles or boxes of them."),
    "scalar": ("Values", "On elements and numbers; operators of Python (`+`, `//`, `<<`, `<`, ...) mean the same."),
    "thread": ("Threads", "What single threads do: indices, exchanges within warps, atomics, prints, assertions."),
    "order": ("Order", "Barriers, copies that run on, and what waits for them."),
}
_HEAD = """# The language in Python

Written by `python -m tilewright.reference`; a test holds it to the library's table. [python.md](python.md) says how functions become
programs, [language.md](language.md) what the operations mean, with examples in C++; [reference](reference/README.md) has a page for
each operation. `T` is `tilewright.language`.

A *tile* is a buffer, the head of a box (`A[i, j]`) or a box (`A[i, a:b]`); an *expr* a number, an expression, an element or a
variable; *exprs* a list of them. Parameters that TileLang has and that change nothing here are taken, and left out of this page.
"""


def parameters(signature):
    """Of an operation, but for those that change nothing."""
    words = [w.strip() for w in signature.split(", ")]
    kept = [w for w in words if not w.partition(": ")[2].startswith(("ignored", "absent"))]
    return ", ".join(kept[:-1] if kept[-1:] == ["*"] else kept)


def cell(text):
    return " ".join(inspect.cleandoc(text or "").split()).replace("|", "\\|")


def _table(rows):
    return "\n".join(["| Call | Meaning |", "|---|---|", *(f"| `{call}` | {cell(doc)} |" for call, doc in rows)]) + "\n"


def signature_of(name, value):
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return ", ".join(f"T.{name}.{member.name}" for member in value)
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return f"T.{name}(...)"
    words = []
    for p in parameters:
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = "" if p.default is p.empty or star else f"={p.default!r}"
        words.append(f"{star}{p.name}{default}")
    return f"T.{name}({', '.join(words)})".replace("|", "\\|")


def _operations():
    for group, (title, meaning) in GROUPS.items():
        rows = [
            (f"T.{name}({parameters(signature)})".replace("|", "\\|"), doc)
            for name, of, signature, doc in sorted(_native.operations())
            if of == group
        ]
        yield f"\n## {title}\n\n{meaning}\n\n{_table(rows)}"


def _functions():
    known = {row[0] for row in _native.operations()}
    own, hints, refused, same = [], [], {}, {}
    names = {n: getattr(language, n) for n in language._known_names() if n not in language._OTHER_NAMES}
    for name, value in sorted(names.items()):
        if not language._is_public(name) or name in known or isinstance(value, dtypes.dtype) or not callable(value):
            continue
        if isinstance(value, Refused):
            refused.setdefault(value.__doc__, []).append(name)
        elif value is language._ignored:
            hints.append(name)
        elif id(value) in same:
            same[id(value)].append(name)
        elif value.__doc__ and str(getattr(value, "__module__", "")).startswith("tilewright"):
            same[id(value)] = [name]
            own.append((name, value))
    rows = []
    for name, value in own:
        others = same[id(value)][1:]
        also = f" Also {', '.join(f'`T.{n}`' for n in others)}." if others else ""
        rows.append((signature_of(name, value), value.__doc__ + also))
    yield f"\n## Programs, launches, loops, and what is made of operations\n\n{_table(rows)}"
    yield f"\n## Hints\n\nThey change no result, and are taken without effect: {', '.join(f'`T.{n}`' for n in hints)}.\n"
    others = ", ".join(f"`T.{n}` = `T.{of}`" for n, of in sorted(language._OTHER_NAMES.items()))
    yield f"\n## Other names of operations\n\n{others}.\n"
    yield "\n## Names that are refused\n\nThey can be imported and asked about; what uses them is an error.\n\n"
    for doc, names in refused.items():
        yield f"- {', '.join(f'`T.{n}`' for n in names)}: {cell(doc.removeprefix('Refused when used: '))}\n"


def _dtypes():
    names = ", ".join(f"`{n}`" for n in dtypes.NAMES)
    others = ", ".join(f"`{a}` = `{n}`" for a, n in sorted(dtypes.ALIASES.items()))
    return (
        f"\n## Dtypes\n\nAs `T.float16`, as text, or as PyTorch's and NumPy's own: {names}.\n\nOther names: {others}.\n\n"
        f"Bytes (`uint8`) are taken for tensors of {', '.join(f'`{n}`' for n in sorted(dtypes.AS_BYTES))}.\n\n"
        "`float4_e2m1_unpacked`, fp4 with a byte for each element, is what TMA of sm_100 unpacks `float4_e2m1fn` to in shared memory: tiles of it\n"
        "can be declared and asked about, and what uses one is an error.\n\n"
        "Each with a number of lanes is a type of vectors, `T.float32x2` or `T.int8x16`: of 2, 4, 8, 16, 32 or 64. What is computed with\n"
        "vectors is computed with each of their lanes; memory of vectors, and slices of elements, hold their lanes side by side.\n"
    )


_SKILL_HEAD = """# Every operation

Written by `python -m tilewright.reference`; a test holds it to the library's table. `T` is `tilewright.language`. A *tile* is a buffer,
the head of a box (`A[i, j]`) or a box (`A[i, a:b]`); an *expr* a number, an expression, an element or a variable. In a session
`help(T.gemm)` says the same, and `dir(T)` lists all names.
"""


def skill_text():
    """The page for agents: what the language has, and not what it refuses or ignores."""
    functions = next(_functions())
    return "".join([_SKILL_HEAD, *_operations(), functions, _dtypes()])


def text():
    """The whole page."""
    return "".join([_HEAD, *_operations(), *_functions(), _dtypes()])


if __name__ == "__main__":
    sys.stdout.write(text())
