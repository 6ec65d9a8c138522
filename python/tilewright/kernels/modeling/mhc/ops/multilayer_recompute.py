"""The streams of several layers, made again from the first."""

from __future__ import annotations

import torch

from ....arguments import refuse_option
from ....mhc import functions


def mhc_multilayer_recompute(
    initial_residual: torch.Tensor,
    pre_mix_list: list[torch.Tensor],
    layer_output_list: list[torch.Tensor],
    post_mix_list: list[torch.Tensor],
    comb_mix_list: list[torch.Tensor],
    layer_input_list: list[torch.Tensor],
    residual_list: list[torch.Tensor],
) -> None:
    """Writes what goes into each layer to layer_input_list, and the streams behind it to residual_list: what
    mhc_pre_apply_mix() and mhc_post() give in turn, layer after layer. The last layer's output may be left out."""
    layers, behind = len(pre_mix_list), len(layer_output_list)
    if (
        layers == 0
        or behind not in (layers - 1, layers)
        or len(layer_input_list) != layers
        or {len(post_mix_list), len(comb_mix_list), len(residual_list)} != {behind}
    ):
        refuse_option(
            "mhc_multilayer_recompute",
            f"{layers} layers with {len(layer_input_list)} inputs, {behind} outputs, {len(post_mix_list)} and "
            f"{len(comb_mix_list)} "
            f"weights and {len(residual_list)} residuals",
            "inputs are as many as layers, the rest as many or one less",
        )
    with torch.no_grad():
        functions.recompute(
            initial_residual, pre_mix_list, layer_output_list, post_mix_list, comb_mix_list, layer_input_list, residual_list
        )
