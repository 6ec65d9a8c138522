"""Written by `python -m tilewright.stubs`."""
from typing import Any, Sequence

class dtype(str): ...

DType = Any  # "float16", T.float16, torch.float16
Buffer = Any  # what alloc_* and parameters are
Tile = Any  # a buffer, buffer[i, j] or buffer[i, a:b]
Value = Any  # a number, an expression, an element, a variable
Shape = Any  # an extent or a list of them
Add: Any
def And(a: Any, b: Any) -> Any:
    """a and b; b is evaluated only where a is true."""
Any: Any
AnyDType: Any
def Assert(condition: Any, message: Any, error_kind: Any = ...) -> Any:
    """Stops the call where the condition is false; before the first T.Kernel the call checks it."""
BaseTileScheduler: Any
def Broadcast(value: Any, lanes: Any, span: Any = ...) -> Any:
    """The same value in each lane of a vector."""
BufferLoad: Any
BufferRegion: Any
def CUDASourceCodeKernel(*blocks: Any, threads: Any = ..., source_code_or_path: Any, entry_name: Any, cluster_dims: Any = ...) -> Any:
    """A launch of a kernel that is CUDA C++, text or the path of a file: it gets the program's tensors and numbers in their order, and then the dimensions that are known at the call."""
Call: Any
CallEffectKind: Any
def Cast(dtype: Any, value: Any, annotations: Any = ..., span: Any = ...) -> Any:
    """T.cast with its arguments the other way round."""
def ClusterKernel(*blocks: Any, cluster_dims: Any = ..., threads: Any = ..., prelude: Any = ...) -> Any:
    """T.Kernel with clusters of blocks."""
CommReducer: Any
DataType: Any
Div: Any
EQ: Any
Else: Any
FloatImm: Any
FloorDiv: Any
FloorMod: Any
Fragment: Any
FragmentBuffer: Any
GE: Any
GT: Any
GemmWarpPolicy: Any
If: Any
IntImm: Any
IterVar: Any
JITFunc: Any
Kernel: Any
KernelLaunchFrame: Any
LE: Any
LT: Any
Layout: Any
Let: Any
LocalBuffer: Any
Max: Any
Min: Any
Mod: Any
Mul: Any
NE: Any
def Not(a: Any) -> Any:
    """not a"""
def Or(a: Any, b: Any) -> Any:
    """a or b; b is evaluated only where a is false."""
def Parallel(*extents: Any, coalesced_width: Any = ..., loop_layout: Any = ..., prefer_async: Any = ..., annotations: Any = ...) -> Any:
    """Every point of a box once, in no order, dealt to the threads."""
PartialFragment: Any
def Persistent(domain: Any, wave_size: Any, index: Any, group_size: Any = ..., num_stages: Any = ..., annotations: Any = ...) -> Any:
    """The share of one of wave_size blocks of the points of a box, in groups along its last dimension."""
PersistentTileScheduler: Any
def Pipelined(start: Any, stop: Any = ..., num_stages: Any = ..., order: Any = ..., stage: Any = ..., sync: Any = ..., group: Any = ..., annotations: Any = ...) -> Any:
    """A loop whose copies may run ahead by num_stages; its results are those of serial."""
PrimExpr: Any
PrimFunc: Any
ProducerLoad: Any
def Ptr(dtype: Any, storage_scope: Any = ...) -> Any:
    """The type of a parameter that is an address of such elements."""
def Ramp(base: Any, stride: Any, lanes: Any, span: Any = ...) -> Any:
    """The vector of base, base + stride, base + 2 stride, ... As an index it names as many elements: A[T.Ramp(i, 2, 4)]."""
Range: Any
Reduce: Any
Ref: Any
def Select(cond: Any, t: Any, f: Any) -> Any:
    """t where the condition is true, else f; only that side is evaluated."""
def Serial(start: Any, stop: Any = ..., step: Any = ..., annotations: Any = ...) -> Any:
    """An ordinary loop; range() in a traced function is this."""
SharedBuffer: Any
def Shuffle(vectors: Any, indices: Any, span: Any = ...) -> Any:
    """The lanes of these numbers of the vectors, counted through all of them: a vector, or a value where it is one."""
SizeVar: Any
SparseTensorCoreIntrinEmitter: Any
StridedTensor: Any
StringImm: Any
Sub: Any
TCGEN05DescriptorParams: Any
TCGEN05TensorCoreIntrinEmitter: Any
TVMBackendAllocWorkspace: Any
TVMBackendFreeWorkspace: Any
Tensor: Any
TensorCoreIntrinEmitter: Any
TensorCoreIntrinEmitterSM120: Any
TensorCoreIntrinEmitterWithLadderTransform: Any
Then: Any
def Unroll(start: Any, stop: Any = ..., step: Any = ..., *, explicit: Any = ..., unroll_factor: Any = ..., annotations: Any = ...) -> Any:
    """A loop that is unrolled when it is compiled, as a whole or by so many iterations."""
Var: Any
def Vectorized(start: Any, stop: Any = ..., *, annotations: Any = ...) -> Any:
    """A loop whose accesses may become vector accesses."""
WGMMADescriptorParams: Any
WGMMATensorCoreIntrinEmitter: Any
WGSparseTensorCoreIntrinEmitter: Any
WSID: Any
WSInstr: Any
WSOpRef: Any
WSPipeline: Any
WSRole: Any
WSSchedule: Any
WSScope: Any
WSSync: Any
WSSyncKind: Any
WarpSpecialize: Any
WarpSpecializeFrame: Any
While: Any
def __ldg(load_or_buf: Any, index: Any = ...) -> Any:
    """An element of a global tensor, which the device may read through its cache of constants."""
def abs2(x: Any) -> Any:
    """The magnitude of each lane of a vector."""
def access_ptr(base: Any, access_type: Any = ..., *extents: Any, offset: Any = ..., extent: Any = ..., ignore_last_ndim: Any = ...) -> Any:
    """A pointer to where a buffer, a region or an element begins; what it may be used for changes no result."""
def add2(x: Any, y: Any) -> Any:
    """The sum of each lane of vectors."""
def align_up(x: Any, y: Any) -> Any:
    """The least multiple of y that is at least x."""
def all_of(buffer: Any, *conditions: Any) -> Any:
    """Whether all elements of a buffer, or of a region of one dimension, are true; or all of some conditions."""
def alloc_buffer(shape: Any, dtype: Any = ..., *ignored: Any, scope: Any = ..., **also_ignored: Any) -> Any:
    """An allocation in the space that `scope` names."""
def alloc_cluster_barrier(arrive_count: Any) -> Any:
    """mbarriers at which blocks of the cluster may arrive: one, or one for each count of a list."""
alloc_descriptor: Any
alloc_tcgen05_instr_desc: Any
alloc_tcgen05_instruction_desc: Any
alloc_tcgen05_smem_desc: Any
alloc_tmem: Any
def alloc_var(dtype: Any, *arguments: Any, init: Any = ..., scope: Any = ...) -> Any:
    """A mutable scalar of each thread, zero unless `init` says otherwise. Assigning to its name stores."""
alloc_wgmma_desc: Any
def allocate(shape: Any, dtype: Any = ..., scope: Any = ..., annotations: Any = ...) -> Any:
    """An allocation in the space that `scope` names."""
