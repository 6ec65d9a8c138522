"""Engrams: hashes of n-grams, and the gate that adds what is found to hidden states."""

from .gate import engram_gate_bwd, engram_gate_fwd, engram_hash, fused_weight, grad_w_reduce
from .projection import engram_gate_backward, engram_gate_forward, engram_weight_grad
