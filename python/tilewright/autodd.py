"""tilewright reduce, and python -m tilelang.autodd: a program that goes wrong, made as small as it can be while it prints the same
text. Statements are removed in halves, quarters and so on (ddmin), then what is left is simplified, until nothing helps."""
import ast
import copy
import os
import re
import sys
import time
import tokenize
import warnings

_DESCRIPTION = "Delta-debug the provided Python source: removes and simplifies what it can while the output still has the text."
_MARK = "__freeze__"


class _Freeze:
    """Marks code that is kept as it is: `with __freeze__:` around statements, `__freeze__(x)` around an expression."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def __call__(self, value=None):
        return value


__freeze__ = _Freeze()

# ---- trees and places in them: a place is the fields, with an index in lists, from the root on


def _places(node, path=()):
    """(place, node) of every node, outer ones first."""
    for name, value in ast.iter_fields(node):
        for number, child in enumerate(value) if isinstance(value, list) else ((None, value),):
            if isinstance(child, ast.AST):
                at = (*path, (name, number))
                yield at, child
                yield from _places(child, at)


def _at(tree, path):
    for name, number in path:
        tree = getattr(tree, name) if number is None else getattr(tree, name)[number]
    return tree


def _put(tree, path, value):
    """Sets a place: a list of statements takes several in place of one, and other lists none."""
    *outer, (name, number) = path
    parent = _at(tree, outer)
    if number is None:
        setattr(parent, name, value)
    elif isinstance(value, list):
        getattr(parent, name)[number : number + 1] = value
    else:
        getattr(parent, name)[number] = value


def _size(tree):
    """What has to become smaller: the nodes, then what constants say."""
    nodes = list(ast.walk(tree))
    return len(nodes), sum(_weight(n.value) for n in nodes if isinstance(n, ast.Constant))


def _weight(value):
    if isinstance(value, (bool, type(None))):
        return 0
    return value.bit_length() if isinstance(value, int) else len(repr(value))


def _text_of(tree):
    """The text of a program, or None where it would be none: bodies have a statement."""
    for node in ast.walk(tree):
        if isinstance(getattr(node, "body", None), list) and not node.body and not isinstance(node, ast.Module):
            node.body = [ast.Pass()]
        if isinstance(node, ast.Try) and not (node.handlers or node.finalbody):
            node.finalbody = [ast.Pass()]
    try:
        text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<program>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, TypeError, AttributeError, RecursionError):
        return None
    return text


# ---- what is kept

_LINE, _BEGIN, _END = (re.compile(rf"#\s*autodd:\s*{word}\s*$") for word in ("freeze", "freeze-start", "end-freeze"))


def _frozen_lines(source):
    """Lines that comments keep: `# autodd: freeze` its own, `# autodd: freeze-start` those to `# autodd: end-freeze`."""
    lines, inside = set(), False
    for number, line in enumerate(source.splitlines(), 1):
        inside = (inside or bool(_BEGIN.search(line))) and not _END.search(line)
        if inside or _LINE.search(line):
            lines.add(number)
    return lines


def _is_mark(node):
    if isinstance(node, ast.With):
        return any(isinstance(i.context_expr, ast.Name) and i.context_expr.id == _MARK for i in node.items)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == _MARK
    return isinstance(node, ast.ImportFrom) and any(a.name == _MARK for a in node.names)


def _freeze(tree, source):
    """Notes in each node whether it is kept: `kept` as it is, `holds` where something in it is."""
    lines = _frozen_lines(source)

    def visit(node, kept):
        kept = kept or _is_mark(node) or (isinstance(node, ast.stmt) and node.lineno in lines)
        node.kept = kept
        node.holds = any([visit(child, kept) for child in ast.iter_child_nodes(node)]) or kept
        return node.holds

    visit(tree, False)


def _is_free(node):
    return not getattr(node, "holds", False)


# ---- edits: each is a function that changes a tree


def _set(path, value):
    return lambda tree: _put(tree, path, copy.deepcopy(value))


def _without(path, begin, end):
    """Without some elements of the list at a place."""

    def edit(tree):
        *outer, (name, _) = path
        del getattr(_at(tree, outer), name)[begin:end]

    return edit


def _lists(tree, chosen):
    """(place, list) of the lists of nodes that `chosen` names, outer ones first."""
    for path, node in (((), tree), *_places(tree)):
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and chosen(node, name):
                yield (*path, (name, None)), value


def _is_body(node, name):
    return name in ("body", "orelse", "finalbody") and isinstance(getattr(node, name), list)


def _is_elements(node, name):
    return name in ("args", "keywords", "elts", "names", "decorator_list", "bases", "items", "ifs", "handlers", "generators", "targets", "kwonlyargs")


def _hoisted(node):
    """What may stand in place of a statement: its parts."""
    if isinstance(node, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
        yield node.body
        for name in ("orelse", "finalbody"):
            if getattr(node, name, None):
                yield getattr(node, name)
        if isinstance(node, ast.For):
            first = ast.Call(ast.Name("next", ast.Load()), [ast.Call(ast.Name("iter", ast.Load()), [node.iter], [])], [])
            yield [ast.Assign([node.target], first), *node.body]


def _parts(node):
    """The expressions that an expression is made of."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) and isinstance(getattr(child, "ctx", ast.Load()), ast.Load):
            yield child.value if isinstance(child, ast.Starred) else child
        elif isinstance(child, ast.keyword):
            yield child.value


