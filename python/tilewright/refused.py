"""Names of TileLang and TVM that mean nothing here, or not yet: they can be imported, annotated with and asked for, and what
uses them is refused by their own words. Nodes of TVM's expressions that are operations are those operations."""
from . import values
from .trace import OPERATIONS, apply, fail

_SM100 = "needs sm_100, which is not there yet"
_HOST = "is code of TVM's host side, of which there is none: the call is bound by the library itself"
_NODE = "is a node of TVM's trees, of which there are none"
_FRAGMENT = "works on TVM's wmma fragments, of which there are none"
_USE_GEMM = "write T.gemm(A, B, C), which takes the instructions"
_USE_OPERATORS = "write the expression with operators and functions of T"

# name: (why it is refused, what to write instead)
_REFUSED = {
    **dict.fromkeys(
        "TCGEN05DescriptorParams TCGEN05TensorCoreIntrinEmitter alloc_tcgen05_instr_desc alloc_tcgen05_instruction_desc "
        "alloc_tcgen05_smem_desc alloc_tmem compute_umma_descriptor deallocate_tmem initialize_tcgen05_descriptor "
        "ptx_tcgen05_mma_blockscaled_ss ptx_tcgen05_mma_ss ptx_tcgen05_mma_ts tcgen05_after_thread_sync "
        "tcgen05_before_thread_sync tcgen05_cp_warpx4 tcgen05_gemm tcgen05_gemm_sp tcgen05_mma tcgen05_mma_arrive "
        "tcgen05_sf_warp_transpose".split(), (_SM100, "T.gemm and T.wgmma_gemm are for what is there")),
    **dict.fromkeys(
        "gemm_blockscaled mma_gemm_blockscaled tcgen05_gemm_blockscaled tcgen05_mma_blockscaled ptx_mma_block_scale "
        "make_blockscaled_gemm_layout TensorCoreIntrinEmitterSM120".split(),
        (f"{_SM100} (scales of blocks in the product)", "scale the elements, or the sums of each block, beside T.gemm")),
    **dict.fromkeys(
        "clc_get_first_ctaid_x clc_get_first_ctaid_y clc_get_first_ctaid_z clc_is_canceled clc_try_cancel "
        "clc_try_cancel_multicast".split(),
        (f"{_SM100} (launches that are cancelled)", "loop over tiles with T.Persistent or T.PersistentTileScheduler")),
    "tma_load_2sm": (_SM100, "T.tma_copy loads for one block, with cluster_mask for several"),
    **dict.fromkeys(
        "TVMBackendAllocWorkspace TVMBackendFreeWorkspace anylist_getitem anylist_resetitem anylist_setitem_call_cpacked "
        "anylist_setitem_call_packed call_cpacked call_cpacked_lowered call_packed call_packed_lowered lookup_param "
        "tvm_call_cpacked tvm_call_cpacked_lowered tvm_call_packed tvm_call_packed_lowered tvm_stack_alloca "
        "tvm_stack_make_array tvm_stack_make_shape tvm_struct_get tvm_struct_set tvm_throw_last_error ret func_ret".split(),
        (_HOST, "call what it calls from Python, before or after the kernel")),
    **dict.fromkeys(
        "CallEffectKind CommReducer IterVar ProducerLoad Reduce Let iter_var index_map block_name_suffix_context "
        "func_name void get_let_value has_let_value".split(), (_NODE, _USE_OPERATORS)),
    **dict.fromkeys(
        "tvm_bmma_sync tvm_fill_fragment tvm_load_matrix_sync tvm_mma_sync tvm_store_matrix_sync".split(),
        (_FRAGMENT, _USE_GEMM)),
    "ptx_mma_sm70": ("is an instruction of sm_70, which is no target here", _USE_GEMM),
    "llvm_lookup_intrinsic_id": ("asks LLVM, which takes no part here", "T.call_llvm_intrin takes the name itself"),
    **dict.fromkeys(
        "get_active_lane_mask vscale".split(), ("is for vectors of a length that the machine chooses", "T.float32x4 and its like have one")),
    **dict.fromkeys(
        "q_multiply_shift q_multiply_shift_per_axis".split(),
        ("is no operation here", "write the product in int64, T.shift_right it, and convert it back")),
    "call_kernel": ("launches a kernel of another compiler", "call it from Python, or give T.CUDASourceCodeKernel its text"),
    **dict.fromkeys(
        "WGMMADescriptorParams alloc_descriptor alloc_wgmma_desc compute_gmma_descriptor increase_descriptor_offset "
        "initialize_wgmma_descriptor ptx_wgmma_rs ptx_wgmma_ss ptx_wgmma_sp_rs ptx_wgmma_sp_ss".split(),
        ("is of wgmma's own descriptors, which the compiler makes", "write T.wgmma_gemm or T.wgmma_gemm_sp, and T.wait_wgmma(n)")),
    **dict.fromkeys(
        "ptx_mma_sp SparseTensorCoreIntrinEmitter".split(),
        ("is not there yet", "write T.gemm_sp(A_sparse, E, B, C), which takes the instructions")),
    "TensorCoreIntrinEmitterWithLadderTransform": (
        "reads operands in BitBLAS's order, which is not supported", "keep operands row-major, and use TensorCoreIntrinEmitter or T.gemm"),
}  # fmt: skip


