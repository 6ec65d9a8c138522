"""The language: T.Kernel, T.copy, T.gemm, ... Operations come from the library's table; help(T.gemm) shows its row."""
import builtins as _builtins
import enum as _enum
import itertools as _itertools
import re as _re
import sys as _sys
import types as _types
import typing as _typing

from .. import _native, dtypes as _dtypes, elsewhere as _elsewhere, values as _values
from ..builder_words import (
    Assert,
    Ptr,
    __ldg,
    allocate,
    arg,
    axis,
    bind,
    break_loop,
    buffer_store,
    buffer_var,
    call_intrin,
    call_llvm_intrin,
    call_llvm_pure_intrin,
    call_pure_extern,
    continue_loop,
    decl_buffer,
    env_thread,
    fabs,
    fmul,
    handle_add_byte_offset,
    ignore_loop_partition,
    init,
    inline,
    isnullptr,
    launch_thread,
    likely,
    make_tensor_from_addr,
    meta_var,
    reduce,
    sblock,
    sblock_alloc_buffer,
    target,
    transpose,
    tvm_access_ptr,
    tvm_storage_sync,
    tvm_thread_invariant,
    tvm_tuple,
    tvm_warp_activemask,
    type_annotation,
    undef,
    var,
    where,
)
from ..copies_in_bulk import *  # noqa: F403
from ..dtypes import dtype
from ..foreign import CUDASourceCodeKernel, call_extern, import_source
from ..exchange import (
    attr,
    comm_reducer,
    shfl_sync,
    tvm_thread_allreduce,
    tvm_warp_shuffle,
    tvm_warp_shuffle_down,
    tvm_warp_shuffle_up,
)
from ..pointers import access_ptr, address_of, ptx_cp_async
from ..float_kinds import *  # noqa: F403
from .. import hints as _hints, unpacked as _unpacked
from ..index_maps import Fragment, Layout, PartialFragment, annotate_layout, make_linear_layout, make_swizzle_layout, make_swizzled_layout
from ..jitted import Jit as JITFunc
from ..program import PrimFunc, Ref, const, empty, macro, prim_func
from ..settings import warn_once as _warn_once
from ..reducers import alloc_reducer, finalize_reducer, noted_as_set as _noted_as_set, reducer_init, reducer_update
from ..refused import NODES as _NODES, REFUSED as _REFUSED
from ..scopes import (
    Else,
    Groups as ws,
    If,
    Launch as Kernel,
    Parallel,
    Persistent,
    Pipelined,
    Then,
    While,
    grid,
    parallel,
    serial,
    thread_binding,
    unroll,
    vectorized,
)
from ..tile_schedule import BaseTileScheduler, PersistentTileScheduler, meta_class
from ..trace import OPERATIONS as _OPERATIONS, apply as _apply, fail as _fail, operation as _operation, state as _state
from ..types import HandleType as _HandleType, StridedTensor, Tensor, TensorType as _TensorType
from ..types import is_compact as _is_compact, make_tensor, match_buffer
from ..values import Buffer as _Buffer, Expr as _Expr, Operators as PrimExpr, Tile as BufferRegion, Var as _Var
from ..vectors import *  # noqa: F403
from ..vectors import VectorVariable as _VectorVariable, buffer_of_vectors as _buffer_of_vectors, reinterpret as _bits_as
from ..warp_instructions import *  # noqa: F403
from ..warp_mma import TensorCoreIntrinEmitter, get_swizzle_layout
from ..ws_schedule import *  # noqa: F403

globals().update(_REFUSED)
globals().update(_NODES)
for _name in _dtypes.NAMES:
    globals()[_name] = dtype(_name)
for _name in (*_dtypes.NAMES, *_dtypes.ALIASES):
    if _name.startswith(("int", "uint", "float", "bfloat", "tfloat")) and _name[-1].isalnum() and _name not in ("int", "uint", "float"):
        globals().update({f"{_name}x{_lanes}": dtype(f"{_name}x{_lanes}") for _lanes in (2, 4, 8, 16, 32, 64)})
for _alias, _name in _dtypes.ALIASES.items():
    globals()[_alias] = dtype(_name)
