"""Rewrites the body of a traced function so that assignments, branches, loops and stores go through `staging`; all else
stays Python and runs once, while the program is recorded. Lines and columns stay those of the user's file."""
import ast
import copy
import inspect
import linecache
import types

from . import staging
from .trace import fail

HOOKS = "__tw"
_trees = {}
_rewritten = {}
_AUGMENTED = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.Pow: "**",
}  # fmt: skip
_COMPARED = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


def source_tree(function):
    """The definition of a function in the tree of its file."""
    code = function.__code__
    file, first = code.co_filename, code.co_firstlineno
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
    code = function.__code__
    file, first = code.co_filename, code.co_firstlineno
    lines = linecache.getlines(file, function.__globals__)
    if not lines:
        fail("SourceMissing", f"the source of '{function.__name__}' cannot be read: there is no file {file}",
             "traced functions stand in files or in cells of notebooks", (file, first, 1))  # fmt: skip
    known = _trees.get(file)
    if known is None or known[0] != lines:
        try:
            tree = ast.parse("".join(lines), file)
        except SyntaxError:
            return None  # it is being edited
        functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
        known = _trees[file] = lines, functions, list(_codes(compile(tree, file, "exec", dont_inherit=True)))
    for node in known[1]:
        start = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        if node.name == function.__name__ and start == first and _is_same_code(function, known[2]):
            return node
    return None


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
        return types.CellType(cell.cell_contents)
    except ValueError:  # empty: filled later, as a function that calls itself is
        return cell


def _rewrite(function):
    node = copy.deepcopy(source_tree(function))
    node = _without_annotations(node)
    rewriter = _Rewriter(function.__code__.co_filename, set(_parameter_names(node)))
    node.body = rewriter.block(node.body)
    inner = _compiled(function, node)
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


def _parameter_names(node):
    return [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]


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
    names = [*function.__code__.co_freevars, HOOKS]
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
    return next(c for c in outer.co_consts if inspect.iscode(c) and c.co_name == node.name)


def _codes(code):
    """All codes in a code."""
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield constant
            yield from _codes(constant)


