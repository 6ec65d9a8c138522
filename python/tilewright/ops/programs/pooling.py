"""Programs of pooling: windows of up to three dimensions, of a fixed size or as many as there are results."""

from __future__ import annotations

import itertools

import tilewright.language as T

from ...kernels.programs import Family
from .image_lines import Lying, bring

_WRITTEN_OUT = 64  # taps of a window at most


def _reach(adaptive, window, stride, padding, dilation):
    def reach(at, axis, extent, results):
        """(begin, end, step, how many elements it has with padding) of window `at` along a dimension."""
        if adaptive:
            begin, end = at * extent // results, T.ceildiv((at + 1) * extent, results)
            return begin, end, 1, end - begin
        begin = at * stride[axis] - padding[axis]
        whole = T.min(begin + window[axis], extent + padding[axis]) - begin
        return begin, T.min(begin + dilation[axis] * (window[axis] - 1) + 1, extent), dilation[axis], whole

    return reach


@Family
def windows(
    x, largest, places, adaptive, rank, inside, window, stride, padding, dilation, counts_padding, divisor, branches, width, threads
):
    """Y of X (M, D, H, W), both flat behind M: the mean or the largest of each window, whose first element may lie in the
    padding. `rank`: the last dimensions that there are, the others are 1; `inside`: windows have no padding and hang over no
    end. `places`: where the largest stands in D x H x W, of equals the first. branches: what is outside, and where the largest
    is, is found by those, which CPUs foretell. adaptive: window w of n begins at w * extent / n."""
    M, S, R = T.dynamic("M, S, R")
    taps = () if adaptive else tuple(itertools.product(*map(range, window)))
    taps = taps if len(taps) <= _WRITTEN_OUT else ()
    least = -T.infinity("float32") if largest else T.float32(0)
    reach = _reach(adaptive, window, stride, padding, dilation)
    # The largest of a window without gaps is that of its elements, some of them twice: those at the edges stand for those
    # beyond.
    sure = inside or (largest and not branches and set(dilation) == {1})

    def along(begin, axis, extent):
        """(where the elements of a window stand along a dimension, whether they are there)"""
        at = [begin + k * dilation[axis] for k in range(window[axis])]
        at = [T.bind(T.max(T.min(e, extent - 1), 0) if sure and not inside and axis >= 3 - rank else e) for e in at]
        if sure or axis < 3 - rank:
            return at, [T.bool(True)] * len(at)
        return at, [T.bind(T.cast(e, "uint32") < T.cast(extent, "uint32")) for e in at]

    def how_many(there):
        total = T.int32(0)
        for e in there:
            total = total + T.cast(e, "int32")
        return total

    @T.prim_func
    def pool(
        X: T.Tensor((M, S), x),
        Y: T.Tensor((M, R), x),
        P: T.Tensor((M if places else 1, R), "int64"),
        D: T.int32,
        H: T.int32,
        W: T.int32,
        OD: T.int32,
        OH: T.int32,
        OW: T.int32,
    ):
        with T.Kernel(T.ceildiv(R, width), M, threads=threads) as (bx, m):
            for i in T.Parallel(width):
                at = bx * width + i
                if at < R:
                    line = at // OW if rank > 1 else 0
                    od = line // OH if rank > 2 else 0
                    oh, ow = line - od * OH, at - line * OW
                    d0, d1, ds, dn = reach(od, 0, D, OD)
                    h0, h1, hs, hn = reach(oh, 1, H, OH)
                    w0, w1, ws, wn = reach(ow, 2, W, OW)
                    total = T.alloc_var("float32", init=least)
                    place = T.alloc_var("int32", init=-1)
                    there = T.alloc_var("int32", init=0)
                    if taps:
                        d, of_d = along(d0, 0, D)
                        h, of_h = along(h0, 1, H)
                        w, of_w = along(w0, 2, W)
                        lines = [[T.bind((e * H + f) * W) for f in h] for e in d]
                        if not largest and not counts_padding and not divisor:
                            there = how_many(of_d) * how_many(of_h) * how_many(of_w)
                    for kd, kh, kw in taps:
                        tap = lines[kd][kh] + w[kw]
                        here = T.bind(T.logical_and(of_d[kd], T.logical_and(of_h[kh], of_w[kw])))
                        # Outside are zeros, by the guard of the load alone: loads do not wait for each other.
                        far = tap if inside else T.cast(tap if sure else T.if_then_else(here, tap, -1), "uint32")
                        v = T.cast(X[m, far], "float32")
                        if branches and places:
                            v = T.if_then_else(here, T.cast(X[m, tap], "float32"), least)
                        if places and branches:
                            if T.logical_and(here, T.logical_or(place < 0, T.logical_or(v > total, T.isnan(v)))):
                                total = v
                                place = tap
                        elif places:
                            more = T.logical_or(T.logical_or(place < 0, v > total), T.isnan(v))
                            wanted = T.logical_and(here, more)
                            total = T.if_then_else(wanted, v, total)
                            place = T.if_then_else(wanted, tap, place)
                        elif largest:
                            total = T.max_nan(total, v if sure else T.if_then_else(here, v, least))
                        else:
                            total = total + v
                    if not taps:
                        for kd in T.serial(T.ceildiv(d1 - d0, ds)):
                            for kh in T.serial(T.ceildiv(h1 - h0, hs)):
                                for kw in T.serial(T.ceildiv(w1 - w0, ws)):
                                    d, h, w = d0 + kd * ds, h0 + kh * hs, w0 + kw * ws
                                    if T.logical_and(d >= 0, T.logical_and(h >= 0, w >= 0)):
                                        v = T.cast(X[m, (d * H + h) * W + w], "float32")
                                        if places:
                                            if T.logical_or(place < 0, T.logical_or(v > total, T.isnan(v))):
                                                total = v
                                                place = (d * H + h) * W + w
                                        elif largest:
                                            total = T.max_nan(total, v)
                                        else:
                                            total = total + v
                                            there = there + 1
                    if largest:
                        Y[m, at] = T.cast(total, x)
                        if places:
                            P[m, at] = T.cast(place, "int64")
                    else:
                        count = T.cast(divisor if divisor else dn * hn * wn if counts_padding or adaptive else there, "float32")
                        Y[m, at] = T.cast(total / count, x)

    return pool


