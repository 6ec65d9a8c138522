"""SwiGLU inside of programs: the first half of a row is the gate, the second what it is multiplied with."""

from __future__ import annotations

import tilewright.language as T


def limited(gate, up, limit):
    """Both halves within a limit: the gate from above, the other from both sides. NaN stays."""
    gate = T.if_then_else(gate > limit, limit, gate)
    return gate, T.if_then_else(up > limit, limit, T.if_then_else(up < -limit, -limit, up))


def silu_times(gate, up):
    """silu(gate) * up."""
    return gate / (1.0 + T.exp(-gate)) * up