def annotate_compile_flags(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
def annotate_consumer_reg_alloc(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
def annotate_l2_hit_ratio(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
def annotate_layout(layout_map: Any) -> Any:
    """Where elements of tiles lie. Never changes a result; tensors in global memory stay as their shape and strides say."""
def annotate_pass_configs(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
def annotate_producer_reg_dealloc(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
def annotate_restrict_buffers(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
def annotate_safe_value(safe_value_map: Any) -> Any:
    """What reads outside of global tensors give; in a T.sblock to its end."""
def annotate_ws_pipeline_depth(depth_map: Any) -> Any:
    """Says how many versions of a buffer there are. It changes no result: the compiler decides."""
def annotate_ws_schedule(schedule: Any) -> Any:
    """Says which warps do what. It changes no result: the compiler decides the roles."""
annotations: Any
def any_of(buffer: Any, *conditions: Any) -> Any:
    """Whether an element of a buffer, or of a region of one dimension, is true; or one of some conditions."""
anylist_getitem: Any
anylist_resetitem: Any
anylist_setitem_call_cpacked: Any
anylist_setitem_call_packed: Any
def arg(name: Any, obj: Any) -> Any:
    """A parameter of the program by its name: T.arg("A", T.Tensor((8,), "float32"))."""
ast: Any
atomic: Any
attr: Any
axis: Any
bfloat16: dtype
bfloat16x16: dtype
bfloat16x2: dtype
bfloat16x32: dtype
bfloat16x4: dtype
bfloat16x64: dtype
bfloat16x8: dtype
def bind(value: Any, type_annotation: Any = ..., *, var: Any = ...) -> Any:
    """Evaluates a value here, once."""
def bitwise_neg(x: Any) -> Any:
    """~x"""
block_name_suffix_context: Any
bool: dtype
boolean: dtype
def break_loop(span: Any = ...) -> Any:
    """Leaves the innermost loop."""
def broadcast(value: Any, lanes: Any, span: Any = ...) -> Any:
    """The same value in each lane of a vector."""
buffer: Any
def buffer_decl(shape: Any, dtype: Any = ..., data: Any = ..., strides: Any = ..., elem_offset: Any = ..., scope: Any = ..., align: Any = ..., offset_factor: Any = ..., buffer_type: Any = ..., axis_separators: Any = ...) -> Any:
    """A view of the memory `data`; without that an allocation in the space that `scope` names."""
def buffer_store(buffer: Any, value: Any, indices: Any, predicate: Any = ...) -> Any:
    """Stores to an element; only where the predicate holds."""
def buffer_var(dtype: Any, storage_scope: Any = ...) -> Any:
    """A parameter that is an address; T.match_buffer says what lies there."""
builtin: Any
def c2d_im2col(img: Any, col: Any, nhw_step: Any, c_step: Any, kernel: Any, stride: Any, dilation: Any, pad: Any, eviction_policy: Any = ...) -> Any:
    """Patches of an NHWC image as a tile of the patch matrix."""
call_cpacked: Any
call_cpacked_lowered: Any
def call_extern(*arguments: Any, dtype: Any = ...) -> Any:
    """Calls a device function by its name: T.call_extern("float32", "f", x), or T.call_extern("f", x, dtype="float32"). Buffers and T.access_ptr go as pointers, which the function may read and write by. Where it is one of CUDA's own that the language has too, the call is the language's, on every engine."""
def call_intrin(dtype: Any, func_name: Any, *args: Any, annotations: Any = ..., span: Any = ...) -> Any:
    """An operation by its name, "tir.exp" or "exp", as a value of a dtype."""
call_kernel: Any
def call_llvm_intrin(dtype: Any, name: Any, *args: Any, span: Any = ...) -> Any:
    """A function of LLVM's by its name, "llvm.sqrt.f32": those that are scalar functions here."""
def call_llvm_pure_intrin(dtype: Any, name: Any, *args: Any, span: Any = ...) -> Any:
    """A function of LLVM's by its name, "llvm.sqrt.f32": those that are scalar functions here."""
call_packed: Any
call_packed_lowered: Any
def call_pure_extern(dtype: Any, func_name: Any, *args: Any, span: Any = ...) -> Any:
    """T.call_extern of a function that only computes."""
def cdiv(lhs: Any, rhs: Any) -> Any:
    """The quotient of integers, rounded up."""
clc_get_first_ctaid_x: Any
clc_get_first_ctaid_y: Any
clc_get_first_ctaid_z: Any
clc_is_canceled: Any
clc_try_cancel: Any
clc_try_cancel_multicast: Any
comm_reducer: Any
common: Any
compute_gmma_descriptor: Any
compute_umma_descriptor: Any
def const(names: Any, dtype: Any = ...) -> Any:
    """Dimensions of an eager function that are taken from its tensors when it is called: M, N = T.const("M, N")."""
def continue_loop(span: Any = ...) -> Any:
    """Goes on with the next round of the innermost loop."""
copy_op: Any
def create_barriers(barrier_count: Any) -> Any:
    """mbarriers with numbers; T.ptx_init_barrier_thread_count says how many threads arrive at each."""
def create_list_of_mbarrier(*counts: Any) -> Any:
    """mbarriers that T.get_mbarrier(i) names."""
def create_tma_descriptor(*args: Any) -> Any:
    """A box to load, described as the driver's tensor maps are: dtype, rank, tensor, then of each dimension, the innermost first, extents, strides in bytes, extents of the box and steps in it, then interleave, swizzle, L2 promotion, fill. With a swizzle it loads to tiles that T.annotate_layout says are swizzled: elements are found at their indices."""
customize: Any
deallocate_tmem: Any
def decl_buffer(shape: Any, dtype: Any = ..., data: Any = ..., strides: Any = ..., elem_offset: Any = ..., scope: Any = ..., align: Any = ..., offset_factor: Any = ..., buffer_type: Any = ..., axis_separators: Any = ...) -> Any:
    """A view of the memory `data`; without that an allocation in the space that `scope` names."""
def disable_warp_group_reg_alloc(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
double: dtype
dtypes: Any
dyn: Any
dynamic: Any
eager: Any
def empty(*shape: Any, dtype: Any = ..., **ignored: Any) -> Any:
    """A tensor that the call makes and returns. T.empty(shape, dtype) or T.empty(M, N, dtype=...)."""
def end_profile_intrinsic(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
def env_thread(thread_tag: Any, dtype: Any = ...) -> Any:
    """The index of this thread or block, of as many as T.launch_thread says."""
def evaluate(value: Any) -> Any:
    """An expression as a statement; what it does is already recorded."""
experimental: Any
def extract_lane(vector: Any, lane: Any, span: Any = ...) -> Any:
    """One value of a vector."""
def fast_rcp(x: Any, rounding_mode: Any = ...) -> Any:
    """Rounded as rounding_mode says: rn (to nearest), rz (toward zero), ru (up), rd (down), the last three of float32 and float64; never joined with another operation."""
fastmath: Any
fill_op: Any
float: dtype
float16: dtype
float16x16: dtype
float16x2: dtype
float16x32: dtype
float16x4: dtype
float16x64: dtype
float16x8: dtype
float32: dtype
float32x16: dtype
float32x2: dtype
float32x32: dtype
float32x4: dtype
float32x64: dtype
float32x8: dtype
float4_e2m1: dtype
float4_e2m1_unpacked: dtype
float4_e2m1fn: dtype
float4_e2m1fnx16: dtype
float4_e2m1fnx2: dtype
float4_e2m1fnx32: dtype
float4_e2m1fnx4: dtype
float4_e2m1fnx64: dtype
float4_e2m1fnx8: dtype
float4_e2m1x16: dtype
float4_e2m1x2: dtype
float4_e2m1x32: dtype
float4_e2m1x4: dtype
float4_e2m1x64: dtype
float4_e2m1x8: dtype
float64: dtype
float64x16: dtype
float64x2: dtype
float64x32: dtype
float64x4: dtype
float64x64: dtype
float64x8: dtype
float6_e2m3fn: dtype
float6_e2m3fnx16: dtype
float6_e2m3fnx2: dtype
float6_e2m3fnx32: dtype
float6_e2m3fnx4: dtype
float6_e2m3fnx64: dtype
float6_e2m3fnx8: dtype
float6_e3m2fn: dtype
float6_e3m2fnx16: dtype
float6_e3m2fnx2: dtype
float6_e3m2fnx32: dtype
float6_e3m2fnx4: dtype
float6_e3m2fnx64: dtype
float6_e3m2fnx8: dtype
float8_e3m4: dtype
float8_e3m4x16: dtype
float8_e3m4x2: dtype
float8_e3m4x32: dtype
float8_e3m4x4: dtype
float8_e3m4x64: dtype
float8_e3m4x8: dtype
float8_e4m3: dtype
float8_e4m3b11fnuz: dtype
float8_e4m3b11fnuzx16: dtype
float8_e4m3b11fnuzx2: dtype
float8_e4m3b11fnuzx32: dtype
float8_e4m3b11fnuzx4: dtype
float8_e4m3b11fnuzx64: dtype
float8_e4m3b11fnuzx8: dtype
float8_e4m3fn: dtype
float8_e4m3fnuz: dtype
float8_e4m3fnuzx16: dtype
float8_e4m3fnuzx2: dtype
float8_e4m3fnuzx32: dtype
float8_e4m3fnuzx4: dtype
float8_e4m3fnuzx64: dtype
float8_e4m3fnuzx8: dtype
float8_e4m3fnx16: dtype
float8_e4m3fnx2: dtype
float8_e4m3fnx32: dtype
float8_e4m3fnx4: dtype
float8_e4m3fnx64: dtype
float8_e4m3fnx8: dtype
float8_e4m3x16: dtype
float8_e4m3x2: dtype
float8_e4m3x32: dtype
float8_e4m3x4: dtype
float8_e4m3x64: dtype
float8_e4m3x8: dtype
float8_e5m2: dtype
float8_e5m2fnuz: dtype
float8_e5m2fnuzx16: dtype
float8_e5m2fnuzx2: dtype
float8_e5m2fnuzx32: dtype
float8_e5m2fnuzx4: dtype
float8_e5m2fnuzx64: dtype
float8_e5m2fnuzx8: dtype
float8_e5m2x16: dtype
float8_e5m2x2: dtype
float8_e5m2x32: dtype
float8_e5m2x4: dtype
float8_e5m2x64: dtype
float8_e5m2x8: dtype
float8_e8m0: dtype
float8_e8m0fnu: dtype
float8_e8m0fnux16: dtype
float8_e8m0fnux2: dtype
float8_e8m0fnux32: dtype
float8_e8m0fnux4: dtype
float8_e8m0fnux64: dtype
float8_e8m0fnux8: dtype
float8_e8m0x16: dtype
float8_e8m0x2: dtype
float8_e8m0x32: dtype
float8_e8m0x4: dtype
float8_e8m0x64: dtype
float8_e8m0x8: dtype
def fma2(x: Any, y: Any, z: Any) -> Any:
    """x * y + z of each lane of vectors, rounded once."""
def fmul(x: Any, y: Any) -> Any:
    """x * y, which is never joined with a sum."""
frame: Any
def func_attr(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
func_name: Any
func_ret: Any
gemm_blockscaled: Any
gemm_op: Any
def gemm_v1(A: Any, B: Any, C: Any, transpose_A: Any = ..., transpose_B: Any = ..., policy: Any = ..., clear_accum: Any = ..., k_pack: Any = ..., wg_wait: Any = ..., mbar: Any = ..., annotations: Any = ...) -> Any:
    """C += A B on tiles on chip; op(A) is (M, K), op(B) is (K, N), C is (M, N)."""
def gemm_v2(A: Any, B: Any, C: Any, transpose_A: Any = ..., transpose_B: Any = ..., policy: Any = ..., clear_accum: Any = ..., k_pack: Any = ..., wg_wait: Any = ..., mbar: Any = ..., annotations: Any = ...) -> Any:
    """C += A B on tiles on chip; op(A) is (M, K), op(B) is (K, N), C is (M, N)."""
get_active_lane_mask: Any
def get_block_bindings() -> Any:
    """The index of this block in the grid, in each dimension."""
def get_block_extent(dim: Any = ...) -> Any:
    """The number of blocks of the grid along a dimension."""
def get_block_extents() -> Any:
    """The blocks of the grid along each dimension."""
def get_cluster_dims() -> Any:
    """The blocks of a cluster along each dimension."""
def get_cluster_extent(dim: Any = ...) -> Any:
    """The number of clusters of the grid along a dimension."""
def get_cluster_extents() -> Any:
    """The clusters of the grid along each dimension."""
def get_cluster_id(dim: Any = ...) -> Any:
    """The index of this block's cluster in the grid of clusters along a dimension."""
def get_cluster_ids() -> Any:
    """The index of this block's cluster, in each dimension."""
def get_cluster_size() -> Any:
    """The number of blocks of a cluster."""
def get_ldmatrix_offset(matrix: Any, row_idx: Any, col_idx: Any, stride: Any, dtype: Any = ..., transposed: Any = ...) -> Any:
    """(row, column) that lane `row_idx` gives ldmatrix of four matrices the address of."""
get_let_value: Any
def get_mbarrier(index: Any) -> Any:
    """One of T.create_list_of_mbarrier."""
def get_mma_micro_size(dtype: Any) -> Any:
    """(rows, columns, depth) of the product of one warp: 16 bits 16 deep, 8 bits 32."""
def get_swizzle_layout(row_idx: Any, col_idx: Any, row_size: Any, dtype: Any, swizzle_bytes: Any = ...) -> Any:
    """Where an element of a shared tile lies so that equal columns of neighbouring rows are in different banks."""
def get_thread_bindings() -> Any:
    """The index of this thread in its block, in each dimension."""
def get_thread_extents() -> Any:
    """The threads of a block along each dimension."""
def get_tvm_dtype(value: Any) -> Any:
    """A dtype by any of its names, or of PyTorch or NumPy."""
def grid(*extents: Any) -> Any:
    """Nested serial loops."""
half: dtype
handle: Any
def handle_add_byte_offset(handle: Any, offset: Any) -> Any:
    """The address so many bytes further on."""
has_let_value: Any
def ignore_loop_partition(cond: Any, span: Any = ...) -> Any:
    """The condition itself."""
def import_source(source: Any = ...) -> Any:
    """CUDA C++ that defines what T.call_extern calls. Engines other than cuda refuse calls of it."""
increase_descriptor_offset: Any
index_map: Any
def index_to_coordinates(index: Any, shape: Any) -> Any:
    """The index in each dimension of an element by its number in row-major order."""
def indexdiv(a: Any, b: Any) -> Any:
    """a // b of integers, rounded down"""
def indexmod(a: Any, b: Any) -> Any:
    """a % b of integers, with the sign of b"""
init: Any
initialize_tcgen05_descriptor: Any
initialize_wgmma_descriptor: Any
def inline(func: Any) -> Any:
    """A method that is recorded where it is called."""
int: dtype
int16: dtype
int16x16: dtype
int16x2: dtype
int16x32: dtype
int16x4: dtype
int16x64: dtype
int16x8: dtype
int32: dtype
int32x16: dtype
int32x2: dtype
int32x32: dtype
int32x4: dtype
int32x64: dtype
int32x8: dtype
int4: dtype
int4x16: dtype
int4x2: dtype
int4x32: dtype
int4x4: dtype
int4x64: dtype
int4x8: dtype
int64: dtype
int64x16: dtype
int64x2: dtype
int64x32: dtype
int64x4: dtype
int64x64: dtype
int64x8: dtype
int8: dtype
int8x16: dtype
int8x2: dtype
int8x32: dtype
int8x4: dtype
int8x64: dtype
int8x8: dtype
def int_div(a: Any, b: Any) -> Any:
    """a // b of integers, rounded down"""
def is_f8f6f4_family(value: Any) -> Any:
    """Whether it is a float of 4, 6 or 8 bits that products of mixed types take."""
def is_float4(value: Any) -> Any:
    """Whether it is a float of 4 bits."""
def is_float4_e2m1_unpacked(value: Any) -> Any:
    """Whether it is fp4 with a byte for each element, which is no type of its own here."""
def is_float4_e2m1fn(value: Any) -> Any:
    """Whether it is float4_e2m1fn, two of which share a byte."""
def isnullptr(x: Any, span: Any = ...) -> Any:
    """Whether an address is null: a T.ptr, or where a tensor lies."""
iter_var: Any
kernel: Any
def launch_thread(thread: Any, extent: Any) -> Any:
    """The index of this thread or block along a dimension; the launch is T.Kernel's."""
def ldg128(src: Any, pred: Any = ...) -> Any:
    """128 bits from an element on, as uint32; zeros where `pred` does not hold."""
def ldg256(src: Any, pred: Any = ...) -> Any:
    """256 bits from an element on, as uint32; zeros where `pred` does not hold."""
def ldg32(src: Any, pred: Any = ...) -> Any:
    """32 bits from an element on, as uint32; zeros where `pred` does not hold."""
def ldg64(src: Any, pred: Any = ...) -> Any:
    """64 bits from an element on, as uint32; zeros where `pred` does not hold."""
def lds128(src: Any, pred: Any = ...) -> Any:
    """128 bits from an element on, as uint32; zeros where `pred` does not hold."""
def lds32(src: Any, pred: Any = ...) -> Any:
    """32 bits from an element on, as uint32; zeros where `pred` does not hold."""
def lds64(src: Any, pred: Any = ...) -> Any:
    """64 bits from an element on, as uint32; zeros where `pred` does not hold."""
def let(v: Any, value: Any, body: Any = ...) -> Any:
    """Sets a variable that T.int32() and its like have made."""
def likely(cond: Any, span: Any = ...) -> Any:
    """The condition itself."""
llvm_lookup_intrinsic_id: Any
logical: Any
long: dtype
lookup_param: Any
loop: Any
def macro(function: Any = ..., **ignored: Any) -> Any:
    """A function that is recorded wherever it is called."""
make_blockscaled_gemm_layout: Any
def make_linear_layout(buffer: Any) -> Any:
    """Row-major."""
def make_mma_swizzle_layout(shared_buf: Any, is_smooth: Any = ...) -> Any:
    """Spreads the rows of a shared tile over the memory banks; smooth, it lies row-major."""
def make_swizzle_layout(buffer: Any = ..., k_major: Any = ..., allow_pad: Any = ...) -> Any:
    """Spreads the rows of a shared tile over the memory banks."""
def make_swizzled_layout(buffer: Any = ..., k_major: Any = ..., allow_pad: Any = ...) -> Any:
    """Spreads the rows of a shared tile over the memory banks."""
def make_tensor_from_addr(addr: Any, shape: Any, dtype: Any = ..., strides: Any = ..., storage_scope: Any = ...) -> Any:
    """A global tensor at an address."""
def match_buffer(handle: Any, shape: Any, dtype: Any = ..., strides: Any = ..., **ignored: Any) -> Any:
    """The tensor behind a parameter of type T.handle, or a view of an address."""
math_intrinsics: Any
def max2(x: Any, y: Any) -> Any:
    """The larger of each lane of vectors."""
meta: Any
def meta_class(cls: Any) -> Any:
    """A class whose methods are recorded where they are called, like macros; state lives in T.alloc_var."""
def meta_var(cond: Any, span: Any = ...) -> Any:
    """The condition itself."""
def min2(x: Any, y: Any) -> Any:
    """The smaller of each lane of vectors."""
def mma_fill(dtype: Any, local_size: Any, local_ptr: Any, offset: Any) -> Any:
    """Sets the results that a lane holds to zero."""
mma_gemm_blockscaled: Any
def mma_store(dtype: Any, m: Any, n: Any, dst_ptr: Any, src_ptr: Any, src_offset: Any, dst_stride: Any) -> Any:
    """Stores the results of a warp, a tile of 16 by 16, to rows that are `dst_stride` elements apart."""
def mma_store_index_map(thread_id: Any, local_id: Any) -> Any:
    """(row, column) in a tile of 16 by 16 of the results that a lane holds."""
def mul2(x: Any, y: Any) -> Any:
    """The product of each lane of vectors."""
def no_set_max_nreg(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
overrides: Any
def parallel(start: Any, stop: Any = ..., *, annotations: Any = ...) -> Any:
    """T.Parallel of one extent, or of the points from `start` to `stop`."""
parser: Any
def power(x: Any, y: Any) -> Any:
    """x to the power y; a whole constant y multiplies."""
def prim_func(function: Any = ..., **ignored: Any) -> Any:
    """Records a function as a program, at once. Its parameters are annotated: T.Tensor(shape, dtype), T.int32, ..."""
proxy: Any
ptr: dtype
def ptx_arrive_barrier(barrier_id: Any) -> Any:
    """Arrives at a barrier."""
def ptx_arrive_barrier_expect_tx(barrier_id: Any, byte_count: Any) -> Any:
    """Announces bytes at a barrier and arrives."""
def ptx_arrive_cluster_barrier(mbarrier: Any, cta_id: Any) -> Any:
    """Arrives at that barrier of block `cta_id` of the cluster."""
def ptx_cp_async(dst_access_ptr: Any, src_access_ptr: Any, num_elems: Any, predicate: Any = ...) -> Any:
    """This thread copies neighbours from global to shared memory, zeros where `predicate` is false. They are there when T.ptx_wait_group, or the barrier of T.cp_async_barrier_noinc, says so."""
def ptx_cp_async_barrier(barrier_id: Any) -> Any:
    """What this thread has copied by T.ptx_cp_async is there before a phase of the barrier ends in which it arrives."""
def ptx_cp_async_bulk(dtype: Any, shared_ptr: Any, shared_offset: Any, global_ptr: Any, global_offset: Any, bytes: Any, barrier_id: Any) -> Any:
    """Copies bytes from global to shared memory, which complete at a barrier that has been told of them."""
def ptx_fence_barrier_init() -> Any:
    """Barriers are there from the first statement of a launch on; the name changes nothing."""
def ptx_init_barrier_thread_count(barrier_id: Any, thread_count: Any) -> Any:
    """How many threads arrive at a barrier of T.create_barriers."""
def ptx_ldmatrix(trans: Any, num: Any, src_access_ptr: Any, dst_access_ptr: Any) -> Any:
    """Each lane takes its elements of `num` matrices of 8 rows of 16 bytes, whose rows lane 8 m + r points at; transposed if `trans`."""
def ptx_mma(dtype: Any, shape: Any, A_layout: Any, B_layout: Any, A_dtype: Any, B_dtype: Any, C_dtype: Any, multiplicand_a: Any, a_index: Any, multiplicand_b: Any, b_index: Any, accumulator: Any, c_index: Any, saturate: Any, operator: Any = ...) -> Any:
    """C += A B of a warp, on arrays of its threads: mma.sync.aligned of a shape such as m16n8k16."""
ptx_mma_block_scale: Any
ptx_mma_sm70: Any
ptx_mma_sp: Any
ptx_tcgen05_mma_blockscaled_ss: Any
ptx_tcgen05_mma_ss: Any
ptx_tcgen05_mma_ts: Any
def ptx_wait_barrier(barrier_id: Any) -> Any:
    """Waits for the first phase of a barrier, and every second one after it: those of parity 0."""
ptx_wgmma_rs: Any
ptx_wgmma_sp_rs: Any
ptx_wgmma_sp_ss: Any
ptx_wgmma_ss: Any
q_multiply_shift: Any
q_multiply_shift_per_axis: Any
def ramp(base: Any, stride: Any, lanes: Any, span: Any = ...) -> Any:
    """The vector of base, base + stride, base + 2 stride, ..."""
random: Any
def reads(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
def reduce(buffer: Any, out: Any, reduce_type: Any, dim: Any, clear: Any, batch: Any = ..., annotations: Any = ...) -> Any:
    """A reduction by the name of its operation: sum, max, min, abssum, absmax, bitand, bitor, bitxor."""
reduce_op: Any
def reducer_init(reducer: Any, init: Any = ...) -> Any:
    """Begins a reduction: from `init`, which counts once in every element, or from what changes nothing."""
def reducer_update(target: Any, value: Any) -> Any:
    """Contributes a value to an element of a reducer: T.reducer_update(acc[i], x)."""
ret: Any
def rng_init(seed: Any, seq: Any = ..., off: Any = ..., generator: Any = ...) -> Any:
    """Gives each thread a random generator; seq is by default the number of the thread in the grid."""
def rng_rand() -> Any:
    """The thread's next 32 random bits."""
def rng_rand_float(bit: Any = ..., dist: Any = ...) -> Any:
    """The thread's next random number: uniform in (0, 1], or normal with mean 0 and deviation 1."""
sblock: Any
def sblock_alloc_buffer(shape: Any, dtype: Any = ..., data: Any = ..., strides: Any = ..., elem_offset: Any = ..., scope: Any = ..., *ignored: Any, **also_ignored: Any) -> Any:
    """An allocation in the space that `scope` names."""
def sblock_attr(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
scan_op: Any
def serial(start: Any, stop: Any = ..., step: Any = ..., annotations: Any = ...) -> Any:
    """An ordinary loop; range() in a traced function is this."""
short: dtype
def start_profile_intrinsic(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
def stg128(dst: Any, value: Any, pred: Any = ...) -> Any:
    """Stores 128 bits, words of uint32, from an element on; only where `pred` holds."""
def stg256(dst: Any, value: Any, pred: Any = ...) -> Any:
    """Stores 256 bits, words of uint32, from an element on; only where `pred` holds."""
def stg32(dst: Any, value: Any, pred: Any = ...) -> Any:
    """Stores 32 bits, words of uint32, from an element on; only where `pred` holds."""
def stg64(dst: Any, value: Any, pred: Any = ...) -> Any:
    """Stores 64 bits, words of uint32, from an element on; only where `pred` holds."""
def sts128(dst: Any, value: Any, pred: Any = ...) -> Any:
    """Stores 128 bits, words of uint32, from an element on; only where `pred` holds."""
def sts32(dst: Any, value: Any, pred: Any = ...) -> Any:
    """Stores 32 bits, words of uint32, from an element on; only where `pred` holds."""
def sts64(dst: Any, value: Any, pred: Any = ...) -> Any:
    """Stores 64 bits, words of uint32, from an element on; only where `pred` holds."""
def sub2(x: Any, y: Any) -> Any:
    """The difference of each lane of vectors."""
symbolic: Any
symbolics: Any
def syncthreads(barrier_id: Any = ..., arrive_count: Any = ...) -> Any:
    """A barrier of the block, or a named one of `arrive_count` threads."""
def target(target_config: Any, host: Any = ...) -> Any:
    """A target by its name."""
tcgen05_after_thread_sync: Any
tcgen05_before_thread_sync: Any
tcgen05_cp_warpx4: Any
tcgen05_gemm: Any
tcgen05_gemm_blockscaled: Any
tcgen05_gemm_sp: Any
tcgen05_mma: Any
tcgen05_mma_arrive: Any
tcgen05_mma_blockscaled: Any
tcgen05_sf_warp_transpose: Any
tfloat32: dtype
tfloat32x16: dtype
tfloat32x2: dtype
tfloat32x32: dtype
tfloat32x4: dtype
tfloat32x64: dtype
tfloat32x8: dtype
def thread_binding(start: Any, stop: Any = ..., thread: Any = ..., annotations: Any = ...) -> Any:
    """The index of this thread, of `stop` threads along a dimension, or of this block."""
tile_schedule: Any
tir: Any
def tma_gather4(src: Any, dst: Any, col: Any, rows: Any, *, barrier: Any, swizzle: Any = ..., eviction_policy: Any = ..., annotations: Any = ...) -> Any:
    """Loads four rows of a tensor, from a column on, as the rows of a shared tile; they complete at a barrier that has been told T.tma_gather4_bytes of them."""
def tma_gather4_bytes(K_box: Any, dtype: Any) -> Any:
    """The bytes of four rows of K_box elements."""
def tma_load(*args: Any) -> Any:
    """Loads the box of a tensor map at coordinates, the innermost first, to a place in shared memory; it completes at a barrier that has been told its bytes: T.tma_load(map, barrier, place, x, y, ..., policy)."""
tma_load_2sm: Any
def tma_scatter4(src: Any, dst: Any, col: Any, rows: Any, *, swizzle: Any = ..., eviction_policy: Any = ..., annotations: Any = ...) -> Any:
    """Stores the four rows of a shared tile to rows of a tensor, from a column on; T.tma_store_arrive and T.tma_store_wait wait for them."""
def transpose(src: Any, dst: Any, annotations: Any = ...) -> Any:
    """dst[..., j, i] = src[..., i, j]: the last two dimensions change places."""
def tvm_access_ptr(ptype: Any, data: Any, offset: Any, extent: Any, rw_mask: Any) -> Any:
    """A pointer to an element by its number."""
tvm_bmma_sync: Any
tvm_call_cpacked: Any
tvm_call_cpacked_lowered: Any
tvm_call_packed: Any
tvm_call_packed_lowered: Any
tvm_fill_fragment: Any
tvm_load_matrix_sync: Any
tvm_mma_sync: Any
tvm_stack_alloca: Any
tvm_stack_make_array: Any
tvm_stack_make_shape: Any
def tvm_storage_sync(storage_scope: Any, *ignored: Any) -> Any:
    """A barrier of the block ("shared"), of the warp ("warp") or of the grid ("global")."""
tvm_store_matrix_sync: Any
tvm_struct_get: Any
tvm_struct_set: Any
def tvm_thread_allreduce(size: Any, value: Any, predicate: Any, result: Any, *threads: Any, dtype: Any = ...) -> Any:
    """Combines `value` over all threads that differ in these thread indices alone; each of them gets `result`."""
def tvm_thread_invariant(cond: Any, span: Any = ...) -> Any:
    """The condition itself."""
tvm_throw_last_error: Any
def tvm_tuple(*value: Any) -> Any:
    """The values, as a tuple."""
def tvm_warp_activemask() -> Any:
    """The lanes of the warp that are here, as bits."""
def tvm_warp_shuffle(mask: Any, value: Any, lane: Any, width: Any = ..., warp_size: Any = ...) -> Any:
    """The value of a lane of the group of `width` lanes."""
def tvm_warp_shuffle_down(mask: Any, value: Any, delta: Any, width: Any = ..., warp_size: Any = ...) -> Any:
    """The value of the lane `delta` above."""
def tvm_warp_shuffle_up(mask: Any, value: Any, delta: Any, width: Any = ..., warp_size: Any = ...) -> Any:
    """The value of the lane `delta` below."""
def type_annotation(dtype: Any) -> Any:
    """A dtype where a call wants one as an operand."""
uint: dtype
uint16: dtype
uint16x16: dtype
uint16x2: dtype
uint16x32: dtype
uint16x4: dtype
uint16x64: dtype
uint16x8: dtype
uint32: dtype
uint32x16: dtype
uint32x2: dtype
uint32x32: dtype
uint32x4: dtype
uint32x64: dtype
uint32x8: dtype
uint4: dtype
uint4x16: dtype
uint4x2: dtype
uint4x32: dtype
uint4x4: dtype
uint4x64: dtype
uint4x8: dtype
uint64: dtype
uint64x16: dtype
uint64x2: dtype
uint64x32: dtype
uint64x4: dtype
uint64x64: dtype
uint64x8: dtype
uint8: dtype
uint8x16: dtype
uint8x2: dtype
uint8x32: dtype
uint8x4: dtype
uint8x64: dtype
uint8x8: dtype
def undef() -> Any:
    """A value that is not to be relied on: zero."""
def unroll(start: Any, stop: Any = ..., step: Any = ..., *, explicit: Any = ..., unroll_factor: Any = ..., annotations: Any = ...) -> Any:
    """A loop that is unrolled when it is compiled, as a whole or by so many iterations."""
utils: Any
def validate_gemm_ab_dtypes(a_dtype: Any, b_dtype: Any, *, a_in_tmem: Any = ..., allow_f8f6f4_mixed: Any = ...) -> Any:
    """An error unless both are the same dtype, or where that is allowed floats of 4, 6 and 8 bits."""
def var(dtype: Any, name: Any = ...) -> Any:
    """A dimension or scalar that is known at the call."""
def vectorcombine(dtype: Any, vec1: Any, vec2: Any) -> Any:
    """The lanes of both vectors, one behind the other."""
def vectorhigh(dtype: Any, vec: Any) -> Any:
    """The upper half of a vector's lanes."""
def vectorized(start: Any, stop: Any = ..., *, annotations: Any = ...) -> Any:
    """A loop whose accesses may become vector accesses."""
def vectorlow(dtype: Any, vec: Any) -> Any:
    """The lower half of a vector's lanes."""
void: Any
vscale: Any
warp_specialize: Any
def warpgroup_arrive() -> Any:
    """Registers of products that do not wait are ordered by the compiler; the name changes nothing."""
def warpgroup_fence_operand(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
def wgmma_mma(A: Any, B: Any, C: Any, transpose_A: Any = ..., transpose_B: Any = ..., policy: Any = ..., clear_accum: Any = ..., k_pack: Any = ..., wg_wait: Any = ..., mbar: Any = ..., annotations: Any = ...) -> Any:
    """A gemm that does not wait: T.wait_wgmma(n) does."""
def where(predicate: Any, *values: Any) -> Any:
    """In a T.sblock: the rest of it runs only where the predicate holds."""
def writes(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
ws: Any
def ws_op(op_id: Any) -> Any:
    """A name for the statements in it, by which a schedule calls them."""
ws_schedule: Any
def __cos(x: Value) -> Any:
    """cos, as CUDA's approximation on a GPU, element by element."""
def __exp(x: Value) -> Any:
    """exp, as CUDA's approximation on a GPU, element by element."""
def __exp10(x: Value) -> Any:
    """exp10, as CUDA's approximation on a GPU, element by element."""
def __log(x: Value) -> Any:
    """log, as CUDA's approximation on a GPU, element by element."""
def __log10(x: Value) -> Any:
    """log10, as CUDA's approximation on a GPU, element by element."""
def __log2(x: Value) -> Any:
    """log2, as CUDA's approximation on a GPU, element by element."""
def __sin(x: Value) -> Any:
    """sin, as CUDA's approximation on a GPU, element by element."""
def __tan(x: Value) -> Any:
    """tan, as CUDA's approximation on a GPU, element by element."""
def abs(x: Value) -> Any:
    """The scalar function abs, element by element."""
def acos(x: Value) -> Any:
    """The scalar function acos, element by element."""
def acosh(x: Value) -> Any:
    """The scalar function acosh, element by element."""
def activemask() -> Any:
    """The lanes of the warp that are here, as bits."""
def add(a: Value, b: Value) -> Any:
    """a + b"""
def address_of(obj: Tile) -> Any:
    """The address of an element of a global tensor."""
def all_sync(predicate: Value, mask: object = None) -> Any:
    """Whether all lanes of the warp have it true."""
def alloc_barrier(arrive_count: Sequence[int]) -> Any:
    """mbarriers, one for each count of arrivals."""
def alloc_fragment(shape: Shape, dtype: DType, scope: object = 'local.fragment') -> Any:
    """A tile of the block, spread over the registers of its threads."""
def alloc_global(shape: Shape, dtype: DType, scope: object = 'global') -> Any:
    """Global scratch that only this program sees."""
def alloc_local(shape: Shape, dtype: DType, scope: object = 'local') -> Any:
    """An array of each thread."""
def alloc_reducer(shape: Shape, dtype: DType, op: str = 'sum', replication: object = None) -> Any:
    """A tile that points of Parallel add to; finalize_reducer makes it readable."""
def alloc_shared(shape: Shape, dtype: DType, scope: object = 'shared.dyn') -> Any:
    """A tile in the shared memory of the block."""
def annotate_min_blocks_per_sm(n: int) -> Any:
    """As many blocks that a multiprocessor can hold at once: a bound on registers."""
def annotate_plan(lines: str) -> Any:
    """Lines that the launch's plan for a GPU is to have, as `tilewright compile --stage plan` prints them."""
def any_sync(predicate: Value, mask: object = None) -> Any:
    """Whether a lane of the warp has it true."""
def asin(x: Value) -> Any:
    """The scalar function asin, element by element."""
def asinh(x: Value) -> Any:
    """The scalar function asinh, element by element."""
def assume(cond: Value) -> Any:
    """Vouches for a condition. Before the first Kernel it is checked at the call."""
def async_copy(src: Tile, dst: Tile, *, coalesced_width: object = None, annotations: object = None, loop_layout: object = None) -> Any:
    """A copy of the threads from global to shared memory that does not wait: T.ptx_wait_group(n) does."""
def atan(x: Value) -> Any:
    """The scalar function atan, element by element."""
def atan2(x1: Value, x2: Value) -> Any:
    """The scalar function atan2, element by element."""
def atanh(x: Value) -> Any:
    """The scalar function atanh, element by element."""
def atomic_add(dst: Tile, value: Tile, memory_order: str = None, return_prev: bool = False, use_tma: object = False, annotations: object = None) -> Any:
    """Adds to an element, or a tile to a tile, atomically."""
def atomic_addx2(dst: Tile, value: Value, return_prev: bool = False, memory_order: str = 'relaxed') -> Any:
    """Adds to each of 2 elements that follow each other, atomically."""
def atomic_addx4(dst: Tile, value: Value, return_prev: bool = False, memory_order: str = 'relaxed') -> Any:
    """Adds to each of 4 elements that follow each other, atomically."""
def atomic_and(dst: Tile, value: Tile, memory_order: str = None, return_prev: bool = False, use_tma: object = False, annotations: object = None) -> Any:
    """Bitwise and into an element, atomically."""
def atomic_cas(dst: Tile, compare: Value, value: Value) -> Any:
    """Writes the element if it equals `compare`; gives the old value."""
def atomic_exchange(dst: Tile, value: Tile, memory_order: str = None, return_prev: bool = False, use_tma: object = False, annotations: object = None) -> Any:
    """Stores, atomically, with the old value as result if asked."""
def atomic_load(src: Tile, memory_order: str = 'seq_cst') -> Any:
    """Reads an element atomically."""
def atomic_max(dst: Tile, value: Tile, memory_order: str = None, return_prev: bool = False, use_tma: object = False, annotations: object = None) -> Any:
    """Raises an element, or a tile by a tile, atomically."""
def atomic_min(dst: Tile, value: Tile, memory_order: str = None, return_prev: bool = False, use_tma: object = False, annotations: object = None) -> Any:
    """Lowers an element, or a tile by a tile, atomically."""
def atomic_or(dst: Tile, value: Tile, memory_order: str = None, return_prev: bool = False, use_tma: object = False, annotations: object = None) -> Any:
    """Bitwise or into an element, atomically."""
def atomic_store(dst: Tile, src: Value, memory_order: str = 'seq_cst') -> Any:
    """Writes an element atomically."""
def atomic_xor(dst: Tile, value: Tile, memory_order: str = None, return_prev: bool = False, use_tma: object = False, annotations: object = None) -> Any:
    """Bitwise exclusive or into an element, atomically."""
def ballot(predicate: Value, mask: object = None) -> Any:
    """The lanes of the warp that have it true, as bits."""
def ballot_sync(predicate: Value, mask: object = None) -> Any:
    """The lanes of the warp that have it true, as bits."""
def barrier_arrive(mbarrier: Tile, cta_id: Value = None) -> Any:
    """Arrives at an mbarrier, or at that of block `cta_id` of the cluster: who waits there may copy over what this block has read. What blocks say through global memory needs T.cluster_sync()."""
def barrier_wait(mbarrier: Tile, parity: Value) -> Any:
    """Waits for the phase of this parity."""
def bitwise_and(x: Value, y: Value) -> Any:
    """a & b"""
def bitwise_not(x: Value) -> Any:
    """~x"""
def bitwise_or(x: Value, y: Value) -> Any:
    """a | b"""
def bitwise_xor(x: Value, y: Value) -> Any:
    """a ^ b"""
def block_rank_in_cluster() -> Any:
    """The number of this block in its cluster, x first."""
def brev(x: Value) -> Any:
    """The scalar function brev, element by element."""
def cast(value: Value, dtype: DType, round: str = '', sat: bool = True, rbits: object = None) -> Any:
    """The value as another dtype: to nearest even, or with round='rz' toward zero; floats to integers truncate and saturate."""
def ceil(x: Value) -> Any:
    """The scalar function ceil, element by element."""
def ceildiv(lhs: Value, rhs: Value) -> Any:
    """The quotient of integers, rounded up."""
def clamp(dst: Value, min_val: Value, max_val: Value) -> Any:
    """The scalar function clamp, element by element."""
def clear(buffer: Tile, annotations: object = None) -> Any:
    """Sets every element of a tile to zero."""
def cluster_arrive() -> Any:
    """Arrives at the barrier of the cluster; T.cluster_wait() is the other half."""
def cluster_arrive_relaxed() -> Any:
    """Arrives at the barrier of the cluster; T.cluster_wait() is the other half."""
def cluster_sync() -> Any:
    """A barrier of the cluster."""
def cluster_wait() -> Any:
    """Waits for the blocks of the cluster, where this one has arrived."""
def clz(x: Value) -> Any:
    """The scalar function clz, element by element."""
def condition(a: Value) -> Any:
    """A bool as it is; whether an integer is not zero."""
def copy(src: Tile, dst: Tile, *, coalesced_width: object = None, disable_tma: object = False, eviction_policy: object = None, prefer_instruction: str = None, annotations: object = None, loop_layout: object = None) -> Any:
    """Moves a tile between any two spaces and converts its elements. What lies outside of a global tensor reads as zero and is not written."""
def copy_cluster(src: Tile, dst: Tile, *, dst_block: Value = None, cluster_mask: int = 0, remote_barrier: Tile = None, eviction_policy: object = None, coalesced_width: object = None, annotations: object = None, loop_layout: object = None) -> Any:
    """With `dst_block`, a copy from this block's shared memory or fragments to the tile `dst` of that block of the cluster: all threads of the block write it, and T.cluster_sync() says that it is there, or one arrival at that block's own `remote_barrier`. Without, a copy from global memory to the same tile of the blocks that `cluster_mask` has bits for: the lowest of them copies for all, other blocks for themselves. Waits."""
def copysign(x1: Value, x2: Value) -> Any:
    """The scalar function copysign, element by element."""
def cos(x: Value) -> Any:
    """The scalar function cos, element by element."""
def cosh(x: Value) -> Any:
    """The scalar function cosh, element by element."""
def cp_async_barrier_noinc(barrier: Tile) -> Any:
    """Arrives at an mbarrier when what this thread has copied by T.ptx_cp_async is there."""
def cp_async_wait(pending: int = 0) -> Any:
    """Waits for groups of async_copy."""
def cummax(src: Tile, dst: Tile = None, dim: int = 0, reverse: bool = False, annotations: object = None) -> Any:
    """Running maxima along one dimension; in reverse from its end."""
def cumsum(src: Tile, dst: Tile = None, dim: int = 0, reverse: bool = False, annotations: object = None) -> Any:
    """Running sums along one dimension; in reverse from its end."""
def dec_max_nreg(reg_count: int, is_inc: object = None) -> Any:
    """Registers that a thread may use from here."""
def device_assert(condition: Value, msg: str = '', no_stack_info: object = False) -> Any:
    """Stops the call where the condition is false."""
def div(a: Value, b: Value) -> Any:
    """a / b, of floats"""
def dp4a(A: Tile, B: Tile, C: Tile) -> Any:
    """Adds to C the products of four int8 elements of A and B from these elements on; of packed int32 values it is the sum."""
def equal(a: Value, b: Value) -> Any:
    """a == b"""
def erf(x: Value) -> Any:
    """The scalar function erf, element by element."""
def exp(x: Value) -> Any:
    """The scalar function exp, element by element."""
def exp10(x: Value) -> Any:
    """The scalar function exp10, element by element."""
def exp2(x: Value) -> Any:
    """The scalar function exp2, element by element."""
def expm1(x: Value) -> Any:
    """The scalar function expm1, element by element."""
def fabs(x: Value) -> Any:
    """Another name of abs."""
def fence_proxy_async() -> Any:
    """Orders writes before asynchronous copies that read them."""
def ffs(x: Value) -> Any:
    """The scalar function ffs, element by element."""
def fill(buffer: Tile, value: Value, annotations: object = None) -> Any:
    """Sets every element of a tile."""
def finalize_reducer(reducer: Buffer, dst: Tile = None, batch: int = 1, annotations: object = None) -> Any:
    """Makes a reducer readable, or writes what it holds to `dst`; batch, how many elements are joined at once, changes no result."""
def floor(x: Value) -> Any:
    """The scalar function floor, element by element."""
def floordiv(a: Value, b: Value) -> Any:
    """a // b of integers, rounded down"""
def floormod(a: Value, b: Value) -> Any:
    """a % b of integers, with the sign of b"""
def fma(x: Value, y: Value, z: Value) -> Any:
    """Another name of ieee_fmaf."""
def fmod(x: Value, y: Value) -> Any:
    """The scalar function fmod, element by element."""
def gemm(A: Tile, B: Tile, C: Tile, transpose_A: bool = False, transpose_B: bool = False, policy: int = 0, clear_accum: Value = False, k_pack: object = 1, wg_wait: object = 0, mbar: None = None, annotations: object = None) -> Any:
    """C += A B on tiles on chip; op(A) is (M, K), op(B) is (K, N), C is (M, N)."""
def gemm_sp(A_sparse: Tile, E: Tile, B: Tile, C: Tile, transpose_A: bool = False, transpose_E: bool = False, transpose_B: bool = False, policy: int = 0, clear_accum: Value = False, wg_wait: object = 0, annotations: object = None) -> Any:
    """C += A B, where A_sparse holds the kept elements of A, two of each four along a row (one of two of float32), and E has four bits for each group that say which."""
def get_block_binding(dim: int = 0) -> Any:
    """The index of this block in the grid."""
def get_cluster_dim(dim: int = 0) -> Any:
    """The number of blocks of a cluster along a dimension."""
def get_lane_idx(warp_size: int = None) -> Any:
    """The lane of this thread in its warp."""
def get_thread_binding(dim: int = 0) -> Any:
    """The index of this thread in its block."""
def get_thread_extent(dim: int = 0) -> Any:
    """The number of threads of a block along a dimension."""
def get_warp_group_idx(warp_size: int = None, warps_per_group: int = None) -> Any:
    """Which group of warps this thread is in."""
def get_warp_idx(warp_size: int = None) -> Any:
    """Which warp of the block this thread is in."""
def get_warp_idx_sync(warp_size: int = None) -> Any:
    """Which warp of the block this thread is in."""
def greater(a: Value, b: Value) -> Any:
    """a > b"""
def greater_equal(a: Value, b: Value) -> Any:
    """a >= b"""
def hypot(x1: Value, x2: Value) -> Any:
    """The scalar function hypot, element by element."""
def ieee_add(x: Value, y: Value, rounding_mode: str = 'rn') -> Any:
    """Rounded as rounding_mode says: rn (to nearest), rz (toward zero), ru (up), rd (down), the last three of float32 and float64; never joined with another operation."""
def ieee_fdiv(x: Value, y: Value, rounding_mode: str = 'rn') -> Any:
    """Rounded as rounding_mode says: rn (to nearest), rz (toward zero), ru (up), rd (down), the last three of float32 and float64; never joined with another operation."""
def ieee_fmaf(x: Value, y: Value, z: Value, rounding_mode: str = 'rn') -> Any:
    """Rounded as rounding_mode says: rn (to nearest), rz (toward zero), ru (up), rd (down), the last three of float32 and float64; never joined with another operation."""
def ieee_frcp(x: Value, rounding_mode: str = 'rn') -> Any:
    """Rounded as rounding_mode says: rn (to nearest), rz (toward zero), ru (up), rd (down), the last three of float32 and float64; never joined with another operation."""
def ieee_frsqrt(x: Value) -> Any:
    """The scalar function ieee_frsqrt, element by element."""
def ieee_fsqrt(x: Value, rounding_mode: str = 'rn') -> Any:
    """Rounded as rounding_mode says: rn (to nearest), rz (toward zero), ru (up), rd (down), the last three of float32 and float64; never joined with another operation."""
def ieee_mul(x: Value, y: Value, rounding_mode: str = 'rn') -> Any:
    """Rounded as rounding_mode says: rn (to nearest), rz (toward zero), ru (up), rd (down), the last three of float32 and float64; never joined with another operation."""
def ieee_sqrt(x: Value) -> Any:
    """Another name of sqrt."""
def ieee_sub(x: Value, y: Value, rounding_mode: str = 'rn') -> Any:
    """Rounded as rounding_mode says: rn (to nearest), rz (toward zero), ru (up), rd (down), the last three of float32 and float64; never joined with another operation."""
def if_then_else(cond: Value, t: Value, f: Value) -> Any:
    """t where the condition is true, else f; only that side is evaluated."""
def im2col(img: Tile, col: Tile, nhw_step: Value, c_step: Value, kernel: int, stride: int, dilation: int, pad: int, eviction_policy: object = None) -> Any:
    """Patches of an NHWC image as a tile of the patch matrix."""
def inc_max_nreg(reg_count: int, is_inc: object = None) -> Any:
    """Registers that a thread may use from here."""
def infinity(dtype: DType) -> Any:
    """Infinity of a float dtype."""
def isfinite(x: Value) -> Any:
    """The scalar function isfinite, element by element."""
def isinf(x: Value) -> Any:
    """The scalar function isinf, element by element."""
def isnan(x: Value) -> Any:
    """The scalar function isnan, element by element."""
def ldexp(x1: Value, x2: Value) -> Any:
    """The scalar function ldexp, element by element."""
def less(a: Value, b: Value) -> Any:
    """a < b"""
def less_equal(a: Value, b: Value) -> Any:
    """a <= b"""
def log(x: Value) -> Any:
    """The scalar function log, element by element."""
def log10(x: Value) -> Any:
    """The scalar function log10, element by element."""
def log1p(x: Value) -> Any:
    """The scalar function log1p, element by element."""
def log2(x: Value) -> Any:
    """The scalar function log2, element by element."""
def logical_and(a: Value, b: Value) -> Any:
    """a and b; b is evaluated only where a is true."""
def logical_not(a: Value) -> Any:
    """not a"""
def logical_or(a: Value, b: Value) -> Any:
    """a or b; b is evaluated only where a is false."""
def loop_break() -> Any:
    """Leaves the innermost loop: this thread only."""
def loop_continue() -> Any:
    """Leaves this round of the innermost loop: this thread only."""
def make_tensor(ptr: Value, shape: Shape, dtype: DType = 'float32', strides: Shape = None) -> Any:
    """A global tensor at an address."""
def match_all_sync(value: Value, mask: object = None) -> Any:
    """All lanes as bits if their values are equal, else 0."""
def match_any_sync(value: Value, mask: object = None) -> Any:
    """The lanes of the warp whose value is mine, as bits."""
def max(a: Value, b: Value) -> Any:
    """The larger of two values; of NaN and a number the number."""
def max_nan(x: Value, y: Value) -> Any:
    """The scalar function max_nan, element by element."""
def max_value(dtype: DType) -> Any:
    """The largest finite value of a dtype."""
def mbarrier_arrive(mbarrier: Tile, cta_id: Value = None) -> Any:
    """Arrives at an mbarrier, or at that of block `cta_id` of the cluster: who waits there may copy over what this block has read. What blocks say through global memory needs T.cluster_sync()."""
def mbarrier_arrive_expect_tx(mbarrier: Tile, tx: Value) -> Any:
    """Announces bytes and arrives."""
def mbarrier_expect_tx(mbarrier: Tile, tx: Value) -> Any:
    """Announces bytes."""
def mbarrier_wait_parity(mbarrier: Tile, parity: Value) -> Any:
    """Waits for the phase of this parity."""
def min(a: Value, b: Value) -> Any:
    """The smaller of two values; of NaN and a number the number."""
def min_nan(x: Value, y: Value) -> Any:
    """The scalar function min_nan, element by element."""
def min_value(dtype: DType) -> Any:
    """The least finite value of a dtype."""
def mul(a: Value, b: Value) -> Any:
    """a * b"""
def mulhi(x: Value, y: Value) -> Any:
    """The scalar function mulhi, element by element."""
def named_barrier_arrive(barrier_id: Value, thread_count: int) -> Any:
    """Arrives at a named barrier without waiting."""
def nearbyint(x: Value) -> Any:
    """The scalar function nearbyint, element by element."""
def neg(x: Value) -> Any:
    """The scalar function neg, element by element."""
def negative(a: Value) -> Any:
    """-a"""
def nextafter(x1: Value, x2: Value) -> Any:
    """The scalar function nextafter, element by element."""
def not_equal(a: Value, b: Value) -> Any:
    """a != b"""
def pdl_sync() -> Any:
    """Waits until the kernels before this one have ended and what they wrote is there. Such a kernel is launched early, where they let it: before the wait it touches nothing that they do."""
def pdl_trigger() -> Any:
    """Lets the kernels after this one begin, those that wait by T.pdl_sync(), once all blocks have come here or are done."""
def popcount(x: Value) -> Any:
    """The scalar function popcount, element by element."""
def pow(x: Value, y: Value) -> Any:
    """x to the power y; a whole constant y multiplies."""
def print(obj: Value = None, msg: str = '', warp_group_id: object = 0, warp_id: object = 0) -> Any:
    """Prints a value, a buffer, or a message."""
def ptx_commit_group() -> Any:
    """Closes a group of async_copy."""
def ptx_wait_group(num: int = 0) -> Any:
    """Waits for groups of async_copy."""
def rcp_approx(x: Value) -> Any:
    """The scalar function rcp_approx, element by element."""
def reduce_absmax(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, batch: object = 1, nan_propagate: bool = False, annotations: object = None) -> Any:
    """The largest absolute value along one dimension of a tile, into `out`, which has the shape without it or with 1 there. Without clear it combines with what is in `out`."""
def reduce_abssum(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, batch: object = 1, nan_propagate: bool = False, annotations: object = None) -> Any:
    """The sum of the absolute values along one dimension of a tile, into `out`, which has the shape without it or with 1 there. Without clear it combines with what is in `out`."""
def reduce_bitand(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, batch: object = 1, nan_propagate: bool = False, annotations: object = None) -> Any:
    """The bitwise and along one dimension of a tile, into `out`, which has the shape without it or with 1 there. Without clear it combines with what is in `out`."""
def reduce_bitor(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, batch: object = 1, nan_propagate: bool = False, annotations: object = None) -> Any:
    """The bitwise or along one dimension of a tile, into `out`, which has the shape without it or with 1 there. Without clear it combines with what is in `out`."""
def reduce_bitxor(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, batch: object = 1, nan_propagate: bool = False, annotations: object = None) -> Any:
    """The bitwise exclusive or along one dimension of a tile, into `out`, which has the shape without it or with 1 there. Without clear it combines with what is in `out`."""
def reduce_max(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, batch: object = 1, nan_propagate: bool = False, annotations: object = None) -> Any:
    """The largest along one dimension of a tile, into `out`, which has the shape without it or with 1 there. Without clear it combines with what is in `out`."""
def reduce_min(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, batch: object = 1, nan_propagate: bool = False, annotations: object = None) -> Any:
    """The smallest along one dimension of a tile, into `out`, which has the shape without it or with 1 there. Without clear it combines with what is in `out`."""
def reduce_sum(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, batch: object = 1, nan_propagate: bool = False, annotations: object = None) -> Any:
    """The sum along one dimension of a tile, into `out`, which has the shape without it or with 1 there. Without clear it combines with what is in `out`."""
def reinterpret(value: Value, dtype: DType) -> Any:
    """The same bits as another dtype of that width."""
def reshape(src: Buffer, shape: Shape) -> Any:
    """The same memory under another shape."""
def round(x: Value, rounding_mode: str = 'ties-to-even') -> Any:
    """To a whole number."""
def rsqrt(x: Value) -> Any:
    """The scalar function rsqrt, element by element."""
def set_max_nreg(reg_count: int, is_inc: object = None) -> Any:
    """Registers that a thread may use from here."""
def shfl_down(value: Value, delta: Value, width: int = 32, mask: object = None) -> Any:
    """The value of another lane of the warp."""
def shfl_sync(value: Value, srcLane: Value, width: int = 32, mask: object = None) -> Any:
    """The value of another lane of the warp."""
def shfl_up(value: Value, delta: Value, width: int = 32, mask: object = None) -> Any:
    """The value of another lane of the warp."""
def shfl_xor(value: Value, delta: Value, width: int = 32, mask: object = None) -> Any:
    """The value of another lane of the warp."""
def shift_left(x: Value, y: Value) -> Any:
    """a << b"""
def shift_right(x: Value, y: Value) -> Any:
    """a >> b"""
def shuffle_elect(thread_extent: int) -> Any:
    """Whether this is the first thread of its group of that many; of the block where that is 0."""
def sigmoid(x: Value) -> Any:
    """The scalar function sigmoid, element by element."""
def sin(x: Value) -> Any:
    """The scalar function sin, element by element."""
def sinh(x: Value) -> Any:
    """The scalar function sinh, element by element."""
def sqrt(x: Value) -> Any:
    """The scalar function sqrt, element by element."""
def sub(a: Value, b: Value) -> Any:
    """a - b"""
def sync_global() -> Any:
    """A barrier of the grid."""
def sync_grid() -> Any:
    """A barrier of the grid."""
def sync_threads(barrier_id: Value = None, arrive_count: int = None) -> Any:
    """A barrier of the block, or a named one of `arrive_count` threads."""
def sync_warp(mask: object = None) -> Any:
    """A barrier of the warp."""
def syncthreads_and(predicate: Value, mask: object = None) -> Any:
    """A barrier; whether all threads have it true."""
def syncthreads_count(predicate: Value, mask: object = None) -> Any:
    """A barrier; how many threads have it true."""
def syncthreads_or(predicate: Value, mask: object = None) -> Any:
    """A barrier; whether a thread has it true."""
def tan(x: Value) -> Any:
    """The scalar function tan, element by element."""
def tanh(x: Value) -> Any:
    """The scalar function tanh, element by element."""
def thread_return() -> Any:
    """This thread is done with the launch."""
def tma_copy(src: Tile, dst: Tile, *, barrier: Tile = None, cluster_mask: int = 0, leader_scope_threads: object = None, eviction_policy: object = None, annotations: object = None) -> Any:
    """A bulk copy that does not wait: a load tells `barrier` its bytes, a store joins the queue of T.tma_store_wait."""
def tma_store_arrive() -> Any:
    """Closes a group of bulk stores; T.tma_copy closes its own."""
def tma_store_wait(count: int = 0, read: object = True) -> Any:
    """Waits for bulk stores."""
def trunc(x: Value) -> Any:
    """The scalar function trunc, element by element."""
def truncdiv(a: Value, b: Value) -> Any:
    """The quotient of integers, rounded toward zero, as in C."""
def truncmod(a: Value, b: Value) -> Any:
    """The remainder of truncdiv, with the sign of a, as in C."""
def use_swizzle(panel_size: int, order: str = 'row', enable: bool = True) -> Any:
    """The order in which blocks run: in panels of rows or columns."""
def view(src: Buffer, shape: Shape = None, dtype: DType = None, strides: Shape = None) -> Any:
    """The same memory under another shape and dtype of as many bits."""
def wait_wgmma(id: int = 0) -> Any:
    """Waits for wgmma_gemm."""
def warp_reduce_bitand(value: Value) -> Any:
    """Over the whole warp; every lane gets the result."""
def warp_reduce_bitor(value: Value) -> Any:
    """Over the whole warp; every lane gets the result."""
def warp_reduce_max(value: Value) -> Any:
    """Over the whole warp; every lane gets the result."""
def warp_reduce_min(value: Value) -> Any:
    """Over the whole warp; every lane gets the result."""
def warp_reduce_sum(value: Value) -> Any:
    """Over the whole warp; every lane gets the result."""
def warpgroup_commit_batch() -> Any:
    """Closes a group of products that do not wait; T.wgmma_gemm closes its own."""
def warpgroup_wait(num_mma: int = 0) -> Any:
    """Another name of wait_wgmma."""
def wgmma_gemm(A: Tile, B: Tile, C: Tile, transpose_A: bool = False, transpose_B: bool = False, policy: int = 0, clear_accum: Value = False, k_pack: object = 1, wg_wait: object = 0, mbar: None = None, annotations: object = None) -> Any:
    """A gemm that does not wait: T.wait_wgmma(n) does."""
def wgmma_gemm_sp(A_sparse: Tile, E: Tile, B: Tile, C: Tile, transpose_A: bool = False, transpose_E: bool = False, transpose_B: bool = False, policy: int = 0, clear_accum: Value = False, wg_wait: object = 0, annotations: object = None) -> Any:
    """A gemm_sp that does not wait: T.wait_wgmma(n) does."""
