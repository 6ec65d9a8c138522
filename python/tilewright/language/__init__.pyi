"""Written by `python -m tilewright.stubs`."""
from typing import Any, Sequence

class dtype(str): ...

DType = Any  # "float16", T.float16, torch.float16
Buffer = Any  # what alloc_* and parameters are
Tile = Any  # a buffer, buffer[i, j] or buffer[i, a:b]
Value = Any  # a number, an expression, an element, a variable
Shape = Any  # an extent or a list of them
def Broadcast(value: Any, lanes: Any) -> Any:
    """The same value in each lane of a vector."""
BufferRegion: Any
def CUDASourceCodeKernel(*blocks: Any, threads: Any = ..., source_code_or_path: Any, entry_name: Any, cluster_dims: Any = ...) -> Any:
    """A launch of a kernel that is CUDA C++, text or the path of a file: it gets the program's tensors and numbers in their order, and then the dimensions that are known at the call."""
def Cast(dtype: Any, value: Any) -> Any:
    """T.cast with its arguments the other way round."""
def ClusterKernel(*blocks: Any, cluster_dims: Any = ..., threads: Any = ..., prelude: Any = ...) -> Any:
    """T.Kernel with clusters of blocks."""
Else: Any
Fragment: Any
FragmentBuffer: Any
GemmWarpPolicy: Any
If: Any
Kernel: Any
Layout: Any
LocalBuffer: Any
def Parallel(*extents: Any, coalesced_width: Any = ..., loop_layout: Any = ..., prefer_async: Any = ..., annotations: Any = ...) -> Any:
    """Every point of a box once, in no order, dealt to the threads."""
def Persistent(domain: Any, wave_size: Any, index: Any, group_size: Any = ..., num_stages: Any = ...) -> Any:
    """The share of one of wave_size blocks of the points of a box, in groups along its last dimension."""
def Pipelined(start: Any, stop: Any = ..., num_stages: Any = ..., order: Any = ..., stage: Any = ..., sync: Any = ..., group: Any = ..., annotations: Any = ...) -> Any:
    """A loop whose copies may run ahead by num_stages; its results are those of serial."""
PrimExpr: Any
PrimFunc: Any
def Ramp(base: Any, stride: Any, lanes: Any) -> Any:
    """The indices of elements that follow each other: A[T.Ramp(i, 1, 4)] is A[i : i + 4]."""
Ref: Any
def Serial(start: Any, stop: Any = ..., step: Any = ..., annotations: Any = ...) -> Any:
    """An ordinary loop; range() in a traced function is this."""
SharedBuffer: Any
StridedTensor: Any
Tensor: Any
Then: Any
def Unroll(start: Any, stop: Any = ..., step: Any = ..., *, explicit: Any = ..., unroll_factor: Any = ..., annotations: Any = ...) -> Any:
    """A loop that is unrolled when it is compiled, as a whole or by so many iterations."""
Var: Any
def Vectorized(start: Any, stop: Any = ..., *, annotations: Any = ...) -> Any:
    """A loop whose accesses may become vector accesses."""
WarpSpecialize: Any
While: Any
def abs2(*vectors: Any) -> Any:
    """abs of each lane of vectors."""
def access_ptr(base: Any, access_type: Any = ..., *extents: Any, offset: Any = ..., extent: Any = ..., ignore_last_ndim: Any = ...) -> Any:
    """A pointer to where a buffer, a region or an element begins; what it may be used for changes no result."""
def add2(*vectors: Any) -> Any:
    """add of each lane of vectors."""
def align_up(x: Any, y: Any) -> Any:
    """The least multiple of y that is at least x."""
def all_of(*conditions: Any) -> Any:
    """Whether all conditions hold, or all elements of a buffer or of a region of one dimension."""
def alloc_buffer(shape: Any, dtype: Any = ..., *ignored: Any, scope: Any = ..., **also_ignored: Any) -> Any:
    """An allocation in the space that `scope` names."""
def alloc_cluster_barrier(arrive_count: Any) -> Any:
    """mbarriers at which blocks of the cluster may arrive: one, or one for each count of a list."""
def alloc_var(dtype: Any, *arguments: Any, init: Any = ..., scope: Any = ...) -> Any:
    """A mutable scalar of each thread, zero unless `init` says otherwise. Assigning to its name stores."""