def _smaller(node):
    """What may stand in place of an expression, the smallest first."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, int) and not isinstance(node.value, bool):
            small = {0, 1, 2, node.value // 2}
            yield from (ast.Constant(n) for n in sorted(small) if _weight(n) < _weight(node.value))
        elif isinstance(node.value, (float, str, bytes)) and node.value:
            yield ast.Constant(type(node.value)())
        return
    if isinstance(node, (ast.Name, ast.Starred, ast.Slice)) or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return
    yield ast.Constant(None)
    yield ast.Constant(0)
    yield from _parts(node)


_LEFT_OUT = {"annotation": ast.arg, "returns": (ast.FunctionDef, ast.AsyncFunctionDef), "value": ast.Return, "cause": ast.Raise, "msg": ast.Assert,
             "optional_vars": ast.withitem, "asname": ast.alias, "vararg": ast.arguments, "kwarg": ast.arguments, "lower": ast.Slice,
             "upper": ast.Slice, "step": ast.Slice}  # fmt: skip


def _parameter_edits(tree):
    """Without a parameter of a function, and what calls by the function's name give for it; its default stands in its place."""

    def edit(path, number, name):
        def change(tree):
            function = _at(tree, path)
            given = function.args
            fewer = len(given.defaults) - (len(given.args) - number)
            default = given.defaults.pop(fewer) if fewer >= 0 else None
            parameter = given.args.pop(number).arg
            if default is not None:
                for at, node in list(_places(function)):
                    if isinstance(node, ast.Name) and node.id == parameter and isinstance(node.ctx, ast.Load):
                        _put(function, at, copy.deepcopy(default))
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                    del node.args[number : number + 1]
                    node.keywords = [k for k in node.keywords if k.arg != parameter]

        return change

    for path, node in _places(tree):
        if isinstance(node, ast.FunctionDef) and _is_free(node):
            for number in range(len(node.args.args)):
                yield edit(path, number, node.name)