@Family
def largest_by_lines(x, window, stride, padding, dilation, room, width, lines, threads):
    """The largest of windows on a CPU: a block has `lines` of results, and brings for each the lines of X (M, D * H, W) that it
    needs. room, width: of as many elements at least as lie beside each other, of as many results as a line has."""
    M, DH, W, R, OW = T.dynamic("M, DH, W, R, OW")
    lying = Lying(window[2], stride[2], padding[2], dilation[2])

    @T.prim_func
    def pool(X: T.Tensor((M, DH, W), x), Y: T.Tensor((M, R, OW), x), D: T.int32, H: T.int32, OH: T.int32):
        with T.Kernel(T.ceildiv(R, lines), M, threads=threads) as (bx, m):
            brought = T.alloc_shared((lying.apart, room), "float32")
            best = T.alloc_shared((width,), "float32")
            T.fill(brought, -T.infinity("float32"))
            for l in T.serial(T.min(lines, R - bx * lines)):
                line = bx * lines + l
                T.fill(best, -T.infinity("float32"))
                for kd, kh in T.grid(window[0], window[1]):
                    d = line // OH * stride[0] - padding[0] + kd * dilation[0]
                    h = line % OH * stride[1] - padding[1] + kh * dilation[1]
                    if T.logical_and(T.logical_and(d >= 0, d < D), T.logical_and(h >= 0, h < H)):
                        bring(brought, lying, X, m, d * H + h, W)
                        for j in T.Parallel(T.min(OW, width)):
                            total = best[j]
                            for k in tuple(range(window[2])):
                                total = T.bind(T.max_nan(total, lying.element(brought, k, j)))
                            best[j] = total
                for j in T.Parallel(T.min(OW, width)):
                    Y[m, line, j] = T.cast(best[j], x)

    return pool


