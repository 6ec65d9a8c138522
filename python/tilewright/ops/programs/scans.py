"""Programs of scans: what stands before an element joined with it, along rows or down columns."""

from __future__ import annotations

import tilewright.language as T

from ...kernels.programs import Family


def _sum(a, b):
    return a + b


def _product(a, b):
    return a * b


def _log_sum(a, b):
    most, d = T.max_nan(a, b), T.abs(a - b)
    return T.if_then_else(a == b, most + T.float32(0.6931471805599453), most + T.log1p(T.exp(-d)))


_JOINS = {"sum": _sum, "prod": _product, "logsumexp": _log_sum}


def _nothing(scan, kind):
    if scan == "logsumexp":
        return -T.infinity(kind)
    return T.cast(1 if scan == "prod" else 0, kind)


def _sum_kind(x):
    return "float32" if "float" in x else x


@Family
def along_rows(x, scan, rows, width, threads):
    """Tiles of rows one after the other: in each, elements are joined with those 1, 2, 4, ... before them."""
    M, N = T.dynamic("M, N")
    kind, join = _sum_kind(x), _JOINS[scan]
    steps = [1 << s for s in range((width - 1).bit_length())]

    @T.prim_func
    def scan_rows(X: T.Tensor((M, N), x), Y: T.Tensor((M, N), x)):
        with T.Kernel(T.ceildiv(M, rows), threads=threads) as bx:
            one = T.alloc_shared((rows, width), kind)
            two = T.alloc_shared((rows, width), kind)
            before = T.alloc_shared((rows,), kind)
            T.fill(before, _nothing(scan, kind))
            for t in T.serial(T.ceildiv(N, width)):
                T.copy(X[bx * rows, t * width], one)
                made, other = one, two
                if scan == "sum" and kind == "float32":
                    T.cumsum(one, two, dim=1)
                    made, other = two, one
                else:
                    for step in steps:
                        for i, j in T.Parallel(rows, width):
                            other[i, j] = T.if_then_else(j >= step, join(made[i, T.max(j - step, 0)], made[i, j]), made[i, j])
                        made, other = other, made
                for i, j in T.Parallel(rows, width):
                    other[i, j] = join(before[i], made[i, j])
                T.copy(other, Y[bx * rows, t * width])
                for i in T.Parallel(rows):
                    before[i] = other[i, width - 1]

    return scan_rows


@Family
def rows_beside(x, scan, rows, width, threads):
    """along_rows of a CPU: rows stand beside each other, so that a step along all of them is one operation."""
    M, N = T.dynamic("M, N")
    kind, join = _sum_kind(x), _JOINS[scan]

    @T.prim_func
    def scan_rows(X: T.Tensor((M, N), x), Y: T.Tensor((M, N), x)):
        with T.Kernel(T.ceildiv(M, rows), threads=threads) as bx:
            tile = T.alloc_shared((rows, width), kind)
            beside = T.alloc_shared((width, rows), kind)
            before = T.alloc_shared((rows,), kind)
            T.fill(before, _nothing(scan, kind))
            for t in T.serial(T.ceildiv(N, width)):
                T.copy(X[bx * rows, t * width], tile)
                for j, i in T.Parallel(width, rows):
                    beside[j, i] = tile[i, j]
                for j in T.serial(width):
                    for i in T.Parallel(rows):
                        before[i] = join(before[i], beside[j, i])
                        beside[j, i] = before[i]
                for i, j in T.Parallel(rows, width):
                    tile[i, j] = beside[j, i]
                T.copy(tile, Y[bx * rows, t * width])

    return scan_rows


@Family
def down_columns(x, scan, columns, threads):
    """Rows of X [M, R, N] one after the other, each joined with what stands above it."""
    M, R, N = T.dynamic("M, R, N")
    kind, join = _sum_kind(x), _JOINS[scan]

    @T.prim_func
    def scan_columns(X: T.Tensor((M, R, N), x), Y: T.Tensor((M, R, N), x)):
        with T.Kernel(T.ceildiv(N, columns), M, threads=threads) as (bx, m):
            above = T.alloc_fragment((columns,), kind)
            T.fill(above, _nothing(scan, kind))
            for r in T.serial(R):
                for j in T.Parallel(columns):
                    above[j] = join(above[j], T.cast(X[m, r, bx * columns + j], kind))
                    Y[m, r, bx * columns + j] = T.cast(above[j], x)

    return scan_columns


