"""Makes a program of a finding small: takes statements, launches and tensors out, shrinks extents, types and expressions.

`holds(program)` says whether a candidate still shows the finding; it must also be a program that the model can run."""
import numpy as np
from nodes import Buffer, Region, Stmt, buffers_of, children, type_of, variables_of, walk, with_child

_REGIONS = ("source", "to", "a", "b", "c")
_EXPRESSIONS = ("value", "condition", "begin", "extent", "clear", "compare", "lane")


class Minimizer:
    def __init__(self, program, holds, tries=4000):
        self.p, self.holds, self.left = program, holds, tries

    def test(self):
        if self.left <= 0:
            return False
        self.left -= 1
        try:
            return bool(self.holds(self.p))
        except (KeyError, IndexError, ValueError, AttributeError, TypeError, RecursionError):
            return False  # a candidate that makes no sense

    def run(self):
        steps = (self.launches, self.statements, self.unwrap, self.statements, self.parameters, self.expressions, self.sizes, self.types,
                 self.statements, self.expressions, self.inputs, self.details, self.parameters)  # fmt: skip
        before = None
        while before != (now := self.p.text()) and self.left > 0:
            before = now
            for step in steps:
                step()
        return self.p

    def _try(self, change, undo):
        change()
        if self.test():
            return True
        undo()
        return False

    def launches(self):
        for l in list(self.p.launches):
            if len(self.p.launches) > 1:
                at = self.p.launches.index(l)
                self._try(lambda: self.p.launches.remove(l), lambda: self.p.launches.insert(at, l))

    def _lists(self):
        for l in self.p.launches:
            yield l.body
            for s, _ in walk(l.body):
                yield from s.bodies

    def statements(self):
        for body in list(self._lists()):
            width = max(1, len(body) // 2)
            while width:
                at = 0
                while at < len(body):
                    kept = body[at : at + width]

                    def drop():
                        del body[at : at + width]

                    def undo():
                        body[at:at] = kept

                    if not self._try(drop, undo):
                        at += width
                width //= 2

    def unwrap(self):
        """A loop or a branch becomes its body; a branch loses its other side."""
        for body in list(self._lists()):
            for s in list(body):
                if s not in body or not s.bodies:
                    continue
                at = body.index(s)
                if len(s.bodies) > 1 and s.bodies[1]:
                    kept = s.bodies[1]
                    self._try(lambda: s.bodies.__setitem__(1, []), lambda: s.bodies.__setitem__(1, kept))
                if s.kind in ("if", "for", "while"):
                    for inner in s.bodies:
                        if inner and self._try(lambda: body.__setitem__(slice(at, at + 1), inner),
                                               lambda: body.__setitem__(slice(at, at + len(inner)), [s])):  # fmt: skip
                            break

    # ---- expressions

    def _slots(self):
        """Every place of an expression: (get, set)."""

        def field(holder, key):
            return (lambda: holder[key]), (lambda e: holder.__setitem__(key, e))

        for l in self.p.launches:
            for s, _ in walk(l.body):
                for key in _EXPRESSIONS:
                    if isinstance(s.fields.get(key), tuple):
                        yield field(s.fields, key)
                for key in ("indices", "extents"):
                    for i in range(len(s.fields.get(key) or ())):
                        yield field(s.fields[key], i)
                for key in _REGIONS:
                    r = s.fields.get(key)
                    if isinstance(r, Region) and r.begin is not None:
                        for i in range(len(r.begin)):
                            yield field(r.begin, i)

    @staticmethod
    def _simpler(e):
        """Expressions that could stand for this one."""
        t = type_of(e)
        if e[0] == "const":
            return [("const", t, v) for v in ([False, True] if t.is_bool else [0, 1]) if v != e[2]][: 1 if e[2] in (0, 1) else 2] if e[2] != 0 else []
        found = [x for _, x in children(e) if type_of(x) is t]
        found += [("const", t, v) for v in ((False, True) if t.is_bool else (0, 1, 2))]
        return found + [("cast", t, x) for _, x in children(e) if type_of(x) is not t and e[0] not in ("cast", "load")]

    def expressions(self):
        for get, put in list(self._slots()):
            self._simplify(get, put)

    def _simplify(self, get, put):
        whole = get()
        for new in self._simpler(whole):
            if self._try(lambda: put(new), lambda: put(whole)):
                return self._simplify(get, put)
        for place, _ in list(children(whole)):

            def part(place=place):
                e = get()
                return e[place] if isinstance(place, int) else e[place[0]][place[1]]

            self._simplify(part, lambda new, place=place: put(with_child(get(), place, new)))

    # ---- buffers

    def _used(self):
        found, names = set(), set()
        for get, _ in self._slots():
            buffers_of(get(), found)
            variables_of(get(), names)
        for l in self.p.launches:
            for s, _ in walk(l.body):
                for key in _REGIONS:
                    if isinstance(s.fields.get(key), Region):
                        found.add(s.fields[key].buffer)
                if isinstance(s.fields.get("buffer"), Buffer):
                    found.add(s.fields["buffer"])
        found |= {b.root for b in found}
        return found, names

    def parameters(self):
        used, names = self._used()
        for l in self.p.launches:
            kept = l.buffers
            if any(b not in used for b in kept):
                self._try(lambda: setattr(l, "buffers", [b for b in kept if b in used]), lambda: setattr(l, "buffers", kept))
        for attribute in ("params", "workspaces"):
            for b in list(getattr(self.p, attribute)):
                if b not in used:
                    self._without(attribute, b)
        for row in list(self.p.scalars):
            if row[0] not in names:
                self._without("scalars", row)
        for row in list(self.p.symbols):
            self._without("symbols", row)
        for key, value in list(self.p.options.items()):
            self._try(lambda: self.p.options.pop(key), lambda: self.p.options.__setitem__(key, value))

    def _without(self, attribute, row):
        rows = getattr(self.p, attribute)
        at = rows.index(row)
        self._try(lambda: rows.pop(at), lambda: rows.insert(at, row))

    def _all_buffers(self):
        yield from self.p.params + self.p.workspaces
        for l in self.p.launches:
            yield from l.buffers
            for s, _ in walk(l.body):
                if s.kind == "declare":
                    yield s.buffer

    def sizes(self):
        """One extent everywhere, smaller."""
        sizes = {n for b in self._all_buffers() for n in b.shape if n > 1}
        for n in sorted(sizes, reverse=True):
            for smaller in (1, 2, 3, 4, 8, 16, n // 2, n - 1):
                if 0 < smaller < n and self._resize(n, smaller):
                    break
        for l in self.p.launches:
            for i, (name, text, value) in enumerate(l.grid):
                for smaller in (1, 2):
                    if smaller < value and self._try(lambda: l.grid.__setitem__(i, (name, str(smaller), smaller)),
                                                     lambda: l.grid.__setitem__(i, (name, text, value))):  # fmt: skip
                        break
            threads = l.threads
            for fewer in (32, 64, 128):
                if fewer < threads and self._try(lambda: setattr(l, "threads", fewer), lambda: setattr(l, "threads", threads)):
                    break
        for i, (name, t, value) in enumerate(self.p.scalars):
            for v in (0, 1):
                if v != value and self._try(lambda: self.p.scalars.__setitem__(i, (name, t, v)),
                                            lambda: self.p.scalars.__setitem__(i, (name, t, value))):  # fmt: skip
                    break

    def _resize(self, n, smaller):
        undo = []

        def swap(e):
            if e[0] == "const" and e[2] in (n, n - 1) and e[1].is_int and not isinstance(e[2], bool):
                return ("const", e[1], smaller - (n - e[2]))
            for place, x in children(e):
                e = with_child(e, place, swap(x))
            return e

        for b in self._all_buffers():
            if n in b.shape:
                undo.append((b, b.shape, b.declared, self.p.inputs.get(b)))
                old, b.shape = b.shape, tuple(smaller if x == n else x for x in b.shape)
                if b.declared is not None:
                    b.declared = tuple(x if isinstance(x, str) else y for x, y in zip(b.declared, b.shape))
                if b in self.p.inputs:
                    whole = self.p.inputs[b].reshape(old)
                    self.p.inputs[b] = np.ascontiguousarray(whole[tuple(slice(0, k) for k in b.shape)]).reshape(-1)
        slots, regions = [], []
        for get, put in self._slots():
            e = get()
            if (changed := swap(e)) != e:
                slots.append((put, e))
                put(changed)
        for l in self.p.launches:
            for s, _ in walk(l.body):
                for key in _REGIONS:
                    r = s.fields.get(key)
                    if isinstance(r, Region) and r.begin is not None and n in r.extent:
                        regions.append((r, r.extent))
                        r.extent = tuple(smaller if x == n else x for x in r.extent)
        if self.test():
            return True
        for b, shape, declared, stored in undo:
            b.shape, b.declared = shape, declared
            if stored is not None:
                self.p.inputs[b] = stored
        for put, e in slots:
            put(e)
        for r, extent in regions:
            r.extent = extent
        return False

    def types(self):
        """Casts that are not needed are left to expressions(); spaces and layouts become plain here."""
        for b in list(self._all_buffers()):
            if b.space == "fragment" and b.view is None:
                self._try(lambda: setattr(b, "space", "shared"), lambda: setattr(b, "space", "fragment"))
            if b.layout:
                layout = b.layout
                self._try(lambda: setattr(b, "layout", ""), lambda: setattr(b, "layout", layout))
            if b.fill is not None:
                fill = b.fill
                self._try(lambda: setattr(b, "fill", None), lambda: setattr(b, "fill", fill))

    def inputs(self):
        """Inputs of one value."""
        for b, stored in list(self.p.inputs.items()):
            for value in (0, 1):
                plain = np.full_like(stored, value)
                if not (stored == plain).all() and self._try(lambda: self.p.inputs.__setitem__(b, plain),
                                                            lambda: self.p.inputs.__setitem__(b, stored)):  # fmt: skip
                    break

    def details(self):
        """Fields of statements that have a plain value."""
        plain = {"loop": "serial", "options": "", "reverse": False, "nan_propagate": False, "policy": None, "transpose_a": False,
                 "transpose_b": False, "combine": None}  # fmt: skip
        for l in self.p.launches:
            if l.extra:
                extra = l.extra
                self._try(lambda: setattr(l, "extra", ""), lambda: setattr(l, "extra", extra))
            for s, _ in list(walk(l.body)):
                for key, value in plain.items():
                    old = s.fields.get(key)
                    if old not in (None, value, ""):
                        self._try(lambda: s.fields.__setitem__(key, value), lambda: s.fields.__setitem__(key, old))