ptr = dtype("pointer")
handle = _HandleType()
Buffer = Tensor
WarpSpecialize, Serial, Unroll, Vectorized = ws, serial, unroll, vectorized
KernelLaunchFrame, WarpSpecializeFrame, AnyDType, DataType = Kernel, ws, dtype, dtype
buffer, buffer_decl = Buffer, decl_buffer
Any = _typing.Any
_TABLE = {row[0]: row for row in _native.operations()}


class GemmWarpPolicy(_enum.IntEnum):
    """How the warps of a block share the result of a gemm."""

    Square = 0
    FullRow = 1
    FullCol = 2


class _BufferWord(type):
    def __getitem__(cls, item):
        return cls(*item) if isinstance(item, tuple) else cls(item)


class SharedBuffer(_TensorType, metaclass=_BufferWord):
    """Annotation of a macro's parameter, T.SharedBuffer(shape, dtype) or T.SharedBuffer[shape, dtype]; not checked."""

    def __init__(self, shape=(), dtype="float32", data=None, strides=None, elem_offset=None, scope=None, align=None, offset_factor=None,
                 buffer_type="", axis_separators=None):  # fmt: skip
        super().__init__(shape, dtype)


FragmentBuffer = LocalBuffer = SharedBuffer


def gemm_sp_v2(A_sparse, E, B, C, transpose_A=False, transpose_B=False, transpose_E=False, policy=0, clear_accum=False, k_pack=1, wg_wait=0):
    """T.gemm_sp, with the order of arguments that releases to 0.1.9 have: whether B is transposed comes before E."""
    _function("gemm_sp")(A_sparse, E, B, C, transpose_A, transpose_E, transpose_B, policy, clear_accum)


def Select(condition, true_value, false_value, span=None):
    """The one value where a condition holds, the other elsewhere."""
    return _function("if_then_else")(condition, true_value, false_value)


def ClusterKernel(*blocks, cluster_dims=None, threads=None, prelude=None):
    """T.Kernel with clusters of blocks."""
    return Kernel(*blocks, threads=threads, prelude=prelude, cluster_dims=cluster_dims)


# ---- dimensions, variables, views: what the table cannot say by itself


class _Dynamic:
    """T.dynamic("M, N"), and T.dyn["M"]: dimensions that are known at the call."""

    def __call__(self, names, dtype="int32"):
        made = tuple(_values.dynamic(n, dtype) for n in _values.names_in(names, "T.dynamic"))
        return made[0] if len(made) == 1 else made

    def __getitem__(self, item):
        return self(*item) if isinstance(item, tuple) else self(item)


dynamic = symbolic = dyn = _Dynamic()


class _VarWord(type):
    """T.Var(name, dtype) is a dimension that is known at the call; isinstance(x, T.Var) asks whether x is one."""

    def __call__(cls, name, dtype="int32"):
        return _values.dynamic(name, dtype)

    def __instancecheck__(cls, value):
        return isinstance(value, _Expr) and value.constant is None


class Var(Ref, metaclass=_VarWord):
    """A dimension that is known at the call; as an annotation of a macro's parameter the same as T.Ref."""


_alloc_scalar = _operation("alloc_scalar")


def _need_scope(word, scope, scopes):
    """An allocation's scope, which its word says already."""
    if scope is not None and scope not in scopes:
        _hints.refuse(f"T.{word}", "scope", scope, " or ".join(map(repr, scopes)))


def alloc_var(dtype, *arguments, init=None, scope=None):
    """A mutable scalar of each thread, zero unless `init` says otherwise. Assigning to its name stores."""
    for argument in arguments:
        if isinstance(argument, str) and not isinstance(argument, _dtypes.dtype):
            scope = argument
        else:
            init = argument
    _need_scope("alloc_var", scope, ("local.var", "local"))
    if _unpacked.number_dtype(dtype).lanes > 1:
        return _VectorVariable(_dtypes.dtype(dtype), init)
    made = _Var(_alloc_scalar(_dtypes.dtype(dtype), init).id)
    if isinstance(init, (_builtins.int, _builtins.float)):
        _values.note_number(_dtypes.dtype(dtype), init)
    return made


