"""Changes real programs, given as .tile texts, and runs them on all engines beside the interpreter (docs/fuzzing.md).

    python tests/generate/mutate.py --from FOLDER_OR_FILE... --seeds 1..1000 --engines cpu,simulator:sm_80 --jobs 16

A variant counts if the verifier takes it and the interpreter runs it; then the other engines must give what that gives."""
import collections
import pathlib
import random
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import library  # noqa: E402
import numpy as np  # noqa: E402
import run as runner  # noqa: E402
from check import LOST, Finding, in_child, may_refuse  # noqa: E402
from library import DeviceLost, Refused, pack, unpack  # noqa: E402
from scalars import TYPES, decode, encode, round_to  # noqa: E402

_NUMBER = r"(?<![\w.]){}(?![\w.])"
_DECLARES = ("shared ", "fragment ", "local ", "barrier ", "global ")
_SIZES = (1, 2, 3, 4, 8, 16, 17, 24, 32, 33, 48, 64, 96, 128, 256)
_FLOATS = ("float16", "bfloat16", "float32", "float8_e4m3fn", "float8_e5m2")
_INTS = ("int8", "uint8", "int32", "int16", "uint32", "int64")


class Unusable(Exception):
    """A text that cannot be run here: too large, or with parameters that are no plain tensors."""


def texts_of(paths, of_library):
    """[(name, text)] of files and folders; without any, of the examples, which the build of the library prints."""
    found = []
    for path in map(pathlib.Path, paths):
        for file in sorted(path.rglob("*.tile")) if path.is_dir() else [path]:
            found.append((file.name, file.read_text()))
    if not paths:
        printed = subprocess.run([pathlib.Path(of_library).parent / "tests/print_examples"], capture_output=True, text=True, check=True).stdout
        for part in printed.split("### ")[1:]:
            head, _, text = part.partition("\n")
            found.append((head, text))
    return found


# ---- changes: each takes lines and gives others, or None


def statements(lines):
    """[(first line, line behind the last)] of the statements of launches, whole chains of branches at a time."""
    found, depth, starts, inside = [], 0, {}, False
    for i, line in enumerate(lines):
        text = line.strip()
        if text.startswith("launch "):
            inside, depth, starts = True, 0, {}
            continue
        if not inside or not text:
            continue
        if text.startswith("}"):
            if text == "}":
                depth -= 1
                if depth < 0:
                    inside = False
                elif depth in starts:
                    found.append((starts.pop(depth), i + 1))
            continue
        if text.endswith("{"):
            starts[depth] = i
            depth += 1
        elif not text.startswith(_DECLARES):
            found.append((i, i + 1))
    return found


def _replace(lines, old, new):
    changed = [re.sub(_NUMBER.format(re.escape(str(old))), str(new), line) if not line.strip().startswith("option") else line for line in lines]
    return changed if changed != lines else None


