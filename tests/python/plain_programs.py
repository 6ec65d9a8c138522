"""Random functions of plain Python over two arrays of 8 integers: names bound again in ifs, in loops and as loops' targets,
swaps, lists, slices."""
import linecache

import numpy as np
import tilewright.language as T

NAMES = "abcde"


def clip(x):
    return x % 97


def moved(source, to):
    """T.copy, or NumPy's."""
    if isinstance(to, np.ndarray):
        to[:] = source
    else:
        T.copy(source, to)


class Writer:
    """Writes one function from a random.Random."""

    def __init__(self, random):
        self.random, self.indices, self.loops = random, [], 0

    def index(self):
        if self.indices and self.random.random() < 0.4:
            return self.random.choice(self.indices)
        return str(self.random.randint(0, 7))

    def expression(self, names, depth=0):
        r, k = self.random, self.random.random()
        if depth > 2 or k < 0.25:
            return str(r.randint(-3, 5))
        if k < 0.5 and names:
            return r.choice(names)
        if k < 0.65:
            return f"A[{self.index()}]"
        a, b = self.expression(names, depth + 1), self.expression(names, depth + 1)
        if k < 0.9:
            return f"({a} {r.choice('+-*')} {b})"
        if k < 0.94:
            return f"({a} if {self.condition(names)} else {b})"
        return f"max({a}, {b})" if k < 0.97 else f"({a} or {b})"

    def condition(self, names):
        r, k = self.random, self.random.random()
        a, b = self.expression(names, 2), self.expression(names, 2)
        compared = f"{a} {r.choice(['<', '>', '==', '!=', '<='])} {b}"
        if k < 0.1:
            return f"{compared} and {a} > 0"
        if k < 0.2:
            return f"not ({compared})"
        return f"{a} in (0, 1, {r.randint(2, 6)})" if k < 0.3 else compared

    def block(self, names, depth, in_loop):
        """Lines, without the indentation of what is around."""
        names, out = list(names), []
        for _ in range(self.random.randint(1, 4)):
            out += self.statement(names, depth, in_loop)
        return out or ["pass"]

    def statement(self, names, depth, in_loop):
        r, k = self.random, self.random.random()
        if k < 0.35:
            name = r.choice(NAMES)
            line = f"{name} = clip({self.expression(names)})"
            names += [name] * (name not in names)
            return [line]
        if k < 0.45 and names:
            return [f"{r.choice(names)} {r.choice('+-')}= {self.expression(names, 2)}"]
        if k < 0.6:
            return [f"B[{self.index()}] = {self.expression(names)}"]
        if k < 0.66:
            return [f"A[{self.index()}] = clip({self.expression(names)})"]
        if k < 0.7 and len(names) > 1:
            a, b = r.sample(names, 2)
            return [f"{a}, {b} = {b}, {a}"]
        if k < 0.74 and names:
            where = self.index()
            return [f"xs = [{r.choice(names)}, A[{where}]]", f"A[{where}] = {self.expression(names, 2)}", f"B[{self.index()}] = xs[0] + xs[1]"]
        if k < 0.77 and names:  # a slice that is used after its index and what it names have changed
            name, to = r.choice(names), self.index()
            return [f"xs = [A[{name} % 8 : {name} % 8 + 1], A[A[3] % 8 : A[3] % 8 + 1]]", *self.statement(names, 3, in_loop),
                    f"{name} = clip({self.expression(names, 2)})", f"A[3] = {self.expression(names, 2)}",
                    f"moved(xs[{r.randint(0, 1)}], B[{to} : {to} + 1])"]  # fmt: skip
        if k < 0.87 and depth < 3:
            out = [f"if {self.condition(names)}:", *_inside(self.block(names, depth + 1, in_loop))]
            return out + (["else:", *_inside(self.block(names, depth + 1, in_loop))] if r.random() < 0.5 else [])
        if k < 0.95 and depth < 3:
            again = r.random() < 0.5  # a name that may have a value, or be another loop's
            name, self.loops = r.choice(NAMES) if again else f"i{self.loops}", self.loops + 1
            turns = r.choice(["[4, 2]", "[3]"]) if r.random() < 0.15 else f"range({r.choice(['2', '3', 'A[0] % 3', '0', '1, 4'])})"
            head = f"for {name} in {turns}:"
            self.indices.append(f"{name} % 8" if again else name)
            body = self.block([*names, name] if again else names, depth + 1, turns.startswith("range"))
            self.indices.pop()
            return [head, *_inside(body)]
        if in_loop and r.random() < 0.7:
            return [f"if {self.condition(names)}:", f"    {r.choice(['break', 'continue'])}"]
        return []

    def function(self):
        r = self.random
        names = [n for n in NAMES if r.random() < 0.75]
        lines = [f"{n} = {r.choice([str(r.randint(-2, 4)), f'A[{r.randint(0, 7)}]'])}" for n in names]
        lines += self.block(names, 0, False) + self.block(names, 0, False)
        lines += [f"B[{k}] = B[{k}] + {n}" for k, n in enumerate(names)] or ["pass"]
        return "\n".join(["def function(A, B):", *_inside(lines), ""])


def _inside(lines):
    return ["    " + line for line in lines]


def function_of(random, name):
    """A function, with its source where inspection finds it."""
    text, space = Writer(random).function(), {"clip": clip, "moved": moved}
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), space)
    return space["function"], text
