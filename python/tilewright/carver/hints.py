"""What a template recommends: one choice of tiles."""
from typing import Any


class Rasterization:
    """In which order blocks run: their panel's width, 0 in order of their index."""

    panel_width_ = 0

    def __init__(self, panel_width=8):
        self.panel_width_ = panel_width

    def __repr__(self):
        return f"<{type(self).__name__} of {self.panel_width_}>"


class Rasterization2DRow(Rasterization):
    """Blocks run in panels of rows."""


class Rasterization2DColumn(Rasterization):
    """Blocks run in panels of columns."""


class NoRasterization(Rasterization):
    """Blocks run in order of their index."""

    def __init__(self):
        super().__init__(0)


class Hint:
    """One choice: `block` is the tile of the result that a block makes, `warp` that of a warp or `thread` that of a thread, `rstep` the
    steps along the dimensions that are summed over. `predicted_us` is the time that the cost model expects, where it knows."""

    def __init__(self):
        self.arch = None
        self.use_tc = False
        self.block: list[int] = []
        self.thread: list[int] = []
        self.warp: list[int] = []
        self.rstep: list[int] = []
        self.reduce_thread: list[int] = []
        self.threads = 128
        self.rasterization_plan: Any = NoRasterization  # the class, which programs compare with
        self.split_k_factor = 1
        self.pipeline_stage = 1
        self.use_async = False
        self.vectorize: dict[str, int] = {}
        self.predicted_us: float | None = None

    def to_dict(self):
        parts = {"block": self.block, **({"warp": self.warp} if self.use_tc else {"thread": self.thread}), "rstep": self.rstep}
        for name in ("reduce_thread", "use_tc", "vectorize"):
            if getattr(self, name):
                parts[name] = getattr(self, name)
        if self.pipeline_stage != 1:
            parts["pipeline_stage"] = self.pipeline_stage
        return parts

    @classmethod
    def from_dict(cls, parts):
        made = cls()
        for name, value in parts.items():
            setattr(made, name, value)
        return made

    def __repr__(self):
        return str(self.to_dict())
