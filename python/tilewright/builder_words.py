"""Words of TVM's script that programs are written with here and there: allocations, blocks and their axes, loads and stores
as calls, intrinsics by their names, and what is trivially the same as another word."""
import contextlib

from . import values
from .dtypes import dtype as _dtype
from .elsewhere import WORDS
from .pointers import Pointer, head_of
from .scopes import Frame, Parallel, ThreadBinding, thread_binding
from .trace import OPERATIONS, apply, fail, operation, recording
from .types import Declaration, begins_at_its_memory, extents, is_compact, make_tensor, view_of
from .values import Buffer, Tile, Var, load, plain

_STORE, _EQUAL, _AND = OPERATIONS["store"], OPERATIONS["equal"], OPERATIONS["logical_and"]
_ADD, _CONSTANT, _REINTERPRET = OPERATIONS["add"], OPERATIONS["constant"], OPERATIONS["reinterpret"]
_open_if, _close, _view, _let = operation("open_if"), operation("close"), operation("view"), operation("let")
_address, _mul = operation("address_of"), operation("ieee_mul")
_break, _continue = operation("loop_break"), operation("loop_continue")


def _language():
    from . import language

    return language


# ---- memory


def allocate(shape, dtype="float32", scope="global", annotations=None):
    """An allocation in the space that `scope` names."""
    return _language().alloc_buffer(shape, dtype, scope=scope)


def decl_buffer(shape, dtype="float32", data=None, strides=None, elem_offset=None, scope="global", align=0, offset_factor=0,
                buffer_type="", axis_separators=None):  # fmt: skip
    """A view of the memory `data`; without that an allocation in the space that `scope` names."""
    if data is None:
        is_compact("decl_buffer", shape, strides, elem_offset)
        return _language().alloc_buffer(shape, dtype, scope=scope)
    begins_at_its_memory("decl_buffer", elem_offset)
    return view_of(data, shape, dtype, strides)


def make_tensor_from_addr(addr, shape, dtype="float32", strides=None, storage_scope="global"):
    """A global tensor at an address."""
    return make_tensor(addr, shape, dtype, strides)


def Ptr(dtype, storage_scope="global"):
    """The type of a parameter that is an address of such elements."""
    return _dtype("pointer")


def arg(name, obj):
    """A parameter of the program by its name: T.arg("A", T.Tensor((8,), "float32"))."""
    if not isinstance(obj, Declaration):
        from .types import declaration_of

        obj = declaration_of(name, obj)
    return obj.parameter(recording("arg"), name)


def buffer_var(dtype, storage_scope="global"):
    """A parameter that is an address; T.match_buffer says what lies there."""
    return _dtype("pointer")


def var(dtype, name=""):
    """A dimension or scalar that is known at the call."""
    return values.dynamic(name or "v", dtype)


def type_annotation(dtype):
    """A dtype where a call wants one as an operand."""
    return _dtype(dtype)


def bind(value, type_annotation=None, *, var=None):
    """Evaluates a value here, once."""
    if var is not None:
        apply(_STORE, var, value)
        return var
    return _let("bound", value)


def undef():
    """A value that is not to be relied on: zero."""
    return apply(_CONSTANT, 0, "int32")


def buffer_store(buffer, value, indices, predicate=None):
    """Stores to an element; only where the predicate holds."""
    if predicate is not None:
        _open_if(predicate)
    buffer[tuple(indices) if isinstance(indices, (list, tuple)) else (indices,)] = value
    if predicate is not None:
        _close()


def __ldg(load_or_buf, index=None):
    """An element of a global tensor, which the device may read through its cache of constants."""
    if index is not None:
        load_or_buf = load_or_buf[index]
    if not isinstance(load_or_buf, Tile) or load_or_buf.buffer.scope() != "global":
        fail("OperandKind", f"T.__ldg of {load_or_buf!r}", "give an element of a global tensor: T.__ldg(A[i])")
    return load(load_or_buf)


# ---- blocks


class sblock:
    """A block of statements: the safe values that are annotated in it, and the condition of T.where, hold to its end."""

    def __init__(self, name="", no_realize=False):
        self.name = name

    def __enter__(self):
        tracer = recording("sblock")
        self.outer = tracer.block, tracer.guards, tracer.reduced
        tracer.block, tracer.guards, tracer.reduced = {}, 0, []

    def __exit__(self, kind, error, traceback):
        tracer = recording("sblock")
        for buffer, number in tracer.block.items():
            buffer._id = number
        for _ in range(0 if kind else tracer.guards):
            tracer.end_scope()
            _close()
        tracer.block, tracer.guards, tracer.reduced = self.outer


