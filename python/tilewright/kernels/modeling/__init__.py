"""Layers with gradients: the gate of an engram, hyper-connections; modules of PyTorch over them."""

from . import engram, mhc
from .layers import EngramGateLayer, MHCPipeline
