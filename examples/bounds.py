"""What the Python examples share: saying how large an error is, and how large it may be."""
from typing import Any

import numpy as np

UNIT = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}  # half of the distance from 1 to the next number


def within(what: str, got: Any, wanted: Any, bound: Any) -> bool:
    """Whether every element of `got` is within `bound` of `wanted`, in words too. A NaN is within nothing but NaN."""
    got, wanted, bound = (np.asarray(x, "float64") for x in (got, wanted, bound))
    assert got.shape == wanted.shape and got.size > 0, f"{what}: {got.shape} where {wanted.shape} is wanted"
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    error, bound = np.where(same, 0, abs(got - wanted)), np.broadcast_to(bound, wanted.shape)
    right = bool((same | (error <= bound)).all())
    share = np.where(same, 0, error / np.where(bound == 0, np.finfo("float64").tiny, bound))
    worst = np.unravel_index(share.argmax(), share.shape)
    print(f"{what}: error {error[worst]:.2g} where {bound[worst]:.2g} is allowed" + ("" if right else ": WRONG"))
    return right
