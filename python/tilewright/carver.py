"""Tiles to try for a product of matrices, ranked: what programs ask of tilelang.carver before they tune."""
import itertools

from .dtypes import dtype


class CUDA:
    """A machine by its target: sizes that a choice of tiles depends on, of sm_90."""

    reg_cap, smem_cap, compute_max_core, warp_size, sm_partition, bandwidth = 65536, 232448, 132, 32, 4, (4800, 12080)
    # Of a multiprocessor: operations on 16-bit operands and bytes of shared memory a clock, clocks of a load.
    flops_per_clock, shared_bytes_per_clock, latency, gigahertz = 4096, 128, 800, 1.83
    platform = "CUDA"

    def __init__(self, target="cuda"):
        self.target = target


class CDNA(CUDA):
    """Another maker's machine: known by name."""

    platform = "CDNA"


def auto_infer_current_arch():
    return CUDA("cuda")


class NoRasterization:
    """Blocks run in order of their index."""


class Rasterization2DRow:
    """Blocks run in panels of rows."""

    def __init__(self, panel_width=10):
        self.panel_width_ = panel_width


class Hint:
    """One choice: block and warp are (rows, columns), rstep [step along the reduced dimension]."""

    def __init__(self, block, warp, rstep, pipeline_stage, rasterization_plan):
        self.block, self.warp, self.rstep = block, warp, rstep
        self.pipeline_stage, self.rasterization_plan, self.use_tc = pipeline_stage, rasterization_plan, True

    def __repr__(self):
        return f"<tiles {self.block} in warps of {self.warp}, {self.rstep} along, {self.pipeline_stage} stages>"


_TILES, _STEPS, _STAGES = (256, 128, 64, 32), (128, 64, 32), (4, 3, 2)


class MatmulTemplate:
    """C[M, N] = A[M, K] B[N, K]^T."""

    def __init__(self, M, N, K, in_dtype="float16", out_dtype="float16", accum_dtype="float32", trans_A=False, trans_B=True,
                 with_bias=False):  # fmt: skip
        self.M, self.N, self.K = M, N, K
        self.in_dtype, self.out_dtype, self.accum_dtype = dtype(in_dtype), dtype(out_dtype), dtype(accum_dtype)
        self.arch = CUDA()

    def with_arch(self, arch):
        self.arch = arch
        return self

    def equivalent_function(self):
        """Stands for the product: hints are all that is asked of it."""
        return self

    def _clocks(self, m, n, k, stages):
        """About how long the product takes with these tiles: waves of blocks, each as long as its slowest unit."""
        arch, size = self.arch, self.in_dtype.bits / 8
        multiply = 2 * m * n * k / (arch.flops_per_clock * 2 / size)
        shared = (m * -(-n // 256) + n * -(-m // 64)) * k * size / arch.shared_bytes_per_clock
        load = (m + n) * k * size / (arch.bandwidth[1] / arch.compute_max_core / arch.gigahertz)
        waves = -(-(-(-self.M // m) * -(-self.N // n)) // arch.compute_max_core)
        step = max(multiply, shared, load)
        ends = arch.latency + m * n * self.out_dtype.bits / 8 / (arch.bandwidth[0] / arch.compute_max_core / arch.gigahertz)
        waiting = max(0.0, arch.latency / stages - step)  # for loads that the stages do not cover
        return waves * (-(-self.K // k) * (step + waiting) + ends)

    def recommend_hints(self, topk=10):
        """Tiles that fit, the fastest by the numbers of the architecture first."""
        found = []
        size = self.in_dtype.bits / 8
        for m, n, k, stages in itertools.product(_TILES, _TILES, _STEPS, _STAGES):
            if m * n > 256 * 128 or (m + n) * k * size * stages + m * n * self.out_dtype.bits / 8 > self.arch.smem_cap:
                continue
            if m > max(2 * self.M, _TILES[-1]) or n > max(2 * self.N, _TILES[-1]) or k > max(self.K, _STEPS[-1]):
                continue
            blocks = -(-self.M // m) * -(-self.N // n)
            found.append((round(self._clocks(m, n, k, stages)), -k * stages, abs(m - n), -m, n, k, stages, blocks))
        hints = []
        for *_, m, n, k, stages, blocks in sorted(found)[:topk]:
            m = -m
            rows = 2 if m >= 64 else 1
            columns = 4 if m * n >= 128 * 128 else 2
            plan = Rasterization2DRow() if blocks > self.arch.compute_max_core else NoRasterization
            hints.append(Hint([m, n], [m // rows, max(n // columns, 16)], [k], stages, plan))
        return hints