class Refused(type):
    """A name that can be imported and asked about, isinstance included, and not be used."""

    def __call__(cls, *arguments, **named):
        cls.refuse()

    def refuse(cls):
        why, instead = _REFUSED[cls.__name__]
        fail("UnknownOperation", f"{cls.__name__}: {why}", instead)

    def __instancecheck__(cls, value):
        return False

    def __getattr__(cls, name):
        if name.startswith("_"):
            raise AttributeError(name)
        cls.refuse()


def _made(name):
    why, instead = _REFUSED[name]
    return Refused(name, (), {"__doc__": f"Refused when used: {why}. Instead: {instead}.", "__module__": __name__})


REFUSED = {name: _made(name) for name in _REFUSED}


# ---- nodes of expressions that are operations


class _Node(type):
    """T.Add(a, b) is a + b; what is made of it is no tree whose nodes could be asked for."""

    def __call__(cls, *operands, span=None, **named):
        return cls.made(*operands, **named)

    def __instancecheck__(cls, value):
        return cls.holds(value)


def _operator(name, operation, doc):
    number = OPERATIONS[operation]
    body = {"made": staticmethod(lambda a, b: apply(number, a, b)), "holds": staticmethod(lambda value: False), "__doc__": doc}
    return _Node(name, (), {**body, "__module__": __name__})


def _divided(a, b):
    integers = all(isinstance(x, int) or str(getattr(x, "dtype", "")).startswith(("int", "uint")) for x in (a, b))
    return apply(OPERATIONS["truncdiv" if integers else "div"], a, b)


def _constant_of(kind):
    def holds(value):
        constant = value.constant if isinstance(value, values.Expr) else None
        return constant is not None and isinstance(constant, kind)

    return holds


NODES = {
    name: _operator(name, operation, f"{operation} of two values; T.{name}(a, b) makes no node of a tree.")
    for name, operation in (
        ("Add", "add"), ("Sub", "sub"), ("Mul", "mul"), ("Mod", "truncmod"), ("FloorDiv", "floordiv"), ("FloorMod", "floormod"),
        ("Max", "max"), ("Min", "min"), ("EQ", "equal"), ("NE", "not_equal"), ("LT", "less"), ("LE", "less_equal"),
        ("GT", "greater"), ("GE", "greater_equal"),
    )
}  # fmt: skip
NODES["Div"] = _Node("Div", (), {"made": staticmethod(_divided), "holds": staticmethod(lambda v: False), "__module__": __name__,
                                 "__doc__": "The quotient: of integers rounded toward zero."})  # fmt: skip


class IntImm(metaclass=_Node):
    """A constant of an integer dtype; isinstance asks whether an expression is one."""

    made = staticmethod(lambda dtype, value: apply(OPERATIONS["constant"], value, str(dtype)))
    holds = staticmethod(_constant_of(int))


class FloatImm(metaclass=_Node):
    """A constant of a float dtype; isinstance asks whether an expression is one."""

    made = staticmethod(lambda dtype, value: apply(OPERATIONS["constant"], float(value), str(dtype)))
    holds = staticmethod(_constant_of(float))


class StringImm(metaclass=_Node):
    """A text."""

    made = staticmethod(lambda value: str(value))
    holds = staticmethod(lambda value: isinstance(value, str))


class BufferLoad(metaclass=_Node):
    """An element of a buffer: T.BufferLoad(A, [i, j]) is A[i, j]; isinstance asks whether a value is one."""

    made = staticmethod(lambda buffer, indices, predicate=None: buffer[tuple(indices)])
    holds = staticmethod(lambda value: isinstance(value, values.Tile))


class SizeVar(metaclass=_Node):
    """A dimension that is known at the call."""

    made = staticmethod(lambda name, dtype="int32": values.dynamic(name, dtype))
    holds = staticmethod(lambda value: isinstance(value, values.Expr) and hasattr(value, "symbol"))


class Call(metaclass=_Node):
    """An operation by its name: T.Call("float32", "tir.exp", [x]); isinstance asks whether a value is computed."""

    @staticmethod
    def made(dtype, op, args, annotations=None):
        from .builder_words import call_intrin

        return call_intrin(dtype, op, *args)

    holds = staticmethod(lambda value: isinstance(value, values.Expr) and value.constant is None)


class Range:
    """From begin to end: .min and .extent."""

    def __init__(self, begin, end=None, span=None):
        self.min, self.extent = (0, begin) if end is None else (begin, end - begin)


NODES.update({c.__name__: c for c in (IntImm, FloatImm, StringImm, BufferLoad, Call, SizeVar, Range)})