def _edits(tree):
    """Everything but the removal of statements, larger parts first."""
    for path, node in _places(tree):
        if isinstance(node, ast.stmt) and _is_free(node) and isinstance(path[-1][1], int):
            for body in _hoisted(node):
                yield _set(path, body)
    yield from _parameter_edits(tree)
    for path, listed in _lists(tree, _is_elements):
        parent = _at(tree, path[:-1])
        for number, node in enumerate(listed):
            if _is_free(node) and not isinstance(parent, ast.arguments):
                yield _without(path, number, number + 1)
    for path, node in _places(tree):
        if isinstance(node, ast.Dict) and _is_free(node):
            for number in range(len(node.keys)):
                yield _set(path, ast.Dict(node.keys[:number] + node.keys[number + 1 :], node.values[:number] + node.values[number + 1 :]))
        if isinstance(node, ast.AnnAssign) and node.value is not None and _is_free(node):
            yield _set(path, ast.Assign([node.target], node.value))
        for name, kinds in _LEFT_OUT.items():
            if isinstance(node, kinds) and getattr(node, name) is not None and _is_free(node):
                yield _set((*path, (name, None)), None)
    for path, node in _places(tree):
        if isinstance(node, ast.expr) and _is_free(node):
            for value in _smaller(node):
                if path[-1][0] != "func" or not isinstance(value, ast.Constant):
                    yield _set(path, value)


# Lines of the program itself: of tracebacks and warnings, and beside the place of a coded error.
_ECHOES = re.compile(r'^ +File ".*", line \d+.*\n(?:    .*(?:\n|$))*|:\d+: \w*Warning: .*\n  .*$|^ *\d+ \| .*$', re.MULTILINE)


def asks_for(text, printed):
    """A question about what a program prints: whether the text is in it, and where `printed` has it elsewhere than in a line of the
    program, whether that is so too. None where it has none."""
    if text in _ECHOES.sub("", printed):
        return lambda output: text in _ECHOES.sub("", output)
    return (lambda output: text in output) if text in printed else None


class Reducer:
    """A program of whose output `goes_wrong` is true, and smaller ones; take(source) is called with each."""

    def __init__(self, tree, goes_wrong, trials, take):
        self.tree, self.goes_wrong, self.trials, self.take = tree, goes_wrong, trials, take
        self.size, self.seen = _size(tree), set()

    def _made(self, edit):
        """(the tree, its text) after an edit, where that is a smaller program that was not tried yet."""
        tree = copy.deepcopy(self.tree)
        edit(tree)
        text = _text_of(tree)
        if text is None or text in self.seen or _size(tree) >= self.size:
            return None
        self.seen.add(text)
        return tree, text

    def first_of(self, edits):
        """The number of the first of some edits after which the text is still printed, which is then the program; or None."""
        made = [(number, m) for number, m in enumerate(map(self._made, edits)) if m is not None]
        found = None
        for (number, (tree, source)), printed in zip(made, list(self.trials.printed([m[1] for _, m in made]))):
            if found is None and self.goes_wrong(printed):
                found, self.tree, self.size = number, tree, _size(tree)
                self.take(source)
            elif found is not None:
                self.seen.discard(source)  # of a program that is no more
        return found

    def remove_statements(self):
        """ddmin of each body, outer ones first."""
        done = 0
        while True:
            bodies = [path for path, _ in _lists(self.tree, _is_body)]
            if done >= len(bodies):
                return
            self._remove_from(bodies[done])
            done += 1

    def _remove_from(self, path):
        step = len(self._list(path))
        while step:
            begin = 0
            while begin < len(self._list(path)):
                listed = self._list(path)
                at = [b for b in range(begin, len(listed), step) if all(map(_is_free, listed[b : b + step]))][: self.trials.jobs]
                if not at:
                    break
                found = self.first_of([_without(path, b, b + step) for b in at])
                begin = at[-1] + step if found is None else at[found]
            step //= 2

    def _list(self, path):
        *outer, (name, _) = path
        return getattr(_at(self.tree, outer), name)

    def simplify(self):
        """Tries every edit; after one that helps the others are tried from there on."""
        begin, edits = 0, list(_edits(self.tree))
        while begin < len(edits):
            found = self.first_of(edits[begin : begin + self.trials.jobs])
            if found is None:
                begin += self.trials.jobs
            else:
                begin, edits = begin + found, list(_edits(self.tree))

    def run(self):
        size = None
        while size != self.size:
            size = self.size
            self.remove_statements()
            self.simplify()


