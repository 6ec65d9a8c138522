"""Hints: arguments and statements of programs that change no result. They are checked all the same: what nobody can have meant is
refused, and what means nothing here is warned of once."""
import operator
import typing
from collections.abc import Mapping

from .elsewhere import nearest
from .index_maps import AnyLayout, Fragment, need_shape
from .settings import options_of, warn_once
from .trace import OPERATIONS, apply, fail, recording
from .values import Buffer, Expr, plain


def refuse(word, name, value, wanted):
    """The error of an argument with an impossible value."""
    said = repr(value)
    fail("BadOption", f"{word}: {name} is {said if len(said) < 60 else f'of type {type(value).__name__}'}", f"it is {wanted}", also=TypeError)


def integer(word, name, value, least, wanted):
    """An integer that is known while the program is made."""
    known = _index(plain(value))
    if known is None or known < least:
        refuse(word, name, value, wanted)
    return known


def _index(value):
    try:
        return None if isinstance(value, (bool, Expr)) else operator.index(value)
    except TypeError:
        return None


# ---- arguments


def _is_switch(value):
    return isinstance(value, (bool, int)) and value in (0, 1)


def _is_count(least):
    return lambda value: (_index(plain(value)) or 0) >= least and _index(plain(value)) is not None


def _is_lists_of_numbers(value):
    return isinstance(value, (list, tuple)) and all(
        isinstance(e, (list, tuple)) and all(_index(plain(i)) is not None for i in e) for e in value
    )


_SWITCH = _is_switch, "True or False"
_POLICIES = ("evict_normal", "evict_first", "evict_last")
_REPLICATIONS = ("all", "none")
_CHECKS = {
    "annotations": (lambda value: isinstance(value, Mapping), "a dictionary of hints by their names"),
    "coalesced_width": (_is_count(1), "how many elements a thread moves at once"),
    "eviction_policy": (lambda value: isinstance(value, str) and value in _POLICIES, f"one of {', '.join(_POLICIES)}"),
    "loop_layout": (lambda value: isinstance(value, AnyLayout), "a T.Fragment: which thread takes which point"),
    "replication": (lambda value: isinstance(value, str) and value in _REPLICATIONS, f"one of {', '.join(_REPLICATIONS)}"),
    "k_pack": (_is_count(1), "1 or more"),
    "batch": (_is_count(1), "1 or more"),
    "wg_wait": (_is_count(-1), "how many groups may be under way, or -1 to leave them so"),
    "warp_group_id": (_is_count(0), "the number of a group of warps"),
    "warp_id": (_is_count(0), "the number of a warp"),
    "sync": (_is_lists_of_numbers, "a list of lists of positions"),
    "group": (_is_lists_of_numbers, "a list of lists of positions"),
    **dict.fromkeys(("disable_tma", "use_tma", "prefer_async", "explicit", "no_stack_info", "is_inc", "read"), _SWITCH),
}  # fmt: skip


def check(word, name, value):
    """One argument of a word of the language that changes no result; None is none."""
    found = _CHECKS.get(name)
    if value is None or found is None:
        return
    if not found[0](value):
        refuse(f"T.{word}", name, value, found[1])
    if name == "annotations":
        for key, one in value.items():
            if key not in _CHECKS:
                warn_once(f"T.{word}: the annotation {key!r} is not known and is left out")
            check(word, key, one)


def check_all(word, **named):
    for name, value in named.items():
        check(word, name, value)


def check_loop_layout(word, layout, extents):
    """A layout of a loop is of the loop's points."""
    if layout is None:
        return
    check(word, "loop_layout", layout)
    need_shape(layout, extents, f"T.{word}", "the loop")
    if not isinstance(layout, Fragment) and layout.kind == "function":
        refuse(f"T.{word}", "loop_layout", layout, _CHECKS["loop_layout"][1])


# ---- statements


def need_mapping(word, value, example):
    if not isinstance(value, Mapping):
        refuse(f"T.{word}", "the argument", value, f"a dictionary: T.{word}({example})")


def _need_global(word, buffer):
    if not isinstance(buffer, Buffer):
        refuse(f"T.{word}", "a tensor", buffer, "a tensor of the program")
    if buffer.scope() != "global":
        fail("LayoutSpace", f"{word}: '{buffer.name}' is a {buffer.scope()} buffer", "it is for global tensors")


def annotate_l2_hit_ratio(l2_hit_ratio_map: typing.Any) -> None:
    """How much of a global tensor, from 0 to 1, is to stay in the L2 cache: a hint."""
    need_mapping("annotate_l2_hit_ratio", l2_hit_ratio_map, "{A: 0.5}")
    for buffer, ratio in l2_hit_ratio_map.items():
        _need_global("annotate_l2_hit_ratio", buffer)
        value = plain(ratio)
        value = value.constant if isinstance(value, Expr) else value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            refuse("T.annotate_l2_hit_ratio", f"the ratio of '{buffer.name}'", ratio, "a number from 0 to 1")


def annotate_restrict_buffers(*buffers: typing.Any) -> None:
    """Tensors that no other parameter shares memory with: a hint; every call is checked for it."""
    for buffer in buffers:
        _need_global("annotate_restrict_buffers", buffer)


def _registers(word, count):
    known = integer(f"T.{word}", "the number of registers", count, 24, "a multiple of 8 from 24 to 256")
    if known > 256 or known % 8:
        refuse(f"T.{word}", "the number of registers", count, "a multiple of 8 from 24 to 256")


def annotate_producer_reg_dealloc(reg_count: int = 24) -> None:
    """How many registers a loading warp keeps: a hint, which the plan decides."""
    _registers("annotate_producer_reg_dealloc", reg_count)


def annotate_consumer_reg_alloc(reg_count: int = 240) -> None:
    """How many registers a computing warp gets: a hint, which the plan decides."""
    _registers("annotate_consumer_reg_alloc", reg_count)


def annotate_pass_configs(configs: typing.Any) -> None:
    """Options of this program, in the words of jit(pass_configs=...)."""
    _set_options(options_of(configs))


def annotate_compile_flags(flags: typing.Any) -> None:
    """Flags of the device's compiler, as jit(compile_flags=...) takes them."""
    _set_options(options_of(None, flags))


def _set_options(options):
    recording("an option")
    for name, value in options.items():
        apply(OPERATIONS["set_option"], name, value)


def func_attr(attrs: typing.Any) -> None:
    """Attributes of TVM's functions: a hint."""
    need_mapping("func_attr", attrs, '{"tir.noalias": True}')


def near_name(name, names):
    """The help for a name that is none of these."""
    near = nearest(name, names, 0.6, 1)
    return f"the nearest it has: {near}" if near else f"it has {', '.join(names)}"


STATEMENTS = [annotate_l2_hit_ratio, annotate_restrict_buffers, annotate_producer_reg_dealloc, annotate_consumer_reg_alloc,
              annotate_pass_configs, annotate_compile_flags, func_attr]  # fmt: skip