def alloc_buffer(shape, dtype="float32", *older, scope="global", annotations=None, data=None, strides=None, elem_offset=None, align=-1,
                 offset_factor=0, buffer_type="default", axis_separators=None):  # fmt: skip
    """An allocation in the space that `scope` names: T.alloc_buffer(shape, dtype, scope), and T.alloc_buffer(shape, dtype, data, strides,
    elem_offset, scope) as older programs have it; with data a view of that."""
    if older and isinstance(older[0], str):
        scope = older[0]
    elif older:
        data, strides, elem_offset, scope = (*older, *(data, strides, elem_offset, scope)[len(older) :])[:4]
    if data is not None:
        return decl_buffer(shape, dtype, data, strides, elem_offset)
    _is_compact("T.alloc_buffer", shape, strides, elem_offset)
    for name, scopes in _SCOPES.items():
        if scope in scopes:
            return _function(name)(shape, dtype)
    _hints.refuse("T.alloc_buffer", "scope", scope, "one of " + ", ".join(_itertools.chain(*_SCOPES.values())))


_SCOPES = {"alloc_shared": ("shared", "shared.dyn"), "alloc_fragment": ("local.fragment", "fragment"),
           "alloc_local": ("local", "local.var"), "alloc_global": ("global",)}  # fmt: skip


def _allocation(name):
    base = _operation(name)

    def allocate(shape, dtype, scope=None):
        if dtype is None:
            _hints.refuse(f"T.{name}", "dtype", dtype, "the type of an element, for example 'float32'")
        if scope is not None and scope not in _SCOPES[name]:  # it decides, whatever the word
            other = next((word for word, scopes in _SCOPES.items() if scope in scopes), None)
            return _function(other)(shape, dtype) if other else _need_scope(name, scope, _SCOPES[name])
        of = _dtypes.dtype(dtype)
        if of == _dtypes.UNPACKED:
            return _unpacked.allocate(name, shape)
        return base(shape, of) if of.lanes == 1 else _buffer_of_vectors(base, shape, of)

    allocate.__name__ = allocate.__qualname__ = name
    allocate.__doc__, allocate.__module__ = _TABLE[name][3], __name__
    return allocate


for _name in ("alloc_shared", "alloc_fragment", "alloc_local", "alloc_global"):
    globals()[_name] = _allocation(_name)


def alloc_barrier(arrive_count):
    """mbarriers: one, or one for each count of a list."""
    return _apply(_OPERATIONS["alloc_barrier"], arrive_count if isinstance(arrive_count, list) else [arrive_count])


def alloc_cluster_barrier(arrive_count):
    """mbarriers at which blocks of the cluster may arrive: one, or one for each count of a list."""
    return alloc_barrier(arrive_count)


def let(v, value, body=None):
    """Sets a variable that T.int32() and its like have made."""
    _apply(_OPERATIONS["store"], v, value)
    return v if body is None else body


def create_list_of_mbarrier(*counts):
    """mbarriers that T.get_mbarrier(i) names."""
    listed = counts[0] if len(counts) == 1 and isinstance(counts[0], (list, tuple)) else counts
    _state.tracer.barriers = alloc_barrier(list(listed))


def get_mbarrier(index):
    """One of T.create_list_of_mbarrier."""
    return _state.tracer.barriers[index]


def _numbered(barrier):
    """A barrier, or a number that stands for one of T.create_list_of_mbarrier, as older programs have it."""
    listed = _state.tracer.barriers if _state.tracer is not None else None
    return barrier if listed is None or isinstance(barrier, (_values.Buffer, _values.Tile)) else listed[barrier]


def Cast(dtype, value, annotations=None, span=None):
    """T.cast with its arguments the other way round."""
    return _function("cast")(value, dtype)


def reinterpret(value, dtype):
    """The same bits as another dtype of that width."""
    if isinstance(value, str):
        value, dtype = dtype, value
    to = _dtypes.dtype(dtype)
    return _bits_as(value, to) if to.lanes > 1 or isinstance(value, _values.Vector) else _apply(_OPERATIONS["reinterpret"], value, to)


def print(obj=None, msg="", warp_group_id=0, warp_id=0):
    """Prints a value, a buffer, or a message."""
    if isinstance(obj, str) and not msg:
        obj, msg = None, obj
    _hints.check_all("print", warp_group_id=warp_group_id, warp_id=warp_id)
    if warp_group_id or warp_id:
        _warn_once("T.print: every thread that comes here prints; warp_group_id and warp_id are left out")
    _apply(_OPERATIONS["print"], obj, msg)


