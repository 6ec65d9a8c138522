"""What all threads of a block surely do alike, by the text alone: docs/language.md, "a statement is done by every thread; one whose
operands are the same for all threads happens once", and statements that all threads come to are done one after the other."""
from nodes import children

_BLOCK_VOTES = ("block_any", "block_all", "block_count")


class Alike:
    """`together`: the statements that all threads of a block come to; `once`: the stores and atomics among them that happen once."""

    def __init__(self, launch, thread_names):
        self.varying, self.together, self.once = set(thread_names), set(), set()  # names, and local buffers that differ between threads
        before = -1
        while before != len(self.varying):
            before = len(self.varying)
            self.together, self.once = set(), set()
            self.left, self.apart = False, False  # some threads have returned; some have gone on to the next turn of the loop
            self._body(launch.body, True)

    def varies(self, e):
        if e is None:
            return False
        if e[0] == "var":
            return e[2] in self.varying
        if e[0] == "load" and e[2].root in self.varying:
            return True
        return any(self.varies(x) for _, x in children(e))

    def _mark(self, what, alike):
        if not alike:
            self.varying.add(what)

    def _body(self, body, together):
        for s in body:
            self._statement(s, together and not self.left and not self.apart)

    def _statement(self, s, together):
        if together:
            self.together.add(id(s))
        if s.kind == "let":
            self._mark(s.name, together and not self.varies(s.value))
        elif s.kind == "slice":
            for name, e in zip(s.names, s.indices):
                self._mark(name, together and not self.varies(e))
        elif s.kind in ("store", "atomic"):
            operands = [*s.indices, s.value] + ([s.compare] if s.kind == "atomic" else [])
            alike = together and not any(self.varies(e) for e in operands)
            if s.buffer.root.space == "local":
                self._mark(s.buffer.root, alike)
            elif alike:
                self.once.add(id(s))
            if s.kind == "atomic" and s.result:
                self._mark(s.result, alike)
        elif s.kind == "shuffle" or s.kind == "vote":
            self._mark(s.result, together and s.op in _BLOCK_VOTES)
        elif s.kind == "if":
            for inner in s.bodies:
                self._body(inner, together and not self.varies(s.condition))
        elif s.kind in ("for", "while"):
            inside = together and not any(self.varies(s.fields.get(k)) for k in ("begin", "extent", "condition"))
            inside = inside and not self._parts(s.bodies[0], True)
            if s.kind == "for":
                self._mark(s.var, inside)
            apart, self.apart = self.apart, False
            self._body(s.bodies[0], inside)
            self.apart = apart
        elif s.kind == "map":
            for inner in _stores(s.bodies[0]):  # of points, which are nobody's
                self._mark(inner.buffer.root, inner.buffer.root.space != "local")
        elif s.kind == "return" and not together:
            self.left = True
        elif s.kind == "continue" and not together:
            self.apart = True
        elif s.kind == "roles":
            self.left = self.left or not together

    def _parts(self, body, together):
        """Whether some threads may leave the loop and others not."""
        for s in body:
            if s.kind in ("break", "return") and not together:
                return True
            inside = together and not any(self.varies(s.fields.get(k)) for k in ("begin", "extent", "condition") if s.kind != "map")
            for inner in s.bodies if s.kind != "map" else ():
                jumps = inner if s.kind not in ("for", "while") else [x for x in _all(inner) if x.kind == "return"]
                if self._parts(jumps, inside):
                    return True
        return False


def _all(body):
    for s in body:
        yield s
        for inner in s.bodies:
            yield from _all(inner)


def _stores(body):
    return (s for s in _all(body) if s.kind in ("store", "atomic"))
