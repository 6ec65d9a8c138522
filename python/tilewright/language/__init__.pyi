"""Written by `python -m tilewright.stubs`."""
import typing as _typing
from builtins import bool as _bool, int as _int, list as _list, object as _object, str as _str, tuple as _tuple, type as _type

from ..program import PrimFunc as PrimFunc

MYPY = False  # to mypy it is true
_Any: _typing.TypeAlias = _typing.Any
_DType: _typing.TypeAlias = _typing.Any  # "float16", T.float16, torch.float16
_Operand: _typing.TypeAlias = _typing.Any  # a number, an expression, a buffer, buffer[i, j], buffer[i, a:b], a variable
_Shape: _typing.TypeAlias = _typing.Any  # an extent or a list of them

class dtype(_str):
    bits: _int
    lanes: _int
    type_code: _int
    def is_float4(self) -> _bool: ...
    def is_float4_e2m1fn(self) -> _bool: ...
    def is_float4_e2m1_unpacked(self) -> _bool: ...
    def __call__(self, value: _Any = ...) -> "PrimExpr": ...

class PrimExpr:
    """A value of run time: an expression, an element, a variable."""
    dtype: _Any
    def __getattr__(self, name: _str) -> _Any: ...
    def __add__(self, other: _Operand) -> PrimExpr: ...
    def __radd__(self, other: _Operand) -> PrimExpr: ...
    def __sub__(self, other: _Operand) -> PrimExpr: ...
    def __rsub__(self, other: _Operand) -> PrimExpr: ...
    def __mul__(self, other: _Operand) -> PrimExpr: ...
    def __rmul__(self, other: _Operand) -> PrimExpr: ...
    def __truediv__(self, other: _Operand) -> PrimExpr: ...
    def __rtruediv__(self, other: _Operand) -> PrimExpr: ...
    def __floordiv__(self, other: _Operand) -> PrimExpr: ...
    def __rfloordiv__(self, other: _Operand) -> PrimExpr: ...
    def __mod__(self, other: _Operand) -> PrimExpr: ...
    def __rmod__(self, other: _Operand) -> PrimExpr: ...
    def __pow__(self, other: _Operand) -> PrimExpr: ...
    def __rpow__(self, other: _Operand) -> PrimExpr: ...
    def __and__(self, other: _Operand) -> PrimExpr: ...
    def __rand__(self, other: _Operand) -> PrimExpr: ...
    def __or__(self, other: _Operand) -> PrimExpr: ...
    def __ror__(self, other: _Operand) -> PrimExpr: ...
    def __xor__(self, other: _Operand) -> PrimExpr: ...
    def __rxor__(self, other: _Operand) -> PrimExpr: ...
    def __lshift__(self, other: _Operand) -> PrimExpr: ...
    def __rlshift__(self, other: _Operand) -> PrimExpr: ...
    def __rshift__(self, other: _Operand) -> PrimExpr: ...
    def __rrshift__(self, other: _Operand) -> PrimExpr: ...
    def __lt__(self, other: _Operand) -> PrimExpr: ...
    def __le__(self, other: _Operand) -> PrimExpr: ...
    def __gt__(self, other: _Operand) -> PrimExpr: ...
    def __ge__(self, other: _Operand) -> PrimExpr: ...
    def __eq__(self, other: _Operand) -> PrimExpr: ...  # type: ignore[override]
    def __ne__(self, other: _Operand) -> PrimExpr: ...  # type: ignore[override]
    def __neg__(self) -> PrimExpr: ...
    def __pos__(self) -> PrimExpr: ...
    def __invert__(self) -> PrimExpr: ...
    def __abs__(self) -> PrimExpr: ...
    def __hash__(self) -> _int: ...
    def astype(self, to: _DType) -> PrimExpr: ...

class BufferRegion(PrimExpr):
    """A buffer with indices: an element, the head of a tile, or a box."""
    buffer: "_Memory"
    shape: _tuple[_Any, ...]
    def __getitem__(self, index: _Any) -> _Any: ...

class _Memory:
    """A tensor, or memory on chip: memory[i, j] is an element or the head of a tile, memory[i, a:b] a box."""
    shape: _tuple[_Any, ...]
    strides: _list[_Any]
    dtype: _Any
    data: _Any
    name: _str
    ndim: _int
    def scope(self) -> _str: ...
    def __getitem__(self, index: _Any) -> BufferRegion: ...
    def __setitem__(self, index: _Any, value: _Operand) -> None: ...

class _Variable(PrimExpr, _Memory):
    """A variable of a thread, which assignments change."""
    dtype: _Any
    def __getitem__(self, index: _Any) -> BufferRegion: ...

class handle(_Memory):
    """A parameter that T.match_buffer describes in the body."""
    def __init__(self, *ignored: _Any) -> None: ...

class Ref(_Variable):
    """Annotation of a macro's parameter that is an element or a variable, not its value."""

class _Dtype(_type):
    """What classes that stand for dtypes have themselves."""
    bits: _int
    lanes: _int

# A tensor in annotations: T.Tensor[[M, N], T.float16]. Its brackets are values, not types, which pyright takes where a class has
# a function for them, and mypy nowhere.
if not MYPY:
    class Tensor(_Memory):
        """A tensor parameter: row-major and compact."""
        def __init__(self, shape: _Shape, dtype: _DType = ..., data: _Any = ...) -> None: ...
        def __class_getitem__(cls, item: _Any) -> _Any: ...
    class StridedTensor(_Memory):
        """A tensor parameter with strides of its own, in elements."""
        def __init__(self, shape: _Shape, strides: _Shape, dtype: _DType = ...) -> None: ...
        def __class_getitem__(cls, item: _Any) -> _Any: ...
    class SharedBuffer(_Memory):
        """Annotation of a macro's parameter; not checked."""
        def __init__(self, shape: _Shape = ..., dtype: _DType = ...) -> None: ...
        def __class_getitem__(cls, item: _Any) -> _Any: ...
    Buffer = Tensor
    FragmentBuffer = LocalBuffer = SharedBuffer
else:
    Tensor = StridedTensor = SharedBuffer = Buffer = FragmentBuffer = LocalBuffer = _typing.cast(_typing.Any, None)
Add: _Any
def And(a: _Any, b: _Any) -> _Any:
    """a and b; b is evaluated only where a is true."""
Any: _Any
AnyDType: _Any
def Assert(condition: _Any, message: _Any, error_kind: _Any = ...) -> _Any:
    """Stops the call where the condition is false; before the first T.Kernel the call checks it. What stands under `with` comes behind it."""
BaseTileScheduler: _Any
def Broadcast(value: _Any, lanes: _Any, span: _Any = ...) -> _Any:
    """The same value in each lane of a vector."""
BufferLoad: _Any
def CUDASourceCodeKernel(*blocks: _Any, threads: _Any = ..., source_code_or_path: _Any, entry_name: _Any, cluster_dims: _Any = ...) -> _Any:
    """A launch of a kernel that is CUDA C++, text or the path of a file: it gets the program's tensors and numbers in their order, and then the dimensions that are known at the call."""
Call: _Any
CallEffectKind: _Any
def Cast(dtype: _Any, value: _Any, annotations: _Any = ..., span: _Any = ...) -> _Any:
    """T.cast with its arguments the other way round."""
def ClusterKernel(*blocks: _Any, cluster_dims: _Any = ..., threads: _Any = ..., prelude: _Any = ...) -> _Any:
    """T.Kernel with clusters of blocks."""
CommReducer: _Any
DataType: _Any
Div: _Any
EQ: _Any
Else: _Any
FloatImm: _Any
FloorDiv: _Any
FloorMod: _Any
Fragment: _Any
GE: _Any
GT: _Any
GemmWarpPolicy: _Any
If: _Any
IntImm: _Any
IterVar: _Any
JITFunc: _Any
Kernel: _Any
KernelLaunchFrame: _Any
LE: _Any
LT: _Any
Layout: _Any
Let: _Any
Max: _Any
Min: _Any
Mod: _Any
Mul: _Any
NE: _Any
def Not(a: _Any) -> _Any:
    """not a"""
def Or(a: _Any, b: _Any) -> _Any:
    """a or b; b is evaluated only where a is false."""
def Parallel(*extents: _Any, coalesced_width: _Any = ..., loop_layout: _Any = ..., prefer_async: _Any = ..., annotations: _Any = ...) -> _Any:
    """Every point of a box once, in no order, dealt to the threads."""
PartialFragment: _Any
def Persistent(domain: _Any, wave_size: _Any, index: _Any, group_size: _Any = ..., num_stages: _Any = ..., annotations: _Any = ...) -> _Any:
    """The share of one of wave_size blocks of the points of a box, in groups along its last dimension."""
PersistentTileScheduler: _Any
def Pipelined(start: _Any, stop: _Any = ..., num_stages: _Any = ..., order: _Any = ..., stage: _Any = ..., sync: _Any = ..., group: _Any = ..., annotations: _Any = ...) -> _Any:
    """A loop whose copies may run ahead by num_stages (0: by what the plan finds best); its results are those of serial."""
ProducerLoad: _Any
def Ptr(dtype: _Any, storage_scope: _Any = ...) -> _Any:
    """The type of a parameter that is an address of such elements."""
def Ramp(base: _Any, stride: _Any, lanes: _Any, span: _Any = ...) -> _Any:
    """The vector of base, base + stride, base + 2 stride, ... As an index it names as many elements: A[T.Ramp(i, 2, 4)]."""
Range: _Any
Reduce: _Any
def Select(condition: _Any, true_value: _Any, false_value: _Any, span: _Any = ...) -> _Any:
    """The one value where a condition holds, the other elsewhere."""
def Serial(start: _Any, stop: _Any = ..., step: _Any = ..., annotations: _Any = ...) -> _Any:
    """An ordinary loop; range() in a traced function is this."""
def Shuffle(vectors: _Any, indices: _Any, span: _Any = ...) -> _Any:
    """The lanes of these numbers of the vectors, counted through all of them: a vector, or a value where it is one."""
SizeVar: _Any
SparseTensorCoreIntrinEmitter: _Any
StringImm: _Any
Sub: _Any
TCGEN05DescriptorParams: _Any
TCGEN05TensorCoreIntrinEmitter: _Any
TVMBackendAllocWorkspace: _Any
TVMBackendFreeWorkspace: _Any
TensorCoreIntrinEmitter: _Any
TensorCoreIntrinEmitterSM120: _Any
TensorCoreIntrinEmitterWithLadderTransform: _Any
Then: _Any
def Unroll(start: _Any, stop: _Any = ..., step: _Any = ..., *, explicit: _Any = ..., unroll_factor: _Any = ..., annotations: _Any = ...) -> _Any:
    """A loop that is unrolled when it is compiled, as a whole or by so many iterations."""
