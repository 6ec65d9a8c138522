"""Tiles to try for a kernel, the fastest by the cost model first: what programs ask of tilelang.carver before they tune.

template = MatmulTemplate(4096, 4096, 4096).with_arch(CUDA("H200"))
for hint in template.recommend_hints(topk=10): hint.block, hint.warp, hint.rstep, hint.pipeline_stage
"""
from .arch import CDNA, CPU, CUDA, TileDevice, auto_infer_current_arch, get_arch
from .hints import Hint, NoRasterization, Rasterization, Rasterization2DColumn, Rasterization2DRow
from .policies import DefaultPolicy, TensorCorePolicy, get_roller_hints_from_func, get_roller_hints_from_output_nodes
from .templates import (BaseTemplate, ConvTemplate, ElementwiseTemplate, FlashAttentionTemplate, GEMVTemplate, GeneralReductionTemplate,
                        MatmulTemplate)  # fmt: skip

__all__ = [
    "BaseTemplate", "CDNA", "CPU", "CUDA", "ConvTemplate", "DefaultPolicy", "ElementwiseTemplate", "FlashAttentionTemplate", "GEMVTemplate",
    "GeneralReductionTemplate", "Hint", "MatmulTemplate", "NoRasterization", "Rasterization", "Rasterization2DColumn", "Rasterization2DRow",
    "TensorCorePolicy", "TileDevice", "auto_infer_current_arch", "get_arch", "get_roller_hints_from_func", "get_roller_hints_from_output_nodes",
]  # fmt: skip


def modules():
    """Under TileLang's names: name of a module -> what it has."""
    from . import arch, hints, policies, templates

    of = lambda *parts: {name: value for part in parts for name, value in vars(part).items() if not name.startswith("_")}  # noqa: E731
    found = {"": {name: globals()[name] for name in __all__}, "utils": of(policies), "roller": of(hints, policies), "roller.hint": of(hints),
             "roller.rasterization": of(hints)}  # fmt: skip
    found.update({f"arch{name}": of(arch) for name in ("", ".arch_base", ".cuda", ".cpu", ".cdna")})
    found.update({f"template{name}": of(templates) for name in ("", ".base", ".matmul", ".gemv", ".elementwise", ".general_reduce", ".flashattention", ".conv")})
    found.update({f"roller.policy{name}": of(policies) for name in ("", ".default", ".tensorcore")})
    return {f"tilelang.carver.{name}".rstrip("."): content for name, content in found.items()}
