"""Options of compilations in TileLang's words: what means something here, what is known and changes no result, and what
is misspelt."""
import os
import re
import sys
import warnings
from collections.abc import Mapping

from .elsewhere import nearest
from .trace import fail
from .tracebacks import is_ours

# tl.NAME is TL_NAME of PassConfigKey, and tirx.NAME is TIR_NAME.
_TL = (
    "ast_print_enable config_index_bitwidth debug_merge_shared_memory_allocations device_compile_flags "
    "disable_buffer_init_check disable_data_race_check disable_dynamic_tail_split disable_fast_math "
    "disable_loop_unswitching disable_out_of_bound_warning disable_prelower_semantic_check disable_rs_gemm "
    "disable_shared_memory_reuse disable_shuffle_elect disable_thread_storage_sync disable_tma_lower disable_vectorize_256 "
    "disable_warp_specialized disable_wgmma dynamic_alignment emit_line_directives enable_aggressive_shared_memory_merge "
    "enable_async_copy enable_auto_warp_specialization enable_dump_ir enable_fast_math enable_fp32x2_reduction "
    "enable_lower_ldgstg enable_lower_ldgstg_predicated enable_ptxas_verbose_output enable_reducer_plan_verbose "
    "enable_vectorize_planner_verbose force_let_inline if_stmt_binding_inline_replayable_binds layout_cost_model "
    "layout_visualization_enable layout_visualization_formats loop_unswitching_allow_non_trivial_else pass_profile "
    "pass_profile_threshold_ms ptxas_register_usage_level reducer_force_baseline storage_rewrite_detect_inplace "
).split()
_TIR = (
    "add_lower_pass disable_storage_rewrite disable_vectorize enable_debug merge_static_smem noalias use_async_copy "
).split()
_OTHERS = {
    "TL_SIMPLIFY": "tl.Simplify",
    "TL_SIMPLIFY_TRANSITIVELY_PROVE_INEQUALITIES": "transitively_prove_inequalities",
    "TL_SIMPLIFY_CONVERT_BOOLEAN_TO_AND_OF_ORS": "convert_boolean_to_and_of_ors",
    "TL_SIMPLIFY_APPLY_CONSTRAINTS_TO_BOOLEAN_BRANCHES": "apply_constraints_to_boolean_branches",
    "TL_SIMPLIFY_PROPAGATE_KNOWNS_TO_PROVE_CONDITIONAL": "propagate_knowns_to_prove_conditional",
    "TL_SIMPLIFY_PROPAGATE_KNOWNS_TO_SIMPLIFY_EXPRESSIONS": "propagate_knowns_to_simplify_expressions",
    "TL_SIMPLIFY_ENABLE_LET_INLINE": "enable_simplify_let_inline",
    "TL_DISABLE_SAFE_MEMORY_ACCESS": "tl.disable_safe_memory_legalize",
    "TIR_ENABLE_EQUIV_TERMS_IN_CSE": "tir.enable_equiv_terms_in_cse_tir",
    "TIR_DISABLE_CSE": "tirx.disable_cse_tir",
    "TIR_SIMPLIFY": "tirx.Simplify",
    "TL_DUMP_IR_DIR": "tl.dump_ir_path",
}
KEYS = {**{f"TL_{n.upper()}": f"tl.{n}" for n in _TL}, **{f"TIR_{n.upper()}": f"tirx.{n}" for n in _TIR}, **_OTHERS}
_KNOWN = frozenset(KEYS.values()) | {k.replace("tirx.", "tir.") for k in KEYS.values()}
# Keys that choose an option of a program; the value is negated where False stands beside it.
_MEANINGS = {"tl.enable_fast_math": ("fast_math", True), "tl.disable_fast_math": ("fast_math", False), "tilewright.tf32": ("tf32", True),
             "tilewright.zero_unwritten": ("zero_unwritten", True)}  # fmt: skip
_DUMP, _FOLDER = "tl.enable_dump_ir", KEYS["TL_DUMP_IR_DIR"]
_DUMP_KEYS = frozenset({_DUMP, _FOLDER, "tl.dump_ir_dir"})
_PICTURES, _FORMATS = "tl.layout_visualization_enable", "tl.layout_visualization_formats"
# Flags of NVCC that change no result here, and those of ptxas: how hard it tries, what it prints, which C++ it takes.
_CHANGES_NOTHING = re.compile(
    r"-O[0-3]|--optimize=[0-3]|-U__CUDA_NO_\w+|--?(expt|extended)-[\w-]+|--?std=\S+|-lineinfo|--generate-line-info|-v|--verbose|-w|-W\S*|-DNDEBUG|"
    r"--?ftz=false|--?prec-(?:div|sqrt)=true|--disable-warnings|--?diag[-_]suppress=\S+|--?(res|resource)-usage|-Xcompiler=\S+|--compiler-options=\S+|--?split-compile=\d+|--threads=\d+|-t=\d+"
)
_FMAD = re.compile(r"-?-fmad=(true|false)")  # products and sums as one operation
_CHANGES_NOTHING_OF_PTXAS = re.compile(r"-O[0-3]|-v|--verbose|-w|--warn-[\w-]+|-warn-[\w-]+|--?register-usage-level=\d+")
_OF_PTXAS = ("-Xptxas=", "--ptxas-options=", "-ptxas-options=")
_WITH_VALUE = frozenset("-O --optimize -std --std -Xptxas --ptxas-options -Xcompiler --compiler-options -diag-suppress --diag-suppress -t --threads "
                        "-fmad --fmad -ftz --ftz -prec-div --prec-div -prec-sqrt --prec-sqrt".split())  # fmt: skip
_warned = set()


