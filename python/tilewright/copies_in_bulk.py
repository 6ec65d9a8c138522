"""Copies in bulk by the names of the instructions: tensor maps, rows that are gathered, barriers by their numbers. Which
instruction moves the bytes is the compiler's; who waits for them is the program's."""
import math

from .dtypes import dtype as _dtype
from .pointers import Pointer
from .trace import OPERATIONS, apply, fail, operation, recording
from .values import Buffer, Tile, plain

_alloc_barrier, _view = operation("alloc_barrier"), operation("view")
_floordiv, _floormod = operation("floordiv"), operation("floormod")
_load, _store = OPERATIONS["load_to_barrier"], OPERATIONS["store_in_bulk"]
_arrive, _expect, _wait = OPERATIONS["mbarrier_arrive"], OPERATIONS["mbarrier_arrive_expect_tx"], OPERATIONS["mbarrier_wait_parity"]
_commit, _drain = operation("ptx_commit_group"), operation("ptx_wait_group")


# ---- flat memory


def flat(place):
    """(a buffer of one dimension, the number of the element of it that a place begins with)."""
    offset = 0
    if isinstance(place, Pointer):
        place, offset = place.head, place.offset
    if isinstance(place, Buffer):
        place = place[(0,) * place.ndim]
    if not isinstance(place, Tile):
        fail("OperandKind", f"{place!r} is no place in memory", "give a buffer, an element of one, or T.access_ptr of it")
    step = 1
    for index, extent in zip(reversed(place.indices), reversed(place.buffer.shape)):
        begin = (0 if index.start is None else index.start) if isinstance(index, slice) else index
        offset, step = offset + begin * step, step * extent
    buffer = place.buffer
    return (buffer if buffer.ndim == 1 else _view(buffer, [math.prod(buffer.shape)])), offset


