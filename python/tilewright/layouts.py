"""Layouts of tiles by their names: hints, which change no result."""
from .language import Fragment, Layout, make_linear_layout, make_swizzled_layout

make_full_bank_swizzled_layout = make_half_bank_swizzled_layout = make_swizzled_layout
make_quarter_bank_swizzled_layout = make_wgmma_swizzled_layout = make_volta_swizzled_layout = make_swizzled_layout

__all__ = ["Fragment", "Layout", "make_linear_layout", "make_swizzled_layout"]
