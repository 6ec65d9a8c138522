"""The source of a traced function, and the function as it is traced: over the same globals and closure."""
import ast
import copy
import inspect
import linecache
import sys
import types

from . import staging
from .syntax import HOOKS, Rewriter
from .trace import fail

_trees = {}
_rewritten = {}
_inside = set()  # codes of functions in functions that are traced


def source_tree(function):
    """The definition of a function in the tree of its file."""
    code = function.__code__
    file, first = code.co_filename, code.co_firstlineno
    if code.co_name == "<lambda>":
        fail("SourceMissing", "a lambda has no statements that could be recorded", "write a def", (file, first, 1))
    node = _definition(function)
    if node is None:
        linecache.checkcache(file)  # loaded again after it was edited
        node = _definition(function)
    if node is None:
        fail("SourceMissing", f"'{function.__name__}' is not what line {first} of {file} says: the file has changed",
             "import it again, or start a new process", (file, first, 1))  # fmt: skip
    return node


def _definition(function):
    """Its node, or None if the file as it was last read says something else."""
    file = function.__code__.co_filename
    lines = linecache.getlines(file, function.__globals__)
    if lines:
        return _definition_in(function, lines)
    for lines in _cells():
        node = _definition_in(function, lines)
        if node is not None:
            return node
    fail("SourceMissing", f"the source of '{function.__name__}' cannot be read: there is no file {file}",
         "traced functions stand in files or in cells of notebooks", (file, function.__code__.co_firstlineno, 1))  # fmt: skip


def _cells():
    """The lines of IPython's cells that a magic ran, as %%time does, the last one first: no file has them."""
    python = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    for text in reversed(python.history_manager.input_hist_raw if python is not None else ()):
        magic, _, rest = text.lstrip("\n").partition("\n")
        if magic.startswith("%%"):
            yield python.transform_cell(rest).splitlines(True)


def _definition_in(function, lines):
    code = function.__code__
    file, first = code.co_filename, code.co_firstlineno
    known = _trees.get(file)
    if known is None or known[0] != lines:
        try:
            tree = ast.parse("".join(lines), file)
        except SyntaxError:
            return None  # it is being edited
        functions = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
        known = _trees[file] = lines, functions, list(_codes(compile(tree, file, "exec", dont_inherit=True))), tree
    for node in known[1]:
        start = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        if node.name == code.co_name and start == first:
            if code in _inside or _is_same_code(function, known[2]) or _is_same_code(function, _codes_of_statement(known[3], first, file)):
                return node
    return None


def _codes_of_statement(tree, line, file):
    """Notebooks compile each statement of a cell alone, and what it is compiled to depends on what the others import."""
    for statement in tree.body:
        start = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
        if start <= line <= statement.end_lineno:
            return list(_codes(compile(ast.Module([statement], []), file, "exec", dont_inherit=True)))
    return []


def rewritten(function):
    """The function as it is traced: over the same globals, with the values that its closure has now."""
    code = function.__code__
    key = code, code.co_filename  # equal functions of two files are equal codes
    made = _rewritten.get(key)
    if made is None:
        made = _rewritten[key] = _rewrite(function)
    inner, free = made
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))
    hooks = types.CellType(staging)
    closure = tuple(hooks if name == HOOKS else _snapshot(cells[name]) for name in free)
    result = types.FunctionType(inner, function.__globals__, function.__name__, function.__defaults__, closure)
    result.__kwdefaults__ = function.__kwdefaults__
    return result


def _snapshot(cell):
    try:
        return types.CellType(staging.read(cell.cell_contents))
    except ValueError:  # empty: filled later, as a function that calls itself is
        return cell


def _rewrite(function):
    node = copy.deepcopy(source_tree(function))
    node = _without_annotations(node)
    rewriter = Rewriter(function.__code__.co_filename, node)
    if isinstance(node, ast.AsyncFunctionDef):
        rewriter.visit(node)
    node.body = rewriter.block(node.body)
    inner = _compiled(function, node)
    _inside.update(_codes(inner))
    return inner, inner.co_freevars


def _is_same_code(function, codes):
    """The file may have changed since it was loaded: what it says now must be what the function does."""
    code = function.__code__
    if any(name.startswith("@py_") for name in code.co_varnames):
        return True  # pytest has rewritten the assertions of this function
    for found in codes:
        if (found.co_name, found.co_firstlineno) == (code.co_name, code.co_firstlineno):
            if found.co_code == code.co_code and _plain(found.co_consts) == _plain(code.co_consts):
                return True
    return False


def _plain(constants):
    return [c for c in constants if not inspect.iscode(c)]


def _without_annotations(node):
    node.decorator_list, node.returns = [], None
    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        argument.annotation = None
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [None if d is None else ast.Constant(None) for d in node.args.kw_defaults]
    return node


def _compiled(function, node):
    """The code of a definition. A function around it whose parameters are its free variables makes them free there."""
    file, node = function.__code__.co_filename, _without_annotations(node)
    names = [*(n for n in function.__code__.co_freevars if n != HOOKS), HOOKS]
    name, node.name = node.name, "__tw_traced"  # its own name means what it means outside: a global, or a free variable
    outer = ast.FunctionDef(
        name="__tw_outer",
        args=ast.arguments(
            posonlyargs=[], args=[ast.arg(arg=n) for n in names], kwonlyargs=[], kw_defaults=[], defaults=[]
        ),
        body=[node],
        decorator_list=[],
        type_params=[],
    )
    module = ast.fix_missing_locations(ast.Module(body=[outer], type_ignores=[]))
    compiled = compile(module, file, "exec", dont_inherit=True)
    outer = next(c for c in compiled.co_consts if inspect.iscode(c))
    inner = next(c for c in outer.co_consts if inspect.iscode(c) and c.co_name == node.name)
    return inner.replace(co_name=name)


def _codes(code):
    """All codes in a code."""
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield constant
            yield from _codes(constant)
