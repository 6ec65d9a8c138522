"""Places in a text. The front end counts lines from 1 and bytes of UTF-8 in a line, Python characters, and an editor lines from 0
and, where nothing else was agreed on, units of UTF-16."""

import re

_ENDS = re.compile("\r\n|\r|\n")
_LINE = re.compile(r"\bline (\d+)\b")
_WORD = re.compile(r"[^\W\d]\w*")


def lines_of(text):
    """Its lines without their ends, as Python and the protocol count them; the last one may be empty."""
    return _ENDS.split(text)


def characters_of_bytes(line, count):
    """How many characters the first `count` bytes of a line are."""
    return len(line.encode(errors="surrogatepass")[: max(count, 0)].decode(errors="ignore"))


def word_at(line, column):
    """(the name at a character of a line or "", what stands before it)."""
    for found in _WORD.finditer(line):
        if found.start() <= column <= found.end():
            return found[0], line[: found.start()]
    return "", line[:column]


def moved(old, new):
    """Where the lines of an old text are in a new one: a function from number to number, or to None for lines that were changed.
    Lines count from 1; what both texts begin and end with stays."""
    short = min(len(old), len(new))
    head = 0
    while head < short and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < short - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    by, first_of_tail = len(new) - len(old), len(old) - tail

    def line(number):
        if number <= head:
            return number
        if number > first_of_tail:
            return number + by
        return number if len(old) == len(new) else None  # a line that is being typed stays where it is

    return line


def moved_facts(facts, where):
    """What is known of a kernel, at the places that `moved` says; None where the kernel's own lines are gone. Line numbers in its
    texts go along. What lost a line is no longer known whole, and has no key to be found by."""
    first, last = where(facts["first"]), where(facts["last"])
    if not first or not last:
        return None

    def renumbered(text):
        return _LINE.sub(lambda m: f"line {where(int(m[1])) or m[1]}", text)

    operations = []
    for o in facts["operations"]:
        line, end = where(o["line"]), where(o["end"])
        if line and end:
            texts = {key: [renumbered(t) for t in o[key]] for key in ("becomes", "rejected")}
            operations.append({**o, "line": line, "end": end, **texts})
    layouts = [{**layout, "decided_by": renumbered(layout["decided_by"])} for layout in facts["layouts"]]
    key = facts["key"] if len(operations) == len(facts["operations"]) else ""
    return {**facts, "first": first, "last": last, "operations": operations, "layouts": layouts, "key": key}