def annotate_compile_flags(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
def annotate_consumer_reg_alloc(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
def annotate_l2_hit_ratio(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
def annotate_layout(layouts: Any) -> Any:
    """Where elements of tiles lie. Never changes a result; tensors in global memory stay as their shape and strides say."""
def annotate_pass_configs(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
def annotate_producer_reg_dealloc(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
def annotate_restrict_buffers(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
def annotate_safe_value(values: Any) -> Any:
    """What reads outside of global tensors give; in a T.sblock to its end."""
def any_of(*conditions: Any) -> Any:
    """Whether a condition holds, or an element of a buffer or of a region of one dimension."""
attr: Any
bfloat16: dtype
bool: dtype
boolean: dtype
def call_extern(*arguments: Any, dtype: Any = ...) -> Any:
    """Calls a device function by its name: T.call_extern("float32", "f", x), or T.call_extern("f", x, dtype="float32"). Buffers and T.access_ptr go as pointers, which the function may read and write by."""
comm_reducer: Any
def const(names: Any, dtype: Any = ...) -> Any:
    """Dimensions of an eager function that are taken from its tensors when it is called: M, N = T.const("M, N")."""
def create_list_of_mbarrier(*counts: Any) -> Any:
    """mbarriers that T.get_mbarrier(i) names."""
def disable_warp_group_reg_alloc(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
double: dtype
dyn: Any
dynamic: Any
def empty(*shape: Any, dtype: Any = ..., **ignored: Any) -> Any:
    """A tensor that the call makes and returns. T.empty(shape, dtype) or T.empty(M, N, dtype=...)."""
def evaluate(value: Any) -> Any:
    """An expression as a statement; what it does is already recorded."""
def extract_lane(vector: Any, lane: Any) -> Any:
    """One value of a vector."""
float: dtype
float16: dtype
float32: dtype
float4_e2m1: dtype
float4_e2m1fn: dtype
float64: dtype
float8_e4m3: dtype
float8_e4m3fn: dtype
float8_e4m3fnuz: dtype
float8_e5m2: dtype
float8_e5m2fnuz: dtype
float8_e8m0: dtype
float8_e8m0fnu: dtype
def fma2(*vectors: Any) -> Any:
    """fma of each lane of vectors."""
def func_attr(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
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
def get_mbarrier(index: Any) -> Any:
    """One of T.create_list_of_mbarrier."""
def get_thread_bindings() -> Any:
    """The index of this thread in its block, in each dimension."""
def get_thread_extents() -> Any:
    """The threads of a block along each dimension."""
def grid(*extents: Any) -> Any:
    """Nested serial loops."""
half: dtype
handle: Any
def import_source(source: Any = ...) -> Any:
    """CUDA C++ that defines what T.call_extern calls. Engines other than cuda refuse the calls."""
int: dtype
int16: dtype
int32: dtype
int4: dtype
int64: dtype
int8: dtype
def let(variable: Any, value: Any) -> Any:
    """Sets a variable that T.int32() and its like have made."""
long: dtype
def macro(function: Any = ..., **ignored: Any) -> Any:
    """A function that is recorded wherever it is called."""
def make_linear_layout(buffer: Any) -> Any:
    """Row-major."""
def make_swizzle_layout(buffer: Any = ..., k_major: Any = ..., allow_pad: Any = ...) -> Any:
    """Spreads the rows of a shared tile over the memory banks."""
def make_swizzled_layout(buffer: Any = ..., k_major: Any = ..., allow_pad: Any = ...) -> Any:
    """Spreads the rows of a shared tile over the memory banks."""
def match_buffer(handle: Any, shape: Any, dtype: Any = ..., strides: Any = ..., **ignored: Any) -> Any:
    """The tensor behind a parameter of type T.handle, or a view of an address."""
def max2(*vectors: Any) -> Any:
    """max of each lane of vectors."""
def min2(*vectors: Any) -> Any:
    """min of each lane of vectors."""
def mul2(*vectors: Any) -> Any:
    """mul of each lane of vectors."""
def no_set_max_nreg(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
def parallel(*extents: Any, coalesced_width: Any = ..., loop_layout: Any = ..., prefer_async: Any = ..., annotations: Any = ...) -> Any:
    """Every point of a box once, in no order, dealt to the threads."""
def prim_func(function: Any = ..., **ignored: Any) -> Any:
    """Records a function as a program, at once. Its parameters are annotated: T.Tensor(shape, dtype), T.int32, ..."""
ptr: dtype
def ptx_cp_async(dst: Any, src: Any, num_elems: Any, predicate: Any = ...) -> Any:
    """This thread copies neighbours from global to shared memory, zeros where `predicate` is false. They are there when T.ptx_wait_group, or the barrier of T.cp_async_barrier_noinc, says so."""
def reads(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
def rng_init(seed: Any, seq: Any = ..., off: Any = ..., generator: Any = ...) -> Any:
    """Gives each thread a random generator; seq is by default the number of the thread in the grid."""
def rng_rand() -> Any:
    """The thread's next 32 random bits."""
def rng_rand_float(bit: Any = ..., dist: Any = ...) -> Any:
    """The thread's next random number: uniform in (0, 1], or normal with mean 0 and deviation 1."""
sblock: Any
def serial(start: Any, stop: Any = ..., step: Any = ..., annotations: Any = ...) -> Any:
    """An ordinary loop; range() in a traced function is this."""
short: dtype
def sub2(*vectors: Any) -> Any:
    """sub of each lane of vectors."""
symbolic: Any
tfloat32: dtype
def thread_binding(start: Any, stop: Any = ..., thread: Any = ..., annotations: Any = ...) -> Any:
    """The index of this thread, of `stop` threads along a dimension, or of this block."""
def tvm_thread_allreduce(size: Any, value: Any, predicate: Any, result: Any, *threads: Any, dtype: Any = ...) -> Any:
    """Combines `value` over all threads that differ in these thread indices alone; each of them gets `result`."""
def tvm_warp_shuffle(mask: Any, value: Any, lane: Any, width: Any = ..., warp_size: Any = ...) -> Any:
    """The value of a lane of the group of `width` lanes."""
def tvm_warp_shuffle_down(mask: Any, value: Any, delta: Any, width: Any = ..., warp_size: Any = ...) -> Any:
    """The value of the lane `delta` above."""
def tvm_warp_shuffle_up(mask: Any, value: Any, delta: Any, width: Any = ..., warp_size: Any = ...) -> Any:
    """The value of the lane `delta` below."""
uint: dtype
uint16: dtype
uint32: dtype
uint4: dtype
uint64: dtype
uint8: dtype
def unroll(start: Any, stop: Any = ..., step: Any = ..., *, explicit: Any = ..., unroll_factor: Any = ..., annotations: Any = ...) -> Any:
    """A loop that is unrolled when it is compiled, as a whole or by so many iterations."""
def vectorized(start: Any, stop: Any = ..., *, annotations: Any = ...) -> Any:
    """A loop whose accesses may become vector accesses."""
def warpgroup_fence_operand(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
def writes(*arguments: Any, **named: Any) -> Any:
    """A hint; results and checks are the same without it."""
ws: Any
def __cos(x: Value) -> Any:
    """Another name of cos."""
def __exp(x: Value) -> Any:
    """Another name of exp."""
def __exp10(x: Value) -> Any:
    """Another name of exp10."""
def __log(x: Value) -> Any:
    """Another name of log."""
def __log10(x: Value) -> Any:
    """Another name of log10."""
def __log2(x: Value) -> Any:
    """Another name of log2."""
def __sin(x: Value) -> Any:
    """Another name of sin."""
def __tan(x: Value) -> Any:
    """Another name of tan."""
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
def address_of(element: Tile) -> Any:
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
def annotate_min_blocks_per_sm(count: int) -> Any:
    """As many blocks that a multiprocessor can hold at once: a bound on registers."""
def any_sync(predicate: Value, mask: object = None) -> Any:
    """Whether a lane of the warp has it true."""
def asin(x: Value) -> Any:
    """The scalar function asin, element by element."""
def asinh(x: Value) -> Any:
    """The scalar function asinh, element by element."""
def assume(condition: Value) -> Any:
    """Vouches for a condition. Before the first Kernel it is checked at the call."""
def async_copy(src: Tile, dst: Tile, *, coalesced_width: object = None, annotations: object = None, loop_layout: object = None) -> Any:
    """A copy of the threads from global to shared memory that does not wait: T.ptx_wait_group(n) does."""
def atan(x: Value) -> Any:
    """The scalar function atan, element by element."""
def atan2(x: Value, y: Value) -> Any:
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
def atomic_store(dst: Tile, value: Value, memory_order: str = 'seq_cst') -> Any:
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
def bitwise_and(a: Value, b: Value) -> Any:
    """a & b"""
def bitwise_not(a: Value) -> Any:
    """~a"""
def bitwise_or(a: Value, b: Value) -> Any:
    """a | b"""
def bitwise_xor(a: Value, b: Value) -> Any:
    """a ^ b"""
def block_rank_in_cluster() -> Any:
    """The number of this block in its cluster, x first."""
def brev(x: Value) -> Any:
    """The scalar function brev, element by element."""
def cast(value: Value, dtype: DType, round: str = '', sat: bool = True, rbits: object = None) -> Any:
    """The value as another dtype: to nearest even; floats to integers truncate and saturate."""
def ceil(x: Value) -> Any:
    """The scalar function ceil, element by element."""
def ceildiv(a: Value, b: Value) -> Any:
    """The quotient of integers, rounded up."""
def clamp(dst: Value, min_val: Value, max_val: Value) -> Any:
    """The scalar function clamp, element by element."""
def clear(buffer: Tile) -> Any:
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
def copy_cluster(src: Tile, dst: Tile, *, dst_block: None = None, cluster_mask: int = 0, remote_barrier: None = None, eviction_policy: object = None, coalesced_width: object = None, loop_layout: object = None) -> Any:
    """A copy from global memory to the same tile of the blocks of a cluster that `cluster_mask` has bits for: the lowest of them copies for all, other blocks for themselves. Waits."""
def copysign(x: Value, y: Value) -> Any:
    """The scalar function copysign, element by element."""
def cos(x: Value) -> Any:
    """The scalar function cos, element by element."""
def cosh(x: Value) -> Any:
    """The scalar function cosh, element by element."""
def cp_async_barrier_noinc(mbarrier: Tile) -> Any:
    """Arrives at an mbarrier when what this thread has copied by T.ptx_cp_async is there."""
def cp_async_wait(pending: int = 0) -> Any:
    """Waits for groups of async_copy."""
def cummax(src: Tile, dst: Tile = None, dim: int = 0, reverse: bool = False, annotations: object = None) -> Any:
    """Running maxima along one dimension; in reverse from its end."""
def cumsum(src: Tile, dst: Tile = None, dim: int = 0, reverse: bool = False, annotations: object = None) -> Any:
    """Running sums along one dimension; in reverse from its end."""
def dec_max_nreg(count: int, is_inc: object = None) -> Any:
    """Registers that a thread may use from here."""
def device_assert(condition: Value, msg: str = '', no_stack_info: object = False) -> Any:
    """Stops the call where the condition is false."""
def div(a: Value, b: Value) -> Any:
    """a / b, of floats"""
def dp4a(a: Tile, b: Tile, c: Tile) -> Any:
    """Adds to c the products of four int8 elements of a and b from these elements on; of packed int32 values it is the sum."""
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
def fence_proxy_async() -> Any:
    """Orders writes before asynchronous copies that read them."""
def ffs(x: Value) -> Any:
    """The scalar function ffs, element by element."""
def fill(buffer: Tile, value: Value, annotations: object = None) -> Any:
    """Sets every element of a tile."""
def finalize_reducer(reducer: Buffer, dst: None = None, batch: int = 1) -> Any:
    """Makes a reducer readable; batch, how many elements are joined at once, changes no result."""
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
def ieee_add(x: Value, y: Value) -> Any:
    """The scalar function ieee_add, element by element."""
def ieee_fdiv(x: Value, y: Value) -> Any:
    """The scalar function ieee_fdiv, element by element."""
def ieee_fmaf(x: Value, y: Value, z: Value) -> Any:
    """The scalar function ieee_fmaf, element by element."""
def ieee_frcp(x: Value) -> Any:
    """The scalar function ieee_frcp, element by element."""
def ieee_frsqrt(x: Value) -> Any:
    """The scalar function ieee_frsqrt, element by element."""
def ieee_fsqrt(x: Value) -> Any:
    """Another name of sqrt."""
def ieee_mul(x: Value, y: Value) -> Any:
    """The scalar function ieee_mul, element by element."""
def ieee_sqrt(x: Value) -> Any:
    """Another name of sqrt."""
def ieee_sub(x: Value, y: Value) -> Any:
    """The scalar function ieee_sub, element by element."""
def if_then_else(condition: Value, a: Value, b: Value) -> Any:
    """a where the condition is true, else b; only that side is evaluated."""
def im2col(img: Tile, col: Tile, nhw_step: Value, c_step: Value, kernel: int, stride: int, dilation: int, pad: int, eviction_policy: object = None) -> Any:
    """Patches of an NHWC image as a tile of the patch matrix."""
def inc_max_nreg(count: int, is_inc: object = None) -> Any:
    """Registers that a thread may use from here."""
def infinity(dtype: DType) -> Any:
    """Infinity of a float dtype."""
def isfinite(x: Value) -> Any:
    """The scalar function isfinite, element by element."""
def isinf(x: Value) -> Any:
    """The scalar function isinf, element by element."""
def isnan(x: Value) -> Any:
    """The scalar function isnan, element by element."""
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
def match_all_sync(predicate: Value, mask: object = None) -> Any:
    """All lanes as bits if their values are equal, else 0."""
def match_any_sync(predicate: Value, mask: object = None) -> Any:
    """The lanes of the warp whose value is mine, as bits."""
def max(a: Value, b: Value) -> Any:
    """The larger of two values; of NaN and a number the number."""
def max_nan(x: Value, y: Value) -> Any:
    """The scalar function max_nan, element by element."""
def max_value(dtype: DType) -> Any:
    """The largest finite value of a dtype."""
def mbarrier_arrive(mbarrier: Tile, cta_id: Value = None) -> Any:
    """Arrives at an mbarrier, or at that of block `cta_id` of the cluster: who waits there may copy over what this block has read. What blocks say through global memory needs T.cluster_sync()."""
def mbarrier_arrive_expect_tx(mbarrier: Tile, bytes: Value) -> Any:
    """Announces bytes and arrives."""
def mbarrier_expect_tx(mbarrier: Tile, bytes: Value) -> Any:
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
def named_barrier_arrive(barrier_id: Value, arrive_count: int) -> Any:
    """Arrives at a named barrier without waiting."""
def nearbyint(x: Value) -> Any:
    """The scalar function nearbyint, element by element."""
def neg(x: Value) -> Any:
    """The scalar function neg, element by element."""
def negative(a: Value) -> Any:
    """-a"""
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
def ptx_wait_group(pending: int = 0) -> Any:
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
def set_max_nreg(count: int, is_inc: object = None) -> Any:
    """Registers that a thread may use from here."""
def shfl_down(value: Value, lane: Value, width: int = 32, mask: object = None) -> Any:
    """The value of another lane of the warp."""
def shfl_sync(value: Value, lane: Value, width: int = 32, mask: object = None) -> Any:
    """The value of another lane of the warp."""
def shfl_up(value: Value, lane: Value, width: int = 32, mask: object = None) -> Any:
    """The value of another lane of the warp."""
def shfl_xor(value: Value, lane: Value, width: int = 32, mask: object = None) -> Any:
    """The value of another lane of the warp."""
def shift_left(a: Value, b: Value) -> Any:
    """a << b"""
def shift_right(a: Value, b: Value) -> Any:
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
def wait_wgmma(pending: int = 0) -> Any:
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
def wgmma_gemm(A: Tile, B: Tile, C: Tile, transpose_A: bool = False, transpose_B: bool = False, policy: int = 0, clear_accum: Value = False, k_pack: object = 1, wg_wait: object = 0, mbar: None = None, annotations: object = None) -> Any:
    """A gemm that does not wait: T.wait_wgmma(n) does."""
def wgmma_gemm_sp(A_sparse: Tile, E: Tile, B: Tile, C: Tile, transpose_A: bool = False, transpose_E: bool = False, transpose_B: bool = False, policy: int = 0, clear_accum: Value = False, wg_wait: object = 0, annotations: object = None) -> Any:
    """A gemm_sp that does not wait: T.wait_wgmma(n) does."""
