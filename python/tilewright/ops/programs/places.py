"""Programs that look for places: of the largest or least element, and of all in order."""

from __future__ import annotations

import tilewright.language as T

from ...kernels.programs import Family

_NOWHERE = 2**31 - 1


@Family
def of_extreme(x, largest, last, rows, tile, columns, threads=128):
    """Where the largest or least of X [M, R, N] (`last`: [M, R]) along R stands: the first of equals, the first NaN."""
    M, R, N = T.dynamic("M, R, N")
    kind = "float32" if "float" in x else "int32"
    down, across = (rows, tile) if last else (tile, columns)
    results = rows if last else columns
    worst = (
        (-T.infinity(kind) if largest else T.infinity(kind))
        if kind == "float32"
        else T.min_value(kind)
        if largest
        else T.max_value(kind)
    )

    def better(a, b):
        found = a > b if largest else a < b
        return T.logical_or(found, T.logical_and(T.isnan(a), T.logical_not(T.isnan(b)))) if kind == "float32" else found

    def alike(a, b):
        return T.logical_or(a == b, T.logical_and(T.isnan(a), T.isnan(b))) if kind == "float32" else a == b

    @T.prim_func
    def place_of_extreme(X: T.Tensor((M, R) if last else (M, R, N), x), P: T.Tensor((M,) if last else (M, N), "int64")):
        with T.Kernel(T.ceildiv(M, rows) if last else T.ceildiv(N, columns), 1 if last else M, threads=threads) as (bx, m):
            best = T.alloc_fragment((down, across), kind)
            place = T.alloc_fragment((down, across), "int32")
            top = T.alloc_fragment((results,), kind)
            found = T.alloc_fragment((results,), "int32")
            T.fill(best, worst)
            for i, j in T.Parallel(down, across):
                r = j if last else i
                place[i, j] = T.if_then_else(r < R, r, _NOWHERE)
            for t in T.serial(T.ceildiv(R, tile)):
                for i, j in T.Parallel(down, across):
                    r = t * tile + (j if last else i)
                    value = T.cast(X[bx * rows + i, r] if last else X[m, r, bx * columns + j], kind)
                    if T.logical_and(r < R, better(value, best[i, j])):
                        best[i, j] = value
                        place[i, j] = r
            if largest:
                T.reduce_max(best, top, dim=1 if last else 0, nan_propagate=True)
            else:
                T.reduce_min(best, top, dim=1 if last else 0, nan_propagate=True)
            for i, j in T.Parallel(down, across):
                place[i, j] = T.if_then_else(alike(best[i, j], top[i if last else j]), place[i, j], _NOWHERE)
            T.reduce_min(place, found, dim=1 if last else 0)
            for i in T.Parallel(results):
                if last:
                    P[bx * rows + i] = T.cast(found[i], "int64")
                else:
                    P[m, bx * columns + i] = T.cast(found[i], "int64")

    return place_of_extreme


def _key(x, value, largest):
    """An integer that orders as the values do, the wanted first when integers fall; NaN is the largest, zeros are alike."""
    if "float" not in x:
        key = T.cast(value, "int32")
    else:
        wide = T.cast(value, "float32")
        bits = T.reinterpret(T.if_then_else(wide == 0, T.float32(0), wide), "int32")
        key = T.if_then_else(T.isnan(wide), T.max_value("int32"), bits ^ ((bits >> 31) & 0x7FFFFFFF))
    return key if largest else ~key


@T.macro
def _sort(keys, places, width):
    """Bitonic: runs of 2, 4, ... elements in falling and rising order, until there is one; of equals the first comes first."""
    for p in T.serial((width - 1).bit_length()):
        for q in T.serial(p + 1):
            s = p - q
            for i in T.Parallel(width // 2):
                low = ((i >> s) << (s + 1)) | (i & ((1 << s) - 1))
                high = low + (1 << s)
                a, b, pa, pb = keys[low], keys[high], places[low], places[high]
                falls = ((low >> (p + 1)) & 1) == 0
                wrong = T.logical_or(a < b, T.logical_and(a == b, pa > pb))
                if wrong == falls:
                    keys[low] = b
                    keys[high] = a
                    places[low] = pb
                    places[high] = pa


@Family
def in_order(x, largest, width, count, walks, threads):
    """The first `count` of each row in order, with their places, int64. A block has `width` of them at once: if it `walks`,
    it keeps the better half and takes as many again. S and E: where each row begins and ends; what is beyond has no
    place, -1."""
    M, N, K = T.dynamic("M, N, K")
    kept = width // 2
    least = -(2**31)

    @T.prim_func
    def rows_in_order(
        X: T.Tensor((M, N), x),
        S: T.Tensor((M,), "int32"),
        E: T.Tensor((M,), "int32"),
        V: T.Tensor((M, K), x),
        P: T.Tensor((M, K), "int64"),
    ):
        with T.Kernel(M, threads=threads) as m:
            keys = T.alloc_shared((width,), "int32")
            places = T.alloc_shared((width,), "int32")
            begin, end = T.max(S[m], 0), T.min(E[m], N)
            for i in T.Parallel(width):
                inside = begin + i < end
                keys[i] = T.if_then_else(inside, _key(x, X[m, T.min(begin + i, N - 1)], largest), least)
                places[i] = T.if_then_else(inside, begin + i, _NOWHERE)
            _sort(keys, places, width)
            if walks:
                for t in T.serial(T.max(T.ceildiv(end - begin - width, kept), 0)):
                    at = begin + width + t * kept
                    for i in T.Parallel(kept):
                        inside = at + i < end
                        keys[kept + i] = T.if_then_else(inside, _key(x, X[m, T.min(at + i, N - 1)], largest), least)
                        places[kept + i] = T.if_then_else(inside, at + i, _NOWHERE)
                    _sort(keys, places, width)
            for i in T.Parallel(count):
                place = places[i]
                there = place < _NOWHERE
                if i < K:
                    V[m, i] = T.if_then_else(there, X[m, T.min(place, N - 1)], T.cast(0, x))
                    P[m, i] = T.cast(T.if_then_else(there, place, -1), "int64")

    return rows_in_order