def where(predicate, *values):
    """In a T.sblock: the rest of it runs only where the predicate holds."""
    tracer = recording("where")
    if values:
        fail("OperandKind", f"T.where guards a T.sblock by a condition, but is given {1 + len(values)} values", f"write {WORDS['where']}")
    if tracer.guards is None:
        fail("OutsideProgram", "T.where outside of T.sblock", f"write `if` there; {WORDS['where']} and T.Select choose between values")
    _open_if(predicate)
    tracer.scope("if")
    tracer.guards += 1


class init(Frame):
    """In a T.sblock: what is done in the first round of its reduced axes."""

    def open(self, tracer):
        first = None
        for index, begin in tracer.reduced or ():
            here = apply(_EQUAL, index, begin)
            first = here if first is None else apply(_AND, first, here)
        _open_if(True if first is None else first)


class axis:
    """Axes of a T.sblock: T.axis.spatial(extent, i), T.axis.reduce(extent, k), or both by T.axis.remap("SR", [i, k])."""

    @staticmethod
    def spatial(dom, value, dtype="int32"):
        return value

    @staticmethod
    def reduce(dom, value, dtype="int32"):
        tracer = recording("axis")
        if tracer.reduced is not None:
            tracer.reduced.append((value, dom[0] if isinstance(dom, (tuple, list)) else 0))
        return value

    scan = opaque = S = spatial
    R = reduce

    @staticmethod
    def remap(kinds, bindings, dtype="int32"):
        made = [(axis.reduce if kind == "R" else axis.spatial)(0, value) for kind, value in zip(kinds, bindings)]
        return made if len(made) > 1 else made[0]


# ---- threads and loops


def env_thread(thread_tag, dtype="int32"):
    """The index of this thread or block, of as many as T.launch_thread says."""
    return thread_binding(None, thread=thread_tag)


def launch_thread(thread, extent):
    """The index of this thread or block along a dimension; the launch is T.Kernel's."""
    if isinstance(thread, values.Expr):
        return thread
    binding = thread if isinstance(thread, ThreadBinding) else thread_binding(extent, thread=thread)
    if not recording("launch_thread").launches:
        fail("OutsideKernel", "T.launch_thread outside of T.Kernel", "open the launch with T.Kernel(blocks, threads=n), and ask for its indices in it")
    return binding.index()


def break_loop(span=None):
    """Leaves the innermost loop."""
    _break()


def continue_loop(span=None):
    """Goes on with the next round of the innermost loop."""
    _continue()


def Assert(condition, message, error_kind="RuntimeError"):
    """Stops the call where the condition is false; before the first T.Kernel the call checks it. What stands under `with` comes behind it."""
    recording("Assert")
    operation("device_assert" if values.in_launch() else "assume")(condition, *([str(message)] if values.in_launch() else []))
    return contextlib.nullcontext()


# ---- values


def fabs(x, span=None):
    """The magnitude of a float."""
    return _language().abs(x)


def fmul(x, y):
    """x * y, which is never joined with a sum."""
    return _mul(x, y)


def isnullptr(x, span=None):
    """Whether an address is null: a T.ptr, or where a tensor lies."""
    return apply(_EQUAL, apply(_REINTERPRET, _pointer(x), "int64"), apply(_CONSTANT, 0, "int64"))


def _pointer(x):
    return _address(head_of(x)) if isinstance(x, (Pointer, Tile)) or (isinstance(x, Buffer) and not isinstance(x, Var)) else x


def handle_add_byte_offset(handle, offset):
    """The address so many bytes further on."""
    moved = apply(_ADD, apply(_REINTERPRET, _pointer(handle), "int64"), offset)
    return apply(_REINTERPRET, moved, "pointer")


def call_intrin(dtype, func_name, *args, annotations=None, span=None):
    """An operation by its name, "tir.exp" or "exp", as a value of a dtype."""
    name = getattr(func_name, "name", func_name)
    if not isinstance(name, str):
        fail("OperandKind", f"call_intrin of {func_name!r}", 'give the name of an operation: T.call_intrin("float32", "tir.exp", x)')
    made = getattr(_language(), name.rpartition(".")[2])(*args)
    kind = str(dtype)
    return made if kind in ("handle", "void", "") or getattr(made, "dtype", kind) == kind else _dtype(kind)(made)


