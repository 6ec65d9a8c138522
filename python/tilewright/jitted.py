"""jit: functions that become kernels when they are called. A lazy one is a factory: it returns a program, and calling
it returns the kernel. An eager one has the launch in its own body, and calling it runs it."""
from __future__ import annotations

import ast
import functools
import inspect
import numbers
import operator
import time
from collections.abc import Callable
from typing import Any, overload

from .elsewhere import nearest
from .errors import LaunchError, TilewrightError
from .execution_backends import resolve_execution_backend
from .kernel import Kernel, compile as compile_program
from .progress import Progress
from .program import PrimFunc, annotations_of, discover, trace_eager
from .rewrite import source_tree
from .settings import dump, options_of, refuse_unknown, warn_once
from .specialized import Specialized
from .surroundings import SIMPLE, Surroundings, names_dtype
from .trace import bind, fail, state
from .tracebacks import cut, entry
from .types import Declaration, TensorType
from .values import Expr
from .dtypes import dtype

_MANY = 8  # values of a dimension that a function is compiled for until something is said
_TYPE_WORDS = ("Tensor", "StridedTensor", "Buffer", "ptr", "handle")


@overload
def jit(func: PrimFunc, *, out_idx: Any = None, target: Any = None, target_host: Any = None, execution_backend: Any = None, verbose: Any = None,
        pass_configs: Any = None, debug_root_path: Any = None, compile_flags: Any = None, engine: str | None = None) -> Kernel: ...  # fmt: skip
@overload
def jit(func: Callable[..., Any], *, out_idx: Any = None, target: Any = None, target_host: Any = None, execution_backend: Any = None, verbose: Any = None,
        pass_configs: Any = None, debug_root_path: Any = None, compile_flags: Any = None, engine: str | None = None) -> Jit: ...  # fmt: skip
@overload
def jit(func: None = None, *, out_idx: Any = None, target: Any = None, target_host: Any = None, execution_backend: Any = None, verbose: Any = None,
        pass_configs: Any = None, debug_root_path: Any = None, compile_flags: Any = None, engine: str | None = None) -> Callable[[Callable[..., Any]], Jit]: ...  # fmt: skip
@entry
def jit(func=None, *, out_idx=None, target=None, target_host=None, execution_backend=None, verbose=None,
        pass_configs=None, debug_root_path=None, compile_flags=None, engine=None, **unknown):  # fmt: skip
    """Makes kernels of a function, one for each set of compile-time arguments; the kernel of a function under @T.prim_func."""
    if unknown:
        refuse_unknown("jit", unknown, [n for n in inspect.signature(jit).parameters if n != "unknown"])
    resolve_execution_backend(execution_backend, "cuda")
    options = {"out_idx": out_idx, "target": target, "pass_configs": pass_configs, "engine": engine, "compile_flags": compile_flags}
    if func is None:
        return functools.partial(jit, **options)
    if isinstance(func, PrimFunc):
        kernel = compile_program(func, **options)
        if type(kernel) is Kernel:
            kernel.__class__ = KernelUnderJit
        return kernel
    if isinstance(func, (staticmethod, classmethod)):
        word = type(func).__name__
        fail("OperandKind", f"jit takes a function, not {word}", f"write @{word} above @tilewright.jit")
    if not inspect.isfunction(func):
        fail("OperandKind", f"jit takes a function, not {type(func).__name__}", "write @tilewright.jit above a def; its options are keywords: @tilewright.jit(out_idx=-1)")
    return Jit(func, **options)


class KernelUnderJit(Kernel):
    """The kernel of a program under @jit. TileLang has a factory there, `kernel = f()`: a call without arguments gives the
    kernel where it cannot be a call of the program, which has inputs, and under TileLang's name always."""

    def __call__(self, *arguments: Any) -> Any:
        if arguments:
            return super().__call__(*arguments)
        if len(self.outputs) < len(self.prim_func.params):
            return self
        return self.compile() if self.prim_func.of_tilelang else super().__call__()

    def compile(self) -> Kernel:
        """The kernel, which its calls run."""
        return self.made_by()

    def get_tir(self) -> PrimFunc:
        """The program."""
        return self.prim_func


_RECENT = 256  # calls of a function that are known again by what they are given


