"""Tiles to try for a product of matrices, ranked: what programs ask of tilelang.carver before they tune."""
from .dtypes import dtype


class CUDA:
    """A machine by its target: sizes that a choice of tiles depends on, of sm_90."""

    reg_cap, smem_cap, compute_max_core, warp_size, sm_partition, bandwidth = 65536, 232448, 132, 32, 4, (4800, 12080)
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

    def recommend_hints(self, topk=10):
        """Tiles that fit, best first: few blocks left idle in the last wave, then much reuse, then long pipelines."""
        found = []
        bytes_of = self.in_dtype.bits / 8
        for m in _TILES:
            for n in _TILES:
                for k in _STEPS:
                    for stages in _STAGES:
                        if m * n > 256 * 128 or (m + n) * k * bytes_of * stages + m * n * 2 > self.arch.smem_cap:
                            continue
                        if m * n * k and (m > 2 * self.M or n > 2 * self.N or k > self.K):
                            continue
                        blocks = -(-self.M // m) * -(-self.N // n)
                        waves = -(-blocks // self.arch.compute_max_core)
                        busy = self.M * self.N / (m * n * waves * self.arch.compute_max_core)
                        found.append((-round(busy, 2), (m + n) / (m * n), -k * stages, m, n, k, stages, blocks))
        hints = []
        for *_, m, n, k, stages, blocks in sorted(found)[:topk]:
            rows = 2 if m >= 64 else 1
            columns = 4 if m * n >= 128 * 128 else 2
            plan = Rasterization2DRow() if blocks > self.arch.compute_max_core else NoRasterization
            hints.append(Hint([m, n], [m // rows, max(n // columns, 16)], [k], stages, plan))
        return hints