def _goes_on(a, b, largest):
    """Whether the later of two is taken: it is as large, or NaN."""
    return T.logical_or(b >= a if largest else b <= a, T.isnan(b))


@Family
def running_places(x, largest, rows, width, threads):
    """The largest or least so far along rows, and where it stands: the last of equals, the first NaN and then the last."""
    M, N = T.dynamic("M, N")
    steps = [1 << s for s in range((width - 1).bit_length())]
    worst = -float("inf") if largest else float("inf")

    @T.prim_func
    def scan_places(X: T.Tensor((M, N), x), Y: T.Tensor((M, N), x), P: T.Tensor((M, N), "int64")):
        with T.Kernel(T.ceildiv(M, rows), threads=threads) as bx:
            one = T.alloc_shared((rows, width), "float32")
            two = T.alloc_shared((rows, width), "float32")
            first = T.alloc_shared((rows, width), "int32")
            second = T.alloc_shared((rows, width), "int32")
            before = T.alloc_shared((rows,), "float32")
            place = T.alloc_shared((rows,), "int32")
            T.fill(before, T.float32(worst))
            T.clear(place)
            for t in T.serial(T.ceildiv(N, width)):
                for i, j in T.Parallel(rows, width):
                    one[i, j] = T.cast(X[bx * rows + i, t * width + j], "float32")
                    first[i, j] = t * width + j
                made, other, at, other_at = one, two, first, second
                for step in steps:
                    for i, j in T.Parallel(rows, width):
                        k = T.max(j - step, 0)
                        left, here = made[i, k], made[i, j]
                        later = T.logical_or(j < step, _goes_on(left, here, largest))
                        other[i, j] = T.if_then_else(later, here, left)
                        other_at[i, j] = T.if_then_else(later, at[i, j], at[i, k])
                    made, other, at, other_at = other, made, other_at, at
                for i, j in T.Parallel(rows, width):
                    left, here = before[i], made[i, j]
                    later = _goes_on(left, here, largest)
                    other[i, j] = T.if_then_else(later, here, left)
                    other_at[i, j] = T.if_then_else(later, at[i, j], place[i])
                    Y[bx * rows + i, t * width + j] = T.cast(other[i, j], x)
                    P[bx * rows + i, t * width + j] = T.cast(other_at[i, j], "int64")
                for i in T.Parallel(rows):
                    before[i] = other[i, width - 1]
                    place[i] = other_at[i, width - 1]

    return scan_places


@Family
def places_beside(x, largest, rows, width, threads):
    """running_places of a CPU: rows stand beside each other."""
    M, N = T.dynamic("M, N")
    worst = -float("inf") if largest else float("inf")

    @T.prim_func
    def scan_places(X: T.Tensor((M, N), x), Y: T.Tensor((M, N), x), P: T.Tensor((M, N), "int64")):
        with T.Kernel(T.ceildiv(M, rows), threads=threads) as bx:
            tile = T.alloc_shared((rows, width), "float32")
            places = T.alloc_shared((rows, width), "int32")
            beside = T.alloc_shared((width, rows), "float32")
            places_beside = T.alloc_shared((width, rows), "int32")
            before = T.alloc_shared((rows,), "float32")
            place = T.alloc_shared((rows,), "int32")
            T.fill(before, T.float32(worst))
            T.clear(place)
            for t in T.serial(T.ceildiv(N, width)):
                T.copy(X[bx * rows, t * width], tile)
                for j, i in T.Parallel(width, rows):
                    beside[j, i] = tile[i, j]
                for j in T.serial(width):
                    for i in T.Parallel(rows):
                        left, here = before[i], beside[j, i]
                        later = T.bind(_goes_on(left, here, largest))
                        before[i] = T.if_then_else(later, here, left)
                        place[i] = T.if_then_else(later, t * width + j, place[i])
                        beside[j, i] = before[i]
                        places_beside[j, i] = place[i]
                for i, j in T.Parallel(rows, width):
                    tile[i, j] = beside[j, i]
                for i, j in T.Parallel(rows, width):
                    places[i, j] = places_beside[j, i]
                T.copy(tile, Y[bx * rows, t * width])
                for i, j in T.Parallel(rows, width):
                    P[bx * rows + i, t * width + j] = T.cast(places[i, j], "int64")

    return scan_places