_OF_LLVM = {
    "sqrt": "sqrt", "exp": "exp", "exp2": "exp2", "exp10": "exp10", "log": "log", "log2": "log2", "log10": "log10", "sin": "sin",
    "cos": "cos", "tan": "tan", "pow": "pow", "fabs": "abs", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "nearbyint",
    "nearbyint": "nearbyint", "round": "round", "roundeven": "nearbyint", "copysign": "copysign", "fma": "ieee_fmaf", "minnum": "min",
    "maxnum": "max", "ctpop": "popcount", "ctlz": "clz", "bitreverse": "brev", "ldexp": "ldexp", "abs": "abs", "smin": "min",
    "smax": "max", "umin": "min", "umax": "max",
}  # fmt: skip


def call_llvm_intrin(dtype, name, *args, span=None):
    """A function of LLVM's by its name, "llvm.sqrt.f32": those that are scalar functions here."""
    word = str(name).removeprefix("llvm.").partition(".")[0]
    if word not in _OF_LLVM:
        fail("UnknownOperation", f"call_llvm_intrin: there is no '{name}' here", f"it has {', '.join(sorted(_OF_LLVM))}")
    return call_intrin(dtype, _OF_LLVM[word], *(args if word not in ("ctlz", "abs") else args[:1]))


call_llvm_pure_intrin = call_llvm_intrin


def call_pure_extern(dtype, func_name, *args, span=None):
    """T.call_extern of a function that only computes."""
    return _language().call_extern(dtype, func_name, *args)


# ---- tiles


def _box(place):
    """(buffer, the begin of each dimension, the extents of the box and where they are)."""
    if isinstance(place, Buffer):
        return place, [0] * place.ndim, list(enumerate(place.shape))
    begins, kept = [], []
    for d, index in enumerate(place.indices):
        if isinstance(index, slice):
            begin = 0 if index.start is None else index.start
            kept.append((d, plain((place.buffer.shape[d] if index.stop is None else index.stop) - begin)))
            begins.append(begin)
        else:
            begins.append(index)
    return place.buffer, begins, kept


def transpose(src, dst, annotations=None):
    """dst[..., j, i] = src[..., i, j]: the last two dimensions change places."""
    (source, from_, rows), (target, to, columns) = _box(src), _box(dst)
    taken = [e for _, e in rows]
    if len(rows) < 2 or [e for _, e in columns] != [*taken[:-2], taken[-1], taken[-2]]:
        fail("ReduceShape", f"transpose of {taken} into {[e for _, e in columns]}", "the last two extents change places, and the others stay")
    for index in Parallel(*taken):
        at, other = list(from_), list(to)
        for (d, _), i in zip(rows, index):
            at[d] = at[d] + i
        for (d, _), i in zip(columns, [*index[:-2], index[-1], index[-2]]):
            other[d] = other[d] + i
        apply(_STORE, target[tuple(other)], load(source[tuple(at)]))


def reduce(buffer, out, reduce_type, dim, clear, batch=1, annotations=None):
    """A reduction by the name of its operation: sum, max, min, abssum, absmax, bitand, bitor, bitxor."""
    kinds = ("sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor")
    if reduce_type not in kinds:
        fail("BadOption", f"T.reduce by '{reduce_type}'", f"it is one of: {', '.join(kinds)}")
    getattr(_language(), f"reduce_{reduce_type}")(buffer, out, dim, clear)


# ---- what is the same as another word, or is a hint


def likely(cond, span=None):
    """The condition itself."""
    return cond


def ignore_loop_partition(predicate, span=None):
    """The condition itself."""
    return predicate


def meta_var(value, span=None):
    """The value itself."""
    return value


tvm_thread_invariant = likely


def tvm_tuple(*value):
    """The values, as a tuple."""
    return value


def tvm_storage_sync(storage_scope, *ignored):
    """A barrier of the block ("shared"), of the warp ("warp") or of the grid ("global")."""
    words = {"warp": "sync_warp", "global": "sync_grid"}
    operation(words.get(str(storage_scope), "sync_threads"))()


def tvm_warp_activemask():
    """The lanes of the warp that are here, as bits."""
    return operation("activemask")()


def tvm_access_ptr(ptype, data, offset, extent, rw_mask):
    """A pointer to an element by its number."""
    return Pointer(head_of(data, offset), rw_mask)


def sblock_alloc_buffer(shape, dtype="float32", data=None, strides=None, elem_offset=None, scope="global", align=-1, offset_factor=0,
                        buffer_type="default", axis_separators=None):  # fmt: skip
    """An allocation in the space that `scope` names."""
    return decl_buffer(shape, dtype, data, strides, elem_offset, scope)


def inline(func):
    """A method that is recorded where it is called."""
    from .program import Macro

    return Macro(func)


def target(target_config, host=None):
    """A target by its name."""
    from .targets import Target

    return Target(target_config)
