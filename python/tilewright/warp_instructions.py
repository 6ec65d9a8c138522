"""Instructions of a warp by their PTX names, on what its lanes hold and where PTX says they hold it: those of a GPU that has
them, elsewhere shuffles."""
import re

from .copies_in_bulk import flat
from .dtypes import dtype as _dtype
from .index_maps import make_linear_layout, make_swizzled_layout
from .pointers import Pointer
from .trace import OPERATIONS, apply, fail, operation
from .values import Buffer, Tile, load, plain

_STORE = OPERATIONS["store"]
_mma, _load_matrix, _lane = operation("warp_mma"), operation("load_matrix"), operation("get_lane_idx")
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_LAYOUTS = {("row", "col")}


def get_mma_micro_size(dtype):
    """(rows, columns, depth) of the product of one warp: 16 bits 16 deep, 8 bits 32."""
    return 16, 16, 256 // max(8, min(16, _dtype(dtype).bits))


def mma_store_index_map(thread_id, local_id):
    """(row, column) in a tile of 16 by 16 of the results that a lane holds."""
    return 8 * (local_id % 4 // 2) + thread_id // 4, 8 * (local_id // 4) + thread_id % 4 * 2 + local_id % 2


def get_ldmatrix_offset(matrix, row_idx, col_idx, stride, dtype="float16", transposed=False):
    """(row, column) that lane `row_idx` gives ldmatrix of four matrices the address of."""
    bits = _dtype(dtype).bits
    wide = 128 // max(bits, 8)  # elements of a row of 16 bytes
    crossed = transposed if bits == 16 else matrix == "B" and transposed
    if matrix not in ("A", "B") or (bits != 16 and (matrix == "B") != bool(transposed)):
        fail("BadOption", f"get_ldmatrix_offset of {'a transposed' if transposed else 'an untransposed'} {matrix} of {dtype}",
             "of other than 16 bits A is not transposed and B is")  # fmt: skip
    col = col_idx % wide if bits >= 16 else col_idx
    if crossed:
        row, col = 8 * (row_idx // 16) + row_idx % 8, wide * (row_idx % 16 // 8) + col
    else:
        row, col = row_idx % 16, wide * (row_idx // 16) + col
    return row, col * (8 // bits if bits < 8 else 1)


def ptx_ldmatrix(trans, num, src_access_ptr, dst_access_ptr):
    """Each lane takes its elements of `num` matrices of 8 rows of 16 bytes, whose rows lane 8 m + r points at; transposed if
    `trans`."""
    target, to = flat(dst_access_ptr)
    source = _row(src_access_ptr)
    if source.buffer.dtype.bits not in (8, 16, 32) or (trans and source.buffer.dtype.bits == 32):
        fail("BadOption", f"ptx_ldmatrix of {source.buffer.dtype}", "its elements have 8, 16 or 32 bits, and those of 32 are not transposed")
    _load_matrix(source, target[to], int(num), bool(trans))


def _row(place):
    """The element that a place begins with."""
    head, offset = (place.head, plain(place.offset)) if isinstance(place, Pointer) else (place, 0)
    if isinstance(head, Buffer):
        head = head[(0,) * head.ndim]
    if isinstance(head, Tile) and offset == 0:
        return head.buffer[tuple((i.start or 0) if isinstance(i, slice) else i for i in head.indices)]
    buffer, begin = flat(place)
    return buffer[begin]


def ptx_mma(dtype, shape, A_layout, B_layout, A_dtype, B_dtype, C_dtype, multiplicand_a, a_index, multiplicand_b, b_index,
            accumulator, c_index, saturate, operator=None):  # fmt: skip
    """C += A B of a warp, on arrays of its threads: mma.sync.aligned of a shape such as m16n8k16."""
    found = _SHAPE.fullmatch(str(shape))
    if not found or found[2] != "8" or found[1] not in ("8", "16") or (str(A_layout), str(B_layout)) not in _LAYOUTS or operator or saturate:
        fail("BadOption", f"ptx_mma of {shape}, {A_layout} by {B_layout}", "shapes are m16n8k* and m8n8k*, row by col, without saturation")
    (a, a_begin), (b, b_begin), (c, c_begin) = (flat(m) for m in (multiplicand_a, multiplicand_b, accumulator))
    _mma(a[a_begin + a_index], b[b_begin + b_index], c[c_begin + c_index], int(found[3]), int(found[1]))


def mma_fill(dtype, local_size, local_ptr, offset):
    """Sets the results that a lane holds to zero."""
    target, begin = flat(local_ptr)
    for e in range(int(local_size)):
        apply(_STORE, target[begin + offset + e], 0)


def mma_store(dtype, m, n, dst_ptr, src_ptr, src_offset, dst_stride):
    """Stores the results of a warp, a tile of 16 by 16, to rows that are `dst_stride` elements apart."""
    if (int(m), int(n)) != (16, 16):
        fail("BadOption", f"mma_store of a tile of {int(m)} by {int(n)}", "it is 16 by 16")
    (source, begin), (target, to), lane = flat(src_ptr), flat(dst_ptr), _lane()
    for e in range(8):
        row, column = mma_store_index_map(lane, e)
        apply(_STORE, target[to + row * dst_stride + column], load(source[begin + src_offset + e]))


def make_mma_swizzle_layout(shared_buf, is_smooth=False):
    """Spreads the rows of a shared tile over the memory banks; smooth, it lies row-major."""
    return make_linear_layout(shared_buf) if is_smooth else make_swizzled_layout(shared_buf)


class WGMMATensorCoreIntrinEmitter:
    """Products of tiles by a warpgroup, as T.wgmma_gemm: A in shared memory or a fragment, B in shared memory."""

    def __init__(self, a_dtype="float16", b_dtype="float16", accum_dtype="float16", a_transposed=False, b_transposed=False,
                 block_row_warps=2, block_col_warps=2, warp_row_tiles=8, warp_col_tiles=8, chunk=16, reduce_k=1,
                 num_elems_per_byte=1, is_m_first=False, thread_var=None):  # fmt: skip
        self.a_dtype, self.b_dtype, self.accum_dtype = _dtype(a_dtype), _dtype(b_dtype), _dtype(accum_dtype)
        self.a_transposed, self.b_transposed = a_transposed, b_transposed
        self.block_row_warps, self.block_col_warps = block_row_warps, block_col_warps
        self.warp_row_tiles, self.warp_col_tiles, self.chunk = warp_row_tiles, warp_col_tiles, chunk
        self.micro_size_k = 256 // self.a_dtype.bits

    def wgmma(self, A_region, B_region, C_region, clear_accum=False, wg_wait=0):
        """C += A B, and waits until no more than `wg_wait` products are under way; -1 waits for none."""
        operation("wgmma_gemm")(A_region, B_region, C_region, self.a_transposed, self.b_transposed, 0, clear_accum)
        if wg_wait >= 0:
            self.wgmma_wait(wg_wait)

    wgmma_ss = wgmma_rs = wgmma

    def wgmma_fence_a(self, A_buf):
        """Registers are ordered by the compiler."""

    wgmma_fence_c = wgmma_fence_a

    def wgmma_arrive(self):
        """Products are ordered by the compiler."""

    def wgmma_commit(self):
        """Each product closes a group of its own."""

    def wgmma_wait(self, n=0):
        """Waits until no more than n products are under way."""
        operation("wait_wgmma")(n)


class WGSparseTensorCoreIntrinEmitter(WGMMATensorCoreIntrinEmitter):
    """Products of a warpgroup where A holds the kept elements, two of each four, and E says which: as T.wgmma_gemm_sp."""

    def __init__(self, a_dtype="float16", e_dtype="uint8", b_dtype="float16", accum_dtype="float16", a_transposed=False,
                 b_transposed=False, e_transposed=False, block_row_warps=2, block_col_warps=2, warp_row_tiles=8, warp_col_tiles=8,
                 warp_k=16, **rest):  # fmt: skip
        super().__init__(a_dtype, b_dtype, accum_dtype, a_transposed, b_transposed, block_row_warps, block_col_warps, warp_row_tiles,
                         warp_col_tiles, warp_k)  # fmt: skip
        self.e_dtype, self.e_transposed = _dtype(e_dtype), e_transposed

    def wgmma(self, A_region, E_region, B_region, C_region, clear_accum=False, wg_wait=0):
        """C += A B, and waits until no more than `wg_wait` products are under way; -1 waits for none."""
        operation("wgmma_gemm_sp")(A_region, E_region, B_region, C_region, self.a_transposed, self.e_transposed, self.b_transposed, 0, clear_accum)
        if wg_wait >= 0:
            self.wgmma_wait(wg_wait)

    wgmma_ss = wgmma_rs = wgmma


def warpgroup_arrive():
    """Registers of products that do not wait are ordered by the compiler; the name changes nothing."""


__all__ = ["WGMMATensorCoreIntrinEmitter", "WGSparseTensorCoreIntrinEmitter", "get_ldmatrix_offset", "get_mma_micro_size",
           "make_mma_swizzle_layout", "mma_fill", "mma_store", "mma_store_index_map", "ptx_ldmatrix", "ptx_mma", "warpgroup_arrive"]  # fmt: skip
