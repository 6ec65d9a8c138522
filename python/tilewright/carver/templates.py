"""Kernels as shapes and types, which tiles are chosen for."""
from __future__ import annotations

import dataclasses
import itertools
import json
import math
from typing import Any

from ..dtypes import dtype as type_of
from ..errors import TilewrightError
from ..trace import fail
from . import programs
from .arch import CDNA, CPU, TileDevice, auto_infer_current_arch
from .hints import Hint, NoRasterization, Rasterization2DColumn, Rasterization2DRow

_PRICED = 40  # candidates that the model is asked about: each takes about 30 ms
_WARP = 32


class BaseTemplate:
    """A kernel by its shapes and types. recommend_hints() gives tiles for it, the fastest by the cost model first; a subclass says what
    candidates there are, and what its program is."""

    _arch: TileDevice | None = None

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type == "int" and not (isinstance(value, int) and value > 0) and not (field.name == "P" and value == 0):
                fail("BadOption", f"{type(self).__name__} with {field.name}={value!r}", f"{field.name} is a positive integer", also=ValueError)

    @property
    def arch(self) -> TileDevice:
        return self._arch or auto_infer_current_arch()

    def with_arch(self, arch):
        self._arch = arch
        return self

    def has_arch(self):
        return self._arch is not None

    def params_as_dict(self):
        return dataclasses.asdict(self)

    @property
    def class_attributes(self):
        return self.params_as_dict()

    @property
    def output_nodes(self):
        return [self.equivalent_function()]

    def equivalent_function(self):
        """The program at the tiles that are recommended first."""
        made = self.program(self.recommend_hints(1)[0])
        made.carved_by = self
        return made

    def recommend_hints(self, topk: int = 10) -> list[Hint]:
        """At most so many choices of tiles, the fastest by the cost model first. No GPU is asked."""
        return self.get_hardware_aware_configs(self.arch, topk)

    def get_hardware_aware_configs(self, arch=None, topk=10):
        arch = arch or self.arch
        if isinstance(arch, CDNA) or not (arch.machine or isinstance(arch, CPU)):
            fail("BadOption", f"tiles for {arch!r}", "the cost model knows CUDA machines (tilewright.cost.machines()) and the CPU")
        found = self._for_cpu(arch) if isinstance(arch, CPU) else self._for_gpu(arch)
        for hint in found:
            hint.arch = arch
        return found if topk is None else found[:topk]

    # ---- by the model of a GPU

    def candidates(self, arch) -> list[Hint]:
        """Those that fit; the likely ones first."""
        raise NotImplementedError

    def program(self, hint):
        """The kernel at these tiles."""
        raise NotImplementedError

    def _for_gpu(self, arch):
        words, priced, why = arch.machine.words(), [], ""
        for number, hint in enumerate(self.candidates(arch)[:_PRICED]):
            try:
                facts = json.loads(self.program(hint).program.cost(words, {}))
            except TilewrightError as error:
                why = why or str(error).split("\n")[0]  # it does not fit after all
                continue
            if facts["us"] is not None:
                hint.predicted_us = facts["us"]
                priced.append((facts["us"], number, hint))
        if not priced:
            fail("BadOption", f"no tiles of {self!r} fit on {arch!r}: {why}", "other types or a smaller head_dim may")
        return [hint for *_, hint in sorted(priced, key=lambda row: row[:2])]

    # ---- by what the caches of a processor hold

    def work(self, hint):
        """(multiply-adds, bytes that move, bytes that a tile keeps, tiles) at these tiles."""
        raise NotImplementedError

    def _for_cpu(self, arch):
        def microseconds(hint):
            products, moved, kept, tiles = self.work(hint)
            cores = arch.compute_max_core
            spread = math.ceil(tiles / cores) * cores / tiles
            computing = products / (arch.multiply_adds * arch.gigahertz * 1e3 * cores) * spread
            moving = moved / (arch.core_gigabytes * 1e3 * cores) * (1 if kept <= arch.smem_cap / 2 else 4)
            return max(computing, moving) + 0.1 * tiles / cores

        found = self.candidates(arch)
        for hint in found:
            hint.use_tc, hint.thread, hint.predicted_us = False, [1] * len(hint.block), microseconds(hint)
        return sorted(found, key=lambda hint: hint.predicted_us)


def _powers(least, most):
    return [1 << n for n in range(least.bit_length() - 1, most.bit_length())]