def _assigned_names(target):
    return [n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


class _Rewriter(ast.NodeTransformer):
    def __init__(self, file, parameters):
        self.file, self.parameters = file, parameters
        self.bound = set(parameters)  # names that may hold a value when they are assigned to
        self.next = 0

    # ---- pieces

    def unsupported(self, node, what, help):
        fail("UnsupportedSyntax", f"{what} in a traced function", help, (self.file, node.lineno, node.col_offset + 1))

    def fresh(self):
        self.next += 1
        return f"__tw_{self.next}"

    def call(self, at, hook, *arguments):
        function = ast.Attribute(ast.Name(HOOKS, ast.Load()), hook, ast.Load())
        return self.at(at, ast.Call(function, list(arguments), []))

    @staticmethod
    def at(node, new):
        """Places what is new where the node begins. It ends on that line: calls of methods count as where they end."""
        for child in ast.walk(new):
            if isinstance(child, (ast.expr, ast.stmt, ast.ExceptHandler)) and not hasattr(child, "lineno"):
                child.lineno = child.end_lineno = node.lineno
                child.col_offset = child.end_col_offset = node.col_offset
        return new

    def thunk(self, expression):
        arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        return ast.copy_location(ast.Lambda(arguments, expression), expression)

    def text(self, value):
        return ast.Constant(value)

    def names_of(self, target):
        """The names of a loop's or a launch's variables, and whether they are unpacked."""
        if isinstance(target, ast.Name):
            return [ast.Constant(target.id), ast.Constant(False)]
        if isinstance(target, (ast.Tuple, ast.List)):
            names = [ast.Constant(e.id if isinstance(e, ast.Name) else "") for e in target.elts]
            return [ast.Tuple(names, ast.Load()), ast.Constant(True)]
        return [ast.Constant(""), ast.Constant(False)]

    def block(self, statements):
        out = []
        for statement in statements:
            new = self.visit(statement)
            out.extend(new if isinstance(new, list) else [] if new is None else [new])
            if isinstance(statement, (ast.Break, ast.Continue, ast.Return)):
                break  # what follows is never reached
        return out or [ast.Pass()]

    # ---- assignments

    def bind(self, at, name, value):
        """name = value, which stores where the name holds a variable of the program."""
        assign = ast.Assign([ast.Name(name, ast.Store())], None)
        if name not in self.bound:
            self.bound.add(name)
            assign.value = self.call(at, "bind", self.text(name), value)
            return [self.at(at, assign)]
        fresh, current = self.fresh(), self.fresh()
        first = self.at(at, ast.Assign([ast.Name(fresh, ast.Store())], value))
        handler = ast.ExceptHandler(
            ast.Name("NameError", ast.Load()), None, [ast.Assign([ast.Name(current, ast.Store())], ast.Constant(None))]
        )
        look = ast.Try(
            [ast.Assign([ast.Name(current, ast.Store())], ast.Name(name, ast.Load()))], [handler], [], []
        )
        assign.value = self.call(
            at, "bind", self.text(name), ast.Name(fresh, ast.Load()), ast.Name(current, ast.Load())
        )
        return [first, self.at(at, look), self.at(at, assign)]

    def assign(self, at, target, value):
        if isinstance(target, ast.Name):
            return self.bind(at, target.id, value)
        if isinstance(target, ast.Subscript):
            container, index = self.visit(target.value), self.visit(target.slice)
            return [self.at(at, ast.Expr(self.call(target, "store", container, index, value)))]
        if isinstance(target, (ast.Tuple, ast.List)):
            return self.unpack(at, target, value)
        if isinstance(target, ast.Starred):
            self.unsupported(target, "a starred target", "name every element")
        self.unsupported(target, "an assignment to an attribute", "assign to a name or to an element")

    def unpack(self, at, target, value):
        """All of the right side is taken before any of it is assigned."""
        fresh = self.fresh()
        names, _ = self.names_of(target)
        captured = self.call(at, "capture", value, names)
        out = [self.at(at, ast.Assign([ast.Name(fresh, ast.Store())], captured))]
        for i, element in enumerate(target.elts):
            part = self.at(at, ast.Subscript(ast.Name(fresh, ast.Load()), ast.Constant(i), ast.Load()))
            out += self.assign(at, element, part)
        return out

    def visit_Assign(self, node):
        value = self.visit(node.value)
        if len(node.targets) == 1:
            return self.assign(node, node.targets[0], value)
        fresh = self.fresh()
        captured = self.call(node, "capture_one", value)
        out = [self.at(node, ast.Assign([ast.Name(fresh, ast.Store())], captured))]
        for target in node.targets:
            out += self.assign(node, target, self.at(node, ast.Name(fresh, ast.Load())))
        return out

    def visit_AnnAssign(self, node):
        if node.value is not None:
            return self.assign(node, node.target, self.visit(node.value))
        if not isinstance(node.target, ast.Name) or node.target.id not in self.parameters:
            return None
        call = self.call(node, "annotate", self.text(node.target.id), self.visit(node.annotation))
        return self.at(node, ast.Assign([ast.Name(node.target.id, ast.Store())], call))

    def visit_AugAssign(self, node):
        operator = self.text(_AUGMENTED.get(type(node.op), "?"))
        value = self.visit(node.value)
        if isinstance(node.target, ast.Name):
            current = ast.Name(node.target.id, ast.Load())
            call = self.call(node, "update_name", self.text(node.target.id), operator, current, value)
            return self.at(node, ast.Assign([ast.Name(node.target.id, ast.Store())], call))
        if isinstance(node.target, ast.Subscript):
            container, index = self.visit(node.target.value), self.visit(node.target.slice)
            return self.at(node, ast.Expr(self.call(node.target, "update", operator, container, index, value)))
        self.unsupported(node.target, "an assignment to an attribute", "assign to a name or to an element")

    # ---- control

    def visit_If(self, node):
        branch = self.fresh()
        has_else = ast.Constant(bool(node.orelse))
        test = self.call(node.test, "Branch", self.visit(node.test), has_else)
        out = [self.at(node, ast.Assign([ast.Name(branch, ast.Store())], test))]
        for side, body in (("then", node.body), ("otherwise", node.orelse)):
            if body:
                call = ast.Call(ast.Attribute(ast.Name(branch, ast.Load()), side, ast.Load()), [], [])
                out.append(self.at(node, ast.If(call, self.block(body), [])))
        end = ast.Call(ast.Attribute(ast.Name(branch, ast.Load()), "end", ast.Load()), [], [])
        out.append(self.at(node, ast.Expr(end)))
        return out

    def visit_For(self, node):
        if node.orelse:
            self.unsupported(node.orelse[0], "else of a for", "write it after the loop, under a condition")
        iterable = self.visit(node.iter)
        if isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name) and node.iter.func.id == "range":
            iterable = self.at(
                node.iter, ast.Call(self.call(node.iter, "range_of", node.iter.func), iterable.args, iterable.keywords)
            )
        self.bound.update(_assigned_names(node.target))
        self.bound.update(n for s in node.body for n in _assigned_names(s))  # a loop of Python comes back to them
        loop = self.call(node, "loop", iterable, *self.names_of(node.target))
        return self.at(node, ast.For(node.target, loop, self.block(node.body), []))

    def visit_While(self, node):
        if node.orelse:
            self.unsupported(node.orelse[0], "else of a while", "write it after the loop, under a condition")
        loop = self.call(node, "while_loop", self.visit(node.test))
        return self.at(node, ast.For(ast.Name(self.fresh(), ast.Store()), loop, self.block(node.body), []))

    def visit_Break(self, node):
        return self.at(node, ast.If(self.call(node, "leave", self.text("loop_break")), [ast.Break()], []))

    def visit_Continue(self, node):
        return self.at(node, ast.If(self.call(node, "leave", self.text("loop_continue")), [ast.Continue()], []))

    def visit_With(self, node):
        for item in node.items:
            target = item.optional_vars
            names = self.names_of(target) if target is not None else [ast.Constant(""), ast.Constant(False)]
            item.context_expr = self.call(item.context_expr, "frame", self.visit(item.context_expr), *names)
            if target is not None:
                self.bound.update(_assigned_names(target))
        node.body = self.block(node.body)
        return node

    def visit_Assert(self, node):
        message = node.msg if node.msg is not None else ast.Constant("")
        call = self.call(node, "check", self.visit(node.test), self.thunk(self.visit(message)))
        return self.at(node, ast.Expr(call))

    def visit_Return(self, node):
        value = ast.Constant(None) if node.value is None else self.visit(node.value)
        return self.at(node, ast.Return(self.call(node, "returned", value)))

    # ---- expressions

    def visit_BoolOp(self, node):
        hook = "and_" if isinstance(node.op, ast.And) else "or_"
        return self.call(node, hook, *(self.thunk(self.visit(v)) for v in node.values))

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return self.call(node, "not_", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node):
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        operators = ast.Tuple([self.text(_COMPARED[type(o)]) for o in node.ops], ast.Load())
        return self.call(node, "compare", node.left, operators, *(self.thunk(c) for c in node.comparators))

    def visit_IfExp(self, node):
        sides = (self.thunk(self.visit(s)) for s in (node.body, node.orelse))
        return self.call(node, "select", self.visit(node.test), *sides)

    # ---- what stays Python

    def visit_FunctionDef(self, node):
        self.bound.add(node.name)
        return node

    def visit_Lambda(self, node):
        return node

    visit_ClassDef = visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Try(self, node):
        self.unsupported(node, "try", "the body is recorded once: let errors of the program reach its caller")
