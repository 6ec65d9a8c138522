"""Products of matrices that the warps of a block hold in arrays of their threads, as TensorCoreIntrinEmitter has them: by
ldmatrix and mma.sync where a GPU has them, elsewhere by shuffles."""
from .copies_in_bulk import flat
from .dtypes import dtype as _dtype
from .refused import REFUSED
from .scopes import unroll, vectorized
from .trace import OPERATIONS, apply, fail, operation

_STORE = OPERATIONS["store"]
_mma, _load_matrix = operation("warp_mma"), operation("load_matrix")
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
        self._take(A_local, A_shared, row, self.warp_rows, rk * self.chunk + ki * self.micro_size_k, self.a_transposed, False)

    def ldmatrix_b(self, B_local, B_shared, ki, rk=0):
        """The same of the columns of B."""
        column = self.warp_place()[1] * self.warp_col_tiles
        along = rk * self.chunk + ki * self.micro_size_k
        self._take(B_local, B_shared, column, self.warp_cols, along, not self.b_transposed, True)

    def _take(self, local, shared, begin, tiles, along, transposed, halves_first):
        """Four matrices for every 16 lines, as PTX has the operands of two products: `halves_first` says whether those of the first
        lines come first, with both halves of k, or those of the first half of k."""
        word, lane, half = self.word, _lane(), self.micro_size_k // 2
        target, to = flat(local)
        for t in unroll(tiles):
            first, held = begin + t * _TILE, to + t * self.local_size_a

            def at(line, k, first=first):
                place = (along + k, first + line) if transposed else (first + line, along + k)
                return shared[(0,) * (shared.ndim - 2) + place]

            if word == 2 or not transposed:
                second, row = lane // 8 % 2, lane % 8  # whether this lane points at matrix 1 or 3
                line, k = (lane // 16, second) if halves_first else (second, lane // 16)
                place = at(line * _HALF, k * half + row) if transposed else at(line * _HALF + row, k * half)
                _load_matrix(place, target[held], 4, transposed)
                continue
            for e in unroll(self.local_size_a):
                line, k = (e // (2 * word), e // word % 2) if halves_first else (e // word % 2, e // (2 * word))
                apply(_STORE, target[held + e], at(line * _HALF + lane // 4, k * half + lane % 4 * word + e % word))

    def mma(self, A_local, B_local, C_local, k_inner=0):
        """C += A B for the elements that the warp has taken."""
        size = self.local_size_a
        (a, a_at), (b, b_at), (c, c_at) = flat(A_local), flat(B_local), flat(C_local)
        a_at, b_at = a_at + k_inner * self.warp_rows * size, b_at + k_inner * self.warp_cols * size
        for i in unroll(self.warp_rows):
            for j in unroll(self.warp_cols):
                for h in range(2):
                    result = c[c_at + (i * self.warp_cols + j) * self.local_size_out + h * (self.local_size_out // 2)]
                    _mma(a[a_at + i * size], b[b_at + j * size + h * (size // 2)], result, self.micro_size_k)

    def stmatrix(self, C_local, C_buf, pid_m=None, pid_n=None):
        """Stores the results: to a tile of the block, (M, N) or (M / 16, N / 16, 16, 16), or to block (pid_m, pid_n)."""
        lane, (warp_row, warp_column) = _lane(), self.warp_place()
        row, column = warp_row * self.warp_rows, warp_column * self.warp_cols  # of tiles
        if pid_m is not None:
            row = row + pid_m * (self.block_row_warps * self.warp_rows)
            column = column + pid_n * (self.block_col_warps * self.warp_cols)
        source, begin = flat(C_local)
        for i in unroll(self.warp_rows):
            for j in unroll(self.warp_cols):
                for right in unroll(2):
                    for down in unroll(2):
                        for e in vectorized(2):
                            r, c = down * _HALF + lane // 4, right * _HALF + lane % 4 * 2 + e
                            tile = (row + i, column + j)
                            at = (tile[0] * _TILE + r, tile[1] * _TILE + c) if C_buf.ndim == 2 else (*tile, r, c)
                            held = (i * self.warp_cols + j) * self.local_size_out + right * 4 + down * 2 + e
                            apply(_STORE, C_buf[at], source[begin + held])


TensorCoreIntrinEmitterWithLadderTransform = REFUSED["TensorCoreIntrinEmitterWithLadderTransform"]
