"""Layouts of tiles by their names: hints, which change no result."""
from typing import Any

from .language import Fragment, Layout, make_linear_layout, make_swizzled_layout

make_full_bank_swizzled_layout = make_swizzled_layout
make_half_bank_swizzled_layout = make_swizzled_layout
make_quarter_bank_swizzled_layout = make_swizzled_layout
make_wgmma_swizzled_layout = make_swizzled_layout
make_volta_swizzled_layout = make_swizzled_layout


class _Ours(type(make_swizzled_layout(None))):
    """A layout that is left to the compiler."""

    def annotate(self, buffer):
        pass


def make_fully_replicated_layout_fragment(*arguments: Any, **named: Any) -> Any:
    """Fragments lie as the compiler sees fit: the name changes no result."""
    return _Ours()


make_gemm_fragment_8x8 = make_fully_replicated_layout_fragment
make_gemm_fragment_8x8_transposed = make_fully_replicated_layout_fragment
make_tcgen05mma_swizzled_layout = make_fully_replicated_layout_fragment
make_cutlass_metadata_layout = make_fully_replicated_layout_fragment
make_metadata_layout = make_fully_replicated_layout_fragment  # of earlier releases

__all__ = ["Fragment", "Layout", "make_linear_layout", "make_swizzled_layout"]