class _IsValue(dict):
    """By type: whether the same object is the same value for good."""

    def __missing__(self, kind):
        self[kind] = found = kind in SIMPLE or names_dtype(kind)
        return found


_is_value = _IsValue()


def _key_of_call(args, kwargs):
    """What chooses the kernel of a call: numbers, texts and types by value, tensors by shape. None: something else is among them."""
    key = [len(args)]
    for values in (args, kwargs.values()) if kwargs else (args,):
        for value in values:
            kind = type(value)
            if _is_value[kind]:
                key += kind, value.hex() if kind is float else value
                continue
            shape = getattr(value, "shape", None)
            if shape is None:
                return None
            key.append(shape)
    return (*key, *kwargs) if kwargs else tuple(key)


class _Recent:
    """A call that was made: its kernel, which of the arguments that takes (None: the call asks for the kernel itself), and what
    the function reads from around it. Others may be equal, and take the long way."""

    __slots__ = ("kernel", "takes", "around")

    def __init__(self, kernel, takes, around):
        self.kernel, self.takes, self.around = kernel, takes, around

    def stands(self):
        """Whether the same objects are around the function."""
        for get, argument, value in self.around:
            if get(argument) is not value:
                return False
        return True

    def call(self, args, kwargs):
        if self.takes is None:
            return self.kernel
        return self.kernel(*[args[t] if type(t) is int else kwargs[t] for t in self.takes])