Var: _Any
def Vectorized(start: _Any, stop: _Any = ..., *, annotations: _Any = ...) -> _Any:
    """A loop whose accesses may become vector accesses."""
WGMMADescriptorParams: _Any
WGMMATensorCoreIntrinEmitter: _Any
WGSparseTensorCoreIntrinEmitter: _Any
WSID: _Any
WSInstr: _Any
WSOpRef: _Any
WSPipeline: _Any
WSRole: _Any
WSSchedule: _Any
WSScope: _Any
WSSync: _Any
WSSyncKind: _Any
WarpSpecialize: _Any
WarpSpecializeFrame: _Any
While: _Any
def __ldg(load_or_buf: _Any, index: _Any = ...) -> _Any:
    """An element of a global tensor, which the device may read through its cache of constants."""
def abs2(x: _Any) -> _Any:
    """The magnitude of each lane of a vector."""
def access_ptr(base: _Any, access_type: _Any = ..., *extents: _Any, offset: _Any = ..., extent: _Any = ..., ignore_last_ndim: _Any = ...) -> _Any:
    """A pointer to where a buffer, a region or an element begins; what it may be used for changes no result."""
def add2(x: _Any, y: _Any) -> _Any:
    """The sum of each lane of vectors."""
def align_up(x: _Any, y: _Any) -> _Any:
    """The least multiple of y that is at least x."""
def all_of(buffer: _Any, *conditions: _Any) -> _Any:
    """Whether all elements of a buffer, or of a region of one dimension, are true; or all of some conditions."""
def alloc_buffer(shape: _Any, dtype: _Any = ..., *older: _Any, scope: _Any = ..., annotations: _Any = ..., data: _Any = ..., strides: _Any = ..., elem_offset: _Any = ..., align: _Any = ..., offset_factor: _Any = ..., buffer_type: _Any = ..., axis_separators: _Any = ...) -> _Any:
    """An allocation in the space that `scope` names: T.alloc_buffer(shape, dtype, scope), and T.alloc_buffer(shape, dtype, data, strides, elem_offset, scope) as older programs have it; with data a view of that."""
def alloc_cluster_barrier(arrive_count: _Any) -> _Any:
    """mbarriers at which blocks of the cluster may arrive: one, or one for each count of a list."""
alloc_descriptor: _Any
alloc_tcgen05_instr_desc: _Any
alloc_tcgen05_instruction_desc: _Any
alloc_tcgen05_smem_desc: _Any
alloc_tmem: _Any
def alloc_var(dtype: _Any, *arguments: _Any, init: _Any = ..., scope: _Any = ...) -> _Any:
    """A mutable scalar of each thread, zero unless `init` says otherwise. Assigning to its name stores."""
alloc_wgmma_desc: _Any
def allocate(shape: _Any, dtype: _Any = ..., scope: _Any = ..., annotations: _Any = ...) -> _Any:
    """An allocation in the space that `scope` names."""
def annotate_compile_flags(flags: _Any) -> _Any:
    """Flags of the device's compiler, as jit(compile_flags=...) takes them."""
def annotate_consumer_reg_alloc(reg_count: _Any = ...) -> _Any:
    """How many registers a computing warp gets: a hint, which the plan decides."""
def annotate_l2_hit_ratio(l2_hit_ratio_map: _Any) -> _Any:
    """How much of a global tensor, from 0 to 1, is to stay in the L2 cache: a hint."""
def annotate_layout(layout_map: _Any) -> _Any:
    """Where elements of tiles lie. Never changes a result; tensors in global memory stay as their shape and strides say."""
def annotate_padding(*arguments: _Any, **named: _Any) -> _Any:
    """A hint; results and checks are the same without it."""
def annotate_pass_configs(configs: _Any) -> _Any:
    """Options of this program, in the words of jit(pass_configs=...)."""
def annotate_producer_reg_dealloc(reg_count: _Any = ...) -> _Any:
    """How many registers a loading warp keeps: a hint, which the plan decides."""
def annotate_restrict_buffers(*buffers: _Any) -> _Any:
    """Tensors that no other parameter shares memory with: a hint; every call is checked for it."""
def annotate_safe_value(safe_value_map: _Any) -> _Any:
    """What reads outside of global tensors give; in a T.sblock to its end."""
def annotate_ws_pipeline_depth(depth_map: _Any) -> _Any:
    """Says how many versions of a buffer there are. It changes no result: the compiler decides."""
def annotate_ws_schedule(schedule: _Any) -> _Any:
    """Says which warps do what. It changes no result: the compiler decides the roles."""
annotations: _Any
def any_of(buffer: _Any, *conditions: _Any) -> _Any:
    """Whether an element of a buffer, or of a region of one dimension, is true; or one of some conditions."""
anylist_getitem: _Any
anylist_resetitem: _Any
anylist_setitem_call_cpacked: _Any
anylist_setitem_call_packed: _Any
def arg(name: _Any, obj: _Any) -> _Any:
    """A parameter of the program by its name: T.arg("A", T.Tensor((8,), "float32"))."""
