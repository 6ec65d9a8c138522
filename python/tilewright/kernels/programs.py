"""Tile programs in Python as families of kernels, kept, planned and sealed as those of tilewright.ops are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..ops.calls import PROGRAMS, Specialization, compiled, place_of, recording
from ..pretended_gpu import is_pretended
from ..trace import state


class Family:
    """A function from options to a program: called with them and a tensor, it gives the kernel for where that tensor is."""

    def __init__(self, make: Callable[..., Any]) -> None:
        functools.update_wrapper(self, make)
        self._kept: dict[Any, Any] = {}  # kernels, by place and options
        self.name = f"{make.__module__.rpartition('.kernels.')[2]}.{make.__name__}"
        PROGRAMS[self.name] = self.program

    def program(self, **options):
        """The program for these options. What it multiplies of float32 is one of them: under TileLang's name it would be the
        default's."""
        outer, state.options = state.options, {"tf32": bool(options.get("tf32"))}
        try:
            return self.__wrapped__(**options)
        finally:
            state.options = outer

    def specialization(self, tensor, **options):
        """The program for these options, on the engine that calls with such a tensor take. A Spec may stand for the tensor."""
        place = place_of(tensor)
        return Specialization(
            self.name, tuple(sorted(options.items())), place.engine, place.arch if place.engine == "simulator" else "", ()
        )

    def __call__(self, tensor, **options):
        if recording.found is not None:
            return compiled(self.specialization(tensor, **options))
        key = (place_of(tensor), *options.items())
        kernel = self._kept.get(key)
        if kernel is None:
            kernel = self._kept[key] = compiled(self.specialization(tensor, **options))
        return kernel


def takes_tf32(tensor):
    """Whether products of float32 take 10 bits of mantissa: on a GPU, and where one is pretended, whose references do so too."""
    return place_of(tensor).engine == "cuda" or is_pretended()


def range_of(count):
    """Numbers of Python's, which a loop in a program is not made of."""
    return tuple(range(count))


def added(terms):
    """The sum of terms of a program, one after the other."""
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
