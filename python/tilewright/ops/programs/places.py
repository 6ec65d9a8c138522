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


def _rank(x, value, largest):
    """The element's place in the order as a whole number of so many bits as x has, signed: the first has the least. NaN is
    the largest, zeros are alike."""
    bits = 16 if x in ("float16", "bfloat16") else 32
    if "float" in x:
        raw = T.cast(T.reinterpret(value, f"int{bits}"), "int32")
        raw = T.if_then_else(T.cast(value, "float32") == 0, T.int32(0), raw)
        most = (1 << (bits - 1)) - 1
        value = T.if_then_else(T.isnan(T.cast(value, "float32")), T.int32(most), raw ^ ((raw >> 31) & most))
    return ~value if largest else value


# ---- order on CPUs, where a row is one thread's


@T.macro
def _sort_words(words, counts, side, count, bits):
    """The first `count` words of a side in rising order of their ranks, of equals the first first: by 8 bits a turn, to the
    other side. A digit that all have in common takes no turn."""
    T.clear(counts)
    for i in T.serial(count):
        for turn in T.unroll(bits // 8):
            digit = T.cast(words[side[0], i] >> (32 + turn * 8), "int32") & 255
            counts[turn, digit] = counts[turn, digit] + 1
    for turn in T.serial(bits // 8):
        shift = T.cast(32 + turn * 8, "int64")
        if T.logical_and(count > 0, counts[turn, T.cast(words[side[0], 0] >> shift, "int32") & 255] < count):
            first = T.alloc_var("int32", init=0)
            for d in T.serial(256):
                here = counts[turn, d]
                counts[turn, d] = first
                first = first + here
            for i in T.serial(count):
                word = words[side[0], i]
                digit = T.cast(word >> shift, "int32") & 255
                to = counts[turn, digit]
                words[1 - side[0], to] = word
                counts[turn, digit] = to + 1
            side[0] = 1 - side[0]


@Family
def in_order(x, largest, limits, width, chunk, walks, threads):
    """The first K of each row in order, with their places, int64. A block has `width` of them at once: if it `walks`, it keeps
    the first K, and of the others those that come before the last of these, until there is no room for a chunk. limits:
    rows begin and end where S and E say; what is beyond has no place, -1."""
    M, N, K = T.dynamic("M, N, K")
    bits = 16 if x in ("float16", "bfloat16") else 32
    sign = 1 << (bits - 1)
    last = sign - 1

    @T.prim_func
    def rows_in_order(
        X: T.Tensor((M, N), x),
        S: T.Tensor((M if limits else 1,), "int32"),
        E: T.Tensor((M if limits else 1,), "int32"),
        V: T.Tensor((M, K), x),
        P: T.Tensor((M, K), "int64"),
    ):
        with T.Kernel(M, threads=threads) as m:
            words = T.alloc_shared((2, width), "int64")
            counts = T.alloc_shared((bits // 8, 256), "int32")
            values = T.alloc_shared((chunk,), x)
            ranks = T.alloc_shared((chunk,), "int32")
            least = T.alloc_fragment((1,), "int32")
            begin, end = (T.max(S[m], 0), T.min(E[m], N)) if limits else (0, N)
            side = T.alloc_local((1,), "int32")
            kept = T.alloc_var("int32", init=0)
            bound = T.alloc_var("int32", init=last)
            whole = T.alloc_var("int32", init=0)
            side[0] = 0
            for t in T.serial(T.ceildiv(T.max(end - begin, 0), chunk)):
                at = begin + t * chunk
                if walks:
                    if kept + chunk > width:
                        _sort_words(words, counts, side, kept, bits)
                        kept = K
                        whole = 1
                        bound = T.cast(((words[side[0], K - 1] >> 32) & 0xFFFFFFFF) - sign, "int32")
                T.copy(X[m, at], values)
                for i in T.Parallel(chunk):
                    ranks[i] = T.if_then_else(at + i < end, _rank(x, values[i], largest), last)
                there = T.min(end - at, chunk)
                T.reduce_min(ranks, least)
                if T.logical_or(whole == 0, least[0] < bound):
                    for i in T.serial(there):
                        if T.logical_or(whole == 0, ranks[i] < bound):
                            words[side[0], kept] = ((T.cast(ranks[i], "int64") + sign) << 32) | T.cast(at + i, "int64")
                            kept = kept + 1
            _sort_words(words, counts, side, kept, bits)
            for i in T.serial(K):
                if i < kept:
                    place = T.cast(words[side[0], i] & 0x7FFFFFFF, "int32")
                    V[m, i] = X[m, place]
                    P[m, i] = T.cast(place, "int64")
                else:
                    V[m, i] = T.cast(0, x)
                    P[m, i] = T.cast(-1, "int64")

    return rows_in_order


# ---- order on GPUs: keys that rise as the wanted come


def _value(x, rank, largest):
    """The element of a rank, but of zeros and NaN, which are several."""
    key = ~rank if largest else rank
    if "float" not in x:
        return key
    bits = 16 if x in ("float16", "bfloat16") else 32
    raw = key ^ ((key >> 31) & ((1 << (bits - 1)) - 1))
    return T.reinterpret(T.cast(raw, f"int{bits}"), x)


def _element(x, rank, largest, there):
    """The element of a rank; there: it where it stands."""
    value = _value(x, rank, largest)
    if "float" not in x:
        return value
    wide = T.cast(value, "float32")
    return T.if_then_else(T.logical_or(wide == 0, T.isnan(wide)), there, value)


@T.macro
def _exchange(words, lane, each, mask, turned, bit):
    """Lanes that differ by `mask` keep the lesser or the greater words of the two; turned: the first of one stands against the
    last of the other."""
    other = T.alloc_local((each,), words.dtype)
    for e in T.unroll(each):
        other[e] = T.shfl_xor(words[each - 1 - e if turned else e], mask)
    for e in T.unroll(each):
        low, high = T.min(words[e], other[e]), T.max(words[e], other[e])
        words[e] = T.if_then_else((lane & bit) == 0, low, high)


@T.macro
def _sort_in_lanes(words, lane, each):
    """The words of a warp, `each` of a lane, in rising order: runs of 2, 4, ... are merged."""
    local = (each - 1).bit_length()
    for p in tuple(range(local + 5)):
        for s in tuple(range(p, -1, -1)):
            if s < local:
                for e in tuple(range(each)):
                    f = e ^ ((2 << p) - 1) if s == p else e ^ (1 << s)
                    if e < f:
                        a, b = words[e], words[f]
                        words[e] = T.min(a, b)
                        words[f] = T.max(a, b)
            else:
                bit = 1 << (s - local)
                _exchange(words, lane, each, 2 * bit - 1 if s == p else bit, s == p, bit)


@Family
def in_order_by_warps(x, largest, limits, each, threads):
    """in_order of rows of up to 32 * each elements, a warp's each: words of rank and place, in registers. limits: rows begin and
    end where S and E say."""
    M, N, K = T.dynamic("M, N, K")
    half = 16 if x in ("float16", "bfloat16") else 32
    nowhere = (1 << (half - (half == 32))) - 1
    kind = f"int{2 * half}"

    @T.prim_func
    def short_rows_in_order(
        X: T.Tensor((M, N), x),
        S: T.Tensor((M if limits else 1,), "int32"),
        E: T.Tensor((M if limits else 1,), "int32"),
        V: T.Tensor((M, K), x),
        P: T.Tensor((M, K), "int64"),
    ):
        with T.Kernel(T.ceildiv(M, threads // 32), threads=threads) as bx:
            words = T.alloc_local((each,), kind)
            tx = T.get_thread_binding()
            lane, m = tx % 32, bx * (threads // 32) + tx // 32
            row = T.min(m, M - 1)
            begin, end = (T.max(S[row], 0), T.min(E[row], N)) if limits else (0, N)
            for e in T.unroll(each):
                at = e * 32 + lane
                inside = begin + at < end
                value = X[row, T.if_then_else(inside, begin + at, -1)]  # 0, without a branch
                rank = T.if_then_else(inside, _rank(x, value, largest), (1 << (half - 1)) - 1)
                words[e] = (T.cast(rank, kind) << half) | T.cast(T.if_then_else(inside, at, nowhere), kind)
            _sort_in_lanes(words, lane, each)
            for e in T.unroll(each):
                i = lane * each + e
                if T.logical_and(m < M, i < K):
                    at = T.cast(words[e] & nowhere, "int32")
                    there = at < nowhere
                    place = T.if_then_else(there, begin + at, 0)
                    value = _element(x, T.cast(words[e] >> half, "int32"), largest, X[m, place])
                    V[m, i] = T.if_then_else(there, value, T.cast(0, x))
                    P[m, i] = T.cast(T.if_then_else(there, place, -1), "int64")

    return short_rows_in_order


@T.macro
def _sort_in_block(ranks, places, held, lying, counts, before, bits, each, threads):
    """The ranks of a block, `each` of a thread, and their places in rising order, of equals the first first: by 8 bits a
    turn. A warp has a run of elements, a lane every 32nd of it. held, lying: where they end, in shared memory."""
    tx = T.get_thread_binding()
    warps = threads // 32
    warp, lane = tx // 32, tx % 32
    at = T.alloc_local((each,), "int32")
    for turn in T.serial(bits // 8):
        for r in T.unroll(256 // 32):
            counts[tx // 32, r * 32 + tx % 32] = 0
        T.sync_threads()
        for e in T.unroll(each):
            digit = (ranks[e] >> (turn * 8)) & 255
            alike = T.match_any_sync(digit)
            ahead = T.popcount(alike & ((T.uint32(1) << T.cast(lane, "uint32")) - T.uint32(1)))
            at[e] = counts[tx // 32, digit] + T.cast(ahead, "int32")
            if ahead == 0:
                counts[tx // 32, digit] = at[e] + T.cast(T.popcount(alike), "int32")
        T.sync_threads()
        for d in T.serial(tx, 256, threads):
            total = T.alloc_var("int32", init=0)
            for w in T.unroll(warps):
                total = total + counts[w, d]
            before[d] = total
        T.cumsum(before, before)
        T.sync_threads()
        for d in T.serial(tx, 256, threads):
            first = T.alloc_var("int32", init=0)
            if d > 0:
                first = before[d - 1]
            for w in T.unroll(warps):
                here = counts[w, d]
                counts[w, d] = first
                first = first + here
        T.sync_threads()
        for e in T.unroll(each):
            at[e] = at[e] + counts[tx // 32, (ranks[e] >> (turn * 8)) & 255]
        for t in T.Parallel(threads):
            for e in T.unroll(each):
                held[at[e]] = ranks[e]
                lying[at[e]] = places[e]
        T.sync_threads()
        if turn + 1 < bits // 8:
            for e in T.unroll(each):
                ranks[e] = held[(warp * each + e) * 32 + lane]
                places[e] = lying[(warp * each + e) * 32 + lane]
            T.sync_threads()


@Family
def in_order_by_digits(x, largest, limits, each, walks, threads):
    """in_order of rows of up to each * threads elements, a block's each, by their digits. If it `walks`, rows may be longer:
    the block keeps the first K, and of the others those that come before the last of these, until there is no room for
    as many as half of what it has on chip."""
    M, N, K = T.dynamic("M, N, K")
    bits = 16 if x in ("float16", "bfloat16") else 32
    width, chunk = each * threads, each // 2
    nowhere, sign = 2**31 - 1, -(1 << (bits - 1))
    last = -1 if bits == 32 else (1 << bits) - 1

    @T.prim_func
    def rows_in_order(
        X: T.Tensor((M, N), x),
        S: T.Tensor((M if limits else 1,), "int32"),
        E: T.Tensor((M if limits else 1,), "int32"),
        V: T.Tensor((M, K), x),
        P: T.Tensor((M, K), "int64"),
    ):
        with T.Kernel(M, threads=threads) as m:
            held = T.alloc_shared((width,), "int32")
            lying = T.alloc_shared((width,), "int32")
            counts = T.alloc_shared((threads // 32, 256), "int32")
            before = T.alloc_shared((256,), "int32")
            ranks = T.alloc_local((each,), "int32")
            places = T.alloc_local((each,), "int32")
            tx = T.get_thread_binding()
            warp, lane = tx // 32, tx % 32
            begin, end = (T.max(S[m], 0), T.min(E[m], N)) if limits else (0, N)
            if walks:
                found = T.alloc_local((chunk,), "int32")
                ahead = T.alloc_shared((threads // 32,), "int32")
                kept = T.alloc_var("int32", init=0)
                bound = T.alloc_var("int32", init=T.max_value("int32"))
                whole = T.alloc_var("int32", init=0)
                for t in T.serial(T.ceildiv(T.max(end - begin, 0), chunk * threads)):
                    if kept + chunk * threads > width:
                        for e in T.unroll(each):
                            i = (warp * each + e) * 32 + lane
                            ranks[e] = T.if_then_else(i < kept, held[i], last)
                            places[e] = lying[i]
                        T.sync_threads()
                        _sort_in_block(ranks, places, held, lying, counts, before, bits, each, threads)
                        kept = K
                        whole = 1
                        bound = held[K - 1] ^ T.int32(-(2**31) if bits == 32 else 0)
                    mine = T.alloc_var("int32", init=0)
                    for e in T.unroll(chunk):
                        at = begin + t * (chunk * threads) + (warp * chunk + e) * 32 + lane
                        rank = T.alloc_var("int32", init=T.max_value("int32"))
                        wanted = T.alloc_var("bool", init=False)
                        if at < end:
                            value = X[m, at]
                            rank = _rank(x, value, largest)
                            wanted = T.logical_or(whole == 0, (rank if bits == 32 else rank - sign) < bound)
                        found[e] = rank
                        mine = mine | T.if_then_else(wanted, 1 << e, 0)
                    count = T.alloc_var("int32", init=0)
                    for e in T.unroll(chunk):
                        count = count + T.cast(T.popcount(T.ballot((mine >> e) & 1 == 1)), "int32")
                    ahead[warp] = count
                    T.sync_threads()
                    to = T.alloc_var("int32", init=kept)
                    for w in T.unroll(threads // 32):
                        to = to + T.if_then_else(w < warp, ahead[w], 0)
                        kept = kept + ahead[w]
                    for e in T.unroll(chunk):
                        those = T.ballot((mine >> e) & 1 == 1)
                        if (mine >> e) & 1 == 1:
                            i = to + T.cast(T.popcount(those & ((T.uint32(1) << T.cast(lane, "uint32")) - T.uint32(1))), "int32")
                            held[i] = found[e] - sign if bits == 16 else found[e] ^ sign
                            lying[i] = t * (chunk * threads) + (warp * chunk + e) * 32 + lane
                        to = to + T.cast(T.popcount(those), "int32")
                    T.sync_threads()
                for e in T.unroll(each):
                    i = (warp * each + e) * 32 + lane
                    ranks[e] = T.if_then_else(i < kept, held[i], last)
                    places[e] = T.if_then_else(i < kept, lying[i], nowhere)
                T.sync_threads()
            else:
                for e in T.unroll(each):
                    i = (warp * each + e) * 32 + lane
                    ranks[e] = last
                    places[e] = nowhere
                    if begin + i < end:
                        value = X[m, begin + i]
                        rank = _rank(x, value, largest)
                        ranks[e] = rank - sign if bits == 16 else rank ^ sign
                        places[e] = i
            _sort_in_block(ranks, places, held, lying, counts, before, bits, each, threads)
            for i in T.serial(tx, T.min(K, width), threads):
                at = lying[i]
                place = T.if_then_else(at < nowhere, begin + at, 0)
                rank = held[i] + sign if bits == 16 else held[i] ^ sign
                value = _element(x, rank, largest, X[m, place])
                V[m, i] = T.if_then_else(at < nowhere, value, T.cast(0, x))
                P[m, i] = T.cast(T.if_then_else(at < nowhere, place, -1), "int64")

    return rows_in_order