class Jit:
    """A function under @jit."""

    func: Callable[..., Any]
    out_idx: Any
    target: Any
    pass_configs: Any
    compile_flags: Any
    engine: str | None
    signature: inspect.Signature
    order: list[str]
    kernels: dict[Any, Kernel]
    of_texts: dict[Any, Kernel]
    discoveries: dict[Any, Any]
    compiled: dict[Any, list[Any]]
    mode_: str | None
    recent: dict[Any, Any]

    def __init__(self, func: Callable[..., Any], out_idx: Any = None, target: Any = None, pass_configs: Any = None,
                 engine: str | None = None, compile_flags: Any = None) -> None:  # fmt: skip
        self.compile_flags = compile_flags
        functools.update_wrapper(self, func)
        self.func, self.out_idx, self.target, self.pass_configs, self.engine = func, out_idx, target, pass_configs, engine
        self.signature = inspect.signature(func)
        self.order = list(self.signature.parameters)
        self.kernels, self.of_texts = {}, {}
        self.discoveries = {}
        self.compiled = {}
        self.mode_ = None
        self.recent = {}

    @property
    def func_source(self) -> str:
        return inspect.getsource(self.func)

    def parse_cache_key(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """TileLang's key of a call: arguments by place, by name, and those of tuning."""
        tuned = kwargs.pop("__tune_params", {})
        return args, tuple(sorted(kwargs.items())), tuple(sorted(tuned.items()))

    def __repr__(self) -> str:
        """<jit add(A, B): 2 kernels on cpu>."""
        engines = " and ".join(sorted({k.engine for k in self.kernels.values()}))
        return f"<jit {self.func.__name__}({', '.join(self.order)}): {_counted(len(self.kernels), 'kernel')}{' on ' + engines if engines else ''}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return bound_to(instance, self, self.order)

    def __reduce__(self) -> str:
        return self.__qualname__  # found again by its name, as functions are

    def __deepcopy__(self, memo: Any) -> Jit:
        return self

    # ---- which style

    @property
    def mode(self) -> str:
        if self.mode_ is None:
            self.mode_ = self._mode_of_source()
        if self.mode_ == "eager" and self.out_idx is not None:
            fail("OutputIndex", f"out_idx of '{self.func.__name__}', whose outputs are what it returns",
                 "leave it out: return what T.empty made", (self.func.__code__.co_filename,
                                                            self.func.__code__.co_firstlineno, 1))  # fmt: skip
        return self.mode_

    def _mode_of_source(self):
        tree = source_tree(self.func)
        for node in ast.walk(tree):
            if node is not tree and isinstance(node, ast.FunctionDef):
                for decorator in node.decorator_list:
                    called = decorator.func if isinstance(decorator, ast.Call) else decorator
                    if getattr(called, "attr", getattr(called, "id", "")) == "prim_func":
                        return "lazy"
        words = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
        if words & {"Kernel", "const", "empty", "ClusterKernel"} or self.tensor_names:
            return "eager"
        return "undecided"

    @functools.cached_property
    def annotations(self) -> dict[str, Any]:
        found = annotations_of(self.func)
        kinds = (Declaration, dtype, Expr)
        return {n: a for n, a in found.items() if n != "return" and isinstance(a, kinds)}

    @functools.cached_property
    def tensor_names(self) -> list[str]:
        """Parameters of the program: those whose annotation, in the signature or the body, says so."""
        names = set(self.annotations)
        for statement in source_tree(self.func).body:
            if isinstance(statement, ast.AnnAssign) and statement.value is None and isinstance(statement.target, ast.Name):
                names.add(statement.target.id)
        return [n for n in self.order if n in names]

    @functools.cached_property
    def tensor_count(self) -> int:
        return len(self.tensor_names)

    @functools.cached_property
    def annotation_names(self) -> set[str]:
        """What annotations in the body name: no code of the function does."""
        found = set()
        for statement in source_tree(self.func).body:
            if isinstance(statement, ast.AnnAssign):
                for node in ast.walk(statement.annotation):
                    found.update(filter(None, [getattr(node, "id", None), getattr(node, "attr", None)]))
        return found

    def _around(self, arguments):
        return Surroundings(self.func, arguments, self.annotation_names)

    # ---- lazy

    def _traced(self, make):
        outer, state.options = state.options, options_of(self.pass_configs, self.compile_flags)
        try:
            return make()
        finally:
            state.options = outer

    def _compiled(self, program):
        kernel = compile_program(program, self.out_idx, target=self.target, engine=self.engine)
        if not isinstance(program, Specialized):
            kernel.say(self.pass_configs, self.compile_flags)
            dump(self.pass_configs, kernel, program.program)
        return kernel

    def _lazy(self, args, kwargs, call=None):
        bound = bind(self.signature, self.func.__name__, args, kwargs)
        bound.apply_defaults()
        around = self._around(dict(bound.arguments))
        key = around.arguments, around.key
        kernel = self.kernels.get(key) if around.exact else None
        if kernel is None:
            program = self._traced(lambda: self.func(*args, **kwargs))
            if not isinstance(program, PrimFunc):
                fail("ReturnValue", f"'{self.func.__name__}' returns {type(program).__name__}, which is no program",
                     "return a function under @T.prim_func, or write with T.Kernel(...) in the body",
                     (self.func.__code__.co_filename, self.func.__code__.co_firstlineno, 1))  # fmt: skip
            kernel = self._kept(key, around, program, functools.partial(self.compile, *bound.args, **bound.kwargs))
        if all(_is_value[type(value)] for value in bound.arguments.values()):
            self._know(call, kernel, None, around)
        return kernel

    def _kept(self, key, around, program, made_by):
        """The kernel of a program that was traced just now; that of an equal program, where there is one."""
        text = None if isinstance(program, Specialized) else (program.program.text, tuple(program.outputs), around.where)
        kernel = self.of_texts.get(text)
        if kernel is None or text is None:
            kernel = self.of_texts[text] = self._compiled(program)
            kernel.made_by = made_by
        if around.exact:
            self.kernels[key] = kernel
        return kernel

    # ---- eager

    def _split(self, args, kwargs, partial):
        """(tensors and scalars by name, compile-time arguments, consts given by name)."""
        consts = {n: v for n, v in kwargs.items() if n not in self.signature.parameters}
        rest = {n: v for n, v in kwargs.items() if n in self.signature.parameters}
        if consts and not partial:
            rest.update(self._misspelt(self.order[len(args) :], rest, consts))
        bound = bind(self.signature, self.func.__name__, args, rest, partial=partial)
        bound.apply_defaults()
        of_program = {n: v for n, v in bound.arguments.items() if n in self.tensor_names}
        fixed = {n: v for n, v in bound.arguments.items() if n not in self.tensor_names}
        missing = [n for n in self.order if n not in of_program and n not in fixed and n not in self.tensor_names]
        if missing:
            bind(self.signature.replace(parameters=[p for n, p in self.signature.parameters.items() if n not in self.tensor_names]),
                 self.func.__name__, (), fixed)  # fmt: skip
        return of_program, fixed, consts

    def _misspelt(self, names, given, consts):
        """Of what was taken for consts, arguments under a wrong name: where one is missing, what is no integer or is called much like it."""
        missing = [n for n in names if n not in given and self.signature.parameters[n].default is inspect.Parameter.empty]
        return {n: v for n, v in consts.items() if missing and (not isinstance(v, numbers.Integral) or nearest(n, missing))}

    def _extent_of(self, name, value):
        try:
            return operator.index(value)
        except TypeError:
            fail("OperandKind", f"T.const '{name}' of '{self.func.__name__}' is an integer, but {value!r} is given", f"{name}=128, for example", also=TypeError)

    def _consts_of(self, discovery, tensors, given, fixed):
        consts = {}
        for name in discovery.consts:
            if name in given:
                consts[name] = self._extent_of(name, given[name])
                continue
            where = discovery.where.get(name)
            if where is None:
                self._refuse_bare_tensors(name, fixed)
                fail("ConstantUnknown", f"T.const '{name}' of '{self.func.__name__}' is no dimension of a parameter by itself",
                     f"use it as a whole extent or stride of a tensor, or pass {name}=... to the call")  # fmt: skip
            parameter, kind, dim = where
            if parameter not in tensors:
                fail("ConstantUnknown", f"T.const '{name}' of '{self.func.__name__}' is a dimension of '{parameter}', which is not given",
                     f"pass the tensor, or {name}=...")  # fmt: skip
            declared = next(p for p in discovery.parameters if p.name == parameter)
            self._check_tensor(declared, tensors[parameter])
            extents = _extents(tensors[parameter], kind)
            if discovery.holds_pairs(parameter, tensors[parameter]):
                last = len(extents) - 1
                extents = [e * 2 if (d == last) == (kind == "shape") else e for d, e in enumerate(extents)]
            if dim >= len(extents):
                fail("ArgumentRank", f"{self._argument(parameter)} has shape {_shape_words(extents)}, but must have {_counted(len(declared.shape), 'dimension')}",
                     "pass a tensor of as many dimensions: x.reshape(...)")  # fmt: skip
            consts[name] = int(extents[dim])
        return consts

    def _refuse_many(self):
        """*arguments and **arguments, which have no annotation each."""
        for name, parameter in self.signature.parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                fail("ParameterType", f"'{self.func.__name__}' takes '{str(parameter).partition(':')[0]}', and a program has parameters of its own",
                     "name each one: def f(A, B, n)", (self.func.__code__.co_filename, self.func.__code__.co_firstlineno, 1), TypeError)  # fmt: skip

    def _refuse_bare_tensors(self, const, fixed):
        """Tensors for parameters of which nothing says that they are tensors."""
        for name, value in fixed.items():
            if hasattr(value, "shape") and hasattr(value, "dtype"):
                shape = _shape_words([const, *"MKLPQRS"][: len(value.shape)])
                fail("ParameterType", f"'{name}' of '{self.func.__name__}' is given a tensor, but has no annotation",
                     f'write {name}: T.Tensor({shape}, "{dtype(str(value.dtype).removeprefix("torch."))}") in the signature or at the beginning of the body',
                     (self.func.__code__.co_filename, self.func.__code__.co_firstlineno, 1), RuntimeError)  # fmt: skip

    def _argument(self, name):
        return f"{self.func.__name__}: argument {self.order.index(name)} '{name}'"

    def _check_tensor(self, declared, value):
        """What has no shape is no tensor. All else the kernel checks itself."""
        if isinstance(value, TensorType) or hasattr(value, "shape"):
            return
        what = f"the number {value}" if isinstance(value, (int, float)) else "None" if value is None else f"of type {type(value).__name__}"
        fail("ArgumentKind", f"{self._argument(declared.name)} must be a tensor ({declared.dtype}, {_counted(len(declared.shape), 'dimension')}), but is {what}",
             f'pass an array: numpy.asarray(x, dtype="{declared.dtype}"), torch.tensor(x, dtype=torch.{declared.dtype})', also=TypeError)  # fmt: skip

    def _eager(self, tensors, fixed, given, around):
        self._refuse_many()
        key = around.arguments, around.key
        discovery = self.discoveries.get(key) if around.exact else None
        if discovery is None:
            discovery = self._traced(lambda: discover(self.func, self.order, fixed, self.annotations))
            if around.exact:
                self.discoveries[key] = discovery
        consts = self._consts_of(discovery, tensors, given, fixed)
        # Names that only a whole trace knows, of consts behind the first launch, or that it refuses.
        later = tuple(sorted((n, v) for n, v in given.items() if n not in consts))
        key = key, (*consts.items(), *later)
        kernel = self.kernels.get(key) if around.exact and all(isinstance(v, numbers.Integral) for _, v in later) else None
        if kernel is None:
            begin = time.perf_counter()
            program = self._traced(
                lambda: trace_eager(self.func, self.order, fixed, self.annotations, {**given, **consts})
            )
            named = {**fixed, **consts}
            first = [named.pop("self")] if "self" in named else []
            kernel = self._kept(key, around, program, functools.partial(self.compile, *first, **named))
            if around.exact and tensors:
                self._tell_of_many(key[0], consts, time.perf_counter() - begin)
        return kernel

    def _tell_of_many(self, key, consts, seconds):
        """Of calls that each compile the function for another shape, once."""
        made = self.compiled.setdefault(key, [])
        if len(made) == _MANY:
            return
        made.append((consts, seconds))
        many = [name for name in consts if len({values[name] for values, _ in made}) == _MANY]
        if many:
            warn_once(f"'{self.func.__name__}' was compiled for {_MANY} values of {' and '.join(many)} ({sum(s for _, s in made):.1f} s): "
                      f'T.dynamic("{", ".join(many)}") compiles once, where no tile on chip has that extent')  # fmt: skip

    # ---- calls

    @entry
    def compile(self, *args: Any, **kwargs: Any) -> Kernel:
        """The kernel for these arguments: tensors may be left out where consts are given by name."""
        if self._is_lazy(args, kwargs):
            return self._lazy(args, kwargs)
        tensors, fixed, consts = self._split(args, kwargs, True)
        return self._eager(tensors, fixed, consts, self._around(fixed))

    def takes(self, given: dict[str, Any]) -> dict[str, Any]:
        """Which of these values by name compile() takes: of parameters, and of names that T.const makes."""
        fixed = {n: v for n, v in given.items() if n in self.signature.parameters}
        if self._is_lazy((), fixed):
            return fixed
        fixed, names = {n: v for n, v in fixed.items() if n not in self.tensor_names}, set(fixed)
        fixed.update({n: p.default for n, p in self.signature.parameters.items() if n not in fixed and p.default is not p.empty and n not in self.tensor_names})
        names.update(self._traced(lambda: discover(self.func, self.order, fixed, self.annotations)).consts)
        return {n: v for n, v in given.items() if n in names}

    def _is_lazy(self, args, kwargs):
        if self.mode == "undecided":
            try:
                bound = self.signature.bind(*args, **kwargs)
                self.mode_ = "lazy" if isinstance(self._traced(lambda: self.func(*bound.args, **bound.kwargs)), PrimFunc) else "eager"
            except (TypeError, RuntimeError):
                self.mode_ = "eager"
        return self.mode_ == "lazy"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            key = _key_of_call(args, kwargs)
            try:
                known = self.recent.get(key)
            except TypeError:  # a shape that is a list, for example
                key = known = None
            if known is not None and known.stands():
                # The kernel checks its arguments itself: most calls are like one before.
                try:
                    return known.call(args, kwargs)
                except LaunchError as error:
                    if not "TW4001" <= error.code <= "TW4011":
                        raise
            return self._called(key, args, kwargs)
        except TilewrightError as error:
            cut(error)
            raise

    def _called(self, key, args, kwargs):
        if self._is_lazy(args, kwargs):
            return self._lazy(args, kwargs, key)
        tensors, fixed, consts = self._split(args, kwargs, False)
        around = self._around(fixed)
        kernel = self._eager(tensors, fixed, consts, around)
        result = kernel(*(tensors[n] for n in self.tensor_names))
        places = {**{n: i for i, n in enumerate(self.order[: len(args)])}, **{n: n for n in kwargs}}
        if all(n in places for n in self.tensor_names):
            takes = [places.pop(n) for n in self.tensor_names]
            if all(_is_value[type(args[p] if type(p) is int else kwargs[p])] for p in places.values()):
                self._know(key, kernel, takes, around)
        return result

    def _know(self, key, kernel, takes, around):
        """A later call with this key may have the kernel at once."""
        if key is None or not (around.settled and around.exact):
            return
        if len(self.recent) >= _RECENT:
            self.recent.clear()
        self.recent[key] = _Recent(kernel, takes, around.places)

    def get_tir(self, *args: Any, **kwargs: Any) -> PrimFunc:
        """The program for these arguments."""
        return self.compile(*args, **kwargs).prim_func

    def get_kernel_source(self, *args: Any, **kwargs: Any) -> str:
        return self.compile(*args, **kwargs).get_kernel_source()

    def par_compile(self, configs: Any, num_workers: int | None = None, ignore_error: bool = False) -> list[Any]:
        """The kernels of several sets of arguments, compiled at once."""
        return par_compile([functools.partial(self._of_config, c) for c in configs], num_workers, ignore_error)

    def _of_config(self, config):
        return self.compile(**config) if isinstance(config, dict) else self.compile(*config)


class Method:
    """A function under @jit (and @autotune) that a class defines with `self`, of one object."""

    __func__: Any
    __self__: Any

    def __init__(self, function: Any, instance: Any) -> None:
        self.__func__, self.__self__ = function, instance
        functools.update_wrapper(self, function, updated=())

    def __repr__(self) -> str:
        return f"<method of {self.__self__!r}: {self.__func__!r}>"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__func__, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Method) and self.__func__ is other.__func__ and self.__self__ is other.__self__

    def __hash__(self) -> int:
        return hash((id(self.__func__), id(self.__self__)))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__func__(self.__self__, *args, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> Kernel:
        return self.__func__.compile(self.__self__, *args, **kwargs)

    def get_tir(self, *args: Any, **kwargs: Any) -> PrimFunc:
        return self.compile(*args, **kwargs).prim_func

    def get_kernel_source(self, *args: Any, **kwargs: Any) -> str:
        return self.compile(*args, **kwargs).get_kernel_source()

    def par_compile(self, configs: Any, num_workers: int | None = None, ignore_error: bool = False) -> list[Any]:
        made = [functools.partial(self.compile, **c) if isinstance(c, dict) else functools.partial(self.compile, *c) for c in configs]
        return par_compile(made, num_workers, ignore_error)


def bound_to(instance, function, order):
    """What `instance.function` means. TileLang's functions are never bound, so that a class may hold them as they are:
    only one whose first parameter is `self` takes the object, and `cls` the class that @classmethod gives."""
    takes = order[:1] == (["cls"] if isinstance(instance, type) else ["self"])
    return Method(function, instance) if instance is not None and takes else function


@entry
def par_compile(funcs: Any, num_workers: int | None = None, ignore_error: bool = False, **options: Any) -> list[Any]:
    """Compiles programs (or calls functions that do) by several threads."""
    wrong = next((f for f in funcs if not isinstance(f, PrimFunc) and not callable(f)), None)
    if wrong is not None:
        fail("OperandKind", f"par_compile is given {wrong!r}", "it takes a list of programs, or of functions that return kernels")
    makers = [functools.partial(compile_program, f, **options) if isinstance(f, PrimFunc) else f for f in funcs]
    made = each_by_threads(makers, "compiling", num_workers, Exception if ignore_error else ())
    return [None if isinstance(m, Exception) else m for m in made]


def each_by_threads(calls, what, workers=None, catch=()):
    """The results of calls, in their order; what they raise is a result too if it is of `catch`."""
    from concurrent.futures import ThreadPoolExecutor

    pool, results = ThreadPoolExecutor(workers), []
    try:
        with Progress(what, len(calls)) as bar:
            for future in [pool.submit(call) for call in calls]:
                try:
                    results.append(future.result())
                except catch as error:
                    results.append(error)
                bar.step()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # Ctrl-C does not wait for what is under way
    return results


def _counted(count, what):
    return f"{count} {what}{'' if count == 1 else 's'}"


def _shape_words(extents):
    return f"({', '.join(map(str, extents))}{',' if len(extents) == 1 else ''})"


def _extents(tensor, kind):
    """Extents or strides, in elements, of a tensor or of the type of one."""
    if isinstance(tensor, TensorType):
        return getattr(tensor, kind) or ()
    if kind == "shape":
        return tuple(tensor.shape)
    stride = getattr(tensor, "stride", None)
    if callable(stride):
        return tuple(stride())
    return tuple(step // tensor.itemsize for step in tensor.strides)  # NumPy counts bytes


