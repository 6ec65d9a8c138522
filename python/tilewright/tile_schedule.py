"""The tiles of a result dealt to blocks that stay: T.PersistentTileScheduler and what it is derived from."""
import inspect

from .device import get_num_sms
from .dtypes import dtype
from .trace import OPERATIONS, apply, operation
from .values import Var, load, rename

_STORE = OPERATIONS["store"]
_alloc_scalar, _ceildiv, _floordiv = operation("alloc_scalar"), operation("ceildiv"), operation("floordiv")
_floormod, _max, _min = operation("floormod"), operation("max"), operation("min")


def meta_class(cls):
    """A class whose methods are recorded where they are called, like macros; state lives in T.alloc_var."""
    from .program import Macro

    for name, value in list(vars(cls).items()):
        if inspect.isfunction(value) and not name.startswith("__") and value.__module__ != __name__:
            setattr(cls, name, Macro(value))
    return cls


def _variable(name):
    made = Var(_alloc_scalar(dtype("int32"), 0).id)
    if name:
        rename(made, name)
    made.named = True  # what it is assigned to is its value
    return made


class BaseTileScheduler:
    """Which tile a worker is at: init() sets the first, next_tile() goes on, and valid() says whether there is one. A class
    of one's own gives update_current_idx(linear_idx), which sets _m_idx[0] and _n_idx[0], and _total_tiles."""

    def __init__(self, stateful=True, name=None):
        self._stateful, self._total_tiles = stateful, 0
        if stateful:
            words = ("m_idx", "n_idx", "linear_idx", "current_iter")
            self._m_idx, self._n_idx, self._linear_idx, self._current_iter = (_variable(name and f"{name}_{w}") for w in words)

    @property
    def m_idx(self):
        """The row of the current tile."""
        return load(self._m_idx)

    @property
    def n_idx(self):
        """The column of the current tile."""
        return load(self._n_idx)

    @property
    def linear_idx(self):
        """The number of the current tile."""
        return load(self._linear_idx)

    @property
    def current_iter(self):
        """How many tiles this worker has left behind."""
        return load(self._current_iter)

    def update_current_idx(self, linear_idx):
        raise NotImplementedError("a scheduler gives update_current_idx(linear_idx)")

    def init(self, linear_init):
        """Begins at a tile."""
        apply(_STORE, self._current_iter, 0)
        apply(_STORE, self._linear_idx, linear_init)
        self.update_current_idx(self.linear_idx)

    def next_tile(self, step):
        """Goes on by `step` tiles."""
        apply(_STORE, self._current_iter, self.current_iter + 1)
        apply(_STORE, self._linear_idx, self.linear_idx + step)
        self.update_current_idx(self.linear_idx)

    def valid(self):
        """Whether there is such a tile."""
        return self.linear_idx < self._total_tiles


class PersistentTileScheduler(BaseTileScheduler):
    """Worker w of num_workers has tiles w, w + num_workers, ... of a grid of num_m_tiles by num_n_tiles, which are counted
    along M first (column_major) or along N, in panels of swizzle_size of the other dimension. With cluster_size the rows are
    those of clusters: the row of a block is m_idx * cluster_size + its rank. stateful=False leaves coord(tile_id) alone."""

    def __init__(self, num_m_tiles, num_n_tiles, num_workers=None, swizzle_size=1, column_major=True, cluster_size=1,
                 stateful=True, name=None):  # fmt: skip
        super().__init__(stateful=stateful, name=name)
        rows = num_m_tiles if cluster_size == 1 else _ceildiv(num_m_tiles, cluster_size)
        self.num_workers = get_num_sms() // cluster_size if num_workers is None else num_workers
        self.cluster_size, self.swizzle_size, self._column_major = cluster_size, swizzle_size, column_major
        self._along, self._across = (rows, num_n_tiles) if column_major else (num_n_tiles, rows)
        self._total_tiles = rows * num_n_tiles

    def coord(self, tile_id):
        """(row, column) of a tile by its number."""
        in_panel = self._along * self.swizzle_size
        first = _floordiv(tile_id, in_panel) * self.swizzle_size
        width = _max(1, _min(self.swizzle_size, self._across - first))  # the last panel may be narrower
        rest = _floormod(tile_id, in_panel)
        along, across = _floordiv(rest, width), first + _floormod(rest, width)
        return (along, across) if self._column_major else (across, along)

    def update_current_idx(self, linear_idx):
        row, column = self.coord(linear_idx)
        apply(_STORE, self._m_idx, row)
        apply(_STORE, self._n_idx, column)

    def init(self, worker_id):
        """Begins at the first tile of a worker."""
        super().init(worker_id)

    def next_tile(self):
        """Goes on to the worker's next tile."""
        super().next_tile(self.num_workers)
