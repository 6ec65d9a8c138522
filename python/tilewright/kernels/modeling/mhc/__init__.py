"""Layers of manifold hyper-connections."""

from .functional import expand_from_embedding, mhc_head, mhc_pre
from .ops import mhc_post
