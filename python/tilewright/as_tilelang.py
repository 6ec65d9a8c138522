"""`import tilelang` as Tilewright: by install(), by `tilewright run script.py`, or as a pytest plugin:
`pytest -p tilewright.as_tilelang`. The modules are a table of names; what they hold is this package's."""
import contextlib
import functools
import importlib.machinery
import importlib.util
import inspect
import json
import logging
import os
import pathlib
import sys
import types
import typing

import tilewright

from . import analysis, autodd, carver, children, device, dtypes, environment, execution_backends, foreign, jitted, kernel, language, layouts, plot_layout
from . import profiler, program, scopes, settings, sparse, targets, tcgen05, tilelang_parts, testing, tuner, tvm_nodes, types as kinds, values, warp_mma
from .refused import REFUSED
from .surroundings import hashable

_VERSION = "0.1.15"  # of the interface that is offered here


class _PassConfigKeys(type):
    """PassConfigKey.TL_ENABLE_FAST_MATH is "tl.enable_fast_math": keys are text."""

    def __getattr__(cls, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return settings.key_named(name)

    def __iter__(cls):
        return map(settings.Key, settings.KEYS.values())


class _Frames(type):
    """TVM's frames of loops, of which TileLang makes one for a loop by ones alone."""

    def __instancecheck__(cls, value):
        return isinstance(value, scopes.Loop) and value.by_ones


class IRBuilderFrame(metaclass=_Frames):
    pass


class PassConfigKey(metaclass=_PassConfigKeys):
    pass


class PassContext(contextlib.nullcontext):
    """tvm.transform.PassContext: options of passes that are not there."""

    def __init__(self, *ignored, **also_ignored):
        super().__init__(self)


def cached(factory, out_idx=None, *args, target="auto", **ignored):
    """The kernel of a program, or of the one that factory(*args) gives, made once."""
    key = factory, hashable(args), hashable(out_idx), str(target)
    if key not in _kernels:
        func = factory if isinstance(factory, program.PrimFunc) else factory(*args)
        _kernels[key] = kernel.compile(func, out_idx, target=target)
    return _kernels[key]


_kernels = {}


def lower(func, target="auto", **ignored):
    """What a program is compiled to."""
    made = kernel.compile(func, target=target)
    source = made.get_kernel_source()
    functions = [types.SimpleNamespace(name_hint=name) for name in foreign.kernels_in(source)]
    device = types.SimpleNamespace(functions=functions, script=func.script)
    host = types.SimpleNamespace(script=func.script)  # one program for both
    return types.SimpleNamespace(kernel_source=source, params=func.params, host_mod=host, device_mod=device, rt_mod=made)


def _nothing(*arguments, **named):
    return None


def register_cuda_postproc_callback(function=None, override=True):
    """Takes a function that edits CUDA text, and never calls it: the text goes from the generator to the compiler."""
    if not callable(function):
        return register_cuda_postproc_callback
    settings.warn_once(f"the callback '{getattr(function, '__name__', function)}' is not called: CUDA text is not edited here")
    return function


def clear_cache():
    """Forgets the kernels of cached(). Those in the folder of compiled kernels are found by their whole text."""
    _kernels.clear()


def _cache_folder_of_tilelang():
    """Kernels are kept where TILELANG_CACHE_DIR says, unless Tilewright's own variable says otherwise."""
    folder = os.environ.get("TILELANG_CACHE_DIR")
    if folder and not os.environ.get("TILEWRIGHT_CACHE_DIR"):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.environ["TILEWRIGHT_CACHE_DIR"] = os.path.join(folder, "tilewright")
        os.makedirs(os.environ["TILEWRIGHT_CACHE_DIR"], mode=0o700, exist_ok=True)


def _compute_version(target=None):
    major, minor = device.get_compute_capability()
    return f"{major}.{minor}"


def _parse_version(text):
    major, _, minor = str(text).partition(".")
    return int(major), int(minor or 0)


def _fp8(name="e4m3"):
    return language.float8_e4m3fn if "e4m3" in name else language.float8_e5m2


def _torch_type(name):
    exponent, _, kind = str(name).partition("_")
    return dtypes.dtype(f"{kind}_{exponent}" if kind == "float8" else name).as_torch()  # "e4m3_float8" in older programs


def apply_simplify(func, inline_let=False):
    """A program without the tensors that it does not use. Its expressions are simplified as they are recorded."""
    return func.simplified() if isinstance(func, program.PrimFunc) else func


def simplify_prim_func(func):
    """A function whose programs are without the tensors that they do not use."""

    @functools.wraps(func)
    def simplified(*arguments, **named):
        return apply_simplify(func(*arguments, **named))

    return simplified


def _simplifiers():
    return {"apply_simplify": apply_simplify, "simplify_prim_func": simplify_prim_func}


def _micro_size(of):
    return 16, 16, 256 // dtypes.dtype(of).bits


def _primitive_gemm(A, B, C, transpose_A=False, transpose_B=False, block_row_warps=None, block_col_warps=None, warp_row_tiles=None,
                    warp_col_tiles=None, chunk=None, policy=None, k_pack=1):  # fmt: skip
    """tilelang.primitives.gemm.gemm of earlier releases: T.gemm, which divides the product among warps by itself."""
    language.gemm(A, B, C, transpose_A, transpose_B, policy=language.GemmWarpPolicy.Square if policy is None else policy)


def _older_places():
    """Modules that earlier releases had these names in."""
    layout, emitter = language.make_swizzled_layout, warp_mma.TensorCoreIntrinEmitter
    of_int4 = "unpack both operands to int8, and use TensorCoreIntrinEmitter or T.gemm: there are no products of 4-bit integers"
    earlier = {name: tilelang_parts.Missing(name, of_int4) for name in ("INT4TensorCoreIntrinEmitter", "INT4TensorCoreIntrinEmitterWithLadderTransform")}
    earlier["TensorCoreIntrinEmitterWithLadderTransform"] = REFUSED["TensorCoreIntrinEmitterWithLadderTransform"]
    found = {
        "tilelang.intrinsics": {"make_mma_swizzle_layout": layout, "get_swizzle_layout": warp_mma.get_swizzle_layout, "TensorCoreIntrinEmitter": emitter},
        "tilelang.intrinsics.mma_macro_generator": {"TensorCoreIntrinEmitter": emitter, **earlier},
        "tilelang.intrinsics.mma_sp_macro_generator": {"SparseTensorCoreIntrinEmitter": sparse.SparseTensorCoreIntrinEmitter},
        "tilelang.intrinsics.mma_layout": {"make_mma_swizzle_layout": layout, "get_swizzle_layout": warp_mma.get_swizzle_layout},
        "tilelang.intrinsics.utils": {"get_mma_micro_size": _micro_size, "get_swizzle_layout": warp_mma.get_swizzle_layout},
        "tilelang.cache": {"cached": cached, "clear_cache": clear_cache},
        "tilelang.transform.simplify": _simplifiers(),
        "tilelang.utils.sparse": {
            n: getattr(sparse, n)
            for n in "compress compress_sm80 compress_sm90 randn_semi_sparse randint_semi_sparse arange_semi_sparse".split()
        },
        "tilelang.tileop.base": {"GemmWarpPolicy": language.GemmWarpPolicy},
        "tilelang.primitives": {"gemm": _primitive_gemm},
        "tilelang.primitives.gemm": {"gemm": _primitive_gemm},
        "tilelang.primitives.gemm.base": {"GemmWarpPolicy": language.GemmWarpPolicy},
    }
    return found


# Programs for TileLang may wait for its refusal: what they hear is a warning.
_autotune = functools.partial(tuner.autotune, portable=True)


def _modules():
    spoken = language._Part("tilelang.language", "Tilewright's language under TileLang's name.")
    top = {
        "jit": jitted.jit, "lazy_jit": jitted.jit, "compile": kernel.compile, "par_compile": jitted.par_compile, "cached": cached, "lower": lower,
        "autotune": _autotune, "cdiv": tilewright.cdiv, "next_power_of_2": tilewright.next_power_of_2,
        "DataType": dtypes.dtype, "JITKernel": kernel.Kernel, "JITImpl": jitted.Jit, "Profiler": profiler.Profiler,
        "TensorSupplyType": profiler.TensorSupplyType, "PassConfigKey": PassConfigKey, "disable_cache": _nothing,
        "enable_cache": _nothing, "clear_cache": clear_cache, "is_cache_enabled": lambda: True, "set_log_level": _nothing,
        "Layout": language.Layout, "Fragment": language.Fragment, "__version__": _VERSION, "__path__": [], "__file__": __file__,
        "dtypes": spoken,
    }  # fmt: skip
    tensors = {
        "torch_assert_close": testing.torch_assert_close, "get_tensor_supply": profiler.get_tensor_supply,
        "TensorSupplyType": profiler.TensorSupplyType, "map_torch_type": _torch_type,
    }  # fmt: skip
    jits = {"jit": jitted.jit, "JITKernel": kernel.Kernel, "JITImpl": jitted.Jit, "compile": kernel.compile, "par_compile": jitted.par_compile}
    tirx = {
        "Var": language.Var, "PrimExpr": values.Expr, "const": lambda v, dtype="int32": dtypes.dtype(dtype)(v),
        "Select": language.Select, "Cast": language.Cast, "if_then_else": lambda c, a, b: language.if_then_else(c, a, b),
        "call_extern": language.call_extern, "reinterpret": lambda dtype, value: language.reinterpret(value, dtype), "all": language.all_of, "any": language.any_of,
        **tvm_nodes.names(),
    }  # fmt: skip
    return {
        **tilelang_parts.modules(),
        "tilelang": top,
        "tilelang.jit": jits,
        "tilelang.jit.kernel": jits,
        "tilelang.env": environment.Environment(),
        "tilelang._ffi_api": {
            "Layout_repeat": lambda layout, dim, factor: layout.repeat(dim, factor),
            "get_tcgen5_instr_desc": tcgen05.instruction_descriptor, "get_tcgen5_blockscaled_instr_desc": tcgen05.block_scaled_descriptor,
        },
        "tilelang.engine": {"lower": lower},
        "tilelang.engine.lower": {"lower": lower},
        "tilelang.engine.param": {"KernelParam": kinds.Parameter},
        "tilelang.engine.callback": {"register_cuda_postproc_callback": register_cuda_postproc_callback},
        "tilelang.autotuner.tuner": {"autotune": _autotune, "AutoTuner": tuner.AutoTuner},
        "tilelang.autodd": {"__command__": autodd.main, "main": autodd.main, "__freeze__": autodd.__freeze__},
        "tilelang.autotuner": {"autotune": _autotune, "jit": tuner.jit, "AutoTuner": tuner.AutoTuner, "set_autotune_inputs": tuner.set_autotune_inputs},
        "tilelang.dtypes": spoken,
        "tilelang.errors": {},
        "tilelang.math": {"next_power_of_2": tilewright.next_power_of_2, "cdiv": tilewright.cdiv},
        "tilelang.transform": {"PassConfigKey": PassConfigKey, **_simplifiers()},
        "tilelang.transform.pass_config": {"PassConfigKey": PassConfigKey},
        "tilelang.utils": {"map_torch_type": _torch_type, "determine_fp8_type": _fp8, "determine_torch_fp8_type": lambda n="e4m3": _fp8(n).as_torch()},
        "tilelang.utils.tensor": tensors,
        "tilelang.utils.target": targets,
        "tilelang.utils.device": {"get_current_device": lambda: "cuda" if tilewright._native.device_count() else "cpu"},
        "tilelang.backend": {},
        "tilelang.backend.target": targets,
        "tilelang.backend.execution_backend": execution_backends,
        "tilelang.contrib": {},
        "tilelang.contrib.nvcc": {"get_target_compute_version": _compute_version, "parse_compute_version": _parse_version},
        **carver.modules(),
        "tilelang.carver.arch.driver": {"get_num_sms": device.get_num_sms},
        "tilelang.carver.arch.driver.cuda_driver": device,
        "tilelang.language.dtypes": {
            **{n: dtypes.dtype(n) for n in dtypes.NAMES}, "dtype": dtypes.dtype, "_all_dtypes": list(dtypes.NAMES),
            "_TORCH_DTYPE_TO_STR": dtypes.TorchNames(),
            **{n: getattr(language, n) for n in ("get_tvm_dtype", "is_float4", "is_float4_e2m1fn", "is_float4_e2m1_unpacked", "is_f8f6f4_family")},
            "resolve_torch_storage_dtype": lambda of: dtypes.dtype(str(dtypes.dtype(of).as_torch())),
        },
        "tilelang.language.fp8": {"determine_fp8_type": _fp8, "determine_torch_fp8_type": lambda n="e4m3": _fp8(n).as_torch()},
        "tilelang.language": spoken,
        "tilelang.language.kernel": {"Kernel": language.Kernel, "KernelLaunchFrame": language.KernelLaunchFrame, "_normalize_threads": scopes.thread_extents},
        "tilelang.rocm": {},
        "tilelang.rocm.target": {"check_hip_availability": lambda: False, "target_is_gfx950": lambda t=None: False},
        "tilelang.cuda": {},
        "tilelang.cuda.target": targets,
        "tilelang.cuda.intrinsics": {
            "make_mma_swizzle_layout": language.make_swizzled_layout, "get_swizzle_layout": warp_mma.get_swizzle_layout,
            "TensorCoreIntrinEmitter": warp_mma.TensorCoreIntrinEmitter,
        },
        "tilelang.cuda.intrinsics.macro": {},
        "tilelang.cuda.intrinsics.macro.mma_macro_generator": warp_mma,
        "tilelang.cuda.intrinsics.sparse_layout": sparse,
        "tilelang.cuda.intrinsics.layout": {},
        "tilelang.cuda.intrinsics.layout.mma_layout": {"make_mma_swizzle_layout": language.make_swizzled_layout},
        **_older_places(),
        "tilelang.tools": {"Analyzer": analysis.Analyzer, "plot_layout": plot_layout.plot_layout},
        "tilelang.tools.plot_layout": plot_layout,
        "tilelang.layout": layouts,
        "tilelang.layout.layout": layouts,
        "tilelang.layout.fragment": layouts,
        "tilelang.layout.swizzle": layouts,
        "tilelang.layout.gemm_sp": layouts,
        "tilelang.profiler": profiler,
        "tilelang.profiler.bench": {"do_bench": profiler.do_bench, "_bench_with_cupti": profiler.by_profiler},
        "tilelang.testing": testing,
        "tvm": {"DataType": dtypes.dtype, "TVMError": tilewright.TilewrightError, "__path__": []},
        "tvm.target": {"Target": targets.Target},
        "tvm.transform": {"PassContext": PassContext},
        "tvm.te": {"var": lambda name="tindex", dtype="int32", span=None: values.dynamic(name, dtype)},
        "tvm.testing": testing,
        "tvm.error": {"InternalError": tilewright.TilewrightError},
        "tvm.ir": {"PrimExpr": values.Expr},
        "tvm.tirx": tirx,
        "tvm.tirx.stmt_functor": {"post_order_visit": tvm_nodes.post_order_visit, "ir_transform": tvm_nodes.ir_transform},
        "tvm.tirx.expr": {**tirx, "Not": language.Not, "Or": language.Or},
        "tvm.script": {},
        "tvm.script.ir_builder": {},
        "tvm.script.ir_builder.base": {"IRBuilderFrame": IRBuilderFrame},
        "tvm.tir": tirx,
    }  # fmt: skip


def _is_installed(name):
    """Whether a package of that name can be imported; a folder of that name that holds none is none."""
    if name in sys.modules:
        found = getattr(sys.modules[name], "__spec__", None)
        return found is None or found.origin is not None
    found = importlib.util.find_spec(name)
    return found is not None and found.origin is not None and not children.is_here(found)


def _made(name, content):
    """The module of a row of the table."""
    if name == "tvm" or name.startswith("tvm."):
        return tilelang_parts.Open(name, content, tvm_nodes.absent)
    if tilelang_parts.is_open(name):
        return tilelang_parts.Open(name, content)
    module = types.ModuleType(name, "Tilewright under TileLang's name.")
    module.__dict__.update({"__path__": [], **content, "__tilewright__": True})
    return module


def _imported_by_the_autotuner():
    """What `from tilelang.autotuner import *` brought besides while that was one file: programs name it without imports of
    their own."""
    of_typing = ("Any", "Callable", "Dict", "List", "Literal", "Optional", "Tuple", "Union")
    of_python = {m.__name__: m for m in (functools, inspect, json, logging, os, sys)}
    named = {n: getattr(typing, n) for n in of_typing}
    return {"tilelang": sys.modules["tilelang"], "tvm": sys.modules.get("tvm"), "partial": functools.partial, "Path": pathlib.Path, **of_python, **named}


def install(force=False, for_children=None):
    """Puts the modules where `import tilelang` finds them. for_children: in processes of Python that this one starts too;
    where nobody says, if no TileLang is installed, which they would find."""
    found = sys.modules.get("tilelang")
    if getattr(found, "__tilewright__", False):
        return
    is_installed = _is_installed("tilelang")
    if not force and is_installed:
        raise tilewright.TilewrightError(
            "TileLang itself is installed, and `import tilelang` gives it. install_as_tilelang(force=True) hides it in "
            "this process; to use both, import tilewright by its own name"
        )
    real_tvm = "tvm" in sys.modules or _is_installed("tvm")
    _cache_folder_of_tilelang()
    for name, content in sorted(_modules().items()):  # parents first
        if name.partition(".")[0] == "tvm" and real_tvm:
            continue
        if isinstance(content, types.ModuleType):
            sys.modules[name] = content
            if content.__spec__ is None:  # importlib.util.find_spec() would fail
                content.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
                content.__path__ = []  # python -m then asks for its __main__, which is the Finder's
        else:
            module = sys.modules[name] = _made(name, content)
            module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        parent, _, child = name.rpartition(".")
        if parent and not callable(vars(language if parent == "tilelang.language" else sys.modules[parent]).get(child)):
            setattr(sys.modules[parent], child, sys.modules[name])
    sys.modules["tilelang"].tvm = sys.modules.get("tvm")
    vars(sys.modules["tilelang.autotuner"]).update(_imported_by_the_autotuner())
    sys.meta_path.append(tilelang_parts.Finder)
    if not is_installed if for_children is None else for_children:
        children.prepare(not real_tvm)


def pytest_addoption(parser):
    """The first that a plugin is asked: before other plugins and the conftest.py of the project are imported."""
    install()
