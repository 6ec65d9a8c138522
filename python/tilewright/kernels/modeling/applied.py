"""Functions with a gradient, called where none is asked for."""

from __future__ import annotations

import torch


class _Nothing:
    """What a function keeps things on that nobody will read."""

    def save_for_backward(self, *tensors):
        pass


def applied(function, *arguments):
    """function.apply(*arguments). Where no gradients are recorded, its forward alone: apply() costs the host as much as a launch."""
    return function.apply(*arguments) if torch.is_grad_enabled() else function.forward(_Nothing(), *arguments)