def evaluate(value):
    """An expression as a statement; what it does is already recorded."""
    if _state.tracer is not None:
        _state.tracer.evaluated.append(value)


def all_of(buffer, *conditions):
    """Whether all elements of a buffer, or of a region of one dimension, are true; or all of some conditions."""
    return _joined("logical_and", (buffer, *conditions))


def any_of(buffer, *conditions):
    """Whether an element of a buffer, or of a region of one dimension, is true; or one of some conditions."""
    return _joined("logical_or", (buffer, *conditions))


def _joined(name, conditions):
    listed = [e for c in conditions for e in _elements(c)]
    result = _apply(_OPERATIONS["condition"], listed[0])
    for condition in listed[1:]:
        result = _apply(_OPERATIONS[name], result, condition)
    return result


def _elements(value):
    if isinstance(value, _Buffer) and not isinstance(value, _Var):
        value = value[tuple(slice(None) for _ in value.shape)]
    if not isinstance(value, BufferRegion):
        return [value]
    spans = []
    for index, extent in zip(value.indices, value.buffer.shape):
        if isinstance(index, slice):
            begin, end = index.start or 0, extent if index.stop is None else index.stop
            spans.append([begin + i for i in range(int(end - begin))])
        else:
            spans.append([index])
    return [value.buffer[point] for point in _itertools.product(*spans)]


_BY_TMA = ("float16", "bfloat16", "float32", "int32", "uint32")


def atomic_add(dst, value, memory_order=None, return_prev=False, use_tma=False, annotations=None):
    """Adds to an element, or a tile to a tile, atomically."""
    _hints.check_all("atomic_add", use_tma=use_tma, annotations=annotations)
    if use_tma and dst.dtype not in _BY_TMA:
        _fail("BadOption", f"TMA atomic add does not support dtype {dst.dtype}; supported scalar dtypes are {', '.join(_BY_TMA)}",
              "leave out use_tma")  # fmt: skip
    return _apply(_OPERATIONS["atomic_add"], dst, value, memory_order, return_prev)


def _packed(name, dst, value, return_prev, memory_order):
    value = value.lanes if isinstance(value, _values.Vector) else value
    old = _apply(_OPERATIONS[name], dst, value, return_prev, memory_order)
    return _values.Vector(old, dst.dtype) if return_prev else None


def atomic_addx2(dst, value, return_prev=False, memory_order="relaxed"):
    """Adds to each of two elements that follow each other, atomically."""
    return _packed("atomic_addx2", dst, value, return_prev, memory_order)


def atomic_addx4(dst, value, return_prev=False, memory_order="relaxed"):
    """Adds to each of four elements that follow each other, atomically."""
    return _packed("atomic_addx4", dst, value, return_prev, memory_order)


def rng_init(seed, seq=None, off=0, generator="curandStatePhilox4_32_10_t"):
    """Gives each thread a random generator; seq is by default the number of the thread in the grid."""
    from ..random_numbers import rng_init

    rng_init(seed, seq, off, generator)


def rng_rand():
    """The thread's next 32 random bits."""
    from ..random_numbers import rng_rand

    return rng_rand()


def rng_rand_float(bit=32, dist="uniform"):
    """The thread's next random number: uniform in (0, 1], or normal with mean 0 and deviation 1."""
    from ..random_numbers import rng_rand_float

    return rng_rand_float(bit, dist)


def _of_each_dimension(name, doc):
    def listed():
        one = _function(name)
        return [one(d) for d in range(3)]

    listed.__doc__ = doc
    return listed


def get_block_extent(dim=0):
    """The number of blocks of the grid along a dimension."""
    grid = _state.tracer.grid
    return grid[dim] if dim < len(grid) else 1


get_block_bindings = _of_each_dimension("get_block_binding", "The index of this block in the grid, in each dimension.")
get_block_extents = _of_each_dimension("get_block_extent", "The blocks of the grid along each dimension.")
get_thread_bindings = _of_each_dimension("get_thread_binding", "The index of this thread in its block, in each dimension.")
get_thread_extents = _of_each_dimension("get_thread_extent", "The threads of a block along each dimension.")


