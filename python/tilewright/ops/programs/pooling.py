"""Programs of pooling: windows of up to three dimensions, of a fixed size or as many as there are results."""

from __future__ import annotations

import itertools

import tilewright.language as T

from ...kernels.programs import Family

_WRITTEN_OUT = 64  # taps of a window at most


@Family
def windows(x, largest, places, adaptive, rank, inside, window, stride, padding, dilation, counts_padding, divisor, width, threads):
    """Y of X (M, D, H, W), both flat behind M: the mean or the largest of each window, whose first element may lie in the
    padding. `rank`: the last dimensions that there are, the others are 1; `inside`: windows have no padding and hang over no
    end. `places`: where the largest stands in D x H x W, of equals the first. adaptive: window w of n begins at w * extent /
    n."""
    M, S, R = T.dynamic("M, S, R")
    taps = () if adaptive else tuple(itertools.product(*map(range, window)))
    taps = taps if len(taps) <= _WRITTEN_OUT else ()
    least = -T.infinity("float32") if largest else T.float32(0)

    def reach(at, axis, extent, results):
        """(begin, end, step, how many elements it has with padding) of window `at` along a dimension."""
        if adaptive:
            begin, end = at * extent // results, T.ceildiv((at + 1) * extent, results)
            return begin, end, 1, end - begin
        begin = at * stride[axis] - padding[axis]
        whole = T.min(begin + window[axis], extent + padding[axis]) - begin
        return begin, T.min(begin + dilation[axis] * (window[axis] - 1) + 1, extent), dilation[axis], whole

    def exists(at, axis, extent):
        """Whether an element of a window stands in the dimension."""
        if inside or axis < 3 - rank:
            return T.bool(True)
        return T.cast(at, "uint32") < T.cast(extent, "uint32")

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
                    for kd, kh, kw in taps:
                        d, h, w = d0 + kd * ds, h0 + kh * hs, w0 + kw * ws
                        tap = ((d0 * H + h0) * W + w0) + ((kd * ds * H + kh * hs) * W + kw * ws)
                        here = T.logical_and(exists(d, 0, D), T.logical_and(exists(h, 1, H), exists(w, 2, W)))
                        v = T.if_then_else(here, T.cast(X[m, tap], "float32"), least)
                        if places:
                            if T.logical_and(here, T.logical_or(place < 0, T.logical_or(v > total, T.isnan(v)))):
                                total = v
                                place = tap
                        elif largest:
                            total = T.max_nan(total, v)
                        else:
                            total = total + v
                            there = there + T.cast(here, "int32")
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