@Family
def wide_windows(x, largest, places, adaptive, window, stride, padding, dilation, counts_padding, divisor, down, across, threads):
    """The same of windows of many elements: `down` lines of each are read by `across` lanes beside each other, and what they
    find is joined."""
    M, S, R = T.dynamic("M, S, R")
    lanes = down * across
    width = threads // lanes
    least = -T.infinity("float32") if largest else T.float32(0)
    reach = _reach(adaptive, window, stride, padding, dilation)

    @T.prim_func
    def pool(
        X: T.Tensor((M, S), x),
        Y: T.Tensor((M, R), x),
        P: T.Tensor((M if places else 1, R), "int64"),
        D: T.int32,
        H: T.int32,
        W: T.int32,
        OD: T.int32,
        OH: T.int32,
        OW: T.int32,
    ):
        with T.Kernel(T.ceildiv(R, width), M, threads=threads) as (bx, m):
            part = T.alloc_fragment((width, lanes), "float32")
            found = T.alloc_fragment((width, lanes), "int32")
            total = T.alloc_fragment((width,), "float32")
            place = T.alloc_fragment((width,), "int32")
            for i, lane in T.Parallel(width, lanes):
                at = T.min(bx * width + i, R - 1)
                line, row, column = at // OW, lane // across, lane % across
                d0, d1, ds, _ = reach(line // OH, 0, D, OD)
                h0, h1, hs, _ = reach(line % OH, 1, H, OH)
                w0, w1, ws, _ = reach(at % OW, 2, W, OW)
                lines = T.ceildiv(h1 - h0, hs)
                best = T.alloc_var("float32", init=least)
                where = T.alloc_var("int32", init=-1)
                there = T.alloc_var("int32", init=0)
                for r in T.serial(T.ceildiv(T.ceildiv(d1 - d0, ds) * lines - row, down)):
                    e = row + r * down
                    d, h = d0 + e // lines * ds, h0 + e % lines * hs
                    inside = T.logical_and(d >= 0, h >= 0)
                    for k in T.serial(T.ceildiv(T.ceildiv(w1 - w0, ws) - column, across)):
                        w = w0 + (column + k * across) * ws
                        here = T.logical_and(inside, w >= 0)
                        tap = T.if_then_else(here, (d * H + h) * W + w, -1)
                        v = T.cast(X[m, tap], "float32")
                        if places:
                            more = T.logical_or(T.logical_or(where < 0, v > best), T.isnan(v))
                            wanted = T.logical_and(here, more)
                            best = T.if_then_else(wanted, v, best)
                            where = T.if_then_else(wanted, tap, where)
                        elif largest:
                            best = T.max_nan(best, T.if_then_else(here, v, least))
                        else:
                            best = best + v
                            there = there + T.cast(here, "int32")
                part[i, lane] = best
                found[i, lane] = where if places else there
            if largest:
                T.reduce_max(part, total, dim=1, nan_propagate=True)
            else:
                T.reduce_sum(part, total, dim=1)
                T.reduce_sum(found, place, dim=1)
            if places:  # of equals the first, of NaN the last, as place after place finds them
                for i, lane in T.Parallel(width, lanes):
                    alike = T.logical_or(part[i, lane] == total[i], T.isnan(part[i, lane]))
                    at = T.if_then_else(T.isnan(total[i]), found[i, lane], -1 - found[i, lane])
                    wanted = T.logical_and(T.isnan(total[i]) == T.isnan(part[i, lane]), found[i, lane] >= 0)
                    found[i, lane] = T.if_then_else(T.logical_and(alike, wanted), at, T.min_value("int32"))
                T.reduce_max(found, place, dim=1)
            for i in T.Parallel(width):
                at = bx * width + i
                if at < R:
                    if largest:
                        Y[m, at] = T.cast(total[i], x)
                        if places:
                            P[m, at] = T.cast(T.if_then_else(place[i] < 0, -1 - place[i], place[i]), "int64")
                    else:
                        line = at // OW
                        dn, hn, wn = reach(line // OH, 0, D, OD)[3], reach(line % OH, 1, H, OH)[3], reach(at % OW, 2, W, OW)[3]
                        count = divisor if divisor else dn * hn * wn if counts_padding or adaptive else place[i]
                        Y[m, at] = T.cast(total[i] / T.cast(count, "float32"), x)

    return pool