def _imports(tree):
    names = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    return names | {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module and not node.level}


def _arguments(argv, prog):
    import argparse

    from .trials import BACKENDS

    parse = argparse.ArgumentParser(prog=prog, description=_DESCRIPTION)
    parse.add_argument("source", metavar="FILE", help="a program of one file")
    parse.add_argument("--err-msg", required=True, metavar="TEXT", help="what it prints, in part: to stdout or stderr")
    parse.add_argument("-o", "--output", required=True, metavar="OUT", help="where the smallest program so far is written")
    parse.add_argument("--backend", default="runner", choices=BACKENDS,
                       help="runner: processes that have imported the libraries, and fork for each program; subproc: an interpreter for each (runner)")  # fmt: skip
    parse.add_argument("--timeout", type=float, default=60, metavar="SECONDS", help="time of each program (60)")
    parse.add_argument("-j", "--jobs", type=int, default=1, help="programs at once (1)")
    options = parse.parse_args(argv)
    if not os.path.isfile(options.source):
        parse.error(f"there is no file '{options.source}'")
    for written in (options.output, f"{options.output}.part"):
        if os.path.exists(written) and os.path.samefile(written, options.source):
            parse.error(f"'{written}' is the program itself, which would be lost: give the smaller one a file of its own")
    if not options.err_msg or options.jobs < 1 or options.timeout <= 0:
        parse.error("the text is not empty, and time and jobs are more than 0")
    return options


def _reduce(options):
    from . import outputs
    from .trace import fail
    from .trials import Trials

    outputs.check(options.output)
    whole = os.path.isfile(options.output) or not os.path.exists(options.output)  # a device stays what it is
    if whole:
        outputs.check(f"{options.output}.part")
    try:
        with tokenize.open(options.source) as file:
            source = file.read()
    except (OSError, UnicodeDecodeError, SyntaxError) as error:
        fail("FileNotReadable", f"{options.source} cannot be read: {error}", "give a program of Python", (options.source, 0, 0))
    try:
        tree = ast.parse(source, options.source)
    except SyntaxError as error:
        fail("UnsupportedSyntax", f"{options.source} is no program of Python: {error.msg}", "", (options.source, error.lineno or 1, error.offset or 0))
    _freeze(tree, source)
    begin, folder = time.monotonic(), os.path.dirname(os.path.abspath(options.source))
    text = ast.unparse(tree) + "\n"
    with Trials(options.backend, folder, _imports(tree), options.timeout, options.jobs) as trials:
        (printed,) = trials.printed([text])
        if options.err_msg not in printed and trials.backend == "runner":
            trials.backend = "subproc"  # what a process has imported before may hide it
            (printed,) = trials.printed([text])
        goes_wrong = asks_for(options.err_msg, printed)
        if goes_wrong is None:
            last = (printed.strip().splitlines() or ["nothing"])[-1]
            fail("BadOption", f"'{options.err_msg}' is not in what {options.source} prints", f"it prints last: {last[:200]}", (options.source, 1, 0))

        def take(smaller):
            written = f"{options.output}.part" if whole else options.output
            with open(written, "w", encoding="utf-8") as file:
                file.write(smaller)
            if whole:
                os.replace(written, options.output)

        take(text)
        reducer = Reducer(tree, goes_wrong, trials, take)
        reducer.run()
        lines = len(_text_of(reducer.tree).splitlines())
    print(f"{options.output}: {lines} of {len(source.splitlines())} lines, after {trials.count} programs in {time.monotonic() - begin:.0f} s")


def main(argv=None, prog="python -m tilelang.autodd"):
    from .errors import TilewrightError
    from .tracebacks import colored, has_colors

    options = _arguments(sys.argv[1:] if argv is None else argv, prog)
    try:
        _reduce(options)
    except TilewrightError as error:
        print(colored(str(error)) if has_colors(sys.stderr) else error, file=sys.stderr)
        return 1
    return 0