def _up_to(sizes, extent):
    """Those that are not twice the extent and more; the least one stays."""
    return [size for size in sizes if size < 2 * extent] or [min(sizes)]


def _warps(rows, columns, threads):
    """The tile of a warp, as near to a square as warps divide it."""
    warps = threads // _WARP
    splits = [(a, warps // a) for a in _powers(1, warps) if rows % a == 0 and columns % (warps // a) == 0]
    a, b = min(splits, key=lambda ab: abs(rows / ab[0] - columns / ab[1]), default=(1, 1))
    return [rows // a, columns // b]


def _order(rows_of_blocks, columns_of_blocks, cores):
    """Panels where blocks are more than run at a time: along the side that has more of them."""
    if rows_of_blocks * columns_of_blocks <= cores:
        return NoRasterization
    return Rasterization2DColumn(8) if rows_of_blocks < columns_of_blocks else Rasterization2DRow(8)


class _Product(BaseTemplate):
    """What is a product of an M x K and a K x N matrix in the end."""

    def _sizes(self):
        return self.M, self.N, self.K

    @property
    def types(self):
        return str(type_of(self.in_dtype)), str(type_of(self.out_dtype)), str(type_of(self.accum_dtype))

    def _fits(self, arch, rows, columns, step, stages, threads):
        size, of_result = type_of(self.in_dtype).bits / 8, type_of(self.out_dtype).bits / 8
        if isinstance(arch, CPU):
            return threads == 128 and stages == 2
        registers = rows * columns * type_of(self.accum_dtype).bits / 32 / threads
        return registers <= 200 and (rows + columns) * step * size * stages + rows * columns * of_result <= arch.smem_cap

    def candidates(self, arch):
        M, N, K = self._sizes()
        size, cores = type_of(self.in_dtype).bits / 8, arch.compute_max_core
        found = []
        choices = itertools.product(_up_to((256, 128, 64, 32, 16), M), _up_to((256, 192, 128, 64, 32), N),
                                    _up_to((32, 64, 128, 256), K), (4, 3, 2), (256, 128))  # fmt: skip
        for rows, columns, step, stages, threads in choices:
            line = step * size
            if line not in (32, 64, 128, 256) or not self._fits(arch, rows, columns, step, stages, threads):
                continue
            if (rows * columns >= 128 * 256) != (threads == 256) and not isinstance(arch, CPU):
                continue
            blocks = math.ceil(M / rows), math.ceil(N / columns)
            waves = math.ceil(blocks[0] * blocks[1] / cores)
            # Rows of 128 bytes are a panel of the matrix unit; products and loads of a wave, roughly.
            rough = waves * max(rows * columns / 128, (rows + columns) * 1.5) * (1 if line == 128 else 1.1)
            found.append((rough, -stages, abs(rows - columns), rows, [rows, columns], step, stages, threads, blocks))
        return [self._hint(*row[4:], cores) for row in sorted(found, key=lambda row: row[:4])]

    def _hint(self, block, step, stages, threads, blocks, cores):
        hint = Hint()
        hint.block, hint.rstep, hint.pipeline_stage, hint.threads, hint.use_tc = block, [step], stages, threads, True
        hint.warp, hint.use_async = _warps(*block, threads), stages > 1
        hint.rasterization_plan = _order(*blocks, cores)
        return hint

    def work(self, hint):
        M, N, K = self._sizes()
        (rows, columns), (step,) = hint.block, hint.rstep
        size = type_of(self.in_dtype).bits / 8
        tiles = math.ceil(M / rows) * math.ceil(N / columns)
        return M * N * K, tiles * (rows + columns) * K * size, ((rows + columns) * step + rows * columns) * size, tiles


@dataclasses.dataclass
class MatmulTemplate(_Product):
    """C[M, N] = A[M, K] B[N, K]^T, or B[K, N] without trans_B."""

    M: int = None
    N: int = None
    K: int = None
    trans_A: bool = False
    trans_B: bool = True
    in_dtype: Any = "float16"
    out_dtype: Any = "float16"
    accum_dtype: Any = "float32"
    with_bias: bool = False

    def program(self, hint):
        return programs.product(self.M, self.N, self.K, self.types, (self.trans_A, self.trans_B), self.with_bias, hint)


@dataclasses.dataclass
class ConvTemplate(_Product):
    """A convolution of N images of H x W x C by F filters of K x K x C: stride S, dilation D, P elements of padding."""

    N: int
    C: int
    H: int
    W: int
    F: int
    K: int
    S: int
    D: int
    P: int
    in_dtype: Any = "float16"
    out_dtype: Any = "float16"
    accum_dtype: Any = "float32"
    with_bias: bool = False

    def _sizes(self):
        side = lambda n: (n + 2 * self.P - self.D * (self.K - 1) - 1) // self.S + 1  # noqa: E731
        return self.N * side(self.H) * side(self.W), self.F, self.K * self.K * self.C

    def program(self, hint):
        return programs.convolution(self.N, self.C, self.H, self.W, self.F, self.K, self.S, self.D, self.P, self.types, self.with_bias, hint)


@dataclasses.dataclass
class FlashAttentionTemplate(_Product):
    """Attention: batch_size x num_heads of seq_length queries on seq_kv_length keys. A hint's block is queries x head_dim, its step is in
    keys."""

    batch_size: int = 1
    num_heads: int = 1
    head_dim: int = 64
    seq_length: int = 1
    seq_kv_length: int = 1
    is_causal: bool = False
    in_dtype: Any = "float16"
    out_dtype: Any = "float16"
    accum_dtype: Any = "float32"

    def candidates(self, arch):
        found, size = [], type_of(self.in_dtype).bits / 8
        for rows, step, stages in itertools.product(_up_to((128, 64, 32), self.seq_length), _up_to((128, 96, 64, 32), self.seq_kv_length), (2, 3, 1)):
            threads = 256 if rows == 128 else 128
            registers = rows * (self.head_dim + 1.5 * step) / threads
            shared = (rows + 2 * step * stages) * self.head_dim * size
            if registers > 230 or (shared > arch.smem_cap and not isinstance(arch, CPU)):
                continue
            hint = Hint()
            hint.block, hint.rstep, hint.pipeline_stage, hint.threads, hint.use_tc = [rows, self.head_dim], [step], stages, threads, True
            hint.warp, hint.use_async = [rows // (threads // _WARP), self.head_dim], stages > 1
            found.append(hint)
        return found

    def program(self, hint):
        sizes = self.batch_size, self.num_heads, self.seq_length, self.seq_kv_length, self.head_dim
        return programs.attention(*sizes, self.is_causal, self.types, hint)

    def work(self, hint):
        heads, size = self.batch_size * self.num_heads, type_of(self.in_dtype).bits / 8
        rows, step = hint.block[0], hint.rstep[0]
        tiles = heads * math.ceil(self.seq_length / rows)
        pairs = heads * self.seq_length * self.seq_kv_length * (0.5 if self.is_causal else 1)
        return 2 * pairs * self.head_dim, tiles * 2 * self.seq_kv_length * self.head_dim * size, (rows + 2 * step) * self.head_dim * 4, tiles


class _OfThreads(BaseTemplate):
    """What no instruction on matrices is for: a thread has a part of the block."""

    def _hint(self, block, threads, rstep=(), reduce_thread=()):
        hint = Hint()
        hint.block, hint.rstep, hint.threads = list(block), list(rstep), threads
        left, hint.thread = threads, [1] * len(hint.block)
        for d in range(len(hint.block) - 1, -1, -1):  # the last dimension first: neighbours are in memory
            hint.thread[d] = math.gcd(left, hint.block[d])
            left //= hint.thread[d]
        hint.reduce_thread = list(reduce_thread) or ([left] if rstep and left > 1 else [])
        return hint


def _tiles_of(shape, elements):
    """The tile of so many elements whose last dimensions are whole: blocks of memory that are as long as can be."""
    tile = []
    for extent in reversed(shape):
        most = 1 << (extent - 1).bit_length()
        tile.insert(0, max(1, min(most, elements)))
        elements //= tile[0]
    return tile


_SECTOR = 64  # bytes beside each other that a tile has at least, where its rows are as long


@dataclasses.dataclass
class ElementwiseTemplate(_OfThreads):
    """A map of all elements of a tensor."""

    shape: list = None
    dtype: Any = "float16"

    def __post_init__(self):
        _check_shape(self, self.shape)

    def candidates(self, arch):
        sizes = [(elements, threads) for elements, threads in itertools.product(_powers(512, 16384), (128, 256, 512)) if elements >= 2 * threads]
        return [self._hint(_tiles_of(self.shape, elements), threads) for elements, threads in sizes]

    def program(self, hint):
        return programs.elementwise(list(self.shape), str(type_of(self.dtype)), hint)

    def work(self, hint):
        size, all_of_it = type_of(self.dtype).bits / 8, math.prod(self.shape)
        return all_of_it, 2 * all_of_it * size, 2 * math.prod(hint.block) * size, math.prod(math.ceil(n / b) for n, b in zip(self.shape, hint.block))


@dataclasses.dataclass
class GeneralReductionTemplate(_OfThreads):
    """The sum of a tensor over some of its dimensions: `structure` has an S for each that stays, an R for each that is summed over."""

    structure: str = None
    shape: list = None
    dtype: Any = "float16"

    def __post_init__(self):
        _check_shape(self, self.shape)
        kinds = self.structure.upper() if isinstance(self.structure, str) else ""
        if len(kinds) != len(self.shape) or set(kinds) - set("SR") or "R" not in kinds or "S" not in kinds:
            fail("BadOption", f"GeneralReductionTemplate with structure={self.structure!r} of {len(self.shape)} dimensions",
                 'an S or an R for each, at least one of both: structure="SSR"', also=ValueError)  # fmt: skip
        self.structure = kinds

    def _split(self):
        of = lambda kind: [n for n, k in zip(self.shape, self.structure) if k == kind]  # noqa: E731
        return of("S"), of("R")

    def candidates(self, arch):
        spatial, reduced = self._split()
        found, row = [], _SECTOR * 8 // type_of(self.dtype).bits if self.structure[-1] == "S" else 1
        for elements, step, threads in itertools.product((4, 16, 64, 256, 1), _up_to(_powers(16, 4096), reduced[-1]), (128, 256)):
            if 1024 <= elements * step <= 16384 and elements >= min(row, spatial[-1]):
                found.append(self._hint(_tiles_of(spatial, elements), threads, [*([1] * (len(reduced) - 1)), step]))
        return found or [self._hint(_tiles_of(spatial, 64), 128, [*([1] * (len(reduced) - 1)), min(64, 1 << (reduced[-1] - 1).bit_length())])]

    def program(self, hint):
        return programs.reduction(self.structure, list(self.shape), str(type_of(self.dtype)), hint)

    def work(self, hint):
        spatial, _ = self._split()
        size, all_of_it = type_of(self.dtype).bits / 8, math.prod(self.shape)
        tiles = math.prod(math.ceil(n / b) for n, b in zip(spatial, hint.block))
        return all_of_it, all_of_it * size, math.prod(hint.block) * math.prod(hint.rstep) * size, tiles


@dataclasses.dataclass
class GEMVTemplate(_OfThreads):
    """c[N] = B[N, K] a[K], or B[K, N] without trans_B."""

    N: int = None
    K: int = None
    trans_B: bool = True
    in_dtype: Any = "float16"
    out_dtype: Any = "float16"
    accum_dtype: Any = "float32"
    with_bias: bool = False

    def candidates(self, arch):
        found, row = [], 1 if self.trans_B else _SECTOR * 8 // type_of(self.in_dtype).bits
        for rows, step, threads in itertools.product(_up_to(_powers(1, 128), self.N), _up_to(_powers(16, 2048), self.K), (128, 256)):
            if 2048 <= rows * step <= 8192 and rows >= min(row, self.N) and (not self.trans_B or step >= 64):
                found.append(self._hint([rows], threads, [step]))
        return found or [self._hint([32], 128, [64])]

    def program(self, hint):
        types = str(type_of(self.in_dtype)), str(type_of(self.out_dtype)), str(type_of(self.accum_dtype))
        return programs.product_of_vector(self.N, self.K, types, self.trans_B, self.with_bias, hint)

    def work(self, hint):
        size = type_of(self.in_dtype).bits / 8
        return self.N * self.K, self.N * self.K * size, hint.block[0] * hint.rstep[0] * size, math.ceil(self.N / hint.block[0])


def _check_shape(template, shape):
    if not isinstance(shape, (list, tuple)) or not shape or not all(isinstance(n, int) and n > 0 for n in shape):
        fail("BadOption", f"{type(template).__name__} with shape={shape!r}", "a shape is a list of positive integers", also=ValueError)