ast: _Any
atomic: _Any
attr: _Any
axis: _Any
class bfloat16(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
bfloat16x16: _Any
bfloat16x2: _Any
bfloat16x32: _Any
bfloat16x4: _Any
bfloat16x64: _Any
bfloat16x8: _Any
def bind(value: _Any, type_annotation: _Any = ..., *, var: _Any = ...) -> _Any:
    """Evaluates a value here, once."""
def bitwise_neg(x: _Any) -> _Any:
    """~x"""
block_name_suffix_context: _Any
class bool(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
class boolean(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
def break_loop(span: _Any = ...) -> _Any:
    """Leaves the innermost loop."""
def broadcast(value: _Any, lanes: _Any, span: _Any = ...) -> _Any:
    """The same value in each lane of a vector."""
buffer: _Any
def buffer_decl(shape: _Any, dtype: _Any = ..., data: _Any = ..., strides: _Any = ..., elem_offset: _Any = ..., scope: _Any = ..., align: _Any = ..., offset_factor: _Any = ..., buffer_type: _Any = ..., axis_separators: _Any = ...) -> _Any:
    """A view of the memory `data`; without that an allocation in the space that `scope` names."""
def buffer_store(buffer: _Any, value: _Any, indices: _Any, predicate: _Any = ...) -> _Any:
    """Stores to an element; only where the predicate holds."""
def buffer_var(dtype: _Any, storage_scope: _Any = ...) -> _Any:
    """A parameter that is an address; T.match_buffer says what lies there."""
builtin: _Any
def c2d_im2col(img: _Any, col: _Any, nhw_step: _Any, c_step: _Any, kernel: _Any, stride: _Any, dilation: _Any, pad: _Any, eviction_policy: _Any = ...) -> _Any:
    """Patches of an NHWC image as a tile of the patch matrix."""
call_cpacked: _Any
call_cpacked_lowered: _Any
def call_extern(*arguments: _Any, dtype: _Any = ...) -> _Any:
    """Calls a device function by its name: T.call_extern("float32", "f", x), or T.call_extern("f", x, dtype="float32"). Buffers and T.access_ptr go as pointers, which the function may read and write by. Where it is one of CUDA's own that the language has too, the call is the language's, on every engine."""
def call_intrin(dtype: _Any, func_name: _Any, *args: _Any, annotations: _Any = ..., span: _Any = ...) -> _Any:
    """An operation by its name, "tir.exp" or "exp", as a value of a dtype."""
call_kernel: _Any
def call_llvm_intrin(dtype: _Any, name: _Any, *args: _Any, span: _Any = ...) -> _Any:
    """A function of LLVM's by its name, "llvm.sqrt.f32": those that are scalar functions here."""
def call_llvm_pure_intrin(dtype: _Any, name: _Any, *args: _Any, span: _Any = ...) -> _Any:
    """A function of LLVM's by its name, "llvm.sqrt.f32": those that are scalar functions here."""
call_packed: _Any
call_packed_lowered: _Any
def call_pure_extern(dtype: _Any, func_name: _Any, *args: _Any, span: _Any = ...) -> _Any:
    """T.call_extern of a function that only computes."""
def cdiv(lhs: _Any, rhs: _Any) -> _Any:
    """The quotient of integers, rounded up."""
clc_get_first_ctaid_x: _Any
clc_get_first_ctaid_y: _Any
clc_get_first_ctaid_z: _Any
clc_is_canceled: _Any
clc_try_cancel: _Any
clc_try_cancel_multicast: _Any
comm_reducer: _Any
common: _Any
compute_gmma_descriptor: _Any
compute_umma_descriptor: _Any
def const(names: _Any, dtype: _Any = ...) -> _Any:
    """Dimensions of an eager function that are taken from its tensors when it is called: M, N = T.const("M, N")."""
def continue_loop(span: _Any = ...) -> _Any:
    """Goes on with the next round of the innermost loop."""
copy_op: _Any
def create_barriers(barrier_count: _Any) -> _Any:
    """mbarriers with numbers; T.ptx_init_barrier_thread_count says how many threads arrive at each."""
def create_list_of_mbarrier(*counts: _Any) -> _Any:
    """mbarriers that T.get_mbarrier(i) names."""
def create_tma_descriptor(*args: _Any) -> _Any:
    """A box to load, described as the driver's tensor maps are: dtype, rank, tensor, then of each dimension, the innermost first, extents, strides in bytes, extents of the box and steps in it, then interleave, swizzle, L2 promotion, fill. With a swizzle it loads to tiles that T.annotate_layout says are swizzled: elements are found at their indices."""
customize: _Any
deallocate_tmem: _Any
def decl_buffer(shape: _Any, dtype: _Any = ..., data: _Any = ..., strides: _Any = ..., elem_offset: _Any = ..., scope: _Any = ..., align: _Any = ..., offset_factor: _Any = ..., buffer_type: _Any = ..., axis_separators: _Any = ...) -> _Any:
    """A view of the memory `data`; without that an allocation in the space that `scope` names."""
def disable_warp_group_reg_alloc(*arguments: _Any, **named: _Any) -> _Any:
    """A hint; results and checks are the same without it."""
class double(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
dtypes: _Any
dyn: _Any
dynamic: _Any
eager: _Any
def empty(*shape: _Any, dtype: _Any = ...) -> _Any:
    """A tensor that the call makes and returns. T.empty(shape, dtype) or T.empty(M, N, dtype=...)."""
def end_profile_intrinsic(*arguments: _Any, **named: _Any) -> _Any:
    """A hint; results and checks are the same without it."""
def env_thread(thread_tag: _Any, dtype: _Any = ...) -> _Any:
    """The index of this thread or block, of as many as T.launch_thread says."""
def evaluate(value: _Any) -> _Any:
    """An expression as a statement; what it does is already recorded."""
experimental: _Any
def extract_lane(vector: _Any, lane: _Any, span: _Any = ...) -> _Any:
    """One value of a vector."""
def fast_rcp(x: _Any, rounding_mode: _Any = ...) -> _Any:
    """Rounded as rounding_mode says: rn (to nearest), rz (toward zero), ru (up), rd (down), the last three of float32 and float64; never joined with another operation."""
fastmath: _Any
fill_op: _Any
class float(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
class float16(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
float16x16: _Any
float16x2: _Any
float16x32: _Any
float16x4: _Any
float16x64: _Any
float16x8: _Any
class float32(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
float32x16: _Any
float32x2: _Any
float32x32: _Any
float32x4: _Any
float32x64: _Any
float32x8: _Any
class float4_e2m1(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
class float4_e2m1_unpacked(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
class float4_e2m1fn(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
float4_e2m1fnx16: _Any
float4_e2m1fnx2: _Any
float4_e2m1fnx32: _Any
float4_e2m1fnx4: _Any
float4_e2m1fnx64: _Any
float4_e2m1fnx8: _Any
float4_e2m1x16: _Any
float4_e2m1x2: _Any
float4_e2m1x32: _Any
float4_e2m1x4: _Any
float4_e2m1x64: _Any
float4_e2m1x8: _Any
class float64(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
float64x16: _Any
float64x2: _Any
float64x32: _Any
float64x4: _Any
float64x64: _Any
float64x8: _Any
class float6_e2m3fn(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
float6_e2m3fnx16: _Any
float6_e2m3fnx2: _Any
float6_e2m3fnx32: _Any
float6_e2m3fnx4: _Any
float6_e2m3fnx64: _Any
float6_e2m3fnx8: _Any
class float6_e3m2fn(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
float6_e3m2fnx16: _Any
float6_e3m2fnx2: _Any
float6_e3m2fnx32: _Any
float6_e3m2fnx4: _Any
float6_e3m2fnx64: _Any
float6_e3m2fnx8: _Any
class float8_e3m4(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
float8_e3m4x16: _Any
float8_e3m4x2: _Any
float8_e3m4x32: _Any
float8_e3m4x4: _Any
float8_e3m4x64: _Any
float8_e3m4x8: _Any
class float8_e4m3(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
class float8_e4m3b11fnuz(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
float8_e4m3b11fnuzx16: _Any
float8_e4m3b11fnuzx2: _Any
float8_e4m3b11fnuzx32: _Any
float8_e4m3b11fnuzx4: _Any
float8_e4m3b11fnuzx64: _Any
float8_e4m3b11fnuzx8: _Any
class float8_e4m3fn(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
class float8_e4m3fnuz(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
float8_e4m3fnuzx16: _Any
float8_e4m3fnuzx2: _Any
float8_e4m3fnuzx32: _Any
float8_e4m3fnuzx4: _Any
float8_e4m3fnuzx64: _Any
float8_e4m3fnuzx8: _Any
float8_e4m3fnx16: _Any
float8_e4m3fnx2: _Any
float8_e4m3fnx32: _Any
float8_e4m3fnx4: _Any
float8_e4m3fnx64: _Any
float8_e4m3fnx8: _Any
float8_e4m3x16: _Any
float8_e4m3x2: _Any
float8_e4m3x32: _Any
float8_e4m3x4: _Any
float8_e4m3x64: _Any
float8_e4m3x8: _Any
class float8_e5m2(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
class float8_e5m2fnuz(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
float8_e5m2fnuzx16: _Any
float8_e5m2fnuzx2: _Any
float8_e5m2fnuzx32: _Any
float8_e5m2fnuzx4: _Any
float8_e5m2fnuzx64: _Any
float8_e5m2fnuzx8: _Any
float8_e5m2x16: _Any
float8_e5m2x2: _Any
float8_e5m2x32: _Any
float8_e5m2x4: _Any
float8_e5m2x64: _Any
float8_e5m2x8: _Any
class float8_e8m0(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
class float8_e8m0fnu(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
float8_e8m0fnux16: _Any
float8_e8m0fnux2: _Any
float8_e8m0fnux32: _Any
float8_e8m0fnux4: _Any
float8_e8m0fnux64: _Any
float8_e8m0fnux8: _Any
float8_e8m0x16: _Any
float8_e8m0x2: _Any
float8_e8m0x32: _Any
float8_e8m0x4: _Any
float8_e8m0x64: _Any
float8_e8m0x8: _Any
def fma2(x: _Any, y: _Any, z: _Any) -> _Any:
    """x * y + z of each lane of vectors, rounded once."""
def fmul(x: _Any, y: _Any) -> _Any:
    """x * y, which is never joined with a sum."""
frame: _Any
def func_attr(attrs: _Any) -> _Any:
    """Attributes of TVM's functions: a hint."""
func_name: _Any
func_ret: _Any
gemm_blockscaled: _Any
gemm_op: _Any
def gemm_sp_v2(A_sparse: _Any, E: _Any, B: _Any, C: _Any, transpose_A: _Any = ..., transpose_B: _Any = ..., transpose_E: _Any = ..., policy: _Any = ..., clear_accum: _Any = ..., k_pack: _Any = ..., wg_wait: _Any = ...) -> _Any:
    """T.gemm_sp, with the order of arguments that releases to 0.1.9 have: whether B is transposed comes before E."""
def gemm_v1(A: _Any, B: _Any, C: _Any, transpose_A: _Any = ..., transpose_B: _Any = ..., policy: _Any = ..., clear_accum: _Any = ..., k_pack: _Any = ..., wg_wait: _Any = ..., mbar: _Any = ..., annotations: _Any = ...) -> _Any:
    """C += A B on tiles on chip; op(A) is (M, K), op(B) is (K, N), C is (M, N)."""
def gemm_v2(A: _Any, B: _Any, C: _Any, transpose_A: _Any = ..., transpose_B: _Any = ..., policy: _Any = ..., clear_accum: _Any = ..., k_pack: _Any = ..., wg_wait: _Any = ..., mbar: _Any = ..., annotations: _Any = ...) -> _Any:
    """C += A B on tiles on chip; op(A) is (M, K), op(B) is (K, N), C is (M, N)."""
get_active_lane_mask: _Any
def get_block_bindings() -> _Any:
    """The index of this block in the grid, in each dimension."""
def get_block_extent(dim: _Any = ...) -> _Any:
    """The number of blocks of the grid along a dimension."""
def get_block_extents() -> _Any:
    """The blocks of the grid along each dimension."""
def get_cluster_dims() -> _Any:
    """The blocks of a cluster along each dimension."""
def get_cluster_extent(dim: _Any = ...) -> _Any:
    """The number of clusters of the grid along a dimension."""
def get_cluster_extents() -> _Any:
    """The clusters of the grid along each dimension."""
def get_cluster_id(dim: _Any = ...) -> _Any:
    """The index of this block's cluster in the grid of clusters along a dimension."""
def get_cluster_ids() -> _Any:
    """The index of this block's cluster, in each dimension."""
def get_cluster_size() -> _Any:
    """The number of blocks of a cluster."""
def get_ldmatrix_offset(matrix: _Any, row_idx: _Any, col_idx: _Any, stride: _Any, dtype: _Any = ..., transposed: _Any = ...) -> _Any:
    """(row, column) that lane `row_idx` gives ldmatrix of four matrices the address of."""
get_let_value: _Any
def get_mbarrier(index: _Any) -> _Any:
    """One of T.create_list_of_mbarrier."""
def get_mma_micro_size(dtype: _Any) -> _Any:
    """(rows, columns, depth) of the product of one warp: 16 bits 16 deep, 8 bits 32."""
def get_swizzle_layout(row_idx: _Any, col_idx: _Any, row_size: _Any, dtype: _Any, swizzle_bytes: _Any = ...) -> _Any:
    """Where an element of a shared tile lies so that equal columns of neighbouring rows are in different banks."""
def get_thread_bindings() -> _Any:
    """The index of this thread in its block, in each dimension."""
def get_thread_extents() -> _Any:
    """The threads of a block along each dimension."""
def get_tvm_dtype(value: _Any) -> _Any:
    """A dtype by any of its names, or of PyTorch or NumPy."""
def grid(*extents: _Any) -> _Any:
    """Nested serial loops."""
class half(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
def handle_add_byte_offset(handle: _Any, offset: _Any) -> _Any:
    """The address so many bytes further on."""
has_let_value: _Any
def ieee_sqrt(x: _Any, rounding_mode: _Any = ...) -> _Any:
    """Rounded as rounding_mode says: rn (to nearest), rz (toward zero), ru (up), rd (down), the last three of float32 and float64; never joined with another operation."""
def ignore_loop_partition(predicate: _Any, span: _Any = ...) -> _Any:
    """The condition itself."""
def import_source(source: _Any = ...) -> _Any:
    """CUDA C++ that defines what T.call_extern calls. Engines other than cuda refuse calls of it."""
increase_descriptor_offset: _Any
index_map: _Any
def index_to_coordinates(index: _Any, shape: _Any) -> _Any:
    """The index in each dimension of an element by its number in row-major order."""
def indexdiv(a: _Any, b: _Any) -> _Any:
    """a // b of integers, rounded down"""
def indexmod(a: _Any, b: _Any) -> _Any:
    """a % b of integers, with the sign of b"""
init: _Any
initialize_tcgen05_descriptor: _Any
initialize_wgmma_descriptor: _Any
def inline(func: _Any) -> _Any:
    """A method that is recorded where it is called."""
class int(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
class int16(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
int16x16: _Any
int16x2: _Any
int16x32: _Any
int16x4: _Any
int16x64: _Any
int16x8: _Any
class int32(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
int32x16: _Any
int32x2: _Any
int32x32: _Any
int32x4: _Any
int32x64: _Any
int32x8: _Any
class int4(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
int4x16: _Any
int4x2: _Any
int4x32: _Any
int4x4: _Any
int4x64: _Any
int4x8: _Any
class int64(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
int64x16: _Any
int64x2: _Any
int64x32: _Any
int64x4: _Any
int64x64: _Any
int64x8: _Any
class int8(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
int8x16: _Any
int8x2: _Any
int8x32: _Any
int8x4: _Any
int8x64: _Any
int8x8: _Any
def int_div(a: _Any, b: _Any) -> _Any:
    """a // b of integers, rounded down"""
def is_f8f6f4_family(value: _Any) -> _Any:
    """Whether it is a float of 4, 6 or 8 bits that products of mixed types take."""
def is_float4(value: _Any) -> _Any:
    """Whether it is a float of 4 bits, packed or not."""
def is_float4_e2m1_unpacked(value: _Any) -> _Any:
    """Whether it is fp4 with a byte for each element, as TMA of sm_100 unpacks it."""
def is_float4_e2m1fn(value: _Any) -> _Any:
    """Whether it is float4_e2m1fn, two of which share a byte."""
def isnullptr(x: _Any, span: _Any = ...) -> _Any:
    """Whether an address is null: a T.ptr, or where a tensor lies."""
iter_var: _Any
kernel: _Any
def launch_thread(thread: _Any, extent: _Any) -> _Any:
    """The index of this thread or block along a dimension; the launch is T.Kernel's."""
layout: _Any
def ldg128(src: _Any, pred: _Any = ...) -> _Any:
    """128 bits from an element on, as uint32; zeros where `pred` does not hold."""
def ldg256(src: _Any, pred: _Any = ...) -> _Any:
    """256 bits from an element on, as uint32; zeros where `pred` does not hold."""
def ldg32(src: _Any, pred: _Any = ...) -> _Any:
    """32 bits from an element on, as uint32; zeros where `pred` does not hold."""
def ldg64(src: _Any, pred: _Any = ...) -> _Any:
    """64 bits from an element on, as uint32; zeros where `pred` does not hold."""
def lds128(src: _Any, pred: _Any = ...) -> _Any:
    """128 bits from an element on, as uint32; zeros where `pred` does not hold."""
def lds32(src: _Any, pred: _Any = ...) -> _Any:
    """32 bits from an element on, as uint32; zeros where `pred` does not hold."""
def lds64(src: _Any, pred: _Any = ...) -> _Any:
    """64 bits from an element on, as uint32; zeros where `pred` does not hold."""
def let(v: _Any, value: _Any, body: _Any = ...) -> _Any:
    """Sets a variable that T.int32() and its like have made."""
def likely(cond: _Any, span: _Any = ...) -> _Any:
    """The condition itself."""
llvm_lookup_intrinsic_id: _Any
logical: _Any
class long(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
lookup_param: _Any
loop: _Any
@_typing.overload
def macro(func: _typing.Callable[..., _Any]) -> _typing.Callable[..., _Any]:
    """A function that is recorded wherever it is called."""
@_typing.overload
def macro(func: None = None) -> _typing.Callable[[_typing.Callable[..., _Any]], _typing.Callable[..., _Any]]:
    """A function that is recorded wherever it is called."""
make_blockscaled_gemm_layout: _Any
def make_linear_layout(buffer: _Any) -> _Any:
    """Row-major."""
def make_mma_swizzle_layout(shared_buf: _Any, is_smooth: _Any = ...) -> _Any:
    """Spreads the rows of a shared tile over the memory banks; smooth, it lies row-major."""
def make_swizzle_layout(buffer: _Any = ..., k_major: _Any = ..., allow_pad: _Any = ...) -> _Any:
    """Spreads the rows of a shared tile over the memory banks."""
def make_swizzled_layout(buffer: _Any = ..., k_major: _Any = ..., allow_pad: _Any = ...) -> _Any:
    """Spreads the rows of a shared tile over the memory banks."""
def make_tensor_from_addr(addr: _Any, shape: _Any, dtype: _Any = ..., strides: _Any = ..., storage_scope: _Any = ...) -> _Any:
    """A global tensor at an address."""
def match_buffer(param: _Any, shape: _Any = ..., dtype: _Any = ..., data: _Any = ..., strides: _Any = ..., elem_offset: _Any = ..., scope: _Any = ..., align: _Any = ..., offset_factor: _Any = ..., buffer_type: _Any = ..., axis_separators: _Any = ...) -> _Any:
    """The tensor behind a parameter of type T.handle, or a view of a tensor or an address."""
math_intrinsics: _Any
def max2(x: _Any, y: _Any) -> _Any:
    """The larger of each lane of vectors."""
meta: _Any
def meta_class(cls: _Any) -> _Any:
    """A class whose methods are recorded where they are called, like macros; state lives in T.alloc_var."""
def meta_var(value: _Any, span: _Any = ...) -> _Any:
    """The value itself."""
def min2(x: _Any, y: _Any) -> _Any:
    """The smaller of each lane of vectors."""
def mma_fill(dtype: _Any, local_size: _Any, local_ptr: _Any, offset: _Any) -> _Any:
    """Sets the results that a lane holds to zero."""
mma_gemm_blockscaled: _Any
def mma_store(dtype: _Any, m: _Any, n: _Any, dst_ptr: _Any, src_ptr: _Any, src_offset: _Any, dst_stride: _Any) -> _Any:
    """Stores the results of a warp, a tile of 16 by 16, to rows that are `dst_stride` elements apart."""
def mma_store_index_map(thread_id: _Any, local_id: _Any) -> _Any:
    """(row, column) in a tile of 16 by 16 of the results that a lane holds."""
def mul2(x: _Any, y: _Any) -> _Any:
    """The product of each lane of vectors."""
def no_set_max_nreg(*arguments: _Any, **named: _Any) -> _Any:
    """A hint; results and checks are the same without it."""
overrides: _Any
def parallel(start: _Any, stop: _Any = ..., *, annotations: _Any = ...) -> _Any:
    """T.Parallel of one extent, or of the points from `start` to `stop`."""
parser: _Any
def power(x: _Any, y: _Any) -> _Any:
    """x to the power y; a whole constant y multiplies."""
@_typing.overload
def prim_func(func: _typing.Callable[..., _Any], private: bool = ..., check_well_formed: bool = ..., *, eager_jit: bool = ...) -> PrimFunc:
    """Records a function as a program, at once. Its parameters are annotated: T.Tensor(shape, dtype), T.int32, ..."""
@_typing.overload
def prim_func(func: None = None, private: bool = ..., check_well_formed: bool = ..., *, eager_jit: bool = ...) -> _typing.Callable[[_typing.Callable[..., _Any]], PrimFunc]:
    """Records a function as a program, at once. Its parameters are annotated: T.Tensor(shape, dtype), T.int32, ..."""
proxy: _Any
class ptr(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
def ptx_arrive_barrier(barrier_id: _Any) -> _Any:
    """Arrives at a barrier."""
def ptx_arrive_barrier_expect_tx(barrier_id: _Any, byte_count: _Any) -> _Any:
    """Announces bytes at a barrier and arrives."""
def ptx_arrive_cluster_barrier(mbarrier: _Any, cta_id: _Any) -> _Any:
    """Arrives at that barrier of block `cta_id` of the cluster."""
def ptx_cp_async(dst_access_ptr: _Any, src_access_ptr: _Any, num_elems: _Any, predicate: _Any = ...) -> _Any:
    """This thread copies neighbours from global to shared memory, zeros where `predicate` is false. They are there when T.ptx_wait_group, or the barrier of T.cp_async_barrier_noinc, says so."""
def ptx_cp_async_barrier(barrier_id: _Any) -> _Any:
    """What this thread has copied by T.ptx_cp_async is there before a phase of the barrier ends in which it arrives."""
def ptx_cp_async_bulk(dtype: _Any, shared_ptr: _Any, shared_offset: _Any, global_ptr: _Any, global_offset: _Any, bytes: _Any, barrier_id: _Any) -> _Any:
    """Copies bytes from global to shared memory, which complete at a barrier that has been told of them."""
def ptx_fence_barrier_init() -> _Any:
    """Barriers are there from the first statement of a launch on; the name changes nothing."""
def ptx_init_barrier_thread_count(barrier_id: _Any, thread_count: _Any) -> _Any:
    """How many threads arrive at a barrier of T.create_barriers."""
def ptx_ldmatrix(trans: _Any, num: _Any, src_access_ptr: _Any, dst_access_ptr: _Any) -> _Any:
    """Each lane takes its elements of `num` matrices of 8 rows of 16 bytes, whose rows lane 8 m + r points at; transposed if `trans`."""
def ptx_mma(dtype: _Any, shape: _Any, A_layout: _Any, B_layout: _Any, A_dtype: _Any, B_dtype: _Any, C_dtype: _Any, multiplicand_a: _Any, a_index: _Any, multiplicand_b: _Any, b_index: _Any, accumulator: _Any, c_index: _Any, saturate: _Any, operator: _Any = ...) -> _Any:
    """C += A B of a warp, on arrays of its threads: mma.sync.aligned of a shape such as m16n8k16."""
ptx_mma_block_scale: _Any
ptx_mma_sm70: _Any
ptx_mma_sp: _Any
ptx_tcgen05_mma_blockscaled_ss: _Any
ptx_tcgen05_mma_ss: _Any
ptx_tcgen05_mma_ts: _Any
def ptx_wait_barrier(barrier_id: _Any) -> _Any:
    """Waits for the first phase of a barrier, and every second one after it: those of parity 0."""
ptx_wgmma_rs: _Any
ptx_wgmma_sp_rs: _Any
ptx_wgmma_sp_ss: _Any
ptx_wgmma_ss: _Any
q_multiply_shift: _Any
q_multiply_shift_per_axis: _Any
def ramp(base: _Any, stride: _Any, lanes: _Any, span: _Any = ...) -> _Any:
    """The vector of base, base + stride, base + 2 stride, ..."""
random: _Any
def reads(*arguments: _Any, **named: _Any) -> _Any:
    """A hint; results and checks are the same without it."""
def reduce(buffer: _Any, out: _Any, reduce_type: _Any, dim: _Any, clear: _Any, batch: _Any = ..., annotations: _Any = ...) -> _Any:
    """A reduction by the name of its operation: sum, max, min, abssum, absmax, bitand, bitor, bitxor."""
reduce_op: _Any
def reducer_init(reducer: _Any, init: _Any = ...) -> _Any:
    """Begins a reduction: from `init`, which counts once in every element, or from what changes nothing."""
def reducer_update(target: _Any, value: _Any) -> _Any:
    """Contributes a value to an element of a reducer: T.reducer_update(acc[i], x)."""
ret: _Any
def rng_init(seed: _Any, seq: _Any = ..., off: _Any = ..., generator: _Any = ...) -> _Any:
    """Gives each thread a random generator; seq is by default the number of the thread in the grid."""
def rng_rand() -> _Any:
    """The thread's next 32 random bits."""
def rng_rand_float(bit: _Any = ..., dist: _Any = ...) -> _Any:
    """The thread's next random number: uniform in (0, 1], or normal with mean 0 and deviation 1."""
sblock: _Any
def sblock_alloc_buffer(shape: _Any, dtype: _Any = ..., data: _Any = ..., strides: _Any = ..., elem_offset: _Any = ..., scope: _Any = ..., align: _Any = ..., offset_factor: _Any = ..., buffer_type: _Any = ..., axis_separators: _Any = ...) -> _Any:
    """An allocation in the space that `scope` names."""
def sblock_attr(*arguments: _Any, **named: _Any) -> _Any:
    """A hint; results and checks are the same without it."""
scan_op: _Any
def serial(start: _Any, stop: _Any = ..., step: _Any = ..., annotations: _Any = ...) -> _Any:
    """An ordinary loop; range() in a traced function is this."""
class short(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
def start_profile_intrinsic(*arguments: _Any, **named: _Any) -> _Any:
    """A hint; results and checks are the same without it."""
def stg128(dst: _Any, value: _Any, pred: _Any = ...) -> _Any:
    """Stores 128 bits, words of uint32, from an element on; only where `pred` holds."""
def stg256(dst: _Any, value: _Any, pred: _Any = ...) -> _Any:
    """Stores 256 bits, words of uint32, from an element on; only where `pred` holds."""
def stg32(dst: _Any, value: _Any, pred: _Any = ...) -> _Any:
    """Stores 32 bits, words of uint32, from an element on; only where `pred` holds."""
def stg64(dst: _Any, value: _Any, pred: _Any = ...) -> _Any:
    """Stores 64 bits, words of uint32, from an element on; only where `pred` holds."""
def sts128(dst: _Any, value: _Any, pred: _Any = ...) -> _Any:
    """Stores 128 bits, words of uint32, from an element on; only where `pred` holds."""
def sts32(dst: _Any, value: _Any, pred: _Any = ...) -> _Any:
    """Stores 32 bits, words of uint32, from an element on; only where `pred` holds."""
def sts64(dst: _Any, value: _Any, pred: _Any = ...) -> _Any:
    """Stores 64 bits, words of uint32, from an element on; only where `pred` holds."""
def sub2(x: _Any, y: _Any) -> _Any:
    """The difference of each lane of vectors."""
symbolic: _Any
symbolics: _Any
def syncthreads(barrier_id: _Any = ..., arrive_count: _Any = ...) -> _Any:
    """A barrier of the block, or a named one of `arrive_count` threads."""
def target(target_config: _Any, host: _Any = ...) -> _Any:
    """A target by its name."""
tcgen05_after_thread_sync: _Any
tcgen05_before_thread_sync: _Any
tcgen05_cp_warpx4: _Any
tcgen05_gemm: _Any
tcgen05_gemm_blockscaled: _Any
tcgen05_gemm_sp: _Any
tcgen05_mma: _Any
tcgen05_mma_arrive: _Any
tcgen05_mma_blockscaled: _Any
tcgen05_sf_warp_transpose: _Any
class tfloat32(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
tfloat32x16: _Any
tfloat32x2: _Any
tfloat32x32: _Any
tfloat32x4: _Any
tfloat32x64: _Any
tfloat32x8: _Any
def thread_binding(start: _Any, stop: _Any = ..., thread: _Any = ..., annotations: _Any = ...) -> _Any:
    """The index of this thread, of `stop` threads along a dimension, or of this block."""
tile_schedule: _Any
tir: _Any
def tma_gather4(src: _Any, dst: _Any, col: _Any, rows: _Any, *, barrier: _Any, swizzle: _Any = ..., eviction_policy: _Any = ..., annotations: _Any = ...) -> _Any:
    """Loads four rows of a tensor, from a column on, as the rows of a shared tile; they complete at a barrier that has been told T.tma_gather4_bytes of them."""
def tma_gather4_bytes(K_box: _Any, dtype: _Any) -> _Any:
    """The bytes of four rows of K_box elements."""
def tma_load(*args: _Any) -> _Any:
    """Loads the box of a tensor map at coordinates, the innermost first, to a place in shared memory; it completes at a barrier that has been told its bytes: T.tma_load(map, barrier, place, x, y, ..., policy)."""
tma_load_2sm: _Any
def tma_scatter4(src: _Any, dst: _Any, col: _Any, rows: _Any, *, swizzle: _Any = ..., eviction_policy: _Any = ..., annotations: _Any = ...) -> _Any:
    """Stores the four rows of a shared tile to rows of a tensor, from a column on; T.tma_store_arrive and T.tma_store_wait wait for them."""
def transpose(src: _Any, dst: _Any, annotations: _Any = ...) -> _Any:
    """dst[..., j, i] = src[..., i, j]: the last two dimensions change places."""
def tvm_access_ptr(ptype: _Any, data: _Any, offset: _Any, extent: _Any, rw_mask: _Any) -> _Any:
    """A pointer to an element by its number."""
tvm_bmma_sync: _Any
tvm_call_cpacked: _Any
tvm_call_cpacked_lowered: _Any
tvm_call_packed: _Any
tvm_call_packed_lowered: _Any
tvm_fill_fragment: _Any
tvm_load_matrix_sync: _Any
tvm_mma_sync: _Any
tvm_stack_alloca: _Any
tvm_stack_make_array: _Any
tvm_stack_make_shape: _Any
def tvm_storage_sync(storage_scope: _Any, *ignored: _Any) -> _Any:
    """A barrier of the block ("shared"), of the warp ("warp") or of the grid ("global")."""
tvm_store_matrix_sync: _Any
tvm_struct_get: _Any
tvm_struct_set: _Any
def tvm_thread_allreduce(size: _Any, value: _Any, predicate: _Any, result: _Any, *threads: _Any, dtype: _Any = ...) -> _Any:
    """Combines `value` over all threads that differ in these thread indices alone; each of them gets `result`."""
def tvm_thread_invariant(cond: _Any, span: _Any = ...) -> _Any:
    """The condition itself."""
tvm_throw_last_error: _Any
def tvm_tuple(*value: _Any) -> _Any:
    """The values, as a tuple."""
def tvm_warp_activemask() -> _Any:
    """The lanes of the warp that are here, as bits."""
def tvm_warp_shuffle(mask: _Any, value: _Any, warp_id: _Any, width: _Any = ..., warp_size: _Any = ...) -> _Any:
    """The value of lane `warp_id` of the group of `width` lanes."""
def tvm_warp_shuffle_down(mask: _Any, value: _Any, offset: _Any, width: _Any = ..., warp_size: _Any = ...) -> _Any:
    """The value of the lane `offset` above."""
def tvm_warp_shuffle_up(mask: _Any, value: _Any, offset: _Any, width: _Any = ..., warp_size: _Any = ...) -> _Any:
    """The value of the lane `offset` below."""
def type_annotation(dtype: _Any) -> _Any:
    """A dtype where a call wants one as an operand."""
class uint(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
class uint16(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
uint16x16: _Any
uint16x2: _Any
uint16x32: _Any
uint16x4: _Any
uint16x64: _Any
uint16x8: _Any
class uint32(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
uint32x16: _Any
uint32x2: _Any
uint32x32: _Any
uint32x4: _Any
uint32x64: _Any
uint32x8: _Any
class uint4(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
uint4x16: _Any
uint4x2: _Any
uint4x32: _Any
uint4x4: _Any
uint4x64: _Any
uint4x8: _Any
class uint64(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
uint64x16: _Any
uint64x2: _Any
uint64x32: _Any
uint64x4: _Any
uint64x64: _Any
uint64x8: _Any
class uint8(PrimExpr, metaclass=_Dtype):
    def __init__(self, value: _Operand = ...) -> None: ...
uint8x16: _Any
uint8x2: _Any
uint8x32: _Any
uint8x4: _Any
uint8x64: _Any
uint8x8: _Any
def undef() -> _Any:
    """A value that is not to be relied on: zero."""
def unroll(start: _Any, stop: _Any = ..., step: _Any = ..., *, explicit: _Any = ..., unroll_factor: _Any = ..., annotations: _Any = ...) -> _Any:
    """A loop that is unrolled when it is compiled, as a whole or by so many iterations."""
utils: _Any
def validate_gemm_ab_dtypes(a_dtype: _Any, b_dtype: _Any, *, a_in_tmem: _Any = ..., allow_f8f6f4_mixed: _Any = ...) -> _Any:
    """An error unless both are the same dtype, or where that is allowed floats of 4, 6 and 8 bits."""
def var(dtype: _Any, name: _Any = ...) -> _Any:
    """A dimension or scalar that is known at the call."""
def vectorcombine(dtype: _Any, vec1: _Any, vec2: _Any) -> _Any:
    """The lanes of both vectors, one behind the other."""
def vectorhigh(dtype: _Any, vec: _Any) -> _Any:
    """The upper half of a vector's lanes."""
def vectorized(start: _Any, stop: _Any = ..., *, annotations: _Any = ...) -> _Any:
    """A loop whose accesses may become vector accesses."""
def vectorlow(dtype: _Any, vec: _Any) -> _Any:
    """The lower half of a vector's lanes."""
void: _Any
vscale: _Any
warp_specialize: _Any
def warpgroup_arrive() -> _Any:
    """Registers of products that do not wait are ordered by the compiler; the name changes nothing."""
def warpgroup_fence_operand(*arguments: _Any, **named: _Any) -> _Any:
    """A hint; results and checks are the same without it."""
def wgmma_mma(A: _Any, B: _Any, C: _Any, transpose_A: _Any = ..., transpose_B: _Any = ..., policy: _Any = ..., clear_accum: _Any = ..., k_pack: _Any = ..., wg_wait: _Any = ..., mbar: _Any = ..., annotations: _Any = ...) -> _Any:
    """A gemm that does not wait: T.wait_wgmma(n) does."""
def where(predicate: _Any, *values: _Any) -> _Any:
    """In a T.sblock: the rest of it runs only where the predicate holds."""
def writes(*arguments: _Any, **named: _Any) -> _Any:
    """A hint; results and checks are the same without it."""
ws: _Any
def ws_op(op_id: _Any) -> _Any:
    """A name for the statements in it, by which a schedule calls them."""
ws_schedule: _Any
def __cos(x: _Operand) -> PrimExpr:
    """cos, as CUDA's approximation on a GPU, element by element."""
def __exp(x: _Operand) -> PrimExpr:
    """exp, as CUDA's approximation on a GPU, element by element."""
def __exp10(x: _Operand) -> PrimExpr:
    """exp10, as CUDA's approximation on a GPU, element by element."""
def __log(x: _Operand) -> PrimExpr:
    """log, as CUDA's approximation on a GPU, element by element."""
def __log10(x: _Operand) -> PrimExpr:
    """log10, as CUDA's approximation on a GPU, element by element."""
def __log2(x: _Operand) -> PrimExpr:
    """log2, as CUDA's approximation on a GPU, element by element."""
def __sin(x: _Operand) -> PrimExpr:
    """sin, as CUDA's approximation on a GPU, element by element."""
def __tan(x: _Operand) -> PrimExpr:
    """tan, as CUDA's approximation on a GPU, element by element."""
def abs(x: _Operand) -> PrimExpr:
    """The scalar function abs, element by element."""
def acos(x: _Operand) -> PrimExpr:
    """The scalar function acos, element by element."""
def acosh(x: _Operand) -> PrimExpr:
    """The scalar function acosh, element by element."""
def activemask() -> _Any:
    """The lanes of the warp that are here, as bits."""
def add(a: _Operand, b: _Operand) -> PrimExpr:
    """a + b"""
def address_of(obj: _Operand) -> PrimExpr:
    """The address of an element of a global tensor."""
def all_sync(predicate: _Operand, mask: _Operand | None = None) -> _Any:
    """Whether all lanes of the warp, or of the mask, have it true."""
def alloc_barrier(arrive_count: _typing.Sequence[_int]) -> _Memory:
    """mbarriers, one for each count of arrivals."""
def alloc_fragment(shape: _Shape, dtype: _DType, scope: _object = 'local.fragment') -> _Memory:
    """A tile of the block, spread over the registers of its threads."""
def alloc_global(shape: _Shape, dtype: _DType, scope: _object = 'global') -> _Memory:
    """Global scratch that only this program sees."""
def alloc_local(shape: _Shape, dtype: _DType, scope: _object = 'local') -> _Memory:
    """An array of each thread."""
def alloc_reducer(shape: _Shape, dtype: _DType, op: _str = 'sum', replication: _object | None = None) -> _Memory:
    """A tile that points of Parallel add to; finalize_reducer makes it readable."""
def alloc_shared(shape: _Shape, dtype: _DType, scope: _object = 'shared.dyn') -> _Memory:
    """A tile in the shared memory of the block."""
def annotate_min_blocks_per_sm(n: _int | _Any) -> _Any:
    """As many blocks that a multiprocessor can hold at once: a bound on registers."""
def annotate_plan(lines: _str) -> _Any:
    """Lines that the launch's plan for a GPU is to have, as `tilewright compile --stage plan` prints them."""
def any_sync(predicate: _Operand, mask: _Operand | None = None) -> _Any:
    """Whether a lane of the warp, or of the mask, has it true."""
def asin(x: _Operand) -> PrimExpr:
    """The scalar function asin, element by element."""
def asinh(x: _Operand) -> PrimExpr:
    """The scalar function asinh, element by element."""
def assume(cond: _Operand) -> _Any:
    """Vouches for a condition. Before the first Kernel it is checked at the call."""
def async_copy(src: _Operand, dst: _Operand, *, coalesced_width: _object | None = None, annotations: _object | None = None, loop_layout: _object | None = None) -> _Any:
    """A copy of the threads from global to shared memory that does not wait: T.ptx_wait_group(n) does."""
def atan(x: _Operand) -> PrimExpr:
    """The scalar function atan, element by element."""
def atan2(x1: _Operand, x2: _Operand) -> PrimExpr:
    """The scalar function atan2, element by element."""
def atanh(x: _Operand) -> PrimExpr:
    """The scalar function atanh, element by element."""
def atomic_add(dst: _Operand, value: _Operand, memory_order: _str | None = None, return_prev: _bool | _Any = False, use_tma: _object = False, annotations: _object | None = None) -> _Any:
    """Adds to an element, or a tile to a tile, atomically."""
def atomic_addx2(dst: _Operand, value: _Operand, return_prev: _bool | _Any = False, memory_order: _str = 'relaxed') -> _Any:
    """Adds to each of 2 elements that follow each other, atomically."""
def atomic_addx4(dst: _Operand, value: _Operand, return_prev: _bool | _Any = False, memory_order: _str = 'relaxed') -> _Any:
    """Adds to each of 4 elements that follow each other, atomically."""
def atomic_and(dst: _Operand, value: _Operand, memory_order: _str | None = None, return_prev: _bool | _Any = False, use_tma: _object = False, annotations: _object | None = None) -> _Any:
    """Bitwise and into an element, atomically."""
def atomic_cas(dst: _Operand, compare: _Operand, value: _Operand) -> _Any:
    """Writes the element if it equals `compare`; gives the old value."""
def atomic_exchange(dst: _Operand, value: _Operand, memory_order: _str | None = None, return_prev: _bool | _Any = False, use_tma: _object = False, annotations: _object | None = None) -> _Any:
    """Stores, atomically, with the old value as result if asked."""
def atomic_load(src: _Operand, memory_order: _str = 'seq_cst') -> _Any:
    """Reads an element atomically."""
def atomic_max(dst: _Operand, value: _Operand, memory_order: _str | None = None, return_prev: _bool | _Any = False, use_tma: _object = False, annotations: _object | None = None) -> _Any:
    """Raises an element, or a tile by a tile, atomically."""
def atomic_min(dst: _Operand, value: _Operand, memory_order: _str | None = None, return_prev: _bool | _Any = False, use_tma: _object = False, annotations: _object | None = None) -> _Any:
    """Lowers an element, or a tile by a tile, atomically."""
def atomic_or(dst: _Operand, value: _Operand, memory_order: _str | None = None, return_prev: _bool | _Any = False, use_tma: _object = False, annotations: _object | None = None) -> _Any:
    """Bitwise or into an element, atomically."""
def atomic_store(dst: _Operand, src: _Operand, memory_order: _str = 'seq_cst') -> _Any:
    """Writes an element atomically."""
def atomic_xor(dst: _Operand, value: _Operand, memory_order: _str | None = None, return_prev: _bool | _Any = False, use_tma: _object = False, annotations: _object | None = None) -> _Any:
    """Bitwise exclusive or into an element, atomically."""
def ballot(predicate: _Operand, mask: _Operand | None = None) -> _Any:
    """The lanes of the warp, or of the mask, that have it true, as bits."""
def ballot_sync(predicate: _Operand, mask: _Operand | None = None) -> _Any:
    """The lanes of the warp, or of the mask, that have it true, as bits."""
def barrier_arrive(mbarrier: _Operand, cta_id: _Operand | None = None) -> _Any:
    """Arrives at an mbarrier, or at that of block `cta_id` of the cluster: who waits there may copy over what this block has read. What blocks say through global memory needs T.cluster_sync()."""
def barrier_wait(mbarrier: _Operand, parity: _Operand) -> _Any:
    """Waits for the phase of this parity."""
def bitwise_and(x: _Operand, y: _Operand) -> _Any:
    """a & b"""
def bitwise_not(x: _Operand) -> PrimExpr:
    """~x"""
def bitwise_or(x: _Operand, y: _Operand) -> _Any:
    """a | b"""
def bitwise_xor(x: _Operand, y: _Operand) -> _Any:
    """a ^ b"""
def block_rank_in_cluster() -> _Any:
    """The number of this block in its cluster, x first."""
def brev(x: _Operand) -> PrimExpr:
    """The scalar function brev, element by element."""
def cast(value: _Operand, dtype: _DType, round: _str = '', sat: _bool | _Any = True, rbits: _object | None = None) -> PrimExpr:
    """The value as another dtype: to nearest even, or with round='rz' toward zero; floats to integers truncate and saturate."""
def ceil(x: _Operand) -> PrimExpr:
    """The scalar function ceil, element by element."""
def ceildiv(lhs: _Operand, rhs: _Operand) -> _Any:
    """The quotient of integers, rounded up."""
def clamp(dst: _Operand, min_val: _Operand, max_val: _Operand) -> PrimExpr:
    """The scalar function clamp, element by element."""
def clear(buffer: _Operand, annotations: _object | None = None) -> _Any:
    """Sets every element of a tile to zero."""
def cluster_arrive() -> _Any:
    """Arrives at the barrier of the cluster; T.cluster_wait() is the other half."""
def cluster_arrive_relaxed() -> _Any:
    """Arrives at the barrier of the cluster; T.cluster_wait() is the other half."""
def cluster_sync() -> _Any:
    """A barrier of the cluster."""
def cluster_wait() -> _Any:
    """Waits for the blocks of the cluster, where this one has arrived."""
def clz(x: _Operand) -> PrimExpr:
    """The scalar function clz, element by element."""
def condition(a: _Operand) -> PrimExpr:
    """A bool as it is; whether an integer is not zero."""
def copy(src: _Operand, dst: _Operand, *, coalesced_width: _object | None = None, disable_tma: _object = False, eviction_policy: _object | None = None, prefer_instruction: _str | None = None, annotations: _object | None = None, loop_layout: _object | None = None) -> _Any:
    """Moves a tile between any two spaces and converts its elements. What lies outside of a global tensor reads as zero and is not written."""
def copy_cluster(src: _Operand, dst: _Operand, *, dst_block: _Operand | None = None, cluster_mask: _int | _Any = 0, remote_barrier: _Operand | None = None, eviction_policy: _object | None = None, coalesced_width: _object | None = None, annotations: _object | None = None, loop_layout: _object | None = None) -> _Any:
    """With `dst_block`, a copy from this block's shared memory or fragments to the tile `dst` of that block of the cluster: all threads of the block write it, and T.cluster_sync() says that it is there, or one arrival at that block's own `remote_barrier`. Without, a copy from global memory to the same tile of the blocks that `cluster_mask` has bits for: the lowest of them copies for all, other blocks for themselves. Waits."""
def copysign(x1: _Operand, x2: _Operand) -> PrimExpr:
    """The scalar function copysign, element by element."""
def cos(x: _Operand) -> PrimExpr:
    """The scalar function cos, element by element."""
def cosh(x: _Operand) -> PrimExpr:
    """The scalar function cosh, element by element."""
def cp_async_barrier_noinc(barrier: _Operand) -> _Any:
    """Arrives at an mbarrier when what this thread has copied by T.ptx_cp_async is there."""
def cp_async_wait(pending: _int | _Any = 0) -> _Any:
    """Waits for groups of async_copy."""
def cummax(src: _Operand, dst: _Operand | None = None, dim: _int | _Any = 0, reverse: _bool | _Any = False, annotations: _object | None = None) -> _Any:
    """Running maxima along one dimension; in reverse from its end."""
def cumsum(src: _Operand, dst: _Operand | None = None, dim: _int | _Any = 0, reverse: _bool | _Any = False, annotations: _object | None = None) -> _Any:
    """Running sums along one dimension; in reverse from its end."""
def dec_max_nreg(reg_count: _int | _Any, is_inc: _object | None = None) -> _Any:
    """Registers that a thread may use from here."""
def device_assert(condition: _Operand, msg: _str = '', no_stack_info: _object = False) -> _Any:
    """Stops the call where the condition is false."""
def div(a: _Operand, b: _Operand) -> PrimExpr:
    """a / b, of floats"""
def dp4a(A: _Operand, B: _Operand, C: _Operand) -> PrimExpr:
    """Adds to C the products of four int8 elements of A and B from these elements on; of packed int32 values it is the sum."""
def equal(a: _Operand, b: _Operand) -> PrimExpr:
    """a == b"""
def erf(x: _Operand) -> PrimExpr:
    """The scalar function erf, element by element."""
def exp(x: _Operand) -> PrimExpr:
    """The scalar function exp, element by element."""
def exp10(x: _Operand) -> PrimExpr:
    """The scalar function exp10, element by element."""
def exp2(x: _Operand) -> PrimExpr:
    """The scalar function exp2, element by element."""
def expm1(x: _Operand) -> PrimExpr:
    """The scalar function expm1, element by element."""
def fabs(x: _Operand) -> PrimExpr:
    """Another name of abs."""
def fence_proxy_async() -> _Any:
    """Orders writes before asynchronous copies that read them."""
def ffs(x: _Operand) -> PrimExpr:
    """The scalar function ffs, element by element."""
def fill(buffer: _Operand, value: _Operand, annotations: _object | None = None) -> _Any:
    """Sets every element of a tile."""
def finalize_reducer(reducer: _Operand, dst: _Operand | None = None, batch: _int | _Any = 1, annotations: _object | None = None) -> _Any:
    """Makes a reducer readable, or writes what it holds to `dst`; batch, how many elements are joined at once, changes no result."""
def floor(x: _Operand) -> PrimExpr:
    """The scalar function floor, element by element."""
def floordiv(a: _Operand, b: _Operand) -> _Any:
    """a // b of integers, rounded down"""
def floormod(a: _Operand, b: _Operand) -> _Any:
    """a % b of integers, with the sign of b"""
def fma(x: _Operand, y: _Operand, z: _Operand) -> PrimExpr:
    """Another name of ieee_fmaf."""
def fmod(x: _Operand, y: _Operand) -> PrimExpr:
    """The scalar function fmod, element by element."""
def gemm(A: _Operand, B: _Operand, C: _Operand, transpose_A: _bool | _Any = False, transpose_B: _bool | _Any = False, policy: _int | _Any = 0, clear_accum: _Operand = False, k_pack: _object = 1, wg_wait: _object = 0, mbar: None | None = None, annotations: _object | None = None) -> _Any:
    """C += A B on tiles on chip; op(A) is (M, K), op(B) is (K, N), C is (M, N)."""
def gemm_sp(A_sparse: _Operand, E: _Operand, B: _Operand, C: _Operand, transpose_A: _bool | _Any = False, transpose_E: _bool | _Any = False, transpose_B: _bool | _Any = False, policy: _int | _Any = 0, clear_accum: _Operand = False, wg_wait: _object = 0, annotations: _object | None = None) -> _Any:
    """C += A B, where A_sparse holds the kept elements of A, two of each four along a row (one of two of float32), and E has four bits for each group that say which."""
def get_block_binding(dim: _int | _Any = 0) -> _Any:
    """The index of this block in the grid."""
def get_cluster_dim(dim: _int | _Any = 0) -> _Any:
    """The number of blocks of a cluster along a dimension."""
def get_lane_idx(warp_size: _int | _Any = None) -> _Any:
    """The lane of this thread in its warp."""
def get_thread_binding(dim: _int | _Any = 0) -> _Any:
    """The index of this thread in its block."""
def get_thread_extent(dim: _int | _Any = 0) -> _Any:
    """The number of threads of a block along a dimension."""
def get_warp_group_idx(warp_size: _int | _Any = None, warps_per_group: _int | _Any = None) -> _Any:
    """Which group of warps this thread is in."""
def get_warp_idx(warp_size: _int | _Any = None) -> _Any:
    """Which warp of the block this thread is in."""
def get_warp_idx_sync(warp_size: _int | _Any = None) -> _Any:
    """Which warp of the block this thread is in."""
def greater(a: _Operand, b: _Operand) -> PrimExpr:
    """a > b"""
def greater_equal(a: _Operand, b: _Operand) -> PrimExpr:
    """a >= b"""
def hypot(x1: _Operand, x2: _Operand) -> PrimExpr:
    """The scalar function hypot, element by element."""
def ieee_add(x: _Operand, y: _Operand, rounding_mode: _str = 'rn') -> PrimExpr:
    """Rounded as rounding_mode says: rn (to nearest), rz (toward zero), ru (up), rd (down), the last three of float32 and float64; never joined with another operation."""
def ieee_fdiv(x: _Operand, y: _Operand, rounding_mode: _str = 'rn') -> PrimExpr:
    """Rounded as rounding_mode says: rn (to nearest), rz (toward zero), ru (up), rd (down), the last three of float32 and float64; never joined with another operation."""
def ieee_fmaf(x: _Operand, y: _Operand, z: _Operand, rounding_mode: _str = 'rn') -> PrimExpr:
    """Rounded as rounding_mode says: rn (to nearest), rz (toward zero), ru (up), rd (down), the last three of float32 and float64; never joined with another operation."""
def ieee_frcp(x: _Operand, rounding_mode: _str = 'rn') -> PrimExpr:
    """Rounded as rounding_mode says: rn (to nearest), rz (toward zero), ru (up), rd (down), the last three of float32 and float64; never joined with another operation."""
def ieee_frsqrt(x: _Operand) -> PrimExpr:
    """The scalar function ieee_frsqrt, element by element."""
def ieee_fsqrt(x: _Operand, rounding_mode: _str = 'rn') -> PrimExpr:
    """Rounded as rounding_mode says: rn (to nearest), rz (toward zero), ru (up), rd (down), the last three of float32 and float64; never joined with another operation."""
def ieee_mul(x: _Operand, y: _Operand, rounding_mode: _str = 'rn') -> PrimExpr:
    """Rounded as rounding_mode says: rn (to nearest), rz (toward zero), ru (up), rd (down), the last three of float32 and float64; never joined with another operation."""
def ieee_sub(x: _Operand, y: _Operand, rounding_mode: _str = 'rn') -> PrimExpr:
    """Rounded as rounding_mode says: rn (to nearest), rz (toward zero), ru (up), rd (down), the last three of float32 and float64; never joined with another operation."""
def if_then_else(cond: _Operand, t: _Operand, f: _Operand) -> PrimExpr:
    """t where the condition is true, else f; only that side is evaluated."""
def im2col(img: _Operand, col: _Operand, nhw_step: _Operand, c_step: _Operand, kernel: _int | _Any, stride: _int | _Any, dilation: _int | _Any, pad: _int | _Any, eviction_policy: _object | None = None) -> _Any:
    """Patches of an NHWC image as a tile of the patch matrix."""
def inc_max_nreg(reg_count: _int | _Any, is_inc: _object | None = None) -> _Any:
    """Registers that a thread may use from here."""
def infinity(dtype: _DType) -> PrimExpr:
    """Infinity of a float dtype."""
def isfinite(x: _Operand) -> PrimExpr:
    """The scalar function isfinite, element by element."""
def isinf(x: _Operand) -> PrimExpr:
    """The scalar function isinf, element by element."""
def isnan(x: _Operand) -> PrimExpr:
    """The scalar function isnan, element by element."""
def ldexp(x1: _Operand, x2: _Operand) -> PrimExpr:
    """The scalar function ldexp, element by element."""
def less(a: _Operand, b: _Operand) -> PrimExpr:
    """a < b"""
def less_equal(a: _Operand, b: _Operand) -> PrimExpr:
    """a <= b"""
def load_matrix(src: _Operand, dst: _Operand, matrices: _int | _Any, transpose: _bool | _Any = False) -> _Any:
    """Each lane takes its elements of matrices of 8 rows of 16 bytes; lane 8 m + r points at row r of matrix m."""
def log(x: _Operand) -> PrimExpr:
    """The scalar function log, element by element."""
def log10(x: _Operand) -> PrimExpr:
    """The scalar function log10, element by element."""
def log1p(x: _Operand) -> PrimExpr:
    """The scalar function log1p, element by element."""
def log2(x: _Operand) -> PrimExpr:
    """The scalar function log2, element by element."""
def logical_and(a: _Operand, b: _Operand) -> PrimExpr:
    """a and b; b is evaluated only where a is true."""
def logical_not(a: _Operand) -> PrimExpr:
    """not a"""
def logical_or(a: _Operand, b: _Operand) -> PrimExpr:
    """a or b; b is evaluated only where a is false."""
def loop_break() -> _Any:
    """Leaves the innermost loop: this thread only."""
def loop_continue() -> _Any:
    """Leaves this round of the innermost loop: this thread only."""
def make_tensor(ptr: _Operand, shape: _Shape, dtype: _DType = 'float32', strides: _Shape | None = None) -> _Any:
    """A global tensor at an address."""
def match_all_sync(value: _Operand, mask: _Operand | None = None) -> _Any:
    """All lanes, or those of the mask, as bits if their values are equal, else 0."""
def match_any_sync(value: _Operand, mask: _Operand | None = None) -> _Any:
    """The lanes of the warp, or of the mask, whose value is mine, as bits."""
def max(a: _Operand, b: _Operand) -> _Any:
    """The larger of two values; of NaN and a number the number."""
def max_nan(x: _Operand, y: _Operand) -> PrimExpr:
    """The scalar function max_nan, element by element."""
def max_value(dtype: _DType) -> PrimExpr:
    """The largest finite value of a dtype."""
def mbarrier_arrive(mbarrier: _Operand, cta_id: _Operand | None = None) -> _Any:
    """Arrives at an mbarrier, or at that of block `cta_id` of the cluster: who waits there may copy over what this block has read. What blocks say through global memory needs T.cluster_sync()."""
def mbarrier_arrive_expect_tx(mbarrier: _Operand, tx: _Operand) -> _Any:
    """Announces bytes and arrives."""
def mbarrier_expect_tx(mbarrier: _Operand, tx: _Operand) -> _Any:
    """Announces bytes."""
def mbarrier_wait_parity(mbarrier: _Operand, parity: _Operand) -> _Any:
    """Waits for the phase of this parity."""
def min(a: _Operand, b: _Operand) -> _Any:
    """The smaller of two values; of NaN and a number the number."""
def min_nan(x: _Operand, y: _Operand) -> PrimExpr:
    """The scalar function min_nan, element by element."""
def min_value(dtype: _DType) -> PrimExpr:
    """The least finite value of a dtype."""
def mul(a: _Operand, b: _Operand) -> PrimExpr:
    """a * b"""
def mulhi(x: _Operand, y: _Operand) -> PrimExpr:
    """The scalar function mulhi, element by element."""
def named_barrier_arrive(barrier_id: _Operand, thread_count: _int | _Any) -> _Any:
    """Arrives at a named barrier without waiting."""
def nearbyint(x: _Operand) -> PrimExpr:
    """The scalar function nearbyint, element by element."""
def neg(x: _Operand) -> PrimExpr:
    """The scalar function neg, element by element."""
def negative(a: _Operand) -> PrimExpr:
    """-a"""
def nextafter(x1: _Operand, x2: _Operand) -> PrimExpr:
    """The scalar function nextafter, element by element."""
def not_equal(a: _Operand, b: _Operand) -> PrimExpr:
    """a != b"""
def pdl_sync() -> _Any:
    """Waits until the kernels before this one have ended and what they wrote is there. Such a kernel is launched early, where they let it: before the wait it touches nothing that they do."""
def pdl_trigger() -> _Any:
    """Lets the kernels after this one begin, those that wait by T.pdl_sync(), once all blocks have come here or are done."""
def popcount(x: _Operand) -> PrimExpr:
    """The scalar function popcount, element by element."""
def pow(x: _Operand, y: _Operand) -> PrimExpr:
    """x to the power y; a whole constant y multiplies."""
def print(obj: _Operand | None = None, msg: _str = '', warp_group_id: _object = 0, warp_id: _object = 0) -> _Any:
    """Prints a value, a buffer, or a message."""
def ptx_commit_group() -> _Any:
    """Closes a group of async_copy."""
def ptx_wait_group(num: _int | _Any = 0) -> _Any:
    """Waits for groups of async_copy."""
def rcp_approx(x: _Operand) -> PrimExpr:
    """The scalar function rcp_approx, element by element."""
def reduce_absmax(buffer: _Operand, out: _Operand, dim: _int | _Any = -1, clear: _bool | _Any = True, batch: _object = 1, nan_propagate: _bool | _Any = False, annotations: _object | None = None) -> _Any:
    """The largest absolute value along one dimension of a tile, into `out`, which has the shape without it or with 1 there. Without clear it combines with what is in `out`."""
def reduce_abssum(buffer: _Operand, out: _Operand, dim: _int | _Any = -1, clear: _bool | _Any = True, batch: _object = 1, nan_propagate: _bool | _Any = False, annotations: _object | None = None) -> _Any:
    """The sum of the absolute values along one dimension of a tile, into `out`, which has the shape without it or with 1 there. Without clear it combines with what is in `out`."""
def reduce_bitand(buffer: _Operand, out: _Operand, dim: _int | _Any = -1, clear: _bool | _Any = True, batch: _object = 1, nan_propagate: _bool | _Any = False, annotations: _object | None = None) -> _Any:
    """The bitwise and along one dimension of a tile, into `out`, which has the shape without it or with 1 there. Without clear it combines with what is in `out`."""
def reduce_bitor(buffer: _Operand, out: _Operand, dim: _int | _Any = -1, clear: _bool | _Any = True, batch: _object = 1, nan_propagate: _bool | _Any = False, annotations: _object | None = None) -> _Any:
    """The bitwise or along one dimension of a tile, into `out`, which has the shape without it or with 1 there. Without clear it combines with what is in `out`."""
def reduce_bitxor(buffer: _Operand, out: _Operand, dim: _int | _Any = -1, clear: _bool | _Any = True, batch: _object = 1, nan_propagate: _bool | _Any = False, annotations: _object | None = None) -> _Any:
    """The bitwise exclusive or along one dimension of a tile, into `out`, which has the shape without it or with 1 there. Without clear it combines with what is in `out`."""
def reduce_max(buffer: _Operand, out: _Operand, dim: _int | _Any = -1, clear: _bool | _Any = True, batch: _object = 1, nan_propagate: _bool | _Any = False, annotations: _object | None = None) -> _Any:
    """The largest along one dimension of a tile, into `out`, which has the shape without it or with 1 there. Without clear it combines with what is in `out`."""
def reduce_min(buffer: _Operand, out: _Operand, dim: _int | _Any = -1, clear: _bool | _Any = True, batch: _object = 1, nan_propagate: _bool | _Any = False, annotations: _object | None = None) -> _Any:
    """The smallest along one dimension of a tile, into `out`, which has the shape without it or with 1 there. Without clear it combines with what is in `out`."""
def reduce_sum(buffer: _Operand, out: _Operand, dim: _int | _Any = -1, clear: _bool | _Any = True, batch: _object = 1, nan_propagate: _bool | _Any = False, annotations: _object | None = None) -> _Any:
    """The sum along one dimension of a tile, into `out`, which has the shape without it or with 1 there. Without clear it combines with what is in `out`."""
def reinterpret(value: _Operand, dtype: _DType) -> PrimExpr:
    """The same bits as another dtype of that width."""
def reshape(src: _Operand, shape: _Shape) -> _Any:
    """The same memory under another shape."""
def round(x: _Operand, rounding_mode: _str = 'ties-to-even') -> PrimExpr:
    """To a whole number."""
def rsqrt(x: _Operand) -> PrimExpr:
    """The scalar function rsqrt, element by element."""
def set_max_nreg(reg_count: _int | _Any, is_inc: _object | None = None) -> _Any:
    """Registers that a thread may use from here."""
def shfl_down(value: _Operand, delta: _Operand, width: _int | _Any = 32, mask: _object | None = None) -> _Any:
    """The value of another lane of the warp."""
def shfl_sync(value: _Operand, srcLane: _Operand, width: _int | _Any = 32, mask: _object | None = None) -> _Any:
    """The value of another lane of the warp."""
def shfl_up(value: _Operand, delta: _Operand, width: _int | _Any = 32, mask: _object | None = None) -> _Any:
    """The value of another lane of the warp."""
def shfl_xor(value: _Operand, delta: _Operand, width: _int | _Any = 32, mask: _object | None = None) -> _Any:
    """The value of another lane of the warp."""
def shift_left(x: _Operand, y: _Operand) -> _Any:
    """a << b"""
def shift_right(x: _Operand, y: _Operand) -> _Any:
    """a >> b"""
def shuffle_elect(thread_extent: _int | _Any) -> _Any:
    """Whether this is the first thread of its group of that many; of the block where that is 0."""
def sigmoid(x: _Operand) -> PrimExpr:
    """The scalar function sigmoid, element by element."""
def sin(x: _Operand) -> PrimExpr:
    """The scalar function sin, element by element."""
def sinh(x: _Operand) -> PrimExpr:
    """The scalar function sinh, element by element."""
def sqrt(x: _Operand) -> PrimExpr:
    """The scalar function sqrt, element by element."""
def sub(a: _Operand, b: _Operand) -> PrimExpr:
    """a - b"""
def sync_global() -> _Any:
    """A barrier of the grid."""
def sync_grid() -> _Any:
    """A barrier of the grid."""
def sync_threads(barrier_id: _Operand | None = None, arrive_count: _int | _Any = None) -> _Any:
    """A barrier of the block, or a named one of `arrive_count` threads."""
def sync_warp(mask: _object | None = None) -> _Any:
    """A barrier of the warp."""
def syncthreads_and(predicate: _Operand) -> _Any:
    """A barrier; whether all threads have it true."""
def syncthreads_count(predicate: _Operand) -> _Any:
    """A barrier; how many threads have it true."""
def syncthreads_or(predicate: _Operand) -> _Any:
    """A barrier; whether a thread has it true."""
def tan(x: _Operand) -> PrimExpr:
    """The scalar function tan, element by element."""
def tanh(x: _Operand) -> PrimExpr:
    """The scalar function tanh, element by element."""
def thread_return() -> _Any:
    """This thread is done with the launch."""
def tma_copy(src: _Operand, dst: _Operand, *, barrier: _Operand | None = None, cluster_mask: _int | _Any = 0, leader_scope_threads: _object | None = None, eviction_policy: _object | None = None, annotations: _object | None = None) -> _Any:
    """A bulk copy that does not wait: a load announces its bytes at `barrier` itself, which leaves T.barrier_arrive to the program; a store joins the queue of T.tma_store_wait."""
def tma_store_arrive() -> _Any:
    """Closes a group of bulk stores; T.tma_copy closes its own."""
def tma_store_wait(count: _int | _Any = 0, read: _object = True) -> _Any:
    """Waits for bulk stores."""
def trunc(x: _Operand) -> PrimExpr:
    """The scalar function trunc, element by element."""
def truncdiv(a: _Operand, b: _Operand) -> _Any:
    """The quotient of integers, rounded toward zero, as in C."""
def truncmod(a: _Operand, b: _Operand) -> _Any:
    """The remainder of truncdiv, with the sign of a, as in C."""
def use_swizzle(panel_size: _int | _Any, order: _str = 'row', enable: _bool | _Any = True) -> _Any:
    """The order in which blocks run: in panels of rows or columns."""
def view(src: _Operand, shape: _Shape | None = None, dtype: _DType | None = None, strides: _Shape | None = None) -> _Any:
    """The same memory under another shape and dtype of as many bits."""
def wait_wgmma(id: _int | _Any = 0) -> _Any:
    """Waits for wgmma_gemm."""
def warp_mma(a: _Operand, b: _Operand, c: _Operand, depth: _int | _Any, rows: _int | _Any = 16) -> _Any:
    """C += A B of a warp, on elements of its threads' arrays from these on, where mma.m16n8k* has them."""
def warp_reduce_bitand(value: _Operand) -> _Any:
    """Over the whole warp; every lane gets the result."""
def warp_reduce_bitor(value: _Operand) -> _Any:
    """Over the whole warp; every lane gets the result."""
def warp_reduce_max(value: _Operand) -> _Any:
    """Over the whole warp; every lane gets the result."""
def warp_reduce_min(value: _Operand) -> _Any:
    """Over the whole warp; every lane gets the result."""
def warp_reduce_sum(value: _Operand) -> _Any:
    """Over the whole warp; every lane gets the result."""
def warpgroup_commit_batch() -> _Any:
    """Closes a group of products that do not wait; T.wgmma_gemm closes its own."""
def warpgroup_wait(num_mma: _int | _Any = 0) -> _Any:
    """Another name of wait_wgmma."""
def wgmma_gemm(A: _Operand, B: _Operand, C: _Operand, transpose_A: _bool | _Any = False, transpose_B: _bool | _Any = False, policy: _int | _Any = 0, clear_accum: _Operand = False, k_pack: _object = 1, wg_wait: _object = 0, mbar: None | None = None, annotations: _object | None = None) -> _Any:
    """A gemm that does not wait: T.wait_wgmma(n) does."""
def wgmma_gemm_sp(A_sparse: _Operand, E: _Operand, B: _Operand, C: _Operand, transpose_A: _bool | _Any = False, transpose_E: _bool | _Any = False, transpose_B: _bool | _Any = False, policy: _int | _Any = 0, clear_accum: _Operand = False, wg_wait: _object = 0, annotations: _object | None = None) -> _Any:
    """A gemm_sp that does not wait: T.wait_wgmma(n) does."""
