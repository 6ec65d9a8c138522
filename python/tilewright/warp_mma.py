"""Products of matrices that the warps of a block hold in arrays of their threads, as TensorCoreIntrinEmitter has them.
Lanes exchange what they hold by shuffles: right on every engine, and slower than T.gemm, which takes the instructions."""
from .dtypes import dtype as _dtype
from .refused import REFUSED
from .scopes import unroll
from .trace import OPERATIONS, apply, fail, operation
from .values import load

_STORE, _UPDATE = OPERATIONS["store"], OPERATIONS["update"]
_alloc_local, _shuffle, _cast = operation("alloc_local"), operation("shfl_sync"), operation("cast")
_lane, _warp = operation("get_lane_idx"), operation("get_warp_idx")
_TILE, _HALF, _WARP = 16, 8, 32


def get_swizzle_layout(row_idx, col_idx, row_size, dtype, swizzle_bytes=None):
    """Where an element of a shared tile lies so that equal columns of neighbouring rows are in different banks."""
    row, column, bits = row_idx, col_idx, _dtype(dtype).bits
    chunk, row_chunks = 128 // bits, max(1, (row_size * bits // 8 if swizzle_bytes is None else swizzle_bytes) // 16)
    rows_of_line, among = max(1, 8 // row_chunks), min(8, row_chunks)
    if among & (among - 1):
        return row, column
    return row, ((column // chunk) ^ ((row // rows_of_line) % among)) * chunk + column % chunk


class TensorCoreIntrinEmitter:
    """Tiles of 16 by 16 results: warp (i, j) of block_row_warps by block_col_warps has warp_row_tiles rows and
    warp_col_tiles columns; a thread has local_size_a elements of every 16 rows of A, and so on."""

    M_DIM = N_DIM = n_dim = _TILE
    WARP_SIZE = _WARP

    def __init__(self, a_dtype="float16", b_dtype="float16", accum_dtype="float16", a_transposed=False, b_transposed=False, block_row_warps=2,
                 block_col_warps=2, warp_row_tiles=8, warp_col_tiles=8, chunk=16, reduce_k=1, num_elems_per_byte=1,
                 **ignored):  # fmt: skip
        self.a_dtype, self.b_dtype, self.accum_dtype = _dtype(a_dtype), _dtype(b_dtype), _dtype(accum_dtype)
        if self.a_dtype.bits != self.b_dtype.bits or self.a_dtype.bits not in (8, 16):
            fail("BadOption", f"TensorCoreIntrinEmitter of {self.a_dtype} and {self.b_dtype}",
                 "both have 16 bits, or both 8: T.gemm takes others")  # fmt: skip
        self.a_transposed, self.b_transposed = a_transposed, b_transposed
        self.block_row_warps, self.block_col_warps = block_row_warps, block_col_warps
        self.warp_row_tiles, self.warp_col_tiles, self.chunk = warp_row_tiles, warp_col_tiles, chunk
        self.micro_size_x = self.micro_size_y = _TILE
        self.micro_size_k = self.k_dim = 256 // self.a_dtype.bits
        self.warp_rows, self.warp_cols = warp_row_tiles // _TILE, warp_col_tiles // _TILE
        self.local_size_a = self.local_size_b = _TILE * self.micro_size_k // _WARP
        self.local_size_out = _TILE * _TILE // _WARP
        self.word = 32 // self.a_dtype.bits  # elements that a lane holds side by side
        self.threads = _WARP * block_row_warps * block_col_warps

    def get_thread_binding(self):
        return operation("get_thread_binding")(0)

    def warp_place(self):
        """(row, column) of this warp among those of the block."""
        warp = _warp()
        return warp % self.block_row_warps, warp // self.block_row_warps

    def ldmatrix_a(self, A_local, A_shared, ki, rk=0):
        """Each thread takes its part of the warp's rows of A, at step ki along the reduced dimension."""
        row = self.warp_place()[0] * self.warp_row_tiles
        self._take(A_local, A_shared, row, self.warp_rows, rk * self.chunk + ki * self.micro_size_k, self.a_transposed)

    def ldmatrix_b(self, B_local, B_shared, ki, rk=0):
        """The same of the columns of B."""
        column = self.warp_place()[1] * self.warp_col_tiles
        along = rk * self.chunk + ki * self.micro_size_k
        self._take(B_local, B_shared, column, self.warp_cols, along, not self.b_transposed)

    def _take(self, local, shared, begin, tiles, along, transposed):
        word, lane = self.word, _lane()
        for t in unroll(tiles):
            for e in unroll(self.local_size_a):
                line = begin + t * _TILE + lane // 4 + e // word % 2 * _HALF
                k = along + e // (2 * word) * (4 * word) + lane % 4 * word + e % word
                at = (k, line) if transposed else (line, k)
                apply(_STORE, local[t * self.local_size_a + e], shared[(0,) * (shared.ndim - 2) + at])

    def mma(self, A_local, B_local, C_local, k_inner=0):
        """C += A B for the elements that the warp has taken."""
        word, size, lane = self.word, self.local_size_a, _lane()
        a = _alloc_local([2 * self.warp_rows], self.a_dtype)
        b = _alloc_local([4 * self.warp_cols], self.b_dtype)
        a_step, b_step = k_inner * self.warp_rows * size, k_inner * self.warp_cols * size
        for k in unroll(self.micro_size_k):
            element = k // (4 * word) * (2 * word) + k % word
            source = k % (4 * word) // word
            for i in unroll(2 * self.warp_rows):  # rows of this lane: two of every 16
                held = A_local[a_step + i // 2 * size + element + i % 2 * word]
                apply(_STORE, a[i], _shuffle(held, lane // 4 * 4 + source))
            for j in unroll(4 * self.warp_cols):  # columns of this lane: four of every 16
                held = B_local[b_step + j // 4 * size + element + j // 2 % 2 * word]
                apply(_STORE, b[j], _shuffle(held, (lane % 4 * 2 + j % 2) * 4 + source))
            for i in unroll(self.warp_rows):
                for j in unroll(self.warp_cols):
                    for e in unroll(self.local_size_out):
                        x = _cast(load(a[i * 2 + e // 2 % 2]), self.accum_dtype)
                        y = _cast(load(b[j * 4 + e // 4 * 2 + e % 2]), self.accum_dtype)
                        apply(_UPDATE, "+", C_local[(i * self.warp_cols + j) * self.local_size_out + e], x * y)

    def stmatrix(self, C_local, C_buf, pid_m=None, pid_n=None):
        """Stores the results: to a tile of the block, (M, N) or (M / 16, N / 16, 16, 16), or to block (pid_m, pid_n)."""
        lane = _lane()
        warp_row, warp_column = self.warp_place()
        row = warp_row * self.warp_row_tiles
        column = warp_column * self.warp_col_tiles
        if pid_m is not None:
            row = row + pid_m * (self.block_row_warps * self.warp_row_tiles)
            column = column + pid_n * (self.block_col_warps * self.warp_col_tiles)
        for i in unroll(self.warp_rows):
            for j in unroll(self.warp_cols):
                for e in unroll(self.local_size_out):
                    r = row + i * _TILE + lane // 4 + e // 2 % 2 * _HALF
                    c = column + j * _TILE + lane % 4 * 2 + e % 2 + e // 4 * _HALF
                    at = (r, c) if C_buf.ndim == 2 else (r // _TILE, c // _TILE, r % _TILE, c % _TILE)
                    apply(_STORE, C_buf[at], C_local[(i * self.warp_cols + j) * self.local_size_out + e])


TensorCoreIntrinEmitterWithLadderTransform = REFUSED["TensorCoreIntrinEmitterWithLadderTransform"]