def _run_of(place, offset, count):
    """The elements that follow each other from a place on: in a row of the buffer where that is seen, else in a view of it."""
    head = place.head if isinstance(place, Pointer) and plain(place.offset) == 0 else place
    buffer = head if isinstance(head, Buffer) else head.buffer if isinstance(head, Tile) else None
    offset, row = plain(offset), plain(buffer.shape[-1]) if buffer is not None and buffer.ndim else None
    if buffer is head and isinstance(offset, int) and isinstance(row, int) and offset % row + count <= row:
        known = [plain(e) for e in buffer.shape[:-1]]
        if all(isinstance(e, int) for e in known):
            index = index_to_coordinates(offset // row, known) if known else []
            return buffer[(*map(plain, index), slice(offset % row, offset % row + count))]
    flattened, begin = flat(place)
    return flattened[begin + offset : begin + offset + count]


def index_to_coordinates(index, shape):
    """The index in each dimension of an element by its number in row-major order."""
    coordinates = []
    for extent in reversed(shape):
        coordinates.insert(0, _floormod(index, extent))
        index = _floordiv(index, extent)
    return coordinates


# ---- barriers by number


def create_barriers(barrier_count):
    """mbarriers with numbers; T.ptx_init_barrier_thread_count says how many threads arrive at each."""
    recording("create_barriers").numbered = [None] * int(barrier_count)


def _barrier(what, barrier_id):
    if isinstance(barrier_id, (Buffer, Tile)):
        return barrier_id
    listed, number = recording(what).numbered, plain(barrier_id)
    if not isinstance(number, int) or listed is None or not 0 <= number < len(listed) or listed[number] is None:
        fail("NeedsBarrier", f"{what}: there is no barrier {barrier_id!r}",
             "T.create_barriers(n), and T.ptx_init_barrier_thread_count(i, threads) for each; or T.alloc_barrier(threads)")  # fmt: skip
    return listed[number]


def ptx_init_barrier_thread_count(barrier_id, thread_count):
    """How many threads arrive at a barrier of T.create_barriers."""
    if isinstance(barrier_id, (Buffer, Tile)):
        fail("BarrierCount", "ptx_init_barrier_thread_count of a barrier that has its count", "T.alloc_barrier(thread_count) sets it")
    listed, number = recording("ptx_init_barrier_thread_count").numbered, plain(barrier_id)
    if listed is None or not isinstance(number, int) or not 0 <= number < len(listed):
        fail("NeedsBarrier", f"ptx_init_barrier_thread_count: there is no barrier {barrier_id!r}", "T.create_barriers(n) before")
    listed[number] = _alloc_barrier([int(thread_count)])


def ptx_arrive_barrier(barrier_id):
    """Arrives at a barrier."""
    apply(_arrive, _barrier("ptx_arrive_barrier", barrier_id), None)


def ptx_arrive_barrier_expect_tx(barrier_id, byte_count):
    """Announces bytes at a barrier and arrives."""
    apply(_expect, _barrier("ptx_arrive_barrier_expect_tx", barrier_id), byte_count)


def ptx_wait_barrier(barrier_id):
    """Waits for the first phase of a barrier, and every second one after it: those of parity 0."""
    apply(_wait, _barrier("ptx_wait_barrier", barrier_id), 0)


def ptx_arrive_cluster_barrier(mbarrier, cta_id):
    """Arrives at that barrier of block `cta_id` of the cluster."""
    apply(_arrive, mbarrier, cta_id)


def ptx_fence_barrier_init():
    """Barriers are there from the first statement of a launch on; the name changes nothing."""


def ptx_cp_async_barrier(barrier_id):
    """What this thread has copied by T.ptx_cp_async is there before a phase of the barrier ends in which it arrives."""
    _barrier("ptx_cp_async_barrier", barrier_id)
    _commit()
    _drain(0)


def ptx_cp_async_bulk(dtype, shared_ptr, shared_offset, global_ptr, global_offset, bytes, barrier_id):
    """Copies bytes from global to shared memory, which complete at a barrier that has been told of them."""
    count = int(bytes) * 8 // _dtype(dtype).bits
    source, to = _run_of(global_ptr, global_offset, count), _run_of(shared_ptr, shared_offset, count)
    apply(_load, source, to, _barrier("ptx_cp_async_bulk", barrier_id))


# ---- tensor maps


class TensorMap:
    """A box of a global tensor, wherever it is: what T.create_tma_descriptor gives and T.tma_load takes."""

    def __init__(self, tensor, box, swizzle=0):
        self.tensor, self.box, self.swizzle = tensor, box, swizzle


def create_tma_descriptor(*args):
    """A box to load, described as the driver's tensor maps are: dtype, rank, tensor, then of each dimension, the innermost
    first, extents, strides in bytes, extents of the box and steps in it, then interleave, swizzle, L2 promotion, fill.
    With a swizzle it loads to tiles that T.annotate_layout says are swizzled: elements are found at their indices."""
    if len(args) < 3 or len(args) != 7 + 4 * int(args[1]):
        fail("BadOption", f"create_tma_descriptor of {len(args)} arguments", "it takes 7 and 4 for each dimension")
    rank, tensor = int(args[1]), args[2]
    groups = [list(args[3 + g * rank : 3 + (g + 1) * rank]) for g in range(4)]
    interleave, swizzle = (int(a) for a in args[3 + 4 * rank : 5 + 4 * rank])
    if interleave or not 0 <= swizzle <= 3:
        fail("BadOption", f"create_tma_descriptor: interleave {interleave}, swizzle {swizzle}",
             "interleave is 0: there are no tiles of interleaved tensors; swizzle is 0, or 1 to 3 for 32, 64 or 128 bytes")  # fmt: skip
    if any(int(s) != 1 for s in groups[3]):
        fail("BadOption", f"create_tma_descriptor: steps {[int(s) for s in groups[3]]} in the box", "every step is 1")
    if not isinstance(tensor, Buffer) or tensor.scope() != "global":
        fail("OperandKind", f"create_tma_descriptor of {tensor!r}", "give a tensor: A.data")
    shape, of = groups[0][::-1], tensor.dtype
    row = int(groups[2][0]) * of.bits // 8
    if swizzle and row > 16 << swizzle:
        fail("BadOption", f"create_tma_descriptor: rows of {row} bytes with swizzle {swizzle}", f"a row of its box has at most {16 << swizzle}")
    steps = [_floordiv(s * 8, of.bits) if of.bits < 8 else _floordiv(s, of.bytes) for s in groups[1][::-1]]
    given = [*tensor.shape]
    same = len(given) == rank and all(_same(a, b) for a, b in zip(given, shape)) and all(map(_same, tensor.strides, steps))
    return TensorMap(tensor if same else _view(tensor, shape, of, steps), [int(e) for e in groups[2][::-1]], swizzle)


def _same(a, b):
    a, b = plain(a), plain(b)
    return a == b if isinstance(a, int) and isinstance(b, int) else hasattr(a, "same") and hasattr(b, "same") and a.same(b)


def tma_load(*args):
    """Loads the box of a tensor map at coordinates, the innermost first, to a place in shared memory; it completes at a
    barrier that has been told its bytes: T.tma_load(map, barrier, place, x, y, ..., policy)."""
    if len(args) < 4 or not isinstance(args[0], TensorMap):
        fail("OperandKind", "tma_load without a tensor map", "T.tma_load(T.create_tma_descriptor(...), barrier, place, coordinates..., policy)")
    mapped, barrier, place = args[:3]
    rank = len(mapped.box)
    coordinates = list(args[3 : 3 + rank])[::-1]
    if len(args) not in (3 + rank, 4 + rank):
        fail("BadOption", f"tma_load of {len(args) - 3} coordinates", f"the tensor map has {rank} dimensions, and a policy may follow")
    tile = _tile_of(place)
    if mapped.swizzle and (tile is None or tile.id not in recording("tma_load").swizzled):
        fail("BadOption", f"tma_load by a tensor map of swizzle {mapped.swizzle} to a tile that lies row after row",
             "say that it is swizzled, too: T.annotate_layout({tile: make_swizzled_layout(tile)}); or give the map swizzle 0")  # fmt: skip
    source = mapped.tensor[tuple(slice(c, c + e) for c, e in zip(coordinates, mapped.box))]
    apply(_load, source, _box_at(place, mapped.box), _barrier("tma_load", barrier))


def _tile_of(place):
    head = place.head if isinstance(place, Pointer) else place
    return head if isinstance(head, Buffer) else head.buffer if isinstance(head, Tile) else None


def _box_at(place, box):
    """The tile of a shared buffer that begins at a place."""
    head = place.head if isinstance(place, Pointer) and plain(place.offset) == 0 else place
    if isinstance(head, Buffer) and [*head.shape] == box:
        return head
    buffer, offset = flat(place)
    count = math.prod(box)
    boxes = _view(buffer, [buffer.shape[0] // count, *box])
    return boxes[(_floordiv(offset, count), *(slice(None) for _ in box))]


def tma_gather4_bytes(K_box, dtype):
    """The bytes of four rows of K_box elements."""
    return 4 * int(K_box) * _dtype(dtype).bits // 8


def _four(rows):
    listed = list(rows) if isinstance(rows, (list, tuple)) else [rows[k] for k in range(4)]
    if len(listed) != 4:
        fail("BadOption", f"{len(listed)} rows", "there are four")
    return listed


def tma_gather4(src, dst, col, rows, *, barrier, swizzle=None, eviction_policy=None, annotations=None):
    """Loads four rows of a tensor, from a column on, as the rows of a shared tile; they complete at a barrier that has been
    told T.tma_gather4_bytes of them."""
    width = dst.shape[-1]
    for k, row in enumerate(_four(rows)):
        apply(_load, src[row, col : col + width], dst[k, 0:width], _barrier("tma_gather4", barrier))


def tma_scatter4(src, dst, col, rows, *, swizzle=None, eviction_policy=None, annotations=None):
    """Stores the four rows of a shared tile to rows of a tensor, from a column on; T.tma_store_arrive and T.tma_store_wait
    wait for them."""
    width = src.shape[-1]
    for k, row in enumerate(_four(rows)):
        apply(_store, src[k, 0:width], dst[row, col : col + width])


__all__ = ["create_barriers", "create_tma_descriptor", "index_to_coordinates", "ptx_arrive_barrier", "ptx_arrive_barrier_expect_tx", "ptx_arrive_cluster_barrier",
           "ptx_cp_async_barrier", "ptx_cp_async_bulk", "ptx_fence_barrier_init", "ptx_init_barrier_thread_count", "ptx_wait_barrier",
           "tma_gather4", "tma_gather4_bytes", "tma_load", "tma_scatter4"]  # fmt: skip
