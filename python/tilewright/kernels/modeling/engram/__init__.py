"""Layers of the engram."""

from .engram_gate import EngramGateFn, engram_gate