def change_size(r, lines):
    """One number, everywhere; and the one before it, for the sake of (n + 127) // 128."""
    found = collections.Counter(int(n) for line in lines for n in re.findall(_NUMBER.format(r"\d+"), line))
    sizes = [n for n in found if n >= 4 and n <= 4096 and "threads" not in str(n)]
    if not sizes:
        return None
    old = r.choice(sizes)
    new = r.choice([n for n in _SIZES if n != old] + [old // 2, old * 2, old // 2, old * 2, old + 1, old - 1])
    if new < 1:
        return None
    threads = [i for i, line in enumerate(lines) if " threads(" in line]
    changed = _replace(lines, old, new)
    if changed and old - 1 in found:
        changed = _replace(changed, old - 1, new - 1) or changed
    if changed:
        for i in threads:  # the number of threads is another matter
            head, sep, _ = changed[i].partition(" threads(")
            changed[i] = head + sep + lines[i].partition(" threads(")[2]
    return changed


def change_extent(r, lines):
    """The shape of one parameter, a little smaller or larger: its last tiles become ragged."""
    rows = [i for i, line in enumerate(lines) if re.match(r"\s*param \w+: \w+\[", line) and "strides" not in line]
    if not rows:
        return None
    i = r.choice(rows)
    head, _, rest = lines[i].partition("[")
    shape, _, tail = rest.partition("]")
    dims = shape.split(", ")
    d = r.randrange(len(dims))
    if not dims[d].isdigit():
        return None
    dims[d] = str(max(1, int(dims[d]) + r.choice((-1, 1, -3, 5, -8))))
    return lines[:i] + [f"{head}[{', '.join(dims)}]{tail}"] + lines[i + 1 :]


def change_threads(r, lines):
    if any(line.strip().startswith("role ") for line in lines):
        return None
    n = r.choice((32, 64, 96, 128, 160, 256, 384))
    changed = [re.sub(r"threads\(tx: \d+\)", f"threads(tx: {n})", line) for line in lines]
    return changed if changed != lines else None


def change_loop(r, lines):
    """The kind of a loop, or its stages."""
    rows = [i for i, line in enumerate(lines) if line.strip().startswith("for ") and line.strip().endswith("{")]
    if not rows:
        return None
    i = r.choice(rows)
    head = re.sub(r"( (unroll|vectorized|pipelined|grid)(\([^{]*\))?)? \{$", "", lines[i])
    word = r.choice(("", " unroll", " pipelined(stages=1)", " pipelined(stages=2)", " pipelined(stages=3)", " pipelined(stages=4)"))
    return lines[:i] + [head + word + " {"] + lines[i + 1 :]


def change_type(r, lines):
    """One type everywhere becomes another."""
    text = "\n".join(lines)
    group = r.choice((_FLOATS, _FLOATS, _INTS))
    present = [t for t in group if re.search(rf"\b{t}\b", text)]
    if not present:
        return None
    old, new = r.choice(present), r.choice(group)
    changed = re.sub(rf"\b{old}\b", new, text).split("\n")
    return changed if changed != lines else None


def change_space(r, lines):
    rows = [i for i, line in enumerate(lines) if re.match(r"\s*(shared|fragment) ", line) and "reducer" not in line]
    if not rows:
        return None
    i = r.choice(rows)
    line = re.sub(r" layout=\S+( -> \S+)?| replicate=\d+", "", lines[i])
    swapped = line.replace("shared ", "fragment ", 1) if "shared " in line else line.replace("fragment ", "shared ", 1)
    return lines[:i] + [swapped] + lines[i + 1 :]


def change_layout(r, lines):
    rows = [i for i, line in enumerate(lines) if re.match(r"\s*shared .*\]", line) and "view=" not in line]
    if not rows:
        return None
    i = r.choice(rows)
    line = re.sub(r" layout=.*$", "", lines[i])
    return lines[:i] + [line + r.choice(("", " layout=linear", " layout=swizzled"))] + lines[i + 1 :]


def change_order(r, lines):
    """Two neighbouring statements change places."""
    found = statements(lines)
    pairs = [(a, b) for a in found for b in found if a[1] == b[0] and _depth(lines[a[0]]) == _depth(lines[b[0]])]
    if not pairs:
        return None
    (a, b), (_, c) = r.choice(pairs)
    return lines[:a] + lines[b:c] + lines[a:b] + lines[c:]


def _depth(line):
    return len(line) - len(line.lstrip())


def drop(r, lines):
    found = statements(lines)
    if not found:
        return None
    a, b = r.choice(found)
    return lines[:a] + lines[b:]


def repeat(r, lines):
    """A statement twice, or in a loop, or in a branch that is always taken, or in none."""
    found = [s for s in statements(lines) if not re.match(r"\s*\w+: \w+ = ", lines[s[0]])]
    if not found:
        return None
    a, b = r.choice(found)
    pad = " " * _depth(lines[a])
    head = r.choice((None, "for again in 0..2 {", "for again in 0..3 pipelined(stages=2) {", "for again in 1 : 1 unroll {", "if 0 < 1 {"))
    if head is None:
        return lines[:b] + lines[a:b] + lines[b:]
    if any(re.search(r"\b(break|continue)\b", line) for line in lines[a:b]):
        return None
    return lines[:a] + [pad + head] + lines[a:b] + [pad + "}"] + lines[b:]


def change_offset(r, lines):
    """Where a copy reads in a global tensor, or an index of an element that is read, moves by a little."""
    params = [m.group(1) for line in lines if (m := re.match(r"\s*param (\w+): \w+\[", line))]
    rows = [i for i, line in enumerate(lines) if re.search(rf"(from=|= .*)\b({'|'.join(params)})\[", line)] if params else []
    if not rows:
        return None
    i = r.choice(rows)
    head, word, rest = re.split(rf"((?:from=|= .*?)\b(?:{'|'.join(params)})\[)", lines[i], maxsplit=1)
    depth, cuts = 0, []
    for at, c in enumerate(rest):
        depth += (c in "[(") - (c in "])")
        if depth < 0:
            cuts.append(at)
            break
        if depth == 0 and (c == "," or rest[at : at + 3] == " : "):
            cuts.append(at)
    at = r.choice(cuts)
    if rest[:at].rstrip().endswith(tuple("0123456789")) and r.random() < 0.5:
        return None
    return lines[:i] + [head + word + rest[:at] + r.choice((" + 1", " - 1", " - 3", " + 7")) + rest[at:]] + lines[i + 1 :]


def change_policy(r, lines):
    rows = [i for i, line in enumerate(lines) if line.strip().startswith("gemm ")]
    if not rows:
        return None
    i = r.choice(rows)
    line = re.sub(r" policy=\w+", "", lines[i])
    return lines[:i] + [line + r.choice(("", " policy=full_row", " policy=full_col"))] + lines[i + 1 :]


PLAN_LINES = (
    "overlap no", "overlap yes", "epilogue whole", "epilogue chunks", "epilogue as_written", "epilogue straight", "not a loader", "fit none",
    "work persistent blocks=2", "work persistent blocks=3", "work one_tile", "work one_tile blocks_per_multiprocessor=2",
    "work split k=2", "work stream_k blocks=3", "role compute all_tiles", "role compute tiles_in_turn", "role compute iterations_in_turn",
)  # fmt: skip


def change_plan(r, lines):
    """A launch with a line of a plan, or two: on a GPU what is handed in is obeyed or refused, and means nothing else."""
    rows = [i for i, line in enumerate(lines) if line.startswith("  launch ") and line.endswith("{") and " plan(" not in line]
    if not rows:
        return None
    text = "\n".join(lines)
    some = list(PLAN_LINES)
    for loop in re.findall(r"^ +for (\w+) in .* pipelined", text, re.M):
        some += [f"order alternating of {loop}"] * 3
    for tile in re.findall(r"^    (?:shared|fragment) (\w+):", text, re.M)[:3]:
        some += [f"ring {tile} slots={r.choice((1, 2, 3, 5))}", f"ring {tile} {r.choice(('clipped', 'unclipped'))}"]
        some.append(f"work {r.choice(('one_tile', 'persistent blocks=4'))} pairs={tile}")
    i = r.choice(rows)
    plan = ", ".join(f'"{line}"' for line in r.sample(some, r.choice((1, 1, 2))))
    return lines[:i] + [lines[i][:-1] + f"plan({plan}) {{"] + lines[i + 1 :]


CHANGES = [(change_size, 6), (change_extent, 3), (change_threads, 3), (change_loop, 3), (change_type, 3), (change_space, 3), (change_layout, 1),
           (change_order, 3), (drop, 2), (repeat, 3), (change_offset, 3), (change_policy, 1), (change_plan, 3)]  # fmt: skip


def variant(r, text):
    """A text of one to three changes, and their names."""
    lines, names = text.rstrip("\n").split("\n"), []
    for _ in range(r.choice((1, 1, 2, 3))):
        for _ in range(8):
            change = r.choices([c for c, _ in CHANGES], [w for _, w in CHANGES])[0]
            changed = change(r, lines)
            if changed:
                lines = changed
                names.append(change.__name__)
                break
    return "\n".join(lines) + "\n", names


# ---- arguments


def _split(shape):
    parts, depth, at = [], 0, 0
    for i, c in enumerate(shape):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(shape[at:i])
            at = i + 1
    return parts + [shape[at:]]


def arguments_of(r, text, most=1 << 18):
    """[(name, type, shape, bytes)] or numbers for the parameters of a text."""
    head = text.split("launch ", 1)[0]
    symbols = {n: r.choice((1, 2, 3, 7, 16, 17, 31, 32, 33, 64, 65, 100)) for n in re.findall(r"^\s*symbol (\w+):", head, re.M)}
    numbers = np.random.default_rng(r.getrandbits(32))
    if re.search(r"^\s*\w+: \w+ = atomic", text, re.M):
        raise Unusable("the order of atomics")
    found, total = [], 0
    for name, kind, rest in re.findall(r"^\s*param (\w+): (\w+)(.*)$", head, re.M):
        t = TYPES.get(kind)
        if t is None:
            raise Unusable(kind)
        if not rest.startswith("["):
            symbols.setdefault(name, r.choice((0, 1, 2, 3, 5, 16)))
            found.append((name, t, None, symbols[name]))
            continue
        if "strides=" in rest:
            raise Unusable("strides")
        try:
            shape = tuple(int(eval(p, {"min": min, "max": max}, symbols)) for p in _split(rest[1 : rest.index("]")]))
        except (SyntaxError, NameError, TypeError, ZeroDivisionError):
            raise Unusable(rest) from None
        n = int(np.prod(shape, dtype=np.int64))
        total += n
        if total > most or n < 0:
            raise Unusable("large")
        found.append((name, t, shape, _numbers(numbers, t, n)))
    return found


def _numbers(g, t, n):
    if t.is_bool:
        return g.integers(0, 2, n).astype(np.uint8)
    if t.is_int:
        return g.integers(max(t.min, 0), min(t.max, 4), n).astype(t.storage)
    return encode(t, round_to(t, g.integers(-4, 5, n) / 4))


def reduced(text, dims=96, grid=2, turns=3):
    """A large program with smaller tensors, grids and loops over tiles. What it reads outside then is filled."""

    def at_most(n):
        return lambda m: m.group(1) + str(min(int(m.group(2)), n)) if m.group(2) else m.group(0)

    lines = []
    for line in text.split("\n"):
        word = line.strip().partition(" ")[0]
        if word in ("param", "global") and "[" in line and "view=" not in line:
            head, _, rest = line.partition("[")
            shape, _, tail = rest.partition("]")
            line = head + "[" + ", ".join(str(min(int(d), dims + 5 * i)) if d.isdigit() else d for i, d in enumerate(_split_plain(shape))) + "]" + tail
        elif word == "launch":
            head, _, tail = line.partition(")")
            line = re.sub(r"(: )(\d+)(?=[,)])", at_most(grid), head + ")")[:-1] + ")" + tail
        elif word == "for" and line.endswith("{") and line.startswith("    for") and not line.startswith("        for"):
            line = re.sub(r"( in 0\.\.)(\d+)(?= )", at_most(turns), line)
        lines.append(line)
    return "\n".join(lines)


def rounds(text):
    """About how many tiles a program goes through: the largest grid times the longest loop over tiles."""
    grids = [int(np.prod([int(n) for n in re.findall(r": (\d+)(?=[,)])", line.partition(") ")[0] + ")")] or [1]))
             for line in text.split("\n") if line.strip().startswith("launch ")]  # fmt: skip
    turns = [int(n) for n in re.findall(r"^    for .* in 0\.\.(\d+) ", text, re.M)]
    return max(grids, default=1) * max(turns, default=1)


def _split_plain(shape):
    return [part.strip() for part in _split(shape)]


def call(library, text, engine, arguments):
    """Runs a text; the tensors afterwards."""
    given, memories = [], []
    for _, t, shape, value in arguments:
        if shape is None:
            given.append(float(value) if t.is_float else int(value))
        else:
            memories.append((t, pack(t, value), int(np.prod(shape, dtype=np.int64))))
            given.append((t.name, t.bits, shape, memories[-1][1]))
    name, _, arch = engine.partition(":")
    if name == "nvrtc":  # which calls nothing
        return library.compile_by_nvrtc(text, arch)
    library.run(text, name, arch, given)
    return [decode(t, unpack(t, memory, n)) for t, memory, n in memories]


_SUMMED = r"(?:\breduce (?:sum|abssum) .*?|\bscan sum .*?|\batomic add |\bcombine=add .*?)to=(\w+)|\bgemm .*?\bc=(\w+)|\bcopy .*\bto=(\w+).* combine=add"


def coarsest_sum(text):
    """The bits of the mantissa of the narrowest type that a program sums in."""
    types = dict(re.findall(r"^\s*(?:param|global|shared|fragment|local) (\w+): (\w+)", text, re.M))
    names = {name for found in re.findall(_SUMMED, text) for name in found if name}
    return min([TYPES[types[n]].mantissa for n in names if types.get(n) in TYPES and TYPES[types[n]].is_float], default=23)


def unlike(arguments, a, b, mantissa=23):
    """Where two results differ by more than sums in another order do, or None."""
    tensors = [x for x in arguments if x[2] is not None]
    for (name, t, _, _), x, y in zip(tensors, a, b):
        if t.is_float:
            x, y = x.astype(np.float64), y.astype(np.float64)
            with np.errstate(all="ignore"):
                largest = np.max(np.abs(np.where(np.isfinite(x), x, 0)), initial=1e-3)
                near = np.abs(x - y) <= largest * max(2.0 ** (3 - t.mantissa), 2.0 ** (1 - mantissa), 1e-3)
            wrong = ~((x == y) | np.isnan(x) & np.isnan(y) | near)
        else:
            wrong = x != y
        if wrong.any():
            at = int(np.argmax(wrong))
            return f"{name}[{at}] is {y[at]}, not {x[at]} ({int(wrong.sum())} of {len(x)} elements)"
    return None


def own_mistake(text, refused):
    """Whether a variant itself may lack the order that the simulator misses: between blocks, between threads that speak for themselves,
    or around asynchronous copies and barriers of its own. The interpreter does not look for those."""
    if refused.code == "TW9010":  # a wgmma of its own, without its commit or drain
        return "queue=wgmma" in text
    if refused.code not in ("TW9001", "TW9008", "TW9009", "TW9012", "TW6008", "TW6009"):
        return False
    return "a thread of block" in refused.text or bool(re.search(r"\btx\b(?!:)|completion=|^\s*(barrier|commit|arrive|wait) ", text, re.M))


class TextMinimizer:
    """Makes a text small: takes out statements, blocks, buffers and launches, and makes its numbers smaller."""

    def __init__(self, lines, holds, tries=1500):
        self.lines, self.holds, self.left = lines, holds, tries

    def _take(self, lines):
        if lines is None or lines == self.lines or self.left <= 0:
            return False
        self.left -= 1
        if self.holds("\n".join(lines) + "\n"):
            self.lines = lines
            return True
        return False

    def run(self):
        before = None
        while before != self.lines and self.left > 0:
            before = self.lines
            self.launches()
            self.numbers()
            self.statements()
            self.unwrap()
            self.declarations()
            self.numbers()
        return "\n".join(self.lines) + "\n"

    def launches(self):
        starts = [i for i, line in enumerate(self.lines) if line.strip().startswith("launch ")]
        for i in reversed(starts):
            pad = re.match(r"\s*", self.lines[i]).group()
            end = next(j for j in range(i, len(self.lines)) if self.lines[j] == pad + "}")
            if len(starts) > 1 and self._take(self.lines[:i] + self.lines[end + 1 :]):
                starts.remove(i)

    def statements(self):
        at = 0
        while at < len(found := sorted(statements(self.lines), key=lambda s: (s[0] - s[1], s[0]))):
            a, b = found[at]
            if not self._take(self.lines[:a] + self.lines[b:]):
                at += 1

    def unwrap(self):
        for a, b in sorted(statements(self.lines)):
            if b - a > 2 and b <= len(self.lines) and self.lines[a].endswith("{") and not self.lines[a].strip().startswith("map"):
                if not any(line.strip().startswith("} else") for line in self.lines[a:b]):
                    self._take(self.lines[:a] + self.lines[a + 1 : b - 1] + self.lines[b:])

    def declarations(self):
        for i in reversed(range(len(self.lines))):
            if re.match(r"\s*(param|symbol|assume|option|" + "|".join(d.strip() for d in _DECLARES) + r") ", self.lines[i]):
                self._take(self.lines[:i] + self.lines[i + 1 :])
        for i in range(len(self.lines)):
            if i < len(self.lines):
                plain = re.sub(r"( policy=\w+| layout=\S+( -> \S+)?| swizzle\([^)]*\)| unroll(\([^)]*\))?| pipelined\([^)]*\))", "", self.lines[i])
                self._take(self.lines[:i] + [plain] + self.lines[i + 1 :])

    def numbers(self):
        for n in sorted({int(n) for line in self.lines for n in re.findall(_NUMBER.format(r"\d+"), line) if int(n) > 1}, reverse=True):
            for smaller in (1, 2, 4, 8, 16, 32, n // 2):
                if smaller < n and (self._take(_replace(self.lines, n, smaller))
                                    or n > 2 and self._take(_replace(_replace(self.lines, n, smaller) or self.lines, n - 1, max(0, smaller - 1)))):  # fmt: skip
                    break


def still_shows(library, engine, kind, seed):
    """Whether a text still shows a finding, as a function: the interpreter runs it, and the engine does the same as before."""

    def action(text):
        arguments = arguments_of(random.Random(seed), text)
        try:
            expected = call(library, text, "interpreter", arguments)
        except Refused:
            return
        try:
            got = call(library, text, engine, arguments)
            wrong = got is not None and unlike(arguments, expected, got, coarsest_sum(text))
        except Refused as why:
            raise Finding(why.code, why.text) from None
        if wrong:
            raise Finding("wrong", wrong)

    def holds(text):
        try:
            in_child(lambda: action(text), 30)
        except Finding as found:
            return found.kind == kind
        except Unusable:
            return False
        return False

    return holds


class Mutation(runner.Work):
    """Each seed: one program, one variant."""

    def __init__(self, options, at):
        super().__init__(options, at)
        self.texts = options.texts

    def seed(self, seed, skip=()):
        out = runner.Outcome()
        text, names, arguments, why = self.make(seed)
        if why:
            out.refusals["not run: " + why] += 1
            return out
        try:
            self._note(seed, len(self.options.engines))
            start = runner.spent()
            expected = call(self.library, text, "interpreter", arguments)
            out.times["interpreter"] = runner.spent() - start
        except Refused as refused:
            out.refusals[f"not run: interpreter {refused.code}"] += 1
            if refused.code == "TW0001":
                out.findings.append((seed, "interpreter", refused.code, refused.text))
            return out
        out.ran["interpreter"] += 1
        engines = self.engines(seed, skip)
        # A wait for bytes that never come would take the device along, and the interpreter's copies come at once.
        if any(engine == "cuda" for _, engine in engines) and "  barrier " in text and self.races(text, arguments):
            out.refusals["not run: a race of its own"] += 1
            return out
        for number, engine in engines:
            self._note(seed, number)
            start = runner.spent()
            try:
                got = call(self.library, text, engine, arguments)
                wrong = got is not None and unlike(arguments, expected, got, coarsest_sum(text))
                out.ran[engine] += 1
                if wrong and self.races(text, arguments):
                    out.refusals["not run: a race of its own"] += 1
                elif wrong and self.trembles(text, arguments, expected):
                    out.refusals["not run: roundings decide what it gives"] += 1
                elif wrong:
                    out.findings.append((seed, engine, "wrong", wrong + " after " + ", ".join(names)))
            except Refused as refused:
                if may_refuse(refused.code):
                    out.refusals[f"{engine} {refused.code}"] += 1
                elif own_mistake(text, refused):
                    out.refusals["not run: a race of its own"] += 1
                else:
                    out.findings.append((seed, engine, refused.code, refused.text + "\n" + ", ".join(names)))
            except DeviceLost as why:
                self.done = True
                if self.races(text, arguments):
                    out.refusals["not run: a race of its own"] += 1
                else:
                    out.findings.append((seed, engine, LOST, str(why) + "\n" + ", ".join(names)))
            out.times[engine] += runner.spent() - start
        return out

    @classmethod
    def of(cls, options):
        """One that makes variants and runs none."""
        made = cls.__new__(cls)
        made.texts = options.texts
        return made

    def races(self, text, arguments):
        """Whether the simulator finds that threads or blocks of the variant store what has no order; what one GPU has no
        instructions for, another runs."""
        for arch in ("sm_80", "sm_90a"):
            try:
                call(self.library, text, "simulator:" + arch, arguments)
            except Refused as refused:
                if not may_refuse(refused.code):
                    return own_mistake(text, refused)
        return False

    def trembles(self, text, arguments, expected):
        """Whether the last bits of what goes in decide what the interpreter gives, as where sums that cancel are divided by: the order
        of a sum then does so too."""
        g, moved = np.random.default_rng(1), []
        for name, t, shape, value in arguments:
            if shape is not None and t.is_float:
                x = decode(t, value).astype(np.float64)
                value = encode(t, round_to(t, x * (1 + g.choice((-1.0, 1.0), x.shape) * 2.0 ** -t.mantissa)))
            moved.append((name, t, shape, value))
        try:
            return unlike(arguments, expected, call(self.library, text, "interpreter", moved), coarsest_sum(text)) is not None
        except Refused:
            return False

    def make(self, seed):
        """(text, names of changes, arguments, why not)."""
        r = random.Random(seed)
        _, text = r.choice(self.texts)
        text, names = variant(r, text)
        # A changed program may read of a workspace what nobody wrote: as parameters, they begin alike on every engine.
        text = re.sub(r"^  global (.*?) workspace(.*)$", r"  param \1\2", text, flags=re.M)
        try:
            state = r.getstate()
            try:
                arguments = arguments_of(r, text, 1 << 15)
                if rounds(text) <= 64:
                    return text, names, arguments, None
            except Unusable as why:
                if str(why) != "large":
                    raise
            r.setstate(state)
            text = reduced(text)
            return text, names, arguments_of(r, text), None
        except Unusable as why:
            return text, names, None, str(why)


def work(options, at, connection):
    runner.work(options, at, connection, Mutation)


def _write_one(options, finding, minimize):
    seed, engine, kind, message = finding
    text = Mutation.of(options).make(seed)[0]
    if minimize and kind != "hang":
        text = TextMinimizer(text.rstrip("\n").split("\n"), still_shows(library.Library(options.library), engine, kind, seed), options.tries).run()
    head = "".join(f"# {line}\n" for line in [f"variant {seed}: {engine}: {kind}"] + message.splitlines()[:6])
    (pathlib.Path(options.out) / f"variant_{seed}_{engine.replace(':', '_')}_{kind}.tile").write_text(head + text)


def main(arguments=None):
    parser = runner.parser_of(__doc__.splitlines()[0], "cpu,simulator:sm_80,simulator:sm_90a")
    parser.add_argument("--from", nargs="*", default=[], dest="paths", help=".tile files, and folders of them; else the examples")
    options = runner.finish(parser.parse_args(arguments))
    options.texts = texts_of(options.paths, options.library)
    if options.show:
        for seed in options.seeds:
            text, names, _, why = Mutation.of(options).make(seed)
            print(f"# {', '.join(names)}{f': {why}' if why else ''}\n{text}")
        return 0
    library.prepare()
    found = runner.Run(options, work, _write_one).run()
    runner.report(found)
    if options.out and options.minimize:
        runner.minimize_all(options, found.findings, _write_one)
    return 1 if found.findings else 0


if __name__ == "__main__":
    sys.exit(main())