def get_cluster_dims():
    """The blocks of a cluster along each dimension."""
    return [_function("get_cluster_dim")(d) for d in range(3)]


def get_cluster_size():
    """The number of blocks of a cluster."""
    x, y, z = get_cluster_dims()
    return x * y * z


def get_cluster_id(dim=0):
    """The index of this block's cluster in the grid of clusters along a dimension."""
    return _function("get_block_binding")(dim) // _function("get_cluster_dim")(dim)


def get_cluster_extent(dim=0):
    """The number of clusters of the grid along a dimension."""
    return get_block_extent(dim) // _function("get_cluster_dim")(dim)


get_cluster_ids = _of_each_dimension("get_cluster_id", "The index of this block's cluster, in each dimension.")
get_cluster_extents = _of_each_dimension("get_cluster_extent", "The clusters of the grid along each dimension.")


def align_up(x, y):
    """The least multiple of y that is at least x."""
    return _function("ceildiv")(x, y) * y


def annotate_safe_value(safe_value_map):
    """What reads outside of global tensors give; in a T.sblock to its end."""
    block = _state.tracer.block if _state.tracer is not None else None
    _hints.need_mapping("annotate_safe_value", safe_value_map, "{A: 0.0}")
    for buffer, value in safe_value_map.items():
        if block is not None:
            block.setdefault(buffer, buffer.id)
            buffer._id = _function("view")(buffer, [*buffer.shape], buffer.dtype)._id
        _apply(_OPERATIONS["set_safe_value"], buffer, value)


# ---- hints that change no result


def _ignored(*arguments, **named):
    """A hint; results and checks are the same without it."""


for _name in (
    "annotate_padding no_set_max_nreg disable_warp_group_reg_alloc warpgroup_fence_operand reads writes sblock_attr start_profile_intrinsic "
    "end_profile_intrinsic"
).split():
    globals()[_name] = _ignored
globals().update({f.__name__: f for f in _hints.STATEMENTS})

# ---- modules of TileLang's language: what they hold is here


class _Part(_types.ModuleType):
    """A module that has what the language has, under a name of TileLang's. It notes which modules have names from it: their
    programs mean TileLang's defaults."""

    __tilewright__, __path__ = True, ()

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__") and name != "__all__":
            raise AttributeError(name)
        caller = _sys._getframe(1)
        if caller.f_code.co_name == "<module>":
            _importers[id(caller.f_globals)] = caller.f_globals
        return getattr(_sys.modules[__name__], name)

    def __setattr__(self, name, value):
        if not (isinstance(value, _types.ModuleType) and name in _TABLE):  # of an import; the operation keeps its name
            super().__setattr__(name, value)

    def __dir__(self):
        return __dir__()


_importers = {}  # id -> globals of a module that has asked a _Part for names


def _is_of_tilelang(space):
    """Whether a module, by its globals, has names of the language from a module of TileLang's name."""
    return _importers.get(id(space)) is space


def _copied(space, to):
    """`to` are globals made from `space`."""
    if _is_of_tilelang(space):
        _importers[id(to)] = to


_PARTS = (
    "allocate annotations dtypes layout kernel ast atomic builtin common copy_op customize eager experimental fastmath fill_op frame gemm_op logical loop "
    "math_intrinsics meta overrides parser proxy random reduce_op scan_op symbolics tile_schedule tir utils warp_specialize ws_schedule"
).split()
for _name in _PARTS:
    if _name not in globals():
        globals()[_name] = _Part(f"tilelang.language.{_name}", "What the language has.")


def _part(name):
    """A module of TileLang's language by its name."""
    found = globals().get(name)
    return found if isinstance(found, _types.ModuleType) else _Part(f"tilelang.language.{name}")


# ---- the table

