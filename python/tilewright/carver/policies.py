"""The ways to ask for hints that TileLang's roller has: by a policy, from the function of a template."""
from ..trace import fail
from .arch import auto_infer_current_arch
from .hints import Hint
from .templates import BaseTemplate


def _template_of(what):
    template = what if isinstance(what, BaseTemplate) else getattr(what, "carved_by", None)
    if template is None:
        fail("OperandKind", f"tiles for {type(what).__name__}",
             "hints are for what a template of tilewright.carver makes: MatmulTemplate(...).equivalent_function()", also=ValueError)  # fmt: skip
    return template


class DefaultPolicy:
    """Hints for a template's function, the fastest by the cost model first."""

    only_matrices = False

    def __init__(self, func=None, arch=None, tags=None):
        self.template = None if func is None else _template_of(func)
        self.arch, self.tags = arch or auto_infer_current_arch(), tags or {}

    @classmethod
    def from_prim_func(cls, func, arch=None, tags=None, name="PrimFuncNode"):
        return cls(func, arch, tags)

    @classmethod
    def from_output_nodes(cls, nodes, arch=None, tags=None):
        return cls(nodes[-1], arch, tags)

    def emit_config(self, topk: int = 10) -> list[Hint]:
        hints = self.template.get_hardware_aware_configs(self.arch, None)
        return [hint for hint in hints if hint.use_tc or not self.only_matrices][:topk]


class TensorCorePolicy(DefaultPolicy):
    """Hints that instructions on matrices are used with."""

    only_matrices = True


def get_roller_hints_from_func(func_or_module, arch=None, topk=10, tensorcore_only=False, allow_gemv=False):
    """Hints for a template's function; None where instructions on matrices are asked for and none takes it."""
    policy = TensorCorePolicy if tensorcore_only else DefaultPolicy
    hints = policy.from_prim_func(func_or_module, arch).emit_config(topk)
    return None if tensorcore_only and not hints else hints


def get_roller_hints_from_output_nodes(output_nodes, arch=None, topk=10, extra_tags=None):
    return DefaultPolicy.from_output_nodes(output_nodes, arch).emit_config(topk)
