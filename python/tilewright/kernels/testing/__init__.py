"""Measuring kernels, comparing tensors, and shapes to test with."""

from . import bench, generator, numeric, quant
from .bench import benchmark_kernel
from .quant import clear_unused_sf