def depth_of_user():
    """The stacklevel by which a warning of the caller is one of the user's line."""
    depth, frame = 1, sys._getframe(1)
    while is_ours(frame.f_code) and frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    return depth


def warn_once(message):
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, stacklevel=depth_of_user())


class Key(str):
    """A key of pass_configs: text with .value, as a member of an enumeration has it."""

    __slots__ = ()

    @property
    def value(self):
        return str(self)


def key_named(name):
    """The key of PassConfigKey.NAME."""
    if name in KEYS:
        return Key(KEYS[name])
    near = nearest(name, KEYS, 0.8, 1)
    if near:
        fail("UnknownOperation", f"PassConfigKey has no {name}", f"the nearest it has: {near}", also=AttributeError)
    area, _, rest = name.partition("_")
    key = f"{area.lower()}.{rest.lower()}"
    warn_once(f"PassConfigKey.{name} is not known and is left out")
    return Key(key)


def _check(key):
    if key in _KNOWN or key in _MEANINGS or key in _DUMP_KEYS:
        return
    near = nearest(key, [*_KNOWN, *_MEANINGS], 0.85, 1)
    if near:
        fail("BadOption", f"there is no option '{key}' of pass_configs", f"the nearest is '{near}'")
    warn_once(f"the option '{key}' is not known and is left out")


def options_of(pass_configs, compile_flags=None):
    """The options of a program that keys of pass_configs and flags of a compiler name."""
    options = {}
    if pass_configs is not None and not isinstance(pass_configs, Mapping):
        fail("BadOption", f"pass_configs is of type {type(pass_configs).__name__}", 'it is a dictionary: {"tl.enable_fast_math": True}')
    for key, value in (pass_configs or {}).items():
        key = str(getattr(key, "value", key))
        _check(key)
        if key in _MEANINGS:
            option, when = _MEANINGS[key]
            if not isinstance(value, (bool, int)):
                fail("BadOption", f"the option '{key}' of pass_configs is {value!r}", "it is True or False")
            options[option] = bool(value) is when
        elif key == KEYS["TL_DEVICE_COMPILE_FLAGS"]:
            options.update(_of_flags(value))
    options.update(_of_flags(compile_flags))
    return options


def _of_flags(flags):
    options = {}
    flags = flags.split() if isinstance(flags, str) else () if flags is None else flags
    if not isinstance(flags, (list, tuple)) or not all(isinstance(f, str) for f in flags):
        fail("BadOption", f"the flags of the compiler are {flags!r}", 'they are a text or a list of texts: ["-use_fast_math"]')
    words, left_out = iter(" ".join(flags).split()), []
    for flag in words:
        if flag in _WITH_VALUE:
            flag += ("" if flag == "-O" else "=") + next(words, "")
        if flag.lstrip("-") in ("use_fast_math", "use_fast_math=true"):
            options["fast_math"] = True
        elif fused := _FMAD.fullmatch(flag):
            options["contract"] = fused[1] == "true"
        elif flag.startswith(_OF_PTXAS):
            name, _, of_ptxas = flag.partition("=")
            left_out += [f"{name}={part}" for part in of_ptxas.split(",") if not _CHANGES_NOTHING_OF_PTXAS.fullmatch(part)]
        elif not _CHANGES_NOTHING.fullmatch(flag):
            left_out.append(flag)
    if left_out:
        named = ", ".join(f"'{flag}'" for flag in dict.fromkeys(left_out))
        what = f"flags {named} are" if len(set(left_out)) > 1 else f"flag {named} is"
        warn_once(f"the compiler {what} left out: kernels are compiled with flags of their own")
    return options


def dump(pass_configs, kernel, program):
    """Writes the program and the text that it was compiled to, and pictures of its layouts, where pass_configs ask for it."""
    named = {str(getattr(k, "value", k)): v for k, v in (pass_configs or {}).items()}
    if named.get(_PICTURES):
        _draw_layouts(kernel, str(named.get(_FORMATS) or "svg"))
    if not named.get(_DUMP):
        return
    folder = str(named.get(_FOLDER) or named.get("tl.dump_ir_dir") or "dump_ir")
    os.makedirs(folder, exist_ok=True)
    for suffix, text in (("tile", program.text), ("txt", kernel.source)):
        if text:
            with open(os.path.join(folder, f"{kernel.name}.{kernel.engine}.{suffix}"), "w", encoding="utf-8") as file:
                file.write(text)


def _draw_layouts(kernel, formats):
    """Of each tile tmp/KERNEL.TILE.svg, or its layout as text where the formats say txt, as a GPU has it."""
    from .pictures import plot, tiles_of

    wanted = [name.strip() for name in formats.split(",")]
    for name in wanted:
        if name not in ("svg", "txt", "all"):
            warn_once(f"pictures of layouts are SVG or text: the format '{name}' of tl.layout_visualization_formats is left out")
    os.makedirs("tmp", exist_ok=True)
    for tile in dict.fromkeys(tiles_of(kernel)):
        picture = plot(kernel, tile)
        path = os.path.join("tmp", f"{kernel.name}.{tile}")
        if {"svg", "all"} & set(wanted) or "txt" not in wanted:
            picture.save(f"{path}.svg")
        if {"txt", "all"} & set(wanted):
            with open(f"{path}.txt", "w", encoding="utf-8") as file:
                file.write(f"{picture.title}\n")


def refuse_unknown(function, unknown, known):
    """For keywords that a function does not have."""
    for name in unknown:
        near = nearest(name, known, 0.6, 1)
        help = f"the nearest it has: {near}" if near else f"it takes {', '.join(known)}"
        fail("BadOption", f"{function}() got an unexpected keyword argument '{name}'", help, also=TypeError)