_OTHER_NAMES = {
    "And": "logical_and", "Or": "logical_or", "Not": "logical_not", "cdiv": "ceildiv",
    "gemm_v1": "gemm", "gemm_v2": "gemm", "c2d_im2col": "im2col", "syncthreads": "sync_threads", "power": "pow",
    "sync_global": "sync_grid", "int_div": "floordiv",
    "wgmma_mma": "wgmma_gemm", "indexdiv": "floordiv", "indexmod": "floormod", "bitwise_neg": "bitwise_not", "fast_rcp": "ieee_frcp", "ieee_sqrt": "ieee_fsqrt",
}  # fmt: skip
_VECTOR_MEMORY = frozenset("ldg32 ldg64 ldg128 ldg256 stg32 stg64 stg128 stg256 lds32 lds64 lds128 sts32 sts64 sts128".split())
# Operators by name, that take plain numbers too: what Python computes stays Python's.
_FOLDED = frozenset("ceildiv floordiv floormod truncdiv truncmod min max shift_left shift_right "
                    "bitwise_and bitwise_or bitwise_xor".split())  # fmt: skip
_PARAMETER = _re.compile(r"(\*?\w*)(?:: (\w+))?(?: = (.+))?$")


def _parameters(signature):
    """(name, kind, default) of each, from "src: tile, dst: tile, *, dim: int = -1"."""
    return [_PARAMETER.match(part.strip()).groups() for part in signature.split(", ") if part.strip()]


def _function(name):
    """The function of a row of the table, made when it is first asked for."""
    made = globals().get(name)
    if made is not None:
        return made
    _, _, signature, doc = _TABLE[name]
    heads, operands, checks = [], [], ""
    for parameter, kind, default in _parameters(signature):
        if kind is None:
            heads.append(parameter)
            continue
        heads.append(f"{parameter}: {kind}" + (f" = {default}" if default is not None else ""))
        if kind == "dtype":
            operands.append(f"{parameter} if {parameter} is None else _dtype({parameter})")
        elif kind == "absent":
            checks += f"    if {parameter} is not None: _absent('{name}', '{parameter}')\n"
        elif kind == "ignored":
            checks += f"    if {parameter} is not None: _check('{name}', '{parameter}', {parameter})\n"
        elif parameter == "mbarrier":
            operands.append("_numbered(mbarrier)")
        elif name in ("fill", "clear") and parameter == "buffer":
            operands.append("_noted_as_set(buffer)")
        else:
            operands.append(parameter)
    text = (
        "from __future__ import annotations\n"
        f"def {name}({', '.join(heads)}):\n{checks}"
        f"    return _finish(_apply({_OPERATIONS[name]}, {', '.join(operands)}))\n"
    )
    space = {"_apply": _apply, "_absent": _absent, "_dtype": _unpacked.number_dtype, "_check": _hints.check, "_numbered": _numbered, "_noted_as_set": _noted_as_set, "_finish": _values.plain if name in _FOLDED else _same}
    exec(compile(text, "<tilewright>", "exec"), space)
    made = space[name]
    made.__doc__, made.__module__ = doc, __name__
    globals()[name] = made
    return made


def _same(value):
    return value


def _absent(name, parameter):
    _fail("BadOption", f"T.{name}: '{parameter}' is not supported", "leave it out, or say what it does with other operations")


def _is_public(name):
    return not name.startswith("_") or (name.startswith("__") and not name.endswith("__"))


def _known_names():
    names = {n for n, row in _TABLE.items() if row[1] != "scope"} | {n for n in globals() if _is_public(n)}
    return names | set(_OTHER_NAMES) | _VECTOR_MEMORY


def _star():
    """What `from tilewright.language import *` gives: all but what Python has under the same name, such as print and max."""
    return sorted(n for n in _known_names() if not hasattr(_builtins, n))


def __getattr__(name):
    if name == "__all__":
        return _star()
    row = _TABLE.get(name)
    if row is not None and row[1] != "scope":
        return _function(name)
    other = _OTHER_NAMES.get(name)
    if other is not None:
        globals()[name] = _function(other)
        return globals()[name]
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    if _dtypes.is_vector(name):
        return dtype(name)
    if name in _VECTOR_MEMORY:
        from ..vector_memory import function

        globals()[name] = function(name)
        return globals()[name]
    near = _elsewhere.nearest(name, _known_names())
    instead = _elsewhere.WORDS.get(name) or (f"the nearest it has: T.{near.replace(', ', ', T.')}" if near else
                                             "docs/python_language.md lists its operations, and dir(T) their names")  # fmt: skip
    _fail("UnknownOperation", f"Tilewright has no T.{name}", instead, also=AttributeError)


def __dir__():
    return sorted(_known_names())
