"""Which names a program has as Python: one for several bindings where none is needed any more, and plain names for variables.

A binding may take the name of another if nothing reads the other afterwards, neither below nor in the next turn of a loop."""
from nodes import children, expressions_of


class _Binding:
    def __init__(self, name, kind, type_, at, around):
        self.name, self.kind, self.type, self.around = name, kind, type_, around  # around: the statements that it stands in
        self.first = self.last = at
        self.loops = []  # of a variable: the outermost loops in which it is stored


class PythonNames:
    """Of one launch. `of` gives the name in Python of a name here, `plain` holds the variables that are plain names, which `kept` are not."""

    def __init__(self, launch, random, kept=()):
        self.random, self.at, self.found, self.ends = random, 0, {}, {}
        self.plain, self.of, self.used = set(), {}, set()
        self.stored_by_value = {b for b in _stored_by_value(launch.body) if b not in kept and random.random() < 0.7}
        self._body(launch.body, ())
        for b in self.found.values():
            for s in b.loops:  # what a turn leaves, the next may find
                b.first, b.last = min(b.first, self.ends[id(s)][0]), max(b.last, self.ends[id(s)][1])
        self._share()

    # ---- where names are bound and read

    def _body(self, body, around):
        for s in body:
            self.at += 1
            start = self.at
            self._reads(s)
            if s.kind in ("let", "atomic", "shuffle", "vote"):
                name = s.name if s.kind == "let" else s.result
                if name:
                    self._bind(name, "let", s.dtype if s.kind != "atomic" else s.buffer.dtype, around)
            elif s.kind == "store" and s.buffer in self.stored_by_value:
                self._variable(s.buffer, around)
            elif s.kind == "for":
                self._bind(s.var, "target", s.dtype, (*around, s))
            elif s.kind == "map":
                for v in s.vars:
                    self._bind(v, "point", None, (*around, s))
            for inner in s.bodies:
                self._body(inner, (*around, s))
            self.at += 1
            self.ends[id(s)] = start, self.at
            if s.kind in ("for", "while", "map"):
                self._reads(s) if s.kind == "while" else None
                for b in self.found.values():  # the next turn reads it again
                    if b.first < start < b.last:
                        b.last = self.at

    def _bind(self, name, kind, type_, around):
        self.found.setdefault(name, _Binding(name, kind, type_, self.at, around))

    def _variable(self, b, around):
        self._bind(b.name, "variable", b.dtype, around)
        self.plain.add(b)
        one = self.found[b.name]
        one.last = max(one.last, self.at)
        one.loops += [s for s in around if s.kind in ("for", "while", "map")][:1]
        inside = [s.kind for s in around if s not in one.around]
        if "for" in inside or "while" in inside:
            self.used.add("python: name carried through a loop")
        elif "if" in inside:
            self.used.add("python: name bound again in a branch")

    def _reads(self, s):
        for e in expressions_of(s):
            self._read(e)

    def _read(self, e):
        name = e[2] if e[0] == "var" else e[2].name if e[0] == "load" else None
        if name in self.found:
            self.found[name].last = max(self.found[name].last, self.at)
        for _, x in children(e):
            self._read(x)

    # ---- names for several

    def _share(self):
        taken = []  # [name, its last binding]
        for b in sorted(self.found.values(), key=lambda b: b.first):
            free = [t for t in taken if t[1].last <= b.first and (t[1].type is b.type or self.random.random() < 0.1)]
            if free and self.random.random() < 0.6:
                one = self.random.choice(free)
                self._note(one[1], b)
                self.of[b.name], one[1] = one[0], b
            else:
                taken.append([b.name, b])

    def _note(self, before, b):
        if before.kind == b.kind == "target":
            self.used.add("python: loop targets of one name")
        elif "target" in (before.kind, b.kind):
            self.used.add("python: target of a name that has a value")
        inside = [s for s in b.around if s not in before.around and not (b.kind == "target" and s is b.around[-1])]
        if any(s.kind in ("for", "while") for s in inside):
            self.used.add("python: name bound again in a loop")
        elif any(s.kind == "if" for s in inside):
            self.used.add("python: name bound again in a branch")
        elif b.kind == "let":
            self.used.add("python: name bound again")


def _stored_by_value(body):
    """The variables that stores alone change, in the order of the text."""
    stored, other = {}, set()

    def look(body):
        for s in body:
            if s.kind == "store" and s.buffer.root.space == "local" and not s.buffer.shape:
                stored[s.buffer] = True
            elif s.kind == "atomic":
                other.add(s.buffer)
            for inner in s.bodies:
                look(inner)

    look(body)
    return [b for b in stored if b not in other]
