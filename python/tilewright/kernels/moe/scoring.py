"""What becomes of a logit before experts are chosen."""

from __future__ import annotations

from enum import IntEnum


class ScoringFunc(IntEnum):
    """sigmoid, the root of softplus, softmax over the experts, or nothing."""

    SIGMOID = 0
    SQRTSOFTPLUS = 1
    SOFTMAX = 2
    IDENTITY = 3

    def __str__(self) -> str:
        return self.name.lower()

    @classmethod
    def from_str(cls, label: str) -> "ScoringFunc":
        """The function of that name; ValueError where there is none."""
        found = cls.__members__.get(label.upper())
        if found is None:
            raise ValueError(f"there is no scoring function {label!r}; it is one of: {', '.join(map(str, cls))}")
        return found
