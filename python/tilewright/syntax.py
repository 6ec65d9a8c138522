"""What each statement and expression of a traced function becomes: assignments, branches, loops and stores go through
`staging`; all else stays Python and runs once, while the program is recorded. Lines and columns stay those of the file."""
import ast

from .trace import fail

HOOKS = "__tw"
_AUGMENTED = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.Pow: "**", ast.MatMult: "@",
}  # fmt: skip
_COMPARED = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_ASKING = frozenset({"any", "all", "bool", "max", "min"})  # functions of Python that ask what they are given for its truth
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_REGIONS = (ast.If, ast.For, ast.While, ast.With)


def _parameters(arguments):
    star = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *star)}


def _bound_names(node):
    """The names that a node binds in its own scope."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, ast.Lambda):
        return set()
    if isinstance(node, _COMPREHENSIONS):
        return {n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr)}
    if isinstance(node, ast.Name):
        return set() if isinstance(node.ctx, ast.Load) else {node.id}
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return set()
    found = set()
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        found |= {(a.asname or a.name).partition(".")[0] for a in node.names}
    if isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
        found.add(node.name)
    for child in ast.iter_child_nodes(node):
        found |= _bound_names(child)
    return found


def _names_in(statements):
    return set().union(*map(_bound_names, statements)) - {"_"} if statements else set()


def _bound_each_turn(node):
    """What a loop binds names in besides its body: the target of a for, the condition of a while."""
    return [node.target] if isinstance(node, ast.For) else [node.test] if isinstance(node, ast.While) else []


def _region_names(node):
    """The names that ifs, loops and withs of a function bind."""
    found = set()
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (*_FUNCTIONS, ast.ClassDef)):
            continue
        if isinstance(child, _REGIONS):
            found |= _names_in([*child.body, *getattr(child, "orelse", []), *_bound_each_turn(child)])
        found |= _region_names(child)
    return found


def _assigned_names(target):
    return [n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def _watched_names(definition, own):
    """Names from around a function that it reads: all but those of which it calls a method, or stores an element, in statements
    that are nothing else, as where it notes something."""
    noted = set()
    for node in ast.walk(definition):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            noted.add(node.value.func.value)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            noted.add(node.value)
    names = (n for n in ast.walk(definition) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n not in noted)
    return sorted({n.id for n in names} - own)


class _InnerReads(ast.NodeTransformer):
    """In a function of Python inside of a traced one: names of that one that regions bind are asked for their values."""

    def __init__(self, rewriter, names):
        self.rewriter, self.names = rewriter, names

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load) and node.id in self.names:
            return self.rewriter.call(node, "read", node)
        return node

    def visit_Nonlocal(self, node):
        self.rewriter.unsupported(node, "nonlocal", "decorate the function with @T.macro and pass the variable as a T.Ref")


class Rewriter(ast.NodeTransformer):
    """Rewrites the body of one definition."""

    def __init__(self, file, definition):
        self.file, self.parameters = file, _parameters(definition.args)
        self.region_names = _region_names(definition)
        self.bound = self.parameters | self.region_names  # names that may hold a value when they are assigned to
        self.own = self.parameters | _names_in(definition.body)
        self.watched = _watched_names(definition, self.own)
        self.next, self.text_is_kept = 0, False

    # ---- pieces

    def unsupported(self, node, what, help):
        fail("UnsupportedSyntax", f"{what} in a traced function", help, (self.file, node.lineno, node.col_offset + 1))

    def fresh(self):
        self.next += 1
        return f"__tw_{self.next}"

    def hook(self, name):
        return ast.Attribute(ast.Name(HOOKS, ast.Load()), name, ast.Load())

    def call(self, at, hook, *arguments):
        return self.at(at, ast.Call(self.hook(hook), list(arguments), []))

    @staticmethod
    def at(node, new):
        """Places what is new where the node begins. It ends on that line: calls of methods count as where they end."""
        for child in ast.walk(new):
            if isinstance(child, (ast.expr, ast.stmt, ast.ExceptHandler)) and not hasattr(child, "lineno"):
                child.lineno = child.end_lineno = node.lineno
                child.col_offset = child.end_col_offset = node.col_offset
        return new

    def thunk(self, expression):
        for node in ast.walk(expression):
            if isinstance(node, ast.NamedExpr):
                self.unsupported(node, "':=' in a part of a condition that may not be evaluated", "assign to the name in a line of its own before")
        arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        return ast.copy_location(ast.Lambda(arguments, expression), expression)

    def text(self, value):
        return ast.Constant(value)

    def place(self, node):
        return ast.Constant((node.lineno, node.col_offset, self.file))

    def method(self, at, holder, name, *arguments):
        return self.at(at, ast.Call(ast.Attribute(ast.Name(holder, ast.Load()), name, ast.Load()), list(arguments), []))

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

    # ---- names that regions bind

    def region(self, at, holder, names):
        made = self.of_region(at, "Region", self.place(at), *map(ast.Constant, names))
        return self.at(at, ast.Assign([ast.Name(holder, ast.Store())], made))

    def of_region(self, at, hook, *arguments):
        made = self.call(at, hook, *arguments)
        if self.watched:
            made.keywords.append(ast.keyword("watched", ast.Constant(tuple(self.watched))))
        return self.at(at, made)

    def taken(self, at, holder, names, targets=()):
        """The names hold what the region says, where only run time decides; but not the targets, which the loop has given."""
        if not set(names) - set(targets):
            return []
        unused = self.fresh() if targets else None
        targets = ast.Tuple([ast.Name(unused if n in targets else n, ast.Store()) for n in names], ast.Store())
        assign = ast.Assign([targets], ast.Attribute(ast.Name(holder, ast.Load()), "values", ast.Load()))
        return [self.at(at, ast.If(ast.Attribute(ast.Name(holder, ast.Load()), "changes", ast.Load()), [assign], []))]

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load) and node.id in self.region_names:
            return self.call(node, "read", node)
        return node

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
            container, index = self.visit(target.value), self.index(target.slice)
            return [self.at(at, ast.Expr(self.call(target, "store", value, container, index)))]
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
        operator = self.text(_AUGMENTED[type(node.op)])
        value = self.visit(node.value)
        if isinstance(node.target, ast.Name):
            current = self.visit(self.at(node, ast.Name(node.target.id, ast.Load())))
            call = self.call(node, "update_name", self.text(node.target.id), operator, current, value)
            return self.at(node, ast.Assign([ast.Name(node.target.id, ast.Store())], call))
        if isinstance(node.target, ast.Subscript):
            container, index = self.visit(node.target.value), self.index(node.target.slice)
            return self.at(node, ast.Expr(self.call(node.target, "update", operator, container, index, value)))
        self.unsupported(node.target, "an assignment to an attribute", "assign to a name or to an element")

    def visit_NamedExpr(self, node):
        call = self.call(node, "bind_here", self.text(node.target.id), self.visit(node.value))
        return ast.copy_location(ast.NamedExpr(node.target, call), node)

    # ---- control

    def visit_If(self, node):
        branch, names = self.fresh(), sorted(_names_in([*node.body, *node.orelse]))
        test = self.of_region(node.test, "Branch", self.truth(node.test), self.place(node), *map(ast.Constant, names))
        out = [self.at(node, ast.Assign([ast.Name(branch, ast.Store())], test)), *self.taken(node, branch, names)]
        out.append(self.at(node, ast.If(self.method(node, branch, "then"), self.block(node.body), [])))
        if node.orelse:
            other = [*self.taken(node, branch, names), *self.block(node.orelse)]
            out.append(self.at(node, ast.If(self.method(node, branch, "otherwise"), other, [])))
        out.append(self.at(node, ast.Expr(self.method(node, branch, "end"))))
        return out + self.taken(node, branch, names)

    def turns(self, node, holder, names, targets=()):
        """The body of a loop, or of a with."""
        return [*self.taken(node, holder, names, targets), *self.block(node.body), self.at(node, ast.Expr(self.method(node, holder, "turn")))]

    def visit_For(self, node):
        if node.orelse:
            self.unsupported(node.orelse[0], "else of a for", "write it after the loop, under a condition")
        iterable = self.visit(node.iter)
        if isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name) and node.iter.func.id == "range":
            iterable = self.at(
                node.iter, ast.Call(self.call(node.iter, "range_of", node.iter.func), iterable.args, iterable.keywords)
            )
        self.bound.update(_assigned_names(node.target))
        holder, names = self.fresh(), sorted(_names_in([node.target, *node.body]))
        loop = self.call(node, "loop", iterable, *self.names_of(node.target), ast.Name(holder, ast.Load()))
        made = self.at(node, ast.For(node.target, loop, self.turns(node, holder, names, _assigned_names(node.target)), []))
        return [self.region(node, holder, names), made, *self.taken(node, holder, names)]

    def visit_While(self, node):
        if node.orelse:
            self.unsupported(node.orelse[0], "else of a while", "write it after the loop, under a condition")
        holder, names = self.fresh(), sorted(_names_in([*node.body, node.test]))
        ready = self.at(node, ast.Expr(self.method(node, holder, "before_while")))
        begin = [self.region(node, holder, names), ready, *self.taken(node, holder, names)]
        loop = self.call(node, "while_loop", self.truth(node.test), ast.Name(holder, ast.Load()))
        body = [*self.block(node.body), self.at(node, ast.Expr(self.method(node, holder, "turn")))]
        made = self.at(node, ast.For(ast.Name(self.fresh(), ast.Store()), loop, body, []))
        return [*begin, made, *self.taken(node, holder, names)]

    def visit_Break(self, node):
        return self.at(node, ast.If(self.call(node, "leave", self.text("loop_break")), [ast.Break()], []))

    def visit_Continue(self, node):
        return self.at(node, ast.If(self.call(node, "leave", self.text("loop_continue")), [ast.Continue()], []))

    def visit_With(self, node):
        holder, names = self.fresh(), sorted(_names_in(node.body))
        for item in node.items:
            target = item.optional_vars
            named = self.names_of(target) if target is not None else [ast.Constant(""), ast.Constant(False)]
            manager = self.visit(item.context_expr)
            item.context_expr = self.call(item.context_expr, "frame", manager, *named, ast.Name(holder, ast.Load()))
            if target is not None:
                self.bound.update(_assigned_names(target))
        begin = self.region(node, holder, names)
        node.body = self.turns(node, holder, names)
        close = self.at(node, ast.Expr(self.method(node, holder, "left")))
        return [begin, node, close, *self.taken(node, holder, names)]

    def visit_Assert(self, node):
        outer, self.text_is_kept = self.text_is_kept, True
        message = node.msg if node.msg is not None else ast.Constant("")
        message = self.thunk(self.visit(message))
        self.text_is_kept = outer
        return self.at(node, ast.Expr(self.call(node, "check", self.truth(node.test), message)))

    def visit_Raise(self, node):
        outer, self.text_is_kept = self.text_is_kept, True
        self.generic_visit(node)
        self.text_is_kept = outer
        return [self.at(node, ast.Expr(self.call(node, "raised"))), node]

    def visit_Return(self, node):
        value = ast.Constant(None) if node.value is None else self.visit(node.value)
        return self.at(node, ast.Return(self.call(node, "returned", value)))

    def visit_Match(self, node):
        """As ifs where the patterns are numbers and names; else Python decides, on what is known."""
        tests = [_simple(case) for case in node.cases]
        if any(t is None for t in tests):
            node.subject = self.call(node.subject, "matched", self.visit(node.subject))
            for case in node.cases:
                case.guard = None if case.guard is None else self.visit(case.guard)
                case.body = self.block(case.body)
            return node
        subject, chain = self.fresh(), []
        for case, (test, name) in reversed(list(zip(node.cases, tests))):
            body = [ast.Assign([ast.Name(name, ast.Store())], ast.Name(subject, ast.Load()))] if name else []
            made = self.at(case.pattern, ast.If(test(subject), body, chain))
            made.body += case.body
            if case.guard is not None:
                made.test = self.at(case.pattern, ast.BoolOp(ast.And(), [made.test, case.guard]))
            chain = [made]
        value = self.call(node.subject, "capture_one", self.visit(node.subject))
        return [self.at(node, ast.Assign([ast.Name(subject, ast.Store())], value)), *self.visit_If(chain[0])]

    # ---- expressions

    def truth(self, node):
        """An expression whose truth alone is asked for."""
        if isinstance(node, ast.BoolOp):
            hook = "both" if isinstance(node.op, ast.And) else "either"
            return self.call(node, hook, self.truth(node.values[0]), *(self.thunk(self.truth(v)) for v in node.values[1:]))
        return self.visit(node)

    def visit_BoolOp(self, node):
        hook = "and_" if isinstance(node.op, ast.And) else "or_"
        return self.call(node, hook, self.visit(node.values[0]), *(self.thunk(self.visit(v)) for v in node.values[1:]))

    def visit_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            return self.call(node, "not_", self.truth(node.operand))
        self.generic_visit(node)
        return node

    def visit_Compare(self, node):
        self.generic_visit(node)
        if len(node.ops) == 1:
            if not isinstance(node.ops[0], (ast.In, ast.NotIn)):
                return node
            hook = "contains" if isinstance(node.ops[0], ast.In) else "is_not_in"
            return self.call(node, hook, node.left, node.comparators[0])
        operators = ast.Tuple([self.text(_COMPARED[type(o)]) for o in node.ops], ast.Load())
        return self.call(node, "compare", node.left, operators, *(self.thunk(c) for c in node.comparators))

    def visit_IfExp(self, node):
        sides = (self.thunk(self.visit(s)) for s in (node.body, node.orelse))
        return self.call(node, "select", self.truth(node.test), *sides)

    def held(self, node):
        """A name that goes into a list, or to a function."""
        made = self.visit(node)
        named = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in self.own
        return self.call(node, "held", made) if named else made

    def index(self, node):
        if isinstance(node, ast.Tuple):
            node.elts = [self.visit(e) for e in node.elts]
            return node
        return self.visit(node)

    def visit_Subscript(self, node):
        node.value, node.slice = self.visit(node.value), self.index(node.slice)
        return node

    def visit_List(self, node):
        node.elts = [self.held(e) for e in node.elts]
        return node

    visit_Tuple = visit_Set = visit_List

    def visit_Dict(self, node):
        node.keys = [None if k is None else self.visit(k) for k in node.keys]
        node.values = [self.held(v) for v in node.values]
        return node

    def visit_Call(self, node):
        asks = isinstance(node.func, ast.Name) and node.func.id in _ASKING and node.func.id not in self.own
        node.func = self.call(node.func, "function_of", node.func) if asks else self.visit(node.func)
        node.args = [self.held(a) for a in node.args]
        for keyword in node.keywords:
            keyword.value = self.held(keyword.value)
        return node

    def visit_FormattedValue(self, node):
        value = self.visit(node.value)
        node.value = value if self.text_is_kept else self.call(node.value, "formatted", value)
        return node

    def visit_comprehension_like(self, node):
        for child in ast.walk(node):
            if isinstance(child, ast.NamedExpr):
                self.unsupported(child, "':=' in a comprehension", "write a loop")
        self.generic_visit(node)
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_comprehension_like

    # ---- what stays Python

    def visit_Lambda(self, node):
        self.defaults(node.args)
        inner = _parameters(node.args)
        outer = self.region_names, self.own
        self.region_names, self.own = self.region_names - inner, self.own - inner
        node.body = self.visit(node.body)
        self.region_names, self.own = outer
        return node

    def defaults(self, arguments):
        arguments.defaults = [self.held(d) for d in arguments.defaults]
        arguments.kw_defaults = [None if d is None else self.held(d) for d in arguments.kw_defaults]

    def visit_FunctionDef(self, node):
        self.bound.add(node.name)
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        if isinstance(node, ast.ClassDef):
            local = _names_in(node.body)
        else:
            self.defaults(node.args)
            local = _parameters(node.args) | _names_in(node.body)
        reads = _InnerReads(self, self.region_names - local)
        node.body = [reads.visit(s) for s in node.body]
        return node

    visit_ClassDef = visit_FunctionDef

    # ---- what a program cannot contain

    def visit_Try(self, node):
        self.unsupported(node, "try", "the body is recorded once: let errors of the program reach its caller")

    visit_TryStar = visit_Try

    def visit_Global(self, node):
        word = type(node).__name__.lower()
        self.unsupported(node, word, f"{', '.join(node.names)}: pass it as an argument, return it, or keep it in a T.alloc_var")

    visit_Nonlocal = visit_Global

    def visit_Yield(self, node):
        self.unsupported(node, "yield", "a traced function is recorded by one call: return values, or pass a T.macro")

    visit_YieldFrom = visit_Yield

    def visit_Await(self, node):
        self.unsupported(node, "async", "a traced function is recorded by one call")

    visit_AsyncFunctionDef = visit_AsyncFor = visit_AsyncWith = visit_Await


def _simple(case):
    """(how the pattern of a case is tested, the name that it binds), or None where the pattern is more than a value."""
    pattern, name = case.pattern, None
    if isinstance(pattern, ast.MatchAs) and pattern.name is not None:
        pattern, name = pattern.pattern, pattern.name
        if case.guard is not None:
            return None
    values = pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]
    tests = [_test_of(v) for v in values]
    if any(t is None for t in tests):
        return None

    def test(subject):
        made = [t(ast.Name(subject, ast.Load())) for t in tests]
        return made[0] if len(made) == 1 else ast.BoolOp(ast.Or(), made)

    return test, name


def _test_of(pattern):
    if isinstance(pattern, ast.MatchValue):
        return lambda subject: ast.Compare(subject, [ast.Eq()], [pattern.value])
    if isinstance(pattern, ast.MatchSingleton):
        return lambda subject: ast.Compare(subject, [ast.Is()], [ast.Constant(pattern.value)])
    if pattern is None or (isinstance(pattern, ast.MatchAs) and pattern.pattern is None and pattern.name is None):
        return lambda subject: ast.Constant(True)
    return None
