"""Layers with gradients: the gate of an engram, hyper-connections."""
from . import engram, mhc
